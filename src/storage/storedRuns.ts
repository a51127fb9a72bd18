/** Rows of runs, read. Needs schemas, so it is loaded when the first row is. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { RunRow } from "./runRows.js"
import { must, Time, unreadable, ValueText } from "./storedColumns.js"

const readRow = Schema.decodeUnknownEither(
  Schema.Struct({
    runId: Schema.String,
    agentId: Schema.String,
    threadId: Schema.NullOr(Schema.String),
    resourceId: Schema.NullOr(Schema.String),
    snapshot: ValueText,
    revision: Schema.Int.pipe(Schema.positive()),
    createdAt: Time,
    updatedAt: Time,
    holders: Schema.Array(Schema.String)
  })
)

/** The run of a row. */
export const readRun = (operation: string, row: RunRow) =>
  Either.map(
    must(operation, unreadable(`Run "${row.runId}"`), readRow(row)),
    ({ resourceId, threadId, ...run }) => ({
      ...run,
      ...(threadId === null ? {} : { threadId }),
      ...(resourceId === null ? {} : { resourceId })
    })
  )

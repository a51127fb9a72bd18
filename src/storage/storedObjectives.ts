/** Objectives, read and written as text. Needs schemas, so it is loaded when the first one is. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { StorageError } from "../protocol/Errors.js"
import { type Objective, statuses } from "../protocol/Objective.js"
import { wellFormed } from "../protocol/safeJson.js"
import { must, Time, unreadable } from "./storedColumns.js"

const Runs = Schema.Int.pipe(Schema.nonNegative())

const Content = Schema.parseJson(
  Schema.Struct({
    objective: Schema.String,
    status: Schema.Literal(...statuses),
    maxRuns: Runs,
    runsUsed: Runs,
    reason: Schema.optionalWith(Schema.String, { exact: true }),
    createdAt: Time,
    updatedAt: Time
  })
)

const readContent = Schema.decodeUnknownEither(Content)

/** The objective of a thread, as it stands there. */
export const readObjective = (
  operation: string,
  threadId: string,
  content: string
): Either.Either<Objective, StorageError> =>
  must(operation, unreadable(`The objective of thread "${threadId}"`), readContent(content))

/** The text of an objective, and what will be read of it: what nobody could read is not stored. */
export const writeObjective = (
  operation: string,
  { createdAt, objective, reason, updatedAt, ...rest }: Objective
): Either.Either<{ readonly content: string; readonly objective: Objective }, StorageError> => {
  const content = JSON.stringify({
    ...rest,
    objective: wellFormed(objective),
    ...(reason === undefined ? {} : { reason: wellFormed(reason) }),
    createdAt: createdAt.getTime(),
    updatedAt: updatedAt.getTime()
  })
  const problem =
    "The objective cannot be stored: it has not the shape of one. Give a text, a status, whole numbers and valid dates."
  return Either.map(must(operation, problem, readContent(content)), read => ({ content, objective: read }))
}

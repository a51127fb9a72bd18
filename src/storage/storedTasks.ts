/** Rows of tasks, read. Needs schemas, so it is loaded when the first row is. */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { statuses } from "../protocol/Task.js"
import { must, ObjectText, Time, unreadable, ValueText } from "./storedColumns.js"
import type { TaskRow } from "./taskRows.js"

const Text = Schema.NullOr(Schema.String)

const Moment = Schema.NullOr(Time)

/** `null` for no text, and for the text "null": the row tells which. */
const Value = Schema.NullOr(ValueText)

const readRow = Schema.decodeUnknownEither(
  Schema.Struct({
    id: Schema.String,
    status: Schema.Literal(...statuses),
    toolName: Schema.String,
    toolCallId: Schema.String,
    args: ObjectText,
    agentId: Schema.String,
    threadId: Text,
    resourceId: Text,
    runId: Schema.String,
    result: Value,
    error: Text,
    suspendData: Value,
    resumeData: Value,
    createdAt: Time,
    startedAt: Moment,
    suspendedAt: Moment,
    completedAt: Moment,
    attempt: Schema.NonNegativeInt,
    maxRetries: Schema.NonNegativeInt,
    timeoutMs: Schema.NonNegativeInt,
    owner: Text,
    isDelivered: Schema.Literal(0, 1)
  })
)

/**
 * The task of a row. One whose status and fields do not fit each other is shown as it is: whoever looks for what went wrong
 * must be able to see it.
 */
export const readTask = (operation: string, row: TaskRow) =>
  Either.map(
    must(operation, unreadable(`Task "${row.id}"`), readRow(row)),
    ({
      completedAt,
      error,
      isDelivered,
      owner,
      resourceId,
      result,
      resumeData,
      startedAt,
      suspendData,
      suspendedAt,
      threadId,
      ...task
    }) => ({
      task: {
        ...task,
        ...(threadId === null ? {} : { threadId }),
        ...(resourceId === null ? {} : { resourceId }),
        ...(row.result === null ? {} : { result }),
        ...(error === null ? {} : { error: { message: error } }),
        ...(row.suspendData === null ? {} : { suspendData }),
        ...(startedAt === null ? {} : { startedAt }),
        ...(suspendedAt === null ? {} : { suspendedAt }),
        ...(completedAt === null ? {} : { completedAt })
      },
      owner: owner ?? undefined,
      resumeData: row.resumeData === null ? Option.none() : Option.some(resumeData),
      isDelivered: isDelivered === 1
    })
  )

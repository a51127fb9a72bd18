/** Rows of threads and messages, read and made. Needs schemas, so it is loaded when the first row is. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { StorageError } from "../protocol/Errors.js"
import * as Json from "../protocol/Json.js"
import { Message } from "../protocol/Message.js"
import { type JsonObject, must, ObjectText, Time, unreadable } from "./storedColumns.js"
import type { MessageRow, NewMessageRow, ThreadRow } from "./threadRows.js"

const Content = Schema.parseJson(Message)

const readThreadRow = Schema.decodeUnknownEither(
  Schema.Struct({
    id: Schema.String,
    resourceId: Schema.String,
    title: Schema.NullOr(Schema.String),
    metadata: Schema.NullOr(ObjectText),
    createdAt: Time,
    updatedAt: Time
  })
)

const readMessageRow = Schema.decodeUnknownEither(
  Schema.Struct({
    id: Schema.String,
    threadId: Schema.String,
    runId: Schema.NullOr(Schema.String),
    block: Schema.Int,
    sequence: Schema.Int,
    createdAt: Time,
    content: Content
  })
)

const readMetadata = Schema.decodeUnknownEither(ObjectText)

const readContent = Schema.decodeUnknownEither(Content)

/** The thread of a row. */
export const readThread = (operation: string, row: ThreadRow) =>
  Either.map(
    must(operation, unreadable(`Thread "${row.id}"`), readThreadRow(row)),
    ({ metadata, title, ...thread }) => ({
      ...thread,
      ...(title === null ? {} : { title }),
      ...(metadata === null ? {} : { metadata })
    })
  )

/** The message of a row. */
export const readMessage = (operation: string, row: MessageRow) =>
  Either.map(
    must(operation, unreadable(`Message "${row.id}" of thread "${row.threadId}"`), readMessageRow(row)),
    ({ content, runId, ...message }) => ({
      ...message,
      ...(runId === null ? {} : { runId }),
      message: content
    })
  )

/** The text of metadata, which can be read again; `undefined` of none. */
export const writeMetadata = (
  operation: string,
  metadata: JsonObject | undefined
): Either.Either<string | undefined, StorageError> => {
  if (metadata === undefined) return Either.right(undefined)
  const text = Json.stringify(metadata)
  const problem = "`metadata` cannot be stored: it is no object. Give an object of values that JSON can hold."
  return Either.map(must(operation, problem, readMetadata(text)), () => text)
}

/** A message to be stored, and the message that will be read of it. */
interface Written {
  readonly row: NewMessageRow
  readonly message: Message
}

/**
 * Made safe as a whole, not by the schema: that one refuses what JSON cannot hold where it expects JSON, a `NaN` in
 * provider options for one. Then read again, so that nothing is stored that nobody can read.
 */
export const writeMessage = (
  operation: string,
  { id, message, runId }: { readonly id: string; readonly runId?: string; readonly message: Message }
): Either.Either<Written, StorageError> => {
  const content = Json.stringify(message)
  const problem = `Message "${id}" cannot be stored: it has not the shape of a message. Read it with Conversation.fromInput first.`
  return Either.map(must(operation, problem, readContent(content)), read => ({
    row: {
      id: Json.wellFormed(id),
      runId: runId === undefined ? null : Json.wellFormed(runId),
      role: read.role,
      content
    },
    message: read
  }))
}

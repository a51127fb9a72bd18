/** Messages of other shapes than a text: of the AI SDK's models, and of its user interfaces. */
import * as Either from "effect/Either"
import { fromModelMessage } from "./conversationModel.js"
import { refuse } from "./conversationShape.js"
import { fromUiMessage } from "./conversationUi.js"
import type { InvalidMessage } from "./Errors.js"
import type { Message } from "./Message.js"
import { isRecord } from "./safeJson.js"

/** One message; `at` is where it stands in the input. */
export const fromMessage = (
  value: unknown,
  at: ReadonlyArray<number>
): Either.Either<ReadonlyArray<Message>, InvalidMessage> => {
  if (!isRecord(value)) return Either.left(refuse(value, at, []))
  return Array.isArray(value["parts"])
    ? fromUiMessage(value, at)
    : Either.map(fromModelMessage(value, at), message => [message])
}

/**
 * What `useChat` of the AI SDK (version 7) posts: the conversation, decisions about calls among it.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { MessageInput, ToolResultInput } from "../../protocol/Conversation.js"
import type { UIMessage } from "../../protocol/Message.js"
import { isRecord } from "../../protocol/safeJson.js"
import { readDecisionId } from "./decisionId.js"
import type { InvalidRequest } from "./InvalidRequest.js"
import { bodyReader, loose, OpenRecord } from "./requestShape.js"

/** What somebody has decided about a call that waited for it. @since 0.1.0 @category models */
interface Decision {
  readonly runId: string
  readonly toolCallId: string
  readonly approved: boolean
  readonly reason?: string
}

/** What a suspended call is resumed with. @since 0.1.0 @category models */
interface Resumption {
  readonly runId: string
  readonly toolCallId: string
  readonly data: unknown
}

/** @since 0.1.0 @category models */
export interface UiRequest {
  /** Names the conversation. */
  readonly chatId: string | undefined
  /** The whole conversation, for an agent without a thread. Messages of the role `system` are left out: a client has none. */
  readonly messages: ReadonlyArray<UIMessage>
  /** What is new in it, for an agent that has the rest in its thread: of an answer that is last, what its calls came to. */
  readonly newMessages: ReadonlyArray<MessageInput>
  /**
   * The user's message that is last, when it is to be answered again or is another one than it was: the client has taken out of the
   * conversation what stood behind it, a thread still has it.
   */
  readonly after: string | undefined
  /** Decisions about calls of the last message. With one or more the run goes on, and nothing new is said. */
  readonly decisions: ReadonlyArray<Decision>
  /** The field `resume` of the body: `{ runId, toolCallId, data }`, as `data-tool-call-suspended` has told them. */
  readonly resumption: Resumption | undefined
  /** The message that an answer to a decision goes on with; hand it to the mapper. */
  readonly continues: UIMessage | undefined
}

const Body = Schema.Struct({
  id: loose(Schema.String),
  messages: Schema.Array(
    Schema.Struct({
      id: loose(Schema.String),
      role: Schema.Literal("system", "user", "assistant"),
      parts: Schema.Array(OpenRecord)
    })
  ),
  trigger: loose(Schema.String),
  messageId: loose(Schema.String),
  resume: loose(
    Schema.Struct({
      runId: Schema.NonEmptyString,
      toolCallId: Schema.NonEmptyString,
      data: Schema.optional(Schema.Unknown)
    })
  )
})

const readBody = bodyReader(
  Body,
  "Send what the chat transport of the AI SDK sends: { id, messages: [{ id, role, parts }], trigger }."
)

const decisionOf = ({ approval, state }: UIMessage["parts"][number]): ReadonlyArray<Decision> => {
  if (state !== "approval-responded" || !isRecord(approval)) return []
  const { approved, id, reason } = approval
  const decided = typeof id === "string" ? readDecisionId(id) : undefined
  if (decided === undefined || typeof approved !== "boolean") return []
  return [{ ...decided, approved, ...(typeof reason === "string" && reason !== "" ? { reason } : {}) }]
}

/** What a call of an answer came to, as far as the client knows. */
const outcomeOf = (part: UIMessage["parts"][number]): ReadonlyArray<ToolResultInput> => {
  const { approval, errorText, output, preliminary, providerExecuted, state, toolCallId } = part
  if (typeof toolCallId !== "string" || providerExecuted === true) return []
  const result = { type: "tool-result", toolCallId } as const
  switch (state) {
    case "output-available":
      return preliminary === true ? [] : [{ ...result, result: output ?? null }]
    case "output-error":
      return [{ ...result, output: { type: "error-text", value: errorText || "The tool failed." } }]
    case "output-denied": {
      const reason =
        isRecord(approval) && typeof approval["reason"] === "string" ? approval["reason"] : undefined
      return [{ ...result, output: { type: "execution-denied", reason } }]
    }
    default:
      return []
  }
}

/**
 * What stands behind the last answer. When an answer is last, its client has executed calls of it. The thread has the answer, in
 * as many messages as it took to make it: only what its calls came to is new.
 */
const newIn = (messages: ReadonlyArray<UIMessage>): ReadonlyArray<MessageInput> => {
  const behind = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1)
  if (behind.length > 0) return behind
  const outcomes = messages.at(-1)?.parts.flatMap(outcomeOf) ?? []
  return outcomes.length > 0 ? [{ role: "tool", content: outcomes }] : messages.slice(-1)
}

/**
 * Reads the body of a request. The parts of its messages are read when a run is told them. Fails with `InvalidRequest`.
 *
 * @since 0.1.0
 * @category conversions
 */
export const read = (body: unknown): Either.Either<UiRequest, InvalidRequest> =>
  Either.map(readBody(body), ({ id, messageId, messages: said, resume, trigger }) => {
    const messages = said
      .filter(({ role }) => role !== "system")
      .map(({ id, parts, role }): UIMessage => ({ id: id ?? "", role, parts }))
    const last = messages.at(-1)
    const answered = last?.role === "assistant" ? last : undefined
    const isAgain = (lastId: string): boolean => trigger === "regenerate-message" || messageId === lastId
    const decisions = answered?.parts.flatMap(decisionOf) ?? []
    return {
      chatId: id,
      messages,
      newMessages: newIn(messages),
      after: last?.role === "user" && last.id !== "" && isAgain(last.id) ? last.id : undefined,
      decisions,
      resumption: resume === undefined ? undefined : { ...resume, data: resume.data },
      continues: answered
    }
  })

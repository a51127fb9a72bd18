/**
 * What `HttpAgent` of `@ag-ui/client` posts: a `RunAgentInput` of AG-UI 1.0.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { MessageInput, ModelMessageInput } from "../../protocol/Conversation.js"
import { isRecord } from "../../protocol/safeJson.js"
import { type ClientTool, clientTool, inputOf } from "./clientTools.js"
import { readDecisionId } from "./decisionId.js"
import { InvalidRequest } from "./InvalidRequest.js"
import { bodyReader, loose } from "./requestShape.js"

/** The answer to an interrupt. @since 0.1.0 @category models */
export interface Answer {
  readonly runId: string
  readonly toolCallId: string
  /**
   * Whether the call is approved: the `approved` of the answer, and `false` of one that is cancelled. `undefined`: the answer
   * is no decision, but what a suspended call is resumed with.
   */
  readonly approved: boolean | undefined
  readonly reason: string | undefined
  readonly data: unknown
}

/** @since 0.1.0 @category models */
export interface AgUiRequest {
  readonly threadId: string
  /** The client's name of this response; hand it to the mapper. */
  readonly runId: string
  /** The conversation. Activities, reasoning and messages of the roles `system` and `developer` are left out. */
  readonly messages: ReadonlyArray<MessageInput>
  /** What is new in it, for an agent that has the rest in its thread: what stands behind the last answer. */
  readonly newMessages: ReadonlyArray<MessageInput>
  /** Texts of the roles `system` and `developer`, for a host that lets clients instruct its agents. */
  readonly instructions: ReadonlyArray<string>
  /** Tools that the client executes. */
  readonly tools: ReadonlyArray<ClientTool>
  /** What the client says of its surroundings, for a host that lets clients instruct its agents. */
  readonly context: ReadonlyArray<{ readonly description: string; readonly value: string }>
  /** What the client holds in common with the agent, for a host that lets clients set it. `undefined`: it is empty. */
  readonly state: unknown
  readonly answers: ReadonlyArray<Answer>
  /** Calls of the conversation without a result; hand them to the mapper. */
  readonly openToolCallIds: ReadonlyArray<string>
}

const Source = Schema.Struct({
  type: Schema.Literal("data", "url", "file"),
  value: Schema.String,
  mimeType: loose(Schema.String)
})

const Part = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("image", "audio", "video", "document"), source: Source })
)

const Content = Schema.Union(Schema.String, Schema.Array(Part))

const common = { id: loose(Schema.String), subagentRunId: loose(Schema.String) }

const Message = Schema.Union(
  Schema.Struct({ role: Schema.Literal("user"), content: Content, ...common }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    content: loose(Schema.String),
    toolCalls: loose(
      Schema.Array(
        Schema.Struct({
          id: Schema.String,
          function: Schema.Struct({ name: Schema.String, arguments: Schema.String })
        })
      )
    ),
    ...common
  }),
  Schema.Struct({
    role: Schema.Literal("tool"),
    content: Content,
    toolCallId: Schema.String,
    error: loose(Schema.String),
    ...common
  }),
  Schema.Struct({ role: Schema.Literal("system", "developer"), content: Schema.String, ...common }),
  Schema.Struct({ role: Schema.Literal("activity", "reasoning"), ...common })
)

type Message = typeof Message.Type

const Body = Schema.Struct({
  threadId: Schema.NonEmptyString,
  runId: Schema.NonEmptyString,
  messages: Schema.Array(Message),
  tools: loose(
    Schema.Array(
      Schema.Struct({
        name: Schema.NonEmptyString,
        description: loose(Schema.String),
        parameters: loose(Schema.Unknown)
      })
    )
  ),
  context: loose(Schema.Array(Schema.Struct({ description: Schema.String, value: Schema.String }))),
  state: Schema.optional(Schema.Unknown),
  resume: loose(
    Schema.Array(
      Schema.Struct({
        interruptId: Schema.String,
        status: Schema.Literal("resolved", "cancelled"),
        payload: Schema.optional(Schema.Unknown)
      })
    )
  )
})

type Body = typeof Body.Type

const readBody = bodyReader(
  Body,
  "Send a RunAgentInput of AG-UI 1.0: { threadId, runId, messages, tools, context }."
)

const mediaTypes = {
  image: "image/*",
  audio: "audio/*",
  video: "video/*",
  document: "application/octet-stream"
}

type PartOf = typeof Part.Type

const partOf = (part: PartOf) =>
  part.type === "text"
    ? part
    : {
        type: "file" as const,
        data: part.source.value,
        mediaType: part.source.mimeType ?? mediaTypes[part.type]
      }

const textOf = (content: typeof Content.Type): string =>
  typeof content === "string"
    ? content
    : content.map(part => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n")

const named = ({ id }: { readonly id?: string | undefined }) => (id === undefined || id === "" ? {} : { id })

const messageOf = (message: Message): ReadonlyArray<ModelMessageInput> => {
  // What an agent below has said is in the result of its call.
  if (message.subagentRunId !== undefined) return []
  switch (message.role) {
    case "user": {
      const { content } = message
      return [
        {
          role: "user",
          content: typeof content === "string" ? content : content.map(partOf),
          ...named(message)
        }
      ]
    }
    case "assistant": {
      const text = message.content ?? ""
      const calls = (message.toolCalls ?? []).map(call => ({
        type: "tool-call" as const,
        toolCallId: call.id,
        toolName: call.function.name,
        input: inputOf(call.function.arguments)
      }))
      const content = [...(text === "" ? [] : [{ type: "text" as const, text }]), ...calls]
      return [{ role: "assistant", content, ...named(message) }]
    }
    case "tool": {
      const output =
        message.error === undefined
          ? { type: "text", value: textOf(message.content) }
          : { type: "error-text", value: message.error }
      const content = [{ type: "tool-result" as const, toolCallId: message.toolCallId, output }]
      return [{ role: "tool", content, ...named(message) }]
    }
    default:
      return []
  }
}

const answerOf = (
  { interruptId, payload, status }: NonNullable<Body["resume"]>[number],
  at: number
): Either.Either<Answer, InvalidRequest> => {
  const decided = readDecisionId(interruptId)
  if (decided === undefined) {
    const field = `resume[${at}].interruptId`
    const message = `${field} is no interrupt of ours. Send the ids of the interrupts that the run has ended with.`
    return Either.left(new InvalidRequest({ field, message }))
  }
  const said = isRecord(payload) ? payload : {}
  const approved = typeof said["approved"] === "boolean" ? said["approved"] : undefined
  const isCancelled = status === "cancelled"
  return Either.right({
    ...decided,
    approved: isCancelled ? false : approved,
    reason: typeof said["reason"] === "string" ? said["reason"] : undefined,
    data: isCancelled ? { approved: false } : payload
  })
}

/** Clients send `{}` when they have none. */
const isEmpty = (state: unknown): boolean =>
  state === null || state === "" || (typeof state === "object" && Object.keys(state).length === 0)

const openCalls = (messages: ReadonlyArray<Message>): ReadonlyArray<string> => {
  const open = new Set<string>()
  for (const message of messages) {
    if (message.role === "assistant") for (const { id } of message.toolCalls ?? []) open.add(id)
    if (message.role === "tool") open.delete(message.toolCallId)
  }
  return [...open]
}

/**
 * Reads the body of a request. What its messages hold is read when a run is told them. Fails with `InvalidRequest`.
 *
 * @since 0.1.0
 * @category conversions
 */
export const read = (body: unknown): Either.Either<AgUiRequest, InvalidRequest> =>
  Either.flatMap(readBody(body), ({ context, messages, resume, runId, state, threadId, tools }) =>
    Either.map(Either.all((resume ?? []).map(answerOf)), answers => {
      const last = messages.findLastIndex(({ role }) => role === "assistant")
      return {
        threadId,
        runId,
        messages: messages.flatMap(messageOf),
        newMessages: messages.slice(last + 1).flatMap(messageOf),
        instructions: messages.flatMap(message =>
          message.role === "system" || message.role === "developer" ? [message.content] : []
        ),
        tools: (tools ?? []).map(({ description, name, parameters }) =>
          clientTool(name, description, parameters)
        ),
        context: context ?? [],
        state: isEmpty(state) ? undefined : state,
        answers,
        openToolCallIds: openCalls(messages)
      }
    })
  )

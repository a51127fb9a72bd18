/**
 * The messages of a conversation, as a model is told them. The shape is that of the AI SDK's prompt (specification V3),
 * so that a model adapter hands most of them over as they are.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Json from "./Json.js"

const providerOptions = { providerOptions: Schema.optionalWith(Json.ProviderMetadata, { exact: true }) }

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** Text of a user or of the model. @since 0.1.0 @category schemas */
export const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Json.Text, ...providerOptions })

/** @since 0.1.0 @category models */
export type TextPart = typeof TextPart.Type

/** Reasoning of the model; `providerOptions` carry its signature byte for byte. @since 0.1.0 @category schemas */
export const ReasoningPart = Schema.Struct({
  type: Schema.Literal("reasoning"),
  text: Json.Text,
  ...providerOptions
})

/** @since 0.1.0 @category models */
export type ReasoningPart = typeof ReasoningPart.Type

/** A file: base64 text, or the URL where it lies. @since 0.1.0 @category schemas */
export const FilePart = Schema.Struct({
  type: Schema.Literal("file"),
  data: Schema.Union(Schema.String.pipe(Schema.pattern(/^[^:]*$/)), Schema.URL),
  mediaType: Schema.String,
  filename: optional(Schema.String),
  ...providerOptions
})

/** @since 0.1.0 @category models */
export type FilePart = typeof FilePart.Type

/** A call that the model made. `input` is the parsed arguments. @since 0.1.0 @category schemas */
export const ToolCallPart = Schema.Struct({
  type: Schema.Literal("tool-call"),
  toolCallId: Schema.String,
  toolName: Schema.String,
  input: Json.SafeUnknown,
  providerExecuted: optional(Schema.Boolean),
  ...providerOptions
})

/** @since 0.1.0 @category models */
export type ToolCallPart = typeof ToolCallPart.Type

/** What the model is told about the outcome of a call. @since 0.1.0 @category schemas */
export const ToolResultOutput = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text", "error-text"), value: Json.Text }),
  Schema.Struct({ type: Schema.Literal("json", "error-json"), value: Json.JsonValue }),
  Schema.Struct({ type: Schema.Literal("content"), value: Schema.Array(Json.SafeRecord) })
)

/** @since 0.1.0 @category models */
export type ToolResultOutput = typeof ToolResultOutput.Type

/** The outcome of one call. @since 0.1.0 @category schemas */
export const ToolResultPart = Schema.Struct({
  type: Schema.Literal("tool-result"),
  toolCallId: Schema.String,
  toolName: Schema.String,
  output: ToolResultOutput,
  ...providerOptions
})

/** @since 0.1.0 @category models */
export type ToolResultPart = typeof ToolResultPart.Type

/** What the model is told before the conversation: its instructions. @since 0.1.0 @category schemas */
export const SystemMessage = Schema.Struct({
  role: Schema.Literal("system"),
  content: Json.Text,
  ...providerOptions
})

/** @since 0.1.0 @category models */
export type SystemMessage = typeof SystemMessage.Type

/** What the user says: texts and files. @since 0.1.0 @category schemas */
export const UserMessage = Schema.Struct({
  role: Schema.Literal("user"),
  content: Schema.Array(Schema.Union(TextPart, FilePart)),
  ...providerOptions
})

/** @since 0.1.0 @category models */
export type UserMessage = typeof UserMessage.Type

/** Parts stand in the order in which the model began them. @since 0.1.0 @category schemas */
export const AssistantMessage = Schema.Struct({
  role: Schema.Literal("assistant"),
  content: Schema.Array(Schema.Union(TextPart, ReasoningPart, FilePart, ToolCallPart, ToolResultPart)),
  ...providerOptions
})

/** @since 0.1.0 @category models */
export type AssistantMessage = typeof AssistantMessage.Type

/** Outcomes of the calls of the assistant message before it, in call order. @since 0.1.0 @category schemas */
export const ToolMessage = Schema.Struct({
  role: Schema.Literal("tool"),
  content: Schema.Array(ToolResultPart),
  ...providerOptions
})

/** @since 0.1.0 @category models */
export type ToolMessage = typeof ToolMessage.Type

/** One message of a conversation. @since 0.1.0 @category schemas */
export const Message = Schema.Union(SystemMessage, UserMessage, AssistantMessage, ToolMessage).annotations({
  identifier: "Message"
})

/** @since 0.1.0 @category models */
export type Message = typeof Message.Type

/**
 * A message as user interfaces hold it (the AI SDK's `UIMessage`): text, reasoning and tool calls with their outcome as
 * parts of one message.
 *
 * @since 0.1.0
 * @category schemas
 */
export const UIMessage = Schema.Struct({
  id: Schema.String,
  role: Schema.Literal("system", "user", "assistant"),
  parts: Schema.Array(Json.SafeRecord),
  metadata: optional(Json.SafeUnknown)
}).annotations({ identifier: "UIMessage" })

/** @since 0.1.0 @category models */
export type UIMessage = typeof UIMessage.Type

/** A user message of one text. @since 0.1.0 @category constructors */
export const user = (text: string): UserMessage => ({ role: "user", content: [{ type: "text", text }] })

/** A system message. @since 0.1.0 @category constructors */
export const system = (text: string): SystemMessage => ({ role: "system", content: text })

/** Model messages of the AI SDK, of every specification from its version 4 on, read into our messages. */
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { FileData, filePart, mediaTypeOf, named } from "./conversationFile.js"
import { loose, options, parser, Text, textPart, withOptions } from "./conversationShape.js"
import type { InvalidMessage } from "./Errors.js"
import * as Json from "./Json.js"
import type * as Message from "./Message.js"

const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Text, ...options })

const ReasoningPart = Schema.Struct({ type: Schema.Literal("reasoning"), text: Text, ...options })

const FilePart = Schema.Struct({ type: Schema.Literal("file"), data: FileData, ...named, ...options }).pipe(
  Schema.filter(part =>
    mediaTypeOf(part, part.data) === undefined ? { path: ["mediaType"], message: "is missing" } : undefined
  )
)

const ImagePart = Schema.Struct({ type: Schema.Literal("image"), image: FileData, ...named, ...options })

const ToolCallPart = Schema.Struct({
  type: Schema.Literal("tool-call"),
  toolCallId: Text,
  toolName: Text,
  input: Schema.optional(Schema.Unknown),
  /** The older word for `input`. */
  args: Schema.optional(Schema.Unknown),
  providerExecuted: loose(Schema.Boolean),
  ...options
})

const TaggedOutput = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text", "error-text"), value: Text }),
  Schema.Struct({ type: Schema.Literal("json", "error-json"), value: Schema.Unknown }),
  Schema.Struct({
    type: Schema.Literal("content"),
    value: Schema.Array(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
  }),
  Schema.Struct({ type: Schema.Literal("execution-denied"), reason: loose(Text) })
)

const ToolResultPart = Schema.Struct({
  type: Schema.Literal("tool-result"),
  toolCallId: Text,
  toolName: Schema.optional(Schema.Unknown),
  output: Schema.optional(TaggedOutput),
  /** The older way: the bare result, and whether it is an error. */
  result: Schema.optional(Schema.Unknown),
  isError: loose(Schema.Boolean),
  ...options
}).pipe(
  Schema.filter(part =>
    part.output === undefined && part.result === undefined
      ? { path: ["output"], message: "is missing" }
      : undefined
  )
)

/** Parts that a prompt cannot hold, or that say nothing to a model. */
const SkippedPart = Schema.Struct({
  type: Schema.Literal(
    "tool-approval-request",
    "tool-approval-response",
    "reasoning-file",
    "redacted-reasoning",
    "custom"
  )
})

const ModelMessage = Schema.Union(
  Schema.Struct({ role: Schema.Literal("system"), content: Text, ...options }),
  Schema.Struct({
    role: Schema.Literal("user"),
    content: Schema.Union(Text, Schema.Array(Schema.Union(TextPart, FilePart, ImagePart))),
    ...options
  }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    content: Schema.Union(
      Text,
      Schema.Array(Schema.Union(TextPart, ReasoningPart, FilePart, ToolCallPart, ToolResultPart, SkippedPart))
    ),
    ...options
  }),
  Schema.Struct({
    role: Schema.Literal("tool"),
    content: Schema.Array(Schema.Union(ToolResultPart, SkippedPart)),
    ...options
  })
)

type ModelMessage = typeof ModelMessage.Type

/** A bare result as a model is told it: text as text, everything else as JSON. */
export const bareOutput = (result: unknown, isError = false): Message.ToolResultOutput =>
  typeof result === "string"
    ? { type: isError ? "error-text" : "text", value: Json.wellFormed(result) }
    : { type: isError ? "error-json" : "json", value: Json.toJson(result) }

/** What a model is told of a call that somebody refused. */
export const deniedOutput = (reason: string | undefined): Message.ToolResultOutput => ({
  type: "error-text",
  value: reason || "The execution of this tool was denied."
})

const jsonRecord = (record: Readonly<Record<string, unknown>>): { readonly [key: string]: unknown } => {
  const made = Json.toJson(record)
  return Predicate.isRecord(made) ? made : {}
}

const taggedOutput = (output: typeof TaggedOutput.Type): Message.ToolResultOutput => {
  switch (output.type) {
    case "execution-denied":
      return deniedOutput(output.reason)
    case "json":
    case "error-json":
      return { type: output.type, value: Json.toJson(output.value) }
    case "content":
      return { type: output.type, value: output.value.map(jsonRecord) }
    default:
      return output
  }
}

const fileOf = (part: typeof FilePart.Type): Message.FilePart =>
  filePart(part.data.data, mediaTypeOf(part, part.data) ?? "", part.filename, part.providerOptions)

const imageOf = (part: typeof ImagePart.Type): Message.FilePart =>
  filePart(part.image.data, mediaTypeOf(part, part.image) ?? "image/*", part.filename, part.providerOptions)

const callOf = (part: typeof ToolCallPart.Type): Message.ToolCallPart => ({
  type: "tool-call",
  toolCallId: part.toolCallId,
  toolName: part.toolName,
  input: Json.toJson(part.input ?? part.args ?? {}),
  ...(part.providerExecuted !== undefined && { providerExecuted: part.providerExecuted }),
  ...withOptions(part.providerOptions)
})

const resultOf = (part: typeof ToolResultPart.Type): Message.ToolResultPart => ({
  type: "tool-result",
  toolCallId: part.toolCallId,
  // The call knows its tool better: its name is taken when call and result are paired.
  toolName: typeof part.toolName === "string" ? Json.wellFormed(part.toolName) : "",
  output: part.output === undefined ? bareOutput(part.result, part.isError) : taggedOutput(part.output),
  ...withOptions(part.providerOptions)
})

const userContent = (content: ContentOf<"user">): Message.UserMessage["content"] =>
  typeof content === "string"
    ? textPart("text", content, undefined)
    : content.flatMap<Message.TextPart | Message.FilePart>(part => {
        switch (part.type) {
          case "text":
            return textPart("text", part.text, part.providerOptions)
          case "file":
            return [fileOf(part)]
          default:
            return [imageOf(part)]
        }
      })

const assistantContent = (content: ContentOf<"assistant">): Message.AssistantMessage["content"] =>
  typeof content === "string"
    ? textPart("text", content, undefined)
    : content.flatMap<Message.AssistantMessage["content"][number]>(part => {
        switch (part.type) {
          case "text":
            return textPart("text", part.text, part.providerOptions)
          case "reasoning":
            return textPart("reasoning", part.text, part.providerOptions)
          case "file":
            return [fileOf(part)]
          case "tool-call":
            return [callOf(part)]
          case "tool-result":
            return [resultOf(part)]
          default:
            return []
        }
      })

type ContentOf<Role> = Extract<ModelMessage, { readonly role: Role }>["content"]

const convert = (message: ModelMessage): Message.Message => {
  const options = withOptions(message.providerOptions)
  switch (message.role) {
    case "system":
      return { role: "system", content: message.content, ...options }
    case "user":
      return { role: "user", content: userContent(message.content), ...options }
    case "assistant":
      return { role: "assistant", content: assistantContent(message.content), ...options }
    case "tool":
      return {
        role: "tool",
        content: message.content.flatMap(part => (part.type === "tool-result" ? [resultOf(part)] : [])),
        ...options
      }
  }
}

const parse = parser(ModelMessage)

/** One model message; `at` is where it stands in the input. */
export const fromModelMessage = (
  value: unknown,
  at: ReadonlyArray<number>
): Either.Either<Message.Message, InvalidMessage> => Either.map(parse(value, at), convert)

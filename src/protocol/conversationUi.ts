/** UI messages of the AI SDK, read into our messages and made of them. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { FileData, filePart, mediaTypeOf } from "./conversationFile.js"
import { bareOutput, deniedOutput } from "./conversationModel.js"
import { ofToday } from "./conversationOlder.js"
import { loose, Options, parser, Text, textPart, withOptions } from "./conversationShape.js"
import type { InvalidMessage } from "./Errors.js"
import * as Json from "./Json.js"
import type * as Message from "./Message.js"

const metadata = { providerMetadata: loose(Options) }

const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Text, ...metadata })

const ReasoningPart = Schema.Struct({ type: Schema.Literal("reasoning"), text: Text, ...metadata })

const FilePart = Schema.Struct({
  type: Schema.Literal("file"),
  url: FileData,
  mediaType: loose(Text),
  filename: loose(Text),
  ...metadata
}).pipe(
  Schema.filter(part =>
    mediaTypeOf(part, part.url) === undefined ? { path: ["mediaType"], message: "is missing" } : undefined
  )
)

const tool = {
  toolCallId: Text,
  state: Schema.Literal(
    "input-streaming",
    "input-available",
    "approval-requested",
    "approval-responded",
    "output-available",
    "output-error",
    "output-denied"
  ),
  input: Schema.optional(Schema.Unknown),
  rawInput: Schema.optional(Schema.Unknown),
  output: Schema.optional(Schema.Unknown),
  errorText: loose(Text),
  preliminary: loose(Schema.Boolean),
  approval: loose(Schema.Struct({ reason: loose(Text) })),
  providerExecuted: loose(Schema.Boolean),
  ...metadata,
  callProviderMetadata: loose(Options),
  resultProviderMetadata: loose(Options)
}

const DynamicToolPart = Schema.Struct({ type: Schema.Literal("dynamic-tool"), toolName: Text, ...tool })

const ToolPart = Schema.Struct({ type: Schema.TemplateLiteral("tool-", Schema.String), ...tool })

/** Parts for the eye only. */
const SkippedPart = Schema.Struct({
  type: Schema.Union(
    Schema.Literal("reasoning-file", "custom"),
    Schema.TemplateLiteral("source-", Schema.String),
    Schema.TemplateLiteral("data-", Schema.String)
  )
})

const StepStart = Schema.Struct({ type: Schema.Literal("step-start") })

const Part = Schema.Union(
  TextPart,
  ReasoningPart,
  FilePart,
  DynamicToolPart,
  StepStart,
  ToolPart,
  SkippedPart
)

type Part = typeof Part.Type

type ToolPart = typeof ToolPart.Type | typeof DynamicToolPart.Type

const UiMessage = Schema.Struct({
  role: Schema.Literal("system", "user", "assistant"),
  parts: Schema.Array(Part)
})

const isTool = (part: Part): part is ToolPart => "toolCallId" in part

const isText = (part: Part): part is typeof TextPart.Type => part.type === "text"

const isReasoning = (part: Part): part is typeof ReasoningPart.Type => part.type === "reasoning"

const isFile = (part: Part): part is typeof FilePart.Type => part.type === "file"

const textOf = (part: typeof TextPart.Type) => textPart("text", part.text, part.providerMetadata)

const fileOf = (part: typeof FilePart.Type): Message.FilePart =>
  filePart(part.url.data, mediaTypeOf(part, part.url) ?? "", part.filename, part.providerMetadata)

const userContent = (parts: ReadonlyArray<Part>): Message.UserMessage["content"] =>
  parts.flatMap<Message.TextPart | Message.FilePart>(part =>
    isText(part) ? textOf(part) : isFile(part) ? [fileOf(part)] : []
  )

const outputOf = (part: ToolPart): Message.ToolResultOutput | undefined => {
  switch (part.state) {
    case "output-available":
      // A preliminary output is of a tool that was cut off before it was done.
      return part.preliminary === true ? undefined : bareOutput(part.output)
    case "output-error":
      return { type: "error-text", value: part.errorText || "The tool failed." }
    case "output-denied":
      return deniedOutput(part.approval?.reason)
    default:
      return undefined
  }
}

const callOf = (part: ToolPart): Message.ToolCallPart => ({
  type: "tool-call",
  toolCallId: part.toolCallId,
  toolName: part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length),
  input: Json.toJson(part.input ?? part.rawInput ?? {}),
  ...(part.providerExecuted !== undefined && { providerExecuted: part.providerExecuted }),
  ...withOptions(part.callProviderMetadata ?? part.providerMetadata)
})

const resultOf = (part: ToolPart, output: Message.ToolResultOutput): Message.ToolResultPart => ({
  type: "tool-result",
  toolCallId: part.toolCallId,
  toolName: "",
  output,
  ...withOptions(part.resultProviderMetadata)
})

/** One step: what the model said and called, then what its calls came to. */
const step = (parts: ReadonlyArray<Part>): ReadonlyArray<Message.Message> => {
  const content: Array<Message.AssistantMessage["content"][number]> = []
  const results: Array<Message.ToolResultPart> = []
  for (const part of parts) {
    if (isText(part)) content.push(...textOf(part))
    else if (isReasoning(part)) content.push(...textPart("reasoning", part.text, part.providerMetadata))
    else if (isFile(part)) content.push(fileOf(part))
    else if (isTool(part)) {
      content.push(callOf(part))
      const output = outputOf(part)
      if (output !== undefined) {
        ;(part.providerExecuted === true ? content : results).push(resultOf(part, output))
      }
    }
  }
  return [
    { role: "assistant", content },
    { role: "tool", content: results }
  ]
}

const steps = (parts: ReadonlyArray<Part>): ReadonlyArray<ReadonlyArray<Part>> => {
  const groups: Array<Array<Part>> = [[]]
  for (const part of parts) {
    if (part.type === "step-start") groups.push([])
    else groups.at(-1)?.push(part)
  }
  return groups
}

const convert = ({ role, parts }: typeof UiMessage.Type): ReadonlyArray<Message.Message> => {
  switch (role) {
    case "system":
      return [{ role, content: parts.map(part => (isText(part) ? part.text : "")).join("") }]
    case "user":
      return [{ role, content: userContent(parts) }]
    case "assistant":
      return steps(parts).flatMap(step)
  }
}

const parse = parser(UiMessage)

/** One UI message; `at` is where it stands in the input. */
export const fromUiMessage = (
  value: unknown,
  at: ReadonlyArray<number>
): Either.Either<ReadonlyArray<Message.Message>, InvalidMessage> =>
  Either.map(parse(ofToday(value), at), convert)

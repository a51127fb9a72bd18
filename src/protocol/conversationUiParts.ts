/** Our messages, made into the parts of a UI message of the AI SDK. Needs no schemas. */
import { outcomes } from "./conversationPairs.js"
import type * as Message from "./Message.js"
import * as Json from "./safeJson.js"

const withMetadata = <Key extends string>(key: Key, options: Json.ProviderMetadata | undefined) =>
  options === undefined ? {} : { [key]: options }

type UiPart = Message.UIMessage["parts"][number]

const outcomeFields = (output: Message.ToolResultOutput | undefined): UiPart => {
  if (output === undefined) return { state: "input-available" }
  switch (output.type) {
    case "error-text":
      return { state: "output-error", errorText: output.value }
    case "error-json":
      return { state: "output-error", errorText: Json.stringify(output.value) }
    default:
      return { state: "output-available", output: output.value }
  }
}

/** A call that waits for somebody has no output yet, whatever the model is told of it. */
const told = (result: Message.ToolResultPart | undefined): Message.ToolResultPart | undefined =>
  result?.providerOptions?.["eddy"]?.["waitsFor"] === undefined ? result : undefined

const uiTool = (call: Message.ToolCallPart, outcome: Message.ToolResultPart | undefined): UiPart =>
  uiCall(call, told(outcome))

const uiCall = (call: Message.ToolCallPart, result: Message.ToolResultPart | undefined): UiPart => ({
  type: `tool-${call.toolName}`,
  toolCallId: call.toolCallId,
  ...outcomeFields(result?.output),
  input: call.input,
  ...(call.providerExecuted !== undefined && { providerExecuted: call.providerExecuted }),
  ...withMetadata("callProviderMetadata", call.providerOptions),
  ...withMetadata("resultProviderMetadata", result?.providerOptions)
})

const uiFile = ({ data, mediaType, filename, providerOptions }: Message.FilePart): UiPart => ({
  type: "file",
  mediaType,
  url: data instanceof URL ? data.href : `data:${mediaType};base64,${data}`,
  ...(filename !== undefined && { filename }),
  ...withMetadata("providerMetadata", providerOptions)
})

/** The parts of the UI message that an assistant's messages make up; other messages are passed over. */
export const toUiParts = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<UiPart> => {
  const results = outcomes(messages)
  const uiPart = (part: Message.AssistantMessage["content"][number]): ReadonlyArray<UiPart> => {
    switch (part.type) {
      case "text":
      case "reasoning":
        return [
          {
            type: part.type,
            text: part.text,
            state: "done",
            ...withMetadata("providerMetadata", part.providerOptions)
          }
        ]
      case "file":
        return [uiFile(part)]
      case "tool-call":
        return [uiTool(part, results.get(part))]
      case "tool-result":
        return []
    }
  }
  return messages.flatMap(message =>
    message.role === "assistant" ? [{ type: "step-start" }, ...message.content.flatMap(uiPart)] : []
  )
}

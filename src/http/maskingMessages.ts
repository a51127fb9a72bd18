/** Messages as a client may see them: without what tools said when they failed. Pure. */
import type { Message, ToolResultPart, UIMessage } from "../protocol/Message.js"
import { isRecord } from "../protocol/safeJson.js"

const toolFailed = "The tool failed."

/** What a call that was declined says is what somebody decided: no tool has said it. */
const isDenied = (metadata: unknown): boolean =>
  isRecord(metadata) && isRecord(metadata["eddy"]) && metadata["eddy"]["denied"] === true

const isFailed = ({ output, providerOptions }: ToolResultPart): boolean =>
  (output.type === "error-text" || output.type === "error-json") && !isDenied(providerOptions)

const maskPart = <Part extends { readonly type: string }>(
  part: Part | ToolResultPart
): Part | ToolResultPart =>
  "output" in part && isFailed(part) ? { ...part, output: { type: "error-text", value: toolFailed } } : part

/** One message; the same one when there is nothing to hide. */
export const maskMessage = (message: Message): Message => {
  if (message.role === "assistant")
    return { ...message, content: message.content.map(part => maskPart(part)) }
  return message.role === "tool" && message.content.some(isFailed)
    ? {
        ...message,
        content: message.content.map(part => (isFailed(part) ? { ...part, output: failedOutput } : part))
      }
    : message
}

const failedOutput: ToolResultPart["output"] = { type: "error-text", value: toolFailed }

/** A message as user interfaces hold it. */
export const maskUiMessage = (message: UIMessage): UIMessage => ({
  ...message,
  parts: message.parts.map(part =>
    "errorText" in part && !isDenied(part["resultProviderMetadata"])
      ? { ...part, errorText: toolFailed }
      : part
  )
})

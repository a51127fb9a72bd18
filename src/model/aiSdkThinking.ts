/**
 * Anthropic's rule of thinking: while it is on (`thinking: { type: "enabled" }`), an answer with calls whose results are sent
 * must start with its signed thinking block. An answer that has lost it (a processor changed its reasoning, another model gave
 * it) is sent as plain text, its calls and their results included: that is the shape that Anthropic takes. Pure.
 */
import type { AssistantMessage, Message, ToolMessage, UserMessage } from "../protocol/Message.js"
import { isRecord, type ProviderMetadata, stringify } from "../protocol/safeJson.js"

type AssistantPart = AssistantMessage["content"][number]

type UserPart = UserMessage["content"][number]

/** Whether a request has Anthropic's thinking on, in the mode that has this rule: `adaptive` has not. */
export const isThinking = (provider: string, options: ProviderMetadata | undefined): boolean => {
  const thinking = options?.["anthropic"]?.["thinking"]
  return /anthropic/i.test(provider) && isRecord(thinking) && thinking["type"] === "enabled"
}

const isSigned = ({ providerOptions }: AssistantPart): boolean => {
  const anthropic = providerOptions?.["anthropic"]
  return anthropic?.["signature"] !== undefined || anthropic?.["redactedData"] !== undefined
}

/** Whether an answer calls tools, and what the provider package sends of it does not start with signed thinking. */
const lacksThinking = ({ content }: AssistantMessage): boolean => {
  // Reasoning without a signature is not sent.
  const sent = content.filter(part => part.type !== "reasoning" || isSigned(part))
  return (
    sent[0]?.type !== "reasoning" &&
    sent.some(part => part.type === "tool-call" && part.providerExecuted !== true)
  )
}

const plainPart = (part: AssistantPart): ReadonlyArray<AssistantPart> => {
  if (part.type === "reasoning") return []
  if (part.type !== "tool-call" || part.providerExecuted === true) return [part]
  return [{ type: "text", text: `I called the tool "${part.toolName}" with ${stringify(part.input)}.` }]
}

const plainResult = ({ output, toolName }: ToolMessage["content"][number]): ReadonlyArray<UserPart> => {
  const text = (value: string): UserPart => ({
    type: "text",
    text: `Result of the tool "${toolName}": ${value}`
  })
  if (output.type === "text" || output.type === "error-text") return [text(output.value)]
  if (output.type !== "content") return [text(stringify(output.value))]
  return output.value.map((item): UserPart => {
    const { data, mediaType, text: value } = item
    if (item["type"] === "text" && typeof value === "string") return text(value)
    return typeof data === "string" && typeof mediaType === "string"
      ? { type: "file", data, mediaType }
      : text(stringify(item))
  })
}

/** The messages of a request with thinking on: what lacks its thinking in the last answers and their results is plain text. */
export const withPlainAnswers = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const end = messages.findLastIndex(({ role }) => role === "assistant")
  let start = end
  while (start > 0 && ["assistant", "tool"].includes(messages[start - 1]?.role ?? "")) start--
  let isPlain = false
  return messages.map((message, index): Message => {
    if (index < start || end < 0) return message
    if (message.role === "assistant") {
      isPlain = lacksThinking(message)
      return isPlain ? { role: "assistant", content: message.content.flatMap(plainPart) } : message
    }
    return message.role === "tool" && isPlain
      ? { role: "user", content: message.content.flatMap(plainResult) }
      : message
  })
}

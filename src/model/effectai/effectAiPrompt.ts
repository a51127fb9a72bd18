/** Messages as `@effect/ai` wants them: made once per message, as prompts grow by appending. */
import * as Prompt from "@effect/ai/Prompt"
import type { FilePart, Message, ToolResultPart } from "../../protocol/Message.js"
import { fromBase64, type ProviderMetadata } from "../../protocol/safeJson.js"

type AssistantPart = Extract<Message, { readonly role: "assistant" }>["content"][number]

type UserPart = Extract<Message, { readonly role: "user" }>["content"][number]

interface WithOptions {
  readonly providerOptions?: ProviderMetadata
}

const optionsOf = ({ providerOptions }: WithOptions): { readonly options?: Prompt.ProviderOptions } =>
  providerOptions === undefined ? {} : { options: providerOptions }

/** Bytes, as some providers take strings for ids of files. What is no base64 is such an id. */
const dataOf = (data: FilePart["data"]): Prompt.FilePart["data"] => {
  if (typeof data !== "string") return data
  try {
    return fromBase64(data)
  } catch {
    return data
  }
}

const file = (part: FilePart): Prompt.FilePart =>
  Prompt.makePart("file", {
    data: dataOf(part.data),
    mediaType: part.mediaType,
    ...(part.filename === undefined ? {} : { fileName: part.filename }),
    ...optionsOf(part)
  })

const toolResult = (part: ToolResultPart, providerExecuted: boolean): Prompt.ToolResultPart =>
  Prompt.makePart("tool-result", {
    id: part.toolCallId,
    name: part.toolName,
    isFailure: part.output.type === "error-text" || part.output.type === "error-json",
    result: part.output.value,
    providerExecuted,
    ...optionsOf(part)
  })

const userPart = (part: UserPart): Prompt.UserMessagePart =>
  part.type === "file" ? file(part) : Prompt.makePart("text", { text: part.text, ...optionsOf(part) })

/** A result among the model's own words is one of a call that the provider executed. */
const assistantPart = (part: AssistantPart): Prompt.AssistantMessagePart => {
  switch (part.type) {
    case "text":
    case "reasoning":
      return Prompt.makePart(part.type, { text: part.text, ...optionsOf(part) })
    case "file":
      return file(part)
    case "tool-call":
      return Prompt.makePart("tool-call", {
        id: part.toolCallId,
        name: part.toolName,
        params: part.input,
        providerExecuted: part.providerExecuted === true,
        ...optionsOf(part)
      })
    case "tool-result":
      return toolResult(part, true)
  }
}

const convert = (message: Message): Prompt.Message => {
  const options = optionsOf(message)
  switch (message.role) {
    case "system":
      return Prompt.makeMessage("system", { content: message.content, ...options })
    case "user":
      return Prompt.makeMessage("user", { content: message.content.map(userPart), ...options })
    case "assistant":
      return Prompt.makeMessage("assistant", { content: message.content.map(assistantPart), ...options })
    case "tool": {
      const content = message.content.map(part => toolResult(part, false))
      return Prompt.makeMessage("tool", { content, ...options })
    }
  }
}

/**
 * A function from messages to a prompt. It remembers what it made of a message, by identity, for as long as the message
 * lives: messages are never changed in place.
 */
export const makePrompt = (): ((messages: ReadonlyArray<Message>) => Prompt.Prompt) => {
  const made = new WeakMap<Message, Prompt.Message>()
  const remember = (message: Message): Prompt.Message => {
    const known = made.get(message)
    if (known !== undefined) return known
    const converted = convert(message)
    made.set(message, converted)
    return converted
  }
  return messages => Prompt.fromMessages(messages.map(remember))
}

/** Contents as attributes: in the shape of the conventions, safe JSON, and no longer than allowed. Pure. */
import type { Message } from "../../protocol/Message.js"
import { type JsonValue, toJson, wellFormed } from "../../protocol/safeJson.js"

/** JSON of something, and whether it is all of it. */
export interface Content {
  readonly text: string
  readonly isTruncated: boolean
}

type AnyPart = Exclude<Message["content"], string>[number]

/** A part of a message, by the names of the conventions. Files are named, not shown. */
const partOf = (part: AnyPart): unknown => {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, content: part.text }
    case "tool-call":
      return { type: "tool_call", id: part.toolCallId, name: part.toolName, arguments: part.input }
    case "tool-result":
      return { type: "tool_call_response", id: part.toolCallId, response: part.output.value }
    case "file": {
      const [modality = ""] = part.mediaType.split("/", 1)
      return part.data instanceof URL
        ? // What follows the path may be a signature that opens the file.
          {
            type: "uri",
            modality,
            mime_type: part.mediaType,
            uri: `${part.data.origin}${part.data.pathname}`
          }
        : { type: "file", modality, mime_type: part.mediaType, characters: part.data.length }
    }
  }
}

const messageOf = (message: Message, finish: string | undefined): unknown => {
  const parts =
    typeof message.content === "string"
      ? [{ type: "text", content: message.content }]
      : message.content.map(partOf)
  return { role: message.role, parts, ...(finish === undefined ? {} : { finish_reason: finish }) }
}

/** Every text in a value, cut to this length. */
const clipped = (value: JsonValue, length: number): JsonValue => {
  if (typeof value === "string") {
    return value.length <= length ? value : wellFormed(`${value.slice(0, length)}…`)
  }
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(item => clipped(item, length))
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, clipped(item, length)]))
}

/** The shortest that texts are cut to before the rest is left out. */
const shortest = 32

/** JSON of any value: texts in it are cut until it fits; one that never does is told as the beginning of its JSON, in a text. */
export const contentOf = (value: unknown, limit: number): Content => {
  const safe = toJson(value)
  const whole = JSON.stringify(safe)
  if (whole.length <= limit) return { text: whole, isTruncated: false }
  for (let length = Math.floor(limit / 2); length >= shortest; length = Math.floor(length / 4)) {
    const text = JSON.stringify(clipped(safe, length))
    if (text.length <= limit) return { text, isTruncated: true }
  }
  // Written again as a text, a character is six at most.
  let text = ""
  for (let length = limit; ; length = Math.floor(length / 2)) {
    text = JSON.stringify(wellFormed(`${whole.slice(0, length)}…`))
    if (text.length <= limit || length === 0) return { text, isTruncated: true }
  }
}

/** Messages, the newest first to be told when there is no room for all. */
export const messagesContent = (
  messages: ReadonlyArray<Message>,
  limit: number,
  finish?: string
): Content => {
  const told: Array<string> = []
  let room = limit - 2
  let isTruncated = false
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]
    if (message === undefined) continue
    const mayTake = told.length === 0 ? room : Math.max(room - 1, 0)
    const content = contentOf(messageOf(message, finish), told.length === 0 ? room : limit - 2)
    if (content.text.length > mayTake) {
      isTruncated = true
      break
    }
    told.push(content.text)
    room = mayTake - content.text.length
    isTruncated ||= content.isTruncated
  }
  return { text: `[${told.reverse().join(",")}]`, isTruncated }
}

/** Of a prompt the instructions, which come first, and the conversation. */
export const promptContent = (
  messages: ReadonlyArray<Message>,
  limit: number
): { readonly instructions: Content | undefined; readonly input: Content } => {
  const count = messages.findIndex(({ role }) => role !== "system")
  const first = count < 0 ? messages : messages.slice(0, count)
  const parts = first.map(({ content }) => ({ type: "text", content }))
  return {
    instructions: parts.length === 0 ? undefined : contentOf(parts, limit),
    input: messagesContent(messages.slice(first.length), limit)
  }
}

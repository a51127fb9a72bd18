/**
 * Messages as each specification wants them. Ours are shaped like V3, so most are handed over as they are; what has to
 * change is made once per message. Prompts grow by appending: a step then costs one look-up per message that it repeats.
 */

import type { FilePart, Message, ToolResultPart } from "../protocol/Message.js"
import * as Json from "../protocol/safeJson.js"
import { isThinking, withPlainAnswers } from "./aiSdkThinking.js"
import type { SpecificationVersion } from "./aiSdkTypes.js"

type Part = Exclude<Message["content"], string>[number]

/** One item of a tool result of type `content`. */
type Item = Readonly<Record<string, unknown>>

/** Bytes or an address, whatever the item calls itself. */
type ItemFile =
  | { readonly kind: "data"; readonly data: unknown; readonly mediaType: string }
  | { readonly kind: "url"; readonly url: string; readonly mediaType: string }
  | { readonly kind: "id"; readonly id: string | object; readonly mediaType: string }

const unknownMediaType = "application/octet-stream"

const itemFile = (item: Item): ItemFile | undefined => {
  const mediaTypeOr = (otherwise: string) =>
    typeof item["mediaType"] === "string" ? item["mediaType"] : otherwise
  switch (item["type"]) {
    case "media":
    case "file-data":
      return { kind: "data", data: item["data"], mediaType: mediaTypeOr(unknownMediaType) }
    case "image-data":
      return { kind: "data", data: item["data"], mediaType: mediaTypeOr("image/png") }
    case "file-url":
    case "image-url": {
      const otherwise = item["type"] === "image-url" ? "image/*" : unknownMediaType
      return typeof item["url"] === "string"
        ? { kind: "url", url: item["url"], mediaType: mediaTypeOr(otherwise) }
        : undefined
    }
    case "file-id":
    case "image-file-id": {
      const id = item["fileId"]
      const mediaType = item["type"] === "image-file-id" ? "image/*" : unknownMediaType
      return typeof id === "string" || (typeof id === "object" && id !== null)
        ? { kind: "id", id, mediaType }
        : undefined
    }
    default:
      return undefined
  }
}

/** V2 knows text and base64 media; an address, and whatever else there is, it can only be told as text. */
const itemV2 = (item: Item): Item => {
  if (item["type"] === "text" || item["type"] === "media") return item
  const file = itemFile(item)
  if (file?.kind === "data") return { type: "media", data: file.data, mediaType: file.mediaType }
  return { type: "text", text: file?.kind === "url" ? file.url : Json.stringify(item) }
}

/** V4 has one `file` item whose data says what it is. A bare id is the id that this provider gave. */
const itemV4 = (item: Item, providerName: string): Item => {
  const file = itemFile(item)
  if (file === undefined || (file.kind === "url" && !URL.canParse(file.url))) return item
  const { type: _type, data: _data, url: _url, fileId: _fileId, ...rest } = item
  const data =
    file.kind === "data"
      ? { type: "data", data: file.data }
      : file.kind === "url"
        ? { type: "url", url: new URL(file.url) }
        : {
            type: "reference",
            reference: typeof file.id === "string" ? { [providerName]: file.id } : file.id
          }
  return { ...rest, type: "file", data, mediaType: file.mediaType }
}

const fileV4 = (part: FilePart): object => ({
  ...part,
  data: part.data instanceof URL ? { type: "url", url: part.data } : { type: "data", data: part.data }
})

/** The same array when no element changes. */
const mapKeeping = <A extends object>(
  items: ReadonlyArray<A>,
  change: (item: A) => object
): ReadonlyArray<object> => {
  const made = items.map(change)
  return made.every((item, index) => item === items[index]) ? items : made
}

const resultPart = (part: ToolResultPart, change: (item: Item) => Item): object => {
  if (part.output.type !== "content") return part
  const value = mapKeeping(part.output.value, change)
  return value === part.output.value ? part : { ...part, output: { ...part.output, value } }
}

const partConversion = (version: "v2" | "v4", providerName: string): ((part: Part) => object) => {
  if (version === "v2") return part => (part.type === "tool-result" ? resultPart(part, itemV2) : part)
  const item = (item: Item) => itemV4(item, providerName)
  return part =>
    part.type === "file" ? fileV4(part) : part.type === "tool-result" ? resultPart(part, item) : part
}

/** Providers that take system messages in front of the conversation only, and no conversation that ends with the model's word. */
const isStrict = (provider: string): boolean => /anthropic|google|vertex|bedrock/i.test(provider)

/** What is told in the middle of a conversation, as those providers take it: from outside. */
const fromOutside = (message: Message): Message =>
  message.role === "system"
    ? {
        role: "user",
        content: [{ type: "text", text: `<system-message>\n${message.content}\n</system-message>` }]
      }
    : message

const inFrontOnly = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const first = messages.findIndex(({ role }) => role !== "system")
  if (first < 0 || !messages.some(({ role }, index) => index > first && role === "system")) return messages
  return messages.map((message, index) => (index > first ? fromOutside(message) : message))
}

/**
 * A function from messages to a fresh prompt array. It remembers what it made of a message, by identity, for as long as
 * the message lives: messages are never changed in place.
 */
export const makePrompt = (
  version: SpecificationVersion,
  provider: string
): ((messages: ReadonlyArray<Message>, providerOptions?: Json.ProviderMetadata) => Array<object>) => {
  const order = (messages: ReadonlyArray<Message>, options: Json.ProviderMetadata | undefined) => {
    const ordered = isStrict(provider) ? inFrontOnly(messages) : messages
    return isThinking(provider, options) ? withPlainAnswers(ordered) : ordered
  }
  if (version === "v3") return (messages, options) => [...order(messages, options)]
  // `openai.responses` is the provider `openai`, which is the key of its references.
  const convertPart = partConversion(version, provider.split(".", 1)[0] ?? provider)
  const made = new WeakMap<Message, object>()
  const convert = (message: Message): object => {
    if (typeof message.content === "string") return message
    const known = made.get(message)
    if (known !== undefined) return known
    const parts: ReadonlyArray<Part> = message.content
    const content = mapKeeping(parts, convertPart)
    const converted = content === parts ? message : { ...message, content }
    made.set(message, converted)
    return converted
  }
  return (messages, options) => order(messages, options).map(convert)
}

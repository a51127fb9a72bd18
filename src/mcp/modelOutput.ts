/** What the model is told of a result of a tool: data as JSON, text as text, the rest as parts that it can look at. */
import type { ToolResultOutput } from "../protocol/Message.js"
import { isRecord, type JsonValue, stringify, toJson, wellFormed } from "../protocol/safeJson.js"

type Part = { readonly [key: string]: unknown }

const text = (value: string): Part => ({ type: "text", text: wellFormed(value) })

const stringOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** Adapters tell images from other files by their type; see `aiSdkPrompt`. */
const media = (data: string, mediaType: string): Part => ({
  type: mediaType.startsWith("image/") ? "image-data" : "file-data",
  data,
  mediaType
})

const fileOf = (data: unknown, mediaType: unknown): Part | undefined => {
  const bytes = stringOf(data)
  return bytes === undefined ? undefined : media(bytes, stringOf(mediaType) ?? "application/octet-stream")
}

const resourceOf = (resource: unknown): Part | undefined => {
  if (!isRecord(resource)) return undefined
  const content = stringOf(resource["text"])
  return content === undefined ? fileOf(resource["blob"], resource["mimeType"]) : text(content)
}

const linkOf = (block: Part): Part | undefined => {
  const uri = stringOf(block["uri"])
  if (uri === undefined) return undefined
  const name = stringOf(block["title"]) ?? stringOf(block["name"])
  const description = stringOf(block["description"])
  return text([name === undefined ? uri : `${name}: ${uri}`, description ?? []].flat().join("\n"))
}

const known = (block: Part): Part | undefined => {
  switch (block["type"]) {
    case "text": {
      const content = stringOf(block["text"])
      return content === undefined ? undefined : text(content)
    }
    case "image":
    case "audio":
      return fileOf(block["data"], block["mimeType"])
    case "resource":
      return resourceOf(block["resource"])
    case "resource_link":
      return linkOf(block)
    default:
      return undefined
  }
}

/** A block of a kind that is not known here, or that lacks what it should have, is told as its JSON. */
const partOf = (block: unknown): Part =>
  (isRecord(block) ? known(block) : undefined) ?? text(stringify(block))

const isText = (part: Part): boolean => part["type"] === "text"

const joined = (parts: ReadonlyArray<Part>): string =>
  parts.flatMap(part => stringOf(part["text"]) ?? []).join("\n")

const errorOf = (result: Part, texts: ReadonlyArray<Part>): ToolResultOutput =>
  texts.length === 0
    ? { type: "error-json", value: toJson(result) }
    : { type: "error-text", value: joined(texts) }

/** Data beside images: the model is told both, and the data once. */
const mixed = (parts: ReadonlyArray<Part>, data: JsonValue | undefined): ToolResultOutput => {
  const files = parts.filter(part => !isText(part))
  const value = data === undefined ? parts : [text(JSON.stringify(data)), ...files]
  // Providers refuse texts that are empty.
  return { type: "content", value: value.filter(part => part["text"] !== "") }
}

/**
 * What the model is told of the result of `tools/call`. Any value has an answer; what is no result at all is told as its
 * JSON. Not told are annotations, `_meta`, and beside `structuredContent` the texts, which repeat it.
 */
export const modelOutputOf = (result: unknown): ToolResultOutput => {
  if (!isRecord(result)) return { type: "json", value: toJson(result) }
  const { content, isError, structuredContent } = result
  const parts = (Array.isArray(content) ? content : []).map(partOf)
  if (isError === true) return errorOf(result, parts.filter(isText))
  const data = structuredContent === undefined ? undefined : toJson(structuredContent)
  if (!parts.every(isText)) return mixed(parts, data)
  return data === undefined ? { type: "text", value: joined(parts) } : { type: "json", value: data }
}

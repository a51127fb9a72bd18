/** Files in the ways in which they are handed over, read into base64 text or a URL. */
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { loose, type Options, Text, withOptions } from "./conversationShape.js"
import * as Json from "./Json.js"
import type { FilePart } from "./Message.js"

interface FileContent {
  readonly data: string | URL
  /** What a data URL says of itself. */
  readonly mediaType?: string
}

const utf8 = (text: string): string => Json.toBase64(new TextEncoder().encode(text))

const fromDataUrl = (url: string): FileContent | undefined => {
  const comma = url.indexOf(",")
  if (comma === -1) return undefined
  const head = url.slice("data:".length, comma)
  const mediaType = head.split(";")[0] || "text/plain"
  const body = url.slice(comma + 1)
  try {
    const text = body.includes("%") ? decodeURIComponent(body) : body
    return { data: /;\s*base64$/i.test(head) ? text : utf8(text), mediaType }
  } catch {
    return undefined
  }
}

const fromText = (text: string): FileContent | undefined => {
  if (/^data:/i.test(text)) return fromDataUrl(text)
  // Without a colon it has no scheme: base64, or the opaque file id that some providers take in its place.
  if (!text.includes(":")) return { data: text }
  return URL.canParse(text) ? { data: new URL(text) } : undefined
}

const fromTagged = (file: object): FileContent | undefined => {
  if (!Predicate.hasProperty(file, "type")) return undefined
  if (file.type === "data" && Predicate.hasProperty(file, "data")) return fromBare(file.data)
  if (file.type === "url" && Predicate.hasProperty(file, "url")) return fromBare(file.url)
  if (file.type === "text" && Predicate.hasProperty(file, "text") && typeof file.text === "string") {
    return { data: utf8(file.text), mediaType: "text/plain" }
  }
  return undefined
}

const fromBare = (value: unknown): FileContent | undefined => {
  if (typeof value === "string") return fromText(value)
  if (value instanceof URL) return value.protocol === "data:" ? fromDataUrl(value.href) : { data: value }
  if (ArrayBuffer.isView(value)) {
    return { data: Json.toBase64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength)) }
  }
  return value instanceof ArrayBuffer ? { data: Json.toBase64(new Uint8Array(value)) } : undefined
}

const isFileContent = (value: unknown): value is FileContent => Predicate.hasProperty(value, "data")

/** Reads a file where it stands, so that one that cannot be read is refused with its place. */
export const FileData = Schema.transformOrFail(Schema.Unknown, Schema.declare(isFileContent), {
  strict: true,
  decode: (value, _, ast) => {
    const content = fromBare(value) ?? (Predicate.isRecord(value) ? fromTagged(value) : undefined)
    return content === undefined
      ? ParseResult.fail(new ParseResult.Type(ast, value))
      : ParseResult.succeed(content)
  },
  encode: ParseResult.succeed
})

/** What stands beside a file. `mimeType` is the older word. */
export const named = { mediaType: loose(Text), mimeType: loose(Text), filename: loose(Text) }

/** The media type that is known before the file's own default: told beside it, or by its data URL. */
export const mediaTypeOf = (
  file: { readonly mediaType?: string | undefined; readonly mimeType?: string | undefined },
  content: FileContent
): string | undefined => file.mediaType ?? file.mimeType ?? content.mediaType

export const filePart = (
  data: string | URL,
  mediaType: string,
  filename: string | undefined,
  options: Options | undefined
): FilePart => ({
  type: "file",
  data,
  mediaType,
  ...(filename !== undefined && { filename }),
  ...withOptions(options)
})

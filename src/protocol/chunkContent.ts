/** Chunks of what a model says: text, reasoning, sources, files, and the provider's own data. */
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { chunk, openRecord, optional, providerMetadata } from "./chunkShape.js"
import * as Json from "./Json.js"

const TextStart = chunk("text-start", { id: Schema.String, ...providerMetadata })

const TextDelta = chunk("text-delta", { id: Schema.String, text: Json.Text, ...providerMetadata })

const TextEnd = chunk("text-end", { id: Schema.String, ...providerMetadata })

const signature = { signature: optional(Schema.String) }

const ReasoningStart = chunk("reasoning-start", {
  id: Schema.String,
  ...signature,
  ...providerMetadata
})

const ReasoningDelta = chunk("reasoning-delta", {
  id: Schema.String,
  text: Json.Text,
  ...providerMetadata
})

const ReasoningEnd = chunk("reasoning-end", { id: Schema.String, ...signature, ...providerMetadata })

const ReasoningSignature = chunk("reasoning-signature", {
  id: Schema.String,
  signature: Schema.String,
  ...providerMetadata
})

const Source = chunk("source", {
  id: Schema.String,
  sourceType: Schema.Literal("url", "document"),
  title: Json.Text,
  mimeType: optional(Schema.String),
  filename: optional(Schema.String),
  url: optional(Schema.String),
  ...providerMetadata
})

const FilePayload = Schema.Struct({
  data: Schema.Union(Schema.String, Schema.Uint8ArrayFromSelf),
  base64: optional(Schema.String),
  mimeType: Schema.String,
  ...providerMetadata
})

/** `encoding` stands in the JSON form only, and only when `data` was bytes: base64 text alone would come back as text. */
const EncodedFilePayload = Schema.Struct({
  data: Schema.String,
  encoding: optional(Schema.Literal("base64")),
  base64: optional(Schema.String),
  mimeType: Schema.String,
  ...providerMetadata
})

const File = chunk(
  "file",
  Schema.transformOrFail(EncodedFilePayload, FilePayload, {
    strict: true,
    decode: ({ encoding, ...payload }, _, ast) =>
      encoding === undefined
        ? ParseResult.succeed(payload)
        : ParseResult.try({
            try: () => ({ ...payload, data: Json.fromBase64(payload.data) }),
            catch: () => new ParseResult.Type(ast, payload.data, "`data` is no base64 text")
          }),
    encode: payload =>
      ParseResult.succeed(
        typeof payload.data === "string"
          ? { ...payload, data: payload.data }
          : { ...payload, data: Json.toBase64(payload.data), encoding: "base64" as const }
      )
  })
)

const Raw = chunk("raw", openRecord({}))

const ResponseMetadata = chunk(
  "response-metadata",
  openRecord({ signature: optional(Schema.String), timestamp: optional(Schema.Date) })
)

export const ContentChunks = [
  TextStart,
  TextDelta,
  TextEnd,
  ReasoningStart,
  ReasoningDelta,
  ReasoningEnd,
  ReasoningSignature,
  Source,
  File,
  Raw,
  ResponseMetadata
] as const

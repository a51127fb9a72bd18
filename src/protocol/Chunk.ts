/**
 * A chunk is one element of a stream: a plain object with a literal `type`, the `runId` that caused it, `from`, and a
 * `payload` (`object` and `data-*` carry theirs at the top level).
 *
 * The types come from Effect Schemas, and so does the JSON form of each chunk: {@link encode} where bytes leave,
 * {@link decode} where they enter. In between, chunks are literals and nothing is validated.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Content from "./chunkContent.js"
import * as Lifecycle from "./chunkLifecycle.js"
import * as Shape from "./chunkShape.js"
import * as Tools from "./chunkTool.js"
import { InvalidChunk, UnknownChunkType } from "./Errors.js"

/** Who caused a chunk: an agent, the user (what tools write), the system or a workflow. @since 0.1.0 @category schemas */
export const ChunkFrom = Shape.ChunkFrom

/** @since 0.1.0 @category models */
export type ChunkFrom = Shape.ChunkFrom

const known = [
  ...Content.ContentChunks,
  ...Tools.ToolChunks,
  ...Tools.BackgroundTaskChunks,
  ...Lifecycle.LifecycleChunks
] as const

/** Every chunk: 41 literal types and `data-*`. @since 0.1.0 @category schemas */
export const Chunk = Schema.Union(...known, Tools.Data).annotations({ identifier: "Chunk" })

/** @since 0.1.0 @category models */
export type Chunk = typeof Chunk.Type

/** The JSON form of a chunk. @since 0.1.0 @category models */
export type Encoded = typeof Chunk.Encoded

/** The discriminator. @since 0.1.0 @category models */
export type ChunkType = Chunk["type"]

/** The chunk of one type: `Chunk.Of<"text-delta">`. @since 0.1.0 @category models */
export type Of<Type extends ChunkType> = Extract<Chunk, { readonly type: Type }>

/** Payload of the chunk of one type. @since 0.1.0 @category models */
export type PayloadOf<Type extends Exclude<ChunkType, "object" | `data-${string}`>> = Of<Type>["payload"]

/** A call that the model made. @since 0.1.0 @category models */
export type ToolCall = Of<"tool-call">

/** What a call came to. @since 0.1.0 @category models */
export type ToolResult = Of<"tool-result">

/** What a provider says about one response. @since 0.1.0 @category models */
export type ResponseInfo = Lifecycle.ResponseInfo

/** What was asked of a model. @since 0.1.0 @category models */
export type RequestInfo = Lifecycle.RequestInfo

/** What a provider warns of. @since 0.1.0 @category models */
export type Warning = Lifecycle.Warning

/** What a tool or a processor writes for the user interface. @since 0.1.0 @category models */
export type Data = typeof Tools.Data.Type

/** The literal types, without `data-*`, in the order of the union. @since 0.1.0 @category constants */
export const types: ReadonlyArray<Exclude<ChunkType, `data-${string}`>> = known.map(
  schema => schema.fields.type.literals[0]
)

const isKnown = (type: string): boolean => type.startsWith("data-") || types.some(known => known === type)

const decodeChunk = Schema.decodeUnknown(Chunk)

const encodeChunk = Schema.encode(Chunk)

/**
 * The JSON form of a chunk: dates as ISO strings, bytes as base64, errors as `{ name, message }`, everything else made
 * safe (see `Json`). Fails with `InvalidChunk` when a field has the wrong type.
 *
 * @since 0.1.0
 * @category conversions
 */
export const encode = (chunk: Chunk): Effect.Effect<Encoded, InvalidChunk> =>
  Effect.mapError(encodeChunk(chunk), invalid(chunk.type))

/**
 * Reads the JSON form of a chunk. Fails with `UnknownChunkType`, which names the type, so that a reader that must survive
 * the future can skip it; with `InvalidChunk`, which names the field, when the type is known and the rest is wrong.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decode = Effect.fnUntraced(function* (json: unknown) {
  const type = typeOf(json)
  if (!isKnown(type)) {
    const message =
      type === ""
        ? "A chunk needs a string field `type`."
        : `Unknown chunk type "${type}". Skip it, or read this stream with a newer version of eddy.`
    return yield* new UnknownChunkType({ type, message })
  }
  return yield* Effect.mapError(decodeChunk(json), invalid(type))
})

const typeOf = (value: unknown): string =>
  Predicate.hasProperty(value, "type") && typeof value.type === "string" ? value.type : ""

const invalid = (type: string) => (error: ParseResult.ParseError) =>
  new InvalidChunk({ type, message: ParseResult.TreeFormatter.formatErrorSync(error) })

/** Whether a value is a chunk of the known types, fields included. @since 0.1.0 @category guards */
export const is: (value: unknown) => value is Chunk = Schema.is(Chunk)

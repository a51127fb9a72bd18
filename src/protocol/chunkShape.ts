/** The envelope of every chunk, and the few shapes that payloads share. */
import * as Schema from "effect/Schema"
import * as Json from "./Json.js"

/** Who caused a chunk. */
export const ChunkFrom = Schema.Literal("AGENT", "USER", "SYSTEM", "WORKFLOW").annotations({
  identifier: "ChunkFrom"
})

export type ChunkFrom = typeof ChunkFrom.Type

export const envelope = { runId: Schema.String, from: ChunkFrom }

/** Absent, not `undefined`, when there is nothing to say. */
export const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const providerMetadata = { providerMetadata: optional(Json.ProviderMetadata) }

/** Finite: JSON has no infinity. */
export const Milliseconds = Schema.Finite.pipe(Schema.nonNegative())

/** Anything but `__proto__`, which would become the prototype of the record that a schema makes. */
export const OpenKey = Schema.String.pipe(Schema.filter(key => key !== "__proto__"))

/** Named fields, and whatever else there is. */
export const openRecord = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields, Schema.Record({ key: OpenKey, value: Json.SafeUnknown }))

interface ChunkConstructor {
  <const Type extends string, Fields extends Schema.Struct.Fields>(
    type: Type,
    fields: Fields
  ): Schema.Struct<{ type: Schema.Literal<[Type]>; payload: Schema.Struct<Fields> } & typeof envelope>
  <const Type extends string, Payload extends Schema.Schema.Any>(
    type: Type,
    payload: Payload
  ): Schema.Struct<{ type: Schema.Literal<[Type]>; payload: Payload } & typeof envelope>
}

/** A chunk schema: the envelope, a literal type, and a payload given as fields or as a schema. */
export const chunk: ChunkConstructor = (type: string, payload: Schema.Struct.Fields | Schema.Schema.Any) =>
  Schema.Struct({
    type: Schema.Literal(type),
    ...envelope,
    payload: Schema.isSchema(payload) ? payload : Schema.Struct(payload)
  }).annotations({ identifier: `Chunk(${type})` }) as never

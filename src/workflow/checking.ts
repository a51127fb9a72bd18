/** Values between steps: JSON that is checked where a step takes it, and where it gives it. */
import type { StandardSchemaV1 } from "@standard-schema/spec"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import { type JsonValue, toJson } from "../protocol/safeJson.js"
import * as ToolSchema from "../tool/ToolSchema.js"

/**
 * What a schema takes: the encoded form of an Effect Schema, the input of a Standard Schema, `unknown` for a JSON Schema.
 *
 * @since 0.1.0
 * @category models
 */
export type Given<S> = S extends Schema.Schema.Any
  ? Schema.Schema.Encoded<S>
  : S extends ToolSchema.Described<infer Standard>
    ? StandardSchemaV1.InferInput<Standard>
    : S extends StandardSchemaV1
      ? StandardSchemaV1.InferInput<S>
      : unknown

/** A schema of a step or a workflow. */
export interface Checked {
  /** JSON → what `execute` receives. Of what a step is resumed with: after it had suspended with this. */
  readonly decode: (value: unknown, suspendData?: unknown) => Effect.Effect<unknown, ToolSchema.InvalidValue>
  /** What `execute` returned → JSON. */
  readonly encode: (value: unknown) => Effect.Effect<JsonValue, ToolSchema.InvalidValue>
  /** JSON → JSON, as the schema understands it: defaults are there, and what it does not know is not. */
  readonly normalize: (value: unknown) => Effect.Effect<JsonValue, ToolSchema.InvalidValue>
  /** What a client may be told of it. */
  readonly jsonSchema: () => { readonly [key: string]: unknown }
}

const anything: Checked = {
  decode: value => Effect.succeed(value),
  encode: value => Effect.sync(() => toJson(value)),
  normalize: value => Effect.sync(() => toJson(value)),
  jsonSchema: () => ({})
}

/** Without a source any value goes. Throws `InvalidConfiguration`, which names `field`. */
export const checked = (source: ToolSchema.Source | undefined, field: string): Checked => {
  if (source === undefined) return anything
  const schema = ToolSchema.output(source, field)
  // The encoded form of an Effect Schema is not what it encodes.
  const isEffectSchema = Predicate.hasProperty(source, Symbol.for("effect/Schema"))
  return {
    decode: schema.decode,
    encode: schema.encode,
    normalize: value =>
      isEffectSchema ? Effect.flatMap(schema.decode(value), schema.encode) : schema.encode(value),
    jsonSchema: () => schema.jsonSchema
  }
}

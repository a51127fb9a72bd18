/**
 * The schema of a tool's input or output: it validates values, and describes itself to the model. Made from an Effect
 * Schema, a Standard Schema (zod, arktype, valibot) or a plain JSON Schema.
 *
 * @since 0.1.0
 */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec"
import * as Effect from "effect/Effect"
import * as JSONSchema from "effect/JSONSchema"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import type { JsonSchema } from "../model/ModelPort.js"
import * as Json from "../protocol/safeJson.js"
import { compile, type Direction, isZod3, jsonSchemaOf, objectAtRoot, zod3 } from "./jsonSchema.js"
import { guarded, InvalidValue, invalid, invalidConfiguration, oneLine, thrown } from "./schemaIssues.js"

export { InvalidValue } from "./schemaIssues.js"

/**
 * Validates and describes values of type `A`. No value makes `decode` or `encode` throw or die: a validator that throws
 * is an `InvalidValue` too. Neither changes what it is given.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolSchema<out A> {
  /** What the model is told. */
  readonly jsonSchema: JsonSchema
  /** Arguments as the model sent them → what `execute` receives. A plain JSON Schema hands on their JSON form. */
  readonly decode: (value: unknown) => Effect.Effect<A, InvalidValue>
  /** What a tool returned → its JSON form, validated. `undefined` is `null` there. */
  readonly encode: (value: unknown) => Effect.Effect<Json.JsonValue, InvalidValue>
}

/**
 * A Standard Schema and the JSON Schema that describes it: for libraries that cannot describe themselves (valibot).
 *
 * @since 0.1.0
 * @category models
 */
export interface Described<out S extends StandardSchemaV1 = StandardSchemaV1> {
  readonly schema: S
  readonly jsonSchema: JsonSchema
}

/** What a tool's schema can be made from. @since 0.1.0 @category models */
export type Source = Schema.Schema.AnyNoContext | StandardSchemaV1 | Described | JsonSchema

/** What validation by a source gives: what `execute` receives. `unknown` for a JSON Schema. @since 0.1.0 @category models */
export type Decoded<S> = S extends Schema.Schema.Any
  ? Schema.Schema.Type<S>
  : S extends Described<infer Standard>
    ? StandardSchemaV1.InferOutput<Standard>
    : S extends StandardSchemaV1
      ? StandardSchemaV1.InferOutput<S>
      : unknown

/**
 * What a tool may return when the source is its output schema: the type of an Effect Schema (it is encoded), what a
 * Standard Schema takes (it is validated), `unknown` for a JSON Schema.
 *
 * @since 0.1.0
 * @category models
 */
export type Accepted<S> = S extends Schema.Schema.Any
  ? Schema.Schema.Type<S>
  : S extends Described<infer Standard>
    ? StandardSchemaV1.InferInput<Standard>
    : S extends StandardSchemaV1
      ? StandardSchemaV1.InferInput<S>
      : unknown

/**
 * What `tool-result` shows of an output `A` when the source is its schema: the encoded form of an Effect Schema, what a
 * Standard Schema makes of it, the output itself otherwise.
 *
 * @since 0.1.0
 * @category models
 */
export type Shown<S, A> = S extends Schema.Schema.Any
  ? Schema.Schema.Encoded<S>
  : S extends Described<infer Standard>
    ? StandardSchemaV1.InferOutput<Standard>
    : S extends StandardSchemaV1
      ? StandardSchemaV1.InferOutput<S>
      : A

/** What stands for the input schema of a tool that has none: no arguments. @since 0.1.0 @category models */
export type Empty = Schema.Schema<Record<string, never>>

/** What stands for the output schema of a tool that has none: any value. @since 0.1.0 @category models */
export type Anything = JsonSchema

/**
 * The schema of a tool's arguments; {@link empty} when there is no source. Throws `InvalidConfiguration`, which names
 * `field` and the remedy, when the source is no schema, cannot be described as JSON Schema, does not describe an object,
 * or is a JSON Schema that cannot work.
 *
 * @since 0.1.0
 * @category constructors
 */
export const input = <S extends Source>(source: S | undefined, field: string): ToolSchema<Decoded<S>> => {
  const made: ToolSchema<unknown> = source === undefined ? empty : ofArguments(source, field)
  // `read` and `Decoded` tell sources apart in the same way, which TypeScript cannot follow.
  return made as ToolSchema<Decoded<S>>
}

/**
 * The schema of what a tool returns: any value. It need not be describable: `jsonSchema` is computed when it is first
 * read, and is `{}` (anything) when there is none. Throws `InvalidConfiguration` when the source is no schema, or a JSON
 * Schema that cannot work.
 *
 * @since 0.1.0
 * @category constructors
 */
export const output = <S extends Source>(source: S, field: string): ToolSchema<Decoded<S>> => {
  const { describe, decode, encode } = read(source, field, "output")
  let described: JsonSchema | undefined
  const made: ToolSchema<unknown> = {
    get jsonSchema() {
      described ??= orAnything(describe)
      return described
    },
    decode,
    encode
  }
  // See `input`.
  return made as ToolSchema<Decoded<S>>
}

/**
 * The schema of what a model answers: any value, as the model writes it. Throws `InvalidConfiguration` as {@link input} does,
 * but for a root that is no object.
 *
 * @since 0.1.0
 * @category constructors
 */
export const answer = <S extends Source>(
  source: S,
  field: string
): Pick<ToolSchema<Decoded<S>>, "jsonSchema" | "decode"> => {
  // Of a JSON Schema the direction says that its root is an object.
  const isLibrary = isLibrarySchema(source) || isDescribed(source)
  const { describe, decode } = read(source, field, isLibrary ? "input" : "output")
  const made: Pick<ToolSchema<unknown>, "jsonSchema" | "decode"> = { jsonSchema: describe(), decode }
  // See `input`.
  return made as Pick<ToolSchema<Decoded<S>>, "jsonSchema" | "decode">
}

/**
 * The schema of the elements of an array, from the schema of the array; `undefined` where the library does not tell.
 *
 * @since 0.1.0
 * @category conversions
 */
export const elementOf = (source: Source): Source | undefined => {
  if (isDescribed(source) && !isEffectSchema(source)) return elementOf(source.schema)
  // Effect calls it `value`, zod `element`, valibot `item`; refinements of Effect stand before their array.
  for (
    let at: unknown = source;
    isLibrarySchema(at);
    at = Predicate.hasProperty(at, "from") ? at.from : undefined
  ) {
    for (const name of ["value", "element", "item"]) {
      const element = Predicate.hasProperty(at, name) ? at[name] : undefined
      if (isEffectSchema(element) || isStandard(element)) return element
    }
  }
  if (isLibrarySchema(source) || !Predicate.hasProperty(source, "items")) return undefined
  const { $defs = {}, definitions = {}, items }: JsonSchema = isJson(source) ? source : {}
  return isJson(items) ? { ...items, $defs, definitions } : undefined
}

/**
 * The schema of a tool without arguments. Models send nothing, `null`, `{}` or a placeholder: all of it is `{}`; what is
 * no object is an `InvalidValue`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty: ToolSchema<Record<string, never>> = {
  jsonSchema: { type: "object", properties: {}, additionalProperties: false },
  decode: value => Effect.suspend(() => (isNothing(value) ? Effect.succeed({}) : notEmpty)),
  encode: value => Effect.suspend(() => (isNothing(value) ? Effect.succeed({}) : notEmpty))
}

interface Kind {
  readonly describe: () => JsonSchema
  readonly decode: (value: unknown) => Effect.Effect<unknown, InvalidValue>
  readonly encode: (value: unknown) => Effect.Effect<Json.JsonValue, InvalidValue>
}

const ofArguments = (source: Source, field: string): ToolSchema<unknown> => {
  const { describe, decode, encode } = read(source, field, "input")
  const jsonSchema = objectAtRoot(describe())
  if (jsonSchema !== undefined) return { jsonSchema, decode, encode }
  throw invalidConfiguration(
    field,
    'does not describe an object, and arguments are one. Make its root { type: "object", properties: { … } }.'
  )
}

const read = (source: Source, field: string, direction: Direction): Kind => {
  if (isEffectSchema(source)) return ofEffect(source, field)
  if (isDescribed(source)) {
    const { jsonSchema } = compile(source.jsonSchema, `${field}.jsonSchema`, direction, isLibrarySchema)
    return ofStandard(source.schema, () => jsonSchema)
  }
  if (isStandard(source)) return ofStandard(source, () => describeStandard(source, field, direction))
  const { jsonSchema, validate } = compile(source, field, direction, isLibrarySchema)
  return { describe: () => jsonSchema, decode: validate, encode: validate }
}

const ofEffect = (schema: Schema.Schema.AnyNoContext, field: string): Kind => {
  const decode = ParseResult.decodeUnknown(schema, { errors: "all" })
  const encode = ParseResult.encodeUnknown(schema, { errors: "all" })
  return {
    describe: () => describeEffect(schema, field),
    decode: guarded(value => Effect.catchAll(decode(value), explain)),
    encode: guarded(value => Effect.map(Effect.catchAll(encode(value), explain), Json.toJson))
  }
}

const explain = (issue: ParseResult.ParseIssue) =>
  Effect.flatMap(ParseResult.ArrayFormatter.formatIssue(issue), issues => Effect.fail(invalid(issues)))

const describeEffect = (schema: Schema.Schema.AnyNoContext, field: string): JsonSchema => {
  try {
    const definitions: Record<string, JSONSchema.JsonSchema7> = {}
    // `skip` writes every definition where it is used, unless it is recursive: some providers know no references.
    const root = JSONSchema.fromAST(schema.ast, {
      definitions,
      target: "jsonSchema2020-12",
      topLevelReferenceStrategy: "skip"
    })
    // What Effect says of a struct without fields; it would say "object or array".
    if ("$id" in root && root.$id === "/schemas/%7B%7D") return empty.jsonSchema
    const whole = Object.keys(definitions).length === 0 ? root : { ...root, $defs: definitions }
    return jsonSchemaOf(whole, (key, value) => (isEffectId(key, value) ? undefined : value))
  } catch (cause) {
    throw invalidConfiguration(
      field,
      `cannot be described as JSON Schema (${oneLine(Json.messageOf(cause))}). Use a schema whose encoded side is JSON \
(Schema.Date, not Schema.DateFromSelf), or give that part a \`jsonSchema\` annotation.`
    )
  }
}

/** Effect marks what has no JSON Schema of its own by an `$id`, which would change the base of all references. */
const isEffectId = (key: string, value: unknown): boolean =>
  key === "$id" && typeof value === "string" && value.startsWith("/schemas/")

const ofStandard = (schema: StandardSchemaV1, describe: () => JsonSchema): Kind => {
  const decode = guarded(value => {
    const result = schema["~standard"].validate(value)
    // Only a validator that is asynchronous pays for a promise.
    return Predicate.isPromiseLike(result)
      ? Effect.flatMap(Effect.tryPromise({ try: () => result, catch: thrown }), settle)
      : settle(result)
  })
  return { describe, decode, encode: value => Effect.map(decode(value), Json.toJson) }
}

// `Array.from`, because arktype's issues and paths are subclasses of Array whose `map` does not work.
const settle = (result: StandardSchemaV1.Result<unknown>): Effect.Effect<unknown, InvalidValue> =>
  result.issues
    ? Effect.fail(
        invalid(
          Array.from(result.issues, ({ message, path = [] }) => ({
            message,
            path: Array.from(path, segment => (typeof segment === "object" ? segment.key : segment))
          }))
        )
      )
    : Effect.succeed(result.value)

const describeStandard = (schema: StandardSchemaV1, field: string, direction: Direction): JsonSchema => {
  const { vendor } = schema["~standard"]
  if (isZod3(schema)) throw invalidConfiguration(field, zod3)
  const remedy = `Pass { schema, jsonSchema } as ${field}: the schema, and the JSON Schema that describes it.`
  if (!isSelfDescribing(schema))
    throw invalidConfiguration(field, `(${vendor}) has no JSON Schema of its own. ${remedy}`)
  const converter = schema["~standard"].jsonSchema
  try {
    return jsonSchemaOf(converter[direction]({ target: "draft-2020-12" }))
  } catch (cause) {
    const reason = oneLine(Json.messageOf(cause))
    throw invalidConfiguration(field, `(${vendor}) cannot be described as JSON Schema (${reason}). ${remedy}`)
  }
}

const orAnything = (describe: () => JsonSchema): JsonSchema => {
  try {
    return describe()
  } catch {
    return {}
  }
}

/** By the mark that every Effect Schema bears: who has one has loaded `effect/Schema`, who has none need not. */
const isEffectSchema = (value: unknown): value is Schema.Schema.AnyNoContext =>
  Predicate.hasProperty(value, Symbol.for("effect/Schema"))

const isStandard = (value: unknown): value is StandardSchemaV1 =>
  Predicate.hasProperty(value, "~standard") &&
  Predicate.hasProperty(value["~standard"], "validate") &&
  typeof value["~standard"].validate === "function"

const isSelfDescribing = (schema: StandardSchemaV1): schema is StandardSchemaV1 & StandardJSONSchemaV1 =>
  Predicate.hasProperty(schema["~standard"], "jsonSchema")

const isDescribed = (value: unknown): value is Described =>
  Predicate.hasProperty(value, "schema") &&
  Predicate.hasProperty(value, "jsonSchema") &&
  isStandard(value.schema)

const isLibrarySchema = (value: unknown): boolean => isEffectSchema(value) || isStandard(value)

/** Whether a value is a schema of a library, or looks like a JSON Schema. @since 0.1.0 @category guards */
export const isSchema = (value: unknown): boolean =>
  isLibrarySchema(value) ||
  isZod3(value) ||
  (Predicate.isRecord(value) &&
    !("schema" in value) &&
    ["type", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"].some(
      keyword => keyword in value
    ))

const isJson = (value: unknown): value is JsonSchema => Predicate.isRecord(value)

const isNothing = (value: unknown): boolean =>
  value === undefined || value === null || Predicate.isRecord(value)

const notEmpty = Effect.fail(new InvalidValue({ message: "Expected an object without properties" }))

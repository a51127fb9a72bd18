/**
 * The schema of a tool's input or output: it validates values, and describes itself to the model. Made from an Effect
 * Schema, a Standard Schema (zod, arktype, valibot) or a plain JSON Schema.
 *
 * @since 0.1.0
 */
import * as Validator from "@cfworker/json-schema"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec"
import { Data, Effect, JSONSchema, ParseResult, Predicate, Schema } from "effect"
import type { JsonSchema } from "../model/ModelPort.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import * as Json from "../protocol/Json.js"

/**
 * A value that breaks a schema. `message` has one line per issue, each naming the path (`items[0].city: Expected string,
 * actual 1`), and at most 2 000 characters: the model reads it. No `Error`, so no stack.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidValue extends Data.TaggedClass("InvalidValue")<{ readonly message: string }> {}

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

type Direction = "input" | "output"

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
  if (Schema.isSchema(source)) return ofEffect(source, field)
  if (isDescribed(source)) {
    const { jsonSchema } = compile(source.jsonSchema, `${field}.jsonSchema`, direction)
    return ofStandard(source.schema, () => jsonSchema)
  }
  if (isStandard(source)) return ofStandard(source, () => describeStandard(source, field, direction))
  const { jsonSchema, validate } = compile(source, field, direction)
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

/**
 * Checks a JSON Schema as a whole: the validator would meet a bad pattern or a reference to nowhere only when a value
 * leads it there, and would let everything pass where a part is no schema.
 */
const compile = (source: unknown, field: string, direction: Direction) => {
  if (!Predicate.isRecord(source) || Object.values(source).some(isLibrarySchema)) {
    throw invalidConfiguration(
      field,
      "is no schema. Pass an Effect Schema, a zod, arktype or valibot schema, or a JSON Schema object; fields alone need \
Schema.Struct({ … }) or z.object({ … }) around them."
    )
  }
  try {
    const jsonSchema = jsonSchemaOf(source)
    // A copy of its own: the validator marks it, and the user's may be frozen.
    const root: Validator.Schema = structuredClone(jsonSchema)
    const nodes = nodesOf(root)
    if (direction === "input") root.type ??= "object"
    const lookup = Validator.dereference(root)
    for (const node of nodes) checkNode(node, lookup)
    const draft = draftOf(source["$schema"])
    const validate = guarded(value => {
      const json = Json.toJson(value)
      const { errors, valid } = Validator.validate(json, root, draft, lookup, false)
      return valid ? Effect.succeed(json) : Effect.fail(invalid(errors.filter(isLeaf).map(toIssue)))
    })
    return { jsonSchema, validate }
  } catch (cause) {
    const reason = oneLine(Json.messageOf(cause))
    throw invalidConfiguration(field, `is a JSON Schema that cannot work: ${reason}. Correct it.`)
  }
}

const draftOf = (uri: unknown): Validator.SchemaDraft =>
  typeof uri !== "string"
    ? "2020-12"
    : /draft-0[67]/.test(uri)
      ? "7"
      : uri.includes("draft-04")
        ? "4"
        : uri.includes("2019-09")
          ? "2019-09"
          : "2020-12"

/** Every schema within a schema. Drops what holds no schemas, because the validator would look for ids in it. */
const nodesOf = (root: Validator.Schema): ReadonlyArray<Validator.Schema> => {
  const nodes: Array<Validator.Schema> = []
  const visit = (node: unknown, name: string) => {
    if (typeof node === "boolean") return
    if (!isNode(node)) throw new Error(`"${name}" is no schema`)
    nodes.push(node)
    for (const [key, value] of Object.entries(node)) {
      if (key === "example" || key.startsWith("x-")) delete node[key]
      else if (Validator.schemaMapKeyword[key] === true) {
        for (const [name, child] of Object.entries(value)) visit(child, name)
      } else if (Validator.schemaArrayKeyword[key] === true && Array.isArray(value)) {
        for (const child of value) visit(child, key)
      } else if (Validator.schemaKeyword[key] === true) visit(value, key)
    }
  }
  visit(root, "root")
  return nodes
}

const typeNames = new Set<unknown>(["object", "array", "string", "number", "integer", "boolean", "null"])

const checkNode = (node: Validator.Schema, lookup: Readonly<Record<string, unknown>>): void => {
  for (const key of ["enum", "required", "anyOf", "allOf", "oneOf"]) {
    if (node[key] !== undefined && !Array.isArray(node[key])) throw new Error(`"${key}" must be an array`)
  }
  for (const type of [node.type ?? []].flat()) {
    if (!typeNames.has(type)) throw new Error(`there is no type ${Json.stringify(type)}`)
  }
  if (node.$ref !== undefined && lookup[node.__absolute_ref__ ?? ""] === undefined) {
    throw new Error(`the reference "${node.$ref}" leads nowhere`)
  }
  for (const pattern of [node.pattern ?? [], Object.keys(node.patternProperties ?? {})].flat()) {
    RegExp(pattern, "u")
  }
}

/** Keywords whose errors only say that there are others, below. */
const wrappers = new Set(
  "properties patternProperties additionalProperties unevaluatedProperties dependentSchemas items prefixItems \
additionalItems unevaluatedItems $ref $recursiveRef allOf if".split(" ")
)

const isLeaf = (error: Validator.OutputUnit): boolean => !wrappers.has(error.keyword)

const toIssue = ({ error, instanceLocation, keyword }: Validator.OutputUnit): Issue => {
  const path = instanceLocation
    .split("/")
    .slice(1)
    .map(segment => decodeURIComponent(segment).replaceAll("~1", "/").replaceAll("~0", "~"))
  if (keyword === "false") return { path, message: "Not allowed." }
  const missing = keyword === "required" ? /"(.*)"/s.exec(error)?.[1] : undefined
  return missing === undefined
    ? { path, message: error }
    : { path: [...path, missing], message: "is missing" }
}

const jsonSchemaOf = (value: unknown, replacer?: (key: string, value: unknown) => unknown): JsonSchema => {
  const copy: unknown = JSON.parse(JSON.stringify(value, replacer))
  if (!isJsonSchema(copy)) throw new Error("it is no object")
  const { $schema, ...schema } = copy
  return schema
}

/** Providers want `type: "object"` at the root itself, not behind a reference or in every branch of a union. */
const objectAtRoot = (schema: JsonSchema): JsonSchema | undefined => {
  const root = inlineRoot(schema)
  return isObject(root, root, new Map()) ? { ...root, type: "object" } : undefined
}

const besideReference = new Set(["$ref", "$defs", "definitions", "title", "description", "$comment"])

const inlineRoot = (schema: JsonSchema): JsonSchema => {
  const { $ref, ...rest } = schema
  const target = resolve(schema, $ref)
  if (
    !isJsonSchema(target) ||
    target === schema ||
    !Object.keys(schema).every(key => besideReference.has(key))
  ) {
    return schema
  }
  const { $defs, definitions, ...whole } = { ...target, ...rest }
  // Where no reference is left, definitions only cost tokens.
  return JSON.stringify(whole).includes('"$ref"') ? { ...target, ...rest } : whole
}

const resolve = (root: JsonSchema, reference: unknown): unknown => {
  if (typeof reference !== "string" || !/^#(\/|$)/.test(reference)) return undefined
  let node: unknown = root
  for (const segment of reference.split("/").slice(1)) {
    const key = decodeURIComponent(segment).replaceAll("~1", "/").replaceAll("~0", "~")
    node = Predicate.isRecord(node) && Object.hasOwn(node, key) ? node[key] : undefined
  }
  return node
}

const isObject = (node: unknown, root: JsonSchema, known: Map<string, boolean>): boolean => {
  if (!Predicate.isRecord(node)) return false
  const { $ref, type, properties, allOf, anyOf, oneOf } = node
  if (typeof $ref === "string") {
    // Entered as `false` first: a reference that leads back to itself describes nothing.
    if (!known.has($ref)) known.set($ref, false).set($ref, isObject(resolve(root, $ref), root, known))
    if (known.get($ref) === true) return true
  }
  if (type !== undefined)
    return type === "object" || (Array.isArray(type) && type.every(name => name === "object"))
  const branch = (child: unknown) => isObject(child, root, known)
  return (
    Predicate.isRecord(properties) ||
    (Array.isArray(allOf) && allOf.some(branch)) ||
    [anyOf, oneOf].some(union => Array.isArray(union) && union.length > 0 && union.every(branch))
  )
}

const orAnything = (describe: () => JsonSchema): JsonSchema => {
  try {
    return describe()
  } catch {
    return {}
  }
}

const isNode = (value: unknown): value is Validator.Schema => Predicate.isRecord(value)

/** For what `JSON.parse` made. */
const isJsonSchema = (value: unknown): value is JsonSchema => Predicate.isRecord(value)

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

const isLibrarySchema = (value: unknown): boolean => Schema.isSchema(value) || isStandard(value)

const isNothing = (value: unknown): boolean =>
  value === undefined || value === null || Predicate.isRecord(value)

interface Issue {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

const maxLength = 2_000
const maxLineLength = 400

const invalid = (issues: ReadonlyArray<Issue>): InvalidValue => {
  const lines: Array<string> = []
  let length = 0
  for (const line of new Set(issues.slice(0, maxLength).map(toLine))) {
    length += line.length + 1
    if (length > maxLength - 2) {
      lines.push("…")
      break
    }
    lines.push(line)
  }
  return new InvalidValue({ message: lines.length === 0 ? "Invalid value" : lines.join("\n") })
}

const toLine = ({ message, path }: Issue): string => {
  const place = printPath(path)
  const text = oneLine(message)
  if (place === "") return text
  // arktype begins its messages with the path.
  return clip(`${clip(place)}: ${text.startsWith(`${place} `) ? text.slice(place.length + 1) : text}`)
}

const printPath = (path: ReadonlyArray<PropertyKey>): string =>
  path
    .map(key => {
      const name = String(key)
      if (/^\d+$/.test(name)) return `[${name}]`
      return /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
    })
    .join("")
    .replace(/^\./, "")

const oneLine = (text: string): string => clip(clip(text, maxLength).replace(/[\r\n]+\s*/g, " "))

const clip = (text: string, length = maxLineLength): string =>
  Json.wellFormed(text.length <= length ? text : `${text.slice(0, length - 1)}…`)

const thrown = (cause: unknown): InvalidValue => invalid([{ path: [], message: Json.messageOf(cause) }])

/** A validator that throws, also by running out of stack, has not accepted the value. */
const guarded =
  <A>(validate: (value: unknown) => Effect.Effect<A, InvalidValue>) =>
  (value: unknown): Effect.Effect<A, InvalidValue> =>
    Effect.catchAllDefect(
      Effect.suspend(() => validate(value)),
      defect => Effect.fail(thrown(defect))
    )

const notEmpty = Effect.fail(new InvalidValue({ message: "Expected an object without properties" }))

const invalidConfiguration = (field: string, problem: string): InvalidConfiguration =>
  new InvalidConfiguration({ field, message: `${field} ${problem}` })

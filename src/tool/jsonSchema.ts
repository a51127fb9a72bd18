/** JSON Schemas: validated by `@cfworker/json-schema`, checked as a whole when a tool is made, and brought to an object root. */
import * as Validator from "@cfworker/json-schema"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { JsonSchema } from "../model/ModelPort.js"
import * as Json from "../protocol/safeJson.js"
import { guarded, type Issue, invalid, invalidConfiguration, oneLine } from "./schemaIssues.js"

/** Whether a schema is for arguments or for what a tool returns. */
export type Direction = "input" | "output"

/** Whether a value is a schema of zod 3, which cannot describe itself. */
export const isZod3 = (value: unknown): boolean =>
  Predicate.hasProperty(value, "_def") &&
  Predicate.hasProperty(value._def, "typeName") &&
  String(value._def.typeName).startsWith("Zod")

export const zod3 =
  'is a schema of zod 3, which has no JSON Schema. Use zod 4: version 4 of the package "zod", or "zod/v4" of zod 3.25.'

/**
 * Checks a JSON Schema as a whole: the validator would meet a bad pattern or a reference to nowhere only when a value
 * leads it there, and would let everything pass where a part is no schema.
 */
export const compile = (
  source: unknown,
  field: string,
  direction: Direction,
  isLibrarySchema: (value: unknown) => boolean,
  /** Whether the first thing that is wrong with a value is enough. */
  isFirstEnough = false
) => {
  if (isZod3(source)) throw invalidConfiguration(field, zod3)
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
      const { errors, valid } = Validator.validate(json, root, draft, lookup, isFirstEnough)
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
        if (!Predicate.isRecord(value)) throw new Error(`"${key}" must be an object`)
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

/** A JSON copy of a schema, without `$schema`. */
export const jsonSchemaOf = (
  value: unknown,
  replacer?: (key: string, value: unknown) => unknown
): JsonSchema => {
  const copy: unknown = JSON.parse(JSON.stringify(value, replacer))
  if (!isJsonSchema(copy)) throw new Error("it is no object")
  const { $schema, ...schema } = copy
  return schema
}

/** Providers want `type: "object"` at the root itself, not behind a reference or in every branch of a union. */
export const objectAtRoot = (schema: JsonSchema): JsonSchema | undefined => {
  const root = inlineRoot(schema)
  return isObject(root, root, new Map()) ? { ...root, type: "object" } : undefined
}

const besideReference = new Set(["$ref", "$defs", "definitions", "title", "description", "$comment"])

/** A schema without a reference at its root, where that is possible. */
export const inlineRoot = (schema: JsonSchema): JsonSchema => {
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

const isNode = (value: unknown): value is Validator.Schema => Predicate.isRecord(value)

/** For what `JSON.parse` made. */
const isJsonSchema = (value: unknown): value is JsonSchema => Predicate.isRecord(value)

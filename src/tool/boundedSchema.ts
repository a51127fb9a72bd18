/**
 * A JSON Schema of somebody who is not trusted: values are checked against it at a cost that it does not choose. Patterns and
 * formats can take forever, and references multiply: those are told to the model, and not checked.
 */
import * as Validator from "@cfworker/json-schema"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { JsonSchema } from "../model/ModelPort.js"
import { compile } from "./jsonSchema.js"
import { invalidConfiguration } from "./schemaIssues.js"
import * as ToolSchema from "./ToolSchema.js"

/** Schemas within a schema, each counted as often as something refers to it; and as many values in its lists. */
const mostNodes = 2_000

/** Characters that count as one more value of a list: a message about a wrong value repeats them. */
const longText = 64

/** What takes no more time than the value is long. */
const cheap = new Set([
  "$ref",
  "type",
  "enum",
  "const",
  "required",
  "dependentRequired",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "minProperties",
  "maxProperties"
])

/** Of these the validator collects what is wrong with every item and name, however many there are. */
const endless = new Set(["contains", "unevaluatedItems", "propertyNames"])

/** They speak of what patterns have left over. */
const beside = new Set(["patternProperties", "additionalProperties", "unevaluatedProperties"])

const isSchema = (value: unknown): value is JsonSchema => Predicate.isRecord(value)

const mapValues = (map: JsonSchema, change: (value: unknown) => unknown) =>
  Object.fromEntries(Object.entries(map).map(([name, value]) => [name, change(value)]))

/** The schema without what is not checked. */
const checkedPart = (node: unknown): unknown => {
  if (!isSchema(node)) return node
  const hasPatterns = node["patternProperties"] !== undefined
  return Object.fromEntries(
    Object.entries(node).flatMap<[string, unknown]>(([key, value]) => {
      if (endless.has(key) || (hasPatterns && beside.has(key))) return []
      if (cheap.has(key)) return [[key, value]]
      if (Validator.schemaMapKeyword[key] === true && isSchema(value))
        return [[key, mapValues(value, checkedPart)]]
      if (Array.isArray(value)) {
        return Validator.schemaArrayKeyword[key] === true ? [[key, value.map(checkedPart)]] : []
      }
      return Validator.schemaKeyword[key] === true ? [[key, checkedPart(value)]] : []
    })
  )
}

const definitions = new Set(["$defs", "definitions"])

const resolve = (root: unknown, reference: string): unknown => {
  let node = root
  for (const segment of reference.split("/").slice(1)) {
    const key = decodeURIComponent(segment).replaceAll("~1", "/").replaceAll("~0", "~")
    const values: Readonly<Record<string, unknown>> =
      Predicate.isRecord(node) || Array.isArray(node) ? { ...node } : {}
    node = Object.hasOwn(values, key) ? values[key] : undefined
  }
  return node
}

/** How many values there are in what a keyword lists: each value is compared with all of them. */
const valuesIn = (listed: unknown): number => {
  if (typeof listed === "string") return Math.floor(listed.length / longText)
  if (typeof listed !== "object" || listed === null) return 0
  return Object.entries(listed).reduce((sum, [name, value]) => sum + 1 + valuesIn(name) + valuesIn(value), 0)
}

/** Throws when there are too many, or when one leads back to itself. */
const count = (root: unknown): void => {
  let nodes = 0
  let values = 0
  const list = (listed: unknown): void => {
    values += valuesIn(listed)
    if (values > mostNodes)
      throw new Error(`with what it refers to its lists hold more than ${mostNodes} values`)
  }
  const visit = (node: unknown, through: ReadonlyArray<string>): void => {
    // `true` and `false` are schemas, too.
    if (++nodes > mostNodes) throw new Error(`with what it refers to it has more than ${mostNodes} parts`)
    if (Array.isArray(node)) list(node)
    if (!Predicate.isRecord(node)) return
    for (const [key, value] of Object.entries(node)) {
      if (key === "$ref" && typeof value === "string") {
        if (!/^#(\/|$)/.test(value)) throw new Error(`the reference "${value}" leads out of it`)
        if (through.includes(value)) throw new Error(`the reference "${value}" leads back to itself`)
        visit(resolve(root, value), [...through, value])
      } else if (cheap.has(key)) {
        list(value)
      } else if (definitions.has(key)) {
      } else if (Validator.schemaMapKeyword[key] === true && Predicate.isRecord(value)) {
        for (const child of Object.values(value)) visit(child, through)
      } else {
        for (const child of Array.isArray(value) ? value : [value]) visit(child, through)
      }
    }
  }
  visit(root, ["#"])
}

const refused = (field: string, cause: unknown) =>
  invalidConfiguration(
    field,
    `cannot be used: ${cause instanceof Error ? cause.message : "it is too deep"}. Give a smaller one, without recursion.`
  )

/**
 * The schema as the model is told of it, with what is checked of it. Throws `InvalidConfiguration` when it cannot work, refers to
 * itself or to other documents, or has too many parts.
 */
export const bounded = (source: JsonSchema, field: string): ToolSchema.Described => {
  const known = ToolSchema.output(source, field).jsonSchema
  const part = checkedPart(known)
  try {
    count(part)
  } catch (cause) {
    throw refused(field, cause)
  }
  // What else is wrong with a value, behind the first, is of its length times that of the schema.
  const { validate } = compile(isSchema(part) ? part : {}, field, "output", () => false, true)
  return {
    jsonSchema: known,
    schema: {
      "~standard": {
        version: 1,
        vendor: "eddy",
        validate: value =>
          Effect.runPromise(
            Effect.match(validate(value), {
              onSuccess: valid => ({ value: valid }),
              onFailure: ({ issues, message }) => ({ issues: issues.length === 0 ? [{ message }] : issues })
            })
          )
      }
    }
  }
}

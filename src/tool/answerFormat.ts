/** A schema as a provider wants it that binds an answer to it: an object at the root, and objects that are closed. */
import * as Predicate from "effect/Predicate"
import type { JsonSchema } from "../model/ModelPort.js"
import type { JsonValue } from "../protocol/safeJson.js"
import { inlineRoot, objectAtRoot } from "./jsonSchema.js"

/** What is asked of the provider, and under which key the value stands there; `undefined`: it is the root. */
export interface AnswerFormat {
  readonly schema: JsonSchema
  readonly key: "elements" | "result" | undefined
}

const isRecord = (value: JsonValue | undefined): value is JsonSchema => Predicate.isRecord(value)

const maps = ["properties", "$defs", "definitions", "patternProperties"]
const lists = ["anyOf", "oneOf", "prefixItems"]

/**
 * Objects that say nothing of other properties have none: providers insist that it is said. Below `allOf` that would forbid
 * what its other branches have.
 */
const closed = (node: JsonValue): JsonValue => {
  if (!isRecord(node)) return node
  const made: Record<string, JsonValue> = {}
  for (const [name, value] of Object.entries(node)) {
    if (maps.includes(name) && isRecord(value)) {
      made[name] = Object.fromEntries(Object.entries(value).map(([key, child]) => [key, closed(child)]))
    } else if (lists.includes(name) && Array.isArray(value)) {
      made[name] = value.map(closed)
    } else {
      made[name] = name === "items" ? closed(value) : value
    }
  }
  const isOpen =
    isRecord(node["properties"]) && node["additionalProperties"] === undefined && node["allOf"] === undefined
  return isOpen ? { ...made, additionalProperties: false } : made
}

/** References to the root lead to where the root has gone. */
const moved = (node: JsonValue, to: string): JsonValue => {
  if (Array.isArray(node)) return node.map(item => moved(item, to))
  if (!isRecord(node)) return node
  return Object.fromEntries(
    Object.entries(node).map(([name, value]) => {
      const isToRoot =
        name === "$ref" && typeof value === "string" && /^#(?!\/(\$defs|definitions)\/)(\/|$)/.test(value)
      return [name, isToRoot ? `${to}${value.slice(1)}` : moved(value, to)]
    })
  )
}

const wrapped = ({ $defs, definitions, ...schema }: JsonSchema, key: string): JsonSchema => ({
  type: "object",
  properties: { [key]: moved(schema, `#/properties/${key}`) },
  required: [key],
  additionalProperties: false,
  ...($defs === undefined ? {} : { $defs: moved($defs, `#/properties/${key}`) }),
  ...(definitions === undefined ? {} : { definitions: moved(definitions, `#/properties/${key}`) })
})

/** `isOurs`: a library wrote the schema, and not the caller, who may mean what it leaves out. */
export const answerFormat = (jsonSchema: JsonSchema, isOurs: boolean): AnswerFormat => {
  const closing = isOurs ? closed(jsonSchema) : jsonSchema
  const whole = isRecord(closing) ? closing : jsonSchema
  const object = objectAtRoot(whole)
  if (object !== undefined) return { schema: object, key: undefined }
  const root = inlineRoot(whole)
  const key = root["type"] === "array" ? "elements" : "result"
  return { schema: wrapped(root, key), key }
}

/**
 * Values made safe for JSON, and the schemas that do it where bytes enter or leave.
 *
 * One documented way for everything JSON cannot hold:
 *
 * | value | becomes |
 * |---|---|
 * | `bigint` | its decimal digits as a string |
 * | `NaN`, `Infinity` | `null` |
 * | `undefined`, functions, symbols | left out of objects, `null` in arrays and at the top |
 * | `Date` | ISO 8601 string, `null` when invalid |
 * | `Uint8Array` and other byte views | base64 string |
 * | `Map` | object when every key is a string, else an array of pairs |
 * | `Set` | array |
 * | `Error` | `{ name, message }`, never a stack or a cause |
 * | a lone surrogate | U+FFFD |
 * | an object inside itself | `"[Circular]"` |
 * | nesting deeper than {@link maxDepth} | `"[Too deep]"` |
 * | a getter or `toJSON` that throws | `"[Unreadable]"` |
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import {
  isRecord,
  type ProviderMetadata as SafeMetadata,
  type JsonValue as SafeValue,
  toJson,
  wellFormed
} from "./safeJson.js"

export { fromBase64, maxDepth, messageOf, stringify, toBase64, toJson, wellFormed } from "./safeJson.js"

/** A value that JSON can hold. @since 0.1.0 @category models */
export type JsonValue = SafeValue

/** Provider name, then key: what a provider says about a part, and gets back with it. @since 0.1.0 @category models */
export type ProviderMetadata = SafeMetadata

/** Property tests meet values that JSON can hold: what it cannot hold comes back as something else, by design. */
const Anything = Schema.Unknown.annotations({ arbitrary: () => fc => fc.jsonValue() })

/** Any value in memory; its {@link toJson} form as JSON. @since 0.1.0 @category schemas */
export const SafeUnknown = Schema.transform(Anything, Anything, {
  strict: true,
  decode: value => value,
  encode: value => toJson(value)
}).annotations({ identifier: "SafeUnknown" })

/** Declared, not a `Schema.Record`: that one copies, and a key named `__proto__` would become the copy's prototype. */
const OpenRecord = Schema.declare((value): value is { readonly [key: string]: unknown } => isRecord(value), {
  identifier: "OpenRecord",
  arbitrary: () => fc => fc.dictionary(fc.string(), fc.jsonValue())
})

/** An open record in memory; its {@link toJson} form as JSON. @since 0.1.0 @category schemas */
export const SafeRecord = Schema.transform(OpenRecord, OpenRecord, {
  strict: true,
  decode: record => record,
  encode: record => {
    const made = toJson(record)
    return isRecord(made) ? made : {}
  }
}).annotations({ identifier: "SafeRecord" })

/** A string whose JSON form has no lone surrogate. @since 0.1.0 @category schemas */
export const Text = Schema.transform(Schema.String, Schema.String, {
  strict: true,
  decode: text => text,
  encode: wellFormed
}).annotations({ identifier: "Text" })

/** An error that came over the wire: a name and a message, no stack of this process. @since 0.1.0 @category models */
export class RemoteError extends Error {
  constructor(name: string, message: string) {
    super(message)
    this.name = name
    this.stack = `${name}: ${message}`
  }
}

/**
 * Whatever was thrown. An `Error` is `{ name, message }` as JSON and comes back as a {@link RemoteError}; anything
 * else is made safe by {@link toJson}.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ErrorValue = Schema.transform(Anything, Anything, {
  strict: true,
  decode: value =>
    isRecord(value) &&
    typeof value["name"] === "string" &&
    typeof value["message"] === "string" &&
    Object.keys(value).length === 2
      ? new RemoteError(value["name"], value["message"])
      : value,
  encode: value => toJson(value)
}).annotations({ identifier: "ErrorValue" })

const isScalar = (value: unknown): boolean =>
  value === null ||
  typeof value === "string" ||
  typeof value === "boolean" ||
  (typeof value === "number" && Number.isFinite(value))

/** Keeps its own stack, so that no depth overflows. A cycle passes: encoding makes it safe. */
const isJson = (value: unknown): value is JsonValue => {
  const seen = new Set<object>()
  const open: Array<unknown> = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next !== "object" || next === null) {
      if (!isScalar(next)) return false
    } else if (!seen.has(next)) {
      seen.add(next)
      for (const inner of Object.values(next)) open.push(inner)
    }
  }
  return true
}

const isMetadata = (value: unknown): value is ProviderMetadata =>
  isRecord(value) && Object.values(value).every(isRecord) && isJson(value)

const JsonType = Schema.declare<JsonValue>(isJson, {
  identifier: "JsonValue",
  arbitrary: () => fc => fc.jsonValue().map(toJson)
})

const MetadataType = Schema.declare<ProviderMetadata>(isMetadata, {
  identifier: "ProviderMetadata",
  arbitrary: () => fc => fc.dictionary(fc.string(), fc.dictionary(fc.string(), fc.jsonValue().map(toJson)))
})

/** Schema of {@link JsonValue}. @since 0.1.0 @category schemas */
export const JsonValue: Schema.Schema<JsonValue> = Schema.transform(JsonType, JsonType, {
  strict: true,
  decode: value => value,
  encode: toJson
}).annotations({ identifier: "JsonValue" })

/** Schema of {@link ProviderMetadata}. @since 0.1.0 @category schemas */
export const ProviderMetadata: Schema.Schema<ProviderMetadata> = Schema.transform(
  MetadataType,
  MetadataType,
  {
    strict: true,
    decode: metadata => metadata,
    encode: metadata => {
      const made = toJson(metadata)
      return isMetadata(made) ? made : {}
    }
  }
).annotations({ identifier: "ProviderMetadata" })

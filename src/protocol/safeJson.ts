/** Values made safe for JSON: the plain functions behind `Json`, which says how. Needs no schemas. */
import { isError, property } from "./foreignValue.js"

/** A value that JSON can hold. @since 0.1.0 @category models */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | ReadonlyArray<JsonValue>
  | { readonly [key: string]: JsonValue }

/** Levels of nesting that survive {@link toJson}; what lies deeper becomes `"[Too deep]"`. @since 0.1.0 @category constants */
export const maxDepth = 256

/** Replaces every lone surrogate by U+FFFD; a well-formed string is returned as it is. @since 0.1.0 @category conversions */
export const wellFormed = (text: string): string => (text.isWellFormed() ? text : text.toWellFormed())

/** Standard base64 with padding. @since 0.1.0 @category conversions */
export const toBase64 = (bytes: Uint8Array): string => {
  let binary = ""
  for (let start = 0; start < bytes.length; start += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000))
  }
  return btoa(binary)
}

/** Bytes of a standard base64 string; throws a `DOMException` when it is none. @since 0.1.0 @category conversions */
export const fromBase64 = (text: string): Uint8Array =>
  Uint8Array.from(atob(text), unit => unit.charCodeAt(0))

/** An object that is no array. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const safeArray = (
  items: Iterable<unknown>,
  ancestors: Set<object>,
  depth: number
): ReadonlyArray<JsonValue> => Array.from(items, item => safe(item, ancestors, depth) ?? null)

const safeEntries = (
  entries: Iterable<readonly [string, unknown]>,
  ancestors: Set<object>,
  depth: number
): JsonValue => {
  const pairs: Array<[string, JsonValue]> = []
  for (const [key, value] of entries) {
    const made = safe(value, ancestors, depth)
    if (made !== undefined) pairs.push([wellFormed(key), made])
  }
  // `fromEntries` defines own properties, so that a key named `__proto__` stays data.
  return Object.fromEntries(pairs)
}

const safeObject = (value: object, ancestors: Set<object>, depth: number): JsonValue | undefined => {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (value instanceof Error) return errorToJson(value)
  if (ArrayBuffer.isView(value)) {
    return toBase64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
  }
  if (value instanceof ArrayBuffer) return toBase64(new Uint8Array(value))
  if (value instanceof String || value instanceof Number || value instanceof Boolean) {
    return safe(value.valueOf(), ancestors, depth)
  }
  if (Array.isArray(value) || value instanceof Set) return safeArray(value, ancestors, depth)
  if (value instanceof Map) {
    const entries = [...value.entries()]
    return entries.every((entry): entry is [string, unknown] => typeof entry[0] === "string")
      ? safeEntries(entries, ancestors, depth)
      : safeArray(entries, ancestors, depth)
  }
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return safe(value.toJSON(), ancestors, depth)
  }
  const names = Object.keys(value)
  const record = value as Readonly<Record<string, unknown>>
  return safeEntries(
    names.map(name => [name, readProperty(record, name)] as const),
    ancestors,
    depth
  )
}

const readProperty = (record: Readonly<Record<string, unknown>>, name: string): unknown => {
  try {
    return record[name]
  } catch {
    return "[Unreadable]"
  }
}

/** `undefined` stands for a value that has no JSON form at all. */
const safe = (value: unknown, ancestors: Set<object>, depth: number): JsonValue | undefined => {
  switch (typeof value) {
    case "string":
      return wellFormed(value)
    case "number":
      return Number.isFinite(value) ? value : null
    case "boolean":
      return value
    case "bigint":
      return value.toString()
    case "object": {
      if (value === null) return null
      if (ancestors.has(value)) return "[Circular]"
      if (depth >= maxDepth) return "[Too deep]"
      ancestors.add(value)
      try {
        return safeObject(value, ancestors, depth + 1)
      } catch {
        return "[Unreadable]"
      } finally {
        ancestors.delete(value)
      }
    }
    default:
      return undefined
  }
}

/**
 * Makes any value safe for JSON (see the table at the top of this module). Total: never throws. A value that JSON
 * holds already comes out equal.
 *
 * @since 0.1.0
 * @category conversions
 */
export const toJson = (value: unknown): JsonValue => safe(value, new Set(), 0) ?? null

/** `toJson`, then text. Total, and always one line that every strict parser accepts. @since 0.1.0 @category conversions */
export const stringify = (value: unknown): string => JSON.stringify(toJson(value))

const errorToJson = (error: Error): JsonValue => ({
  name: wellFormed(String(error.name)),
  message: wellFormed(String(error.message))
})

/** What a person or a model should read of an unknown failure: its message, never a stack. Total: never throws. @since 0.1.0 @category conversions */
export const messageOf = (cause: unknown): string => {
  if (typeof cause === "string") return wellFormed(cause)
  const texts = ["message", isError(cause) ? "name" : "_tag"].map(key => property(cause, key))
  const [text] = texts.filter(found => typeof found === "string" && (found !== "" || !isError(cause)))
  return typeof text === "string" ? wellFormed(text) : stringify(cause)
}

/** Provider name, then key: what a provider says about a part, and gets back with it. @since 0.1.0 @category models */
export type ProviderMetadata = { readonly [provider: string]: { readonly [key: string]: JsonValue } }

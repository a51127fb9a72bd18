/**
 * What a model reads of a failure: its tag, its message, its fields, and the same of its cause, one level down. Fields are plain data.
 * Left out are stacks, fields whose names say that they hold a secret or headers, and of an error that carries a request or a
 * response everything but its code and status. Pure, and total.
 */
import { type JsonValue, messageOf, wellFormed } from "../protocol/safeJson.js"
import { isOfLibrary } from "../protocol/tagged.js"

/** Characters of JSON that the fields of one failure may have; a field that does not fit is left out. */
const maxFields = 2_000

/** Levels of nesting within a field; what lies deeper is left out. */
const maxLevels = 4

/** Fields that stand in the text already, or are no data. */
const notFields = new Set(["_tag", "name", "message", "stack", "cause", "isError"])

const secretName =
  /secret|passw(or)?d|credential|authorization|cookie|api[-_]?key|private[-_]?key|token$|headers?$|^stack$/i

/** What errors of HTTP clients and providers carry. */
const transportNames = [
  "request",
  "response",
  "headers",
  "requestHeaders",
  "responseHeaders",
  "requestBody",
  "requestBodyValues",
  "responseBody"
]

const ofTransport = new Set(["code", "errno", "status", "statusCode", "statusText", "reason"])

const read = (value: object, key: string): unknown => {
  try {
    return Reflect.get(value, key)
  } catch {
    return undefined
  }
}

const isPlainObject = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** A value as plain data; `undefined` for an instance of a class, a function, and what lies too deep. */
const plain = (value: unknown, levels: number): JsonValue | undefined => {
  if (typeof value === "string") return wellFormed(value)
  if (typeof value === "bigint") return value.toString()
  if (typeof value === "number") return Number.isFinite(value) ? value : null
  if (typeof value === "boolean" || value === null) return value
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (typeof value !== "object" || levels === 0) return undefined
  if (Array.isArray(value)) return value.map(item => plain(item, levels - 1) ?? null)
  return isPlainObject(value) ? Object.fromEntries(entriesOf(value, () => true, levels - 1)) : undefined
}

const entriesOf = (
  value: object,
  isWanted: (name: string) => boolean,
  levels: number
): ReadonlyArray<readonly [string, JsonValue]> =>
  Object.keys(value).flatMap(name => {
    if (!isWanted(name) || secretName.test(name)) return []
    const data = plain(read(value, name), levels)
    return data === undefined ? [] : [[wellFormed(name), data] as const]
  })

/** The fields of a failure as JSON; `undefined` when there are none. */
const fieldsOf = (failure: object): string | undefined => {
  const isTransport = transportNames.some(name => Object.hasOwn(failure, name))
  const isWanted = (name: string) => (isTransport ? ofTransport.has(name) : !notFields.has(name))
  let length = 0
  const fitting = entriesOf(failure, isWanted, maxLevels).filter(([name, data]) => {
    const more = JSON.stringify([name, data]).length
    if (length + more > maxFields) return false
    length += more
    return true
  })
  return fitting.length === 0 ? undefined : JSON.stringify(Object.fromEntries(fitting))
}

/** A message that only lists the fields, as `Schema.TaggedError` makes it. */
const isGenerated = (failure: object, message: string): boolean =>
  !Object.hasOwn(failure, "message") && /^\{.*\}$/s.test(message)

/** Tag and message; `undefined` when it has neither. */
const headOf = (failure: object): string | undefined => {
  const tag = read(failure, "_tag")
  const message = read(failure, "message")
  const said =
    typeof message === "string" && message !== "" && !isGenerated(failure, message) ? message : undefined
  if (typeof tag !== "string" || tag === "") return said
  if (said === undefined) return tag
  return said.startsWith(tag) ? said : `${tag}: ${said}`
}

const linesOf = (failure: unknown): ReadonlyArray<string> => {
  // The messages of the library are for the model, and its fields are not.
  if (typeof failure !== "object" || failure === null || isOfLibrary(failure)) return [messageOf(failure)]
  const lines = Array.isArray(failure) ? [] : [headOf(failure), fieldsOf(failure)]
  const known = lines.filter(line => line !== undefined)
  return known.length === 0 ? [messageOf(failure)] : known.map(wellFormed)
}

const causeOf = (failure: unknown): ReadonlyArray<string> => {
  if (typeof failure !== "object" || failure === null || isOfLibrary(failure)) return []
  const cause = read(failure, "cause")
  return cause === undefined || cause === null ? [] : linesOf(cause)
}

/** The text that a model reads of a failure. Total: never throws. */
export const failureText = (failure: unknown): string => {
  try {
    const lines = linesOf(failure)
    const [cause, ...fields] = causeOf(failure)
    // Who wraps a failure often quotes it.
    const isQuoted = cause === undefined || (lines[0] ?? "").includes(cause)
    const below = isQuoted && fields.length === 0 ? [] : [`Caused by: ${[cause, ...fields].join("\n")}`]
    return [...lines, ...below].join("\n")
  } catch {
    return "The tool failed."
  }
}

/**
 * The one safe way to look at a value that user code threw, rejected with or returned. A getter, a proxy or a `toString` may
 * throw, and causes may be cyclic: nothing in this module throws, and what leaves it can be read, logged and printed.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"

const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function"

/** A property; `undefined` also when reading it throws. */
export const property = (value: unknown, key: PropertyKey): unknown => {
  if (!isObject(value)) return undefined
  try {
    return Reflect.get(value, key)
  } catch {
    return undefined
  }
}

/** Whether it is an `Error`; `false` for a proxy that does not answer. */
export const isError = (value: unknown): value is Error => {
  try {
    return value instanceof Error
  } catch {
    return false
  }
}

/** Causes below this depth are cut: printers recurse. */
const deepest = 32

const isTextOrAbsent = (value: unknown): boolean => value === undefined || typeof value === "string"

/** Whether everything that a printer reads of it can be read. Throws when a getter does. */
const isRead = (value: unknown, above: ReadonlyArray<object>): boolean => {
  if (!isObject(value)) return true
  if (above.length >= deepest || above.includes(value)) return false
  for (const key of Object.keys(value)) Reflect.get(value, key)
  for (const key of ["toString", "toJSON"]) {
    const print: unknown = Reflect.get(value, key)
    if (typeof print === "function") Reflect.apply(print, value, [])
  }
  const texts = ["name", "message", "stack", "_tag"].map((key): unknown => Reflect.get(value, key))
  if (value instanceof Error && !texts.every(isTextOrAbsent)) return false
  const path = [...above, value]
  const { cause, errors } = value as { readonly cause?: unknown; readonly errors?: unknown }
  return isRead(cause, path) && (!Array.isArray(errors) || errors.every(one => isRead(one, path)))
}

const isReadable = (value: unknown, above: ReadonlyArray<object>): boolean => {
  try {
    return isRead(value, above)
  } catch {
    return false
  }
}

const unreadable = "[Unreadable]"

/** An error of the same class, name, tag and text, as far as they can be read. */
const copyOf = (value: object, above: ReadonlyArray<object>): Error => {
  const text = property(value, "message")
  const message = typeof text === "string" ? text : unreadable
  const copy = new Error(message)
  const define = (key: string, field: unknown) =>
    Object.defineProperty(copy, key, { value: field, writable: true, configurable: true, enumerable: false })
  for (const key of ["name", "stack", "_tag"]) {
    const field = property(value, key)
    if (typeof field === "string") define(key, field)
  }
  const cause = property(value, "cause")
  const path = [...above, value]
  if (cause !== undefined && path.length < deepest && !(isObject(cause) && path.includes(cause))) {
    define("cause", inspectableBelow(cause, path))
  }
  if (!isError(value)) return copy
  try {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (isObject(prototype)) Object.setPrototypeOf(copy, prototype)
  } catch {
    return copy
  }
  if (!isReadable(copy, [])) Object.setPrototypeOf(copy, Error.prototype)
  return copy
}

const inspectableBelow = (value: unknown, above: ReadonlyArray<object>): unknown =>
  isReadable(value, above) || !isObject(value) ? value : copyOf(value, above)

/**
 * The value itself when everything about it can be read; else an `Error` in its place, with its class, name and message as far
 * as they can be read. Cyclic causes, and causes deeper than 32, are cut.
 */
export const inspectable = (value: unknown): unknown => inspectableBelow(value, [])

/** What a cause failed or died with, safe to look at. The only way from a cause to its failure. */
export const squash = (cause: Cause.Cause<unknown>): unknown => inspectable(Cause.squash(cause))

/**
 * Calls user code, and runs the Effect that it may return. What it throws, also while the returned value is looked at, is what
 * the Effect dies with. The only way to call a function of the user in a fiber: a fiber itself does not survive every value.
 */
export const callUser = <A, E = never, R = never>(
  call: () => A | Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    try {
      const given = call()
      return Effect.isEffect(given) ? (given as Effect.Effect<A, E, R>) : Effect.succeed(given)
    } catch (thrown) {
      return Effect.die(inspectable(thrown))
    }
  })

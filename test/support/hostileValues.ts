/** Values that fight back when they are looked at: what user code may throw, reject with, or return. */

const thrower = (): never => {
  throw new Error("looked at")
}

/** An error with a property whose getter throws. */
const errorWith = (name: string): Error =>
  Object.defineProperty(new Error("hostile"), name, { get: thrower, configurable: true, enumerable: true })

const revoked = (target: object): unknown => {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

const traps = new Proxy({}, { get: () => thrower })

const cyclic = (): Error => {
  const error = new Error("cyclic")
  return Object.assign(error, { cause: new Error("inner", { cause: error }) })
}

const deep = (): Error =>
  Array.from({ length: 20_000 }).reduce<Error>(
    (cause, _, index) => new Error(`level ${index}`, { cause }),
    new Error("root")
  )

/** Makes a fresh one of each kind. */
export const hostileValues: Readonly<Record<string, () => unknown>> = {
  "an error whose message throws": () => errorWith("message"),
  "an error whose name throws": () => errorWith("name"),
  "an error whose cause throws": () => errorWith("cause"),
  "an error whose stack throws": () => errorWith("stack"),
  "an error whose tag throws": () => errorWith("_tag"),
  "an error whose toString throws": () => Object.assign(new Error("hostile"), { toString: thrower }),
  "an error whose message is no text": () =>
    Object.assign(new Error("hostile"), { message: Symbol("m"), name: 7 }),
  "an error whose message has no text": () =>
    Object.assign(new Error("hostile"), { message: { toString: thrower } }),
  "an error with a cyclic cause": cyclic,
  "an error with endless causes": deep,
  "an error of itself among others": () => {
    const error = new AggregateError([], "many")
    error.errors.push(error)
    return error
  },
  "an object whose isError throws": () => Object.defineProperty({}, "isError", { get: thrower }),
  "an object whose fields throw": () =>
    Object.defineProperty({ toString: thrower, toJSON: thrower }, "message", {
      get: thrower,
      enumerable: true
    }),
  "an object without a prototype": () => Object.assign(Object.create(null), { a: 1 }),
  "a revoked proxy": () => revoked({}),
  "a revoked proxy of a function": () => revoked(thrower),
  "a revoked proxy of an array": () => revoked([]),
  "a proxy all of whose traps throw": () => new Proxy({}, traps),
  "a proxy of an error all of whose traps throw": () => new Proxy(new Error("hostile"), traps),
  // biome-ignore lint/suspicious/noThenProperty: that is the point.
  "a thenable whose then throws": () => Object.defineProperty({}, "then", { get: thrower }),
  // biome-ignore lint/suspicious/noThenProperty: that is the point.
  "a thenable that throws": () => ({ then: thrower }),
  "a thenable that settles twice": () => ({
    // biome-ignore lint/suspicious/noThenProperty: that is the point.
    then: (resolve: (value: unknown) => void, reject: (cause: unknown) => void) => {
      resolve("once")
      resolve("twice")
      reject(errorWith("message"))
    }
  }),
  "a thenable that rejects with a hostile error": () => ({
    // biome-ignore lint/suspicious/noThenProperty: that is the point.
    then: (_: unknown, reject: (cause: unknown) => void) => reject(errorWith("message"))
  }),
  "a symbol": () => Symbol("s"),
  "a class whose instances throw": () =>
    new (class Odd extends Error {
      override get message(): string {
        return thrower()
      }
      override get name(): string {
        return thrower()
      }
    })()
}

import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import * as Json from "../../src/protocol/Json.js"

const cycle = (): Record<string, unknown> => {
  const record: Record<string, unknown> = { n: 1 }
  record["self"] = record
  record["list"] = [record]
  return record
}

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const throwing = (message: string) => () => {
  throw new Error(message)
}

const nested = (depth: number): unknown => {
  let value: unknown = "bottom"
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { value }
  return value
}

/** Row by row the table in `Json.ts`. */
const table: ReadonlyArray<readonly [name: string, value: unknown, made: Json.JsonValue]> = [
  ["a string", "a", "a"],
  ["a number", 1.5, 1.5],
  ["a boolean", false, false],
  ["null", null, null],
  ["a bigint", 12345678901234567890n, "12345678901234567890"],
  ["NaN", Number.NaN, null],
  ["Infinity", [Infinity, -Infinity], [null, null]],
  ["undefined at the top", undefined, null],
  ["a function at the top", () => 1, null],
  ["a symbol at the top", Symbol("s"), null],
  ["what has no form, in an object", { u: undefined, f: () => 1, s: Symbol("s"), n: 1 }, { n: 1 }],
  ["what has no form, in an array", [undefined, () => 1, Symbol("s"), 1], [null, null, null, 1]],
  ["a hole in an array", Object.assign(Array(2), { 1: 1 }), [null, 1]],
  ["a date", new Date(0), "1970-01-01T00:00:00.000Z"],
  ["an invalid date", new Date(Number.NaN), null],
  ["bytes", new Uint8Array([104, 105]), "aGk="],
  ["a view on bytes", new DataView(new Uint8Array([0, 104, 105]).buffer, 1), "aGk="],
  ["an ArrayBuffer", new Uint8Array([104, 105]).buffer, "aGk="],
  ["a map of strings", new Map([["a", 1n]]), { a: "1" }],
  [
    "a map of other keys",
    new Map<unknown, unknown>([
      [1, "a"],
      ["b", 2]
    ]),
    [
      [1, "a"],
      ["b", 2]
    ]
  ],
  ["a set", new Set([1, "a", 1]), [1, "a"]],
  ["an error", new TypeError("broke", { cause: "why" }), { name: "TypeError", message: "broke" }],
  [
    "an error with fields",
    Object.assign(new Error("broke"), { stack: "x", code: 5 }),
    { name: "Error", message: "broke" }
  ],
  ["a lone surrogate", "a\ud800b\udc00", "a\ufffdb\ufffd"],
  ["a lone surrogate in a key", { "\ud800": 1 }, { "\ufffd": 1 }],
  ["a surrogate pair", "😀", "😀"],
  ["an object inside itself", cycle(), { n: 1, self: "[Circular]", list: ["[Circular]"] }],
  [
    "a getter that throws",
    {
      get a() {
        return throwing("no")()
      },
      b: 1
    },
    { a: "[Unreadable]", b: 1 }
  ],
  ["a toJSON that throws", { a: { toJSON: throwing("no") } }, { a: "[Unreadable]" }],
  ["a revoked proxy", { a: revoked(), b: 1 }, { a: "[Unreadable]", b: 1 }],
  [
    "an error whose message throws",
    [Object.defineProperty(new Error(""), "message", { get: throwing("no") })],
    ["[Unreadable]"]
  ],
  ["a toJSON", { toJSON: () => new Map([["a", 1n]]) }, { a: "1" }],
  ["a URL", new URL("https://example.com/"), "https://example.com/"],
  ["boxed values", [Object("a"), Object(1), Object(true)], ["a", 1, true]],
  [
    "a class instance",
    new (class Point {
      x = 1
      #y = 2
      get y() {
        return this.#y
      }
    })(),
    { x: 1 }
  ],
  ["an object without a prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }]
]

describe("toJson", () => {
  it.each(table)("%s", (_, value, made) => {
    expect(Json.toJson(value)).toStrictEqual(made)
  })

  it.prop(
    "stringify is total, and strict parsers read it",
    [
      FastCheck.anything({
        withBigInt: true,
        withDate: true,
        withMap: true,
        withSet: true,
        withTypedArray: true,
        withSparseArray: true,
        withNullPrototype: true,
        withBoxedValues: true,
        withObjectString: true
      })
    ],
    ([value]) => {
      const text = Json.stringify(value)
      expect(text).not.toContain("\n")
      expect(text.isWellFormed()).toBe(true)
      expect(text).not.toMatch(/\\ud[89a-f]/i)
      const once = Json.toJson(value)
      expect(JSON.stringify(JSON.parse(text))).toBe(text)
      expect(Json.toJson(once)).toStrictEqual(once)
    }
  )

  it.prop("what JSON holds comes out equal", [FastCheck.jsonValue()], ([value]) => {
    expect(Json.toJson(value)).toStrictEqual(value)
  })

  it.prop(
    "any string becomes well formed, and only lone surrogates change",
    [FastCheck.array(FastCheck.constantFrom("a", "😀", "\ud83d", "\ude00", "\ufffd", "é"))],
    ([units]) => {
      const text = units.join("")
      const made = Json.toJson(text)
      expect(made).toBe(Buffer.from(text, "utf8").toString("utf8"))
      if (text.isWellFormed()) expect(made).toBe(text)
    }
  )

  it("a key named __proto__ stays data", () => {
    const made = Json.toJson(JSON.parse('{"__proto__":{"admin":true},"a":1}'))
    expect(JSON.stringify(made)).toBe('{"__proto__":{"admin":true},"a":1}')
    expect(Object.getPrototypeOf(made)).toBe(Object.prototype)
    expect(made).not.toHaveProperty("admin")
  })

  it("nesting survives to the limit, and what lies deeper says so", () => {
    const fits = nested(Json.maxDepth)
    expect(Json.toJson(fits)).toStrictEqual(fits)
    expect(Json.stringify(nested(Json.maxDepth + 1))).toContain('"[Too deep]"')
    expect(Json.stringify(nested(Json.maxDepth + 1))).not.toContain("bottom")
  })

  it("100 000 levels do not overflow", () => {
    expect(Json.stringify(nested(100_000))).toContain('"[Too deep]"')
    const endless: { toJSON: () => unknown } = { toJSON: () => ({ ...endless }) }
    expect(Json.toJson(endless)).toBe("[Too deep]")
  })

  it("one object in many places is no cycle", () => {
    const shared = { n: 1 }
    const made = Json.toJson({
      a: shared,
      b: [shared, { c: shared }],
      many: Array.from({ length: 10_000 }, () => shared)
    })
    expect(made).toStrictEqual({
      a: { n: 1 },
      b: [{ n: 1 }, { c: { n: 1 } }],
      many: Array.from({ length: 10_000 }, () => ({ n: 1 }))
    })
  })

  it("the value itself is left alone", () => {
    const value = Object.freeze({ at: new Date(0), list: Object.freeze([1n]) })
    expect(Json.toJson(value)).toStrictEqual({ at: "1970-01-01T00:00:00.000Z", list: ["1"] })
    expect(value.list).toEqual([1n])
  })
})

describe("large values", () => {
  // Generous against a busy machine; work that grows with the square of the length takes minutes.
  const within = { timeout: 5_000 }

  it("a string of 5 MB comes out as it is", within, () => {
    const text = "é".repeat(2_500_000) + "x".repeat(2_500_000)
    expect(Json.toJson(text) === text).toBe(true)
    const broken = `${text}\ud800`
    expect(Json.toJson(broken) === `${text}\ufffd`).toBe(true)
  })

  it("5 MB of bytes go to base64 and back", within, () => {
    const bytes = new Uint8Array(5_000_001).map((_, index) => index * 31)
    const text = Json.toBase64(bytes)
    expect(text === Buffer.from(bytes).toString("base64")).toBe(true)
    expect(Buffer.compare(Json.fromBase64(text), bytes)).toBe(0)
  })
})

describe("base64", () => {
  it.prop("is the standard one, and comes back", [FastCheck.uint8Array()], ([bytes]) => {
    expect(Json.toBase64(bytes)).toBe(Buffer.from(bytes).toString("base64"))
    expect(Json.fromBase64(Json.toBase64(bytes))).toStrictEqual(bytes)
  })

  it("throws for what is none", () => {
    expect(() => Json.fromBase64("%")).toThrow(DOMException)
  })
})

describe("messageOf", () => {
  const cases: ReadonlyArray<readonly [string, unknown, string]> = [
    ["a string", "broke", "broke"],
    ["an error", new Error("broke"), "broke"],
    ["an error without a message", new TypeError(""), "TypeError"],
    ["a record with a message", { message: "broke", code: 5 }, "broke"],
    ["a tagged value", { _tag: "Broke" }, "Broke"],
    ["anything else", { code: 5n }, '{"code":"5"}'],
    ["nothing", undefined, "null"],
    ["a lone surrogate", new Error("a\ud800"), "a\ufffd"]
  ]

  it.each(cases)("%s", (_, cause, message) => {
    expect(Json.messageOf(cause)).toBe(message)
  })
})

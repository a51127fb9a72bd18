/** Partial values of a text: whatever it holds, wherever it is cut. */
import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { parse as riverParse } from "jsonriver"
import { isSame } from "../../src/output/growingValue.js"
import { PartialAnswer, type Root } from "../../src/output/partialAnswer.js"

/** What a text shows while it comes in these pieces, each snapshot as it was then. */
const watch = (pieces: ReadonlyArray<string>, root: Root = "object") => {
  const partial = new PartialAnswer(root, true)
  const seen: Array<unknown> = []
  const then: Array<string> = []
  const elements: Array<unknown> = []
  for (const piece of pieces) {
    if (partial.take(piece)) {
      seen.push(partial.value)
      then.push(JSON.stringify(partial.value))
    }
    elements.push(...partial.takeElements())
  }
  return { seen, then, elements, found: partial.end(), value: partial.value }
}

const cut = (text: string, size: number): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
    text.slice(index * size, (index + 1) * size)
  )

/** Cuts at places that need not be characters: also within an escape, a number or a pair of surrogates. */
const chunked = (text: string, places: ReadonlyArray<number>): ReadonlyArray<string> => {
  const sorted = [...new Set(places.map(place => place % (text.length + 1)))].sort((a, b) => a - b)
  return [0, ...sorted].map((from, index) => text.slice(from, sorted[index] ?? text.length))
}

const key = FastCheck.oneof(
  FastCheck.string(),
  FastCheck.constantFrom("__proto__", "a", "b", "1", "toString", "elements", "result")
)

const { value: anyValue } = FastCheck.letrec(tie => ({
  value: FastCheck.oneof(
    { depthSize: "small", withCrossShrink: true },
    FastCheck.fullUnicodeString(),
    FastCheck.string16bits(),
    FastCheck.double({ noNaN: true, noDefaultInfinity: true }),
    FastCheck.integer(),
    FastCheck.boolean(),
    FastCheck.constant(null),
    FastCheck.array(tie("value")),
    FastCheck.array(FastCheck.tuple(key, tie("value"))).map(entries => Object.fromEntries(entries))
  )
}))

const anyObject = FastCheck.array(FastCheck.tuple(key, anyValue), { maxLength: 6 }).map(entries =>
  Object.fromEntries(entries)
)

const places = FastCheck.array(FastCheck.nat(10_000), { maxLength: 60, size: "max" })

const indent = FastCheck.constantFrom(undefined, 1, "\t\n")

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Whether a value may have grown into another: strings by their end, arrays and objects by what is added. */
const grewInto = (from: unknown, to: unknown): boolean => {
  if (typeof from === "string") return typeof to === "string" && to.startsWith(from)
  if (Array.isArray(from)) {
    return Array.isArray(to) && from.every((item, index) => index < to.length && grewInto(item, to[index]))
  }
  if (isRecord(from)) {
    return (
      isRecord(to) &&
      Object.keys(from).every(name => Object.hasOwn(to, name) && grewInto(from[name], to[name]))
    )
  }
  return Object.is(from, to)
}

describe("a partial value", () => {
  it("grows, wherever the text is cut, into what JSON.parse reads", () => {
    FastCheck.assert(
      FastCheck.property(anyObject, places, indent, (object, cuts, space) => {
        const text = JSON.stringify(object, undefined, space)
        const { found, seen, then, value } = watch(chunked(text, cuts))
        const whole: unknown = JSON.parse(text)
        expect(isSame(value, whole)).toBe(true)
        expect(found).toMatchObject({ _tag: "Values" })
        // Nobody has changed what was seen.
        expect(seen.map(partial => JSON.stringify(partial))).toEqual(then)
        expect(new Set(then).size).toBe(then.length)
        for (const [index, partial] of seen.entries())
          expect(grewInto(partial, seen[index + 1] ?? whole)).toBe(true)
      }),
      { numRuns: 300 }
    )
  })

  it("changes where it does also when nobody looks", () => {
    FastCheck.assert(
      FastCheck.property(anyObject, places, (object, cuts) => {
        const seen = new PartialAnswer("object", true)
        const unseen = new PartialAnswer("object", true)
        unseen.leaveUnseen()
        for (const piece of chunked(`${JSON.stringify(object)} and more`, cuts)) {
          const hasChanged = seen.take(piece)
          expect(unseen.take(piece)).toBe(hasChanged)
          if (hasChanged) expect(isSame(unseen.value, seen.value)).toBe(true)
        }
        expect(unseen.end()).toEqual(seen.end())
      })
    )
  })

  it("is total: any text at all, in any pieces, gives an answer, and the same one", () => {
    const noise = FastCheck.array(
      FastCheck.oneof(
        FastCheck.constantFrom(...'{}[]",:\\/ntu0123.eE+-\n ', "true", "null", '{"', '":', "```", "\ud83d"),
        FastCheck.fullUnicode()
      ),
      { maxLength: 60, size: "max" }
    ).map(parts => parts.join(""))
    FastCheck.assert(
      FastCheck.property(
        noise,
        places,
        FastCheck.constantFrom<Root>("object", "elements", "result"),
        (text, cuts, root) => {
          const pieces = watch(chunked(text, cuts), root)
          const whole = watch([text], root)
          expect(pieces.found).toEqual(whole.found)
        }
      ),
      { numRuns: 1000 }
    )
  })

  it("shows what another streaming parser shows, at the end of every text", async () => {
    const text = JSON.stringify({ a: [1, -2.5e3, true, null, { b: "x\n\u{1F600}" }], c: "" })
    async function* characters() {
      yield* text
    }
    let last: unknown
    for await (const partial of riverParse(characters())) last = structuredClone(partial)
    expect(watch([...text]).value).toEqual(last)
  })

  it("shows strings as they grow, and everything else when it is certain", () => {
    const { seen } = watch([...'{"name":"Jo","age":30,"ok":true}'])
    expect(seen).toEqual([
      { name: "" },
      { name: "J" },
      { name: "Jo" },
      { name: "Jo", age: 30 },
      { name: "Jo", age: 30, ok: true }
    ])
  })

  it("never shows half of a number, of a word or of an escape", () => {
    for (const written of ["1.5e3", "-0", "1.5", "false", "null"]) {
      const { seen } = watch([...`{"n":${written}}`])
      expect(seen).toEqual([{ n: JSON.parse(written) }])
    }
    const { seen } = watch([...'{"s":"\\ud83d\\ude00\\n\\""}'])
    expect(seen).toEqual([{ s: "" }, { s: "\u{1F600}" }, { s: "\u{1F600}\n" }, { s: '\u{1F600}\n"' }])
  })

  it("takes the last of two values of one key, when that is complete", () => {
    const { seen } = watch([...'{"a":{"b":1},"a":{"b":"xy"},"a":{"b":"xy"}}'])
    expect(seen).toEqual([{ a: {} }, { a: { b: 1 } }, { a: { b: "xy" } }])
  })

  it("has keys such as __proto__ as data", () => {
    const { value } = watch([...'{"__proto__":{"x":1},"y":{"__proto__":"ab"}}'])
    expect(isSame(value, JSON.parse('{"__proto__":{"x":1},"y":{"__proto__":"ab"}}'))).toBe(true)
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(({} as { x?: unknown }).x).toBeUndefined()
  })

  it("shares what has not changed", () => {
    const { seen } = watch(['{"done":{"x":[1,2]},', '"open":"a', "b", 'c"}'])
    const done = seen.map(partial => (isRecord(partial) ? partial["done"] : undefined))
    expect(new Set(done).size).toBe(1)
    expect(new Set(seen).size).toBe(4)
  })

  it("needs no stack for depth", () => {
    const depth = 50_000
    const text = `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`
    const partial = new PartialAnswer("object", true)
    const seen = cut(text, 1_000).filter(piece => partial.take(piece))
    const { value } = partial
    let levels = 0
    let node: unknown = isRecord(value) ? value["a"] : undefined
    for (; Array.isArray(node); node = node[0]) levels++
    expect(levels).toBe(depth)
    expect(seen.length).toBeLessThan(10)
  })

  it("does work in proportion to the text", () => {
    const texts = [
      JSON.stringify(Object.fromEntries(Array.from({ length: 8_000 }, (_, index) => [`key ${index}`, "v"]))),
      JSON.stringify({ a: Array.from({ length: 20_000 }, (_, index) => index) }),
      JSON.stringify({ a: "x".repeat(200_000) }),
      "{[".repeat(60_000),
      '{"a '.repeat(40_000),
      `{"a":${"[".repeat(60_000)}x`
    ]
    for (const text of texts) {
      const partial = new PartialAnswer("object", true)
      const before = process.cpuUsage()
      for (const piece of cut(text, 10)) partial.take(piece)
      partial.end()
      const { user } = process.cpuUsage(before)
      // Microseconds, and many times what it takes: one that looked at everything again would need minutes.
      expect(user).toBeLessThan(10_000_000)
    }
  })
})

describe("a value in an answer", () => {
  const values = (text: string, root: Root = "object") => {
    const one = watch([text], root).found
    expect(watch([...text], root).found).toEqual(one)
    return one
  }

  it("is found behind prose, in fences, and before what protocols leave behind", () => {
    const found = { _tag: "Values", values: [{ a: 1 }] }
    expect(values('{"a":1}')).toEqual(found)
    expect(values('```json\n{"a":1}\n```')).toEqual(found)
    expect(values('Sure, here you are:\n\n{"a":1}\n\nAnything else?')).toEqual(found)
    expect(values('{"a":1}</tool_call>')).toEqual(found)
    expect(values('{"a":1}{"a":2}')).toEqual(found)
    expect(values('Use {braces} as {"x and {"a":1}')).toEqual(found)
    expect(values('{ "a": 1, }')).toEqual(found)
    expect(values("{}")).toEqual({ _tag: "Values", values: [{}] })
  })

  it("may be without the object that was put around it, and with it", () => {
    expect(values('{"elements":[1,2]}', "elements")).toEqual({
      _tag: "Values",
      values: [[1, 2], { elements: [1, 2] }]
    })
    expect(values("[1,2]", "elements")).toEqual({ _tag: "Values", values: [[1, 2]] })
    expect(values('[{"a":1}]', "elements")).toEqual({ _tag: "Values", values: [[{ a: 1 }]] })
    expect(values('{"items":[1,2]}', "elements")).toEqual({ _tag: "Values", values: [[1, 2]] })
    expect(values('{"result":{"a":1}}', "result")).toEqual({
      _tag: "Values",
      values: [{ a: 1 }, { result: { a: 1 } }]
    })
    expect(values('{"a":1}', "result")).toEqual({ _tag: "Values", values: [{ a: 1 }] })
  })

  it("may be bare", () => {
    for (const written of ["false", "0", '""', "null", '"red"', "```json\nfalse\n```", "false</tool_call>"]) {
      const bare = /false|0|""|null|"red"/.exec(written)?.[0] ?? ""
      expect(values(written, "result")).toEqual({ _tag: "Values", values: [JSON.parse(bare)] })
    }
    expect(values(" red\n", "result")).toEqual({ _tag: "Values", values: ["red"] })
    expect(values("[1,2,3]")).toEqual({ _tag: "Values", values: [[1, 2, 3]] })
  })

  it("may be missing, cut off or broken", () => {
    expect(values("I would rather not.")).toEqual({ _tag: "Nothing" })
    expect(values("")).toEqual({ _tag: "Nothing" })
    expect(values('{"a":1,"b":"un')).toEqual({ _tag: "CutOff" })
    expect(values('{"a" 1}')).toEqual({ _tag: "Broken", problem: 'Unexpected "1"' })
  })

  it("shows nothing of what may be prose", () => {
    expect(watch(["a {", "brace} and ", '{"a"', ':"x', '"}']).seen).toEqual([{ a: "x" }])
  })

  it("gives elements as soon as each is complete, once", () => {
    const partial = new PartialAnswer("elements", false)
    const given: Array<ReadonlyArray<unknown>> = []
    for (const piece of ['{"elements":[{"a":', "1", '},{"b":"x', '"}', ",3", "4,", '"y"', "]", "}"]) {
      partial.take(piece)
      given.push(partial.takeElements())
    }
    expect(given).toEqual([[], [], [{ a: 1 }], [{ b: "x" }], [], [34], ["y"], [], []])
  })

  it("begins anew after a reset", () => {
    const partial = new PartialAnswer("object", true)
    partial.take('{"a":1')
    partial.reset()
    expect(partial.value).toBeUndefined()
    expect(partial.take('{"a":2}')).toBe(true)
    expect(partial.value).toEqual({ a: 2 })
  })
})

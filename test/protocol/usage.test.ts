import { describe, expect, it } from "@effect/vitest"
import { FastCheck, Schema } from "effect"
import * as Usage from "../../src/protocol/Usage.js"

const fields = ["inputTokens", "outputTokens", "totalTokens", "reasoningTokens", "cachedInputTokens"] as const

/** Any set of known figures, unknown ones absent. */
const usage: FastCheck.Arbitrary<Usage.Usage> = FastCheck.record(
  {
    inputTokens: FastCheck.nat(),
    outputTokens: FastCheck.nat(),
    totalTokens: FastCheck.nat(),
    reasoningTokens: FastCheck.nat(),
    cachedInputTokens: FastCheck.nat()
  },
  { requiredKeys: [] }
)

/** What providers put into a usage field, right and wrong. */
const figure = FastCheck.oneof(
  FastCheck.nat(),
  FastCheck.double({ min: -1e12, max: 1e12 }),
  FastCheck.constantFrom<unknown>(
    undefined,
    null,
    Number.NaN,
    Infinity,
    -1,
    -0,
    1e300,
    "12",
    {},
    [3],
    2n,
    true
  )
)

const figures = FastCheck.record(
  {
    inputTokens: figure,
    outputTokens: figure,
    totalTokens: figure,
    reasoningTokens: figure,
    cachedInputTokens: figure
  },
  { requiredKeys: [] }
)

describe("combine is a monoid", () => {
  it.prop("empty is its identity", [usage], ([one]) => {
    expect(Usage.combine(one, Usage.empty)).toStrictEqual(one)
    expect(Usage.combine(Usage.empty, one)).toStrictEqual(one)
  })

  it.prop("it associates", [usage, usage, usage], ([one, two, three]) => {
    expect(Usage.combine(Usage.combine(one, two), three)).toStrictEqual(
      Usage.combine(one, Usage.combine(two, three))
    )
  })

  it.prop("it commutes", [usage, usage], ([one, two]) => {
    expect(Usage.combine(one, two)).toStrictEqual(Usage.combine(two, one))
  })

  it.prop("a field is the sum of what is known, and absent when nothing is", [usage, usage], ([one, two]) => {
    const sum = Usage.combine(one, two)
    for (const field of fields) {
      const known = [one[field], two[field]].filter(value => value !== undefined)
      expect(field in sum).toBe(known.length > 0)
      if (known.length > 0) expect(sum[field]).toBe(known.reduce((left, right) => left + right))
    }
  })
})

describe("replace", () => {
  it.prop("the last known value wins, field by field", [usage, usage], ([one, two]) => {
    const last = Usage.replace(one, two)
    for (const field of fields) {
      expect(field in last).toBe(field in one || field in two)
      expect(last[field]).toBe(two[field] ?? one[field])
    }
  })

  it("is no sum", () => {
    expect(Usage.replace({ inputTokens: 5, outputTokens: 1 }, { outputTokens: 3 })).toStrictEqual({
      inputTokens: 5,
      outputTokens: 3
    })
  })
})

describe("make", () => {
  it.prop("whatever it is given: valid figures, the unknown absent", [figures], ([loose]) => {
    const made = Usage.make(loose)
    expect(Schema.is(Usage.Usage)(made)).toBe(true)
    for (const field of fields) {
      const given = field in loose ? loose[field] : undefined
      const known = typeof given === "number" && given >= 0 && given < 2 ** 53
      if (known) expect(made[field]).toBe(Math.abs(Math.round(given)))
      else if (field !== "totalTokens") expect(field in made).toBe(false)
    }
    expect(Object.values(made).every(value => Number.isSafeInteger(value) && !Object.is(value, -0))).toBe(
      true
    )
  })

  it("nothing known is empty: neither 0 nor NaN", () => {
    const unknown = {
      inputTokens: Number.NaN,
      outputTokens: undefined,
      totalTokens: null,
      reasoningTokens: "7"
    }
    expect(Usage.make(unknown)).toStrictEqual({})
    expect(Usage.combine(Usage.make({}), Usage.make(unknown))).toStrictEqual({})
  })

  it("a zero that is known stays", () => {
    expect(Usage.make({ inputTokens: 0, cachedInputTokens: 0 })).toStrictEqual({
      inputTokens: 0,
      cachedInputTokens: 0
    })
  })

  it("a missing total is input plus output, when both are known; a given one stays", () => {
    expect(Usage.make({ inputTokens: 2, outputTokens: 3, reasoningTokens: 1 })).toStrictEqual({
      inputTokens: 2,
      outputTokens: 3,
      totalTokens: 5,
      reasoningTokens: 1
    })
    expect(Usage.make({ inputTokens: 2 })).toStrictEqual({ inputTokens: 2 })
    expect(Usage.make({ inputTokens: 2, outputTokens: 3, totalTokens: 9 }).totalTokens).toBe(9)
  })

  it("fractions are rounded", () => {
    expect(Usage.make({ inputTokens: 1.6, outputTokens: 0.4 })).toStrictEqual({
      inputTokens: 2,
      outputTokens: 0,
      totalTokens: 2
    })
  })
})

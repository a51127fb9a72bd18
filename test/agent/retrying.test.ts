/** Which call comes after one that failed: the rule by itself, as a table and as a property. */
import { describe, expect, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import {
  type Attempt,
  type CallFailure,
  longestWait,
  type ModelChoice,
  type Next,
  nextAttempt
} from "../../src/agent/loop/retrying.js"
import { InvalidConfiguration, ModelError } from "../../src/protocol/Errors.js"
import { modelOf } from "./kit.js"

const { model } = modelOf([])

const choices = (...retries: ReadonlyArray<number>): ReadonlyArray<ModelChoice> =>
  retries.map(maxRetries => ({ model, maxRetries }))

type Fields = Partial<ConstructorParameters<typeof ModelError>[0]>

const failure = (fields: Fields = {}): ModelError =>
  new ModelError({ reason: "request", provider: "kit", modelId: "kit-1", message: "no", ...fields })

const first: Attempt = { modelIndex: 0, retry: 0 }

/** The middle of the random part: the wait as it is written down. */
const even = 0.5

describe("whether a failure is one that may pass", () => {
  const failures: ReadonlyArray<readonly [what: string, failure: CallFailure, mayPass: boolean]> = [
    ["status 408", failure({ statusCode: 408 }), true],
    ["status 409", failure({ statusCode: 409 }), true],
    ["status 429", failure({ statusCode: 429 }), true],
    ["status 500", failure({ statusCode: 500 }), true],
    ["status 503", failure({ statusCode: 503 }), true],
    ["status 529", failure({ statusCode: 529 }), true],
    ["status 400", failure({ statusCode: 400 }), false],
    ["status 401", failure({ statusCode: 401 }), false],
    ["status 404", failure({ statusCode: 404 }), false],
    ["status 407", failure({ statusCode: 407 }), false],
    ["status 422", failure({ statusCode: 422 }), false],
    ["status 499", failure({ statusCode: 499 }), false],
    ["status 200, an answer that is none", failure({ statusCode: 200 }), false],
    ["the provider's yes", failure({ isRetryable: true }), true],
    ["the provider's no", failure({ isRetryable: false }), false],
    ["the provider's yes before status 400", failure({ statusCode: 400, isRetryable: true }), true],
    ["the provider's no before status 503", failure({ statusCode: 503, isRetryable: false }), false],
    [
      "the provider's no before an answer cut off",
      failure({ reason: "incomplete", isRetryable: false }),
      false
    ],
    ["a status before an answer cut off", failure({ reason: "incomplete", statusCode: 400 }), false],
    ["an answer cut off", failure({ reason: "incomplete" }), true],
    ["silence", failure({ reason: "timeout" }), true],
    ["an error in the answer that says no more", failure({ reason: "stream" }), false],
    ["a refusal that says no more", failure({ reason: "request" }), false],
    ["a wrong setting", new InvalidConfiguration({ field: "model", message: "no package" }), false]
  ]

  it.each(failures)("%s", (_, failed, mayPass) => {
    const again: Next = { modelIndex: 0, retry: 1, delay: 1000 }
    expect(nextAttempt(choices(2), first, failed, even)).toStrictEqual(mayPass ? again : undefined)
    // What does not pass is for the next model, at once.
    const other: Next = { modelIndex: 1, retry: 0, delay: 0 }
    expect(nextAttempt(choices(2, 2), first, failed, even)).toStrictEqual(mayPass ? again : other)
  })
})

describe("how long it waits", () => {
  const waits: ReadonlyArray<
    readonly [retry: number, random: number, retryAfter: number | undefined, delay: number]
  > = [
    [0, 0.5, undefined, 1000],
    [1, 0.5, undefined, 2000],
    [2, 0.5, undefined, 4000],
    [3, 0.5, undefined, 8000],
    [4, 0.5, undefined, 16_000],
    [5, 0.5, undefined, 30_000],
    [40, 0.5, undefined, 30_000],
    [0, 0, undefined, 800],
    [1, 0, undefined, 1600],
    [0, 0.999999, undefined, 1200],
    [2, 0.999999, undefined, 4800],
    [0, 0.5, 0, 1000],
    [0, 0.5, 999, 1000],
    [0, 0.5, 1001, 1001],
    [2, 0.5, 3000, 4000],
    [0, 0.5, 60_000, 60_000]
  ]

  it.each(waits)("retry %i, random %d, Retry-After %s: %i ms", (retry, random, retryAfter, delay) => {
    const next = nextAttempt(
      choices(99),
      { modelIndex: 0, retry },
      failure({ statusCode: 503, retryAfter }),
      random
    )
    expect(next).toMatchObject({ modelIndex: 0, retry: retry + 1 })
    expect(next?.delay).toBeCloseTo(delay, 1)
  })

  it.each([60_001, 3_600_000, Number.POSITIVE_INFINITY])(
    "not at all for a provider that asks for %d ms: the next model, or none",
    retryAfter => {
      const busy = failure({ statusCode: 429, retryAfter })
      expect(nextAttempt(choices(5), first, busy, even)).toBeUndefined()
      expect(nextAttempt(choices(5, 0), first, busy, even)).toStrictEqual({
        modelIndex: 1,
        retry: 0,
        delay: 0
      })
    }
  )
})

describe("how often", () => {
  const busy = failure({ statusCode: 503 })

  it("as often as the entry says, then the next model begins at nothing", () => {
    const models = choices(1, 0, 2)
    const walked: Array<Attempt> = []
    let next: Attempt | undefined = first
    while (next !== undefined) {
      walked.push({ modelIndex: next.modelIndex, retry: next.retry })
      next = nextAttempt(models, next, busy, even)
    }
    expect(walked.map(({ modelIndex, retry }) => [modelIndex, retry])).toStrictEqual([
      [0, 0],
      [0, 1],
      [1, 0],
      [2, 0],
      [2, 1],
      [2, 2]
    ])
  })

  const failures = fc
    .record(
      {
        reason: fc.constantFrom<ModelError["reason"]>("request", "stream", "incomplete", "timeout"),
        statusCode: fc.integer({ min: 100, max: 599 }),
        isRetryable: fc.boolean(),
        retryAfter: fc.oneof(fc.nat(200_000), fc.constant(Number.POSITIVE_INFINITY))
      },
      { requiredKeys: ["reason"] }
    )
    .map(fields => failure(fields))
  const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

  it("ends, whatever fails how: never more calls than the entries allow, each later than the one before", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(4), { minLength: 1, maxLength: 4 }),
        fc.array(fc.tuple(failures, randoms), { minLength: 40, maxLength: 40 }),
        (retries, happening) => {
          const models = choices(...retries)
          let at: Attempt = first
          let calls = 1
          for (const [failed, random] of happening) {
            const next = nextAttempt(models, at, failed, random)
            if (next === undefined) {
              expect(at.modelIndex).toBe(models.length - 1)
              break
            }
            calls++
            const isSame = next.modelIndex === at.modelIndex
            expect(next.modelIndex - at.modelIndex).toBe(isSame ? 0 : 1)
            expect(next.retry).toBe(isSame ? at.retry + 1 : 0)
            expect(next.retry).toBeLessThanOrEqual(retries[next.modelIndex] ?? -1)
            const written = Math.min(1000 * 2 ** at.retry, 30_000)
            const asked = failed.retryAfter ?? 0
            if (isSame) {
              expect(failed.isRetryable).not.toBe(false)
              expect(next.delay).toBeGreaterThanOrEqual(Math.max(asked, 0.8 * written))
              expect(next.delay).toBeLessThanOrEqual(Math.max(asked, 1.2 * written))
              expect(next.delay).toBeLessThanOrEqual(longestWait)
            } else {
              expect(next.delay).toBe(0)
            }
            at = next
          }
          expect(calls).toBeLessThanOrEqual(retries.reduce((sum, count) => sum + count + 1, 0))
        }
      )
    )
  })
})

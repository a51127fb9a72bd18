/** Usage as a monoid: the plain functions behind `Usage`. Needs no schemas. */

/** Tokens; what is not known is absent. */
export interface Usage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly totalTokens?: number
  readonly reasoningTokens?: number
  readonly cachedInputTokens?: number
}

/** Nothing is known. The identity of {@link combine}. @since 0.1.0 @category constructors */
export const empty: Usage = {}

const fields = ["inputTokens", "outputTokens", "totalTokens", "reasoningTokens", "cachedInputTokens"] as const

type Mutable = { -readonly [Key in keyof Usage]?: number }

const isCount = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER

/**
 * Reads loose figures: what is no non-negative number, or is beyond exact integers, is left out, fractions are rounded. A total that the
 * provider did not give is input plus output when both are known (reasoning is part of output already).
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (figures: { readonly [Key in keyof Usage]?: unknown }): Usage => {
  const usage: Mutable = {}
  for (const field of fields) {
    const value = figures[field]
    // `abs` for -0, which is a count of 0.
    if (isCount(value)) usage[field] = Math.abs(Math.round(value))
  }
  if (
    usage.totalTokens === undefined &&
    usage.inputTokens !== undefined &&
    usage.outputTokens !== undefined
  ) {
    usage.totalTokens = usage.inputTokens + usage.outputTokens
  }
  return usage
}

/** Field by field: the sum where both are known, the known one otherwise. @since 0.1.0 @category combining */
export const combine = (self: Usage, that: Usage): Usage =>
  mergeWith(self, that, (left, right) => left + right)

/** Later figures of one answer replace earlier ones: the last value wins inside a response. @since 0.1.0 @category combining */
export const replace = (self: Usage, that: Usage): Usage => mergeWith(self, that, (_, right) => right)

const mergeWith = (self: Usage, that: Usage, both: (left: number, right: number) => number): Usage => {
  const merged: Mutable = {}
  for (const field of fields) {
    const left = self[field]
    const right = that[field]
    const value = left === undefined ? right : right === undefined ? left : both(left, right)
    if (value !== undefined) merged[field] = value
  }
  return merged
}

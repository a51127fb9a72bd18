/**
 * Tokens that a run used. A monoid: {@link empty} and {@link combine}. Unknown is absent, never 0 and never NaN
 * (invariant 8).
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

export { combine, empty, make, replace } from "./tokens.js"

const Count = Schema.optionalWith(Schema.NonNegativeInt, { exact: true })

/**
 * Schema of {@link Usage}. All figures are tokens. `reasoningTokens` are part of `outputTokens`, `cachedInputTokens` are
 * part of `inputTokens`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Usage = Schema.Struct({
  inputTokens: Count,
  outputTokens: Count,
  totalTokens: Count,
  reasoningTokens: Count,
  cachedInputTokens: Count
}).annotations({ identifier: "Usage" })

/** @since 0.1.0 @category models */
export type Usage = typeof Usage.Type

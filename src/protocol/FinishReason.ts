/**
 * Why an answer or a run ended.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"

/**
 * Why one model answer ended, normalised over providers; the provider's own word is kept beside it as `rawReason`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const AnswerReason = Schema.Literal("stop", "length", "content-filter", "tool-calls", "error", "other")

/** @since 0.1.0 @category models */
export type AnswerReason = typeof AnswerReason.Type

/**
 * Why a run or a step ended. `tool-calls` on a run's `finish` means that a step limit, a stop condition or a tool of the
 * client's ended it while the model still wanted to go on.
 *
 * @since 0.1.0
 * @category schemas
 */
export const FinishReason = Schema.Literal(
  "stop",
  "length",
  "content-filter",
  "tool-calls",
  "error",
  "aborted",
  "tripwire",
  "suspended",
  "other"
).annotations({ identifier: "FinishReason" })

/** @since 0.1.0 @category models */
export type FinishReason = typeof FinishReason.Type

/** A known reason, or `other`. `unknown` and `undefined` of older specifications are `other`. @since 0.1.0 @category conversions */
export const answerReason = (word: unknown): AnswerReason => (Schema.is(AnswerReason)(word) ? word : "other")

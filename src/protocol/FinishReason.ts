/**
 * Why an answer or a run ended.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { answerReasons, finishReasons } from "./reasons.js"

export { answerReason } from "./reasons.js"

/**
 * Why one model answer ended, normalised over providers; the provider's own word is kept beside it as `rawReason`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const AnswerReason = Schema.Literal(...answerReasons)

/** @since 0.1.0 @category models */
export type AnswerReason = typeof AnswerReason.Type

/**
 * Why a run or a step ended. `tool-calls` on a run's `finish` means that a step limit, a stop condition or a tool of the
 * client's ended it while the model still wanted to go on.
 *
 * @since 0.1.0
 * @category schemas
 */
export const FinishReason = Schema.Literal(...finishReasons).annotations({ identifier: "FinishReason" })

/** @since 0.1.0 @category models */
export type FinishReason = typeof FinishReason.Type

/** Why answers and runs end: the words behind `FinishReason`. Needs no schemas. */

/** Why one model answer ended. */
export const answerReasons = ["stop", "length", "content-filter", "tool-calls", "error", "other"] as const

/** Why a run or a step ended. */
export const finishReasons = [...answerReasons, "aborted", "tripwire", "suspended"] as const

export type AnswerReason = (typeof answerReasons)[number]

/** A known reason, or `other`. `unknown` and `undefined` of older specifications are `other`. @since 0.1.0 @category conversions */
export const answerReason = (word: unknown): AnswerReason =>
  answerReasons.find(known => known === word) ?? "other"

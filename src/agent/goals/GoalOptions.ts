/**
 * How the answers of an agent are judged by the objective of their thread.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { Message } from "../../protocol/Message.js"
import type { RequestContext } from "../../tool/ToolContext.js"
import type { Models } from "../RunOptions.js"

/** An answer that is judged, and what it is judged by. @since 0.1.0 @category models */
export interface Candidate {
  /** What is to be reached. */
  readonly objective: string
  /** The number of this evaluation of the objective, from 1. */
  readonly iteration: number
  readonly maxRuns: number
  /** What the model has said last. */
  readonly text: string
  /** The conversation as the model knows it, its answer included. */
  readonly messages: ReadonlyArray<Message>
  readonly threadId: string
  readonly resourceId: string
  readonly runId: string
  readonly requestContext: RequestContext
}

/** What is thought of an answer. @since 0.1.0 @category models */
export interface Verdict {
  /** Whether the objective is reached. */
  readonly passed: boolean
  /** From 0 to 1. Default: 1 when it has passed, 0 otherwise. */
  readonly score?: number | undefined
  /** Why; told to the model of the agent when it is to go on. */
  readonly reason?: string | undefined
}

/**
 * Judges an answer without a model. `true` or a score of 1 passes. One that throws, fails or dies, or gives none of these,
 * pauses the objective.
 *
 * @since 0.1.0
 * @category models
 */
export type Scorer = (
  candidate: Candidate
) => Verdict | boolean | number | Effect.Effect<Verdict | boolean | number, unknown>

/**
 * How answers are judged. Without a judge and a scorer they are not: objectives are kept, and nothing else happens. With both an
 * answer has to pass both: the scorer is asked first, and the judge only about answers that the scorer has passed.
 *
 * @since 0.1.0
 * @category models
 */
export interface GoalOptions {
  /**
   * The model that judges, or several to fall back on. Its calls are made again as those of the agent are, also when it gives no
   * verdict; what it uses counts into the run.
   */
  readonly judge?: Models
  /** Evaluations that an objective has, when it is set without a number of its own. Default 50. */
  readonly maxRuns?: number
  /** What the judge is told beside the objective: what counts, and what does not. */
  readonly prompt?: string
  /** Judges without a model, instead of the judge or before it. */
  readonly scorer?: Scorer
  /** How long one evaluation may take, retries included; a number is milliseconds. Then the objective is paused. Default: no limit. */
  readonly timeout?: Duration.DurationInput
}

/**
 * What one run of an agent may be told.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type { ModelSettings, ToolChoice } from "../model/ModelPort.js"
import type { Step } from "../output/FullOutput.js"
import type { ProviderMetadata } from "../protocol/safeJson.js"
import type * as Tool from "../tool/Tool.js"

/**
 * Decides after a step that wants to go on whether the run stops there. It sees the finished steps, the last one included.
 * One that throws or dies fails the run with `InvalidConfiguration`.
 *
 * @since 0.1.0
 * @category models
 */
export type StopCondition = (state: {
  readonly steps: ReadonlyArray<Step>
}) => boolean | Effect.Effect<boolean>

/** Settings of an agent that one run may change. @since 0.1.0 @category models */
export interface Defaults {
  /** Model calls at most. Default 5. */
  readonly maxSteps?: number
  /** Stops the run when any of them says so; `maxSteps` holds beside it. */
  readonly stopWhen?: StopCondition | ReadonlyArray<StopCondition>
  /** Tools of one step that run at once; the others wait in call order. Default 10. */
  readonly toolCallConcurrency?: number
  /** Default: the model's own, which is `auto`. */
  readonly toolChoice?: ToolChoice
  readonly modelSettings?: ModelSettings
  /** By provider name, for what only that provider knows. */
  readonly providerOptions?: ProviderMetadata
  /** Whether the provider's own data comes as `raw` chunks. Default false. */
  readonly includeRawChunks?: boolean
  /**
   * Whether `step-start` carries the request body as the provider sent it. Default false: it holds the whole prompt, so
   * that a stream with it grows with the square of its steps, and whoever reads the stream reads the instructions.
   */
  readonly includeRequestBody?: boolean
}

/** Options of one run. What is given here wins over the agent's own. @since 0.1.0 @category models */
export interface RunOptions<Tools extends ReadonlyArray<Tool.Any> = ReadonlyArray<Tool.Tool>>
  extends Defaults {
  /** Tools of this run beside the agent's; one of the same name takes the agent's place. */
  readonly tools?: Tools
  /** Replaces the agent's instructions. */
  readonly instructions?: string
  /** Default: a fresh id. */
  readonly runId?: string
  /** Stops the run: provider and tools within 50 ms, then `abort` and `finish`. */
  readonly abortSignal?: AbortSignal
}

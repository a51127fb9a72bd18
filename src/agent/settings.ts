/** The settings of a run, as the loop reads them. */
import type { Defaults, StopCondition } from "./RunOptions.js"

/** Time limits in milliseconds. */
export interface Limits {
  readonly firstContent: number | undefined
  readonly betweenChunks: number | undefined
  readonly step: number | undefined
  readonly run: number | undefined
}

/** The settings of a run, with every default filled in. */
export interface Settings
  extends Omit<
    Defaults,
    "stopWhen" | "maxSteps" | "toolCallConcurrency" | "maxRetries" | "maxDepth" | "timeouts"
  > {
  readonly maxSteps: number
  readonly toolCallConcurrency: number
  readonly maxRetries: number
  readonly maxDepth: number
  readonly stopWhen: ReadonlyArray<StopCondition>
  readonly limits: Limits
}

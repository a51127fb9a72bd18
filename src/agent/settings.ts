/** The settings of a run, as the loop reads them. */
import type { Defaults, StopCondition } from "./RunOptions.js"

/** Time limits in milliseconds. */
export interface Limits {
  readonly firstContent: number | undefined
  readonly betweenChunks: number | undefined
  readonly step: number | undefined
  readonly run: number | undefined
}

/** How an until-idle stream waits. */
export interface Idle {
  readonly maxIdleMs: number
  readonly batch: "ready" | "all"
}

/** The settings of a run, with every default filled in. */
export interface Settings
  extends Omit<
    Defaults,
    | "stopWhen"
    | "maxSteps"
    | "toolCallConcurrency"
    | "maxRetries"
    | "maxProcessorRetries"
    | "maxDepth"
    | "timeouts"
    | "untilIdle"
  > {
  readonly maxSteps: number
  readonly toolCallConcurrency: number
  readonly maxRetries: number
  readonly maxProcessorRetries: number
  readonly maxDepth: number
  readonly stopWhen: ReadonlyArray<StopCondition>
  readonly limits: Limits
}

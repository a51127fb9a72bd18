/** How a task is run: a tool of an agent, as the manager sees it. */
import * as Effect from "effect/Effect"
import type * as FiberRefs from "effect/FiberRefs"
import type { InvalidResumeData } from "../protocol/Errors.js"
import type { ToolResultOutput } from "../protocol/Message.js"
import type { Task } from "../protocol/Task.js"
import type { TaskCallbacks } from "../tool/background.js"

/** What an execution knows of its task. @since 0.1.0 @category models */
export interface TaskContext {
  readonly task: Task
  /** What it was resumed with; `undefined` in a first run. */
  readonly resumeData: unknown
  /** What it had suspended with when it was resumed, if that is known here. */
  readonly suspendData: unknown
  /** Fires when the attempt takes too long, or the task is cancelled. */
  readonly signal: () => AbortSignal
  /** Lays the task aside; does not come back. */
  readonly suspend: (data: unknown) => Effect.Effect<never>
  /** Tells something to whoever listens. Does nothing after the attempt has ended. */
  readonly write: (output: unknown) => void
}

/** What an execution came to, and what the model is told of it when that is something else. @since 0.1.0 @category models */
export interface Executed {
  readonly value: unknown
  readonly told?: ToolResultOutput | undefined
}

/** Runs the tasks of one tool of one agent. */
export interface Executor {
  readonly execute: (context: TaskContext) => Effect.Effect<Executed, unknown>
  /** Checks and reads what a task is resumed with. */
  readonly readResumeData: (data: unknown, suspendData?: unknown) => Effect.Effect<unknown, InvalidResumeData>
  /** Of the tool, then of the agent. */
  readonly callbacks: ReadonlyArray<TaskCallbacks>
  /** Tasks of the agent that run at once; `undefined`: the manager says it. */
  readonly concurrency: number | undefined
  /** Those of the call, which attempts and callbacks inherit; absent where nothing is left of the run that made it. */
  readonly fiberRefs?: FiberRefs.FiberRefs | undefined
}

/** Gives the fiber that runs this the `FiberRef`s of the call. */
export const inheritCall = ({ fiberRefs }: Executor): Effect.Effect<void> =>
  fiberRefs === undefined ? Effect.void : Effect.inheritFiberRefs(fiberRefs)

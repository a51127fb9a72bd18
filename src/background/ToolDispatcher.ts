/**
 * Where the calls of a run run. By itself: here, in the run. A manager of background tasks provides another one, so that the
 * loop of an agent knows of tasks no more than this.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { StorageError, TaskRejected } from "../protocol/Errors.js"
import type { Task } from "../protocol/Task.js"
import type { AnswerListener, IdleThread } from "./answerListeners.js"
import type { Executor } from "./Executor.js"
import { isEligible, type Override, type Resolution, resolve, type ToolFacts } from "./resolution.js"
import type { AgentSettings } from "./settings.js"
import type { Dispatched, ManagerService, NewTask } from "./TaskManager.js"

/** Where the calls of one agent's run run. */
export interface RunDispatcher {
  /** Whether calls of the tool may run in the background. */
  readonly isEligible: (tool: ToolFacts) => boolean
  /** Where a call runs, and by which limits. */
  readonly resolve: (tool: ToolFacts, override: Override) => Resolution
  /** Dispatches a call. `undefined`: there is no slot, and it is to run in the foreground. */
  readonly dispatch: (
    task: NewTask,
    executor: Executor
  ) => Effect.Effect<Dispatched | undefined, TaskRejected | StorageError>
  /** Says who runs the agent's tools, also for tasks that are left from before. */
  readonly register: (executors: ReadonlyMap<string, Executor>) => Effect.Effect<void>
  /** Calls back at once with every task that something happens to. Returns how to end that. */
  readonly listen: (listener: (task: Task) => void) => () => void
  /** Whether a task that this run has called waits for a slot, runs or is suspended, also one of an earlier process. */
  readonly hasOpenTasks: (runId: string) => Effect.Effect<boolean, StorageError>
  /** Until-idle streams of a thread, which hear of outcomes that a model has answered. */
  readonly answerListeners: (thread: IdleThread) => ReadonlyArray<AnswerListener>
  /** Milliseconds between two reports about running tasks. */
  readonly progressIntervalMs: number
}

/** Gives each run its dispatcher; `undefined`: everything runs in the foreground. */
export class ToolDispatcher extends Context.Reference<ToolDispatcher>()("eddy/ToolDispatcher", {
  defaultValue: (): {
    readonly open: (agentId: string, settings: AgentSettings | undefined) => RunDispatcher | undefined
  } => ({ open: () => undefined })
}) {}

const openStatuses = ["pending", "running", "suspended"] as const

/** The dispatcher of a manager. */
export const of = (manager: ManagerService): ToolDispatcher["Type"] => ({
  open: (agentId, settings) =>
    manager.settings.enabled
      ? {
          isEligible: tool => isEligible(settings, tool),
          resolve: (tool, override) => resolve(settings, tool, override, manager.settings),
          dispatch: manager.dispatch,
          register: executors => manager.register(agentId, executors),
          listen: listener => manager.listen(({ task }) => listener(task)),
          hasOpenTasks: runId =>
            Effect.map(manager.list({ runId, status: openStatuses }), ({ tasks }) => tasks.length > 0),
          answerListeners: manager.answerListeners.of,
          progressIntervalMs: manager.settings.progressIntervalMs
        }
      : undefined
})

/** The manager of background tasks, as agents and both faces see it. What it is made of is loaded by whoever makes one. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { StorageError, TaskNotFound, TaskRejected } from "../protocol/Errors.js"
import type { ToolResultPart } from "../protocol/Message.js"
import type { Task } from "../protocol/Task.js"
import type * as TaskStore from "../storage/TaskStore.js"
import type { AnswerListeners } from "./answerListeners.js"
import type * as Deciding from "./deciding.js"
import type { Executor } from "./Executor.js"
import type { Happening, Hearing, Take, TaskFilter } from "./hub.js"
import type { Settings } from "./settings.js"

/** A call that is to run in the background. */
export type NewTask = Pick<
  Task,
  | "toolName"
  | "toolCallId"
  | "args"
  | "agentId"
  | "threadId"
  | "resourceId"
  | "runId"
  | "maxRetries"
  | "timeoutMs"
>

/** A task that was dispatched, for the run that did it. */
export interface Dispatched {
  readonly taskId: string
  /** The task as it is now. */
  readonly task: () => Task
  /** What the conversation is to hold in place of the acknowledgement, once the task has settled. */
  readonly outcome: () => ToolResultPart | undefined
  /** Calls back when it settles; at once when it has. Returns how to forget it. */
  readonly onSettled: (listener: () => void) => () => void
  /** The acknowledgement is in the thread. Done when the outcome has taken its place, if there is one. */
  readonly stored: Effect.Effect<void>
  /** The run is over and has not stored it. */
  readonly lost: Effect.Effect<void>
}

/** Tasks that are on their way in this process, and what happens next. */
interface Watch {
  /** Pending and running ones that match, at the moment from which on `take` tells. */
  readonly active: ReadonlyArray<Task>
  /** Waits for it. Is interrupted when the manager ends. */
  readonly take: Take
  /** The same; `undefined` when the manager has ended. */
  readonly next: Hearing<unknown>["next"]
}

/** What a manager does for agents and both faces. */
export interface ManagerService {
  readonly settings: Settings
  /**
   * Dispatches a call: when this is done, the task is stored. `undefined`: there is no slot, and the call is to run in the
   * foreground.
   */
  readonly dispatch: (
    task: NewTask,
    executor: Executor
  ) => Effect.Effect<Dispatched | undefined, TaskRejected | StorageError>
  /** Says who runs the tools of an agent, also those of tasks that another process left behind. */
  readonly register: (agentId: string, executors: ReadonlyMap<string, Executor>) => Effect.Effect<void>
  /** The same for one task. */
  readonly registerTaskContext: (taskId: string, executor: Executor) => Effect.Effect<void>
  readonly watch: (filter: TaskFilter) => Effect.Effect<Watch, never, Scope.Scope>
  readonly get: (id: string) => Effect.Effect<Option.Option<Task>, StorageError>
  readonly list: (options?: TaskStore.ListOptions) => Effect.Effect<TaskStore.TaskPage, StorageError>
  readonly resume: (id: string, data?: unknown) => Effect.Effect<Task, Deciding.ResumeError>
  readonly cancel: (id: string) => Effect.Effect<Task, Deciding.CancelError>
  readonly settled: (id: string) => Effect.Effect<Task, TaskNotFound | StorageError>
  readonly cleanUp: Effect.Effect<number, StorageError>
  readonly shutdown: Effect.Effect<void>
  /** Until-idle streams by what they are about: the one that came last has it. */
  readonly idleScopes: Map<string, () => void>
  /** Until-idle streams by their thread, for runs that answer outcomes beside them. */
  readonly answerListeners: AnswerListeners
  /** Tasks of this process that are pending, running, or settled and not told yet, and that are wanted. */
  readonly active: (isWanted: (task: Task) => boolean) => ReadonlyArray<Task>
  /** Calls back at once with everything that happens to tasks. It must be quick, and must not throw. Returns how to end that. */
  readonly listen: (listener: (happening: Happening) => void) => () => void
  /** Calls back when nothing begins any more; at once when that is so. Returns how to forget it. */
  readonly onClosing: (listener: () => void) => () => void
}

/** The manager, where there is one. */
export class TaskManager extends Context.Tag("eddy/TaskManager")<TaskManager, ManagerService>() {}

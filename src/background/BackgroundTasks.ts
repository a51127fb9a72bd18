/**
 * Background tasks: calls of tools that run on while the conversation does. Provide {@link layer}, and agents dispatch the
 * calls of tools that are enabled for it; this service is for everybody else: to watch tasks, to find, resume and cancel them.
 *
 * Tasks belong to the process that runs them as long as it lives; what happens to them is told in that process. They are
 * stored before they are announced, so that another process goes on with what one has left.
 *
 * @since 0.1.0
 */
import * as Batch from "effect/Chunk"
import * as Config from "effect/Config"
import type { ConfigError } from "effect/ConfigError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import {
  InvalidConfiguration,
  type InvalidResumeData,
  type InvalidTaskState,
  type StorageError,
  type TaskExecutorNotFound,
  type TaskNotFound,
  type TaskReaderTooSlow
} from "../protocol/Errors.js"
import type { Task } from "../protocol/Task.js"
import type { ListOptions, TaskPage, TaskStore } from "../storage/TaskStore.js"
import type { ThreadStore } from "../storage/ThreadStore.js"
import type { Executed, TaskContext } from "./Executor.js"
import type { TaskChunk, TaskFilter } from "./hub.js"
import * as Manager from "./manager.js"
import { type Options, settingsOf } from "./settings.js"
import * as TaskManager from "./TaskManager.js"
import * as ToolDispatcher from "./ToolDispatcher.js"
import { runningChunk } from "./taskChunks.js"

export type { Executed, TaskContext } from "./Executor.js"
export { capacity, type TaskChunk, type TaskFilter } from "./hub.js"
export type {
  AgentOptions,
  AgentToolOptions,
  Backpressure,
  CleanupOptions,
  Options,
  RetryOptions,
  ShutdownOptions
} from "./settings.js"

/** Who runs a task that no agent of this process does. @since 0.1.0 @category models */
export interface TaskExecution {
  /** Does it, from the start, with what it was resumed with. Gives the result. */
  readonly executor: (context: TaskContext) => Effect.Effect<unknown, unknown>
}

/**
 * The tasks of this process, and those in the store.
 *
 * @since 0.1.0
 * @category services
 */
export class BackgroundTasks extends Context.Tag("eddy/BackgroundTasks")<
  BackgroundTasks,
  {
    /**
     * What happens to tasks that match the filter: first one `background-task-running` for each that runs now, then everything
     * as it happens, in this process. Fails with `TaskReaderTooSlow` when its reader is more than {@link capacity} events
     * behind: no task waits for a reader. It ends with the manager; whoever interrupts it leaves nothing behind.
     */
    readonly stream: (filter?: TaskFilter) => Stream.Stream<TaskChunk, TaskReaderTooSlow>
    /** The task as it is stored. */
    readonly get: (id: string) => Effect.Effect<Option.Option<Task>, StorageError>
    /** Tasks as they are stored, in pages, those of other processes too. */
    readonly list: (options?: ListOptions) => Effect.Effect<TaskPage, StorageError>
    /**
     * Resumes a suspended task: its tool is executed again from the start, with `data` as `resumeData`. It waits in the queue
     * when there is no slot. Gives the task as it is then. Data that does not match the tool's `resume` schema, and a task
     * that nobody here can run, leave it suspended.
     */
    readonly resume: (
      id: string,
      data?: unknown
    ) => Effect.Effect<
      Task,
      TaskNotFound | InvalidTaskState | TaskExecutorNotFound | InvalidResumeData | StorageError
    >
    /**
     * Cancels a task that is pending, running or suspended, wherever it is. Its tool is interrupted and its slot is free at
     * once; what it comes to afterwards is dropped. In another process it is stopped when that looks at its tasks next.
     */
    readonly cancel: (id: string) => Effect.Effect<Task, TaskNotFound | InvalidTaskState | StorageError>
    /** Waits until the task has settled. Interrupting it changes nothing. */
    readonly await: (id: string) => Effect.Effect<Task, TaskNotFound | StorageError>
    /** Says who runs one task, for a tool that no agent of this process has. Replaces what was said before. */
    readonly registerTaskContext: (taskId: string, execution: TaskExecution) => Effect.Effect<void>
    /** Deletes what settled long ago, now. How many tasks. */
    readonly cleanup: Effect.Effect<number, StorageError>
    /**
     * Ends the manager: nothing begins any more, running tasks get their grace period, the rest is left to the next process.
     * The layer does so when its scope closes.
     */
    readonly shutdown: Effect.Effect<void>
  }
>() {}

const streamOf = (
  manager: TaskManager.ManagerService,
  filter: TaskFilter
): Stream.Stream<TaskChunk, TaskReaderTooSlow> =>
  Stream.unwrapScoped(
    Effect.map(manager.watch(filter), ({ active, next }) => {
      const running = active.filter(({ status }) => status === "running").map(runningChunk)
      const live = Stream.repeatEffectChunkOption(
        Effect.matchEffect(next, {
          onFailure: error => Effect.fail(Option.some(error)),
          onSuccess: happenings =>
            happenings === undefined
              ? Effect.fail(Option.none())
              : Effect.succeed(Batch.unsafeFromArray(happenings.map(({ chunk }) => chunk)))
        })
      )
      return Stream.concat(Stream.fromIterable<TaskChunk>(running), live)
    })
  )

/** What an execution gives is the result as it is. */
const executionOf = ({ executor }: TaskExecution) => ({
  execute: (context: TaskContext): Effect.Effect<Executed, unknown> =>
    Effect.map(executor(context), value => ({ value })),
  readResumeData: (data: unknown) => Effect.succeed(data),
  callbacks: [],
  concurrency: undefined
})

/** The public face of a manager. @since 0.1.0 @category conversions */
export const faceOf = (manager: TaskManager.ManagerService): BackgroundTasks["Type"] => ({
  stream: (filter = {}) => streamOf(manager, filter),
  get: manager.get,
  list: manager.list,
  resume: manager.resume,
  cancel: manager.cancel,
  await: manager.settled,
  registerTaskContext: (taskId, execution) => manager.registerTaskContext(taskId, executionOf(execution)),
  cleanup: manager.cleanUp,
  shutdown: manager.shutdown
})

const read = (options: Options) =>
  Effect.try({
    try: () => settingsOf(options),
    catch: cause =>
      cause instanceof InvalidConfiguration
        ? cause
        : new InvalidConfiguration({ field: "options", message: String(cause) })
  })

/**
 * Background tasks with these options. Fails with `InvalidConfiguration`, which names the option, when one cannot work, and
 * with `StorageError` when the store cannot be asked. It takes over what dead processes have left, and ends with its scope as
 * `shutdown` says.
 *
 * With `enabled: false` nothing is dispatched; tasks can still be found, resumed and cancelled.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options = {}
): Layer.Layer<
  BackgroundTasks | TaskManager.TaskManager,
  InvalidConfiguration | StorageError,
  TaskStore | ThreadStore
> =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const manager = yield* Manager.make(yield* read(options))
      return Layer.merge(
        Layer.merge(
          Layer.succeed(TaskManager.TaskManager, manager),
          Layer.succeed(ToolDispatcher.ToolDispatcher, ToolDispatcher.of(manager))
        ),
        Layer.succeed(BackgroundTasks, faceOf(manager))
      )
    })
  )

/**
 * The same with options from configuration: `BackgroundTasks.layerConfig({ globalConcurrency: Config.integer("TASKS") })`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  options: Config.Config.Wrap<Options>
): Layer.Layer<
  BackgroundTasks | TaskManager.TaskManager,
  InvalidConfiguration | StorageError | ConfigError,
  TaskStore | ThreadStore
> => Layer.unwrapEffect(Effect.map(Config.unwrap(options), layer))

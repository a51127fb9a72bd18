/**
 * The background tasks of a container.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { Executor } from "../background/Executor.js"
import type { TaskFilter } from "../background/hub.js"
import { type ManagerService, TaskManager } from "../background/TaskManager.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { squash } from "../protocol/foreignValue.js"
import { lazily } from "../protocol/lazily.js"
import {
  abortSignal,
  checkOptions,
  date,
  either,
  type Kind,
  listOf,
  oneOf,
  text,
  wholeNumber
} from "../protocol/options.js"
import { statuses, type Task } from "../protocol/Task.js"
import type { ListOptions, TaskPage } from "../storage/TaskStore.js"
import * as Tool from "../tool/Tool.js"
import { open, type TaskStream } from "./taskStream.js"
import { type ToolExecutionContext, withContext } from "./toolContext.js"

/** Which tasks to watch: those that match everything that is given. @since 0.1.0 @category models */
export interface TaskStreamOptions extends TaskFilter {
  /** Ends the stream. */
  readonly abortSignal?: AbortSignal
}

/** Who runs a task that no agent of this process does. @since 0.1.0 @category models */
export interface TaskRegistration {
  /** Does it, from the start, with the arguments that are stored and what it was resumed with. Gives the result. */
  readonly executor: (args: Task["args"], context: ToolExecutionContext) => unknown
}

/** What runs effects where the manager is, until the container is shut down. */
export interface TaskHost {
  readonly runFork: <A, E>(effect: Effect.Effect<A, E, TaskManager>) => Fiber.RuntimeFiber<A, unknown>
  /** What a call is refused with, when there is no manager any more. */
  readonly refusal: () => Error | undefined
}

const ended = new InvalidConfiguration({
  field: "backgroundTasks",
  message: "The manager of background tasks was shut down. Make another container before you use it again."
})

/** Agents that a task which is no agent's may have below it. */
const maxDepth = 8

/** There is no tool to speak of: it takes any data, and tells what it gives. */
const unnamed = Tool.make("task", {})

/** Loaded when somebody says first who runs a task. */
const executing = lazily(() => import("../agent/tasks/taskExecutor.js"))

const executorFor = (
  executor: TaskRegistration["executor"],
  { executorOf, noRun }: Effect.Effect.Success<typeof executing>
): Executor => {
  const made = (args: Task["args"]): Executor =>
    executorOf(
      unnamed,
      (_, context) => withContext(context, served => executor(args, served)),
      undefined,
      Context.empty(),
      noRun(maxDepth)
    )
  return { ...made({}), execute: context => made(context.task.args).execute(context) }
}

const streamKinds = {
  agentId: text,
  runId: text,
  threadId: text,
  resourceId: text,
  taskId: text,
  abortSignal
} satisfies Record<keyof TaskStreamOptions, Kind>

const status = oneOf(...statuses)
const dateNames = oneOf("createdAt", "startedAt", "completedAt")

const listKinds = {
  status: either(status, listOf(status), "Give a status of tasks, or an array of them."),
  agentId: text,
  threadId: text,
  resourceId: text,
  runId: text,
  toolName: text,
  toolCallId: text,
  fromDate: date,
  toDate: date,
  dateFilterBy: dateNames,
  orderBy: dateNames,
  orderDirection: oneOf("asc", "desc"),
  page: wholeNumber(0),
  perPage: wholeNumber(0)
} satisfies Record<keyof ListOptions, Kind>

/**
 * To watch, find, resume and cancel background tasks: `mastra.backgroundTaskManager`. Every promise rejects with
 * `StorageError` when the store fails, and with `InvalidConfiguration` after the container was shut down.
 *
 * @since 0.1.0
 * @category models
 */
export class BackgroundTaskManager {
  readonly #host: TaskHost

  /** Made by `Eddy`. */
  constructor(host: TaskHost) {
    this.#host = host
  }

  /**
   * What happens to tasks of this process: first one `background-task-running` for each that runs now, then everything as it
   * happens. It ends when `abortSignal` fires, its reader cancels, or the container is shut down. Reading it slowly holds up
   * no task: a reader that is more than 8192 events behind gets a `TaskReaderTooSlow`. Throws `InvalidConfiguration` for an
   * option that it does not know.
   */
  readonly stream = (options: TaskStreamOptions = {}): TaskStream => {
    checkOptions("The stream of tasks", options, { kinds: streamKinds })
    const { abortSignal: signal, ...filter } = options
    const refusal = this.#host.refusal()
    if (refusal !== undefined) throw refusal
    return open(this.#host.runFork, filter, signal)
  }

  /** The task as it is stored; `null` when there is none of this id. */
  readonly getTask = (taskId: string): Promise<Task | null> =>
    this.#ask(manager => Effect.map(manager.get(taskId), Option.getOrNull))

  /** Tasks as they are stored, in pages, those of other processes too. */
  readonly listTasks = async (options: ListOptions = {}): Promise<TaskPage> => {
    checkOptions("The list of tasks", options, { kinds: listKinds })
    return this.#ask(manager => manager.list(options))
  }

  /**
   * Resumes a suspended task: its tool is executed again from the start, with `resumeData`. It waits in the queue when there is
   * no slot. Gives the task as it is then. Rejects with `TaskNotFound`, `InvalidTaskState`, with `InvalidResumeData` when the
   * data does not match the tool's `resumeSchema`, or with `TaskExecutorNotFound` when nobody here can run it: it is suspended
   * then as before.
   */
  readonly resume = (taskId: string, resumeData?: unknown): Promise<Task> =>
    this.#ask(manager => manager.resume(taskId, resumeData))

  /**
   * Cancels a task that is pending, running or suspended, wherever it is. Its tool's signal fires and its slot is free at
   * once; what it comes to afterwards is dropped. In another process it is stopped when that looks at its tasks next. Rejects
   * with `TaskNotFound` or `InvalidTaskState`.
   */
  readonly cancel = (taskId: string): Promise<Task> => this.#ask(manager => manager.cancel(taskId))

  /** Waits until the task has settled, however it does. Rejects with `TaskNotFound`. */
  readonly waitFor = (taskId: string): Promise<Task> => this.#ask(manager => manager.settled(taskId))

  /**
   * Says who runs one task, for a tool that no agent of this process has. Replaces what was said before. A task that waits for
   * it begins; one that is suspended can be resumed.
   */
  readonly registerTaskContext = async (taskId: string, { executor }: TaskRegistration): Promise<void> => {
    if (typeof executor !== "function") {
      throw new InvalidConfiguration({
        field: "executor",
        message: "`executor` is no function. Give one of the arguments and the context that does the task."
      })
    }
    return this.#ask(manager =>
      Effect.flatMap(executing, parts => manager.registerTaskContext(taskId, executorFor(executor, parts)))
    )
  }

  /** Deletes what settled long ago, now. How many tasks. */
  readonly cleanup = (): Promise<number> => this.#ask(manager => manager.cleanUp)

  /**
   * Ends the manager: nothing begins any more, running tasks get their grace period, the rest is left to the next process.
   * The container does so when it is shut down.
   */
  readonly shutdown = (): Promise<void> => this.#ask(manager => manager.shutdown)

  #ask<A, E>(ask: (manager: ManagerService) => Effect.Effect<A, E>): Promise<A> {
    const refusal = this.#host.refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    return new Promise((resolve, reject) => {
      this.#host.runFork(Effect.flatMap(TaskManager, ask)).addObserver(exit => {
        if (Exit.isSuccess(exit)) resolve(exit.value)
        // Whoever waits is interrupted when that ends which is waited for.
        else if (Cause.isInterruptedOnly(exit.cause)) reject(this.#host.refusal() ?? ended)
        else reject(squash(exit.cause))
      })
    })
  }
}

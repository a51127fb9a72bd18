/** What the parts of a manager share. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import { StorageError, TaskExecutorNotFound } from "../protocol/Errors.js"
import { squash } from "../protocol/foreignValue.js"
import { logWarning } from "../protocol/logging.js"
import { messageOf } from "../protocol/safeJson.js"
import type { Task } from "../protocol/Task.js"
import type { StoredTask, TaskStore } from "../storage/TaskStore.js"
import type { ThreadStore } from "../storage/ThreadStore.js"
import type { SetAlarm } from "./alarm.js"
import type { Executor } from "./Executor.js"
import type { Entry } from "./entry.js"
import type { Fork } from "./fibers.js"
import type { Hub } from "./hub.js"
import type { Settings } from "./settings.js"
import type { Slots } from "./slots.js"
import type { Turns } from "./turns.js"

/** Who runs which tools, by agent and name, and tasks by id. */
export class Executors {
  private readonly byTool = new Map<string, Executor>()
  private readonly byTask = new Map<string, Executor>()

  private static key(agentId: string, toolName: string): string {
    return JSON.stringify([agentId, toolName])
  }

  add(agentId: string, toolName: string, executor: Executor): void {
    this.byTool.set(Executors.key(agentId, toolName), executor)
  }

  addForTask(taskId: string, executor: Executor): void {
    this.byTask.set(taskId, executor)
  }

  /** Lets go of what was added for this task alone. */
  forget(taskId: string): void {
    this.byTask.delete(taskId)
  }

  find({ agentId, id, toolName }: Pick<Task, "agentId" | "id" | "toolName">): Executor | undefined {
    return this.byTask.get(id) ?? this.byTool.get(Executors.key(agentId, toolName))
  }
}

/** A manager. */
export interface Core {
  readonly settings: Settings
  readonly store: TaskStore["Type"]
  readonly threads: ThreadStore["Type"]
  readonly hub: Hub
  readonly turns: Turns
  readonly slots: Slots
  readonly executors: Executors
  /** This process, among all that share the store. */
  readonly owner: string
  /** Starts a fiber at once, on this stack, that ends with the manager. */
  readonly fork: Fork
  /** The same of something that a manager finishes before it ends, if it may take so long. */
  readonly start: Fork
  readonly setAlarm: SetAlarm
  /** Nothing is started any more. */
  readonly isOver: () => boolean
  /** Waits for what was begun with {@link start}. */
  readonly finished: Effect.Effect<void>
  /** Tasks of this process that are not done with, by id. */
  readonly entries: Map<string, Entry>
  /** Tasks that wait for somebody who can run them. */
  readonly orphans: Set<Entry>
  /** Says no longer that this process lives. */
  stopUpkeep: Effect.Effect<void>
  /** Told when nothing begins any more. */
  readonly closing: Set<() => void>
  /** Nothing begins any more. */
  isClosing: boolean
}

export const now: Effect.Effect<Date> = Effect.map(Clock.currentTimeMillis, millis => new Date(millis))

/** A store that says nothing for so long has failed. */
const patience = 10_000

type Asking = Pick<Core, "fork" | "isOver" | "setAlarm">

/**
 * Waits for a store, and no longer than {@link patience}: one that hangs must hold no slot and no caller for ever. What it was
 * asked may still come to pass. Costs no timer when the answer is there at once.
 */
export const bounded = <A, E>(
  core: Asking,
  operation: string,
  asked: Effect.Effect<A, E>,
  limit = patience
): Effect.Effect<A, E | StorageError> =>
  Effect.suspend(() => {
    // Whoever asks a manager that has ended waits by themselves.
    if (core.isOver()) return asked
    const fiber = core.fork(asked)
    const exit = fiber.unsafePoll()
    return exit === null ? answerOf(core, operation, fiber, limit) : said(operation, exit)
  })

/** A driver that dies has failed: whoever asks is told, and goes on. */
const said = <A, E>(operation: string, exit: Exit.Exit<A, E>): Exit.Exit<A, E | StorageError> => {
  if (Exit.isSuccess(exit) || Cause.isFailure(exit.cause) || Cause.isInterrupted(exit.cause)) return exit
  const cause = squash(exit.cause)
  return Exit.fail(new StorageError({ operation, message: `${operation} died: ${messageOf(cause)}`, cause }))
}

const answerOf = <A, E>(
  core: Asking,
  operation: string,
  fiber: Fiber.RuntimeFiber<A, E>,
  limit: number
): Effect.Effect<A, E | StorageError> =>
  Effect.async(resume => {
    const stopAlarm = core.setAlarm(limit, () => {
      const message = `${operation} was not answered within ${limit} ms. Check the database.`
      resume(Effect.fail(new StorageError({ operation, message })))
      fiber.unsafeInterruptAsFork(FiberId.none)
    })
    fiber.addObserver(exit => {
      // Only the first answer counts.
      resume(said(operation, exit))
      stopAlarm()
    })
    return Effect.sync(() => {
      stopAlarm()
      fiber.unsafeInterruptAsFork(FiberId.none)
    })
  })

/**
 * Does something in a fiber of the manager, and waits for it: whoever gives up waiting leaves it whole, not half done.
 */
export const detached = <A, E>(
  core: Pick<Core, "start" | "isOver">,
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    if (core.isOver()) return effect
    const fiber = core.start(effect)
    return fiber.unsafePoll() ?? Effect.async<A, E>(resume => fiber.addObserver(exit => resume(exit)))
  })

/** The times between attempts to store what must not be lost, in milliseconds. */
const firstPause = 100
const longestPause = 5000

/**
 * Changes a task, and asks again and again until the store has answered: what a tool came to must not be lost. Whether the store agreed. A change that failed may have come to pass all the same: `isDone` knows it by what is stored.
 */
export const persisted = (
  core: Core,
  id: string,
  change: Effect.Effect<boolean, StorageError>,
  isDone: (stored: StoredTask) => boolean
): Effect.Effect<boolean> => {
  const ask = (pause: number, isUnsure: boolean): Effect.Effect<boolean> =>
    Effect.matchEffect(isUnsure ? agreedOrDone(core, id, change, isDone) : update(core, change), {
      onSuccess: Effect.succeed,
      onFailure: error =>
        logWarning(`${error.message} It is asked again in ${pause} ms.`, error).pipe(
          Effect.zipRight(Effect.sleep(pause)),
          Effect.zipRight(Effect.suspend(() => ask(Math.min(pause * 2, longestPause), true)))
        )
    })
  return ask(firstPause, false)
}

/** One change of a task. */
export const update = (
  core: Asking,
  change: Effect.Effect<boolean, StorageError>
): Effect.Effect<boolean, StorageError> => bounded(core, "TaskStore.update", change)

/** The same of one that was tried before, and may have come to pass. */
export const agreedOrDone = (
  core: Core,
  id: string,
  change: Effect.Effect<boolean, StorageError>,
  isDone: (stored: StoredTask) => boolean
): Effect.Effect<boolean, StorageError> =>
  Effect.flatMap(update(core, change), isAgreed =>
    isAgreed
      ? Effect.succeed(true)
      : Effect.map(bounded(core, "TaskStore.get", core.store.get(id)), found => Option.exists(found, isDone))
  )

export const executorNotFound = ({ agentId, id, toolName }: Task): TaskExecutorNotFound =>
  new TaskExecutorNotFound({
    taskId: id,
    agentId,
    toolName,
    message: `Task "${id}" cannot be run here: no agent "${agentId}" with a tool "${toolName}" is known in this process. Register the agent, or the task by registerTaskContext.`
  })

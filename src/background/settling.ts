/** How a task comes to its end: stored, then told to its thread, to whoever listens, and to whoever asked to be called. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { StorageError, ThreadNotFound } from "../protocol/Errors.js"
import { callUser } from "../protocol/foreignValue.js"
import { logWarning } from "../protocol/logging.js"
import type { ToolResultOutput, ToolResultPart } from "../protocol/Message.js"
import { messageOf } from "../protocol/safeJson.js"
import { allowed, type Task, type TaskEvent, transition } from "../protocol/Task.js"
import type { TaskChange } from "../storage/TaskStore.js"
import type { TaskCallback, TaskCallbacks } from "../tool/background.js"
import { bounded, type Core, detached, persisted, update } from "./core.js"
import { inheritCall } from "./Executor.js"
import type { Entry } from "./entry.js"
import { settledChunk, taskOf } from "./taskChunks.js"

/** Events that end a task. */
export type SettlingEvent = Extract<
  TaskEvent,
  { readonly _tag: "Completed" | "Failed" | "TimedOut" | "Cancelled" }
>

const callbackOf = (callbacks: TaskCallbacks, task: Task): TaskCallback | undefined => {
  if (task.status === "completed") return callbacks.onComplete
  return task.status === "cancelled" ? callbacks.onCancelled : callbacks.onFailed
}

const isPromise = (answer: unknown): answer is PromiseLike<unknown> =>
  Predicate.hasProperty(answer, "then") && typeof answer.then === "function"

const call = (callback: TaskCallback, task: Task): Effect.Effect<void> =>
  callUser<unknown, unknown>(() => callback(task)).pipe(
    Effect.flatMap(answer => (isPromise(answer) ? Effect.tryPromise(() => answer) : Effect.void)),
    Effect.catchAllCause(cause => logWarning(`A callback of task ${task.id} failed.`, cause)),
    Effect.asVoid
  )

/** Calls the callbacks of the tool, of the agent and of the manager. The first two have the `FiberRef`s of the call. */
const callAll = (core: Core, { executor, task }: Entry): void => {
  const ofCall = (executor?.callbacks ?? []).flatMap(callbacks => callbackOf(callbacks, task) ?? [])
  const own = callbackOf(core.settings.callbacks, task)
  if (ofCall.length === 0 && own === undefined) return
  const within = executor === undefined ? Effect.void : inheritCall(executor)
  const all = (callbacks: ReadonlyArray<TaskCallback>) =>
    Effect.forEach(callbacks, callback => call(callback, task), { discard: true })
  core.start(
    Effect.zipRight(
      // In a fiber of its own, with which the `FiberRef`s end.
      detached(core, Effect.zipRight(within, all(ofCall))),
      all(own === undefined ? [] : [own])
    )
  )
}

/** The call and its outcome, for a conversation that has neither: its run ended before it could store them. */
const appendBoth = (
  core: Core,
  { part, task }: Entry
): Effect.Effect<void, StorageError | ThreadNotFound> => {
  const { args, id, runId, threadId, toolCallId, toolName } = task
  if (part === undefined || threadId === undefined) return Effect.void
  return Effect.asVoid(
    core.threads.append(threadId, [
      {
        id: `${id}-call`,
        runId,
        message: {
          role: "assistant",
          content: [{ type: "tool-call", toolCallId, toolName, input: args }]
        }
      },
      { id: `${id}-result`, runId, message: { role: "tool", content: [part] } }
    ])
  )
}

/** Whether nothing is left to be told. One at a time for each task: two would not find what the other is about to store. */
const tellThread = Effect.fnUntraced(function* (core: Core, entry: Entry) {
  const { part, task } = entry
  if (entry.isDelivered || part === undefined || task.threadId === undefined) return true
  // The run may store it while this is asked.
  const { acknowledged } = entry
  const isIts = (present: ToolResultPart, runId: string | undefined): boolean => {
    const taskId = taskOf(present)?.taskId
    // A run that was stopped says of its call that it was, and a client that sends one again may leave out whose it is.
    return taskId === task.id || (taskId === undefined && runId === task.runId)
  }
  if (yield* core.threads.replaceOutcome(task.threadId, part, isIts)) return true
  // The run stores it with the step that made the call, and comes back here.
  if (acknowledged === "open") return false
  if (acknowledged === "stored") {
    yield* logWarning(
      `The call of task ${task.id} is in its thread no longer: its outcome is not told there.`
    )
    return true
  }
  yield* Effect.catchTag(appendBoth(core, entry), "ThreadNotFound", error =>
    logWarning(`The outcome of task ${task.id} is in no thread: ${error.message}`)
  )
  return true
})

/** The task is done with, unless somebody still asks for it. */
const release = (core: Core, entry: Entry): void => {
  if (!entry.isTold || !entry.isDelivered || entry.acknowledged === "open") return
  core.entries.delete(entry.task.id)
  core.executors.forget(entry.task.id)
}

/**
 * Puts the outcome of a settled task into its thread. A store that fails is logged, and asked again later: until then the task
 * is not said to be delivered.
 */
export const deliver = (core: Core, entry: Entry): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (entry.isDelivered || !entry.isSettled) return Effect.void
    const telling = bounded(core, "ThreadStore.replaceOutcome", tellThread(core, entry))
    const delivered = bounded(core, "TaskStore.delivered", core.store.delivered(entry.task.id))
    entry.telling ??= Effect.unsafeMakeSemaphore(1)
    // Held until the store says that it is delivered: what the store has of this process and is not held is taken up anew.
    return entry.telling.withPermits(1)(
      Effect.flatMap(telling, isTold => {
        if (!isTold || entry.isDelivered) return Effect.void
        return Effect.map(delivered, () => {
          entry.isDelivered = true
          release(core, entry)
        })
      })
    )
  }).pipe(
    Effect.catchAll(error =>
      logWarning(`The outcome of task ${entry.task.id} is not in its thread yet: ${error.message}`, error)
    )
  )

/** What the run that made the call has to say about the acknowledgement in its thread. */
export const acknowledge = (core: Core, entry: Entry, acknowledged: "stored" | "lost"): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (entry.acknowledged !== "open") return Effect.void
    entry.acknowledged = acknowledged
    if (!entry.isSettled) return Effect.void
    release(core, entry)
    // Whoever gives up waiting does not break it off.
    return detached(core, deliver(core, entry))
  })

/** Whoever watches first, then whoever asked to be called; nobody waits for these. */
const tellAll = (core: Core, entry: Entry, isOurs: boolean): void => {
  entry.isTold = true
  core.hub.tell(entry.task, settledChunk)
  release(core, entry)
  if (isOurs) callAll(core, entry)
}

/**
 * Tells of a task that the store has agreed is settled. Once, however often it is said. Callbacks are called by the process that
 * has settled it, and by no other: `isOurs`.
 */
export const announce = (
  core: Core,
  entry: Entry,
  task: Task,
  told: ToolResultOutput | undefined,
  isOurs = true
): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (entry.isSettled) return Effect.void
    // What it wrote before its end is told before that.
    entry.flush?.()
    if (!entry.settle(task, told)) return Effect.void
    core.orphans.delete(entry)
    if (task.threadId === undefined) entry.isDelivered = true
    const telling = Effect.sync(() => tellAll(core, entry, isOurs))
    return entry.isDelivered ? telling : Effect.zipRight(deliver(core, entry), telling)
  })

/** What an event changes in the row of a task. */
const changeOf = (task: Task): TaskChange => ({
  status: task.status,
  ...(task.completedAt === undefined ? {} : { completedAt: task.completedAt }),
  ...(task.result === undefined ? {} : { result: task.result }),
  ...(task.error === undefined ? {} : { error: { message: messageOf(task.error.message) } }),
  isDelivered: task.threadId === undefined
})

/**
 * Ends a task of this process. Whether the store agreed: it does not when the task was ended, or taken over, by somebody else.
 * Asks as long as the store does not answer.
 */
export const settle = Effect.fnUntraced(function* (
  core: Core,
  entry: Entry,
  event: SettlingEvent,
  told: ToolResultOutput | undefined
) {
  const task = transition(entry.task, event)
  if (task === undefined || entry.isSettled) return false
  const { owner, store } = core
  const expected = { statuses: allowed[event._tag], owner }
  const at = event.at.getTime()
  const isAgreed = yield* entry.changing(
    persisted(
      core,
      task.id,
      store.update(task.id, expected, changeOf(task)),
      stored => stored.task.status === task.status && stored.task.completedAt?.getTime() === at
    )
  )
  if (isAgreed) yield* announce(core, entry, task, told)
  return isAgreed
})

/** The row of a task that somebody cancels, wherever it is. Fails at once when the store does. */
export const cancelStored = (core: Core, cancelled: Task): Effect.Effect<boolean, StorageError> =>
  update(core, core.store.update(cancelled.id, { statuses: allowed.Cancelled }, changeOf(cancelled)))

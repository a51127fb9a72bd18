/** What people decide about tasks: to resume one, to cancel one, to wait for one. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import {
  type InvalidResumeData,
  InvalidTaskState,
  type StorageError,
  type TaskExecutorNotFound,
  TaskNotFound
} from "../protocol/Errors.js"
import { type JsonValue, toJson } from "../protocol/safeJson.js"
import { allowed, isSettled, type Task, type TaskStatus, transition } from "../protocol/Task.js"
import { cancellation } from "./cancellation.js"
import { bounded, type Core, detached, executorNotFound, now, update } from "./core.js"
import { Entry } from "./entry.js"
import { enqueue } from "./running.js"
import { announce, cancelStored } from "./settling.js"
import { resumedChunk } from "./taskChunks.js"

const notFound = (taskId: string): TaskNotFound =>
  new TaskNotFound({
    taskId,
    message: `There is no background task "${taskId}": check its id. Tasks that settled long ago are cleaned up.`
  })

const wrongState = (taskId: string, status: TaskStatus, what: "resumed" | "cancelled"): InvalidTaskState =>
  new InvalidTaskState({
    taskId,
    status,
    message:
      what === "resumed"
        ? `Task "${taskId}" cannot be resumed: it is ${status}, and only a suspended task can.`
        : `Task "${taskId}" cannot be cancelled: it is ${status}.`
  })

const shutDown = (taskId: string): InvalidTaskState =>
  new InvalidTaskState({
    taskId,
    status: "suspended",
    message: `Task "${taskId}" was not resumed: the manager of background tasks is shut down. It stays suspended; resume it where a manager runs.`
  })

/** The task as the store has it. */
const stored = Effect.fnUntraced(function* (core: Core, id: string) {
  const found = yield* bounded(core, "TaskStore.get", core.store.get(id))
  return Option.isNone(found) ? yield* notFound(id) : found.value
})

/** A task that this process held otherwise than the store does: somebody else has decided. */
export const letGo = (core: Core, entry: Entry | undefined): void => {
  if (entry === undefined || entry.isSettled) return
  entry.isForeign = true
  entry.stop?.(undefined)
  core.orphans.delete(entry)
}

/** Everything that a resumed task can fail with before it is. @since 0.1.0 @category models */
export type ResumeError =
  | TaskNotFound
  | InvalidTaskState
  | TaskExecutorNotFound
  | InvalidResumeData
  | StorageError

/** What this process holds of a task. One for each: whoever decides about it finds what others have. */
const entryOf = (core: Core, task: Task): Entry => {
  const known = core.entries.get(task.id)
  if (known !== undefined) return known
  const entry = new Entry(task, core.executors.find(task), task.threadId === undefined ? "absent" : "lost")
  entry.isCreated = true
  core.entries.set(task.id, entry)
  return entry
}

/** Makes a change of a task that may not be left half made. What fails may have come to pass: upkeep looks after it. */
const decided = (entry: Entry, change: Effect.Effect<boolean, StorageError>) =>
  entry.changing(
    Effect.tapError(change, () =>
      Effect.sync(() => {
        entry.isUnsure = true
      })
    )
  )

/** The task goes on as it was resumed. */
export const goOn = (core: Core, entry: Entry, task: Task, resumeData: Option.Option<JsonValue>): Task => {
  entry.isForeign = false
  entry.isUnsure = false
  entry.isRetry = false
  entry.executor ??= core.executors.find(task)
  entry.resumeData = resumeData
  entry.task = task
  const { parked } = entry
  entry.stop = undefined
  core.hub.tell(task, resumedChunk)
  // A listener may have cancelled it.
  if (entry.isSettled) return task
  if (parked === undefined) enqueue(core, entry)
  else Deferred.unsafeDone(parked, Effect.void)
  return task
}

const resumeStored = Effect.fnUntraced(function* (core: Core, id: string, data: unknown) {
  const { task } = yield* stored(core, id)
  if (task.status !== "suspended") return yield* wrongState(id, task.status, "resumed")
  if (core.isClosing) return yield* shutDown(id)
  const executor = core.entries.get(id)?.executor ?? core.executors.find(task)
  if (executor === undefined) return yield* executorNotFound(task)
  const resumeData = toJson(data)
  // Checked before anything changes; read again by each attempt, from what is stored.
  yield* executor.readResumeData(resumeData, task.suspendData)
  const at = yield* now
  const resumed = transition(task, { _tag: "Resumed", at })
  if (resumed === undefined) return yield* wrongState(id, task.status, "resumed")
  const entry = entryOf(core, task)
  const isAgreed = yield* decided(
    entry,
    update(
      core,
      core.store.update(
        id,
        { statuses: allowed.Resumed },
        { status: "running", startedAt: at, suspension: Option.none(), resumeData, owner: core.owner }
      )
    )
  )
  if (isAgreed && !entry.isSettled) {
    entry.suspendData = task.suspendData
    return goOn(core, entry, resumed, Option.some(resumeData))
  }
  if (isAgreed) return yield* wrongState(id, entry.task.status, "resumed")
  const { task: present } = yield* stored(core, id)
  return yield* wrongState(id, present.status, "resumed")
})

/** Resumes a suspended task; it goes on when there is a slot for it. The task as it is then. */
export const resume = (core: Core, id: string, data: unknown): Effect.Effect<Task, ResumeError> =>
  detached(core, resumeStored(core, id, data))

const cancelAnywhere = Effect.fnUntraced(function* (core: Core, id: string) {
  const at = yield* now
  const known = core.entries.get(id)
  const before = known !== undefined && !known.isForeign ? known.task : (yield* stored(core, id)).task
  const cancelled = transition(before, { _tag: "Cancelled", at })
  if (cancelled === undefined) return yield* wrongState(id, before.status, "cancelled")
  const entry = entryOf(core, before)
  if (!(yield* decided(entry, cancelStored(core, cancelled)))) {
    const { task: present } = yield* stored(core, id)
    if (isSettled(present.status)) return yield* wrongState(id, present.status, "cancelled")
    // Only a task that is deleted, or settled, refuses this.
    return yield* notFound(id)
  }
  entry.isForeign = false
  const latest = transition(entry.task, { _tag: "Cancelled", at }) ?? cancelled
  entry.stop?.(cancellation())
  yield* announce(core, entry, latest, undefined)
  return latest
})

/** Everything that a cancellation can fail with. */
export type CancelError = TaskNotFound | InvalidTaskState | StorageError

/** Cancels a task that has not settled. The task as it is then. */
export const cancel = (core: Core, id: string): Effect.Effect<Task, CancelError> =>
  detached(core, cancelAnywhere(core, id))

/** How often a task of another process is looked at. */
const pollEvery = 1000

const untilSettledHere = (entry: Entry): Effect.Effect<Task> =>
  Effect.async(resume => {
    const forget = entry.onSettled(({ task }) => resume(Effect.succeed(task)))
    return Effect.sync(forget)
  })

/** The task when it has settled. A task of another process is looked at again and again. */
export const settled = (core: Core, id: string): Effect.Effect<Task, TaskNotFound | StorageError> =>
  Effect.suspend(() => {
    const entry = core.entries.get(id)
    if (entry !== undefined && !entry.isForeign) return untilSettledHere(entry)
    return Effect.flatMap(stored(core, id), ({ task }) =>
      isSettled(task.status)
        ? Effect.succeed(task)
        : Effect.zipRight(
            Effect.sleep(pollEvery),
            Effect.suspend(() => settled(core, id))
          )
    )
  })

/** Renews the lease of this process, recovers tasks of leases that have ended, and deletes old records. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { logWarning } from "../protocol/logging.js"
import { attemptsAreLeft, isSettled, type Task, type TaskStatus, transition } from "../protocol/Task.js"
import type { StoredTask, TaskPlace } from "../storage/TaskStore.js"
import { isPlatform } from "./alarm.js"
import { bounded, type Core, now, persisted } from "./core.js"
import { goOn, letGo } from "./deciding.js"
import { Entry } from "./entry.js"
import { enqueue } from "./running.js"
import { announce, deliver, settle } from "./settling.js"

/**
 * Waits, and lets the process end meanwhile: nobody waits for upkeep. A clock that is not the platform's, a test's for one, is
 * asked as any other.
 */
const idle = (milliseconds: number): Effect.Effect<void> =>
  Effect.flatMap(Effect.clock, clock =>
    isPlatform(clock)
      ? Effect.async<void>(resume => {
          const timer = setTimeout(() => resume(Effect.void), milliseconds)
          if (typeof timer === "object") timer.unref()
          return Effect.sync(() => clearTimeout(timer))
        })
      : clock.sleep(Duration.millis(milliseconds))
  )

/** What fails is logged, and done again after the next pause. */
const logged = (what: string, effect: Effect.Effect<unknown, { readonly message: string }>) =>
  Effect.catchAllCause(effect, cause => logWarning(`${what} failed and is done again later.`, cause))

const every = (milliseconds: number, effect: Effect.Effect<unknown>): Effect.Effect<never> =>
  Effect.forever(Effect.zipRight(idle(milliseconds), effect))

/** Renews the lease of this process. When that fails, it is done again before the lease ends. */
export const renew = (core: Core, limit = beatOf(core)) =>
  bounded(core, "TaskStore.renewLease", core.store.renewLease(core.owner, core.settings.leaseMs), limit)

/** How often a process is heard of. */
const beatOf = ({ settings }: Core): number => settings.leaseMs / 3

const diedWithoutAttempts =
  "The process that ran the task ended before the task did, and the task has no attempts left."

/**
 * What this process holds from now on of a task that the store gives it; `undefined`: it holds the task already. It may have held
 * it before, and have listeners.
 */
const hold = (core: Core, { resumeData, task }: StoredTask): Entry | undefined => {
  const known = core.entries.get(task.id)
  // The lease of this process had ended, and its own task came back.
  if (known !== undefined && !known.isForeign) return undefined
  const acknowledged = task.threadId === undefined ? "absent" : "lost"
  const entry = known ?? new Entry(task, undefined, acknowledged)
  entry.executor ??= core.executors.find(task)
  entry.task = task
  entry.resumeData = resumeData
  entry.isCreated = true
  entry.isForeign = false
  entry.isRetry = false
  core.entries.set(task.id, entry)
  // The process that settled it has announced it; what is missing is its outcome in the thread.
  if (entry.settle(task, undefined)) entry.isTold = true
  return entry
}

/** Goes on with a task that this process has taken over. */
const proceed = Effect.fnUntraced(function* (core: Core, entry: Entry) {
  const { task } = entry
  if (entry.isSettled) return yield* deliver(core, entry)
  if (task.status === "running") {
    if (!attemptsAreLeft(task)) {
      const at = yield* now
      yield* settle(core, entry, { _tag: "Failed", at, message: diedWithoutAttempts }, undefined)
      return
    }
    const { owner, store } = core
    const isAgreed = yield* entry.changing(
      persisted(
        core,
        task.id,
        store.update(task.id, { statuses: ["running"], owner }, { status: "pending" }),
        present => present.task.status === "pending" && present.owner === owner
      )
    )
    if (!isAgreed || !entry.apply({ _tag: "Recovered" })) return
  }
  yield* ready(core, entry)
})

/** Puts a pending task into the queue, as soon as somebody can run it. */
const ready = (core: Core, entry: Entry): Effect.Effect<void> =>
  Effect.suspend(() => {
    entry.executor ??= core.executors.find(entry.task)
    if (entry.executor !== undefined) {
      core.orphans.delete(entry)
      enqueue(core, entry)
      return Effect.void
    }
    if (core.orphans.has(entry)) return Effect.void
    core.orphans.add(entry)
    const { agentId, id, toolName } = entry.task
    return logWarning(
      `Task ${id} waits for agent "${agentId}" with its tool "${toolName}": nobody in this process can run it yet.`
    )
  })

/** Somebody new can run tasks: those that waited for it go into the queue. */
export const adopt = (core: Core): Effect.Effect<void> =>
  Effect.forEach([...core.orphans], entry => ready(core, entry), { discard: true })

/** Holds tasks at once, and goes on with one after the other in a fiber of the manager. */
const takeUp = (core: Core, tasks: ReadonlyArray<StoredTask>): void => {
  const entries = tasks.flatMap(stored => hold(core, stored) ?? [])
  if (entries.length === 0) return
  const all = Effect.forEach(
    entries,
    entry =>
      Effect.catchAllCause(proceed(core, entry), cause =>
        logWarning(`Task ${entry.task.id} could not be taken over.`, cause)
      ),
    { discard: true }
  )
  core.fork(all)
}

/** Takes over what processes have left whose lease has ended. */
export const recover = Effect.fnUntraced(function* (core: Core) {
  if (!core.settings.recoverOnStart) return
  takeUp(core, yield* bounded(core, "TaskStore.inherit", core.store.inherit(core.owner)))
})

/** A task that is not in the store any more was deleted by somebody: it is told as cancelled, so that nobody waits for it. */
const vanish = Effect.fnUntraced(function* (core: Core, entry: Entry) {
  const gone = transition(entry.task, { _tag: "Cancelled", at: yield* now })
  letGo(core, entry)
  entry.isDelivered = true
  if (gone !== undefined) yield* announce(core, entry, gone, undefined, false)
})

/** Somebody else has decided about a task, or this process has without knowing: it is held as it is stored. */
const reconcile = Effect.fnUntraced(function* (core: Core, entry: Entry) {
  const found = yield* bounded(core, "TaskStore.get", core.store.get(entry.task.id))
  if (entry.isSettled || entry.isChanging) return
  if (Option.isNone(found)) return yield* vanish(core, entry)
  const { isDelivered, owner, resumeData, task } = found.value
  if (isSame(core, entry, { status: task.status, owner: owner ?? null })) return
  if (owner === core.owner && entry.task.status === "suspended" && task.status === "running") {
    goOn(core, entry, task, resumeData)
    return
  }
  letGo(core, entry)
  if (isSettled(task.status)) {
    // Whoever settled it has told its thread, or is about to.
    entry.isDelivered = isDelivered || task.threadId === undefined
    return yield* announce(core, entry, task, undefined, entry.isUnsure)
  }
  if (owner === core.owner) return takeUp(core, [found.value])
  entry.task = task
  // A suspended task is nobody's.
  entry.isForeign = task.status !== "suspended"
})

const isSame = (
  core: Core,
  entry: Entry,
  place: { readonly status: Task["status"]; readonly owner: string | null }
) =>
  !entry.isForeign &&
  (entry.task.status === "suspended"
    ? place.status === "suspended"
    : place.owner === core.owner && !isSettled(place.status))

/** Threads told at the same time. */
const deliveries = 10

/** Tasks looked at in one question. */
const atOnce = 500

/** Takes up tasks that the store has under this owner, and that are not held here: the answer to a change was lost. */
const takeUpUnknown = Effect.fnUntraced(function* (core: Core, owned: ReadonlyArray<TaskPlace>) {
  for (const { id } of owned) {
    if (core.entries.has(id) || core.isClosing) continue
    const found = yield* bounded(core, "TaskStore.get", core.store.get(id))
    // It may have been settled here and released since the list was read.
    const left = Option.filter(found, ({ isDelivered, owner }) => owner === core.owner && !isDelivered)
    takeUp(core, Option.toArray(left))
  }
})

/**
 * Compares the tasks that the store has under this owner with those that are held here: takes up the ones that are missing, lets
 * go of the ones that others have decided about, and stores outcomes in threads that could not be stored before.
 */
const compare = Effect.fnUntraced(function* (core: Core) {
  const owned = yield* bounded(core, "TaskStore.owned", core.store.owned(core.owner))
  yield* takeUpUnknown(core, owned)
  const places = new Map(owned.map(place => [place.id, place]))
  const entries = [...core.entries.values()]
  const watched = entries.filter(entry => {
    const place = places.get(entry.task.id)
    const isKnown = place !== undefined && isSame(core, entry, place)
    return entry.isCreated && !entry.isSettled && !entry.isChanging && !isKnown
  })
  for (let start = 0; start < watched.length; start += atOnce) {
    const some = watched.slice(start, start + atOnce)
    const places = yield* bounded(
      core,
      "TaskStore.places",
      core.store.places(some.map(({ task }) => task.id))
    )
    const byId = new Map(places.map(place => [place.id, place]))
    for (const entry of some) {
      const place = byId.get(entry.task.id)
      if (place === undefined || !isSame(core, entry, place)) yield* reconcile(core, entry)
    }
  }
  yield* Effect.forEach(
    entries.filter(entry => entry.isSettled && !entry.isDelivered && entry.acknowledged !== "open"),
    entry => deliver(core, entry),
    { concurrency: deliveries, discard: true }
  )
})

/** Deletes what settled long ago. How many tasks. */
export const cleanUp = Effect.fnUntraced(function* (core: Core) {
  const { completedMs, otherMs } = core.settings.cleanup
  const deleteAged = (statuses: ReadonlyArray<TaskStatus>, age: number) =>
    bounded(core, "TaskStore.deleteSettled", core.store.deleteSettled(statuses, age))
  const completed = yield* deleteAged(["completed"], completedMs)
  return completed + (yield* deleteAged(["failed", "timed_out", "cancelled"], otherMs))
})

/** Everything that is done again and again, until it is interrupted. */
export const upkeep = (core: Core): Effect.Effect<unknown> => {
  // A recovery that failed may have been stored: the comparison finds what it was given.
  const look = Effect.zipRight(
    logged("Taking over background tasks", recover(core)),
    logged("Looking after background tasks", compare(core))
  )
  return Effect.all(
    [
      // By itself: whatever else takes long must not let the lease end.
      every(beatOf(core), logged("Renewing the lease of this process", renew(core))),
      every(beatOf(core), look),
      every(core.settings.cleanup.intervalMs, logged("Cleaning up background tasks", cleanUp(core)))
    ],
    { concurrency: "unbounded" }
  )
}

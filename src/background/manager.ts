/** Makes a manager of background tasks. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import { type StorageError, TaskRejected } from "../protocol/Errors.js"
import { IdGenerator } from "../protocol/Id.js"
import type { Task } from "../protocol/Task.js"
import * as TaskStore from "../storage/TaskStore.js"
import { ThreadStore } from "../storage/ThreadStore.js"
import { make as makeAlarm } from "./alarm.js"
import { AnswerListeners } from "./answerListeners.js"
import { bounded, type Core, detached, Executors, now, persisted } from "./core.js"
import * as Deciding from "./deciding.js"
import type { Executor } from "./Executor.js"
import { type Acknowledged, Entry } from "./entry.js"
import { Fibers } from "./fibers.js"
import { Hub, matches, type TaskFilter } from "./hub.js"
import { beginNow, enqueue } from "./running.js"
import type { Settings } from "./settings.js"
import { acknowledge } from "./settling.js"
import { shutDown } from "./shuttingDown.js"
import { Slots } from "./slots.js"
import type { Dispatched, ManagerService, NewTask } from "./TaskManager.js"
import { Turns } from "./turns.js"
import { adopt, cleanUp, recover, renew, upkeep } from "./upkeep.js"

const closed = (toolName: string, agentId: string): TaskRejected =>
  new TaskRejected({
    toolName,
    agentId,
    message: `Tool "${toolName}" was not started in the background: the manager of background tasks is shut down.`
  })

const rejected = (toolName: string, agentId: string): TaskRejected =>
  new TaskRejected({
    toolName,
    agentId,
    message: `Tool "${toolName}" was not started in the background: too many tasks are running. Try it again later.`
  })

const dispatched = (core: Core, entry: Entry): Dispatched => ({
  taskId: entry.task.id,
  task: () => entry.task,
  outcome: () => entry.part,
  onSettled: listener => entry.onSettled(listener),
  stored: acknowledge(core, entry, "stored"),
  lost: acknowledge(core, entry, "lost")
})

/** A task that could not be stored may be stored all the same: it must not be run by the next process. */
const abandon = (core: Core, { task }: Entry): Effect.Effect<void> =>
  Effect.flatMap(now, completedAt => {
    const change = { status: "cancelled", completedAt, isDelivered: true } as const
    const expected = { statuses: ["pending"] as const, owner: core.owner }
    return Effect.asVoid(persisted(core, task.id, core.store.update(task.id, expected, change), () => true))
  })

/** Stores a new task; whoever gives up waiting does not leave half of one. */
const create = (core: Core, entry: Entry): Effect.Effect<void, StorageError> =>
  Effect.matchEffect(bounded(core, "TaskStore.create", core.store.create(entry.task, core.owner)), {
    onFailure: error => {
      // Held until then: upkeep would take it up otherwise.
      const forget = Effect.sync(() => core.entries.delete(entry.task.id))
      core.fork(Effect.zipRight(abandon(core, entry), forget))
      return Effect.fail(error)
    },
    onSuccess: () => {
      entry.isCreated = true
      return Effect.void
    }
  })

/** In the order in which they were stored. */
const dispatchQueued = (core: Core, entry: Entry): Effect.Effect<boolean, StorageError> =>
  detached(
    core,
    Effect.map(create(core, entry), () => {
      enqueue(core, entry)
      return true
    })
  )

/** Takes the slot first; whether there was one. */
const dispatchNow = (core: Core, entry: Entry): Effect.Effect<boolean, StorageError> =>
  Effect.async(resume => {
    const storing = Effect.match(create(core, entry), {
      onFailure: error => {
        resume(Effect.fail(error))
        return false
      },
      onSuccess: () => {
        resume(Effect.succeed(true))
        return true
      }
    })
    if (beginNow(core, entry, storing)) return
    core.entries.delete(entry.task.id)
    resume(Effect.succeed(false))
  })

const dispatch = Effect.fnUntraced(function* (core: Core, id: string, given: NewTask, executor: Executor) {
  const { agentId, threadId, toolName } = given
  if (core.isClosing) return yield* closed(toolName, agentId)
  const createdAt = yield* now
  const task: Task = { ...given, id, status: "pending", createdAt, attempt: 0 }
  const acknowledged: Acknowledged = threadId === undefined ? "absent" : "open"
  const entry = new Entry(task, executor, acknowledged)
  core.entries.set(id, entry)
  const { backpressure } = core.settings
  const storing = backpressure === "queue" ? dispatchQueued(core, entry) : dispatchNow(core, entry)
  // A run that is stopped meanwhile stores no acknowledgement.
  if (yield* Effect.onInterrupt(storing, () => acknowledge(core, entry, "lost")))
    return dispatched(core, entry)
  return backpressure === "reject" ? yield* rejected(toolName, agentId) : undefined
})

const isActive = ({ isCreated, isForeign, isSettled, task }: Entry): boolean =>
  isCreated && !isSettled && !isForeign && (task.status === "pending" || task.status === "running")

/** As long as nobody was told of its end, a task is not done with. */
const isGoing = ({ isCreated, isForeign, isTold, task }: Entry): boolean =>
  isCreated && !isTold && !isForeign && task.status !== "suspended"

const activeOf = (core: Core, filter: TaskFilter): ReadonlyArray<Task> =>
  Array.from(core.entries.values()).flatMap(entry =>
    isActive(entry) && matches(filter, entry.task) ? [entry.task] : []
  )

/**
 * Does something once, in a fiber of its own, and waits for it: whoever gives up waiting, or is interrupted by it, does not keep
 * it from being done.
 */
const once = (effect: Effect.Effect<void>): Effect.Effect<Effect.Effect<void>> =>
  Effect.map(Effect.runtime<never>(), runtime => {
    let fiber: Fiber.RuntimeFiber<void> | undefined
    return Effect.suspend(() => {
      fiber ??= Runtime.runFork(runtime)(effect)
      return Effect.asVoid(Fiber.await(fiber))
    })
  })

/**
 * Makes a manager. Its tasks end with the scope: running ones get their grace period. Fails when the store does.
 */
export const make = Effect.fnUntraced(function* (settings: Settings, executors: Executors = new Executors()) {
  const store = yield* TaskStore.TaskStore
  const threads = yield* ThreadStore
  const ids = yield* IdGenerator
  const fibers = yield* Fibers.make
  const { fork } = fibers
  const hub = new Hub(fork)
  const core: Core = {
    settings,
    store,
    threads,
    hub,
    turns: new Turns(fork),
    slots: new Slots(fibers.start, settings.globalConcurrency, fork),
    executors,
    owner: ids.next("owner"),
    fork,
    start: fibers.start,
    setAlarm: makeAlarm(yield* Effect.clock, fork),
    finished: fibers.finished,
    isOver: fibers.isOver,
    entries: new Map(),
    orphans: new Set(),
    stopUpkeep: Effect.void,
    closing: new Set(),
    isClosing: false
  }
  const ending = yield* once(
    shutDown(core).pipe(Effect.zipRight(fibers.close), Effect.zipRight(Effect.sync(() => hub.close())))
  )
  yield* Effect.addFinalizer(() => ending)
  // A database that is only waking up may take longer now than later.
  yield* renew(core, settings.leaseMs)
  yield* recover(core)
  core.stopUpkeep = Effect.asVoid(Fiber.interrupt(fork(upkeep(core))))
  const service: ManagerService = {
    settings,
    dispatch: (task, executor) => Effect.suspend(() => dispatch(core, ids.next("task"), task, executor)),
    register: (agentId, known) =>
      Effect.suspend(() => {
        for (const [toolName, executor] of known) executors.add(agentId, toolName, executor)
        return core.orphans.size === 0 ? Effect.void : adopt(core)
      }),
    registerTaskContext: (taskId, executor) =>
      Effect.suspend(() => {
        executors.addForTask(taskId, executor)
        return core.orphans.size === 0 ? Effect.void : adopt(core)
      }),
    watch: filter =>
      Effect.map(
        hub.subscribe(() => activeOf(core, filter), filter),
        ({ next, seen }) => ({
          active: seen,
          next,
          take: Effect.flatMap(next, happenings =>
            happenings === undefined ? Effect.interrupt : Effect.succeed(happenings)
          )
        })
      ),
    get: id =>
      Effect.map(bounded(core, "TaskStore.get", store.get(id)), found =>
        Option.map(found, ({ task }) => task)
      ),
    list: options => bounded(core, "TaskStore.list", store.list(options)),
    resume: (id, data) => Deciding.resume(core, id, data),
    cancel: id => Deciding.cancel(core, id),
    settled: id => Deciding.settled(core, id),
    cleanUp: cleanUp(core),
    shutdown: ending,
    idleScopes: new Map(),
    answerListeners: new AnswerListeners(),
    active: isWanted =>
      Array.from(core.entries.values()).flatMap(entry =>
        isGoing(entry) && isWanted(entry.task) ? [entry.task] : []
      ),
    listen: listener => hub.listen(listener),
    onClosing: listener => {
      if (core.isClosing) listener()
      else core.closing.add(listener)
      return () => core.closing.delete(listener)
    }
  }
  return service
})

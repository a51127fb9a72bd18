/**
 * Where background tasks are kept, so that they survive the process that runs them.
 *
 * The service is typed; the driver behind it ({@link Encoded}) knows rows of strings and numbers only. `TaskStoreConformance`
 * of `eddy/testing` says whether a driver does what is told here.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { StorageError } from "../protocol/Errors.js"
import { lazily } from "../protocol/lazily.js"
import { type JsonValue, stringify, wellFormed } from "../protocol/safeJson.js"
import type { Task, TaskStatus } from "../protocol/Task.js"
import { ask, milliseconds, optionalText, whole } from "./asking.js"
import * as memoryTasks from "./memoryTasks.js"
import type { Encoded, ExpectedTask, TaskPlace, TaskRow, TaskRowChange, TaskTime } from "./taskRows.js"

export type {
  Encoded,
  ExpectedTask,
  TaskPlace,
  TaskQuery,
  TaskRow,
  TaskRowChange,
  TaskTime
} from "./taskRows.js"

import { logError } from "../protocol/logging.js"

/** A task with what only its owner asks for. @since 0.1.0 @category models */
export interface StoredTask {
  readonly task: Task
  /** Who runs it; nobody's when it is suspended. */
  readonly owner: string | undefined
  /** What it was resumed with last. */
  readonly resumeData: Option.Option<JsonValue>
  /** Whether nothing is left to be told to its thread. */
  readonly isDelivered: boolean
}

/** What changes with a task. What is left out stays. @since 0.1.0 @category models */
export interface TaskChange {
  readonly status?: TaskStatus
  readonly attempt?: number
  readonly startedAt?: Date
  readonly completedAt?: Date
  readonly result?: JsonValue
  readonly error?: { readonly message: string }
  /** None: it is suspended no longer. */
  readonly suspension?: Option.Option<{ readonly at: Date; readonly data: JsonValue }>
  readonly resumeData?: JsonValue
  /** `null`: nobody's. */
  readonly owner?: string | null
  readonly isDelivered?: boolean
}

/** Which tasks to list: those that match everything that is given. @since 0.1.0 @category models */
export interface ListOptions {
  /** One, or one of several; an empty list matches nothing. */
  readonly status?: TaskStatus | ReadonlyArray<TaskStatus>
  /** Of the agent of this id. */
  readonly agentId?: string
  /** Called in this thread. */
  readonly threadId?: string
  /** Called by a run of this resource. */
  readonly resourceId?: string
  /** Called by this run. */
  readonly runId?: string
  /** Calls of this tool, by the name that the model knows. */
  readonly toolName?: string
  /** This call. */
  readonly toolCallId?: string
  /** At or after. */
  readonly fromDate?: Date
  /** Before. */
  readonly toDate?: Date
  /** The time that `fromDate` and `toDate` are about. A task without it is in no span. Default `createdAt`. */
  readonly dateFilterBy?: TaskTime
  /** Tasks without this time come last. Default `createdAt`. */
  readonly orderBy?: TaskTime
  /** Default `asc`: the oldest first. */
  readonly orderDirection?: "asc" | "desc"
  /** From 0, which is the default. */
  readonly page?: number
  /** Default 100. 0 gives the total only. */
  readonly perPage?: number
}

/** A page of tasks, and how many there are on all pages. @since 0.1.0 @category models */
export interface TaskPage {
  readonly tasks: ReadonlyArray<Task>
  readonly total: number
}

/**
 * The store of background tasks. Every operation fails with `StorageError` when the driver does, and when a row cannot be
 * read; it is done whole or not at all, also when it is interrupted.
 *
 * @since 0.1.0
 * @category services
 */
export class TaskStore extends Context.Tag("eddy/TaskStore")<
  TaskStore,
  {
    /** Stores a new task of this owner. Fails when there is one of its id. */
    readonly create: (task: Task, owner: string) => Effect.Effect<void, StorageError>
    /**
     * Compare and set: changes the task if it is in one of the expected statuses and, when that is given, the expected
     * owner's. Whether it was.
     */
    readonly update: (
      id: string,
      expected: ExpectedTask,
      change: TaskChange
    ) => Effect.Effect<boolean, StorageError>
    readonly get: (id: string) => Effect.Effect<Option.Option<StoredTask>, StorageError>
    readonly list: (options?: ListOptions) => Effect.Effect<TaskPage, StorageError>
    /** Where these tasks stand, and whose they are; nothing of those that are gone. */
    readonly places: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<TaskPlace>, StorageError>
    /** Says that the outcome of a settled task is in its thread. */
    readonly delivered: (id: string) => Effect.Effect<boolean, StorageError>
    /** The tasks that this owner has to do something for: pending, running, and settled ones that are not delivered. */
    readonly owned: (owner: string) => Effect.Effect<ReadonlyArray<TaskPlace>, StorageError>
    /**
     * Deletes delivered tasks of these statuses that settled at least so long ago. Returns how many. The age is measured by the
     * clock of the store, from when `update` stored the settled status: `completedAt`, which is a process's, does not matter.
     */
    readonly deleteSettled: (
      statuses: ReadonlyArray<TaskStatus>,
      age: Duration.DurationInput
    ) => Effect.Effect<number, StorageError>
    /** The owner has a lease for so long from now, by the clock of the store. It replaces the owner's last one. */
    readonly renewLease: (
      owner: string,
      duration: Duration.DurationInput
    ) => Effect.Effect<void, StorageError>
    /** The owner has no lease: others take over its tasks at once. */
    readonly dropLease: (owner: string) => Effect.Effect<void, StorageError>
    /**
     * Takes over the tasks of owners whose lease has ended, by the clock of the store: pending, running, and settled ones that
     * are not delivered. In the order of creation. Each goes to one heir only, however many call it. Suspended tasks have no
     * owner, and stay.
     */
    readonly inherit: (heir: string) => Effect.Effect<ReadonlyArray<StoredTask>, StorageError>
  }
>() {}

/** Loaded when the first row is read: it needs schemas, which take long to load. */
const rows = lazily(() => import("./storedTasks.js"))

const time = (date: Date | undefined): number | null => date?.getTime() ?? null

const json = (value: JsonValue | undefined): string | null => (value === undefined ? null : stringify(value))

const toRow = (task: Task, owner: string): TaskRow => ({
  id: wellFormed(task.id),
  status: task.status,
  toolName: wellFormed(task.toolName),
  toolCallId: wellFormed(task.toolCallId),
  args: stringify(task.args),
  agentId: wellFormed(task.agentId),
  threadId: optionalText(task.threadId) ?? null,
  resourceId: optionalText(task.resourceId) ?? null,
  runId: wellFormed(task.runId),
  result: json(task.result),
  error: optionalText(task.error?.message) ?? null,
  suspendData: json(task.suspendData),
  resumeData: null,
  createdAt: task.createdAt.getTime(),
  startedAt: time(task.startedAt),
  suspendedAt: time(task.suspendedAt),
  completedAt: time(task.completedAt),
  attempt: whole(task.attempt),
  maxRetries: whole(task.maxRetries),
  timeoutMs: Math.ceil(task.timeoutMs),
  owner: wellFormed(owner),
  isDelivered: 0
})

type Mutable<A> = { -readonly [Key in keyof A]: A[Key] }

/** Field by field: this is made for each change of each task. */
const toChange = (change: TaskChange): TaskRowChange => {
  const row: Mutable<TaskRowChange> = {}
  if (change.status !== undefined) row.status = change.status
  if (change.attempt !== undefined) row.attempt = change.attempt
  if (change.startedAt !== undefined) row.startedAt = change.startedAt.getTime()
  if (change.completedAt !== undefined) row.completedAt = change.completedAt.getTime()
  if (change.result !== undefined) row.result = stringify(change.result)
  if (change.error !== undefined) row.error = wellFormed(change.error.message)
  if (change.suspension !== undefined) {
    const suspended = Option.getOrUndefined(change.suspension)
    row.suspendedAt = suspended?.at.getTime() ?? null
    row.suspendData = suspended === undefined ? null : stringify(suspended.data)
  }
  if (change.resumeData !== undefined) row.resumeData = stringify(change.resumeData)
  if (change.owner !== undefined) row.owner = change.owner === null ? null : wellFormed(change.owner)
  if (change.isDelivered !== undefined) row.isDelivered = change.isDelivered ? 1 : 0
  return row
}

const settledStatuses: ReadonlyArray<TaskStatus> = ["completed", "failed", "timed_out", "cancelled"]

/** The service over a driver. @since 0.1.0 @category constructors */
export const make = (driver: Encoded): Context.Tag.Service<TaskStore> => ({
  create: (task, owner) => Effect.suspend(() => ask("TaskStore.create", driver.create(toRow(task, owner)))),
  update: (id, expected, change) =>
    Effect.suspend(() => ask("TaskStore.update", driver.update(wellFormed(id), expected, toChange(change)))),
  get: Effect.fnUntraced(function* (id) {
    const operation = "TaskStore.get"
    const { readTask } = yield* rows
    const row = yield* ask(operation, driver.get(wellFormed(id)))
    return Option.isNone(row) ? Option.none() : Option.some(yield* readTask(operation, row.value))
  }),
  list: Effect.fnUntraced(function* (options = {}) {
    const operation = "TaskStore.list"
    const { readTask } = yield* rows
    const { page = 0, perPage = 100, status } = options
    const limit = whole(perPage)
    const found = yield* ask(
      operation,
      driver.list({
        statuses: status === undefined ? undefined : typeof status === "string" ? [status] : status,
        agentId: optionalText(options.agentId),
        threadId: optionalText(options.threadId),
        resourceId: optionalText(options.resourceId),
        runId: optionalText(options.runId),
        toolName: optionalText(options.toolName),
        toolCallId: optionalText(options.toolCallId),
        dateField: options.dateFilterBy ?? "createdAt",
        from: options.fromDate?.getTime(),
        to: options.toDate?.getTime(),
        orderBy: options.orderBy ?? "createdAt",
        direction: options.orderDirection ?? "asc",
        offset: whole(whole(page) * limit),
        limit
      })
    )
    const tasks = yield* Either.all(found.rows.map(row => readTask(operation, row)))
    return { tasks: tasks.map(({ task }) => task), total: found.total }
  }),
  places: ids => ask("TaskStore.places", driver.places(ids.map(wellFormed))),
  delivered: id =>
    ask(
      "TaskStore.delivered",
      driver.update(wellFormed(id), { statuses: settledStatuses }, { isDelivered: 1 })
    ),
  owned: owner => ask("TaskStore.owned", driver.owned(wellFormed(owner))),
  deleteSettled: (statuses, age) =>
    ask("TaskStore.deleteSettled", driver.deleteSettled(statuses, milliseconds(age))),
  renewLease: (owner, duration) =>
    ask("TaskStore.renewLease", driver.renewLease(wellFormed(owner), milliseconds(duration))),
  dropLease: owner => ask("TaskStore.dropLease", driver.dropLease(wellFormed(owner))),
  inherit: Effect.fnUntraced(function* (heir) {
    const operation = "TaskStore.inherit"
    const { readTask } = yield* rows
    const inherited = yield* ask(operation, driver.inherit(wellFormed(heir)))
    // One row that cannot be read must not keep the others from being run.
    const read = yield* Effect.partition(inherited, row => readTask(operation, row))
    yield* Effect.forEach(read[0], error => logError(error.message), { discard: true })
    return read[1]
  })
})

/**
 * Tasks in the memory of the process, gone when the layer is. Its clock is the `Clock` that the layer is built with.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<TaskStore> = Layer.effect(
  TaskStore,
  Effect.map(Effect.clock, clock => make(memoryTasks.make(clock)))
)

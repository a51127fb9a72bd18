/** What stands behind a task store: rows of strings and numbers, and the few things that a database does with them. */
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { TaskStatus } from "../protocol/Task.js"

/** A background task as a database keeps it. Times are milliseconds since 1970. @since 0.1.0 @category drivers */
export interface TaskRow {
  /** Primary key. */
  readonly id: string
  readonly status: TaskStatus
  readonly toolName: string
  readonly toolCallId: string
  /** The text of a JSON object. */
  readonly args: string
  readonly agentId: string
  readonly threadId: string | null
  readonly resourceId: string | null
  readonly runId: string
  /** The text of a JSON value. */
  readonly result: string | null
  /** A message. */
  readonly error: string | null
  /** The text of a JSON value. */
  readonly suspendData: string | null
  /** The text of a JSON value: what a task was resumed with last. */
  readonly resumeData: string | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly suspendedAt: number | null
  readonly completedAt: number | null
  readonly attempt: number
  readonly maxRetries: number
  readonly timeoutMs: number
  /** Who runs it, or told its outcome; `null` of a suspended task, which nobody runs. */
  readonly owner: string | null
  /** 1 when nothing is left to be told to the thread: of a settled task, its outcome is there. 0 otherwise. */
  readonly isDelivered: 0 | 1
}

/** Fields of a task that change. @since 0.1.0 @category drivers */
export type TaskRowChange = Partial<
  Pick<
    TaskRow,
    | "status"
    | "result"
    | "error"
    | "suspendData"
    | "resumeData"
    | "startedAt"
    | "suspendedAt"
    | "completedAt"
    | "attempt"
    | "owner"
    | "isDelivered"
  >
>

/** What a row must be for a change to apply. @since 0.1.0 @category drivers */
export interface ExpectedTask {
  /** One of these; at least one. */
  readonly statuses: ReadonlyArray<TaskStatus>
  /** Whose it must be. Without it: anybody's. */
  readonly owner?: string
}

/** Times that tasks are listed and ordered by. @since 0.1.0 @category drivers */
export type TaskTime = "createdAt" | "startedAt" | "suspendedAt" | "completedAt"

/** Which tasks are asked for: those that match everything that is not `undefined`. @since 0.1.0 @category drivers */
export interface TaskQuery {
  /** One of these. An empty list matches nothing. */
  readonly statuses: ReadonlyArray<TaskStatus> | undefined
  readonly agentId: string | undefined
  readonly threadId: string | undefined
  readonly resourceId: string | undefined
  readonly runId: string | undefined
  readonly toolName: string | undefined
  readonly toolCallId: string | undefined
  /** The time that `from` and `to` are about. A task that has no such time is in no span. */
  readonly dateField: TaskTime
  /** At or after. */
  readonly from: number | undefined
  /** Before. */
  readonly to: number | undefined
  /** Tasks that have no such time come last, in either direction. Those of one time stand in the order of their creation. */
  readonly orderBy: TaskTime
  /**
   * `desc` turns the order round, that of tasks of one time, and of those that have none, too; these stay behind the others.
   */
  readonly direction: "asc" | "desc"
  readonly offset: number
  readonly limit: number
}

/** Where a task stands, and whose it is. @since 0.1.0 @category drivers */
export type TaskPlace = Pick<TaskRow, "id" | "status" | "owner">

/**
 * What a database does for a task store. It may fail with anything, which becomes the cause of a `StorageError`.
 *
 * Each operation is atomic: it is done whole or not at all, also when it is interrupted, and no other sees half of it. Strings
 * are compared and kept exactly. They are well-formed. Numbers are safe integers, not negative.
 *
 * Leases and ages are measured by one clock, the store's: that of the database where there is one. The clocks of the processes
 * that call the driver may differ from it, and from each other.
 *
 * @since 0.1.0
 * @category drivers
 */
export interface Encoded {
  /** Stores a task. Fails, and changes nothing, when there is one of this id. Those that are asked for first are created first. */
  readonly create: (row: TaskRow) => Effect.Effect<void, unknown>
  /** Compare and set: sets these fields, and no other, if the task is as expected. Whether it was. */
  readonly update: (
    id: string,
    expected: ExpectedTask,
    change: TaskRowChange
  ) => Effect.Effect<boolean, unknown>
  readonly get: (id: string) => Effect.Effect<Option.Option<TaskRow>, unknown>
  /** A page, and how many tasks match in all. */
  readonly list: (
    query: TaskQuery
  ) => Effect.Effect<{ readonly rows: ReadonlyArray<TaskRow>; readonly total: number }, unknown>
  /** Where these tasks stand; nothing of those that are not there. Any order. The list may be empty, or long. */
  readonly places: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<TaskPlace>, unknown>
  /** The tasks of this owner that are pending, running, or settled and not delivered. Any order. The list may be long. */
  readonly owned: (owner: string) => Effect.Effect<ReadonlyArray<TaskPlace>, unknown>
  /**
   * Deletes tasks of these statuses that are delivered and settled at least `age` milliseconds ago. How many. A task settles
   * when `update` gives it a settled status, by the clock of the store: `completedAt`, which is a process's, does not matter. A
   * task that is created as a settled one has settled at its `completedAt`, or never.
   */
  readonly deleteSettled: (statuses: ReadonlyArray<TaskStatus>, age: number) => Effect.Effect<number, unknown>
  /** The owner has a lease that ends so many milliseconds from now. It replaces the one that the owner had. */
  readonly renewLease: (owner: string, milliseconds: number) => Effect.Effect<void, unknown>
  /** The owner has no lease. */
  readonly dropLease: (owner: string) => Effect.Effect<void, unknown>
  /**
   * Gives `heir` every task that is pending, running, or settled and not delivered, and whose owner has no lease, or one that
   * has ended. The rows as they are then, in the order of creation. Of two that call it at the same time each gets other
   * tasks. Tasks without an owner are not inherited.
   */
  readonly inherit: (heir: string) => Effect.Effect<ReadonlyArray<TaskRow>, unknown>
}

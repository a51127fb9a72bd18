/** Tasks in the memory of the process. Each operation is one synchronous step, and that is what makes it atomic. */
import * as Arr from "effect/Array"
import type * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { isSettled } from "../protocol/Task.js"
import type { Encoded, ExpectedTask, TaskQuery, TaskRow, TaskTime } from "./taskRows.js"

class TaskExists extends Data.TaggedError("TaskExists")<{ readonly message: string }> {}

const isExpected = (row: TaskRow, { owner, statuses }: ExpectedTask): boolean =>
  statuses.includes(row.status) && (owner === undefined || row.owner === owner)

const filters = ["agentId", "threadId", "resourceId", "runId", "toolName", "toolCallId"] as const

const isInSpan = (time: number | null, from: number | undefined, to: number | undefined): boolean =>
  (from === undefined && to === undefined) ||
  (time !== null && (from === undefined || time >= from) && (to === undefined || time < to))

/** Asks only what is asked: a list looks at every task. */
const matcher = (query: TaskQuery): ((row: TaskRow) => boolean) => {
  const { dateField, from, statuses, to } = query
  const asked = filters.filter(field => query[field] !== undefined)
  return row =>
    (statuses === undefined || statuses.includes(row.status)) &&
    asked.every(field => row[field] === query[field]) &&
    isInSpan(row[dateField], from, to)
}

/** Of rows in the order of their creation; sorting keeps the order of those of one time. */
const sorted = (
  rows: ReadonlyArray<TaskRow>,
  field: TaskTime,
  direction: "asc" | "desc"
): ReadonlyArray<TaskRow> => {
  const [untimed, timed] = Arr.partition(rows, row => row[field] !== null)
  timed.sort((one, other) => (one[field] ?? 0) - (other[field] ?? 0))
  // Turned round after it is sorted, so that those of one time are turned too.
  return direction === "asc" ? [...timed, ...untimed] : [...timed.reverse(), ...untimed.reverse()]
}

const isLeft = (row: TaskRow): boolean =>
  row.status === "pending" || row.status === "running" || (isSettled(row.status) && row.isDelivered === 0)

/** A driver whose tasks go with it. `clock` is the clock of the store. */
export const make = (clock: Clock.Clock): Encoded => {
  /** In the order of creation: a task that changes keeps its place. */
  const tasks = new Map<string, TaskRow>()
  /** When each settled task was stored as settled. */
  const settledAt = new Map<string, number>()
  /** When the lease of each owner ends. */
  const leases = new Map<string, number>()
  const now = (): number => clock.unsafeCurrentTimeMillis()
  return {
    create: row =>
      Effect.suspend(() => {
        if (tasks.has(row.id)) return new TaskExists({ message: `There is a task "${row.id}" already.` })
        tasks.set(row.id, row)
        if (isSettled(row.status) && row.completedAt !== null) settledAt.set(row.id, row.completedAt)
        return Effect.void
      }),
    update: (id, expected, change) =>
      Effect.sync(() => {
        const row = tasks.get(id)
        if (row === undefined || !isExpected(row, expected)) return false
        tasks.set(id, { ...row, ...change })
        if (change.status !== undefined && isSettled(change.status)) settledAt.set(id, now())
        return true
      }),
    get: id => Effect.sync(() => Option.fromNullable(tasks.get(id))),
    list: query =>
      Effect.sync(() => {
        const found = Array.from(tasks.values()).filter(matcher(query))
        const { direction, limit, offset, orderBy } = query
        // Nobody sees the order of a page of none.
        const rows = limit === 0 ? [] : sorted(found, orderBy, direction).slice(offset, offset + limit)
        return { rows, total: found.length }
      }),
    places: ids =>
      Effect.sync(() =>
        Array.from(new Set(ids)).flatMap(id => {
          const row = tasks.get(id)
          return row === undefined ? [] : { id, status: row.status, owner: row.owner }
        })
      ),
    owned: owner =>
      Effect.sync(() =>
        Array.from(tasks.values()).flatMap(row =>
          row.owner === owner && isLeft(row) ? [{ id: row.id, status: row.status, owner }] : []
        )
      ),
    deleteSettled: (statuses, age) =>
      Effect.sync(() => {
        let count = 0
        const latest = now() - age
        for (const { id, isDelivered, status } of tasks.values()) {
          const time = settledAt.get(id)
          if (!statuses.includes(status) || !isSettled(status)) continue
          if (isDelivered === 0 || time === undefined || time > latest) continue
          tasks.delete(id)
          settledAt.delete(id)
          count++
        }
        return count
      }),
    renewLease: (owner, milliseconds) =>
      Effect.sync(() => {
        leases.set(owner, now() + milliseconds)
      }),
    dropLease: owner =>
      Effect.sync(() => {
        leases.delete(owner)
      }),
    inherit: heir =>
      Effect.sync(() => {
        const inherited: Array<TaskRow> = []
        const time = now()
        for (const row of tasks.values()) {
          if (row.owner === null || !isLeft(row) || (leases.get(row.owner) ?? 0) > time) continue
          const mine = { ...row, owner: heir }
          tasks.set(row.id, mine)
          inherited.push(mine)
        }
        return inherited
      })
  }
}

/** Drivers of tasks that are wrong in one way each: what the conformance cases are there to find. */
import { Clock, Effect, Option } from "effect"
import * as memoryTasks from "../../src/storage/memoryTasks.js"
import type { Encoded, TaskQuery, TaskRow } from "../../src/storage/taskRows.js"

type Mutation = (driver: Encoded) => Partial<Encoded>

const everything: TaskQuery = {
  statuses: undefined,
  agentId: undefined,
  threadId: undefined,
  resourceId: undefined,
  runId: undefined,
  toolName: undefined,
  toolCallId: undefined,
  dateField: "createdAt",
  from: undefined,
  to: undefined,
  orderBy: "createdAt",
  direction: "asc",
  offset: 0,
  limit: 1_000_000
}

const asked =
  (change: (query: TaskQuery) => TaskQuery): Mutation =>
  driver => ({ list: query => driver.list(change(query)) })

const createdAs =
  (change: (row: TaskRow) => TaskRow): Mutation =>
  driver => ({ create: row => driver.create(change(row)) })

const statuses = ["pending", "running", "suspended", "completed", "failed", "timed_out", "cancelled"] as const

const mutations: Readonly<Record<string, Mutation>> = {
  "creates over a task that is there": driver => ({
    create: row =>
      Effect.zipRight(driver.update(row.id, { statuses }, row), Effect.ignore(driver.create(row)))
  }),
  "looks before it updates": driver => ({
    update: (id, expected, change) =>
      Effect.gen(function* () {
        const row = Option.getOrUndefined(yield* driver.get(id))
        yield* Effect.yieldNow()
        if (row === undefined || !expected.statuses.includes(row.status)) return false
        if (expected.owner !== undefined && row.owner !== expected.owner) return false
        return yield* driver.update(id, { statuses }, change)
      })
  }),
  "updates one field after the other": driver => ({
    update: (id, expected, change) =>
      Effect.gen(function* () {
        const { owner, status, ...rest } = change
        const isDone = yield* driver.update(id, expected, status === undefined ? {} : { status })
        yield* Effect.yieldNow()
        if (isDone) yield* driver.update(id, { statuses }, rest)
        if (isDone && owner !== undefined) yield* driver.update(id, { statuses }, { owner })
        return isDone
      })
  }),
  "updates whoever the owner is": driver => ({
    update: (id, expected, change) => driver.update(id, { statuses: expected.statuses }, change)
  }),
  "updates in whatever status": driver => ({
    update: (id, { owner }, change) =>
      driver.update(id, { statuses, ...(owner === undefined ? {} : { owner }) }, change)
  }),
  "takes an update of nothing for none": driver => ({
    update: (id, expected, change) =>
      Object.keys(change).length === 0 ? Effect.succeed(false) : driver.update(id, expected, change)
  }),
  "does not take values away": driver => ({
    update: (id, expected, change) =>
      driver.update(
        id,
        expected,
        Object.fromEntries(Object.entries(change).filter(([, value]) => value !== null))
      )
  }),
  "takes the text null for nothing": createdAs(row => ({
    ...row,
    result: row.result === "null" ? null : row.result
  })),
  "parses results and drops NUL": createdAs(row => ({
    ...row,
    result: row.result?.replaceAll("\\u0000", "") ?? null
  })),
  "compares owners without case": driver => ({
    update: (id, expected, change) =>
      Effect.gen(function* () {
        const row = Option.getOrUndefined(yield* driver.get(id))
        const isSame = row?.owner?.toLowerCase() === expected.owner?.toLowerCase()
        return yield* driver.update(
          id,
          isSame && typeof row?.owner === "string" ? { ...expected, owner: row.owner } : expected,
          change
        )
      })
  }),
  "knows 1000 places at a time": driver => ({ places: ids => driver.places(ids.slice(0, 1000)) }),
  "takes no status for any status": asked(query => ({
    ...query,
    statuses: query.statuses?.length === 0 ? undefined : query.statuses
  })),
  "takes the end of a span for a part of it": asked(query => ({
    ...query,
    to: query.to === undefined ? undefined : query.to + 1
  })),
  "takes the beginning of a span for no part of it": asked(query => ({
    ...query,
    from: query.from === undefined ? undefined : query.from + 1
  })),
  "looks at the time of creation only": asked(query => ({ ...query, dateField: "createdAt" })),
  "asks for the thread only when there is no resource": asked(query => ({
    ...query,
    threadId: query.resourceId === undefined ? query.threadId : undefined
  })),
  "orders by the time of creation only": asked(query => ({ ...query, orderBy: "createdAt" })),
  "turns missing times to the front": driver => ({
    list: query =>
      Effect.map(driver.list({ ...query, offset: 0, limit: everything.limit }), ({ rows, total }) => {
        const turned =
          query.direction === "asc"
            ? rows
            : [
                ...rows.filter(row => row[query.orderBy] === null),
                ...rows.filter(row => row[query.orderBy] !== null)
              ]
        return { rows: turned.slice(query.offset, query.offset + query.limit), total }
      })
  }),
  "does not turn those of one time": driver => ({
    list: query =>
      Effect.map(
        driver.list({ ...query, direction: "asc", offset: 0, limit: everything.limit }),
        ({ rows, total }) => {
          const time = (row: TaskRow) => row[query.orderBy] ?? Number.MIN_SAFE_INTEGER
          const turned =
            query.direction === "asc" ? rows : [...rows].sort((one, other) => time(other) - time(one))
          return { rows: turned.slice(query.offset, query.offset + query.limit), total }
        }
      )
  }),
  "takes the page for the total": driver => ({
    list: query => Effect.map(driver.list(query), ({ rows }) => ({ rows, total: rows.length }))
  }),
  "deletes what nobody was told": driver => ({
    deleteSettled: (settled, age) =>
      Effect.gen(function* () {
        const { rows } = yield* driver.list({ ...everything, statuses: settled })
        for (const { id } of rows) yield* driver.update(id, { statuses }, { isDelivered: 1 })
        return yield* driver.deleteSettled(settled, age)
      })
  }),
  "deletes whatever the age is": driver => ({
    deleteSettled: settled => driver.deleteSettled(settled, 0)
  }),
  "deletes by the time that a process has written": driver => ({
    deleteSettled: (settled, age) =>
      Effect.gen(function* () {
        const { rows } = yield* driver.list({ ...everything, statuses: settled })
        const latest = Date.now() - age
        return rows.some(({ completedAt }) => completedAt !== null && completedAt <= latest)
          ? yield* driver.deleteSettled(settled, 0)
          : 0
      })
  }),
  "judges leases by the clock of the caller": driver => {
    const ends = new Map<string, number>()
    return {
      renewLease: (owner, milliseconds) =>
        Effect.flatMap(Clock.currentTimeMillis, now => {
          ends.set(owner, now + milliseconds)
          return driver.renewLease(owner, Number.MAX_SAFE_INTEGER)
        }),
      inherit: heir =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          for (const [owner, end] of ends) if (end <= now) yield* driver.dropLease(owner)
          return yield* driver.inherit(heir)
        })
    }
  },
  "takes a lease for over before it is": driver => ({
    renewLease: owner => driver.renewLease(owner, 0)
  }),
  "owns what is suspended and delivered": driver => ({
    owned: owner => Effect.map(driver.list(everything), ({ rows }) => rows.filter(row => row.owner === owner))
  }),
  "owns pending tasks only": driver => ({
    owned: owner =>
      Effect.map(driver.owned(owner), places => places.filter(({ status }) => status === "pending"))
  }),
  "keeps a lease that is dropped": () => ({ dropLease: () => Effect.void }),
  "inherits from those who never had a lease only": driver => ({
    renewLease: owner => driver.renewLease(owner, Number.MAX_SAFE_INTEGER)
  }),
  "inherits suspended tasks": driver => ({
    inherit: heir =>
      Effect.gen(function* () {
        const inherited = yield* driver.inherit(heir)
        const [first] = inherited
        if (first === undefined) return inherited
        const query = { ...everything, statuses: ["suspended"], agentId: first.agentId } as const
        const { rows } = yield* driver.list(query)
        return [...inherited, ...rows.map(row => ({ ...row, owner: heir }))]
      })
  }),
  "inherits what was told": driver => ({
    update: (id, expected, change) => {
      const { isDelivered: _, ...rest } = change
      return driver.update(id, expected, change.isDelivered === 1 ? rest : change)
    }
  }),
  "gives rows as they were before": driver => ({
    inherit: heir => Effect.map(driver.inherit(heir), rows => rows.map(row => ({ ...row, owner: null })))
  }),
  "gives what is inherited backwards": driver => ({
    inherit: heir => Effect.map(driver.inherit(heir), rows => [...rows].reverse())
  }),
  "gives a task to each that asks at the same time": driver => {
    let last: ReadonlyArray<TaskRow> = []
    return {
      inherit: heir =>
        Effect.gen(function* () {
          const rows = yield* driver.inherit(heir)
          if (rows.length > 0) last = rows
          const given = rows.length > 0 ? rows : last
          yield* Effect.yieldNow()
          last = []
          return given.map(row => ({ ...row, owner: heir }))
        })
    }
  }
}

/** What each does wrong, and how to make one. */
export const brokenTaskDrivers: ReadonlyArray<readonly [wrong: string, make: () => Encoded]> = Object.entries(
  mutations
).map(([wrong, mutate]) => [
  wrong,
  () => {
    const driver = memoryTasks.make(Clock.make())
    return { ...driver, ...mutate(driver) }
  }
])

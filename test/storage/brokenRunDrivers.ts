/** Drivers of runs that are wrong in one way each: what the conformance cases are there to find. */
import { Clock, Effect, Option } from "effect"
import * as memoryRuns from "../../src/storage/memoryRuns.js"
import type { Encoded, RunQuery, RunRow } from "../../src/storage/runRows.js"

type Mutation = (driver: Encoded, clock: Clock.Clock) => Partial<Encoded>

const revisionOf = (driver: Encoded, runId: string) =>
  Effect.map(driver.get(runId), found => Option.getOrUndefined(found)?.revision)

/** All runs that match, for mutations that need to know more than a page. */
const listed =
  (change: (rows: ReadonlyArray<RunRow>, query: RunQuery) => ReadonlyArray<RunRow>): Mutation =>
  driver => ({
    list: query =>
      Effect.map(driver.list({ ...query, offset: 0, limit: 1_000_000 }), ({ rows, total }) => ({
        rows: change(rows, query).slice(query.offset, query.offset + query.limit),
        total
      }))
  })

const changedSnapshots =
  (change: (snapshot: string) => string): Mutation =>
  driver => ({
    save: (run, expected, now, lease) =>
      driver.save({ ...run, snapshot: change(run.snapshot) }, expected, now, lease)
  })

const mutations: Readonly<Record<string, Mutation>> = {
  "saves whatever is there": driver => ({
    save: (run, _, now, lease) =>
      Effect.flatMap(revisionOf(driver, run.runId), revision => driver.save(run, revision, now, lease))
  }),
  "looks before it saves": driver => ({
    save: (run, expected, now, lease) =>
      Effect.gen(function* () {
        const revision = yield* revisionOf(driver, run.runId)
        if (revision !== expected) return Option.none()
        yield* Effect.yieldNow()
        return yield* driver.save(run, yield* revisionOf(driver, run.runId), now, lease)
      })
  }),
  "deletes before it saves": driver => ({
    save: (run, expected, now, lease) =>
      Effect.gen(function* () {
        const row = Option.getOrUndefined(yield* driver.get(run.runId))
        if (row?.revision !== expected) return Option.none()
        if (row !== undefined) yield* driver.delete(run.runId, undefined)
        return yield* driver.save(run, undefined, now, lease)
      })
  }),
  "takes a revision that is not there for none": driver => ({
    save: (run, expected, now, lease) =>
      Effect.flatMap(revisionOf(driver, run.runId), revision =>
        driver.save(run, revision === undefined ? undefined : expected, now, lease)
      )
  }),
  "does not count revisions": driver => ({
    save: (run, expected, now, lease) =>
      Effect.map(
        driver.save(run, expected, now, lease),
        Option.map(row => ({ ...row, revision: 1 }))
      )
  }),
  "keeps the time of the last change": driver => ({
    save: (run, expected, now, lease) =>
      Effect.gen(function* () {
        const row = Option.getOrUndefined(yield* driver.get(run.runId))
        return yield* driver.save(run, expected, row?.updatedAt ?? now, lease)
      })
  }),
  "keeps the thread of a run that is saved again": driver => ({
    save: (run, expected, now, lease) =>
      Effect.gen(function* () {
        const row = Option.getOrUndefined(yield* driver.get(run.runId))
        return yield* driver.save(
          { ...run, threadId: run.threadId ?? row?.threadId ?? null },
          expected,
          now,
          lease
        )
      })
  }),
  "parses snapshots and drops NUL": changedSnapshots(text => text.replaceAll("\\u0000", "")),
  "cuts long snapshots": changedSnapshots(text => (text.length > 65_535 ? '"cut"' : text)),
  "takes an empty snapshot for nothing": changedSnapshots(text => (text === '""' ? "null" : text)),
  "deletes whatever the revision is": driver => ({
    delete: runId => driver.delete(runId, undefined)
  }),
  "looks before it deletes": driver => ({
    delete: (runId, expected) =>
      Effect.gen(function* () {
        const revision = yield* revisionOf(driver, runId)
        yield* Effect.yieldNow()
        if (revision === undefined || (expected !== undefined && revision !== expected)) return false
        yield* driver.delete(runId, undefined)
        return true
      })
  }),
  "says always that there was one": driver => ({
    delete: (...given) => Effect.as(driver.delete(...given), true)
  }),
  "lists runs by the time of creation": listed(rows =>
    [...rows].sort((one, other) => one.createdAt - other.createdAt)
  ),
  "lists runs by the time of change": listed(rows =>
    [...rows].sort((one, other) => one.updatedAt - other.updatedAt)
  ),
  "lists runs backwards": listed(rows => [...rows].reverse()),
  "takes the page for the total": driver => ({
    list: query => Effect.map(driver.list(query), ({ rows }) => ({ rows, total: rows.length }))
  }),
  "lists runs of any resource": driver => ({
    list: query => driver.list({ ...query, resourceId: undefined })
  }),
  "forgets leases": driver => ({
    save: (run, expected, now) => driver.save(run, expected, now, undefined)
  }),
  "keeps one lease of each run": driver => ({
    get: runId =>
      Effect.map(
        driver.get(runId),
        Option.map(row => ({ ...row, holders: row.holders.slice(0, 1) }))
      )
  }),
  "takes each lease for over": driver => ({
    save: (run, expected, now, lease) =>
      driver.save(run, expected, now, lease && { ...lease, milliseconds: 0 })
  }),
  "takes each lease for good": driver => ({
    save: (run, expected, now, lease) =>
      driver.save(run, expected, now, lease && { ...lease, milliseconds: 3_600_000 })
  }),
  "judges leases by the clock of the caller": driver => {
    const ends = new Map<string, number>()
    const judged = (row: RunRow): Effect.Effect<RunRow> =>
      Effect.map(Clock.currentTimeMillis, now => ({
        ...row,
        holders: row.holders.filter(owner => (ends.get(owner) ?? 0) > now)
      }))
    return {
      save: (run, expected, now, lease) =>
        Effect.gen(function* () {
          const time = yield* Clock.currentTimeMillis
          if (lease !== undefined) ends.set(lease.owner, time + lease.milliseconds)
          const good = lease && { ...lease, milliseconds: 3_600_000 }
          const saved = yield* driver.save(run, expected, now, good)
          return Option.isNone(saved) ? saved : Option.some(yield* judged(saved.value))
        }),
      get: runId =>
        Effect.flatMap(driver.get(runId), found =>
          Option.isNone(found) ? Effect.succeed(found) : Effect.asSome(judged(found.value))
        ),
      list: query =>
        Effect.flatMap(driver.list(query), ({ rows, total }) =>
          Effect.map(Effect.forEach(rows, judged), rows => ({ rows, total }))
        )
    }
  },
  "reserves an id that is reserved": driver => ({
    reserve: (reservation, milliseconds) =>
      Effect.zipRight(driver.release(reservation.runId), driver.reserve(reservation, milliseconds))
  }),
  "reserves the id of a run that is saved": (_, clock) => {
    const { release, reservation, reserve } = memoryRuns.make(clock)
    return { release, reservation, reserve }
  },
  "looks before it reserves": driver => ({
    reserve: (reservation, milliseconds) =>
      Effect.gen(function* () {
        const { runId } = reservation
        const isTaken = Option.isSome(yield* driver.reservation(runId))
        if (isTaken || Option.isSome(yield* driver.get(runId))) return false
        yield* Effect.yieldNow()
        yield* driver.release(runId)
        return yield* driver.reserve(reservation, milliseconds)
      })
  }),
  "keeps reservations for ever": driver => ({
    reserve: reservation => driver.reserve(reservation, 3_600_000)
  }),
  "judges reservations by the clock of the caller": driver => {
    const ends = new Map<string, number>()
    return {
      reserve: (reservation, milliseconds) =>
        Effect.flatMap(Clock.currentTimeMillis, now => {
          if (!ends.has(reservation.runId)) ends.set(reservation.runId, now + milliseconds)
          return driver.reserve(reservation, milliseconds)
        }),
      reservation: runId =>
        Effect.flatMap(Clock.currentTimeMillis, now =>
          (ends.get(runId) ?? 0) > now ? driver.reservation(runId) : Effect.succeedNone
        )
    }
  },
  "forgets who has reserved": driver => ({
    reserve: (reservation, milliseconds) => driver.reserve({ ...reservation, resourceId: null }, milliseconds)
  }),
  "releases nothing": () => ({ release: () => Effect.void }),
  "reserves an id by saving a run": driver => ({
    reserve: (reservation, milliseconds) =>
      Effect.gen(function* () {
        const { resourceId, runId } = reservation
        if (!(yield* driver.reserve(reservation, milliseconds))) return false
        const run = { runId, agentId: "", threadId: null, resourceId, snapshot: "0" }
        yield* driver.save(run, undefined, 0, undefined)
        return true
      })
  }),
  "compares ids without spaces at the end": driver => ({
    get: runId =>
      Effect.flatMap(driver.get(runId.trimEnd()), found =>
        Option.isSome(found) ? Effect.succeed(found) : driver.get(runId)
      )
  })
}

/** What each does wrong, and how to make one. */
export const brokenRunDrivers: ReadonlyArray<readonly [wrong: string, make: () => Encoded]> = Object.entries(
  mutations
).map(([wrong, mutate]) => [
  wrong,
  () => {
    const clock = Clock.make()
    const driver = memoryRuns.make(clock)
    return { ...driver, ...mutate(driver, clock) }
  }
])

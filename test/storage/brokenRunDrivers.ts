/** Drivers of runs that are wrong in one way each: what the conformance cases are there to find. */
import { Effect, Option } from "effect"
import * as memoryRuns from "../../src/storage/memoryRuns.js"
import type { Encoded, RunQuery, RunRow } from "../../src/storage/runRows.js"

type Mutation = (driver: Encoded) => Partial<Encoded>

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
    save: (run, expected, now) => driver.save({ ...run, snapshot: change(run.snapshot) }, expected, now)
  })

const mutations: Readonly<Record<string, Mutation>> = {
  "saves whatever is there": driver => ({
    save: (run, _, now) =>
      Effect.flatMap(revisionOf(driver, run.runId), revision => driver.save(run, revision, now))
  }),
  "looks before it saves": driver => ({
    save: (run, expected, now) =>
      Effect.gen(function* () {
        const revision = yield* revisionOf(driver, run.runId)
        if (revision !== expected) return Option.none()
        yield* Effect.yieldNow()
        return yield* driver.save(run, yield* revisionOf(driver, run.runId), now)
      })
  }),
  "deletes before it saves": driver => ({
    save: (run, expected, now) =>
      Effect.gen(function* () {
        const row = Option.getOrUndefined(yield* driver.get(run.runId))
        if (row?.revision !== expected) return Option.none()
        if (row !== undefined) yield* driver.delete(run.runId, undefined)
        return yield* driver.save(run, undefined, now)
      })
  }),
  "takes a revision that is not there for none": driver => ({
    save: (run, expected, now) =>
      Effect.flatMap(revisionOf(driver, run.runId), revision =>
        driver.save(run, revision === undefined ? undefined : expected, now)
      )
  }),
  "does not count revisions": driver => ({
    save: (run, expected, now) =>
      Effect.map(
        driver.save(run, expected, now),
        Option.map(row => ({ ...row, revision: 1 }))
      )
  }),
  "keeps the time of the last change": driver => ({
    save: (run, expected, now) =>
      Effect.gen(function* () {
        const row = Option.getOrUndefined(yield* driver.get(run.runId))
        return yield* driver.save(run, expected, row?.updatedAt ?? now)
      })
  }),
  "keeps the thread of a run that is saved again": driver => ({
    save: (run, expected, now) =>
      Effect.gen(function* () {
        const row = Option.getOrUndefined(yield* driver.get(run.runId))
        return yield* driver.save({ ...run, threadId: run.threadId ?? row?.threadId ?? null }, expected, now)
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
  "reserves an id that is reserved": driver => ({
    reserve: (reservation, now) =>
      Effect.zipRight(driver.release(reservation.runId), driver.reserve(reservation, now))
  }),
  "reserves the id of a run that is saved": () => {
    const { release, reservation, reserve } = memoryRuns.make()
    return { release, reservation, reserve }
  },
  "looks before it reserves": driver => ({
    reserve: (reservation, now) =>
      Effect.gen(function* () {
        const { runId } = reservation
        const isTaken = Option.isSome(yield* driver.reservation(runId, now))
        if (isTaken || Option.isSome(yield* driver.get(runId))) return false
        yield* Effect.yieldNow()
        yield* driver.release(runId)
        return yield* driver.reserve(reservation, now)
      })
  }),
  "keeps reservations for ever": driver => ({
    reserve: (reservation, now) => driver.reserve({ ...reservation, until: Number.MAX_SAFE_INTEGER }, now),
    reservation: (runId, now) => driver.reservation(runId, now)
  }),
  "shows reservations that hold no longer": driver => ({
    reservation: runId => driver.reservation(runId, 0)
  }),
  "forgets who has reserved": driver => ({
    reserve: (reservation, now) => driver.reserve({ ...reservation, resourceId: null }, now)
  }),
  "releases nothing": () => ({ release: () => Effect.void }),
  "reserves an id by saving a run": driver => ({
    reserve: (reservation, now) =>
      Effect.gen(function* () {
        const { resourceId, runId } = reservation
        if (!(yield* driver.reserve(reservation, now))) return false
        yield* driver.save({ runId, agentId: "", threadId: null, resourceId, snapshot: "0" }, undefined, now)
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
    const driver = memoryRuns.make()
    return { ...driver, ...mutate(driver) }
  }
])

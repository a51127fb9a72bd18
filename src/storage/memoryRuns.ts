/** Runs in the memory of the process. Each operation is one synchronous step, and that is what makes it atomic. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Encoded, ReservationRow, RunRow } from "./runRows.js"

const filters = ["agentId", "threadId", "resourceId"] as const

/** A run, and when the lease of each owner ends. */
interface Kept {
  readonly row: Omit<RunRow, "holders">
  readonly leases: ReadonlyMap<string, number>
}

/** A driver whose runs go with it. `clock` is the clock of the store. */
export const make = (clock: Clock.Clock): Encoded => {
  /** In the order in which they were saved first: a run that is saved again keeps its place. */
  const runs = new Map<string, Kept>()
  const living = (leases: Kept["leases"]): ReadonlyArray<readonly [string, number]> => {
    const time = clock.unsafeCurrentTimeMillis()
    return Array.from(leases).filter(([, end]) => end > time)
  }
  const toRow = ({ leases, row }: Kept): RunRow => ({
    ...row,
    holders: living(leases).map(([owner]) => owner)
  })

  /** In the order in which they were made, and when each ends. */
  const reservations = new Map<string, { readonly row: ReservationRow; readonly end: number }>()

  const reserved = (runId: string): ReservationRow | undefined => {
    const found = reservations.get(runId)
    return found !== undefined && found.end > clock.unsafeCurrentTimeMillis() ? found.row : undefined
  }

  /** Deletes the oldest that hold no longer: each is made once, so that all of them go in time. */
  const deleteExpired = (): void => {
    for (const [runId, { end }] of reservations) {
      if (end > clock.unsafeCurrentTimeMillis()) return
      reservations.delete(runId)
    }
  }

  return {
    save: (run, expectedRevision, now, lease) =>
      Effect.sync(() => {
        const stored = runs.get(run.runId)
        if (stored?.row.revision !== expectedRevision) return Option.none()
        const { createdAt = now, revision = 0 } = stored?.row ?? {}
        const leases = new Map(living(stored?.leases ?? new Map()))
        if (lease !== undefined) {
          leases.set(lease.owner, clock.unsafeCurrentTimeMillis() + lease.milliseconds)
        }
        const kept = { row: { ...run, revision: revision + 1, createdAt, updatedAt: now }, leases }
        runs.set(run.runId, kept)
        return Option.some(toRow(kept))
      }),
    get: runId => Effect.sync(() => Option.map(Option.fromNullable(runs.get(runId)), toRow)),
    delete: (runId, expectedRevision) =>
      Effect.sync(() => {
        if (expectedRevision !== undefined && runs.get(runId)?.row.revision !== expectedRevision) return false
        return runs.delete(runId)
      }),
    list: query =>
      Effect.sync(() => {
        const asked = filters.filter(field => query[field] !== undefined)
        const found = Array.from(runs.values()).filter(({ row }) =>
          asked.every(field => row[field] === query[field])
        )
        const page = found.slice(query.offset, query.offset + query.limit)
        return { rows: page.map(toRow), total: found.length }
      }),
    reserve: (reservation, milliseconds) =>
      Effect.sync(() => {
        deleteExpired()
        const { runId } = reservation
        if (runs.has(runId) || reserved(runId) !== undefined) return false
        reservations.delete(runId)
        reservations.set(runId, { row: reservation, end: clock.unsafeCurrentTimeMillis() + milliseconds })
        return true
      }),
    reservation: runId => Effect.sync(() => Option.fromNullable(reserved(runId))),
    release: runId => Effect.sync(() => void reservations.delete(runId))
  }
}

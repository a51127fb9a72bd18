/** Runs in the memory of the process. Each operation is one synchronous step, and that is what makes it atomic. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Encoded, ReservationRow, RunRow } from "./runRows.js"

const filters = ["agentId", "threadId", "resourceId"] as const

/** A driver whose runs go with it. */
export const make = (): Encoded => {
  /** In the order in which they were saved first: a run that is saved again keeps its place. */
  const runs = new Map<string, RunRow>()
  /** In the order in which they were made. */
  const reservations = new Map<string, ReservationRow>()

  const reserved = (runId: string, now: number): ReservationRow | undefined => {
    const found = reservations.get(runId)
    return found !== undefined && found.until > now ? found : undefined
  }

  /** Deletes the oldest that hold no longer: each is made once, so that all of them go in time. */
  const deleteExpired = (now: number): void => {
    for (const { runId, until } of reservations.values()) {
      if (until > now) return
      reservations.delete(runId)
    }
  }

  return {
    save: (run, expectedRevision, now) =>
      Effect.sync(() => {
        const stored = runs.get(run.runId)
        if (stored?.revision !== expectedRevision) return Option.none()
        const { createdAt = now, revision = 0 } = stored ?? {}
        const row = { ...run, revision: revision + 1, createdAt, updatedAt: now }
        runs.set(run.runId, row)
        return Option.some(row)
      }),
    get: runId => Effect.sync(() => Option.fromNullable(runs.get(runId))),
    delete: (runId, expectedRevision) =>
      Effect.sync(() => {
        if (expectedRevision !== undefined && runs.get(runId)?.revision !== expectedRevision) return false
        return runs.delete(runId)
      }),
    list: query =>
      Effect.sync(() => {
        const asked = filters.filter(field => query[field] !== undefined)
        const found = Array.from(runs.values()).filter(row =>
          asked.every(field => row[field] === query[field])
        )
        return { rows: found.slice(query.offset, query.offset + query.limit), total: found.length }
      }),
    reserve: (reservation, now) =>
      Effect.sync(() => {
        deleteExpired(now)
        const { runId } = reservation
        if (runs.has(runId) || reserved(runId, now) !== undefined) return false
        reservations.delete(runId)
        reservations.set(runId, reservation)
        return true
      }),
    reservation: (runId, now) => Effect.sync(() => Option.fromNullable(reserved(runId, now))),
    release: runId => Effect.sync(() => void reservations.delete(runId))
  }
}

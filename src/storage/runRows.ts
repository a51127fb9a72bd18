/** What stands behind a run store: rows of strings and numbers, and the few things that a database does with them. */
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"

/** A run as a database keeps it. Times are milliseconds since 1970. @since 0.1.0 @category drivers */
export interface RunRow {
  /** Primary key. */
  readonly runId: string
  readonly agentId: string
  readonly threadId: string | null
  readonly resourceId: string | null
  /** The text of a JSON value. It is given back as it is, byte for byte. */
  readonly snapshot: string
  /** 1 for a run that is saved first, and one more each time that it is saved again. */
  readonly revision: number
  /** When it was saved first. */
  readonly createdAt: number
  /** When it was saved last. */
  readonly updatedAt: number
  /** The owners whose leases on the run have not ended, in any order. */
  readonly holders: ReadonlyArray<string>
}

/** The right to go on with something of a run, for so many milliseconds from now. @since 0.1.0 @category drivers */
export interface LeaseRow {
  readonly owner: string
  readonly milliseconds: number
}

/** What of a run is given to be saved. @since 0.1.0 @category drivers */
export type NewRunRow = Pick<RunRow, "runId" | "agentId" | "threadId" | "resourceId" | "snapshot">

/** An id that a run has taken when it started, and whose the run is. @since 0.1.0 @category drivers */
export interface ReservationRow {
  /** Primary key. */
  readonly runId: string
  readonly resourceId: string | null
}

/** Which runs are asked for: those that match everything that is not `undefined`. @since 0.1.0 @category drivers */
export interface RunQuery {
  readonly agentId: string | undefined
  readonly threadId: string | undefined
  readonly resourceId: string | undefined
  readonly offset: number
  readonly limit: number
}

/**
 * What a database does for a run store. It may fail with anything, which becomes the cause of a `StorageError`.
 *
 * Each operation is atomic: it is done whole or not at all, also when it is interrupted, and no other sees half of it. Strings
 * are compared and kept exactly. They are well-formed. Numbers are safe integers, not negative.
 *
 * Leases are measured by one clock, the store's: that of the database where there is one. The clocks of the processes that call
 * the driver may differ from it, and from each other. A run may have leases of several owners.
 *
 * @since 0.1.0
 * @category drivers
 */
export interface Encoded {
  /**
   * Compare and set. Without an expected revision: stores the run, as revision 1 with `now` as both of its times, if there
   * is none of this id. With one: replaces everything but `createdAt` and the place in the list, if the run that is there
   * has this revision; `now` becomes `updatedAt`, and the revision is one more. The run as it is then; none, and nothing is
   * changed, otherwise.
   *
   * With a lease, its owner has one on the run from then on, which replaces the owner's last one; leases of others stay until
   * they end.
   */
  readonly save: (
    run: NewRunRow,
    expectedRevision: number | undefined,
    now: number,
    lease: LeaseRow | undefined
  ) => Effect.Effect<Option.Option<RunRow>, unknown>
  readonly get: (runId: string) => Effect.Effect<Option.Option<RunRow>, unknown>
  /** Deletes the run and its leases, if it has this revision when one is expected. Whether it did. */
  readonly delete: (runId: string, expectedRevision: number | undefined) => Effect.Effect<boolean, unknown>
  /**
   * A page, and how many runs match in all. In the order in which they were saved first, whatever their times say; one that
   * was deleted and saved anew comes last.
   */
  readonly list: (
    query: RunQuery
  ) => Effect.Effect<{ readonly rows: ReadonlyArray<RunRow>; readonly total: number }, unknown>
  /**
   * Stores the reservation, which holds for so long from now by the clock of the store, if no run of this id is saved and no
   * other reservation of it holds. Whether it did. Reservations that hold no longer may be deleted.
   */
  readonly reserve: (reservation: ReservationRow, milliseconds: number) => Effect.Effect<boolean, unknown>
  /** The reservation of the id that holds now. */
  readonly reservation: (runId: string) => Effect.Effect<Option.Option<ReservationRow>, unknown>
  /** Deletes the reservation of the id. */
  readonly release: (runId: string) => Effect.Effect<void, unknown>
}

/**
 * Where runs are kept that wait for somebody: suspended, until they are told how to go on, by this process or another.
 *
 * What a run is made of is its own matter: the store keeps a snapshot, which is any JSON value, and gives it back equal. A
 * run that is saved has a revision, and whoever replaces or deletes it says which one was read: of two that go on with one
 * run at the same time, one is told that it came too late.
 *
 * An id can be reserved for a run before there is anything of it to save, so that no other run takes it meanwhile, in whatever
 * process, and so that it is known whose run it is.
 *
 * The service is typed; the driver behind it ({@link Encoded}) knows rows of strings and numbers only. `RunStoreConformance`
 * of `eddy/testing` says whether a driver does what is told here.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { StorageError } from "../protocol/Errors.js"
import { lazily } from "../protocol/lazily.js"
import { type JsonValue, wellFormed } from "../protocol/safeJson.js"
import { ask, milliseconds, optionalText, whole } from "./asking.js"
import * as memoryRuns from "./memoryRuns.js"
import type { Encoded, LeaseRow } from "./runRows.js"

export type { Encoded, LeaseRow, NewRunRow, ReservationRow, RunQuery, RunRow } from "./runRows.js"

/** A run to be saved. @since 0.1.0 @category models */
export interface NewRun {
  readonly runId: string
  /** The agent that runs it. */
  readonly agentId: string
  /** The thread that it belongs to, when it has one. */
  readonly threadId?: string
  /** Whose it is, with a thread or without. */
  readonly resourceId?: string
  /** What is needed to go on with it. */
  readonly snapshot: JsonValue
}

/** A run that is saved. @since 0.1.0 @category models */
export interface StoredRun extends NewRun {
  /** 1 for a run that is saved first, and one more each time that it is saved again. */
  readonly revision: number
  /** When it was saved first. */
  readonly createdAt: Date
  /** When it was saved last. */
  readonly updatedAt: Date
  /** The owners whose leases on the run had not ended when it was read or saved, by the clock of the store. */
  readonly holders: ReadonlyArray<string>
}

/** The right to go on with something of a run, for so long from now. @since 0.1.0 @category models */
export interface Lease {
  readonly owner: string
  readonly duration: Duration.DurationInput
}

/** An id that a run takes when it starts. @since 0.1.0 @category models */
export interface Reservation {
  readonly runId: string
  /** Whose the run is. */
  readonly resourceId?: string
}

/** Which runs to list: those that match everything that is given. @since 0.1.0 @category models */
export interface ListOptions {
  /** Of the agent of this id. */
  readonly agentId?: string
  /** In this thread. */
  readonly threadId?: string
  /** Of this resource. */
  readonly resourceId?: string
  /** From 0, which is the default. */
  readonly page?: number
  /** Default 100. 0 gives the total only. */
  readonly perPage?: number
}

/** A page of runs, and how many there are on all pages. @since 0.1.0 @category models */
export interface RunPage {
  readonly runs: ReadonlyArray<StoredRun>
  readonly total: number
}

/**
 * The store of runs. Every operation fails with `StorageError` when the driver does, and when a row cannot be read; it is
 * done whole or not at all, also when it is interrupted.
 *
 * @since 0.1.0
 * @category services
 */
export class RunStore extends Context.Tag("eddy/RunStore")<
  RunStore,
  {
    /**
     * Compare and set. `undefined` expects that there is no run of this id, and stores it; a revision expects that the run
     * has it still, and replaces everything but `createdAt`. The run as it is stored; none, and nothing is changed, when it
     * is not as expected. Fails when the snapshot has no JSON form.
     *
     * With a lease, its owner holds the run from then on: see `holders`. The store computes when the lease ends, and judges it,
     * by its own clock. It replaces the last lease of the same owner; those of others stay until they end.
     */
    readonly save: (
      run: NewRun,
      expectedRevision: number | undefined,
      lease?: Lease
    ) => Effect.Effect<Option.Option<StoredRun>, StorageError>
    readonly get: (runId: string) => Effect.Effect<Option.Option<StoredRun>, StorageError>
    /** Deletes the run: when a revision is expected, only if it has it. Whether it did. */
    readonly delete: (runId: string, expectedRevision?: number) => Effect.Effect<boolean, StorageError>
    /** The run that was saved first comes first; saving it again does not move it. */
    readonly list: (options?: ListOptions) => Effect.Effect<RunPage, StorageError>
    /**
     * Takes an id for a run that starts. `false`, and nothing is changed: a run of this id is saved, or another reservation of
     * it holds. Of many that reserve one id at once, one gets it. Saving a run does not need a reservation, and leaves it.
     */
    readonly reserve: (
      reservation: Reservation,
      duration: Duration.DurationInput
    ) => Effect.Effect<boolean, StorageError>
    /** The reservation of an id that holds. */
    readonly reservation: (runId: string) => Effect.Effect<Option.Option<Reservation>, StorageError>
    /** Gives the id back: the run that was to take it has not started. */
    readonly release: (runId: string) => Effect.Effect<void, StorageError>
  }
>() {}

/** Loaded when the first row is read: it needs schemas, which take long to load. */
const rows = lazily(() => import("./storedRuns.js"))

/**
 * Not made safe, as values from outside are: that would cut what is nested deep, and a run that goes on must find what it
 * left.
 */
const write = (operation: string, { runId, snapshot }: NewRun): Either.Either<string, StorageError> =>
  Either.try({
    try: () => {
      const text: string | undefined = JSON.stringify(snapshot)
      if (text === undefined) throw new TypeError(`The snapshot is of type ${typeof snapshot}.`)
      return text
    },
    catch: cause =>
      new StorageError({
        operation,
        message: `Run "${runId}" cannot be stored: its snapshot is no JSON. Make it with Json.toJson first.`,
        cause
      })
  })

const leaseRow = (lease: Lease | undefined): LeaseRow | undefined =>
  lease && { owner: wellFormed(lease.owner), milliseconds: milliseconds(lease.duration) }

/** The service over a driver. @since 0.1.0 @category constructors */
export const make = (driver: Encoded): Context.Tag.Service<RunStore> => ({
  save: Effect.fnUntraced(function* (run, expectedRevision, lease) {
    const operation = "RunStore.save"
    const { readRun } = yield* rows
    const given = {
      runId: wellFormed(run.runId),
      agentId: wellFormed(run.agentId),
      threadId: optionalText(run.threadId) ?? null,
      resourceId: optionalText(run.resourceId) ?? null,
      snapshot: yield* write(operation, run)
    }
    const now = yield* Clock.currentTimeMillis
    const row = yield* ask(operation, driver.save(given, expectedRevision, now, leaseRow(lease)))
    return Option.isNone(row) ? Option.none() : Option.some(yield* readRun(operation, row.value))
  }),
  get: Effect.fnUntraced(function* (runId) {
    const operation = "RunStore.get"
    const { readRun } = yield* rows
    const row = yield* ask(operation, driver.get(wellFormed(runId)))
    return Option.isNone(row) ? Option.none() : Option.some(yield* readRun(operation, row.value))
  }),
  delete: Effect.fnUntraced(function* (runId, expectedRevision) {
    return yield* ask("RunStore.delete", driver.delete(wellFormed(runId), expectedRevision))
  }),
  list: Effect.fnUntraced(function* ({ agentId, page = 0, perPage = 100, resourceId, threadId } = {}) {
    const operation = "RunStore.list"
    const { readRun } = yield* rows
    const limit = whole(perPage)
    const found = yield* ask(
      operation,
      driver.list({
        agentId: optionalText(agentId),
        threadId: optionalText(threadId),
        resourceId: optionalText(resourceId),
        offset: whole(whole(page) * limit),
        limit
      })
    )
    return { runs: yield* Either.all(found.rows.map(row => readRun(operation, row))), total: found.total }
  }),
  reserve: ({ resourceId, runId }, duration) =>
    Effect.suspend(() => {
      const row = { runId: wellFormed(runId), resourceId: optionalText(resourceId) ?? null }
      return ask("RunStore.reserve", driver.reserve(row, milliseconds(duration)))
    }),
  reservation: Effect.fnUntraced(function* (runId) {
    const row = yield* ask("RunStore.reservation", driver.reservation(wellFormed(runId)))
    return Option.map(row, ({ resourceId, ...found }) => ({
      ...found,
      ...(resourceId === null ? {} : { resourceId })
    }))
  }),
  release: runId => Effect.suspend(() => ask("RunStore.release", driver.release(wellFormed(runId))))
})

/**
 * Runs in the memory of the process, gone when the layer is. Its clock is the `Clock` that the layer is built with.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<RunStore> = Layer.effect(
  RunStore,
  Effect.map(Effect.clock, clock => make(memoryRuns.make(clock)))
)

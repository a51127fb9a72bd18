/** Where runs are kept that have not ended: in the store, or in the memory of the process when there is none. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { StorageError } from "../protocol/Errors.js"
import { lazily } from "../protocol/lazily.js"
import type { JsonValue } from "../protocol/safeJson.js"
import type { Lease, RunStore } from "../storage/RunStore.js"
import type { Snapshot } from "./state.js"

/** A run that is kept. */
export interface Kept {
  readonly runId: string
  readonly snapshot: Snapshot
  readonly revision: number
  /** The owners whose leases on it have not ended. */
  readonly holders: ReadonlyArray<string>
}

/** Whether a run goes on, here or in another process: its claim ends with the lease of its owner. */
export const isClaimed = ({ holders, snapshot }: Kept): boolean =>
  snapshot.claim !== undefined && holders.includes(snapshot.claim.owner)

/** The runs of one workflow. */
export interface Shelf {
  /** Whether it outlives the process: then it is told of every step, and not only of runs that wait. */
  readonly isDurable: boolean
  /** The new revision; none when the run has not the expected one. `undefined` expects that there is none. */
  readonly save: (
    runId: string,
    snapshot: Snapshot,
    expected: number | undefined,
    lease?: Lease
  ) => Effect.Effect<Option.Option<number>, StorageError>
  readonly get: (runId: string) => Effect.Effect<Option.Option<Kept>, StorageError>
  readonly remove: (runId: string, expected: number | undefined) => Effect.Effect<boolean, StorageError>
  readonly list: (
    page: number,
    perPage: number
  ) => Effect.Effect<{ readonly runs: ReadonlyArray<Kept>; readonly total: number }, StorageError>
}

/** Needs schemas: loaded when the first run is read. */
const reading = lazily(() => import("./storedSnapshot.js"))

/** The name under which the store has the runs of a workflow. */
const ownerOf = (workflowId: string): string => `workflow:${workflowId}`

/** What a snapshot holds was made JSON when it came in: once more would copy it, and cut what is nested deep. */
const json = (snapshot: Snapshot): JsonValue => snapshot as unknown as JsonValue

/** In a store. */
export const stored = (store: RunStore["Type"], workflowId: string): Shelf => ({
  isDurable: true,
  save: (runId, snapshot, expected, lease) =>
    Effect.map(
      store.save({ runId, agentId: ownerOf(workflowId), snapshot: json(snapshot) }, expected, lease),
      Option.map(({ revision }) => revision)
    ),
  get: Effect.fnUntraced(function* (runId) {
    const { readSnapshot } = yield* reading
    const found = yield* store.get(runId)
    // A run of another workflow, or of an agent, is none of this one.
    if (Option.isNone(found) || found.value.agentId !== ownerOf(workflowId)) return Option.none()
    return Option.some(yield* readSnapshot(found.value))
  }),
  remove: (runId, expected) => store.delete(runId, expected),
  list: Effect.fnUntraced(function* (page, perPage) {
    const { readSnapshot } = yield* reading
    const { runs, total } = yield* store.list({ agentId: ownerOf(workflowId), page, perPage })
    return { runs: yield* Effect.forEach(runs, readSnapshot), total }
  })
})

/** In memory: runs that wait, as long as the workflow is there. A lease ends with its run: no other process can be there. */
export const inMemory = (): Shelf => {
  const kept = new Map<string, Kept>()
  return {
    isDurable: false,
    save: (runId, snapshot, expected, lease) =>
      Effect.sync(() => {
        if (kept.get(runId)?.revision !== expected) return Option.none()
        const revision = (expected ?? 0) + 1
        kept.set(runId, { runId, snapshot, revision, holders: lease === undefined ? [] : [lease.owner] })
        return Option.some(revision)
      }),
    get: runId => Effect.sync(() => Option.fromNullable(kept.get(runId))),
    remove: (runId, expected) =>
      Effect.sync(() => {
        if (expected !== undefined && kept.get(runId)?.revision !== expected) return false
        return kept.delete(runId)
      }),
    list: (page, perPage) =>
      Effect.sync(() => {
        const runs = [...kept.values()]
        return { runs: runs.slice(page * perPage, (page + 1) * perPage), total: runs.length }
      })
  }
}

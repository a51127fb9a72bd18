/** Suspended runs in their store: read, and changed by compare and set. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { RunNotFound, StorageError, ToolCallNotPending } from "../../protocol/Errors.js"
import { lazily } from "../../protocol/lazily.js"
import type { Lease, RunStore, StoredRun } from "../../storage/RunStore.js"
import { decidableIds, type Holders, pendingCalls, type Snapshot } from "./snapshot.js"

export type Store = Context.Tag.Service<RunStore>

/** A run as it is stored. */
export interface SavedRun {
  readonly stored: StoredRun
  readonly snapshot: Snapshot
}

/** Loaded when the first run is suspended or resumed: it needs schemas, which take long to load. */
export const schemas = lazily(() => import("./snapshotSchema.js"))

const unreadable = (runId: string, cause: unknown): StorageError =>
  new StorageError({
    operation: "RunStore.get",
    message: `Run "${runId}" cannot be read: its snapshot was written by another version, or changed since. Delete it, or go on with it by the version that suspended it.`,
    cause
  })

/** A run, read. */
export const read = Effect.fnUntraced(function* (stored: StoredRun) {
  const { decodeSnapshot } = yield* schemas
  const snapshot = yield* Either.mapLeft(decodeSnapshot(stored.snapshot), cause =>
    unreadable(stored.runId, cause)
  )
  const saved: SavedRun = { stored, snapshot }
  return saved
})

const write = Effect.fnUntraced(function* (runId: string, snapshot: Snapshot) {
  const { encodeSnapshot } = yield* schemas
  return yield* Either.mapLeft(
    encodeSnapshot(snapshot),
    cause =>
      new StorageError({
        operation: "RunStore.save",
        message: `Run "${runId}" cannot be stored: its conversation holds what no message may hold.`,
        cause
      })
  )
})

/** Stores a run that is suspended, under an id that no other suspended run may have. */
export const create = Effect.fnUntraced(function* (
  store: Store,
  run: Pick<StoredRun, "runId" | "agentId" | "threadId" | "resourceId">,
  snapshot: Snapshot
) {
  const stored = yield* store.save({ ...run, snapshot: yield* write(run.runId, snapshot) }, undefined)
  if (Option.isSome(stored)) return
  return yield* new StorageError({
    operation: "RunStore.save",
    message: `Run "${run.runId}" cannot be suspended: another run of this id is. Leave \`runId\` out, or give each run its own.`
  })
})

export const runNotFound = (runId: string | undefined, why: string): RunNotFound =>
  new RunNotFound({ runId, message: why })

const notHere = (runId: string): RunNotFound =>
  runNotFound(
    runId,
    `No run "${runId}" waits for a decision here: it is over, or check its id, the agent, the thread and its resource.`
  )

/** A run of an agent that waits. One that serves a call of another run is decided by that one. */
export const get = Effect.fnUntraced(function* (store: Store, runId: string, agentId: string) {
  const stored = yield* store.get(runId)
  if (Option.isNone(stored) || stored.value.agentId !== agentId) return yield* notHere(runId)
  return yield* read(stored.value)
})

export const notPending = (
  runId: string,
  toolCallId: string | undefined,
  snapshot: Snapshot,
  holders: Holders
): ToolCallNotPending => {
  const pending = pendingCalls(snapshot, holders).flatMap(decidableIds)
  const known = pending.length === 0 ? "none" : pending.join(", ")
  return new ToolCallNotPending({
    runId,
    toolCallId,
    pending,
    message:
      toolCallId === undefined
        ? `Run "${runId}" does not wait for exactly one call: give \`toolCallId\`. Calls that wait: ${known}.`
        : `Call "${toolCallId}" of run "${runId}" does not wait for a decision: it was decided already, or never waited. Calls that wait: ${known}.`
  })
}

/**
 * Changes a run, again and again until no other process was faster: `change` is called each time, with what is stored. A run that
 * is done is deleted. With a lease, its owner has one on the run from then on. The run as it is then.
 */
export const change = <E>(
  store: Store,
  runId: string,
  change: (snapshot: Snapshot, holders: Holders) => Either.Either<Snapshot, E>,
  isDone: (snapshot: Snapshot) => boolean,
  lease?: Lease
): Effect.Effect<Snapshot, E | StorageError | RunNotFound> =>
  Effect.gen(function* () {
    for (;;) {
      const found = yield* store.get(runId)
      if (Option.isNone(found)) return yield* notHere(runId)
      const { snapshot: before, stored } = yield* read(found.value)
      const after = yield* change(before, stored.holders)
      if (isDone(after)) {
        if (yield* store.delete(runId, stored.revision)) return after
        continue
      }
      const { agentId, resourceId, threadId } = stored
      const saved = yield* store.save(
        {
          runId,
          agentId,
          ...(threadId === undefined ? {} : { threadId }),
          ...(resourceId === undefined ? {} : { resourceId }),
          snapshot: yield* write(runId, after)
        },
        stored.revision,
        lease
      )
      if (Option.isSome(saved)) return after
    }
  })

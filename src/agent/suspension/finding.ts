/** Suspended runs of an agent: found by id or by thread, and listed with the calls that wait. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { PendingCall } from "../../output/PendingCall.js"
import { InvalidConfiguration } from "../../protocol/Errors.js"
import { checkOptions, id, type Kind, object } from "../../protocol/options.js"
import { RunStore, type StoredRun } from "../../storage/RunStore.js"
import { checked, checkMemory, checkResource } from "../checkOptions.js"
import type { MemoryOptions } from "../RunOptions.js"
import { read, runNotFound, type SavedRun, type Store } from "./savedRuns.js"
import { pendingCalls, waitsOf } from "./snapshot.js"

/** A run that waits for somebody. @since 0.1.0 @category models */
export interface SuspendedRun {
  readonly runId: string
  readonly agentId: string
  readonly threadId?: string
  readonly resourceId?: string
  /** When it was suspended first. */
  readonly suspendedAt: Date
  /** The calls that wait for a decision, in their order: not those that are being carried out. */
  readonly calls: ReadonlyArray<PendingCall>
}

/** Which suspended runs: those that match everything that is given. @since 0.1.0 @category models */
export interface SuspendedFilter {
  /** In this thread of this resource. */
  readonly memory?: MemoryOptions | undefined
  /** Of this resource, with a thread or without. */
  readonly resource?: string | undefined
  /** In the thread of this id. Refused beside `memory`, which names a thread. */
  readonly threadId?: string | undefined
  /** The run of this id. */
  readonly runId?: string | undefined
}

const threadIdOf = ({ thread }: MemoryOptions): string => (typeof thread === "string" ? thread : thread.id)

/** Where a run is, and whose: what is left out may be anything. */
interface Place {
  readonly threadId?: string
  readonly resourceId?: string
}

const placeOf = ({ memory, resource, threadId }: SuspendedFilter): Place =>
  memory === undefined
    ? {
        ...(threadId === undefined ? {} : { threadId }),
        ...(resource === undefined ? {} : { resourceId: resource })
      }
    : { threadId: threadIdOf(memory), resourceId: memory.resource }

const isIn = (run: StoredRun, { resourceId = run.resourceId, threadId = run.threadId }: Place): boolean =>
  run.threadId === threadId && run.resourceId === resourceId

const perPage = 100

/** Every run of an agent that is stored, in this place. */
const all = Effect.fnUntraced(function* (store: Store, agentId: string, place: Place) {
  const found: Array<SavedRun> = []
  for (let page = 0; ; page++) {
    const { runs } = yield* store.list({ agentId, ...place, page, perPage })
    for (const run of runs) found.push(yield* read(run))
    if (runs.length < perPage) return found
  }
})

/** The run of this id, if it is the agent's, in this place. */
const one = Effect.fnUntraced(function* (store: Store, agentId: string, runId: string, place: Place) {
  const stored = yield* store.get(runId)
  if (Option.isNone(stored) || stored.value.agentId !== agentId || !isIn(stored.value, place)) return []
  return [yield* read(stored.value)]
})

/** The run of an agent below that serves a call. */
export const servingRun = Effect.fnUntraced(function* (
  store: Store,
  agentId: string,
  call: { readonly runId: string; readonly toolCallId: string }
) {
  const runs = yield* all(store, agentId, {})
  return runs.find(
    ({ snapshot: { caller } }) => caller?.runId === call.runId && caller.toolCallId === call.toolCallId
  )
})

const elsewhere = (runId: string) =>
  runNotFound(
    runId,
    `No run "${runId}" waits for a decision here: it is over, or check its id, the agent, the thread and its resource.`
  )

/** The run that somebody decides about: by its id, or the only one that waits in the thread. */
export const locate = Effect.fnUntraced(function* (store: Store, agentId: string, filter: SuspendedFilter) {
  const { runId } = filter
  const place = placeOf(filter)
  if (runId !== undefined) {
    const [saved] = yield* one(store, agentId, runId, place)
    if (saved !== undefined && saved.snapshot.caller === undefined) return saved
    return yield* elsewhere(runId)
  }
  const runs = yield* all(store, agentId, place)
  const [only, ...others] = runs.filter(({ snapshot }) => snapshot.caller === undefined)
  if (only !== undefined && others.length === 0) return only
  return yield* runNotFound(
    undefined,
    only === undefined
      ? "No run of this agent waits for a decision in this thread: check the thread and its resource."
      : `${others.length + 1} runs of this agent wait for decisions in this thread: give \`runId\`.`
  )
})

const filterKinds = { memory: object, resource: id, runId: id, threadId: id } satisfies Record<
  keyof SuspendedFilter,
  Kind
>

/** The runs of an agent that wait for a decision. */
export const listSuspended = Effect.fnUntraced(function* (agentId: string, filter: SuspendedFilter) {
  yield* checked(() => checkOptions("The list of suspended runs", filter, { kinds: filterKinds }))
  const { memory, resource, runId, threadId } = filter
  yield* checked(() => {
    if (memory !== undefined) checkMemory(memory)
    checkResource(resource, memory)
    if (memory === undefined || threadId === undefined) return
    const message =
      "`threadId` is not for a filter with `memory`, which names the thread. Leave one of them out."
    throw new InvalidConfiguration({ field: "threadId", message })
  })
  const store = yield* Effect.serviceOption(RunStore)
  if (Option.isNone(store)) return []
  const runs =
    runId === undefined
      ? yield* all(store.value, agentId, placeOf(filter))
      : yield* one(store.value, agentId, runId, placeOf(filter))
  return runs.flatMap(({ snapshot, stored }): ReadonlyArray<SuspendedRun> => {
    if (snapshot.caller !== undefined) return []
    const { createdAt, holders, resourceId, runId, threadId } = stored
    return [
      {
        runId,
        agentId,
        ...(threadId === undefined ? {} : { threadId }),
        ...(resourceId === undefined ? {} : { resourceId }),
        suspendedAt: createdAt,
        calls: pendingCalls(snapshot, holders).flatMap(waitsOf)
      }
    ]
  })
})

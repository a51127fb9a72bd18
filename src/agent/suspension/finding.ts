/** Suspended runs of an agent: found by id or by thread, and listed with the calls that wait. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { checkOptions, object } from "../../protocol/options.js"
import type { JsonValue } from "../../protocol/safeJson.js"
import { RunStore, type StoredRun } from "../../storage/RunStore.js"
import { checked, checkMemory } from "../checkOptions.js"
import type { MemoryOptions } from "../RunOptions.js"
import { get, read, runNotFound, type SavedRun, type Store } from "./savedRuns.js"
import { pendingCalls, waitsOf } from "./snapshot.js"

/** A call that waits for somebody. @since 0.1.0 @category models */
export interface PendingCall {
  /** What decides about it names it so. Of a call of an agent below: the ids of the calls that led to it, with `/` between. */
  readonly toolCallId: string
  readonly toolName: string
  readonly args: { readonly [key: string]: JsonValue }
  /** `approval`: it is executed when somebody approves. `suspension`: its tool has asked for something. */
  readonly kind: "approval" | "suspension"
  /** What the tool has suspended with. */
  readonly suspendData?: JsonValue
  /** What it must be resumed with, as JSON Schema. */
  readonly resumeSchema?: { readonly [key: string]: JsonValue }
}

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

const threadIdOf = ({ thread }: MemoryOptions): string => (typeof thread === "string" ? thread : thread.id)

const isIn = ({ resourceId, threadId }: StoredRun, memory: MemoryOptions | undefined): boolean =>
  memory === undefined || (threadId === threadIdOf(memory) && resourceId === memory.resource)

const perPage = 100

/** Every run of an agent that is stored, with the thread and the resource if they are given. */
const all = Effect.fnUntraced(function* (store: Store, agentId: string, memory: MemoryOptions | undefined) {
  const scope =
    memory === undefined
      ? { agentId }
      : { agentId, threadId: threadIdOf(memory), resourceId: memory.resource }
  const found: Array<SavedRun> = []
  for (let page = 0; ; page++) {
    const { runs } = yield* store.list({ ...scope, page, perPage })
    for (const run of runs) found.push(yield* read(run))
    if (runs.length < perPage) return found
  }
})

/** The run of an agent below that serves a call. */
export const servingRun = Effect.fnUntraced(function* (
  store: Store,
  agentId: string,
  call: { readonly runId: string; readonly toolCallId: string }
) {
  const runs = yield* all(store, agentId, undefined)
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
export const locate = Effect.fnUntraced(function* (
  store: Store,
  agentId: string,
  { memory, runId }: { readonly memory?: MemoryOptions | undefined; readonly runId?: string | undefined }
) {
  if (runId !== undefined) {
    const saved = yield* get(store, runId, agentId)
    if (saved.snapshot.caller === undefined && isIn(saved.stored, memory)) return saved
    return yield* elsewhere(runId)
  }
  const runs = yield* all(store, agentId, memory)
  const [only, ...others] = runs.filter(({ snapshot }) => snapshot.caller === undefined)
  if (only !== undefined && others.length === 0) return only
  return yield* runNotFound(
    undefined,
    only === undefined
      ? "No run of this agent waits for a decision in this thread: check the thread and its resource."
      : `${others.length + 1} runs of this agent wait for decisions in this thread: give \`runId\`.`
  )
})

/** The runs of an agent that wait for somebody. */
export const listSuspended = Effect.fnUntraced(function* (
  agentId: string,
  options: { readonly memory?: MemoryOptions | undefined }
) {
  yield* checked(() => checkOptions("The list of suspended runs", options, { kinds: { memory: object } }))
  const { memory } = options
  if (memory !== undefined) yield* checked(() => checkMemory(memory))
  const store = yield* Effect.serviceOption(RunStore)
  if (Option.isNone(store)) return []
  const now = yield* Clock.currentTimeMillis
  const runs = yield* all(store.value, agentId, memory)
  return runs.flatMap(({ snapshot, stored }): ReadonlyArray<SuspendedRun> => {
    if (snapshot.caller !== undefined) return []
    const { createdAt, resourceId, runId, threadId } = stored
    return [
      {
        runId,
        agentId,
        ...(threadId === undefined ? {} : { threadId }),
        ...(resourceId === undefined ? {} : { resourceId }),
        suspendedAt: createdAt,
        calls: pendingCalls(snapshot, now).flatMap(waitsOf)
      }
    ]
  })
})

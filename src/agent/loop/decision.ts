/** A decision about a call that waited, as it is carried out: its execution, its claim, and what comes of it. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { AnsweredCall } from "../../model/Answer.js"
import { jsonObject } from "../../output/PendingCall.js"
import type { Chunk } from "../../protocol/Chunk.js"
import { RunAborted } from "../../protocol/Errors.js"
import { ignoreLogged } from "../../protocol/logging.js"
import type { ToolResultPart } from "../../protocol/Message.js"
import type { Usage } from "../../protocol/tokens.js"
import { type Claim, claimLost, renewCall, renewing } from "../suspension/claiming.js"
import type { Leg } from "../suspension/runSuspension.js"
import { change } from "../suspension/savedRuns.js"
import {
  type Holders,
  isSettled,
  type Snapshot,
  settle,
  type WaitsFor,
  waitAgain
} from "../suspension/snapshot.js"
import { Execution } from "./execution.js"
import { fork, nestedUsage, type Run } from "./run.js"

/** What came of the call: an outcome, or it waits again. */
type Result =
  | { readonly _tag: "Outcome"; readonly part: ToolResultPart }
  | { readonly _tag: "Waits"; readonly waits: WaitsFor }

/** A decision that is carried out. */
export interface Decision<R> {
  readonly leg: Leg<R>
  readonly call: AnsweredCall
  readonly execution: Execution<R>
  /** The outcome, which is told when it is stored. */
  readonly held: Array<Chunk>
  /** Others may decide again as soon as nobody says that it takes longer. */
  readonly stopRenewing: (reason: unknown) => void
}

const callOf = <R>(run: Run<R>, { call }: Leg<R>): AnsweredCall => {
  const { aside, input, toolCallId, toolName } = call
  return {
    chunk: {
      type: "tool-call",
      runId: run.runId,
      from: "AGENT",
      payload: { toolCallId, toolName, args: jsonObject(input) }
    },
    input,
    aside,
    isWritten: true,
    isProviderExecuted: false,
    part: { type: "tool-call", toolCallId, toolName, input }
  }
}

/** Something that a decision waits for before it is carried out, while its claim is renewed. */
export const keepingClaim = <R, A, E>({ claim }: Leg<R>, awaited: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.raceFirst(awaited, Effect.zipRight(renewing(claim), Effect.never))

/** Begins to carry out a decision: its call is executed, or refused. */
export const decide = <R>(run: Run<R>, leg: Leg<R>): Decision<R> => {
  const { messageId, runId, suspension } = run
  run.emit({ type: "step-start", runId, from: "AGENT", payload: { messageId, request: {} } })
  const held: Array<Chunk> = []
  const call = callOf(run, leg)
  const { tool } = leg
  const tools = new Map(tool === undefined ? [] : [[tool.name, tool] as const])
  const execution = new Execution(run, [call], leg.prompt, tools, chunk => held.push(chunk))
  const stopRenewing = fork(run, renewing(leg.claim))
  const decision: Decision<R> = { leg, call, execution, held, stopRenewing }
  // Left from now on, the call was begun, and has failed.
  suspension.leave = () => {
    execution.cutOff(() => interrupted)
    return ignoreLogged(storeResult(run, decision))
  }
  execution.decide(call, { decided: leg.decided, tool, suspendData: leg.call.suspendData })
  return decision
}

const interrupted = new RunAborted({ message: "The run was interrupted before it had finished." })

const resultOf = <R>({ call, execution }: Decision<R>): Result | undefined => {
  const waits = execution.waitsFor(call)
  if (waits !== undefined) return { _tag: "Waits", waits }
  const part = execution.outcomeOf(call)?.part
  return part === undefined ? undefined : { _tag: "Outcome", part }
}

/** The run as it is after the decision, and what was used before it. */
export interface Stored {
  readonly snapshot: Snapshot
  readonly holders: Holders
  readonly before: Snapshot
}

const tellThread = Effect.fnUntraced(function* <R>(run: Run<R>, part: ToolResultPart) {
  const { tasks, thread } = run
  if (thread === undefined) return
  const isOwn = (_: ToolResultPart, runId: string | undefined): boolean => runId === run.runId
  yield* thread.store.replaceOutcome(thread.id, part, isOwn)
  // A task that settled meanwhile takes the place of its acknowledgement.
  if (tasks !== undefined) yield* tasks.stored([{ role: "tool", content: [part] }])
})

const changed = ({ owner, runId, store, toolCallId: id }: Claim, result: Result, used: Usage) => {
  let before: Snapshot | undefined
  let holders: Holders = []
  return Effect.map(
    change(
      store,
      runId,
      (snapshot, holding) => {
        before = snapshot
        holders = holding
        const after =
          result._tag === "Waits"
            ? waitAgain(snapshot, id, owner, result.waits, used)
            : settle(snapshot, id, owner, result.part, used)
        return after === undefined ? Either.left(claimLost(id)) : Either.right(after)
      },
      isSettled
    ),
    (snapshot): Stored => ({ snapshot, before: before ?? snapshot, holders })
  )
}

/**
 * Stores what came of the call: in the thread, then in the run, which is deleted when it waits for nothing more. One of those
 * who decide about its calls finds that, and goes on with it. A process that has lost its claim changes neither: the lease is
 * renewed first, and holds until the thread has its answer.
 */
export const storeResult = Effect.fnUntraced(function* <R>(run: Run<R>, decision: Decision<R>) {
  const { leg } = decision
  const result = resultOf(decision)
  if (result === undefined) return yield* claimLost(leg.call.toolCallId)
  run.suspension.leave = undefined
  const used = nestedUsage(run)
  if (result._tag === "Outcome" && run.thread !== undefined) {
    yield* renewCall(leg.claim)
    yield* tellThread(run, result.part)
  }
  const stored = yield* changed(leg.claim, result, used)
  decision.stopRenewing(undefined)
  return stored
})

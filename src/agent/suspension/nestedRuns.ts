/** Runs of agents that other agents called: what they wait for, told to the call above, and decisions that come from there. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { type PendingCall, pendingCall, type Suspension } from "../../output/PendingCall.js"
import { InvalidResumeData } from "../../protocol/Errors.js"
import { toJson } from "../../protocol/safeJson.js"
import { RunStore } from "../../storage/RunStore.js"
import * as ToolSchema from "../../tool/ToolSchema.js"
import type { CallerInfo } from "../caller.js"
import type { Agent } from "../definition.js"
import { RunControl } from "../loop/run.js"
import type { RunOptions } from "../RunOptions.js"
import { decidedBy, nestedDecision } from "./decisions.js"
import { servingRun } from "./finding.js"
import { prepareLeg } from "./leg.js"
import { NestedWait } from "./nestedWait.js"
import { get, runNotFound, schemas } from "./savedRuns.js"
import { waitingCalls, waitsOf } from "./snapshot.js"

/** What the call above suspends with. */
export const waitOf = (runId: string, agentId: string, suspensions: ReadonlyArray<Suspension>): NestedWait =>
  new NestedWait(runId, agentId, suspensions.map(pendingCall))

/**
 * What a run below waits for, also when a process that has died had claimed it; the run by its id, or by what its caller had
 * suspended with. `undefined`: it is not there any more.
 */
export const stillWaiting = Effect.fnUntraced(function* (of: unknown, agentId: string) {
  const found = yield* Effect.serviceOption(RunStore)
  if (Option.isNone(found)) return undefined
  const { decodeNested } = yield* schemas
  const runId =
    typeof of === "string" ? of : Either.getOrUndefined(Either.map(decodeNested(of), wait => wait.runId))
  if (runId === undefined) return undefined
  const saved = yield* Effect.catchTag(get(found.value, runId, agentId), "RunNotFound", () =>
    Effect.succeed(undefined)
  )
  const calls = saved === undefined ? [] : waitingCalls(saved.snapshot)
  return calls.length === 0 ? undefined : new NestedWait(runId, agentId, calls.flatMap(waitsOf))
})

/** Checks what a call below is resumed with by what its chunk says of that. */
const checkData = (
  toolName: string,
  { resumeSchema }: PendingCall,
  data: unknown
): Effect.Effect<unknown, InvalidResumeData> =>
  resumeSchema === undefined
    ? Effect.succeed(data)
    : Effect.mapError(
        ToolSchema.output(resumeSchema, "resumeSchema").decode(toJson(data)),
        ({ message }) =>
          new InvalidResumeData({
            toolName,
            message: `Tool "${toolName}" cannot be resumed with this: ${message}`
          })
      )

/**
 * Checks a decision before anything is made of it: who decides is told at once what is wrong. What is not known here is found
 * out by the run below.
 */
export const readNested =
  (toolName: string) =>
  (data: unknown, suspendData?: unknown): Effect.Effect<unknown, InvalidResumeData> =>
    Effect.gen(function* () {
      const { decodeNested } = yield* schemas
      const wait = decodeNested(suspendData)
      if (Either.isLeft(wait)) return data
      const { decision, toolCallId } = yield* nestedDecision(toolName, data, wait.right.calls)
      const below = wait.right.calls.find(call => call.toolCallId === toolCallId)
      if (below === undefined || decision._tag !== "Resume") return data
      if (below.kind === "suspension") yield* checkData(below.toolName, below, decision.data)
      else
        yield* decidedBy(
          { call: { ...below, status: "waiting", input: null }, nestedId: undefined },
          decision
        )
      return data
    })

/** Goes on with the run of an agent that serves this call, as somebody has decided. Whoever starts it closes it. */
export const resumeNested = Effect.fnUntraced(function* <R>(
  agent: Agent<R>,
  toolName: string,
  caller: CallerInfo,
  { resumeData, suspendData }: { readonly resumeData: unknown; readonly suspendData: unknown },
  options: RunOptions<[], undefined>
) {
  const found = yield* Effect.serviceOption(RunStore)
  const { call } = caller
  const missing = runNotFound(
    undefined,
    `The run of agent "${agent.id}" that call "${call?.toolCallId}" waits for is not here: it is over, or its store is another one.`
  )
  if (Option.isNone(found) || call === undefined) return yield* missing
  const store = found.value
  const { decodeNested } = yield* schemas
  const wait = decodeNested(suspendData)
  // A process that has died may have left no more than the call.
  const saved = Either.isRight(wait)
    ? yield* get(store, wait.right.runId, agent.id)
    : yield* servingRun(store, agent.id, call)
  const above = saved?.snapshot.caller
  if (saved === undefined || above?.runId !== call.runId || above.toolCallId !== call.toolCallId) {
    return yield* missing
  }
  // Also those that somebody has claimed: what is said of one of them is about no other.
  const calls = waitingCalls(saved.snapshot).flatMap(waitsOf)
  const { decision, toolCallId } = yield* nestedDecision(toolName, resumeData, calls)
  const { run } = yield* prepareLeg(
    agent,
    { store, saved, toolCallId, decision, defaults: {} },
    options,
    new RunControl()
  )
  return run
})

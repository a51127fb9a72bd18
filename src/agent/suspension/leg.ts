/** A suspended run made ready to go on: its call found, the decision checked, and then claimed. */
import * as Effect from "effect/Effect"
import { InvalidConfiguration, type InvalidResumeData } from "../../protocol/Errors.js"
import { IdGenerator } from "../../protocol/Id.js"
import { ignoreLogged, logWarning } from "../../protocol/logging.js"
import type * as Tool from "../../tool/Tool.js"
import { given } from "../checkOptions.js"
import type { Agent, RunRequirements } from "../definition.js"
import { changedPlan } from "../loop/planning.js"
import type { Run, RunControl } from "../loop/run.js"
import { prepare, type Turn } from "../prepare.js"
import type { Defaults, MemoryOptions, RunOptions } from "../RunOptions.js"
import { claimCall, releaseCall } from "./claiming.js"
import { type Decision, decidedBy } from "./decisions.js"
import { keptAgain } from "./resumption.js"
import type { Decided } from "./runSuspension.js"
import { notPending, type SavedRun, type Store } from "./savedRuns.js"
import { type Found, find } from "./snapshot.js"

/** A decision about a call of a run that is stored. */
export interface Deciding {
  readonly store: Store
  readonly saved: SavedRun
  readonly toolCallId: string | undefined
  readonly decision: Decision
  /** What runs of the agent have unless they say otherwise, or were told otherwise before. */
  readonly defaults: RunOptions
}

/** A run that can be started, and the options of whatever follows it. */
export interface PreparedLeg<
  R,
  Tools extends ReadonlyArray<Tool.Any>,
  Memory extends MemoryOptions | undefined
> {
  readonly run: Run<R>
  readonly options: RunOptions<Tools, Memory>
}

/** The tool of the call, as its step had it. */
const toolOf = Effect.fnUntraced(function* <R>(run: Run<R>, { call }: Found) {
  const { prepareStep } = run.settings
  const known = run.allTools.get(call.toolName)
  if (prepareStep === undefined || (call.isOfStep !== true && known !== undefined)) return known
  const plan = yield* Effect.catchAllCause(changedPlan(run, prepareStep), cause =>
    Effect.as(
      logWarning(`\`prepareStep\` failed when call ${call.toolCallId} was resumed.`, cause),
      undefined
    )
  )
  return plan?.tools.get(call.toolName) ?? known
})

const noTool = (toolName: string): InvalidConfiguration =>
  new InvalidConfiguration({
    field: "tools",
    message: `There is no tool "${toolName}" here that could be executed. Give it to the agent, or with \`tools\`, as when it was called.`
  })

/** The thread and the owner of the run, also where the caller does not name them. Where there is no store of threads the run is refused. */
const placeOf = ({ resourceId, threadId }: SavedRun["stored"]): object => {
  if (resourceId === undefined) return {}
  return {
    resource: resourceId,
    ...(threadId === undefined ? {} : { memory: { thread: threadId, resource: resourceId } })
  }
}

/** Which thread a run belongs to, and whose it is, is known from what is stored. */
const withoutPlace = ({ memory: _, resource: __, runId: ___, ...defaults }: RunOptions): Defaults => defaults

/** What is resumed, read by its tool. */
const readDecided = <R>(
  tool: Tool.Tool<string, R> | undefined,
  { call }: Found,
  decided: Decided
): Effect.Effect<Decided, InvalidResumeData | InvalidConfiguration> => {
  if (decided._tag === "Declined") return Effect.succeed(decided)
  if (tool?.call === undefined) return Effect.fail(noTool(call.toolName))
  if (decided._tag === "Approved") return Effect.succeed(decided)
  return Effect.map(tool.readResumeData(decided.data, call.suspendData), data => ({ _tag: "Resumed", data }))
}

/** Providers use the id of a call again, and somebody may yet decide about the first. */
const keepIds = <R>(run: Run<R>): void => {
  for (const { content, role } of run.input) {
    if (role !== "assistant") continue
    for (const part of content) if (part.type === "tool-call") run.ids.unique(part.toolCallId)
  }
}

/**
 * A run that goes on with a decision. Nothing is claimed, and nothing has begun, when it fails. Whoever starts it closes it.
 */
export const prepareLeg = Effect.fnUntraced(function* <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  agent: Agent<R>,
  { decision, defaults, saved, store, toolCallId }: Deciding,
  options: RunOptions<Tools, Memory>,
  control: RunControl,
  turn?: Turn
) {
  type Needs = R | RunRequirements<Tools, Memory>
  const { snapshot, stored } = saved
  const { holders, runId } = stored
  const found = find(snapshot, toolCallId, holders)
  if (found === undefined) return yield* notPending(runId, toolCallId, snapshot, holders)
  const decided = yield* decidedBy(found, decision)
  const policy = defaults.requireToolApproval ?? agent.defaults.requireToolApproval
  const again: RunOptions<Tools, Memory> = {
    ...withoutPlace(defaults),
    ...keptAgain(snapshot.options, policy),
    ...placeOf(stored),
    ...given(options)
  }
  const preparing = prepare(agent, [], again, control, turn, { runId, snapshot })
  const run: Run<Needs> = yield* preparing
  const ids = yield* IdGenerator
  const { call } = found
  const ready = Effect.gen(function* () {
    const tool = yield* toolOf(run, found)
    const read = yield* readDecided(tool, found, decided)
    const claim = { store, runId, toolCallId: call.toolCallId, owner: ids.next("owner") }
    const claimed = yield* claimCall(claim, saved.snapshot)
    keepIds(run)
    const prompt = [...run.instructions, ...run.input.slice(0, -1)]
    run.suspension.leg = { snapshot: claimed, prompt, call, decided: read, tool, claim }
    run.suspension.leave = () => ignoreLogged(releaseCall(claim))
    const leg: PreparedLeg<Needs, Tools, Memory> = { run, options: again }
    return leg
  })
  return yield* Effect.onExit(ready, exit => (exit._tag === "Failure" ? run.close() : Effect.void))
})

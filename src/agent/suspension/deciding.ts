/** Decisions about calls: whether a suspended run or a task is meant, and the run that goes on. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { TaskManager } from "../../background/TaskManager.js"
import type {
  AgentError,
  InvalidResumeData,
  RunNotFound,
  StorageError,
  ToolCallNotPending
} from "../../protocol/Errors.js"
import { RunStore } from "../../storage/RunStore.js"
import type * as Tool from "../../tool/Tool.js"
import { checked } from "../checkOptions.js"
import type { Agent, RunRequirements } from "../definition.js"
import type { RunControl } from "../loop/run.js"
import type { Turn } from "../prepare.js"
import type { MemoryOptions, RunOptions } from "../RunOptions.js"
import type { Observe } from "../recording.js"
import { recordRun, recordStream, retentionOf, runForEachChunk, untilIdleStream } from "../recording.js"
import { firstTurn, idleBeginning, ofRun } from "../tasks/idleBeginning.js"
import { checkResume, type ResumeOptions, recordResumed } from "../tasks/resuming.js"
import { answerOf, type Decision } from "./decisions.js"
import { locate } from "./finding.js"
import { type PreparedLeg, prepareLeg } from "./leg.js"
import type { SavedRun, Store } from "./savedRuns.js"
import { isOpen } from "./snapshot.js"

/** What a decision is about. */
export type Route =
  | { readonly _tag: "Run"; readonly store: Store; readonly saved: SavedRun }
  | { readonly _tag: "Task" }

type AnyResumeOptions = ResumeOptions<ReadonlyArray<Tool.Any>, MemoryOptions | undefined>

/** Whether the call is a task of the agent. */
const isTask = (
  agentId: string,
  { runId, toolCallId }: AnyResumeOptions
): Effect.Effect<boolean, StorageError> =>
  Effect.gen(function* () {
    const manager = yield* Effect.serviceOption(TaskManager)
    if (Option.isNone(manager) || runId === undefined || toolCallId === undefined) return false
    const { total } = yield* manager.value.list({ agentId, runId, toolCallId, perPage: 0 })
    return total > 0
  })

/** A suspended run that has made the call; else a task, of which whoever resumes it says what is wrong. */
export const routed = Effect.fnUntraced(function* <R>(agent: Agent<R>, options: AnyResumeOptions) {
  yield* checked(() => checkResume(agent, options))
  const found = yield* Effect.serviceOption(RunStore)
  const isHere = Option.isSome(yield* Effect.serviceOption(TaskManager))
  const task: Route = { _tag: "Task" }
  if (Option.isNone(found)) return task
  const store = found.value
  const { runId, toolCallId } = options
  const located = yield* Effect.either(locate(store, agent.id, options))
  if (located._tag === "Left") {
    const mayBeTask = isHere && runId !== undefined && toolCallId !== undefined
    if (mayBeTask && located.left._tag === "RunNotFound") return task
    return yield* located.left
  }
  const saved = located.right
  // A call in the background has its acknowledgement in the run, and is decided as a task.
  const isOfRun = toolCallId === undefined || isOpen(saved.snapshot, toolCallId)
  if (!isOfRun && (yield* isTask(agent.id, options))) return task
  const run: Route = { _tag: "Run", store, saved }
  return run
})

/** The run that goes on. Whoever starts it closes it. */
export const legOf = <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  agent: Agent<R>,
  { saved, store }: Extract<Route, { readonly _tag: "Run" }>,
  decision: Decision,
  options: ResumeOptions<Tools, Memory>,
  defaults: RunOptions,
  control: RunControl,
  turn: Turn | undefined
): Effect.Effect<
  PreparedLeg<R | RunRequirements<Tools, Memory>, Tools, Memory>,
  AgentError | InvalidResumeData | ToolCallNotPending | RunNotFound,
  R | RunRequirements<Tools, Memory>
> => {
  const { toolCallId, ...runOptions } = options
  const { runId: _, ...rest } = runOptions
  // What is left has the types that it had.
  const again = rest as typeof runOptions
  return prepareLeg(agent, { store, saved, toolCallId, decision, defaults }, again, control, turn)
}

/** A decision that is carried out, recorded, for the Promise face. Fails when it cannot be. */
export const recordDecided = Effect.fnUntraced(function* <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  agent: Agent<R>,
  decision: Decision,
  options: ResumeOptions<Tools, Memory>,
  defaults: RunOptions,
  observe: Observe | undefined,
  control: RunControl
) {
  const route = yield* routed(agent, options)
  if (route._tag === "Task") {
    return yield* recordResumed(agent, answerOf(decision), { ...defaults, ...options }, observe, control)
  }
  const beginning = yield* idleBeginning(agent, ofRun({ ...defaults, ...options }), control)
  const preparing = legOf(agent, route, decision, options, defaults, control, firstTurn(beginning))
  if (beginning === undefined) {
    const { run } = yield* preparing
    return recordRun(run, retentionOf(options, control.abort), observe, control)
  }
  const untilIdle = yield* untilIdleStream
  yield* runForEachChunk
  const services = yield* Effect.context<Effect.Effect.Context<typeof preparing>>()
  const leg = yield* preparing
  const stream = untilIdle(beginning, leg.options, leg.run, services)
  const { run } = leg
  return yield* recordStream(run.runId, stream, options, observe, control, run.close, run.structuring?.value)
})

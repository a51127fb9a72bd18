/** How runs begin: anew, resumed, or restarted. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Caller } from "../agent/caller.js"
import { invokingWorkflow } from "../agent/telemetry/workflowSpan.js"
import {
  AgentDepthExceeded,
  InvalidConfiguration,
  StepNotSuspended,
  WorkflowRunBusy,
  WorkflowRunNotFound
} from "../protocol/Errors.js"
import { IdGenerator } from "../protocol/Id.js"
import { type JsonValue, toJson } from "../protocol/safeJson.js"
import { RunStore } from "../storage/RunStore.js"
import { wrongResumeData } from "./attempt.js"
import type { WorkflowControl } from "./control.js"
import type { Graph } from "./definition.js"
import type { Begun } from "./executing.js"
import { findStep } from "./graph.js"
import { type Contents, Keeper, saveRunning } from "./keeper.js"
import {
  type AnyRunOptions,
  checkRunOptions,
  contextOf,
  type RestartOptions,
  type ResumeOptions,
  type RunOptions,
  restartKinds,
  resumeKinds,
  startKinds,
  stepIdOf,
  storedRunId
} from "./RunOptions.js"
import { WorkflowRun } from "./run.js"
import { inMemory, isClaimed, type Kept, type Shelf, stored } from "./shelf.js"
import { around, type Snapshot, type StepState, suspendedSteps } from "./state.js"
import { wrongInput } from "./wrong.js"

/** Runs of workflows that have no store, as long as somebody has the workflow. */
const shelves = new WeakMap<object, Shelf>()

/** Where the runs of a workflow are kept. */
export const shelfOf = (graph: Graph<unknown>): Effect.Effect<Shelf> =>
  Effect.map(Effect.serviceOption(RunStore), store => {
    if (Option.isSome(store)) return stored(store.value, graph.id)
    const shelf = shelves.get(graph) ?? inMemory()
    shelves.set(graph, shelf)
    return shelf
  })

/** What throws fails. */
const checking = (check: () => void): Effect.Effect<void, InvalidConfiguration> =>
  Effect.try({
    try: check,
    catch: cause => {
      if (cause instanceof InvalidConfiguration) return cause
      throw cause
    }
  })

/** Stops the run with a signal, until it is over. */
const follow = (signal: AbortSignal | undefined, control: WorkflowControl): (() => void) => {
  if (signal === undefined) return () => undefined
  const abort = (): void => control.stopFor(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener("abort", abort, { once: true })
  return () => signal.removeEventListener("abort", abort)
}

interface Claim {
  readonly shelf: Shelf
  readonly owner: string
  /** Of the run as it is stored. */
  readonly revision: number | undefined
}

type Ready<R> = Omit<Begun<R>, "span">

/** A run that is made ready in its span. */
const inSpan = <R, E, R2>(
  graph: Graph<R>,
  preparing: Effect.Effect<Ready<R>, E, R2>
): Effect.Effect<Begun<R>, E, R2> =>
  invokingWorkflow(graph.id, span =>
    Effect.map(preparing, ready => {
      span.begun(ready.run.runId)
      return { ...ready, span }
    })
  )

/** A run, ready to go, with what it has done already. */
const ready = Effect.fnUntraced(function* <R>(
  graph: Graph<R>,
  runId: string,
  contents: Contents,
  options: AnyRunOptions,
  control: WorkflowControl,
  { owner, revision, shelf }: Claim
): Effect.fn.Return<Ready<R>, AgentDepthExceeded> {
  const caller = yield* Caller
  if (caller.depth > caller.maxDepth) {
    return yield* new AgentDepthExceeded({
      agentId: graph.id,
      maxDepth: caller.maxDepth,
      message: `Workflow "${graph.id}" was not run: it would be ${caller.depth} runs deep, and \`maxDepth\` is ${caller.maxDepth}.`
    })
  }
  const clock = yield* Clock.clockWith(Effect.succeed)
  const context = contextOf(options.requestContext)
  const run = new WorkflowRun(graph, runId, context, control, clock, caller, contents)
  caller.counts(() => run.usedHere)
  const releases = [follow(options.abortSignal, control), follow(caller.signal(), control)]
  return {
    run,
    keeper: new Keeper(shelf, graph.id, runId, owner, revision, run.contents),
    release: () => {
      for (const release of releases) release()
    }
  }
})

const newRun = (input: JsonValue): Contents => ({ input, steps: {}, branches: {}, repeated: [] })

const taken = (runId: string): InvalidConfiguration =>
  new InvalidConfiguration({
    field: "runId",
    message: `There is a run "${runId}" already. Give another \`runId\`, or leave it out.`
  })

const started = Effect.fnUntraced(function* <R>(
  graph: Graph<R>,
  options: RunOptions<unknown>,
  control: WorkflowControl
) {
  yield* checking(() => checkRunOptions(options, startKinds))
  const input = yield* Effect.mapError(graph.input.normalize(options.inputData), ({ message }) =>
    wrongInput({ workflowId: graph.id, stepId: graph.id }, message)
  )
  const ids = yield* IdGenerator
  const runId = options.runId ?? ids.next("run")
  const owner = ids.next("owner")
  const shelf = yield* shelfOf(graph)
  const contents = newRun(input)
  if (!shelf.isDurable) {
    if (Option.isSome(yield* shelf.get(runId))) return yield* taken(runId)
    return yield* ready(graph, runId, contents, options, control, { shelf, owner, revision: undefined })
  }
  const revision = yield* saveRunning(shelf, runId, owner, contents, undefined)
  if (Option.isNone(revision)) return yield* taken(runId)
  return yield* ready(graph, runId, contents, options, control, { shelf, owner, revision: revision.value })
})

/** A run that begins. It is stored first, so that it is not lost with the process. */
export const start = <R>(graph: Graph<R>, options: RunOptions<unknown>, control: WorkflowControl) =>
  inSpan(graph, started(graph, options, control))

const notFound = (graph: Graph<unknown>, runId: string): WorkflowRunNotFound =>
  new WorkflowRunNotFound({
    workflowId: graph.id,
    runId,
    message: `Workflow "${graph.id}" has no run "${runId}" that waits: it never had, or the run has ended. Without a store, only the process that began a run can go on with it.`
  })

const busy = (graph: Graph<unknown>, runId: string): WorkflowRunBusy =>
  new WorkflowRunBusy({
    workflowId: graph.id,
    runId,
    message: `Run "${runId}" goes on already, here or in another process. Try again when it has ended or its process has died.`
  })

/** The run as it is kept, when nobody goes on with it. */
const unclaimed = Effect.fnUntraced(function* (graph: Graph<unknown>, shelf: Shelf, runId: string) {
  const found = yield* shelf.get(runId)
  if (Option.isNone(found)) return yield* notFound(graph, runId)
  if (isClaimed(found.value)) return yield* busy(graph, runId)
  return found.value
})

/** Takes a run over, with these contents. Of several that do at the same time, one succeeds. */
const takeOver = Effect.fnUntraced(function* <R>(
  graph: Graph<R>,
  shelf: Shelf,
  kept: Kept,
  contents: Contents,
  options: AnyRunOptions,
  control: WorkflowControl
) {
  const { runId } = kept
  const owner = (yield* IdGenerator).next("owner")
  const revision = yield* saveRunning(shelf, runId, owner, contents, kept.revision)
  if (Option.isNone(revision)) return yield* busy(graph, runId)
  return yield* ready(graph, runId, contents, options, control, { shelf, owner, revision: revision.value })
})

const contentsOf = ({ branches, input, repeated, steps }: Snapshot): Contents => ({
  input,
  steps,
  branches,
  repeated
})

const restarted = Effect.fnUntraced(function* <R>(
  graph: Graph<R>,
  options: RestartOptions,
  control: WorkflowControl
) {
  yield* checking(() => checkRunOptions(options, restartKinds))
  yield* checking(() => void storedRunId(options.runId))
  const shelf = yield* shelfOf(graph)
  const kept = yield* unclaimed(graph, shelf, options.runId)
  return yield* takeOver(graph, shelf, kept, contentsOf(kept.snapshot), options, control)
})

/** A run that goes on from the steps that are done. Steps that are suspended stay so. */
export const restart = <R>(graph: Graph<R>, options: RestartOptions, control: WorkflowControl) =>
  inSpan(graph, restarted(graph, options, control))

const notSuspended = (runId: string, stepId: string | undefined, suspended: ReadonlyArray<string>) =>
  new StepNotSuspended({
    runId,
    stepId,
    suspended,
    message:
      stepId === undefined
        ? `Several steps of run "${runId}" are suspended. Name one as \`step\`: ${suspended.join(", ")}.`
        : `Step "${stepId}" of run "${runId}" is not suspended. Suspended steps: ${suspended.length === 0 ? "none" : suspended.join(", ")}.`
  })

/** The steps when this one goes on: those around it go on too. */
const resuming = (
  steps: Snapshot["steps"],
  stepId: string,
  resumeData: JsonValue
): { readonly [stepId: string]: StepState } => {
  const touched = new Set([stepId, ...around(stepId)])
  return Object.fromEntries(
    Object.entries(steps).map(([id, state]): readonly [string, StepState] => {
      if (!touched.has(id)) return [id, state]
      return [id, { ...state, status: "running", ...(id === stepId ? { resumeData } : {}) }]
    })
  )
}

const resumed = Effect.fnUntraced(function* <R>(
  graph: Graph<R>,
  options: ResumeOptions,
  control: WorkflowControl
) {
  yield* checking(() => checkRunOptions(options, resumeKinds))
  yield* checking(() => void storedRunId(options.runId))
  const { runId } = options
  const shelf = yield* shelfOf(graph)
  const kept = yield* unclaimed(graph, shelf, runId)
  const suspended = suspendedSteps(new Map(Object.entries(kept.snapshot.steps))).map(({ stepId }) => stepId)
  const asked = stepIdOf(options.step)
  const [only, ...others] = suspended
  const stepId = asked ?? (others.length === 0 ? only : undefined)
  if (stepId === undefined || !suspended.includes(stepId)) {
    return yield* notSuspended(runId, asked ?? (only === undefined ? "" : undefined), suspended)
  }
  const body = findStep(graph, stepId)?.body
  const resumeData = toJson(options.resumeData)
  if (body?._tag === "Leaf") {
    const { suspendData } = kept.snapshot.steps[stepId] ?? {}
    yield* Effect.mapError(body.resume.decode(resumeData, suspendData), ({ message }) =>
      wrongResumeData(graph.id, stepId, message)
    )
  }
  const contents = contentsOf(kept.snapshot)
  const steps = resuming(contents.steps, stepId, resumeData)
  return yield* takeOver(graph, shelf, kept, { ...contents, steps }, options, control)
})

/** A run that goes on with a step that was suspended. The data are checked first; wrong ones change nothing. */
export const resume = <R>(graph: Graph<R>, options: ResumeOptions, control: WorkflowControl) =>
  inSpan(graph, resumed(graph, options, control))

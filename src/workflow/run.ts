/** One run of a workflow in progress: where its steps stand, and what it tells. Plain data; fibers carry it. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { CallerInfo } from "../agent/caller.js"
import { capacity, Inbox } from "../agent/loop/inbox.js"
import type { Chunk, Of } from "../protocol/Chunk.js"
import { type JsonValue, messageOf } from "../protocol/safeJson.js"
import * as Usage from "../protocol/tokens.js"
import type { RequestContext } from "../tool/ToolContext.js"
import type { WorkflowControl } from "./control.js"
import type { Graph } from "./definition.js"
import type { Contents } from "./keeper.js"
import {
  forgetBelow,
  type StepState,
  type StepStatus,
  totalUsage,
  usageUnder,
  type WorkflowState,
  type WorkflowStatus
} from "./state.js"

/** The one cause that a run ends with. */
export type WorkflowEnd =
  | { readonly _tag: "Success"; readonly result: JsonValue }
  | { readonly _tag: "Suspended" }
  | { readonly _tag: "Failure"; readonly error: unknown }
  | { readonly _tag: "Aborted"; readonly reason: unknown }

/** How a step ended. */
export type StepEnd =
  | { readonly status: "success"; readonly output: JsonValue }
  | { readonly status: "suspended"; readonly suspendData?: JsonValue }
  | { readonly status: "failed"; readonly error: unknown }
  | { readonly status: "aborted" }

/** An attempt that is going on. */
export interface OpenAttempt {
  readonly stop: (reason: unknown) => void
  readonly used: () => Usage.Usage
}

const reasons = { success: "stop", suspended: "suspended", failed: "error", aborted: "aborted" } as const

const errorOf = (error: unknown): NonNullable<StepState["error"]> => ({
  name: error instanceof Error ? error.name : "Error",
  message: messageOf(error)
})

const ended = (state: StepState, end: StepEnd, endedAt: number): StepState => {
  const { suspendData: _, ...rest } = state
  switch (end.status) {
    case "success":
      return { ...rest, status: end.status, output: end.output, endedAt }
    case "failed":
      return { ...rest, status: end.status, error: errorOf(end.error), endedAt }
    case "suspended":
      return {
        ...rest,
        status: end.status,
        ...(end.suspendData === undefined ? {} : { suspendData: end.suspendData }),
        endedAt
      }
    case "aborted":
      return { ...state, status: end.status, endedAt }
  }
}

export class WorkflowRun<in out R> {
  readonly inbox = new Inbox(capacity)
  /** What has been told of each step. */
  readonly steps: Map<string, StepState>
  /** Ends of steps that are about to be told, when they are stored. */
  private readonly ending = new Map<string, StepState>()
  readonly branches: Map<string, ReadonlyArray<string>>
  readonly repeated: Set<string>
  private readonly open = new Map<string, OpenAttempt>()
  private spent: Usage.Usage = Usage.empty
  private status: WorkflowStatus = "running"
  /** Set once, by whoever ends it. */
  end: WorkflowEnd | undefined

  constructor(
    readonly graph: Graph<R>,
    readonly runId: string,
    readonly requestContext: RequestContext,
    readonly control: WorkflowControl,
    readonly clock: Clock.Clock,
    /** The tool call that it serves, or nobody. */
    readonly caller: CallerInfo,
    contents: Contents
  ) {
    this.input = contents.input
    this.steps = new Map(Object.entries(contents.steps))
    this.branches = new Map(Object.entries(contents.branches))
    this.repeated = new Set(contents.repeated)
    control.onHalt(() => {
      for (const { stop } of this.open.values()) stop(this.haltReason)
    })
  }

  readonly input: JsonValue

  /** What is to be stored of it. */
  readonly contents = (): Contents => ({
    input: this.input,
    steps: Object.fromEntries([...this.steps, ...this.ending]),
    branches: Object.fromEntries(this.branches),
    repeated: [...this.repeated]
  })

  /** What attempts are told that are stopped with the run. */
  get haltReason(): unknown {
    const halted = this.control.halted
    const reason = halted?._tag === "Aborted" ? halted.reason : halted?.error
    return reason ?? new DOMException("The run was aborted.", "AbortError")
  }

  /** Tells a chunk; what comes after the end is dropped. */
  readonly emit = (chunk: Chunk): void => {
    if (this.end === undefined) this.inbox.push(chunk)
  }

  private now(): number {
    return this.clock.unsafeCurrentTimeMillis()
  }

  /** Where the run stands now. */
  get state(): WorkflowState {
    return {
      runId: this.runId,
      workflowId: this.graph.id,
      status: this.status,
      input: this.input,
      steps: Object.fromEntries(this.steps)
    }
  }

  /** What all steps have used, those that still run included. */
  get usage(): Usage.Usage {
    let sum = totalUsage(this.steps)
    for (const { used } of this.open.values()) sum = Usage.combine(sum, used())
    return sum
  }

  /** What has been used since it began, or went on: what was used before is counted already. */
  get usedHere(): Usage.Usage {
    let sum = this.spent
    for (const { used } of this.open.values()) sum = Usage.combine(sum, used())
    return sum
  }

  private watch(): void {
    const { runId, state } = this
    // An open record: its type has no names.
    const workflowState: { readonly [key: string]: unknown } = { ...state }
    this.emit({
      type: "watch",
      runId,
      from: "WORKFLOW",
      payload: { workflowState, eventTimestamp: this.now() }
    })
  }

  /** The first chunks: that it began, and where it stands. */
  begin(): void {
    const { graph, runId } = this
    this.emit({ type: "start", runId, from: "WORKFLOW", payload: { workflowId: graph.id } })
    this.watch()
  }

  /** A step begins. What it is resumed with, and what an earlier round has used, stays. */
  begun(stepId: string, input: JsonValue, iteration: number | undefined): void {
    const before = this.steps.get(stepId)
    const isNextRound =
      iteration !== undefined && before?.iteration !== undefined && before.iteration < iteration
    const usage = isNextRound ? usageUnder(this.steps, stepId) : (before?.usage ?? Usage.empty)
    if (isNextRound) this.forget(stepId)
    const { resumeData, suspendData } = isNextRound ? {} : (before ?? {})
    this.steps.set(stepId, {
      status: "running",
      input,
      startedAt: this.now(),
      attempts: 0,
      ...(iteration === undefined ? {} : { iteration }),
      ...(resumeData === undefined ? {} : { resumeData }),
      ...(suspendData === undefined ? {} : { suspendData }),
      usage
    })
    const request = { stepId, input, ...(iteration === undefined ? {} : { iteration }) }
    this.emit({ type: "step-start", runId: this.runId, from: "WORKFLOW", payload: { request } })
    this.watch()
  }

  /** An attempt begins; of the first, `step-start` has told. */
  attempted(stepId: string, attempt: number, open: OpenAttempt): void {
    this.open.set(stepId, open)
    const state = this.steps.get(stepId)
    if (state === undefined) return
    this.steps.set(stepId, { ...state, attempts: attempt })
    if (attempt > 1) this.watch()
    if (this.control.halted !== undefined) open.stop(this.haltReason)
  }

  /** An attempt is over: what it has used counts. */
  attemptOver(stepId: string): void {
    const open = this.open.get(stepId)
    this.open.delete(stepId)
    const state = this.steps.get(stepId)
    if (open === undefined || state === undefined) return
    this.spent = Usage.combine(this.spent, open.used())
    this.steps.set(stepId, { ...state, usage: Usage.combine(state.usage, open.used()) })
  }

  /** A step is about to end: the next thing that is stored says so. */
  endsWith(stepId: string, end: StepEnd): void {
    const state = this.steps.get(stepId)
    if (state !== undefined) this.ending.set(stepId, ended(state, end, this.now()))
  }

  /** A step has ended, as it is stored. Does nothing for one that has ended before. */
  told(stepId: string, end: StepEnd): void {
    const state = this.steps.get(stepId)
    const stored = this.ending.get(stepId)
    this.ending.delete(stepId)
    if (state?.status !== "running") return
    // What could not be stored, or was stopped before it was, has not ended so.
    const next = stored?.status === end.status ? stored : ended(state, end, this.now())
    this.steps.set(stepId, next)
    this.emit(this.stepFinish(stepId, next))
    this.watch()
  }

  private stepFinish(stepId: string, state: StepState): Of<"step-finish"> {
    const { error, iteration, output, status, suspendData } = state
    return {
      type: "step-finish",
      runId: this.runId,
      from: "WORKFLOW",
      payload: {
        id: stepId,
        stepResult: { reason: reasons[status as Exclude<StepStatus, "running">], isContinued: false },
        output: { text: "", toolCalls: [], usage: usageUnder(this.steps, stepId) },
        metadata: {
          stepId,
          status,
          ...(output === undefined ? {} : { output }),
          ...(error === undefined ? {} : { error }),
          ...(suspendData === undefined ? {} : { suspendData }),
          ...(iteration === undefined ? {} : { iteration })
        },
        totalUsage: this.usage
      }
    }
  }

  /** Forgets the steps below one: it begins anew, or its outcome says everything. */
  forget(stepId: string): void {
    forgetBelow(this.steps, stepId)
    forgetBelow(this.branches, stepId)
    forgetBelow(this.repeated, stepId)
  }

  /** Forgets them, and counts what they have used as the step's own. */
  absorb(stepId: string): void {
    const usage = usageUnder(this.steps, stepId)
    this.forget(stepId)
    const state = this.steps.get(stepId)
    if (state !== undefined) this.steps.set(stepId, { ...state, usage })
  }

  /** Tells the end of the run, and nothing after it. */
  finish(end: WorkflowEnd, cause: ReadonlyArray<Chunk>, last: (usage: Usage.Usage) => Chunk): void {
    if (this.end !== undefined) return
    for (const stepId of [...this.open.keys()]) this.attemptOver(stepId)
    // Those that began last end first.
    for (const [stepId, { status }] of [...this.steps].reverse()) {
      if (status !== "running") continue
      this.ending.delete(stepId)
      this.told(stepId, { status: "aborted" })
    }
    this.status = statuses[end._tag]
    this.watch()
    for (const chunk of cause) this.emit(chunk)
    this.emit(last(this.usage))
    this.end = end
    this.inbox.notify()
  }

  /** Done when readers hold the run no longer. */
  readonly room: Effect.Effect<void> = Effect.suspend(() =>
    this.inbox.isFull
      ? Effect.async<void>(resume => {
          if (this.inbox.hasRoom(() => resume(Effect.void))) resume(Effect.void)
        })
      : Effect.void
  )

  /** Where the steps stand, as values. */
  get stepStates(): { readonly [stepId: string]: StepState } {
    return Object.fromEntries(this.steps)
  }
}

/** What a run is that has ended so. */
export const statuses = {
  Success: "success",
  Suspended: "suspended",
  Failure: "failed",
  Aborted: "aborted"
} as const satisfies Record<WorkflowEnd["_tag"], WorkflowStatus>

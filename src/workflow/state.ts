/** Where the steps of a run stand, as data. */
import type { JsonValue } from "../protocol/safeJson.js"
import * as Usage from "../protocol/tokens.js"

/** Where a step stands; all but `running` and `suspended` are final, unless the run is restarted. @since 0.1.0 @category models */
export type StepStatus = "running" | "success" | "failed" | "suspended" | "aborted"

/** One step of a run. Values are JSON. @since 0.1.0 @category models */
export interface StepState {
  readonly status: StepStatus
  /** What it was given. */
  readonly input: JsonValue
  /** What it returned. */
  readonly output?: JsonValue
  /** Of a step that failed. */
  readonly error?: { readonly name: string; readonly message: string }
  /** What it suspended with, and was last resumed with. */
  readonly suspendData?: JsonValue
  readonly resumeData?: JsonValue
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly endedAt?: number
  /** Attempts that were begun. */
  readonly attempts: number
  /** Of a step that is repeated: the round, from 1. */
  readonly iteration?: number
  /** What agents in it have used; that of the steps below it is theirs. */
  readonly usage: Usage.Usage
}

/** Where a run stands. @since 0.1.0 @category models */
export type WorkflowStatus = "running" | "success" | "failed" | "aborted" | "suspended"

/** A run, whole: what a `watch` chunk carries. @since 0.1.0 @category models */
export interface WorkflowState {
  readonly runId: string
  readonly workflowId: string
  readonly status: WorkflowStatus
  readonly input: JsonValue
  /** By id. Steps of a workflow that is a step have the ids of both, with a dot; items of a `foreach` their place. */
  readonly steps: { readonly [stepId: string]: StepState }
}

/** A step that waits to be resumed. @since 0.1.0 @category models */
export interface SuspendedStep {
  readonly stepId: string
  readonly suspendData?: JsonValue
}

/** What a store keeps of a run that has not ended. */
export interface Snapshot {
  readonly version: 1
  readonly status: "running" | "suspended"
  readonly input: JsonValue
  readonly steps: { readonly [stepId: string]: StepState }
  /** Ids of the steps that each branch has chosen. */
  readonly branches: { readonly [place: string]: ReadonlyArray<string> }
  /** Steps whose repetition is over. */
  readonly repeated: ReadonlyArray<string>
  /** Who goes on with it, as long as this owner has a lease on the run. */
  readonly claim?: { readonly owner: string } | undefined
}

/** Whether an id belongs to a step below another one. */
const isBelow = (stepId: string, above: string): boolean => stepId.startsWith(`${above}.`)

/** The steps around one, innermost first. */
export const around = (stepId: string): ReadonlyArray<string> => {
  const parts = stepId.split(".")
  return parts.slice(1).map((_, place) => parts.slice(0, parts.length - 1 - place).join("."))
}

/** Steps that others hold: they are suspended because one below them is. */
const holds = (steps: ReadonlyMap<string, StepState>, stepId: string): boolean => {
  for (const [other, { status }] of steps) {
    if (status === "suspended" && isBelow(other, stepId)) return true
  }
  return false
}

/** The steps that can be resumed. */
export const suspendedSteps = (steps: ReadonlyMap<string, StepState>): ReadonlyArray<SuspendedStep> =>
  Array.from(steps).flatMap(([stepId, { status, suspendData }]) =>
    status === "suspended" && !holds(steps, stepId)
      ? [{ stepId, ...(suspendData === undefined ? {} : { suspendData }) }]
      : []
  )

/** What a step and those below it have used. */
export const usageUnder = (steps: ReadonlyMap<string, StepState>, stepId: string): Usage.Usage => {
  let sum = Usage.empty
  for (const [other, { usage }] of steps) {
    if (other === stepId || isBelow(other, stepId)) sum = Usage.combine(sum, usage)
  }
  return sum
}

/** What all steps have used. */
export const totalUsage = (steps: ReadonlyMap<string, StepState>): Usage.Usage => {
  let sum = Usage.empty
  for (const { usage } of steps.values()) sum = Usage.combine(sum, usage)
  return sum
}

/** Forgets the steps below one. */
export const forgetBelow = (
  entries: { delete(stepId: string): unknown; keys(): Iterable<string> },
  stepId: string
): void => {
  for (const other of [...entries.keys()]) if (isBelow(other, stepId)) entries.delete(other)
}

/** Where in a run, and for which workflow of it, something is executed. */
import type { JsonValue } from "../protocol/safeJson.js"
import type { AnyStep, Graph, Pace, RunContext } from "./definition.js"
import type { WorkflowRun } from "./run.js"

/** A workflow within a run: the run's own, or one that is a step. */
export interface Frame {
  /** What stands before the ids of its steps. */
  readonly prefix: string
  /** What it was given. */
  readonly init: JsonValue
  readonly pace: Pace
  readonly context: RunContext
}

/** The frame of a workflow. */
export const frameOf = <R>(run: WorkflowRun<R>, graph: Graph<R>, prefix: string, init: JsonValue): Frame => ({
  prefix,
  init,
  pace: graph.pace,
  context: {
    runId: run.runId,
    workflowId: graph.id,
    requestContext: run.requestContext,
    getStepResult: (step: AnyStep | string) => {
      const state = run.steps.get(prefix + (typeof step === "string" ? step : step.id))
      // What a step gave is what its type says: it was checked when it came.
      return (state?.status === "success" ? state.output : undefined) as never
    }
  }
})

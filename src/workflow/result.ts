/**
 * What a run of a workflow came to.
 *
 * @since 0.1.0
 */
import { RunAborted } from "../protocol/Errors.js"
import type { JsonValue } from "../protocol/safeJson.js"
import { messageOf } from "../protocol/safeJson.js"
import type { Usage } from "../protocol/tokens.js"
import type { WorkflowRun } from "./run.js"
import { type StepState, type SuspendedStep, suspendedSteps } from "./state.js"

interface Common {
  readonly runId: string
  readonly workflowId: string
  readonly input: JsonValue
  /** By id. */
  readonly steps: { readonly [stepId: string]: StepState }
  /** Of all steps, also those that were done before the run was resumed. */
  readonly usage: Usage
}

/** Everything that a run came to. @since 0.1.0 @category models */
export type WorkflowResult<A> = Common &
  (
    | { readonly status: "success"; readonly result: A }
    | { readonly status: "suspended"; readonly suspended: ReadonlyArray<SuspendedStep> }
    | { readonly status: "failed"; readonly error: unknown }
    | { readonly status: "aborted"; readonly error: RunAborted }
  )

const abortMessage = (reason: unknown): string =>
  reason === undefined ? "The run was aborted." : `The run was aborted: ${messageOf(reason)}`

/** What the run came to; of one that was cut off, that it was aborted. */
export const resultOf = <R>(run: WorkflowRun<R>): WorkflowResult<unknown> => {
  const common = {
    runId: run.runId,
    workflowId: run.graph.id,
    input: run.input,
    steps: run.stepStates,
    usage: run.usage
  }
  const { end } = run
  switch (end?._tag) {
    case "Success":
      return { ...common, status: "success", result: end.result }
    case "Suspended":
      return { ...common, status: "suspended", suspended: suspendedSteps(run.steps) }
    case "Failure":
      return { ...common, status: "failed", error: end.error }
    case "Aborted":
      return {
        ...common,
        status: "aborted",
        error: new RunAborted({ message: abortMessage(end.reason), cause: end.reason })
      }
    case undefined:
      return {
        ...common,
        status: "aborted",
        error: new RunAborted({ message: "The run was interrupted before it had finished." })
      }
  }
}

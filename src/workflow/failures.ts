/** What runs of workflows fail with. */
import * as Cause from "effect/Cause"
import {
  type AgentDepthExceeded,
  type InvalidConfiguration,
  type InvalidStepInput,
  type InvalidStepOutput,
  type InvalidStepResumeData,
  type RunAborted,
  StepFailed,
  type StepNotSuspended,
  type StepTimedOut,
  type StorageError,
  type WorkflowRunBusy,
  type WorkflowRunLost,
  type WorkflowRunNotFound
} from "../protocol/Errors.js"
import { inspectable, squash } from "../protocol/foreignValue.js"
import { messageOf } from "../protocol/safeJson.js"

/** What a run of a workflow can fail with, beside what its steps fail with. @since 0.1.0 @category models */
export type WorkflowError =
  | AgentDepthExceeded
  | InvalidConfiguration
  | InvalidStepInput
  | InvalidStepOutput
  | RunAborted
  | StepFailed
  | StepTimedOut
  | StorageError
  | WorkflowRunLost

/** Why a run cannot be resumed or restarted. @since 0.1.0 @category models */
export type ResumeError = InvalidStepResumeData | StepNotSuspended | WorkflowRunBusy | WorkflowRunNotFound

/** The one failure of a cause: what the step failed with; a `StepFailed` for what it died with. */
export const failureOf = (cause: Cause.Cause<unknown>, workflowId: string, stepId: string): unknown => {
  const failures = [...Cause.failures(cause)]
  if (failures.length > 0) return inspectable(failures[0])
  const isInterrupted = Cause.isInterruptedOnly(cause)
  const died = squash(cause)
  return new StepFailed({
    workflowId,
    stepId,
    message: isInterrupted
      ? `Step "${stepId}" interrupted itself.`
      : `Step "${stepId}" died: ${messageOf(died)}`,
    cause: isInterrupted ? undefined : died
  })
}

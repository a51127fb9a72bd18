/** Errors of workflows and their steps. `Errors` has them all. */
import { tagged } from "./tagged.js"

/**
 * A step, or the whole workflow, was given what its input schema does not take. Nothing of it was executed, and it is not
 * tried again. `stepId` is the id of the workflow itself when its own input is wrong.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidStepInput extends tagged("InvalidStepInput")<{
  readonly workflowId: string
  readonly stepId: string
  readonly message: string
}> {}

/**
 * What a step returned, or what it suspended with, does not match its schema. `stepId` is the id of the workflow itself when
 * its result is wrong.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidStepOutput extends tagged("InvalidStepOutput")<{
  readonly workflowId: string
  readonly stepId: string
  readonly message: string
}> {}

/**
 * A step died, interrupted itself, or failed with something that is no `Error`; or a condition of the workflow threw. `cause`
 * is what it was; it stays in the process.
 *
 * @since 0.1.0
 * @category errors
 */
export class StepFailed extends tagged("StepFailed")<{
  readonly workflowId: string
  readonly stepId: string
  readonly message: string
  readonly cause?: unknown
}> {}

/** An attempt of a step took longer than its `timeout`. It is tried again as any failure is. @since 0.1.0 @category errors */
export class StepTimedOut extends tagged("StepTimedOut")<{
  readonly workflowId: string
  readonly stepId: string
  readonly milliseconds: number
  readonly message: string
}> {}

/** What a step was resumed with does not match its resume schema. The step stays suspended. @since 0.1.0 @category errors */
export class InvalidStepResumeData extends tagged("InvalidStepResumeData")<{
  readonly workflowId: string
  readonly stepId: string
  readonly message: string
}> {}

/** The step is not suspended. `suspended` names those that are. Nothing is changed. @since 0.1.0 @category errors */
export class StepNotSuspended extends tagged("StepNotSuspended")<{
  readonly runId: string
  readonly stepId: string | undefined
  readonly suspended: ReadonlyArray<string>
  readonly message: string
}> {}

/** No run of this id is stored: it never was, or has ended. @since 0.1.0 @category errors */
export class WorkflowRunNotFound extends tagged("WorkflowRunNotFound")<{
  readonly workflowId: string
  readonly runId: string
  readonly message: string
}> {}

/** The run is going on already, here or in another process. @since 0.1.0 @category errors */
export class WorkflowRunBusy extends tagged("WorkflowRunBusy")<{
  readonly workflowId: string
  readonly runId: string
  readonly message: string
}> {}

/** Somebody else has taken the run over, or deleted it, while it was going on here. @since 0.1.0 @category errors */
export class WorkflowRunLost extends tagged("WorkflowRunLost")<{
  readonly workflowId: string
  readonly runId: string
  readonly message: string
}> {}

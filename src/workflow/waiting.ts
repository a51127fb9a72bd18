/** What is said of a run of a workflow that waits. */
import { RunSuspended } from "../protocol/Errors.js"
import type { WorkflowResult } from "./result.js"

/** The error of what a run should have given that waits for somebody. */
export const suspendedRun = ({ runId, workflowId }: WorkflowResult<unknown>): RunSuspended =>
  new RunSuspended({
    runId,
    message: `Run "${runId}" of workflow "${workflowId}" waits for somebody. Resume it with resumeStream.`
  })

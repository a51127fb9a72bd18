/** Values that do not match the schemas of a workflow. */
import { InvalidStepInput, InvalidStepOutput } from "../protocol/Errors.js"

/** A step was given what it does not take. */
export const wrongInput = (
  { stepId, workflowId }: { readonly stepId: string; readonly workflowId: string },
  message: string
): InvalidStepInput =>
  new InvalidStepInput({ workflowId, stepId, message: `"${stepId}" was given a wrong input: ${message}` })

/** What a step gave, is not what it said. */
export const wrongResult =
  (workflowId: string, stepId: string) =>
  ({ message }: { readonly message: string }): InvalidStepOutput =>
    new InvalidStepOutput({ workflowId, stepId, message: `"${stepId}" gave a wrong result: ${message}` })

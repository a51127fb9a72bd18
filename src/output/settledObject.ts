/** What a run that is over has as its structured value, or why it has none. */
import { InvalidConfiguration, StructuredOutputError } from "../protocol/Errors.js"
import type { FullOutput } from "./FullOutput.js"
import { blockedBy, suspendedBy } from "./RunFold.js"
import { failureOf } from "./RunRecord.js"
import type { Structured } from "./structured.js"

/** Asked for where nobody has said what it is. */
const notAskedFor = new InvalidConfiguration({
  field: "structuredOutput",
  message:
    "This run has no structured value: nobody asked for one. Give `structuredOutput: { schema }` to the run or to the agent."
})

const missing = new StructuredOutputError({
  reason: "missing",
  issues: [],
  text: "",
  message: "There is no structured value: no model was asked."
})

/** Why there is no value; `undefined`: there is one. */
export const objectFailure = (full: FullOutput, structured: Structured | undefined): Error | undefined => {
  if (structured === undefined) return notAskedFor
  const failure = failureOf(full)
  if (failure !== undefined) return failure
  if (full.status === "tripwire") return blockedBy(full.tripwire ?? { reason: "no reason was given" })
  if (full.status === "suspended") return suspendedBy(full.runId)
  if (structured.errorStrategy !== "strict") return undefined
  return full.objectError ?? (full.object === undefined && full.steps.length === 0 ? missing : undefined)
}

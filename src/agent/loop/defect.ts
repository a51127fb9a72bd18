/** What throws in a run, where nothing may throw, as the error that the run ends with. */
import * as Effect from "effect/Effect"
import { type AgentError, isAgentError } from "../../protocol/Errors.js"
import { inspectable } from "../../protocol/foreignValue.js"
import { messageOf } from "../../protocol/safeJson.js"
import { tagged } from "../../protocol/tagged.js"

/**
 * Something threw inside a run where nothing may throw: a defect of the library, or a value of user code that cannot be read. The
 * `error` chunk has it; the stream of Effect dies with its cause.
 */
class RunDefect extends tagged("RunDefect")<{
  readonly message: string
  readonly cause: unknown
}> {}

/** What a run ends with that failed. */
export type RunError = AgentError | RunDefect

/** An error of the library is that error; anything else is a defect. */
export const defectOf = (thrown: unknown): RunError => {
  const cause = inspectable(thrown)
  return isAgentError(cause) || cause instanceof RunDefect
    ? cause
    : new RunDefect({ message: `The run ended with a defect: ${messageOf(cause)}`, cause })
}

/** The same as the failure of an Effect: a defect dies. */
export const raised = (error: RunError): Effect.Effect<never, AgentError> =>
  error instanceof RunDefect ? Effect.die(error.cause) : Effect.fail(error)

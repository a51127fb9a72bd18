/** What the model is told of the output of a tool. */
import * as Effect from "effect/Effect"
import type { ToolResultOutput } from "../../protocol/Message.js"
import { isErrorValue, type Tool } from "../../tool/Tool.js"
import * as ToolOutcome from "../../tool/ToolOutcome.js"

/** What a call came to, and what the model is told of it when that is something else. */
export interface Executed {
  readonly value: unknown
  readonly told?: ToolResultOutput
}

/** What the model is told of an output. A value that says that it is an error is no output. */
export const withTold =
  (toModelOutput: Tool<string>["toModelOutput"]) =>
  (value: unknown): Effect.Effect<Executed, unknown> =>
    // A value that cannot be looked at is a failure of the tool, also where nothing is made of it.
    isErrorValue(value) || toModelOutput === undefined
      ? Effect.succeed({ value })
      : Effect.map(toModelOutput(value === undefined ? null : value), told => ({
          value,
          told: ToolOutcome.toldOutput(told)
        }))

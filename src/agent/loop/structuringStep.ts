/** Between the last word of a model and the end of its step: the structured value, when the run is to have one. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { squash } from "../../protocol/foreignValue.js"
import { messageOf } from "../../protocol/safeJson.js"
import type { Asked } from "./asking.js"
import { type RunEnd, stepReason } from "./ending.js"
import { fork, type Run } from "./run.js"
import type { State } from "./state.js"
import type { Outcome, Structuring } from "./structuring.js"
import { writeValue } from "./structuringCall.js"
import { waitFor } from "./waiting.js"

const outcomeOf = <R>(run: Run<R>, structuring: Structuring): Effect.Effect<Outcome> => {
  const { stepText, structure } = structuring
  const { model } = structure
  if (model === undefined) return structuring.decode(stepText)
  if (stepText.trim() !== "") return writeValue(run, model, structuring)
  return Effect.succeed(structuring.failed("missing", stepText, "There is no answer to take a value from."))
}

/**
 * Settles the value of a step that calls nobody, and goes on. What a model says beside its calls is no value. A run that is
 * stopped meanwhile does not wait: `halted` is its next state.
 */
export const structured = <R>(
  run: Run<R>,
  { answer }: Asked,
  goOn: () => State<R>,
  halted: () => State<R>
): State<R> => {
  const { structuring } = run
  if (structuring === undefined) return goOn()
  const reason = stepReason(answer)
  if (reason === "tool-calls") return goOn()
  if (reason === "length" || reason === "content-filter") {
    structuring.settle(structuring.cutOff(reason))
    return goOn()
  }
  return waitFor(
    run,
    Effect.suspend(() => outcomeOf(run, structuring)),
    exit => {
      structuring.settle(
        Exit.isSuccess(exit)
          ? exit.value
          : structuring.failed("invalid", structuring.stepText, messageOf(squash(exit.cause)))
      )
      return goOn()
    },
    halted
  )
}

/** Says in the log that a run that ended by itself has no valid value. */
export const reportValue = <R>(run: Run<R>, end: RunEnd): void => {
  const line = end._tag === "Success" ? run.structuring?.log() : undefined
  if (line !== undefined) fork(run, line)
}

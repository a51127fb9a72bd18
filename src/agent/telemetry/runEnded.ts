/** Tells the trace of a run how it ended. */
import type { RunEnd } from "../loop/ending.js"
import type { Run } from "../loop/run.js"
import { done, type Ending, stopped } from "./spans.js"

const endingOf = (end: RunEnd): Ending => {
  switch (end._tag) {
    case "Failure":
      return { _tag: "Failed", error: end.error }
    case "Aborted":
      return stopped
    default:
      return done
  }
}

const reasonOf = (end: RunEnd): string => {
  switch (end._tag) {
    case "Success":
      return end.result.reason
    case "Failure":
      return "error"
    case "Aborted":
      return "aborted"
    case "Tripwire":
      return "tripwire"
    case "Suspended":
      return "suspended"
  }
}

/** The run has told its `finish`. */
export const runEnded = <R>({ fold, telemetry }: Run<R>, end: RunEnd): void =>
  telemetry.ended({
    reason: reasonOf(end),
    ending: endingOf(end),
    usage: fold.usageSoFar,
    text: () => fold.snapshot().text
  })

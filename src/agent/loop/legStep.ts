/** The step in which a decision about a call is carried out: what is told of it, and what follows. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { squash } from "../../protocol/foreignValue.js"
import { ignoreLogged } from "../../protocol/logging.js"
import { isSettled, outcomeParts, suspensionsOf } from "../suspension/snapshot.js"
import { type Decision, type Stored, storeResult } from "./decision.js"
import { decidedStep, type StoppedBy } from "./ending.js"
import { isLastAllowed, type Run } from "./run.js"
import type { State } from "./state.js"
import { firstTrue, tellStep } from "./stepEnd.js"
import { failedWith, stoppedEnd, storeFailure } from "./stopping.js"
import { waitBeside, waitToEnd } from "./waiting.js"

export { decide, keepingClaim } from "./decision.js"

/** The call is executed; or it is done, and what came of it is stored and then told. */
export const deciding = <R>(run: Run<R>, decision: Decision<R>): State<R> => {
  if (run.control.halted !== undefined) return halted(run, decision)
  decision.execution.advance()
  if (!decision.execution.isDone) return { _tag: "Deciding", decision }
  return waitBeside(
    run,
    storeResult(run, decision),
    exit => {
      decision.stopRenewing(undefined)
      if (Exit.isSuccess(exit)) return stored(run, decision, exit.value)
      tellOutcome(run, decision)
      return finished(run, {
        _tag: "Failure",
        error: storeFailure(squash(exit.cause)),
        answer: undefined
      })
    },
    () => {
      tellOutcome(run, decision)
      return finished(run, stoppedEnd(run, undefined))
    }
  )
}

const tellOutcome = <R>(run: Run<R>, { held }: Decision<R>): void => {
  for (const chunk of held.splice(0)) run.emit(chunk)
}

const tellStepEnd = <R>(run: Run<R>, isContinued: boolean, stoppedBy?: StoppedBy) => {
  const result = {
    reason: "tool-calls",
    isContinued,
    ...(stoppedBy === undefined ? {} : { stoppedBy })
  } as const
  tellStep(run, decidedStep(run, result))
  return result
}

const finished = <R>(run: Run<R>, end: Extract<State<R>, { readonly _tag: "Ending" }>["end"]): State<R> => {
  tellStepEnd(run, false)
  return { _tag: "Ending", end }
}

/** What the run goes on with: all outcomes there are, in call order. */
const takeUp = <R>(run: Run<R>, { before, snapshot }: Stored): void => {
  run.added[0] = { role: "tool", content: outcomeParts(snapshot) }
  run.suspension.earlier = { ...run.suspension.earlier, usage: before.usage }
  run.tasks?.tell(run.added)
}

const stored = <R>(run: Run<R>, decision: Decision<R>, after: Stored): State<R> => {
  takeUp(run, after)
  tellOutcome(run, decision)
  if (isSettled(after.snapshot)) return goingOn(run)
  const suspensions = suspensionsOf(after.snapshot, run.runId, after.holders)
  return finished(run, { _tag: "Suspended", suspensions, answer: undefined })
}

/** Everything is decided: the run goes on where it was laid aside. */
const goingOn = <R>(run: Run<R>): State<R> => {
  const { fold, settings } = run
  if (isLastAllowed(run)) return stops(run, "max-steps")
  if (settings.stopWhen.length === 0) return next(run)
  const steps = [
    ...fold.finishedSteps,
    fold.stepOf(decidedStep(run, { reason: "tool-calls", isContinued: true }).payload)
  ]
  return waitBeside(
    run,
    Effect.suspend(() => firstTrue(settings.stopWhen, { steps })),
    exit => {
      if (Exit.isSuccess(exit)) return exit.value ? stops(run, "stop-when") : next(run)
      tellStepEnd(run, false)
      return failedWith(exit.cause, "stopWhen")
    },
    () => finished(run, stoppedEnd(run, undefined))
  )
}

const next = <R>(run: Run<R>): State<R> => {
  tellStepEnd(run, run.control.halted === undefined)
  return { _tag: "Asking" }
}

const stops = <R>(run: Run<R>, stoppedBy: StoppedBy): State<R> => {
  const result = tellStepEnd(run, false, stoppedBy)
  return { _tag: "Ending", end: { _tag: "Success", result, answer: undefined } }
}

/** The run is stopped while the call is executed: that has failed, once and for all. */
const halted = <R>(run: Run<R>, decision: Decision<R>): State<R> => {
  const end = stoppedEnd(run, undefined)
  decision.execution.cutOff(() => end.error)
  return waitToEnd(run, ignoreLogged(Effect.timeout(storeResult(run, decision), "5 seconds")), () => {
    decision.stopRenewing(undefined)
    tellOutcome(run, decision)
    return finished(run, end)
  })
}

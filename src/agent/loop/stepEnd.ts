/** How a step ends, and what follows it: another one, or the end of the run. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Answer } from "../../model/Answer.js"
import { callUser, squash } from "../../protocol/foreignValue.js"
import { lazily, part } from "../../protocol/lazily.js"
import { judgementOf, tellJudgement } from "../goals/stage.js"
import type { StopCondition } from "../RunOptions.js"
import { betweenTurns, storeAdded } from "../thread.js"
import type { Asked } from "./asking.js"
import type { RunError } from "./defect.js"
import { type StoppedBy, stepFinish, stepReason, stepResult } from "./ending.js"
import type { Execution } from "./execution.js"
import { isLastAllowed, type Run } from "./run.js"
import type { State } from "./state.js"
import { cutOff, failed, failedWith, remember, stoppedEnd, storeFailure, storing } from "./stopping.js"
import type { Suspending } from "./suspending.js"
import { waitFor } from "./waiting.js"

/** Of runs whose calls may run in the background: see `parts.ts`. */
export const stepTasks = part(() => import("../tasks/stepTasks.js"))

/** Loaded when the first run is suspended. */
const laying = lazily(() => import("./suspending.js"))

/** Every call of a step has its outcome. */
export const stepEnds = <R>(run: Run<R>, answer: Answer, execution: Execution<R>): State<R> => {
  if (execution.isWaiting) return suspends(run, answer, execution)
  remember(run, answer, execution, true)
  const { thread } = run
  if (thread === undefined) return stepStored(run, answer, execution)
  return waitFor(
    run,
    storeAdded(run, thread),
    exit => {
      if (Exit.isSuccess(exit)) return stepStored(run, answer, execution)
      endClientCalls(run, execution, storeFailure(squash(exit.cause)))
      lastStep(run, answer, undefined)
      return failedWith(exit.cause, undefined)
    },
    () => {
      endClientCalls(run, execution, stoppedEnd(run, undefined).error)
      return haltedAfter(run, answer)
    }
  )
}

/** Calls of the step wait for somebody: the run is stored, and then says so. */
const suspends = <R>(run: Run<R>, answer: Answer, execution: Execution<R>): State<R> => {
  execution.endClientCalls()
  remember(run, answer, execution, true)
  const calls = execution.saved()
  let suspension: Suspending<R> | undefined
  return waitFor(
    run,
    Effect.flatMap(laying, ({ Suspending }) => {
      suspension = new Suspending(run, answer, calls)
      return suspension.store
    }),
    exit => {
      if (Exit.isSuccess(exit)) {
        lastStep(run, answer, undefined)
        return { _tag: "Ending", end: { _tag: "Suspended", suspensions: exit.value, answer } }
      }
      const error = storeFailure(squash(exit.cause))
      endOpenCalls(run, execution, error)
      lastStep(run, answer, undefined)
      return storing(run, { _tag: "Failure", error, answer: undefined })
    },
    () => {
      suspension?.abandon()
      endOpenCalls(run, execution, stoppedEnd(run, undefined).error)
      return haltedAfter(run, answer)
    }
  )
}

/** Calls that were left to the client have an outcome after all: a run that does not end by itself asks nobody. */
const endClientCalls = <R>(run: Run<R>, execution: Execution<R>, error: RunError): void => {
  if (execution.hasClientCalls) endOpenCalls(run, execution, error)
}

/** Calls without an outcome have one after all. */
const endOpenCalls = <R>(run: Run<R>, execution: Execution<R>, error: RunError): void => {
  execution.cutOff(() => error)
  const outcomes = execution.toMessage()
  if (outcomes === undefined) return
  if (run.added.at(-1)?.role === "tool") run.added.pop()
  if (run.thread !== undefined) run.thread.stored = Math.min(run.thread.stored, run.added.length)
  run.added.push(outcomes)
  run.tasks?.tell(run.added)
}

const stepStored = <R>(run: Run<R>, answer: Answer, execution: Execution<R>): State<R> => {
  if (stepReason(answer) !== "tool-calls") return finishing(run, answer)
  if (execution.hasClientCalls) return lastStep(run, answer, "client-tool")
  return isLastAllowed(run) ? lastStep(run, answer, "max-steps") : goingOn(run, answer)
}

/** A step that wants to go on. */
const goingOn = <R>(run: Run<R>, answer: Answer): State<R> =>
  run.settings.stopWhen.length === 0 ? nextStep(run, answer) : decide(run, answer)

/** The model has said its last word. Tasks that the run waits for are answered by one more step when they settle. */
const finishing = <R>(run: Run<R>, answer: Answer): State<R> => {
  const { tasks } = run
  const isCut = stepReason(answer) !== "stop"
  // An until-idle stream goes on by itself.
  if (tasks === undefined || tasks.answered !== undefined || isCut || isLastAllowed(run)) {
    return judging(run, answer)
  }
  const { answerable, oneSettled, remaining, settledMessage } = stepTasks.get()
  const settled = answerable(tasks)
  if (settled.length > 0) {
    const message = settledMessage(settled.map(({ dispatched }) => dispatched.task()))
    run.note = { message, after: run.added.length }
    return goingOn(run, answer)
  }
  const milliseconds = remaining(run, tasks)
  if (milliseconds === 0) return judging(run, answer)
  // Waiting is no part of the step.
  run.stopStepTimer()
  return waitFor(
    run,
    betweenTurns(run, oneSettled(tasks, milliseconds)),
    () => finishing(run, answer),
    () => haltedAfter(run, answer)
  )
}

/** The last word of the model is judged, where somebody judges: it ends the run, or another step goes on from there. */
const judging = <R>(run: Run<R>, answer: Answer): State<R> => {
  const judged = judgementOf(run, answer)
  if (judged === undefined) return lastStep(run, answer, undefined)
  // Judging is no part of the step.
  run.stopStepTimer()
  return waitFor(
    run,
    judged,
    exit => {
      if (Exit.isSuccess(exit)) {
        return tellJudgement(run, exit.value) ? goingOn(run, answer) : lastStep(run, answer, undefined)
      }
      lastStep(run, answer, undefined)
      return failedWith(exit.cause, undefined)
    },
    () => haltedAfter(run, answer)
  )
}

const lastStep = <R>(run: Run<R>, answer: Answer, stoppedBy: StoppedBy | undefined): State<R> => {
  const result = stepResult(answer, false, stoppedBy)
  tellStep(run, stepFinish(run, answer, result))
  return { _tag: "Ending", end: { _tag: "Success", result, answer } }
}

const nextStep = <R>(run: Run<R>, answer: Answer): State<R> => {
  tellStep(run, stepFinish(run, answer, stepResult(answer, run.control.halted === undefined, undefined)))
  return { _tag: "Asking" }
}

export const tellStep = <R>(run: Run<R>, chunk: ReturnType<typeof stepFinish>): void => {
  run.emit(chunk)
  run.nested = []
  if (run.tasks !== undefined) stepTasks.get().startProgress(run)
}

/** Asks the stop conditions. They may take their time, and an abort does not wait for them. */
const decide = <R>(run: Run<R>, answer: Answer): State<R> => {
  const steps = [...run.fold.finishedSteps, stepSoFar(run, answer)]
  return waitFor(
    run,
    Effect.suspend(() => firstTrue(run.settings.stopWhen, { steps })),
    exit => {
      if (Exit.isSuccess(exit)) return exit.value ? lastStep(run, answer, "stop-when") : nextStep(run, answer)
      lastStep(run, answer, undefined)
      return failedWith(exit.cause, "stopWhen")
    },
    () => haltedAfter(run, answer)
  )
}

const stepSoFar = <R>(run: Run<R>, answer: Answer) =>
  run.fold.stepOf(stepFinish(run, answer, stepResult(answer, true, undefined)).payload)

export const firstTrue = Effect.fnUntraced(function* (
  conditions: ReadonlyArray<StopCondition>,
  state: Parameters<StopCondition>[0]
) {
  for (const condition of conditions) {
    if (yield* callUser(() => condition(state))) return true
  }
  return false
})

/**
 * A run that is stopped in a step. A step whose model had answered has a finish; one that was cut off in the answer has
 * none. An answer that took too long has failed, and is not remembered.
 */
export const halted = <R>(run: Run<R>, asked: Asked, begun: Execution<R> | undefined): State<R> => {
  const end = stoppedEnd(run, begun === undefined ? asked.answer : undefined)
  if (end._tag === "Failure" && begun === undefined) return failed(run, asked, end.error)
  cutOff(run, asked, begun, end.error)
  if (begun !== undefined) lastStep(run, asked.answer, undefined)
  return storing(run, end)
}

/** A run that is stopped after the outcomes of a step. */
const haltedAfter = <R>(run: Run<R>, answer: Answer): State<R> => {
  lastStep(run, answer, undefined)
  return storing(run, stoppedEnd(run, undefined))
}

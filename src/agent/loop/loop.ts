/**
 * The agent loop: one flat sequence of the states of a run. Each state looks at what has happened, tells what there is to
 * tell, and names the next state.
 *
 *     Opening ─▶ Answering ─▶ Executing ─▶ Answering ─▶ … ─▶ Ending ─▶ Ended
 *                  ▲  └──┐        │                            ▲
 *                  └─ retry       └── failure, stop ───────────┘
 *
 * A model call is read by plain promises; each tool call, and whatever else takes its time (`Waiting`: the thread, what
 * decides about steps, the time before a retry), runs in a fiber of its own. The run owns them all. The loop itself waits
 * for nothing but its inbox, which is why an abort takes effect at once.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import { RunAborted } from "../../protocol/Errors.js"
import { part } from "../../protocol/lazily.js"
import { logDebug } from "../../protocol/logging.js"
import { tellObjective } from "../goals/stage.js"
import type { Stopped } from "../processors/processing.js"
import type { RunThread } from "../runThread.js"
import { openThread, takeTurn } from "../thread.js"
import { takeArrivals } from "./arrivals.js"
import { type Asked, ask } from "./asking.js"
import { cutOffBecause } from "./callFailures.js"
import { defectOf, type RunError } from "./defect.js"
import { stepReason } from "./ending.js"
import { Execution } from "./execution.js"
import { basePlan, changedPlan, type StepPlan } from "./planning.js"
import { type Attempt, type CallFailure, nextAttempt } from "./retrying.js"
import type { Run } from "./run.js"
import type { State } from "./state.js"
import { halted, stepEnds } from "./stepEnd.js"
import { cutOff, ended, endedAnyhow, failed, failedWith, haltedBetween } from "./stopping.js"
import { startRunTimer, startStepTimer } from "./timing.js"
import { waitFor } from "./waiting.js"

/** What only some runs need: see `parts.ts`. */
export const stages = part(() => import("../processors/stages.js"))
export const legs = part(() => import("./legStep.js"))
export const valued = part(() => import("./structuringStep.js"))

const opening = <R>(run: Run<R>): State<R> => {
  const { agentId, messageId, runId, thread } = run
  run.emit({ type: "start", runId, from: "AGENT", payload: { agentId, messageId } })
  if (run.control.halted !== undefined) return haltedBetween(run)
  startRunTimer(run)
  return thread === undefined ? started(run) : waitingForTurn(run, thread)
}

/** Other runs of the thread speak before this one. */
const waitingForTurn = <R>(run: Run<R>, thread: RunThread): State<R> => {
  const { leg } = run.suspension
  const turn = takeTurn(run, thread)
  return waitFor(
    run,
    leg === undefined ? turn : legs.get().keepingClaim(leg, turn),
    exit => (Exit.isFailure(exit) ? failedWith(exit.cause, undefined) : started(run)),
    () => haltedBetween(run)
  )
}

const started = <R>(run: Run<R>): State<R> => {
  const { suspension, thread } = run
  if (suspension.leg !== undefined) {
    const { decide, deciding } = legs.get()
    return deciding(run, decide(run, suspension.leg))
  }
  const begin = () => (thread === undefined ? asking(run) : remembering(run, thread))
  return run.processors === undefined ? begin() : stages.get().processedInput(run, begin)
}

/** Opens the thread of the run. */
const remembering = <R>(run: Run<R>, thread: RunThread): State<R> =>
  waitFor(
    run,
    Effect.zipLeft(openThread(run, thread), tellObjective(run, thread)),
    exit => {
      if (Exit.isFailure(exit)) return failedWith(exit.cause, undefined)
      run.input = exit.value
      return asking(run)
    },
    () => haltedBetween(run)
  )

/** The next step: what it asks, and the first call of its model. */
const asking = <R>(run: Run<R>): State<R> => {
  if (run.control.halted !== undefined) return haltedBetween(run)
  startStepTimer(run)
  const arrivals = takeArrivals(run)
  if (arrivals === undefined) return planning(run)
  return waitFor(
    run,
    arrivals,
    () => planning(run),
    () => haltedBetween(run)
  )
}

const planning = <R>(run: Run<R>): State<R> => {
  const { prepareStep } = run.settings
  if (prepareStep === undefined) return telling(run, basePlan(run), first(run))
  return waitFor(
    run,
    Effect.suspend(() => changedPlan(run, prepareStep)),
    exit => {
      if (Exit.isFailure(exit)) return failedWith(exit.cause, "prepareStep")
      const { value: plan } = exit
      return telling(run, plan, plan.models === run.models ? first(run) : { modelIndex: 0, retry: 0 })
    },
    () => haltedBetween(run)
  )
}

const first = <R>(run: Run<R>): Attempt => ({ modelIndex: run.modelIndex, retry: 0 })

const telling = <R>(run: Run<R>, plan: StepPlan<R>, attempt: Attempt): State<R> =>
  run.processors === undefined
    ? calling(run, plan, attempt)
    : stages.get().processedPrompt(run, plan, told => calling(run, told, attempt))

const calling = <R>(run: Run<R>, plan: StepPlan<R>, attempt: Attempt): State<R> => {
  const asked = ask(run, plan, attempt)
  run.rememberCutOff = () => cutOff(run, asked, undefined, stoppedEarly)
  return { _tag: "Answering", plan, asked }
}

const stoppedEarly = new RunAborted({ message: "The run was interrupted before it had finished." })

/** The model is answering; or it is done, and the step goes on to its tools. */
const answering = <R>(run: Run<R>, state: Extract<State<R>, { readonly _tag: "Answering" }>): State<R> => {
  const { asked, plan } = state
  const { answer, holding, outcome, processing: processed } = asked
  if (run.control.halted !== undefined) return halted(run, asked, undefined)
  if (processed?.stopped !== undefined) return stoppedByProcessor(run, asked, processed.stopped)
  if (outcome === undefined) return state
  if (outcome.failure !== undefined) return callFailed(run, plan, asked, outcome.failure)
  answer.close(true)
  if (processed?.stopped !== undefined) return stoppedByProcessor(run, asked, processed.stopped)
  if (processed?.isIdle === false) return state
  processed?.discard()
  holding.release()
  const accept = () => accepted(run, plan, asked)
  return run.processors === undefined ? accept() : stages.get().judged(run, asked, accept)
}

const stoppedByProcessor = <R>(run: Run<R>, asked: Asked, stopped: Stopped): State<R> =>
  "error" in stopped
    ? failed(run, asked, stopped.error)
    : stages.get().rejected(run, asked, stopped.tripwire, false)

/** An answer that nobody has anything against: it may hold a value. */
const accepted = <R>(run: Run<R>, plan: StepPlan<R>, asked: Asked): State<R> => {
  const { answer, messages } = asked
  run.tasks?.see(run)
  const execution = (): Execution<R> => new Execution(run, answer.calls, messages, plan.tools)
  // What those who judge have accepted is remembered, also when the run is left before it has its value.
  run.rememberCutOff = () => cutOff(run, asked, execution(), stoppedEarly)
  if (run.structuring === undefined) return answered(run, plan, asked)
  return valued.get().structured(
    run,
    asked,
    () => answered(run, plan, asked),
    () => halted(run, asked, execution())
  )
}

/** The model has answered: what it calls is executed. */
const answered = <R>(run: Run<R>, plan: StepPlan<R>, asked: Asked): State<R> => {
  const { answer, messages } = asked
  const execution = new Execution(run, answer.calls, messages, plan.tools)
  run.rememberCutOff = () => cutOff(run, asked, execution, stoppedEarly)
  const reason = stepReason(answer)
  if (reason === "length" || reason === "content-filter") {
    execution.cutOff(cutOffBecause(reason))
  } else {
    execution.prepare()
  }
  return executing(run, { _tag: "Executing", asked, execution })
}

/** Tries again, as long as nothing was shown: what somebody has read cannot be taken back. */
const callFailed = <R>(run: Run<R>, plan: StepPlan<R>, asked: Asked, failure: CallFailure): State<R> => {
  asked.processing?.discard()
  const next = (random: number) => nextAttempt(plan.models, asked.attempt, failure, random)
  if (asked.holding.isShown || next(0) === undefined) return failed(run, asked, failure)
  asked.answer.abandon()
  run.ids.rollBack()
  run.rememberCutOff = undefined
  const backOff = Effect.gen(function* () {
    const attempt = next(yield* Random.next)
    if (attempt === undefined || attempt.delay === 0) return attempt
    yield* logDebug(`A model call failed and is made again in ${attempt.delay} ms: ${failure.message}`)
    yield* Effect.sleep(attempt.delay)
    return attempt
  })
  return waitFor(
    run,
    backOff,
    exit => {
      const attempt = Exit.isSuccess(exit) ? exit.value : undefined
      return attempt === undefined ? failed(run, asked, failure) : calling(run, plan, attempt)
    },
    () => halted(run, asked, undefined)
  )
}

/** Tools of the step are running; or all have their outcome, and the step ends. */
const executing = <R>(run: Run<R>, state: Extract<State<R>, { readonly _tag: "Executing" }>): State<R> => {
  const { asked, execution } = state
  if (run.control.halted !== undefined) return halted(run, asked, execution)
  execution.advance()
  return execution.isDone ? stepEnds(run, asked.answer, execution) : state
}

/** Moves a run on by one state. Never throws: see {@link broken}. */
export const transition = <R>(run: Run<R>, state: State<R>): State<R> => {
  const next = guarded(run, state)
  // Whoever reads does not hold the model between two steps.
  return next._tag === "Asking" ? guarded(run, next) : next
}

const guarded = <R>(run: Run<R>, state: State<R>): State<R> => {
  try {
    return moved(run, state)
  } catch (thrown) {
    return broken(run, state, defectOf(thrown))
  }
}

/**
 * What throws between two states stops the run, as a time limit does: the state closes what it has open. If that throws as well,
 * the run ends without it.
 */
const broken = <R>(run: Run<R>, state: State<R>, error: RunError): State<R> => {
  if (state._tag === "Ending" || state._tag === "Ended") return endedAnyhow(run, state.end, error)
  if (run.control.halted !== undefined) {
    return { _tag: "Ending", end: { _tag: "Failure", error, answer: undefined } }
  }
  run.control.fail(error)
  // The start of the run was emitted.
  return guarded(run, state._tag === "Opening" ? { _tag: "Asking" } : state)
}

const moved = <R>(run: Run<R>, state: State<R>): State<R> => {
  switch (state._tag) {
    case "Opening":
      return opening(run)
    case "Asking":
      return asking(run)
    case "Answering":
      return answering(run, state)
    case "Executing":
      return executing(run, state)
    case "Deciding":
      return legs.get().deciding(run, state.decision)
    case "Waiting":
      return state.next() ?? state
    case "Ending":
    case "Ended":
      return ended(run, state.end)
  }
}

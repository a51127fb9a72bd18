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
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import type { Answer } from "../../model/Answer.js"
import { abortedBy } from "../../output/RunFold.js"
import {
  type AgentError,
  InvalidConfiguration,
  InvalidMessage,
  isAgentError,
  RunAborted,
  StorageError
} from "../../protocol/Errors.js"
import { messageOf } from "../../protocol/safeJson.js"
import type { StopCondition } from "../RunOptions.js"
import { answerable, oneSettled, remaining } from "../tasks/finishing.js"
import { startProgress } from "../tasks/progress.js"
import { settledMessage } from "../tasks/settled.js"
import { openThread, storeAdded, storeLast } from "../thread.js"
import { type Asked, ask } from "./asking.js"
import { type RunEnd, runFinish, type StoppedBy, stepFinish, stepReason, stepResult } from "./ending.js"
import { cutOffBecause, Execution } from "./execution.js"
import { basePlan, changedPlan, type StepPlan } from "./planning.js"
import { type Attempt, type CallFailure, nextAttempt } from "./retrying.js"
import type { Run } from "./run.js"
import { startRunTimer, startStepTimer } from "./timing.js"
import { type Waiting, waitFor, waitToEnd } from "./waiting.js"

export type State<R> =
  | { readonly _tag: "Opening" }
  | { readonly _tag: "Answering"; readonly plan: StepPlan<R>; readonly asked: Asked }
  | { readonly _tag: "Executing"; readonly asked: Asked; readonly execution: Execution<R> }
  | Waiting<State<R>>
  | { readonly _tag: "Ending"; readonly end: RunEnd }
  | { readonly _tag: "Ended"; readonly end: RunEnd }

const opening = <R>(run: Run<R>): State<R> => {
  const { agentId, messageId, runId, thread } = run
  run.emit({ type: "start", runId, from: "AGENT", payload: { agentId, messageId } })
  if (run.control.halted !== undefined) return haltedBetween(run)
  startRunTimer(run)
  if (thread === undefined) return asking(run)
  return waitFor(
    run,
    openThread(run, thread),
    exit => {
      if (Exit.isFailure(exit)) return failedWith(exit.cause, undefined)
      run.input = exit.value
      return asking(run)
    },
    () => haltedBetween(run)
  )
}

/** The next step: what it asks, and the first call of its model. */
const asking = <R>(run: Run<R>): State<R> => {
  if (run.control.halted !== undefined) return haltedBetween(run)
  startStepTimer(run)
  run.tasks?.tell(run.added)
  const { prepareStep } = run.settings
  if (prepareStep === undefined) return calling(run, basePlan(run), first(run))
  return waitFor(
    run,
    Effect.suspend(() => changedPlan(run, prepareStep)),
    exit => {
      if (Exit.isFailure(exit)) return failedWith(exit.cause, "prepareStep")
      const { value: plan } = exit
      return calling(run, plan, plan.models === run.models ? first(run) : { modelIndex: 0, retry: 0 })
    },
    () => haltedBetween(run)
  )
}

const first = <R>(run: Run<R>): Attempt => ({ modelIndex: run.modelIndex, retry: 0 })

const calling = <R>(run: Run<R>, plan: StepPlan<R>, attempt: Attempt): State<R> => {
  const asked = ask(run, plan, attempt)
  run.rememberCutOff = () => cutOff(run, asked, undefined, stoppedEarly)
  return { _tag: "Answering", plan, asked }
}

const stoppedEarly = new RunAborted({ message: "The run was interrupted before it had finished." })

/** The model is answering; or it is done, and the step goes on to its tools. */
const answering = <R>(run: Run<R>, state: Extract<State<R>, { readonly _tag: "Answering" }>): State<R> => {
  const { asked, plan } = state
  const { answer, holding, messages, outcome } = asked
  if (run.control.halted !== undefined) return halted(run, asked, undefined)
  if (outcome === undefined) return state
  if (outcome.failure !== undefined) return callFailed(run, plan, asked, outcome.failure)
  answer.close(true)
  holding.release()
  run.tasks?.see()
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
  const next = (random: number) => nextAttempt(plan.models, asked.attempt, failure, random)
  if (asked.holding.isShown || next(0) === undefined) return failed(run, asked, failure)
  run.ids.rollBack()
  run.rememberCutOff = undefined
  const backOff = Effect.gen(function* () {
    const attempt = next(yield* Random.next)
    if (attempt === undefined || attempt.delay === 0) return attempt
    yield* Effect.logDebug(`A model call failed and is made again in ${attempt.delay} ms: ${failure.message}`)
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

/** Adds what a step said to the conversation. */
const remember = <R>(run: Run<R>, answer: Answer, execution: Execution<R>, isComplete: boolean): void => {
  run.rememberCutOff = undefined
  for (const message of [answer.toMessage(isComplete), execution.toMessage()]) {
    if (message !== undefined) run.added.push(message)
  }
  // A task may be done before its step is.
  run.tasks?.tell(run.added)
}

const stepEnds = <R>(run: Run<R>, answer: Answer, execution: Execution<R>): State<R> => {
  remember(run, answer, execution, true)
  const { thread } = run
  if (thread === undefined) return stepStored(run, answer, execution)
  return waitFor(
    run,
    storeAdded(run, thread),
    exit => {
      if (Exit.isSuccess(exit)) return stepStored(run, answer, execution)
      endClientCalls(run, execution, storeFailure(Cause.squash(exit.cause)))
      lastStep(run, answer, undefined)
      return failedWith(exit.cause, undefined)
    },
    () => {
      endClientCalls(run, execution, stoppedEnd(run, undefined).error)
      return haltedAfter(run, answer)
    }
  )
}

/** Calls that were left to the client have an outcome after all: a run that does not end by itself asks nobody. */
const endClientCalls = <R>(run: Run<R>, execution: Execution<R>, error: AgentError): void => {
  if (!execution.hasClientCalls) return
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

const isLastAllowed = <R>(run: Run<R>): boolean => run.fold.finishedSteps.length + 1 >= run.settings.maxSteps

/** The model has said its last word. Tasks that the run waits for are answered by one more step when they settle. */
const finishing = <R>(run: Run<R>, answer: Answer): State<R> => {
  const { tasks } = run
  const isCut = stepReason(answer) !== "stop"
  // An until-idle stream goes on by itself.
  if (tasks === undefined || tasks.answered !== undefined || isCut || isLastAllowed(run)) {
    return lastStep(run, answer, undefined)
  }
  const settled = answerable(tasks)
  if (settled.length > 0) {
    const message = settledMessage(settled.map(({ dispatched }) => dispatched.task()))
    run.note = { message, after: run.added.length }
    return goingOn(run, answer)
  }
  const milliseconds = remaining(run, tasks)
  if (milliseconds === 0) return lastStep(run, answer, undefined)
  // Waiting is no part of the step.
  run.stopStepTimer()
  return waitFor(
    run,
    oneSettled(tasks, milliseconds),
    () => finishing(run, answer),
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
  return asking(run)
}

const tellStep = <R>(run: Run<R>, chunk: ReturnType<typeof stepFinish>): void => {
  run.emit(chunk)
  run.nested = []
  startProgress(run)
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

const firstTrue = Effect.fnUntraced(function* (
  conditions: ReadonlyArray<StopCondition>,
  state: Parameters<StopCondition>[0]
) {
  for (const condition of conditions) {
    const verdict = condition(state)
    if (Effect.isEffect(verdict) ? yield* verdict : verdict) return true
  }
  return false
})

/** A run that fails between two answers. What is the caller's own function has failed the run by `option`. */
const failedWith = <R>(
  cause: Cause.Cause<unknown>,
  option: "prepareStep" | "stopWhen" | undefined
): State<R> => {
  const thrown = Cause.squash(cause)
  const error = option === undefined ? storeFailure(thrown) : optionFailure(option, thrown)
  return { _tag: "Ending", end: { _tag: "Failure", error, answer: undefined } }
}

const storeFailure = (thrown: unknown): AgentError =>
  isAgentError(thrown)
    ? thrown
    : new StorageError({ operation: "ThreadStore", message: "The store of threads failed.", cause: thrown })

const optionFailure = (field: string, thrown: unknown): AgentError =>
  thrown instanceof InvalidConfiguration || thrown instanceof InvalidMessage
    ? thrown
    : new InvalidConfiguration({ field, message: `\`${field}\` failed: ${messageOf(thrown)}` })

/** Tells of an answer that has said nothing no more than that it began. */
const tellBeginning = ({ answer, holding }: Asked): void => {
  answer.begin()
  holding.releaseFacts()
}

/** A call that came to nothing: of its answer nothing goes into the conversation. */
const failed = <R>(run: Run<R>, asked: Asked, error: AgentError): State<R> => {
  const { answer, holding } = asked
  run.rememberCutOff = undefined
  if (holding.isShown) {
    answer.close(false)
    new Execution(run, answer.calls, [], run.tools).cutOff(() => error)
  } else {
    tellBeginning(asked)
  }
  return { _tag: "Ending", end: { _tag: "Failure", error, answer } }
}

type Stopped = Exclude<RunEnd, { readonly _tag: "Success" }>

const stoppedEnd = <R>(run: Run<R>, answer: Answer | undefined): Stopped => {
  const { halted: halt } = run.control
  if (halt?._tag === "TimedOut") return { _tag: "Failure", error: halt.error, answer }
  const { reason } = halt ?? {}
  return { _tag: "Aborted", error: abortedBy(reason), reason, answer }
}

/** Ends what an answer and its tools have left open, and adds what was said to the conversation. */
const cutOff = <R>(run: Run<R>, asked: Asked, begun: Execution<R> | undefined, error: AgentError): void => {
  const { answer, holding } = asked
  if (begun === undefined && !holding.isShown) {
    tellBeginning(asked)
    run.rememberCutOff = undefined
    return
  }
  if (begun === undefined) answer.close(false)
  const execution = begun ?? new Execution(run, answer.calls, [], run.tools)
  execution.cutOff(() => error)
  remember(run, answer, execution, begun !== undefined)
}

/**
 * A run that is stopped in a step. A step whose model had answered has a finish; one that was cut off in the answer has
 * none. An answer that took too long has failed, and is not remembered.
 */
const halted = <R>(run: Run<R>, asked: Asked, begun: Execution<R> | undefined): State<R> => {
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

/** A run that is stopped between two steps. */
const haltedBetween = <R>(run: Run<R>): State<R> => storing(run, stoppedEnd(run, undefined))

/** What was said last goes into the thread before the run says that it is over. */
const storing = <R>(run: Run<R>, end: RunEnd): State<R> => {
  const ending: State<R> = { _tag: "Ending", end }
  const { thread } = run
  return thread === undefined || thread.stored === run.added.length
    ? ending
    : waitToEnd(run, storeLast(run), () => ending)
}

const ended = <R>(run: Run<R>, end: RunEnd): State<R> => {
  run.stopStepTimer()
  run.tasks?.tell(run.added)
  for (const chunk of runFinish(run, end)) run.emit(chunk)
  run.isOver = true
  return { _tag: "Ended", end }
}

/** Moves a run on by one state. */
export const transition = <R>(run: Run<R>, state: State<R>): State<R> => {
  switch (state._tag) {
    case "Opening":
      return opening(run)
    case "Answering":
      return answering(run, state)
    case "Executing":
      return executing(run, state)
    case "Waiting":
      return state.next() ?? state
    case "Ending":
    case "Ended":
      return ended(run, state.end)
  }
}

/** Where every run begins. */
export const start: Extract<State<never>, { readonly _tag: "Opening" }> = { _tag: "Opening" }

/** Only a run that has asked somebody has something to wait for. */
export const mustWait = <R>(state: State<R>): boolean =>
  state._tag === "Answering" || state._tag === "Executing" || state._tag === "Waiting"

/** How a run comes to its end before it has ended by itself, and what is told and stored of it then. */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Answer } from "../../model/Answer.js"
import { abortedBy } from "../../output/RunFold.js"
import {
  type AgentError,
  InvalidConfiguration,
  InvalidMessage,
  isAgentError,
  StorageError,
  ThreadBusy
} from "../../protocol/Errors.js"
import { squash } from "../../protocol/foreignValue.js"
import { part } from "../../protocol/lazily.js"
import { logError } from "../../protocol/logging.js"
import { messageOf } from "../../protocol/safeJson.js"
import { failureText } from "../../tool/failureText.js"
import { runEnded } from "../telemetry/runEnded.js"
import { storeLast } from "../thread.js"
import type { Asked } from "./asking.js"
import type { RunError } from "./defect.js"
import { bareFinish, type RunEnd, runFinish } from "./ending.js"
import { Execution } from "./execution.js"
import { forkToEnd, type Run } from "./run.js"
import type { State } from "./state.js"
import { waitToEnd } from "./waiting.js"

/** Of runs that are to give a structured value: see `parts.ts`. */
export const reporting = part(() => import("./structuringStep.js"))

/** Adds what a step said to the conversation. */
export const remember = <R>(
  run: Run<R>,
  answer: Answer,
  execution: Execution<R>,
  isComplete: boolean
): void => {
  run.rememberCutOff = undefined
  for (const message of [answer.toMessage(isComplete), execution.toMessage()]) {
    if (message !== undefined) run.added.push(message)
  }
  // A task may be done before its step is.
  run.tasks?.tell(run.added)
}

/** A run that fails between two answers. What is the caller's own function has failed the run by `option`. */
export const failedWith = <R>(
  cause: Cause.Cause<unknown>,
  option: "prepareStep" | "stopWhen" | undefined
): State<R> => {
  const thrown = squash(cause)
  const error = option === undefined ? storeFailure(thrown) : optionFailure(option, thrown)
  return { _tag: "Ending", end: { _tag: "Failure", error, answer: undefined } }
}

export const storeFailure = (thrown: unknown): AgentError =>
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

/** Ends what an answer that is not complete has left open. What processors still hold back of it is told to nobody. */
export const closeAnswer = (asked: Asked): void => {
  const { answer, holding, processing } = asked
  processing?.end()
  answer.abandon()
  if (holding.isShown) answer.close(false)
  else tellBeginning(asked)
}

/** A call that came to nothing: of its answer nothing goes into the conversation. */
export const failed = <R>(run: Run<R>, asked: Asked, error: RunError): State<R> => {
  const { answer, holding } = asked
  run.rememberCutOff = undefined
  closeAnswer(asked)
  if (holding.isShown) new Execution(run, answer.calls, [], run.tools).cutOff(() => error)
  return { _tag: "Ending", end: { _tag: "Failure", error, answer } }
}

type Stopped = Extract<RunEnd, { readonly error: RunError }>

export const stoppedEnd = <R>(run: Run<R>, answer: Answer | undefined): Stopped => {
  const { halted: halt } = run.control
  if (halt !== undefined && halt._tag !== "Aborted") return { _tag: "Failure", error: halt.error, answer }
  const { reason } = halt ?? {}
  return { _tag: "Aborted", error: abortedBy(reason), reason, answer }
}

/** Ends what an answer and its tools have left open, and adds what was said to the conversation. */
export const cutOff = <R>(
  run: Run<R>,
  asked: Asked,
  begun: Execution<R> | undefined,
  error: RunError
): void => {
  const { answer, holding } = asked
  const isShown = begun !== undefined || holding.isShown
  if (begun === undefined) closeAnswer(asked)
  if (!isShown) {
    run.rememberCutOff = undefined
    return
  }
  const execution = begun ?? new Execution(run, answer.calls, [], run.tools)
  execution.cutOff(() => error)
  // What is to be judged is not remembered before it is.
  if (begun === undefined && run.processors?.areJudging === true) run.rememberCutOff = undefined
  else remember(run, answer, execution, begun !== undefined)
}

/** A run that is stopped between two steps. */
export const haltedBetween = <R>(run: Run<R>): State<R> => storing(run, stoppedEnd(run, undefined))

/** What was said last goes into the thread before the run says that it is over. */
export const storing = <R>(run: Run<R>, end: RunEnd): State<R> => {
  const ending: State<R> = { _tag: "Ending", end }
  const { thread } = run
  return thread === undefined || thread.stored === run.added.length
    ? ending
    : waitToEnd(run, storeLast(run), () => ending)
}

/** Writes the failure of a run to the log: the one place, for both faces. A run that a busy thread refuses is no failure of the host. */
const logFailure = <R>(run: Run<R>, error: RunError): void => {
  const { agentId, caller, control, runId } = run
  // What a run fails with that serves a call is for the model of the caller.
  if (control.takesFailure || caller.call !== undefined || error instanceof ThreadBusy) return
  const line = logError(`Run ${runId} failed: ${messageOf(error)}`)
  forkToEnd(run, Effect.annotateLogs(line, { runId, agentId, cause: failureText(error) }))
}

export const ended = <R>(run: Run<R>, end: RunEnd): State<R> => {
  run.stopStepTimer()
  run.tasks?.tell(run.added)
  for (const chunk of runFinish(run, end)) run.emit(chunk)
  if (run.structuring !== undefined) reporting.get().reportValue(run, end)
  run.isOver = true
  run.thread?.turn?.end()
  runEnded(run, end)
  if (end._tag === "Failure") logFailure(run, end.error)
  return { _tag: "Ended", end }
}

/** The end of a run whose own end throws: its last chunks, as far as they are not emitted, without anything of the run in them. */
export const endedAnyhow = <R>(run: Run<R>, end: RunEnd, error: RunError): State<R> => {
  const { emit, fold, runId } = run
  run.isOver = true
  if (fold.status !== "running") return { _tag: "Ended", end }
  const failure: RunEnd = { _tag: "Failure", error, answer: undefined }
  for (const chunk of bareFinish(runId, error)) {
    if (chunk.type === "finish" || fold.error === undefined) emit(chunk)
  }
  logFailure(run, error)
  return { _tag: "Ended", end: failure }
}

/**
 * The agent loop: one flat stream over the states of a run. Each state takes what the run's inbox holds, hands it on as one
 * batch, and names the next state.
 *
 *     Opening ─▶ Answering ─▶ Executing ─▶ Deciding ─▶ Answering ─▶ … ─▶ Ending ─▶ Ended
 *                    └────────────┴────────────┴── failure, abort ──────────▲
 *
 * A model call is read by plain promises; each tool call and what decides about stopping runs in a fiber of its own. The run
 * owns them all. The loop itself waits for nothing but its inbox, which is why an abort takes effect at once.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Answer } from "../model/Answer.js"
import { abortMessage } from "../output/RunFold.js"
import type { Chunk } from "../protocol/Chunk.js"
import { InvalidConfiguration, type ModelError, RunAborted, ToolCallCutOff } from "../protocol/Errors.js"
import { messageOf } from "../protocol/safeJson.js"
import { type Asked, ask } from "./asking.js"
import { type RunEnd, runFinish, type StoppedBy, stepFinish, stepReason, stepResult } from "./ending.js"
import { Execution } from "./execution.js"
import type { StopCondition } from "./RunOptions.js"
import { fork, type Run } from "./run.js"

export type State<R> =
  | { readonly _tag: "Opening" }
  | { readonly _tag: "Answering"; readonly asked: Asked }
  | { readonly _tag: "Executing"; readonly answer: Answer; readonly execution: Execution<R> }
  | { readonly _tag: "Deciding"; readonly answer: Answer; readonly decision: Decision }
  | { readonly _tag: "Ending"; readonly end: RunEnd }
  | { readonly _tag: "Ended"; readonly end: RunEnd }

const opening = <R>(run: Run<R>): State<R> => {
  const { agentId, messageId, runId } = run
  run.emit({ type: "start", runId, from: "AGENT", payload: { agentId, messageId } })
  return asking(run)
}

const asking = <R>(run: Run<R>): State<R> =>
  run.control.aborted === undefined
    ? { _tag: "Answering", asked: ask(run) }
    : { _tag: "Ending", end: abortedEnd(run, undefined) }

/** The model is answering; or it is done, and the step goes on to its tools. */
const answering = <R>(run: Run<R>, state: Extract<State<R>, { readonly _tag: "Answering" }>): State<R> => {
  const { answer, outcome, request } = state.asked
  if (run.control.aborted !== undefined) return aborted(run, answer, undefined)
  if (outcome === undefined) return state
  if (outcome.failure !== undefined) return failed(run, answer, outcome.failure)
  answer.close(true)
  const execution = new Execution(run, answer.calls, request.messages)
  const reason = stepReason(answer)
  if (reason === "length" || reason === "content-filter") {
    execution.cutOff(cutOffBecause(reason))
  } else {
    execution.prepare()
  }
  return executing(run, { _tag: "Executing", answer, execution })
}

/** Tools of the step are running; or all have their outcome, and the step ends. */
const executing = <R>(run: Run<R>, state: Extract<State<R>, { readonly _tag: "Executing" }>): State<R> => {
  const { answer, execution } = state
  if (run.control.aborted !== undefined) return aborted(run, answer, execution)
  execution.advance()
  return execution.isDone ? stepEnds(run, answer, execution) : state
}

/** Adds what a step said to the conversation. */
const remember = <R>(run: Run<R>, answer: Answer, execution: Execution<R>, isComplete: boolean): void => {
  for (const message of [answer.toMessage(isComplete), execution.toMessage()]) {
    if (message !== undefined) run.added.push(message)
  }
}

const stepEnds = <R>(run: Run<R>, answer: Answer, execution: Execution<R>): State<R> => {
  remember(run, answer, execution, true)
  if (stepReason(answer) !== "tool-calls") return lastStep(run, answer, undefined)
  const { maxSteps, stopWhen } = run.settings
  if (execution.hasClientCalls) return lastStep(run, answer, "client-tool")
  if (run.fold.finishedSteps.length + 1 >= maxSteps) return lastStep(run, answer, "max-steps")
  return stopWhen.length === 0 ? nextStep(run, answer) : decide(run, answer)
}

const lastStep = <R>(run: Run<R>, answer: Answer, stoppedBy: StoppedBy | undefined): State<R> => {
  const result = stepResult(answer, false, stoppedBy)
  run.emit(stepFinish(run, answer, result))
  return { _tag: "Ending", end: { _tag: "Success", result, answer } }
}

const nextStep = <R>(run: Run<R>, answer: Answer): State<R> => {
  run.emit(stepFinish(run, answer, stepResult(answer, run.control.aborted === undefined, undefined)))
  return asking(run)
}

/** What the stop conditions say, once they have. */
interface Decision {
  verdict: Exit.Exit<boolean> | undefined
}

/** Asks the stop conditions. They may take their time, and an abort does not wait for them. */
const decide = <R>(run: Run<R>, answer: Answer): State<R> => {
  const { payload } = stepFinish(run, answer, stepResult(answer, true, undefined))
  const steps = [...run.fold.finishedSteps, run.fold.stepOf(payload)]
  const decision: Decision = { verdict: undefined }
  const settle = (verdict: Exit.Exit<boolean>): void => {
    decision.verdict = verdict
    run.inbox.notify()
  }
  const deciding = firstTrue(run.settings.stopWhen, { steps })
  fork(run, Effect.map(Effect.exit(deciding), settle))
  return decided(run, { _tag: "Deciding", answer, decision })
}

/** The stop conditions are deciding; or they have, and the run goes on as they say. */
const decided = <R>(run: Run<R>, state: Extract<State<R>, { readonly _tag: "Deciding" }>): State<R> => {
  const { answer, decision } = state
  const { verdict } = decision
  if (run.control.aborted !== undefined) {
    lastStep(run, answer, undefined)
    return { _tag: "Ending", end: abortedEnd(run, undefined) }
  }
  if (verdict === undefined) return state
  if (Exit.isSuccess(verdict)) {
    return verdict.value ? lastStep(run, answer, "stop-when") : nextStep(run, answer)
  }
  lastStep(run, answer, undefined)
  const error = brokenStopCondition(verdict.cause)
  return { _tag: "Ending", end: { _tag: "Failure", error, answer: undefined } }
}

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

const brokenStopCondition = (cause: Cause.Cause<unknown>): InvalidConfiguration =>
  new InvalidConfiguration({
    field: "stopWhen",
    message: `A stop condition failed: ${messageOf(Cause.squash(cause))} It must return a boolean.`
  })

const failed = <R>(run: Run<R>, answer: Answer, error: ModelError): State<R> => {
  answer.close(false)
  const execution = new Execution(run, answer.calls, [])
  execution.cutOff(() => error)
  remember(run, answer, execution, false)
  return { _tag: "Ending", end: { _tag: "Failure", error, answer } }
}

const abortedEnd = <R>(
  run: Run<R>,
  answer: Answer | undefined
): Extract<RunEnd, { readonly _tag: "Aborted" }> => {
  const reason = run.control.aborted?.reason
  return {
    _tag: "Aborted",
    error: new RunAborted({ message: abortMessage(reason), cause: reason }),
    reason,
    answer
  }
}

/** A step whose model had answered has a finish; one that was cut off in the answer has none. */
const aborted = <R>(run: Run<R>, answer: Answer, begun: Execution<R> | undefined): State<R> => {
  const end = abortedEnd(run, begun === undefined ? answer : undefined)
  if (begun === undefined) answer.close(false)
  const execution = begun ?? new Execution(run, answer.calls, [])
  execution.cutOff(() => end.error)
  remember(run, answer, execution, begun !== undefined)
  if (begun !== undefined) lastStep(run, answer, undefined)
  return { _tag: "Ending", end }
}

const cutOffBecause =
  (reason: "length" | "content-filter") =>
  (toolName: string): ToolCallCutOff =>
    new ToolCallCutOff({
      toolName,
      message:
        reason === "length"
          ? `Tool "${toolName}" was not executed: the token limit cut the answer off, its arguments may be incomplete.`
          : `Tool "${toolName}" was not executed: a content filter cut the answer off.`
    })

const ended = <R>(run: Run<R>, end: RunEnd): State<R> => {
  for (const chunk of runFinish(run, end)) run.emit(chunk)
  return { _tag: "Ended", end }
}

const transition = <R>(run: Run<R>, state: State<R>): State<R> => {
  switch (state._tag) {
    case "Opening":
      return opening(run)
    case "Answering":
      return answering(run, state)
    case "Executing":
      return executing(run, state)
    case "Deciding":
      return decided(run, state)
    case "Ending":
    case "Ended":
      return ended(run, state.end)
  }
}

/** Only a run that has asked somebody has something to wait for. */
const mustWait = <R>(state: State<R>): boolean =>
  state._tag === "Answering" || state._tag === "Executing" || state._tag === "Deciding"

const isEnded = <R>(state: State<R>): boolean => state._tag === "Ended"

/** What a run tells next, and the state it is in then. */
export const advance = <R>(
  run: Run<R>,
  state: State<R>
): Effect.Effect<readonly [ReadonlyArray<Chunk>, State<R>]> => {
  const move = () => {
    const next = transition(run, state)
    return [run.inbox.take(), next] as const
  }
  return mustWait(state) ? Effect.map(run.inbox.arrived, move) : Effect.sync(move)
}

/** Where every run begins. */
export const start: Extract<State<never>, { readonly _tag: "Opening" }> = { _tag: "Opening" }

/** Who takes what a run tells. */
export interface Writer {
  readonly write: (chunks: ReadonlyArray<Chunk>) => void
  /** Whether the run may go on; when not, `resume` is called once, as soon as it may. */
  readonly mayGoOn: (resume: () => void) => boolean
}

/**
 * Drives a run without a stream around it: the same states, moved by plain code inside one async boundary. Interrupting it
 * leaves the run where it is.
 */
export const drive = <R>(run: Run<R>, { mayGoOn, write }: Writer): Effect.Effect<void> =>
  Effect.async(resume => {
    let state: State<R> = start
    let isLeft = false
    const go = (): void => {
      try {
        while (!isLeft && !isEnded(state) && mayGoOn(go) && (!mustWait(state) || run.inbox.hasNews(go))) {
          state = transition(run, state)
          write(run.inbox.take())
        }
        if (isEnded(state)) resume(Effect.void)
      } catch (defect) {
        resume(Effect.die(defect))
      }
    }
    go()
    return Effect.sync(() => {
      isLeft = true
      run.inbox.leave()
    })
  })

/**
 * The agent loop: one flat stream over the states of a run. Each state takes what the run's inbox holds, hands it on as one
 * batch, and names the next state.
 *
 *     Opening ─▶ Answering ─▶ Executing ─▶ Answering ─▶ … ─▶ Ending ─▶ Ended
 *                    └────────────┴── failure, abort ──────────▲
 *
 * The model is read by one fiber, each tool call runs in its own; all belong to the scope of the run. The loop itself waits
 * for nothing but its inbox, which is why an abort takes effect at once.
 */
import { Chunk as Batch, Cause, Effect, Either, Exit, Option, Stream } from "effect"
import type { Answer } from "../model/Answer.js"
import { abortMessage } from "../output/RunFold.js"
import type { Chunk } from "../protocol/Chunk.js"
import {
  type AgentError,
  InvalidConfiguration,
  type ModelError,
  RunAborted,
  ToolCallCutOff
} from "../protocol/Errors.js"
import { messageOf } from "../protocol/Json.js"
import { type Asked, ask } from "./asking.js"
import { Execution } from "./Execution.js"
import { type RunEnd, runFinish, type StoppedBy, stepFinish, stepReason, stepResult } from "./ending.js"
import type { Run } from "./Run.js"

type State<R> =
  | { readonly _tag: "Opening" }
  | { readonly _tag: "Answering"; readonly asked: Asked }
  | { readonly _tag: "Executing"; readonly answer: Answer; readonly execution: Execution<R> }
  | { readonly _tag: "Ending"; readonly end: RunEnd }
  | { readonly _tag: "Ended"; readonly end: RunEnd }

type Next<R> = Effect.Effect<State<R>, never, R>

const opening = <R>(run: Run<R>): Next<R> => {
  const { agentId, messageId, runId } = run
  run.emit({ type: "start", runId, from: "AGENT", payload: { agentId, messageId } })
  return asking(run)
}

const asking = <R>(run: Run<R>): Next<R> =>
  run.control.aborted === undefined
    ? Effect.map(ask(run), (asked): State<R> => ({ _tag: "Answering", asked }))
    : Effect.succeed({ _tag: "Ending", end: abortedEnd(run, undefined) })

/** The model is answering; or it is done, and the step goes on to its tools. */
const answering = <R>(run: Run<R>, state: Extract<State<R>, { readonly _tag: "Answering" }>): Next<R> => {
  const { answer, exit, request } = state.asked
  if (run.control.aborted !== undefined) return Effect.succeed(aborted(run, answer, undefined))
  if (exit === undefined) return Effect.succeed(state)
  if (Exit.isFailure(exit)) {
    return Either.match(Cause.failureOrCause(exit.cause), {
      onLeft: error => Effect.succeed(failed(run, answer, error)),
      onRight: Effect.failCause
    })
  }
  answer.close(true)
  const execution = new Execution(run, answer.calls, request.messages)
  const reason = stepReason(answer)
  if (reason === "length" || reason === "content-filter") {
    execution.cutOff(cutOffBecause(reason))
    return stepEnds(run, answer, execution)
  }
  execution.prepare()
  return executing(run, { _tag: "Executing", answer, execution })
}

/** Tools of the step are running; or all have their outcome, and the step ends. */
const executing = <R>(run: Run<R>, state: Extract<State<R>, { readonly _tag: "Executing" }>): Next<R> => {
  const { answer, execution } = state
  if (run.control.aborted !== undefined) return Effect.succeed(aborted(run, answer, execution))
  if (execution.isDone) return stepEnds(run, answer, execution)
  return Effect.as(execution.advance, state)
}

/** Adds what a step said to the conversation. */
const remember = <R>(run: Run<R>, answer: Answer, execution: Execution<R>, isComplete: boolean): void => {
  for (const message of [answer.toMessage(isComplete), execution.toMessage()]) {
    if (message !== undefined) run.added.push(message)
  }
}

const stepEnds = Effect.fnUntraced(function* <R>(run: Run<R>, answer: Answer, execution: Execution<R>) {
  remember(run, answer, execution, true)
  const wantsMore = stepReason(answer) === "tool-calls"
  const decision = wantsMore ? yield* Effect.exit(decide(run, answer, execution)) : Exit.succeed(undefined)
  const stoppedBy = Exit.isSuccess(decision) ? decision.value : undefined
  const isContinued = wantsMore && Exit.isSuccess(decision) && stoppedBy === undefined
  const result = stepResult(answer, isContinued, stoppedBy)
  run.emit(stepFinish(run, answer, result))
  if (isContinued) return yield* asking(run)
  const end: RunEnd = Exit.isSuccess(decision)
    ? { _tag: "Success", result, answer }
    : { _tag: "Failure", error: brokenStopCondition(decision.cause), answer: undefined }
  return { _tag: "Ending", end } satisfies State<R>
})

/** What stops a run whose model wants to go on; `undefined` when nothing does. */
const decide = Effect.fnUntraced(function* <R>(run: Run<R>, answer: Answer, execution: Execution<R>) {
  const { maxSteps, stopWhen } = run.settings
  const finished = run.fold.finishedSteps
  if (execution.hasClientCalls) return "client-tool" satisfies StoppedBy
  if (finished.length + 1 >= maxSteps) return "max-steps" satisfies StoppedBy
  if (stopWhen.length === 0) return undefined
  const { payload } = stepFinish(run, answer, stepResult(answer, true, undefined))
  const steps = [...finished, run.fold.stepOf(payload)]
  for (const condition of stopWhen) {
    const verdict = yield* Effect.sync(() => condition({ steps }))
    if (Effect.isEffect(verdict) ? yield* verdict : verdict) return "stop-when" satisfies StoppedBy
  }
  return undefined
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

const aborted = <R>(run: Run<R>, answer: Answer, begun: Execution<R> | undefined): State<R> => {
  const end = abortedEnd(run, answer)
  if (begun === undefined) answer.close(false)
  const execution = begun ?? new Execution(run, answer.calls, [])
  execution.cutOff(() => end.error)
  remember(run, answer, execution, begun !== undefined)
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

const transition = <R>(run: Run<R>, state: State<R>): Next<R> => {
  switch (state._tag) {
    case "Opening":
      return opening(run)
    case "Answering":
      return Effect.flatMap(run.inbox.arrived, () => answering(run, state))
    case "Executing":
      return Effect.flatMap(run.inbox.arrived, () => executing(run, state))
    case "Ending":
    case "Ended":
      return Effect.sync(() => ended(run, state.end))
  }
}

/**
 * The stream of one run; it can be run once. A run that failed ends, after its `finish`, with its error; one that was
 * aborted just ends.
 */
export const loop = <R>(run: Run<R>): Stream.Stream<Chunk, AgentError, R> =>
  Stream.unfoldChunkEffect<State<R>, Chunk, AgentError, R>({ _tag: "Opening" }, state => {
    if (state._tag === "Ended") {
      return state.end._tag === "Failure" ? Effect.fail(state.end.error) : Effect.succeedNone
    }
    return Effect.map(transition(run, state), next =>
      Option.some([Batch.unsafeFromArray(run.inbox.take()), next] as const)
    )
  })

/** Processors that judge whole answers, and what becomes of an answer that is rejected. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { Answer } from "../../model/Answer.js"
import type { Tripwire } from "../../output/FullOutput.js"
import { blockedBy } from "../../output/RunFold.js"
import type { Message } from "../../protocol/Message.js"
import type { Asked } from "../loop/asking.js"
import { rejectedFinish, stepReason } from "../loop/ending.js"
import { Execution } from "../loop/execution.js"
import { type Run, stepNumberOf } from "../loop/run.js"
import type { State } from "../loop/state.js"
import { halted, tellStep } from "../loop/stepEnd.js"
import { closeAnswer, failed } from "../loop/stopping.js"
import type { ProcessedAnswer, ProcessedResult } from "./definition.js"
import { called, gaveWrong } from "./failing.js"
import { hooked } from "./hooking.js"

const reasoningOf = (message: ProcessedAnswer["message"]): string =>
  message?.content.map(part => (part.type === "reasoning" ? part.text : "")).join("") ?? ""

const answerOf = (answer: Answer): ProcessedAnswer => {
  const message = answer.toMessage(true)
  return {
    text: answer.text,
    reasoning: reasoningOf(message),
    toolCalls: answer.calls.map(({ chunk }) => chunk),
    finishReason: stepReason(answer),
    usage: answer.usage,
    message
  }
}

const isResult = (given: unknown): given is ProcessedResult =>
  Predicate.isRecord(given) &&
  !Predicate.isPromiseLike(given) &&
  Object.keys(given).every(key => key === "metadata") &&
  (given["metadata"] === undefined || Predicate.isRecord(given["metadata"]))

const saysNothing = (given: unknown): boolean => given === undefined || given === null

/** The state behind an answer that every processor accepts. */
export const judged = <R>(run: Run<R>, asked: Asked, then: () => State<R>): State<R> => {
  const { processors } = run
  const { answer, messages } = asked
  if (processors === undefined) return then()
  processors.metadata = undefined
  const results = stepReason(answer) === "tool-calls" ? [] : processors.result
  if (processors.step.length === 0 && results.length === 0) return then()
  return hooked(
    run,
    Effect.fnUntraced(function* (contextOf) {
      const said = answerOf(answer)
      for (const bound of processors.step) {
        const { processor } = bound
        const given: unknown = yield* called<unknown>(processor, "processOutputStep", () =>
          processor.processOutputStep(said, contextOf(bound, messages))
        )
        if (saysNothing(given)) continue
        const what = "a value. It judges: give nothing to accept the answer, or use `abort` to refuse it."
        return yield* gaveWrong(processor, "processOutputStep", what)
      }
      let metadata: ProcessedResult["metadata"]
      for (const bound of results) {
        const { processor } = bound
        const given: unknown = yield* called<unknown>(processor, "processOutputResult", () =>
          processor.processOutputResult(said, contextOf(bound, messages))
        )
        if (saysNothing(given)) continue
        if (!isResult(given)) {
          const what =
            "no result. Give nothing, or { metadata } with an object; use `abort` to refuse the answer."
          return yield* gaveWrong(processor, "processOutputResult", what)
        }
        if (given.metadata !== undefined) metadata = { ...metadata, ...given.metadata }
      }
      return metadata
    }),
    {
      passed: metadata => {
        processors.metadata = metadata
        return then()
      },
      tripped: tripwire => rejected(run, asked, tripwire, true),
      failed: error => failed(run, asked, error),
      halted: () => halted(run, asked, undefined)
    }
  )
}

const feedback = ({ processorId, reason }: Tripwire): Message => ({
  role: "system",
  content: `Your last answer was rejected by "${processorId}", and nobody was told of it: ${reason}\nAnswer again, so that it is accepted.`
})

/**
 * An answer that a processor stopped: nothing of it is remembered. With `retry` the step ends, and another one is asked in its
 * place; else the run ends.
 */
export const rejected = <R>(
  run: Run<R>,
  asked: Asked,
  tripwire: Tripwire,
  /** Whether the answer was complete. */
  isComplete: boolean
): State<R> => {
  const { processors } = run
  const { answer } = asked
  const stepNumber = stepNumberOf(run)
  run.rememberCutOff = undefined
  closeAnswer(asked)
  new Execution(run, answer.calls, [], run.tools).cutOff(() => blockedBy(tripwire))
  const isContinued =
    tripwire.retry === true && processors?.mayRetry(stepNumber) === true && run.control.halted === undefined
  if (isContinued || isComplete) tellStep(run, rejectedFinish(run, answer, tripwire, isContinued))
  if (!isContinued) {
    return { _tag: "Ending", end: { _tag: "Tripwire", tripwire, answer: isComplete ? undefined : answer } }
  }
  processors.retries(stepNumber)
  run.feedback.push({ message: feedback(tripwire), after: run.added.length })
  return { _tag: "Asking" }
}

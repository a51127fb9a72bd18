/** Asks the model that judges: one call after the other, until one gives a verdict. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Answer from "../../model/Answer.js"
import type { ModelRequest } from "../../model/ModelPort.js"
import * as RunIds from "../../model/runIds.js"
import { ModelError } from "../../protocol/Errors.js"
import type { Message } from "../../protocol/Message.js"
import { modelsOf } from "../checkOptions.js"
import { Inbox } from "../loop/inbox.js"
import { startReading } from "../loop/reading.js"
import { type Attempt, type CallFailure, type ModelChoice, nextAttempt } from "../loop/retrying.js"
import { fork, type Run } from "../loop/run.js"
import type { Models } from "../RunOptions.js"
import type { Verdict } from "./GoalOptions.js"
import { readVerdict } from "./verdict.js"

const unwanted = new DOMException("Nobody waits for the verdict any more.", "AbortError")

/** What a judge says. Its chunks are nobody's; what it uses counts into the step. */
const say = <R>(
  run: Run<R>,
  { model }: ModelChoice,
  request: ModelRequest,
  retry: number
): Effect.Effect<string, CallFailure> =>
  Effect.async(resume => {
    const chat = run.telemetry.chat({ model, request, retry }, run.clock)
    const answer = Answer.make({
      runId: run.runId,
      messageId: run.messageId,
      ids: RunIds.make(),
      makeCallId: () => run.makeId("call"),
      includeRawChunks: false,
      emit: chat.heard
    })
    run.nested.push(() => answer.usage)
    const controller = new AbortController()
    let stopBeginning = (_: unknown): void => undefined
    const stopReading = startReading({
      model: chat.model(run.runFork),
      request,
      answer,
      inbox: new Inbox(Number.POSITIVE_INFINITY),
      silence: undefined,
      processing: undefined,
      includeRequestBody: false,
      signal: controller.signal,
      runPromise: effect =>
        new Promise((resolve, reject) => {
          stopBeginning = fork(
            run,
            Effect.matchCause(effect, {
              onFailure: cause => reject(Cause.squash(cause)),
              onSuccess: resolve
            })
          )
        }),
      onEnd: failure => {
        answer.close(failure === undefined)
        chat.ended(answer, failure)
        resume(failure === undefined ? Effect.succeed(answer.text) : Effect.fail(failure))
      }
    })
    return Effect.sync(() => {
      controller.abort(unwanted)
      stopBeginning(unwanted)
      stopReading()
      chat.halted(answer, unwanted)
    })
  })

/** What says no verdict may say one the next time. */
const noVerdict = ({ model }: ModelChoice): ModelError =>
  new ModelError({
    reason: "stream",
    provider: model.provider,
    modelId: model.modelId,
    isRetryable: true,
    message:
      "The judge gave no verdict: no JSON object with `passed`. Give `goal.judge` a model that answers with JSON."
  })

/** The verdict of a judge: its calls are made again, and fall back, as those of a step are. */
export const askJudge = Effect.fnUntraced(function* <R>(
  run: Run<R>,
  judge: Models,
  messages: ReadonlyArray<Message>
) {
  const models = modelsOf(judge, run.settings.maxRetries)
  const request: ModelRequest = { messages, tools: [], includeRawChunks: false }
  const verdictOf = (choice: ModelChoice, retry: number): Effect.Effect<Verdict, CallFailure> =>
    Effect.flatMap(say(run, choice, request, retry), said => {
      const verdict = readVerdict(said)
      return verdict === undefined ? Effect.fail(noVerdict(choice)) : Effect.succeed(verdict)
    })
  let attempt: Attempt = { modelIndex: 0, retry: 0 }
  for (;;) {
    const tried = yield* Effect.either(verdictOf(models[attempt.modelIndex] ?? models[0], attempt.retry))
    if (tried._tag === "Right") return tried.right
    const next = nextAttempt(models, attempt, tried.left, yield* Random.next)
    if (next === undefined) return yield* Effect.fail(tried.left)
    yield* Effect.logDebug(`A judge is asked again in ${next.delay} ms: ${tried.left.message}`)
    if (next.delay > 0) yield* Effect.sleep(next.delay)
    attempt = next
  }
})

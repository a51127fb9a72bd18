/** Asks the model that judges: one call after the other, until one gives a verdict. */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { ModelRequest } from "../../model/ModelPort.js"
import { ModelError } from "../../protocol/Errors.js"
import { logDebug } from "../../protocol/logging.js"
import type { Message } from "../../protocol/Message.js"
import { modelsOf } from "../checkOptions.js"
import { askAside } from "../loop/aside.js"
import { Inbox } from "../loop/inbox.js"
import { type Attempt, type CallFailure, type ModelChoice, nextAttempt } from "../loop/retrying.js"
import type { Run } from "../loop/run.js"
import type { Models } from "../RunOptions.js"
import type { Verdict } from "./GoalOptions.js"
import { readVerdict } from "./verdict.js"

const ignore = (): void => undefined

/** What a judge says. */
const say = <R>(
  run: Run<R>,
  { model }: ModelChoice,
  request: ModelRequest,
  { retry }: Attempt
): Effect.Effect<string, CallFailure> =>
  Effect.suspend(() => {
    const inbox = new Inbox(Number.POSITIVE_INFINITY)
    return askAside(run, { model, request, retry, hear: ignore, inbox, silence: undefined })
  }).pipe(Effect.map(({ text }) => text))

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
  const verdictOf = (choice: ModelChoice, attempt: Attempt): Effect.Effect<Verdict, CallFailure> =>
    Effect.flatMap(say(run, choice, request, attempt), said => {
      const verdict = readVerdict(said)
      return verdict === undefined ? Effect.fail(noVerdict(choice)) : Effect.succeed(verdict)
    })
  let attempt: Attempt = { modelIndex: 0, retry: 0 }
  for (;;) {
    const tried = yield* Effect.either(verdictOf(models[attempt.modelIndex] ?? models[0], attempt))
    if (tried._tag === "Right") return tried.right
    const next = nextAttempt(models, attempt, tried.left, yield* Random.next)
    if (next === undefined) return yield* Effect.fail(tried.left)
    yield* logDebug(`A judge is asked again in ${next.delay} ms: ${tried.left.message}`)
    if (next.delay > 0) yield* Effect.sleep(next.delay)
    attempt = next
  }
})

/** The model that only writes the structured value: it is asked with the final answer, and what it says is not told. */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Answer } from "../../model/Answer.js"
import type { LanguageModel, ModelRequest } from "../../model/ModelPort.js"
import type { Chunk } from "../../protocol/Chunk.js"
import { ModelError } from "../../protocol/Errors.js"
import { logDebug } from "../../protocol/logging.js"
import { wellFormed } from "../../protocol/safeJson.js"
import { askAside } from "./aside.js"
import { type Attempt, type CallFailure, nextAttempt } from "./retrying.js"
import type { Run } from "./run.js"
import { isLimited, type Silence, SilenceWatch } from "./silence.js"
import type { Outcome, Structuring } from "./structuring.js"

const task =
  "Bring the answer of an assistant into the structure that is asked for. Take what it says, and add nothing of your own."

const requestOf = <R>(run: Run<R>, { structure, stepText }: Structuring): ModelRequest => {
  const { prompt, responseFormat } = structure
  const { modelSettings } = run.settings
  return {
    messages: [
      { role: "system", content: wellFormed(prompt === undefined ? task : `${task}\n\n${prompt}`) },
      { role: "user", content: [{ type: "text", text: wellFormed(stepText) }] }
    ],
    tools: [],
    includeRawChunks: false,
    ...(responseFormat === undefined ? {} : { responseFormat }),
    ...(modelSettings?.maxOutputTokens === undefined
      ? {}
      : { settings: { maxOutputTokens: modelSettings.maxOutputTokens } })
  }
}

const timedOut = ({ modelId, provider }: LanguageModel, { limit, milliseconds }: Silence): ModelError =>
  new ModelError({
    reason: "timeout",
    provider,
    modelId,
    message: `The structuring model said nothing for ${milliseconds} ms, and \`timeouts.${limit}\` allows no more.`
  })

/** One call. Interrupted, it stops the model. */
const askOnce = <R>(
  run: Run<R>,
  model: LanguageModel,
  structuring: Structuring,
  { retry }: Attempt
): Effect.Effect<Answer, CallFailure> =>
  Effect.suspend(() => {
    structuring.restart()
    let hasContent = false
    const hear = (chunk: Chunk): void => {
      if (chunk.type !== "text-delta") return
      hasContent = true
      structuring.written(chunk.payload.text)
    }
    const { limits } = run.settings
    const silence = isLimited(limits) ? new SilenceWatch(limits, run.clock, () => hasContent) : undefined
    const request = requestOf(run, structuring)
    const said = askAside(run, { model, request, retry, hear, inbox: run.inbox, silence })
    if (silence === undefined) return said
    return Effect.raceFirst(
      said,
      Effect.flatMap(silence.over, over => Effect.fail(timedOut(model, over)))
    )
  })

/** Calls until one succeeds, or nothing is left to try. What was shown cannot be taken back. */
const ask = <R>(
  run: Run<R>,
  model: LanguageModel,
  structuring: Structuring,
  attempt: Attempt
): Effect.Effect<Answer, CallFailure> =>
  Effect.catchAll(askOnce(run, model, structuring, attempt), failure =>
    Effect.gen(function* () {
      const choices = [{ model, maxRetries: run.settings.maxRetries }]
      const next = nextAttempt(choices, attempt, failure, yield* Random.next)
      if (structuring.isShown || next === undefined) return yield* Effect.fail(failure)
      yield* logDebug(
        `The structuring model failed and is asked again in ${next.delay} ms: ${failure.message}`
      )
      yield* Effect.sleep(next.delay)
      return yield* ask(run, model, structuring, next)
    })
  )

/** The value that a model makes of the final answer. Its failure is that of the value only. */
export const writeValue = <R>(
  run: Run<R>,
  model: LanguageModel,
  structuring: Structuring
): Effect.Effect<Outcome> =>
  Effect.matchEffect(ask(run, model, structuring, { modelIndex: 0, retry: 0 }), {
    onFailure: failure =>
      Effect.succeed(
        structuring.failed(
          "model",
          structuring.stepText,
          `The structuring model failed: ${failure.message}`,
          [],
          failure
        )
      ),
    onSuccess: answer => {
      const reason = answer.finished?.reason
      return reason === "length" || reason === "content-filter"
        ? Effect.succeed(structuring.cutOff(reason))
        : structuring.decode(answer.text)
    }
  })

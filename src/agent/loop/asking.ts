/** Begins a model call: its chunks arrive in the inbox of the run. */
import * as Effect from "effect/Effect"
import * as Answer from "../../model/Answer.js"
import type { ModelRequest } from "../../model/ModelPort.js"
import { ModelError } from "../../protocol/Errors.js"
import { part } from "../../protocol/lazily.js"
import type { Processing } from "../processors/processing.js"
import { Beginning } from "./aside.js"
import { defectOf } from "./defect.js"
import { Holding } from "./holding.js"
import type { StepPlan } from "./planning.js"
import { startReading } from "./reading.js"
import type { Attempt, CallFailure } from "./retrying.js"
import { fork, own, type Run } from "./run.js"
import { isLimited, type Silence, SilenceWatch } from "./silence.js"

/** Of runs with processors: see `parts.ts`. */
export const streaming = part(() => import("../processors/streaming.js"))

/** A model call in progress. */
export interface Asked {
  readonly answer: Answer.Answer
  readonly attempt: Attempt
  /** The prompt. */
  readonly messages: ModelRequest["messages"]
  /** What of the answer is not told yet. */
  readonly holding: Holding
  /** Those who see the answer before anybody is told of it; `undefined`: nobody. */
  readonly processing: Processing | undefined
  /** How it ended; set when everything of the answer is in the inbox. */
  outcome: { readonly failure: CallFailure | undefined } | undefined
}

const requestOf = <R>(run: Run<R>, plan: StepPlan<R>): ModelRequest => {
  const { modelSettings, providerOptions, toolChoice } = plan
  const structure = run.structuring?.structure
  const responseFormat = structure?.isApart === true ? undefined : structure?.responseFormat
  return {
    messages: plan.messages,
    tools: plan.definitions,
    includeRawChunks: run.settings.includeRawChunks === true,
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(modelSettings === undefined ? {} : { settings: modelSettings }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
    ...(responseFormat === undefined ? {} : { responseFormat })
  }
}

const timedOut = <R>(run: Run<R>, { limit, milliseconds }: Silence): ModelError =>
  new ModelError({
    reason: "timeout",
    provider: run.model.provider,
    modelId: run.model.modelId,
    message: `The model said nothing for ${milliseconds} ms, and \`timeouts.${limit}\` allows no more.`
  })

/** Begins a call; the run owns what it starts. */
export const ask = <R>(run: Run<R>, plan: StepPlan<R>, attempt: Attempt): Asked => {
  const { model } = plan.models[attempt.modelIndex] ?? run
  run.model = model
  if (plan.models === run.models) run.modelIndex = attempt.modelIndex
  run.ids.mark()
  const request = requestOf(run, plan)
  const chat = run.telemetry.chat({ model, request, retry: attempt.retry }, run.clock)
  const holding = new Holding(run.emit, chat.heard)
  const processing =
    run.processors &&
    streaming.get().processingOf(run, {
      messages: request.messages,
      holding,
      record: (chunk, emitted) => answer.tell(chunk, emitted),
      onStopped: () => {
        stop(undefined)
        end(undefined)
      },
      // Before the answer is read to its end, nobody waits for that.
      onIdle: () => {
        if (asked.outcome !== undefined) run.inbox.notify()
      }
    })
  const { includeRequestBody = false, limits } = run.settings
  const emit = processing?.emit ?? holding.emit
  const heard = processing !== undefined && isLimited(limits) ? new (streaming.get().Heard)(emit) : undefined
  const answer: Answer.Answer = Answer.make({
    runId: run.runId,
    messageId: run.messageId,
    ids: run.ids,
    makeCallId: () => run.makeId("call"),
    includeRawChunks: request.includeRawChunks,
    textLimit: run.textLimit,
    takeApart: run.tasks?.takeApart(plan.tools),
    emit: heard?.emit ?? emit,
    isFollowing: processing !== undefined
  })
  answer.request = { provider: model.provider, modelId: model.modelId }
  const asked: Asked = {
    answer,
    attempt,
    messages: request.messages,
    holding,
    processing,
    outcome: undefined
  }
  run.inbox.awaitText()
  const controller = new AbortController()
  const isSaying = (): boolean => holding.isShown || heard?.isContent === true
  const silence = isLimited(limits) ? new SilenceWatch(limits, run.clock, isSaying) : undefined
  const beginning = new Beginning(run)
  const stopReading = startReading({
    model: chat.model(run.runFork),
    request,
    answer,
    inbox: run.inbox,
    silence,
    processing,
    includeRequestBody,
    signal: controller.signal,
    runPromise: beginning.runPromise,
    onEnd: failure => end(failure),
    onDefect: thrown => run.control.fail(defectOf(thrown))
  })
  const stop = (reason: unknown): void => {
    controller.abort(reason)
    beginning.stop(reason)
    stopReading()
  }
  const release = own(run, {
    stop: reason => {
      stop(reason)
      chat.halted(answer, reason)
    }
  })
  const stopWatching =
    silence === undefined
      ? undefined
      : fork(
          run,
          Effect.map(silence.over, over => {
            const error = timedOut(run, over)
            stop(error)
            end(error)
          })
        )
  const end = (failure: CallFailure | undefined): void => {
    if (asked.outcome !== undefined) return
    asked.outcome = { failure }
    chat.ended(answer, failure)
    release()
    stopWatching?.(undefined)
    run.inbox.notify()
  }
  return asked
}

/** Reads one model answer, from the call to its last part: nothing here runs per part but plain code. */
import * as Effect from "effect/Effect"
import type { Answer } from "../../model/Answer.js"
import { describe } from "../../model/failureInfo.js"
import type { LanguageModel, ModelAnswer, ModelRequest } from "../../model/ModelPort.js"
import { InvalidConfiguration, ModelError } from "../../protocol/Errors.js"
import { inspectable } from "../../protocol/foreignValue.js"
import type { Processing } from "../processors/processing.js"
import type { Inbox } from "./inbox.js"
import type { CallFailure } from "./retrying.js"
import type { SilenceWatch } from "./silence.js"

interface Elements {
  readonly next: () => Promise<{ readonly done?: boolean | undefined; readonly value?: unknown }>
  /** Stops the source. Does not wait for it, and hears nothing of its troubles: it may never answer. */
  readonly cancel: () => void
}

const ignore = (): void => undefined

/** Hears nothing of what goes wrong, whether it is thrown or rejected. */
const quietly = (stop: () => unknown): void => void (async () => stop())().catch(ignore)

const open = (source: ModelAnswer["source"]): Elements => {
  if (source instanceof ReadableStream) {
    const reader = source.getReader()
    return { next: () => reader.read(), cancel: () => quietly(() => reader.cancel()) }
  }
  const iterator = source[Symbol.asyncIterator]()
  return {
    next: () => iterator.next(),
    // A silent generator queues `return` behind the pending `next`; the abort signal is what stops it.
    cancel: () => quietly(() => iterator.return?.())
  }
}

/** A model that is missing something says so itself, and better. */
const streamFailure = (model: LanguageModel, thrown: unknown): CallFailure => {
  const cause = inspectable(thrown)
  return cause instanceof ModelError || cause instanceof InvalidConfiguration
    ? cause
    : new ModelError({
        reason: "stream",
        provider: model.provider,
        modelId: model.modelId,
        ...describe(cause),
        cause
      })
}

const incomplete = (model: LanguageModel): ModelError =>
  new ModelError({
    reason: "incomplete",
    provider: model.provider,
    modelId: model.modelId,
    message:
      "The answer ended before the model said that it was finished: the connection was cut or the provider broke off."
  })

/** What an answer that was read to its end failed with. */
const failureOf = (model: LanguageModel, answer: Answer): CallFailure | undefined => {
  if (answer.failure !== undefined) return streamFailure(model, answer.failure.error)
  if (answer.finished === undefined) return incomplete(model)
  const { rawReason, reason } = answer.finished
  if (reason === "error") {
    const which = rawReason === undefined ? " and did not say which." : `: ${rawReason}.`
    return streamFailure(model, `The provider ended its answer with an error${which}`)
  }
  // V4 packages say so when the body broke off; of older ones a call tells that may not be written to its end, or that there
  // is nothing at all.
  const isBrokenOff =
    reason === "other" &&
    (rawReason === "interrupted" || (rawReason === undefined && (answer.hasUnwrittenCall || answer.isEmpty)))
  const isCutOff = reason === "length" || reason === "content-filter"
  return isBrokenOff || (answer.isTorn && !isCutOff) ? incomplete(model) : undefined
}

/** A model call that is to be read. */
export interface Reading {
  readonly model: LanguageModel
  readonly request: ModelRequest
  readonly answer: Answer
  readonly inbox: Inbox
  /** Is told of each part. */
  readonly silence: SilenceWatch | undefined
  /** Holds the model, too. */
  readonly processing: Processing | undefined
  readonly includeRequestBody: boolean
  /** Runs the Effect of a model that answers with one; the promise is for its end, unless it is interrupted. */
  readonly runPromise: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  readonly signal: AbortSignal
  /** Called once, unless the reading is stopped: when everything of the answer is in the inbox. */
  readonly onEnd: (failure: CallFailure | undefined) => void
  /** Called instead when that throws. */
  readonly onDefect: (thrown: unknown) => void
}

const begin = async ({ model, request, runPromise, signal }: Reading): Promise<ModelAnswer> => {
  const begun = model.answer(request, signal)
  return Effect.isEffect(begun) ? runPromise(begun) : begun
}

/**
 * Reads one call of a model into its answer, up to the end, and returns how to stop that. Fails when the model does, when
 * it reports an error in the middle of its answer, and when the answer ends without a finish or in the middle of a call.
 * Stopping takes effect at once, also when the provider ignores its signal; what it sends later is dropped.
 *
 * Promises and not fibers: this is what runs for every token.
 */
export const startReading = (reading: Reading): (() => void) => {
  const { answer, includeRequestBody, inbox, model, processing, silence } = reading
  let elements: Elements | undefined
  let isStopped = false
  let isEnded = false
  let lastTurn: ReturnType<typeof setImmediate> | undefined
  const stop = (): void => {
    isStopped = true
    clearImmediate(lastTurn)
    elements?.cancel()
  }
  const end = (failure: () => CallFailure | undefined): void => {
    clearImmediate(lastTurn)
    if (isStopped || isEnded) return
    isEnded = true
    try {
      reading.onEnd(failure())
    } catch (thrown) {
      reading.onDefect(thrown)
    }
  }
  const isOver = (): boolean => {
    // A provider may send usage after the finish part, but an answer that is complete waits for nothing.
    if (answer.finished !== undefined && lastTurn === undefined) {
      lastTurn = setImmediate(() => {
        end(() => failureOf(model, answer))
        stop()
      })
    }
    return isStopped || answer.failure !== undefined
  }
  const drained = async (): Promise<void> => {
    silence?.hold()
    if (processing?.isFull === true) await processing.drained()
    if (inbox.isFull) await inbox.drained()
    silence?.release()
  }
  const read = async (): Promise<void> => {
    const begun = await begin(reading)
    elements = open(begun.source)
    if (isStopped) return elements.cancel()
    if (includeRequestBody && begun.requestBody !== undefined) {
      answer.request = { ...answer.request, body: begun.requestBody }
    }
    if (begun.warnings !== undefined) answer.warnings = begun.warnings
    if (begun.responseHeaders !== undefined) answer.response = { headers: begun.responseHeaders }
    // Stays at most an inbox ahead of its reader.
    while (!isOver()) {
      const element = await elements.next()
      if (element.done === true || isStopped) return
      const part = begun.normalize(element.value)
      if (part !== undefined) {
        answer.accept(part)
        silence?.heard(part)
      }
      if (inbox.isFull || processing?.isFull === true) await drained()
    }
    if (answer.failure !== undefined) elements.cancel()
  }
  read().then(
    () => end(() => failureOf(model, answer)),
    // What breaks behind the finish part breaks nothing.
    cause =>
      end(() => (answer.finished === undefined ? streamFailure(model, cause) : failureOf(model, answer)))
  )
  return stop
}

/** Reads one model answer, from the call to its last part, inside one async boundary: nothing here runs per part but plain code. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Answer } from "../model/Answer.js"
import { describe } from "../model/failureInfo.js"
import type { LanguageModel, ModelAnswer, ModelRequest } from "../model/ModelPort.js"
import { ModelError } from "../protocol/Errors.js"
import type { Inbox } from "./inbox.js"

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

/** Hands every element to the answer, and stays at most an inbox ahead of its reader, until the source has ended. */
const pump = async (
  elements: Elements,
  normalize: ModelAnswer["normalize"],
  answer: Answer,
  inbox: Inbox,
  isOver: () => boolean
): Promise<void> => {
  while (!isOver()) {
    const element = await elements.next()
    if (element.done === true || isOver()) return
    const part = normalize(element.value)
    if (part !== undefined) answer.accept(part)
    if (inbox.isFull) await inbox.drained()
  }
}

const drain = (begun: ModelAnswer, { answer, inbox }: Reading): Effect.Effect<void, unknown> =>
  Effect.async(resume => {
    const elements = open(begun.source)
    let isStopped = false
    let lastTurn: ReturnType<typeof setImmediate> | undefined
    const stop = (): void => {
      isStopped = true
      elements.cancel()
    }
    const end = (outcome: Effect.Effect<void, unknown>): void => {
      clearImmediate(lastTurn)
      resume(outcome)
    }
    const isOver = (): boolean => {
      if (answer.failure !== undefined && !isStopped) stop()
      // A provider may send usage after the finish part, but an answer that is complete waits for nothing.
      if (answer.finished !== undefined && lastTurn === undefined) {
        lastTurn = setImmediate(() => {
          stop()
          end(Effect.void)
        })
      }
      return isStopped
    }
    pump(elements, begun.normalize, answer, inbox, isOver).then(
      () => end(Effect.void),
      // What breaks behind the finish part breaks nothing.
      (cause: unknown) => end(answer.finished === undefined ? Effect.fail(cause) : Effect.void)
    )
    return Effect.sync(() => {
      clearImmediate(lastTurn)
      stop()
    })
  })

const streamFailure = (model: LanguageModel, cause: unknown): ModelError =>
  cause instanceof ModelError
    ? cause
    : new ModelError({
        reason: "stream",
        provider: model.provider,
        modelId: model.modelId,
        ...describe(cause),
        cause
      })

const incomplete = (model: LanguageModel): ModelError =>
  new ModelError({
    reason: "incomplete",
    provider: model.provider,
    modelId: model.modelId,
    message:
      "The answer ended before the model said that it was finished: the connection was cut or the provider broke off."
  })

/** What an answer that was read to its end failed with. */
const failureOf = (model: LanguageModel, answer: Answer): ModelError | undefined => {
  if (answer.failure !== undefined) return streamFailure(model, answer.failure.error)
  if (answer.finished === undefined) return incomplete(model)
  const { rawReason, reason } = answer.finished
  if (reason === "error") {
    const which = rawReason === undefined ? " and did not say which." : `: ${rawReason}.`
    return streamFailure(model, `The provider ended its answer with an error${which}`)
  }
  // V4 packages say so when the body broke off; of older ones a call tells that may not be written to its end.
  const isBrokenOff =
    reason === "other" &&
    (rawReason === "interrupted" || (rawReason === undefined && answer.hasUnwrittenCall))
  const isCutOff = reason === "length" || reason === "content-filter"
  return isBrokenOff || (answer.isTorn && !isCutOff) ? incomplete(model) : undefined
}

/** A model call that is to be read. */
export interface Reading {
  readonly model: LanguageModel
  readonly request: ModelRequest
  readonly answer: Answer
  readonly inbox: Inbox
  /** Stops the provider. Whoever interrupts the reading fires it. */
  readonly controller: AbortController
  readonly includeRequestBody: boolean
}

/**
 * One call of a model, read into `answer` up to its end. Fails when the model does, when it reports an error in the middle
 * of its answer, and when the answer ends without a finish or in the middle of a call; one that dies has failed.
 * Interrupting it stops the reading at once, also when the provider ignores its signal.
 */
export const readAnswer = (reading: Reading): Effect.Effect<void, ModelError> => {
  const { answer, controller, includeRequestBody, model, request } = reading
  return Effect.suspend(() => model.answer(request, controller.signal)).pipe(
    Effect.flatMap(begun => {
      if (includeRequestBody && begun.requestBody !== undefined) {
        answer.request = { ...answer.request, body: begun.requestBody }
      }
      if (begun.responseHeaders !== undefined) answer.response = { headers: begun.responseHeaders }
      return drain(begun, reading)
    }),
    Effect.matchCauseEffect({
      onFailure: cause => Effect.fail(streamFailure(model, Cause.squash(cause))),
      onSuccess: () => failureOf(model, answer) ?? Effect.void
    })
  )
}

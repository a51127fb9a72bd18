/** Reads one model answer, from the call to its last part, inside one async boundary: nothing here runs per part but plain code. */
import { Effect, Predicate } from "effect"
import type { Answer } from "../model/Answer.js"
import type { LanguageModel, ModelAnswer, ModelRequest } from "../model/LanguageModel.js"
import { ModelError } from "../protocol/Errors.js"
import { messageOf } from "../protocol/Json.js"
import type { Inbox } from "./Inbox.js"

interface Elements {
  readonly next: () => Promise<{ readonly done?: boolean | undefined; readonly value?: unknown }>
  /** Stops the source. Does not wait for it, and hears nothing of its troubles: it may never answer. */
  readonly cancel: () => void
}

const ignore = (): void => undefined

const open = (source: ModelAnswer["source"]): Elements => {
  if (source instanceof ReadableStream) {
    const reader = source.getReader()
    return { next: () => reader.read(), cancel: () => void reader.cancel().catch(ignore) }
  }
  const iterator = source[Symbol.asyncIterator]()
  return {
    next: () => iterator.next(),
    // A silent generator queues `return` behind the pending `next`; the abort signal is what stops it.
    cancel: () => void iterator.return?.().then(ignore, ignore)
  }
}

const nextTurn = (): Promise<{ readonly done: true }> =>
  new Promise(resolve => setImmediate(() => resolve({ done: true })))

/**
 * Hands every element to the answer, and stays at most an inbox ahead of its reader. After the finish part it takes what
 * is there already (a provider may send usage late) but waits for nothing: the answer is complete.
 */
const pump = async (
  elements: Elements,
  normalize: ModelAnswer["normalize"],
  answer: Answer,
  inbox: Inbox,
  isStopped: () => boolean
): Promise<void> => {
  while (true) {
    const element =
      answer.finished === undefined
        ? await elements.next()
        : await Promise.race([elements.next(), nextTurn()])
    if (element.done === true || isStopped()) return
    const part = normalize(element.value)
    if (part !== undefined) answer.accept(part)
    if (answer.failure !== undefined) return
    if (inbox.isFull) await inbox.drained()
    if (isStopped()) return
  }
}

const drain = (begun: ModelAnswer, elements: Elements, answer: Answer, inbox: Inbox) =>
  Effect.async<void, unknown>(resume => {
    let isStopped = false
    pump(elements, begun.normalize, answer, inbox, () => isStopped).then(
      () => {
        elements.cancel()
        resume(Effect.void)
      },
      (cause: unknown) => resume(Effect.fail(cause))
    )
    return Effect.sync(() => {
      isStopped = true
      elements.cancel()
    })
  })

const statusOf = (cause: unknown) => ({
  ...(Predicate.hasProperty(cause, "statusCode") && typeof cause.statusCode === "number"
    ? { statusCode: cause.statusCode }
    : {}),
  ...(Predicate.hasProperty(cause, "isRetryable") && typeof cause.isRetryable === "boolean"
    ? { isRetryable: cause.isRetryable }
    : {})
})

const streamFailure = (model: LanguageModel, cause: unknown): ModelError =>
  cause instanceof ModelError
    ? cause
    : new ModelError({
        reason: "stream",
        provider: model.provider,
        modelId: model.modelId,
        message: messageOf(cause),
        cause,
        ...statusOf(cause)
      })

const incomplete = (model: LanguageModel): ModelError =>
  new ModelError({
    reason: "incomplete",
    provider: model.provider,
    modelId: model.modelId,
    message:
      "The answer ended before the model said that it was finished: the connection was cut or the provider broke off."
  })

const read = Effect.fnUntraced(function* (
  model: LanguageModel,
  request: ModelRequest,
  answer: Answer,
  inbox: Inbox,
  includeRequestBody: boolean
) {
  const begun = yield* model.answer(request)
  if (includeRequestBody && begun.requestBody !== undefined) {
    answer.request = { ...answer.request, body: begun.requestBody }
  }
  if (begun.responseHeaders !== undefined) answer.response = { headers: begun.responseHeaders }
  yield* Effect.try({ try: () => open(begun.source), catch: cause => cause }).pipe(
    Effect.flatMap(elements => drain(begun, elements, answer, inbox)),
    Effect.mapError(cause => streamFailure(model, cause))
  )
  if (answer.failure !== undefined) return yield* streamFailure(model, answer.failure.error)
  if (answer.finished === undefined) return yield* incomplete(model)
  if (answer.finished.reason === "error") {
    return yield* streamFailure(model, "The provider ended its answer with an error and did not say which.")
  }
  if (answer.isTorn && answer.finished.reason !== "length" && answer.finished.reason !== "content-filter") {
    return yield* incomplete(model)
  }
}, Effect.scoped)

/**
 * One call of a model, read into `answer` up to its end. Fails when the model does, when it reports an error in the middle
 * of its answer, and when the answer ends without a finish or in the middle of a call; one that dies has failed. Interrupting it stops the provider
 * at once, also one that ignores its signal.
 */
export const readAnswer = (...call: Parameters<typeof read>): Effect.Effect<void, ModelError> =>
  Effect.catchAllDefect(read(...call), cause => streamFailure(call[0], cause))

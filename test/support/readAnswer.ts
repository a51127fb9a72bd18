/** Reads answers as an agent does: one reader, each element normalised, and a signal for the provider. */
import { Effect, Stream } from "effect"
import type { ModelPart } from "../../src/model/ModelPart.js"
import type { LanguageModel, ModelAnswer, ModelRequest } from "../../src/model/ModelPort.js"
import { ModelError } from "../../src/protocol/Errors.js"
import * as Message from "../../src/protocol/Message.js"

export interface Read {
  readonly parts: ReadonlyArray<ModelPart>
  /** What the source failed with, if it did. */
  readonly failure?: unknown
}

export const request = (more: Partial<ModelRequest> = {}): ModelRequest => ({
  messages: [Message.user("Wie wird das Wetter?")],
  tools: [],
  includeRawChunks: false,
  ...more
})

/** Gives a signal that fires when the effect is interrupted, and not otherwise. */
export const withSignal = <A, E, R>(
  use: (signal: AbortSignal) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const controller = new AbortController()
    return Effect.onInterrupt(use(controller.signal), () => Effect.sync(() => controller.abort()))
  })

/** Begins an answer as an Effect, whatever the model begins it as. */
export const begin = (
  model: LanguageModel,
  asked: ModelRequest,
  signal: AbortSignal
): Effect.Effect<ModelAnswer, ModelError> =>
  Effect.suspend(() => {
    const begun = model.answer(asked, signal)
    if (Effect.isEffect(begun)) return begun
    return Effect.tryPromise({
      try: () => begun,
      catch: cause => {
        if (cause instanceof ModelError) return cause
        throw cause
      }
    })
  })

/** The elements of an answer; interruption cancels the source. */
export const elements = (answer: ModelAnswer): Stream.Stream<unknown, { readonly failure: unknown }> => {
  const { source } = answer
  const onError = (failure: unknown) => ({ failure })
  return "getReader" in source
    ? Stream.fromReadableStream(() => source, onError)
    : Stream.fromAsyncIterable(source, onError)
}

/** Reads a whole answer, its failure included. */
export const readAll = (
  model: LanguageModel,
  asked: ModelRequest = request()
): Effect.Effect<Read, ModelError> =>
  withSignal(signal =>
    Effect.gen(function* () {
      const answer = yield* begin(model, asked, signal)
      const parts: Array<ModelPart> = []
      const failed = yield* Stream.runForEach(elements(answer), element =>
        Effect.sync(() => {
          const part = answer.normalize(element)
          if (part !== undefined) parts.push(part)
        })
      ).pipe(Effect.flip, Effect.option)
      return failed._tag === "Some" ? { parts, failure: failed.value.failure } : { parts }
    })
  )

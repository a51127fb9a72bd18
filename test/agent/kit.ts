/** What the tests of runs share: reading a whole run, picking chunks, and models that are made of promises. */
import type { Chunk, LanguageModel, ModelPart, Usage } from "eddy"
import type { ScriptedModel } from "eddy/testing"
import { Clock, Effect, type Exit, Fiber, Random, Stream, TestClock } from "effect"

/** What a run told, and how its stream ended. */
export interface Told<E> {
  readonly chunks: ReadonlyArray<Chunk.Chunk>
  readonly exit: Exit.Exit<void, E>
}

/** Reads a run to its end; `look` sees each chunk as it comes. */
export const read = <E, R>(
  stream: Stream.Stream<Chunk.Chunk, E, R>,
  look: (chunk: Chunk.Chunk, count: number) => Effect.Effect<void> = () => Effect.void
): Effect.Effect<Told<E>, never, R> =>
  Effect.suspend(() => {
    const chunks: Array<Chunk.Chunk> = []
    return Stream.runForEach(stream, chunk => {
      chunks.push(chunk)
      return look(chunk, chunks.length)
    }).pipe(
      Effect.exit,
      Effect.map(exit => ({ chunks, exit }))
    )
  })

/** The chunks of a run that does not fail. */
export const chunksOf = <E, R>(stream: Stream.Stream<Chunk.Chunk, E, R>) =>
  Effect.map(Stream.runCollect(stream), chunks => [...chunks])

/** The chunks of one type. */
export const only = <Type extends Chunk.ChunkType>(
  chunks: ReadonlyArray<Chunk.Chunk>,
  type: Type
): ReadonlyArray<Chunk.Of<Type>> => chunks.filter((chunk): chunk is Chunk.Of<Type> => chunk.type === type)

/** The last chunk of a run. */
export const finishOf = (chunks: ReadonlyArray<Chunk.Chunk>): Chunk.PayloadOf<"finish"> => {
  const last = chunks.at(-1)
  if (last?.type !== "finish") throw new Error(`The run ends with ${last?.type}`)
  return last.payload
}

export const types = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<string> =>
  chunks.map(chunk => chunk.type)

export const textOf = (chunks: ReadonlyArray<Chunk.Chunk>): string =>
  only(chunks, "text-delta")
    .map(chunk => chunk.payload.text)
    .join("")

/** The next turn of the event loop. */
export const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** So many turns of the event loop. */
export const turns = (count: number): Effect.Effect<void> =>
  Effect.forEach(Array.from({ length: count }), () => Effect.promise(turn), { discard: true })

/** A finish part. */
export const finish = (reason: ModelPart.Finish["reason"], usage: Usage.Usage = {}): ModelPart.Finish => ({
  type: "finish",
  reason,
  usage
})

/** A complete call, its arguments as they are given. */
export const call = (toolCallId: string, toolName: string, input: unknown = "{}"): ModelPart.ToolCall => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input
})

/** A model that answers its calls with these sources, in order; what it was asked is in `requests`. */
export const modelOf = (
  sources: ReadonlyArray<(signal: AbortSignal) => LanguageModel.ModelAnswer["source"]>
) => {
  const requests: Array<LanguageModel.ModelRequest> = []
  const signals: Array<AbortSignal> = []
  const model: LanguageModel.LanguageModel = {
    provider: "kit",
    modelId: "kit-1",
    answer: (request, signal) =>
      Effect.sync(() => {
        const source = sources[requests.length]
        requests.push(request)
        signals.push(signal)
        if (source === undefined) throw new Error(`Call ${requests.length} is one too many`)
        return { source: source(signal), normalize: part => part as ModelPart.ModelPart }
      })
  }
  return { model, requests, signals }
}

/** What a provider package throws when the provider refuses: shaped as the `APICallError` of the AI SDK. */
export const refusal = (
  statusCode: number,
  more: {
    readonly message?: string
    readonly isRetryable?: boolean
    readonly responseHeaders?: Readonly<Record<string, string>>
  } = {}
): Error =>
  Object.assign(new Error(more.message ?? `status ${statusCode}`), {
    name: "AI_APICallError",
    statusCode,
    isRetryable: [408, 409, 429].includes(statusCode) || statusCode >= 500,
    ...more
  })

/** A turn of a script: these parts, then an error. */
export const failing = (
  error: unknown,
  ...parts: ReadonlyArray<ModelPart.ModelPart>
): ReadonlyArray<ModelPart.ModelPart> => [...parts, { type: "error", error }]

/** A scripted model, and when it was asked, in milliseconds of the clock of the test. */
export const timed = (model: ScriptedModel.ScriptedModel) => {
  const times: Array<number> = []
  const asked: LanguageModel.LanguageModel = {
    provider: model.provider,
    modelId: model.modelId,
    answer: request =>
      Effect.zipRight(
        Effect.map(Clock.currentTimeMillis, now => times.push(now)),
        model.answer(request)
      )
  }
  return { model: asked, requests: model.requests, times, unused: model.unused }
}

/** Turns of the event loop in which whatever is ready to run has run. */
const settling = 12

/** Lets everything run that is ready to: no time passes. */
export const settle: Effect.Effect<void> = turns(settling)

/** Lets time pass for a fiber until it has ended: from one moment that somebody waits for to the next. */
const passTime = <A, E>(fiber: Fiber.RuntimeFiber<A, E>): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (fiber.unsafePoll() === null) {
      yield* settle
      const now = yield* Clock.currentTimeMillis
      const ahead = [...(yield* TestClock.sleeps())].filter(moment => moment > now)
      if (fiber.unsafePoll() === null && ahead.length > 0) yield* TestClock.setTime(Math.min(...ahead))
    }
  })

/** Runs an effect to its end, while the clock of the test goes on whenever there is nothing else to do. */
export const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(effect)
    yield* passTime(fiber)
    return yield* Fiber.join(fiber)
  })

/** Back-off without its random part. */
export const evenly = Effect.withRandom(Random.fixed([0.5]))

/** The error of a run that failed. */
export const errorOf = (chunks: ReadonlyArray<Chunk.Chunk>): unknown =>
  only(chunks, "error")[0]?.payload.error

/** Models of `@effect/ai` that a test scripts. They are made as provider modules make theirs, so its own decoding runs. */
import type { AiError } from "@effect/ai"
import { LanguageModel as AiLanguageModel, type Prompt, type Response } from "@effect/ai"
import { Agent, type Tool } from "eddy"
import { EffectAi } from "eddy/effect-ai"
import { Chunk, Effect, Stream } from "effect"

/** A part as a provider module sends it. */
export type Encoded = Response.StreamPartEncoded

/** One answer. */
export type Turn = Stream.Stream<Encoded, AiError.AiError>

/** An answer whose parts come one by one. */
export const oneByOne = (...parts: ReadonlyArray<Encoded>): Turn => Stream.fromChunks(...parts.map(Chunk.of))

/** An answer whose parts come in one chunk. */
export const atOnce = (...parts: ReadonlyArray<Encoded>): Turn => Stream.fromChunk(Chunk.fromIterable(parts))

export const noUsage = { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }

export const ends = (reason: Response.FinishReason = "stop"): Encoded => ({
  type: "finish",
  reason,
  usage: noUsage
})

export const text = (...deltas: ReadonlyArray<string>): ReadonlyArray<Encoded> => [
  { type: "text-start", id: "0" },
  ...deltas.map((delta): Encoded => ({ type: "text-delta", id: "0", delta })),
  { type: "text-end", id: "0" }
]

export const call = (id: string, name: string, params: unknown): Encoded => ({
  type: "tool-call",
  id,
  name,
  params
})

/** Arguments as a model writes them, without the complete call. */
export const writes = (
  id: string,
  name: string,
  ...deltas: ReadonlyArray<string>
): ReadonlyArray<Encoded> => [
  { type: "tool-params-start", id, name },
  ...deltas.map((delta): Encoded => ({ type: "tool-params-delta", id, delta }))
]

/** A service that answers its calls with these turns, and what it was asked. */
export const serviceOf = (...turns: ReadonlyArray<Turn>) =>
  Effect.gen(function* () {
    const requests: Array<AiLanguageModel.ProviderOptions> = []
    const service = yield* AiLanguageModel.make({
      generateText: () => Effect.dieMessage("Nobody asks for a whole answer"),
      streamText: options => {
        const turn = turns[requests.length]
        requests.push(options)
        return turn ?? Stream.dieMessage(`Call ${requests.length} is one too many`)
      }
    })
    return { service, requests }
  })

/** An agent whose model is such a service. */
export const agentOf = <const Tools extends ReadonlyArray<Tool.Any> = []>(
  turns: ReadonlyArray<Turn>,
  tools?: Tools,
  options?: EffectAi.Options
) =>
  Effect.map(serviceOf(...turns), ({ requests, service }) => {
    const model = EffectAi.fromService(service, options)
    const agent = Agent.make({
      id: "helper",
      model,
      maxRetries: 0,
      ...(tools === undefined ? {} : { tools })
    })
    return { agent, model, requests }
  })

/** The prompt of a request, without the ids of its types. */
export const promptOf = (request: AiLanguageModel.ProviderOptions | undefined): unknown =>
  request?.prompt.content.map((message: Prompt.Message) => JSON.parse(JSON.stringify(message)))

/**
 * Runs of an agent over a real provider package and a real server, on both faces, with two instant tools: what was told,
 * what was executed, what was sent.
 */

import { Agent, Chunk, LanguageModel, Tool } from "eddy"
import { createTool, type ModelOutput, Agent as PromiseAgent } from "eddy/promise"
import { Effect, Schema, type Scope, Stream } from "effect"
import { z } from "zod"
import type { MakeSdkModel } from "./aiSdkModels.js"
import { latch } from "./readers.js"
import * as Server from "./transcriptServer.js"

/** No provider tells it, so whoever finds it in a chunk has found a leak. */
export const instructions = "Die Anweisung bleibt unter uns."

export const question = "Wie wird das Wetter?"

export interface Executed {
  readonly toolName: string
  readonly input: unknown
}

/** What a run came to. */
export interface Ran {
  readonly chunks: ReadonlyArray<Chunk.Chunk>
  /** What the stream failed with (Effect), or `error` of the output (Promise). */
  readonly failure: unknown
  readonly executed: ReadonlyArray<Executed>
  /** Of the Promise face only. */
  readonly output?: ModelOutput
}

export interface Options {
  readonly providerOptions?: LanguageModel.ModelRequest["providerOptions"]
  readonly maxSteps?: number
  readonly abortSignal?: AbortSignal
  /** Sees every chunk as a reader gets it. */
  readonly onChunk?: (chunk: Chunk.Chunk) => void
  /** The weather comes only after the tide: outcomes come in the other order than calls. */
  readonly isCrossed?: boolean
}

/** The results of the tools, for whoever looks for them in a prompt. */
export const weatherIn = (city: string) => ({ city, sky: "☁️" })

export const tideNow = "high 🌊"

const City = Schema.Struct({ city: Schema.String })

const Port = Schema.Struct({ port: Schema.optional(Schema.String) })

const makeTools = (isCrossed: boolean) => {
  const executed: Array<Executed> = []
  const tide = latch()
  return {
    executed,
    weather: async (input: { readonly city: string }) => {
      executed.push({ toolName: "weather", input })
      if (isCrossed) await tide.wait
      return weatherIn(input.city)
    },
    tide: async (input: { readonly port?: string | undefined }) => {
      executed.push({ toolName: "tide", input })
      // After this turn, so that the weather, which waits, is not done before this call is.
      setImmediate(tide.open)
      return tideNow
    }
  }
}

const runOptions = ({ abortSignal, maxSteps, providerOptions }: Options) => ({
  // What one answer comes to: retries have tests of their own.
  maxRetries: 0,
  ...(abortSignal === undefined ? {} : { abortSignal }),
  ...(maxSteps === undefined ? {} : { maxSteps }),
  ...(providerOptions === undefined ? {} : { providerOptions })
})

/** A way to run an agent. Interruption ends the run. */
export type Face = (url: string, makeModel: MakeSdkModel, options?: Options) => Effect.Effect<Ran>

/** `Agent.stream` of `eddy`. */
export const effectFace: Face = (url, makeModel, options = {}) =>
  Effect.gen(function* () {
    const { executed, tide, weather } = makeTools(options.isCrossed === true)
    const agent = Agent.make({
      id: "boatman",
      instructions,
      model: LanguageModel.fromAiSdk(makeModel(url)),
      tools: [
        Tool.make("weather", { input: City, execute: input => Effect.promise(() => weather(input)) }),
        Tool.make("tide", { input: Port, execute: input => Effect.promise(() => tide(input)) })
      ]
    })
    const chunks: Array<Chunk.Chunk> = []
    const exit = yield* Agent.stream(agent, question, runOptions(options)).pipe(
      Stream.runForEach(chunk =>
        Effect.sync(() => {
          chunks.push(chunk)
          options.onChunk?.(chunk)
        })
      ),
      Effect.either
    )
    return { chunks, executed, failure: exit._tag === "Left" ? exit.left : undefined }
  })

/** `new Agent(…).stream` of `eddy/promise`. */
export const promiseFace: Face = (url, makeModel, options = {}) =>
  Effect.promise(async () => {
    const { executed, tide, weather } = makeTools(options.isCrossed === true)
    const agent = new PromiseAgent({
      id: "boatman",
      instructions,
      model: makeModel(url),
      tools: {
        weather: createTool({ id: "weather", inputSchema: z.object({ city: z.string() }), execute: weather }),
        tide: createTool({
          id: "tide",
          inputSchema: z.object({ port: z.string().optional() }),
          execute: tide
        })
      }
    })
    const output = await agent.stream(question, { ...runOptions(options), onError: () => undefined })
    const chunks: Array<Chunk.Chunk> = []
    for await (const chunk of output.fullStream) {
      chunks.push(chunk)
      options.onChunk?.(chunk)
    }
    return { chunks, executed, failure: (await output.getFullOutput()).error, output }
  })

export const faces: ReadonlyArray<readonly [string, Face]> = [
  ["eddy", effectFace],
  ["eddy/promise", promiseFace]
]

/** A server with these replies, and one run against it. */
export const runOver = (
  face: Face,
  makeModel: MakeSdkModel,
  replies: ReadonlyArray<Server.Reply>,
  options?: Options
): Effect.Effect<Ran & { readonly requests: ReadonlyArray<Server.Request> }> =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* playing(...replies)
      const ran = yield* face(server.url, makeModel, options)
      return { ...ran, requests: server.requests }
    })
  )

export const playing = (
  ...replies: ReadonlyArray<Server.Reply>
): Effect.Effect<Server.TranscriptServer, never, Scope.Scope> =>
  Effect.tap(Server.make, server => Effect.sync(() => server.play(...replies)))

export const ofType = <Type extends Chunk.ChunkType>(
  chunks: ReadonlyArray<Chunk.Chunk>,
  type: Type
): ReadonlyArray<Chunk.Of<Type>> => chunks.filter((chunk): chunk is Chunk.Of<Type> => chunk.type === type)

/** The last chunk of a run, which is its `finish`. */
export const finishOf = (chunks: ReadonlyArray<Chunk.Chunk>): Chunk.Of<"finish">["payload"] => {
  const last = chunks.at(-1)
  if (last?.type !== "finish") throw new Error(`The run ends with ${last?.type ?? "nothing"}.`)
  return last.payload
}

/** The chunks as they would be sent. */
export const toJson = (chunks: ReadonlyArray<Chunk.Chunk>): Effect.Effect<ReadonlyArray<Chunk.Encoded>> =>
  Effect.orDie(Effect.forEach(chunks, Chunk.encode))

/** The chunks as they would be sent, without what differs from run to run: ids of the run, and the time of the answer. */
export const comparable = (chunks: ReadonlyArray<Chunk.Chunk>): Effect.Effect<ReadonlyArray<unknown>> =>
  Effect.map(toJson(chunks), encoded => {
    const [start] = ofType(chunks, "start")
    const messageId = String(start?.payload["messageId"])
    const text = JSON.stringify(encoded, (key, value: unknown) => (key === "date" ? undefined : value))
    return JSON.parse(text.replaceAll(start?.runId ?? "", "RUN").replaceAll(messageId, "MESSAGE"))
  })

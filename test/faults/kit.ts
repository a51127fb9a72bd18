/** A model as a provider package makes it, whose answers a test writes down part by part; and runs of an agent with it. */
import type { Chunk, LanguageModel, Message } from "eddy"
import {
  Agent,
  type AgentOptions,
  createTool,
  Eddy,
  InMemoryStore,
  type ModelOutput,
  type StreamOptions
} from "eddy/promise"
import { expectGrammar } from "../support/grammar.js"
import { collect, memoryLogger } from "../support/readers.js"

/** A stream part of the AI SDK. Any fields: what is tested is what providers send, right or wrong. */
export type Part = Readonly<Record<string, unknown>>

/** What a stream does beside sending parts. */
class Event {
  constructor(readonly happens: (controller: ReadableStreamDefaultController<unknown>) => Promise<boolean>) {}
}

export type Entry = Part | Event

/** What one call is answered with: parts, or the call itself fails. */
export type Answer = ReadonlyArray<Entry> | { readonly refuses: unknown }

/** Stays open, and says nothing more. */
export const hangs = new Event(() => new Promise<never>(() => undefined))

/** The stream fails. */
export const breaks = (cause: unknown): Entry =>
  new Event(async controller => {
    controller.error(cause)
    return true
  })

export const textStart = (id: unknown = "0", more: Part = {}): Part => ({ type: "text-start", id, ...more })

export const says = (delta: unknown, id: unknown = "0", more: Part = {}): Part => ({
  type: "text-delta",
  id,
  delta,
  ...more
})

export const textEnd = (id: unknown = "0", more: Part = {}): Part => ({ type: "text-end", id, ...more })

/** A whole block of text. */
export const text = (delta: string, id = "0"): ReadonlyArray<Part> => [
  textStart(id),
  says(delta, id),
  textEnd(id)
]

export const thinkStart = (id = "0", more: Part = {}): Part => ({ type: "reasoning-start", id, ...more })

export const thinks = (delta: string, id = "0", more: Part = {}): Part => ({
  type: "reasoning-delta",
  id,
  delta,
  ...more
})

export const thinkEnd = (id = "0", more: Part = {}): Part => ({ type: "reasoning-end", id, ...more })

export const call = (
  toolCallId: unknown,
  toolName: string,
  input: unknown = "{}",
  more: Part = {}
): Part => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input,
  ...more
})

/** Arguments as they are written, up to here. */
export const writes = (
  id: string,
  toolName: string,
  ...deltas: ReadonlyArray<string>
): ReadonlyArray<Part> => [
  { type: "tool-input-start", id, toolName },
  ...deltas.map(delta => ({ type: "tool-input-delta", id, delta }))
]

export const written = (id: string): Part => ({ type: "tool-input-end", id })

export const tokens = (inputTokens: number, outputTokens: number): Part => ({
  inputTokens,
  outputTokens,
  totalTokens: inputTokens + outputTokens
})

export const finish = (finishReason: unknown = "stop", usage: unknown = tokens(10, 5)): Part => ({
  type: "finish",
  finishReason,
  usage
})

export const fails = (error: unknown): Part => ({ type: "error", error })

/** An answer that says this, and stops. */
export const replies = (delta: string): ReadonlyArray<Part> => [...text(delta), finish()]

/** A model of a script, and what happened to it. */
export interface Played {
  readonly model: LanguageModel.AiSdkModel
  /** What each call was asked. */
  readonly calls: ReadonlyArray<LanguageModel.AiSdkCallOptions>
  /** Parts that were pulled, in all calls. */
  readonly pulled: () => number
  /** Streams that somebody cancelled. */
  readonly cancelled: () => number
}

export type Script = ReadonlyArray<Answer> | ((call: number) => Answer)

/** Answers its calls in order; one that the script does not have is refused. */
export const played = (
  script: Script,
  specificationVersion: LanguageModel.AiSdkModel["specificationVersion"] = "v2"
): Played => {
  const calls: Array<LanguageModel.AiSdkCallOptions> = []
  let pulled = 0
  let cancelled = 0
  const streamOf = (entries: ReadonlyArray<Entry>): ReadableStream<unknown> => {
    let place = 0
    return new ReadableStream(
      {
        pull: async controller => {
          for (;;) {
            const entry = entries[place++]
            if (entry === undefined) return controller.close()
            if (!(entry instanceof Event)) {
              pulled++
              return controller.enqueue(entry)
            }
            if (await entry.happens(controller)) return
          }
        },
        cancel: () => {
          cancelled++
        }
      },
      { highWaterMark: 0 }
    )
  }
  const model: LanguageModel.AiSdkModel = {
    specificationVersion,
    provider: "mill",
    modelId: "mill-1",
    doStream: async options => {
      calls.push(options)
      const place = calls.length - 1
      const answer = typeof script === "function" ? script(place) : script[place]
      if (answer === undefined) throw new Error(`Call ${place + 1} is one too many.`)
      if ("refuses" in answer) throw answer.refuses
      return { stream: streamOf(answer) }
    }
  }
  return { model, calls, pulled: () => pulled, cancelled: () => cancelled }
}

/** A tool that takes anything, and gives it back. */
const echoing = () => {
  const executed: Array<unknown> = []
  const echo = createTool({
    id: "echo",
    inputSchema: { type: "object" },
    execute: async input => {
      executed.push(input)
      return input
    }
  })
  return { echo, executed }
}

export interface Setting {
  readonly version?: LanguageModel.AiSdkModel["specificationVersion"]
  readonly agent?: Omit<AgentOptions, "id" | "model">
}

/** An agent in a container, with a store, and a log to look at. `echo` is one of its tools. */
export const set = (script: Script, { agent: more = {}, version }: Setting = {}) => {
  const { echo, executed } = echoing()
  const mill = played(script, version)
  const { tools, ...rest } = more
  const agent = new Agent({
    id: "miller",
    model: mill.model,
    tools: typeof tools === "function" ? tools : { echo, ...tools },
    ...rest
  })
  const logger = memoryLogger()
  const eddy = new Eddy({ agents: { agent }, storage: new InMemoryStore(), logger })
  return { ...mill, agent, eddy, executed, lines: logger.lines }
}

/** One answer is one call: what is tried again has tests of its own. */
export const once: StreamOptions = { maxRetries: 0, onError: () => undefined }

/** One run, read to its end; its chunks keep their order. */
export const run = async (script: Script, options: StreamOptions = {}, setting: Setting = {}) => {
  const place = set(script, setting)
  const output = await place.agent.stream("go", { ...once, ...options })
  const chunks = await readAll(output)
  return { ...place, output, chunks }
}

/** Every chunk of a run; they keep their order. */
export const readAll = async (output: ModelOutput): Promise<ReadonlyArray<Chunk.Chunk>> => {
  const chunks = await collect(output.fullStream)
  expectGrammar(chunks)
  return chunks
}

/** What the model was told in its last call. */
export const lastPrompt = ({ calls }: Pick<Played, "calls">): ReadonlyArray<Message.Message> =>
  // The prompt of V3 is made of our own messages.
  (calls.at(-1)?.prompt ?? []) as ReadonlyArray<Message.Message>

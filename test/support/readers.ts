/** What tests of runs share: models that a test plays by hand, readers, chunks, and a watch for unhandled rejections. */

import type { Chunk, LanguageModel, ModelPart, Usage } from "eddy"
import { Effect } from "effect"
import { afterEach, beforeEach, expect } from "vitest"

/** A promise that a test opens when it wants to. */
export interface Latch {
  readonly wait: Promise<void>
  readonly open: () => void
}

export const latch = (): Latch => {
  let open: () => void = () => undefined
  const wait = new Promise<void>(resolve => {
    open = resolve
  })
  return { wait, open }
}

/** Lets everything run that is ready to: some turns of the event loop, no time. */
export const flush = async (turns = 8): Promise<void> => {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>(resolve => setImmediate(resolve))
}

/** Turns of the event loop until it is so; fails the test when it never is. */
export const until = async (isSo: () => boolean, what: string): Promise<void> => {
  for (let turn = 0; turn < 2000; turn++) {
    if (isSo()) return
    await new Promise<void>(resolve => setImmediate(resolve))
  }
  expect.fail(`Never came true: ${what}`)
}

/** Every test of the file ends with no rejection that nobody handled. */
export const refuseUnhandledRejections = (): void => {
  let seen: Array<unknown> = []
  const note = (reason: unknown): void => {
    seen.push(reason)
  }
  beforeEach(() => {
    seen = []
    process.on("unhandledRejection", note)
  })
  afterEach(async () => {
    await flush()
    process.off("unhandledRejection", note)
    expect(seen).toEqual([])
  })
}

/** Everything of a stream. */
export const collect = async <A>(stream: AsyncIterable<A>): Promise<ReadonlyArray<A>> => {
  const all: Array<A> = []
  for await (const one of stream) all.push(one)
  return all
}

/** Everything of a stream, through its reader instead of its iterator. */
export const collectByReader = async <A>(stream: ReadableStream<A>): Promise<ReadonlyArray<A>> => {
  const reader = stream.getReader()
  const all: Array<A> = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return all
    all.push(value)
  }
}

export const typesOf = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<string> =>
  chunks.map(({ type }) => type)

/** The text of a run as a reader of its deltas has it. */
export const textOf = (chunks: ReadonlyArray<Chunk.Chunk>): string =>
  chunks.map(chunk => (chunk.type === "text-delta" ? chunk.payload.text : "")).join("")

type Parts = AsyncIterable<ModelPart.ModelPart> | ReadableStream<ModelPart.ModelPart>

/** A model whose answers a test makes itself, one source per call (0-based). */
export const modelOf = (
  source: (call: number, signal: AbortSignal) => Parts
): LanguageModel.LanguageModel => {
  let calls = 0
  return {
    provider: "hand",
    modelId: "made",
    answer: (_, signal) =>
      Effect.sync(() => ({
        source: source(calls++, signal),
        // The source holds nothing but parts.
        normalize: (part: unknown) => part as ModelPart.ModelPart
      }))
  }
}

/** A model with one answer that waits for latches between its parts. */
export const pausingModel = (
  script: ReadonlyArray<ModelPart.ModelPart | Latch>
): LanguageModel.LanguageModel =>
  modelOf(async function* () {
    for (const entry of script) {
      if ("wait" in entry) await entry.wait
      else yield entry
    }
  })

/** A model that counts the parts that were pulled: text deltas `0 `, `1 `, … as many as asked for, then a finish. */
export const countingModel = (
  deltas: number
): LanguageModel.LanguageModel & { readonly pulled: () => number; readonly isCancelled: () => boolean } => {
  let pulled = 0
  let isCancelled = false
  const model = modelOf(
    () =>
      new ReadableStream<ModelPart.ModelPart>(
        {
          pull: controller => {
            if (pulled === deltas) {
              controller.enqueue(finish("stop"))
              controller.close()
            } else {
              controller.enqueue(delta("a", `${pulled} `))
            }
            pulled++
          },
          cancel: () => {
            isCancelled = true
          }
        },
        { highWaterMark: 0 }
      )
  )
  return { ...model, pulled: () => pulled, isCancelled: () => isCancelled }
}

export const delta = (id: string, text: string): ModelPart.ModelPart => ({
  type: "text-delta",
  id,
  delta: text
})

export const finish = (reason: ModelPart.Finish["reason"], usage: Usage.Usage = {}): ModelPart.ModelPart => ({
  type: "finish",
  reason,
  usage
})

const of = { runId: "run-1", from: "AGENT" } as const

/** Chunks of `run-1`, made by hand. */
export const chunks = {
  start: { type: "start", ...of, payload: { agentId: "hand", messageId: "message-1" } },
  stepStart: (warnings: ReadonlyArray<Chunk.Warning> = []): Chunk.Chunk => ({
    type: "step-start",
    ...of,
    payload: {
      messageId: "message-1",
      request: { provider: "hand", modelId: "made" },
      ...(warnings.length === 0 ? {} : { warnings })
    }
  }),
  textStart: (id: string): Chunk.Chunk => ({ type: "text-start", ...of, payload: { id } }),
  text: (id: string, text: string): Chunk.Chunk => ({ type: "text-delta", ...of, payload: { id, text } }),
  textEnd: (id: string): Chunk.Chunk => ({ type: "text-end", ...of, payload: { id } }),
  reasoningStart: (id: string): Chunk.Chunk => ({ type: "reasoning-start", ...of, payload: { id } }),
  reasoning: (id: string, text: string): Chunk.Chunk => ({
    type: "reasoning-delta",
    ...of,
    payload: { id, text }
  }),
  reasoningEnd: (id: string): Chunk.Chunk => ({ type: "reasoning-end", ...of, payload: { id } }),
  toolCall: (toolCallId: string): Chunk.ToolCall => ({
    type: "tool-call",
    ...of,
    payload: { toolCallId, toolName: "look", args: { for: toolCallId } }
  }),
  toolResult: (toolCallId: string): Chunk.ToolResult => ({
    type: "tool-result",
    ...of,
    payload: { toolCallId, toolName: "look", result: `found ${toolCallId}` }
  }),
  source: (id: string): Chunk.Chunk => ({
    type: "source",
    ...of,
    payload: { id, sourceType: "url", title: id, url: "https://example.org" }
  }),
  file: (data: string): Chunk.Chunk => ({ type: "file", ...of, payload: { data, mimeType: "text/plain" } }),
  stepFinish: (
    text: string,
    usage: Usage.Usage,
    more: { readonly reason?: "stop" | "tool-calls"; readonly isContinued?: boolean } = {}
  ): Chunk.Of<"step-finish"> => ({
    type: "step-finish",
    ...of,
    payload: {
      messageId: "message-1",
      stepResult: { reason: more.reason ?? "stop", isContinued: more.isContinued ?? false },
      output: { text, toolCalls: [], usage },
      metadata: {},
      response: { id: `response to ${text}` },
      providerMetadata: { hand: { said: text } }
    }
  }),
  error: (error: unknown): Chunk.Chunk => ({ type: "error", ...of, payload: { error } }),
  abort: (reason?: unknown): Chunk.Chunk => ({
    type: "abort",
    ...of,
    payload: reason === undefined ? {} : { reason }
  }),
  tripwire: (reason: string): Chunk.Chunk => ({
    type: "tripwire",
    ...of,
    payload: { reason, retry: false, processorId: "guard" }
  }),
  suspended: (toolCallId: string, suspendData: unknown): Chunk.Chunk => ({
    type: "tool-call-suspended",
    ...of,
    payload: { toolCallId, toolName: "look", args: {}, suspendData }
  }),
  finish: (
    reason: Chunk.Of<"finish">["payload"]["stepResult"]["reason"],
    text: string,
    usage: Usage.Usage
  ): Chunk.Chunk => ({
    type: "finish",
    ...of,
    payload: {
      stepResult: { reason, isContinued: false },
      output: { usage, text },
      metadata: {},
      messages: { all: [], user: [], nonUser: [] },
      response: { id: "last", messages: [], uiMessages: [] }
    }
  })
} satisfies Record<string, Chunk.Chunk | ((...args: never) => Chunk.Chunk)>

/** A logger that keeps its lines. */
export const memoryLogger = () => {
  const lines: Array<readonly [level: string, message: string]> = []
  const at =
    (level: string) =>
    (message: string): void => {
      lines.push([level, message])
    }
  return { lines, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") }
}

/** What the tests of features that meet share: agents, their stores, and sums that have to agree. */
import type { Chunk, Usage } from "eddy"
import { RunStore, ThreadStore } from "eddy"
import type { ScriptedModel } from "eddy/testing"
import { Effect, Layer, Schema, Stream } from "effect"
import { expect } from "vitest"
import { finish, finishOf, only } from "./kit.js"

export const stores = Layer.merge(RunStore.layerMemory, ThreadStore.layerMemory)

const value = Schema.Struct({ a: Schema.Number })

export const structuredOutput = { schema: value }

export const one: Usage.Usage = { inputTokens: 10, outputTokens: 1 }

/** An answer that comes in these deltas. */
export const deltas = (...pieces: ReadonlyArray<string>): ScriptedModel.Turn => [
  { type: "text-start", id: "0" },
  ...pieces.map(delta => ({ type: "text-delta", id: "0", delta }) as const),
  { type: "text-end", id: "0" },
  finish("stop", one)
]

export const objectsOf = (chunks: ReadonlyArray<Chunk.Chunk>) =>
  only(chunks, "object").map(({ object }) => object)

/** Calls of one answer. */
export const calling = (
  ...calls: ReadonlyArray<ReturnType<typeof ScriptedModel.toolCall>>
): ScriptedModel.Turn => [...calls, finish("tool-calls", one)]

/** Everything that is told of what a run has used agrees; `calls` of a model that each used {@link one}. */
export const expectUsage = (chunks: ReadonlyArray<Chunk.Chunk>, calls: number, before = 0): void => {
  const usageOf = (count: number): Usage.Usage =>
    count === 0 ? {} : { inputTokens: 10 * count, outputTokens: count }
  const steps = only(chunks, "step-finish").map(({ payload }) => payload)
  let sum = before
  for (const { output, totalUsage } of steps) {
    sum += output.usage.outputTokens ?? 0
    expect(totalUsage).toMatchObject(usageOf(sum))
  }
  expect(sum).toBe(calls + before)
  expect(finishOf(chunks).output.usage).toMatchObject(usageOf(calls + before))
}

/** The messages of a thread, as they are stored. */
export const storedIn = (threadId: string) =>
  Effect.gen(function* () {
    const store = yield* ThreadStore.ThreadStore
    const found = yield* store.messages(threadId, { last: 1000 })
    return found.map(({ message }) => message)
  })

/** The texts that an assistant has said in these messages, message by message. */
export const saidIn = (messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }>) =>
  messages.flatMap(message => (message.role === "assistant" ? [message.content] : []))

export const streamed = <A, E, R>(stream: Stream.Stream<A, E, R>) =>
  Effect.map(Stream.runCollect(stream), items => [...items])

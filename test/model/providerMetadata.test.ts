/** Metadata that are none: whatever a provider sends beside a part, the run goes on and its chunks can be encoded. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Chunk, LanguageModel, Message, type ModelPart, Tool } from "eddy"
import { createTool, Agent as PromiseAgent } from "eddy/promise"
import { Effect, FastCheck as fc, Schema, Stream } from "effect"
import { z } from "zod"
import * as Answer from "../../src/model/Answer.js"
import * as RunIds from "../../src/model/runIds.js"
import { violationsOf } from "../support/grammar.js"
import { loosely, malformedMetadata } from "../support/randomParts.js"

/** One answer that has a part of every kind that carries metadata. */
const everyKind: ReadonlyArray<{ readonly type: string; readonly [key: string]: unknown }> = [
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", delta: "hm" },
  { type: "reasoning-end", id: "r" },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "so" },
  { type: "text-end", id: "t" },
  { type: "source", id: "s", sourceType: "url", url: "https://kit.test" },
  { type: "file", data: "AQI=", mediaType: "image/png" },
  { type: "tool-call", toolCallId: "p", toolName: "search", input: "{}", providerExecuted: true },
  { type: "tool-result", toolCallId: "p", toolName: "search", result: 1 },
  { type: "tool-input-start", id: "c", toolName: "echo" },
  { type: "tool-input-delta", id: "c", delta: "{}" },
  { type: "tool-input-end", id: "c" },
  { type: "tool-call", toolCallId: "c", toolName: "echo", input: "{}" },
  { type: "finish", reason: "tool-calls", usage: {} }
]

const kinds = [...new Set(everyKind.map(({ type }) => type))]

const withMetadata = (metadata: (type: string, index: number) => unknown) =>
  everyKind.map((part, index) => {
    const providerMetadata = metadata(part.type, index)
    return loosely(providerMetadata === undefined ? part : { ...part, providerMetadata })
  })

const last: ReadonlyArray<ModelPart.ModelPart> = [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "ok" },
  { type: "text-end", id: "t" },
  { type: "finish", reason: "stop", usage: {} }
]

const streamOf = (parts: ReadonlyArray<unknown>): ReadableStream<unknown> =>
  new ReadableStream({
    start: controller => {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    }
  })

const customModel = (
  parts: ReadonlyArray<ModelPart.ModelPart>,
  requests: Array<LanguageModel.ModelRequest>
) => ({
  provider: "kit",
  modelId: "kit-1",
  answer: async (request: LanguageModel.ModelRequest): Promise<LanguageModel.ModelAnswer> => {
    requests.push(request)
    return {
      source: streamOf(requests.length === 1 ? parts : last),
      normalize: element => loosely(Object(element))
    }
  }
})

/** The same parts as a provider package of the AI SDK would send them. */
const sdkModel = (
  parts: ReadonlyArray<ModelPart.ModelPart>,
  requests: Array<unknown>
): LanguageModel.AiSdkModel => ({
  specificationVersion: "v3",
  provider: "kit",
  modelId: "kit-1",
  doStream: async options => {
    requests.push(options)
    const told = (requests.length === 1 ? parts : last).map(part =>
      part.type === "finish" ? { ...part, finishReason: part.reason } : part
    )
    return { stream: streamOf(told) }
  }
})

type Run = (parts: ReadonlyArray<ModelPart.ModelPart>) => Promise<{
  readonly chunks: ReadonlyArray<Chunk.Chunk>
  readonly requests: ReadonlyArray<unknown>
}>

const runEffect =
  (
    makeModel: (
      parts: ReadonlyArray<ModelPart.ModelPart>,
      requests: Array<never>
    ) => LanguageModel.LanguageModel
  ): Run =>
  async parts => {
    const requests: Array<never> = []
    const echo = Tool.make("echo", { input: { type: "object" }, execute: () => Effect.succeed("a") })
    const agent = Agent.make({ id: "kit", model: makeModel(parts, requests), tools: [echo] })
    const chunks = await Effect.runPromise(Stream.runCollect(Agent.stream(agent, "go", { maxRetries: 0 })))
    return { chunks: [...chunks], requests }
  }

const runPromise: Run = async parts => {
  const requests: Array<LanguageModel.ModelRequest> = []
  const agent = new PromiseAgent({
    id: "kit",
    model: customModel(parts, requests),
    tools: {
      echo: createTool({ id: "echo", description: "", inputSchema: z.object({}), execute: async () => "a" })
    }
  })
  const output = await agent.stream("go", { maxRetries: 0 })
  const chunks: Array<Chunk.Chunk> = []
  for await (const chunk of output.fullStream) chunks.push(chunk)
  return { chunks, requests }
}

const runs: ReadonlyArray<readonly [string, Run]> = [
  ["eddy, a custom model", runEffect(customModel)],
  [
    "eddy, a model of the AI SDK",
    runEffect((parts, requests) => LanguageModel.fromAiSdk(sdkModel(parts, requests)))
  ],
  ["eddy/promise", runPromise]
]

const expectWhole = async ({ chunks, requests }: Awaited<ReturnType<Run>>) => {
  expect(violationsOf(chunks)).toStrictEqual([])
  expect(chunks.filter(({ type }) => type === "error")).toStrictEqual([])
  for (const chunk of chunks) {
    const encoded = await Effect.runPromise(Chunk.encode(chunk))
    expect(await Effect.runPromise(Chunk.decode(JSON.parse(JSON.stringify(encoded))))).toMatchObject({
      type: chunk.type
    })
  }
  expect(requests).toHaveLength(2)
  expect(() => JSON.stringify(requests)).not.toThrow()
}

const nothing: ReadonlyArray<readonly [string, unknown]> = [
  ["{ x: null }", { x: null }],
  ["{ x: undefined }", { x: undefined }],
  ["null", null],
  ["{ x: [] }", { x: [] }],
  ["{}", {}]
]

describe.each(runs)("metadata that are none, %s", (_, run) => {
  it.each(nothing)("%s are absent at every part", async (_, metadata) => {
    const ran = await run(withMetadata(() => metadata))
    await expectWhole(ran)
    expect(JSON.stringify(ran.chunks)).not.toContain("providerMetadata")
    expect(JSON.stringify(ran.requests)).not.toContain('"x"')
  })

  it.each(kinds)("{ x: null } at a %s changes nothing", async kind => {
    await expectWhole(await run(withMetadata(type => (type === kind ? { x: null } : undefined))))
  })

  it("leave what stands beside them", async () => {
    const ran = await run(withMetadata(() => ({ x: null, kit: { a: 1, gone: undefined, big: 1n } })))
    await expectWhole(ran)
    const start = ran.chunks.find(({ type }) => type === "reasoning-start")
    expect(start).toMatchObject({ payload: { providerMetadata: { kit: { a: 1, big: "1" } } } })
  })

  it("however they are nested", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(malformedMetadata, { minLength: everyKind.length, maxLength: everyKind.length }),
        async metadata => expectWhole(await run(withMetadata((_, index) => metadata[index])))
      ),
      { numRuns: 30 }
    )
  })
})

const isChunk = Schema.is(Chunk.Chunk)

const isMessage = Schema.is(Message.Message)

describe("an answer", () => {
  it("emits chunks that can be encoded, and a message that is one, whatever the metadata", () => {
    fc.assert(
      fc.property(
        fc.array(malformedMetadata, { minLength: everyKind.length, maxLength: everyKind.length }),
        metadata => {
          const chunks: Array<Chunk.Chunk> = []
          const answer = Answer.make({
            runId: "r",
            messageId: "m",
            ids: RunIds.make(),
            makeCallId: () => "made",
            includeRawChunks: true,
            emit: chunk => chunks.push(chunk)
          })
          for (const part of withMetadata((_, index) => metadata[index])) answer.accept(part)
          answer.close(true)
          for (const chunk of chunks) expect(isChunk(chunk)).toBe(true)
          expect(isMessage(answer.toMessage(true))).toBe(true)
        }
      ),
      { numRuns: 50 }
    )
  })
})

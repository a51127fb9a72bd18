/** What an `@effect/ai` model says, and what it is told, through an agent. */

import { LanguageModel as AiLanguageModel, Tool as AiTool, Model, Prompt } from "@effect/ai"
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import { Agent, type Chunk as AgentChunk, type Errors, Id, type LanguageModel, Message, Tool } from "eddy"
import { EffectAi } from "eddy/effect-ai"
import { Chunk, Context, Deferred, Effect, FastCheck as fc, Layer, Schema, Stream } from "effect"
import { chunksOf, finishOf, only, read, textOf, types } from "../agent/kit.js"
import { expectGrammar } from "../support/grammar.js"
import * as Kit from "./effectAiKit.js"

const run = Effect.fnUntraced(function* (...parts: ReadonlyArray<Kit.Encoded>) {
  const { agent } = yield* Kit.agentOf([Kit.oneByOne(...parts)])
  const chunks = yield* chunksOf(Agent.stream(agent, "go"))
  expectGrammar(chunks)
  return chunks
})

const usageOf = (usage: Extract<Kit.Encoded, { readonly type: "finish" }>["usage"]) =>
  Effect.map(run(...Kit.text("hi"), { type: "finish", reason: "stop", usage }), chunks => {
    const step = only(chunks, "step-finish")[0]?.payload.output.usage
    expect(finishOf(chunks).output.usage).toStrictEqual(step)
    return step
  })

describe("an answer", () => {
  it.effect("of text", () =>
    Effect.gen(function* () {
      const chunks = yield* run(...Kit.text("Hel", "lo"), Kit.ends())
      expect(types(chunks)).toStrictEqual([
        "start",
        "step-start",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "step-finish",
        "finish"
      ])
      expect(textOf(chunks)).toBe("Hello")
      expect(only(chunks, "text-delta")[0]?.payload).toStrictEqual({ id: "0", text: "Hel" })
      expect(finishOf(chunks).stepResult).toStrictEqual({ reason: "stop", isContinued: false })
    })
  )

  it.effect("of reasoning and its signature, wherever that stands", () =>
    Effect.gen(function* () {
      const signed = (signature: string) => ({ anthropic: { type: "thinking", signature } })
      const chunks = yield* run(
        { type: "reasoning-start", id: "a" },
        { type: "reasoning-delta", id: "a", delta: "Hmm." },
        { type: "reasoning-delta", id: "a", delta: "", metadata: signed("s+/1==") },
        { type: "reasoning-end", id: "a" },
        {
          type: "reasoning-start",
          id: "b",
          metadata: { openai: { itemId: "rs", encryptedContent: undefined } }
        },
        { type: "reasoning-delta", id: "b", delta: "So.", metadata: { openai: { itemId: "rs" } } },
        {
          type: "reasoning-end",
          id: "b",
          metadata: { openai: { itemId: "rs", encryptedContent: "e+/2==" } }
        },
        Kit.ends()
      )
      expect(only(chunks, "reasoning-end").map(chunk => chunk.payload.signature)).toStrictEqual([
        "s+/1==",
        "e+/2=="
      ])
      expect(finishOf(chunks).messages.nonUser[0]?.content).toStrictEqual([
        { type: "reasoning", text: "Hmm.", providerOptions: signed("s+/1==") },
        {
          type: "reasoning",
          text: "So.",
          providerOptions: { openai: { itemId: "rs", encryptedContent: "e+/2==" } }
        }
      ])
    })
  )

  it.effect("of sources, files and what the provider says of the response", () =>
    Effect.gen(function* () {
      const chunks = yield* run(
        { type: "response-metadata", id: "r1", modelId: "m-1", timestamp: "2026-01-02T03:04:05.000Z" },
        { type: "source", sourceType: "url", id: "s1", url: "https://example.org/a?b=c", title: "A" },
        {
          type: "source",
          sourceType: "document",
          id: "s2",
          mediaType: "text/plain",
          title: "B",
          fileName: "b.txt",
          metadata: { anthropic: { citedText: "x" } }
        },
        { type: "file", mediaType: "image/png", data: "AQID" },
        Kit.ends()
      )
      expect(only(chunks, "response-metadata")[0]?.payload).toStrictEqual({
        id: "r1",
        modelId: "m-1",
        timestamp: new Date("2026-01-02T03:04:05.000Z")
      })
      expect(only(chunks, "source").map(chunk => chunk.payload)).toStrictEqual([
        { id: "s1", sourceType: "url", title: "A", url: "https://example.org/a?b=c" },
        {
          id: "s2",
          sourceType: "document",
          title: "B",
          mimeType: "text/plain",
          filename: "b.txt",
          providerMetadata: { anthropic: { citedText: "x" } }
        }
      ])
      expect(only(chunks, "file")[0]?.payload).toStrictEqual({
        data: "AQID",
        base64: "AQID",
        mimeType: "image/png"
      })
    })
  )

  it.effect("that says nothing of the response leaves it out", () =>
    Effect.gen(function* () {
      const chunks = yield* run({ type: "response-metadata" }, ...Kit.text("hi"), Kit.ends())
      expect(only(chunks, "response-metadata")[0]?.payload).toStrictEqual({})
    })
  )

  it.effect("whose metadata says nothing has none", () =>
    Effect.gen(function* () {
      const chunks = yield* run(
        { type: "text-start", id: "0", metadata: { openai: undefined } },
        { type: "text-delta", id: "0", delta: "hi", metadata: {} },
        { type: "text-end", id: "0", metadata: { openai: { at: new Date(0), gone: undefined } } },
        { ...Kit.ends(), metadata: { openai: { serviceTier: "flex" } } }
      )
      expect(only(chunks, "text-start")[0]?.payload).toStrictEqual({ id: "0" })
      expect(only(chunks, "text-delta")[0]?.payload).toStrictEqual({ id: "0", text: "hi" })
      expect(only(chunks, "text-end")[0]?.payload.providerMetadata).toStrictEqual({
        openai: { at: "1970-01-01T00:00:00.000Z" }
      })
      expect(only(chunks, "step-finish")[0]?.payload.providerMetadata).toStrictEqual({
        openai: { serviceTier: "flex" }
      })
    })
  )

  it.effect("that the provider ends with a word of its own", () =>
    Effect.gen(function* () {
      const reasonOf = (reason: "pause" | "unknown" | "other" | "length" | "content-filter") =>
        Effect.map(run(...Kit.text("hi"), Kit.ends(reason)), chunks => finishOf(chunks).stepResult)
      expect(yield* reasonOf("pause")).toStrictEqual({
        reason: "other",
        rawReason: "pause",
        isContinued: false
      })
      expect(yield* reasonOf("unknown")).toStrictEqual({ reason: "other", isContinued: false })
      expect(yield* reasonOf("other")).toStrictEqual({ reason: "other", isContinued: false })
      expect(yield* reasonOf("length")).toStrictEqual({ reason: "length", isContinued: false })
      expect(yield* reasonOf("content-filter")).toStrictEqual({
        reason: "content-filter",
        isContinued: false
      })
    })
  )

  it.effect("and its usage: what is not known is absent, also where providers make it 0", () =>
    Effect.gen(function* () {
      expect(yield* usageOf(Kit.noUsage)).toStrictEqual({})
      expect(yield* usageOf({ ...Kit.noUsage, totalTokens: 0 })).toStrictEqual({})
      expect(yield* usageOf({ ...Kit.noUsage, inputTokens: 3, totalTokens: 3 })).toStrictEqual({
        inputTokens: 3
      })
      expect(yield* usageOf({ ...Kit.noUsage, totalTokens: 9 })).toStrictEqual({ totalTokens: 9 })
      expect(
        yield* usageOf({ ...Kit.noUsage, outputTokens: Number.NaN, totalTokens: Number.NaN })
      ).toStrictEqual({})
      expect(yield* usageOf({ inputTokens: 0, outputTokens: 0, totalTokens: 0 })).toStrictEqual({
        inputTokens: 0,
        outputTokens: 0,
        totalTokens: 0
      })
      const all = {
        inputTokens: 5,
        outputTokens: 4,
        totalTokens: 11,
        reasoningTokens: 2,
        cachedInputTokens: 1
      }
      expect(yield* usageOf(all)).toStrictEqual(all)
    })
  )

  it.effect("comes part by part, and not when it is complete", () =>
    Effect.gen(function* () {
      const heard = yield* Deferred.make<void>()
      const [start, ...rest] = Kit.text("a", "b")
      const turn = Stream.concat(
        Stream.fromIterable(start === undefined ? [] : [start, ...rest.slice(0, 1)]),
        // The provider goes on when the reader has what it said.
        Stream.zipRight(Deferred.await(heard), Kit.oneByOne(...rest.slice(1), Kit.ends()))
      )
      const { agent } = yield* Kit.agentOf([turn])
      const { chunks } = yield* read(Agent.stream(agent, "go"), chunk =>
        chunk.type === "text-delta" ? Effect.asVoid(Deferred.succeed(heard, undefined)) : Effect.void
      )
      expect(textOf(chunks)).toBe("ab")
    })
  )

  describe("is the same however its parts are grouped into chunks", () => {
    const first: ReadonlyArray<Kit.Encoded> = [
      { type: "response-metadata", id: "r1" },
      { type: "reasoning-start", id: "0" },
      { type: "reasoning-delta", id: "0", delta: "Hm", metadata: { anthropic: { signature: "s" } } },
      { type: "reasoning-end", id: "0" },
      ...Kit.text("One ", "moment."),
      ...Kit.writes("c1", "look_up", '{"q":', '"x"}'),
      { type: "tool-params-end", id: "c1" },
      Kit.call("c1", "look_up", { q: "x" }),
      Kit.ends("tool-calls")
    ]
    const second = [...Kit.text("It is ", "x."), Kit.ends()]

    const lookUp = Tool.make("look_up", {
      input: Schema.Struct({ q: Schema.String }),
      execute: ({ q }) => Effect.succeed(q)
    })

    /** Chunks of these sizes, which may be 0, and one of the rest. */
    const grouped = (sizes: ReadonlyArray<number>, parts: ReadonlyArray<Kit.Encoded>): Kit.Turn => {
      const groups: Array<Chunk.Chunk<Kit.Encoded>> = []
      let from = 0
      for (const size of sizes) {
        groups.push(Chunk.fromIterable(parts.slice(from, from + size)))
        from += size
      }
      return Stream.fromChunks(...groups, Chunk.fromIterable(parts.slice(from)))
    }

    const told = (...turns: ReadonlyArray<Kit.Turn>) =>
      Kit.agentOf(turns, [lookUp]).pipe(
        Effect.flatMap(({ agent }) => chunksOf(Agent.stream(agent, "go", { runId: "r" }))),
        Effect.provide(Id.layerSequential)
      )

    it.effect.prop(
      "whatever the sizes",
      [fc.array(fc.nat(4), { maxLength: 14 })],
      ([sizes]) =>
        Effect.gen(function* () {
          const chunks = yield* told(grouped(sizes, first), grouped(sizes, second))
          expectGrammar(chunks)
          expect(textOf(chunks)).toBe("One moment.It is x.")
          expect(chunks).toStrictEqual(yield* told(Kit.oneByOne(...first), Kit.oneByOne(...second)))
        }),
      { fastCheck: { numRuns: 12 } }
    )
  })
})

describe("a prompt", () => {
  it.effect("holds messages of every kind, with the options of their parts", () =>
    Effect.gen(function* () {
      const { agent, requests } = yield* Kit.agentOf([Kit.oneByOne(...Kit.text("hi"), Kit.ends())])
      const providerOptions = { anthropic: { cacheControl: { type: "ephemeral" } } }
      const url = new URL("https://example.org/cat.png")
      const messages: ReadonlyArray<Message.Message> = [
        { role: "system", content: "Be kind.", providerOptions },
        {
          role: "user",
          content: [
            { type: "text", text: "Look", providerOptions },
            { type: "file", data: "AQID", mediaType: "image/png", filename: "a.png" },
            { type: "file", data: url, mediaType: "image/png" },
            { type: "file", data: "file-id_1", mediaType: "application/pdf" }
          ]
        },
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "Hm", providerOptions: { anthropic: { signature: "s==" } } },
            { type: "text", text: "A cat" },
            { type: "file", data: "BAUG", mediaType: "image/png" },
            { type: "tool-call", toolCallId: "p1", toolName: "web", input: { q: 1 }, providerExecuted: true },
            { type: "tool-result", toolCallId: "p1", toolName: "web", output: { type: "json", value: [1] } },
            { type: "tool-call", toolCallId: "c1", toolName: "one", input: {} },
            { type: "tool-call", toolCallId: "c2", toolName: "two", input: {} },
            { type: "tool-call", toolCallId: "c3", toolName: "three", input: {} },
            { type: "tool-call", toolCallId: "c4", toolName: "four", input: {} }
          ]
        },
        {
          role: "tool",
          content: [
            { type: "tool-result", toolCallId: "c1", toolName: "one", output: { type: "text", value: "ok" } },
            {
              type: "tool-result",
              toolCallId: "c2",
              toolName: "two",
              output: { type: "error-text", value: "no" }
            },
            {
              type: "tool-result",
              toolCallId: "c3",
              toolName: "three",
              output: { type: "error-json", value: { no: 1 } }
            },
            {
              type: "tool-result",
              toolCallId: "c4",
              toolName: "four",
              output: { type: "content", value: [{ type: "text", text: "t" }] }
            }
          ]
        },
        Message.user("And now?")
      ]
      yield* Agent.generate(agent, messages)
      const base = { options: {} }
      const result = { ...base, type: "tool-result", isFailure: false, providerExecuted: false }
      const asked = { ...base, type: "tool-call", params: {}, providerExecuted: false }
      const picture = { ...base, type: "file", mediaType: "image/png" }
      const expected = [
        Prompt.makeMessage("system", { content: "Be kind.", options: providerOptions }),
        {
          ...base,
          role: "user",
          content: [
            { type: "text", text: "Look", options: providerOptions },
            { ...picture, data: Uint8Array.of(1, 2, 3), fileName: "a.png" },
            { ...picture, data: url },
            { ...picture, data: "file-id_1", mediaType: "application/pdf" }
          ]
        },
        {
          ...base,
          role: "assistant",
          content: [
            { type: "reasoning", text: "Hm", options: { anthropic: { signature: "s==" } } },
            { ...base, type: "text", text: "A cat" },
            { ...picture, data: Uint8Array.of(4, 5, 6) },
            { ...asked, id: "p1", name: "web", params: { q: 1 }, providerExecuted: true },
            { ...result, id: "p1", name: "web", result: [1], providerExecuted: true },
            { ...asked, id: "c1", name: "one" },
            { ...asked, id: "c2", name: "two" },
            { ...asked, id: "c3", name: "three" },
            { ...asked, id: "c4", name: "four" }
          ]
        },
        {
          ...base,
          role: "tool",
          content: [
            { ...result, id: "c1", name: "one", result: "ok" },
            { ...result, id: "c2", name: "two", result: "no", isFailure: true },
            { ...result, id: "c3", name: "three", result: { no: 1 }, isFailure: true },
            { ...result, id: "c4", name: "four", result: [{ type: "text", text: "t" }] }
          ]
        },
        { ...base, role: "user", content: [{ ...base, type: "text", text: "And now?" }] }
      ]
      expect(requests[0]?.prompt.content).toMatchObject(expected)
      expect(requests[0]?.prompt.content).toHaveLength(expected.length)
      // `@effect/ai` itself takes it for a prompt.
      expect(Schema.is(Prompt.PromptFromSelf)(requests[0]?.prompt)).toBe(true)
      expect(Schema.encodeSync(Prompt.Prompt)(requests[0]?.prompt ?? Prompt.empty).content).toHaveLength(5)
    })
  )
})

describe("what a request has no place for", () => {
  const asked = Effect.fnUntraced(function* (options: {
    readonly modelSettings?: LanguageModel.ModelSettings
    readonly providerOptions?: LanguageModel.ModelRequest["providerOptions"] & object
    readonly includeRawChunks?: boolean
  }) {
    const { agent } = yield* Kit.agentOf([Kit.oneByOne(...Kit.text("hi"), Kit.ends())])
    const chunks = yield* chunksOf(Agent.stream(agent, "go", options))
    expectGrammar(chunks)
    const started = only(chunks, "step-start")[0]?.payload
    expect(only(chunks, "step-finish")[0]?.payload.stepResult.warnings).toStrictEqual(started?.warnings)
    return started
  })

  it.effect("is warned of", () =>
    Effect.gen(function* () {
      const started = yield* asked({
        modelSettings: { temperature: 0, maxOutputTokens: 9, stopSequences: ["x"], headers: { a: "secret" } },
        providerOptions: { openai: { store: false } },
        includeRawChunks: true
      })
      expect(started?.warnings?.map(({ feature, type }) => `${type}: ${String(feature)}`)).toStrictEqual([
        "unsupported: temperature",
        "unsupported: maxOutputTokens",
        "unsupported: stopSequences",
        "unsupported: headers",
        "unsupported: providerOptions",
        "unsupported: includeRawChunks"
      ])
      expect(JSON.stringify(started)).not.toContain("secret")
    })
  )

  it.effect("is not warned of when nobody asks for it", () =>
    Effect.gen(function* () {
      const started = yield* asked({ modelSettings: {} })
      expect(started).not.toHaveProperty("warnings")
    })
  )
})

describe("make", () => {
  const layer = Layer.effect(
    AiLanguageModel.LanguageModel,
    Effect.map(Kit.serviceOf(Kit.oneByOne(...Kit.text("hi"), Kit.ends())), ({ service }) => service)
  )

  it.effect("takes the model of the context, and the name that its layer gives", () =>
    Effect.gen(function* () {
      const model = yield* EffectAi.make({ modelId: "m-1" }).pipe(Effect.provide(Model.make("openai", layer)))
      expect([model.provider, model.modelId]).toStrictEqual(["openai", "m-1"])
      const full = yield* Agent.generate(Agent.make({ id: "helper", model }), "go")
      expect(full.text).toBe("hi")
    })
  )

  it.effect("has names of its own, and takes those of its options", () =>
    Effect.gen(function* () {
      const plain = yield* EffectAi.make().pipe(Effect.provide(layer))
      expect([plain.provider, plain.modelId]).toStrictEqual(["effect-ai", "unknown"])
      const named = yield* EffectAi.make({ provider: "mine" }).pipe(
        Effect.provide(Model.make("openai", layer))
      )
      expect(named.provider).toBe("mine")
      const { agent } = yield* Kit.agentOf([Stream.empty], [], { provider: "p", modelId: "m" })
      const error = yield* Effect.flip(Agent.generate(agent, "go"))
      expect(error).toMatchObject({ provider: "p", modelId: "m" })
    })
  )

  it.effect("answers with the context of the run, not with that of its making", () =>
    Effect.gen(function* () {
      class Config extends Context.Tag("Config")<Config, string>() {}
      const seen: Array<string> = []
      const turn = Stream.unwrap(
        Effect.map(Effect.serviceOption(Config), config => {
          seen.push(config._tag === "Some" ? config.value : "none")
          return Kit.oneByOne(...Kit.text("hi"), Kit.ends())
        })
      )
      const { agent } = yield* Kit.agentOf([turn, turn])
      yield* Agent.generate(agent, "go").pipe(Effect.provideService(Config, "of the run"))
      yield* Agent.generate(agent, "go")
      expect(seen).toStrictEqual(["of the run", "none"])
    })
  )

  it("is typed: an agent takes the model, and needs nothing more", () => {
    expectTypeOf(EffectAi.make).returns.toEqualTypeOf<
      Effect.Effect<LanguageModel.LanguageModel, never, AiLanguageModel.LanguageModel>
    >()
    const agentOf = (model: LanguageModel.LanguageModel) => Agent.make({ id: "helper", model })
    expectTypeOf(agentOf).toBeCallableWith(EffectAi.fromService({} as AiLanguageModel.Service))
    const program = Effect.flatMap(EffectAi.make(), model => Agent.generate(agentOf(model), "go"))
    expectTypeOf(program).toExtend<
      Effect.Effect<unknown, Errors.AgentError | Errors.StructuredOutputError, AiLanguageModel.LanguageModel>
    >()
    const search = AiTool.providerDefined({
      id: "acme.search",
      toolkitName: "AcmeSearch",
      providerName: "search",
      args: { limit: Schema.Number }
    })
    expectTypeOf(EffectAi.make).toBeCallableWith({ providerTools: [search({ limit: 3 })] })
    const plain = AiTool.make("plain")
    expectTypeOf(plain).not.toExtend<EffectAi.ProviderTool>()
    expectTypeOf<AgentChunk.Chunk>().not.toBeAny()
  })
})

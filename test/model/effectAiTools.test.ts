/** Tools behind an `@effect/ai` model: what it is told of them, and what becomes of calls, right and wrong. */
import { AiError, Tool as AiTool } from "@effect/ai"
import { describe, expect, it } from "@effect/vitest"
import { Agent, type LanguageModel, Tool } from "eddy"
import { Chunk, Data, Effect, Schema, Stream } from "effect"
import { z } from "zod"
import { chunksOf, type finishOf, only, textOf, types } from "../agent/kit.js"
import { expectGrammar } from "../support/grammar.js"
import * as Kit from "./effectAiKit.js"

class NoLuck extends Data.TaggedError("NoLuck")<{ readonly message: string }> {}

const lookUp = Tool.make("look_up", {
  description: "Looks a word up.",
  input: Schema.Struct({ q: Schema.String, n: Schema.optional(Schema.Number) }),
  execute: ({ q }) => Effect.succeed(`about ${q}`)
})

const now = Tool.make("now", { execute: () => Effect.succeed(12) })

const done = Kit.oneByOne(...Kit.text("done"), Kit.ends())

/** A run of two steps: this answer, and one that says `done`. */
const loop = Effect.fnUntraced(function* (
  first: Kit.Turn,
  tools: ReadonlyArray<Tool.Tool<string>> = [lookUp, now]
) {
  const { agent, requests } = yield* Kit.agentOf([first, done], tools)
  const chunks = yield* chunksOf(Agent.stream(agent, "go"))
  expectGrammar(chunks)
  return { chunks, requests }
})

const errorsOf = (chunks: Parameters<typeof finishOf>[0]) =>
  only(chunks, "tool-error").map(({ payload }) => [
    payload.toolCallId,
    payload.error instanceof Error ? payload.error.name : payload.error
  ])

const resultsOf = (chunks: Parameters<typeof finishOf>[0]) =>
  only(chunks, "tool-result").map(({ payload }) => [payload.toolCallId, payload.result])

describe("a tool", () => {
  const told = Effect.fnUntraced(function* (
    tools: ReadonlyArray<Tool.Tool<string>>,
    options: { readonly toolChoice?: LanguageModel.ToolChoice } = {}
  ) {
    const { agent, requests } = yield* Kit.agentOf([done], tools)
    yield* Agent.generate(agent, "go", options)
    const [request] = requests
    if (request === undefined) throw new Error("Nothing was asked")
    return request
  })

  it.effect("is told by its name, its description and its own JSON schema", () =>
    Effect.gen(function* () {
      const zod = Tool.make("by_zod", {
        input: z.object({ city: z.string(), unit: z.enum(["C", "F"]).default("C") }),
        execute: () => Effect.void
      })
      const recursive = {
        $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
        type: "object",
        properties: { node: { $ref: "#/$defs/node" } }
      } as const
      const plain = Tool.make("by_json", { input: recursive, execute: () => Effect.void })
      const tools = [lookUp, now, zod, plain]
      const { tools: seen } = yield* told(tools)
      expect(
        seen.map(tool => ({
          name: tool.name,
          description: AiTool.getDescription(tool as never),
          inputSchema: AiTool.getJsonSchema(tool as never)
        }))
      ).toStrictEqual(tools.map(({ definition }) => ({ description: undefined, ...definition })))
      expect(seen.every(AiTool.isUserDefined)).toBe(true)
    })
  )

  it.effect("whose schema does not say what it is is told as an object", () =>
    Effect.gen(function* () {
      const { model, requests } = yield* Kit.agentOf([done])
      const begun = model.answer(
        {
          messages: [],
          tools: [{ name: "loose", inputSchema: { properties: { a: {} } } }],
          includeRawChunks: false
        },
        new AbortController().signal
      )
      if (Effect.isEffect(begun)) yield* begun
      expect(AiTool.getJsonSchema(requests[0]?.tools[0] as never)).toStrictEqual({
        type: "object",
        properties: { a: {} }
      })
    })
  )

  it.effect("may be chosen", () =>
    Effect.gen(function* () {
      expect((yield* told([now])).toolChoice).toBe("auto")
      expect((yield* told([now], { toolChoice: "required" })).toolChoice).toBe("required")
      expect((yield* told([now], { toolChoice: "none" })).toolChoice).toBe("none")
      expect(
        (yield* told([now], { toolChoice: { type: "tool", toolName: "now" } })).toolChoice
      ).toStrictEqual({
        tool: "now"
      })
      const without = yield* told([], { toolChoice: "required" })
      expect([without.tools, without.toolChoice]).toStrictEqual([[], "none"])
    })
  )
})

describe("a run of two steps", () => {
  it.effect("hands the reasoning's signature and the call back as they came, with the result", () =>
    Effect.gen(function* () {
      const signature = "EqQBCgIYAhIM+/==\u00e9"
      const { chunks, requests } = yield* loop(
        Kit.oneByOne(
          { type: "reasoning-start", id: "0" },
          { type: "reasoning-delta", id: "0", delta: "I should " },
          { type: "reasoning-delta", id: "0", delta: "look." },
          {
            type: "reasoning-delta",
            id: "0",
            delta: "",
            metadata: { anthropic: { type: "thinking", signature } }
          },
          { type: "reasoning-end", id: "0" },
          { type: "text-start", id: "1", metadata: { openai: { itemId: "msg_1" } } },
          { type: "text-delta", id: "1", delta: "One moment." },
          { type: "text-end", id: "1" },
          ...Kit.writes("c1", "look_up", '{"q":', '"rain"}'),
          { type: "tool-params-end", id: "c1" },
          {
            type: "tool-call",
            id: "c1",
            name: "look_up",
            params: { q: "rain" },
            metadata: { openai: { itemId: "fc_1" } }
          },
          Kit.ends("tool-calls")
        )
      )
      expect(types(chunks).slice(types(chunks).indexOf("tool-call-input-streaming-start"), -6)).toStrictEqual(
        [
          "tool-call-input-streaming-start",
          "tool-call-delta",
          "tool-call-delta",
          "tool-call-input-streaming-end",
          "tool-call",
          "tool-result",
          "step-finish"
        ]
      )
      expect(only(chunks, "tool-call-delta").map(chunk => chunk.payload.argsTextDelta)).toStrictEqual([
        '{"q":',
        '"rain"}'
      ])
      expect(Kit.promptOf(requests[1])).toMatchObject([
        { role: "user" },
        {
          role: "assistant",
          content: [
            {
              type: "reasoning",
              text: "I should look.",
              options: { anthropic: { type: "thinking", signature } }
            },
            { type: "text", text: "One moment.", options: { openai: { itemId: "msg_1" } } },
            {
              type: "tool-call",
              id: "c1",
              name: "look_up",
              params: { q: "rain" },
              providerExecuted: false,
              options: { openai: { itemId: "fc_1" } }
            }
          ]
        },
        {
          role: "tool",
          content: [
            { type: "tool-result", id: "c1", name: "look_up", isFailure: false, result: "about rain" }
          ]
        }
      ])
      expect(textOf(chunks)).toBe("One moment.done")
    })
  )

  it.effect("answers several calls at once, in call order", () =>
    Effect.gen(function* () {
      const { chunks, requests } = yield* loop(
        Kit.atOnce(
          Kit.call("c1", "look_up", { q: "a" }),
          Kit.call("c2", "now", {}),
          Kit.call("c3", "look_up", { q: "b" }),
          Kit.ends("tool-calls")
        )
      )
      expect(resultsOf(chunks)).toStrictEqual([
        ["c1", "about a"],
        ["c2", 12],
        ["c3", "about b"]
      ])
      expect(Kit.promptOf(requests[1])).toMatchObject([
        {},
        { content: [{ id: "c1" }, { id: "c2" }, { id: "c3" }] },
        {
          content: [
            { id: "c1", result: "about a" },
            { id: "c2", result: 12 },
            { id: "c3", result: "about b" }
          ]
        }
      ])
    })
  )

  it.effect("executes a tool without arguments, whatever a provider sends for them", () =>
    Effect.gen(function* () {
      for (const params of [{}, undefined, null, ""]) {
        const { chunks } = yield* loop(Kit.oneByOne(Kit.call("c1", "now", params), Kit.ends("tool-calls")))
        expect(resultsOf(chunks)).toStrictEqual([["c1", 12]])
      }
    })
  )

  it.effect("executes tools that return nothing, and tools that cannot fail", () =>
    Effect.gen(function* () {
      const quiet = Tool.make("quiet", { success: Schema.Void, execute: () => Effect.void })
      const failing = Tool.make("failing", { execute: () => Effect.fail(new NoLuck({ message: "no luck" })) })
      const { chunks } = yield* loop(
        Kit.oneByOne(Kit.call("c1", "quiet", {}), Kit.call("c2", "failing", {}), Kit.ends("tool-calls")),
        [quiet, failing]
      )
      expect(only(chunks, "tool-result")).toHaveLength(1)
      expect(errorsOf(chunks)).toStrictEqual([["c2", "NoLuck"]])
      expect(textOf(chunks)).toBe("done")
    })
  )

  it.effect("says the same with tools as without, when the model calls none", () =>
    Effect.gen(function* () {
      const quiet = Tool.make("quiet", { success: Schema.Void, execute: () => Effect.void })
      const turn = Kit.oneByOne(...Kit.text("Hel", "lo"), Kit.ends())
      const plain = yield* loop(turn, [])
      const equipped = yield* loop(turn, [quiet, lookUp])
      const said = (chunks: typeof plain.chunks) => chunks.map(({ type }) => type).join(" ") + textOf(chunks)
      expect(said(equipped.chunks)).toBe(said(plain.chunks))
    })
  )
})

describe("a wrong call is told to the model, and the run goes on:", () => {
  it.effect("arguments of a wrong type, or of none at all", () =>
    Effect.gen(function* () {
      const wrong = [{ q: 1 }, {}, [], null, "rain", 3, { q: "a", n: "b" }]
      for (const params of wrong) {
        const { chunks, requests } = yield* loop(
          Kit.oneByOne(Kit.call("c1", "look_up", params), Kit.call("c2", "now", {}), Kit.ends("tool-calls"))
        )
        expect(errorsOf(chunks)).toStrictEqual([["c1", "InvalidToolArguments"]])
        expect(resultsOf(chunks)).toStrictEqual([["c2", 12]])
        expect(Kit.promptOf(requests[1])).toMatchObject([
          {},
          {},
          {
            content: [
              { id: "c1", isFailure: true },
              { id: "c2", isFailure: false }
            ]
          }
        ])
      }
    })
  )

  it.effect("arguments that are no JSON, handed on by the provider", () =>
    Effect.gen(function* () {
      const { chunks } = yield* loop(
        Kit.oneByOne(
          ...Kit.writes("c1", "look_up", '{"q": rain'),
          Kit.call("c1", "look_up", '{"q": rain'),
          Kit.ends()
        )
      )
      expect(errorsOf(chunks)).toStrictEqual([["c1", "InvalidToolArguments"]])
      expect(textOf(chunks)).toBe("done")
    })
  )

  /** What provider modules do with arguments that they cannot parse. */
  const parsing = (id: string, name: string, params: string, ...rest: ReadonlyArray<Kit.Encoded>): Kit.Turn =>
    Stream.unwrap(
      Effect.try({
        try: () => AiTool.unsafeSecureJsonParse(params),
        catch: cause =>
          new AiError.MalformedOutput({
            module: "AcmeLanguageModel",
            method: "makeStreamResponse",
            description: `Failed to securely parse tool call parameters for tool '${name}':\nParameters: ${params}`,
            cause
          })
      }).pipe(Effect.map(parsed => Kit.oneByOne(Kit.call(id, name, parsed), ...rest)))
    )

  it.effect("arguments that are no JSON, at which the provider fails", () =>
    Effect.gen(function* () {
      const written = '{"q": rain'
      const first = Kit.oneByOne(
        ...Kit.text("Hm."),
        ...Kit.writes("c0", "now", "{}"),
        Kit.call("c0", "now", {}),
        ...Kit.writes("c1", "look_up", written)
      ).pipe(Stream.concat(parsing("c1", "look_up", written, Kit.ends("tool-calls"))))
      const { chunks, requests } = yield* loop(first)
      expect(errorsOf(chunks)).toStrictEqual([["c1", "InvalidToolArguments"]])
      expect(resultsOf(chunks)).toStrictEqual([["c0", 12]])
      expect(only(chunks, "step-finish")[0]?.payload).toMatchObject({
        stepResult: { reason: "tool-calls", isContinued: true },
        output: { usage: {} }
      })
      expect(Kit.promptOf(requests[1])).toMatchObject([
        {},
        { content: [{ text: "Hm." }, { id: "c0" }, { id: "c1", params: { malformedArguments: written } }] },
        { content: [{ id: "c0" }, { id: "c1", isFailure: true }] }
      ])
      expect(textOf(chunks)).toBe("Hm.done")
    })
  )

  it.effect("arguments that are no JSON, of two calls", () =>
    Effect.gen(function* () {
      const first = Kit.oneByOne(
        ...Kit.writes("c0", "look_up", "{oh"),
        Kit.call("c0", "look_up", "{oh"),
        ...Kit.writes("c1", "look_up", "{oops")
      ).pipe(Stream.concat(parsing("c1", "look_up", "{oops")))
      const { chunks } = yield* loop(first)
      expect(errorsOf(chunks)).toStrictEqual([
        ["c0", "InvalidToolArguments"],
        ["c1", "InvalidToolArguments"]
      ])
    })
  )

  it.effect("no arguments at all, at which the provider fails", () =>
    Effect.gen(function* () {
      const first = Kit.oneByOne(
        ...Kit.writes("c0", "now"),
        Kit.call("c0", "now", {}),
        ...Kit.writes("c1", "now")
      ).pipe(Stream.concat(parsing("c1", "now", "")))
      const { chunks } = yield* loop(first)
      expect(resultsOf(chunks)).toStrictEqual([
        ["c0", 12],
        ["c1", 12]
      ])
    })
  )

  it.effect("but arguments that a provider refuses to read are not read here either", () =>
    Effect.gen(function* () {
      const written = '{"__proto__": {}}'
      const first = Kit.oneByOne(...Kit.writes("c1", "now", written)).pipe(
        Stream.concat(parsing("c1", "now", written))
      )
      const { agent } = yield* Kit.agentOf([first], [now])
      expect(yield* Effect.flip(Agent.generate(agent, "go"))).toMatchObject({ reason: "stream" })
    })
  )

  it.effect("but arguments that nobody has seen are not made up", () =>
    Effect.gen(function* () {
      const first = Stream.concat(Kit.oneByOne(...Kit.writes("c1", "now")), parsing("c1", "now", "{oops"))
      const { agent } = yield* Kit.agentOf([first], [now])
      const error = yield* Effect.flip(Agent.generate(agent, "go"))
      expect(error).toMatchObject({
        _tag: "ModelError",
        reason: "stream",
        message: "Failed to securely parse tool call parameters for tool 'now'."
      })
    })
  )

  it.effect("a tool that is not offered, whatever comes with it", () =>
    Effect.gen(function* () {
      const unknown = [Kit.call("c1", "look_in", { q: 1 }), Kit.call("c2", "now", {})]
      const { chunks, requests } = yield* loop(
        Stream.fromChunks(Chunk.fromIterable(Kit.text("Hm.")), Chunk.fromIterable(unknown))
      )
      expect(errorsOf(chunks)).toStrictEqual([["c1", "ToolNotFound"]])
      expect(resultsOf(chunks)).toStrictEqual([["c2", 12]])
      expect(Kit.promptOf(requests[1])).toMatchObject([
        {},
        { content: [{ text: "Hm." }, { id: "c1", name: "look_in", params: { q: 1 } }, { id: "c2" }] },
        { content: [{ id: "c1", isFailure: true }, { id: "c2" }] }
      ])
    })
  )

  it.effect("a tool that is not offered, in a chunk that holds the usage too", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: 2, outputTokens: 3, totalTokens: 5 }
      const { chunks } = yield* loop(
        Kit.atOnce(...Kit.writes("c1", "look_in", "{}"), Kit.call("c1", "look_in", {}), {
          type: "finish",
          reason: "tool-calls",
          usage
        })
      )
      expect(errorsOf(chunks)).toStrictEqual([["c1", "ToolNotFound"]])
      expect(only(chunks, "step-finish")[0]?.payload.output.usage).toStrictEqual(usage)
    })
  )

  it.effect("a tool where none is offered", () =>
    Effect.gen(function* () {
      const { chunks } = yield* loop(Kit.oneByOne(Kit.call("c1", "look_up", {}), Kit.ends("tool-calls")), [])
      expect(errorsOf(chunks)).toStrictEqual([["c1", "ToolNotFound"]])
      expect(textOf(chunks)).toBe("done")
    })
  )

  it.effect("but what else cannot be read fails the run", () =>
    Effect.gen(function* () {
      const wrong: Kit.Turn = Stream.make(Kit.call("c1", "look_in", {}), {
        type: "text-delta",
        id: "0",
        delta: 3
      } as never)
      const { agent } = yield* Kit.agentOf([wrong], [now])
      const error = yield* Effect.flip(Agent.generate(agent, "go"))
      expect(error).toMatchObject({
        _tag: "ModelError",
        reason: "request",
        message: "The provider sent something that could not be read."
      })
    })
  )
})

describe("a tool that the provider executes", () => {
  const search = AiTool.providerDefined({
    id: "acme.search",
    toolkitName: "AcmeSearch",
    providerName: "search",
    args: { limit: Schema.Number },
    parameters: { q: Schema.String },
    success: Schema.Struct({ hits: Schema.Number })
  })({ limit: 3 })

  const called = (params: unknown): Kit.Encoded => ({
    type: "tool-call",
    id: "p1",
    name: "AcmeSearch",
    params,
    providerName: "search",
    providerExecuted: true
  })

  const answered = (result: unknown, isFailure = false): Kit.Encoded => ({
    type: "tool-result",
    id: "p1",
    name: "AcmeSearch",
    result,
    isFailure,
    providerName: "search",
    providerExecuted: true,
    metadata: { acme: { took: 1 } }
  })

  const run = Effect.fnUntraced(function* (...parts: ReadonlyArray<Kit.Encoded>) {
    const turns = [Kit.oneByOne(...parts, Kit.call("c1", "now", {}), Kit.ends("tool-calls")), done]
    const { agent, requests } = yield* Kit.agentOf(turns, [now], { providerTools: [search] })
    const chunks = yield* chunksOf(Agent.stream(agent, "go"))
    expectGrammar(chunks)
    return { chunks, requests }
  })

  it.effect("is offered beside the agent's, and told with its result", () =>
    Effect.gen(function* () {
      const { chunks, requests } = yield* run(
        { type: "tool-params-start", id: "p1", name: "AcmeSearch", providerExecuted: true },
        { type: "tool-params-delta", id: "p1", delta: '{"q":"x"}' },
        { type: "tool-params-end", id: "p1" },
        called({ q: "x" }),
        answered({ hits: 2 })
      )
      expect(requests[0]?.tools.map(tool => [tool.id, AiTool.isProviderDefined(tool)])).toStrictEqual([
        ["@effect/ai/Tool/now", false],
        ["acme.search", true]
      ])
      expect(requests[0]?.tools[1]).toMatchObject({ args: { limit: 3 }, providerName: "search" })
      expect(only(chunks, "tool-call-input-streaming-start")[0]?.payload.providerExecuted).toBe(true)
      expect(only(chunks, "tool-result")[0]?.payload).toStrictEqual({
        toolCallId: "p1",
        toolName: "AcmeSearch",
        args: { q: "x" },
        result: { hits: 2 },
        providerExecuted: true,
        providerMetadata: { acme: { took: 1 } }
      })
      expect(Kit.promptOf(requests[1])).toMatchObject([
        {},
        {
          content: [
            { type: "tool-call", id: "p1", name: "AcmeSearch", params: { q: "x" }, providerExecuted: true },
            {
              type: "tool-result",
              id: "p1",
              name: "AcmeSearch",
              result: { hits: 2 },
              providerExecuted: true
            },
            { type: "tool-call", id: "c1" }
          ]
        },
        { content: [{ id: "c1" }] }
      ])
    })
  )

  it.effect("may send what its own schemas do not know", () =>
    Effect.gen(function* () {
      const { chunks } = yield* run(called({ query: [1] }), answered({ type: "error", code: "busy" }, true))
      expect(only(chunks, "tool-result")[0]?.payload).toMatchObject({
        args: { query: [1] },
        result: { type: "error", code: "busy" },
        isError: true
      })
    })
  )

  it.effect("is left as it was", () =>
    Effect.gen(function* () {
      const { parametersSchema, successSchema } = search
      yield* run(called({ q: "x" }), answered({ hits: 2 }))
      expect([search.parametersSchema, search.successSchema]).toStrictEqual([parametersSchema, successSchema])
    })
  )
})

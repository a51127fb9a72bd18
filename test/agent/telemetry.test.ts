/** What OpenTelemetry is told of runs: the shape of traces, attributes, statuses. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Telemetry, ThreadStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Exit, Fiber, Layer, Schema, Scope, Stream } from "effect"
import { call, chunksOf, errorOf, evenly, failing, finish, inTime, modelOf, refusal, settle } from "./kit.js"
import { memory, reply, toolCall } from "./memoryKit.js"
import { ERROR, endOf, OK, Traces } from "./telemetryKit.js"

const { hang } = ScriptedModel

const usage = { inputTokens: 10, outputTokens: 4, cachedInputTokens: 6, reasoningTokens: 1 }

const look = Tool.make("look", {
  description: "Looks at something.",
  input: Schema.Struct({ at: Schema.String }),
  execute: ({ at }) => Effect.succeed({ seen: at }).pipe(Effect.withSpan("inside"))
})

const looking = [toolCall("c1", "look", { at: "the sea" }), finish("tool-calls", usage)]

const looker = () =>
  Agent.make({
    id: "looker",
    name: "Looker",
    description: "Looks.",
    instructions: "Be brief.",
    model: ScriptedModel.make([looking, reply("The sea is calm.", usage)], {
      provider: "openai.responses",
      modelId: "gpt-test"
    }),
    tools: [look],
    modelSettings: {
      temperature: 0.5,
      maxOutputTokens: 100,
      topP: 0.9,
      stopSequences: ["END"],
      seed: 7,
      headers: { authorization: "Bearer secret-key" }
    }
  })

const everything = ({ spans }: Traces): string =>
  JSON.stringify(spans.map(({ attributes, events, name, status }) => ({ attributes, events, name, status })))

describe("the trace of a run", () => {
  const expected = [
    ["invoke_agent Looker", ["chat gpt-test"], ["execute_tool look", ["inside"]], ["chat gpt-test"]]
  ]

  it.effect("is the same of a stream, a hot run and a result", () =>
    Effect.gen(function* () {
      const ways: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        chunksOf(Agent.stream(looker(), "Look")),
        Effect.scoped(Effect.flatMap(Agent.run(looker(), "Look"), output => output.text)),
        Agent.generate(looker(), "Look")
      ]
      for (const way of ways) {
        const traces = new Traces()
        yield* Effect.provide(way, traces.layer)
        expect(traces.trees).toEqual(expected)
        expect(traces.unfinished).toEqual([])
        for (const span of traces.spans) expect(endOf(span)).toEqual({ code: OK })
      }
    })
  )

  it.effect("tells what the conventions ask for, and no contents", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const run = chunksOf(Agent.stream(looker(), "Look", { memory, runId: "run-7" }))
      yield* Effect.provide(run, Layer.merge(traces.layer, ThreadStore.layerMemory))
      expect(traces.only("invoke_agent Looker").attributes).toEqual({
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": "looker",
        "gen_ai.agent.name": "Looker",
        "gen_ai.agent.description": "Looks.",
        "gen_ai.conversation.id": "t1",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-test",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 8,
        "gen_ai.usage.cache_read.input_tokens": 12,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "eddy.run.id": "run-7"
      })
      const [first] = traces.named("chat gpt-test")
      expect(first?.attributes).toEqual({
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-test",
        "gen_ai.request.stream": true,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.stop_sequences": ["END"],
        "gen_ai.request.seed": 7,
        "gen_ai.response.finish_reasons": ["tool_call"],
        "gen_ai.response.time_to_first_chunk": 0,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 6,
        "gen_ai.usage.reasoning.output_tokens": 1
      })
      expect(traces.only("execute_tool look").attributes).toEqual({
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Looks at something.",
        "gen_ai.tool.call.id": "c1"
      })
      expect(traces.spans.map(({ kind }) => kind)).toEqual([0, 2, 0, 0, 2])
      expect(everything(traces)).not.toMatch(/secret|Be brief|calm|the sea/)
    })
  )

  it.effect("tells what the provider says of its answer", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const model = ScriptedModel.make([
        [{ type: "response-metadata", id: "resp-1", modelId: "gpt-test-2026" }, ...reply("Hi")]
      ])
      yield* Effect.provide(Agent.generate(Agent.make({ id: "a", model }), "Hi"), traces.layer)
      expect(traces.only("chat script").attributes).toMatchObject({
        "gen_ai.provider.name": "scripted",
        "gen_ai.response.id": "resp-1",
        "gen_ai.response.model": "gpt-test-2026"
      })
    })
  )

  it.effect("is below the span that is current where the run is started", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const asked = Effect.withSpan(Agent.generate(looker(), "Look"), "request")
      yield* Effect.provide(asked, traces.layer)
      expect(traces.trees).toEqual([["request", ...expected]])
    })
  )

  it.effect("holds what the caller's functions and the model itself trace", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const { model } = modelOf([
        async function* () {
          yield* reply("Hi")
        }
      ])
      const traced = {
        ...model,
        answer: (...asked: Parameters<typeof model.answer>) =>
          Effect.withSpan(model.answer(...asked) as Effect.Effect<never>, "http")
      }
      const agent = Agent.make({
        id: "a",
        model: traced,
        instructions: () => Effect.withSpan(Effect.succeed("Be brief."), "instructions"),
        prepareStep: () => Effect.withSpan(Effect.succeed(undefined), "prepareStep")
      })
      yield* Effect.provide(Agent.generate(agent, "Hi"), traces.layer)
      expect(traces.trees).toEqual([
        ["invoke_agent a", ["instructions"], ["prepareStep"], ["chat kit-1", ["http"]]]
      ])
    })
  )

  it.effect("carries the annotations of every span", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const run = Effect.annotateSpans(Agent.generate(looker(), "Look"), "tenant", "north")
      yield* Effect.provide(run, traces.layer)
      expect(traces.spans.map(({ attributes }) => attributes["tenant"])).toEqual(Array(5).fill("north"))
    })
  )

  it.effect("is not made where tracing is turned off", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      yield* Effect.provide(Effect.withTracerEnabled(Agent.generate(looker(), "Look"), false), traces.layer)
      expect(traces.trees).toEqual([])
    })
  )

  it.effect("holds the runs of agents that are tools", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const boss = Agent.make({
        id: "boss",
        model: ScriptedModel.make(
          [[toolCall("c1", "agent-looker", { prompt: "Look" }), finish("tool-calls")], reply("Calm.")],
          { modelId: "boss-model" }
        ),
        tools: [Agent.asTool(looker())]
      })
      yield* Effect.provide(Agent.generate(boss, "How is the sea?"), traces.layer)
      expect(traces.trees).toEqual([
        [
          "invoke_agent boss",
          ["chat boss-model"],
          ["execute_tool agent-looker", ...expected],
          ["chat boss-model"]
        ]
      ])
      expect(traces.unfinished).toEqual([])
    })
  )
})

describe("contents", () => {
  it.effect("are told when they are asked for", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const layer = Layer.merge(traces.layer, Telemetry.layer({ captureContent: true }))
      yield* Effect.provide(Agent.generate(looker(), "Look"), layer)
      const read = (name: string, attribute: string, index = 0) =>
        JSON.parse(String(traces.named(name)[index]?.attributes[attribute]))
      const user = { role: "user", parts: [{ type: "text", content: "Look" }] }
      const called = { type: "tool_call", id: "c1", name: "look", arguments: { at: "the sea" } }
      const said = { type: "text", content: "The sea is calm." }
      expect(read("invoke_agent Looker", "gen_ai.input.messages")).toEqual([user])
      expect(read("invoke_agent Looker", "gen_ai.output.messages")).toEqual([
        { role: "assistant", parts: [said], finish_reason: "stop" }
      ])
      expect(read("chat gpt-test", "gen_ai.system_instructions")).toEqual([
        { type: "text", content: "Be brief." }
      ])
      expect(read("chat gpt-test", "gen_ai.input.messages")).toEqual([user])
      expect(read("chat gpt-test", "gen_ai.output.messages")).toEqual([
        { role: "assistant", parts: [called], finish_reason: "tool_call" }
      ])
      expect(read("chat gpt-test", "gen_ai.input.messages", 1)).toEqual([
        user,
        { role: "assistant", parts: [called] },
        {
          role: "tool",
          parts: [{ type: "tool_call_response", id: "c1", response: { seen: "the sea" } }]
        }
      ])
      expect(read("execute_tool look", "gen_ai.tool.call.arguments")).toEqual({ at: "the sea" })
      expect(read("execute_tool look", "gen_ai.tool.call.result")).toEqual({ seen: "the sea" })
      expect(everything(traces)).not.toContain("secret")
      expect(everything(traces)).not.toContain("truncated")
    })
  )

  it.effect("are no longer than allowed", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const layer = Layer.merge(traces.layer, Telemetry.layer({ captureContent: true, contentLimit: 256 }))
      const agent = Agent.make({
        id: "a",
        instructions: "brief ".repeat(500),
        model: ScriptedModel.make([reply("long ".repeat(500))])
      })
      yield* Effect.provide(Agent.generate(agent, "Hi"), layer)
      const { attributes } = traces.only("chat script")
      for (const name of ["gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"]) {
        const text = String(attributes[name])
        expect(text.length).toBeLessThanOrEqual(256)
        expect(JSON.parse(text)).toHaveLength(1)
      }
      expect(attributes["eddy.content.truncated"]).toBe(true)
    })
  )

  it.effect("wrong settings are refused", () =>
    Effect.gen(function* () {
      const refused = (options: object) =>
        Effect.flip(Layer.build(Telemetry.layer(options))).pipe(Effect.scoped)
      expect(yield* refused({ contentLimit: 3 })).toMatchObject({ field: "contentLimit" })
      expect(yield* refused({ captureContent: "yes" })).toMatchObject({ field: "captureContent" })
      expect(yield* refused({ capture: true })).toMatchObject({ field: "capture" })
    })
  )
})

describe("a failure", () => {
  const model = (modelId: string, error: unknown, times: number) =>
    ScriptedModel.make([...Array.from({ length: times }, () => failing(error)), reply("At last.")], {
      modelId
    })

  it.effect("of a model is told by each call, retries and fallbacks too", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const agent = Agent.make({
        id: "a",
        model: [
          {
            model: model("first", refusal(429, { responseHeaders: { cookie: "secret" } }), 9),
            maxRetries: 1
          },
          model("second", refusal(400), 0)
        ]
      })
      const full = yield* inTime(evenly(Effect.provide(Agent.generate(agent, "Hi"), traces.layer)))
      expect(full.text).toBe("At last.")
      expect(traces.trees).toEqual([["invoke_agent a", ["chat first"], ["chat first"], ["chat second"]]])
      expect(traces.spans.map(endOf)).toEqual([
        { code: OK },
        { code: ERROR, error: "429" },
        { code: ERROR, error: "429" },
        { code: OK }
      ])
      expect(traces.spans.map(({ attributes }) => attributes["eddy.chat.retry"])).toEqual([
        undefined,
        undefined,
        1,
        undefined
      ])
      expect(everything(traces)).not.toContain("secret")
    })
  )

  it.effect("of a run is its span's", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const agent = Agent.make({ id: "a", model: model("bad", refusal(401, { message: "No such key" }), 1) })
      yield* Effect.provide(Effect.flip(Agent.generate(agent, "Hi")), traces.layer)
      const span = traces.only("invoke_agent a")
      expect(endOf(span)).toEqual({ code: ERROR, error: "401" })
      expect(span.attributes["gen_ai.response.finish_reasons"]).toEqual(["error"])
      expect(span.status.message).toBe("No such key")
      expect(traces.unfinished).toEqual([])
    })
  )

  it.effect("before a run begins ends its span", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const agent = Agent.make({ id: "a", model: ScriptedModel.make([]) })
      const run = Effect.flip(Agent.generate(agent, "Hi", { activeTools: ["none"] }))
      yield* Effect.provide(run, traces.layer)
      expect(endOf(traces.only("invoke_agent a"))).toEqual({ code: ERROR, error: "InvalidConfiguration" })
      expect(traces.unfinished).toEqual([])
    })
  )

  it.effect("of a tool is told by its span, and no arguments", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const tools = [
        look,
        Tool.make("broken", { execute: () => Effect.die(new RangeError("Out of paper")) }),
        Tool.make("refusing", { execute: () => Effect.succeed({ isError: true, content: [] }) }),
        Tool.make("slow", { timeout: 1000, execute: () => Effect.never })
      ]
      const agent = Agent.make({
        id: "a",
        tools,
        model: ScriptedModel.make([
          [
            call("1", "look", JSON.stringify({ at: { private: 1 } })),
            call("2", "broken"),
            call("3", "refusing"),
            call("4", "slow"),
            call("5", "absent"),
            finish("tool-calls")
          ],
          reply("Done.")
        ])
      })
      yield* inTime(Effect.provide(Agent.generate(agent, "Hi"), traces.layer))
      const ends = traces.spans
        .filter(({ name }) => name.startsWith("execute_tool"))
        .map(span => [span.name, endOf(span)])
      expect(ends).toEqual([
        ["execute_tool look", { code: ERROR, error: "InvalidToolArguments" }],
        ["execute_tool broken", { code: ERROR, error: "RangeError" }],
        ["execute_tool refusing", { code: ERROR, error: "tool_error" }],
        ["execute_tool slow", { code: ERROR, error: "ToolTimedOut" }]
      ])
      expect(traces.only("execute_tool broken").status.message).toBe("Out of paper")
      expect(everything(traces)).not.toContain("private")
      expect(endOf(traces.only("invoke_agent a"))).toEqual({ code: OK })
    })
  )
})

describe("a run that is stopped", () => {
  /** A tool that hears of nothing. */
  const stubborn = Tool.make("stubborn", { execute: () => Effect.uninterruptible(Effect.never) })

  const stuck = () =>
    Agent.make({
      id: "a",
      tools: [stubborn],
      model: ScriptedModel.make([[call("1", "stubborn"), finish("tool-calls")]])
    })

  const silent = () => Agent.make({ id: "a", model: ScriptedModel.make([[hang]]) })

  const isStopped = { code: OK, isStopped: true }

  for (const [what, make, spans] of [
    ["its model", silent, [isStopped, isStopped]],
    ["a tool that hears of nothing", stuck, [isStopped, { code: OK }, isStopped]]
  ] as const) {
    it.live(`by its signal ends every span, and is no failure: ${what}`, () =>
      Effect.gen(function* () {
        const traces = new Traces()
        const controller = new AbortController()
        const stream = Agent.stream(make(), "Hi", { abortSignal: controller.signal })
        const told: Array<string> = []
        // A tool that hears of nothing holds up the end of the stream's scope.
        yield* Stream.runForEach(stream, ({ type }) => Effect.sync(() => void told.push(type))).pipe(
          Effect.provide(traces.layer),
          Effect.forkDaemon
        )
        yield* settle
        controller.abort("enough")
        yield* settle
        expect(told.at(-1)).toBe("finish")
        expect(traces.unfinished).toEqual([])
        expect(traces.spans.map(endOf)).toEqual(spans)
        expect(traces.spans[0]?.attributes["gen_ai.response.finish_reasons"]).toEqual(["aborted"])
      })
    )

    it.live(`by interruption ends every span: ${what}`, () =>
      Effect.gen(function* () {
        const traces = new Traces()
        const fiber = yield* Stream.runDrain(Agent.stream(make(), "Hi")).pipe(
          Effect.provide(traces.layer),
          Effect.forkDaemon
        )
        yield* settle
        yield* Fiber.interruptFork(fiber)
        yield* settle
        expect(traces.unfinished).toEqual([])
        expect(traces.spans.map(endOf)).toEqual(spans)
      })
    )

    it.live(`by the end of its scope ends every span: ${what}`, () =>
      Effect.gen(function* () {
        const traces = new Traces()
        const scope = yield* Scope.make()
        const output = yield* Agent.run(make(), "Hi").pipe(Scope.extend(scope), Effect.provide(traces.layer))
        yield* Effect.forkDaemon(output.drain)
        yield* settle
        yield* Effect.forkDaemon(Scope.close(scope, Exit.void))
        yield* settle
        expect(traces.unfinished).toEqual([])
        expect(traces.spans.map(endOf)).toEqual(spans)
      })
    )
  }

  it.effect("by its time has failed", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const run = Effect.flip(Agent.generate(silent(), "Hi", { timeouts: { run: 1000 } }))
      yield* inTime(Effect.provide(run, traces.layer))
      expect(traces.spans.map(endOf)).toEqual(Array(2).fill({ code: ERROR, error: "RunTimedOut" }))
    })
  )

  it.effect("by a model that says nothing has failed", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const options = { timeouts: { firstContent: 1000 }, maxRetries: 0 }
      const run = Effect.flip(Agent.generate(silent(), "Hi", options))
      yield* inTime(Effect.provide(run, traces.layer))
      expect(traces.spans.map(endOf)).toEqual(Array(2).fill({ code: ERROR, error: "timeout" }))
    })
  )
})

describe("inside a tool", () => {
  it.effect("the span of the call is the current one", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      const seen = yield* Deferred.make<string>()
      const peek = Tool.make("peek", {
        execute: () =>
          Effect.flatMap(Effect.orDie(Effect.currentSpan), ({ spanId }) => Deferred.succeed(seen, spanId))
      })
      const model = ScriptedModel.make([[call("1", "peek"), finish("tool-calls")], reply("Seen.")])
      const agent = Agent.make({ id: "a", model, tools: [peek] })
      const chunks = yield* Effect.provide(chunksOf(Agent.stream(agent, "Hi")), traces.layer)
      expect(errorOf(chunks)).toBeUndefined()
      expect(yield* Deferred.await(seen)).toBe(traces.only("execute_tool peek").spanContext().spanId)
    })
  )
})

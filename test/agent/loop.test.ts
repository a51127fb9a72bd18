/** The loop: what a step does with its calls, when the run goes on, and what the next prompt says. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Errors, Id, type LanguageModel, Message, type ModelPart, Tool } from "eddy"
import * as Facade from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Context, Data, Deferred, Effect, Exit, Layer, Schema, Stream } from "effect"
import { z } from "zod"
import { expectGrammar } from "../support/grammar.js"
import { begin } from "../support/readAnswer.js"
import { call, chunksOf, finish, finishOf, modelOf, only, read, textOf, types } from "./kit.js"

const { finish: ends, text, toolCall } = ScriptedModel

/** Calls these tools in one step, then says `done`. */
const calling = (...calls: ReadonlyArray<ModelPart.ModelPart>) =>
  ScriptedModel.make([
    [...calls, ends("tool-calls")],
    [...text("done"), ends("stop")]
  ])

class OutOfRange extends Data.TaggedError("OutOfRange")<{ readonly message: string }> {}

const agentOf = <const Tools extends ReadonlyArray<Tool.Any> = []>(
  model: LanguageModel.LanguageModel,
  tools?: Tools,
  more: Omit<Agent.Options<Tools>, "id" | "model" | "tools"> = {}
) => Agent.make({ id: "looper", model, ...(tools === undefined ? {} : { tools }), ...more })

const lastOutputs = (request: LanguageModel.ModelRequest | undefined) => {
  const last = request?.messages.at(-1)
  return last?.role === "tool" ? last.content.map(part => part.output) : undefined
}

const lastIds = (request: LanguageModel.ModelRequest | undefined) => {
  const last = request?.messages.at(-1)
  return last?.role === "tool" ? last.content.map(part => part.toolCallId) : undefined
}

const reasonsOf = (chunks: Parameters<typeof finishOf>[0]) =>
  only(chunks, "step-finish").map(chunk => chunk.payload.stepResult)

const echo = Tool.make("echo", {
  input: Schema.Struct({ say: Schema.String }),
  execute: ({ say }) => Effect.succeed(say)
})

describe("tools of a step", () => {
  it.effect("run side by side: results come as they come, and stand in the prompt in call order", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const slow = Tool.make("slow", { execute: () => Effect.as(Deferred.await(gate), "slow") })
      const fast = Tool.make("fast", { execute: () => Effect.succeed("fast") })
      const model = calling(toolCall("c1", "slow", {}), toolCall("c2", "fast", {}))
      // The slow tool ends only when the reader has the other result.
      const { chunks } = yield* read(Agent.stream(agentOf(model, [slow, fast]), "go"), chunk =>
        chunk.type === "tool-result" && chunk.payload.toolCallId === "c2"
          ? Effect.asVoid(Deferred.succeed(gate, undefined))
          : Effect.void
      )
      expectGrammar(chunks)
      expect(only(chunks, "tool-result").map(chunk => chunk.payload.result)).toStrictEqual(["fast", "slow"])
      expect(lastIds(model.requests[1])).toStrictEqual(["c1", "c2"])
    })
  )

  it.effect.each([
    { limit: undefined, most: 10 },
    { limit: 1, most: 1 },
    { limit: 3, most: 3 }
  ])("at most $most at once, in call order", ({ limit, most }) =>
    Effect.gen(function* () {
      let running = 0
      let peak = 0
      const started: Array<string> = []
      const work = Tool.make("work", {
        execute: (_, { toolCallId }) =>
          Effect.gen(function* () {
            started.push(toolCallId)
            peak = Math.max(peak, ++running)
            yield* Effect.yieldNow()
            running--
          })
      })
      const ids = Array.from({ length: 12 }, (_, index) => `c${index}`)
      const model = calling(...ids.map(id => toolCall(id, "work", {})))
      const agent = agentOf(model, [work], limit === undefined ? {} : { toolCallConcurrency: limit })
      const chunks = yield* chunksOf(Agent.stream(agent, "go"))
      expect(peak).toBe(most)
      expect(started).toStrictEqual(ids)
      expect(only(chunks, "tool-result")).toHaveLength(12)
    })
  )

  it.effect("know their call", () =>
    Effect.gen(function* () {
      const contexts: Array<object> = []
      const look = Tool.make("look", {
        execute: (_, { abortSignal, suspend: _suspend, write: _write, writeData: _writeData, ...context }) =>
          Effect.sync(() => {
            contexts.push({ ...context, isAborted: abortSignal.aborted })
          })
      })
      const model = calling(toolCall("c1", "look", {}))
      const stream = Agent.stream(agentOf(model, [look], { instructions: "Look." }), "go", { runId: "r1" })
      yield* chunksOf(stream)
      expect(contexts).toStrictEqual([
        {
          runId: "r1",
          agentId: "looper",
          toolCallId: "c1",
          toolName: "look",
          threadId: undefined,
          resourceId: undefined,
          requestContext: new Map(),
          messages: [Message.system("Look."), Message.user("go")],
          taskId: undefined,
          resumeData: undefined,
          suspendData: undefined,
          isAborted: false
        }
      ])
    })
  )

  it.effect("get what they need from the surroundings of the run", () =>
    Effect.gen(function* () {
      class Greeting extends Context.Tag("Greeting")<Greeting, string>() {}
      const greet = Tool.make("greet", { execute: () => Greeting })
      const stream = Agent.stream(agentOf(calling(toolCall("c1", "greet", {})), [greet]), "go")
      const chunks = yield* Effect.provide(chunksOf(stream), Layer.succeed(Greeting, "moin"))
      expect(only(chunks, "tool-result")[0]?.payload.result).toBe("moin")
    })
  )

  it.effect("of the same id in two steps get ids of their own", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [...text("a", "0"), toolCall("c1", "echo", { say: "one" }), ends("tool-calls")],
        [...text("b", "0"), toolCall("c1", "echo", { say: "two" }), ends("tool-calls")],
        [...text("c", "0"), ends("stop")]
      ])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go"))
      expectGrammar(chunks)
      const results = only(chunks, "tool-result").map(({ payload }) => [payload.toolCallId, payload.result])
      expect(results).toStrictEqual([
        ["c1", "one"],
        ["c1:2", "two"]
      ])
      expect(only(chunks, "text-start").map(chunk => chunk.payload.id)).toStrictEqual(["0", "0:2", "0:3"])
      expect(textOf(chunks)).toBe("abc")
    })
  )
})

describe("what a call comes to", () => {
  const strict = Tool.make("strict", {
    input: Schema.Struct({ n: Schema.Number }),
    success: Schema.Struct({ ok: Schema.Boolean }),
    execute: ({ n }) => (n === 0 ? Effect.fail("zero") : Effect.succeed({ ok: true }))
  })
  const zod = Tool.make("zod", {
    input: z.object({ city: z.string() }),
    execute: ({ city }) => Effect.succeed(city)
  })
  const liar = Tool.make("liar", {
    success: { type: "object", required: ["ok"] },
    execute: () => Effect.succeed({ no: 1 })
  })
  const broken = Tool.make("broken", {
    execute: () => Effect.fail(new OutOfRange({ message: "out of range" }))
  })
  const dying = Tool.make("dying", { execute: () => Effect.die(new TypeError("a defect")) })
  const throwing = Tool.make("throwing", {
    execute: () => {
      throw new TypeError("thrown")
    }
  })
  const tools = [strict, zod, liar, broken, dying, throwing]

  const failures: ReadonlyArray<
    readonly [what: string, call: ModelPart.ModelPart, error: unknown, told: RegExp]
  > = [
    ["an unknown tool", toolCall("c", "nobody", {}), Errors.ToolNotFound, /no tool "nobody".*strict, zod/],
    [
      "arguments that break an Effect schema",
      toolCall("c", "strict", { n: "1" }),
      Errors.InvalidToolArguments,
      /"strict": n: Expected number/
    ],
    [
      "arguments that break a zod schema",
      toolCall("c", "zod", {}),
      Errors.InvalidToolArguments,
      /"zod": city: .*string/
    ],
    [
      "arguments that are no JSON",
      call("c", "strict", '{"n": 1'),
      Errors.InvalidToolArguments,
      /"strict" are no JSON/
    ],
    [
      "no arguments where some are needed",
      call("c", "strict", ""),
      Errors.InvalidToolArguments,
      /n: is missing/
    ],
    [
      "an output that breaks its schema",
      toolCall("c", "liar", {}),
      Errors.InvalidToolOutput,
      /"liar" returned a wrong output: ok/
    ],
    ["a failure with an error", toolCall("c", "broken", {}), OutOfRange, /^OutOfRange: out of range$/],
    ["a failure with a value", toolCall("c", "strict", { n: 0 }), Errors.ToolFailed, /^zero$/],
    ["a defect", toolCall("c", "dying", {}), TypeError, /^a defect$/],
    ["a throw", toolCall("c", "throwing", {}), TypeError, /^thrown$/]
  ]

  it.effect.each(failures)("%s is told to the model, and the run goes on", ([, part, error, told]) =>
    Effect.gen(function* () {
      const model = calling(part)
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, tools), "go"))
      expectGrammar(chunks)
      const errors = only(chunks, "tool-error")
      expect(errors).toHaveLength(1)
      expect(only(chunks, "tool-result")).toHaveLength(0)
      expect(errors[0]?.payload.error).toBeInstanceOf(error)
      expect(lastOutputs(model.requests[1])).toStrictEqual([
        { type: "error-text", value: expect.stringMatching(told) }
      ])
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )

  it.effect("arguments that were no JSON stand in the prompt as a value", () =>
    Effect.gen(function* () {
      const model = calling(call("c", "strict", '{"n": 1'))
      yield* chunksOf(Agent.stream(agentOf(model, tools), "go"))
      expect(model.requests[1]?.messages.at(-2)).toStrictEqual({
        role: "assistant",
        content: [
          { type: "tool-call", toolCallId: "c", toolName: "strict", input: { malformedArguments: '{"n": 1' } }
        ]
      })
    })
  )

  const values: ReadonlyArray<readonly [what: string, value: unknown, result: unknown, output: unknown]> = [
    [
      "an error",
      new Error("just a value"),
      new Error("just a value"),
      { type: "json", value: { name: "Error", message: "just a value" } }
    ],
    ["an error-like record", { error: "x" }, { error: "x" }, { type: "json", value: { error: "x" } }],
    ["text", "moin", "moin", { type: "text", value: "moin" }],
    ["nothing", undefined, null, { type: "json", value: null }],
    ["zero", 0, 0, { type: "json", value: 0 }],
    [
      "what JSON cannot hold",
      { n: 1n, at: new Date(0) },
      { n: 1n, at: new Date(0) },
      { type: "json", value: { n: "1", at: "1970-01-01T00:00:00.000Z" } }
    ],
    ["half a surrogate pair", "ok \ud83d", "ok \ud83d", { type: "text", value: "ok \ufffd" }]
  ]

  it.effect.each(values)("%s that is returned is a result", ([, value, result, output]) =>
    Effect.gen(function* () {
      const returns = Tool.make("returns", { execute: () => Effect.succeed(value) })
      const model = calling(toolCall("c", "returns", { a: 1 }))
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [returns]), "go"))
      expect(only(chunks, "tool-error")).toHaveLength(0)
      expect(only(chunks, "tool-result").map(chunk => chunk.payload)).toStrictEqual([
        { toolCallId: "c", toolName: "returns", args: { a: 1 }, result }
      ])
      expect(lastOutputs(model.requests[1])).toStrictEqual([output])
    })
  )

  it.effect.each([
    { what: "without a schema", success: undefined },
    { what: "with a schema that it breaks", success: { type: "object", required: ["temperature"] } }
  ])("a result that says that it is an error is one, $what", ({ success }) =>
    Effect.gen(function* () {
      const result = { isError: true, content: [{ type: "text", text: "bad key" }] }
      const mcp = Tool.make("mcp", {
        ...(success === undefined ? {} : { success }),
        execute: () => Effect.succeed(result)
      })
      const model = calling(toolCall("c", "mcp", {}))
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [mcp]), "go"))
      expect(only(chunks, "tool-result").map(chunk => chunk.payload)).toStrictEqual([
        { toolCallId: "c", toolName: "mcp", args: {}, result, isError: true }
      ])
      expect(lastOutputs(model.requests[1])).toStrictEqual([{ type: "error-text", value: "bad key" }])
    })
  )

  it.effect.each(["length", "content-filter"] as const)(
    "an answer cut by %s executes nothing: each call has a failure, and the run ends",
    reason =>
      Effect.gen(function* () {
        let executions = 0
        const write = Tool.make("write", {
          input: { type: "object" },
          execute: () => Effect.sync(() => executions++)
        })
        const client = Tool.make("client", {})
        const model = ScriptedModel.make([
          [
            toolCall("c1", "write", { path: "a", content: "trunc" }),
            toolCall("c2", "client", {}),
            { type: "tool-input-start", id: "c3", toolName: "write" },
            { type: "tool-input-delta", id: "c3", delta: '{"path":' },
            ends(reason)
          ]
        ])
        const chunks = yield* chunksOf(Agent.stream(agentOf(model, [write, client]), "go"))
        expectGrammar(chunks)
        expect(executions).toBe(0)
        const errors = only(chunks, "tool-error").map(({ payload }) => payload)
        expect(errors.map(({ toolCallId }) => toolCallId)).toStrictEqual(["c1", "c2", "c3"])
        for (const { error } of errors) expect(error).toBeInstanceOf(Errors.ToolCallCutOff)
        expect(finishOf(chunks).stepResult).toStrictEqual({ reason, isContinued: false })
        expect(finishOf(chunks).messages.all.map(({ role }) => role)).toStrictEqual([
          "user",
          "assistant",
          "tool"
        ])
      })
  )
})

describe("going on", () => {
  it.effect.each(["stop", "other", "tool-calls"] as const)(
    "complete calls continue the run, also when the provider says %s",
    reason =>
      Effect.gen(function* () {
        const model = ScriptedModel.make([
          [toolCall("c1", "echo", { say: "a" }), { ...finish(reason), rawReason: "raw-word" }],
          [...text("ok"), ends("stop")]
        ])
        const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go"))
        expect(model.requests).toHaveLength(2)
        expect(reasonsOf(chunks)).toStrictEqual([
          { reason: "tool-calls", rawReason: "raw-word", isContinued: true },
          { reason: "stop", isContinued: false }
        ])
        expect(types(chunks).filter(type => type === "finish" || type === "start")).toHaveLength(2)
      })
  )

  it.effect("a provider that says tool-calls and calls nothing has stopped", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([[...text("ok"), ends("tool-calls")]])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go"))
      expect(finishOf(chunks).stepResult).toStrictEqual({
        reason: "stop",
        rawReason: "tool-calls",
        isContinued: false
      })
    })
  )

  it.effect("a call of the provider's own is not executed here and continues nothing", () =>
    Effect.gen(function* () {
      let executions = 0
      const search = Tool.make("search", { execute: () => Effect.sync(() => executions++) })
      const result = { type: "tool-result", toolCallId: "p1", toolName: "search", result: ["hit"] } as const
      const model = ScriptedModel.make([
        [
          { type: "tool-call", toolCallId: "p1", toolName: "search", input: "{}", providerExecuted: true },
          result,
          ...text("found"),
          ends("tool-calls")
        ]
      ])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [search]), "go"))
      expectGrammar(chunks)
      expect(executions).toBe(0)
      expect(only(chunks, "tool-result").map(chunk => chunk.payload)).toStrictEqual([
        { toolCallId: "p1", toolName: "search", args: {}, result: ["hit"], providerExecuted: true }
      ])
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
      expect(finishOf(chunks).response.messages).toStrictEqual([
        {
          role: "assistant",
          content: [
            { type: "tool-call", toolCallId: "p1", toolName: "search", input: {}, providerExecuted: true },
            {
              type: "tool-result",
              toolCallId: "p1",
              toolName: "search",
              output: { type: "json", value: ["hit"] }
            },
            { type: "text", text: "found" }
          ]
        }
      ])
    })
  )

  it.effect("a call that the provider answered is not executed, whether it said so before or not", () =>
    Effect.gen(function* () {
      let executions = 0
      const search = Tool.make("search", { execute: () => Effect.sync(() => executions++) })
      const model = ScriptedModel.make([
        [
          toolCall("p1", "search", {}),
          { type: "tool-result", toolCallId: "p1", toolName: "search", result: 1 },
          ends("stop")
        ]
      ])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [search]), "go"))
      expectGrammar(chunks)
      expect(executions).toBe(0)
    })
  )

  it.effect("a result that the provider owes may come with a later answer", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [
          { type: "tool-call", toolCallId: "p1", toolName: "code", input: "{}", providerExecuted: true },
          toolCall("c1", "echo", { say: "a" }),
          ends("tool-calls")
        ],
        [{ type: "tool-result", toolCallId: "p1", toolName: "code", result: 1 }, ...text("ok"), ends("stop")]
      ])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go"))
      expectGrammar(chunks)
      expect(only(chunks, "tool-call").map(chunk => chunk.payload.toolCallId)).toStrictEqual(["p1", "c1"])
      expect(only(chunks, "tool-result").map(chunk => chunk.payload.toolCallId)).toStrictEqual(["c1", "p1"])
    })
  )

  it.effect("a tool of the client's ends the run, and the client's result begins the next", () =>
    Effect.gen(function* () {
      const ask = Tool.make("ask", { input: Schema.Struct({ q: Schema.String }) })
      const model = ScriptedModel.make([
        [toolCall("c1", "ask", { q: "?" }), toolCall("c2", "echo", { say: "a" }), ends("tool-calls")],
        [...text("thanks"), ends("stop")]
      ])
      const agent = agentOf(model, [ask, echo])
      const chunks = yield* chunksOf(Agent.stream(agent, "go"))
      expectGrammar(chunks)
      expect(model.requests).toHaveLength(1)
      expect(only(chunks, "tool-result").map(chunk => chunk.payload.toolCallId)).toStrictEqual(["c2"])
      expect(finishOf(chunks).stepResult).toStrictEqual({
        reason: "tool-calls",
        isContinued: false,
        stoppedBy: "client-tool"
      })
      const { all } = finishOf(chunks).messages
      const said: Message.Message = {
        role: "tool",
        content: [
          { type: "tool-result", toolCallId: "c1", toolName: "ask", output: { type: "text", value: "yes" } }
        ]
      }
      yield* chunksOf(Agent.stream(agent, [...all, said]))
      expect(lastOutputs(model.requests[1])).toStrictEqual([
        { type: "text", value: "yes" },
        { type: "text", value: "a" }
      ])
    })
  )

  const restless = () =>
    ScriptedModel.make(
      Array.from({ length: 8 }, (_, index) => [
        toolCall(`c${index}`, "echo", { say: "a" }),
        ends("tool-calls")
      ])
    )

  it.effect.each([
    { maxSteps: undefined, calls: 5 },
    { maxSteps: 1, calls: 1 },
    { maxSteps: 3, calls: 3 }
  ])("at most $calls steps with maxSteps $maxSteps, and finish says why", ({ calls, maxSteps }) =>
    Effect.gen(function* () {
      const model = restless()
      const options = maxSteps === undefined ? {} : { maxSteps }
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go", options))
      expectGrammar(chunks)
      expect(model.requests).toHaveLength(calls)
      expect(finishOf(chunks).stepResult).toStrictEqual({
        reason: "tool-calls",
        isContinued: false,
        stoppedBy: "max-steps"
      })
      expect(finishOf(chunks).output.text).toBe("")
    })
  )

  it.effect("stops when any condition says so, beside maxSteps", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const model = restless()
      const chunks = yield* chunksOf(
        Agent.stream(agentOf(model, [echo], { maxSteps: 7 }), "go", {
          stopWhen: [
            ({ steps }) => {
              seen.push(steps.length)
              return false
            },
            ({ steps }) => Effect.as(Effect.yieldNow(), steps.length === 2)
          ]
        })
      )
      expectGrammar(chunks)
      expect(seen).toStrictEqual([1, 2])
      expect(model.requests).toHaveLength(2)
      expect(finishOf(chunks).stepResult.stoppedBy).toBe("stop-when")
    })
  )

  it.effect(
    "a condition sees all results of the last step in call order, and is not asked of a step that stops",
    () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const send = Tool.make("send", { execute: () => Effect.as(Deferred.await(gate), "sent") })
        const end = Tool.make("end", { execute: () => Effect.as(Deferred.succeed(gate, undefined), "ended") })
        const seen: Array<unknown> = []
        const model = calling(
          toolCall("c1", "send", {}),
          toolCall("c2", "end", {}),
          toolCall("c3", "nobody", {})
        )
        const chunks = yield* chunksOf(
          Agent.stream(agentOf(model, [send, end]), "go", {
            stopWhen: ({ steps }) => {
              const last = steps.at(-1)
              seen.push({
                text: last?.text,
                results: last?.toolResults.map(chunk => chunk.payload.result),
                errors: last?.toolErrors.map(chunk => chunk.payload.toolCallId)
              })
              return false
            }
          })
        )
        expect(only(chunks, "tool-result").map(chunk => chunk.payload.result)).toStrictEqual([
          "ended",
          "sent"
        ])
        expect(seen).toStrictEqual([{ text: "", results: ["sent", "ended"], errors: ["c3"] }])
        expect(finishOf(chunks).stepResult.reason).toBe("stop")
      })
  )

  it.effect("results are told while a condition takes its time", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const model = calling(toolCall("c1", "echo", { say: "a" }))
      const stream = Agent.stream(agentOf(model, [echo]), "go", {
        stopWhen: () => Effect.as(Deferred.await(gate), true)
      })
      const { chunks } = yield* read(stream, chunk =>
        chunk.type === "tool-result" ? Effect.asVoid(Deferred.succeed(gate, undefined)) : Effect.void
      )
      expect(finishOf(chunks).stepResult.stoppedBy).toBe("stop-when")
    })
  )

  it.effect.each([
    {
      how: "throws",
      stopWhen: () => {
        throw new Error("oh no")
      }
    },
    { how: "dies", stopWhen: () => Effect.die("oh no") }
  ])("a condition that $how fails the run, and the step is told whole", ({ stopWhen }) =>
    Effect.gen(function* () {
      const model = calling(toolCall("c1", "echo", { say: "a" }))
      const { chunks, exit } = yield* read(Agent.stream(agentOf(model, [echo]), "go", { stopWhen }))
      expectGrammar(chunks)
      expect(types(chunks).slice(-3)).toStrictEqual(["step-finish", "error", "finish"])
      const error = only(chunks, "error")[0]?.payload.error
      expect(error).toBeInstanceOf(Errors.InvalidConfiguration)
      expect(error).toMatchObject({ field: "stopWhen", message: expect.stringContaining("oh no") })
      expect(exit).toStrictEqual(Exit.fail(error))
      expect(finishOf(chunks).messages.all).toHaveLength(3)
    })
  )
})

describe("the conversation", () => {
  it.effect("keeps parts in the order of their first words, and every word", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [
          { type: "text-start", id: "0" },
          { type: "text-delta", id: "0", delta: "I will " },
          toolCall("c1", "echo", { say: "x" }),
          { type: "text-delta", id: "0", delta: "look" },
          { type: "text-end", id: "0" },
          ends("tool-calls")
        ],
        [{ type: "text-delta", id: "0", delta: "done" }, ends("stop")]
      ])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go"))
      expectGrammar(chunks)
      expect(finishOf(chunks).response.messages).toStrictEqual([
        {
          role: "assistant",
          content: [
            { type: "text", text: "I will look" },
            { type: "tool-call", toolCallId: "c1", toolName: "echo", input: { say: "x" } }
          ]
        },
        {
          role: "tool",
          content: [
            { type: "tool-result", toolCallId: "c1", toolName: "echo", output: { type: "text", value: "x" } }
          ]
        },
        { role: "assistant", content: [{ type: "text", text: "done" }] }
      ])
      expect(finishOf(chunks).response.uiMessages[0]?.parts.map(part => part["type"])).toStrictEqual([
        "step-start",
        "text",
        "tool-echo",
        "step-start",
        "text"
      ])
      expect(finishOf(chunks).output.text).toBe("I will lookdone")
    })
  )

  it.effect("holds no half of a surrogate pair, and joins those that were cut in two", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [
          { type: "text-delta", id: "0", delta: "a\ud83d" },
          { type: "text-delta", id: "0", delta: "\ude00b\ud83d" },
          { type: "tool-input-start", id: "c1", toolName: "echo" },
          { type: "tool-input-delta", id: "c1", delta: '{"say":"\ud83d' },
          { type: "tool-input-delta", id: "c1", delta: '\ude00 \\ud83d"}' },
          ends("tool-calls")
        ],
        [...text("ok"), ends("stop")]
      ])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go"))
      expectGrammar(chunks)
      expect(textOf(chunks)).toBe("a😀b\ufffdok")
      const args = only(chunks, "tool-call-delta").map(chunk => chunk.payload.argsTextDelta)
      expect(args.join("")).toBe('{"say":"😀 \\ud83d"}')
      expect(args.every(delta => delta.isWellFormed())).toBe(true)
      const [assistant, tool] = model.requests[1]?.messages.slice(-2) ?? []
      expect(assistant?.content).toStrictEqual([
        { type: "text", text: "a😀b\ufffd" },
        { type: "tool-call", toolCallId: "c1", toolName: "echo", input: { say: "😀 \ufffd" } }
      ])
      expect(tool?.content).toMatchObject([{ output: { type: "text", value: "😀 \ufffd" } }])
    })
  )

  it.effect("keeps what the provider said per part, and hands it back", () =>
    Effect.gen(function* () {
      const signed = (thoughtSignature: string) => ({ providerMetadata: { google: { thoughtSignature } } })
      const model = ScriptedModel.make([
        [
          { type: "text-start", id: "0", ...signed("s0") },
          { type: "text-delta", id: "0", delta: "one" },
          { type: "text-end", id: "0" },
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "two", ...signed("s1") },
          { type: "text-end", id: "1" },
          { type: "text-start", id: "2" },
          { type: "text-delta", id: "2", delta: "", ...signed("s2") },
          { type: "text-end", id: "2" },
          { ...call("c1", "echo", '{"say":"x"}'), ...signed("s3") },
          { type: "file", data: "AQI=", mediaType: "image/png", ...signed("s4") },
          { ...ends("tool-calls"), ...signed("s5") }
        ],
        [...text("ok"), ends("stop")]
      ])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go"))
      const options = (thoughtSignature: string) => ({ providerOptions: { google: { thoughtSignature } } })
      expect(model.requests[1]?.messages.at(-2)?.content).toStrictEqual([
        { type: "text", text: "one", ...options("s0") },
        { type: "text", text: "two", ...options("s1") },
        { type: "text", text: "", ...options("s2") },
        { type: "tool-call", toolCallId: "c1", toolName: "echo", input: { say: "x" }, ...options("s3") },
        { type: "file", data: "AQI=", mediaType: "image/png", ...options("s4") }
      ])
      expect(only(chunks, "tool-call")[0]?.payload).toMatchObject(signed("s3"))
      expect(only(chunks, "file")[0]?.payload).toMatchObject(signed("s4"))
      expect(only(chunks, "step-finish")[0]?.payload).toMatchObject(signed("s5"))
    })
  )

  it.effect("lists what the run added behind what it was given", () =>
    Effect.gen(function* () {
      const model = calling(toolCall("c1", "echo", { say: "x" }))
      const input: ReadonlyArray<Message.Message> = [
        Message.system("Be brief."),
        Message.user("hi"),
        { role: "assistant", content: [{ type: "text", text: "hello" }] },
        Message.user("go")
      ]
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), input))
      expect(model.requests[0]?.messages).toStrictEqual(input)
      const { all, nonUser, user } = finishOf(chunks).messages
      expect(all.map(({ role }) => role)).toStrictEqual([
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant"
      ])
      expect(user.map(({ role }) => role)).toStrictEqual(["user", "user"])
      expect(nonUser).toHaveLength(4)
    })
  )
})

describe("what tools write", () => {
  it.effect("comes in the order of writing, before the outcome", () =>
    Effect.gen(function* () {
      const writer = Tool.make("writer", {
        execute: (_, { write, writeData }) =>
          Effect.gen(function* () {
            yield* write("one")
            yield* writeData({ type: "data-step", data: { n: 2 }, id: "d", transient: true })
            yield* write({ three: 3 })
            return "end"
          })
      })
      const model = calling(toolCall("c1", "writer", {}))
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [writer]), "go", { runId: "r" }))
      expectGrammar(chunks)
      const from = types(chunks).indexOf("tool-call") + 1
      const output = (output: unknown) => ({
        type: "tool-output",
        runId: "r",
        from: "USER",
        payload: { output, toolCallId: "c1", toolName: "writer" }
      })
      expect(chunks.slice(from, from + 3)).toStrictEqual([
        output("one"),
        { type: "data-step", data: { n: 2 }, id: "d", transient: true, runId: "r", from: "USER" },
        output({ three: 3 })
      ])
      expect(chunks[from + 3]?.type).toBe("tool-result")
    })
  )

  it.effect("is dropped after the call has ended", () =>
    Effect.gen(function* () {
      let late: Effect.Effect<void> = Effect.void
      const writer = Tool.make("writer", {
        execute: (_, { write, writeData }) =>
          Effect.sync(() => {
            late = Effect.zipRight(write("late"), writeData({ type: "data-late", data: 1 }))
          })
      })
      const model = ScriptedModel.make([
        [toolCall("c1", "writer", {}), ends("tool-calls")],
        [...text("a b c"), ends("stop")]
      ])
      const { chunks } = yield* read(Agent.stream(agentOf(model, [writer]), "go"), chunk =>
        chunk.type === "text-delta" || chunk.type === "tool-result" ? late : Effect.void
      )
      yield* late
      expectGrammar(chunks)
      expect(types(chunks).filter(type => type === "tool-output" || type === "data-late")).toHaveLength(0)
    })
  )

  it.effect("needs no await in the Promise face", () =>
    Effect.promise(async () => {
      const late: Array<Facade.ToolWriter> = []
      const writer = Facade.createTool({
        id: "writer",
        execute: async (_, { writer }) => {
          late.push(writer)
          for (let index = 0; index < 100; index++) {
            void writer.write(index)
            void writer.custom({ type: "data-n", data: index })
          }
          return "end"
        }
      })
      const agent = new Facade.Agent({
        id: "writer",
        model: calling(toolCall("c1", "writer", {})),
        tools: { writer }
      })
      const { fullStream } = await agent.stream("go")
      const chunks: Array<Facade.Chunk> = []
      for await (const chunk of fullStream) {
        chunks.push(chunk)
        if (chunk.type === "tool-result") for (const writer of late) void writer.write("late")
      }
      expectGrammar(chunks)
      const written = chunks.flatMap(chunk =>
        chunk.type === "tool-output" ? [chunk.payload.output] : chunk.type === "data-n" ? [chunk.data] : []
      )
      expect(written).toStrictEqual(Array.from({ length: 200 }, (_, index) => Math.floor(index / 2)))
    })
  )
})

describe("what the model is asked", () => {
  const settings = {
    toolChoice: { type: "tool", toolName: "echo" },
    modelSettings: { temperature: 0.2, maxOutputTokens: 9, headers: { a: "b" } },
    providerOptions: { kit: { effort: "low" } }
  } as const

  it.effect("has the settings of the agent, and the run's in their place", () =>
    Effect.gen(function* () {
      const answer = () => [...text("ok"), ends("stop")]
      const model = ScriptedModel.make([answer, answer])
      const agent = agentOf(model, [echo], { instructions: "Be brief.", ...settings })
      yield* chunksOf(Agent.stream(agent, "go"))
      yield* chunksOf(
        Agent.stream(agent, "go", {
          instructions: "Be long.",
          toolChoice: "none",
          modelSettings: { seed: 1 },
          providerOptions: {},
          includeRawChunks: true
        })
      )
      expect(model.requests).toStrictEqual([
        {
          messages: [Message.system("Be brief."), Message.user("go")],
          tools: [echo.definition],
          includeRawChunks: false,
          toolChoice: settings.toolChoice,
          settings: settings.modelSettings,
          providerOptions: settings.providerOptions
        },
        {
          messages: [Message.system("Be long."), Message.user("go")],
          tools: [echo.definition],
          includeRawChunks: true,
          toolChoice: "none",
          settings: { seed: 1 },
          providerOptions: {}
        }
      ])
    })
  )

  it.effect("has no more than it was given", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([[ends("stop")]])
      yield* chunksOf(Agent.stream(agentOf(model), "go", { instructions: "" }))
      expect(model.requests).toStrictEqual([
        { messages: [Message.user("go")], tools: [], includeRawChunks: false }
      ])
    })
  )

  it.effect("has the tools of the run, which take the place of the agent's by name", () =>
    Effect.gen(function* () {
      const other = Tool.make("echo", { description: "other", execute: () => Effect.succeed("other") })
      const added = Tool.make("added", { execute: () => Effect.succeed("added") })
      const model = calling(toolCall("c1", "echo", { say: "x" }), toolCall("c2", "added", {}))
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go", { tools: [other, added] }))
      expect(model.requests[0]?.tools).toStrictEqual([other.definition, added.definition])
      expect(only(chunks, "tool-result").map(chunk => chunk.payload.result)).toStrictEqual(["other", "added"])
    })
  )

  it.effect("is a snapshot: later steps do not change it", () =>
    Effect.gen(function* () {
      const model = calling(toolCall("c1", "echo", { say: "x" }))
      yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go"))
      expect(model.requests.map(({ messages }) => messages.length)).toStrictEqual([1, 3])
    })
  )

  it.effect("raw data is told only when it is asked for", () =>
    Effect.gen(function* () {
      const raw: ReadonlyArray<ModelPart.ModelPart> = [
        { type: "raw", value: { a: 1 } },
        { type: "raw", value: "word" }
      ]
      const model = ScriptedModel.make([
        [...raw, ends("stop")],
        [...raw, ends("stop")]
      ])
      const agent = agentOf(model)
      const without = yield* chunksOf(Agent.stream(agent, "go"))
      const withRaw = yield* chunksOf(Agent.stream(agent, "go", { includeRawChunks: true }))
      expect(only(without, "raw")).toHaveLength(0)
      expect(only(withRaw, "raw").map(chunk => chunk.payload)).toStrictEqual([{ a: 1 }, { value: "word" }])
    })
  )

  it.effect.each([true, false])("step-start holds the request body only when it is asked for: %s", isAsked =>
    Effect.gen(function* () {
      const { model } = modelOf([
        async function* () {
          yield finish("stop")
        }
      ])
      const sending: LanguageModel.LanguageModel = {
        ...model,
        answer: (request, signal) =>
          Effect.map(begin(model, request, signal), answer => ({
            ...answer,
            requestBody: { secret: "prompt" },
            responseHeaders: { "x-id": "1" }
          }))
      }
      const options = isAsked ? { includeRequestBody: true } : {}
      const chunks = yield* chunksOf(Agent.stream(agentOf(sending), "go", options))
      expect(only(chunks, "step-start")[0]?.payload.request).toStrictEqual({
        provider: "kit",
        modelId: "kit-1",
        ...(isAsked ? { body: { secret: "prompt" } } : {})
      })
      expect(only(chunks, "step-finish")[0]?.payload.response).toStrictEqual({ headers: { "x-id": "1" } })
    })
  )

  it.effect("what the provider says about its response is told, in step and finish", () =>
    Effect.gen(function* () {
      const timestamp = new Date(0)
      const model = ScriptedModel.make([
        [
          { type: "stream-start", warnings: [{ type: "other", message: "hm" }] },
          { type: "response-metadata", id: "resp-1", timestamp },
          { type: "response-metadata", modelId: "script-2026" },
          ends("stop", { inputTokens: 3, outputTokens: 2 })
        ]
      ])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model), "go"))
      const response = { id: "resp-1", timestamp, modelId: "script-2026" }
      expect(only(chunks, "response-metadata").map(chunk => chunk.payload)).toStrictEqual([
        { id: "resp-1", timestamp },
        response
      ])
      expect(only(chunks, "step-start")[0]?.payload.warnings).toStrictEqual([
        { type: "other", message: "hm" }
      ])
      expect(only(chunks, "step-finish")[0]?.payload).toMatchObject({
        response,
        totalUsage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
      })
      expect(finishOf(chunks).response).toStrictEqual({ ...response, messages: [], uiMessages: [] })
    })
  )
})

describe("a run that cannot begin", () => {
  const wrong: ReadonlyArray<
    readonly [what: string, run: (agent: Agent.Agent) => Stream.Stream<unknown, unknown>, error: unknown]
  > = [
    ["nothing to say", agent => Agent.stream(agent, ""), Errors.InvalidMessage],
    [
      "a message of no known shape",
      agent => Agent.stream(agent, [{ role: "robot" } as never]),
      Errors.InvalidMessage
    ],
    ["a limit below 1", agent => Agent.stream(agent, "go", { maxSteps: 0 }), Errors.InvalidConfiguration],
    [
      "a limit that is no number",
      agent => Agent.stream(agent, "go", { toolCallConcurrency: Number.NaN }),
      Errors.InvalidConfiguration
    ],
    [
      "two tools of one name",
      agent => Agent.stream(agent, "go", { tools: [echo, echo] }),
      Errors.InvalidConfiguration
    ],
    [
      "an option that nothing reads",
      agent => Agent.stream(agent, "go", { maxStep: 1 } as never),
      Errors.InvalidConfiguration
    ]
  ]

  it.effect.each(wrong)("with %s fails before any chunk, and asks no model", ([, run, error]) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([[ends("stop")]])
      const chunks: Array<unknown> = []
      const failure = yield* run(agentOf(model)).pipe(
        Stream.runForEach(chunk => Effect.sync(() => chunks.push(chunk))),
        Effect.flip
      )
      expect(failure).toBeInstanceOf(error)
      expect(chunks).toHaveLength(0)
      expect(model.requests).toHaveLength(0)
    })
  )

  it("is refused when the agent is made, where that is known already", () => {
    const model = ScriptedModel.make([])
    const made: ReadonlyArray<readonly [field: string, make: () => unknown]> = [
      ["id", () => Agent.make({ id: "", model })],
      ["model", () => Agent.make({ id: "a", model: {} as never })],
      ["maxSteps", () => Agent.make({ id: "a", model, maxSteps: 1.5 })],
      ["toolCallConcurrency", () => Agent.make({ id: "a", model, toolCallConcurrency: 0 })],
      ["tools", () => Agent.make({ id: "a", model, tools: [echo, echo] })],
      ["maxStep", () => Agent.make({ id: "a", model, maxStep: 1 } as never)]
    ]
    for (const [field, make] of made) {
      expect(make).toThrow(expect.objectContaining({ _tag: "InvalidConfiguration", field }))
    }
  })
})

describe("a run whose model fails", () => {
  const broken = new Error("broken")
  const started = { type: "tool-input-start", id: "c1", toolName: "echo" } as const
  const failures: ReadonlyArray<
    readonly [what: string, parts: ReadonlyArray<ModelPart.ModelPart>, error: Partial<Errors.ModelError>]
  > = [
    [
      "an error part",
      [...text("par"), { type: "error", error: broken }],
      { reason: "stream", message: "broken" }
    ],
    ["an error part without an error", [{ type: "error", error: undefined }], { reason: "stream" }],
    [
      "an error part and a finish",
      [{ type: "error", error: broken }, ends("error")],
      { reason: "stream", message: "broken" }
    ],
    ["an end without a finish", text("par"), { reason: "incomplete" }],
    ["nothing at all", [], { reason: "incomplete" }],
    ["a reason error", [...text("par"), ends("error")], { reason: "stream" }],
    [
      "an end in the middle of a call",
      [started, { type: "tool-input-delta", id: "c1", delta: '{"say":"con' }],
      { reason: "incomplete" }
    ],
    [
      "a finish in the middle of a call",
      [started, { type: "tool-input-delta", id: "c1", delta: '{"say":"con' }, ends("tool-calls")],
      { reason: "incomplete" }
    ]
  ]

  it.effect.each(failures)("with %s tells it, finishes, and fails with it", ([, parts, error]) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([parts])
      const { chunks, exit } = yield* read(Agent.stream(agentOf(model, [echo]), "go", { maxRetries: 0 }))
      expectGrammar(chunks)
      expect(types(chunks).slice(-2)).toStrictEqual(["error", "finish"])
      const told = only(chunks, "error")[0]?.payload.error
      expect(told).toBeInstanceOf(Errors.ModelError)
      expect(told).toMatchObject({ provider: "scripted", modelId: "script", ...error })
      expect(exit).toStrictEqual(Exit.fail(told))
      expect(only(chunks, "tool-call")).toHaveLength(0)
      expect(finishOf(chunks).stepResult).toStrictEqual({ reason: "error", isContinued: false })
    })
  )

  it.effect("before it has answered fails the same way, with the failure of the model itself", () =>
    Effect.gen(function* () {
      const { chunks, exit } = yield* read(Agent.stream(agentOf(ScriptedModel.make([])), "go"))
      expectGrammar(chunks)
      expect(types(chunks)).toStrictEqual(["start", "step-start", "error", "finish"])
      expect(Exit.isFailure(exit)).toBe(true)
      expect(only(chunks, "error")[0]?.payload.error).toMatchObject({ reason: "request" })
    })
  )

  it.effect("a source that throws fails it, and one that throws when it is stopped hides nothing", () =>
    Effect.gen(function* () {
      const throws = modelOf([
        async function* () {
          yield { type: "text-delta", id: "0", delta: "par" }
          throw broken
        }
      ])
      const first = yield* read(Agent.stream(agentOf(throws.model), "go"))
      expect(only(first.chunks, "error")[0]?.payload.error).toMatchObject({ reason: "stream", cause: broken })
      expect(finishOf(first.chunks).output.text).toBe("par")
      const stubborn = modelOf([
        () => ({
          [Symbol.asyncIterator]: () => ({
            next: async () => ({ done: false, value: { type: "error", error: new Error("the cause") } }),
            return: () => {
              throw new Error("cannot be stopped")
            }
          })
        })
      ])
      const second = yield* read(Agent.stream(agentOf(stubborn.model), "go"))
      expectGrammar(second.chunks)
      expect(only(second.chunks, "error")[0]?.payload.error).toMatchObject({ message: "the cause" })
    })
  )

  it.effect("not when its answer is finished: nothing that comes later counts but usage", () =>
    Effect.gen(function* () {
      const { model } = modelOf([
        async function* () {
          yield* text("ok")
          yield finish("stop", { inputTokens: 1 })
          yield finish("tool-calls", { inputTokens: 2, outputTokens: 3 })
          yield { type: "text-delta", id: "0", delta: "late" }
          yield call("c1", "echo", '{"say":"x"}')
          yield { type: "error", error: broken }
          throw broken
        }
      ])
      const { chunks, exit } = yield* read(Agent.stream(agentOf(model, [echo]), "go"))
      expectGrammar(chunks)
      expect(exit).toStrictEqual(Exit.void)
      expect(finishOf(chunks).output).toStrictEqual({
        text: "ok",
        usage: { inputTokens: 2, outputTokens: 3 }
      })
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )

  it.effect("in a later step keeps what the steps before it said and used", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [...text("one"), toolCall("c1", "echo", { say: "x" }), ends("tool-calls", { inputTokens: 5 })],
        [...text("two"), toolCall("c2", "echo", { say: "y" })]
      ])
      const { chunks } = yield* read(Agent.stream(agentOf(model, [echo]), "go"))
      expectGrammar(chunks)
      const { messages, output } = finishOf(chunks)
      expect(output).toStrictEqual({ text: "onetwo", usage: { inputTokens: 5 } })
      // Of an answer that failed nothing goes into the next prompt.
      expect(messages.all.map(({ role }) => role)).toStrictEqual(["user", "assistant", "tool"])
    })
  )
})

describe("one stream", () => {
  it.effect("run twice is two runs", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [...text("first"), ends("stop")],
        [...text("second"), ends("stop")]
      ])
      const stream = Agent.stream(agentOf(model), "go")
      expect(model.requests).toHaveLength(0)
      const [first, second] = [yield* chunksOf(stream), yield* chunksOf(stream)]
      expect([textOf(first), textOf(second)]).toStrictEqual(["first", "second"])
      expect([first[0]?.runId, second[0]?.runId]).toStrictEqual(["run-1", "run-2"])
      expectGrammar(first)
      expectGrammar(second)
    }).pipe(Effect.provide(Id.layerSequential))
  )
})

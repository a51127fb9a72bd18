/** Agents as tools of agents: what is seen of them, what they cost, what stops them, and how deep they go. */
import { describe, expect, it } from "@effect/vitest"
import {
  Agent,
  Chunk,
  Errors,
  type LanguageModel,
  type ModelPart,
  Nesting,
  ThreadStore,
  Tool,
  type Usage
} from "eddy"
import { ScriptedModel } from "eddy/testing"
import {
  Cause,
  Context,
  Deferred,
  Effect,
  Exit,
  Fiber,
  Layer,
  Scope,
  Stream,
  Supervisor,
  TestClock
} from "effect"
import { configurationError } from "../support/configurationError.js"
import { expectGrammar } from "../support/grammar.js"
import { chunksOf, finishOf, modelOf, only, read, textOf, turns, types } from "./kit.js"
import { ends, memory, messagesOf, reply, rolesOf, says, text, toolCall } from "./memoryKit.js"

/** Real time that an abort may take: 50 ms are promised, the machine that runs this may be busy. */
const soon = 250

const ask = (toolCallId: string, agent: string, prompt = "do it"): ModelPart.ModelPart =>
  toolCall(toolCallId, `agent-${agent}`, { prompt })

/** An agent that says this. */
const agentOf = <const Tools extends ReadonlyArray<Tool.Any> = []>(
  id: string,
  model: LanguageModel.LanguageModel,
  tools?: Tools,
  more: Omit<Agent.Options<Tools>, "id" | "model" | "tools"> = {}
) => Agent.make({ id, model, ...(tools === undefined ? {} : { tools }), ...more })

/** An agent that calls these agents in its first step and then says `done`. */
const boss = <const Tools extends ReadonlyArray<Tool.Any>>(
  calls: ReadonlyArray<ModelPart.ModelPart>,
  tools: Tools,
  more: Omit<Agent.Options<Tools>, "id" | "model" | "tools"> = {},
  usage: Usage.Usage = {}
) => {
  const model = ScriptedModel.make([
    [...calls, ends("tool-calls", usage)],
    [...text("done"), ends("stop", usage)]
  ])
  return Object.assign(agentOf("boss", model, tools, more), { requests: model.requests })
}

const echo = Tool.make("echo", { input: { type: "object" }, execute: args => Effect.succeed(args) })

const outputsOf = (chunks: ReadonlyArray<Chunk.Chunk>, toolCallId: string): ReadonlyArray<unknown> =>
  only(chunks, "tool-output")
    .filter(({ payload }) => payload.toolCallId === toolCallId)
    .map(({ payload }) => payload.output)

/** The chunks of the run that this call has started. */
const childOf = (chunks: ReadonlyArray<Chunk.Chunk>, toolCallId: string): ReadonlyArray<Chunk.Chunk> =>
  outputsOf(chunks, toolCallId) as ReadonlyArray<Chunk.Chunk>

const told = (request: LanguageModel.ModelRequest | undefined) => {
  const last = request?.messages.at(-1)
  return last?.role === "tool" ? last.content.map(({ output }) => output) : undefined
}

const usageOf = (chunks: ReadonlyArray<Chunk.Chunk>) =>
  only(chunks, "step-finish").map(({ payload }) => payload.output.usage)

const tokens = (inputTokens: number, outputTokens: number): Usage.Usage => ({
  inputTokens,
  outputTokens,
  totalTokens: inputTokens + outputTokens
})

const failureOf = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Exit.isFailure(exit) ? Cause.squash(exit.cause) : expect.fail("It did not fail")

describe("what is seen of an agent that is called", () => {
  it.effect("every chunk of its run, in order, as the output of the call", () =>
    Effect.gen(function* () {
      const script = [
        [
          ...ScriptedModel.reasoning("hm"),
          ...text("let me see"),
          toolCall("c1", "echo", { n: 1 }),
          ends("tool-calls")
        ],
        reply("it is 1", tokens(3, 1))
      ]
      const alone = yield* chunksOf(
        Agent.stream(agentOf("helper", ScriptedModel.make(script), [echo]), "do it", { runId: "r" })
      )
      const helper = agentOf("helper", ScriptedModel.make(script), [echo])
      const parent = boss([...text("I ask"), ask("c1", "helper")], [Agent.asTool(helper)])
      const chunks = yield* chunksOf(Agent.stream(parent, "go", { runId: "parent" }))
      expectGrammar(chunks)
      const child = childOf(chunks, "c1")
      expectGrammar(child)
      expect(types(child)).toStrictEqual(types(alone))
      expect(types(child).at(0)).toBe("start")
      expect(types(child).at(-1)).toBe("finish")
      expect(textOf(child)).toBe("let me seeit is 1")
      expect(child[0]).toMatchObject({ type: "start", payload: { agentId: "helper" } })
      expect(child[0]?.runId).not.toBe("parent")
      // All of it between the call and its result.
      const own = types(chunks)
      expect(own.indexOf("tool-output")).toBeGreaterThan(own.indexOf("tool-call"))
      expect(own.lastIndexOf("tool-output")).toBeLessThan(own.indexOf("tool-result"))
      for (const chunk of only(chunks, "tool-output")) {
        expect(chunk).toMatchObject({
          runId: "parent",
          from: "USER",
          payload: { toolCallId: "c1", toolName: "agent-helper" }
        })
      }
    })
  )

  it.effect("comes as it is said, not at the end", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const open = Tool.make("open", { execute: () => Deferred.await(gate) })
      const model = ScriptedModel.make([
        [...text("waiting"), toolCall("c1", "open", {}), ends("tool-calls")],
        reply("open")
      ])
      const parent = boss([ask("c1", "helper")], [Agent.asTool(agentOf("helper", model, [open]))])
      // The child goes on only when the parent's reader has read what it says.
      const { chunks, exit } = yield* read(Agent.stream(parent, "go"), chunk => {
        const inner = Nesting.unnest(chunk).chunk
        return inner.type === "text-delta" && inner.payload.text === "waiting"
          ? Effect.asVoid(Deferred.succeed(gate, undefined))
          : Effect.void
      })
      expect(exit).toStrictEqual(Exit.void)
      expect(only(chunks, "tool-result")[0]?.payload.result).toStrictEqual({ text: "waitingopen" })
    })
  )

  it.effect("two levels nest, and are taken apart by unnest", () =>
    Effect.gen(function* () {
      const leaf = agentOf("leaf", ScriptedModel.make([reply("from the leaf")]))
      const mid = agentOf(
        "mid",
        ScriptedModel.make([[ask("m1", "leaf"), ends("tool-calls")], reply("from the middle")]),
        [Agent.asTool(leaf)]
      )
      const parent = boss([ask("b1", "mid")], [Agent.asTool(mid)])
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expectGrammar(chunks)
      const middle = childOf(chunks, "b1")
      expectGrammar(middle)
      const inner = childOf(middle, "m1")
      expectGrammar(inner)
      expect(textOf(inner)).toBe("from the leaf")
      const deep = chunks.map(Nesting.unnest).filter(({ path }) => path.length === 2)
      expect(deep.map(({ chunk }) => chunk)).toStrictEqual(inner)
      expect(deep[0]?.path.map(({ toolCallId, toolName }) => [toolCallId, toolName])).toStrictEqual([
        ["b1", "agent-mid"],
        ["m1", "agent-leaf"]
      ])
      expect(new Set(chunks.map(chunk => Nesting.unnest(chunk).chunk.runId)).size).toBe(3)
    })
  )

  it.effect("crosses the wire: nested chunks are encoded with the chunk that holds them", () =>
    Effect.gen(function* () {
      const leaf = agentOf(
        "leaf",
        ScriptedModel.make([[says("lost"), { type: "error", error: new Error("boom") }]])
      )
      const parent = boss([ask("b1", "leaf")], [Agent.asTool(leaf)])
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      const decoded = yield* Effect.forEach(chunks, chunk =>
        Effect.flatMap(Chunk.encode(chunk), encoded => Chunk.decode(JSON.parse(JSON.stringify(encoded))))
      )
      expect(types(childOf(decoded, "b1"))).toStrictEqual(types(childOf(chunks, "b1")))
      expect(only(childOf(decoded, "b1"), "error")[0]?.payload.error).toMatchObject({ message: "boom" })
    })
  )

  it.effect("two at once interleave, and each is in order", () =>
    Effect.gen(function* () {
      // Each says its next word when the reader has read the other one's.
      const gates = yield* Effect.all(Array.from({ length: 9 }, () => Deferred.make<void>()))
      const talker = (offset: number) =>
        modelOf([
          async function* () {
            for (let index = offset; index < 8; index += 2) {
              const gate = gates[index]
              if (gate !== undefined) await Effect.runPromise(Deferred.await(gate))
              yield says(`${index} `)
            }
            yield ends("stop")
          }
        ]).model
      const parent = boss(
        [ask("c1", "even"), ask("c2", "odd")],
        [Agent.asTool(agentOf("even", talker(0))), Agent.asTool(agentOf("odd", talker(1)))]
      )
      const openNext = (after: number) => {
        const gate = gates[after + 1]
        return gate === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(gate, undefined))
      }
      yield* openNext(-1)
      const { chunks } = yield* read(Agent.stream(parent, "go"), chunk => {
        const inner = Nesting.unnest(chunk).chunk
        return inner.type === "text-delta" ? openNext(Number.parseInt(inner.payload.text, 10)) : Effect.void
      })
      expectGrammar(chunks)
      expectGrammar(childOf(chunks, "c1"))
      expectGrammar(childOf(chunks, "c2"))
      expect(textOf(childOf(chunks, "c1"))).toBe("0 2 4 6 ")
      expect(textOf(childOf(chunks, "c2"))).toBe("1 3 5 7 ")
      const inner = chunks.map(chunk => Nesting.unnest(chunk)).filter(({ path }) => path.length === 1)
      expect(textOf(inner.map(({ chunk }) => chunk))).toBe("0 1 2 3 4 5 6 7 ")
      expect(told(parent.requests[1])).toStrictEqual([
        { type: "text", value: "0 2 4 6 " },
        { type: "text", value: "1 3 5 7 " }
      ])
    })
  )

  it.effect("one agent called twice in a step has two runs", () =>
    Effect.gen(function* () {
      const helper = agentOf("helper", ScriptedModel.make([reply("one"), reply("two")]))
      const parent = boss([ask("c1", "helper"), ask("c2", "helper")], [Agent.asTool(helper)])
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      const runs = ["c1", "c2"].map(id => childOf(chunks, id))
      for (const run of runs) expectGrammar(run)
      expect(new Set(runs.map(run => run[0]?.runId)).size).toBe(2)
      expect(runs.map(textOf)).toStrictEqual(["one", "two"])
    })
  )

  it.effect("the recorded output of the caller has it too, for every reader", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const helper = agentOf("helper", ScriptedModel.make([reply("a b c")]))
        const output = yield* Agent.run(boss([ask("c1", "helper")], [Agent.asTool(helper)]), "go")
        const full = yield* output.fullOutput
        expect(full.text).toBe("done")
        for (const _ of [1, 2]) {
          const chunks = [...(yield* Stream.runCollect(output.fullStream))]
          expect(textOf(childOf(chunks, "c1"))).toBe("a b c")
        }
        expect([...(yield* Stream.runCollect(output.textStream))].join("")).toBe("done")
      })
    )
  )
})

describe("what an agent is told, and what it answers", () => {
  it.effect("it is told the prompt; its result is its text, and the model is told nothing else", () =>
    Effect.gen(function* () {
      const child = ScriptedModel.make([
        [...text("looking. "), toolCall("c1", "echo", {}), ends("tool-calls")],
        reply("found it")
      ])
      const helper = agentOf("helper", child, [echo], { instructions: "You help." })
      const parent = boss([ask("c1", "helper", "Find it!")], [Agent.asTool(helper)], {
        instructions: "You rule."
      })
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(child.requests[0]?.messages).toStrictEqual([
        { role: "system", content: "You help." },
        { role: "user", content: [{ type: "text", text: "Find it!" }] }
      ])
      expect(only(chunks, "tool-result")[0]?.payload.result).toStrictEqual({ text: "looking. found it" })
      expect(told(parent.requests[1])).toStrictEqual([{ type: "text", value: "looking. found it" }])
      expect(finishOf(chunks).output.text).toBe("done")
    })
  )

  it.effect("one that says nothing gives an empty text", () =>
    Effect.gen(function* () {
      const helper = agentOf("helper", ScriptedModel.make([[ends("stop")]]))
      const parent = boss([ask("c1", "helper")], [Agent.asTool(helper)])
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(only(chunks, "tool-result")[0]?.payload.result).toStrictEqual({ text: "" })
      expect(told(parent.requests[1])).toStrictEqual([{ type: "text", value: "" }])
    })
  )

  it.effect("the model knows it by name, description and one argument", () =>
    Effect.gen(function* () {
      const model = () => ScriptedModel.make([])
      const described = agentOf("a.b c/ü", model(), [], { description: "Finds things." })
      const named = agentOf("plain", model(), [], { name: "Plain Jane" })
      const parent = ScriptedModel.make([reply("ok")])
      yield* Agent.generate(
        agentOf("boss", parent, [
          Agent.asTool(described),
          Agent.asTool(named),
          Agent.asTool(agentOf("x", model()), { name: "ask_x", description: "Ask x." })
        ]),
        "go"
      )
      const tools = parent.requests[0]?.tools ?? []
      expect(tools.map(tool => [tool.name, tool.description])).toStrictEqual([
        ["agent-a-b-c--", "Finds things."],
        ["agent-plain", expect.stringContaining("Plain Jane")],
        ["ask_x", "Ask x."]
      ])
      expect(tools[0]?.inputSchema).toMatchObject({
        type: "object",
        properties: { prompt: { type: "string" } },
        required: ["prompt"],
        additionalProperties: false
      })
      expect(configurationError(() => Agent.asTool(named, { name: "no spaces" }))).toMatchObject({
        field: "name"
      })
    })
  )

  const wrong: ReadonlyArray<readonly [what: string, args: unknown]> = [
    ["no prompt", {}],
    ["a prompt that is a number", { prompt: 1 }],
    ["an unknown argument", { prompt: "do it", temperature: 1 }],
    ["a text", "do it"]
  ]

  it.effect.each(wrong)("%s is refused, and it is not run", ([, args]) =>
    Effect.gen(function* () {
      const child = ScriptedModel.make([])
      const parent = boss([toolCall("c1", "agent-helper", args)], [Agent.asTool(agentOf("helper", child))])
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expectGrammar(chunks)
      expect(only(chunks, "tool-error")[0]?.payload.error).toBeInstanceOf(Errors.InvalidToolArguments)
      expect(child.requests).toHaveLength(0)
      expect(outputsOf(chunks, "c1")).toStrictEqual([])
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )

  it.effect("an empty prompt is refused by the agent, and the caller goes on", () =>
    Effect.gen(function* () {
      const child = ScriptedModel.make([])
      const parent = boss([ask("c1", "helper", "")], [Agent.asTool(agentOf("helper", child))])
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(only(chunks, "tool-error")[0]?.payload.error).toBeInstanceOf(Errors.InvalidMessage)
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )

  it.effect("the request context is the caller's own, at every depth", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const context = new Map<string, unknown>([["tenant", "acme"]])
      const note = Tool.make("note", {
        execute: (_, { requestContext }) =>
          Effect.sync(() => {
            seen.push(requestContext)
            context.set("noted", true)
            return null
          })
      })
      const leaf = Agent.make({
        id: "leaf",
        model: ScriptedModel.make([[toolCall("c1", "note", {}), ends("tool-calls")], reply("ok")]),
        instructions: ({ requestContext }) => `For ${requestContext.get("tenant")}.`,
        tools: [note]
      })
      const mid = agentOf("mid", ScriptedModel.make([[ask("m1", "leaf"), ends("tool-calls")], reply("ok")]), [
        Agent.asTool(leaf)
      ])
      yield* Agent.generate(boss([ask("b1", "mid")], [Agent.asTool(mid)]), "go", { requestContext: context })
      expect(seen).toHaveLength(1)
      expect(seen[0]).toBe(context)
    })
  )

  it.effect("its own settings hold, and those of asTool before them", () =>
    Effect.gen(function* () {
      const forever = (count: number) =>
        ScriptedModel.make(
          Array.from({ length: count }, (_, index) => [toolCall(`c${index}`, "echo", {}), ends("tool-calls")])
        )
      const own = forever(2)
      const given = forever(3)
      const parent = boss(
        [ask("c1", "own"), ask("c2", "given")],
        [
          Agent.asTool(agentOf("own", own, [echo], { maxSteps: 2 })),
          Agent.asTool(agentOf("given", given, [echo], { maxSteps: 2 }), {
            options: { maxSteps: 3, instructions: "Other." }
          })
        ],
        { maxSteps: 4 }
      )
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(own.requests).toHaveLength(2)
      expect(given.requests).toHaveLength(3)
      expect(given.requests[0]?.messages[0]).toStrictEqual({ role: "system", content: "Other." })
      expect(finishOf(childOf(chunks, "c1")).stepResult.stoppedBy).toBe("max-steps")
      expect(finishOf(childOf(chunks, "c2")).stepResult.stoppedBy).toBe("max-steps")
    })
  )

  it.effect("one that stops at maxSteps has said what it has said", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [...text("one "), toolCall("c1", "echo", {}), ends("tool-calls")],
        [...text("two "), toolCall("c2", "echo", {}), ends("tool-calls")]
      ])
      const parent = boss(
        [ask("c1", "helper")],
        [Agent.asTool(agentOf("helper", model, [echo], { maxSteps: 2 }))]
      )
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(only(chunks, "tool-result")[0]?.payload.result).toStrictEqual({ text: "one two " })
    })
  )
})

describe("an agent that fails", () => {
  it.effect("is a tool-error with its message, and the caller goes on", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([[says("lost"), { type: "error", error: new Error("boom") }]])
      const parent = boss([ask("c1", "helper")], [Agent.asTool(agentOf("helper", model))])
      const { chunks, exit } = yield* read(Agent.stream(parent, "go"))
      expect(exit).toStrictEqual(Exit.void)
      expectGrammar(chunks)
      const child = childOf(chunks, "c1")
      expectGrammar(child)
      expect(types(child).slice(-2)).toStrictEqual(["error", "finish"])
      const error = only(chunks, "tool-error")[0]?.payload.error
      expect(error).toBeInstanceOf(Errors.ModelError)
      expect(error).toBe(only(child, "error")[0]?.payload.error)
      expect(told(parent.requests[1])).toStrictEqual([{ type: "error-text", value: "boom" }])
      expect(finishOf(chunks)).toMatchObject({ stepResult: { reason: "stop" }, output: { text: "done" } })
    })
  )

  it.effect("beside one that does not takes nothing from it", () =>
    Effect.gen(function* () {
      const bad = agentOf("bad", ScriptedModel.make([]), [], { maxRetries: 0 })
      const good = agentOf("good", ScriptedModel.make([reply("fine")]))
      const parent = boss([ask("c1", "bad"), ask("c2", "good")], [Agent.asTool(bad), Agent.asTool(good)])
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expectGrammar(chunks)
      expect(told(parent.requests[1])).toStrictEqual([
        { type: "error-text", value: expect.stringContaining("script") },
        { type: "text", value: "fine" }
      ])
    })
  )

  it.effect("because its parts cannot be made has no run, and the caller goes on", () =>
    Effect.gen(function* () {
      const helper = Agent.make({
        id: "helper",
        model: () => {
          throw new Error("no model today")
        }
      })
      const parent = boss([ask("c1", "helper")], [Agent.asTool(helper)])
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(only(chunks, "tool-error")[0]?.payload.error).toBeInstanceOf(Errors.InvalidConfiguration)
      expect(outputsOf(chunks, "c1")).toStrictEqual([])
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )

  it.effect("after its own time is over, and the caller goes on", () =>
    Effect.gen(function* () {
      const wait = Tool.make("wait", {
        execute: (_, { write }) => Effect.zipRight(write("began"), Effect.never)
      })
      const model = ScriptedModel.make([[toolCall("c1", "wait", {}), ends("tool-calls")]])
      const helper = agentOf("helper", model, [wait], { timeouts: { run: "1 minute" } })
      const { chunks, exit } = yield* read(
        Agent.stream(boss([ask("c1", "helper")], [Agent.asTool(helper)]), "go"),
        chunk =>
          Nesting.unnest(chunk).chunk.type === "tool-output" ? TestClock.adjust("1 minute") : Effect.void
      )
      expect(exit).toStrictEqual(Exit.void)
      expectGrammar(childOf(chunks, "c1"))
      expect(only(chunks, "tool-error")[0]?.payload.error).toBeInstanceOf(Errors.RunTimedOut)
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )
})

describe("usage", () => {
  it.effect("of an agent counts into the step that called it, at every depth, and once", () =>
    Effect.gen(function* () {
      const leaf = agentOf("leaf", ScriptedModel.make([reply("leaf", tokens(1_000, 100))]))
      const mid = agentOf(
        "mid",
        ScriptedModel.make([
          [ask("m1", "leaf"), ends("tool-calls", tokens(100, 10))],
          reply("mid", tokens(100, 10))
        ]),
        [Agent.asTool(leaf)]
      )
      const parent = boss([ask("b1", "mid")], [Agent.asTool(mid)], {}, tokens(10, 1))
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(usageOf(childOf(childOf(chunks, "b1"), "m1"))).toStrictEqual([tokens(1_000, 100)])
      expect(usageOf(childOf(chunks, "b1"))).toStrictEqual([tokens(1_100, 110), tokens(100, 10)])
      expect(finishOf(childOf(chunks, "b1")).output.usage).toStrictEqual(tokens(1_200, 120))
      expect(usageOf(chunks)).toStrictEqual([tokens(1_210, 121), tokens(10, 1)])
      expect(only(chunks, "step-finish").map(({ payload }) => payload.totalUsage)).toStrictEqual([
        tokens(1_210, 121),
        tokens(1_220, 122)
      ])
      expect(finishOf(chunks).output.usage).toStrictEqual(tokens(1_220, 122))
    })
  )

  it.effect("of several agents at once, and of two calls of one", () =>
    Effect.gen(function* () {
      const twice = agentOf(
        "twice",
        ScriptedModel.make([reply("1", tokens(100, 1)), reply("2", tokens(200, 2))])
      )
      const once = agentOf("once", ScriptedModel.make([reply("3", tokens(1_000, 10))]))
      const parent = boss(
        [ask("c1", "twice"), ask("c2", "once"), ask("c3", "twice")],
        [Agent.asTool(twice), Agent.asTool(once)],
        {},
        tokens(10, 1)
      )
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(usageOf(chunks)).toStrictEqual([tokens(1_310, 14), tokens(10, 1)])
      expect(finishOf(chunks).output.usage).toStrictEqual(tokens(1_320, 15))
    })
  )

  it.effect("of an agent that failed", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [toolCall("c1", "echo", {}), ends("tool-calls", tokens(100, 10))],
        [says("lost"), { type: "error", error: new Error("boom") }]
      ])
      const parent = boss(
        [ask("c1", "helper")],
        [Agent.asTool(agentOf("helper", model, [echo]))],
        {},
        tokens(10, 1)
      )
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(only(chunks, "tool-error")).toHaveLength(1)
      expect(usageOf(chunks)).toStrictEqual([tokens(110, 11), tokens(10, 1)])
      expect(finishOf(chunks).output.usage).toStrictEqual(tokens(120, 12))
    })
  )

  it.effect("of an agent that a tool runs by itself", () =>
    Effect.gen(function* () {
      const inner = agentOf("inner", ScriptedModel.make([reply("inner", tokens(100, 10))]))
      const byHand = Tool.make("by-hand", {
        execute: () => Effect.map(Agent.generate(inner, "go"), ({ text }) => text)
      })
      const parent = boss([toolCall("c1", "by-hand", {})], [byHand], {}, tokens(10, 1))
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(usageOf(chunks)).toStrictEqual([tokens(110, 11), tokens(10, 1)])
      expect(finishOf(chunks).output.usage).toStrictEqual(tokens(120, 12))
      // Its chunks are its own affair.
      expect(outputsOf(chunks, "c1")).toStrictEqual([])
    })
  )

  it.effect("of an agent that a tool streams and leaves counts what its steps have used", () =>
    Effect.gen(function* () {
      const script = [
        [toolCall("c1", "echo", {}), ends("tool-calls", tokens(100, 10))],
        [says("x"), ScriptedModel.hang]
      ]
      const inner = agentOf("inner", ScriptedModel.make(script), [echo])
      const peek = Tool.make("peek", {
        execute: () =>
          Agent.stream(inner, "go").pipe(
            Stream.takeUntil(chunk => chunk.type === "text-delta"),
            Stream.runDrain
          )
      })
      const parent = boss([toolCall("c1", "peek", {})], [peek], {}, tokens(10, 1))
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      expect(usageOf(chunks)[0]).toStrictEqual(tokens(110, 11))
    })
  )

  const stopped = () => {
    const model = ScriptedModel.make([
      [toolCall("c1", "echo", {}), ends("tool-calls", tokens(100, 10))],
      [says("part"), ScriptedModel.hang]
    ])
    return boss([ask("c1", "helper")], [Agent.asTool(agentOf("helper", model, [echo]))], {}, tokens(10, 1))
  }

  const isPart = (chunk: Chunk.Chunk): boolean => Nesting.unnest(chunk).chunk.type === "text-delta"

  it.effect("of an agent that was stopped: what its finished steps have used is not lost", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const { chunks } = yield* read(
        Agent.stream(stopped(), "go", { abortSignal: controller.signal }),
        chunk => Effect.sync(() => void (isPart(chunk) && controller.abort()))
      )
      expectGrammar(chunks)
      expect(finishOf(chunks).stepResult.reason).toBe("aborted")
      expect(finishOf(chunks).output.usage).toStrictEqual(tokens(110, 11))
    })
  )

  it.effect("of an agent that was stopped in a run that is recorded", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const output = yield* Agent.run(stopped(), "go")
        yield* Stream.runDrain(Stream.takeUntil(output.fullStream, isPart))
        yield* output.abort()
        const full = yield* output.fullOutput
        expect(full.status).toBe("aborted")
        expect(full.usage).toStrictEqual(tokens(110, 11))
      })
    )
  )

  it.effect("of an agent in a tool that took too long", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [toolCall("c1", "echo", {}), ends("tool-calls", tokens(100, 10))],
        [says("part"), ScriptedModel.hang]
      ])
      const inner = agentOf("inner", model, [echo])
      const began = yield* Deferred.make<void>()
      const outer = Tool.make("outer", {
        timeout: "1 minute",
        execute: () =>
          Stream.runForEach(Agent.stream(inner, "go"), chunk =>
            isPart(chunk) ? Deferred.succeed(began, undefined) : Effect.void
          )
      })
      const parent = boss([toolCall("c1", "outer", {})], [outer], {}, tokens(10, 1))
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(parent, "go")))
      yield* Deferred.await(began)
      yield* TestClock.adjust("1 minute")
      const chunks = yield* Fiber.join(fiber)
      expect(only(chunks, "tool-error")).toHaveLength(1)
      expect(finishOf(chunks).output.usage).toStrictEqual(tokens(120, 12))
    })
  )
})

describe("how deep agents go", () => {
  /** An agent that calls itself until somebody says no. */
  const recursive = (
    more: Agent.Options<[]> extends infer _ ? { readonly maxDepth?: number } : never = {}
  ) => {
    const requests: Array<LanguageModel.ModelRequest> = []
    const model: LanguageModel.LanguageModel = {
      provider: "kit",
      modelId: "recursive",
      answer: request =>
        Effect.sync(() => {
          requests.push(request)
          const isAnswered = request.messages.at(-1)?.role === "tool"
          const parts = isAnswered ? reply("up") : [ask("c", "self"), ends("tool-calls", tokens(1, 1))]
          return {
            source: (async function* () {
              yield* parts
            })(),
            normalize: (part: unknown) => part as ModelPart.ModelPart
          }
        })
    }
    const agent: Agent.Agent = Agent.make({ id: "self", model, ...more, tools: () => [Agent.asTool(agent)] })
    return { agent, requests }
  }

  /** The error of the deepest call, and how many runs there were. */
  const deepest = Effect.fnUntraced(function* (
    agent: Agent.Agent,
    options: { readonly maxDepth?: number } = {}
  ) {
    const { chunks, exit } = yield* read(Agent.stream(agent, "go", options))
    expect(exit).toStrictEqual(Exit.void)
    expectGrammar(chunks)
    const all = chunks.map(chunk => Nesting.unnest(chunk))
    const errors = all.flatMap(({ chunk, path }) =>
      chunk.type === "tool-error" ? [{ depth: path.length, error: chunk.payload.error }] : []
    )
    return { runs: new Set(all.map(({ chunk }) => chunk.runId)).size, errors, chunks }
  })

  const limits: ReadonlyArray<
    readonly [onAgent: number | undefined, onRun: number | undefined, most: number]
  > = [
    [undefined, undefined, 8],
    [3, undefined, 3],
    [undefined, 2, 2],
    [5, 1, 1],
    [0, undefined, 0],
    [undefined, 0, 0]
  ]

  it.effect.each(limits)("the agent says %s, the run %s: %s levels", ([onAgent, onRun, most]) =>
    Effect.gen(function* () {
      const { agent, requests } = recursive(onAgent === undefined ? {} : { maxDepth: onAgent })
      const { chunks, errors, runs } = yield* deepest(agent, onRun === undefined ? {} : { maxDepth: onRun })
      expect(runs).toBe(most + 1)
      expect(requests).toHaveLength((most + 1) * 2)
      expect(errors).toHaveLength(1)
      expect(errors[0]).toMatchObject({
        depth: most,
        error: { _tag: "AgentDepthExceeded", agentId: "self", maxDepth: most }
      })
      expect(errors[0]?.error).toBeInstanceOf(Errors.AgentDepthExceeded)
      expect(String(errors[0]?.error)).toContain('"self"')
      // Whoever was refused goes on, and so does everybody above.
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
      expect(finishOf(chunks).output.usage).toMatchObject({ inputTokens: most + 1 })
    })
  )

  it.effect("what is nested 8 deep crosses the wire whole", () =>
    Effect.gen(function* () {
      const { agent } = recursive()
      const { chunks } = yield* deepest(agent)
      const deep = chunks.filter(chunk => Nesting.unnest(chunk).path.length === 8)
      expect(deep.length).toBeGreaterThan(5)
      for (const chunk of deep) {
        const encoded = JSON.stringify(yield* Chunk.encode(chunk))
        expect(encoded).not.toContain("[Too deep]")
        const decoded = Nesting.unnest(yield* Chunk.decode(JSON.parse(encoded)))
        expect(decoded.chunk.type).toBe(Nesting.unnest(chunk).chunk.type)
      }
    })
  )

  it.effect("a larger maxDepth of an agent below raises nothing, a smaller one holds", () =>
    Effect.gen(function* () {
      const chain = (maxDepth: number) => {
        const leaf = agentOf("leaf", ScriptedModel.make([reply("leaf")]))
        const mid = agentOf(
          "mid",
          ScriptedModel.make([[ask("m1", "leaf"), ends("tool-calls")], reply("mid")]),
          [Agent.asTool(leaf)],
          { maxDepth }
        )
        return [Agent.asTool(mid)] as const
      }
      const errorsOf = (above: number, below: number) =>
        Effect.map(
          chunksOf(Agent.stream(boss([ask("b1", "mid")], chain(below), { maxDepth: above }), "go")),
          chunks => only(childOf(chunks, "b1"), "tool-error").map(({ payload }) => payload.error)
        )
      expect(yield* errorsOf(2, 8)).toStrictEqual([])
      expect(yield* errorsOf(8, 1)).toStrictEqual([])
      expect(yield* errorsOf(1, 8)).toMatchObject([{ agentId: "leaf", maxDepth: 1 }])
      expect(yield* errorsOf(8, 0)).toMatchObject([{ agentId: "leaf", maxDepth: 1 }])
    })
  )

  it.effect("an agent that a tool runs by itself counts", () =>
    Effect.gen(function* () {
      const leaf = agentOf("leaf", ScriptedModel.make([reply("leaf")]))
      const viaGenerate = Tool.make("generate", { execute: () => Agent.generate(leaf, "go") })
      const viaStream = Tool.make("stream", { execute: () => Stream.runDrain(Agent.stream(leaf, "go")) })
      const parent = boss(
        [toolCall("c1", "generate", {}), toolCall("c2", "stream", {})],
        [viaGenerate, viaStream],
        {
          maxDepth: 0
        }
      )
      const chunks = yield* chunksOf(Agent.stream(parent, "go"))
      const errors = only(chunks, "tool-error").map(({ payload }) => payload.error)
      expect(errors).toMatchObject([
        { _tag: "AgentDepthExceeded", agentId: "leaf" },
        { _tag: "AgentDepthExceeded", agentId: "leaf" }
      ])
    })
  )

  it.effect("a run that nobody's tool has started is at the top again", () =>
    Effect.gen(function* () {
      const leaf = agentOf("leaf", ScriptedModel.make([reply("leaf"), reply("leaf")]))
      const parent = boss([ask("c1", "leaf")], [Agent.asTool(leaf)], { maxDepth: 1 })
      yield* Agent.generate(parent, "go")
      expect((yield* Agent.generate(leaf, "go")).text).toBe("leaf")
    })
  )
})

/** Says this much, then nothing more, and hears neither its signal nor that it is cancelled. */
const silent = (...parts: ReadonlyArray<ModelPart.ModelPart>) =>
  modelOf([
    async function* () {
      yield* parts
      await new Promise(() => undefined)
    }
  ])

/** Three agents, one above the other; the run is stopped when the one at `depth` is in its model, or in its tool. */
const tower = (depth: 0 | 1 | 2, where: "model" | "tool") => {
  const signals: Array<{ readonly what: string; readonly signal: AbortSignal }> = []
  const finalized: Array<string> = []
  const wait = Tool.make("wait", {
    execute: (_, { abortSignal, write }) => {
      signals.push({ what: "tool", signal: abortSignal })
      return Effect.zipRight(write("began"), Effect.never).pipe(
        // Takes its time, and whoever ends the run waits for it.
        Effect.ensuring(
          Effect.zipRight(
            turns(3),
            Effect.sync(() => finalized.push("tool"))
          )
        )
      )
    }
  })
  const ending =
    where === "model"
      ? silent(says("began"))
      : modelOf([
          async function* () {
            yield toolCall("w", "wait", {})
            yield ends("tool-calls")
          }
        ])
  const caller = (callee: string) =>
    modelOf([
      async function* () {
        yield ask("c", callee)
        yield ends("tool-calls")
      }
    ])
  const kits = [0, 1, 2].map(level => (level === depth ? ending : caller(`level${level + 1}`)))
  const requests = () => kits.map(kit => kit.requests.length)
  const make = (level: number): Agent.Agent =>
    Agent.make({
      id: `level${level}`,
      model: kits[level]?.model ?? ending.model,
      tools: level < depth ? [Agent.asTool(make(level + 1))] : [wait]
    })
  const isBegun = (chunk: Chunk.Chunk): boolean => {
    const nested = Nesting.unnest(chunk)
    if (nested.path.length !== depth) return false
    return where === "model"
      ? nested.chunk.type === "text-delta"
      : nested.chunk.type === "tool-output" && nested.chunk.payload.output === "began"
  }
  const modelSignals = () => kits.slice(0, depth + 1).flatMap(kit => kit.signals)
  return { agent: make(0), isBegun, requests, signals, modelSignals, finalized, asked: ending.requests }
}

describe("what stops the caller stops the agents below it", () => {
  const cases = ([0, 1, 2] as const).flatMap(depth =>
    (["model", "tool"] as const).map(where => ({ depth, where }))
  )

  it.live.each(cases)("an abort, at depth $depth in the $where, within 50 ms", ({ depth, where }) =>
    Effect.gen(function* () {
      const { agent, asked, finalized, isBegun, modelSignals, requests, signals } = tower(depth, where)
      const controller = new AbortController()
      const { signal } = controller
      let listeners = 0
      const add = signal.addEventListener.bind(signal)
      const remove = signal.removeEventListener.bind(signal)
      signal.addEventListener = (...args: Parameters<typeof add>) => {
        listeners++
        add(...args)
      }
      signal.removeEventListener = (...args: Parameters<typeof remove>) => {
        listeners--
        remove(...args)
      }
      const supervisor = yield* Supervisor.track
      let abortedAt = 0
      let before: ReadonlyArray<number> = []
      const { chunks, exit } = yield* read(Agent.stream(agent, "go", { abortSignal: signal }), chunk =>
        Effect.sync(() => {
          if (!isBegun(chunk)) return
          before = requests()
          abortedAt = performance.now()
          controller.abort("enough")
        })
      ).pipe(Effect.supervised(supervisor))
      const took = performance.now() - abortedAt
      expect(abortedAt).toBeGreaterThan(0)
      expect(took).toBeLessThan(soon)
      expect(exit).toStrictEqual(Exit.void)
      expectGrammar(chunks)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
      // Model calls that are over are over; the one that was silent has heard of it, and so has the tool.
      expect(asked).toHaveLength(1)
      const stopped = where === "model" ? modelSignals().slice(-1) : signals.map(({ signal }) => signal)
      expect(stopped.map(({ aborted }) => aborted)).toStrictEqual([true])
      if (where === "tool") expect(finalized).toStrictEqual(["tool"])
      yield* turns(20)
      expect(requests()).toStrictEqual(before)
      expect(yield* supervisor.value).toHaveLength(0)
      expect(listeners).toBe(0)
    })
  )

  it.live.each(cases)("interruption, at depth $depth in the $where", ({ depth, where }) =>
    Effect.gen(function* () {
      const { agent, finalized, isBegun, modelSignals, requests, signals } = tower(depth, where)
      const supervisor = yield* Supervisor.track
      const reached = yield* Deferred.make<void>()
      yield* Effect.gen(function* () {
        const fiber = yield* Agent.stream(agent, "go").pipe(
          Stream.runForEach(chunk => (isBegun(chunk) ? Deferred.succeed(reached, undefined) : Effect.void)),
          Effect.fork
        )
        yield* Deferred.await(reached)
        const [took] = yield* Effect.timed(Fiber.interrupt(fiber))
        expect(
          Number(took.pipe(duration => (duration.value._tag === "Millis" ? duration.value.millis : 0)))
        ).toBeLessThan(soon)
      }).pipe(Effect.supervised(supervisor))
      const stopped = where === "model" ? modelSignals().slice(-1) : signals.map(({ signal }) => signal)
      expect(stopped.map(({ aborted }) => aborted)).toStrictEqual([true])
      if (where === "tool") expect(finalized).toStrictEqual(["tool"])
      const before = requests()
      yield* turns(20)
      expect(requests()).toStrictEqual(before)
      expect(yield* supervisor.value).toHaveLength(0)
    })
  )

  it.effect("the end of a scope, at depth 2", () =>
    Effect.gen(function* () {
      const { agent, finalized, isBegun, signals } = tower(2, "tool")
      const scope = yield* Scope.make()
      const output = yield* Scope.extend(Agent.run(agent, "go"), scope)
      yield* Stream.runDrain(Stream.takeUntil(output.fullStream, isBegun))
      yield* Scope.close(scope, Exit.void)
      expect(signals.map(({ signal }) => signal.aborted)).toStrictEqual([true])
      expect(finalized).toStrictEqual(["tool"])
      expect(yield* output.status).toBe("aborted")
    })
  )

  it.effect("a reader that leaves, at depth 2", () =>
    Effect.gen(function* () {
      const { agent, finalized, isBegun, signals } = tower(2, "tool")
      yield* Stream.runDrain(Stream.takeUntil(Agent.stream(agent, "go"), isBegun))
      expect(signals.map(({ signal }) => signal.aborted)).toStrictEqual([true])
      expect(finalized).toStrictEqual(["tool"])
    })
  )

  const limits = [
    ["run", "tool"],
    ["run", "model"],
    ["step", "tool"],
    ["step", "model"]
  ] as const

  it.effect.each(limits)("the time limit of the %s, at depth 2 in the %s", ([limit, where]) =>
    Effect.gen(function* () {
      const { agent, finalized, isBegun, modelSignals, requests, signals } = tower(2, where)
      const { chunks, exit } = yield* read(
        Agent.stream(agent, "go", { timeouts: { [limit]: "1 minute" } }),
        chunk => (isBegun(chunk) ? TestClock.adjust("1 minute") : Effect.void)
      )
      expectGrammar(chunks)
      expect(failureOf(exit)).toMatchObject({ _tag: "RunTimedOut", limit })
      const stopped = where === "model" ? modelSignals().slice(-1) : signals.map(({ signal }) => signal)
      expect(stopped.map(({ aborted }) => aborted)).toStrictEqual([true])
      if (where === "tool") expect(finalized).toStrictEqual(["tool"])
      expect(requests()).toStrictEqual([1, 1, 1])
    })
  )

  it.effect("the time limit of a tool that runs agents, and the run goes on", () =>
    Effect.gen(function* () {
      const { agent, finalized, modelSignals, requests, signals } = tower(1, "tool")
      const began = yield* Deferred.make<void>()
      const outer = Tool.make("outer", {
        timeout: "1 minute",
        execute: () =>
          Stream.runForEach(Agent.stream(agent, "go"), chunk =>
            Nesting.unnest(chunk).chunk.type === "tool-output"
              ? Deferred.succeed(began, undefined)
              : Effect.void
          )
      })
      const fiber = yield* Effect.fork(read(Agent.stream(boss([toolCall("c1", "outer", {})], [outer]), "go")))
      yield* Deferred.await(began)
      yield* TestClock.adjust("1 minute")
      const { chunks, exit } = yield* Fiber.join(fiber)
      expect(exit).toStrictEqual(Exit.void)
      expectGrammar(chunks)
      expect(only(chunks, "tool-error")[0]?.payload.error).toBeInstanceOf(Errors.ToolTimedOut)
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
      expect(signals.map(({ signal }) => signal.aborted)).toStrictEqual([true])
      expect(finalized).toStrictEqual(["tool"])
      expect(modelSignals()).toHaveLength(2)
      expect(requests()).toStrictEqual([1, 1, 0])
    })
  )

  it.effect("a tool at depth 2 that aborts the run and is done: no model on any level is asked again", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const stop = Tool.make("stop", {
        execute: () => Effect.sync(() => controller.abort("from below"))
      })
      const leafModel = ScriptedModel.make([[toolCall("s", "stop", {}), ends("tool-calls")], reply("never")])
      const midModel = ScriptedModel.make([[ask("m", "leaf"), ends("tool-calls")], reply("never")])
      const leaf = agentOf("leaf", leafModel, [stop])
      const mid = agentOf("mid", midModel, [Agent.asTool(leaf)])
      const parent = boss([ask("b", "mid")], [Agent.asTool(mid)])
      const { chunks } = yield* read(Agent.stream(parent, "go", { abortSignal: controller.signal }))
      yield* turns(20)
      expectGrammar(chunks)
      expect(finishOf(chunks).stepResult.reason).toBe("aborted")
      expect([parent.requests.length, midModel.requests.length, leafModel.requests.length]).toStrictEqual([
        1, 1, 1
      ])
    })
  )

  it.effect("a tool that runs an agent by itself: one that aborts from below asks no model again", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const stop = Tool.make("stop", {
        execute: () => Effect.sync(() => controller.abort("from below"))
      })
      const leafModel = ScriptedModel.make([[toolCall("s", "stop", {}), ends("tool-calls")], reply("never")])
      const byHand = Tool.make("by-hand", {
        execute: () => Agent.generate(agentOf("leaf", leafModel, [stop]), "go")
      })
      const parent = boss([toolCall("b", "by-hand", {})], [byHand])
      yield* read(Agent.stream(parent, "go", { abortSignal: controller.signal }))
      yield* turns(20)
      expect([parent.requests.length, leafModel.requests.length]).toStrictEqual([1, 1])
    })
  )

  it.effect("the signals at depth 2 have the reason of the abort", () =>
    Effect.gen(function* () {
      for (const where of ["model", "tool"] as const) {
        const { agent, isBegun, modelSignals, signals } = tower(2, where)
        const controller = new AbortController()
        yield* read(Agent.stream(agent, "go", { abortSignal: controller.signal }), chunk =>
          Effect.sync(() => void (isBegun(chunk) && controller.abort("enough")))
        )
        const stopped = where === "model" ? modelSignals().slice(-1) : signals.map(({ signal }) => signal)
        expect(stopped.map(({ reason }) => reason)).toStrictEqual(["enough"])
      }
    })
  )

  it.effect(
    "what it has said is on the stream of the caller, with its end, and nothing after the end of the call",
    () =>
      Effect.gen(function* () {
        const { agent, isBegun } = tower(2, "tool")
        const controller = new AbortController()
        const { chunks } = yield* read(Agent.stream(agent, "go", { abortSignal: controller.signal }), chunk =>
          Effect.sync(() => void (isBegun(chunk) && controller.abort("enough")))
        )
        const own = types(chunks)
        expect(own.lastIndexOf("tool-output")).toBeLessThan(own.indexOf("tool-error"))
        expect(only(chunks, "tool-error")[0]?.payload.error).toBeInstanceOf(Errors.RunAborted)
        for (const run of [childOf(chunks, "c"), childOf(childOf(chunks, "c"), "c")]) {
          expectGrammar(run)
          expect(types(run).slice(-2)).toStrictEqual(["abort", "finish"])
          expect(only(run, "abort")[0]?.payload.reason).toBe("enough")
        }
      })
  )
})

describe("a reader that does not pull", () => {
  const flood = () => {
    let pulls = 0
    const { model } = modelOf([
      () => ({
        [Symbol.asyncIterator]: () => ({
          next: async () => {
            pulls++
            if (pulls === 10_000) return { done: false, value: ends("stop") }
            return { done: pulls > 10_000, value: says("x") }
          }
        })
      })
    ])
    return { model, pulls: () => pulls }
  }

  it.effect("holds the agents below too", () =>
    Effect.gen(function* () {
      const { model, pulls } = flood()
      const mid = agentOf("mid", ScriptedModel.make([[ask("m", "leaf"), ends("tool-calls")], reply("ok")]), [
        Agent.asTool(agentOf("leaf", model))
      ])
      const scope = yield* Scope.make()
      const pull = yield* Scope.extend(
        Stream.toPull(Agent.stream(boss([ask("b", "mid")], [Agent.asTool(mid)]), "go")),
        scope
      )
      // As far as the first words of the leaf.
      let seen = 0
      while (seen === 0) {
        for (const chunk of yield* pull) if (Nesting.unnest(chunk).path.length === 2) seen++
      }
      yield* turns(300)
      const held = pulls()
      expect(held).toBeGreaterThan(10)
      expect(held).toBeLessThanOrEqual(64 * 5)
      yield* turns(300)
      expect(pulls()).toBe(held)
      yield* Scope.close(scope, Exit.void)
      yield* turns(20)
      expect(pulls()).toBeLessThanOrEqual(held + 1)
    })
  )

  it.effect("does not hold an abort: the agents below are stopped, and the run says so", () =>
    Effect.gen(function* () {
      const { model, pulls } = flood()
      const controller = new AbortController()
      const parent = boss([ask("b", "leaf")], [Agent.asTool(agentOf("leaf", model))])
      const scope = yield* Scope.make()
      const pull = yield* Scope.extend(
        Stream.toPull(Agent.stream(parent, "go", { abortSignal: controller.signal })),
        scope
      )
      const chunks: Array<Chunk.Chunk> = []
      while (!chunks.some(chunk => chunk.type === "tool-output")) chunks.push(...(yield* pull))
      yield* turns(100)
      const held = pulls()
      controller.abort("enough")
      yield* turns(20)
      expect(pulls()).toBeLessThanOrEqual(held + 1)
      while (chunks.at(-1)?.type !== "finish") chunks.push(...(yield* pull))
      yield* Scope.close(scope, Exit.void)
      expectGrammar(chunks)
      expect(finishOf(chunks).stepResult.reason).toBe("aborted")
    })
  )

  it.effect("of a recorded run does not hold an abort either", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { model, pulls } = flood()
        const parent = boss([ask("b", "leaf")], [Agent.asTool(agentOf("leaf", model))])
        const output = yield* Agent.run(parent, "go")
        yield* turns(200)
        const held = pulls()
        expect(held).toBeGreaterThan(64)
        yield* output.abort("enough")
        expect((yield* output.fullOutput).status).toBe("aborted")
        expect(pulls()).toBeLessThanOrEqual(held + 1)
        expectGrammar([...(yield* Stream.runCollect(output.fullStream))])
      })
    )
  )

  it.effect("of a run that is recorded holds them as well", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { model, pulls } = flood()
        const parent = boss([ask("b", "leaf")], [Agent.asTool(agentOf("leaf", model))])
        const output = yield* Agent.run(parent, "go")
        yield* turns(300)
        const held = pulls()
        expect(held).toBeLessThanOrEqual(64 * 5)
        yield* turns(300)
        expect(pulls()).toBe(held)
        const full = yield* output.fullOutput
        expect(full.status).toBe("success")
        expect(pulls()).toBeGreaterThanOrEqual(10_000)
      })
    )
  )

  it.effect("does not hold them for ever: read to its end, it has every chunk", () =>
    Effect.gen(function* () {
      const { model } = flood()
      const parent = boss([ask("b", "leaf")], [Agent.asTool(agentOf("leaf", model))])
      const { chunks } = yield* read(Agent.stream(parent, "go"), (_, count) =>
        count % 500 === 0 ? turns(2) : Effect.void
      )
      expectGrammar(chunks)
      expectGrammar(childOf(chunks, "b"))
      expect(textOf(childOf(chunks, "b"))).toBe("x".repeat(9_999))
    })
  )
})

describe("threads and surroundings", () => {
  it.effect("the thread of the caller is the caller's: agents below neither read nor write it", () =>
    Effect.gen(function* () {
      const child = ScriptedModel.make([
        [...text("inner"), toolCall("c1", "where", {}), ends("tool-calls")],
        reply("inner")
      ])
      const where = Tool.make("where", {
        execute: (_, { threadId }) => Effect.succeed(threadId ?? "no thread")
      })
      const helper = agentOf("helper", child, [where], { memory: { lastMessages: 5 } })
      const before = agentOf("before", ScriptedModel.make([reply("earlier")]))
      yield* Agent.generate(before, "first", { memory })
      const chunks = yield* chunksOf(
        Agent.stream(boss([ask("c1", "helper")], [Agent.asTool(helper)]), "go", { memory })
      )
      expect(child.requests[0]?.messages).toStrictEqual([
        { role: "user", content: [{ type: "text", text: "do it" }] }
      ])
      expect(only(childOf(chunks, "c1"), "tool-result")[0]?.payload.result).toBe("no thread")
      const held = yield* messagesOf()
      expect(rolesOf(held)).toStrictEqual(["user", "assistant", "user", "assistant", "tool", "assistant"])
      expect(held[4]?.content).toStrictEqual([
        {
          type: "tool-result",
          toolCallId: "c1",
          toolName: "agent-helper",
          output: { type: "text", value: "innerinner" }
        }
      ])
      const { total } = yield* Effect.flatMap(ThreadStore.ThreadStore, store => store.list())
      expect(total).toBe(1)
    }).pipe(Effect.provide(ThreadStore.layerMemory))
  )

  it.effect("services of the caller reach the tools of the agents below", () =>
    Effect.gen(function* () {
      class Greeting extends Context.Tag("Greeting")<Greeting, string>() {}
      const greet = Tool.make("greet", { execute: () => Greeting })
      const helper = agentOf(
        "helper",
        ScriptedModel.make([[toolCall("c1", "greet", {}), ends("tool-calls")], reply("ok")]),
        [greet]
      )
      const parent = boss([ask("c1", "helper")], [Agent.asTool(helper)])
      const chunks = yield* Effect.provide(
        chunksOf(Agent.stream(parent, "go")),
        Layer.succeed(Greeting, "moin")
      )
      expect(only(childOf(chunks, "c1"), "tool-result")[0]?.payload.result).toBe("moin")
    })
  )

  it.effect("the agents below go by the clock of the test", () =>
    Effect.gen(function* () {
      const slow = Tool.make("slow", {
        execute: (_, { write }) => Effect.zipRight(write("began"), Effect.as(Effect.sleep("1 hour"), "slept"))
      })
      const helper = agentOf(
        "helper",
        ScriptedModel.make([[toolCall("c1", "slow", {}), ends("tool-calls")], reply("ok")]),
        [slow]
      )
      const { chunks } = yield* read(
        Agent.stream(boss([ask("c1", "helper")], [Agent.asTool(helper)]), "go"),
        chunk =>
          Nesting.unnest(chunk).chunk.type === "tool-output" ? TestClock.adjust("1 hour") : Effect.void
      )
      expect(only(childOf(chunks, "c1"), "tool-result")[0]?.payload.result).toBe("slept")
    })
  )
})

/** What a model is told of tools that run in the background, and what it says about a call. */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, Errors, type LanguageModel, type ModelPart, type RunOptions, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Schema } from "effect"
import { expectGrammar } from "../support/grammar.js"
import {
  calls,
  gated,
  isAcknowledged,
  loadEverything,
  managed,
  outputIn,
  tasks,
  taskTypes
} from "./backgroundKit.js"
import { call, chunksOf, finishOf, modelOf, only, types } from "./kit.js"
import { ends, memory, messagesOf, reply, toolCall } from "./memoryKit.js"

beforeAll(loadEverything)

const quiet = Tool.make("quiet", { execute: () => Effect.succeed("quiet") })

const slow = Tool.make("slow", {
  input: Schema.Struct({ n: Schema.Number }),
  background: { enabled: true },
  execute: ({ n }) => Effect.succeed(n)
})

/** Takes an argument of the name by which others are told how they run. */
const own = Tool.make("own", {
  input: Schema.Struct({ _background: Schema.String }),
  background: { enabled: true },
  execute: input => Effect.succeed(input)
})

const client = Tool.make("client", { input: { type: "object" } })

/** What the model is asked in a run that it answers at once. */
const asked = (
  options: Partial<Omit<Agent.Options<ReadonlyArray<Tool.Tool>>, "id" | "model">>,
  run: RunOptions<ReadonlyArray<Tool.Tool>, undefined> = {}
) =>
  Effect.gen(function* () {
    const model = ScriptedModel.make([reply("ok")])
    yield* chunksOf(Agent.stream(Agent.make({ id: "a", model, ...options }), "go", run))
    const [request] = model.requests
    return request ?? expect.fail("The model was not asked")
  })

/** Tools that have what a model may say about a call. */
const withOverride = ({ tools }: LanguageModel.ModelRequest): ReadonlyArray<string> =>
  tools.flatMap(({ inputSchema, name }) =>
    JSON.stringify(inputSchema).includes('"_background":{"type":"object"') ? [name] : []
  )

const systemOf = ({ messages }: LanguageModel.ModelRequest): ReadonlyArray<unknown> =>
  messages.flatMap(({ content, role }) => (role === "system" ? [content] : []))

describe("what a model is told of its tools", () => {
  it.effect("that one runs in the background, and what it may say about that", () =>
    Effect.gen(function* () {
      const before = structuredClone(slow.definition)
      const request = yield* asked({ instructions: "Be nice.", tools: [quiet, slow] })
      expect(withOverride(request)).toStrictEqual(["slow"])
      expect(request.tools.find(({ name }) => name === "quiet")).toStrictEqual(quiet.definition)
      const [system, ...others] = systemOf(request)
      expect(others).toStrictEqual([])
      expect(system).toMatch(/^Be nice\.\n\n.*: slow\./s)
      expect(system).not.toContain("quiet")
      expect(slow.definition).toStrictEqual(before)
    }).pipe(managed())
  )

  it.effect("also an agent that has no instructions", () =>
    Effect.gen(function* () {
      const request = yield* asked({ tools: [slow] })
      expect(systemOf(request)).toStrictEqual([expect.stringMatching(/: slow\./)])
      expect(request.messages.map(({ role }) => role)).toStrictEqual(["system", "user"])
    }).pipe(managed())
  )

  it.effect("nothing when none does", () =>
    Effect.gen(function* () {
      const plain = { instructions: "Be nice." }
      for (const options of [
        { ...plain, tools: [quiet] },
        { ...plain, tools: [slow], backgroundTasks: { disabled: true } },
        { ...plain, tools: [slow], backgroundTasks: { tools: { slow: false } } },
        // Nobody here executes it.
        { ...plain, tools: [client], backgroundTasks: { tools: "all" as const } },
        { ...plain, tools: [], backgroundTasks: { tools: "all" as const } }
      ]) {
        const request = yield* asked(options)
        expect(systemOf(request)).toStrictEqual(["Be nice."])
        expect(request.tools).toStrictEqual(options.tools.map(({ definition }) => definition))
      }
    }).pipe(managed())
  )

  it.effect("nothing where no background tasks are enabled", () =>
    Effect.gen(function* () {
      const request = yield* asked({ tools: [slow] })
      expect(systemOf(request)).toStrictEqual([])
      expect(request.tools).toStrictEqual([slow.definition])
    }).pipe(managed({ enabled: false }))
  )

  it.effect("nothing without a manager", () =>
    Effect.gen(function* () {
      const request = yield* asked({ tools: [slow], backgroundTasks: { tools: "all" } })
      expect(systemOf(request)).toStrictEqual([])
      expect(request.tools).toStrictEqual([slow.definition])
    })
  )

  it.effect("'all' of them but those of the client", () =>
    Effect.gen(function* () {
      const request = yield* asked({ tools: [quiet, slow, client], backgroundTasks: { tools: "all" } })
      expect(withOverride(request)).toStrictEqual(["quiet", "slow"])
      expect(systemOf(request)).toStrictEqual([expect.stringMatching(/: quiet, slow\./)])
    }).pipe(managed())
  )

  it.effect("not the override of a tool that has an argument of this name", () =>
    Effect.gen(function* () {
      const request = yield* asked({ tools: [own] })
      expect(request.tools).toStrictEqual([own.definition])
      expect(systemOf(request)).toStrictEqual([expect.stringMatching(/: own\./)])
    }).pipe(managed())
  )

  it.effect("of tools that are active, those of the run too", () =>
    Effect.gen(function* () {
      const dig = gated("dig").tool
      const request = yield* asked({ tools: [slow, quiet] }, { activeTools: ["quiet", "dig"], tools: [dig] })
      expect(withOverride(request)).toStrictEqual(["dig"])
      expect(systemOf(request)).toStrictEqual([expect.stringMatching(/: dig\./)])
      const none = yield* asked({ tools: [slow, quiet] }, { activeTools: ["quiet"] })
      expect(systemOf(none)).toStrictEqual([])
    }).pipe(managed())
  )

  it.effect("of those of the step", () =>
    Effect.gen(function* () {
      const dig = gated("dig").tool
      const model = ScriptedModel.make([
        calls(toolCall("c1", "quiet", {})),
        calls(toolCall("c2", "quiet", {})),
        calls(toolCall("c3", "quiet", {})),
        reply("ok")
      ])
      const changes = [
        { activeTools: ["quiet"] },
        { tools: [dig] },
        { instructions: "Other.", activeTools: ["slow", "quiet"] },
        {}
      ]
      const agent = Agent.make({
        id: "a",
        model,
        instructions: "Be nice.",
        tools: [slow, quiet],
        prepareStep: ({ stepNumber }) => changes[stepNumber]
      })
      yield* chunksOf(Agent.stream(agent, "go"))
      expect(model.requests.map(withOverride)).toStrictEqual([[], ["slow", "dig"], ["slow"], ["slow"]])
      expect(model.requests.map(systemOf)).toStrictEqual([
        ["Be nice."],
        [expect.stringMatching(/^Be nice\.\n\n.*: slow, dig\./)],
        [expect.stringMatching(/^Other\.\n\n.*: slow\./)],
        [expect.stringMatching(/^Be nice\.\n\n.*: slow\./)]
      ])
    }).pipe(managed())
  )
})

/** A run whose model makes this call, with whatever it says about it. */
const calling = (
  tool: Tool.Tool,
  input: unknown,
  options: Partial<Agent.Options<[]>["backgroundTasks"]> = {}
) =>
  Effect.gen(function* () {
    const model = ScriptedModel.make([calls(toolCall("c1", tool.name, input)), reply("ok")])
    const agent = Agent.make({ id: "a", model, tools: [tool], backgroundTasks: options })
    const chunks = yield* chunksOf(Agent.stream(agent, "go", { memory }))
    expectGrammar(chunks)
    return { chunks, model, tasks: yield* tasks }
  })

const argsOf = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<unknown> =>
  only(chunks, "tool-call").map(({ payload }) => payload.args)

describe("what a model says about a call", () => {
  it.effect("is seen by nobody", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const said = { enabled: true, timeoutMs: 1234, maxRetries: 3 }
      const { chunks, model, tasks: made } = yield* calling(dig.tool, { n: 1, _background: said })
      expect(argsOf(chunks)).toStrictEqual([{ n: 1 }])
      expect(made).toMatchObject([{ args: { n: 1 }, timeoutMs: 1234, maxRetries: 3 }])
      expect(made[0]?.args).toStrictEqual({ n: 1 })
      expect(dig.inputs).toStrictEqual([{ n: 1 }])
      const stored = yield* messagesOf()
      const said1 = JSON.stringify([
        chunks,
        stored,
        model.requests.map(({ messages }) => messages.slice(1)),
        made
      ])
      expect(said1).not.toContain("_background")
      expect(said1).toContain('"n":1')
    }).pipe(managed())
  )

  it.effect("is seen by nobody of a call in the foreground", () =>
    Effect.gen(function* () {
      for (const enabled of [true, false]) {
        const inputs: Array<unknown> = []
        const looked = Tool.make("looked", {
          input: { type: "object" },
          background: { enabled },
          execute: input =>
            Effect.sync(() => {
              inputs.push(input)
              return "seen"
            })
        })
        const { chunks, tasks: made } = yield* calling(looked, { n: 1, _background: { enabled: false } })
        expect(made).toStrictEqual([])
        expect(argsOf(chunks)).toStrictEqual([{ n: 1 }])
        expect(inputs).toStrictEqual([{ n: 1 }])
        expect(only(chunks, "tool-result")[0]?.payload.result).toBe("seen")
        expect(taskTypes(chunks)).toStrictEqual([])
      }
    }).pipe(managed())
  )

  it.effect("brings nothing into the background that nobody has allowed", () =>
    Effect.gen(function* () {
      const { chunks, tasks: made } = yield* calling(quiet, { _background: { enabled: true } })
      expect(made).toStrictEqual([])
      expect(only(chunks, "tool-result")[0]?.payload.result).toBe("quiet")
    }).pipe(managed())
  )

  it.effect.each([
    null,
    "soon",
    7,
    [],
    { enabled: "false" },
    { enabled: 0, timeoutMs: -1, maxRetries: 1.5 },
    { timeoutMs: "1", maxRetries: "1" },
    { timeoutMs: 2 ** 40, maxRetries: 1e9 }
  ])("is as good as not said when it is malformed: %j", said =>
    Effect.gen(function* () {
      const { chunks, tasks: made } = yield* calling(gated("dig").tool, { n: 1, _background: said })
      expect(made).toMatchObject([{ args: { n: 1 }, timeoutMs: 4321, maxRetries: 2 }])
      expect(argsOf(chunks)).toStrictEqual([{ n: 1 }])
    }).pipe(managed({ defaultTimeout: 4321, defaultRetries: { maxRetries: 2 } }))
  )

  it.effect("is an argument when the tool has one of this name", () =>
    Effect.gen(function* () {
      const { chunks, tasks: made } = yield* calling(own, { _background: "mine" })
      expect(argsOf(chunks)).toStrictEqual([{ _background: "mine" }])
      expect(made).toMatchObject([{ status: "completed", result: { _background: "mine" } }])
    }).pipe(managed())
  )

  it.effect("makes no second call of one that is told twice", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const input = JSON.stringify({ n: 1, _background: { timeoutMs: 99 } })
      const parts: ReadonlyArray<ModelPart.ModelPart> = [
        { type: "tool-input-start", id: "c1", toolName: "dig" },
        { type: "tool-input-delta", id: "c1", delta: input },
        { type: "tool-input-end", id: "c1" },
        call("c1", "dig", input),
        call("c1", "dig", input),
        ends("tool-calls")
      ]
      const model = ScriptedModel.make([parts, reply("ok")])
      const chunks = yield* chunksOf(Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go"))
      expectGrammar(chunks)
      expect(argsOf(chunks)).toStrictEqual([{ n: 1 }])
      expect(yield* tasks).toHaveLength(1)
    }).pipe(managed())
  )
})

describe("a call that is no task", () => {
  it.effect.each([
    ["wrong arguments", call("c1", "dig", '{"n":"one"}')],
    [
      "wrong arguments, with what is said about them",
      call("c1", "dig", '{"n":"one","_background":{"enabled":true}}')
    ],
    ["no arguments", call("c1", "dig", "{}")],
    ["no JSON", call("c1", "dig", '{"n":')]
  ] as const)("has %s", ([, part]) =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const model = ScriptedModel.make([[part, ends("tool-calls")], reply("ok")])
      const chunks = yield* chunksOf(Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go"))
      expectGrammar(chunks)
      expect(only(chunks, "tool-error").map(({ payload }) => payload.error)).toStrictEqual([
        expect.any(Errors.InvalidToolArguments)
      ])
      expect(taskTypes(chunks)).toStrictEqual([])
      expect(yield* tasks).toStrictEqual([])
      expect(dig.inputs).toStrictEqual([])
      expect(outputIn(model.requests[1]?.messages ?? [], "c1")).toMatchObject({ type: "error-text" })
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    }).pipe(managed())
  )

  it.effect("is the client's", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([calls(toolCall("c1", "client", { n: 1, _background: {} }))])
      const agent = Agent.make({ id: "a", model, tools: [client], backgroundTasks: { tools: "all" } })
      const chunks = yield* chunksOf(Agent.stream(agent, "go"))
      expect(argsOf(chunks)).toStrictEqual([{ n: 1 }])
      expect(finishOf(chunks).stepResult).toMatchObject({ reason: "tool-calls", stoppedBy: "client-tool" })
      expect(yield* tasks).toStrictEqual([])
    }).pipe(managed())
  )

  it.effect("is the provider's, whose arguments are its own", () =>
    Effect.gen(function* () {
      const input = { n: 1, _background: "theirs" }
      const { model } = modelOf([
        async function* () {
          yield { ...toolCall("c1", "slow", input), providerExecuted: true }
          yield { type: "tool-result", toolCallId: "c1", toolName: "slow", result: "theirs" }
          yield ends("stop")
        }
      ])
      const chunks = yield* chunksOf(Agent.stream(Agent.make({ id: "a", model, tools: [slow] }), "go"))
      expect(argsOf(chunks)).toStrictEqual([input])
      expect(types(chunks)).not.toContain("background-task-started")
      expect(yield* tasks).toStrictEqual([])
    }).pipe(managed())
  )

  it.effect("is one of a tool that is not there", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([calls(toolCall("c1", "gone", { _background: {} })), reply("ok")])
      const agent = Agent.make({ id: "a", model, tools: [slow], backgroundTasks: { tools: { gone: true } } })
      const chunks = yield* chunksOf(Agent.stream(agent, "go"))
      expect(only(chunks, "tool-error")[0]?.payload.error).toBeInstanceOf(Errors.ToolNotFound)
      expect(yield* tasks).toStrictEqual([])
      expect(isAcknowledged(finishOf(chunks).messages.all, "c1")).toBe(false)
    }).pipe(managed())
  )
})

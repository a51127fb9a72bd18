/** Agents of agents in the promise face: `agents: { helper }` is the tool `agent-helper`. */
import {
  Agent,
  AgentDepthExceeded,
  type AgentOptions,
  type Chunk,
  type ChunkOf,
  type ChunkType,
  createTool,
  Eddy,
  InMemoryStore,
  InvalidConfiguration,
  RunAborted,
  unnest
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { expectGrammar } from "../support/grammar.js"
import {
  collect,
  memoryLogger,
  modelOf,
  refuseUnhandledRejections,
  typesOf,
  until
} from "../support/readers.js"

refuseUnhandledRejections()

const { finish, reply, text, toolCall } = ScriptedModel

const ask = (toolCallId: string, agent: string, prompt = "do it") =>
  toolCall(toolCallId, `agent-${agent}`, { prompt })

const saying = (...answers: ReadonlyArray<string>) => ScriptedModel.make(answers.map(answer => reply(answer)))

const bossOf = (calls: ReadonlyArray<ReturnType<typeof ask>>, more: Partial<AgentOptions>) => {
  const model = ScriptedModel.make([
    [...calls, finish("tool-calls", { inputTokens: 10, outputTokens: 1 })],
    reply("done", { inputTokens: 10, outputTokens: 1 })
  ])
  return { boss: new Agent({ id: "boss", model, ...more }), model }
}

const only = <Type extends ChunkType>(
  chunks: ReadonlyArray<Chunk>,
  type: Type
): ReadonlyArray<ChunkOf<Type>> => chunks.filter((chunk): chunk is ChunkOf<Type> => chunk.type === type)

const childOf = (chunks: ReadonlyArray<Chunk>, toolCallId: string): ReadonlyArray<Chunk> =>
  only(chunks, "tool-output")
    .filter(({ payload }) => payload.toolCallId === toolCallId)
    .map(({ payload }) => payload.output as Chunk)

const echo = createTool({ id: "echo", inputSchema: { type: "object" }, execute: input => input })

const run = async (agent: Agent, options: Parameters<Agent["stream"]>[1] = {}) =>
  collect((await agent.stream("go", options)).fullStream)

describe("an agent of an agent", () => {
  it("is a tool of its name: chunks, result and usage of the call", async () => {
    const helper = new Agent({
      id: "some-id",
      description: "Helps.",
      instructions: "Help!",
      model: ScriptedModel.make([reply("of course", { inputTokens: 100, outputTokens: 10 })])
    })
    const { boss, model } = bossOf([ask("c1", "helper", "Help me!")], { agents: { helper } })
    const output = await boss.stream("go")
    const chunks = await collect(output.fullStream)
    expectGrammar(chunks)
    const child = childOf(chunks, "c1")
    expectGrammar(child)
    expect(typesOf(child)[0]).toBe("start")
    expect(typesOf(child).at(-1)).toBe("finish")
    expect(model.requests[0]?.tools).toMatchObject([{ name: "agent-helper", description: "Helps." }])
    expect(only(chunks, "tool-result")[0]?.payload.result).toEqual({ text: "of course" })
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      content: [{ output: { type: "text", value: "of course" } }]
    })
    expect(only(chunks, "step-finish").map(({ payload }) => payload.output.usage.inputTokens)).toEqual([
      110, 10
    ])
    expect(await output.usage).toEqual({ inputTokens: 120, outputTokens: 12, totalTokens: 132 })
    expect(await output.text).toBe("done")
  })

  it("two levels nest, and unnest takes them apart", async () => {
    const leaf = new Agent({ id: "leaf", model: saying("deep") })
    const mid = new Agent({
      id: "mid",
      model: ScriptedModel.make([[ask("m1", "leaf"), finish("tool-calls")], reply("middle")]),
      agents: { leaf }
    })
    const { boss } = bossOf([ask("b1", "mid")], { agents: { mid } })
    const chunks = await run(boss)
    const deep = chunks.map(unnest).filter(({ path }) => path.length === 2)
    expectGrammar(deep.map(({ chunk }) => chunk))
    expect(deep[0]?.path.map(({ toolName }) => toolName)).toEqual(["agent-mid", "agent-leaf"])
  })

  it("stands beside tools, also beside those that a function makes", async () => {
    const helper = new Agent({ id: "helper", model: saying("1", "2", "3") })
    for (const tools of [{ echo }, () => ({ echo }), async () => ({ echo })]) {
      const { boss, model } = bossOf([toolCall("c0", "echo", {}), ask("c1", "helper")], {
        agents: { helper },
        tools
      })
      const chunks = await run(boss)
      expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["echo", "agent-helper"])
      expect(only(chunks, "tool-result")).toHaveLength(2)
    }
  })

  it("what cannot be a tool is refused where the agent is made", () => {
    const helper = new Agent({ id: "helper", model: saying() })
    const made = (agents: object) => () => new Agent({ id: "boss", model: saying(), agents: agents as never })
    const caught = (make: () => unknown): unknown => {
      try {
        make()
      } catch (error) {
        return error
      }
      return expect.fail("nothing was thrown")
    }
    const noAgent = caught(made({ helper: { id: "x" } }))
    expect(noAgent).toBeInstanceOf(InvalidConfiguration)
    expect(noAgent).toMatchObject({ field: "agents.helper" })
    const badName = caught(made({ "my helper": helper }))
    expect(badName).toBeInstanceOf(InvalidConfiguration)
    expect(String(badName)).toContain("my helper")
    const twice = caught(
      () => new Agent({ id: "boss", model: saying(), agents: { helper }, tools: { "agent-helper": echo } })
    )
    expect(twice).toBeInstanceOf(InvalidConfiguration)
    expect(String(twice)).toContain("agent-helper")
  })

  it("its default options hold; its callbacks, thread, signal and run id are its own runs' affair", async () => {
    const called: Array<string> = []
    const note = (name: string) => () => {
      called.push(name)
    }
    const context = new Map<string, unknown>([["who", "caller"]])
    const seen: Array<unknown> = []
    const who = createTool({
      id: "who",
      execute: (_, { agent: { threadId }, requestContext }) => {
        seen.push(requestContext.get("who"), threadId)
        return null
      }
    })
    const steps = Array.from({ length: 2 }, (_, index) => [
      ...text(`${index}`),
      toolCall(`c${index}`, "who", {}),
      finish("tool-calls")
    ])
    const model = ScriptedModel.make(steps)
    const helper = new Agent({
      id: "helper",
      model,
      tools: { who },
      defaultOptions: {
        maxSteps: 2,
        modelSettings: { temperature: 0.5 },
        instructions: "Default.",
        abortSignal: AbortSignal.abort(),
        runId: "mine",
        requestContext: { who: "helper" },
        memory: { thread: "h", resource: "h" },
        onChunk: note("onChunk"),
        onStepFinish: note("onStepFinish"),
        onFinish: note("onFinish"),
        onError: note("onError"),
        onAbort: note("onAbort")
      }
    })
    const { boss } = bossOf([ask("c1", "helper")], { agents: { helper } })
    const eddy = new Eddy({ agents: { boss }, storage: new InMemoryStore() })
    const chunks = await run(boss, { requestContext: context, memory: { thread: "t1", resource: "u1" } })
    expect(only(chunks, "tool-result")[0]?.payload.result).toEqual({ text: "01" })
    expect(model.requests).toHaveLength(2)
    expect(model.requests[0]).toMatchObject({ settings: { temperature: 0.5 } })
    expect(model.requests[0]?.messages[0]).toEqual({ role: "system", content: "Default." })
    expect(seen).toEqual(["caller", undefined, "caller", undefined])
    expect(called).toEqual([])
    expect(childOf(chunks, "c1")[0]?.runId).not.toBe("mine")
    expect((await eddy.threads.list()).threads.map(({ id }) => id)).toEqual(["t1"])
    expect((await eddy.threads.messages("t1")).map(({ message }) => message.role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant"
    ])
    await eddy.shutdown()
  })

  it("one that fails is told to the model, and logged by nobody", async () => {
    const logger = memoryLogger()
    const helper = new Agent({
      id: "helper",
      model: ScriptedModel.make([[{ type: "error", error: "boom" }]])
    })
    const { boss, model } = bossOf([ask("c1", "helper")], { agents: { helper } })
    const eddy = new Eddy({ agents: { boss, helper }, logger })
    const chunks = await run(boss)
    expect(only(chunks, "tool-error")).toHaveLength(1)
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      content: [{ output: { type: "error-text", value: expect.stringContaining("boom") } }]
    })
    expect(only(chunks, "finish")[0]?.payload.stepResult.reason).toBe("stop")
    expect(logger.lines.filter(([level]) => level === "error")).toEqual([])
    await eddy.shutdown()
  })

  it("maxDepth stops agents of agents", async () => {
    const leaf = new Agent({ id: "leaf", model: saying("deep") })
    const { boss } = bossOf([ask("b1", "leaf")], { agents: { leaf }, defaultOptions: { maxDepth: 0 } })
    const chunks = await run(boss)
    expect(only(chunks, "tool-error")[0]?.payload.error).toBeInstanceOf(AgentDepthExceeded)
  })
})

describe("what stops the caller stops the agents below it", () => {
  const silentTower = () => {
    const signals: Array<AbortSignal> = []
    const silent = modelOf(async function* (_, signal) {
      signals.push(signal)
      yield { type: "text-delta", id: "0", delta: "began" }
      await new Promise(() => undefined)
    })
    const leaf = new Agent({ id: "leaf", model: silent })
    const mid = new Agent({
      id: "mid",
      model: ScriptedModel.make([[ask("m1", "leaf"), finish("tool-calls")]]),
      agents: { leaf }
    })
    return { ...bossOf([ask("b1", "mid")], { agents: { mid } }), signals }
  }

  const isBegun = (chunk: Chunk): boolean => unnest(chunk).chunk.type === "text-delta"

  const ways: ReadonlyArray<
    readonly [
      what: string,
      stop: (stop: {
        readonly eddy: Eddy
        readonly controller: AbortController
        readonly cancel: () => Promise<void>
      }) => unknown
    ]
  > = [
    ["its signal", ({ controller }) => controller.abort("enough")],
    ["cancel()", ({ cancel }) => cancel()],
    ["shutdown", ({ eddy }) => eddy.shutdown()]
  ]

  it.each(ways)("%s", async (_, stop) => {
    const { boss, signals } = silentTower()
    const eddy = new Eddy({ agents: { boss }, logger: memoryLogger() })
    const controller = new AbortController()
    const output = await boss.stream("go", { abortSignal: controller.signal })
    for await (const chunk of output.fullStream) if (isBegun(chunk)) break
    await stop({ eddy, controller, cancel: () => output.cancel("enough") })
    expect(await output.text.catch((error: unknown) => error)).toBeInstanceOf(RunAborted)
    expect(output.status).toBe("aborted")
    await until(() => signals[0]?.aborted === true, "the model at depth 2 has heard")
    expect(signals).toHaveLength(1)
    expectGrammar(await collect(output.fullStream))
  })
})

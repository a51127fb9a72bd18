/** Agents that are called in the background: the whole delegation is one task. */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, type Chunk, Nesting, Tool, type Usage } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Fiber } from "effect"
import { expectGrammar } from "../support/grammar.js"
import {
  callOf,
  calls,
  gated,
  heard,
  isAcknowledged,
  loadEverything,
  managed,
  outputIn,
  pass,
  tasks,
  taskTypes
} from "./backgroundKit.js"
import { chunksOf, finishOf, only, settle, textOf, types } from "./kit.js"
import { ends, memory, messagesOf, reply, text, toolCall } from "./memoryKit.js"

beforeAll(loadEverything)

type Settings = Agent.Options<[]>["backgroundTasks"]

const settings = (backgroundTasks: Settings) => (backgroundTasks === undefined ? {} : { backgroundTasks })

/** An agent below, whose tool waits to be told; its model calls it once and then says so. */
const below = (
  background: Parameters<typeof gated>[1],
  backgroundTasks?: Settings,
  usage: Usage.Usage = {}
) => {
  const dig = gated("dig", background)
  const model = ScriptedModel.make([
    [callOf("i1", "dig", 1), ends("tool-calls", usage)],
    [...text("dug"), ends("stop", usage)]
  ])
  const agent = Agent.make({ id: "helper", model, tools: [dig.tool], ...settings(backgroundTasks) })
  return { agent, dig, model }
}

/** An agent above, that asks the one below in its first step. */
const above = (
  tool: Tool.Tool,
  backgroundTasks?: Settings,
  rest: Parameters<typeof ScriptedModel.make>[0] = [reply("asked")],
  said: object = {}
) => {
  const model = ScriptedModel.make([calls(toolCall("c1", tool.name, { prompt: "dig", ...said })), ...rest])
  return { agent: Agent.make({ id: "boss", model, tools: [tool], ...settings(backgroundTasks) }), model }
}

/** What tasks wrote. */
const written = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<Chunk.Chunk> =>
  only(chunks, "background-task-output").map(({ payload }) => payload.payload.payload.output as Chunk.Chunk)

const result = { type: "text", value: "dug" }

describe("an agent that is called in the background", () => {
  it.effect("is one task, whose chunks are what the task writes", () =>
    Effect.gen(function* () {
      const { agent, dig, model } = below({ enabled: false })
      const boss = above(Agent.asTool(agent), { tools: { helper: true } })
      const told = yield* heard()
      const chunks = yield* chunksOf(Agent.stream(boss.agent, "go", { memory, runId: "r1" }))
      expectGrammar(chunks)
      expect(isAcknowledged(finishOf(chunks).messages.all, "c1")).toBe(true)
      expect(types(chunks)).not.toContain("tool-output")
      yield* dig.end(1)
      const [task, ...others] = yield* tasks
      expect(others).toStrictEqual([])
      expect(task).toMatchObject({
        status: "completed",
        toolName: "agent-helper",
        toolCallId: "c1",
        agentId: "boss",
        runId: "r1",
        threadId: "t1",
        args: { prompt: "dig" },
        result: { text: "dug" }
      })
      const inner = written(told)
      expectGrammar(inner)
      expect(types(inner).at(0)).toBe("start")
      expect(types(inner).at(-1)).toBe("finish")
      expect(textOf(inner)).toBe("dug")
      for (const chunk of only(told, "background-task-output")) {
        expect(chunk.payload).toMatchObject({
          taskId: task?.id,
          payload: {
            type: "tool-output",
            runId: "r1",
            payload: { toolCallId: "c1", toolName: "agent-helper" }
          }
        })
        expect(Nesting.unnest(chunk).chunk).toBeDefined()
      }
      expect(taskTypes(told).filter(type => type !== "background-task-output")).toStrictEqual([
        "background-task-running",
        "background-task-completed"
      ])
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(result)
      expect(model.unused()).toBe(0)
    }).pipe(Effect.scoped, managed())
  )

  type Row = readonly [
    what: string,
    isTask: boolean,
    background: Parameters<typeof gated>[1],
    below: Settings,
    above: Settings,
    said?: object
  ]
  const off = { enabled: false }
  const on = { enabled: true }
  const rows: ReadonlyArray<Row> = [
    ["nobody has said anything", false, off, undefined, undefined],
    ["it is listed by its key", true, off, undefined, { tools: { helper: true } }],
    ["it is listed by the name of its tool", true, off, undefined, { tools: { "agent-helper": true } }],
    ["all are", true, off, undefined, { tools: "all" }],
    ["a tool of it would run there", true, on, undefined, undefined],
    ["it has listed a tool itself", true, off, { tools: { dig: true } }, undefined],
    ["it has listed all of them", true, off, { tools: "all" }, undefined],
    ["it has brought its tool back", false, on, { tools: { dig: false } }, undefined],
    ["it has disabled tasks", false, on, { disabled: true }, undefined],
    ["it has disabled tasks and is listed", true, on, { disabled: true }, { tools: { helper: true } }],
    ["who calls it says no", false, on, { tools: "all" }, { tools: { helper: false } }],
    [
      "who calls it says no, by the name",
      false,
      on,
      undefined,
      { tools: { "agent-helper": { enabled: false } } }
    ],
    ["who calls it has disabled tasks", false, on, { tools: "all" }, { disabled: true }],
    ["the model brings it back", false, on, undefined, undefined, { _background: { enabled: false } }],
    ["only the model says so", false, off, undefined, undefined, { _background: { enabled: true } }]
  ]

  it.effect.each(rows)("when %s: %s", ([, isTask, background, inner, outer, said]) =>
    Effect.gen(function* () {
      const { agent, dig } = below(background, inner)
      const boss = above(Agent.asTool(agent), outer, [reply("asked")], said)
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(boss.agent, "go")))
      yield* settle
      expect(fiber.unsafePoll() !== null).toBe(isTask)
      expect(dig.contexts).toHaveLength(1)
      // Its own tools run in it, and never as tasks of their own.
      expect(dig.contexts[0]?.taskId).toBeUndefined()
      yield* dig.end(1)
      const chunks = yield* Fiber.join(fiber)
      expect((yield* tasks).map(({ toolName }) => toolName)).toStrictEqual(isTask ? ["agent-helper"] : [])
      expect(types(chunks).includes("tool-output")).toBe(!isTask)
      expect(only(chunks, "background-task-started")).toHaveLength(isTask ? 1 : 0)
    }).pipe(managed())
  )

  it.effect("by a key of its own is listed by that", () =>
    Effect.gen(function* () {
      for (const listed of ["agent-digger", "digger", "helper"]) {
        const { agent } = below({ enabled: false })
        const boss = above(Agent.asTool(agent, { name: "agent-digger" }), { tools: { [listed]: true } })
        yield* chunksOf(Agent.stream(boss.agent, "go"))
      }
      expect((yield* tasks).map(({ toolName }) => toolName)).toStrictEqual(
        Array.from({ length: 3 }, () => "agent-digger")
      )
    }).pipe(managed())
  )

  it.effect("is told of nothing that it could say about its calls", () =>
    Effect.gen(function* () {
      const { agent, dig, model } = below({ enabled: true })
      const boss = above(Agent.asTool(agent))
      yield* chunksOf(Agent.stream(boss.agent, "go"))
      yield* dig.end(1)
      expect(JSON.stringify(boss.model.requests[0])).toContain("_background")
      expect(JSON.stringify(model.requests)).not.toContain("_background")
      expect(model.requests[0]?.messages.map(({ role }) => role)).toStrictEqual(["user"])
    }).pipe(managed())
  )

  it.effect("takes over limits and callbacks of the agent below", () =>
    Effect.gen(function* () {
      const called: Array<string> = []
      const note = (who: string) => () => void called.push(who)
      const { agent, dig } = below(
        { enabled: true, timeout: 777 },
        { waitTimeout: 50, onTaskComplete: note("below") }
      )
      const boss = above(Agent.asTool(agent), { onTaskComplete: note("above") }, [
        reply("asked"),
        reply("dug it")
      ])
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(boss.agent, "go")))
      yield* settle
      expect(fiber.unsafePoll()).toBeNull()
      expect(yield* tasks).toMatchObject([{ timeoutMs: 777 }])
      yield* dig.end(1)
      const chunks = yield* Fiber.join(fiber)
      expect(textOf(chunks)).toBe("askeddug it")
      expect(called).toStrictEqual(["below", "above"])
    }).pipe(managed())
  )

  it.effect("is one task also when it calls others in turn", () =>
    Effect.gen(function* () {
      const { agent, dig } = below({ enabled: true })
      const middle = Agent.make({
        id: "middle",
        model: ScriptedModel.make([
          calls(toolCall("m1", "agent-helper", { prompt: "dig" })),
          reply("passed on")
        ]),
        tools: [Agent.asTool(agent)]
      })
      const boss = above(Agent.asTool(middle))
      const told = yield* heard()
      yield* chunksOf(Agent.stream(boss.agent, "go"))
      expect(yield* tasks).toMatchObject([{ toolName: "agent-middle", status: "running" }])
      yield* dig.end(1)
      expect(yield* tasks).toMatchObject([{ toolName: "agent-middle", status: "completed" }])
      const inner = written(told)
      expectGrammar(inner)
      const innermost = only(inner, "tool-output").map(({ payload }) => payload.output as Chunk.Chunk)
      expectGrammar(innermost)
      expect(textOf(innermost)).toBe("dug")
    }).pipe(Effect.scoped, managed())
  )

  it.effect("stays within the depth that its caller allows", () =>
    Effect.gen(function* () {
      const { agent, dig } = below({ enabled: false })
      const middle = Agent.make({
        id: "middle",
        model: ScriptedModel.make([
          calls(toolCall("m1", "agent-helper", { prompt: "dig" })),
          ({ messages }) => reply(JSON.stringify(outputIn(messages, "m1")))
        ]),
        tools: [Agent.asTool(agent)]
      })
      const model = ScriptedModel.make([
        calls(toolCall("c1", "agent-middle", { prompt: "go" })),
        reply("asked")
      ])
      const boss = Agent.make({
        id: "boss",
        model,
        tools: [Agent.asTool(middle)],
        backgroundTasks: { tools: "all" },
        maxDepth: 1
      })
      yield* chunksOf(Agent.stream(boss, "go"))
      yield* settle
      expect(dig.contexts).toHaveLength(0)
      const [task] = yield* tasks
      expect(task).toMatchObject({ status: "completed" })
      expect(JSON.stringify(task?.result)).toContain("2 agents deep")
    }).pipe(managed())
  )
})

describe("what an agent in the background uses", () => {
  const tokens = (count: number): Usage.Usage => ({
    inputTokens: count,
    outputTokens: count,
    totalTokens: 2 * count
  })

  it.effect("counts into the run when it settles in it, in the step in which it does", () =>
    Effect.gen(function* () {
      const { agent, dig } = below({ enabled: false }, { waitTimeout: 50 }, tokens(100))
      const wait = gated("wait", { enabled: false })
      const model = ScriptedModel.make([
        [toolCall("c1", "agent-helper", { prompt: "dig" }), ends("tool-calls", tokens(1))],
        [callOf("c2", "wait", 2), ends("tool-calls", tokens(1))],
        [...text("done"), ends("stop", tokens(1))]
      ])
      const boss = Agent.make({
        id: "boss",
        model,
        tools: [Agent.asTool(agent), wait.tool],
        backgroundTasks: { tools: { helper: true } }
      })
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(boss, "go")))
      yield* settle
      yield* dig.end(1)
      yield* wait.end(2)
      const chunks = yield* Fiber.join(fiber)
      const steps = only(chunks, "step-finish").map(({ payload }) => payload.output.usage.inputTokens)
      expect(steps).toStrictEqual([1, 201, 1])
      expect(finishOf(chunks).output.usage).toMatchObject(tokens(203))
    }).pipe(managed())
  )

  it.effect("counts into nothing that is over", () =>
    Effect.gen(function* () {
      const { agent, dig } = below({ enabled: false }, undefined, tokens(100))
      const boss = above(Agent.asTool(agent), { tools: { helper: true } })
      const chunks = yield* chunksOf(Agent.stream(boss.agent, "go"))
      yield* dig.end(1)
      expect(finishOf(chunks).output.usage.inputTokens ?? 0).toBe(0)
    }).pipe(managed())
  )
})

describe("an agent in the background that is stopped", () => {
  it.effect("because it takes too long, with everything below it", () =>
    Effect.gen(function* () {
      const { agent, dig } = below({ enabled: false })
      const boss = above(Agent.asTool(agent), { tools: { helper: { timeout: 40 } } })
      const told = yield* heard()
      yield* chunksOf(Agent.stream(boss.agent, "go", { memory }))
      expect(dig.contexts[0]?.abortSignal.aborted).toBe(false)
      yield* pass(40)
      expect(dig.contexts[0]?.abortSignal.aborted).toBe(true)
      expect(yield* tasks).toMatchObject([{ status: "timed_out" }])
      expect(outputIn(yield* messagesOf(), "c1")).toMatchObject({ type: "error-text" })
      // What it says while it ends is heard by nobody.
      expect(types(told).at(-1)).toBe("background-task-failed")
    }).pipe(Effect.scoped, managed())
  )

  it.effect("because it is cancelled, with everything below it", () =>
    Effect.gen(function* () {
      const { agent, dig } = below({ enabled: false })
      const boss = above(Agent.asTool(agent), { tools: { helper: true } })
      const told = yield* heard()
      yield* chunksOf(Agent.stream(boss.agent, "go", { memory }))
      const service = yield* BackgroundTasks.BackgroundTasks
      yield* service.cancel((yield* tasks)[0]?.id ?? "")
      yield* settle
      expect(dig.contexts[0]?.abortSignal.aborted).toBe(true)
      expect(types(told).at(-1)).toBe("background-task-cancelled")
    }).pipe(Effect.scoped, managed())
  )

  it.effect("not by the run that called it", () =>
    Effect.gen(function* () {
      const { agent, dig } = below({ enabled: false })
      const boss = above(Agent.asTool(agent), { tools: { helper: true } }, [[ScriptedModel.hang]])
      const controller = new AbortController()
      const stream = Agent.stream(boss.agent, "go", { memory, abortSignal: controller.signal })
      const fiber = yield* Effect.fork(chunksOf(stream))
      yield* settle
      controller.abort()
      yield* Fiber.join(fiber)
      expect(dig.contexts[0]?.abortSignal.aborted).toBe(false)
      yield* dig.end(1)
      expect(yield* tasks).toMatchObject([{ status: "completed", result: { text: "dug" } }])
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(result)
    }).pipe(managed())
  )

  it.effect("by its own failure", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ id: "helper", model: ScriptedModel.make([]), maxRetries: 0 })
      const boss = above(Agent.asTool(agent), { tools: { helper: true } })
      yield* chunksOf(Agent.stream(boss.agent, "go", { memory }))
      yield* settle
      const [task] = yield* tasks
      expect(task).toMatchObject({ status: "failed", error: { message: expect.stringContaining("script") } })
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({
        type: "error-text",
        value: task?.error?.message
      })
    }).pipe(managed())
  )
})

describe("a tool that runs an agent by itself", () => {
  it.effect.each([true, false])("makes no tasks of the calls of that, in the background: %s", enabled =>
    Effect.gen(function* () {
      const { agent, dig } = below({ enabled: true })
      const delegate = Tool.make("delegate", {
        input: { type: "object" },
        background: { enabled },
        execute: () => Effect.map(Agent.generate(agent, "dig"), output => output.text)
      })
      const boss = above(delegate)
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(boss.agent, "go", { memory })))
      yield* settle
      expect(dig.contexts).toHaveLength(1)
      expect(dig.contexts[0]?.taskId).toBeUndefined()
      yield* dig.end(1)
      yield* Fiber.join(fiber)
      expect((yield* tasks).map(({ toolName }) => toolName)).toStrictEqual(enabled ? ["delegate"] : [])
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(result)
    }).pipe(managed())
  )
})

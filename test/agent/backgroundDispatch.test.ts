/** How a call is dispatched to the background, and in which order that is told. */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Exit, Fiber, Schema } from "effect"
import { expectGrammar } from "../support/grammar.js"
import {
  callOf,
  calls,
  gated,
  going,
  isAcknowledged,
  loadEverything,
  managed,
  outputIn,
  taskOf,
  tasks,
  tasksChanged,
  taskTypes
} from "./backgroundKit.js"
import { chunksOf, finishOf, only, read, types } from "./kit.js"
import { memory, messagesOf, reply, toolCall } from "./memoryKit.js"

beforeAll(loadEverything)

const quick = Tool.make("quick", { execute: () => Effect.succeed("quick") })

describe("a step that dispatches", () => {
  it.effect("tells the call, that it has started, the acknowledgement, and goes on", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool] })
      const chunks = yield* chunksOf(Agent.stream(agent, "go", { runId: "r1" }))
      expectGrammar(chunks)
      expect(types(chunks)).toStrictEqual([
        "start",
        "step-start",
        "tool-call",
        "background-task-started",
        "tool-result",
        "step-finish",
        "background-task-progress",
        "step-start",
        "text-start",
        "text-delta",
        "text-end",
        "step-finish",
        "finish"
      ])
      const [task] = yield* tasks
      expect(task).toMatchObject({
        status: "running",
        toolName: "dig",
        toolCallId: "c1",
        args: { n: 1 },
        agentId: "a",
        runId: "r1",
        attempt: 1,
        maxRetries: 0,
        timeoutMs: 300_000
      })
      expect(task).not.toHaveProperty("threadId")
      expect(only(chunks, "background-task-started")).toStrictEqual([
        {
          type: "background-task-started",
          runId: "r1",
          from: "AGENT",
          payload: { taskId: task?.id, toolName: "dig", toolCallId: "c1" }
        }
      ])
      const [result] = only(chunks, "tool-result")
      expect(result?.payload).toMatchObject({ toolCallId: "c1", toolName: "dig", args: { n: 1 } })
      expect(result?.payload.result).toContain(String(task?.id))
      expect(taskOf(result?.payload.providerMetadata)).toStrictEqual({ taskId: task?.id, status: "running" })
      // The same is what the model is told.
      const told = model.requests[1]?.messages ?? []
      expect(isAcknowledged(told, "c1")).toBe(true)
      expect(outputIn(told, "c1")).toStrictEqual({ type: "text", value: result?.payload.result })
    }).pipe(managed())
  )

  it.effect("acknowledges at once, whatever else runs in it", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const wait = gated("wait", { enabled: false })
      const model = ScriptedModel.make([calls(callOf("c1", "wait", 1), callOf("c2", "dig", 2)), reply("ok")])
      const { chunks, fiber, isOver } = yield* going(
        Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool, wait.tool] }), "go")
      )
      expect(types(chunks).slice(-4)).toStrictEqual([
        "tool-call",
        "tool-call",
        "background-task-started",
        "tool-result"
      ])
      expect(yield* tasks).toMatchObject([{ toolCallId: "c2", status: "running" }])
      expect(isOver()).toBe(false)
      yield* wait.end(1)
      yield* Fiber.join(fiber)
      expectGrammar(chunks)
      // In the order of the calls, whenever they came.
      const told = model.requests[1]?.messages.at(-1)
      expect(told?.role === "tool" ? told.content.map(({ toolCallId }) => toolCallId) : []).toStrictEqual([
        "c1",
        "c2"
      ])
    }).pipe(managed())
  )

  it.effect("starts each of several", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1), toolCall("c2", "quick", {}), callOf("c3", "dig", 3)),
        reply("ok")
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, quick] })
      const chunks = yield* chunksOf(Agent.stream(agent, "go"))
      expectGrammar(chunks)
      expect(only(chunks, "background-task-started").map(({ payload }) => payload.toolCallId)).toStrictEqual([
        "c1",
        "c3"
      ])
      expect((yield* tasks).map(({ toolCallId }) => toolCallId)).toStrictEqual(["c1", "c3"])
      const [first, , third] = only(chunks, "tool-result")
      expect(first?.payload.result).not.toBe(third?.payload.result)
      const told = model.requests[1]?.messages ?? []
      expect(outputIn(told, "c2")).toStrictEqual({ type: "text", value: "quick" })
      expect(isAcknowledged(told, "c2")).toBe(false)
    }).pipe(managed())
  )

  it.effect("tells each call one result, also of a task that is done at once", () =>
    Effect.gen(function* () {
      const now = Tool.make("now", { background: { enabled: true }, execute: () => Effect.succeed("now") })
      const model = ScriptedModel.make([calls(toolCall("c1", "now", {})), reply("ok")])
      const agent = Agent.make({ id: "a", model, tools: [now] })
      const chunks = yield* chunksOf(Agent.stream(agent, "go"))
      expectGrammar(chunks)
      expect(only(chunks, "tool-result")).toHaveLength(1)
      expect(taskTypes(chunks)).toStrictEqual(["background-task-started"])
      // The model is told what it came to, as it is there already.
      expect(outputIn(model.requests[1]?.messages ?? [], "c1")).toStrictEqual({ type: "text", value: "now" })
    }).pipe(managed())
  )

  it.effect("gives the tool what belongs to its task", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("ok")])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool] })
      const requestContext = new Map([["user", "u1"]])
      yield* chunksOf(Agent.stream(agent, "go", { runId: "r1", memory, requestContext }))
      const [task] = yield* tasks
      const [context] = dig.contexts
      expect(context).toMatchObject({
        agentId: "a",
        runId: "r1",
        toolCallId: "c1",
        toolName: "dig",
        threadId: "t1",
        resourceId: "u1",
        taskId: task?.id,
        resumeData: undefined
      })
      expect(context?.requestContext.get("user")).toBe("u1")
      expect(context?.messages.at(-1)).toMatchObject({ role: "user" })
      expect(context?.abortSignal.aborted).toBe(false)
    }).pipe(managed())
  )

  it.effect("knows by metadata, and not by words, what an acknowledgement is", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      // What was said about the first call is what the second one gives.
      const parrot = Tool.make("parrot", {
        input: Schema.Struct({ say: Schema.String }),
        execute: ({ say }) => Effect.succeed(say)
      })
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1)),
        ({ messages }) => {
          const output = outputIn(messages, "c1") as { readonly value: string }
          return calls(toolCall("c2", "parrot", { say: output.value }))
        },
        reply("ok")
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, parrot] })
      const { chunks, fiber } = yield* going(Agent.stream(agent, "go", { memory }))
      yield* Fiber.join(fiber)
      const [first, second] = only(chunks, "tool-result")
      expect(second?.payload.result).toBe(first?.payload.result)
      expect(taskOf(second?.payload.providerMetadata)).toBeUndefined()
      yield* dig.end(1)
      const held = yield* messagesOf()
      expect(outputIn(held, "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      expect(outputIn(held, "c2")).toStrictEqual({ type: "text", value: second?.payload.result })
    }).pipe(managed())
  )

  it.effect("counts for `toolCallConcurrency` only as long as dispatching takes", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const wait = gated("wait", { enabled: false })
      const model = ScriptedModel.make([
        calls(
          callOf("c1", "dig", 1),
          callOf("c2", "dig", 2),
          callOf("c3", "wait", 3),
          callOf("c4", "dig", 4)
        ),
        reply("ok")
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, wait.tool], toolCallConcurrency: 1 })
      const { fiber } = yield* going(Agent.stream(agent, "go"))
      expect((yield* tasks).map(({ toolCallId }) => toolCallId)).toStrictEqual(["c1", "c2"])
      expect(wait.inputs).toHaveLength(1)
      yield* wait.end(3)
      yield* Fiber.join(fiber)
      expect((yield* tasks).map(({ toolCallId }) => toolCallId)).toStrictEqual(["c1", "c2", "c4"])
    }).pipe(managed())
  )

  it.effect("holds up those behind it as long as dispatching takes", () => {
    const open = Effect.runSync(Deferred.make<void>())
    return Effect.gen(function* () {
      const dig = gated("dig")
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1), toolCall("c2", "quick", {})),
        reply("ok")
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, quick], toolCallConcurrency: 1 })
      const { chunks, fiber } = yield* going(Agent.stream(agent, "go"))
      expect(types(chunks)).not.toContain("tool-result")
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(only(chunks, "tool-result").map(({ payload }) => payload.toolCallId)).toStrictEqual(["c1", "c2"])
    }).pipe(
      managed(
        {},
        tasksChanged(store => ({
          create: (task, owner) => Effect.zipRight(Deferred.await(open), store.create(task, owner))
        }))
      )
    )
  })
})

describe("a run that ends in a step that dispatches", () => {
  it.effect("because no more steps are allowed tells its tasks all the same", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1))])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool], maxSteps: 1 })
      const { chunks, exit } = yield* read(Agent.stream(agent, "go"))
      expect(exit).toStrictEqual(Exit.void)
      expectGrammar(chunks)
      expect(types(chunks).slice(-3)).toStrictEqual(["step-finish", "background-task-progress", "finish"])
      expect(finishOf(chunks).stepResult.stoppedBy).toBe("max-steps")
      expect(isAcknowledged(finishOf(chunks).messages.all, "c1")).toBe(true)
    }).pipe(managed())
  )

  it.effect("because it is the client's turn", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const client = Tool.make("client", {})
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1), toolCall("c2", "client", {}))])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, client] })
      const chunks = yield* chunksOf(Agent.stream(agent, "go", { memory }))
      expectGrammar(chunks)
      expect(finishOf(chunks).stepResult.stoppedBy).toBe("client-tool")
      yield* dig.end(1)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
    }).pipe(managed())
  )
})

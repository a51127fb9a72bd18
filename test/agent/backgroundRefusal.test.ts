/** Calls that cannot be dispatched: there is no slot, or the store of tasks fails, hangs or is slow. */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, Errors, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { expectGrammar } from "../support/grammar.js"
import {
  callOf,
  calls,
  gated,
  going,
  loadEverything,
  managed,
  outputIn,
  pass,
  taskOf,
  tasks,
  tasksChanged,
  taskTypes
} from "./backgroundKit.js"
import { chunksOf, finishOf, only, settle, types } from "./kit.js"
import { changed, memory, messagesOf, reply, toolCall } from "./memoryKit.js"

beforeAll(loadEverything)

const quick = Tool.make("quick", { execute: () => Effect.succeed("quick") })

describe("a call that finds no slot", () => {
  const twice = () => {
    const dig = gated("dig")
    const model = ScriptedModel.make([calls(callOf("c1", "dig", 1), callOf("c2", "dig", 2)), reply("ok")])
    const agent = Agent.make({ id: "a", model, tools: [dig.tool] })
    return { dig, model, stream: Agent.stream(agent, "go", { memory }) }
  }

  it.effect("waits, and is acknowledged all the same", () =>
    Effect.gen(function* () {
      const { dig, stream } = twice()
      const chunks = yield* chunksOf(stream)
      expect(only(chunks, "background-task-started")).toHaveLength(2)
      expect(yield* tasks).toMatchObject([{ status: "running" }, { status: "pending" }])
      yield* dig.end(1)
      expect(yield* tasks).toMatchObject([{ status: "completed" }, { status: "running" }])
    }).pipe(managed({ globalConcurrency: 1 }))
  )

  it.effect("is a tool error, and the run goes on", () =>
    Effect.gen(function* () {
      const { dig, model, stream } = twice()
      const chunks = yield* chunksOf(stream)
      expectGrammar(chunks)
      expect(only(chunks, "tool-error").map(({ payload }) => payload)).toMatchObject([
        { toolCallId: "c2", error: { _tag: "TaskRejected", toolName: "dig", agentId: "a" } }
      ])
      expect(only(chunks, "background-task-started").map(({ payload }) => payload.toolCallId)).toStrictEqual([
        "c1"
      ])
      expect(yield* tasks).toMatchObject([{ toolCallId: "c1", status: "running" }])
      expect(dig.inputs).toStrictEqual([{ n: 1 }])
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
      const told = model.requests[1]?.messages ?? []
      expect(outputIn(told, "c2")).toMatchObject({
        type: "error-text",
        value: expect.stringContaining("dig")
      })
      yield* dig.end(1)
      expect(outputIn(yield* messagesOf(), "c2")).toMatchObject({ type: "error-text" })
    }).pipe(managed({ globalConcurrency: 1, backpressure: "reject" }))
  )

  it.effect("runs in the foreground: nothing is started, and no task is made", () =>
    Effect.gen(function* () {
      const { dig, model, stream } = twice()
      const { chunks, fiber, isOver } = yield* going(stream)
      expect(dig.inputs).toStrictEqual([{ n: 1 }, { n: 2 }])
      expect(isOver()).toBe(false)
      expect(dig.contexts[1]?.taskId).toBeUndefined()
      yield* dig.end(2)
      yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(only(chunks, "background-task-started").map(({ payload }) => payload.toolCallId)).toStrictEqual([
        "c1"
      ])
      expect(yield* tasks).toMatchObject([{ toolCallId: "c1", status: "running" }])
      const results = only(chunks, "tool-result").map(({ payload }) => payload)
      expect(results).toMatchObject([{ toolCallId: "c1" }, { toolCallId: "c2", result: { n: 2 } }])
      expect(taskOf(results[1]?.providerMetadata)).toBeUndefined()
      expect(outputIn(model.requests[1]?.messages ?? [], "c2")).toStrictEqual({
        type: "json",
        value: { n: 2 }
      })
    }).pipe(managed({ globalConcurrency: 1, backpressure: "fallback-sync" }))
  )

  it.effect("in the foreground ends with its run", () =>
    Effect.gen(function* () {
      const { dig, stream } = twice()
      const { fiber } = yield* going(stream)
      const signal = dig.contexts[1]?.abortSignal
      const task = dig.contexts[0]?.abortSignal
      yield* Fiber.interrupt(fiber)
      expect(signal?.aborted).toBe(true)
      expect(task?.aborted).toBe(false)
      expect(yield* tasks).toMatchObject([{ toolCallId: "c1", status: "running" }])
    }).pipe(managed({ globalConcurrency: 1, backpressure: "fallback-sync" }))
  )
})

describe("a store of tasks", () => {
  const once = () => {
    const dig = gated("dig")
    const model = ScriptedModel.make([
      calls(callOf("c1", "dig", 1), toolCall("c2", "quick", {})),
      reply("ok")
    ])
    const agent = Agent.make({ id: "a", model, tools: [dig.tool, quick] })
    return { dig, model, agent }
  }

  const expectError = (chunks: ReadonlyArray<Chunk.Chunk>, model: ScriptedModel.ScriptedModel): void => {
    expectGrammar(chunks)
    const [error, ...others] = only(chunks, "tool-error").map(({ payload }) => payload)
    expect(others).toStrictEqual([])
    expect(error?.toolCallId).toBe("c1")
    expect(error?.error).toBeInstanceOf(Errors.StorageError)
    expect(taskTypes(chunks)).toStrictEqual([])
    expect(finishOf(chunks).stepResult.reason).toBe("stop")
    const told = model.requests[1]?.messages ?? []
    expect(outputIn(told, "c1")).toMatchObject({ type: "error-text" })
    expect(outputIn(told, "c2")).toStrictEqual({ type: "text", value: "quick" })
  }

  for (const backpressure of ["queue", "reject", "fallback-sync"] as const) {
    it.effect(`that fails makes the call a tool error (${backpressure})`, () =>
      Effect.gen(function* () {
        const { agent, dig, model } = once()
        expectError(yield* chunksOf(Agent.stream(agent, "go")), model)
        expect(dig.inputs).toStrictEqual([])
        expect(yield* tasks).toStrictEqual([])
      }).pipe(
        managed(
          { backpressure },
          tasksChanged(() => ({
            create: () => Effect.fail(new Errors.StorageError({ operation: "create", message: "broken" }))
          }))
        )
      )
    )

    it.effect(`that hangs makes it one after a while (${backpressure})`, () =>
      Effect.gen(function* () {
        const { agent, dig, model } = once()
        const { chunks, fiber, isOver } = yield* going(Agent.stream(agent, "go"))
        expect(only(chunks, "tool-result").map(({ payload }) => payload.toolCallId)).toStrictEqual(["c2"])
        expect(isOver()).toBe(false)
        yield* pass(10_000)
        yield* Fiber.join(fiber)
        expectError(chunks, model)
        expect(dig.inputs).toStrictEqual([])
      }).pipe(
        managed(
          { backpressure, lease: 100_000 },
          tasksChanged(() => ({ create: () => Effect.never }))
        )
      )
    )
  }

  it.effect("that is slow: a run that is stopped meanwhile loses no task", () => {
    const open = Effect.runSync(Deferred.make<void>())
    return Effect.gen(function* () {
      const { agent, dig } = once()
      const controller = new AbortController()
      const stream = Agent.stream(agent, "go", { memory, abortSignal: controller.signal })
      const { chunks, fiber } = yield* going(stream)
      controller.abort("enough")
      yield* settle
      // The run is over for its reader.
      expectGrammar(chunks)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
      expect(taskTypes(chunks)).toStrictEqual([])
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(fiber)
      expect(yield* tasks).toMatchObject([{ toolCallId: "c1", status: "running" }])
      expect(outputIn(yield* messagesOf(), "c1")).toMatchObject({ type: "error-text" })
      // Its outcome comes to where the call is.
      yield* dig.end(1)
      expect(yield* tasks).toMatchObject([{ status: "completed" }])
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
    }).pipe(
      managed(
        {},
        tasksChanged(store => ({
          create: (task, owner) => Effect.zipRight(Deferred.await(open), store.create(task, owner))
        }))
      )
    )
  })

  it.effect("that is slow, beside a slow one of threads: the outcome finds its way", () => {
    const isCreated = Effect.runSync(Deferred.make<void>())
    const isStored = Effect.runSync(Deferred.make<void>())
    return Effect.gen(function* () {
      const { agent, dig } = once()
      const controller = new AbortController()
      const stream = Agent.stream(agent, "go", { memory, abortSignal: controller.signal })
      const { fiber } = yield* going(stream)
      controller.abort("enough")
      yield* settle
      yield* Deferred.succeed(isCreated, undefined)
      yield* dig.end(1)
      expect(yield* tasks).toMatchObject([{ status: "completed" }])
      // Of the call nobody has stored anything.
      expect(yield* messagesOf()).toHaveLength(1)
      yield* Deferred.succeed(isStored, undefined)
      yield* Fiber.join(fiber)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
    }).pipe(
      managed(
        {},
        Layer.merge(
          tasksChanged(store => ({
            create: (task, owner) => Effect.zipRight(Deferred.await(isCreated), store.create(task, owner))
          })),
          changed(store => ({
            append: (id, messages) =>
              messages.some(({ message }) => message.role === "tool")
                ? Effect.zipRight(Deferred.await(isStored), store.append(id, messages))
                : store.append(id, messages)
          }))
        )
      )
    )
  })
})

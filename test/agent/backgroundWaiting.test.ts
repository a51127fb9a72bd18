/** How long a run waits for its tasks before it would finish, and what it makes of those that settle meanwhile. */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, type Chunk, type StopCondition, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Clock, Effect, Fiber, Schema, type Stream } from "effect"
import { expectGrammar } from "../support/grammar.js"
import {
  callOf,
  calls,
  gated,
  isAcknowledged,
  loadEverything,
  managed,
  notesIn,
  outputIn,
  pass,
  tasks
} from "./backgroundKit.js"
import { chunksOf, finishOf, only, settle, textOf, types } from "./kit.js"
import { memory, messagesOf, reply, toolCall } from "./memoryKit.js"

beforeAll(loadEverything)

/** A run in progress, and how many milliseconds it took when it is over. */
const begin = <R>(stream: Stream.Stream<Chunk.Chunk, unknown, R>) =>
  Effect.gen(function* () {
    const from = yield* Clock.currentTimeMillis
    const fiber = yield* Effect.fork(
      Effect.gen(function* () {
        const chunks = yield* chunksOf(stream)
        expectGrammar(chunks)
        return { chunks, took: (yield* Clock.currentTimeMillis) - from }
      })
    )
    yield* settle
    return {
      isOver: () => fiber.unsafePoll() !== null,
      ended: Fiber.join(fiber)
    }
  })

const waits = { enabled: true, waitTimeout: 100 } as const

const result = (n: number) => ({ type: "json", value: { n } })

describe("a run that waits for its tasks", () => {
  it.effect("answers to one that settles by one more step, which is told so", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started"), reply("it is 1")])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool], instructions: "Be nice." })
      const run = yield* begin(Agent.stream(agent, "go", { memory }))
      yield* pass(60)
      expect(run.isOver()).toBe(false)
      expect(model.requests).toHaveLength(2)
      yield* dig.end(1)
      const { chunks, took } = yield* run.ended
      expect(took).toBe(60)
      expect(textOf(chunks)).toBe("startedit is 1")
      expect(only(chunks, "step-finish").map(({ payload }) => payload.stepResult.isContinued)).toStrictEqual([
        true,
        true,
        false
      ])
      const [, second, third] = model.requests.map(({ messages }) => messages)
      expect(isAcknowledged(second ?? [], "c1")).toBe(true)
      expect(notesIn(second ?? [])).toStrictEqual([])
      expect(outputIn(third ?? [], "c1")).toStrictEqual(result(1))
      const [note, ...others] = notesIn(third ?? [])
      expect(others).toStrictEqual([])
      const [task] = yield* tasks
      expect(note).toContain(`call c1 of "dig" (task ${task?.id}) completed`)
      // The answer that it goes on from stands before it, and nobody keeps it.
      expect(third?.filter(({ role }) => role === "assistant")).toHaveLength(2)
      expect(notesIn(finishOf(chunks).messages.all)).toStrictEqual([])
      const held = yield* messagesOf()
      expect(held.map(({ role }) => role)).toStrictEqual([
        "user",
        "assistant",
        "tool",
        "assistant",
        "assistant"
      ])
      expect(outputIn(held, "c1")).toStrictEqual(result(1))
      expect(model.unused()).toBe(0)
    }).pipe(managed())
  )

  it.effect("answers to two, one after the other, each in time from when it would have finished", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1), callOf("c2", "dig", 2)),
        reply("started"),
        reply("one"),
        reply("two")
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool] })
      const run = yield* begin(Agent.stream(agent, "go"))
      yield* pass(40)
      yield* dig.end(2)
      expect(model.requests).toHaveLength(3)
      expect(run.isOver()).toBe(false)
      yield* pass(59)
      yield* dig.end(1)
      const { took } = yield* run.ended
      expect(took).toBe(99)
      const [, , third, fourth] = model.requests.map(({ messages }) => messages)
      expect(isAcknowledged(third ?? [], "c1")).toBe(true)
      expect(outputIn(third ?? [], "c2")).toStrictEqual(result(2))
      expect(notesIn(third ?? [])).toStrictEqual([expect.stringMatching(/call c2(?!.*call c1)/s)])
      expect(outputIn(fourth ?? [], "c1")).toStrictEqual(result(1))
      expect(notesIn(fourth ?? [])).toStrictEqual([expect.stringMatching(/call c1(?!.*call c2)/s)])
    }).pipe(managed())
  )

  it.effect("answers to those that settle at once in one step", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1), callOf("c2", "dig", 2)),
        [...reply("started").slice(0, -1), ScriptedModel.pause(5), ScriptedModel.finish("stop")],
        reply("both")
      ])
      const run = yield* begin(Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go"))
      yield* dig.end(1)
      yield* dig.end(2, Effect.fail("no"))
      yield* pass(5)
      const { took } = yield* run.ended
      expect(took).toBe(5)
      const told = model.requests[2]?.messages ?? []
      expect(outputIn(told, "c2")).toStrictEqual({ type: "error-text", value: "no" })
      expect(notesIn(told)).toStrictEqual([
        expect.stringMatching(/call c1 .* completed\..*call c2 .* failed\./s)
      ])
    }).pipe(managed())
  )

  it.effect("finishes on time when none settles", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
      const run = yield* begin(
        Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go", { memory })
      )
      yield* pass(99)
      expect(run.isOver()).toBe(false)
      yield* pass(1)
      const { chunks, took } = yield* run.ended
      expect(took).toBe(100)
      expect(finishOf(chunks).stepResult).toStrictEqual({ reason: "stop", isContinued: false })
      // Its task goes on, and comes too late to be answered.
      yield* dig.end(1)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(result(1))
      expect(model.requests).toHaveLength(2)
    }).pipe(managed())
  )

  it.effect("waits anew for what the step that answers has dispatched", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1)),
        reply("started"),
        calls(callOf("c2", "dig", 2)),
        reply("again"),
        reply("done")
      ])
      const run = yield* begin(Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go"))
      yield* pass(90)
      yield* dig.end(1)
      expect(model.requests).toHaveLength(4)
      yield* pass(90)
      expect(run.isOver()).toBe(false)
      yield* dig.end(2)
      const { took } = yield* run.ended
      expect(took).toBe(180)
      // What was told once is told no second time.
      expect(notesIn(model.requests[4]?.messages ?? [])).toStrictEqual([
        expect.stringMatching(/call c2(?!.*call c1)/s)
      ])
    }).pipe(managed())
  )

  it.effect("asks nobody twice about what a step of it has seen already", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const wait = gated("wait", { enabled: false })
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1)),
        calls(callOf("c2", "wait", 2)),
        reply("it is 1")
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, wait.tool] })
      const run = yield* begin(Agent.stream(agent, "go"))
      yield* dig.end(1)
      yield* wait.end(2)
      const { took } = yield* run.ended
      expect(took).toBe(0)
      expect(outputIn(model.requests[2]?.messages ?? [], "c1")).toStrictEqual(result(1))
      expect(notesIn(model.requests[2]?.messages ?? [])).toStrictEqual([])
      expect(model.unused()).toBe(0)
      expect(model.requests).toHaveLength(3)
    }).pipe(managed())
  )

  it.effect("takes no more steps than are allowed", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool], maxSteps: 2 })
      const run = yield* begin(Agent.stream(agent, "go"))
      expect(run.isOver()).toBe(true)
      expect(finishOf((yield* run.ended).chunks).stepResult.reason).toBe("stop")
    }).pipe(managed())
  )

  it.effect("is stopped while it waits as at any other time", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool] })
      const controller = new AbortController()
      const run = yield* begin(Agent.stream(agent, "go", { memory, abortSignal: controller.signal }))
      yield* pass(50)
      controller.abort("enough")
      yield* settle
      expect(run.isOver()).toBe(true)
      const { chunks, took } = yield* run.ended
      expect(took).toBe(50)
      expect(types(chunks).slice(-3)).toStrictEqual(["step-finish", "abort", "finish"])
      expect(textOf(chunks)).toBe("started")
      expect(dig.contexts[0]?.abortSignal.aborted).toBe(false)
      yield* dig.end(1)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(result(1))
    }).pipe(managed())
  )

  it.effect("does not when its time is over", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool], timeouts: { run: 30 } })
      const fiber = yield* Effect.fork(Effect.exit(chunksOf(Agent.stream(agent, "go"))))
      yield* settle
      yield* pass(29)
      expect(fiber.unsafePoll()).toBeNull()
      yield* pass(1)
      expect(fiber.unsafePoll()).not.toBeNull()
    }).pipe(managed())
  )

  it.effect("waits beside the time of a step", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started"), reply("it is 1")])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool], timeouts: { step: 30 } })
      const run = yield* begin(Agent.stream(agent, "go"))
      yield* pass(60)
      yield* dig.end(1)
      expect((yield* run.ended).took).toBe(60)
    }).pipe(managed())
  )

  it.effect("asks who decides about steps whether there is one more", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
      const stopWhen: StopCondition = ({ steps }) => steps.length === 2
      const run = yield* begin(
        Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool], stopWhen }), "go")
      )
      yield* dig.end(1)
      const { chunks } = yield* run.ended
      expect(finishOf(chunks).stepResult).toStrictEqual({
        reason: "stop",
        isContinued: false,
        stoppedBy: "stop-when"
      })
      // What it came to is told all the same.
      expect(outputIn(finishOf(chunks).messages.all, "c1")).toStrictEqual(result(1))
    }).pipe(managed())
  )

  it.effect("waits for nobody's decision: one that suspends is not waited for", () =>
    Effect.gen(function* () {
      const ask = Tool.make("ask", {
        input: Schema.Struct({}),
        background: waits,
        execute: (_, { suspend }) => Effect.zipRight(Effect.sleep(10), suspend("what?"))
      })
      const model = ScriptedModel.make([calls(toolCall("c1", "ask", {})), reply("asked")])
      const run = yield* begin(Agent.stream(Agent.make({ id: "a", model, tools: [ask] }), "go"))
      expect(run.isOver()).toBe(false)
      yield* pass(10)
      expect(yield* tasks).toMatchObject([{ status: "suspended" }])
      expect((yield* run.ended).took).toBe(10)
    }).pipe(managed())
  )

  it.effect("does not go on after an answer that was cut off", () =>
    Effect.gen(function* () {
      const dig = gated("dig", waits)
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1)),
        [...reply("star").slice(0, -1), ScriptedModel.finish("length")]
      ])
      const run = yield* begin(Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go"))
      expect(run.isOver()).toBe(true)
      expect(finishOf((yield* run.ended).chunks).stepResult.reason).toBe("length")
    }).pipe(managed())
  )

  it.effect("answers to one that fails, takes too long or is cancelled", () =>
    Effect.gen(function* () {
      const dig = gated("dig", { ...waits, timeout: 20 })
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1), callOf("c2", "dig", 2)),
        reply("started"),
        reply("cancelled"),
        reply("late")
      ])
      const run = yield* begin(Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go"))
      const service = yield* BackgroundTasks.BackgroundTasks
      yield* service.cancel((yield* tasks)[0]?.id ?? "")
      yield* settle
      expect(notesIn(model.requests[2]?.messages ?? [])).toStrictEqual([
        expect.stringMatching(/call c1 .*was cancelled/)
      ])
      yield* pass(20)
      yield* run.ended
      expect(notesIn(model.requests[3]?.messages ?? [])).toStrictEqual([
        expect.stringMatching(/call c2 .*took too long/)
      ])
    }).pipe(managed())
  )
})

describe("how long a run waits", () => {
  type Row = readonly [
    what: string,
    tool: number | undefined,
    agent: Agent.Options<[]>["backgroundTasks"],
    manager: number | undefined,
    took: number
  ]
  const rows: ReadonlyArray<Row> = [
    ["nobody has said", undefined, undefined, undefined, 0],
    ["the manager says", undefined, undefined, 70, 70],
    ["the agent says", undefined, { waitTimeout: 60 }, 70, 60],
    ["the tool says", 50, { waitTimeout: 60 }, 70, 50],
    ["the agent says of the tool", 50, { waitTimeout: 60, tools: { dig: { waitTimeout: 40 } } }, 70, 40]
  ]

  it.effect.each(rows)("%s", ([, tool, backgroundTasks, waitTimeout, took]) =>
    Effect.gen(function* () {
      const dig = gated("dig", { enabled: true, ...(tool === undefined ? {} : { waitTimeout: tool }) })
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
      const agent = Agent.make({
        id: "a",
        model,
        tools: [dig.tool],
        ...(backgroundTasks === undefined ? {} : { backgroundTasks })
      })
      const run = yield* begin(Agent.stream(agent, "go"))
      if (took > 0) yield* pass(took - 1)
      expect(run.isOver()).toBe(took === 0)
      yield* pass(1)
      expect((yield* run.ended).took).toBe(took)
    }).pipe(managed(waitTimeout === undefined ? {} : { waitTimeout }))
  )

  it.effect("is the longest of its tasks', and what it does not wait for is told beside them", () =>
    Effect.gen(function* () {
      const dig = gated("dig", { enabled: true, waitTimeout: 30 })
      const drill = gated("drill", { enabled: true, waitTimeout: 80 })
      const dream = gated("dream")
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1), callOf("c2", "drill", 2), callOf("c3", "dream", 3)),
        reply("started"),
        reply("dug and dreamt")
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, drill.tool, dream.tool] })
      const run = yield* begin(Agent.stream(agent, "go"))
      yield* dream.end(3)
      // Nobody waits for this one.
      expect(model.requests).toHaveLength(2)
      yield* pass(50)
      yield* dig.end(1)
      expect(model.requests).toHaveLength(3)
      expect(notesIn(model.requests[2]?.messages ?? [])).toStrictEqual([
        expect.stringMatching(/call c1 .*call c3 /s)
      ])
      yield* pass(30)
      expect((yield* run.ended).took).toBe(80)
      expect(model.unused()).toBe(0)
    }).pipe(managed())
  )
})

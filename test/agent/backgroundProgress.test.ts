/** What a run tells of its tasks while they are going. */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, type Chunk, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Clock, Effect, Fiber, Schema, Stream } from "effect"
import { expectGrammar } from "../support/grammar.js"
import { callOf, calls, gated, loadEverything, managed, pass, tasks } from "./backgroundKit.js"
import { chunksOf, only, settle, types } from "./kit.js"
import { ends, reply, says, text, toolCall } from "./memoryKit.js"

beforeAll(loadEverything)

/** A run in progress, and when each progress was told. */
const begin = <R>(stream: Stream.Stream<Chunk.Chunk, unknown, R>) =>
  Effect.gen(function* () {
    const from = yield* Clock.currentTimeMillis
    const chunks: Array<Chunk.Chunk> = []
    const told: Array<readonly [at: number, running: number]> = []
    const fiber = yield* Effect.fork(
      Stream.runForEach(stream, chunk =>
        Effect.map(Clock.currentTimeMillis, now => {
          chunks.push(chunk)
          if (chunk.type === "background-task-progress") told.push([now - from, chunk.payload.runningCount])
        })
      )
    )
    yield* settle
    return { chunks, told, isOver: () => fiber.unsafePoll() !== null, ended: Fiber.join(fiber) }
  })

/** An answer that takes so many milliseconds. */
const slowly = (milliseconds: number) => [
  ...text("I am"),
  ScriptedModel.pause(milliseconds),
  ...text("done", "t2"),
  ends("stop")
]

describe("the progress of the tasks of a run", () => {
  it.effect("is told right after the step that dispatched, and then at every interval", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1), callOf("c2", "dig", 2)), slowly(350)])
      const run = yield* begin(
        Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go", { runId: "r1" })
      )
      const order = types(run.chunks)
      expect(order[order.indexOf("step-finish") + 1]).toBe("background-task-progress")
      yield* pass(100)
      yield* pass(100)
      yield* dig.end(1)
      yield* pass(100)
      yield* pass(50)
      yield* run.ended
      expectGrammar(run.chunks)
      expect(run.told).toStrictEqual([
        [0, 2],
        [100, 2],
        [200, 2],
        [300, 1]
      ])
      const [first, second] = yield* tasks
      const progress = only(run.chunks, "background-task-progress")
      expect(progress[0]).toStrictEqual({
        type: "background-task-progress",
        runId: "r1",
        from: "AGENT",
        payload: { taskIds: [first?.id, second?.id], runningCount: 2, elapsedMs: 0 }
      })
      expect(progress[3]?.payload).toStrictEqual({ taskIds: [second?.id], runningCount: 1, elapsedMs: 300 })
      // The run is over: nobody is told anything any more.
      yield* pass(1000)
      expect(run.told).toHaveLength(4)
    }).pipe(managed({ progressInterval: 100 }))
  )

  it.effect("comes every three seconds when nobody says otherwise", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), slowly(9500)])
      const run = yield* begin(Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go"))
      for (let second = 0; second < 10; second++) yield* pass(1000)
      yield* run.ended
      expect(run.told.map(([at]) => at)).toStrictEqual([0, 3000, 6000, 9000])
    }).pipe(managed())
  )

  it.effect("comes as long as the run waits for them", () =>
    Effect.gen(function* () {
      const dig = gated("dig", { enabled: true, waitTimeout: 250 })
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
      const run = yield* begin(Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go"))
      for (let count = 0; count < 5; count++) yield* pass(50)
      yield* run.ended
      expectGrammar(run.chunks)
      expect(run.told.map(([at]) => at)).toStrictEqual([0, 100, 200])
    }).pipe(managed({ progressInterval: 100 }))
  )

  it.effect("stops when none is going, and begins again with the next that is", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const wait = gated("wait", { enabled: false })
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1)),
        calls(callOf("c2", "wait", 2)),
        calls(callOf("c3", "dig", 3)),
        slowly(150)
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, wait.tool] })
      const run = yield* begin(Agent.stream(agent, "go"))
      yield* pass(50)
      yield* dig.end(1)
      yield* pass(250)
      expect(run.told).toStrictEqual([[0, 1]])
      yield* wait.end(2)
      expect(run.told).toStrictEqual([
        [0, 1],
        [300, 1]
      ])
      yield* pass(100)
      yield* pass(50)
      yield* run.ended
      expect(run.told.map(([at]) => at)).toStrictEqual([0, 300, 400])
      expectGrammar(run.chunks)
    }).pipe(managed({ progressInterval: 100 }))
  )

  it.effect("is told right after each step that dispatched", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const wait = gated("wait", { enabled: false })
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1)),
        calls(callOf("c2", "wait", 2), callOf("c3", "dig", 3)),
        slowly(80)
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, wait.tool] })
      const run = yield* begin(Agent.stream(agent, "go"))
      yield* pass(40)
      yield* wait.end(2)
      yield* pass(80)
      yield* run.ended
      expect(run.told).toStrictEqual([
        [0, 1],
        [40, 2],
        [100, 2]
      ])
    }).pipe(managed({ progressInterval: 100 }))
  )

  it.effect("counts those that wait for a slot, and none that is suspended", () =>
    Effect.gen(function* () {
      const ask = Tool.make("ask", {
        input: Schema.Struct({}),
        background: { enabled: true },
        execute: (_, { suspend }) => suspend("what?")
      })
      const dig = gated("dig")
      const model = ScriptedModel.make([
        calls(toolCall("c0", "ask", {}), callOf("c1", "dig", 1), callOf("c2", "dig", 2)),
        slowly(120)
      ])
      const agent = Agent.make({ id: "a", model, tools: [ask, dig.tool] })
      const run = yield* begin(Agent.stream(agent, "go"))
      yield* pass(100)
      yield* pass(20)
      yield* run.ended
      expect((yield* tasks).map(({ status }) => status)).toStrictEqual(["suspended", "running", "pending"])
      expect(run.told.at(-1)).toStrictEqual([100, 2])
    }).pipe(managed({ progressInterval: 100, globalConcurrency: 1 }))
  )

  it.effect("is not told of a task that was done before the step was", () =>
    Effect.gen(function* () {
      const now = Tool.make("now", { background: { enabled: true }, execute: () => Effect.succeed(1) })
      const model = ScriptedModel.make([calls(toolCall("c1", "now", {})), reply("ok")])
      const chunks = yield* chunksOf(Agent.stream(Agent.make({ id: "a", model, tools: [now] }), "go"))
      expect(only(chunks, "background-task-progress")).toHaveLength(0)
    }).pipe(managed())
  )

  it.effect("is told of the run's own tasks only", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const make = (n: number) => {
        const model = ScriptedModel.make([calls(callOf(`c${n}`, "dig", n)), slowly(120)])
        return Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go")
      }
      const one = yield* begin(make(1))
      const two = yield* begin(make(2))
      yield* pass(100)
      yield* dig.end(1)
      yield* pass(20)
      yield* Effect.all([one.ended, two.ended])
      const ids = (yield* tasks).map(({ id }) => id)
      const told = ({ chunks }: typeof one) =>
        only(chunks, "background-task-progress").map(({ payload }) => payload.taskIds)
      expect(told(one)).toStrictEqual([[ids[0]], [ids[0]]])
      expect(told(two)).toStrictEqual([[ids[1]], [ids[1]]])
    }).pipe(managed({ progressInterval: 100 }))
  )

  it.effect("ends with a run that is aborted", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), [says("I am"), ScriptedModel.hang]])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool] })
      const controller = new AbortController()
      const run = yield* begin(Agent.stream(agent, "go", { abortSignal: controller.signal }))
      yield* pass(100)
      controller.abort()
      yield* settle
      expect(run.isOver()).toBe(true)
      yield* pass(500)
      expectGrammar(run.chunks)
      expect(types(run.chunks).at(-1)).toBe("finish")
      expect(run.told.map(([at]) => at)).toStrictEqual([0, 100])
      const service = yield* BackgroundTasks.BackgroundTasks
      expect((yield* service.list()).tasks).toMatchObject([{ status: "running" }])
    }).pipe(managed({ progressInterval: 100 }))
  )
})

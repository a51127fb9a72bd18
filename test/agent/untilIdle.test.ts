/** Until-idle streams: what asks for another turn, in which order things are told, and what the model is told then. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, ThreadStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Schema } from "effect"
import { Broken } from "../support/broken.js"
import {
  callOf,
  calls,
  gated,
  isAcknowledged,
  loadEverything,
  managed,
  outputIn,
  pass,
  tasks,
  taskTypes
} from "./backgroundKit.js"
import { chunksOf, inTime, only, read, settle, types } from "./kit.js"
import { textIn } from "./memoryKit.js"
import {
  agentOf,
  eventsOf,
  expectClosed,
  expectOpen,
  expectTurns,
  idling,
  idlingIn,
  namedIn,
  setUp,
  textsOf
} from "./untilIdleKit.js"

const { reply } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

await loadEverything()

const two = calls(callOf("c1", "work", 1), callOf("c2", "work", 2))

describe("a stream that dispatches nothing", () => {
  it.effect("is the plain one, and closes at once", () =>
    Effect.gen(function* () {
      const plain = setUp([reply("Hi.")])
      const idle = setUp([reply("Hi.")])
      const told = yield* chunksOf(Agent.stream(plain.agent, "go", { runId: "r" }))
      const open = yield* idling(idle.agent, { runId: "r" })
      expectClosed(open)
      expect(types(open.chunks)).toStrictEqual(types(told))
      expect(open.chunks.map(({ runId }) => runId)).toStrictEqual(told.map(() => "r"))
      expect(idle.model.requests).toHaveLength(1)
    }).pipe(managed())
  )

  it.effect("runs foreground calls as ever", () =>
    Effect.gen(function* () {
      const work = gated("work", { enabled: false })
      const model = ScriptedModel.make([calls(callOf("c1", "work", 1)), reply("Done.")])
      const open = yield* idling(agentOf(model, [work.tool]))
      expectOpen(open)
      yield* work.end(1)
      expectClosed(open)
      expect(taskTypes(open.chunks)).toStrictEqual([])
      expect(textsOf(open.chunks)).toStrictEqual(["Done."])
    }).pipe(managed())
  )
})

describe("tasks that settle", () => {
  for (const [where, inThread] of [
    ["without a thread", false],
    ["in a thread", true]
  ] as const) {
    it.effect(`are answered one by one as they come, ${where}`, () =>
      Effect.gen(function* () {
        const { agent, model, work } = setUp([two, reply("Wait."), reply("One."), reply("Two.")])
        const open = yield* inThread ? idlingIn(agent, memory) : idling(agent)
        expectOpen(open)
        expect(textsOf(open.chunks)).toStrictEqual(["Wait."])
        yield* work.end(2)
        expect(textsOf(open.chunks)).toStrictEqual(["Wait.", "One."])
        expectOpen(open)
        yield* work.end(1)
        expect(textsOf(open.chunks)).toStrictEqual(["Wait.", "One.", "Two."])
        expectClosed(open)
        expectTurns(open.chunks, 3)
        expect(model.requests.map(({ messages }) => namedIn(messages))).toStrictEqual([
          [],
          [],
          ["c2 completed"],
          ["c1 completed"]
        ])
        const [, , third, fourth] = model.requests
        expect(outputIn(third?.messages ?? [], "c2")).toStrictEqual({ type: "json", value: { n: 2 } })
        expect(isAcknowledged(third?.messages ?? [], "c1")).toBe(true)
        expect(outputIn(fourth?.messages ?? [], "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
        expect(textIn(fourth?.messages ?? [], "assistant")).toBe("Wait.One.")
      }).pipe(managed())
    )

    it.effect(`are answered together with batch "all", ${where}`, () =>
      Effect.gen(function* () {
        const { agent, model, work } = setUp([two, reply("Wait."), reply("Both.")])
        const untilIdle = { batch: "all" } as const
        const open = yield* inThread ? idlingIn(agent, memory, { untilIdle }) : idling(agent, { untilIdle })
        yield* work.end(2)
        expect(textsOf(open.chunks)).toStrictEqual(["Wait."])
        expectOpen(open)
        yield* work.end(1)
        expect(textsOf(open.chunks)).toStrictEqual(["Wait.", "Both."])
        expectClosed(open)
        expect(namedIn(model.requests[2]?.messages ?? [])).toStrictEqual(["c2 completed", "c1 completed"])
      }).pipe(managed())
    )
  }

  it.effect("all ask for a turn, whatever they came to, and the model sees each outcome", () =>
    Effect.gen(function* () {
      const four = calls(...[1, 2, 3, 4].map(n => callOf(`c${n}`, "work", n)))
      const work = gated("work", { enabled: true, timeout: 100 })
      const model = ScriptedModel.make([
        four,
        reply("Wait."),
        reply("A."),
        reply("B."),
        reply("C."),
        reply("D.")
      ])
      const agent = agentOf(model, [work.tool])
      const open = yield* idlingIn(agent, memory)
      const all = yield* tasks
      const service = yield* BackgroundTasks.BackgroundTasks
      yield* pass(50)
      yield* work.end(1)
      yield* pass(30)
      yield* work.end(4, Effect.fail(new Broken({ message: "boom" })))
      yield* service.cancel(all.find(({ toolCallId }) => toolCallId === "c3")?.id ?? "")
      yield* settle
      expectOpen(open)
      yield* pass(20)
      expectClosed(open)
      expect(model.requests.slice(2).map(({ messages }) => namedIn(messages))).toStrictEqual([
        ["c1 completed"],
        ["c4 failed"],
        ["c3 was cancelled, there is no result"],
        ["c2 took too long and was stopped"]
      ])
      const last = model.requests.at(-1)?.messages ?? []
      expect(outputIn(last, "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      expect(outputIn(last, "c2")).toMatchObject({ type: "error-text" })
      expect(outputIn(last, "c3")).toMatchObject({ type: "error-text" })
      expect(outputIn(last, "c4")).toStrictEqual({ type: "error-text", value: "Broken: boom" })
      expect(["c1", "c2", "c3", "c4"].map(id => eventsOf(open.chunks, id).at(-1))).toStrictEqual([
        "completed",
        "failed",
        "cancelled",
        "failed"
      ])
    }).pipe(managed())
  )

  it.effect("while a turn runs are answered by the next, together", () =>
    Effect.gen(function* () {
      const three = calls(...[1, 2, 3].map(n => callOf(`c${n}`, "work", n)))
      const slow = [ScriptedModel.pause(1000), ...reply("One.")]
      const { agent, model, work } = setUp([three, reply("Wait."), slow, reply("Rest.")])
      const open = yield* idling(agent)
      yield* work.end(1)
      yield* work.end(2)
      yield* work.end(3)
      expect(model.requests).toHaveLength(3)
      yield* pass(1000)
      expectClosed(open)
      expect(namedIn(model.requests[2]?.messages ?? [])).toStrictEqual(["c1 completed"])
      expect(namedIn(model.requests[3]?.messages ?? [])).toStrictEqual(["c2 completed", "c3 completed"])
    }).pipe(managed())
  )

  it.effect("that a continuation has called are waited for like the first", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([
        calls(callOf("c1", "work", 1)),
        reply("Wait."),
        calls(callOf("c2", "work", 2)),
        reply("Again."),
        reply("Done.")
      ])
      const open = yield* idling(agent)
      yield* work.end(1)
      expectOpen(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Wait.", "Again."])
      yield* work.end(2)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Wait.", "Again.", "Done."])
      expect(outputIn(model.requests[4]?.messages ?? [], "c1")).toStrictEqual({
        type: "json",
        value: { n: 1 }
      })
      expect(outputIn(model.requests[4]?.messages ?? [], "c2")).toStrictEqual({
        type: "json",
        value: { n: 2 }
      })
    }).pipe(managed())
  )
})

describe("tasks that take no time", () => {
  const quick = Tool.make("quick", {
    input: Schema.Struct({ n: Schema.Number }),
    background: { enabled: true },
    execute: ({ n }) => Effect.succeed({ n })
  })

  for (const [where, options] of [
    ["without a thread", {}],
    ["in a thread", { memory }]
  ] as const) {
    it.effect(`are answered in the turn, when its model has seen them, and not again: ${where}`, () =>
      Effect.gen(function* () {
        const model = ScriptedModel.make([
          calls(callOf("c1", "quick", 1), callOf("c2", "quick", 2)),
          reply("Both are there.")
        ])
        const agent = agentOf(model, [quick])
        const open = "memory" in options ? yield* idlingIn(agent, options.memory) : yield* idling(agent)
        expectClosed(open)
        expect(textsOf(open.chunks)).toStrictEqual(["Both are there."])
        for (const id of ["c1", "c2"]) {
          expect(eventsOf(open.chunks, id)).toStrictEqual(["started", "running", "completed"])
          expect(
            only(open.chunks, "tool-result").filter(({ payload }) => payload.toolCallId === id)
          ).toHaveLength(1)
        }
        expect(outputIn(model.requests[1]?.messages ?? [], "c2")).toStrictEqual({
          type: "json",
          value: { n: 2 }
        })
      }).pipe(managed())
    )
  }

  it.effect("after the model's last look are answered by exactly one more turn", () =>
    Effect.gen(function* () {
      const answering = [ScriptedModel.pause(10), ...reply("Wait.")]
      const { agent, model, work } = setUp([calls(callOf("c1", "work", 1)), answering, reply("There.")])
      const open = yield* idlingIn(agent, memory)
      yield* work.end(1)
      expect(textsOf(open.chunks)).toStrictEqual([])
      yield* pass(10)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Wait.", "There."])
      expect(namedIn(model.requests[2]?.messages ?? [])).toStrictEqual(["c1 completed"])
    }).pipe(managed())
  )

  it.effect("whose outcome stood in the prompt of a continuation are answered by that", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([two, reply("Wait."), reply("Both.")])
      const store = yield* ThreadStore.ThreadStore
      let isLate = false
      const late: typeof store = {
        ...store,
        messages: (id, options) =>
          Effect.suspend(() => {
            if (!isLate) return store.messages(id, options)
            isLate = false
            return Effect.zipRight(work.end(2), store.messages(id, options))
          })
      }
      const stream = Agent.stream(agent, "go", { untilIdle: true, memory })
      const fiber = yield* Effect.fork(Effect.provideService(chunksOf(stream), ThreadStore.ThreadStore, late))
      yield* settle
      isLate = true
      yield* work.end(1)
      yield* settle
      const chunks = yield* fiber
      expect(textsOf(chunks)).toStrictEqual(["Wait.", "Both."])
      expect(outputIn(model.requests[2]?.messages ?? [], "c2")).toStrictEqual({
        type: "json",
        value: { n: 2 }
      })
    }).pipe(managed())
  )
})

describe("a task that suspends", () => {
  const asking = Tool.make("ask", {
    input: Schema.Struct({ n: Schema.Number }),
    background: { enabled: true },
    execute: ({ n }, context) =>
      context.resumeData === undefined ? context.suspend({ question: n }) : Effect.succeed(context.resumeData)
  })

  it.effect("asks for no turn, and the stream closes", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([calls(callOf("c1", "ask", 1)), reply("Asked.")])
      const open = yield* idling(agentOf(model, [asking]))
      expectClosed(open)
      expect(eventsOf(open.chunks, "c1")).toStrictEqual(["started", "running", "suspended"])
      expect(textsOf(open.chunks)).toStrictEqual(["Asked."])
    }).pipe(managed())
  )

  it.effect("can be resumed by whoever reads that it did, at once", () =>
    Effect.gen(function* () {
      const slow = Tool.make("slow", {
        input: Schema.Struct({ n: Schema.Number }),
        execute: () => Effect.as(Effect.sleep(1000), "slept")
      })
      const model = ScriptedModel.make([
        calls(callOf("c1", "ask", 1), callOf("c2", "slow", 2)),
        reply("Asked.")
      ])
      const service = yield* BackgroundTasks.BackgroundTasks
      const stream = Agent.stream(agentOf(model, [asking, slow]), "go", { untilIdle: true, memory })
      const told = yield* inTime(
        read(stream, chunk =>
          chunk.type === "background-task-suspended"
            ? Effect.orDie(Effect.asVoid(service.resume(chunk.payload.taskId, "yes")))
            : Effect.void
        )
      )
      const suspensions = ["started", "running", "suspended", "resumed", "completed"]
      expect(eventsOf(told.chunks, "c1")).toStrictEqual(suspensions)
      expect(textsOf(told.chunks)).toStrictEqual(["Asked."])
      expect(outputIn(model.requests[1]?.messages ?? [], "c1")).toStrictEqual({ type: "text", value: "yes" })
    }).pipe(managed())
  )

  it.effect("and is resumed while another one is waited for, is waited for again", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const model = ScriptedModel.make([
        calls(callOf("c1", "ask", 1), callOf("c2", "work", 2)),
        reply("Asked."),
        reply("Heard."),
        reply("Done.")
      ])
      const open = yield* idlingIn(agentOf(model, [asking, work.tool]), memory)
      expectOpen(open)
      const service = yield* BackgroundTasks.BackgroundTasks
      const [suspended] = yield* Effect.map(tasks, all => all.filter(({ status }) => status === "suspended"))
      yield* service.resume(suspended?.id ?? "", "yes")
      yield* settle
      expect(textsOf(open.chunks)).toStrictEqual(["Asked.", "Heard."])
      yield* work.end(2)
      expectClosed(open)
      expect(eventsOf(open.chunks, "c1")).toStrictEqual([
        "started",
        "running",
        "suspended",
        "resumed",
        "completed"
      ])
      expect(model.requests.slice(2).map(({ messages }) => namedIn(messages))).toStrictEqual([
        ["c1 completed"],
        ["c2 completed"]
      ])
    }).pipe(managed())
  )
})

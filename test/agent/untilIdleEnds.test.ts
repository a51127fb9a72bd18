/** What ends an until-idle stream before it is idle: aborts, readers that leave, failures. Its tasks go on, and nothing is left. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, type Chunk, type RunOptions, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Fiber, Schema } from "effect"
import { callOf, calls, gated, loadEverything, managed, outputIn, pass, tasks } from "./backgroundKit.js"
import { failing, only, settle, types } from "./kit.js"
import { messagesOf } from "./memoryKit.js"
import {
  agentOf,
  counted,
  expectClosed,
  expectNothingLeft,
  expectOpen,
  expectTurns,
  failureOf,
  idling,
  idlingIn,
  type Opened,
  textsOf
} from "./untilIdleKit.js"

const { hang, reply, text } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

await loadEverything()

const setUp = (turns: ReadonlyArray<ScriptedModel.Turn>) => {
  const work = gated("work")
  const model = ScriptedModel.make(turns)
  return { work, model, agent: agentOf(model, [work.tool]) }
}

const two = calls(callOf("c1", "work", 1), callOf("c2", "work", 2))

const statuses = Effect.map(tasks, all => all.map(({ status }) => status))

/** The last chunks of the last run. */
const ending = (chunks: ReadonlyArray<Chunk.Chunk>) =>
  types(chunks.filter(({ type }) => !type.startsWith("background-task-"))).slice(-2)

/** Where a stream may be when it is stopped. */
const places = {
  "in the first turn": {
    turns: [two, [...text("Wait."), hang]],
    asked: 2,
    reach: () => Effect.void,
    left: ["running", "running"],
    isTelling: true
  },
  "between two turns": {
    turns: [two, reply("Wait.")],
    asked: 2,
    reach: () => Effect.void,
    left: ["running", "running"],
    isTelling: false
  },
  "in a continuation": {
    turns: [two, reply("Wait."), [...text("One"), hang]],
    asked: 3,
    reach: (work: ReturnType<typeof gated>) => work.end(1),
    left: ["completed", "running"],
    isTelling: true
  }
} as const

describe("an abort", () => {
  it.effect("before the start: the run says so, and that is all", () =>
    Effect.gen(function* () {
      const { agent, model } = setUp([reply("Hi.")])
      const abortSignal = AbortSignal.abort("early")
      const open = yield* idlingIn(agent, memory, { abortSignal })
      expectClosed(open)
      expect(types(open.chunks)).toStrictEqual(["start", "abort", "finish"])
      expect(model.requests).toHaveLength(0)
      yield* expectNothingLeft(open, abortSignal)
    }).pipe(counted, managed())
  )

  for (const [where, { asked, isTelling, left, reach, turns }] of Object.entries(places)) {
    it.effect(`${where} closes the stream, and no task is cancelled`, () =>
      Effect.gen(function* () {
        const { agent, model, work } = setUp(turns)
        const controller = new AbortController()
        const open = yield* idlingIn(agent, memory, { abortSignal: controller.signal })
        yield* reach(work)
        expectOpen(open)
        controller.abort("enough")
        yield* settle
        expectClosed(open)
        if (isTelling) expect(ending(open.chunks)).toStrictEqual(["abort", "finish"])
        else expect(ending(open.chunks)).toStrictEqual(["step-finish", "finish"])
        expectTurns(open.chunks, new Set(only(open.chunks, "start")).size)
        expect(yield* statuses).toStrictEqual(left)
        yield* expectNothingLeft(open, controller.signal)
        yield* work.end(1)
        yield* work.end(2)
        expect(yield* statuses).toStrictEqual(["completed", "completed"])
        expect(outputIn(yield* messagesOf(), "c2")).toStrictEqual({ type: "json", value: { n: 2 } })
        expect(model.requests).toHaveLength(asked)
      }).pipe(counted, managed())
    )
  }

  it.effect("while a continuation is being prepared closes the stream without a word", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const model = ScriptedModel.make([two, reply("Wait.")])
      let count = 0
      const agent = Agent.make({
        id: "worker",
        model,
        tools: [work.tool],
        instructions: () => (count++ === 0 ? "Be brief." : Effect.never)
      })
      const controller = new AbortController()
      const open = yield* idling(agent, { abortSignal: controller.signal })
      yield* work.end(1)
      expectOpen(open)
      expect(count).toBe(2)
      controller.abort()
      yield* settle
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Wait."])
      yield* expectNothingLeft(open, controller.signal)
    }).pipe(counted, managed())
  )
})

describe("a reader that leaves", () => {
  for (const [where, { asked, left, reach, turns }] of Object.entries(places)) {
    it.effect(`${where} stops the turn, and no task`, () =>
      Effect.gen(function* () {
        const { agent, model, work } = setUp(turns)
        const { signal } = new AbortController()
        const open = yield* idlingIn(agent, memory, { abortSignal: signal })
        yield* reach(work)
        expectOpen(open)
        yield* open.leave
        expect(yield* statuses).toStrictEqual(left)
        yield* expectNothingLeft(open, signal)
        yield* work.end(1)
        yield* work.end(2)
        expect(yield* statuses).toStrictEqual(["completed", "completed"])
        expect(outputIn(yield* messagesOf(), "c2")).toStrictEqual({ type: "json", value: { n: 2 } })
        expect(model.requests).toHaveLength(asked)
      }).pipe(counted, managed())
    )
  }
})

describe("a turn that fails", () => {
  /** Says so in the stream, and fails it with the same error. */
  const expectFailed = <E>(open: Opened<E>) => {
    expect(ending(open.chunks)).toStrictEqual(["error", "finish"])
    expect(failureOf(open)).toBe(only(open.chunks, "error").at(-1)?.payload.error)
  }

  it.effect("as the first ends the stream, and its tasks go on", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([two, failing(new Error("overloaded"))])
      const open = yield* idlingIn(agent, memory, { maxRetries: 0 })
      expectFailed(open)
      expectTurns(open.chunks, 1)
      expect(yield* statuses).toStrictEqual(["running", "running"])
      yield* expectNothingLeft(open)
      yield* work.end(1)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
    }).pipe(counted, managed())
  )

  it.effect("as a continuation ends the stream, and its tasks go on", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([two, reply("Wait."), failing(new Error("overloaded"))])
      const open = yield* idlingIn(agent, memory, { maxRetries: 0 })
      yield* work.end(1)
      expectFailed(open)
      expectTurns(open.chunks, 2)
      expect(yield* statuses).toStrictEqual(["completed", "running"])
      yield* expectNothingLeft(open)
      yield* work.end(2)
      expect(model.requests).toHaveLength(3)
    }).pipe(counted, managed())
  )

  it.effect("before it can begin says so too", () =>
    Effect.gen(function* () {
      const work = gated("work")
      let count = 0
      const agent = Agent.make({
        id: "worker",
        model: ScriptedModel.make([two, reply("Wait.")]),
        tools: [work.tool],
        instructions: () => (count++ === 0 ? "Be brief." : Effect.fail(new Error("no instructions")))
      })
      const open = yield* idling(agent)
      yield* work.end(1)
      expectFailed(open)
      expectTurns(open.chunks, 2)
      expect(failureOf(open)).toMatchObject({ _tag: "InvalidConfiguration", field: "instructions" })
      yield* expectNothingLeft(open)
    }).pipe(counted, managed())
  )
})

describe("a manager that is shut down", () => {
  it.effect("ends a stream that waits", () =>
    Effect.gen(function* () {
      const { agent } = setUp([two, reply("Wait.")])
      const open = yield* idlingIn(agent, memory)
      const { shutdown } = yield* BackgroundTasks.BackgroundTasks
      const fiber = yield* Effect.fork(shutdown)
      yield* pass(1000)
      yield* Fiber.join(fiber)
      yield* settle
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Wait."])
      yield* expectNothingLeft(open)
    }).pipe(counted, managed({ shutdown: { grace: 1000 } }))
  )

  it.effect("ends a stream after the turn that it is in", () =>
    Effect.gen(function* () {
      const { agent } = setUp([two, [ScriptedModel.pause(60_000), ...reply("Wait.")]])
      const open = yield* idlingIn(agent, memory)
      const { shutdown } = yield* BackgroundTasks.BackgroundTasks
      const fiber = yield* Effect.fork(shutdown)
      yield* pass(1000)
      yield* Fiber.join(fiber)
      expectOpen(open)
      yield* pass(60_000)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Wait."])
    }).pipe(managed({ shutdown: { grace: 1000 } }))
  )

  it.effect("closes a stream that is opened afterwards when its turn is over", () =>
    Effect.gen(function* () {
      const { agent } = setUp([reply("Hi.")])
      const { shutdown } = yield* BackgroundTasks.BackgroundTasks
      yield* shutdown
      const open = yield* idlingIn(agent, memory)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Hi."])
    }).pipe(managed())
  )
})

describe("the option", () => {
  const hello = [reply("Wait."), reply("Done.")]

  /** An agent whose default it is. */
  const byDefault = (untilIdle: Agent.AnyRunOptions["untilIdle"], turns: ReadonlyArray<ScriptedModel.Turn>) => {
    const work = gated("work")
    const model = ScriptedModel.make(turns)
    const agent = Agent.make({
      id: "worker",
      model,
      tools: [work.tool],
      ...(untilIdle === undefined ? {} : { untilIdle })
    })
    return { agent, model, work }
  }

  it.effect("works as a default, and a turn does not begin another stream", () =>
    Effect.gen(function* () {
      const { agent, model, work } = byDefault(true, [two, ...hello, reply("Both.")])
      const open = yield* idling(agent, {})
      yield* work.end(1)
      yield* work.end(2)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Wait.", "Done.", "Both."])
      expect(model.requests).toHaveLength(4)
    }).pipe(managed())
  )

  it.effect("of the run wins over a default", () =>
    Effect.gen(function* () {
      const { agent, model } = byDefault(true, [two, reply("Wait.")])
      const open = yield* idling(agent, { untilIdle: false })
      expectClosed(open)
      expect(model.requests).toHaveLength(2)
    }).pipe(managed())
  )

  const wrong: ReadonlyArray<readonly [unknown, string]> = [
    [null, "untilIdle"],
    ["yes", "untilIdle"],
    [{ maxIdle: 0 }, "untilIdle.maxIdle"],
    [{ maxIdle: "soon" }, "untilIdle.maxIdle"],
    [{ maxIdle: Number.POSITIVE_INFINITY }, "untilIdle.maxIdle"],
    [{ batch: "some" }, "untilIdle.batch"],
    [{ maxIdleMs: 5 }, "maxIdleMs"]
  ]

  for (const [untilIdle, field] of wrong) {
    it.effect(`is refused by name: ${JSON.stringify(untilIdle)}`, () =>
      Effect.gen(function* () {
        const { agent, model } = setUp([reply("Hi.")])
        const options = { untilIdle } as RunOptions<[], undefined>
        const open = yield* idling(agent, options)
        expect(failureOf(open)).toMatchObject({ _tag: "InvalidConfiguration" })
        expect(String((failureOf(open) as { readonly message?: string }).message)).toContain(field)
        expect(model.requests).toHaveLength(0)
      }).pipe(managed())
    )
  }

  it.effect("gives a plain stream where no tasks are enabled", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([two, reply("Done.")])
      const open = yield* idling(agent)
      expectOpen(open)
      yield* work.end(1)
      yield* work.end(2)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Done."])
    }).pipe(managed({ enabled: false }))
  )

  it.effect("gives a plain stream where there is no manager", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([two, reply("Done.")])
      const open = yield* idling(agent)
      yield* work.end(1)
      yield* work.end(2)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Done."])
    })
  )

  it.effect("of an agent that another one calls is ignored", () =>
    Effect.gen(function* () {
      const quick = Tool.make("quick", {
        input: Schema.Struct({ n: Schema.Number }),
        execute: ({ n }) => Effect.succeed({ n })
      })
      const helper = Agent.make({
        id: "helper",
        model: ScriptedModel.make([calls(callOf("h1", "quick", 1)), reply("Found.")]),
        tools: [quick],
        untilIdle: true
      })
      const model = ScriptedModel.make([
        calls(ScriptedModel.toolCall("c1", "agent-helper", { prompt: "find" })),
        reply("Done.")
      ])
      const agent = Agent.make({ id: "chief", model, tools: [Agent.asTool(helper)], untilIdle: true })
      const open = yield* idling(agent, {})
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Done."])
    }).pipe(managed())
  )

  it.effect("is no option of generate, which ignores a default", () =>
    Effect.gen(function* () {
      const { agent } = byDefault(true, [two, reply("Wait.")])
      expect((yield* Agent.generate(agent, "go")).text).toBe("Wait.")
      const error = yield* Effect.flip(Agent.generate(agent, "go", { untilIdle: true }))
      expect(error).toMatchObject({ _tag: "InvalidConfiguration", field: "untilIdle" })
    }).pipe(managed())
  )
})

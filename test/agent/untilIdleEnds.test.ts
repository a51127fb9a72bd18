/** What ends an until-idle stream before it is idle: aborts, readers that leave, failures. Its tasks go on, and nothing is left. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, type Chunk, type RunOptions, ThreadStore } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Fiber } from "effect"
import { Broken } from "../support/broken.js"
import { callOf, calls, gated, loadEverything, managed, outputIn, pass, tasks } from "./backgroundKit.js"
import { failing, only, settle, types } from "./kit.js"
import { messagesOf } from "./memoryKit.js"
import {
  counted,
  expectClosed,
  expectNothingLeft,
  expectOpen,
  expectTurns,
  failureOf,
  idling,
  idlingIn,
  type Opened,
  setUp,
  textsOf
} from "./untilIdleKit.js"

const { hang, reply, text } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

await loadEverything()

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

/** A stream whose continuation is being prepared, for ever. */
const preparing = Effect.fnUntraced(function* (options: RunOptions<[], undefined>) {
  const work = gated("work")
  let count = 0
  const agent = Agent.make({
    id: "worker",
    model: ScriptedModel.make([two, reply("Wait.")]),
    tools: [work.tool],
    instructions: () => (count++ === 0 ? "Be brief." : Effect.never)
  })
  const open = yield* idling(agent, options)
  yield* work.end(1)
  expectOpen(open)
  expect(count).toBe(2)
  return { open, work }
})

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
      const controller = new AbortController()
      const { open } = yield* preparing({ abortSignal: controller.signal })
      controller.abort()
      yield* settle
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Wait."])
      yield* expectNothingLeft(open, controller.signal)
    }).pipe(counted, managed())
  )

  it.effect("does not wait for a thread that a continuation asks for", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([two, reply("Wait.")])
      const store = yield* ThreadStore.ThreadStore
      const controller = new AbortController()
      let isHanging = false
      const hanging: typeof store = {
        ...store,
        messages: (id, options) =>
          Effect.suspend(() => (isHanging ? Effect.never : store.messages(id, options)))
      }
      const open = yield* Effect.provideService(
        idlingIn(agent, memory, { abortSignal: controller.signal }),
        ThreadStore.ThreadStore,
        hanging
      )
      isHanging = true
      yield* work.end(1)
      expectOpen(open)
      controller.abort()
      yield* settle
      expectClosed(open)
      expect(model.requests).toHaveLength(2)
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

  it.effect("while a continuation is being prepared waits for nothing", () =>
    Effect.gen(function* () {
      const { signal } = new AbortController()
      const { open } = yield* preparing({ abortSignal: signal })
      yield* open.leave
      yield* expectNothingLeft(open, signal)
    }).pipe(counted, managed())
  )
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
        instructions: () =>
          count++ === 0 ? "Be brief." : Effect.fail(new Broken({ message: "no instructions" }))
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
    }).pipe(counted, managed({ shutdown: { grace: 1000 }, defaultRetries: { maxRetries: 1 } }))
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

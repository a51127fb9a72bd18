/** How long an until-idle stream waits, what it tells meanwhile, and who else may take its place. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Exit } from "effect"
import { callOf, calls, loadEverything, managed, outputIn, pass, tasks } from "./backgroundKit.js"
import { only, read, settle } from "./kit.js"
import { messagesOf } from "./memoryKit.js"
import {
  counted,
  expectClosed,
  expectNothingLeft,
  expectOpen,
  failureOf,
  idling,
  idlingIn,
  namedIn,
  setUp,
  textsOf
} from "./untilIdleKit.js"

const { reply } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

await loadEverything()

const one = calls(callOf("c1", "work", 1))
const two = calls(callOf("c1", "work", 1), callOf("c2", "work", 2))

describe("the idle timer", () => {
  it.effect("closes the stream when nothing is heard, and the task goes on into its thread", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([one, reply("Wait.")])
      const open = yield* idlingIn(agent, memory, { untilIdle: { maxIdle: "10 seconds" } })
      yield* pass(9999)
      expectOpen(open)
      yield* pass(1)
      expectClosed(open)
      yield* expectNothingLeft(open)
      yield* work.end(1)
      expect((yield* tasks).map(({ status }) => status)).toStrictEqual(["completed"])
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      expect(model.requests).toHaveLength(2)
    }).pipe(counted, managed())
  )

  it.effect("waits as long as it says, whatever the interval of reports", () =>
    Effect.gen(function* () {
      const { agent } = setUp([one, reply("Wait.")])
      const open = yield* idling(agent, { untilIdle: { maxIdle: 5000 } })
      yield* pass(4999)
      expectOpen(open)
      yield* pass(1)
      expectClosed(open)
    }).pipe(managed({ progressInterval: 3000 }))
  )

  it.effect("waits five minutes by itself", () =>
    Effect.gen(function* () {
      const { agent } = setUp([one, reply("Wait.")])
      const open = yield* idling(agent)
      yield* pass(299_999)
      expectOpen(open)
      yield* pass(1)
      expectClosed(open)
    }).pipe(managed({ progressInterval: "1 hour", defaultTimeout: "1 hour" }))
  )

  it.effect("begins again with whatever is heard of a task", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([two, reply("Wait."), reply("One.")])
      const open = yield* idling(agent, { untilIdle: { maxIdle: 10_000 } })
      yield* pass(8000)
      yield* work.contexts[0]?.write("half") ?? Effect.void
      yield* pass(8000)
      expectOpen(open)
      yield* work.end(1)
      expect(textsOf(open.chunks)).toStrictEqual(["Wait.", "One."])
      yield* pass(9999)
      expectOpen(open)
      yield* pass(1)
      expectClosed(open)
    }).pipe(managed())
  )

  it.effect("does not run in a turn: a slow first word closes nothing", () =>
    Effect.gen(function* () {
      const slow = [ScriptedModel.pause(60_000), ...reply("At last.")]
      const { agent, work } = setUp([one, slow, [ScriptedModel.pause(60_000), ...reply("Again.")]])
      const open = yield* idling(agent, { untilIdle: { maxIdle: 1000 } })
      yield* pass(59_999)
      expectOpen(open)
      yield* pass(1)
      expect(textsOf(open.chunks)).toStrictEqual(["At last."])
      yield* work.end(1)
      yield* pass(59_999)
      expectOpen(open)
      yield* pass(1)
      expect(textsOf(open.chunks)).toStrictEqual(["At last.", "Again."])
      expectClosed(open)
    }).pipe(managed())
  )
})

describe("as long as tasks run", () => {
  it.effect("progress is told at the interval, also when tasks write", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([two, reply("Wait."), reply("One."), reply("Two.")])
      const open = yield* idling(agent)
      const progress = () =>
        only(open.chunks, "background-task-progress").map(
          ({ payload: { elapsedMs, runningCount } }) => [elapsedMs, runningCount] as const
        )
      expect(progress()).toStrictEqual([[0, 2]])
      yield* pass(2000)
      yield* work.contexts[0]?.write("half") ?? Effect.void
      yield* pass(1000)
      yield* pass(3000)
      expect(progress()).toStrictEqual([
        [0, 2],
        [3000, 2],
        [6000, 2]
      ])
      yield* work.end(1)
      yield* pass(3000)
      expect(progress().slice(3)).toStrictEqual([[9000, 1]])
      yield* work.end(2)
      expectClosed(open)
    }).pipe(managed())
  )

  it.effect("and in a turn that others have called for, progress is told too", () =>
    Effect.gen(function* () {
      const long = [ScriptedModel.pause(10_000), ...reply("One.")]
      const { agent, work } = setUp([two, reply("Wait."), long, reply("Two.")])
      const open = yield* idling(agent)
      yield* pass(1000)
      yield* work.end(1)
      for (let count = 0; count < 9; count++) yield* pass(1000)
      const progress = only(open.chunks, "background-task-progress").map(({ payload }) => payload)
      expect(progress.map(({ elapsedMs, runningCount }) => [elapsedMs, runningCount])).toStrictEqual([
        [0, 2],
        [3000, 1],
        [6000, 1],
        [9000, 1]
      ])
      yield* pass(1000)
      yield* work.end(2)
      expectClosed(open)
    }).pipe(managed())
  )

  it.effect("each call is told once for each interval, also by the turn that made it", () =>
    Effect.gen(function* () {
      const long = [ScriptedModel.pause(10_000), ...reply("Wait.")]
      const { agent, work } = setUp([one, long, reply("Done.")])
      const open = yield* idling(agent)
      for (let count = 0; count < 13; count++) yield* pass(1000)
      const progress = only(open.chunks, "background-task-progress").map(({ payload }) => payload.elapsedMs)
      expect(progress).toStrictEqual([0, 3000, 6000, 9000, 12_000])
      yield* work.end(1)
      expectClosed(open)
    }).pipe(managed())
  )
})

describe("a reader that is far behind", () => {
  it.effect("misses the oldest of what tasks write, and nothing else", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([one, reply("Wait."), reply("Done.")])
      const gate = yield* Deferred.make<void>()
      const stream = Agent.stream(agent, "go", { untilIdle: true })
      const fiber = yield* Effect.fork(
        read(stream, ({ type }) => (type === "finish" ? Deferred.await(gate) : Effect.void))
      )
      yield* settle
      const [context] = work.contexts
      const count = BackgroundTasks.capacity + 100
      for (let n = 0; n < count; n++) yield* context?.write(n) ?? Effect.void
      yield* pass(3000)
      yield* pass(3000)
      yield* work.end(1)
      yield* Deferred.succeed(gate, undefined)
      const { chunks, exit } = yield* fiber
      expect(exit).toStrictEqual(Exit.void)
      const outputs = only(chunks, "background-task-output").map(({ payload }) => payload.payload)
      // What a turn of the event loop has room for, and the newest that are held.
      expect(outputs).toHaveLength(512 + 4096)
      expect(outputs.at(-1)).toMatchObject({ payload: { output: count - 1 } })
      expect(only(chunks, "background-task-completed")).toHaveLength(1)
      expect(only(chunks, "background-task-progress").map(({ payload }) => payload.elapsedMs)).toStrictEqual([
        0, 6000
      ])
      expect(textsOf(chunks)).toStrictEqual(["Wait.", "Done."])
    }).pipe(managed())
  )
})

describe("a second until-idle stream of the same thread", () => {
  it.effect("takes over: the older, which waits, ends, and the younger answers everything", () =>
    Effect.gen(function* () {
      const older = setUp([two, reply("Wait.")])
      const younger = setUp([
        calls(callOf("c3", "work", 3)),
        reply("Me too."),
        reply("A."),
        reply("B."),
        reply("C.")
      ])
      const first = yield* idlingIn(older.agent, memory)
      expectOpen(first)
      const second = yield* idlingIn(younger.agent, memory)
      expectClosed(first)
      expectOpen(second)
      yield* older.work.end(1)
      yield* younger.work.end(3)
      yield* older.work.end(2)
      expectClosed(second)
      expect(textsOf(first.chunks)).toStrictEqual(["Wait."])
      expect(textsOf(second.chunks)).toStrictEqual(["Me too.", "A.", "B.", "C."])
      expect(younger.model.requests.map(({ messages }) => namedIn(messages)).slice(2)).toStrictEqual([
        ["c1 completed"],
        ["c3 completed"],
        ["c2 completed"]
      ])
      yield* expectNothingLeft(second)
    }).pipe(counted, managed())
  )

  it.effect("lets the older finish the turn that it is in", () =>
    Effect.gen(function* () {
      const older = setUp([one, [ScriptedModel.pause(1000), ...reply("Wait.")]])
      const younger = setUp([reply("Here."), reply("Done.")])
      const first = yield* idlingIn(older.agent, memory)
      const second = yield* idlingIn(younger.agent, memory)
      expectOpen(first)
      yield* pass(1000)
      expect(textsOf(first.chunks)).toStrictEqual(["Wait."])
      expectClosed(first)
      expectOpen(second)
      yield* older.work.end(1)
      expectClosed(second)
      expect(textsOf(second.chunks)).toStrictEqual(["Here.", "Done."])
    }).pipe(managed())
  )

  it.effect("is followed by a third in the same way", () =>
    Effect.gen(function* () {
      const made = [
        setUp([one, reply("Wait.")]),
        setUp([reply("Two.")]),
        setUp([reply("Three."), reply("Done.")])
      ]
      const open = yield* Effect.forEach(made, ({ agent }) => idlingIn(agent, memory))
      expect(open.map(({ exit }) => exit() === undefined)).toStrictEqual([false, false, true])
      yield* made[0]?.work.end(1) ?? Effect.void
      expect(open.map(({ chunks }) => textsOf(chunks))).toStrictEqual([
        ["Wait."],
        ["Two."],
        ["Three.", "Done."]
      ])
    }).pipe(managed())
  )

  it.effect("that is refused takes over nothing", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([one, reply("Wait."), reply("Done.")])
      const first = yield* idlingIn(agent, memory)
      const second = yield* idlingIn(agent, memory, { maxSteps: 0 })
      expect(failureOf(second)).toMatchObject({ field: "maxSteps" })
      expectOpen(first)
      yield* work.end(1)
      expectClosed(first)
      expect(textsOf(first.chunks)).toStrictEqual(["Wait.", "Done."])
    }).pipe(managed())
  )

  it.effect("of another agent, or of another thread, leaves it alone; so does one without a thread", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([one, reply("Wait."), reply("Other."), reply("None."), reply("Done.")])
      const other = setUp([reply("Hello.")], "other")
      const first = yield* idlingIn(agent, memory)
      expectClosed(yield* idlingIn(other.agent, memory))
      expectClosed(yield* idlingIn(agent, { ...memory, thread: "t2" }))
      expectClosed(yield* idling(agent))
      expectOpen(first)
      yield* work.end(1)
      expectClosed(first)
      expect(textsOf(first.chunks)).toStrictEqual(["Wait.", "Done."])
    }).pipe(managed())
  )
})

/** Goals and tasks: nothing is judged as long as what an answer waits for has not come to anything. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, TestClock } from "effect"
import { beforeAll } from "vitest"
import { callOf, calls, gated, loadEverything, managed } from "./backgroundKit.js"
import { goalsOf, loadGoals, objectiveOf, setObjective, told, verdict } from "./goalsKit.js"
import { settle, types } from "./kit.js"
import { memory, reply } from "./memoryKit.js"
import { expectClosed, expectTurns, opened } from "./untilIdleKit.js"

beforeAll(() => Promise.all([loadEverything(), loadGoals()]))

const worker = <const Tools extends ReadonlyArray<Tool.Any>>(
  turns: ReadonlyArray<ScriptedModel.Turn>,
  verdicts: ReadonlyArray<ScriptedModel.Turn>,
  tools: Tools
) => {
  const model = ScriptedModel.make(turns)
  const judge = ScriptedModel.make(verdicts)
  return { agent: Agent.make({ id: "worker", model, tools, goal: { judge } }), judge, model }
}

const open = <R>(agent: Agent.Agent<R>, untilIdle = false) =>
  opened(Agent.stream(agent, "go", { memory, untilIdle }))

describe("a run whose tasks still run", () => {
  it.effect("ends without being judged", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const { agent } = worker([calls(callOf("c1", "work", 1)), reply("It is on its way.")], [], [work.tool])
      yield* setObjective(agent)
      const stream = yield* open(agent)
      expectClosed(stream)
      expect(told(stream.chunks)).toEqual([])
      expect(yield* objectiveOf(agent)).toMatchObject({ status: "active", runsUsed: 0 })
      yield* work.end(1)
    }).pipe(managed())
  )

  it.effect("is judged when it has waited for them, and the model has answered", () =>
    Effect.gen(function* () {
      const work = gated("work", { enabled: true, waitTimeout: "1 minute" })
      const { agent, judge } = worker(
        [calls(callOf("c1", "work", 1)), reply("I wait. "), reply("It is done."), reply("And more.")],
        [verdict(false, "More."), verdict(true)],
        [work.tool]
      )
      yield* setObjective(agent)
      const stream = yield* open(agent)
      expect(told(stream.chunks)).toEqual([])
      yield* work.end(1)
      expectClosed(stream)
      expect(told(stream.chunks)).toEqual(["1/50 rejected, active", "2/50 passed, done"])
      expect(judge.requests).toHaveLength(2)
      expectTurns(stream.chunks, 1)
    }).pipe(managed())
  )

  it.effect("is not judged when it has waited for them in vain", () =>
    Effect.gen(function* () {
      const work = gated("work", { enabled: true, waitTimeout: "1 minute" })
      const { agent } = worker([calls(callOf("c1", "work", 1)), reply("I wait.")], [], [work.tool])
      yield* setObjective(agent)
      const stream = yield* open(agent)
      yield* TestClock.adjust("1 minute")
      yield* settle
      expectClosed(stream)
      expect(told(stream.chunks)).toEqual([])
      yield* work.end(1)
    }).pipe(managed())
  )

  it.effect("may begin tasks of its own when it goes on, and is judged when these have settled", () =>
    Effect.gen(function* () {
      const work = gated("work", { enabled: true, waitTimeout: "1 minute" })
      const { agent } = worker(
        [reply("Nothing yet. "), calls(callOf("c1", "work", 1)), reply("I wait. "), reply("Done.")],
        [verdict(false, "Work."), verdict(true)],
        [work.tool]
      )
      yield* setObjective(agent)
      const stream = yield* open(agent)
      expect(told(stream.chunks)).toEqual(["1/50 rejected, active"])
      yield* work.end(1)
      expectClosed(stream)
      expect(told(stream.chunks)).toEqual(["1/50 rejected, active", "2/50 passed, done"])
    }).pipe(managed())
  )
})

describe("an until-idle stream", () => {
  it.effect("is judged in the turn that answers the last of its tasks", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const { agent, judge } = worker(
        [
          calls(callOf("c1", "work", 1), callOf("c2", "work", 2)),
          reply("Two are on their way."),
          reply("One is there."),
          reply("Both are there."),
          reply("And this.")
        ],
        [verdict(false, "More."), verdict(true)],
        [work.tool]
      )
      yield* setObjective(agent)
      const stream = yield* open(agent, true)
      expect(told(stream.chunks)).toEqual([])
      yield* work.end(1)
      expect(told(stream.chunks)).toEqual([])
      yield* work.end(2)
      expectClosed(stream)
      expect(told(stream.chunks)).toEqual(["1/50 rejected, active", "2/50 passed, done"])
      expectTurns(stream.chunks, 3)
      const third = stream.chunks.findLast(({ type }) => type === "start")?.runId
      expect(stream.chunks.filter(({ type }) => type === "goal").map(({ runId }) => runId)).toEqual([
        third,
        third
      ])
      expect(judge.unused()).toBe(0)
    }).pipe(managed())
  )

  it.effect("is judged at once when both have settled together", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const { agent } = worker(
        [calls(callOf("c1", "work", 1), callOf("c2", "work", 2)), reply("On their way."), reply("Both.")],
        [verdict(true)],
        [work.tool]
      )
      yield* setObjective(agent)
      const stream = yield* opened(Agent.stream(agent, "go", { memory, untilIdle: { batch: "all" } }))
      yield* work.end(1)
      yield* work.end(2, Effect.fail("broken"))
      expectClosed(stream)
      expect(told(stream.chunks)).toEqual(["1/50 passed, done"])
      expectTurns(stream.chunks, 2)
    }).pipe(managed())
  )

  it.effect("goes on when a rejected answer begins another task", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const { agent, model } = worker(
        [
          reply("Nothing to do."),
          calls(callOf("c1", "work", 1)),
          reply("It is on its way."),
          reply("It is there.")
        ],
        [verdict(false, "Work."), verdict(true)],
        [work.tool]
      )
      yield* setObjective(agent)
      const stream = yield* open(agent, true)
      expect(told(stream.chunks)).toEqual(["1/50 rejected, active"])
      yield* work.end(1)
      expectClosed(stream)
      expect(told(stream.chunks)).toEqual(["1/50 rejected, active", "2/50 passed, done"])
      expectTurns(stream.chunks, 2)
      expect(model.unused()).toBe(0)
    }).pipe(managed())
  )

  it.effect("is not judged while a task waits for somebody", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const ask = Tool.make("ask", {
        background: { enabled: true },
        execute: (_, { suspend }) => suspend?.({ awaiting: "you" }) ?? Effect.void
      })
      const { agent } = worker(
        [
          calls(callOf("c1", "ask", 1), callOf("c2", "work", 2)),
          reply("On their way."),
          reply("One waits for you.")
        ],
        [],
        [work.tool, ask]
      )
      yield* setObjective(agent)
      const stream = yield* open(agent, true)
      yield* work.end(2)
      expectClosed(stream)
      expect(told(stream.chunks)).toEqual([])
      const tasks = yield* BackgroundTasks.BackgroundTasks
      const { tasks: waiting } = yield* tasks.list({ status: "suspended" })
      expect(waiting).toHaveLength(1)
      expect(yield* objectiveOf(agent)).toMatchObject({ status: "active", runsUsed: 0 })
    }).pipe(managed())
  )

  it.effect("without tasks is judged in its only turn", () =>
    Effect.gen(function* () {
      const { agent } = worker([reply("One."), reply("Two.")], [verdict(false), verdict(true)], [])
      yield* setObjective(agent)
      const stream = yield* open(agent, true)
      expectClosed(stream)
      expect(goalsOf(stream.chunks)).toHaveLength(2)
      expect(types(stream.chunks).filter(type => type === "start")).toHaveLength(1)
    }).pipe(managed())
  )
})

/** Where calls in the background meet approvals, tripwires, values and goals. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Processor, RunStore } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect } from "effect"
import { beforeAll } from "vitest"
import { conversationFaults } from "../support/conversationFaults.js"
import { guarded, reasonOf, waitingIn } from "./approvalKit.js"
import { callOf, calls, gated, loadEverything, managed, outputIn, tasks } from "./backgroundKit.js"
import { goalsOf, loadGoals, objectiveOf, setObjective, verdict } from "./goalsKit.js"
import { finishOf, only, settle, types } from "./kit.js"
import { memory } from "./memoryKit.js"
import { deltas, objectsOf, storedIn, structuredOutput } from "./togetherKit.js"
import { expectClosed, expectOpen, expectTurns, opened } from "./untilIdleKit.js"

beforeAll(() =>
  Promise.all([
    loadEverything(),
    loadGoals(),
    import("../../src/agent/suspension/snapshotSchema.js"),
    import("../../src/storage/storedRuns.js")
  ])
)

const { reply } = ScriptedModel

const stopping = (isWrong: (text: string) => boolean, retry = false) =>
  Processor.make({
    id: "stopping",
    processOutputStep: ({ text }, { abort }) => (isWrong(text) ? abort("no", { retry }) : undefined)
  })

describe("a run with tasks", () => {
  it.effect("is stopped by a processor while a task runs, and again when the model answers to it", () =>
    Effect.gen(function* () {
      const work = gated("work", { enabled: true, waitTimeout: "1 minute" })
      const model = ScriptedModel.make([
        calls(callOf("c1", "work", 1)),
        reply("I wait. "),
        reply("Bad."),
        reply("Next.")
      ])
      const agent = Agent.make({
        id: "worker",
        model,
        tools: [work.tool],
        outputProcessors: [stopping(text => text === "Bad.")]
      })
      const stream = yield* opened(Agent.stream(agent, "go", { memory }))
      expectOpen(stream)
      yield* work.end(1)
      expectClosed(stream)
      expectTurns(stream.chunks, 1)
      expect(types(stream.chunks).slice(-2)).toEqual(["tripwire", "finish"])
      expect(finishOf(stream.chunks).output.text).toBe("I wait. ")
      const stored = yield* storedIn("t1")
      expect(outputIn(stored, "c1")).toMatchObject({ value: { n: 1 } })
      expect(JSON.stringify(stored)).not.toContain("Bad.")
      yield* opened(Agent.stream(agent, "again", { memory }))
      expect(conversationFaults(model.requests[3]?.messages ?? [], () => false)).toEqual([])
    }).pipe(managed())
  )

  it.effect("tells the model in an until-idle turn why its answer was rejected, and keeps the other", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const model = ScriptedModel.make([
        calls(callOf("c1", "work", 1)),
        reply("I wait."),
        reply("Bad."),
        reply("Good.")
      ])
      const agent = Agent.make({
        id: "worker",
        model,
        tools: [work.tool],
        outputProcessors: [stopping(text => text === "Bad.", true)]
      })
      const stream = yield* opened(Agent.stream(agent, "go", { memory, untilIdle: true }))
      yield* work.end(1)
      expectClosed(stream)
      expectTurns(stream.chunks, 2)
      expect(finishOf(stream.chunks).output.text).toBe("Good.")
      expect(conversationFaults(model.requests[3]?.messages ?? [], () => false)).toEqual([])
      expect(JSON.stringify(yield* storedIn("t1"))).not.toContain("Bad.")
    }).pipe(managed())
  )

  it.effect(
    "waits for approval in an until-idle stream while its task settles; the leg answers to both",
    () =>
      Effect.gen(function* () {
        const work = gated("work")
        const { executed, tool } = guarded()
        for (const hasThread of [true, false]) {
          const model = ScriptedModel.make([
            calls(callOf("c1", "work", hasThread ? 1 : 2), callOf("c2", "remove", 5)),
            reply("Removed."),
            reply("Worked.")
          ])
          const agent = Agent.make({ id: "worker", model, tools: [work.tool, tool] })
          const options = { untilIdle: true, ...(hasThread ? { memory } : {}) } as {
            readonly untilIdle: true
          }
          const runId = `r${hasThread}`
          const stream = yield* opened(Agent.stream(agent, "go", { ...options, runId }))
          expectClosed(stream)
          expect(waitingIn(stream.chunks)).toEqual(["c2"])
          yield* work.end(hasThread ? 1 : 2)
          expect((yield* tasks).every(({ status }) => status === "completed")).toBe(true)
          const leg = yield* opened(Agent.approveToolCall(agent, { runId, toolCallId: "c2", ...options }))
          expectClosed(leg)
          expect(reasonOf(leg.chunks)).toBe("stop")
          const last = model.requests.at(-1)?.messages ?? []
          expect(conversationFaults(last, () => false)).toEqual([])
          expect(JSON.stringify(last)).toContain('"removed":5')
          expect([hasThread, JSON.stringify(last).includes('{"n":')]).toEqual([hasThread, true])
          if (hasThread) expect(outputIn(yield* storedIn("t1"), "c1")).toMatchObject({ value: { n: 1 } })
        }
        expect(executed).toEqual([5, 5])
      }).pipe(Effect.provide(RunStore.layerMemory), managed())
  )

  it.effect("is approved while its task still runs, and the same stream answers to the task", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const { tool } = guarded()
      const model = ScriptedModel.make([
        calls(callOf("c1", "work", 1), callOf("c2", "remove", 5)),
        reply("Removed."),
        deltas('{"a":1}')
      ])
      const agent = Agent.make({ id: "worker", model, tools: [work.tool, tool] })
      const stream = yield* opened(Agent.stream(agent, "go", { memory, untilIdle: true, runId: "r1" }))
      expectClosed(stream)
      const leg = yield* opened(
        Agent.approveToolCall(agent, {
          runId: "r1",
          toolCallId: "c2",
          memory,
          untilIdle: true,
          structuredOutput
        })
      )
      expectOpen(leg)
      yield* work.end(1)
      expectClosed(leg)
      expect(only(leg.chunks, "finish").map(({ payload }) => payload.output.text)).toEqual([
        "Removed.",
        '{"a":1}'
      ])
      expect(finishOf(leg.chunks).output.object).toEqual({ a: 1 })
      expect(objectsOf(leg.chunks).at(-1)).toEqual({ a: 1 })
    }).pipe(Effect.provide(RunStore.layerMemory), managed())
  )

  it.effect("has a goal, waits for approval, and is judged by the turn that nothing is left behind", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const { tool } = guarded()
      const model = ScriptedModel.make([
        calls(callOf("c1", "work", 1), callOf("c2", "remove", 5)),
        reply("Removed."),
        reply("Worked."),
        reply("Whole.")
      ])
      const judge = ScriptedModel.make([verdict(false, "more"), verdict(true)])
      const agent = Agent.make({ id: "worker", model, tools: [work.tool, tool], goal: { judge } })
      yield* setObjective(agent)
      const stream = yield* opened(Agent.stream(agent, "go", { memory, untilIdle: true, runId: "r1" }))
      expectClosed(stream)
      expect(goalsOf(stream.chunks)).toEqual([])
      const leg = yield* opened(
        Agent.approveToolCall(agent, { runId: "r1", toolCallId: "c2", memory, untilIdle: true })
      )
      expectOpen(leg)
      expect(goalsOf(leg.chunks)).toEqual([])
      yield* work.end(1)
      yield* settle
      expectClosed(leg)
      expect(goalsOf(leg.chunks).map(({ passed }) => passed)).toEqual([false, true])
      expect(yield* objectiveOf(agent)).toMatchObject({ status: "done" })
    }).pipe(Effect.provide(RunStore.layerMemory), managed())
  )
})

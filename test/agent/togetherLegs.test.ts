/** Where runs that were suspended meet processors, structured output, goals and traces. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Processor } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Layer } from "effect"
import { guarded, told, waitingIn } from "./approvalKit.js"
import { goalsOf, setObjective, verdict } from "./goalsKit.js"
import { finishOf, only, read, types } from "./kit.js"
import { memory } from "./memoryKit.js"
import { changing, lookUp, rejections } from "./processorsKit.js"
import { Traces } from "./telemetryKit.js"
import { calling, deltas, expectUsage, objectsOf, one, stores, structuredOutput } from "./togetherKit.js"

const { reply, toolCall } = ScriptedModel

/** A processor that counts what it sees, and refuses answers. */
const watching = (isWrong: (text: string, calls: number) => boolean = () => false) => {
  const seen: Array<string> = []
  const processor = Processor.make({
    id: "watching",
    processInput: () => void seen.push("input"),
    processInputStep: (_, { retryCount, stepNumber }) => void seen.push(`prompt ${stepNumber}.${retryCount}`),
    processOutputStep: ({ text, toolCalls }, { abort, stepNumber }) => {
      seen.push(`step ${stepNumber}`)
      return isWrong(text, toolCalls.length) ? abort("not this", { retry: true }) : undefined
    },
    processOutputResult: ({ text }) => void seen.push(`result ${text}`)
  })
  return { seen, processor, both: { inputProcessors: [processor], outputProcessors: [processor] } }
}

const c1 = toolCall("c1", "remove", { n: 1 })
const c2 = toolCall("c2", "remove", { n: 2 })

describe("a run that waits for approval", () => {
  it.effect("is not processed again as input, and goes on with the number of its steps", () =>
    Effect.gen(function* () {
      const { both, seen } = watching()
      const { tool } = guarded()
      const steps: Array<number> = []
      const agent = Agent.make({
        id: "a",
        model: ScriptedModel.make([calling(toolCall("c0", "lookUp", {})), calling(c1), reply("Done.", one)]),
        tools: [tool, lookUp],
        prepareStep: ({ stepNumber }) => void steps.push(stepNumber),
        ...both
      })
      const first = yield* told(Agent.stream(agent, "go", { runId: "r1" }))
      expect(waitingIn(first)).toEqual(["c1"])
      expectUsage(first, 2)
      const second = yield* told(Agent.approveToolCall(agent, { runId: "r1" }), ["c1"])
      expectUsage(second, 1, 2)
      expect(steps).toEqual([0, 1, 2])
      expect(seen).toEqual([
        "input",
        "prompt 0.0",
        "step 0",
        "prompt 1.0",
        "step 1",
        "prompt 2.0",
        "step 2",
        "result Done."
      ])
    }).pipe(Effect.provide(stores))
  )

  it.effect("counts what rejected answers of a later leg used", () =>
    Effect.gen(function* () {
      const { both } = watching(text => text === "Bad.")
      const { tool } = guarded()
      const agent = Agent.make({
        id: "a",
        model: ScriptedModel.make([calling(c1), reply("Bad.", one), reply("Good.", one)]),
        tools: [tool],
        ...both
      })
      yield* told(Agent.stream(agent, "go", { runId: "r1" }))
      const second = yield* told(Agent.approveToolCall(agent, { runId: "r1" }), ["c1"])
      expect(rejections(second)).toHaveLength(1)
      expectUsage(second, 2, 1)
    }).pipe(Effect.provide(stores))
  )

  it.effect("asks nobody about calls of an answer that a processor rejected", () =>
    Effect.gen(function* () {
      let count = 0
      const { both } = watching((_, calls) => calls > 0 && count++ === 0)
      const { executed, tool } = guarded()
      const agent = Agent.make({
        id: "a",
        model: ScriptedModel.make([calling(c1), calling(c2), reply("Done.", one)]),
        tools: [tool],
        ...both
      })
      const first = yield* told(Agent.stream(agent, "go", { runId: "r1" }))
      expect(waitingIn(first)).toEqual(["c2"])
      expectUsage(first, 2)
      expect(
        (yield* Agent.listSuspendedRuns(agent)).map(({ calls }) => calls.map(({ toolCallId }) => toolCallId))
      ).toEqual([["c2"]])
      const second = yield* told(Agent.approveToolCall(agent, { runId: "r1" }), ["c2"])
      expectUsage(second, 1, 2)
      expect(executed).toEqual([2])
    }).pipe(Effect.provide(stores))
  )

  it.effect("has no value yet; a leg that is asked for one has it, from the processed text", () =>
    Effect.gen(function* () {
      for (const isDefault of [true, false]) {
        const { tool } = guarded()
        const agent = Agent.make({
          id: "a",
          model: ScriptedModel.make([
            [...ScriptedModel.text("Let me see {"), ...(calling(c1) as ReadonlyArray<never>)],
            deltas('{"a"', ":1}")
          ]),
          tools: [tool],
          outputProcessors: [changing(text => text.replace("1", "7"))],
          ...(isDefault ? { structuredOutput } : {})
        })
        const runId = `r${isDefault}`
        const output = yield* Agent.run(agent, "go", { runId, ...(isDefault ? {} : { structuredOutput }) })
        const object = yield* Effect.flip(output.object as Effect.Effect<unknown, { readonly _tag: string }>)
        expect(object._tag).toBe("RunSuspended")
        const second = yield* told(
          Agent.approveToolCall(agent, { runId, ...(isDefault ? {} : { structuredOutput }) }),
          ["c1"]
        )
        expect(finishOf(second).output).toMatchObject({ object: { a: 7 }, text: '{"a":7}' })
        expect(objectsOf(second).at(-1)).toEqual({ a: 7 })
        expectUsage(second, 1, 1)
      }
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.effect("leaves no span open, and none twice", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      yield* Effect.gen(function* () {
        const { tool } = guarded()
        const { both } = watching(text => text === "Bad.")
        const agent = Agent.make({
          id: "a",
          model: ScriptedModel.make([calling(c1, c2), reply("Bad.", one), reply("Good.", one)]),
          tools: [tool],
          ...both
        })
        yield* told(Agent.stream(agent, "go", { runId: "r1" }))
        expect(traces.unfinished).toEqual([])
        yield* told(Agent.approveToolCall(agent, { runId: "r1", toolCallId: "c2" }), ["c1", "c2"])
        yield* told(Agent.declineToolCall(agent, { runId: "r1", toolCallId: "c1" }), ["c1"])
        expect(traces.unfinished).toEqual([])
        expect(traces.trees).toEqual([
          ["invoke_agent a", ["chat script"]],
          ["invoke_agent a", ["execute_tool remove"]],
          ["invoke_agent a", ["chat script"], ["chat script"]]
        ])
      }).pipe(Effect.provide(Layer.merge(stores, traces.layer)))
    })
  )
})

describe("a goal", () => {
  it.effect("is judged, and a value written, below the span of the run", () =>
    Effect.gen(function* () {
      const traces = new Traces()
      yield* Effect.gen(function* () {
        const named = (modelId: string, turn: ScriptedModel.Turn) => ScriptedModel.make([turn], { modelId })
        const agent = Agent.make({
          id: "a",
          model: named("worker", reply("It is 1.", one)),
          structuredOutput: { ...structuredOutput, model: named("writer", reply('{"a":1}', one)) },
          goal: { judge: named("judge", reply('{"passed":true}', one)) }
        })
        yield* setObjective(agent)
        expectUsage(yield* told(Agent.stream(agent, "go", { memory })), 3)
        expect(traces.unfinished).toEqual([])
        expect(traces.trees).toEqual([["invoke_agent a", ["chat worker"], ["chat writer"], ["chat judge"]]])
        expect(traces.only("chat judge").attributes["gen_ai.usage.output_tokens"]).toBe(1)
        expect(traces.only("invoke_agent a").attributes["gen_ai.usage.output_tokens"]).toBe(3)
      }).pipe(Effect.provide(Layer.merge(stores, traces.layer)))
    })
  )

  it.effect("has a value for each candidate; the last one told is that of the run", () =>
    Effect.gen(function* () {
      const judge = ScriptedModel.make([verdict(false, "more"), verdict(true)])
      const agent = Agent.make({
        id: "a",
        model: ScriptedModel.make([deltas('{"a":1}'), deltas('{"a":2}')]),
        goal: { judge }
      })
      yield* setObjective(agent)
      const output = yield* Agent.run(agent, "go", { memory, structuredOutput })
      const { chunks } = yield* read(output.fullStream)
      const judged = chunks.findIndex(({ type }) => type === "goal")
      expect(objectsOf(chunks.slice(0, judged)).at(-1)).toEqual({ a: 1 })
      expect(objectsOf(chunks).at(-1)).toEqual({ a: 2 })
      expect(yield* output.object).toEqual({ a: 2 })
      expect(goalsOf(chunks).map(({ passed }) => passed)).toEqual([false, true])
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.effect("judges no answer that a processor rejected", () =>
    Effect.gen(function* () {
      const judge = ScriptedModel.make([verdict(true)])
      const { both, seen } = watching(text => text === "Bad.")
      const agent = Agent.make({
        id: "a",
        model: ScriptedModel.make([reply("Bad.", one), reply("Good.", one)]),
        goal: { judge },
        ...both
      })
      yield* setObjective(agent)
      const chunks = yield* told(Agent.stream(agent, "go", { memory }))
      expect(JSON.stringify(judge.requests)).not.toContain("Bad.")
      expect(goalsOf(chunks)).toMatchObject([{ iteration: 1, passed: true }])
      expect(seen.filter(what => what.startsWith("result"))).toEqual(["result Good."])
    }).pipe(Effect.provide(stores))
  )

  it.effect("is paused by nothing when a processor stops its run", () =>
    Effect.gen(function* () {
      const judge = ScriptedModel.make([verdict(false, "more"), verdict(true)])
      const stopping = Processor.make({
        id: "stopping",
        processOutputStep: ({ text }, { abort }) => (text === "Bad." ? abort("no") : undefined)
      })
      const agent = Agent.make({
        id: "a",
        model: ScriptedModel.make([reply("Good.", one), reply("Bad.", one)]),
        goal: { judge },
        outputProcessors: [stopping]
      })
      yield* setObjective(agent)
      const chunks = yield* told(Agent.stream(agent, "go", { memory }))
      expect(types(chunks).slice(-2)).toEqual(["tripwire", "finish"])
      expect(judge.requests).toHaveLength(1)
      expect(finishOf(chunks).output.text).toBe("Good.")
    }).pipe(Effect.provide(stores))
  )

  it.effect("waits in the middle, goes on, and is judged; steps are counted from the last judgement", () =>
    Effect.gen(function* () {
      const judge = ScriptedModel.make([
        ScriptedModel.reply('{"passed":false,"reason":"more"}', one),
        ScriptedModel.reply('{"passed":false,"reason":"still more"}', one),
        ScriptedModel.reply('{"passed":true}', one)
      ])
      const { tool } = guarded()
      const steps: Array<number> = []
      const model = ScriptedModel.make([
        reply("One.", one),
        calling(c1),
        reply("Two.", one),
        calling(c2),
        reply("Three.", one)
      ])
      const agent = Agent.make({
        id: "a",
        model,
        tools: [tool],
        goal: { judge },
        prepareStep: ({ stepNumber }) => void steps.push(stepNumber),
        maxSteps: 2
      })
      yield* setObjective(agent)
      const first = yield* told(Agent.stream(agent, "go", { memory, runId: "r1" }))
      expect(waitingIn(first)).toEqual(["c1"])
      expect(goalsOf(first)).toMatchObject([{ iteration: 1 }])
      expectUsage(first, 3)
      const second = yield* told(Agent.approveToolCall(agent, { runId: "r1" }), ["c1"])
      expect(waitingIn(second)).toEqual(["c2"])
      expect(goalsOf(second)).toMatchObject([{ iteration: 2, passed: false }])
      expectUsage(second, 3, 3)
      const third = yield* told(Agent.approveToolCall(agent, { runId: "r1" }), ["c2"])
      expect(goalsOf(third)).toMatchObject([{ iteration: 3, passed: true, status: "done" }])
      expectUsage(third, 2, 6)
      expect(finishOf(third).stepResult.reason).toBe("stop")
      expect(steps).toEqual([0, 1, 2, 3, 4])
      expect(JSON.stringify(model.requests[4]?.messages)).toContain("still more")
      expect(only(third, "step-finish")).toHaveLength(2)
    }).pipe(Effect.provide(stores))
  )
})

/** What OpenTelemetry is told of background tasks: below which run they stand, and how their attempts ended. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Layer, Schema } from "effect"
import { callOf, calls, gated, loadEverything, manager, pass, stores } from "./backgroundKit.js"
import { chunksOf, settle } from "./kit.js"
import { ERROR, endOf, OK, Traces } from "./telemetryKit.js"
import { agentOf, idling, idlingIn, setUp } from "./untilIdleKit.js"

const { reply } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

await loadEverything()

/** Tasks and their runs, traced. */
const traced = <A, E, R>(
  test: (traces: Traces) => Effect.Effect<A, E, R>,
  options: BackgroundTasks.Options = {}
) => {
  const traces = new Traces()
  return Effect.provide(test(traces), Layer.provideMerge(manager(options), traces.layer))
}

describe("the trace of a task", () => {
  it.effect("is below the run that made the call, also when that has ended", () =>
    traced(traces =>
      Effect.gen(function* () {
        const { agent, work } = setUp([calls(callOf("c1", "work", 1)), reply("Wait.")])
        yield* chunksOf(Agent.stream(agent, "go", { memory }))
        expect(traces.unfinished).toEqual(["execute_tool work"])
        yield* work.end(1)
        expect(traces.unfinished).toEqual([])
        expect(traces.trees).toEqual([
          ["invoke_agent worker", ["chat script"], ["execute_tool work"], ["chat script"]]
        ])
        const { attributes } = traces.only("execute_tool work")
        expect(attributes).toMatchObject({
          "gen_ai.tool.call.id": "c1",
          "gen_ai.conversation.id": "t1",
          "eddy.task.id": "task-1",
          "eddy.task.attempt": 1
        })
      })
    )
  )

  it.effect("stands in the turn that began it, and turns stand beside each other", () =>
    traced(traces =>
      Effect.gen(function* () {
        const { agent, work } = setUp([calls(callOf("c1", "work", 1)), reply("Wait."), reply("Done.")])
        yield* Effect.withSpan(Effect.zipRight(idlingIn(agent, memory), work.end(1)), "request")
        yield* settle
        expect(traces.trees).toEqual([
          [
            "request",
            ["invoke_agent worker", ["chat script"], ["execute_tool work"], ["chat script"]],
            ["invoke_agent worker", ["chat script"]]
          ]
        ])
        expect(traces.unfinished).toEqual([])
      })
    )
  )

  it.effect("of turns without anything around them are their own", () =>
    traced(traces =>
      Effect.gen(function* () {
        const { agent, work } = setUp([calls(callOf("c1", "work", 1)), reply("Wait."), reply("Done.")])
        yield* idling(agent)
        yield* work.end(1)
        expect(traces.trees.map(([name]) => name)).toEqual(["invoke_agent worker", "invoke_agent worker"])
      })
    )
  )

  it.effect("holds what the tool traces, and the runs of agents that it is", () =>
    traced(traces =>
      Effect.gen(function* () {
        const below = Agent.make({
          id: "below",
          model: ScriptedModel.make([reply("Below.")], { modelId: "small" }),
          instructions: () => Effect.withSpan(Effect.succeed("Be brief."), "inside")
        })
        const model = ScriptedModel.make([
          [ScriptedModel.toolCall("c1", "agent-below", { prompt: "go" }), ScriptedModel.finish("tool-calls")],
          reply("Wait.")
        ])
        const agent = Agent.make({
          id: "worker",
          model,
          tools: [Agent.asTool(below)],
          backgroundTasks: { tools: "all" }
        })
        yield* chunksOf(Agent.stream(agent, "go"))
        yield* settle
        expect(traces.trees).toEqual([
          [
            "invoke_agent worker",
            ["chat script"],
            ["execute_tool agent-below", ["invoke_agent below", ["inside"], ["chat small"]]],
            ["chat script"]
          ]
        ])
        expect(traces.unfinished).toEqual([])
      })
    )
  )

  it.effect("has a span for each attempt", () =>
    traced(
      traces =>
        Effect.gen(function* () {
          let attempts = 0
          const flaky = Tool.make("flaky", {
            background: { enabled: true, retries: 1 },
            execute: () =>
              Effect.suspend(() =>
                ++attempts === 1 ? Effect.die(new RangeError("once")) : Effect.succeed("ok")
              )
          })
          const model = ScriptedModel.make([calls(callOf("c1", "flaky", 1)), reply("Wait.")])
          yield* chunksOf(Agent.stream(agentOf(model, [flaky]), "go"))
          yield* pass(1000)
          expect(traces.named("execute_tool flaky").map(endOf)).toEqual([
            { code: ERROR, error: "RangeError" },
            { code: OK }
          ])
          expect(
            traces.named("execute_tool flaky").map(span => span.attributes["eddy.task.attempt"])
          ).toEqual([1, 2])
        }),
      { defaultRetries: { retryDelay: 1000 } }
    )
  )

  it.effect("ends when the task is cancelled or takes too long, whatever the tool does", () =>
    traced(traces =>
      Effect.gen(function* () {
        const service = yield* BackgroundTasks.BackgroundTasks
        const late = yield* Effect.makeLatch()
        const stubborn = Tool.make("stubborn", {
          input: Schema.Struct({ n: Schema.Number }),
          background: { enabled: true, timeout: 1000 },
          execute: () => Effect.uninterruptible(late.await)
        })
        const model = ScriptedModel.make([
          calls(callOf("c1", "stubborn", 1), callOf("c2", "stubborn", 2)),
          reply("Wait.")
        ])
        yield* chunksOf(Agent.stream(agentOf(model, [stubborn]), "go"))
        yield* service.cancel("task-1")
        expect(traces.unfinished).toEqual(["execute_tool stubborn"])
        yield* pass(1000)
        expect(traces.unfinished).toEqual([])
        expect(traces.named("execute_tool stubborn").map(endOf)).toEqual([
          { code: OK, isStopped: true },
          { code: ERROR, error: "TimeoutError" }
        ])
        yield* late.open
      })
    )
  )

  it.effect("ends when the task suspends, and goes on with another", () =>
    traced(traces =>
      Effect.gen(function* () {
        const service = yield* BackgroundTasks.BackgroundTasks
        const asking = Tool.make("ask", {
          background: { enabled: true },
          execute: (_, { resumeData, suspend }) =>
            resumeData === undefined ? suspend({ secret: 1 }) : Effect.succeed(resumeData)
        })
        const model = ScriptedModel.make([calls(callOf("c1", "ask", 1)), reply("Wait.")])
        yield* chunksOf(Agent.stream(agentOf(model, [asking]), "go"))
        yield* settle
        expect(traces.unfinished).toEqual([])
        yield* service.resume("task-1", { answer: 1 })
        yield* settle
        const spans = traces.named("execute_tool ask")
        expect(spans.map(endOf)).toEqual([{ code: OK }, { code: OK }])
        expect(spans.map(({ attributes }) => attributes["eddy.task.suspended"])).toEqual([true, undefined])
        expect(traces.trees).toHaveLength(1)
      })
    )
  )

  it.effect("that another process goes on with begins a trace of its own", () =>
    Effect.gen(function* () {
      const over = Layer.succeedContext(yield* Layer.build(stores))
      const asking = Tool.make("ask", {
        background: { enabled: true },
        execute: (_, { resumeData, suspend }) =>
          resumeData === undefined ? suspend() : Effect.withSpan(Effect.succeed(resumeData), "inside")
      })
      const model = ScriptedModel.make([calls(callOf("c1", "ask", 1)), reply("Wait.")])
      const agent = agentOf(model, [asking])
      yield* Effect.provide(Effect.zipRight(chunksOf(Agent.stream(agent, "go")), settle), manager({}, over))
      const traces = new Traces()
      yield* Effect.gen(function* () {
        yield* Effect.withSpan(Agent.register(agent), "start")
        const service = yield* BackgroundTasks.BackgroundTasks
        yield* service.resume("task-1", { answer: 1 })
        yield* settle
      }).pipe(Effect.provide(Layer.provideMerge(manager({}, over), traces.layer)))
      expect(traces.trees).toEqual([["start"], ["execute_tool ask", ["inside"]]])
      expect(traces.unfinished).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.effect("is told where only the run is traced", () => {
    const traces = new Traces()
    return Effect.gen(function* () {
      const { agent, work } = setUp([calls(callOf("c1", "work", 1)), reply("Wait.")])
      yield* Effect.provide(chunksOf(Agent.stream(agent, "go")), traces.layer)
      yield* work.end(1)
      expect(traces.trees).toEqual([
        ["invoke_agent worker", ["chat script"], ["execute_tool work"], ["chat script"]]
      ])
      expect(traces.unfinished).toEqual([])
    }).pipe(Effect.provide(manager()))
  })

  it.effect("is no span where nobody listens", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const model = ScriptedModel.make([calls(callOf("c1", "work", 1)), reply("Wait.")])
      yield* chunksOf(Agent.stream(agentOf(model, [work.tool]), "go"))
      yield* work.end(1)
      expect(work.contexts).toHaveLength(1)
    }).pipe(Effect.provide(manager()))
  )
})

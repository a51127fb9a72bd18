/** What OpenTelemetry is told of runs of workflows. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, RunStore, WorkflowStep as Step, Tool, Workflow } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { ERROR, endOf, OK, Traces } from "../agent/telemetryKit.js"
import { follow, Prompt } from "./kit.js"

const { finish, reply, toolCall } = ScriptedModel

const look = Tool.make("look", { execute: () => Effect.succeed("calm") })

const looker = () =>
  Agent.make({
    id: "looker",
    model: ScriptedModel.make([[toolCall("c1", "look", {}), finish("tool-calls")], reply("Calm.")], {
      modelId: "gpt-test"
    }),
    tools: [look]
  })

const looked = ["invoke_agent looker", ["chat gpt-test"], ["execute_tool look"], ["chat gpt-test"]]

const inputData = { prompt: "Look" }

const traced = <A, E>(use: (traces: Traces) => Effect.Effect<A, E, RunStore.RunStore>) => {
  const traces = new Traces()
  return Effect.provide(use(traces), Layer.merge(traces.layer, RunStore.layerMemory))
}

describe("the trace of a workflow", () => {
  it.effect("holds the runs of its steps, whichever way it is run", () =>
    Effect.gen(function* () {
      const sail = () => Workflow.make("sail", { input: Prompt }).andThen(Step.fromAgent(looker())).commit()
      const options = { inputData, runId: "w-1" }
      const ways: ReadonlyArray<() => Effect.Effect<unknown, unknown, RunStore.RunStore>> = [
        () => follow(Workflow.stream(sail(), options)),
        () => Effect.scoped(Effect.flatMap(Workflow.run(sail(), options), output => output.fullOutput)),
        () => Workflow.generate(sail(), options)
      ]
      for (const way of ways) {
        yield* traced(traces =>
          Effect.map(Effect.withSpan(way(), "request"), () => {
            expect(traces.trees).toEqual([["request", ["invoke_workflow sail", looked]]])
            expect(traces.only("invoke_workflow sail").attributes).toEqual({
              "gen_ai.operation.name": "invoke_workflow",
              "gen_ai.workflow.name": "sail",
              "eddy.run.id": "w-1"
            })
            expect(traces.unfinished).toEqual([])
            for (const span of traces.spans) expect(endOf(span)).toEqual({ code: OK })
          })
        )
      }
    })
  )

  it.effect("is below the call of an agent that runs it", () =>
    traced(traces =>
      Effect.gen(function* () {
        const sail = Workflow.make("sail", { input: Prompt }).andThen(Step.fromAgent(looker())).commit()
        const calls = [toolCall("c1", "workflow-sail", inputData), finish("tool-calls")]
        const model = ScriptedModel.make([calls, reply("Done.")], { modelId: "gpt-boss" })
        const boss = Agent.make({ id: "boss", model, tools: [Workflow.asTool(sail)] })
        yield* Agent.generate(boss, "Sail")
        expect(traces.trees).toEqual([
          [
            "invoke_agent boss",
            ["chat gpt-boss"],
            ["execute_tool workflow-sail", ["invoke_workflow sail", looked]],
            ["chat gpt-boss"]
          ]
        ])
        expect(traces.unfinished).toEqual([])
      })
    )
  )

  it.effect("says how the run ended, and quotes no values", () =>
    traced(traces =>
      Effect.gen(function* () {
        const fails = Step.make("fails", { execute: () => Effect.fail({ _tag: "Broken" }) })
        const input = Schema.Struct({ secret: Schema.Number })
        const picky = Workflow.make("picky", { input }).andThen(fails).commit()
        const asks = Step.make("asks", {
          execute: (_, { resumeData, suspend }) =>
            resumeData === undefined ? suspend() : Effect.succeed(resumeData)
        })
        const waits = Workflow.make("waits").andThen(asks).commit()
        yield* follow(Workflow.stream(picky, { inputData: { secret: 7 } }))
        yield* follow(Workflow.stream(picky, { inputData: { secret: "hidden" } as never }))
        yield* follow(Workflow.stream(waits, { inputData: null, runId: "r" }))
        yield* follow(Workflow.resumeStream(waits, { runId: "r", resumeData: 1 }))
        expect(traces.spans.map(endOf)).toEqual([
          { code: ERROR, error: "Broken" },
          { code: ERROR, error: "InvalidStepInput" },
          { code: OK },
          { code: OK }
        ])
        expect(JSON.stringify(traces.spans.map(({ events, status }) => ({ events, status })))).not.toContain(
          "hidden"
        )
      })
    )
  )

  it.effect("ends with a run that is interrupted, or aborted", () =>
    traced(traces =>
      Effect.gen(function* () {
        for (const abort of [true, false]) {
          const started = yield* Deferred.make<void>()
          const hangs = Step.make("hangs", {
            execute: () => Effect.zipRight(Deferred.succeed(started, undefined), Effect.never)
          })
          const workflow = Workflow.make("w").andThen(hangs).commit()
          const controller = new AbortController()
          const options = { inputData: null, abortSignal: controller.signal }
          const fiber = yield* Effect.fork(Stream.runDrain(Workflow.stream(workflow, options)))
          yield* Deferred.await(started)
          if (abort) controller.abort()
          else yield* Fiber.interrupt(fiber)
          yield* Fiber.await(fiber)
        }
        expect(traces.spans.map(endOf)).toEqual(Array(2).fill({ code: OK, isStopped: true }))
        expect(traces.unfinished).toEqual([])
      })
    )
  )

  it.effect("is none where nobody listens", () =>
    Effect.gen(function* () {
      let parent: unknown
      const seen = Step.make("seen", {
        execute: () =>
          Effect.map(Effect.option(Effect.currentParentSpan), span => {
            parent = span._tag
            return null
          })
      })
      yield* Workflow.generate(Workflow.make("w").andThen(seen).commit(), { inputData: null })
      expect(parent).toBe("None")
    })
  )
})

/** Workflows that agents call in the foreground, and that wait: the agent's run waits, and goes on with the same run. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Errors, RunStore, WorkflowStep as Step, Workflow } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Clock, Effect, Schema, Stream } from "effect"
import {
  calling,
  guarded,
  reasonOf,
  reply,
  stores,
  suspended,
  told,
  toolCall,
  waitingIn
} from "../agent/approvalKit.js"
import { inTime, only } from "../agent/kit.js"
import { Prompt } from "./kit.js"

const Answer = Schema.Struct({ answer: Schema.String })

const asks = <const Id extends string>(id: Id) =>
  Step.make(id, {
    resume: Answer,
    execute: (input, { resumeData, suspend }) =>
      resumeData === undefined ? suspend({ question: id }) : Effect.succeed({ input, ...resumeData })
  })

/** An agent whose one call is a workflow: a step that counts, then one that asks. */
const bossOf = (workflow: Workflow.Workflow<string, never, unknown, unknown>, args: unknown) => {
  const tool = Workflow.asTool(workflow)
  const model = ScriptedModel.make([calling(toolCall("c1", tool.name, args)), reply("All done.")])
  return { boss: Agent.make({ id: "boss", model, tools: [tool] }), model }
}

const counting = () => {
  const executed: Array<unknown> = []
  const step = Step.make("count", {
    execute: input => Effect.sync(() => ({ input, place: executed.push(input) }))
  })
  return { step, executed }
}

const run = { runId: "r1", toolCallId: "c1" }

const runs = Effect.flatMap(RunStore.RunStore, store => store.list())

describe("a workflow that an agent calls", () => {
  it.effect("lays the call aside, and goes on with the same run", () =>
    Effect.gen(function* () {
      const { executed, step } = counting()
      const workflow = Workflow.make("w", { input: Schema.Struct({ n: Schema.Number }) })
        .andThen(step)
        .andThen(asks("ask"))
        .commit()
      const { boss, model } = bossOf(workflow, { n: 1 })
      const first = yield* suspended(boss)
      expect(only(first, "tool-call-suspended")[0]?.payload).toMatchObject({
        toolCallId: "c1",
        suspendData: {
          runId: "w-r1-c1",
          workflowId: "w",
          suspended: [{ stepId: "ask", suspendData: { question: "ask" } }]
        }
      })
      const wrong = yield* Effect.flip(Stream.runDrain(Agent.resumeStream(boss, { no: 1 }, run)))
      expect(wrong).toBeInstanceOf(Errors.InvalidResumeData)
      const unknown = yield* Effect.flip(
        Stream.runDrain(Agent.resumeStream(boss, { step: "count", resumeData: { answer: "so" } }, run))
      )
      expect(unknown).toBeInstanceOf(Errors.InvalidResumeData)
      const second = yield* told(Agent.resumeStream(boss, { answer: "so" }, run), ["c1"])
      expect(reasonOf(second)).toBe("stop")
      expect(only(second, "tool-result")[0]?.payload.result).toEqual({
        input: { input: { n: 1 }, place: 1 },
        answer: "so"
      })
      expect(executed).toEqual([{ n: 1 }])
      expect(model.unused()).toBe(0)
      expect((yield* runs).total).toBe(0)
    }).pipe(Effect.provide(stores))
  )

  it.effect("waits for one step after the other, in any order", () =>
    Effect.gen(function* () {
      const workflow = Workflow.make("w")
        .parallel([asks("a"), asks("b")])
        .commit()
      const { boss } = bossOf(workflow, {})
      yield* suspended(boss)
      const unnamed = yield* Effect.flip(Stream.runDrain(Agent.resumeStream(boss, { answer: "so" }, run)))
      expect(unnamed).toMatchObject({ _tag: "InvalidResumeData", message: expect.stringContaining("a, b") })
      const of = (step: string) => ({ step, resumeData: { answer: step } })
      const first = yield* told(Agent.resumeStream(boss, of("b"), run), ["c1"])
      expect(only(first, "tool-call-suspended")[0]?.payload.suspendData).toMatchObject({
        suspended: [{ stepId: "a" }]
      })
      const second = yield* told(Agent.resumeStream(boss, of("a"), run), ["c1"])
      expect(only(second, "tool-result")[0]?.payload.result).toMatchObject({
        a: { answer: "a" },
        b: { answer: "b" }
      })
      expect((yield* runs).total).toBe(0)
    }).pipe(Effect.provide(stores))
  )

  it.effect("hands an approval on to the agent that is its step", () =>
    Effect.gen(function* () {
      const remove = guarded()
      const turns = [calling(toolCall("x1", "remove", { n: 1 })), reply("Removed.")]
      const helper = Agent.make({ id: "helper", model: ScriptedModel.make(turns), tools: [remove.tool] })
      const workflow = Workflow.make("w", { input: Prompt }).andThen(Step.fromAgent(helper)).commit()
      const { boss } = bossOf(workflow, { prompt: "go" })
      expect(waitingIn(yield* suspended(boss))).toEqual(["c1"])
      const second = yield* told(Agent.approveToolCall(boss, run), ["c1"])
      expect(only(second, "tool-result")[0]?.payload.result).toEqual({ text: "Removed." })
      expect(remove.executed).toEqual([1])
      expect((yield* runs).total).toBe(0)
    }).pipe(Effect.provide(stores))
  )

  it.effect("goes on with what its run was resumed with by a process that has died since", () =>
    Effect.gen(function* () {
      const workflow = Workflow.make("w").andThen(asks("ask")).commit()
      const { boss } = bossOf(workflow, {})
      yield* suspended(boss)
      // The decision has reached the run, and then nobody was heard of any more.
      const store = yield* RunStore.RunStore
      const [row] = (yield* store.list({ agentId: "workflow:w" })).runs
      if (row === undefined) throw new Error("No run of the workflow waits.")
      const snapshot = row.snapshot as { readonly steps: { readonly ask: object } }
      const ask = { ...snapshot.steps.ask, status: "running", resumeData: { answer: "first" } }
      const claim = { owner: "dead" }
      const { createdAt: _, revision, updatedAt: __, holders: ___, ...rest } = row
      yield* store.save(
        { ...rest, snapshot: { ...snapshot, status: "running", steps: { ask }, claim } },
        revision,
        { owner: "dead", duration: 3000 }
      )
      const second = yield* inTime(told(Agent.resumeStream(boss, { answer: "second" }, run), ["c1"]))
      expect(only(second, "tool-result")[0]?.payload.result).toMatchObject({ answer: "first" })
      expect(yield* Clock.currentTimeMillis).toBeGreaterThanOrEqual(3000)
      expect((yield* runs).total).toBe(0)
    }).pipe(Effect.provide(stores))
  )
})

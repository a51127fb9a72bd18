/** Steps that are agents whose calls wait for somebody: the step waits, and decides about them when it is resumed. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, RunStore, WorkflowStep as Step, Tool, Workflow } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, Schema, TestClock } from "effect"
import { asking, calling, claimed, figures, guarded, reply, toolCall } from "../agent/approvalKit.js"
import { failing, inTime, refusal } from "../agent/kit.js"
import { follow, outputOf, Prompt, stored, story } from "./kit.js"

const inputData = { prompt: "go" }

/** A workflow whose only step is an agent. */
const ofAgent = (turns: ReadonlyArray<ScriptedModel.Turn>, retries = 0) => {
  const remove = guarded()
  const ask = asking()
  const model = ScriptedModel.make(turns)
  const agent = Agent.make({ id: "helper", model, tools: [remove.tool, ask.tool] })
  const workflow = Workflow.make("w", { input: Prompt }).andThen(Step.fromAgent(agent, { retries })).commit()
  const begin = follow(Workflow.stream(workflow, { inputData, runId: "r" }))
  const resume = (resumeData: unknown) => follow(Workflow.resumeStream(workflow, { runId: "r", resumeData }))
  return { agent, ask, begin, model, remove, resume, workflow }
}

const runs = Effect.flatMap(RunStore.RunStore, store => store.list())

const callsIn = (data: unknown): ReadonlyArray<string> =>
  (data as { readonly calls: ReadonlyArray<{ readonly toolCallId: string }> }).calls.map(
    ({ toolCallId }) => toolCallId
  )

const waitingIn = (output: ReturnType<typeof outputOf>): ReadonlyArray<string> =>
  (output["suspended"] as ReadonlyArray<{ readonly suspendData: unknown }>).flatMap(({ suspendData }) =>
    callsIn(suspendData)
  )

describe("a step that is an agent", () => {
  it.effect("waits when its run does, and goes on as somebody decides", () =>
    Effect.gen(function* () {
      const { agent, begin, model, remove, resume, workflow } = ofAgent([
        calling(toolCall("c1", "remove", { n: 1 })),
        reply("Removed.", figures)
      ])
      const first = yield* begin
      expect(story(first.chunks).filter(line => !line.startsWith("step-output"))).toEqual([
        "start",
        "step-start helper",
        "step-finish helper suspended",
        "finish suspended"
      ])
      expect(outputOf(first.chunks)["suspended"]).toMatchObject([
        {
          stepId: "helper",
          suspendData: {
            agentId: "helper",
            calls: [{ toolCallId: "c1", toolName: "remove", kind: "approval", args: { n: 1 } }]
          }
        }
      ])
      expect((yield* Workflow.list(workflow)).runs).toMatchObject([{ status: "suspended" }])
      // It is decided by the step only.
      expect(yield* Agent.listSuspendedRuns(agent)).toEqual([])
      const wrong = yield* resume({ yes: true })
      expect(wrong.exit).toMatchObject(Exit.fail({ _tag: "InvalidStepResumeData", stepId: "helper" }))
      const second = yield* resume({ approved: true })
      expect(outputOf(second.chunks)).toMatchObject({
        result: { text: "Removed." },
        usage: { inputTokens: 20, outputTokens: 2 }
      })
      expect(remove.executed).toEqual([1])
      expect(model.unused()).toBe(0)
      expect((yield* runs).total).toBe(0)
    }).pipe(stored)
  )

  it.effect("waits for several calls, and for what follows", () =>
    Effect.gen(function* () {
      const { ask, begin, model, remove, resume } = ofAgent([
        calling(toolCall("c1", "remove", { n: 1 }), toolCall("c2", "remove", { n: 2 })),
        calling(toolCall("c3", "ask", { n: 3 })),
        reply("Done.")
      ])
      expect(waitingIn(outputOf((yield* begin).chunks))).toEqual(["c1", "c2"])
      // Which one?
      const unnamed = yield* resume({ approved: true })
      expect(unnamed.exit).toMatchObject(Exit.fail({ _tag: "InvalidStepResumeData" }))
      const first = yield* resume({ toolCallId: "c2", approved: false, reason: "Keep it." })
      expect(waitingIn(outputOf(first.chunks))).toEqual(["c1"])
      // One that comes late is for no other call.
      const late = yield* resume({ toolCallId: "c2", approved: true })
      expect(late.exit).toMatchObject(Exit.fail({ _tag: "InvalidStepResumeData" }))
      const second = yield* resume({ toolCallId: "c1", approved: true })
      expect(waitingIn(outputOf(second.chunks))).toEqual(["c3"])
      expect(JSON.stringify(model.requests[1]?.messages)).toContain("Keep it.")
      const wrong = yield* resume({ no: 1 })
      expect(wrong.exit).toMatchObject(Exit.fail({ _tag: "InvalidStepResumeData" }))
      const third = yield* resume({ answer: "so" })
      expect(outputOf(third.chunks)["result"]).toEqual({ text: "Done." })
      expect(remove.executed).toEqual([1])
      expect(ask.executed).toHaveLength(2)
      expect((yield* runs).total).toBe(0)
    }).pipe(stored)
  )

  it.effect("waits as before when a decision is refused below", () =>
    Effect.gen(function* () {
      const executed: Array<unknown> = []
      // What this schema asks for no JSON Schema can say.
      const Even = Schema.Number.pipe(Schema.filter(n => n % 2 === 0, { jsonSchema: {} }))
      const tool = Tool.make("even", {
        resume: Even,
        execute: (_, { resumeData, suspend }) => {
          if (resumeData === undefined) return suspend({ ask: "An even one" })
          executed.push(resumeData)
          return Effect.succeed(resumeData)
        }
      })
      const model = ScriptedModel.make([calling(toolCall("c1", "even", {})), reply("Done.")])
      const agent = Agent.make({ id: "helper", model, tools: [tool] })
      const workflow = Workflow.make("w", { input: Prompt }).andThen(Step.fromAgent(agent)).commit()
      yield* follow(Workflow.stream(workflow, { inputData, runId: "r" }))
      const resume = (resumeData: unknown) =>
        follow(Workflow.resumeStream(workflow, { runId: "r", resumeData }))
      const odd = yield* resume(3)
      expect(outputOf(odd.chunks)["suspended"]).toMatchObject([
        {
          suspendData: {
            calls: [{ toolCallId: "c1", suspendData: { ask: "An even one" } }],
            error: expect.stringContaining('Tool "even" cannot be resumed')
          }
        }
      ])
      const even = yield* resume(4)
      expect(outputOf(even.chunks)["result"]).toEqual({ text: "Done." })
      expect(executed).toEqual([4])
    }).pipe(stored)
  )

  it.effect("is one of several beside each other, each item with a run of its own", () =>
    Effect.gen(function* () {
      const remove = guarded()
      const turn = calling(toolCall("c1", "remove", { n: 1 }))
      const model = ScriptedModel.make([turn, turn, reply("One."), reply("Other.")])
      const agent = Agent.make({ id: "helper", model, tools: [remove.tool] })
      const workflow = Workflow.make("w", { input: Schema.Array(Prompt) })
        .foreach(Step.fromAgent(agent), { concurrency: 2 })
        .commit()
      const first = yield* follow(
        Workflow.stream(workflow, { inputData: [inputData, inputData], runId: "r" })
      )
      expect(outputOf(first.chunks)["suspended"]).toMatchObject([
        { stepId: "helper.0" },
        { stepId: "helper.1" }
      ])
      const resume = (step: string, resumeData: unknown) =>
        follow(Workflow.resumeStream(workflow, { runId: "r", step, resumeData }))
      const second = yield* resume("helper.1", { approved: true })
      expect(outputOf(second.chunks)["suspended"]).toMatchObject([{ stepId: "helper.0" }])
      const third = yield* resume("helper.0", { approved: false })
      expect(outputOf(third.chunks)["result"]).toEqual([{ text: "Other." }, { text: "One." }])
      expect(remove.executed).toEqual([1])
      expect((yield* runs).total).toBe(0)
    }).pipe(stored)
  )

  it.effect("begins again, and asks again, when its run is gone", () =>
    Effect.gen(function* () {
      const turn = calling(toolCall("c1", "remove", { n: 1 }))
      // The model fails after the first decision: the second attempt asks anew.
      const { begin, remove, resume } = ofAgent([turn, failing(refusal(400)), turn, reply("Done.")], 1)
      yield* begin
      const again = yield* inTime(resume({ approved: true }))
      expect(waitingIn(outputOf(again.chunks))).toEqual(["c1"])
      const last = yield* resume({ approved: false })
      expect(outputOf(last.chunks)["result"]).toEqual({ text: "Done." })
      expect(remove.executed).toEqual([1])
      expect((yield* runs).total).toBe(0)
    }).pipe(stored)
  )

  it.effect("waits again for a call whose decision a process has died with", () =>
    Effect.gen(function* () {
      const { begin, remove, resume } = ofAgent([
        calling(toolCall("c1", "remove", { n: 1 }), toolCall("c2", "remove", { n: 2 })),
        reply("Done.")
      ])
      yield* begin
      yield* claimed("helper", "c1", 60_000)
      const early = yield* resume({ toolCallId: "c1", approved: true })
      expect(waitingIn(outputOf(early.chunks))).toEqual(["c1", "c2"])
      expect(remove.executed).toEqual([])
      const other = yield* resume({ toolCallId: "c2", approved: true })
      expect(waitingIn(outputOf(other.chunks))).toEqual(["c1"])
      yield* TestClock.adjust("1 minute")
      const last = yield* resume({ approved: true })
      expect(outputOf(last.chunks)["result"]).toEqual({ text: "Done." })
      expect(remove.executed).toEqual([2, 1])
    }).pipe(stored)
  )
})

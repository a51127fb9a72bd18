/** What waits when a run is suspended, in its whole output: the same as in the list of suspended runs, on both faces. */
import { Agent as EffectAgent, RunFold, Tool } from "eddy"
import { Agent, createTool } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect, ManagedRuntime, Schema, Stream } from "effect"
import { describe, expect, it } from "vitest"
import { calling, reply, stores, toolCall } from "./approvalKit.js"

const number = { type: "object", properties: { n: { type: "number" } } } as const
const answer = { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] } as const
const AnswerSchema = Schema.Struct({ answer: Schema.String })

const run = { runId: "r1" }
const three = [
  toolCall("c1", "remove", { n: 1 }),
  toolCall("c2", "ask", { n: 2 }),
  toolCall("c3", "ask", { n: 3 })
]

const modelOf = () => ScriptedModel.make([calling(...three), reply("Done.")])

const faces = {
  promise: async () => {
    const remove = createTool({
      id: "remove",
      inputSchema: number,
      requireApproval: true,
      execute: () => "removed"
    })
    const ask = createTool({
      id: "ask",
      inputSchema: number,
      resumeSchema: answer,
      execute: (input, { resumeData, suspend }) =>
        resumeData === undefined ? suspend({ about: input }) : "answered"
    })
    const agent = new Agent({ id: "a", model: modelOf(), tools: { remove, ask } })
    const full = await agent.generate("go", run)
    const before = await agent.listSuspendedRuns()
    const resumed = await agent.approveToolCall({ ...run, toolCallId: "c1" })
    return { full, before, resumed: await resumed.getFullOutput(), after: await agent.listSuspendedRuns() }
  },
  effect: () => {
    const remove = Tool.make("remove", {
      input: number,
      requireApproval: true,
      execute: () => Effect.succeed("removed")
    })
    const ask = Tool.make("ask", {
      input: number,
      resume: AnswerSchema,
      execute: (input, { resumeData, suspend }) =>
        resumeData === undefined ? suspend({ about: input }) : Effect.succeed("answered")
    })
    const agent = EffectAgent.make({ id: "a", model: modelOf(), tools: [remove, ask] })
    return ManagedRuntime.make(stores).runPromise(
      Effect.gen(function* () {
        const full = yield* EffectAgent.generate(agent, "go", run)
        const before = yield* EffectAgent.listSuspendedRuns(agent)
        const fold = RunFold.make("r1")
        const leg = EffectAgent.approveToolCall(agent, { ...run, toolCallId: "c1" })
        yield* Stream.runForEach(leg, chunk => Effect.sync(() => fold.push(chunk)))
        return { full, before, resumed: fold.snapshot(), after: yield* EffectAgent.listSuspendedRuns(agent) }
      })
    )
  }
}

describe.each(Object.entries(faces))("the whole output of a suspended run, %s face", (_, face) => {
  it("has the calls that wait, as the list of suspended runs has them", async () => {
    const { after, before, full, resumed } = await face()
    expect(full.status).toBe("suspended")
    expect(full.pendingCalls).toMatchObject([
      { toolCallId: "c1", toolName: "remove", kind: "approval", args: { n: 1 } },
      {
        toolCallId: "c2",
        toolName: "ask",
        kind: "suspension",
        args: { n: 2 },
        suspendData: { about: { n: 2 } }
      },
      { toolCallId: "c3", toolName: "ask", kind: "suspension", suspendData: { about: { n: 3 } } }
    ])
    expect(full.pendingCalls).toEqual(before[0]?.calls)
    expect(full.suspendData).toEqual({ about: { n: 2 } })
    expect(resumed.pendingCalls?.map(({ toolCallId }) => toolCallId)).toEqual(["c2", "c3"])
    expect(resumed.pendingCalls).toEqual(after[0]?.calls)
  })
})

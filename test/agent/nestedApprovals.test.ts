/** Agents that call agents whose calls wait: what is told above, and decisions that reach the run below. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, Errors, RunStore, TaskStore } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Layer, Option, Stream, TestClock } from "effect"
import {
  asking,
  calling,
  claimed,
  figures,
  finish,
  guarded,
  reasonOf,
  reply,
  stores,
  suspended,
  told,
  toolCall,
  waitingIn
} from "./approvalKit.js"
import { finishOf, only } from "./kit.js"

const helperOf = (turns: ReadonlyArray<ScriptedModel.Turn>) => {
  const remove = guarded()
  const ask = asking()
  const model = ScriptedModel.make(turns)
  return { agent: Agent.make({ id: "helper", model, tools: [remove.tool, ask.tool] }), remove, ask, model }
}

const bossOf = (agents: ReadonlyArray<Agent.Agent>, ...calls: ReadonlyArray<ReturnType<typeof toolCall>>) => {
  const model = ScriptedModel.make([calling(...calls), reply("All done.", figures)])
  const tools = agents.map(agent => Agent.asTool(agent))
  return { agent: Agent.make({ id: "boss", model, tools }), model }
}

const call = (id: string, agent = "helper") => toolCall(id, `agent-${agent}`, { prompt: "help" })

const run = (toolCallId: string) => ({ runId: "r1", toolCallId })

describe("a call of an agent below", () => {
  it.effect("waits above, and goes on from its own snapshot when that is decided", () =>
    Effect.gen(function* () {
      const helper = helperOf([
        [...ScriptedModel.text("First. "), toolCall("x1", "remove", { n: 1 }), finish("tool-calls", figures)],
        calling(toolCall("x2", "ask", { n: 2 })),
        reply("Helped.", figures)
      ])
      const boss = bossOf([helper.agent], call("c1"))
      const first = yield* suspended(boss.agent)
      expect(waitingIn(first)).toEqual(["c1/x1"])
      expect(only(first, "tool-call-approval")[0]?.payload).toMatchObject({
        toolName: "remove",
        args: { n: 1 }
      })
      const runs = yield* RunStore.RunStore
      expect((yield* runs.list()).total).toBe(2)
      // The run below is decided by the run above only.
      expect(yield* Agent.listSuspendedRuns(helper.agent)).toEqual([])
      const below = (yield* runs.list({ agentId: "helper" })).runs[0]?.runId ?? ""
      const refused = yield* Effect.flip(
        Stream.runDrain(Agent.approveToolCall(helper.agent, { runId: below, toolCallId: "x1" }))
      )
      expect(refused).toBeInstanceOf(Errors.RunNotFound)

      const second = yield* told(Agent.approveToolCall(boss.agent, run("c1/x1")), ["c1"])
      expect(waitingIn(second)).toEqual(["c1/x2"])
      expect(helper.remove.executed).toEqual([1])
      // A press that comes late is for nobody.
      const stale = yield* Effect.flip(Stream.runDrain(Agent.approveToolCall(boss.agent, run("c1/x1"))))
      expect(stale).toMatchObject({ _tag: "ToolCallNotPending", pending: ["c1/x2"] })
      const wrong = yield* Effect.flip(
        Stream.runDrain(Agent.resumeStream(boss.agent, { no: 1 }, run("c1/x2")))
      )
      expect(wrong).toBeInstanceOf(Errors.InvalidResumeData)

      const third = yield* told(Agent.resumeStream(boss.agent, { answer: "so" }, run("c1")), ["c1"])
      expect(reasonOf(third)).toBe("stop")
      expect(only(third, "tool-result")[0]?.payload.result).toEqual({ text: "First. Helped." })
      expect(helper.ask.executed).toHaveLength(2)
      expect((yield* runs.list()).total).toBe(0)
      // Two answers of the boss, three of the helper.
      expect(finishOf(third).output.usage).toMatchObject({ inputTokens: 50 })
    }).pipe(Effect.provide(stores))
  )

  it.effect("is declined below", () =>
    Effect.gen(function* () {
      const helper = helperOf([calling(toolCall("x1", "remove", { n: 1 })), reply("Not removed.")])
      const boss = bossOf([helper.agent], call("c1"))
      yield* suspended(boss.agent)
      const declined = yield* told(Agent.declineToolCall(boss.agent, { ...run("c1/x1"), reason: "Keep." }), [
        "c1"
      ])
      expect(reasonOf(declined)).toBe("stop")
      expect(helper.remove.executed).toEqual([])
      expect(JSON.stringify(helper.model.requests[1]?.messages)).toContain("Keep.")
      expect(only(declined, "tool-result")[0]?.payload.result).toEqual({ text: "Not removed." })
    }).pipe(Effect.provide(stores))
  )

  it.effect("is one of several, and of several agents, one below the other", () =>
    Effect.gen(function* () {
      const deep = helperOf([
        calling(toolCall("y1", "remove", { n: 1 }), toolCall("y2", "remove", { n: 2 })),
        reply("Deep.")
      ])
      const middle = Agent.make({
        id: "middle",
        model: ScriptedModel.make([calling(call("x1")), reply("Middle.")]),
        tools: [Agent.asTool(deep.agent)]
      })
      const other = guarded("other")
      const boss = Agent.make({
        id: "boss",
        model: ScriptedModel.make([
          calling(call("c1", "middle"), toolCall("c2", "other", { n: 3 })),
          reply("Done.")
        ]),
        tools: [Agent.asTool(middle), other.tool]
      })
      const first = yield* suspended(boss)
      expect([...waitingIn(first)].sort()).toEqual(["c1/x1/y1", "c1/x1/y2", "c2"])
      const second = yield* told(Agent.approveToolCall(boss, run("c1/x1/y2")), ["c1", "c2"])
      expect([...waitingIn(second)].sort()).toEqual(["c1/x1/y1", "c2"])
      const third = yield* told(Agent.approveToolCall(boss, run("c2")), ["c1", "c2"])
      expect(waitingIn(third)).toEqual(["c1/x1/y1"])
      const fourth = yield* told(Agent.declineToolCall(boss, run("c1/x1/y1")), ["c1"])
      expect(reasonOf(fourth)).toBe("stop")
      expect(deep.remove.executed).toEqual([2])
      expect(other.executed).toEqual([3])
      expect(only(fourth, "tool-result").at(-1)?.payload.result).toEqual({ text: "Middle." })
    }).pipe(Effect.provide(stores))
  )
})

describe("a decision that a process has died with", () => {
  it.effect("is made again when its time is over, and holds up no other", () =>
    Effect.gen(function* () {
      const helper = helperOf([
        calling(toolCall("x1", "remove", { n: 1 }), toolCall("x2", "remove", { n: 2 })),
        reply("Helped.")
      ])
      const boss = bossOf([helper.agent], call("c1"))
      yield* suspended(boss.agent)
      // The claim above is over, the one below is younger.
      yield* claimed("helper", "x1", 60_000)
      const early = yield* told(Agent.approveToolCall(boss.agent, run("c1/x1")), ["c1"])
      expect(waitingIn(early)).toEqual(["c1/x1", "c1/x2"])
      const other = yield* told(Agent.approveToolCall(boss.agent, run("c1/x2")), ["c1"])
      expect(waitingIn(other)).toEqual(["c1/x1"])
      yield* TestClock.adjust("1 minute")
      const last = yield* told(Agent.approveToolCall(boss.agent, run("c1/x1")), ["c1"])
      expect(reasonOf(last)).toBe("stop")
      expect(only(last, "tool-result")[0]?.payload.result).toEqual({ text: "Helped." })
      expect(helper.remove.executed).toEqual([2, 1])
    }).pipe(Effect.provide(stores))
  )
})

describe("a call of an agent that is a task", () => {
  const Everything = BackgroundTasks.layer({}).pipe(
    Layer.provideMerge(Layer.mergeAll(stores, TaskStore.layerMemory))
  )

  it.live("reaches the run below when the task is resumed, and tells at once what is wrong", () =>
    Effect.gen(function* () {
      const helper = helperOf([calling(toolCall("x1", "remove", { n: 1 })), reply("Helped.")])
      const model = ScriptedModel.make([calling(call("c1")), reply("Started.")])
      const boss = Agent.make({
        id: "boss",
        model,
        tools: [Agent.asTool(helper.agent)],
        backgroundTasks: { tools: { helper: true } }
      })
      const tasks = yield* BackgroundTasks.BackgroundTasks
      yield* told(Agent.stream(boss, "go", { runId: "r1" }))
      const [task] = (yield* Effect.repeat(tasks.list({ runId: "r1" }), {
        until: ({ tasks: [first] }) => first?.status === "suspended"
      })).tasks
      const id = task?.id ?? ""
      expect(task?.suspendData).toMatchObject({
        agentId: "helper",
        calls: [{ toolCallId: "x1", toolName: "remove" }]
      })
      const wrong = yield* Effect.flip(tasks.resume(id, { yes: true }))
      expect(wrong).toBeInstanceOf(Errors.InvalidResumeData)
      expect(Option.getOrThrow(yield* tasks.get(id)).status).toBe("suspended")
      yield* tasks.resume(id, { approved: true })
      const done = yield* Effect.repeat(tasks.get(id), {
        until: found => Option.exists(found, ({ status }) => status === "completed" || status === "failed")
      })
      expect(Option.getOrThrow(done)).toMatchObject({ status: "completed", result: { text: "Helped." } })
      expect(helper.remove.executed).toEqual([1])
    }).pipe(Effect.provide(Everything))
  )

  it.live("fails at once when the run below is gone", () =>
    Effect.gen(function* () {
      const helper = helperOf([calling(toolCall("x1", "remove", { n: 1 }))])
      const model = ScriptedModel.make([calling(call("c1")), reply("Started.")])
      const boss = Agent.make({
        id: "boss",
        model,
        tools: [Agent.asTool(helper.agent)],
        backgroundTasks: { tools: { helper: { retries: 5 } } }
      })
      const tasks = yield* BackgroundTasks.BackgroundTasks
      const runs = yield* RunStore.RunStore
      yield* told(Agent.stream(boss, "go", { runId: "r1" }))
      const [task] = (yield* Effect.repeat(tasks.list({ runId: "r1" }), {
        until: ({ tasks: [first] }) => first?.status === "suspended"
      })).tasks
      const [below] = (yield* runs.list({ agentId: "helper" })).runs
      yield* runs.delete(below?.runId ?? "")
      yield* tasks.resume(task?.id ?? "", { approved: true })
      const done = yield* Effect.repeat(tasks.get(task?.id ?? ""), {
        until: found => Option.exists(found, ({ status }) => status === "completed" || status === "failed")
      })
      expect(Option.getOrThrow(done)).toMatchObject({ status: "failed", attempt: 1 })
      expect(helper.remove.executed).toEqual([])
    }).pipe(Effect.provide(Everything))
  )
})

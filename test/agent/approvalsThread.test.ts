/** Suspended runs and what is around them: threads, steps, tasks, until-idle streams, and other processes. */
import { describe, expect, it } from "@effect/vitest"
import {
  Agent,
  BackgroundTasks,
  LibSqlStore,
  PostgresStore,
  type RunStore,
  TaskStore,
  ThreadStore,
  Tool
} from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Layer, Stream } from "effect"
import { conversationFaults } from "../support/conversationFaults.js"
import { freshFile, freshSchema, postgresUrl } from "../support/databases.js"
import {
  asking,
  calling,
  guarded,
  reasonOf,
  reply,
  stores,
  suspended,
  told,
  toolCall,
  waitingIn
} from "./approvalKit.js"
import { chunksOf, finishOf, only, types } from "./kit.js"

const memory = { thread: "t1", resource: "u1" } as const

const run = (toolCallId: string) => ({ runId: "r1", toolCallId })

const outcomesIn = (messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }>) =>
  messages.flatMap(({ content, role }) =>
    role === "tool"
      ? (content as ReadonlyArray<{ readonly toolCallId: string; readonly output: unknown }>)
      : []
  )

describe("in a thread", () => {
  it.effect("the user goes on meanwhile, and the decision finds its own run", () =>
    Effect.gen(function* () {
      const ask = asking()
      const model = ScriptedModel.make([
        calling(toolCall("c1", "ask", { n: 1 })),
        reply("Meanwhile."),
        reply("Answered.")
      ])
      const agent = Agent.make({ id: "a", model, tools: [ask.tool] })
      yield* suspended(agent, { memory })
      yield* told(Agent.stream(agent, "Something else", { memory }))
      const between = model.requests[1]?.messages ?? []
      expect(conversationFaults(between, () => false)).toEqual([])
      expect(JSON.stringify(outcomesIn(between))).toContain("waits for somebody")
      // Whatever a filter makes of what is old, the call and its answer are the run's own.
      yield* told(
        Agent.resumeStream(agent, { answer: "so" }, { ...run("c1"), memory: { ...memory, lastMessages: 0 } }),
        ["c1"]
      )
      const last = model.requests[2]?.messages ?? []
      expect(JSON.stringify(last)).not.toContain("Something else")
      expect(outcomesIn(last)).toMatchObject([
        { toolCallId: "c1", output: { value: { n: 1, answer: "so" } } }
      ])
      const threads = yield* ThreadStore.ThreadStore
      const messages = (yield* threads.messages("t1")).map(({ message }) => message)
      expect(messages.map(({ role }) => role)).toEqual([
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant"
      ])
      expect(outcomesIn(messages)).toMatchObject([{ toolCallId: "c1", output: { value: { answer: "so" } } }])
      expect(conversationFaults(messages, () => false)).toEqual([])
    }).pipe(Effect.provide(stores))
  )

  it.effect("a call that waits is one without an output for user interfaces", () =>
    Effect.gen(function* () {
      const ask = asking()
      const model = ScriptedModel.make([calling(toolCall("c1", "ask", { n: 1 }))])
      const first = yield* suspended(Agent.make({ id: "a", model, tools: [ask.tool] }))
      const [message] = finishOf(first).response.uiMessages
      expect(message?.parts.find(({ type }) => type === "tool-ask")).toMatchObject({
        state: "input-available"
      })
    }).pipe(Effect.provide(stores))
  )

  it.effect("two suspended runs are told apart by their ids", () =>
    Effect.gen(function* () {
      const { tool } = guarded()
      const model = ScriptedModel.make([
        calling(toolCall("c1", "remove", { n: 1 })),
        calling(toolCall("c1", "remove", { n: 2 })),
        reply("Done."),
        reply("Done.")
      ])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      yield* suspended(agent, { memory, runId: "r1" })
      yield* suspended(agent, { memory, runId: "r2" })
      const error = yield* Effect.flip(Stream.runDrain(Agent.approveToolCall(agent, { memory })))
      expect(error).toMatchObject({ _tag: "RunNotFound" })
      const one = yield* told(Agent.approveToolCall(agent, { memory, runId: "r1" }), ["c1"])
      expect(only(one, "tool-result")[0]?.payload.result).toEqual({ removed: 1 })
      const other = yield* told(Agent.approveToolCall(agent, { memory }), ["c1"])
      expect(only(other, "tool-result")[0]?.payload.result).toEqual({ removed: 2 })
      const threads = yield* ThreadStore.ThreadStore
      const messages = (yield* threads.messages("t1")).map(({ message }) => message)
      expect(outcomesIn(messages)).toMatchObject([
        { output: { value: { removed: 1 } } },
        { output: { value: { removed: 2 } } }
      ])
    }).pipe(Effect.provide(stores))
  )
})

describe("steps", () => {
  it.effect("a tool that prepareStep adds waits too, and is found again", () =>
    Effect.gen(function* () {
      const added = guarded("added")
      const steps: Array<number> = []
      const model = ScriptedModel.make([
        calling(toolCall("c1", "added", { n: 1 }), toolCall("c2", "added", { n: 2 })),
        reply("Done.")
      ])
      const agent = Agent.make({
        id: "a",
        model,
        prepareStep: ({ stepNumber }) => {
          steps.push(stepNumber)
          return stepNumber === 0 ? { tools: [added.tool] } : {}
        }
      })
      yield* suspended(agent)
      const legs = yield* Effect.all(
        [
          chunksOf(Agent.approveToolCall(agent, run("c2"))),
          chunksOf(Agent.approveToolCall(agent, run("c1")))
        ],
        { concurrency: "unbounded" }
      )
      expect(legs.map(reasonOf).sort()).toEqual(["stop", "suspended"])
      expect([...added.executed].sort()).toEqual([1, 2])
      expect(steps).toEqual([0, 0, 0, 1])
    }).pipe(Effect.provide(stores))
  )

  it.effect("count over all legs", () =>
    Effect.gen(function* () {
      const { tool } = guarded()
      const model = ScriptedModel.make([
        calling(toolCall("c1", "remove", { n: 1 })),
        calling(toolCall("c2", "remove", { n: 2 }))
      ])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      yield* told(Agent.stream(agent, "go", { runId: "r1", maxSteps: 2 }))
      yield* told(Agent.approveToolCall(agent, run("c1")), ["c1"])
      const last = yield* told(Agent.approveToolCall(agent, run("c2")), ["c2"])
      expect(finishOf(last).stepResult).toMatchObject({ reason: "tool-calls", stoppedBy: "max-steps" })
    }).pipe(Effect.provide(stores))
  )

  it.effect("what the run was told holds after it was resumed: policies ask, and instructions are said", () =>
    Effect.gen(function* () {
      const free = Tool.make("free", { execute: () => Effect.succeed("done") })
      const model = ScriptedModel.make([
        calling(toolCall("c1", "free", {})),
        calling(toolCall("c2", "free", {})),
        reply("Done.")
      ])
      const agent = Agent.make({ id: "a", model, tools: [free] })
      yield* told(
        Agent.stream(agent, "go", {
          runId: "r1",
          instructions: "Be brief.",
          requireToolApproval: ({ toolCallId }) => toolCallId === "c1"
        })
      )
      // Nobody has the function any more: what comes next is asked about.
      const second = yield* told(Agent.approveToolCall(agent, run("c1")), ["c1"])
      expect(waitingIn(second)).toEqual(["c2"])
      expect(model.requests[1]?.messages[0]).toEqual({ role: "system", content: "Be brief." })
    }).pipe(Effect.provide(stores))
  )

  it.effect("a signature of reasoning survives byte for byte", () =>
    Effect.gen(function* () {
      const { tool } = guarded()
      const signature = "c2ln\u0000\u2028bmF0dXJl=="
      const model = ScriptedModel.make([
        [
          { type: "reasoning-start", id: "0" },
          { type: "reasoning-delta", id: "0", delta: "hm" },
          { type: "reasoning-end", id: "0", providerMetadata: { anthropic: { signature } } },
          ...(calling(toolCall("c1", "remove", { n: 1 })) as ReadonlyArray<ReturnType<typeof toolCall>>)
        ],
        reply("Done.")
      ])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      yield* suspended(agent)
      yield* told(Agent.approveToolCall(agent, run("c1")), ["c1"])
      expect(JSON.stringify(model.requests[1]?.messages)).toContain(JSON.stringify(signature))
    }).pipe(Effect.provide(stores))
  )
})

describe("tasks in the background", () => {
  const Everything = BackgroundTasks.layer({}).pipe(
    Layer.provideMerge(Layer.mergeAll(stores, TaskStore.layerMemory))
  )

  const setUp = () => {
    const answered = Effect.runSync(Deferred.make<void>())
    const publish = Tool.make("publish", {
      requireApproval: true,
      background: { enabled: true },
      execute: () => Effect.as(Deferred.await(answered), "page 7")
    })
    const model = ScriptedModel.make([
      calling(toolCall("c1", "publish", {})),
      () => {
        Deferred.unsafeDone(answered, Effect.void)
        return [...ScriptedModel.text("It is on its way."), ScriptedModel.finish("stop")]
      },
      reply("It is out.")
    ])
    return { agent: Agent.make({ id: "a", model, tools: [publish] }), model }
  }

  for (const inThread of [true, false]) {
    it.live(`are dispatched when they are approved, and answered until idle: thread ${inThread}`, () =>
      Effect.gen(function* () {
        const { agent, model } = setUp()
        const place = inThread ? { memory } : {}
        const first = yield* chunksOf(Agent.stream(agent, "go", { runId: "r1", untilIdle: true, ...place }))
        // The stream does not wait for somebody: it ends with the turn that does.
        expect(reasonOf(first)).toBe("suspended")
        const tasks = yield* BackgroundTasks.BackgroundTasks
        expect((yield* tasks.list({})).total).toBe(0)
        const approved = yield* chunksOf(Agent.approveToolCall(agent, { ...run("c1"), untilIdle: true }))
        expect(types(approved)).toContain("background-task-started")
        expect(types(approved)).toContain("background-task-completed")
        expect(only(approved, "finish")).toHaveLength(2)
        expect(model.unused()).toBe(0)
        expect(outcomesIn(model.requests[2]?.messages ?? [])).toMatchObject([{ output: { value: "page 7" } }])
      }).pipe(Effect.provide(Everything))
    )
  }
})

describe("another process", () => {
  const goesOn = <E>(layer: Layer.Layer<RunStore.RunStore | ThreadStore.ThreadStore, E>) =>
    Effect.gen(function* () {
      const { executed, tool } = guarded()
      const model = ScriptedModel.make([
        calling(toolCall("c1", "remove", { n: 1 }), toolCall("c2", "remove", { n: 2 })),
        reply("Done.")
      ])
      // An agent of its own, as another process makes it.
      const agent = () => Agent.make({ id: "a", model, tools: [tool] })
      const elsewhere = <A, E2, R extends RunStore.RunStore | ThreadStore.ThreadStore>(
        effect: Effect.Effect<A, E2, R>
      ) => Effect.provide(effect, Layer.fresh(layer))
      yield* elsewhere(suspended(agent(), { memory }))
      const legs = yield* Effect.all(
        [
          elsewhere(chunksOf(Agent.approveToolCall(agent(), run("c2")))),
          elsewhere(chunksOf(Agent.approveToolCall(agent(), run("c1"))))
        ],
        { concurrency: "unbounded" }
      )
      expect(legs.map(reasonOf).sort()).toEqual(["stop", "suspended"])
      expect([...executed].sort()).toEqual([1, 2])
      const messages = yield* elsewhere(
        Effect.flatMap(ThreadStore.ThreadStore, threads => threads.messages("t1"))
      )
      expect(outcomesIn(messages.map(({ message }) => message))).toMatchObject([
        { toolCallId: "c1", output: { value: { removed: 1 } } },
        { toolCallId: "c2", output: { value: { removed: 2 } } }
      ])
    })

  it.scopedLive("goes on with a run in a libSQL file", () =>
    Effect.flatMap(freshFile, url => goesOn(LibSqlStore.layer({ url })))
  )

  it.scopedLive.skipIf(postgresUrl === undefined)("goes on with a run in PostgreSQL", () =>
    Effect.flatMap(freshSchema, url => goesOn(PostgresStore.layer({ url })))
  )
})

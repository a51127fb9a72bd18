/** Whose a run is, with a thread or without: stored, listed by, and asked of whoever decides. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, RunStore, ThreadStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Layer, Schema, Stream } from "effect"
import * as memoryRuns from "../../src/storage/memoryRuns.js"
import type { RunQuery } from "../../src/storage/runRows.js"

const { finish, reply, toolCall } = ScriptedModel

const pay = Tool.make("pay", {
  description: "Pays.",
  input: Schema.Struct({}),
  requireApproval: true,
  execute: (_, { resourceId }) => Effect.succeed(`paid for ${resourceId}`)
})

const calling: ScriptedModel.Turn = [toolCall("c1", "pay", {}), finish("tool-calls")]

/** An agent that waits for an approval in each of its first runs. */
const payer = (waiting: number, after: ReadonlyArray<ScriptedModel.Turn> = []) =>
  Agent.make({
    id: "payer",
    model: ScriptedModel.make([...Array.from({ length: waiting }, () => calling), ...after]),
    tools: [pay]
  })

const run = (agent: Agent.Agent, options: object) => Stream.runDrain(Agent.stream(agent, "Pay.", options))

const stores = Layer.merge(ThreadStore.layerMemory, RunStore.layerMemory)

const ids = Effect.map((runs: ReadonlyArray<Agent.SuspendedRun>) => runs.map(({ runId }) => runId))

describe("the resource of a run", () => {
  it.effect("is stored with it, and finds it", () =>
    Effect.gen(function* () {
      const agent = payer(4)
      yield* run(agent, { runId: "a1", resource: "alice" })
      yield* run(agent, { runId: "a2", memory: { thread: "t", resource: "alice" } })
      yield* run(agent, { runId: "b1", resource: "bob" })
      yield* run(agent, { runId: "n1" })
      const list = (filter: Agent.SuspendedFilter) => ids(Agent.listSuspendedRuns(agent, filter))
      expect(yield* list({})).toEqual(["a1", "a2", "b1", "n1"])
      expect(yield* list({ resource: "alice" })).toEqual(["a1", "a2"])
      expect(yield* list({ memory: { thread: "t", resource: "alice" } })).toEqual(["a2"])
      expect(yield* list({ threadId: "t" })).toEqual(["a2"])
      expect(yield* list({ threadId: "t", resource: "bob" })).toEqual([])
      expect(yield* list({ runId: "b1" })).toEqual(["b1"])
      expect(yield* list({ runId: "b1", resource: "alice" })).toEqual([])
      expect(yield* list({ runId: "other" })).toEqual([])
    }).pipe(Effect.provide(stores))
  )

  it.effect("must be that of whoever decides, when it is given", () =>
    Effect.gen(function* () {
      const agent = payer(1, [reply("Paid.")])
      yield* run(agent, { runId: "a1", resource: "alice" })
      for (const call of [{ runId: "a1" }, { runId: "a1", toolCallId: "c1" }]) {
        const error = yield* Effect.flip(
          Stream.runDrain(Agent.approveToolCall(agent, { ...call, resource: "bob" }))
        )
        expect(error).toMatchObject({ _tag: "RunNotFound", runId: "a1" })
      }
      const chunks = yield* Stream.runCollect(
        Agent.approveToolCall(agent, { runId: "a1", resource: "alice" })
      )
      const results = [...chunks].flatMap(chunk =>
        chunk.type === "tool-result" ? [chunk.payload.result] : []
      )
      expect(results).toEqual(["paid for alice"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("stays with a run that is suspended again, whoever does not name it", () =>
    Effect.gen(function* () {
      const agent = payer(2)
      yield* run(agent, { runId: "a1", resource: "alice" })
      yield* Stream.runDrain(Agent.approveToolCall(agent, { runId: "a1" }))
      expect(yield* Agent.listSuspendedRuns(agent, { resource: "alice" })).toMatchObject([{ runId: "a1" }])
    }).pipe(Effect.provide(stores))
  )

  it.effect("is that of the runs of agents below", () =>
    Effect.gen(function* () {
      const above = Agent.make({
        id: "above",
        model: ScriptedModel.make([
          [toolCall("c0", "agent-payer", { prompt: "Pay." }), finish("tool-calls")]
        ]),
        tools: [Agent.asTool(payer(1))]
      })
      yield* Stream.runDrain(Agent.stream(above, "Pay.", { runId: "a1", resource: "alice" }))
      const store = yield* RunStore.RunStore
      const { runs } = yield* store.list({ agentId: "payer" })
      expect(runs).toMatchObject([{ resourceId: "alice" }])
    }).pipe(Effect.provide(stores))
  )

  it.effect("is refused when it is no id, or not that of the thread", () =>
    Effect.gen(function* () {
      const agent = payer(0)
      const wrong = [{ resource: "" }, { resource: "bob", memory: { thread: "t", resource: "alice" } }]
      for (const options of wrong) {
        const refused = { _tag: "InvalidConfiguration", field: "resource" }
        expect(yield* Effect.flip(run(agent, options))).toMatchObject(refused)
        expect(yield* Effect.flip(Agent.listSuspendedRuns(agent, options))).toMatchObject(refused)
        const resumed = Stream.runDrain(Agent.resumeStream(agent, 1, { runId: "r", ...options }))
        expect(yield* Effect.flip(resumed)).toMatchObject(refused)
      }
      const both = { threadId: "t", memory: { thread: "t", resource: "alice" } }
      expect(yield* Effect.flip(Agent.listSuspendedRuns(agent, both))).toMatchObject({ field: "threadId" })
    }).pipe(Effect.provide(stores))
  )
})

describe("the store", () => {
  it.effect("is asked for the runs of the owner only, and for one run by its id", () =>
    Effect.gen(function* () {
      const queries: Array<RunQuery> = []
      const driver = memoryRuns.make(yield* Effect.clock)
      const store = RunStore.make({
        ...driver,
        list: query => {
          queries.push(query)
          return driver.list(query)
        }
      })
      const agent = payer(1)
      const list = (filter: Agent.SuspendedFilter) =>
        Effect.provideService(Agent.listSuspendedRuns(agent, filter), RunStore.RunStore, store)
      yield* list({ resource: "alice" })
      expect(queries).toMatchObject([{ agentId: "payer", resourceId: "alice" }])
      yield* list({ runId: "r", resource: "alice" })
      expect(queries).toHaveLength(1)
    })
  )
})

/** Objectives as they are set, read, changed and taken away, on the Effect face and on every store. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Errors, LibSqlStore, PostgresStore, ThreadStore } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, Layer, Option, TestClock } from "effect"
import { beforeAll } from "vitest"
import { freshFile, freshSchema, postgresUrl } from "../support/databases.js"
import {
  goalsOf,
  judgedBy,
  loadGoals,
  objectiveOf,
  runIn,
  setObjective,
  thread,
  told,
  verdict
} from "./goalsKit.js"
import { memory, reply } from "./memoryKit.js"

const inMemory = Effect.provide(ThreadStore.layerMemory)

beforeAll(loadGoals)

const agent = Agent.make({ id: "worker", model: ScriptedModel.make([]), goal: { maxRuns: 7 } })
const plain = Agent.make({ id: "plain", model: ScriptedModel.make([]) })
const foreign = { ...thread, resourceId: "somebody" }

type Operation = Effect.Effect<unknown, { readonly _tag: string }, ThreadStore.ThreadStore>

describe("an objective", () => {
  it.effect("is set, and its thread made with it", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(5000)
      const set = yield* Agent.setObjective(agent, " Count to three.\n", thread)
      expect(set).toEqual({
        objective: " Count to three.\n",
        status: "active",
        maxRuns: 7,
        runsUsed: 0,
        createdAt: new Date(5000),
        updatedAt: new Date(5000)
      })
      expect(yield* objectiveOf(agent)).toEqual(set)
      // It is the thread's, whoever asks.
      expect(yield* objectiveOf(plain)).toEqual(set)
      const store = yield* ThreadStore.ThreadStore
      expect(Option.getOrThrow(yield* store.get(memory.thread)).resourceId).toBe(memory.resource)
    }).pipe(inMemory)
  )

  it.effect("has a budget of its own, the agent's, or 50", () =>
    Effect.gen(function* () {
      expect((yield* Agent.setObjective(agent, "Count.", { ...thread, maxRuns: 2 })).maxRuns).toBe(2)
      expect((yield* Agent.setObjective(agent, "Count.", thread)).maxRuns).toBe(7)
      expect((yield* Agent.setObjective(plain, "Count.", thread)).maxRuns).toBe(50)
    }).pipe(inMemory)
  )

  it.effect("takes the place of another one, its budget unused", () =>
    Effect.gen(function* () {
      const { agent: judged } = judgedBy([reply("One.")], [verdict(false)])
      yield* setObjective(judged, 1)
      yield* runIn(judged)
      expect(yield* objectiveOf(judged)).toMatchObject({ status: "paused", runsUsed: 1 })
      yield* TestClock.setTime(10)
      yield* setObjective(judged, 1)
      expect(yield* objectiveOf(judged)).toMatchObject({ status: "active", runsUsed: 0 })
    }).pipe(inMemory)
  )

  it.effect("is cleared, once", () =>
    Effect.gen(function* () {
      yield* Agent.setObjective(agent, "Count.", thread)
      expect(yield* Agent.clearObjective(agent, thread)).toBe(true)
      expect(yield* objectiveOf(agent)).toBeUndefined()
      expect(yield* Agent.clearObjective(agent, thread)).toBe(false)
    }).pipe(inMemory)
  )

  it.effect("goes with its thread", () =>
    Effect.gen(function* () {
      const store = yield* ThreadStore.ThreadStore
      yield* Agent.setObjective(agent, "Count.", thread)
      yield* store.delete(memory.thread)
      expect(yield* Effect.flip(Agent.getObjective(agent, thread))).toMatchObject({ _tag: "ThreadNotFound" })
      yield* store.open({ id: memory.thread, resourceId: memory.resource })
      expect(yield* objectiveOf(agent)).toBeUndefined()
    }).pipe(inMemory)
  )

  it.effect("is paused, resumed and given another budget", () =>
    Effect.gen(function* () {
      yield* Agent.setObjective(agent, "Count.", thread)
      yield* TestClock.setTime(10)
      const paused = yield* Agent.updateObjectiveOptions(agent, { ...thread, status: "paused" })
      expect(paused).toMatchObject({
        status: "paused",
        maxRuns: 7,
        updatedAt: new Date(10),
        createdAt: new Date(0)
      })
      const larger = yield* Agent.updateObjectiveOptions(agent, { ...thread, maxRuns: 9 })
      expect(larger).toMatchObject({ status: "paused", maxRuns: 9 })
      const resumed = yield* Agent.updateObjectiveOptions(agent, { ...thread, status: "active" })
      expect(resumed).toMatchObject({ status: "active", maxRuns: 9 })
      expect(yield* objectiveOf(agent)).toEqual(resumed)
    }).pipe(inMemory)
  )

  it.effect("of another resource looks like none, whatever is done to it", () =>
    Effect.gen(function* () {
      const attempts: ReadonlyArray<Operation> = [
        Agent.setObjective(agent, "Theirs.", foreign),
        Agent.getObjective(agent, foreign),
        Agent.updateObjectiveOptions(agent, { ...foreign, status: "paused" }),
        Agent.clearObjective(agent, foreign)
      ]
      yield* Agent.setObjective(agent, "Mine.", thread)
      for (const attempt of attempts) {
        expect(yield* Effect.flip(attempt)).toMatchObject({ _tag: "ThreadNotFound", threadId: memory.thread })
      }
      expect(yield* objectiveOf(agent)).toMatchObject({ objective: "Mine.", status: "active" })
      const missing = { ...thread, threadId: "nowhere" }
      const others: ReadonlyArray<Operation> = [
        Agent.getObjective(agent, missing),
        Agent.updateObjectiveOptions(agent, missing),
        Agent.clearObjective(agent, missing)
      ]
      for (const attempt of others) {
        expect(yield* Effect.flip(attempt)).toMatchObject({ _tag: "ThreadNotFound", threadId: "nowhere" })
      }
    }).pipe(inMemory)
  )

  it.effect("cannot be changed when there is none", () =>
    Effect.gen(function* () {
      const store = yield* ThreadStore.ThreadStore
      yield* store.open({ id: memory.thread, resourceId: memory.resource })
      const error: unknown = yield* Effect.flip(
        Agent.updateObjectiveOptions(agent, { ...thread, maxRuns: 3 })
      )
      expect(error).toMatchObject({ _tag: "ObjectiveNotFound", threadId: memory.thread })
    }).pipe(inMemory)
  )

  it.effect("cannot be active without a run left, nor paused when it is done", () =>
    Effect.gen(function* () {
      const { agent: judged } = judgedBy([reply("One."), reply("Two.")], [verdict(false), verdict(true)])
      yield* setObjective(judged, 1)
      yield* runIn(judged)
      const change = (options: Omit<Agent.UpdateObjectiveOptions, "threadId" | "resourceId">) =>
        Agent.updateObjectiveOptions(judged, { ...thread, ...options })
      expect(yield* Effect.flip(change({ status: "active" }))).toMatchObject({ field: "maxRuns" })
      yield* change({ status: "active", maxRuns: 2 })
      expect(told((yield* runIn(judged)).chunks)).toEqual(["2/2 passed, done"])
      expect(yield* Effect.flip(change({ status: "paused" }))).toMatchObject({ field: "status" })
      expect(yield* objectiveOf(judged)).toMatchObject({ status: "done", runsUsed: 2 })
    }).pipe(inMemory)
  )
})

describe("what is refused", () => {
  /** As JavaScript may call it. */
  const loosely = (options: object): never => options as never

  const wrong: ReadonlyArray<readonly [string, Operation]> = [
    ["objective", Agent.setObjective(agent, "", thread)],
    ["objective", Agent.setObjective(agent, " \n", thread)],
    ["objective", Agent.setObjective(agent, loosely({}), thread)],
    ["maxRuns", Agent.setObjective(agent, "Count.", { ...thread, maxRuns: 0 })],
    ["maxRuns", Agent.setObjective(agent, "Count.", { ...thread, maxRuns: 1.5 })],
    ["threadId", Agent.setObjective(agent, "Count.", { ...thread, threadId: "" })],
    ["resourceId", Agent.setObjective(agent, "Count.", loosely({ threadId: "t" }))],
    ["options", Agent.setObjective(agent, "Count.", undefined as never)],
    ["status", Agent.setObjective(agent, "Count.", loosely({ ...thread, status: "active" }))],
    ["threadId", Agent.getObjective(agent, loosely({}))],
    ["maxRuns", Agent.getObjective(agent, loosely({ ...thread, maxRuns: 1 }))],
    ["status", Agent.updateObjectiveOptions(agent, loosely({ ...thread, status: "done" }))],
    ["maxRuns", Agent.updateObjectiveOptions(agent, { ...thread, maxRuns: -1 })],
    ["objective", Agent.updateObjectiveOptions(agent, loosely({ ...thread, objective: "x" }))],
    ["resourceId", Agent.clearObjective(agent, loosely({ threadId: "t" }))]
  ]

  it.effect.each([...wrong])("names its field: %s", ([field, operation]) =>
    Effect.gen(function* () {
      yield* Agent.setObjective(agent, "Count.", thread)
      const error = yield* Effect.flip(operation)
      expect(error).toMatchObject({ _tag: "InvalidConfiguration", field })
      expect(error).toHaveProperty("message", expect.stringMatching(/\.$/))
    }).pipe(inMemory)
  )

  const goals: ReadonlyArray<readonly [string, object]> = [
    ["goal", []],
    ["goals", { goals: 1 }],
    ["timeoutMs", { timeoutMs: 1 }],
    ["goal.judge", { judge: {} }],
    ["goal.judge", { judge: "openai/gpt-5" }],
    ["goal.judge[0]", { judge: [{}] }],
    ["goal.judge[0].maxRetries", { judge: [{ model: ScriptedModel.make([]), maxRetries: -1 }] }],
    ["goal.maxRuns", { maxRuns: 0 }],
    ["goal.prompt", { prompt: 1 }],
    ["goal.scorer", { scorer: true }],
    ["goal.timeout", { timeout: 0 }]
  ]

  it.each([...goals])("of an agent names its field: %s", (field, goal) => {
    const make = () => Agent.make({ id: "a", model: ScriptedModel.make([]), goal: loosely(goal) })
    expect(make).toThrow(expect.objectContaining({ _tag: "InvalidConfiguration", field }))
    expect(make).toThrow(field.replace(/^goals$/, "`goals`"))
  })
})

/** The same story in a store that outlives its process: two layers stand for two processes. */
const survives = (
  layer: Layer.Layer<ThreadStore.ThreadStore, Errors.StorageError | Errors.InvalidConfiguration>
) =>
  Effect.gen(function* () {
    const first = judgedBy([reply("One.")], [verdict(false, "Two is missing.")])
    yield* Effect.gen(function* () {
      yield* setObjective(first.agent, 3)
      expect(told((yield* runIn(first.agent, { stopWhen: () => true })).chunks)).toEqual([
        "1/3 rejected, active"
      ])
      const refused = yield* Effect.exit(Agent.getObjective(first.agent, foreign))
      expect(Exit.isFailure(refused)).toBe(true)
    }).pipe(Effect.provide(Layer.fresh(layer)))
    const second = judgedBy(
      [reply("Two."), reply("Three.")],
      [verdict(false, "Three is missing."), verdict(true, "All there.")]
    )
    yield* Effect.gen(function* () {
      expect(yield* objectiveOf(second.agent)).toMatchObject({ runsUsed: 1, reason: "Two is missing." })
      expect(told((yield* runIn(second.agent)).chunks)).toEqual(["2/3 rejected, active", "3/3 passed, done"])
      expect(yield* objectiveOf(second.agent)).toMatchObject({
        status: "done",
        runsUsed: 3,
        reason: "All there."
      })
    }).pipe(Effect.provide(Layer.fresh(layer)))
  })

/** Runs of two processes at once: nothing is counted twice, nothing is lost. */
const counts = (
  layer: Layer.Layer<ThreadStore.ThreadStore, Errors.StorageError | Errors.InvalidConfiguration>
) =>
  Effect.gen(function* () {
    const answers = Array.from({ length: 12 }, () => reply("x"))
    const process = Effect.suspend(() => {
      const { agent: judged } = judgedBy(
        answers,
        answers.map(() => verdict(false, "More."))
      )
      return Effect.provide(runIn(judged), Layer.fresh(layer))
    })
    yield* Effect.provide(setObjective(agent, 8), Layer.fresh(layer))
    const runs = yield* Effect.all([process, process], { concurrency: "unbounded" })
    const iterations = runs.flatMap(({ chunks }) => goalsOf(chunks).map(({ iteration }) => iteration))
    expect(new Set(iterations).size).toBe(iterations.length)
    const objective = yield* Effect.provide(objectiveOf(agent), Layer.fresh(layer))
    expect(objective).toMatchObject({ status: "paused", runsUsed: iterations.length })
  })

describe("an objective in a database", () => {
  it.scopedLive("survives its process: libSQL", () =>
    Effect.flatMap(freshFile, url => survives(LibSqlStore.layer({ url })))
  )

  it.scopedLive("is counted by two processes: libSQL", () =>
    Effect.flatMap(freshFile, url => counts(LibSqlStore.layer({ url })))
  )

  it.scopedLive.skipIf(postgresUrl === undefined)("survives its process: PostgreSQL", () =>
    Effect.flatMap(freshSchema, url => survives(PostgresStore.layer({ url })))
  )

  it.scopedLive.skipIf(postgresUrl === undefined)("is counted by two processes: PostgreSQL", () =>
    Effect.flatMap(freshSchema, url => counts(PostgresStore.layer({ url })))
  )
})

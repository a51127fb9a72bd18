/** Goals on the promise face: the same runs, in promises and milliseconds. */
import {
  Agent,
  type AgentOptions,
  type ChunkOf,
  Eddy,
  type GoalOptions,
  InMemoryStore,
  InvalidConfiguration,
  LibSQLStore,
  type ModelOutput,
  ObjectiveNotFound,
  ThreadNotFound
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect, Scope } from "effect"
import { describe, expect, it } from "vitest"
import { freshFile } from "../support/databases.js"
import { expectGrammar } from "../support/grammar.js"
import { collect, memoryLogger, refuseUnhandledRejections } from "../support/readers.js"

refuseUnhandledRejections()

const { hang, reply } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const
const thread = { threadId: "t1", resourceId: "u1" } as const

const verdict = (passed: boolean, reason: string) => reply(JSON.stringify({ passed, reason }))

/** A container of one agent that says this, and is judged so. */
const containerOf = (
  turns: ReadonlyArray<ScriptedModel.Turn>,
  goal: GoalOptions,
  more: Partial<AgentOptions> = {},
  storage = new InMemoryStore()
) => {
  const model = ScriptedModel.make(turns)
  const agent = new Agent({ id: "worker", model, goal, ...more })
  return { agent, eddy: new Eddy({ agents: { agent }, storage, logger: memoryLogger() }), model }
}

const goalsOf = async (output: ModelOutput): Promise<ReadonlyArray<ChunkOf<"goal">["payload"]>> => {
  const chunks = await collect(output.fullStream)
  expectGrammar(chunks)
  return chunks.flatMap(chunk => (chunk.type === "goal" ? [chunk.payload] : []))
}

describe("a goal", () => {
  it("keeps the run going until the judge has passed an answer", async () => {
    const judge = ScriptedModel.make([verdict(false, "Two is missing."), verdict(true, "All there.")])
    const { agent, eddy } = containerOf([reply("One. "), reply("Two.")], { judge, maxRuns: 4 })
    const set = await agent.setObjective("Count to two.", thread)
    expect(set).toMatchObject({ objective: "Count to two.", status: "active", maxRuns: 4, runsUsed: 0 })
    const output = await agent.stream("Begin.", { memory })
    expect(await goalsOf(output)).toMatchObject([
      { iteration: 1, maxRuns: 4, passed: false, status: "active", reason: "Two is missing." },
      { iteration: 2, maxRuns: 4, passed: true, status: "done", reason: "All there." }
    ])
    expect(await output.text).toBe("One. Two.")
    expect(await output.steps).toHaveLength(2)
    expect(await agent.getObjective(thread)).toMatchObject({
      status: "done",
      runsUsed: 2,
      reason: "All there."
    })
    expect(await eddy.threads.messages("t1")).toHaveLength(3)
    await eddy.shutdown()
  })

  it("goes on in `generate`, too", async () => {
    const judge = ScriptedModel.make([verdict(false, "More."), verdict(true, "Fine.")])
    const { agent, eddy } = containerOf([reply("One. "), reply("Two.")], { judge })
    await agent.setObjective("Count to two.", thread)
    const { steps, text } = await agent.generate("Begin.", { memory })
    expect([text, steps.length]).toEqual(["One. Two.", 2])
    await eddy.shutdown()
  })

  it("is judged by a function that promises, under its name", async () => {
    const longEnough = async ({ text }: { readonly text: string }) => text.length / 4
    const { agent, eddy } = containerOf([reply("1"), reply("1234")], { scorer: longEnough })
    await agent.setObjective("Count to four.", thread)
    const goals = await goalsOf(await agent.stream("Begin.", { memory }))
    expect(goals.map(({ results }) => results)).toMatchObject([
      [{ scorerId: "scorer", scorerName: "longEnough", score: 0.25, passed: false }],
      [{ score: 1, passed: true }]
    ])
    await eddy.shutdown()
  })

  it("is paused by a scorer that rejects, and by a judge that takes too long", async () => {
    const goals: ReadonlyArray<GoalOptions> = [
      { scorer: () => Promise.reject(new Error("Broken.")) },
      { judge: ScriptedModel.make([[hang]]), timeoutMs: 20 }
    ]
    for (const [index, goal] of goals.entries()) {
      const { agent, eddy } = containerOf([reply("One.")], goal)
      await agent.setObjective("Count.", thread)
      const [told] = await goalsOf(await agent.stream("Begin.", { memory }))
      expect(told).toMatchObject({ passed: false, status: "paused", timedOut: index === 1 })
      expect(told?.reason).toContain(index === 1 ? "20 ms" : "Broken.")
      await eddy.shutdown()
    }
  })

  it("is paused, changed, resumed and cleared", async () => {
    const judge = ScriptedModel.make([verdict(false, "No."), verdict(true, "Yes.")])
    const { agent, eddy } = containerOf([reply("A"), reply("B"), reply("C")], { judge })
    await agent.setObjective("Count.", { ...thread, maxRuns: 1 })
    expect(await goalsOf(await agent.stream("1", { memory }))).toMatchObject([
      { status: "paused", maxRunsReached: true }
    ])
    expect(await goalsOf(await agent.stream("2", { memory }))).toEqual([])
    await agent.updateObjectiveOptions({ ...thread, maxRuns: 5, status: "active" })
    expect(await goalsOf(await agent.stream("3", { memory }))).toMatchObject([
      { iteration: 2, status: "done" }
    ])
    expect(await agent.clearObjective(thread)).toBe(true)
    expect(await agent.clearObjective(thread)).toBe(false)
    expect(await agent.getObjective(thread)).toBeUndefined()
    await eddy.shutdown()
  })

  it("stops at once when the run is aborted while it is judged", async () => {
    const asked: Array<AbortSignal> = []
    const judge = {
      provider: "court",
      modelId: "silent",
      answer: (_: unknown, signal: AbortSignal) => {
        asked.push(signal)
        return new Promise<never>(() => undefined)
      }
    }
    const { agent, eddy } = containerOf([reply("One.")], { judge })
    await agent.setObjective("Count.", thread)
    const controller = new AbortController()
    const output = await agent.stream("Begin.", { memory, abortSignal: controller.signal })
    const goals = goalsOf(output)
    while (asked.length === 0) await new Promise(resolve => setImmediate(resolve))
    const begun = performance.now()
    controller.abort()
    expect(await goals).toEqual([])
    expect(performance.now() - begun).toBeLessThan(250)
    expect(await output.finishReason).toBe("aborted")
    expect(asked.map(({ aborted }) => aborted)).toEqual([true])
    await eddy.shutdown()
  })

  it("survives its process", async () => {
    const scope = Effect.runSync(Scope.make())
    const url = await Effect.runPromise(Scope.extend(freshFile, scope))
    const one = containerOf([reply("One.")], { scorer: () => false }, {}, new LibSQLStore({ url }))
    await one.agent.setObjective("Count.", { ...thread, maxRuns: 2 })
    await (await one.agent.stream("Begin.", { memory, stopWhen: () => true })).consumeStream()
    await one.eddy.shutdown()
    const two = containerOf([reply("Two.")], { scorer: () => true }, {}, new LibSQLStore({ url }))
    expect(await two.agent.getObjective(thread)).toMatchObject({ runsUsed: 1, status: "active" })
    expect(await goalsOf(await two.agent.stream("Go on.", { memory }))).toMatchObject([
      { iteration: 2, status: "done" }
    ])
    await two.eddy.shutdown()
    await Effect.runPromise(Scope.close(scope, await Effect.runPromise(Effect.exit(Effect.void))))
  })
})

describe("what is refused", () => {
  it("names the thread that is not there, or somebody else's", async () => {
    const { agent, eddy } = containerOf([], {})
    await expect(agent.getObjective(thread)).rejects.toThrow(ThreadNotFound)
    await agent.setObjective("Count.", thread)
    const foreign = { ...thread, resourceId: "u2" }
    await expect(agent.getObjective(foreign)).rejects.toThrow(ThreadNotFound)
    await expect(agent.setObjective("Mine.", foreign)).rejects.toThrow(ThreadNotFound)
    await expect(agent.updateObjectiveOptions({ ...foreign, maxRuns: 1 })).rejects.toThrow(ThreadNotFound)
    await expect(agent.clearObjective(foreign)).rejects.toThrow(ThreadNotFound)
    await agent.clearObjective(thread)
    await expect(agent.updateObjectiveOptions({ ...thread, maxRuns: 1 })).rejects.toThrow(ObjectiveNotFound)
    await expect(agent.setObjective("", thread)).rejects.toThrow(InvalidConfiguration)
    await eddy.shutdown()
    await expect(agent.getObjective(thread)).rejects.toThrow("shut down")
  })

  it("says that there is no store", async () => {
    const agent = new Agent({ id: "alone", model: ScriptedModel.make([]) })
    await expect(agent.setObjective("Count.", thread)).rejects.toMatchObject({
      _tag: "InvalidConfiguration",
      field: "storage"
    })
  })

  const wrong: ReadonlyArray<readonly [string, object]> = [
    ["timeout", { timeout: "1 second" }],
    ["goal.timeoutMs", { timeoutMs: 0 }],
    ["goal.maxRuns", { maxRuns: 0 }],
    ["goal.scorer", { scorer: 1 }],
    ["goal.judge", { judge: 1 }],
    ["goal.judge", { judge: null }],
    ["goal.prompt", { prompt: {} }]
  ]

  it.each([...wrong])("names the option of the goal: %s", (field, goal) => {
    const options: AgentOptions = { id: "a", model: ScriptedModel.make([]) }
    expect(() => new Agent(Object.assign(options, { goal }))).toThrow(
      expect.objectContaining({ _tag: "InvalidConfiguration", field })
    )
  })
})

/** Goals: answers that are judged, runs that go on until one passes, and budgets that end them. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Errors, Objective, ThreadStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, Schema } from "effect"
import { beforeAll } from "vitest"
import {
  caseOf,
  goalsOf,
  judgedBy,
  loadGoals,
  notesIn,
  objectiveOf,
  runIn,
  setObjective,
  thread,
  told,
  verdict
} from "./goalsKit.js"
import { chunksOf, finishOf, only, textOf, types } from "./kit.js"
import { changed, ends, memory, messagesOf, nextPrompt, reply, textIn, toolCall } from "./memoryKit.js"

const inMemory = Effect.provide(ThreadStore.layerMemory)

beforeAll(loadGoals)

describe("a judged run", () => {
  it.effect("goes on until an answer passes, with the reason of the judge as feedback", () =>
    Effect.gen(function* () {
      const { agent, judge, model } = judgedBy(
        [reply("One."), reply("Two."), reply("Three.")],
        [
          verdict(false, "Two is missing."),
          verdict(false, "Three is missing.", { score: 0.6 }),
          verdict(true, "All there.")
        ]
      )
      yield* setObjective(agent)
      const { chunks, exit } = yield* runIn(agent)
      expect(exit).toEqual(Exit.void)
      expect(told(chunks)).toEqual(["1/50 rejected, active", "2/50 rejected, active", "3/50 passed, done"])
      expect(goalsOf(chunks)[1]).toEqual({
        objective: "Count to three.",
        iteration: 2,
        maxRuns: 50,
        passed: false,
        status: "active",
        results: [
          {
            scorerId: "judge",
            scorerName: "judge",
            score: 0.6,
            passed: false,
            reason: "Three is missing.",
            duration: 0
          }
        ],
        reason: "Three is missing.",
        duration: 0,
        timedOut: false,
        maxRunsReached: false,
        suppressFeedback: true
      })
      expect(finishOf(chunks).stepResult).toMatchObject({ reason: "stop", isContinued: false })
      expect([model.unused(), judge.unused()]).toEqual([0, 0])
      expect(judge.requests.map(caseOf)).toEqual([
        { objective: "Count to three.", request: "Begin.", answer: "One." },
        { objective: "Count to three.", request: "Begin.", answer: "Two." },
        { objective: "Count to three.", request: "Begin.", answer: "Three." }
      ])
      expect(notesIn(model.requests[0])).toHaveLength(1)
      const [objective = "", first = "", second = ""] = notesIn(model.requests[2])
      expect(objective).toContain("Count to three.")
      expect(first).toContain("Two is missing.")
      expect(second).toContain("Three is missing.")
    }).pipe(inMemory)
  )

  it.effect("keeps every answer: in the text, the steps, the values and the thread", () =>
    Effect.gen(function* () {
      const { agent } = judgedBy([reply("One. "), reply("Two.")], [verdict(false, "More."), verdict(true)])
      yield* setObjective(agent)
      const { chunks } = yield* runIn(agent)
      expect(textOf(chunks)).toBe("One. Two.")
      expect(finishOf(chunks).output.text).toBe("One. Two.")
      const { agent: again } = judgedBy(
        [reply("One. "), reply("Two.")],
        [verdict(false, "More."), verdict(true)]
      )
      yield* setObjective(again)
      const full = yield* Agent.generate(again, "Begin.", { memory })
      expect(full.text).toBe("One. Two.")
      expect(full.steps.map(({ isContinued, text }) => [text, isContinued])).toEqual([
        ["One. ", true],
        ["Two.", false]
      ])
      const messages = yield* messagesOf()
      expect(messages.map(({ role }) => role).join()).toBe(
        "user,assistant,assistant,user,assistant,assistant"
      )
      // What the judge said is for the run only.
      expect(textIn(messages)).toBe("Begin.One. Two.Begin.One. Two.")
      yield* nextPrompt()
    }).pipe(inMemory)
  )

  it.effect("tells a judgement behind everything of its step, before its end", () =>
    Effect.gen(function* () {
      const { agent } = judgedBy([reply("One."), reply("Two.")], [verdict(false), verdict(true)])
      yield* setObjective(agent)
      const { chunks } = yield* runIn(agent)
      const step = ["step-start", "text-start", "text-delta", "text-end", "goal", "step-finish"]
      expect(types(chunks)).toEqual(["start", ...step, ...step, "finish"])
    }).pipe(inMemory)
  )

  it.effect("stores an answer before it is judged", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<string>> = []
      const store = yield* ThreadStore.ThreadStore
      const agent = Agent.make({
        id: "worker",
        model: ScriptedModel.make([reply("One."), reply("Two.")]),
        goal: {
          scorer: ({ iteration }) =>
            Effect.map(store.messages(memory.thread), messages => {
              seen.push(messages.map(({ message }) => textIn([message])))
              return iteration === 2
            })
        }
      })
      yield* setObjective(agent)
      yield* runIn(agent)
      expect(seen).toEqual([
        ["Begin.", "One."],
        ["Begin.", "One.", "Two."]
      ])
    }).pipe(inMemory)
  )

  it.effect("counts what the judge uses into the step and the run", () =>
    Effect.gen(function* () {
      const asks = (passed: boolean) =>
        ScriptedModel.reply(JSON.stringify({ passed }), {
          inputTokens: 100,
          outputTokens: 10,
          totalTokens: 110
        })
      const says = (text: string) => reply(text, { inputTokens: 3, outputTokens: 2, totalTokens: 5 })
      const { agent } = judgedBy([says("One."), says("Two.")], [asks(false), asks(true)])
      yield* setObjective(agent)
      const { chunks } = yield* runIn(agent)
      expect(only(chunks, "step-finish").map(({ payload }) => payload.output.usage.totalTokens)).toEqual([
        115, 115
      ])
      expect(finishOf(chunks).output.usage).toMatchObject({
        inputTokens: 206,
        outputTokens: 24,
        totalTokens: 230
      })
    }).pipe(inMemory)
  )

  it.effect("pauses the objective when its budget is used up, and says so", () =>
    Effect.gen(function* () {
      const { agent, model } = judgedBy(
        [reply("One."), reply("Two.")],
        [verdict(false, "Not yet."), verdict(false, "Still not.")]
      )
      yield* setObjective(agent, 2)
      const { chunks } = yield* runIn(agent)
      expect(told(chunks)).toEqual(["1/2 rejected, active", "2/2 rejected, paused"])
      expect(goalsOf(chunks).map(({ maxRunsReached }) => maxRunsReached)).toEqual([false, true])
      expect(yield* objectiveOf(agent)).toMatchObject({ status: "paused", runsUsed: 2, reason: "Still not." })
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
      expect(model.unused()).toBe(0)
    }).pipe(inMemory)
  )

  it.effect("gives a reason for a budget that is used up when the judge gave none", () =>
    Effect.gen(function* () {
      const { agent } = judgedBy([reply("One.")], [verdict(false)])
      yield* setObjective(agent, 1)
      const { chunks } = yield* runIn(agent)
      expect(goalsOf(chunks)[0]?.reason).toBe("None of 1 answers has passed.")
      expect((yield* objectiveOf(agent))?.reason).toBe("None of 1 answers has passed.")
    }).pipe(inMemory)
  )

  it.effect("counts its evaluations on from those of earlier runs", () =>
    Effect.gen(function* () {
      const stop = { stopWhen: () => true }
      const { agent } = judgedBy(
        [reply("One."), reply("Two."), reply("Three.")],
        [verdict(false, "First."), verdict(false, "Second."), verdict(true)]
      )
      yield* setObjective(agent, 3)
      expect(told((yield* runIn(agent, stop)).chunks)).toEqual(["1/3 rejected, active"])
      expect(told((yield* runIn(agent, stop)).chunks)).toEqual(["2/3 rejected, active"])
      expect(told((yield* runIn(agent, stop)).chunks)).toEqual(["3/3 passed, done"])
    }).pipe(inMemory)
  )

  it.effect("tells the model of the objective, and what was said of it last, before it answers", () =>
    Effect.gen(function* () {
      const { agent, model } = judgedBy(
        [reply("One."), reply("Two.")],
        [verdict(false, "First."), verdict(true)]
      )
      yield* setObjective(agent)
      yield* runIn(agent, { stopWhen: () => true })
      yield* runIn(agent)
      const [first = "", ...none] = notesIn(model.requests[1])
      expect(none).toEqual([])
      expect(first).toContain("Count to three.")
      expect(first).toContain("First.")
    }).pipe(inMemory)
  )

  it.effect("is told the prompt of the goal", () =>
    Effect.gen(function* () {
      const { agent, judge } = judgedBy([reply("One.")], [verdict(true)], { prompt: "Be strict \ud83d." })
      yield* setObjective(agent)
      yield* runIn(agent)
      expect(textIn(judge.requests[0]?.messages ?? [], "system")).toMatch(/Be strict \ufffd\.$/)
      expect(judge.requests[0]?.tools).toEqual([])
    }).pipe(inMemory)
  )
})

describe("a run is not judged", () => {
  const unjudged = Effect.fnUntraced(function* (
    agent: Agent.Agent,
    options: Parameters<typeof runIn>[1] = {}
  ) {
    const { chunks, exit } = yield* runIn(agent, options)
    expect(exit).toEqual(Exit.void)
    expect(told(chunks)).toEqual([])
    return chunks
  })

  it.effect("without an objective", () =>
    Effect.gen(function* () {
      const { agent, model } = judgedBy([reply("One.")], [])
      yield* unjudged(agent)
      expect(notesIn(model.requests[0])).toEqual([])
    }).pipe(inMemory)
  )

  it.effect("without anybody who judges, and asks the store for nothing more", () =>
    Effect.gen(function* () {
      for (const goal of [undefined, {}, { maxRuns: 3 }]) {
        const model = ScriptedModel.make([reply("One.")])
        const agent = Agent.make({ id: "worker", model, ...(goal === undefined ? {} : { goal }) })
        yield* setObjective(agent)
        yield* unjudged(agent)
        expect(notesIn(model.requests[0])).toEqual([])
        expect(yield* objectiveOf(agent)).toMatchObject({ runsUsed: 0, status: "active" })
      }
    }).pipe(inMemory)
  )

  it.effect("without a thread", () =>
    Effect.gen(function* () {
      const { agent } = judgedBy([reply("One.")], [])
      yield* setObjective(agent)
      const chunks = yield* chunksOf(Agent.stream(agent, "Begin."))
      expect(told(chunks)).toEqual([])
    }).pipe(inMemory)
  )

  it.effect("in another thread of the same resource", () =>
    Effect.gen(function* () {
      const { agent } = judgedBy([reply("One.")], [])
      yield* setObjective(agent)
      const chunks = yield* chunksOf(Agent.stream(agent, "Begin.", { memory: { ...memory, thread: "t2" } }))
      expect(told(chunks)).toEqual([])
    }).pipe(inMemory)
  )

  it.effect("when the objective is paused, done or cleared", () =>
    Effect.gen(function* () {
      const { agent, model } = judgedBy([reply("A"), reply("B"), reply("C"), reply("D")], [verdict(true)])
      yield* setObjective(agent)
      yield* Agent.updateObjectiveOptions(agent, { ...thread, status: "paused" })
      yield* unjudged(agent)
      yield* Agent.updateObjectiveOptions(agent, { ...thread, status: "active" })
      expect(told((yield* runIn(agent)).chunks)).toEqual(["1/50 passed, done"])
      yield* unjudged(agent)
      yield* Agent.clearObjective(agent, thread)
      yield* unjudged(agent)
      expect(model.requests.map(request => notesIn(request).length)).toEqual([0, 1, 0, 0])
    }).pipe(inMemory)
  )

  it.effect("when its answer was cut off", () =>
    Effect.gen(function* () {
      for (const reason of ["length", "content-filter"] as const) {
        const { agent } = judgedBy([[...ScriptedModel.text("One."), ends(reason)]], [])
        yield* setObjective(agent)
        expect(finishOf(yield* unjudged(agent)).stepResult.reason).toBe(reason)
      }
    }).pipe(inMemory)
  )

  it.effect("when it ends with a call for the client, or with its last step", () =>
    Effect.gen(function* () {
      const calls = [toolCall("c1", "pick", {}), ends("tool-calls")]
      for (const execute of [undefined, () => Effect.succeed(1)]) {
        const pick = Tool.make("pick", execute === undefined ? {} : { execute })
        const agent = Agent.make({
          id: "worker",
          model: ScriptedModel.make([calls]),
          tools: [pick],
          maxSteps: 1,
          goal: { judge: ScriptedModel.make([]) }
        })
        yield* setObjective(agent)
        const chunks = yield* unjudged(agent)
        expect(finishOf(chunks).stepResult.stoppedBy).toBe(
          execute === undefined ? "client-tool" : "max-steps"
        )
      }
    }).pipe(inMemory)
  )
})

describe("a goal and what limits a run", () => {
  it.effect("gives each judged answer the steps anew: the default of five ends no goal", () =>
    Effect.gen(function* () {
      const answers = Array.from({ length: 12 }, (_, index) => reply(`${index + 1} `))
      const verdicts = answers.map((_, index) => verdict(index === 11, "More."))
      const { agent } = judgedBy(answers, verdicts)
      yield* setObjective(agent)
      const { chunks } = yield* runIn(agent)
      expect(told(chunks)).toHaveLength(12)
      expect(told(chunks).at(-1)).toBe("12/50 passed, done")
      expect(finishOf(chunks).stepResult.stoppedBy).toBeUndefined()
    }).pipe(inMemory)
  )

  it.effect("counts the steps of each answer for itself, those with tools too", () =>
    Effect.gen(function* () {
      const look = Tool.make("look", { execute: () => Effect.succeed(1) })
      const answers = ["a", "b", "c"].flatMap(id => [
        [toolCall(id, "look", {}), ends("tool-calls")],
        reply(`${id} `)
      ])
      const model = ScriptedModel.make(answers)
      const judge = ScriptedModel.make([verdict(false), verdict(false), verdict(true)])
      const agent = Agent.make({ id: "worker", model, tools: [look], maxSteps: 2, goal: { judge } })
      yield* setObjective(agent)
      const { chunks } = yield* runIn(agent)
      expect(told(chunks)).toEqual(["1/50 rejected, active", "2/50 rejected, active", "3/50 passed, done"])
      expect(only(chunks, "step-finish")).toHaveLength(6)
      expect(model.unused()).toBe(0)
    }).pipe(inMemory)
  )

  it.effect("still stops an answer that takes too many steps", () =>
    Effect.gen(function* () {
      const look = Tool.make("look", { execute: () => Effect.succeed(1) })
      const calls = (id: string) => [toolCall(id, "look", {}), ends("tool-calls")]
      const model = ScriptedModel.make([calls("a"), reply("One."), calls("b"), calls("c")])
      const judge = ScriptedModel.make([verdict(false, "More.")])
      const agent = Agent.make({ id: "worker", model, tools: [look], maxSteps: 2, goal: { judge } })
      yield* setObjective(agent)
      const { chunks } = yield* runIn(agent)
      expect(told(chunks)).toEqual(["1/50 rejected, active"])
      expect(finishOf(chunks).stepResult).toMatchObject({ reason: "tool-calls", stoppedBy: "max-steps" })
      expect(yield* objectiveOf(agent)).toMatchObject({ status: "active", runsUsed: 1 })
    }).pipe(inMemory)
  )

  it.effect("asks stop conditions about answers that have not passed only", () =>
    Effect.gen(function* () {
      const asked: Array<number> = []
      const stopWhen = ({ steps }: { readonly steps: ReadonlyArray<unknown> }) => {
        asked.push(steps.length)
        return steps.length === 2
      }
      const { agent, model } = judgedBy(
        [reply("One."), reply("Two."), reply("Three.")],
        [verdict(false), verdict(false), verdict(true)]
      )
      yield* setObjective(agent)
      const stopped = yield* runIn(agent, { stopWhen })
      expect(asked).toEqual([1, 2])
      expect(finishOf(stopped.chunks).stepResult.stoppedBy).toBe("stop-when")
      expect(yield* objectiveOf(agent)).toMatchObject({ status: "active", runsUsed: 2 })
      const passed = yield* runIn(agent, { stopWhen })
      expect(told(passed.chunks)).toEqual(["3/50 passed, done"])
      expect(asked).toEqual([1, 2])
      expect(model.unused()).toBe(0)
    }).pipe(inMemory)
  )

  it.effect("judges only the last word of a step with tools", () =>
    Effect.gen(function* () {
      const add = Tool.make("add", {
        input: Schema.Struct({ n: Schema.Number }),
        execute: ({ n }) => Effect.succeed(n + 1)
      })
      const model = ScriptedModel.make([
        [...ScriptedModel.text("Let me see."), toolCall("c1", "add", { n: 1 }), ends("tool-calls")],
        reply("It is two.")
      ])
      const judge = ScriptedModel.make([verdict(true)])
      const agent = Agent.make({ id: "worker", model, tools: [add], goal: { judge } })
      yield* setObjective(agent)
      const { chunks } = yield* runIn(agent)
      expect(told(chunks)).toEqual(["1/50 passed, done"])
      expect(caseOf(judge.requests[0])).toMatchObject({ answer: "It is two." })
    }).pipe(inMemory)
  )
})

describe("an objective that changes while a run goes on", () => {
  /** A scorer that passes nothing and does something each time. */
  const meanwhile = (
    answers: number,
    act: (iteration: number) => Effect.Effect<unknown, unknown, ThreadStore.ThreadStore>
  ) =>
    Effect.map(Effect.context<ThreadStore.ThreadStore>(), context =>
      Agent.make({
        id: "worker",
        model: ScriptedModel.make(Array.from({ length: answers }, (_, index) => reply(`${index + 1} `))),
        goal: {
          scorer: ({ iteration }) => Effect.as(Effect.provide(act(iteration), context), false)
        }
      })
    )

  it.effect("is paused: the evaluation counts, and the run ends", () =>
    Effect.gen(function* () {
      const agent: Agent.Agent = yield* meanwhile(1, () =>
        Agent.updateObjectiveOptions(agent, { ...thread, status: "paused" })
      )
      yield* setObjective(agent)
      const { chunks } = yield* runIn(agent)
      expect(told(chunks)).toEqual(["1/50 rejected, paused"])
      expect(goalsOf(chunks)[0]?.maxRunsReached).toBe(false)
      expect(yield* objectiveOf(agent)).toMatchObject({ status: "paused", runsUsed: 1 })
    }).pipe(inMemory)
  )

  it.effect("is cleared, or goes with its thread: nothing is told, and the run ends", () =>
    Effect.gen(function* () {
      const store = yield* ThreadStore.ThreadStore
      const acts = [() => Agent.clearObjective(cleared, thread), () => store.delete(memory.thread)]
      const cleared: Agent.Agent = yield* meanwhile(2, () =>
        Effect.suspend(() => acts.shift()?.() ?? Effect.void)
      )
      for (const _ of [1, 2]) {
        yield* setObjective(cleared)
        const { chunks, exit } = yield* runIn(cleared)
        expect(exit).toEqual(Exit.void)
        expect(told(chunks)).toEqual([])
      }
    }).pipe(inMemory)
  )

  it.effect("is another one: the answer is judged by that", () =>
    Effect.gen(function* () {
      const objectives: Array<string> = []
      const context = yield* Effect.context<ThreadStore.ThreadStore>()
      const agent: Agent.Agent = Agent.make({
        id: "worker",
        model: ScriptedModel.make([reply("One.")]),
        goal: {
          scorer: ({ objective }) =>
            Effect.gen(function* () {
              objectives.push(objective)
              if (objectives.length === 1) yield* setObjective(agent, 1, "Another one.")
              return false
            }).pipe(Effect.provide(context))
        }
      })
      yield* setObjective(agent)
      const { chunks } = yield* runIn(agent)
      expect(objectives).toEqual(["Count to three.", "Another one."])
      expect(told(chunks)).toEqual(["1/1 rejected, paused"])
    }).pipe(inMemory)
  )

  it.effect("has a larger budget: the run goes on with it", () =>
    Effect.gen(function* () {
      const agent: Agent.Agent = yield* meanwhile(2, iteration =>
        iteration === 1 ? Agent.updateObjectiveOptions(agent, { ...thread, maxRuns: 2 }) : Effect.void
      )
      yield* setObjective(agent, 1)
      expect(told((yield* runIn(agent)).chunks)).toEqual(["1/2 rejected, active", "2/2 rejected, paused"])
    }).pipe(inMemory)
  )

  it.effect("is judged by two runs at once: each evaluation counts once, and the budget holds", () =>
    Effect.gen(function* () {
      const answers = Array.from({ length: 20 }, () => reply("x"))
      const { agent, model } = judgedBy(
        answers,
        answers.map(() => verdict(false, "More."))
      )
      yield* setObjective(agent, 10)
      const runs = yield* Effect.all([runIn(agent), runIn(agent)], { concurrency: "unbounded" })
      const iterations = runs.flatMap(({ chunks }) => goalsOf(chunks).map(({ iteration }) => iteration))
      expect(new Set(iterations).size).toBe(iterations.length)
      const { runsUsed, status } = (yield* objectiveOf(agent)) ?? {}
      expect({ runsUsed, status }).toEqual({ runsUsed: iterations.length, status: "paused" })
      // The other run may have been judging already when the budget was used up.
      expect([10, 11]).toContain(runsUsed)
      // Whoever answers once more finds it paused.
      expect(model.requests.length - iterations.length).toBeLessThanOrEqual(1)
    }).pipe(inMemory)
  )

  it.effect("is resumed: the next run goes on with what was said last", () =>
    Effect.gen(function* () {
      const { agent, model } = judgedBy(
        [reply("One."), reply("Two.")],
        [verdict(false, "Nearly."), verdict(true)]
      )
      yield* setObjective(agent, 1)
      yield* runIn(agent)
      yield* Agent.updateObjectiveOptions(agent, { ...thread, maxRuns: 2, status: "active" })
      expect(told((yield* runIn(agent)).chunks)).toEqual(["2/2 passed, done"])
      expect(notesIn(model.requests[1])[0]).toContain("Nearly.")
    }).pipe(inMemory)
  )
})

describe("a store that fails", () => {
  it.effect("to give the objective fails the run before the model is asked", () =>
    Effect.gen(function* () {
      const { agent, model } = judgedBy([reply("One.")], [])
      const { chunks, exit } = yield* runIn(agent)
      expect(exit).toMatchObject({
        _tag: "Failure",
        cause: { error: { operation: "ThreadStore.objective" } }
      })
      expect(types(chunks)).toEqual(["start", "error", "finish"])
      expect(model.requests).toEqual([])
    }).pipe(
      Effect.provide(
        changed(() => ({
          objective: () =>
            Effect.fail(new Errors.StorageError({ operation: "ThreadStore.objective", message: "no" }))
        }))
      )
    )
  )

  it.effect("to keep a judgement fails the run; the answer is in the thread", () =>
    Effect.gen(function* () {
      const { agent } = judgedBy([reply("One.")], [verdict(true)])
      const { chunks, exit } = yield* runIn(agent)
      expect(Exit.isFailure(exit)).toBe(true)
      expect(types(chunks).slice(-3)).toEqual(["step-finish", "error", "finish"])
      expect(told(chunks)).toEqual([])
      expect(textIn(yield* messagesOf())).toBe("Begin.One.")
    }).pipe(
      Effect.provide(
        changed(() => ({
          objective: () => Effect.succeedSome(Objective.make("Count.", 5, new Date(0))),
          changeObjective: () =>
            Effect.fail(new Errors.StorageError({ operation: "ThreadStore.changeObjective", message: "no" }))
        }))
      )
    )
  )
})

/** Whatever a judge says, in whatever order: each evaluation counts once, is told once, and the budget holds. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Objective, ThreadStore } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, FastCheck as fc, Layer, Logger, LogLevel } from "effect"
import { beforeAll } from "vitest"
import { goalsOf, loadGoals, objectiveOf, runIn, thread } from "./goalsKit.js"
import { reply } from "./memoryKit.js"

beforeAll(loadGoals)

type Word = "passes" | "rejects" | "fails" | "pauses" | "clears" | "raises" | "sets anew"

/** What happens between two runs. */
type Between = "nothing" | "resumes" | "pauses" | "raises" | "clears" | "sets anew"

interface Story {
  readonly maxRuns: number
  /** What is said of each answer, run by run. */
  readonly runs: ReadonlyArray<{ readonly words: ReadonlyArray<Word>; readonly before: Between }>
}

const story: fc.Arbitrary<Story> = fc.record({
  maxRuns: fc.integer({ min: 1, max: 5 }),
  runs: fc.array(
    fc.record({
      words: fc.array(
        fc.oneof(
          { weight: 6, arbitrary: fc.constant<Word>("rejects") },
          {
            weight: 4,
            arbitrary: fc.constantFrom<Word>("passes", "fails", "pauses", "clears", "raises", "sets anew")
          }
        ),
        { maxLength: 8 }
      ),
      before: fc.constantFrom<Between>(
        "nothing",
        "nothing",
        "resumes",
        "pauses",
        "raises",
        "clears",
        "sets anew"
      )
    }),
    { minLength: 1, maxLength: 4 }
  )
})

const quietly = Logger.withMinimumLogLevel(LogLevel.None)

/** Enough for any story. */
const answers = Array.from({ length: 60 }, (_, index) => reply(`${index} `))

/** Plays a story, and gives what was told and what is left. */
const play = ({ maxRuns, runs }: Story) =>
  Effect.gen(function* () {
    const context = yield* Effect.context<ThreadStore.ThreadStore>()
    let words: Array<Word> = []
    /** Evaluations that were asked for, by the objective that they were asked for. */
    const asked: Array<string> = []
    let objectives = 0
    const agent: Agent.Agent = Agent.make({
      id: "worker",
      model: ScriptedModel.make(answers),
      goal: {
        scorer: ({ objective }) => {
          asked.push(objective)
          const word = words.shift() ?? "passes"
          return Effect.zipRight(
            Effect.provide(act(word), context),
            word === "fails" ? Effect.fail("no") : Effect.succeed(word === "passes")
          )
        }
      }
    })
    const change = (options: Omit<Agent.UpdateObjectiveOptions, "threadId" | "resourceId">) =>
      Effect.ignore(Agent.updateObjectiveOptions(agent, { ...thread, ...options }))
    const set = Effect.suspend(() => Agent.setObjective(agent, `${objectives++}`, { ...thread, maxRuns }))
    const act = (word: Word | Between): Effect.Effect<unknown, unknown, ThreadStore.ThreadStore> => {
      switch (word) {
        case "pauses":
          return change({ status: "paused" })
        case "resumes":
          return change({ status: "active" })
        case "raises":
          return Effect.flatMap(objectiveOf(agent), present =>
            present === undefined ? Effect.void : change({ maxRuns: present.maxRuns + 2, status: "active" })
          )
        case "clears":
          return Agent.clearObjective(agent, thread)
        case "sets anew":
          return set
        default:
          return Effect.void
      }
    }
    yield* set
    const told = []
    for (const run of runs) {
      yield* act(run.before)
      const before = yield* objectiveOf(agent)
      words = [...run.words]
      const { chunks, exit } = yield* runIn(agent)
      expect(exit).toEqual(Exit.void)
      const goals = goalsOf(chunks)
      told.push(...goals)
      // What is not active is not judged.
      if (before?.status !== "active") expect(goals).toEqual([])
      const after = yield* objectiveOf(agent)
      // A run ends when nothing is left to reach.
      expect(after?.status).not.toBe("active")
      const last = goals.at(-1)
      if (last !== undefined && after !== undefined && last.objective === after.objective) {
        expect({ runsUsed: after.runsUsed, status: after.status }).toEqual({
          runsUsed: last.iteration,
          status: last.status
        })
      }
    }
    return { asked, told }
  }).pipe(Effect.provide(Layer.fresh(ThreadStore.layerMemory)))

describe("a goal", () => {
  it.effect("counts each evaluation once, whatever is said and done", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(story, async played => {
          const { asked, told } = await Effect.runPromise(quietly(play(played)))
          for (const objective of new Set(asked)) {
            const goals = told.filter(goal => goal.objective === objective)
            expect(goals.map(({ iteration }) => iteration)).toEqual(goals.map((_, index) => index + 1))
            expect(goals.length).toBeLessThanOrEqual(asked.filter(name => name === objective).length)
            for (const goal of goals) {
              expect(goal.iteration).toBeLessThanOrEqual(goal.maxRuns)
              if (goal.passed) expect(goal.status).toBe("done")
              if (goal.status === "active") expect(goal.iteration).toBeLessThan(goal.maxRuns)
            }
          }
        }),
        { numRuns: 40 }
      )
    )
  )
})

const evaluation: fc.Arbitrary<Objective.Evaluation> = fc.record({
  outcome: fc.constantFrom("passed", "rejected", "failed"),
  reason: fc.option(fc.string(), { nil: undefined })
})

describe("an objective", () => {
  it("is done once an answer has passed, and never active without budget, in any order of evaluations", () => {
    fc.assert(
      fc.property(
        fc.array(evaluation, { maxLength: 12 }),
        fc.integer({ min: 1, max: 6 }),
        (evaluations, maxRuns) => {
          let objective = Objective.make("Count.", maxRuns, new Date(0))
          for (const [index, next] of evaluations.entries()) {
            objective = Objective.judged(objective, next, new Date(index))
            expect(objective.runsUsed).toBe(index + 1)
            if (objective.status === "active") expect(objective.runsUsed).toBeLessThan(maxRuns)
          }
          const hasPassed = evaluations.some(({ outcome }) => outcome === "passed")
          const isStopped =
            evaluations.length >= maxRuns || evaluations.some(({ outcome }) => outcome === "failed")
          expect(objective.status).toBe(hasPassed ? "done" : isStopped ? "paused" : "active")
        }
      )
    )
  })
})

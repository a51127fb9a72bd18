/** Judges that fail, take their time, hang, or say something else; and what stops a run that waits for one. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Errors, type LanguageModel, ThreadStore } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Clock, Effect, Exit, Fiber, Logger, LogLevel, Scope, Stream, Supervisor } from "effect"
import { beforeAll } from "vitest"
import { expectGrammar } from "../support/grammar.js"
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
import { evenly, failing, finishOf, inTime, only, read, refusal, settle, timed, types } from "./kit.js"
import { hang, memory, messagesOf, reply, textIn } from "./memoryKit.js"

const inMemory = Effect.provide(ThreadStore.layerMemory)

const quietly = Logger.withMinimumLogLevel(LogLevel.None)

beforeAll(loadGoals)

const worker = (
  judge: Agent.GoalOptions["judge"],
  goal: Omit<Agent.GoalOptions, "judge"> = {},
  more: { readonly maxRetries?: number } = {}
) =>
  Agent.make({
    id: "worker",
    model: ScriptedModel.make([reply("One.")]),
    goal: { ...(judge === undefined ? {} : { judge }), ...goal },
    ...more
  })

/** Runs, and expects that no fiber is left that the run has started. */
const leavingNothing = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const supervisor = yield* Supervisor.track
    const value = yield* Effect.supervised(effect, supervisor)
    yield* settle
    expect(yield* supervisor.value).toHaveLength(0)
    return value
  })

/** What the first judgement of the agent's only answer is, and when it came. */
const judgement = (agent: Agent.Agent) =>
  Effect.gen(function* () {
    yield* setObjective(agent)
    const { chunks, exit } = yield* inTime(runIn(agent))
    expect(exit).toEqual(Exit.void)
    const [goal, ...more] = goalsOf(chunks)
    expect(more).toEqual([])
    return { at: yield* Clock.currentTimeMillis, chunks, goal, objective: yield* objectiveOf(agent) }
  }).pipe(evenly, quietly, inMemory)

describe("what a judge says", () => {
  it.effect.each([
    ["bare", '{"passed": true, "score": 0.9, "reason": "Done."}'],
    ["in a fence", '```json\n{"passed": true, "score": 0.9, "reason": "Done."}\n```'],
    [
      "in prose",
      'Let me see… {"passed": false} would be wrong.\nSo: {"passed":true,"score":0.9,"reason":"Done."} Bye {'
    ],
    ["with a word for its truth", '{"passed": "True", "score": 0.9, "reason": "Done."}']
  ] as const)("is read %s", ([, said]) =>
    Effect.gen(function* () {
      const { goal } = yield* judgement(worker(ScriptedModel.make([reply(said)])))
      expect(goal).toMatchObject({ passed: true, status: "done", reason: "Done." })
      expect(goal?.results).toMatchObject([{ score: 0.9, passed: true, reason: "Done." }])
    })
  )

  it.effect("is asked for again when it is no verdict", () =>
    Effect.gen(function* () {
      const judge = timed(ScriptedModel.make([reply("Well."), reply("[1]"), verdict(true)]))
      const { goal } = yield* judgement(worker(judge.model))
      expect(goal).toMatchObject({ passed: true, iteration: 1, duration: 3000 })
      expect(judge.times).toEqual([0, 1000, 3000])
    })
  )

  it.effect("pauses the objective when it never is one", () =>
    Effect.gen(function* () {
      const judge = ScriptedModel.make([reply("Well."), reply('{"passed": 1}'), reply("")])
      const { chunks, goal, objective } = yield* judgement(worker(judge))
      expect(goal).toMatchObject({
        passed: false,
        status: "paused",
        timedOut: false,
        maxRunsReached: false,
        results: []
      })
      expect(goal?.reason).toContain("The judge of the goal failed: The judge gave no verdict")
      expect(objective).toMatchObject({ status: "paused", runsUsed: 1, reason: goal?.reason })
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
      expect(judge.unused()).toBe(0)
    })
  )
})

describe("a judge that fails", () => {
  it.effect("is asked again as a model is, and counts with what it used", () =>
    Effect.gen(function* () {
      const judge = timed(
        ScriptedModel.make([
          failing(refusal(503)),
          failing(refusal(429, { responseHeaders: { "retry-after": "7" } })),
          ScriptedModel.reply('{"passed":true}', { totalTokens: 11 })
        ])
      )
      const { chunks, goal } = yield* judgement(worker(judge.model))
      expect(goal).toMatchObject({ passed: true })
      expect(judge.times).toEqual([0, 1000, 8000])
      expect(finishOf(chunks).output.usage.totalTokens).toBe(11)
    })
  )

  it.effect("pauses the objective at once when it will fail again", () =>
    Effect.gen(function* () {
      const judge = ScriptedModel.make([failing(refusal(401, { message: "No such key." })), verdict(true)])
      const { at, goal } = yield* judgement(worker(judge))
      expect(at).toBe(0)
      expect(goal).toMatchObject({
        status: "paused",
        timedOut: false,
        reason: expect.stringContaining("No such key.")
      })
      expect(judge.unused()).toBe(1)
    })
  )

  it.effect("has another one take over", () =>
    Effect.gen(function* () {
      const first = ScriptedModel.make([failing(refusal(401))])
      const second = ScriptedModel.make([verdict(true, "Fine.")])
      const { goal } = yield* judgement(worker([first, { model: second, maxRetries: 0 }]))
      expect(goal).toMatchObject({ passed: true, reason: "Fine." })
    })
  )

  it.effect("fails by throwing, rejecting or dying all the same", () =>
    Effect.gen(function* () {
      const answers: ReadonlyArray<LanguageModel.LanguageModel["answer"]> = [
        () => {
          throw new Error("Broken.")
        },
        () => Promise.reject(new Error("Broken.")),
        () => Effect.die(new Error("Broken.")),
        () =>
          Effect.succeed({
            source: new ReadableStream({ pull: () => Promise.reject(new Error("Broken.")) }),
            normalize: () => undefined
          })
      ]
      for (const answer of answers) {
        const { goal } = yield* judgement(
          worker({ provider: "p", modelId: "m", answer }, {}, { maxRetries: 0 })
        )
        expect(goal).toMatchObject({ status: "paused", reason: expect.stringContaining("Broken.") })
      }
    })
  )
})

describe("a scorer", () => {
  const scorers: ReadonlyArray<readonly [string, Agent.Scorer, object]> = [
    ["a word", () => true, { passed: true, status: "done" }],
    ["a full score", () => 1, { passed: true, status: "done" }],
    ["a verdict", () => ({ passed: true, score: 0.7, reason: "Fine." }), { passed: true, reason: "Fine." }],
    ["an Effect", () => Effect.succeed({ passed: true }), { passed: true }],
    [
      "no pass",
      () => ({ passed: false, reason: "No." }),
      { passed: false, status: "paused", reason: "No.", maxRunsReached: true }
    ],
    ["half a score", () => 0.5, { passed: false, results: [{ score: 0.5 }] }]
  ]

  it.effect.each([...scorers])("gives %s", ([, scorer, expected]) =>
    Effect.gen(function* () {
      const { goal } = yield* judgement(worker(undefined, { scorer, maxRuns: 1 }))
      expect(goal).toMatchObject(expected)
    })
  )

  const wrong: ReadonlyArray<readonly [string, () => unknown, string]> = [
    [
      "throws",
      () => {
        throw new Error("Broken.")
      },
      "Broken."
    ],
    ["fails", () => Effect.fail("Broken."), "Broken."],
    ["dies", () => Effect.die(new Error("Broken.")), "Broken."],
    ["gives nothing", () => undefined, "no verdict"],
    ["gives a score of its own", () => 7, "no verdict"],
    ["gives something else", () => ({ fine: true }), "no verdict"]
  ]

  it.effect.each([...wrong])("that %s pauses the objective", ([, act, reason]) =>
    Effect.gen(function* () {
      const goalOptions: Agent.GoalOptions = { scorer: () => true }
      Object.assign(goalOptions, { scorer: act })
      const { goal } = yield* judgement(worker(undefined, goalOptions))
      expect(goal).toMatchObject({ passed: false, status: "paused", timedOut: false })
      expect(goal?.reason).toContain("The scorer of the goal failed")
      expect(goal?.reason).toContain(reason)
    })
  )

  it.effect("sees what it judges", () =>
    Effect.gen(function* () {
      const seen: Array<Agent.Candidate> = []
      const scorer = (candidate: Agent.Candidate) => {
        seen.push(candidate)
        return true
      }
      const { goal } = yield* judgement(worker(undefined, { scorer }))
      expect(goal?.results).toMatchObject([{ scorerId: "scorer", scorerName: "scorer" }])
      expect(seen).toMatchObject([
        { objective: "Count to three.", iteration: 1, maxRuns: 50, text: "One.", ...thread }
      ])
      expect(textIn(seen[0]?.messages ?? [])).toBe("Begin.One.")
    })
  )

  it.effect("is asked before the judge: an answer has to pass both", () =>
    Effect.gen(function* () {
      const scorer = ({ iteration }: Agent.Candidate) =>
        iteration === 1 ? { passed: false, reason: "Too short." } : true
      const { agent, judge } = judgedBy(
        [reply("One."), reply("Two."), reply("Three.")],
        [verdict(false, "Wrong."), verdict(true, "Right.")],
        { scorer }
      )
      yield* setObjective(agent)
      const { chunks } = yield* runIn(agent)
      expect(goalsOf(chunks).map(({ passed, reason }) => [passed, reason])).toEqual([
        [false, "Too short."],
        [false, "Wrong."],
        [true, "Right."]
      ])
      expect(goalsOf(chunks).map(({ results }) => results)).toMatchObject([
        [{ scorerId: "scorer", passed: false }],
        [
          { scorerId: "scorer", passed: true },
          { scorerId: "judge", passed: false }
        ],
        [
          { scorerId: "scorer", passed: true },
          { scorerId: "judge", passed: true }
        ]
      ])
      expect(judge.unused()).toBe(0)
    }).pipe(inMemory)
  )
})

describe("an evaluation that takes too long", () => {
  it.effect("pauses the objective, and tells that it timed out", () =>
    Effect.gen(function* () {
      const { at, goal, objective } = yield* judgement(
        worker(ScriptedModel.make([[hang]]), { timeout: "5 seconds" })
      )
      expect(at).toBe(5000)
      expect(goal).toMatchObject({
        passed: false,
        status: "paused",
        timedOut: true,
        duration: 5000,
        results: []
      })
      expect(goal?.reason).toContain("5000 ms")
      expect(objective).toMatchObject({ status: "paused", runsUsed: 1 })
    })
  )

  it.effect("counts retries and the scorer, whose result is told", () =>
    Effect.gen(function* () {
      const judge = ScriptedModel.make([failing(refusal(503)), [hang]])
      const scorer = () => Effect.as(Effect.sleep("1 second"), true)
      const { at, goal } = yield* judgement(worker(judge, { timeout: 2500, scorer }))
      expect(at).toBe(2500)
      expect(goal).toMatchObject({
        timedOut: true,
        results: [{ scorerId: "scorer", passed: true, duration: 1000 }]
      })
    })
  )

  it.effect("may take its time without a limit, and without one of the step", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        id: "worker",
        model: ScriptedModel.make([reply("One."), [ScriptedModel.pause("20 seconds"), ...reply("Two.")]]),
        goal: {
          judge: ScriptedModel.make([
            [ScriptedModel.pause("1 minute"), ...reply('{"passed":false}')],
            verdict(true)
          ])
        },
        timeouts: { step: "30 seconds" }
      })
      yield* setObjective(agent)
      const { chunks } = yield* inTime(runIn(agent))
      expect(goalsOf(chunks).map(({ duration }) => duration)).toEqual([60_000, 0])
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    }).pipe(inMemory)
  )

  it.effect("is stopped by the limit of the run", () =>
    Effect.gen(function* () {
      const agent = worker(ScriptedModel.make([[hang]]))
      yield* setObjective(agent)
      const { chunks, exit } = yield* inTime(runIn(agent, { timeouts: { run: "3 seconds" } }))
      expect(Exit.isFailure(exit)).toBe(true)
      expect(only(chunks, "error")[0]?.payload.error).toBeInstanceOf(Errors.RunTimedOut)
      expect(types(chunks).slice(-3)).toEqual(["step-finish", "error", "finish"])
      expect(yield* Clock.currentTimeMillis).toBe(3000)
      expect(yield* objectiveOf(agent)).toMatchObject({ status: "active", runsUsed: 0 })
    }).pipe(inMemory)
  )
})

/** A judge that says nothing, and tells how it was stopped. */
const silent = (hears: boolean) => {
  const signals: Array<AbortSignal> = []
  const model: LanguageModel.LanguageModel = {
    provider: "court",
    modelId: "silent",
    answer: (_, signal) => {
      signals.push(signal)
      if (!hears) return new Promise(() => undefined)
      return Effect.succeed({
        source: new ReadableStream({ pull: () => new Promise(() => undefined) }),
        normalize: () => undefined
      })
    }
  }
  return { model, signals }
}

describe("a run that waits for its judge", () => {
  it.effect.each([true, false])("is aborted at once (the judge has begun to answer: %s)", hears =>
    Effect.gen(function* () {
      const judge = silent(hears)
      const agent = worker(judge.model)
      yield* setObjective(agent)
      const controller = new AbortController()
      const running = yield* Effect.fork(runIn(agent, { abortSignal: controller.signal }))
      while (judge.signals.length === 0) yield* settle
      controller.abort("Enough.")
      const { chunks } = yield* Fiber.join(running)
      expect(types(chunks).slice(-3)).toEqual(["step-finish", "abort", "finish"])
      expect(told(chunks)).toEqual([])
      expect(judge.signals.map(({ aborted }) => aborted)).toEqual([true])
      expect(textIn(yield* messagesOf())).toBe("Begin.One.")
      expect(yield* objectiveOf(agent)).toMatchObject({ status: "active", runsUsed: 0 })
    }).pipe(inMemory)
  )

  it.effect("counts what the judge had used when it is aborted", () =>
    Effect.gen(function* () {
      const asked = yield* Effect.makeLatch()
      const judge: LanguageModel.LanguageModel = {
        provider: "court",
        modelId: "slow",
        answer: () =>
          Effect.as(asked.open, {
            source: (async function* () {
              yield ScriptedModel.finish("stop", { totalTokens: 9 })
              await new Promise(() => undefined)
            })(),
            normalize: part => part as never
          })
      }
      // It waits in the scorer's place: the judge has said everything, and is asked again.
      const agent = worker(judge)
      yield* setObjective(agent)
      const controller = new AbortController()
      const running = yield* Effect.fork(runIn(agent, { abortSignal: controller.signal }))
      yield* asked.await
      yield* settle
      controller.abort()
      const { chunks } = yield* Fiber.join(running)
      expect(finishOf(chunks).output.usage.totalTokens).toBe(9)
    }).pipe(quietly, inMemory)
  )

  it.effect("is interrupted: the judge is stopped, the answer is kept, and nothing counts", () =>
    Effect.gen(function* () {
      const judge = silent(true)
      const agent = worker(judge.model)
      yield* setObjective(agent)
      const running = yield* Effect.fork(Stream.runDrain(Agent.stream(agent, "Begin.", { memory })))
      while (judge.signals.length === 0) yield* settle
      yield* Fiber.interrupt(running)
      expect(judge.signals[0]?.aborted).toBe(true)
      expect(textIn(yield* messagesOf())).toBe("Begin.One.")
      expect(yield* objectiveOf(agent)).toMatchObject({ runsUsed: 0 })
    }).pipe(inMemory)
  )

  it.effect("ends with the scope of a hot run, and leaves no fiber", () =>
    Effect.gen(function* () {
      const judge = silent(true)
      const stopped: Array<string> = []
      const scorer = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => stopped.push("scorer")))
      for (const agent of [worker(judge.model), worker(undefined, { scorer })]) {
        yield* setObjective(agent)
        const scope = yield* Scope.make()
        const supervisor = yield* Supervisor.track
        const output = yield* Agent.run(agent, "Begin.", { memory }).pipe(
          Effect.provideService(Scope.Scope, scope),
          Effect.supervised(supervisor)
        )
        const reading = yield* Effect.fork(read(output.fullStream))
        yield* settle
        yield* settle
        yield* Scope.close(scope, Exit.void)
        yield* settle
        expect(yield* supervisor.value).toHaveLength(0)
        const { chunks } = yield* Fiber.join(reading)
        expectGrammar(chunks)
        expect(finishOf(chunks).stepResult.reason).toBe("aborted")
      }
      expect(judge.signals.map(({ aborted }) => aborted)).toEqual([true])
      expect(stopped).toEqual(["scorer"])
    }).pipe(inMemory)
  )

  it.effect("leaves no fiber behind when the judge was in time, nor when it was not", () =>
    Effect.gen(function* () {
      const { agent } = judgedBy([reply("One."), reply("Two.")], [verdict(false), verdict(true)], {
        timeout: "1 hour"
      })
      yield* setObjective(agent)
      yield* leavingNothing(runIn(agent))
      const slow = worker(ScriptedModel.make([[hang]]), { timeout: "1 second" })
      yield* setObjective(slow)
      yield* leavingNothing(inTime(runIn(slow)))
    }).pipe(inMemory)
  )
})

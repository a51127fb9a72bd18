/** Whatever happens in whatever order: nothing is lost, nothing is done twice, nothing is left behind. */
import { expect, it } from "@effect/vitest"
import { Task } from "eddy"
import { Effect, FastCheck, Logger, type Scope, Supervisor, TestContext } from "effect"
import { Broken } from "../support/broken.js"
import { type Faulty, faulty } from "./faultyStore.js"
import {
  breathe,
  dispatch,
  type Executor,
  executor,
  type Process,
  pass,
  type Stores,
  start,
  stores,
  within
} from "./kit.js"

const kinds = ["instant", "slow", "failing", "suspending", "hanging", "stubborn", "yielding"] as const

type Step =
  | {
      readonly do: "dispatch"
      readonly kind: (typeof kinds)[number]
      readonly by: number
      readonly agent: number
    }
  | { readonly do: "cancel" | "resume"; readonly by: number; readonly task: number }
  | { readonly do: "crash" | "end" | "stumble" | "recover"; readonly by: number }
  | { readonly do: "pass"; readonly seconds: number }
  | { readonly do: "breathe" }

const by = FastCheck.nat({ max: 1 })

const step: FastCheck.Arbitrary<Step> = FastCheck.oneof(
  {
    weight: 6,
    arbitrary: FastCheck.record({
      do: FastCheck.constant("dispatch" as const),
      kind: FastCheck.constantFrom(...kinds),
      by,
      agent: FastCheck.nat({ max: 1 })
    })
  },
  {
    weight: 4,
    arbitrary: FastCheck.record({
      do: FastCheck.constantFrom("cancel" as const, "resume" as const),
      by,
      task: FastCheck.nat({ max: 30 })
    })
  },
  {
    weight: 1,
    arbitrary: FastCheck.record({
      do: FastCheck.constantFrom("crash" as const, "end" as const, "stumble" as const, "recover" as const),
      by
    })
  },
  {
    weight: 2,
    arbitrary: FastCheck.record({
      do: FastCheck.constant("pass" as const),
      seconds: FastCheck.constantFrom(0, 1, 2, 6, 20)
    })
  },
  { weight: 1, arbitrary: FastCheck.constant({ do: "breathe" as const }) }
)

interface Life {
  readonly process: Process
  readonly store: Faulty
  isAlive: boolean
}

/** What may be told of one task by one process, in this order. */
const grammar =
  /^((running|resumed)(suspended|completed|failed|cancelled|$)|suspended|completed|failed|cancelled)*$/

const settled = /completed|failed|cancelled/g

/** All that goes on in two processes and those that take their place. */
const world = Effect.gen(function* () {
  const shared = yield* stores
  const latch = yield* Effect.makeLatch()
  const lives: Array<Life> = []
  /** Tools at work, by task, of processes that live. */
  const atWork = new Map<string, number>()
  const wrong: Array<string> = []
  const ends = new Map<string, string>()

  const watched: Stores["tasks"] = {
    ...shared.tasks,
    update: (id, expected, change) =>
      Effect.tap(shared.tasks.update(id, expected, change), isAgreed =>
        Effect.sync(() => {
          if (!isAgreed || change.status === undefined) return
          const before = ends.get(id)
          if (before !== undefined) wrong.push(`${id} was ${before} and became ${change.status}`)
          if (Task.isSettled(change.status)) ends.set(id, change.status)
        })
      )
  }

  const toolOf = (life: { isAlive: boolean }): Executor =>
    executor(({ resumeData, suspend, task }) => {
      const work = (): Effect.Effect<unknown, unknown> => {
        switch (task.args["kind"]) {
          case "slow":
            return Effect.sleep("3 seconds")
          case "failing":
            return Effect.fail(new Broken({ message: "no luck" }))
          case "suspending":
            return resumeData === undefined ? suspend("x") : Effect.succeed(resumeData)
          case "hanging":
            return Effect.never
          case "stubborn":
            return Effect.uninterruptible(latch.await)
          case "yielding":
            return Effect.repeatN(Effect.yieldNow(), 3)
          default:
            return Effect.succeed(1)
        }
      }
      // A tool that was told to stop and does not is nobody's work any more.
      const counts = task.args["kind"] !== "stubborn"
      const add = (number: number) =>
        Effect.sync(() => {
          if (!counts || !life.isAlive) return
          const now = (atWork.get(task.id) ?? 0) + number
          atWork.set(task.id, now)
          if (now > 1) wrong.push(`${task.id} ran twice at the same time`)
        })
      return Effect.acquireUseRelease(add(1), work, () => add(-1))
    })

  const begin = (index: number) =>
    Effect.gen(function* () {
      const store = faulty({ ...shared, tasks: watched })
      const process = yield* start(
        {
          globalConcurrency: 3,
          perAgentConcurrency: 2,
          defaultRetries: { retryDelay: 500 },
          shutdown: { grace: 1000 }
        },
        store
      )
      const life: Life = { process, store, isAlive: true }
      for (const agent of ["agent 0", "agent 1"]) {
        yield* process.manager.register(agent, new Map([["look", toolOf(life)]]))
      }
      lives.push(life)
      current[index] = life
    })
  const current: Array<Life> = []
  yield* begin(0)
  yield* begin(1)

  const ids: Array<string> = []
  let calls = 0

  const take = (next: Step): Effect.Effect<void, unknown, Scope.Scope> => {
    switch (next.do) {
      case "breathe":
        return breathe
      case "pass":
        return pass(`${next.seconds} seconds`)
      case "stumble":
        return Effect.sync(() => void current[next.by]?.store.faults.set("update", "loses its answer"))
      case "recover":
        return Effect.sync(() => void current[next.by]?.store.faults.clear())
      default:
    }
    const life = current[next.by]
    if (life === undefined) return Effect.die("no process")
    const { process } = life
    switch (next.do) {
      case "dispatch": {
        const { agent, kind } = next
        const more = { agentId: `agent ${agent}`, args: { kind }, maxRetries: 1, timeoutMs: 5000 }
        return Effect.flatMap(dispatch(process, `${calls++}`, toolOf(life), more), ({ taskId }) =>
          Effect.sync(() => void ids.push(taskId))
        )
      }
      case "cancel":
        return Effect.asVoid(
          Effect.forkScoped(Effect.ignore(process.background.cancel(ids[next.task] ?? "")))
        )
      case "resume":
        return Effect.asVoid(
          Effect.forkScoped(Effect.ignore(process.background.resume(ids[next.task] ?? "", "y")))
        )
      case "crash":
        life.isAlive = false
        life.store.faults.set("all", "fails")
        // What it was at is at work no longer.
        atWork.clear()
        return begin(next.by)
      case "end":
        return Effect.zipRight(within(process.background.shutdown), begin(next.by))
    }
  }

  const check = Effect.gen(function* () {
    for (const { isAlive, store } of lives) if (isAlive) store.faults.clear()
    yield* latch.open
    for (let quarter = 0; quarter < 8; quarter++) yield* pass("15 seconds")
    const { tasks } = yield* shared.tasks.list({ perPage: 1000 })
    expect(tasks.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    for (const { args, status } of tasks) {
      if (status !== "suspended") expect(status).toMatch(/completed|failed|timed_out|cancelled/)
      else expect(args["kind"]).toBe("suspending")
    }
    expect(wrong).toEqual([])
    for (const { process } of lives) {
      for (const [index] of ids.entries()) {
        const own = process.told
          .filter(event => event.endsWith(` ${index}`))
          .map(event => event.split(" ")[0])
        expect(own.join("")).toMatch(grammar)
        expect(own.join("").match(settled)?.length ?? 0).toBeLessThanOrEqual(1)
      }
    }
    // Every slot is free.
    for (const { process } of current) {
      const before = process.told.length
      for (const agent of [0, 0, 1]) {
        const args = { kind: "hanging" }
        const tool = executor(() => Effect.never)
        yield* dispatch(process, "last", tool, { agentId: `agent ${agent}`, args, timeoutMs: 1 })
      }
      expect(process.told.slice(before)).toEqual(["running last", "running last", "running last"])
    }
    yield* pass("1 seconds")
  })
  return { check, take }
})

const scenario = (steps: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    const supervisor = yield* Supervisor.track
    const story = Effect.gen(function* () {
      const { check, take } = yield* world
      for (const next of steps) yield* take(next)
      yield* check
    })
    yield* Effect.supervised(Effect.scoped(story), supervisor)
    yield* breathe
    expect(yield* supervisor.value).toHaveLength(0)
  }).pipe(Effect.provide([TestContext.TestContext, Logger.remove(Logger.defaultLogger)]))

const runs = Number(process.env["INTERLEAVINGS"] ?? 8)

it(
  "tasks of two processes, and of those that take their place",
  async () => {
    await FastCheck.assert(
      FastCheck.asyncProperty(FastCheck.array(step, { minLength: 5, maxLength: 40, size: "max" }), steps =>
        Effect.runPromise(scenario(steps))
      ),
      { numRuns: runs }
    )
  },
  2000 * runs + 20_000
)

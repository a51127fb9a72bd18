/** Options of the manager: what cannot work is refused by its name when the layer is built; what is left out has a default. */
import { describe, expect, it } from "@effect/vitest"
import { BackgroundTasks, TaskStore, ThreadStore } from "eddy"
import { Config, ConfigProvider, Context, Effect, Either, Layer } from "effect"
import { agentSettingsOf, settingsOf } from "../../src/background/settings.js"
import * as TaskManager from "../../src/background/TaskManager.js"
import { dispatch, giving, pass, start, statuses } from "./kit.js"

const memory = Layer.merge(Layer.fresh(TaskStore.layerMemory), Layer.fresh(ThreadStore.layerMemory))

/** Options as they come from a program without types, or from a file. */
const build = (options: object) =>
  Effect.either(Effect.scoped(Layer.build(BackgroundTasks.layer(options).pipe(Layer.provide(memory)))))

const noTimes = [0, -1, Number.NaN, Number.POSITIVE_INFINITY, "soon", 2 ** 31, null]
const noCounts = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "2"]

const at = (path: string, value: unknown): object => {
  const [first = "", ...rest] = path.split(".")
  return { [first]: rest.length === 0 ? value : at(rest.join("."), value) }
}

const refused: ReadonlyArray<readonly [string, ReadonlyArray<unknown>]> = [
  ["enabled", ["yes", 1]],
  ["globalConcurrency", noCounts],
  ["perAgentConcurrency", noCounts],
  ["backpressure", ["drop", ""]],
  ["defaultTimeout", noTimes.slice(0, -1)],
  ["defaultRetries", [3, "often", []]],
  ["defaultRetries.maxRetries", [-1, 1.5, Number.POSITIVE_INFINITY, "2"]],
  ["defaultRetries.retryDelay", noTimes.slice(0, -1)],
  ["defaultRetries.backoffMultiplier", [0, 0.5, Number.NaN, "2", Number.POSITIVE_INFINITY]],
  ["defaultRetries.maxRetryDelay", noTimes.slice(0, -1)],
  ["defaultRetries.retryableErrors", [true, "all"]],
  ["waitTimeout", noTimes],
  ["progressInterval", noTimes.slice(0, -1)],
  ["progressThrottle", noTimes],
  ["cleanup", [true, 3]],
  ["cleanup.completed", noTimes.slice(0, -1)],
  ["cleanup.other", noTimes.slice(0, -1)],
  ["cleanup.interval", noTimes.slice(0, -1)],
  ["recoverOnStart", ["yes"]],
  ["lease", noTimes.slice(0, -1)],
  ["shutdown", [true]],
  ["shutdown.grace", noTimes.slice(0, -1)],
  ["shutdown.unfinished", ["cancelled"]],
  ["onTaskComplete", [1]],
  ["onTaskFailed", ["f"]],
  ["onTaskCancelled", [{}]]
]

describe("a manager refuses by its name", () => {
  for (const [field, values] of refused) {
    it.effect(`\`${field}\` that cannot work`, () =>
      Effect.gen(function* () {
        for (const value of values) {
          const built = yield* build(at(field, value))
          expect(built, String(value)).toMatchObject(Either.left({ _tag: "InvalidConfiguration", field }))
        }
      })
    )
  }

  for (const field of ["concurency", "cleanup.age", "shutdown.wait", "defaultRetries.retries"]) {
    it.effect(`an option that there is not: ${field}`, () =>
      Effect.gen(function* () {
        const built = yield* build(at(field, 1))
        expect(Either.isLeft(built) && built.left._tag).toBe("InvalidConfiguration")
        expect(Either.isLeft(built) && built.left.message).toContain(field.split(".").at(-1))
      })
    )
  }
})

it("what is left out has its default", () => {
  const { callbacks, retry, ...settings } = settingsOf({})
  expect(settings).toEqual({
    enabled: true,
    globalConcurrency: 10,
    perAgentConcurrency: 5,
    backpressure: "queue",
    timeoutMs: 300_000,
    maxRetries: 0,
    waitTimeoutMs: undefined,
    progressIntervalMs: 3000,
    progressThrottleMs: undefined,
    cleanup: { completedMs: 3_600_000, otherMs: 86_400_000, intervalMs: 60_000 },
    recoverOnStart: true,
    leaseMs: 15_000,
    shutdown: { graceMs: 5000, unfinished: "pending" }
  })
  expect(retry).toMatchObject({ _tag: "Backoff", delayMs: 1000, multiplier: 2, maxDelayMs: 30_000 })
  expect(callbacks).toEqual({ onComplete: undefined, onFailed: undefined, onCancelled: undefined })
})

it("times are numbers of milliseconds, or texts", () => {
  expect(settingsOf({ defaultTimeout: 20, lease: "3 seconds" })).toMatchObject({
    timeoutMs: 20,
    leaseMs: 3000
  })
})

describe("an agent refuses by its name", () => {
  for (const [field, value] of [
    ["backgroundTasks.disabled", "no"],
    ["backgroundTasks.tools", 3],
    ["backgroundTasks.concurrency", 0],
    ["backgroundTasks.waitTimeout", -1],
    ["backgroundTasks.tools.look.timeout", 0],
    ["backgroundTasks.tools.look.retries", -1],
    ["backgroundTasks.tools.look.waitTimeout", Number.NaN],
    ["backgroundTasks.tools.look.enabled", "yes"]
  ] as const) {
    it(`\`${field}\` that cannot work`, () => {
      const options = at(field.replace("backgroundTasks.", ""), value)
      expect(() => agentSettingsOf(options)).toThrow(
        expect.objectContaining({ _tag: "InvalidConfiguration", field })
      )
    })
  }
})

it.effect("options may come from configuration", () =>
  Effect.gen(function* () {
    const context = yield* Layer.build(
      BackgroundTasks.layerConfig({ globalConcurrency: Config.integer("TASKS") }).pipe(Layer.provide(memory))
    )
    expect(Context.get(context, TaskManager.TaskManager).settings.globalConcurrency).toBe(3)
  }).pipe(Effect.scoped, Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["TASKS", "3"]]))))
)

describe("settled tasks", () => {
  it.scoped("are deleted when they are old enough, and looked for as often as was said", () =>
    Effect.gen(function* () {
      const process = yield* start({ cleanup: { completed: 10_000, other: 30_000, interval: 20_000 } })
      yield* dispatch(process, "a", giving(1))
      const failed = yield* dispatch(process, "b", { ...giving(1), execute: () => Effect.fail("x") })
      yield* process.background.await(failed.taskId)
      yield* pass(19_999)
      expect(yield* statuses(process)).toEqual(["completed a", "failed b"])
      yield* pass(1)
      expect(yield* statuses(process)).toEqual(["failed b"])
      yield* pass(20_000)
      expect(yield* statuses(process)).toEqual([])
    })
  )

  it.scoped("are deleted when somebody asks for it; tasks that have not settled never are", () =>
    Effect.gen(function* () {
      const process = yield* start({ cleanup: { completed: 1000, other: 1000, interval: "1 hours" } })
      yield* dispatch(process, "a", giving(1))
      yield* dispatch(process, "b", { ...giving(1), execute: ({ suspend }) => suspend("x") })
      yield* pass(999)
      expect(yield* process.background.cleanup).toBe(0)
      yield* pass(1)
      expect(yield* process.background.cleanup).toBe(1)
      expect(yield* process.background.cleanup).toBe(0)
      expect(yield* statuses(process)).toEqual(["suspended b"])
    })
  )
})

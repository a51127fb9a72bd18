/** How background tasks are configured on the promise face: every refusal names the option as it is written there. */
import {
  Agent,
  type AgentOptions,
  BackgroundTaskManager,
  type BackgroundTasksOptions,
  createTool,
  Eddy,
  InMemoryStore,
  InvalidConfiguration,
  LibSQLStore,
  Mastra,
  type Storage,
  StorageError,
  type StreamOptions,
  type ToolBackground
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import { flush, memoryLogger, refuseUnhandledRejections } from "../support/readers.js"

refuseUnhandledRejections()

const model = () => ScriptedModel.make([ScriptedModel.reply("done")])

const refusal = (act: () => unknown): InvalidConfiguration => {
  try {
    act()
  } catch (error) {
    if (error instanceof InvalidConfiguration) return error
    throw error
  }
  return expect.fail("nothing was thrown")
}

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail("nothing was rejected"),
    (error: unknown) => error
  )

type Row = readonly [options: unknown, field: string, word: string]

/** What is no time: zero, less, none at all, a text, and more than timers can. */
const times = (path: ReadonlyArray<string>): ReadonlyArray<Row> =>
  [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, "30 seconds", null].map(value => [
    path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value),
    path.join("."),
    "milliseconds"
  ])

const counts = (path: ReadonlyArray<string>): ReadonlyArray<Row> =>
  [-1, 1.5, Number.NaN, "2", 1001].map(value => [
    path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value),
    path.join("."),
    "whole number"
  ])

const named = (field: string): string => `\`${field}\``

describe("of a container", () => {
  const given = (backgroundTasks: unknown) => () =>
    new Eddy({ storage: new InMemoryStore(), backgroundTasks: backgroundTasks as BackgroundTasksOptions })

  const rows: ReadonlyArray<Row> = [
    ...times(["defaultTimeoutMs"]),
    ...times(["waitTimeoutMs"]),
    ...times(["progressIntervalMs"]),
    ...times(["progressThrottleMs"]),
    ...times(["leaseMs"]),
    ...times(["cleanup", "completedTtlMs"]),
    ...times(["cleanup", "failedTtlMs"]),
    ...times(["cleanup", "cleanupIntervalMs"]),
    ...times(["shutdown", "graceMs"]),
    ...times(["defaultRetries", "retryDelayMs"]),
    ...times(["defaultRetries", "maxRetryDelayMs"]),
    ...counts(["defaultRetries", "maxRetries"]),
    [{ enabled: "yes" }, "enabled", "true or false"],
    [{ globalConcurrency: 0 }, "globalConcurrency", "at least 1"],
    [{ globalConcurrency: 1.5 }, "globalConcurrency", "at least 1"],
    [{ perAgentConcurrency: 0 }, "perAgentConcurrency", "at least 1"],
    [{ perAgentConcurrency: Number.POSITIVE_INFINITY }, "perAgentConcurrency", "at least 1"],
    [{ backpressure: "drop" }, "backpressure", "queue, reject, fallback-sync"],
    [{ recoverOnStart: 1 }, "recoverOnStart", "true or false"],
    [{ defaultRetries: { backoffMultiplier: 0.5 } }, "defaultRetries.backoffMultiplier", "at least 1"],
    [{ defaultRetries: { retryableErrors: true } }, "defaultRetries.retryableErrors", "function"],
    [{ defaultRetries: 3 }, "defaultRetries", "maxRetries, retryDelayMs"],
    [{ cleanup: [] }, "cleanup", "completedTtlMs"],
    [{ shutdown: "fast" }, "shutdown", "graceMs"],
    [{ shutdown: { unfinished: "lost" } }, "shutdown.unfinished", "pending, failed"],
    [{ onTaskComplete: "log" }, "onTaskComplete", "function"],
    [{ onTaskFailed: {} }, "onTaskFailed", "function"],
    [{ onTaskCancelled: 1 }, "onTaskCancelled", "function"]
  ]

  it.each(rows)("%j is refused as %s", (options, name, word) => {
    const { field, message } = refusal(given(options))
    expect(field).toBe(`backgroundTasks.${name}`)
    expect(message).toContain(named(`backgroundTasks.${name}`))
    expect(message).toContain(word)
  })

  it.each([
    [{ recoverStaleTasksOnStart: true }, "recoverStaleTasksOnStart", "recoverOnStart"],
    [{ defaultTimeout: 10 }, "defaultTimeout", "defaultTimeoutMs"],
    [{ cleanup: { completed: 10 } }, "completed", "completedTtlMs"],
    [{ defaultRetries: { retries: 1 } }, "retries", "maxRetries"],
    [{ shutdown: { grace: 1 } }, "grace", "graceMs"]
  ])("%j has an option that nobody reads", (options, field, known) => {
    const error = refusal(given(options))
    expect(error.field).toBe(field)
    expect(error.message).toContain(known)
  })

  it("that is no object is refused", () => {
    expect(refusal(given(true))).toMatchObject({ field: "backgroundTasks" })
  })

  it("is refused also when tasks are not enabled", () => {
    expect(refusal(given({ enabled: false, leaseMs: 0 }))).toMatchObject({ field: "backgroundTasks.leaseMs" })
  })

  it("needs a store when tasks are enabled", () => {
    const error = refusal(() => new Eddy({ backgroundTasks: { enabled: true } }))
    expect(error.field).toBe("storage")
    expect(error.message).toContain("new InMemoryStore()")
    expect(new Eddy({ backgroundTasks: { enabled: false } }).backgroundTaskManager).toBeUndefined()
  })

  it("gives a manager when tasks are enabled, and only then", async () => {
    const storage = new InMemoryStore()
    expect(new Eddy({ storage }).backgroundTaskManager).toBeUndefined()
    expect(new Eddy({ storage, backgroundTasks: {} }).backgroundTaskManager).toBeUndefined()
    const mastra = new Mastra({
      storage,
      backgroundTasks: {
        enabled: true,
        globalConcurrency: 10,
        perAgentConcurrency: 5,
        backpressure: "queue",
        defaultTimeoutMs: 300_000,
        defaultRetries: {
          maxRetries: 2,
          retryDelayMs: 10,
          backoffMultiplier: 1,
          maxRetryDelayMs: 20,
          retryableErrors: () => true
        },
        waitTimeoutMs: 10,
        progressIntervalMs: 10,
        progressThrottleMs: 10,
        cleanup: { completedTtlMs: 10, failedTtlMs: 10, cleanupIntervalMs: 10 },
        recoverOnStart: true,
        leaseMs: 1000,
        shutdown: { graceMs: 10, unfinished: "failed" },
        onTaskComplete: () => undefined,
        onTaskFailed: () => undefined,
        onTaskCancelled: () => undefined
      }
    })
    expect(mastra.backgroundTaskManager).toBeInstanceOf(BackgroundTaskManager)
    await mastra.shutdown()
  })

  it("begins with nothing when an agent of it is none", () => {
    let made = 0
    const storage: Storage = {
      id: "counted",
      layer: Layer.unwrapEffect(
        Effect.sync(() => {
          made++
          return new InMemoryStore().layer
        })
      )
    }
    const agents = { broken: {} as Agent }
    expect(refusal(() => new Eddy({ agents, storage, backgroundTasks: { enabled: true } }))).toMatchObject({
      field: "agents.broken"
    })
    expect(made).toBe(0)
  })
})

describe("of a store that cannot be reached", () => {
  it("every call rejects with its error, which is logged once", async () => {
    const broken = new StorageError({ operation: "connect", message: "Nobody answers." })
    const logger = memoryLogger()
    const agent = new Agent({ id: "agent", model: model() })
    const eddy = new Eddy({
      agents: { agent },
      storage: { id: "broken", layer: Layer.fail(broken) },
      backgroundTasks: { enabled: true },
      logger
    })
    const manager = eddy.backgroundTaskManager ?? expect.fail("no manager")
    const calls = [
      manager.getTask("t"),
      manager.listTasks(),
      manager.resume("t"),
      manager.cancel("t"),
      manager.waitFor("t"),
      manager.cleanup(),
      manager.registerTaskContext("t", { executor: () => undefined }),
      eddy.threads.list(),
      agent.generate("go"),
      agent.stream("go"),
      manager.stream().getReader().read()
    ]
    for (const call of calls) expect(await rejection(call)).toBe(broken)
    const errors = logger.lines.filter(([level]) => level === "error")
    expect(errors).toHaveLength(1)
    expect(errors[0]?.[1]).toContain("Nobody answers.")
    await eddy.shutdown()
  })

  it("a database that cannot be opened is one", async () => {
    const logger = memoryLogger()
    const eddy = new Eddy({
      storage: new LibSQLStore({ url: "file:/no/such/folder/eddy.db" }),
      backgroundTasks: { enabled: true },
      logger
    })
    const error = await rejection(eddy.backgroundTaskManager?.listTasks() ?? expect.fail("no manager"))
    expect(error).toBeInstanceOf(StorageError)
    expect(await rejection(eddy.threads.list())).toBe(error)
    expect(logger.lines.filter(([level]) => level === "error")).toHaveLength(1)
    await eddy.shutdown()
  })

  it("a container that is shut down meanwhile says nothing", async () => {
    const logger = memoryLogger()
    const eddy = new Eddy({
      storage: { id: "slow", layer: Layer.unwrapEffect(Effect.never) },
      backgroundTasks: { enabled: true },
      logger
    })
    const asked = eddy.backgroundTaskManager?.listTasks() ?? expect.fail("no manager")
    const refused = rejection(asked)
    await eddy.shutdown()
    expect(await refused).toMatchObject({ _tag: "InvalidConfiguration", field: "runtime" })
    expect(logger.lines).toEqual([])
  })
})

describe("of an agent", () => {
  const given = (backgroundTasks: unknown) => () =>
    new Agent({
      id: "agent",
      model: model(),
      backgroundTasks: backgroundTasks as NonNullable<AgentOptions["backgroundTasks"]>
    })

  const rows: ReadonlyArray<Row> = [
    ...times(["waitTimeoutMs"]),
    ...times(["tools", "look", "timeoutMs"]),
    ...times(["tools", "look", "waitTimeoutMs"]),
    ...counts(["tools", "look", "maxRetries"]),
    [{ tools: { look: { enabled: 1 } } }, "tools.look.enabled", "true or false"],
    [{ tools: { look: "yes" } }, "tools.look", "timeoutMs"],
    [{ tools: "some" }, "tools", '"all"'],
    [{ tools: ["look"] }, "tools", '"all"'],
    [{ disabled: "no" }, "disabled", "true or false"],
    [{ concurrency: 0 }, "concurrency", "at least 1"],
    [{ onTaskComplete: 1 }, "onTaskComplete", "function"],
    [{ onTaskFailed: 1 }, "onTaskFailed", "function"],
    [{ onTaskCancelled: 1 }, "onTaskCancelled", "function"]
  ]

  it.each(rows)("%j is refused as %s", (options, name, word) => {
    const { field, message } = refusal(given(options))
    expect(field).toBe(`backgroundTasks.${name}`)
    expect(message).toContain(named(`backgroundTasks.${name}`))
    expect(message).toContain(word)
  })

  it.each([
    [{ enabled: true }, "enabled", "disabled"],
    [{ waitTimeout: 10 }, "waitTimeout", "waitTimeoutMs"],
    [{ tools: { look: { timeout: 1 } } }, "timeout", "timeoutMs"],
    [{ tools: { look: { retries: 1 } } }, "retries", "maxRetries"]
  ])("%j has an option that nobody reads", (options, field, known) => {
    const error = refusal(given(options))
    expect(error.field).toBe(field)
    expect(error.message).toContain(known)
  })
})

describe("of a tool", () => {
  const given = (background: unknown) => () =>
    createTool({ id: "look", background: background as ToolBackground, execute: () => "seen" })

  const rows: ReadonlyArray<Row> = [
    ...times(["timeoutMs"]),
    ...times(["waitTimeoutMs"]),
    ...counts(["maxRetries"]),
    [{ enabled: 1 }, "enabled", "true or false"],
    [{ onComplete: 1 }, "onComplete", "function"],
    [{ onFailed: 1 }, "onFailed", "function"],
    [{ onCancelled: 1 }, "onCancelled", "function"]
  ]

  it.each(rows)("%j is refused as %s", (options, name, word) => {
    const { field, message } = refusal(given(options))
    expect(field).toBe(`background.${name}`)
    expect(message).toContain(named(`background.${name}`))
    expect(message).toContain(word)
  })

  it.each([
    [{ timeout: 1 }, "timeout", "timeoutMs"],
    [{ retries: 1 }, "retries", "maxRetries"]
  ])("%j has an option that nobody reads", (options, field, known) => {
    const error = refusal(given(options))
    expect(error.field).toBe(field)
    expect(error.message).toContain(known)
  })

  it("that the client executes cannot run in the background", () => {
    const error = refusal(() => createTool({ id: "look", background: { enabled: true } }))
    expect(error.field).toBe("background.enabled")
    expect(error.message).toContain("`execute`")
  })

  it("whose resume schema is none is refused by that name", () => {
    const error = refusal(() => createTool({ id: "look", resumeSchema: 1 as never, execute: () => "seen" }))
    expect(error.field).toBe("resumeSchema")
  })
})

describe("of a run", () => {
  const agent = new Agent({ id: "agent", model: model() })
  const idle = (untilIdle: unknown): StreamOptions => ({
    untilIdle: untilIdle as NonNullable<StreamOptions["untilIdle"]>
  })

  it.each([
    ...[0, -1, "1 minute"].map(maxIdleMs => [{ maxIdleMs }, "untilIdle.maxIdleMs", "milliseconds"] as const),
    [{ batch: "some" }, "untilIdle.batch", '"all"'],
    [{ maxIdle: 1 }, "maxIdle", "maxIdleMs"],
    [3, "untilIdle", "maxIdleMs"]
  ] as const)("untilIdle: %j is refused as %s", async (untilIdle, field, word) => {
    const error = await rejection(agent.stream("go", idle(untilIdle)))
    expect(error).toBeInstanceOf(InvalidConfiguration)
    expect(error).toMatchObject({ field, message: expect.stringContaining(word) })
    expect(
      refusal(() => new Agent({ id: "agent", model: model(), defaultOptions: idle(untilIdle) })).field
    ).toBe(field)
  })

  it("generate is one turn: it refuses to wait, and ignores a default", async () => {
    for (const untilIdle of [true, { maxIdleMs: 10 }] as const) {
      expect(await rejection(agent.generate("go", { untilIdle }))).toMatchObject({
        _tag: "InvalidConfiguration",
        field: "untilIdle",
        message: expect.stringContaining("stream")
      })
    }
    const waiting = new Agent({ id: "agent", model: model(), defaultOptions: { untilIdle: true } })
    expect((await waiting.generate("go")).text).toBe("done")
    const other = new Agent({ id: "agent", model: model() })
    expect((await other.generate("go", { untilIdle: false })).text).toBe("done")
  })

  it("until idle is an ordinary run where there are no background tasks", async () => {
    const asked = new Agent({ id: "agent", model: model() })
    const output = await asked.stream("go", { untilIdle: true })
    expect(await output.text).toBe("done")
    expect(await output.turns).toHaveLength(1)
    const shorter = new Agent({ id: "agent", model: model() })
    expect(await (await shorter.streamUntilIdle("go")).text).toBe("done")
    await flush()
  })
})

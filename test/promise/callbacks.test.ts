/** Callbacks of a run: which is called, when and how often; and that one which fails changes nothing but the log. */
import { Agent, type Chunk, createTool, Eddy, type FullOutput, type Step } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import {
  collect,
  delta,
  flush,
  memoryLogger,
  modelOf,
  refuseUnhandledRejections,
  typesOf
} from "../support/readers.js"

refuseUnhandledRejections()

const consoleMethods = ["log", "info", "warn", "error", "debug", "trace"] as const

beforeEach(() => {
  for (const method of consoleMethods) vi.spyOn(console, method).mockImplementation(() => undefined)
})

afterEach(() => {
  const said = consoleMethods.flatMap(method => vi.mocked(console[method]).mock.calls)
  vi.restoreAllMocks()
  expect(said).toEqual([])
})

const look = createTool({ id: "look", execute: () => "found" })

const usage = { inputTokens: 2, outputTokens: 1, totalTokens: 3 }

const firstTurn = [ScriptedModel.toolCall("c1", "look", {}), ScriptedModel.finish("tool-calls", usage)]

const endings = {
  success: () => ScriptedModel.make([firstTurn, [delta("a", "done"), ScriptedModel.finish("stop", usage)]]),
  failure: () => ScriptedModel.make([firstTurn, [delta("a", "do"), { type: "error", error: "overloaded" }]]),
  abort: () => ScriptedModel.make([firstTurn, [delta("a", "do"), ScriptedModel.hang]])
}

type Ending = keyof typeof endings

/** An agent in a container with a log to look at. */
const inContainer = (ending: Ending) => {
  const logger = memoryLogger()
  const agent = new Agent({ id: "hand", model: endings[ending](), tools: { look } })
  new Eddy({ agents: { agent }, logger })
  return { agent, lines: logger.lines }
}

const spies = () => ({
  onChunk: vi.fn((_: Chunk): unknown => undefined),
  onStepFinish: vi.fn((_: Step): unknown => undefined),
  onFinish: vi.fn((_: FullOutput): unknown => undefined),
  onError: vi.fn((_: { readonly error: Error; readonly output: FullOutput }): unknown => undefined),
  onAbort: vi.fn((_: { readonly error: Error; readonly output: FullOutput }): unknown => undefined)
})

/** Runs to the end; a run that hangs is stopped once it has said something in its second step. */
const runToEnd = async (agent: Agent, ending: Ending, callbacks: Parameters<Agent["stream"]>[1]) => {
  const output = await agent.stream("Look!", callbacks)
  if (ending === "abort") {
    for await (const text of output.textStream) {
      expect(text).toBe("do")
      break
    }
    await output.cancel("enough")
  }
  const full = await output.getFullOutput()
  const told = await collect(output.fullStream)
  await flush()
  return { output, full, told }
}

describe("exactly one callback tells of the end", () => {
  it("a run that succeeds: onFinish with everything", async () => {
    const { agent, lines } = inContainer("success")
    const { onAbort, onChunk, onError, onFinish, onStepFinish } = spies()
    const { full, told } = await runToEnd(agent, "success", {
      onAbort,
      onChunk,
      onError,
      onFinish,
      onStepFinish
    })
    expect(onFinish.mock.calls).toEqual([[full]])
    expect(full).toMatchObject({
      finishReason: "stop",
      totalUsage: { inputTokens: 4, outputTokens: 2, totalTokens: 6 }
    })
    expect(onError).not.toHaveBeenCalled()
    expect(onAbort).not.toHaveBeenCalled()
    expect(onStepFinish.mock.calls).toEqual(full.steps.map(step => [step]))
    expect(full.steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"])
    expect(onChunk.mock.calls).toEqual(told.map(chunk => [chunk]))
    expect(lines).toEqual([])
  })

  it("a run that fails: onError with the error and what was said until then", async () => {
    const { agent, lines } = inContainer("failure")
    const { onAbort, onChunk, onError, onFinish, onStepFinish } = spies()
    const { full, output, told } = await runToEnd(agent, "failure", {
      onAbort,
      onChunk,
      onError,
      onFinish,
      onStepFinish
    })
    expect(onError.mock.calls).toEqual([[{ error: output.error, output: full }]])
    expect(onError.mock.calls[0]?.[0].error).toBe(output.error)
    expect(full).toMatchObject({ text: "do", finishReason: "error", usage })
    expect(onFinish).not.toHaveBeenCalled()
    expect(onAbort).not.toHaveBeenCalled()
    expect(onStepFinish.mock.calls).toEqual(full.steps.map(step => [step]))
    expect(onStepFinish).toHaveBeenCalledTimes(1)
    expect(onChunk.mock.calls).toEqual(told.map(chunk => [chunk]))
    expect(lines).toEqual([])
  })

  it("a run that is stopped: onAbort", async () => {
    const { agent, lines } = inContainer("abort")
    const { onAbort, onError, onFinish, onStepFinish } = spies()
    const { full, output } = await runToEnd(agent, "abort", { onAbort, onError, onFinish, onStepFinish })
    expect(onAbort.mock.calls).toEqual([[{ error: output.error, output: full }]])
    expect(full).toMatchObject({ text: "do", finishReason: "aborted", usage })
    expect(onFinish).not.toHaveBeenCalled()
    expect(onError).not.toHaveBeenCalled()
    expect(onStepFinish).toHaveBeenCalledTimes(1)
    expect(lines).toEqual([])
  })

  it("a stop condition that throws: onError", async () => {
    const { agent, lines } = inContainer("success")
    const { onAbort, onError, onFinish } = spies()
    const { told } = await runToEnd(agent, "success", {
      onAbort,
      onError,
      onFinish,
      stopWhen: () => {
        throw new RangeError("mine")
      }
    })
    expect(typesOf(told).slice(-2)).toEqual(["error", "finish"])
    expect(onError.mock.calls[0]?.[0].error.message).toContain("mine")
    expect([onError, onFinish, onAbort].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 0])
    expect(lines).toEqual([])
  })

  it("also for a run that has ended before anybody could ask", async () => {
    const { onError, onFinish } = spies()
    const agent = new Agent({ id: "hand", model: ScriptedModel.make([]) })
    const output = await agent.stream("Go!", { onError, onFinish })
    await output.getFullOutput()
    expect([onError, onFinish].map(({ mock }) => mock.calls.length)).toEqual([1, 0])
  })

  it("`generate` calls them too", async () => {
    const { agent } = inContainer("failure")
    const { onError, onFinish } = spies()
    await expect(agent.generate("Look!", { onError, onFinish })).rejects.toThrow("overloaded")
    expect([onError, onFinish].map(({ mock }) => mock.calls.length)).toEqual([1, 0])
  })
})

describe("when they are called", () => {
  it("onChunk sees each chunk before any reader, and onStepFinish comes with its chunk", async () => {
    const { agent } = inContainer("success")
    const order: Array<string> = []
    const output = await agent.stream("Look!", {
      onChunk: chunk => order.push(`called with ${chunk.type}`),
      onStepFinish: step => order.push(`step ${step.stepNumber}`)
    })
    for await (const chunk of output.fullStream) order.push(`read ${chunk.type}`)
    const types = order.flatMap(entry => (entry.startsWith("read ") ? [entry.slice(5)] : []))
    const calls = order.flatMap(entry => (entry.startsWith("called with ") ? [entry.slice(12)] : []))
    expect(calls).toEqual(types)
    let read = 0
    let called = 0
    for (const entry of order) {
      if (entry.startsWith("called")) called++
      if (entry.startsWith("read")) read++
      expect(read).toBeLessThanOrEqual(called)
    }
    const steps = order.flatMap((entry, place) =>
      entry.startsWith("step ") ? [[order[place - 1], entry]] : []
    )
    expect(steps).toEqual([
      ["called with step-finish", "step 0"],
      ["called with step-finish", "step 1"]
    ])
  })

  it("nothing waits for one that takes its time", async () => {
    const never = () => new Promise<never>(() => undefined)
    const { agent } = inContainer("success")
    const { full } = await runToEnd(agent, "success", {
      onChunk: never,
      onStepFinish: never,
      onFinish: never
    })
    expect(full.text).toBe("done")
  })

  it("one that stops the run stops it", async () => {
    const { agent } = inContainer("abort")
    const { onAbort, onError, onFinish } = spies()
    const controller = new AbortController()
    const output = await agent.stream("Look!", {
      onAbort,
      onError,
      onFinish,
      abortSignal: controller.signal,
      onStepFinish: () => controller.abort("one step will do")
    })
    expect(await output.getFullOutput()).toMatchObject({
      finishReason: "aborted",
      steps: [{ stepNumber: 0 }]
    })
    expect([onAbort, onError, onFinish].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 0])
  })
})

describe("one that fails is logged and changes nothing", () => {
  const ways: ReadonlyArray<readonly [string, () => unknown]> = [
    [
      "throws",
      () => {
        throw new RangeError("mine")
      }
    ],
    ["rejects", () => Promise.reject(new RangeError("mine"))],
    [
      "rejects later",
      async () => {
        await flush(1)
        throw new RangeError("mine")
      }
    ],
    [
      "rejects without being a Promise",
      // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
      () => ({ then: (_: unknown, reject: (cause: unknown) => void) => reject(new RangeError("mine")) })
    ]
  ]

  const cases = ways.flatMap(([way, fail]) =>
    (["success", "failure", "abort"] as const).map(ending => ({ way, ending, fail }))
  )

  it.each(cases)("$ending, each callback $way", async ({ ending, fail }) => {
    const quiet = await runToEnd(inContainer(ending).agent, ending, {
      runId: "same",
      onError: () => undefined
    })
    const { agent, lines } = inContainer(ending)
    const { full, told } = await runToEnd(agent, ending, {
      runId: "same",
      onChunk: fail,
      onStepFinish: fail,
      onFinish: fail,
      onError: fail,
      onAbort: fail
    })
    expect(typesOf(told)).toEqual(typesOf(quiet.told))
    expect({ ...full, messageId: "", response: {} }).toEqual({ ...quiet.full, messageId: "", response: {} })
    await flush()
    const last = { success: "onFinish", failure: "onError", abort: "onAbort" }[ending]
    const of = (name: string) =>
      lines.filter(([, message]) => message === `The callback ${name} failed: mine`)
    expect(of("onChunk")).toHaveLength(told.length)
    expect(of("onStepFinish")).toHaveLength(full.steps.length)
    expect(of(last)).toHaveLength(1)
    expect(lines).toHaveLength(told.length + full.steps.length + 1)
    expect(new Set(lines.map(([level]) => level))).toEqual(new Set(["warn"]))
  })

  it("that of consumeStream", async () => {
    const { agent, lines } = inContainer("failure")
    const output = await agent.stream("Look!", { onError: () => undefined })
    for (const [, fail] of ways) await output.consumeStream({ onError: fail })
    await flush()
    expect(lines).toEqual(ways.map(() => ["warn", "The callback onError failed: mine"]))
  })
})

describe("a failed run that nobody listens to", () => {
  it("is logged once, at error level", async () => {
    const { agent, lines } = inContainer("failure")
    const { output } = await runToEnd(agent, "failure", {})
    await output.text.catch(() => undefined)
    await output.consumeStream().catch(() => undefined)
    await flush()
    expect(lines).toEqual([["error", `Run ${output.runId} failed: overloaded`]])
  })

  it("a refusal before any part is one, too", async () => {
    const logger = memoryLogger()
    const agent = new Agent({
      id: "hand",
      model: modelOf(() => {
        throw new RangeError("no socket")
      })
    })
    new Eddy({ agents: { agent }, logger })
    const output = await agent.stream("Go!")
    await output.getFullOutput()
    await flush()
    expect(logger.lines).toEqual([["error", `Run ${output.runId} failed: no socket`]])
  })

  it("an aborted run is not logged", async () => {
    const { agent, lines } = inContainer("abort")
    await runToEnd(agent, "abort", {})
    expect(lines).toEqual([])
  })

  it("the default options of an agent count", async () => {
    const logger = memoryLogger()
    const { onError } = spies()
    const model = endings.failure()
    const agent = new Agent({ id: "hand", model, tools: { look }, defaultOptions: { onError } })
    new Eddy({ agents: { agent }, logger })
    await (await agent.stream("Look!")).getFullOutput()
    await flush()
    expect(onError).toHaveBeenCalledTimes(1)
    expect(logger.lines).toEqual([])
  })

  it("a logger that throws changes nothing", async () => {
    const broken = () => {
      throw new RangeError("disk full")
    }
    const agent = new Agent({ id: "hand", model: endings.failure(), tools: { look } })
    new Eddy({ agents: { agent }, logger: { debug: broken, info: broken, warn: broken, error: broken } })
    const output = await agent.stream("Look!", { onChunk: broken })
    expect(await output.getFullOutput()).toMatchObject({ text: "do", finishReason: "error" })
  })
})

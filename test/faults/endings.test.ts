/** Runs that break: every reader is told once and let go, every promise settles, nobody is woken who did not ask. */
import { Errors } from "eddy"
import type { ModelOutput } from "eddy/promise"
import { Agent } from "eddy/promise"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { finishOf, only } from "../agent/kit.js"
import {
  collect,
  collectByReader,
  flush,
  latch,
  refuseUnhandledRejections,
  typesOf,
  until
} from "../support/readers.js"
import * as Kit from "./kit.js"

refuseUnhandledRejections()

const overloaded = Object.assign(new Error("overloaded"), { statusCode: 503 })

const half = [Kit.textStart(), Kit.says("par"), Kit.says("tial")]

/** How a provider fails behind its first words; each names what stands in the chunk. */
const breaks: ReadonlyArray<readonly [what: string, answer: Kit.Answer, message: string]> = [
  ["an error part, then the end", [...half, Kit.fails(overloaded)], "overloaded"],
  ["an error part of a stream that stays open", [...half, Kit.fails(overloaded), Kit.hangs], "overloaded"],
  ["an error part, then a finish", [...half, Kit.fails(overloaded), Kit.finish("stop")], "overloaded"],
  ["two error parts", [...half, Kit.fails(overloaded), Kit.fails(new Error("later"))], "overloaded"],
  ["an error part that is a string", [...half, Kit.fails("overloaded")], "overloaded"],
  ["an error part that says nothing", [...half, Kit.fails(undefined)], "The model call failed."],
  ["a stream that fails", [...half, Kit.breaks(overloaded)], "overloaded"],
  ["a stream that fails with nothing", [...half, Kit.breaks(undefined)], "The model call failed."],
  [
    "a finish that is an error",
    [...half, Kit.textEnd(), Kit.finish("error")],
    "ended its answer with an error"
  ],
  ["the end without a finish", [...half, Kit.textEnd()], "ended before the model said that it was finished"]
]

const promises = (output: ModelOutput): ReadonlyArray<Promise<unknown>> => [
  output.text,
  output.reasoning,
  output.reasoningText,
  output.toolCalls,
  output.toolResults,
  output.usage,
  output.totalUsage,
  output.response,
  output.steps,
  output.sources,
  output.files,
  output.warnings,
  output.request,
  output.providerMetadata,
  output.consumeStream()
]

/** Every promise of a run that failed rejects with its one error. */
const expectRejected = async (output: ModelOutput, error: unknown): Promise<void> => {
  for (const one of await Promise.allSettled(promises(output))) {
    expect(one).toStrictEqual({ status: "rejected", reason: error })
  }
  expect(await output.finishReason).toBe("error")
  expect((await output.getFullOutput()).error).toBe(error)
}

describe("an answer that fails behind its first words", () => {
  it.each(breaks)("%s: readers of every hour are told once, and let go", async (_, answer, message) => {
    const { agent } = Kit.set([answer])
    const output = await agent.stream("go", Kit.once)
    let withTheError: Promise<ReadonlyArray<unknown>> | undefined
    const fromTheStart = []
    for await (const chunk of output.fullStream) {
      fromTheStart.push(chunk)
      if (chunk.type === "error") withTheError = collect(output.fullStream)
    }
    // The stream is over, and so is the run: no promise had to be touched for it.
    expect(output.status).toBe("failed")
    const after = await collectByReader(output.fullStream)
    expect(typesOf(fromTheStart)).toStrictEqual([
      "start",
      "step-start",
      "text-start",
      "text-delta",
      "text-delta",
      "text-end",
      "error",
      "finish"
    ])
    expect(await withTheError).toStrictEqual(fromTheStart)
    expect(after).toStrictEqual(fromTheStart)
    expect((await collect(output.textStream)).join("")).toBe("partial")
    const [error] = only(fromTheStart, "error").map(({ payload }) => payload.error)
    expect(error).toBeInstanceOf(Errors.ModelError)
    expect(error).toMatchObject({ message: expect.stringContaining(message) })
    expect(finishOf(fromTheStart).stepResult.reason).toBe("error")
    await expectRejected(output, error)
  })

  it("everything that was asked before it failed settles as it does afterwards", async () => {
    const { agent } = Kit.set([[...half, Kit.breaks(overloaded)]])
    const output = await agent.stream("go", Kit.once)
    const early = Promise.allSettled(promises(output))
    const error = await output.text.catch(failure => failure)
    for (const one of await early) expect(one).toStrictEqual({ status: "rejected", reason: error })
    await expectRejected(output, error)
    expect(error.cause).toBe(overloaded)
  })

  it("only its text is read: the stream ends", async () => {
    const { output } = await Kit.run([[...half, Kit.fails(overloaded)]])
    expect((await collect(output.textStream)).join("")).toBe("partial")
    expect(output.error).toMatchObject({ message: "overloaded" })
  })

  it("in the second step, with a tool behind it: what came before is told", async () => {
    const { chunks, output } = await Kit.run([
      [...Kit.text("first"), Kit.call("c1", "echo"), Kit.finish("tool-calls")],
      [...half, Kit.fails(overloaded)]
    ])
    expect(only(chunks, "tool-result")).toHaveLength(1)
    expect(await output.getFullOutput()).toMatchObject({
      text: "firstpartial",
      usage: { totalTokens: 15 },
      steps: [{ text: "first" }]
    })
  })
})

describe("a call that is refused", () => {
  const causes: ReadonlyArray<readonly [what: string, cause: unknown, message: string]> = [
    ["an error", overloaded, "overloaded"],
    ["a string", "overloaded", "overloaded"],
    ["nothing", undefined, "The model call failed."],
    ["null", null, "The model call failed."]
  ]

  it.each(causes)("with %s settles everything", async (_, refuses, message) => {
    const { chunks, output } = await Kit.run([{ refuses }])
    expect(typesOf(chunks)).toStrictEqual(["start", "step-start", "error", "finish"])
    expect(output.error).toMatchObject({ message })
    await expectRejected(output, output.error)
    expect(output.error?.cause).toBe(refuses)
  })
})

describe("what is printed", () => {
  const methods = ["log", "info", "warn", "error", "debug", "trace"] as const
  let written: Array<string> = []

  beforeEach(() => {
    written = []
    for (const method of methods) {
      vi.spyOn(console, method).mockImplementation((...words) => {
        written.push(`${method}: ${words.map(String).join(" ")}`)
      })
    }
    for (const stream of [process.stdout, process.stderr]) {
      vi.spyOn(stream, "write").mockImplementation(words => {
        written.push(String(words))
        return true
      })
    }
  })

  afterEach(() => {
    vi.restoreAllMocks()
  })

  const refusal = Object.assign(new Error("Slow down."), {
    statusCode: 429,
    isRetryable: false,
    responseHeaders: { "set-cookie": "crumbs" },
    requestBodyValues: { key: "crumbs" }
  })

  it.each([
    ["the call is refused", { refuses: refusal }],
    ["the stream fails", [...half, Kit.breaks(refusal)]],
    ["an error part", [...half, Kit.fails(refusal)]]
  ])("%s: one line of the log, and nothing beside it", async (_, answer) => {
    const { agent, lines } = Kit.set([answer])
    const output = await agent.stream("go", { maxRetries: 0 })
    await output.text.catch(() => undefined)
    await collect(output.fullStream)
    await flush()
    expect(lines).toStrictEqual([["error", `Run ${output.runId} failed: Slow down.`]])
    expect(written).toStrictEqual([])
  })

  it("without a container the line goes to the error output, and says no more than the message", async () => {
    const { model } = Kit.played([{ refuses: refusal }])
    const output = await new Agent({ id: "alone", model }).stream("go", { maxRetries: 0 })
    await output.getFullOutput()
    await until(() => written.length > 0, "something is printed")
    await flush()
    expect(written).toHaveLength(1)
    expect(written[0]).toMatch(/^error: .*level=ERROR.*failed: Slow down\./)
    expect(written[0]).not.toContain("crumbs")
    expect(written[0]).not.toMatch(/\n\s+at /)
  })

  it("whoever listens is told, and nothing is printed", async () => {
    const { model } = Kit.played([{ refuses: refusal }])
    const onError = vi.fn()
    const output = await new Agent({ id: "alone", model }).stream("go", { maxRetries: 0, onError })
    await output.getFullOutput()
    await flush()
    expect(onError.mock.calls).toStrictEqual([
      [{ error: output.error, output: await output.getFullOutput() }]
    ])
    expect(written).toStrictEqual([])
  })
})

/** That no rejection is unhandled is checked after every test of this file. */
describe("promises that nobody asks for", () => {
  const silent: ReadonlyArray<readonly [what: string, answer: Kit.Answer]> = [
    ["an error part", [Kit.says("par"), Kit.fails(overloaded)]],
    ["an answer of nothing", []],
    ["a call that is refused", { refuses: overloaded }]
  ]

  it.each(silent)("%s: only the chunks are read, and the text is asked for later", async (_, answer) => {
    const { output } = await Kit.run([answer])
    await flush(20)
    await expect(output.text).rejects.toBe(output.error)
  })

  const reasons: ReadonlyArray<readonly [what: string, reason: unknown]> = [
    ["a string", "string reason"],
    ["an error", new Error("x")],
    ["nothing", undefined],
    ["an AbortError", new DOMException("gone", "AbortError")]
  ]

  it.each(reasons)("an abort with %s", async (_, reason) => {
    const controller = new AbortController()
    const { agent } = Kit.set([[Kit.says("par"), Kit.hangs]])
    const output = await agent.stream("go", { ...Kit.once, abortSignal: controller.signal })
    const chunks = []
    for await (const chunk of output.fullStream) {
      chunks.push(chunk)
      if (chunk.type === "text-delta") controller.abort(reason)
    }
    expect(typesOf(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
    await flush(20)
    await expect(output.text).rejects.toBeInstanceOf(Errors.RunAborted)
  })

  it("a provider whose call rejects after the run was stopped", async () => {
    const gate = latch()
    const doStream = async () => {
      await gate.wait
      throw overloaded
    }
    const agent = new Agent({ id: "late", model: { ...Kit.played([]).model, doStream } })
    const output = await agent.stream("go", Kit.once)
    void output.text
    await flush()
    await output.cancel("enough")
    gate.open()
    await flush(20)
    expect(output.status).toBe("aborted")
  })
})

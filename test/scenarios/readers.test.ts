/** Scenarios that are about who reads a run, and when; and about what is asked for beside its chunks. */
import { describe, expect, it } from "vitest"
import { collect, flush, refuseUnhandledRejections, until } from "../support/readers.js"
import { scenarios } from "./all.js"
import { line } from "./line.js"
import { makeAgent, read, start } from "./replay.js"
import { linesOf, type Scenario } from "./scenario.js"

refuseUnhandledRejections()

const scenario = (id: string): Scenario => {
  const found = scenarios.find(one => one.id === id)
  if (found === undefined) expect.fail(`There is no scenario ${id}`)
  return found
}

const expected = (id: string): ReadonlyArray<string> => linesOf(scenario(id).chunks)

/** Whether a promise has settled, one turn of the event loop later. */
const hasSettled = async (promise: Promise<unknown>): Promise<boolean> => {
  let isSettled = false
  const note = () => {
    isSettled = true
  }
  promise.then(note, note)
  await flush(1)
  return isSettled
}

describe("what is asked for beside the chunks", () => {
  it("10, 11b: generate gives everything at once", async () => {
    const full = await makeAgent(scenario("10")).agent.generate("Hello")
    expect(full).toMatchObject({
      status: "success",
      text: "Hello from generate",
      toolCalls: [],
      toolResults: [],
      usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
      finishReason: "stop",
      response: { id: "r1", modelId: "brook-1" }
    })
    expect(full.steps).toHaveLength(1)
    const both = await makeAgent(scenario("11b")).agent.generate("Hello")
    expect(both.text).toBe("Checking. It is 21C in Paris.")
    expect(both.steps.map(step => step.text)).toEqual(["Checking. ", "It is 21C in Paris."])
    expect(both.toolCalls.map(({ payload }) => payload.toolName)).toEqual(["weather"])
    expect(both.toolResults.map(({ payload }) => payload.result)).toEqual([{ city: "Paris", temp: 21 }])
  })

  it("31: generate rejects with the run's error", async () => {
    const { agent, logger } = makeAgent(scenario("31"))
    await expect(agent.generate("Hello")).rejects.toThrow("network down")
    expect(logger.lines).toEqual([])
  })

  it("82, 82b: nobody has to read a stream for it", async () => {
    const { output } = await start(scenario("82"))
    expect(await output.text).toBe("Hello big world")
    const other = await start(scenario("82b"))
    const full = await other.output.getFullOutput()
    expect(Object.keys(full)).toEqual(
      expect.arrayContaining([
        "runId",
        "text",
        "toolCalls",
        "toolResults",
        "usage",
        "finishReason",
        "response",
        "steps"
      ])
    )
    expect(Object.values(full)).not.toContain(undefined)
  })

  it("86: everything settles when the run ends, and all of it at once", async () => {
    const run = await start(scenario("86"))
    const { output } = run
    const asked = [
      output.text,
      output.usage,
      output.toolCalls,
      output.steps,
      output.finishReason,
      output.response
    ]
    const settledAt: Array<number> = []
    let turn = 0
    for (const promise of asked) promise.then(() => settledAt.push(turn))
    const ticking = setInterval(() => turn++, 0)
    const chunks = await read(scenario("86"), run)
    await Promise.all(asked)
    clearInterval(ticking)
    expect(chunks.map(line)).toEqual(expected("86"))
    expect(settledAt).toHaveLength(asked.length)
    expect(new Set(settledAt).size).toBe(1)
  })

  it("86: nothing settles before", async () => {
    const { script } = scenario("80b")
    const run = await start({ ...scenario("86"), script })
    const { output, stage } = run
    const asked = [output.text, output.usage, output.steps, output.finishReason]
    await flush()
    expect(await Promise.all(asked.map(hasSettled))).toEqual([false, false, false, false])
    for await (const chunk of output.fullStream) stage.see(chunk)
    expect(await Promise.all(asked.map(hasSettled))).toEqual([true, true, true, true])
  })

  it("89c: of an answer that failed nothing is kept for the next prompt or a user interface", async () => {
    const run = await start(scenario("89c"), { onError: () => undefined })
    await read(scenario("89c"), run)
    const { response } = await run.output.getFullOutput()
    expect(response.messages).toEqual([])
    expect(response.uiMessages).toEqual([])
  })

  it("11: what is kept of a call and an answer, as a user interface has it", async () => {
    const run = await start(scenario("11"))
    await read(scenario("11"), run)
    const { messageId, response } = await run.output.getFullOutput()
    expect(response.uiMessages).toEqual([
      {
        id: messageId,
        role: "assistant",
        parts: [
          { type: "step-start" },
          { type: "text", text: "Checking. ", state: "done" },
          {
            type: "tool-weather",
            toolCallId: "call-1",
            state: "output-available",
            input: { city: "Paris" },
            output: { city: "Paris", temp: 21 }
          },
          { type: "step-start" },
          { type: "text", text: "It is 21C in Paris.", state: "done" }
        ]
      }
    ])
  })

  it.each([
    ["34", "onStepFinish", "cb step", 1],
    ["34c", "onChunk", "cb chunk", 8],
    ["34e", "onFinish", "cb finish", 1]
  ] as const)(
    "%s: a callback that throws is logged, and the text is there",
    async (id, name, what, times) => {
      const run = await start(scenario(id))
      const early = run.output.text
      await read(scenario(id), run)
      expect(await early).toBe("x")
      await flush()
      const told = ["warn", `The callback ${name} failed: ${what}`]
      expect(run.logger.lines).toEqual(Array.from({ length: times }, () => told))
    }
  )
})

describe("readers", () => {
  it("80: all chunks and the text, at once", async () => {
    const run = await start(scenario("80"))
    const [chunks, texts] = await Promise.all([read(scenario("80"), run), collect(run.output.textStream)])
    expect(chunks.map(line)).toEqual(expected("80"))
    expect(texts).toEqual(["Hello ", "big ", "world"])
  })

  it("80b: one that joins in the middle sees all, from the first chunk on", async () => {
    const { output, stage } = await start(scenario("80b"))
    const first: Array<string> = []
    let second: Promise<ReadonlyArray<string>> | undefined
    for await (const chunk of output.fullStream) {
      first.push(stage.see(chunk))
      if (first.length === 2) second = collect(output.fullStream).then(chunks => chunks.map(line))
    }
    expect(first).toEqual(expected("80b"))
    expect(await second).toEqual(first)
  })

  it("81: one that comes when all is over sees all", async () => {
    const run = await start(scenario("81"))
    const chunks = await read(scenario("81"), run)
    expect(await collect(run.output.fullStream)).toEqual(chunks)
    expect((await collect(run.output.textStream)).join("")).toBe("Hello big world")
  })

  it("81c: one that comes with the error sees all", async () => {
    const { output, stage } = await start(scenario("81c"), { onError: () => undefined })
    let late: Promise<ReadonlyArray<string>> | undefined
    for await (const chunk of output.fullStream) {
      stage.see(chunk)
      if (chunk.type === "error") late = collect(output.fullStream).then(chunks => chunks.map(line))
    }
    expect(await late).toEqual(expected("81c"))
  })

  it("84: one that leaves changes nothing for another", async () => {
    const run = await start(scenario("84"))
    const leaver = run.output.fullStream.getReader()
    const stay = read(scenario("84"), run)
    for (let count = 0; count < 3; count++) await leaver.read()
    await leaver.cancel()
    expect((await stay).map(line)).toEqual(expected("84"))
    expect(run.played.isCancelled()).toBe(false)
  })

  it("84b: the only one leaves, and the run goes on", async () => {
    const { output, played, stage } = await start(scenario("84b"))
    for await (const chunk of output.fullStream) {
      if (stage.see(chunk) === 'text-delta t1 "a"') break
    }
    await until(() => output.status === "success", "the run ends")
    expect(await output.text).toBe("ab")
    expect(played.isCancelled()).toBe(false)
  })

  it("84b, 85: a run that is longer than what a reader may be behind goes on without one, too", async () => {
    const { output, played } = await start(scenario("85"))
    const reader = output.fullStream.getReader()
    for (let count = 0; count < 3; count++) await reader.read()
    await reader.cancel()
    await until(() => output.status === "success", "the run ends")
    expect(played.pulled()).toBe(205)
  })

  it("33g: the only one leaves a run that hangs; it waits for cancel, and that stops the provider", async () => {
    const { output, played, stage } = await start(scenario("33g"), { onAbort: () => undefined })
    for await (const chunk of output.fullStream) {
      if (stage.see(chunk) === scenario("33g").abort) break
    }
    await flush()
    expect([output.status, played.isCancelled()]).toEqual(["running", false])
    expect(await hasSettled(output.text)).toBe(false)
    await output.cancel("enough")
    expect([output.status, played.isCancelled()]).toEqual(["aborted", true])
    expect((await collect(output.fullStream)).map(line)).toEqual(expected("33g"))
  })

  it("85: a slow one holds the provider, and misses nothing", async () => {
    const { output, played } = await start(scenario("85"))
    const reader = output.fullStream.getReader()
    const seen: Array<string> = []
    const next = async (): Promise<boolean> => {
      const { done, value } = await reader.read()
      if (!done) seen.push(line(value))
      return !done
    }
    for (let count = 0; count < 3; count++) await next()
    await flush(300)
    expect(played.pulled()).toBeGreaterThan(3)
    expect(played.pulled()).toBeLessThan(150)
    while (await next());
    expect(seen).toEqual(expected("85"))
    expect(played.pulled()).toBe(205)
  })

  it("85b: a run that nobody reads waits, until somebody asks", async () => {
    const { output, played } = await start(scenario("85b"))
    await flush(300)
    expect(played.pulled()).toBeLessThan(150)
    expect(output.status).toBe("running")
    expect((await output.text).length).toBe(690)
    expect(played.pulled()).toBe(205)
  })

  it("88: a delta that one changes is as it was for another", async () => {
    const { output } = await start(scenario("88"))
    for await (const chunk of output.fullStream) {
      if (chunk.type === "text-delta") Object.assign(chunk.payload, { text: "changed" })
    }
    expect((await collect(output.fullStream)).map(line)).toEqual(expected("88"))
    expect(await output.text).toBe("Hello big world")
  })
})

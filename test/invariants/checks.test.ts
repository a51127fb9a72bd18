/** The checks themselves: each is content with a real run, and notices what is changed in it. */
import type { Chunk } from "eddy"
import { Duration, Effect, Exit } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { loosely } from "../support/randomParts.js"
import {
  callFaults,
  exitFaults,
  type Faults,
  finishFaults,
  finishMessagesFaults,
  orderFaults,
  readerFaults,
  settlementFaults,
  usageFaults
} from "./checks.js"
import { streamed } from "./effectFace.js"
import { loadEverything } from "./kit.js"
import { left, quietTimers } from "./leftovers.js"
import { differences } from "./pieces.js"
import { played } from "./promiseFace.js"
import type { AgentScript, AnswerScript, ReaderScript, Scenario } from "./scenario.js"
import type { Heard, Streamed, Told } from "./told.js"

beforeAll(loadEverything, 30_000)

const answer = (...parts: ReadonlyArray<object>): AnswerScript => ({
  opening: "at once",
  source: "iterator",
  entries: parts.map(loosely),
  ending: "eof"
})

const says = (delta: string) => ({ type: "text-delta", id: "0", delta })

const calls = (toolName: string) => ({
  type: "tool-call",
  toolCallId: "c1",
  toolName,
  input: '{"prompt":"go"}'
})

const ends = (reason: string, inputTokens: number) => ({ type: "finish", reason, usage: { inputTokens } })

const agentOf = (tools: AgentScript["tools"], ...answers: ReadonlyArray<AnswerScript>): AgentScript => ({
  models: [{ answers, maxRetries: undefined }],
  tools,
  maxSteps: 5,
  maxRetries: 0,
  concurrency: 1,
  timeouts: {},
  changes: []
})

const returns = { behaviour: "returns", turns: 0, timeout: undefined } as const

const below = agentOf({ a: returns, b: returns, c: returns }, answer(says("below"), ends("stop", 7)))

const whole: ReaderScript = { of: "chunks", by: "reader", opens: 0, leaves: undefined, pace: 0 }

const scenario: Scenario = {
  agent: agentOf(
    { a: returns, b: returns, c: below },
    answer(says("one "), calls("a"), ends("tool-calls", 1)),
    answer(calls("c"), ends("tool-calls", 2)),
    answer(says("two"), ends("stop", 3))
  ),
  stop: undefined,
  pace: 0,
  includeRawChunks: false,
  maxDepth: 8,
  store: undefined,
  readers: [whole, { ...whole, by: "iterator", leaves: { items: 3 } }],
  questions: [{ value: 0, when: 0 }],
  replay: true
}

/** The place of the first chunk of a type. */
const placeOf = (chunks: ReadonlyArray<Chunk.Chunk>, type: Chunk.ChunkType): number => {
  const place = chunks.findIndex(chunk => chunk.type === type)
  expect(place).toBeGreaterThanOrEqual(0)
  return place
}

type Change = (chunks: ReadonlyArray<Chunk.Chunk>) => ReadonlyArray<Chunk.Chunk>

const without =
  (type: Chunk.ChunkType): Change =>
  chunks =>
    chunks.toSpliced(placeOf(chunks, type), 1)

const twice =
  (type: Chunk.ChunkType): Change =>
  chunks => {
    const place = placeOf(chunks, type)
    return chunks.toSpliced(place, 0, ...chunks.slice(place, place + 1))
  }

/** The first chunk of a type, with something else in its payload. */
const withPayload =
  <Type extends "tool-result" | "step-finish" | "finish">(
    type: Type,
    change: (payload: Chunk.PayloadOf<Type>) => object
  ): Change =>
  chunks => {
    const place = placeOf(chunks, type)
    const chunk: object = chunks[place] ?? {}
    const { payload } = chunk as { readonly payload: Chunk.PayloadOf<Type> }
    const changed: object = { ...chunk, payload: change(payload) }
    return chunks.with(place, changed as Chunk.Chunk)
  }

const usageOf = (type: "step-finish" | "finish", usage: object): Change =>
  withPayload(type, payload => ({ ...payload, output: { ...payload.output, usage } }))

const cases: ReadonlyArray<readonly [what: string, check: (told: Streamed) => Faults, change: Change]> = [
  ["1: no finish", finishFaults, without("finish")],
  ["1: two of them", finishFaults, twice("finish")],
  ["1: something behind it", finishFaults, chunks => [...chunks, ...chunks.slice(0, 1)]],
  ["3: a start without its end", orderFaults, without("text-end")],
  ["3: an end without its start", orderFaults, without("text-start")],
  ["3: an id that is used again", orderFaults, twice("text-start")],
  ["4: no outcome", callFaults, without("tool-result")],
  ["4: two outcomes", callFaults, twice("tool-result")],
  ["4: two calls", callFaults, twice("tool-call")],
  ["4: a call that is executed and not told", callFaults, without("tool-call")],
  [
    "4: the result of another call",
    callFaults,
    withPayload("tool-result", payload => ({ ...payload, result: { of: "c9" } }))
  ],
  ["5: a message that is missing", finishMessagesFaults, withMessages(all => all.slice(0, -1))],
  [
    "5: a call without its outcome",
    finishMessagesFaults,
    withMessages(all => all.filter(({ role }) => role !== "tool"))
  ],
  ["5: another order", finishMessagesFaults, withMessages(all => all.toReversed())],
  ["8: a step that says another figure", usageFaults, usageOf("step-finish", { inputTokens: 9 })],
  ["8: a run that is not the sum of its steps", usageFaults, usageOf("finish", { inputTokens: 6 })],
  ["8: 0 for what nobody knows", usageFaults, usageOf("finish", { inputTokens: 13, outputTokens: 0 })],
  ["8: no number", usageFaults, usageOf("finish", { inputTokens: Number.NaN })]
]

function withMessages(
  change: (all: Chunk.PayloadOf<"finish">["messages"]["all"]) => Chunk.PayloadOf<"finish">["messages"]["all"]
): Change {
  return withPayload("finish", payload => ({
    ...payload,
    messages: { ...payload.messages, all: change(payload.messages.all) }
  }))
}

describe("a check of what a run tells", () => {
  it.each(cases)("notices %s", async (_, check, change) => {
    const told = await streamed(scenario)
    expect(check(told)).toStrictEqual([])
    expect(check({ ...told, chunks: change(told.chunks) })).not.toStrictEqual([])
  })

  it("notices a stream that fails with something that it has not told", async () => {
    const told = await streamed(scenario)
    expect(exitFaults(told)).toStrictEqual([])
    expect(exitFaults({ ...told, exit: Exit.fail("no") })).not.toStrictEqual([])
  })

  it("notices a call that is executed twice", async () => {
    const told = await streamed(scenario)
    const [execution] = told.world.executions
    if (execution === undefined) throw new Error("nothing was executed")
    told.world.executions.push(execution)
    expect(callFaults(told)).not.toStrictEqual([])
  })

  it("notices where two sequences differ", async () => {
    const { chunks } = await streamed(scenario)
    expect(differences(chunks, chunks)).toStrictEqual([])
    expect(differences(chunks, chunks.slice(0, -1))).not.toStrictEqual([])
    expect(differences(chunks, without("text-delta")(chunks))).not.toStrictEqual([])
  })
})

describe("a check of what readers see", () => {
  const changes: ReadonlyArray<
    readonly [what: string, check: (heard: Heard) => Faults, change: (heard: Heard) => Heard]
  > = [
    ["2: a chunk that is missing", readerFaults, heard => readWith(heard, 0, items => items.slice(1))],
    ["2: an end that is missing", readerFaults, heard => readWith(heard, 0, items => items.slice(0, -1))],
    ["2: another chunk for one who left", readerFaults, heard => readWith(heard, 1, () => ["other"])],
    [
      "1: a value that fails although the run did not",
      settlementFaults,
      heard => ({ ...heard, answered: [{ name: "text", outcome: { error: new Error("no") } }] })
    ],
    [
      "1: another value",
      settlementFaults,
      heard => ({ ...heard, answered: [{ name: "text", outcome: { value: "other" } }] })
    ],
    [
      "1: a value of a run that failed",
      settlementFaults,
      heard => ({ ...heard, full: { ...heard.full, status: "failed", error: new Error("no") } })
    ],
    [
      "1: a stream that fails",
      settlementFaults,
      heard => ({ ...heard, reads: heard.reads.map(read => ({ ...read, failure: new Error("no") })) })
    ]
  ]

  const readWith = (
    heard: Heard,
    place: number,
    change: (items: Array<unknown>) => Array<unknown>
  ): Heard => ({
    ...heard,
    reads: heard.reads.map((read, index) => (index === place ? { ...read, items: change(read.items) } : read))
  })

  it.each(changes)("notices %s", async (_, check, change) => {
    const heard = await played(scenario)
    expect(heard.reads.map(({ isWhole }) => isWhole)).toStrictEqual([true, false])
    expect(check(heard)).toStrictEqual([])
    expect(check(change(heard))).not.toStrictEqual([])
  })
})

describe("11: the count of what is left", () => {
  const leftBy = async (leave: (told: Told) => () => void): Promise<Faults> => {
    const before = await quietTimers()
    const told = await streamed(scenario)
    expect(await left(told, before)).toStrictEqual([])
    const tidy = leave(told)
    const faults = await left(told, before)
    tidy()
    return faults
  }

  it("notices a listener", async () => {
    const listener = () => undefined
    const faults = await leftBy(({ world: { signal } }) => {
      signal.addEventListener("abort", listener)
      return () => signal.removeEventListener("abort", listener)
    })
    expect(faults).toStrictEqual(["1 listeners of the signal"])
  })

  it("notices an open source", async () => {
    const faults = await leftBy(({ world: { openSources } }) => {
      openSources.add("another")
      return () => openSources.clear()
    })
    expect(faults).toStrictEqual(["1 open sources"])
  })

  it("notices a timer", async () => {
    const faults = await leftBy(() => {
      const timer = setTimeout(() => undefined, 60_000)
      return () => clearTimeout(timer)
    })
    expect(faults).toStrictEqual(["1 timers"])
  })

  it("notices somebody who sleeps, and a fiber", async () => {
    const told = await streamed(scenario)
    const stop = Effect.runCallback(told.world.clock.sleep(Duration.hours(1)))
    const { sleeping } = told.world.clock
    stop()
    expect(sleeping).toBe(1)
    expect(await left({ ...told, fibers: 1 }, await quietTimers())).toStrictEqual(["1 fibers"])
  })
})

/** How little it matters how the parts of answers come. */
import { isDeepStrictEqual } from "node:util"
import type { Chunk } from "eddy"
import { FastCheck as fc } from "effect"
import { beforeAll, describe, it } from "vitest"
import { loosely } from "../support/randomParts.js"
import type { Faults } from "./checks.js"
import { streamed } from "./effectFace.js"
import { assertProperty, loadEverything, patience } from "./kit.js"
import { type AgentScript, type Entry, isAgent, type SourceKind, scenarios } from "./scenario.js"
import type { Cut } from "./world.js"

beforeAll(loadEverything, 30_000)

const timeless = scenarios({ isTimeless: true })

const cut: fc.Arbitrary<Cut> = fc.record({
  turns: fc.array(fc.constantFrom(0, 0, 1, 2, 5), { minLength: 1, maxLength: 7 }),
  source: fc.constantFrom<SourceKind>("iterator", "generator", "stream")
})

const pace = fc.constantFrom(0, 1, 2, 7)

const differences = (one: ReadonlyArray<Chunk.Chunk>, other: ReadonlyArray<Chunk.Chunk>): Faults => {
  const place = Math.max(
    one.findIndex((chunk, index) => !isDeepStrictEqual(chunk, other[index])),
    one.length === other.length ? -1 : Math.min(one.length, other.length)
  )
  if (place < 0) return []
  return [
    `${one.length} and ${other.length} chunks, at ${place}: ${JSON.stringify(one[place])} and ${JSON.stringify(other[place])}`
  ]
}

/** Cuts the texts of an answer: each in two, at a place that depends on `seed`. */
const split = (entries: ReadonlyArray<Entry>, seed: number): ReadonlyArray<Entry> =>
  entries.flatMap((entry, index): ReadonlyArray<Entry> => {
    if (typeof entry === "string" || !("delta" in entry) || typeof entry.delta !== "string") return [entry]
    if (entry.delta.length < 2 || entry.providerMetadata !== undefined) return [entry]
    const place = 1 + ((seed + index) % (entry.delta.length - 1))
    return [
      loosely({ ...entry, delta: entry.delta.slice(0, place) }),
      loosely({ ...entry, delta: entry.delta.slice(place) })
    ]
  })

const splitAgent = (agent: AgentScript, seed: number): AgentScript => ({
  ...agent,
  models: agent.models.map(model => ({
    ...model,
    answers: model.answers.map(answer => ({ ...answer, entries: split(answer.entries, seed) }))
  })),
  tools: Object.fromEntries(
    Object.entries(agent.tools).map(([name, tool]) => [name, isAgent(tool) ? splitAgent(tool, seed) : tool])
  )
})

type Textual = Chunk.Of<"text-delta"> | Chunk.Of<"reasoning-delta"> | Chunk.Of<"tool-call-delta">

const isPlain = (chunk: Chunk.Chunk): chunk is Textual =>
  (chunk.type === "text-delta" || chunk.type === "reasoning-delta" || chunk.type === "tool-call-delta") &&
  chunk.payload.providerMetadata === undefined

const whose = (chunk: Textual): string =>
  chunk.type === "tool-call-delta" ? chunk.payload.toolCallId : chunk.payload.id

const joined = (one: Textual, other: Textual): Chunk.Chunk => {
  if (one.type === "tool-call-delta" && other.type === "tool-call-delta") {
    const argsTextDelta = one.payload.argsTextDelta + other.payload.argsTextDelta
    return { ...one, payload: { ...one.payload, argsTextDelta } }
  }
  if (one.type === "tool-call-delta" || other.type === "tool-call-delta") return one
  return { ...one, payload: { ...one.payload, text: one.payload.text + other.payload.text } } as Chunk.Chunk
}

/** Neighbouring deltas of one block as one; also those of agents below. */
const coalesced = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<Chunk.Chunk> => {
  const all: Array<Chunk.Chunk> = []
  for (const chunk of chunks) {
    const before = all.at(-1)
    const together = before === undefined ? undefined : merged(before, chunk)
    if (together === undefined) all.push(chunk)
    else all[all.length - 1] = together
  }
  return all
}

/** The two as one chunk, when that is what they are. */
const merged = (one: Chunk.Chunk, other: Chunk.Chunk): Chunk.Chunk | undefined => {
  if (one.runId !== other.runId || one.type !== other.type) return undefined
  if (one.type === "tool-output" && other.type === "tool-output") {
    if (one.payload.toolCallId !== other.payload.toolCallId) return undefined
    const inner = [one.payload.output, other.payload.output]
    if (!inner.every(isChunk)) return undefined
    const [first, second] = inner as ReadonlyArray<Chunk.Chunk>
    const output = first === undefined || second === undefined ? undefined : merged(first, second)
    return output === undefined ? undefined : { ...one, payload: { ...one.payload, output } }
  }
  return isPlain(one) && isPlain(other) && whose(one) === whose(other) ? joined(one, other) : undefined
}

const isChunk = (output: unknown): output is Chunk.Chunk =>
  typeof output === "object" && output !== null && "type" in output && "runId" in output

describe("6: chunks are equal, however the parts of answers come", () => {
  it(
    "in whatever turns, from whatever kind of source, for whatever reader",
    () =>
      assertProperty(fc.record({ scenario: timeless, cut, pace }), 150, async ({ cut, pace, scenario }) => {
        const one = await streamed(scenario)
        const other = await streamed({ ...scenario, pace }, cut)
        return differences(one.chunks, other.chunks)
      }),
    patience
  )

  it(
    "in whatever pieces of text, but for how many they are",
    () =>
      assertProperty(fc.record({ scenario: timeless, seed: fc.nat(20) }), 100, async ({ scenario, seed }) => {
        const one = await streamed(scenario)
        const other = await streamed({ ...scenario, agent: splitAgent(scenario.agent, seed) })
        return differences(coalesced(one.chunks), coalesced(other.chunks))
      }),
    patience
  )
})

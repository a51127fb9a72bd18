/** The same parts in other pieces, and chunks of which it is forgotten in how many pieces they came. */
import { isDeepStrictEqual } from "node:util"
import type { Chunk } from "eddy"
import { loosely } from "../support/randomParts.js"
import type { Faults } from "./checks.js"
import { type AgentScript, type Entry, isAgent } from "./scenario.js"

/** Where two sequences differ first. */
export const differences = (one: ReadonlyArray<Chunk.Chunk>, other: ReadonlyArray<Chunk.Chunk>): Faults => {
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

export const splitAgent = (agent: AgentScript, seed: number): AgentScript => ({
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
export const coalesced = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<Chunk.Chunk> => {
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

/** What a processor makes of a chunk, checked and brought into shape. Pure. */
import * as Predicate from "effect/Predicate"
import type { Chunk, Of } from "../../protocol/Chunk.js"
import { wellFormed } from "../../protocol/safeJson.js"

/** The block, or the input of a call, that was begun under an id and is not ended. */
export type Open = ReadonlyMap<string, "text" | "reasoning" | "input">

type Delta = Of<"text-delta"> | Of<"reasoning-delta">

/** Whether a chunk stays as it is, whatever a processor makes of it: the order of a run hangs on it. */
const isFixed = ({ type }: Chunk): boolean => {
  switch (type) {
    case "text-delta":
    case "reasoning-delta":
    case "source":
    case "file":
    case "raw":
    case "response-metadata":
      return false
    default:
      return !type.startsWith("data-")
  }
}

const isChunk = (value: unknown): value is Chunk =>
  Predicate.isRecord(value) && typeof value["type"] === "string"

/** A delta as it is told; `undefined` when it says nothing. */
const delta = (given: Delta, runId: string): Chunk | undefined => {
  const { id, providerMetadata, text } = given.payload
  if (text === "" && providerMetadata === undefined) return undefined
  const payload = {
    id,
    text: wellFormed(text),
    ...(providerMetadata === undefined ? {} : { providerMetadata })
  }
  return { type: given.type, runId, from: "AGENT", payload }
}

const isDelta = (chunk: Chunk): chunk is Delta =>
  chunk.type === "text-delta" || chunk.type === "reasoning-delta"

const isWellMade = ({ payload }: Delta): boolean =>
  Predicate.isRecord(payload) && typeof payload.text === "string" && typeof payload.id === "string"

/** Why a chunk may not be told in the place of another one; `undefined`: it may. */
const refusal = (given: Chunk, of: Chunk, open: Open): string | undefined => {
  if (isDelta(given)) {
    if (!isWellMade(given))
      return `a \`${given.type}\` without \`id\` or \`text\`. Change the text of the one it was given.`
    const kind = given.type === "text-delta" ? "text" : "reasoning"
    if (open.get(given.payload.id) === kind) return undefined
    return `a \`${given.type}\` of "${given.payload.id}", which is no open block of that kind. Give deltas of blocks that have started and not ended.`
  }
  if (given.type.startsWith("data-")) {
    return "data" in given ? undefined : `a \`${given.type}\` without \`data\`. Give { type, data }.`
  }
  if (given.type !== of.type || isFixed(given)) {
    return `a \`${given.type}\` for a \`${of.type}\`. Give deltas of the open block, \`data-*\` chunks, or chunks of the same type; use \`abort\` to refuse.`
  }
  if (!("payload" in given) || !Predicate.isRecord(given.payload)) {
    return `a \`${given.type}\` without \`payload\`. Change the one it was given.`
  }
  if (given.type === "source" && of.type === "source" && given.payload.id !== of.payload.id) {
    return "a `source` of another id. Keep the one it was given."
  }
  if (given.type === "file" && typeof given.payload.mimeType !== "string") {
    return "a `file` without `mimeType`. Change the one it was given."
  }
  return undefined
}

/** A chunk of this run, whoever made it. */
const ours = (given: Chunk, { runId }: Chunk): Chunk => {
  const from = given.from ?? "USER"
  return given.runId === runId && given.from === from ? given : { ...given, runId, from }
}

/** The same chunk as far as the order of a run is concerned: a copy will do, and nothing in it may be another. */
const isSame = (given: Chunk, of: Chunk): boolean =>
  given === of ||
  (given.type === of.type && "payload" in given && "payload" in of && given.payload === of.payload)

/** The chunks that are told instead of `of`, or what is wrong with them. */
export const readGiven = (given: unknown, of: Chunk, open: Open): ReadonlyArray<Chunk> | string => {
  const list: ReadonlyArray<unknown> =
    given === undefined || given === null ? [] : Array.isArray(given) ? given : [given]
  const isStaying = isFixed(of)
  const chunks: Array<Chunk> = []
  for (const item of list) {
    if (!isChunk(item)) {
      return `${Predicate.isPromiseLike(item) ? "a promise in a list" : `${item === null ? "null" : `a value of type ${typeof item}`}`} for a \`${of.type}\`. Give a chunk, several in a list, or nothing.`
    }
    if (isStaying && isSame(item, of)) {
      // What is given behind it comes too late: a block has ended then.
      if (item !== list.at(-1)) return `something behind a \`${of.type}\`. Put it in front.`
      continue
    }
    if (isStaying && item.type === of.type) {
      return `another \`${of.type}\`. Such chunks stay as they are; use \`abort\` to refuse what they say.`
    }
    const wrong = refusal(item, of, open)
    if (wrong !== undefined) return wrong
    const told = isDelta(item) && item !== of ? delta(item, of.runId) : ours(item, of)
    if (told !== undefined) chunks.push(told)
  }
  return isStaying ? [...chunks, of] : chunks
}

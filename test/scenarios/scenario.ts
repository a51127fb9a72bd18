/** A scenario as data: what a provider sends, what eddy makes of it, and how that differs from the peer. */
import type { RunOptions } from "eddy"
import { createTool, type RunCallbacks, type ToolsInput } from "eddy/promise"
import { z } from "zod"
import type { Script, Stage } from "./script.js"

/** Options that both faces have. */
type Options = Pick<RunOptions, "maxSteps" | "toolCallConcurrency" | "includeRawChunks" | "maxRetries"> & {
  readonly stopWhen?: (
    state: Parameters<Exclude<RunOptions["stopWhen"], ReadonlyArray<unknown> | undefined>>[0]
  ) => boolean
}

/** What tools may do to the run that calls them. */
export interface ToolStage extends Stage {
  readonly abort: () => void
}

export interface Scenario {
  /** The number it has in the list of scenarios. */
  readonly id: string
  readonly title: string
  readonly script: Script
  /** Default: V2. */
  readonly specification?: "v3" | "v4"
  readonly tools?: (stage: ToolStage) => ToolsInput
  readonly options?: Options
  /** Only the Promise face has them. */
  readonly callbacks?: RunCallbacks
  /** Aborted before it begins, or by the reader that sees this chunk. */
  readonly abort?: "before" | (string & {})
  /** Every chunk, one a line; see `line`. */
  readonly chunks: string
  /**
   * The types of the peer's chunks in a row; `#` and a call id behind a type where the order of calls matters. Absent where
   * nobody read them to their end.
   */
  readonly peer?: string
  /** Why ours differ, by the id in README.md: the types that are more (`+`) or fewer (`-`) for that reason. */
  readonly differences?: Readonly<Record<string, string>>
}

/** Answers at once. */
export const weather = createTool({
  id: "weather",
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => ({ city, temp: 21 })
})

/** The lines of a text block, without its indentation. */
export const linesOf = (text: string): ReadonlyArray<string> =>
  text
    .trim()
    .split("\n")
    .map(line => line.trim())

/** Types in a row, from `start text-delta×3 finish`. */
export const typesOf = (row: string): ReadonlyArray<string> =>
  row
    .split(" ")
    .filter(word => word !== "")
    .flatMap(word => {
      const [type = "", count = "1"] = word.split("×")
      return Array.from({ length: Number(count) }, () => type)
    })

/** The type of a line; with the call id where the peer's row has that. */
const typeOf = (line: string, peer: ReadonlyArray<string>): string => {
  const [type = "", id = ""] = line.split(" ")
  return peer.includes(`${type}#${id}`) ? `${type}#${id}` : type
}

/** Lengths of the longest common subsequences of all suffixes. */
const common = (
  left: ReadonlyArray<string>,
  right: ReadonlyArray<string>
): ReadonlyArray<ReadonlyArray<number>> => {
  const lengths = Array.from({ length: left.length + 1 }, () => new Array<number>(right.length + 1).fill(0))
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      const row = lengths[i] ?? []
      row[j] =
        left[i] === right[j]
          ? (lengths[i + 1]?.[j + 1] ?? 0) + 1
          : Math.max(lengths[i + 1]?.[j] ?? 0, row[j + 1] ?? 0)
    }
  }
  return lengths
}

/** What turns the peer's types into ours: `-` where it has one more, `+` where we have. */
export const edits = (peer: ReadonlyArray<string>, ours: ReadonlyArray<string>): ReadonlyArray<string> => {
  const lengths = common(peer, ours)
  const found: Array<string> = []
  let i = 0
  let j = 0
  while (i < peer.length || j < ours.length) {
    if (i < peer.length && j < ours.length && peer[i] === ours[j]) {
      i++
      j++
    } else if (i < peer.length && (lengths[i + 1]?.[j] ?? 0) >= (lengths[i]?.[j + 1] ?? -1)) {
      found.push(`-${peer[i++]}`)
    } else {
      found.push(`+${ours[j++]}`)
    }
  }
  return found
}

/** How the expected chunks of a scenario differ from the peer's, sorted. */
export const difference = ({ chunks, peer }: Pick<Scenario, "chunks" | "peer">): ReadonlyArray<string> => {
  if (peer === undefined) return []
  const theirs = typesOf(peer)
  return [
    ...edits(
      theirs,
      linesOf(chunks).map(line => typeOf(line, theirs))
    )
  ].sort()
}

/** What the scenario itself says of that, sorted. */
export const declared = ({ differences = {} }: Pick<Scenario, "differences">): ReadonlyArray<string> =>
  Object.values(differences).flatMap(typesOf).sort()

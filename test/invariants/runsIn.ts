/** The runs that a stream of chunks holds: its own, and those of the agents below, in whose `tool-output`s they come. */
import type { Chunk } from "eddy"

/** One run of a stream. */
export interface RunOf {
  readonly runId: string
  readonly chunks: Array<Chunk.Chunk>
  /** The call that it serves; `undefined` for the run at the top. */
  readonly call: { readonly runId: string; readonly toolCallId: string } | undefined
}

const isChunk = (output: unknown): output is Chunk.Chunk =>
  typeof output === "object" && output !== null && "type" in output && "runId" in output && "from" in output

/** Every run, the one at the top first; the chunks of each in order. */
export const runsIn = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<RunOf> => {
  const runs = new Map<string, RunOf>()
  const take = (chunk: Chunk.Chunk, call: RunOf["call"]): void => {
    const run = runs.get(chunk.runId) ?? { runId: chunk.runId, chunks: [], call }
    runs.set(chunk.runId, run)
    run.chunks.push(chunk)
    if (chunk.type !== "tool-output" || !isChunk(chunk.payload.output)) return
    take(chunk.payload.output, { runId: chunk.runId, toolCallId: chunk.payload.toolCallId })
  }
  for (const chunk of chunks) take(chunk, undefined)
  return [...runs.values()]
}

/**
 * Chunks of agents that other agents called: each is the output of the call, as a `tool-output`, however deep.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import type { Chunk, Of } from "./Chunk.js"

/** One call on the way down to a nested chunk. @since 0.1.0 @category models */
export interface NestingCall {
  /** The run that made the call. */
  readonly runId: string
  readonly toolCallId: string
  readonly toolName: string | undefined
}

/** A chunk, and where it comes from. @since 0.1.0 @category models */
export interface Nested {
  /** The calls that led to it, outermost first; empty for a chunk of the run itself. */
  readonly path: ReadonlyArray<NestingCall>
  readonly chunk: Chunk
}

/** A tool may write anything: what has the envelope of a chunk is taken for one. */
const isChunk = (output: unknown): output is Chunk =>
  Predicate.isRecord(output) &&
  typeof output["type"] === "string" &&
  typeof output["runId"] === "string" &&
  (output["from"] === "AGENT" || output["from"] === "USER" || output["from"] === "WORKFLOW")

const callOf = ({ payload, runId }: Of<"tool-output">): NestingCall => ({
  runId,
  toolCallId: payload.toolCallId,
  toolName: payload.toolName
})

/** What a call wrote; of one in the background it comes in a chunk of its task. */
const outputOf = (chunk: Chunk): Of<"tool-output"> | undefined => {
  if (chunk.type === "tool-output") return chunk
  return chunk.type === "background-task-output" ? chunk.payload.payload : undefined
}

/**
 * Takes a chunk out of the `tool-output`s around it, also of a call that runs in the background. What a tool has written itself, and every other chunk, is given back as
 * it is, with the calls around it.
 *
 * @since 0.1.0
 * @category conversions
 */
export const unnest = (chunk: Chunk): Nested => {
  const path: Array<NestingCall> = []
  let inner = chunk
  for (
    let outer = outputOf(inner);
    outer !== undefined && isChunk(outer.payload.output);
    outer = outputOf(inner)
  ) {
    path.push(callOf(outer))
    inner = outer.payload.output
  }
  return { path, chunk: inner }
}

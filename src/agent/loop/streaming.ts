/** A run as a stream: `advance` unfolded. */
import * as Batch from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Chunk } from "../../protocol/Chunk.js"
import type { AgentError } from "../../protocol/Errors.js"
import { raised } from "./defect.js"
import { advance } from "./driving.js"
import type { Run } from "./run.js"
import { type State, start } from "./state.js"

/**
 * The stream of one run; it can be run once. A run that failed ends, after its `finish`, with its error; one that was
 * aborted just ends.
 */
export const toStream = <R>(run: Run<R>): Stream.Stream<Chunk, AgentError> =>
  Stream.unfoldChunkEffect<State<R>, Chunk, AgentError, never>(start, state => {
    if (state._tag !== "Ended") {
      return Effect.map(advance(run, state), ([chunks, next]) =>
        Option.some([Batch.unsafeFromArray(chunks), next] as const)
      )
    }
    return state.end._tag === "Failure" ? raised(state.end.error) : Effect.succeedNone
  })

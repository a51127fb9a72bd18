/** Moves a run through its states: pulled, batch by batch, or by itself. */
import * as Effect from "effect/Effect"
import type { Chunk } from "../../protocol/Chunk.js"
import type { RunEnd } from "./ending.js"
import { transition } from "./loop.js"
import type { Run } from "./run.js"
import { mustWait, type State, start } from "./state.js"

/** What a run tells next, and the state it is in then. */
export const advance = <R>(
  run: Run<R>,
  state: State<R>
): Effect.Effect<readonly [ReadonlyArray<Chunk>, State<R>]> => {
  const move = () => {
    const next = transition(run, state)
    return [run.inbox.take(), next] as const
  }
  return mustWait(state) ? Effect.map(run.inbox.arrived, move) : Effect.sync(move)
}

/** Who takes what a run tells. */
export interface Writer {
  readonly write: (chunks: ReadonlyArray<Chunk>) => void
  /** Whether the run may go on; when not, `resume` is called once, as soon as it may. */
  readonly mayGoOn: (resume: () => void) => boolean
}

/**
 * Drives a run without a stream around it, and gives what it ended with: the same states, moved by plain code inside one
 * async boundary. Interrupting it leaves the run where it is.
 */
export const drive = <R>(run: Run<R>, writer: Writer): Effect.Effect<RunEnd> =>
  Effect.async(resume => {
    let state: State<R> = start
    const go = (): void => {
      try {
        while (
          !run.inbox.isOver &&
          state._tag !== "Ended" &&
          writer.mayGoOn(go) &&
          (!mustWait(state) || run.inbox.hasNews(go))
        ) {
          state = transition(run, state)
          writer.write(run.inbox.take())
        }
        if (state._tag === "Ended") resume(Effect.succeed(state.end))
      } catch (defect) {
        resume(Effect.die(defect))
      }
    }
    go()
  })

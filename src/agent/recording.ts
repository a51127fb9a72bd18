/** A run that goes by itself and is recorded: what both hot faces are made of. */
import * as Effect from "effect/Effect"
import * as RunRecord from "../output/RunRecord.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { Input } from "../protocol/Conversation.js"
import type { AgentError } from "../protocol/Errors.js"
import type * as Tool from "../tool/Tool.js"
import type { Agent, RunRequirements } from "./definition.js"
import { drive } from "./driving.js"
import { keptText, prepare } from "./prepare.js"
import type { MemoryOptions, RunOptions } from "./RunOptions.js"
import { RunControl } from "./run.js"

/** A run that is recorded for its readers. @since 0.1.0 @category models */
export interface Recording {
  readonly recorded: RunRecord.RunRecord
  readonly abort: (reason?: unknown) => void
  /** The run itself, to be run once: never fails, and leaves nothing behind. */
  readonly going: Effect.Effect<void>
}

/**
 * A run that is recorded as it goes: what `Agent.run` and the Promise facade are made of. `observe` sees every chunk before
 * any reader does and must not throw. `control` stops the run also before it has begun.
 *
 * @since 0.1.0
 * @category running
 */
export const record = <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools, Memory>,
  observe?: (chunk: Chunk, recorded: RunRecord.RunRecord) => void,
  control: RunControl = new RunControl()
): Effect.Effect<Recording, AgentError, R | RunRequirements<Tools, Memory>> => {
  const { abort } = control
  const retention =
    options.replay === false
      ? { textLimit: keptText, onLeft: () => abort("Its reader has left.") }
      : undefined
  return Effect.map(prepare(agent, input, options, control), prepared => {
    const recorded = RunRecord.make(prepared.runId, observe, retention, prepared.fold)
    // A run that waits for a reader would not notice.
    control.onHalt(() => recorded.log.release())
    const going = drive(prepared, recorded).pipe(
      Effect.onExit(exit => {
        recorded.end(exit)
        return prepared.close()
      }),
      Effect.asVoid
    )
    return { recorded, abort, going }
  })
}

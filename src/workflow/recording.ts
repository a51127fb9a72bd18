/** A run that goes by itself and is recorded: what both hot faces are made of. */
import * as Effect from "effect/Effect"
import type { Recording } from "../agent/recording.js"
import * as RunRecord from "../output/RunRecord.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { WorkflowControl } from "./control.js"
import { type Begun, drive } from "./executing.js"
import { resultOf, type WorkflowResult } from "./result.js"
import type { StepState, WorkflowStatus } from "./state.js"

/** A run that is recorded for its readers. */
export interface WorkflowRecording extends Recording {
  /** What it came to, once its record has settled. */
  readonly result: () => WorkflowResult<unknown>
  /** Where it stands now. */
  readonly status: () => WorkflowStatus
  readonly steps: () => { readonly [stepId: string]: StepState }
}

/** Records a run. `observe` sees every chunk before any reader does, and must not throw. */
export const record = <R, E, R2>(
  begin: Effect.Effect<Begun<R>, E, R2>,
  control: WorkflowControl,
  observe?: (chunk: Chunk) => void
): Effect.Effect<WorkflowRecording, E, R | R2> =>
  Effect.gen(function* () {
    const services = yield* Effect.context<R>()
    const begun = yield* begin
    const { run } = begun
    const recorded = RunRecord.make(run.runId, observe)
    // A run that waits for a reader would not notice.
    control.onHalt(() => recorded.log.release())
    const going = drive(begun, recorded).pipe(
      Effect.onExit(exit => Effect.sync(() => recorded.end(exit))),
      Effect.provide(services)
    )
    return {
      recorded,
      abort: control.abort,
      going,
      result: () => resultOf(run),
      status: () => run.state.status,
      steps: () => run.stepStates
    }
  })

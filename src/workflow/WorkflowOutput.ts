/**
 * The output of a run that is already going: a stream that any number of readers may open at any time, and effects that wait
 * for the end.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as ModelOutput from "../output/ModelOutput.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { RunSuspended } from "../protocol/Errors.js"
import type { Usage } from "../protocol/Usage.js"
import type { WorkflowError } from "./failures.js"
import type { WorkflowRecording } from "./recording.js"
import type { WorkflowResult } from "./result.js"
import type { StepState, WorkflowStatus } from "./state.js"
import { suspendedRun } from "./waiting.js"

/** The output of one run, whose steps fail with `E`. @since 0.1.0 @category models */
export interface WorkflowOutput<out A, out E = never> {
  readonly runId: string
  /** Every chunk, from the first to `finish`. Fails after that with the error of a run that failed. */
  readonly fullStream: Stream.Stream<Chunk, E | WorkflowError>
  /** What the workflow gives. Fails with the error of a run that failed, with `RunAborted`, or with `RunSuspended`. */
  readonly result: Effect.Effect<A, E | WorkflowError | RunSuspended>
  /** Everything that the run came to. Never fails. */
  readonly fullOutput: Effect.Effect<WorkflowResult<A>>
  /** Of all steps. Never fails. */
  readonly usage: Effect.Effect<Usage>
  /** Where the run stands now. */
  readonly status: Effect.Effect<WorkflowStatus>
  /** Where its steps stand now. */
  readonly steps: Effect.Effect<{ readonly [stepId: string]: StepState }>
  /** Stops the run; the first call counts. Does not wait for its end. */
  readonly abort: (reason?: unknown) => Effect.Effect<void>
}

/** What a run gives, or why it gives nothing. */
const valueOf = <A, E>(result: WorkflowResult<A>): Effect.Effect<A, E | WorkflowError | RunSuspended> => {
  switch (result.status) {
    case "success":
      return Effect.succeed(result.result)
    case "suspended":
      return Effect.fail(suspendedRun(result))
    case "failed":
      // What steps fail with is what their types say.
      return Effect.fail(result.error as E)
    case "aborted":
      return Effect.fail(result.error)
  }
}

/** The output over a recording. */
export const make = <A, E>({
  abort,
  recorded,
  result,
  status,
  steps
}: WorkflowRecording): WorkflowOutput<A, E> => {
  const settled = Effect.async<void>(resume => {
    recorded.log.wantAll()
    recorded.onSettled(() => resume(Effect.void))
  })
  // What a workflow gives is what its type says: it was checked by its output schema.
  const fullOutput = Effect.map(settled, () => result() as WorkflowResult<A>)
  const failedEnd = Effect.flatMap(fullOutput, full =>
    full.status === "failed" ? Effect.fail(full.error as E) : Effect.void
  )
  const fullStream: Stream.Stream<Chunk, E | WorkflowError> = Stream.concat(
    ModelOutput.read(recorded),
    Stream.drain(Stream.fromEffect(failedEnd))
  )
  return {
    runId: recorded.runId,
    fullStream,
    result: Effect.flatMap(fullOutput, full => valueOf<A, E>(full)),
    fullOutput,
    usage: Effect.map(fullOutput, ({ usage }) => usage),
    status: Effect.sync(status),
    steps: Effect.sync(steps),
    abort: reason => Effect.sync(() => abort(reason))
  }
}

/** A run that goes by itself and is recorded: what both hot faces are made of. */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Stream from "effect/Stream"
import * as RunRecord from "../output/RunRecord.js"
import type { AwaitedValue } from "../output/structured.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { Input } from "../protocol/Conversation.js"
import type { AgentError } from "../protocol/Errors.js"
import type * as Tool from "../tool/Tool.js"
import type { Agent, AnyRunOptions, RunRequirements } from "./definition.js"
import { drive } from "./loop/driving.js"
import { type Run, RunControl } from "./loop/run.js"
import { keptText, prepare } from "./prepare.js"
import type { MemoryOptions, RunOptions } from "./RunOptions.js"
import { firstTurn, idleBeginning } from "./tasks/idleBeginning.js"

/** A run that is recorded for its readers. @since 0.1.0 @category models */
export interface Recording {
  readonly recorded: RunRecord.RunRecord
  readonly abort: (reason?: unknown) => void
  /** The run itself, to be run once: never fails, and leaves nothing behind. */
  readonly going: Effect.Effect<void>
}

/** What the record of a run keeps, when that is not everything. */
export const retentionOf = (
  { replay }: Pick<AnyRunOptions, "replay">,
  abort: (reason: unknown) => void
): RunRecord.Retention | undefined =>
  replay === false ? { textLimit: keptText, onLeft: () => abort("Its reader has left.") } : undefined

/** A run, driven by plain code. */
export const recordRun = <R>(
  run: Run<R>,
  retention: RunRecord.Retention | undefined,
  observe: Observe | undefined,
  control: RunControl
): Recording => {
  if (observe === undefined) run.structuring?.leaveUnseen()
  const recorded = RunRecord.make(run.runId, observe, retention, run.fold, false, run.structuring?.value)
  // A run that waits for a reader would not notice.
  control.onHalt(() => recorded.log.release())
  const going = drive(run, recorded).pipe(
    Effect.onExit(exit => {
      recorded.end(exit)
      return run.close()
    }),
    Effect.asVoid
  )
  return { recorded, abort: control.abort, going }
}

/** Sees every chunk before any reader does. Must not throw. */
export type Observe = (chunk: Chunk, recorded: RunRecord.RunRecord) => void

/** A stream of several runs, written as far as its readers want. `close` is done at its end, whether it was read or not. */
export const recordStream = (
  runId: string,
  stream: Stream.Stream<Chunk, AgentError>,
  options: Pick<AnyRunOptions, "replay">,
  observe: Observe | undefined,
  control: RunControl,
  close: (exit: Exit.Exit<unknown, unknown>) => Effect.Effect<unknown>,
  structured: AwaitedValue | undefined
): Effect.Effect<Recording> =>
  Effect.map(runForEachChunk, forEachChunk => {
    const retention = retentionOf(options, control.abort)
    const recorded = RunRecord.make(runId, observe, retention, undefined, true, structured)
    control.onHalt(() => recorded.log.release())
    const demand = Effect.async<void>(resume => {
      if (recorded.mayGoOn(() => resume(Effect.void))) resume(Effect.void)
    })
    const going = Effect.zipRight(
      demand,
      forEachChunk(stream, chunks => {
        recorded.write([...chunks])
        return demand
      })
    ).pipe(
      Effect.onExit(exit => {
        recorded.end(exit)
        return close(exit)
      }),
      // What failed has said so in the stream.
      Effect.ignore
    )
    return { recorded, abort: control.abort, going }
  })

/** Loaded when the first until-idle stream is: the Promise face does without streams of Effect until then. */
export const runForEachChunk = Effect.map(
  Effect.promise(() => import("effect/Stream")),
  ({ runForEachChunk: forEachChunk }) => forEachChunk
)

export const untilIdleStream = Effect.map(
  Effect.promise(() => import("./tasks/untilIdle.js")),
  ({ preparedUntilIdle }) => preparedUntilIdle
)

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
  observe?: Observe,
  control: RunControl = new RunControl()
): Effect.Effect<Recording, AgentError, R | RunRequirements<Tools, Memory>> =>
  Effect.gen(function* () {
    const beginning = yield* idleBeginning(agent, options, control)
    if (beginning === undefined) {
      const run = yield* prepare(agent, input, options, control)
      return recordRun(run, retentionOf(options, control.abort), observe, control)
    }
    const untilIdle = yield* untilIdleStream
    const services = yield* Effect.context<R | RunRequirements<Tools, Memory>>()
    yield* runForEachChunk
    const run = yield* prepare(agent, input, options, control, firstTurn(beginning))
    const stream = untilIdle(beginning, options, run, services)
    return yield* recordStream(
      run.runId,
      stream,
      options,
      observe,
      control,
      run.close,
      run.structuring?.value
    )
  })

/** Runs that go, and who takes what they tell. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { done, type Ending, stopped } from "../agent/telemetry/spans.js"
import type { WorkflowSpan } from "../agent/telemetry/workflowSpan.js"
import type { Chunk } from "../protocol/Chunk.js"
import { StorageError, WorkflowRunLost } from "../protocol/Errors.js"
import { logWarning } from "../protocol/logging.js"
import type { Outcome } from "./attempt.js"
import { causeOf, finishOf } from "./ending.js"
import { failureOf } from "./failures.js"
import { interpret } from "./interpret.js"
import type { Keeper } from "./keeper.js"
import type { WorkflowEnd, WorkflowRun } from "./run.js"

/** A run that is ready to go. */
export interface Begun<in out R> {
  readonly run: WorkflowRun<R>
  readonly keeper: Keeper
  /** What traces are told of it. */
  readonly span: WorkflowSpan
  /** Lets go of everything outside. */
  readonly release: () => void
}

const tell = <R>(run: WorkflowRun<R>, end: WorkflowEnd): void =>
  run.finish(end, causeOf(run.runId, end), finishOf(run, end))

const endOf = (exit: Exit.Exit<Outcome, unknown>, workflowId: string): WorkflowEnd => {
  if (Exit.isFailure(exit)) return { _tag: "Failure", error: failureOf(exit.cause, workflowId, workflowId) }
  return exit.value._tag === "Done" ? { _tag: "Success", result: exit.value.value } : { _tag: "Suspended" }
}

/** How its span ends: a run that was interrupted has been stopped. */
const traceOf = (end: WorkflowEnd | undefined): Ending => {
  if (end === undefined || end._tag === "Aborted") return stopped
  return end._tag === "Failure" ? { _tag: "Failed", error: end.error } : done
}

/** Whether what is stored is worth more than what happened: it is not the steps that failed. */
const isOfStore = (end: WorkflowEnd): boolean =>
  end._tag === "Failure" && (end.error instanceof StorageError || end.error instanceof WorkflowRunLost)

/** What cannot be stored any more at the end of a run is no reason for it to end otherwise. */
const logged = (what: string, runId: string) => (error: unknown) =>
  logWarning(`Run "${runId}" could not be ${what}.`, error)

/** Stores how a run ended. */
const settle = <R>({ keeper, run }: Begun<R>, end: WorkflowEnd): Effect.Effect<WorkflowEnd> => {
  if (end._tag === "Suspended") {
    return Effect.match(keeper.waits, {
      onFailure: (error): WorkflowEnd => ({ _tag: "Failure", error }),
      onSuccess: () => end
    })
  }
  const isKept = isOfStore(end) || (end._tag === "Aborted" && run.control.isKept)
  const stored = isKept
    ? Effect.catchAll(keeper.released, logged("released", run.runId))
    : Effect.catchAll(keeper.over, logged("deleted", run.runId))
  return Effect.as(stored, end)
}

/**
 * Carries a run to its end, and tells of it. An abort is told at once; everything else when it is stored. A run that is
 * interrupted tells nothing more, and stays in the store for whoever restarts it.
 */
export const execute = <R>(begun: Begun<R>): Effect.Effect<void, never, R> => {
  const { keeper, run, span } = begun
  const leave = Effect.sync(() => {
    begun.release()
    span.end(traceOf(run.end))
  })
  const going = Effect.suspend(() => {
    run.begin()
    return Effect.raceFirst(interpret(run, keeper), keeper.heartbeat)
  })
  return Effect.acquireUseRelease(
    Effect.fork(Effect.interruptible(span.around(going))),
    // Once it is known how it ended, that is stored and told, whoever stops reading.
    fiber =>
      Effect.uninterruptibleMask(restore =>
        Effect.flatMap(restore(ending(run, fiber)), end => {
          if (end._tag !== "Aborted") return Effect.map(settle(begun, end), settled => tell(run, settled))
          tell(run, end)
          return Effect.zipRight(Fiber.interrupt(fiber), settle(begun, end))
        })
      ),
    (fiber, exit) =>
      Effect.zipRight(
        Fiber.interrupt(fiber),
        Exit.isSuccess(exit) ? Effect.void : Effect.ignore(keeper.released)
      )
  ).pipe(Effect.ensuring(leave), Effect.asVoid)
}

/** What a run ends with: it is carried to its end, or aborted. */
const ending = <R>(
  run: WorkflowRun<R>,
  fiber: Fiber.RuntimeFiber<Outcome, unknown>
): Effect.Effect<WorkflowEnd> =>
  Effect.async(resume => {
    const abort = () => {
      const { halted } = run.control
      resume(
        Effect.succeed({ _tag: "Aborted", reason: halted?._tag === "Aborted" ? halted.reason : undefined })
      )
    }
    run.control.onHalt(abort)
    if (run.control.halted !== undefined) return abort()
    fiber.addObserver(exit => resume(Effect.succeed(endOf(exit, run.graph.id))))
  })

/** Everything that a run has told since it was asked last; none when it is over. */
export const told = <R>(run: WorkflowRun<R>): Effect.Effect<ReadonlyArray<Chunk> | undefined> =>
  Effect.suspend(() => {
    const chunks = run.inbox.take()
    if (chunks.length > 0) return Effect.succeed(chunks)
    if (run.end !== undefined) return Effect.succeed(undefined)
    return Effect.zipRight(run.inbox.arrived, told(run))
  })

/** Who takes what a run tells. */
export interface Writer {
  readonly write: (chunks: ReadonlyArray<Chunk>) => void
  /** Whether the run may go on; when not, `resume` is called once, as soon as it may. */
  readonly mayGoOn: (resume: () => void) => boolean
}

/** Carries a run to its end, and hands on what it tells as fast as it is taken. */
export const drive = <R>(begun: Begun<R>, writer: Writer): Effect.Effect<void, never, R> =>
  Effect.gen(function* () {
    const { run } = begun
    const going = yield* Effect.fork(execute(begun))
    const room = Effect.async<void>(resume => {
      if (writer.mayGoOn(() => resume(Effect.void))) resume(Effect.void)
    })
    for (;;) {
      yield* room
      const chunks = yield* told(run)
      if (chunks === undefined) break
      writer.write(chunks)
    }
    yield* Fiber.join(going)
  }).pipe(Effect.ensuring(Effect.sync(() => begun.run.inbox.close())))

/** Runs of agents that serve somebody: a tool call of another run, or a step of a workflow. */
import * as Effect from "effect/Effect"
import { blockedBy, suspendedBy } from "../output/RunFold.js"
import type { Chunk } from "../protocol/Chunk.js"
import {
  type AgentError,
  type InvalidConfiguration,
  type InvalidResumeData,
  RunAborted,
  type RunBlocked,
  type RunNotFound,
  type RunSuspended,
  type ToolCallNotPending
} from "../protocol/Errors.js"
import { Caller, type CallerInfo } from "./caller.js"
import type { Agent } from "./definition.js"
import { raised } from "./loop/defect.js"
import { drive } from "./loop/driving.js"
import type { RunEnd } from "./loop/ending.js"
import { type Run, RunControl } from "./loop/run.js"
import { prepare } from "./prepare.js"
import type { RunOptions } from "./RunOptions.js"
import { resumeNested, stillWaiting, waitOf } from "./suspension/nestedRuns.js"
import { NestedWait } from "./suspension/nestedWait.js"

/** Whoever an agent works for. */
export interface Served {
  /** What it is called in messages. */
  readonly name: string
  readonly prompt: string
  /** What it was resumed with; `undefined`: it begins. */
  readonly resumeData: unknown
  /** What it had suspended with. */
  readonly suspendData: unknown
  /** Lays it aside. Does not come back. */
  readonly suspend: (data: unknown) => Effect.Effect<never>
  /** Whether a run that was laid aside, and is not there any more, is made again. */
  readonly beginsAgain: boolean
}

/** What a decision can fail with that is no fault of the run. */
type DecisionError = ToolCallNotPending | InvalidResumeData | RunNotFound

/** What a run that serves somebody can fail with. */
export type NestedError = AgentError | DecisionError | RunBlocked | RunSuspended

/** A decision that could not be carried out: the run waits as before. */
class Refused {
  constructor(readonly error: ToolCallNotPending | InvalidResumeData | InvalidConfiguration) {}
}

const tellAll = (caller: CallerInfo, chunks: ReadonlyArray<Chunk>): void => {
  for (const chunk of chunks) caller.tell(chunk)
}

const outcome = <R>(
  run: Run<R>,
  end: RunEnd,
  { suspend }: Served
): Effect.Effect<{ readonly text: string }, AgentError | RunBlocked | RunSuspended> => {
  switch (end._tag) {
    case "Success":
      return Effect.succeed({ text: run.suspension.earlier.text + run.fold.snapshot().text })
    case "Failure":
      return raised(end.error)
    case "Aborted":
      return Effect.fail(new RunAborted({ message: end.error.message }))
    case "Tripwire":
      return Effect.fail(blockedBy(end.tripwire))
    case "Suspended":
      if (end.suspensions.length > 0) return suspend(waitOf(run.runId, run.agentId, end.suspensions))
      // A process that has died had claimed what is left.
      return Effect.flatMap(stillWaiting(run.runId, run.agentId), wait =>
        wait === undefined ? Effect.fail(suspendedBy(run.runId)) : suspend(wait)
      )
  }
}

/** The run that had been laid aside, as somebody has decided. */
const goOn = <R>(
  agent: Agent<R>,
  served: Served,
  caller: CallerInfo,
  anew: Effect.Effect<Run<R>, AgentError, R>,
  options: RunOptions<[], undefined>
): Effect.Effect<Run<R> | Refused, AgentError | DecisionError, R> =>
  Effect.catchAll(
    resumeNested(agent, served.name, caller, served, options),
    (error): Effect.Effect<Run<R> | Refused, AgentError | DecisionError, R> => {
      switch (error._tag) {
        case "ToolCallNotPending":
        case "InvalidResumeData":
        case "InvalidConfiguration":
          return Effect.succeed(new Refused(error))
        case "RunNotFound":
          return served.beginsAgain ? anew : Effect.fail(error)
        default:
          return Effect.fail(error)
      }
    }
  )

/** Whoever is served waits again, as before, and says why. */
const waitAgain = <R>(
  { id }: Agent<R>,
  { suspend, suspendData }: Served,
  { error }: Refused
): Effect.Effect<never, AgentError | DecisionError> =>
  Effect.flatMap(stillWaiting(suspendData, id), wait =>
    wait === undefined
      ? Effect.fail(error)
      : suspend(new NestedWait(wait.runId, wait.agentId, wait.calls, error.message))
  )

/**
 * Runs an agent for the caller of this fiber: a new run, or, when the caller was resumed, the one that had been laid aside. What
 * it tells is told there. A run that waits for somebody lays its caller aside; so does a decision that cannot be carried out,
 * which changes nothing.
 */
export const runNested = <R>(
  agent: Agent<R>,
  served: Served,
  options: RunOptions<[], undefined>
): Effect.Effect<{ readonly text: string }, NestedError, R> =>
  Effect.flatMap(Caller, caller => {
    const anew = prepare<R, [], undefined>(agent, served.prompt, options, new RunControl())
    return Effect.acquireUseRelease(
      served.resumeData === undefined ? anew : goOn(agent, served, caller, anew, options),
      (run): Effect.Effect<{ readonly text: string }, NestedError, R> => {
        if (run instanceof Refused) return waitAgain(agent, served, run)
        return Effect.flatMap(
          drive(run, {
            write: chunks => tellAll(caller, chunks),
            mayGoOn: resume => caller.mayGoOn(resume)
          }),
          end => outcome(run, end, served)
        )
      },
      run => (run instanceof Refused ? Effect.void : run.close())
    )
  })

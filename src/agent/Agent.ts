/**
 * An agent: a model, instructions and tools. Run it as a cold stream ({@link stream}), hot with any number of readers
 * ({@link run}), or for its result ({@link generate}).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ResumeError } from "../background/deciding.js"
import { TaskManager } from "../background/TaskManager.js"
import type { FullOutput } from "../output/FullOutput.js"
import * as ModelOutput from "../output/ModelOutput.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { Input } from "../protocol/Conversation.js"
import {
  type AgentError,
  InvalidConfiguration,
  type RunNotFound,
  type StorageError,
  type StructuredOutputError,
  type ToolCallNotPending
} from "../protocol/Errors.js"
import { object, wrongValue } from "../protocol/options.js"
import type * as Tool from "../tool/Tool.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import type { Agent, RunRequirements } from "./definition.js"
import { RunControl } from "./loop/run.js"
import { toStream } from "./loop/streaming.js"
import { prepare } from "./prepare.js"
import type { MemoryOptions, RunOptions } from "./RunOptions.js"
import { record } from "./recording.js"
import type { OutputOf, WithStructuredOutput } from "./structuredOutput.js"
import { legOf, routed } from "./suspension/deciding.js"
import { answerOf, type Decision } from "./suspension/decisions.js"
import { listSuspended, type SuspendedFilter, type SuspendedRun } from "./suspension/finding.js"
import { firstTurn, idleBeginning, ofRun } from "./tasks/idleBeginning.js"
import { type ResumeOptions, resumeCall } from "./tasks/resuming.js"
import { taskExecutors } from "./tasks/taskExecutor.js"
import { beginWith, resumed, turnOf, untilIdle } from "./tasks/untilIdle.js"

export type { ResumeError } from "../background/deciding.js"
export type { PendingCall } from "../output/PendingCall.js"
export {
  type Agent,
  type AnyRunOptions,
  make,
  type Options,
  type RequirementsOf,
  type RunRequirements,
  TypeId
} from "./definition.js"
export type { Candidate, GoalOptions, Scorer, Verdict } from "./goals/GoalOptions.js"
export {
  clearObjective,
  getObjective,
  type ObjectiveThread,
  type SetObjectiveOptions,
  setObjective,
  type UpdateObjectiveOptions,
  updateObjectiveOptions
} from "./goals/objectives.js"
export type { OutputOf, StructuredOutput, WithStructuredOutput } from "./structuredOutput.js"
export { asTool, type SubAgentOptions } from "./subAgent.js"
export type { SuspendedFilter, SuspendedRun } from "./suspension/finding.js"
export type { ResumeOptions } from "./tasks/resuming.js"

/**
 * Runs an agent as a stream: cold, pulled, back-pressured. Each run of the stream is a run of the agent. The model is at
 * most 64 chunks ahead of whoever reads.
 *
 * A run that failed says so in the stream (`error`, then `finish`) and then fails the stream with the same error. A run
 * whose `abortSignal` fired ends with `abort` and `finish`. Wrong input or options fail the stream before any chunk.
 * Interruption stops the provider and the tools; the stream ends without a word.
 *
 * With `untilIdle` the stream holds several runs, one after the other, each from its `start` to its `finish`, and what happens
 * to the tasks of its scope. The later ones have the options of the first, but an id of their own. What stops the stream stops
 * the run that is going, and no task.
 *
 * @since 0.1.0
 * @category running
 */
export const stream = <
  R,
  const Tools extends ReadonlyArray<Tool.Any> = [],
  const Memory extends MemoryOptions | undefined = undefined
>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools, Memory> = {}
): Stream.Stream<Chunk, AgentError, R | RunRequirements<Tools, Memory>> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const control = new RunControl()
      const beginning = yield* idleBeginning(agent, options, control)
      const run = yield* Effect.acquireRelease(
        prepare(agent, input, options, control, firstTurn(beginning)),
        run => Effect.suspend(run.close)
      )
      return beginning === undefined
        ? toStream(run)
        : untilIdle(beginning, options, beginWith(run.runId, turnOf(run)))
    })
  )

/**
 * Starts a run that goes on by itself, in the scope, and gives its output at once: streams and values for any number of
 * readers. It is at most 64 chunks ahead of its furthest reader, plus 64 of the model; asking for a value lets it run to
 * its end. Closing the scope aborts it.
 *
 * Fails only with wrong input or options; what happens to the run later is in its output.
 *
 * @since 0.1.0
 * @category running
 */
export const run = <
  R,
  const Tools extends ReadonlyArray<Tool.Any> = [],
  const Memory extends MemoryOptions | undefined = undefined,
  S extends ToolSchema.Source = never
>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools, Memory> & WithStructuredOutput<S> = {}
): Effect.Effect<
  ModelOutput.ModelOutput<OutputOf<S>>,
  AgentError,
  R | RunRequirements<Tools, Memory> | Scope.Scope
> => Effect.map(begun<R, Tools, Memory, S>(agent, input, options), ({ output }) => output)

const begun = <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined,
  S extends ToolSchema.Source
>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools, Memory>
) =>
  Effect.gen(function* () {
    const { abort, going, recorded } = yield* record(agent, input, options)
    const fiber = yield* Effect.forkScoped(going)
    yield* Effect.addFinalizer(() => {
      abort("The scope of the run was closed.")
      return fiber.await
    })
    return { output: ModelOutput.make<OutputOf<S>>(recorded, abort), structured: recorded.structured }
  })

/** Everything that a decision about a call fails with before anything is told. @since 0.1.0 @category models */
export type DecideError = ResumeError | RunNotFound | ToolCallNotPending

const decided = <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  agent: Agent<R>,
  decision: Decision,
  options: ResumeOptions<Tools, Memory>
): Stream.Stream<Chunk, AgentError | DecideError, R | RunRequirements<Tools, Memory>> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const control = new RunControl()
      const route = yield* routed(agent, options)
      if (route._tag === "Task") {
        const call = yield* resumeCall(agent, answerOf(decision), options, control)
        return resumed(options, call)
      }
      const beginning = yield* idleBeginning(agent, ofRun(options), control)
      const leg = yield* Effect.acquireRelease(
        legOf(agent, route, decision, options, {}, control, firstTurn(beginning)),
        ({ run }) => Effect.suspend(run.close)
      )
      return beginning === undefined
        ? toStream(leg.run)
        : untilIdle(beginning, leg.options, beginWith(leg.run.runId, turnOf(leg.run)))
    })
  )

/**
 * Answers a call that waits: with `data`, which its tool is executed again with, or with `{ approved, reason? }` where it waits
 * for approval. The suspended run goes on, under its id, as a stream: it begins with a step that holds the outcome of the call.
 * When other calls of it still wait, it ends with reason `suspended` again, and tells which; when all are decided, the model is
 * asked again. The run is found in the `RunStore`, also after a restart.
 *
 * Of a call in the background it streams what happens to the task; with `untilIdle` also the turn in which the model answers to
 * its outcome, and whatever follows from that. Without it, the stream ends when the task has settled or suspended again; the
 * outcome is in the thread, for the next turn of the user. Interruption and an abort let the task go on; those of a run that
 * goes on are the failure of the call that is executed.
 *
 * Fails, before any chunk, when no such run of this agent waits (`RunNotFound`), or not for this call (`ToolCallNotPending`: of
 * two who decide about one call at once, one is told so); when the data does not match the `resume` schema of the tool
 * (`InvalidResumeData`), or with wrong options (`InvalidConfiguration`): the call waits as before then. A call in the background
 * that was decided already, or never waited, is `ToolCallNotPending` too; it also fails with `TaskExecutorNotFound`, and with
 * `InvalidTaskState` where the manager is shut down.
 *
 * @since 0.1.0
 * @category suspension
 */
export const resumeStream = <
  R,
  const Tools extends ReadonlyArray<Tool.Any> = [],
  const Memory extends MemoryOptions | undefined = undefined
>(
  agent: Agent<R>,
  data: unknown,
  options: ResumeOptions<Tools, Memory>
): Stream.Stream<Chunk, AgentError | DecideError, R | RunRequirements<Tools, Memory>> =>
  decided(agent, { _tag: "Resume", data }, options)

/**
 * Approves a call that waits for approval: it is executed, once, and the run goes on as in {@link resumeStream}, with the same
 * failures. A call that waits for something else is resumed with `{ approved: true }`.
 *
 * @since 0.1.0
 * @category suspension
 */
export const approveToolCall = <
  R,
  const Tools extends ReadonlyArray<Tool.Any> = [],
  const Memory extends MemoryOptions | undefined = undefined
>(
  agent: Agent<R>,
  options: ResumeOptions<Tools, Memory>
): Stream.Stream<Chunk, AgentError | DecideError, R | RunRequirements<Tools, Memory>> =>
  decided(agent, { _tag: "Approve" }, options)

/** Options of a call that is declined. @since 0.1.0 @category models */
export interface DeclineOptions<
  Tools extends ReadonlyArray<Tool.Any> = ReadonlyArray<Tool.Tool>,
  Memory extends MemoryOptions | undefined = MemoryOptions
> extends ResumeOptions<Tools, Memory> {
  /** What the model is told. Default: that the call was not approved. */
  readonly reason?: string
}

/**
 * Declines a call that waits: it is not executed, `tool-output-denied` says so, the model is told the reason, and the run goes on
 * as in {@link resumeStream}, with the same failures.
 *
 * @since 0.1.0
 * @category suspension
 */
export const declineToolCall = <
  R,
  const Tools extends ReadonlyArray<Tool.Any> = [],
  const Memory extends MemoryOptions | undefined = undefined
>(
  agent: Agent<R>,
  { reason, ...options }: DeclineOptions<Tools, Memory>
): Stream.Stream<Chunk, AgentError | DecideError, R | RunRequirements<Tools, Memory>> =>
  decided(agent, { _tag: "Decline", reason }, options)

/**
 * The runs of an agent that wait for a decision, the oldest first, each with the calls that wait. The filter goes to the
 * store: runs of others are not read. None where there is no `RunStore`.
 *
 * @since 0.1.0
 * @category suspension
 */
export const listSuspendedRuns = <R>(
  agent: Agent<R>,
  options: SuspendedFilter = {}
): Effect.Effect<ReadonlyArray<SuspendedRun>, StorageError | InvalidConfiguration> =>
  listSuspended(agent.id, options)

/**
 * Makes an agent known to the background tasks of this process, so that it goes on with tasks that another process has left
 * behind, and resumes suspended ones. A run of the agent does the same; an agent that may be needed before its first run is
 * registered when the process starts. Does nothing where no `BackgroundTasks` are provided.
 *
 * @since 0.1.0
 * @category background tasks
 */
export const register = <R>(agent: Agent<R>): Effect.Effect<void, never, R> =>
  Effect.gen(function* () {
    const manager = yield* Effect.serviceOption(TaskManager)
    if (Option.isSome(manager)) yield* manager.value.register(agent.id, yield* taskExecutors(agent))
  })

const neverIdle = new InvalidConfiguration({
  field: "untilIdle",
  message:
    "`generate` is one turn, and cannot wait until its tasks are answered. Use stream or run with `untilIdle`, or leave it out."
})

/**
 * Runs an agent to its end. Fails with the run's error; a run that was aborted by its signal fails with `RunAborted`, one that
 * gave no valid `structuredOutput` under the strategy `strict` with `StructuredOutputError`.
 * `untilIdle` is for streams: a default is ignored here, and it is refused otherwise.
 *
 * @since 0.1.0
 * @category running
 */
export const generate = <
  R,
  const Tools extends ReadonlyArray<Tool.Any> = [],
  const Memory extends MemoryOptions | undefined = undefined,
  S extends ToolSchema.Source = never
>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools, Memory> & WithStructuredOutput<S> = {}
): Effect.Effect<
  FullOutput<OutputOf<S>>,
  AgentError | StructuredOutputError,
  R | RunRequirements<Tools, Memory>
> =>
  !object.accepts(options)
    ? Effect.fail(wrongValue("options", options, "Give the options of the run, or leave them out."))
    : options.untilIdle !== undefined && options.untilIdle !== false
      ? Effect.fail(neverIdle)
      : Effect.flatMap(
          begun<R, Tools, Memory, S>(agent, input, { ...options, untilIdle: false }),
          ({ output, structured }) => {
            // Whoever generates is told of what there is not.
            if (structured !== undefined) structured.isAwaited = true
            const isStrict = structured?.errorStrategy === "strict"
            return Effect.flatMap(Effect.zipRight(output.drain, output.fullOutput), full =>
              isStrict && full.objectError !== undefined
                ? Effect.fail(full.objectError)
                : Effect.succeed(full)
            )
          }
        ).pipe(Effect.scoped)

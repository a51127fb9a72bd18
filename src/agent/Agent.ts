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
import { type AgentError, InvalidConfiguration, type StructuredOutputError } from "../protocol/Errors.js"
import type * as Tool from "../tool/Tool.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import type { Agent, RunRequirements } from "./definition.js"
import { RunControl } from "./loop/run.js"
import { toStream } from "./loop/streaming.js"
import { prepare } from "./prepare.js"
import type { MemoryOptions, RunOptions } from "./RunOptions.js"
import { record } from "./recording.js"
import type { OutputOf, WithStructuredOutput } from "./structuredOutput.js"
import { firstTurn, idleBeginning } from "./tasks/idleBeginning.js"
import { type ResumeOptions, resumeCall } from "./tasks/resuming.js"
import { taskExecutors } from "./tasks/taskExecutor.js"
import { beginWith, resumed, turnOf, untilIdle } from "./tasks/untilIdle.js"

export type { ResumeError } from "../background/deciding.js"
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

/**
 * Resumes a call that suspended in the background, and streams what happens to it; with `untilIdle` also the turn in which the
 * model answers to its outcome, and whatever follows from that. Without it, the stream ends when the task has settled or
 * suspended again; the outcome is in the thread, for the next turn of the user.
 *
 * Fails, before any chunk, when there is no such call of this agent, in this thread (`TaskNotFound`), when it is not suspended
 * (`InvalidTaskState`), when nobody here can run it (`TaskExecutorNotFound`), when the data does not match the `resume` schema
 * of the tool (`InvalidResumeData`), or with wrong options (`InvalidConfiguration`): the call stays suspended then.
 * Interruption and an abort let the task go on.
 *
 * @since 0.1.0
 * @category background tasks
 */
export const resumeStream = <
  R,
  const Tools extends ReadonlyArray<Tool.Any> = [],
  const Memory extends MemoryOptions | undefined = undefined
>(
  agent: Agent<R>,
  data: unknown,
  options: ResumeOptions<Tools, Memory>
): Stream.Stream<Chunk, AgentError | ResumeError, R | RunRequirements<Tools, Memory>> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const call = yield* resumeCall(agent, data, options, new RunControl())
      return resumed(options, call)
    })
  )

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
  options.untilIdle !== undefined && options.untilIdle !== false
    ? Effect.fail(neverIdle)
    : Effect.flatMap(
        begun<R, Tools, Memory, S>(agent, input, { ...options, untilIdle: false }),
        ({ output, structured }) => {
          // Whoever generates is told of what there is not.
          if (structured !== undefined) structured.isAwaited = true
          const isStrict = structured?.errorStrategy === "strict"
          return Effect.flatMap(Effect.zipRight(output.drain, output.fullOutput), full =>
            isStrict && full.objectError !== undefined ? Effect.fail(full.objectError) : Effect.succeed(full)
          )
        }
      ).pipe(Effect.scoped)

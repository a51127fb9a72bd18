/**
 * A workflow: steps that take what others gave, one after the other, beside each other, or again and again. Run it as a cold
 * stream ({@link stream}), hot with any number of readers ({@link run}), or for its result ({@link generate}).
 *
 * What its steps have done is kept in the `RunStore`, where one is provided: a run whose process has died goes on from there
 * ({@link restartStream}), and one that waits for somebody is resumed by any process ({@link resumeStream}).
 *
 * @since 0.1.0
 */
import * as Batch from "effect/Chunk"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Chunk } from "../protocol/Chunk.js"
import type { RunSuspended } from "../protocol/Errors.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import { restart, resume, start } from "./beginning.js"
import type { Given } from "./checking.js"
import { WorkflowControl } from "./control.js"
import { Draft, type Workflow } from "./Draft.js"
import { type Begun, execute, told } from "./executing.js"
import type { ResumeError, WorkflowError } from "./failures.js"
import { headOf } from "./head.js"
import type { RestartOptions, ResumeOptions, RunOptions } from "./RunOptions.js"
import { record } from "./recording.js"
import type { WorkflowResult } from "./result.js"
import * as WorkflowOutput from "./WorkflowOutput.js"

export { asTool, type ToolOptions } from "./asTool.js"
export {
  type AnyWorkflow,
  type Chosen,
  type Condition,
  Draft,
  type Fitting,
  type ForeachOptions,
  type ItemOf,
  type MapOptions,
  type RoundCondition,
  type Together,
  type Workflow
} from "./Draft.js"
export type { ResumeError, WorkflowError } from "./failures.js"
export { type ListOptions, list, remove, type UnfinishedRun, type UnfinishedRunPage } from "./listing.js"
export type { AnyRunOptions, RestartOptions, ResumeOptions, RunOptions } from "./RunOptions.js"
export type { WorkflowResult } from "./result.js"
export type { StepState, StepStatus, SuspendedStep, WorkflowState, WorkflowStatus } from "./state.js"
export type { WorkflowOutput } from "./WorkflowOutput.js"

/** What a workflow is made of, but for its steps. @since 0.1.0 @category models */
export interface Options<Input extends ToolSchema.Source, Success extends ToolSchema.Source> {
  /** What it is for; tells a model when to call it. */
  readonly description?: string
  /** What it takes. Without it anything. */
  readonly input?: Input
  /** What its last step must give. Without it anything. */
  readonly success?: Success
  /** How often a step is tried again that says nothing of it. Default 0. */
  readonly retries?: number
  /** Before the first of these; each further one waits twice as long, at most 30 seconds. Default 1 second. */
  readonly retryDelay?: Duration.DurationInput
}

/**
 * Begins a workflow. Add steps, and commit it:
 *
 * ```ts
 * Workflow.make("greet", { input: Schema.Struct({ name: Schema.String }) }).andThen(look).parallel([ask, write]).commit()
 * ```
 *
 * Throws `InvalidConfiguration`, here or at the step, for what cannot work: an id that is empty or has a dot, two steps of one
 * id, a schema that cannot be used, an unknown option.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <
  const Id extends string,
  Input extends ToolSchema.Source = ToolSchema.Anything,
  Success extends ToolSchema.Source = ToolSchema.Anything
>(
  id: Id,
  options: Options<Input, Success> = {}
): Draft<
  Id,
  Given<Input>,
  ToolSchema.Shown<Input, unknown>,
  ToolSchema.Shown<Input, unknown>,
  Success,
  never,
  never
> => new Draft(headOf(id, options), [])

/** The run starts with the stream; a fiber of the stream's scope carries it. */
const toStream = <R, E, E2, R2>(
  begin: Effect.Effect<Begun<R>, E, R2>
): Stream.Stream<Chunk, E | E2 | WorkflowError, R | R2> =>
  Stream.unwrapScoped(
    Effect.uninterruptibleMask(restore =>
      Effect.gen(function* () {
        const begun = yield* restore(begin)
        const going = yield* Effect.forkScoped(restore(execute(begun)))
        const { run } = begun
        yield* Effect.addFinalizer(() => Effect.sync(() => run.inbox.close()))
        const pull = Effect.flatMap(told(run), chunks => {
          if (chunks !== undefined) return Effect.succeed(Batch.unsafeFromArray(chunks))
          const end =
            // What steps fail with is what their types say.
            run.end?._tag === "Failure" ? Option.some(run.end.error as E2) : Option.none<E2>()
          return Effect.zipRight(Fiber.await(going), Effect.fail(end))
        })
        return Stream.repeatEffectChunkOption(pull)
      })
    )
  )

/**
 * Runs a workflow as a stream: cold, pulled, back-pressured. A run that failed says so in the stream (`error`, then `finish`)
 * and then fails the stream with the same error. A run whose `abortSignal` fired ends with `abort` and `finish`, one that
 * waits for somebody with a `finish` of reason `suspended`. Wrong input and options fail the stream before any chunk.
 * Interruption stops the steps; the stream ends without a word, and what was done stays in the store: see {@link restartStream}.
 *
 * @since 0.1.0
 * @category running
 */
export const stream = <Id extends string, In, Out, E, R>(
  workflow: Workflow<Id, In, Out, E, R>,
  options: RunOptions<In>
): Stream.Stream<Chunk, E | WorkflowError, R> =>
  Stream.suspend(() => toStream(start(workflow.body.graph, options, new WorkflowControl())))

/**
 * Goes on with a run that was suspended: with one step of it, which gets `resumeData`. Fails before any chunk, and changes
 * nothing, when there is no such run (`WorkflowRunNotFound`), the step is not suspended (`StepNotSuspended`), the data do not
 * match its schema (`InvalidStepResumeData`), or somebody goes on with the run already (`WorkflowRunBusy`).
 *
 * @since 0.1.0
 * @category running
 */
export const resumeStream = <Id extends string, In, Out, E, R>(
  workflow: Workflow<Id, In, Out, E, R>,
  options: ResumeOptions
): Stream.Stream<Chunk, E | WorkflowError | ResumeError, R> =>
  Stream.suspend(() => toStream(resume(workflow.body.graph, options, new WorkflowControl())))

/**
 * Goes on with a run that another process has left: what its steps have done is not done again, and what they were doing is.
 * Fails before any chunk when there is no such run (`WorkflowRunNotFound`), or somebody goes on with it already
 * (`WorkflowRunBusy`): a process that has died has it for 15 seconds at most.
 *
 * @since 0.1.0
 * @category running
 */
export const restartStream = <Id extends string, In, Out, E, R>(
  workflow: Workflow<Id, In, Out, E, R>,
  options: RestartOptions
): Stream.Stream<Chunk, E | WorkflowError | ResumeError, R> =>
  Stream.suspend(() => toStream(restart(workflow.body.graph, options, new WorkflowControl())))

/** A run that goes on by itself, in the scope. */
const hot = <A, E, R, E2, R2>(
  begin: (control: WorkflowControl) => Effect.Effect<Begun<R>, E2, R2>
): Effect.Effect<WorkflowOutput.WorkflowOutput<A, E>, E2, R | R2 | Scope.Scope> =>
  Effect.gen(function* () {
    const control = new WorkflowControl()
    const recording = yield* record(begin(control), control)
    const fiber = yield* Effect.forkScoped(recording.going)
    yield* Effect.addFinalizer(() => {
      control.shutDown("The scope of the run was closed.")
      return fiber.await
    })
    return WorkflowOutput.make<A, E>(recording)
  })

/**
 * Starts a run that goes on by itself, in the scope, and gives its output at once. It is at most 64 chunks ahead of its
 * furthest reader; asking for a value lets it run to its end. Closing the scope aborts it; what was done stays in the store.
 *
 * @since 0.1.0
 * @category running
 */
export const run = <Id extends string, In, Out, E, R>(
  workflow: Workflow<Id, In, Out, E, R>,
  options: RunOptions<In>
): Effect.Effect<WorkflowOutput.WorkflowOutput<Out, E>, WorkflowError, R | Scope.Scope> =>
  hot(control => start(workflow.body.graph, options, control))

/** {@link resumeStream}, hot. @since 0.1.0 @category running */
export const resumeRun = <Id extends string, In, Out, E, R>(
  workflow: Workflow<Id, In, Out, E, R>,
  options: ResumeOptions
): Effect.Effect<WorkflowOutput.WorkflowOutput<Out, E>, WorkflowError | ResumeError, R | Scope.Scope> =>
  hot(control => resume(workflow.body.graph, options, control))

/** {@link restartStream}, hot. @since 0.1.0 @category running */
export const restartRun = <Id extends string, In, Out, E, R>(
  workflow: Workflow<Id, In, Out, E, R>,
  options: RestartOptions
): Effect.Effect<WorkflowOutput.WorkflowOutput<Out, E>, WorkflowError | ResumeError, R | Scope.Scope> =>
  hot(control => restart(workflow.body.graph, options, control))

/**
 * Runs a workflow to its end, or until it waits for somebody. Fails with the error of a run that failed; one that was aborted
 * by its signal fails with `RunAborted`.
 *
 * @since 0.1.0
 * @category running
 */
export const generate = <Id extends string, In, Out, E, R>(
  workflow: Workflow<Id, In, Out, E, R>,
  options: RunOptions<In>
): Effect.Effect<
  Extract<WorkflowResult<Out>, { readonly status: "success" | "suspended" }>,
  Exclude<E | WorkflowError, RunSuspended>,
  R
> =>
  Effect.scoped(
    Effect.flatMap(run(workflow, options), output =>
      Effect.flatMap(output.fullOutput, full => {
        if (full.status === "success" || full.status === "suspended") return Effect.succeed(full)
        // As in the stream.
        return Effect.fail(full.error as Exclude<E | WorkflowError, RunSuspended>)
      })
    )
  )

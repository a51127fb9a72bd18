/**
 * A step of a workflow: something with an id that takes JSON, and gives JSON.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { at, checkOptions, type Kind, type Known, read, text } from "../protocol/options.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import { checked, type Given } from "./checking.js"
import type { Body, Step, StepContext } from "./definition.js"
import { checkId, ofBody } from "./ofBody.js"
import { wrongInput, wrongResult } from "./wrong.js"

export {
  type AgentStepError,
  type AgentStepInput,
  type AgentStepOptions,
  type AgentStepOutput,
  agentStep as fromAgent
} from "./agentStep.js"
export {
  type AnyStep,
  type DataContext,
  type ErrorOf,
  type OutputOf,
  type RequirementsOf,
  type RoundContext,
  type RunContext,
  type Step,
  type StepContext,
  type StepResults,
  TypeId
} from "./definition.js"
export { isStep } from "./ofBody.js"

/**
 * What a step is made of.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<
  Input extends ToolSchema.Source,
  Success extends ToolSchema.Source,
  Resume extends ToolSchema.Source,
  Suspend extends ToolSchema.Source,
  A,
  E,
  R
> {
  readonly description?: string
  /** What it takes: an Effect Schema, a Standard Schema or a JSON Schema. Without it anything. */
  readonly input?: Input
  /** What `execute` must return. Without it anything that has a JSON form. */
  readonly success?: Success
  /** What it must be resumed with. Without it anything. */
  readonly resume?: Resume
  /** What it must suspend with. Without it anything. */
  readonly suspend?: Suspend
  /** How often it is tried again after it has failed, or taken too long. Default: the workflow's, which is 0. */
  readonly retries?: number
  /** Before the first of these; each further one waits twice as long, at most 30 seconds. Default: the workflow's, which is 1 second. */
  readonly retryDelay?: Duration.DurationInput
  /** How long an attempt may take; a number is milliseconds. Then it fails with `StepTimedOut`. Default: any time. */
  readonly timeout?: Duration.DurationInput
  /** Does it. It is interrupted when the run is aborted or another step fails, and its `abortSignal` fires. */
  readonly execute: (
    input: ToolSchema.Decoded<Input>,
    context: StepContext<ToolSchema.Decoded<Resume>, ToolSchema.Accepted<Suspend>>
  ) => Effect.Effect<A, E, R>
}

type AnyOptions = Options<
  ToolSchema.Source,
  ToolSchema.Source,
  ToolSchema.Source,
  ToolSchema.Source,
  unknown,
  unknown,
  unknown
>

const known: Known = {
  kinds: {
    description: text,
    input: read,
    success: read,
    resume: read,
    suspend: read,
    retries: read,
    retryDelay: read,
    timeout: read,
    execute: read
  } satisfies Record<keyof AnyOptions, Kind>,
  places: {
    inputSchema: at("input"),
    outputSchema: at("success"),
    resumeSchema: at("resume"),
    suspendSchema: at("suspend"),
    retryDelayMs: at("retryDelay"),
    timeoutMs: at("timeout")
  }
}

/**
 * Makes a step. Throws `InvalidConfiguration` when the id is empty or has a dot, a schema cannot be used, or an option is not
 * known.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <
  const Id extends string,
  A extends ToolSchema.Accepted<Success>,
  E = never,
  R = never,
  Input extends ToolSchema.Source = ToolSchema.Anything,
  Success extends ToolSchema.Source = ToolSchema.Anything,
  Resume extends ToolSchema.Source = ToolSchema.Anything,
  Suspend extends ToolSchema.Source = ToolSchema.Anything
>(
  id: Id,
  options: Options<Input, Success, Resume, Suspend, A, E, R>
): Step<Id, Given<Input>, ToolSchema.Shown<Success, A>, E, R> => {
  checkId("A step", id)
  checkOptions(`Step "${id}"`, options, known)
  const { execute, input, resume, success, suspend } = options
  if (typeof execute !== "function") {
    throw new InvalidConfiguration({
      field: "execute",
      message: `Step "${id}" has no \`execute\`. Give it a function that does the work.`
    })
  }
  const given = checked(input, `${id}.input`)
  const returned = checked(success, `${id}.success`)
  const body: Body<R> = {
    _tag: "Leaf",
    resume: checked(resume, `${id}.resume`),
    suspend: checked(suspend, `${id}.suspend`),
    execute: (value, context) =>
      given.decode(value).pipe(
        Effect.mapError(({ message }) => wrongInput(context, message)),
        // What was decoded is what the schemas say: see `ToolSchema.Decoded`.
        Effect.flatMap(decoded =>
          execute(decoded as ToolSchema.Decoded<Input>, context as Parameters<typeof execute>[1])
        ),
        Effect.flatMap(output =>
          Effect.mapError(returned.encode(output), wrongResult(context.workflowId, context.stepId))
        )
      )
  }
  return ofBody(id, options, body)
}

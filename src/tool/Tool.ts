/**
 * A tool: something that a model may ask for, with a name, a description, a schema for its arguments and, unless the
 * client executes it, an Effect that does it.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { JsonSchema, ToolDefinition } from "../model/ModelPort.js"
import {
  InvalidConfiguration,
  InvalidResumeData,
  InvalidSuspendData,
  InvalidToolArguments,
  InvalidToolOutput
} from "../protocol/Errors.js"
import { callUser } from "../protocol/foreignValue.js"
import { at, callback, checkOptions, type Kind, type Known, read, shown, text } from "../protocol/options.js"
import { type Approval, type ApprovalPolicy, approvalOf } from "./approval.js"
import { type BackgroundOptions, type BackgroundSettings, backgroundOf, milliseconds } from "./background.js"
import type { ToolContext } from "./ToolContext.js"
import * as ToolSchema from "./ToolSchema.js"

/** @since 0.1.0 @category symbols */
export const TypeId: unique symbol = Symbol.for("eddy/Tool")

/** @since 0.1.0 @category symbols */
export type TypeId = typeof TypeId

/**
 * A tool that needs `R`. What its `execute` takes, returns and fails with is known where it is made; from then on it is
 * arguments in, a value or a failure out.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tool<out Name extends string = string, out R = never> {
  readonly [TypeId]: TypeId
  readonly name: Name
  /** The tool as the model is told of it. */
  readonly definition: ToolDefinition
  /**
   * Checks the arguments, executes, checks the output. Fails with `InvalidToolArguments` (nothing was executed),
   * `InvalidToolOutput`, or what the tool fails with. `undefined`: the client executes this tool.
   */
  readonly call: ((args: unknown, context: ToolContext) => Effect.Effect<unknown, unknown, R>) | undefined
  /** Checks arguments as `call` does, and executes nothing. */
  readonly check: (args: unknown) => Effect.Effect<void, InvalidToolArguments>
  /** Whether somebody has to approve a call before it is executed; `undefined`: the run says it. */
  readonly requireApproval: Approval | undefined
  /** Checks and reads what a suspended call is resumed with. `suspendData`: what it was suspended with. */
  readonly readResumeData: (data: unknown, suspendData?: unknown) => Effect.Effect<unknown, InvalidResumeData>
  /** What a suspended call must be resumed with, as JSON Schema; `undefined`: anything. */
  readonly resumeSchema: (() => JsonSchema) | undefined
  /** Milliseconds that a call may take; `undefined`: any time. In the background `background` says it. */
  readonly timeout: number | undefined
  /** How it runs in the background; `undefined`: only when the agent says so. */
  readonly background: BackgroundSettings | undefined
  /** Other names by which an agent's settings may speak of it. */
  readonly aliases: ReadonlyArray<string>
  /** What the model is told of an output instead of the output itself. */
  readonly toModelOutput: ((output: unknown) => Effect.Effect<unknown, unknown>) | undefined
}

/** Any tool. @since 0.1.0 @category models */
export type Any = Tool<string, unknown>

/** Whether a value is a tool. @since 0.1.0 @category guards */
export const isTool = (value: unknown): boolean =>
  typeof value === "object" && value !== null && TypeId in value

/** What a tool needs from its surroundings. @since 0.1.0 @category models */
export type Requirements<T> = T extends Tool<string, infer R> ? R : never

/**
 * What a tool is made of.
 *
 * - `description`: tells the model what the tool is for.
 * - `input`: what the arguments must be, as an Effect Schema, a Standard Schema or a JSON Schema. Without it the tool takes
 *   no arguments.
 * - `success`: what `execute` must return. Without it any value goes.
 * - `execute`: does it. Its failure is told to the model (`tool-error`) and does not end the run. It is interrupted when
 *   the run is aborted, and its `abortSignal` fires. Without it the client executes the tool: the run ends with reason
 *   `tool-calls`, and the client sends the result with the next call.
 * - `timeout`: how long a call may take; a number is milliseconds. One that takes longer is interrupted and fails with
 *   `ToolTimedOut`. Default: any time.
 * - `toModelOutput`: what the model is told of an output, in place of what the stream shows.
 * - `background`: how it runs in the background, beside the conversation. Default: it does not. A task has the `FiberRef`s and the
 *   services of its run, and may outlive these: provide what its `execute` needs where the manager lives, and not around the run.
 *   A tool with `background` needs no `Scope`: wrap what acquires in `Effect.scoped`.
 * - `requireApproval`: whether somebody has to approve a call before it is executed: yes, no, or a function of the arguments
 *   and the call. One that fails, throws or dies means yes. It wins over the run's `requireToolApproval`. A call that has to be
 *   approved is stored, and the run ends with reason `suspended`, see `Agent.approveToolCall`. Default: the run says it.
 * - `suspend`: what a call may suspend with, as a schema. What does not match fails the call with `InvalidSuspendData`.
 *   Without it any value goes; what JSON cannot hold is made safe.
 * - `resume`: what a suspended call must be resumed with, as a schema. Without it any value goes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<Input extends ToolSchema.Source, Success extends ToolSchema.Source, A, E, R> {
  readonly description?: string
  readonly input?: Input
  readonly success?: Success
  readonly execute?: (input: ToolSchema.Decoded<Input>, context: ToolContext) => Effect.Effect<A, E, R>
  readonly timeout?: Duration.DurationInput
  readonly toModelOutput?: (
    output: ToolSchema.Shown<Success, NoInfer<A>>
  ) => unknown | Effect.Effect<unknown, unknown>
  readonly background?: BackgroundOptions
  readonly requireApproval?: boolean | ApprovalPolicy<ToolSchema.Decoded<Input>>
  readonly suspend?: ToolSchema.Source
  readonly resume?: ToolSchema.Source
}

/** Refuses `background` where `R` has a `Scope`: that of the caller ends before the task does. */
type OwnScope<R> = [Scope.Scope] extends [R]
  ? {
      readonly background?: "A call in the background outlives the scope of its run: wrap what acquires in Effect.scoped"
    }
  : unknown

const known: Known = {
  kinds: {
    description: text,
    input: read,
    success: read,
    execute: callback,
    timeout: read,
    toModelOutput: callback,
    background: read,
    requireApproval: read,
    suspend: read,
    resume: read
  } satisfies Record<keyof Options<ToolSchema.Empty, ToolSchema.Anything, unknown, unknown, unknown>, Kind>,
  places: {
    inputSchema: at("input"),
    parameters: at("input"),
    outputSchema: at("success"),
    output: at("success"),
    suspendSchema: at("suspend"),
    resumeSchema: at("resume"),
    needsApproval: at("requireApproval"),
    timeoutMs: at("timeout"),
    retries: at("background.retries")
  }
}

const namePattern = /^[A-Za-z0-9_-]{1,128}$/

const makeRead =
  <A>(name: string, input: ToolSchema.ToolSchema<A>) =>
  (args: unknown): Effect.Effect<A, InvalidToolArguments> =>
    Effect.mapError(
      input.decode(args),
      ({ message }) =>
        new InvalidToolArguments({
          toolName: name,
          message: `Invalid arguments for tool "${name}": ${message}`
        })
    )

const makeReadResumeData =
  (name: string, resume: ToolSchema.ToolSchema<unknown> | undefined) =>
  (data: unknown): Effect.Effect<unknown, InvalidResumeData> =>
    resume === undefined
      ? Effect.succeed(data)
      : Effect.mapError(
          resume.decode(data),
          ({ message }) =>
            new InvalidResumeData({
              toolName: name,
              message: `Tool "${name}" cannot be resumed with this: ${message}`
            })
        )

/** A context whose `suspend` checks first. What does not match dies: `suspend` does not come back. */
const checkingSuspension =
  (name: string, suspend: ToolSchema.ToolSchema<unknown>) =>
  (context: ToolContext): ToolContext => ({
    ...context,
    // A signal is made when it is asked for, and not by a copy.
    get abortSignal() {
      return context.abortSignal
    },
    suspend: data =>
      Effect.flatMap(
        Effect.mapError(
          suspend.encode(data),
          ({ message }) =>
            new InvalidSuspendData({
              toolName: name,
              message: `Tool "${name}" cannot suspend with this: ${message}`
            })
        ),
        context.suspend
      ).pipe(Effect.orDie)
  })

const makeCall = <A, E, R>(
  name: string,
  read: (args: unknown) => Effect.Effect<A, InvalidToolArguments>,
  success: ToolSchema.ToolSchema<unknown> | undefined,
  execute: (input: A, context: ToolContext) => Effect.Effect<unknown, E, R>
) => {
  const wrongOutput = ({ message }: ToolSchema.InvalidValue) =>
    new InvalidToolOutput({ toolName: name, message: `Tool "${name}" returned a wrong output: ${message}` })
  const checked = (value: unknown) =>
    // A value that says of itself that it is an error is no output: the schema describes outputs.
    success === undefined || isErrorValue(value)
      ? Effect.succeed(value)
      : Effect.mapError(success.encode(value), wrongOutput)
  return (args: unknown, context: ToolContext): Effect.Effect<unknown, unknown, R> => {
    const executed = Effect.flatMap(read(args), decoded => execute(decoded, context))
    return success === undefined ? executed : Effect.flatMap(executed, checked)
  }
}

/** What a function that throws dies with is told as any other failure of the call. */
const effectOf =
  <A>(tell: (output: A) => unknown): ((output: A) => Effect.Effect<unknown, unknown>) =>
  output =>
    callUser<unknown, unknown>(() => tell(output))

/** Whether a value says of itself that it is an error, as results of the Model Context Protocol do. @since 0.1.0 @category guards */
export const isErrorValue = (value: unknown): value is { readonly isError: true } =>
  typeof value === "object" && value !== null && "isError" in value && value.isError === true

/**
 * Makes a tool. Throws `InvalidConfiguration` when the name is one that providers refuse (they take up to 128 letters,
 * digits, hyphens and underscores) or a schema cannot be used.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <
  const Name extends string,
  A extends ToolSchema.Accepted<Success>,
  E = never,
  R = never,
  Input extends ToolSchema.Source = ToolSchema.Empty,
  Success extends ToolSchema.Source = ToolSchema.Anything
>(
  name: Name,
  options: Options<Input, Success, A, E, R> & OwnScope<R>
): Tool<Name, R> => {
  if (typeof name !== "string" || !namePattern.test(name)) {
    throw new InvalidConfiguration({
      field: "name",
      message: `${shown(name)} cannot be the name of a tool. Use 1 to 128 letters, digits, hyphens and underscores.`
    })
  }
  checkOptions(`Tool "${name}"`, options, known)
  const input = ToolSchema.input(options.input, `${name}.input`)
  const success =
    options.success === undefined ? undefined : ToolSchema.output(options.success, `${name}.success`)
  const { background, description, execute, requireApproval, resume, suspend, timeout, toModelOutput } =
    options
  if (background?.enabled === true && execute === undefined) {
    throw new InvalidConfiguration({
      field: "background.enabled",
      message: `Tool "${name}" is executed by the client, which no background task can do. Give it \`execute\`, or leave \`background\` out.`
    })
  }
  if (requireApproval !== undefined && requireApproval !== false && execute === undefined) {
    throw new InvalidConfiguration({
      field: "requireApproval",
      message: `Tool "${name}" is executed by the client, which asks by itself. Give it \`execute\`, or leave \`requireApproval\` out.`
    })
  }
  const read = makeRead(name, input)
  const resumed = resume === undefined ? undefined : ToolSchema.output(resume, `${name}.resume`)
  const suspended = suspend === undefined ? undefined : ToolSchema.output(suspend, `${name}.suspend`)
  const checking = suspended === undefined ? undefined : checkingSuspension(name, suspended)
  return {
    [TypeId]: TypeId,
    name,
    definition: {
      name,
      ...(description === undefined ? {} : { description }),
      inputSchema: input.jsonSchema
    },
    call:
      execute === undefined
        ? undefined
        : makeCall(
            name,
            read,
            success,
            checking === undefined ? execute : (decoded, context) => execute(decoded, checking(context))
          ),
    check: args => Effect.asVoid(read(args)),
    requireApproval: approvalOf(requireApproval, read),
    readResumeData: makeReadResumeData(name, resumed),
    resumeSchema: resumed === undefined ? undefined : () => resumed.jsonSchema,
    timeout: timeout === undefined ? undefined : milliseconds("timeout", timeout),
    background: background === undefined ? undefined : backgroundOf(background),
    aliases: [],
    // What the call gives is what the schema or `execute` says; see `Shown`.
    toModelOutput:
      toModelOutput === undefined ? undefined : effectOf(toModelOutput as (output: unknown) => unknown)
  }
}

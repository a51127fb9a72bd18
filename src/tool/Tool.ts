/**
 * A tool: something that a model may ask for, with a name, a description, a schema for its arguments and, unless the
 * client executes it, an Effect that does it.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ToolDefinition } from "../model/ModelPort.js"
import { InvalidConfiguration, InvalidToolArguments, InvalidToolOutput } from "../protocol/Errors.js"
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
  /** Milliseconds that a call may take; `undefined`: any time. */
  readonly timeout: number | undefined
  /** What the model is told of an output instead of the output itself. */
  readonly toModelOutput: ((output: unknown) => Effect.Effect<unknown, unknown>) | undefined
}

/** Any tool. @since 0.1.0 @category models */
export type Any = Tool<string, unknown>

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
}

const namePattern = /^[A-Za-z0-9_-]{1,128}$/

const makeCall = <A, E, R>(
  name: string,
  input: ToolSchema.ToolSchema<A>,
  success: ToolSchema.ToolSchema<unknown> | undefined,
  execute: (input: A, context: ToolContext) => Effect.Effect<unknown, E, R>
) => {
  const wrongArguments = ({ message }: ToolSchema.InvalidValue) =>
    new InvalidToolArguments({ toolName: name, message: `Invalid arguments for tool "${name}": ${message}` })
  const wrongOutput = ({ message }: ToolSchema.InvalidValue) =>
    new InvalidToolOutput({ toolName: name, message: `Tool "${name}" returned a wrong output: ${message}` })
  const checked = (value: unknown) =>
    // A value that says of itself that it is an error is no output: the schema describes outputs.
    success === undefined || isErrorValue(value)
      ? Effect.succeed(value)
      : Effect.mapError(success.encode(value), wrongOutput)
  return (args: unknown, context: ToolContext): Effect.Effect<unknown, unknown, R> => {
    const executed = Effect.flatMap(Effect.mapError(input.decode(args), wrongArguments), decoded =>
      execute(decoded, context)
    )
    return success === undefined ? executed : Effect.flatMap(executed, checked)
  }
}

/** A time limit in milliseconds. Throws `InvalidConfiguration`, which names `field`, when it is none. @since 0.1.0 @category conversions */
export const milliseconds = (field: string, limit: Duration.DurationInput): number => {
  const duration = Duration.decodeUnknown(limit)
  const millis = duration._tag === "Some" ? Duration.toMillis(duration.value) : Number.NaN
  if (millis > 0 && millis <= longestTimer) return millis
  throw new InvalidConfiguration({
    field,
    message: `\`${field}\` is ${String(limit)}. Give a time above 0 and below 24 days: milliseconds, or a text such as "30 seconds".`
  })
}

/** Timers of the platform count in 32 bits, and fire at once beyond them. */
const longestTimer = 2 ** 31 - 1

/** What a function that throws dies with is told as any other failure of the call. */
const effectOf =
  <A>(tell: (output: A) => unknown): ((output: A) => Effect.Effect<unknown, unknown>) =>
  output =>
    Effect.suspend(() => {
      const told = tell(output)
      return Effect.isEffect(told) ? (told as Effect.Effect<unknown, unknown>) : Effect.succeed(told)
    })

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
  options: Options<Input, Success, A, E, R>
): Tool<Name, R> => {
  if (typeof name !== "string" || !namePattern.test(name)) {
    throw new InvalidConfiguration({
      field: "name",
      message: `"${name}" cannot be the name of a tool. Use 1 to 128 letters, digits, hyphens and underscores.`
    })
  }
  const input = ToolSchema.input(options.input, `${name}.input`)
  const success =
    options.success === undefined ? undefined : ToolSchema.output(options.success, `${name}.success`)
  const { description, execute, timeout, toModelOutput } = options
  return {
    [TypeId]: TypeId,
    name,
    definition: {
      name,
      ...(description === undefined ? {} : { description }),
      inputSchema: input.jsonSchema
    },
    call: execute === undefined ? undefined : makeCall(name, input, success, execute),
    timeout: timeout === undefined ? undefined : milliseconds("timeout", timeout),
    // What the call gives is what the schema or `execute` says; see `Shown`.
    toModelOutput:
      toModelOutput === undefined ? undefined : effectOf(toModelOutput as (output: unknown) => unknown)
  }
}

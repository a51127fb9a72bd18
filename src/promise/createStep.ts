/**
 * Steps of workflows for plain TypeScript.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Runtime from "effect/Runtime"
import { InvalidConfiguration } from "../protocol/Errors.js"
import {
  at,
  checkOptions,
  id,
  isOptions,
  type Kind,
  type Known,
  number,
  read,
  shown,
  text,
  wrongValue
} from "../protocol/options.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import type { Given } from "../workflow/checking.js"
import type { RunContext, Step, StepContext } from "../workflow/definition.js"
import * as CoreStep from "../workflow/Step.js"
import { Agent } from "./Agent.js"
import { type Suspend, suspendable } from "./fromPromise.js"
import type { ToolWriter } from "./toolContext.js"

/** What a step knows of the run it belongs to. @since 0.1.0 @category models */
export interface StepExecution<Data, Resume, Suspend> extends RunContext {
  /** What the step was given, as its input schema reads it. */
  readonly inputData: Data
  /** As in chunks: with the ids of the workflows around it, when it belongs to one that is a step. */
  readonly stepId: string
  /** From 1. */
  readonly attempt: number
  /** What the workflow was given. */
  readonly getInitData: () => unknown
  /** What the step was resumed with, after it had suspended; `undefined` before. */
  readonly resumeData: Resume | undefined
  /** What it had suspended with. */
  readonly suspendData: unknown
  /**
   * Suspends the step: it is stored with `data`. `await suspend(data)` does not return: it throws an `AbortError`, so that the
   * code behind it does not run and `finally` blocks do. What the step returns or throws after that is ignored. When the step is
   * resumed, it is executed again from its start, with `resumeData`.
   */
  readonly suspend: (data?: Suspend) => Promise<never>
  /**
   * Fires when the attempt is stopped: it took too long, another step failed, or the run was aborted. Nobody waits for a step
   * that ignores it.
   */
  readonly abortSignal: AbortSignal
  /** Puts `step-output` and `data-*` chunks on the stream. There is no need to wait for its promises. */
  readonly writer: ToolWriter
}

/** What a step is made of. @since 0.1.0 @category models */
export interface CreateStepOptions<
  Id extends string,
  Input extends ToolSchema.Source,
  Output extends ToolSchema.Source,
  Resume extends ToolSchema.Source,
  Suspend extends ToolSchema.Source,
  A
> {
  /** What it is called in chunks and results. No dots: they stand between a workflow and its steps. */
  readonly id: Id
  readonly description?: string
  /** A Standard Schema (zod 4, valibot, arktype), an Effect Schema or a JSON Schema. Without it anything. */
  readonly inputSchema?: Input
  /** What `execute` must return. Without it anything that has a JSON form. */
  readonly outputSchema?: Output
  /** What it must be resumed with. Without it anything. */
  readonly resumeSchema?: Resume
  /** What it must suspend with. Without it anything. */
  readonly suspendSchema?: Suspend
  /** How often it is tried again after it has failed, or taken too long. Default: the workflow's, which is 0. */
  readonly retries?: number
  /** Milliseconds before the first of these; each further one waits twice as long, at most 30 000. Default: the workflow's, 1000. */
  readonly retryDelayMs?: number
  /** How long an attempt may take: milliseconds, or a text such as `"30 seconds"`. Default: any time. */
  readonly timeout?: Duration.DurationInput
  /** Does it. What it throws fails the step, and the run when no retries are left. */
  readonly execute: (
    execution: StepExecution<
      ToolSchema.Decoded<Input>,
      ToolSchema.Decoded<Resume>,
      ToolSchema.Accepted<Suspend>
    >
  ) => Promise<A> | A
}

/** A step of the Promise facade; a workflow is one. @since 0.1.0 @category models */
export type PromiseStep<Id extends string, In, Out> = Step<Id, In, Out, unknown>

/** How an agent is a step. @since 0.1.0 @category models */
export interface AgentAsStep<Id extends string> {
  /** Default: the agent's. */
  readonly id?: Id
  readonly description?: string
  /** How often it is run again after it has failed. Default: the workflow's, which is 0. */
  readonly retries?: number
}

const known: Known = {
  kinds: {
    id,
    description: text,
    inputSchema: read,
    outputSchema: read,
    resumeSchema: read,
    suspendSchema: read,
    retries: read,
    retryDelayMs: number,
    timeout: read,
    execute: read
  } satisfies Record<keyof AnyOptions, Kind>,
  places: {
    input: at("inputSchema"),
    output: at("outputSchema"),
    maxRetries: at("retries"),
    timeoutMs: at("timeout")
  }
}

const agentStepKinds = {
  id: text,
  description: text,
  retries: read
} satisfies Record<keyof AgentAsStep<string>, Kind>

/** The words of the facade's options in the place of the Effect face's. */
const words: Readonly<Record<string, string>> = {
  input: "inputSchema",
  success: "outputSchema",
  resume: "resumeSchema",
  suspend: "suspendSchema",
  retryDelay: "retryDelayMs"
}

/** What is wrong with a step or a workflow, in the names of the facade's options. */
export const inFacadeWords = <A>(id: string, make: () => A): A => {
  try {
    return make()
  } catch (cause) {
    if (!(cause instanceof InvalidConfiguration)) throw cause
    const translate = (text: string): string =>
      Object.entries(words).reduce(
        (told, [word, name]) =>
          told.replaceAll(`${id}.${word}`, name).replaceAll(`\`${word}\``, `\`${name}\``),
        text
      )
    throw new InvalidConfiguration({
      field: words[cause.field] ?? translate(cause.field),
      message: translate(cause.message)
    })
  }
}

type Execution = StepExecution<unknown, unknown, unknown>

const toExecution = (
  inputData: unknown,
  context: StepContext,
  suspend: Suspend,
  runtime: Runtime.Runtime<never>
): Execution => ({
  runId: context.runId,
  workflowId: context.workflowId,
  stepId: context.stepId,
  attempt: context.attempt,
  requestContext: context.requestContext,
  getStepResult: context.getStepResult,
  getInitData: context.getInitData,
  inputData,
  resumeData: context.resumeData,
  suspendData: context.suspendData,
  suspend,
  // Made when it is asked for: most steps do not.
  get abortSignal() {
    return context.abortSignal
  },
  writer: {
    write: output => Runtime.runPromise(runtime)(context.write(output)),
    custom: part => Runtime.runPromise(runtime)(context.writeData(part))
  }
})

interface CreateStep {
  /** An agent as a step: it takes `{ prompt }` and gives `{ text }`; its chunks come as `step-output`. */
  <const Id extends string = string>(
    agent: Agent,
    options?: AgentAsStep<Id>
  ): PromiseStep<Id, { readonly prompt: string }, { readonly text: string }>
  <
    const Id extends string,
    A extends ToolSchema.Accepted<Output>,
    Input extends ToolSchema.Source = ToolSchema.Anything,
    Output extends ToolSchema.Source = ToolSchema.Anything,
    Resume extends ToolSchema.Source = ToolSchema.Anything,
    Suspend extends ToolSchema.Source = ToolSchema.Anything
  >(
    options: CreateStepOptions<Id, Input, Output, Resume, Suspend, A>
  ): PromiseStep<Id, Given<Input>, ToolSchema.Shown<Output, A>>
}

type AnyOptions = CreateStepOptions<
  string,
  ToolSchema.Source,
  ToolSchema.Source,
  ToolSchema.Source,
  ToolSchema.Source,
  unknown
>

const ofFunction = (options: AnyOptions): PromiseStep<string, unknown, unknown> => {
  if (!isOptions(options)) throw wrongValue("options", options, "Give { id, execute }, or an agent.")
  checkOptions(`Step ${shown(options.id)}`, options, known)
  const {
    description,
    execute,
    id: stepId,
    inputSchema,
    outputSchema,
    resumeSchema,
    retries,
    retryDelayMs,
    suspendSchema,
    timeout
  } = options
  if (typeof execute !== "function") {
    throw new InvalidConfiguration({
      field: "execute",
      message: `Step "${stepId}" has no \`execute\`. Give it a function that does the work.`
    })
  }
  return inFacadeWords(stepId, () =>
    CoreStep.make(stepId, {
      ...(description === undefined ? {} : { description }),
      ...(inputSchema === undefined ? {} : { input: inputSchema }),
      ...(outputSchema === undefined ? {} : { success: outputSchema }),
      ...(resumeSchema === undefined ? {} : { resume: resumeSchema }),
      ...(suspendSchema === undefined ? {} : { suspend: suspendSchema }),
      ...(retries === undefined ? {} : { retries }),
      ...(retryDelayMs === undefined ? {} : { retryDelay: retryDelayMs }),
      ...(timeout === undefined ? {} : { timeout }),
      execute: (input: unknown, context: StepContext) =>
        suspendable(context.suspend, (suspend, runtime) =>
          execute(toExecution(input, context, suspend, runtime))
        )
    })
  )
}

const ofAgent = (
  agent: Agent,
  options: AgentAsStep<string> = {}
): PromiseStep<string, { readonly prompt: string }, { readonly text: string }> => {
  checkOptions(`The step of agent "${agent.id}"`, options, { kinds: agentStepKinds })
  return Agent.toStep(agent, options)
}

// Its types are those of its two forms.
/**
 * Makes a step, of what it does or of an agent. Throws `InvalidConfiguration`, which names the field and the remedy, when a
 * schema or the id cannot be used or an option is not known.
 *
 * @since 0.1.0
 * @category constructors
 */
export const createStep = ((
  made: Agent | AnyOptions,
  options?: AgentAsStep<string>
): PromiseStep<string, never, unknown> =>
  made instanceof Agent ? ofAgent(made, options) : ofFunction(made)) as CreateStep

/**
 * Tools for plain TypeScript.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import { InvalidConfiguration } from "../protocol/Errors.js"
import {
  at,
  callback,
  checkOptions,
  id,
  isOptions,
  type Kind,
  type Known,
  read,
  text,
  wrongValue
} from "../protocol/options.js"
import type { ApprovalContext, ApprovalPolicy } from "../tool/approval.js"
import * as Tool from "../tool/Tool.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import { type ToolBackground, toBackground } from "./background.js"
import { fromPromise } from "./fromPromise.js"
import { type ToolExecutionContext, withContext } from "./toolContext.js"

export type { ApprovalContext } from "../tool/approval.js"
export type { ToolExecutionContext, ToolWriter } from "./toolContext.js"

/** What a tool is made of. @since 0.1.0 @category models */
export interface CreateToolOptions<Input extends ToolSchema.Source, Output extends ToolSchema.Source, A> {
  /** Names the tool where it is registered under no other name. */
  readonly id: string
  /** Tells the model what the tool is for. */
  readonly description?: string
  /** A Standard Schema (zod 4, valibot, arktype), an Effect Schema or a JSON Schema. Without it: no arguments. */
  readonly inputSchema?: Input
  /** What `execute` must return. Without it any value goes. */
  readonly outputSchema?: Output
  /**
   * Does it. What it throws is told to the model (`tool-error`), and the run goes on. Without it the client executes the
   * tool: the run ends with reason `tool-calls`.
   */
  readonly execute?: (input: ToolSchema.Decoded<Input>, context: ToolExecutionContext) => Promise<A> | A
  /**
   * How long a call may take: milliseconds, or a text such as `"30 seconds"`. Default: any time. In the background
   * `background.timeoutMs` says it.
   */
  readonly timeout?: Duration.DurationInput
  /**
   * What the model is told of an output, in place of what the stream shows: a text, any JSON value, or the AI SDK's
   * `{ type: "content", value: [{ type: "text", text }, { type: "image-data", data, mediaType }] }`. It gets no failures.
   */
  readonly toModelOutput?: (output: ToolSchema.Shown<Output, NoInfer<A>>) => unknown
  /** How its calls run in the background, beside the conversation. Default: they do not. */
  readonly background?: ToolBackground
  /**
   * Whether somebody has to approve a call before it is executed: yes, no, or a function of the arguments and the call. One that
   * throws or rejects means yes. It wins over the run's `requireToolApproval`. A call that has to be approved is stored, and the
   * run ends with reason `suspended`, see `approveToolCall` of the agent. Default: the run says it.
   */
  readonly requireApproval?:
    | boolean
    | ((input: ToolSchema.Decoded<Input>, context: ApprovalContext) => boolean | Promise<boolean>)
  /** What a call may suspend with. Without it any value goes; what JSON cannot hold is made safe. */
  readonly suspendSchema?: ToolSchema.Source
  /** What a suspended call must be resumed with. Without it any value goes. */
  readonly resumeSchema?: ToolSchema.Source
}

/** A tool of the Promise facade. @since 0.1.0 @category models */
export interface PromiseTool {
  readonly id: string
  readonly description: string | undefined
  /** The tool under the name that it is registered with. */
  readonly named: (name: string) => Tool.Tool
}

/** What is no policy is refused by the core. */
const toPolicy = <Input>(
  policy: boolean | ((input: Input, context: ApprovalContext) => boolean | Promise<boolean>)
): boolean | ApprovalPolicy<Input> =>
  typeof policy === "function" ? (input, context) => fromPromise(() => policy(input, context)) : policy

/** What is wrong with a tool, in the names of the facade's options. */
const inFacadeWords = <A>(name: string, make: () => A): A => {
  try {
    return make()
  } catch (cause) {
    if (!(cause instanceof InvalidConfiguration)) throw cause
    const translate = (text: string): string =>
      text
        .replaceAll(`${name}.input`, "inputSchema")
        .replaceAll(`${name}.success`, "outputSchema")
        .replaceAll(`${name}.resume`, "resumeSchema")
        .replaceAll(`${name}.suspend`, "suspendSchema")
    const field = cause.field === "name" ? "id" : translate(cause.field)
    throw new InvalidConfiguration({ field, message: translate(cause.message) })
  }
}

const known: Known = {
  kinds: {
    id,
    description: text,
    inputSchema: read,
    outputSchema: read,
    execute: callback,
    timeout: read,
    toModelOutput: callback,
    background: read,
    requireApproval: read,
    suspendSchema: read,
    resumeSchema: read
  } satisfies Record<keyof CreateToolOptions<ToolSchema.Source, ToolSchema.Source, unknown>, Kind>,
  places: {
    name: at("id"),
    input: at("inputSchema"),
    parameters: at("inputSchema"),
    output: at("outputSchema"),
    success: at("outputSchema"),
    suspend: at("suspendSchema"),
    resume: at("resumeSchema"),
    needsApproval: at("requireApproval"),
    timeoutMs: at("timeout"),
    retries: at("background.maxRetries"),
    maxRetries: at("background.maxRetries")
  }
}

/**
 * Makes a tool. Throws `InvalidConfiguration`, which names the field and the remedy, when a schema or the id cannot be used
 * or an option is not known.
 *
 * @since 0.1.0
 * @category constructors
 */
export const createTool = <
  A extends ToolSchema.Accepted<Output>,
  Input extends ToolSchema.Source = ToolSchema.Empty,
  Output extends ToolSchema.Source = ToolSchema.Anything
>(
  options: CreateToolOptions<Input, Output, A>
): PromiseTool => {
  if (!isOptions(options)) throw wrongValue("options", options, "Give { id, inputSchema, execute }.")
  const {
    background,
    description,
    execute,
    id: toolId,
    inputSchema,
    outputSchema,
    requireApproval,
    resumeSchema,
    suspendSchema,
    timeout,
    toModelOutput
  } = options
  if (typeof toolId !== "string" || toolId === "") {
    throw new InvalidConfiguration({
      field: "id",
      message: "A tool needs an `id`: a string that is not empty."
    })
  }
  checkOptions(`Tool "${toolId}"`, options, known)
  const make = (name: string): Tool.Tool =>
    inFacadeWords(name, () =>
      Tool.make<string, A, unknown, never, Input, Output>(name, {
        ...(description === undefined ? {} : { description }),
        ...(inputSchema === undefined ? {} : { input: inputSchema }),
        ...(outputSchema === undefined ? {} : { success: outputSchema }),
        ...(timeout === undefined ? {} : { timeout }),
        ...(background === undefined ? {} : { background: toBackground(background) }),
        ...(requireApproval === undefined ? {} : { requireApproval: toPolicy(requireApproval) }),
        ...(suspendSchema === undefined ? {} : { suspend: suspendSchema }),
        ...(resumeSchema === undefined ? {} : { resume: resumeSchema }),
        ...(toModelOutput === undefined
          ? {}
          : { toModelOutput: output => fromPromise(() => toModelOutput(output)) }),
        ...(execute === undefined
          ? {}
          : {
              execute: (input, context) => withContext(context, served => execute(input, served))
            })
      })
    )
  const made = new Map([[toolId, make(toolId)]])
  // An agent may speak of it by its id, whatever it is registered as.
  const rename = (name: string): Tool.Tool => ({ ...make(name), aliases: [toolId] })
  return {
    id: toolId,
    description,
    named: name => {
      const tool = made.get(name) ?? rename(name)
      made.set(name, tool)
      return tool
    }
  }
}

/**
 * Tools for plain TypeScript.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import { refuseUnknown } from "../agent/checkOptions.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import type { Message } from "../protocol/Message.js"
import * as Tool from "../tool/Tool.js"
import type { DataPart, RequestContext, ToolContext } from "../tool/ToolContext.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import { fromPromise } from "./fromPromise.js"

/**
 * Puts chunks on the stream while a tool runs, at once and in the order of writing. There is no need to wait for the
 * promises: they resolve when the readers of the run have room, so that a tool that writes much may go at their pace. After
 * the call has ended, writing does nothing.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolWriter {
  /** A `tool-output` chunk. */
  readonly write: (output: unknown) => Promise<void>
  /** A `data-*` chunk. */
  readonly custom: (part: DataPart) => Promise<void>
}

/** What a tool knows of the call it serves. @since 0.1.0 @category models */
export interface ToolExecutionContext {
  readonly agent: {
    readonly agentId: string
    readonly toolCallId: string
    /** The prompt that the model answered with this call. */
    readonly messages: ReadonlyArray<Message>
    /** The thread of the run, when it has one, and whose it is. */
    readonly threadId: string | undefined
    readonly resourceId: string | undefined
  }
  readonly runId: string
  /** Values of this request, shared by its tools. */
  readonly requestContext: RequestContext
  /** Fires when the run is aborted, or the call takes too long. The run does not wait for a tool that ignores it. */
  readonly abortSignal: AbortSignal
  readonly writer: ToolWriter
}

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
  /** How long a call may take: milliseconds, or a text such as `"30 seconds"`. Default: any time. */
  readonly timeout?: Duration.DurationInput
  /**
   * What the model is told of an output, in place of what the stream shows: a text, any JSON value, or the AI SDK's
   * `{ type: "content", value: [{ type: "text", text }, { type: "image-data", data, mediaType }] }`. It gets no failures.
   */
  readonly toModelOutput?: (output: ToolSchema.Shown<Output, NoInfer<A>>) => unknown
}

/** A tool of the Promise facade. @since 0.1.0 @category models */
export interface PromiseTool {
  readonly id: string
  readonly description: string | undefined
  /** The tool under the name that it is registered with. */
  readonly named: (name: string) => Tool.Tool
}

const toContext = (context: ToolContext, runtime: Runtime.Runtime<never>): ToolExecutionContext => ({
  agent: {
    agentId: context.agentId,
    toolCallId: context.toolCallId,
    messages: context.messages,
    threadId: context.threadId,
    resourceId: context.resourceId
  },
  runId: context.runId,
  requestContext: context.requestContext,
  get abortSignal() {
    return context.abortSignal
  },
  writer: {
    write: output => Runtime.runPromise(runtime)(context.write(output)),
    custom: part => Runtime.runPromise(runtime)(context.writeData(part))
  }
})

/** What is wrong with a tool, in the names of the facade's options. */
const inFacadeWords = <A>(name: string, make: () => A): A => {
  try {
    return make()
  } catch (cause) {
    if (!(cause instanceof InvalidConfiguration)) throw cause
    const translate = (text: string): string =>
      text.replaceAll(`${name}.input`, "inputSchema").replaceAll(`${name}.success`, "outputSchema")
    const field = cause.field === "name" ? "id" : translate(cause.field)
    throw new InvalidConfiguration({ field, message: translate(cause.message) })
  }
}

const toolFields = [
  "id",
  "description",
  "inputSchema",
  "outputSchema",
  "execute",
  "timeout",
  "toModelOutput"
] as const satisfies ReadonlyArray<keyof CreateToolOptions<ToolSchema.Source, ToolSchema.Source, unknown>>

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
  const { description, execute, id, inputSchema, outputSchema, timeout, toModelOutput } = options
  if (typeof id !== "string" || id === "") {
    throw new InvalidConfiguration({
      field: "id",
      message: "A tool needs an `id`: a string that is not empty."
    })
  }
  refuseUnknown(`Tool "${id}"`, options, toolFields)
  const make = (name: string): Tool.Tool =>
    inFacadeWords(name, () =>
      Tool.make<string, A, unknown, never, Input, Output>(name, {
        ...(description === undefined ? {} : { description }),
        ...(inputSchema === undefined ? {} : { input: inputSchema }),
        ...(outputSchema === undefined ? {} : { success: outputSchema }),
        ...(timeout === undefined ? {} : { timeout }),
        ...(toModelOutput === undefined
          ? {}
          : { toModelOutput: output => fromPromise(() => toModelOutput(output)) }),
        ...(execute === undefined
          ? {}
          : {
              execute: (input, context) =>
                Effect.flatMap(Effect.runtime(), runtime =>
                  fromPromise(() => execute(input, toContext(context, runtime)))
                )
            })
      })
    )
  const made = new Map([[id, make(id)]])
  return {
    id,
    description,
    named: name => {
      const tool = made.get(name) ?? make(name)
      made.set(name, tool)
      return tool
    }
  }
}

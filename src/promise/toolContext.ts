/** What a tool of plain TypeScript knows of the call it serves. */
import type * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Runtime from "effect/Runtime"
import type { Message } from "../protocol/Message.js"
import type { DataPart, RequestContext, ToolContext } from "../tool/ToolContext.js"

/**
 * Puts chunks on the stream while a tool runs, at once and in the order of writing. There is no need to wait for the
 * promises: they resolve when the readers of the run have room, so that a tool that writes much may go at their pace. After
 * the call has ended, writing does nothing. What a task in the background writes comes as `background-task-output`.
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
    /** The prompt that the model answered with this call. Empty when a task goes on in another process. */
    readonly messages: ReadonlyArray<Message>
    /** The thread of the run, when it has one, and whose it is. */
    readonly threadId: string | undefined
    readonly resourceId: string | undefined
    /**
     * Lays the task aside until somebody resumes it: it is stored with `data`, its slot is free, and time does not run. What
     * the tool returns, throws or writes after that is ignored: when the task is resumed, the tool is executed again from its
     * start, with `resumeData`. `undefined` when the call does not run in the background.
     */
    readonly suspend: ((data?: unknown) => Promise<void>) | undefined
    /** What the task was resumed with; `undefined` in its first run. */
    readonly resumeData: unknown
  }
  readonly runId: string
  /** The task that the call is, when it runs in the background. */
  readonly taskId: string | undefined
  /** Values of this request, shared by its tools. Empty when a task goes on in another process. */
  readonly requestContext: RequestContext
  /**
   * Fires when the run is aborted, or the call takes too long. The run does not wait for a tool that ignores it. Of a task in
   * the background: when an attempt takes too long, or the task is cancelled; the run has no say.
   */
  readonly abortSignal: AbortSignal
  readonly writer: ToolWriter
}

type Run = (effect: Effect.Effect<never>) => void

/** To suspend happens as soon as it is started; nothing comes of it, and nobody waits for it. */
const suspender = (context: ToolContext, run: Run): ToolExecutionContext["agent"]["suspend"] => {
  if (context.taskId === undefined) return undefined
  return async data => run(context.suspend(data))
}

/** The context of a call, in the words of plain TypeScript. */
export const toContext = (context: ToolContext, runtime: Runtime.Runtime<never>): ToolExecutionContext => {
  const { agentId, messages, requestContext, resourceId, resumeData, runId, taskId, threadId, toolCallId } =
    context
  const run: Run = effect => Runtime.runFork(runtime)(effect).unsafeInterruptAsFork(FiberId.none)
  return {
    agent: {
      agentId,
      toolCallId,
      messages,
      threadId,
      resourceId,
      suspend: suspender(context, run),
      resumeData
    },
    runId,
    taskId,
    requestContext,
    // Made when it is asked for: most tools do not.
    get abortSignal() {
      return context.abortSignal
    },
    writer: {
      write: output => Runtime.runPromise(runtime)(context.write(output)),
      custom: part => Runtime.runPromise(runtime)(context.writeData(part))
    }
  }
}

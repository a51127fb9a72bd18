/** What a tool of plain TypeScript knows of the call it serves. */
import type * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import type { Message } from "../protocol/Message.js"
import type { DataPart, RequestContext, ToolContext } from "../tool/ToolContext.js"
import { type Suspend, suspendable } from "./fromPromise.js"

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
    /** The thread of the run, when it has one. */
    readonly threadId: string | undefined
    /** Whose run it is, with a thread or without. */
    readonly resourceId: string | undefined
    /**
     * Suspends the call: it is stored with `data`, and time does not run. `await suspend(data)` does not return: it throws an
     * `AbortError`, so that the code behind it does not run and `finally` blocks do. What the tool returns, throws or writes after
     * that is ignored, also when it catches the error or does not await. When the call is resumed, the tool is executed again from
     * its start, with `resumeData` and `suspendData`. Of a task in the background the slot is free meanwhile; any other call ends
     * its run with reason `suspended`, when the calls beside it are done. Rejects with `InvalidSuspendData` when `data` does not
     * match the tool's `suspendSchema`: the call goes on then.
     */
    readonly suspend: (data?: unknown) => Promise<never>
    /** What the call was resumed with; `undefined` in its first run. */
    readonly resumeData: unknown
    /** What it had suspended with when it was resumed; `undefined` in its first run. */
    readonly suspendData: unknown
  }
  /** The same as `agent.suspend`. */
  readonly suspend: (data?: unknown) => Promise<never>
  /** The same as `agent.resumeData`. */
  readonly resumeData: unknown
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

const toContext = (
  context: ToolContext,
  suspend: Suspend,
  runtime: Runtime.Runtime<never>
): ToolExecutionContext => {
  const { agentId, messages, requestContext, resourceId, resumeData, runId, taskId, threadId, toolCallId } =
    context
  return {
    agent: {
      agentId,
      toolCallId,
      messages,
      threadId,
      resourceId,
      suspend,
      resumeData,
      suspendData: context.suspendData
    },
    suspend,
    resumeData,
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

/** Executes a function of plain TypeScript that serves a call. */
export const withContext = <A>(
  context: ToolContext,
  execute: (context: ToolExecutionContext) => Promise<A> | A
): Effect.Effect<A, unknown> =>
  suspendable(context.suspend, (suspend, runtime) => execute(toContext(context, suspend, runtime)))

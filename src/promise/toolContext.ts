/** What a tool of plain TypeScript knows of the call it serves. */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Runtime from "effect/Runtime"
import { squash } from "../protocol/foreignValue.js"
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
     * Lays the call aside until somebody resumes it: it is stored with `data`, and time does not run. What the tool returns,
     * throws or writes after that is ignored: when the call is resumed, the tool is executed again from its start, with
     * `resumeData` and `suspendData`. Of a task in the background the slot is free meanwhile; any other call ends its run with
     * reason `suspended`, when the calls beside it are done. Rejects with `InvalidSuspendData` when `data` does not match the
     * tool's `suspendSchema`; the call goes on then.
     */
    readonly suspend: (data?: unknown) => Promise<void>
    /** What the call was resumed with; `undefined` in its first run. */
    readonly resumeData: unknown
    /** What it had suspended with when it was resumed; `undefined` in its first run. */
    readonly suspendData: unknown
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

/**
 * Nothing comes of it but that the call is laid aside, and nobody waits for that; what is wrong with the data is thrown. Where a
 * schema looks at the data, `whenOver` is told what is to be stopped when the call is over.
 */
const suspender =
  (
    context: ToolContext,
    runtime: Runtime.Runtime<never>,
    whenOver: ((stop: () => void) => void) | undefined
  ): ToolExecutionContext["agent"]["suspend"] =>
  data =>
    new Promise((resolve, reject) => {
      const fiber = Runtime.runFork(runtime)(context.suspend(data))
      fiber.addObserver(exit => {
        if (Exit.isFailure(exit) && !Cause.isInterruptedOnly(exit.cause)) reject(squash(exit.cause))
        else resolve()
      })
      const stop = () => fiber.unsafeInterruptAsFork(FiberId.none)
      // Laid aside at once, unless a schema takes its time.
      if (whenOver === undefined) stop()
      else whenOver(stop)
    })

/** The context of a call, in the words of plain TypeScript. */
export const toContext = (
  context: ToolContext,
  runtime: Runtime.Runtime<never>,
  whenOver?: (stop: () => void) => void
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
      suspend: suspender(context, runtime, whenOver),
      resumeData,
      suspendData: context.suspendData
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

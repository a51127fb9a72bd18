/**
 * What a tool knows of the call it serves.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type { Message } from "../protocol/Message.js"

/** What a tool may write for the user interface; `type` becomes the chunk's type. @since 0.1.0 @category models */
export interface DataPart {
  readonly type: `data-${string}`
  readonly data: unknown
  /** A later part of the same type and id replaces an earlier one, in user interfaces that know about it. */
  readonly id?: string
  /** Shown, but not kept. */
  readonly transient?: boolean
}

/** Values that belong to one request. Its tools share it, those of the agents below too. @since 0.1.0 @category models */
export type RequestContext = Map<string, unknown>

/** The context of one call of one tool. @since 0.1.0 @category models */
export interface ToolContext {
  readonly runId: string
  readonly agentId: string
  readonly toolCallId: string
  readonly toolName: string
  /** The thread of the run, when it has one. */
  readonly threadId: string | undefined
  /** Whose run it is, with a thread or without. */
  readonly resourceId: string | undefined
  readonly requestContext: RequestContext
  /** The prompt that the model answered with this call. */
  readonly messages: ReadonlyArray<Message>
  /**
   * Fires when the call is interrupted: it took too long, or its run was aborted. Of a call in the background: the task took
   * too long or was cancelled; the run that dispatched it has no say.
   */
  readonly abortSignal: AbortSignal
  /** The task that the call is, when it runs in the background. */
  readonly taskId: string | undefined
  /** What the call was resumed with, after it had suspended; `undefined` in its first run. */
  readonly resumeData: unknown
  /** What the call had suspended with, in its JSON form, when it was resumed; `undefined` in its first run. */
  readonly suspendData: unknown
  /**
   * Lays the call aside until somebody resumes it: it is stored with `data`, and time does not run. Does not come back: when it
   * is resumed, the tool is executed again from its start, with `resumeData` and `suspendData`. Of a call in the background the
   * slot is free meanwhile; any other ends its run with reason `suspended` when the calls beside it are done, see
   * `Agent.resumeStream`. Where no `RunStore` keeps such runs, the run fails with `InvalidConfiguration`.
   */
  readonly suspend: (data?: unknown) => Effect.Effect<never>
  /**
   * Puts a `tool-output` chunk on the stream at once, in the order of writing, and waits as long as readers hold the run.
   * After the call has ended it does nothing.
   */
  readonly write: (output: unknown) => Effect.Effect<void>
  /** Puts a `data-*` chunk on the stream, likewise. */
  readonly writeData: (part: DataPart) => Effect.Effect<void>
}

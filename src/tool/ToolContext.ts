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

/** The context of one call of one tool. @since 0.1.0 @category models */
export interface ToolContext {
  readonly runId: string
  readonly agentId: string
  readonly toolCallId: string
  readonly toolName: string
  /** The prompt that the model answered with this call. */
  readonly messages: ReadonlyArray<Message>
  /** Fires when the call is interrupted: its run was aborted. */
  readonly abortSignal: AbortSignal
  /** Puts a `tool-output` chunk on the stream, in the order of writing. After the call has ended it does nothing. */
  readonly write: (output: unknown) => Effect.Effect<void>
  /** Puts a `data-*` chunk on the stream. After the call has ended it does nothing. */
  readonly writeData: (part: DataPart) => Effect.Effect<void>
}

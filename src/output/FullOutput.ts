/**
 * Everything that a run came to, as one value, and one of its steps as another.
 *
 * @since 0.1.0
 */
import type { Of, RequestInfo, ResponseInfo, ToolCall, ToolResult, Warning } from "../protocol/Chunk.js"
import type { StructuredOutputError } from "../protocol/Errors.js"
import type { FinishReason } from "../protocol/FinishReason.js"
import type { Message, UIMessage } from "../protocol/Message.js"
import type { ProviderMetadata } from "../protocol/safeJson.js"
import type { Usage } from "../protocol/Usage.js"
import type { PendingCall } from "./PendingCall.js"

/** Where a run stands; all but `running` are final. @since 0.1.0 @category models */
export type RunStatus = "running" | "success" | "failed" | "aborted" | "tripwire" | "suspended"

/**
 * One model call and its tool calls. The same shape everywhere: for stop conditions, callbacks and `steps`. Results stand in
 * call order, whichever came first.
 *
 * @since 0.1.0
 * @category models
 */
export interface Step {
  /** 0-based. */
  readonly stepNumber: number
  readonly text: string
  readonly reasoning: string
  readonly toolCalls: ReadonlyArray<ToolCall>
  readonly toolResults: ReadonlyArray<ToolResult>
  readonly toolErrors: ReadonlyArray<Of<"tool-error">>
  readonly sources: ReadonlyArray<Of<"source">>
  readonly files: ReadonlyArray<Of<"file">>
  readonly finishReason: FinishReason
  readonly rawFinishReason?: string
  /** Whether another step follows. */
  readonly isContinued: boolean
  /** Of this step alone. */
  readonly usage: Usage
  readonly warnings: ReadonlyArray<Warning>
  readonly request: RequestInfo
  readonly response: ResponseInfo
  readonly providerMetadata?: ProviderMetadata
}

/** The last response of a run, and the messages that the run added to the conversation. @since 0.1.0 @category models */
export interface Response extends ResponseInfo {
  readonly messages: ReadonlyArray<Message>
  readonly uiMessages: ReadonlyArray<UIMessage>
}

/** Why a processor stopped a run. @since 0.1.0 @category models */
export type Tripwire = Of<"tripwire">["payload"]

/**
 * Everything that a run came to. A run that failed or was stopped has what was said until then, with `error` set.
 *
 * @since 0.1.0
 * @category models
 */
export interface FullOutput<out A = unknown> {
  readonly runId: string
  readonly messageId: string
  readonly status: RunStatus
  /** All text of the run: the same as joining every `text-delta`. */
  readonly text: string
  /** All reasoning text; absent when there is none. */
  readonly reasoning?: string
  readonly toolCalls: ReadonlyArray<ToolCall>
  readonly toolResults: ReadonlyArray<ToolResult>
  readonly sources: ReadonlyArray<Of<"source">>
  readonly files: ReadonlyArray<Of<"file">>
  /** Completed steps. */
  readonly steps: ReadonlyArray<Step>
  /** Of the whole run. A figure that no provider told is absent. */
  readonly usage: Usage
  readonly totalUsage: Usage
  readonly finishReason?: FinishReason
  readonly warnings: ReadonlyArray<Warning>
  /** Of the last step. */
  readonly request: RequestInfo
  readonly response: Response
  readonly providerMetadata?: ProviderMetadata
  /** Whether text or reasoning is only the beginning of what was said: see `replay: false`. */
  readonly isTruncated?: boolean
  /** The value of `structuredOutput`: valid, or the `fallbackValue`. Absent when there is none. */
  readonly object?: A
  /** Why there is no valid value, whatever the `errorStrategy` makes of that. */
  readonly objectError?: StructuredOutputError
  /** Whether `object` is the `fallbackValue`. */
  readonly usedFallbackValue?: boolean
  readonly error?: Error
  readonly tripwire?: Tripwire
  /** The calls that wait for a decision, in their order, as `listSuspendedRuns` lists them. Absent when none waits. */
  readonly pendingCalls?: ReadonlyArray<PendingCall>
  /** What the first of them that has any was suspended with. */
  readonly suspendData?: unknown
}

/**
 * The parts of one model answer, normalised over providers and specifications. Plain data, as it comes: what is left to
 * repair (missing starts, missing ends, repeated ids) the reader of the answer repairs.
 *
 * @since 0.1.0
 */
import type { Warning } from "../protocol/Chunk.js"
import type { AnswerReason } from "../protocol/FinishReason.js"
import type { ProviderMetadata } from "../protocol/safeJson.js"
import type { Usage } from "../protocol/Usage.js"

interface WithMetadata {
  readonly providerMetadata?: ProviderMetadata | undefined
}

/** Begins or ends a block of text or reasoning. @since 0.1.0 @category models */
export interface BlockEdge extends WithMetadata {
  readonly type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"
  readonly id: string
}

/** More of a block of text or reasoning. @since 0.1.0 @category models */
export interface BlockDelta extends WithMetadata {
  readonly type: "text-delta" | "reasoning-delta"
  readonly id: string
  readonly delta: string
}

/** The model begins to write the arguments of a call. @since 0.1.0 @category models */
export interface ToolInputStart extends WithMetadata {
  readonly type: "tool-input-start"
  readonly id: string
  readonly toolName: string
  readonly providerExecuted?: boolean | undefined
  readonly dynamic?: boolean | undefined
}

/** More of the arguments of a call, as JSON text. @since 0.1.0 @category models */
export interface ToolInputDelta extends WithMetadata {
  readonly type: "tool-input-delta"
  readonly id: string
  readonly delta: string
}

/** The arguments of a call are complete. @since 0.1.0 @category models */
export interface ToolInputEnd extends WithMetadata {
  readonly type: "tool-input-end"
  readonly id: string
}

/** A complete call. `input` is JSON text, or the parsed value where a provider sends that. @since 0.1.0 @category models */
export interface ToolCall extends WithMetadata {
  readonly type: "tool-call"
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
  readonly providerExecuted?: boolean | undefined
  readonly dynamic?: boolean | undefined
}

/** The outcome of a call that the provider executed itself. @since 0.1.0 @category models */
export interface ToolResult extends WithMetadata {
  readonly type: "tool-result"
  readonly toolCallId: string
  readonly toolName: string
  readonly result: unknown
  readonly isError?: boolean | undefined
}

/** Where the model has something from. @since 0.1.0 @category models */
export interface Source extends WithMetadata {
  readonly type: "source"
  readonly id: string
  readonly sourceType: "url" | "document"
  readonly title?: string | undefined
  readonly url?: string | undefined
  readonly mediaType?: string | undefined
  readonly filename?: string | undefined
}

/** A file that the model made. `data` is base64 text or bytes. @since 0.1.0 @category models */
export interface File extends WithMetadata {
  readonly type: "file"
  readonly data: string | Uint8Array
  readonly mediaType: string
}

/** The answer begins; what the provider warns of. @since 0.1.0 @category models */
export interface StreamStart {
  readonly type: "stream-start"
  readonly warnings: ReadonlyArray<Warning>
}

/** What the provider says about the response. @since 0.1.0 @category models */
export interface ResponseMetadata {
  readonly type: "response-metadata"
  readonly id?: string | undefined
  readonly timestamp?: Date | undefined
  readonly modelId?: string | undefined
}

/** The answer is complete. @since 0.1.0 @category models */
export interface Finish extends WithMetadata {
  readonly type: "finish"
  readonly reason: AnswerReason
  /** The provider's own word, when it differs in kind from `reason`. */
  readonly rawReason?: string | undefined
  readonly usage: Usage
}

/** The provider reports a failure in the middle of the answer. @since 0.1.0 @category models */
export interface Failure {
  readonly type: "error"
  readonly error: unknown
}

/** The provider's own data, or a part of a type that is not known here. @since 0.1.0 @category models */
export interface Raw {
  readonly type: "raw"
  readonly value: unknown
}

/** One part of a model answer. @since 0.1.0 @category models */
export type ModelPart =
  | BlockEdge
  | BlockDelta
  | ToolInputStart
  | ToolInputDelta
  | ToolInputEnd
  | ToolCall
  | ToolResult
  | Source
  | File
  | StreamStart
  | ResponseMetadata
  | Finish
  | Failure
  | Raw

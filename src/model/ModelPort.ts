/**
 * The port to a language model: one call is one answer, a source of parts. Implement it for a model that has no AI SDK
 * provider package; for one that has, use `LanguageModel.fromAiSdk`.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type { Warning } from "../protocol/Chunk.js"
import type { ModelError } from "../protocol/Errors.js"
import type { Message } from "../protocol/Message.js"
import type { JsonValue, ProviderMetadata } from "../protocol/safeJson.js"
import type { ModelPart } from "./ModelPart.js"

/** A JSON Schema as an object. @since 0.1.0 @category models */
export type JsonSchema = { readonly [key: string]: JsonValue }

/** A tool as the model is told of it. @since 0.1.0 @category models */
export interface ToolDefinition {
  readonly name: string
  readonly description?: string
  readonly inputSchema: JsonSchema
}

/** Which tools the model may or must call. @since 0.1.0 @category models */
export type ToolChoice = "auto" | "none" | "required" | { readonly type: "tool"; readonly toolName: string }

/** Settings that most models have; what a model does not know it ignores, with a warning. @since 0.1.0 @category models */
export interface ModelSettings {
  /** Tokens. */
  readonly maxOutputTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly stopSequences?: ReadonlyArray<string>
  readonly seed?: number
  /** Sent with the HTTP request, by providers that make one. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * What an answer is to be: JSON that matches a schema. A model that cannot be bound to one is told of it in its prompt.
 *
 * @since 0.1.0
 * @category models
 */
export interface ResponseFormat {
  readonly type: "json"
  readonly schema: JsonSchema
  readonly name?: string
  readonly description?: string
}

/** One call of a model. `messages` is a snapshot: nobody changes it later. @since 0.1.0 @category models */
export interface ModelRequest {
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly toolChoice?: ToolChoice
  readonly settings?: ModelSettings
  readonly providerOptions?: ProviderMetadata
  /** Absent: text. */
  readonly responseFormat?: ResponseFormat
  /** Whether the provider's own data is wanted as `raw` parts. */
  readonly includeRawChunks: boolean
}

/**
 * An answer that has begun. Its reader takes one reader or iterator of `source`, hands each element to `normalize`, and
 * cancels the source when it has read enough.
 *
 * @since 0.1.0
 * @category models
 */
export interface ModelAnswer {
  readonly source: ReadableStream<unknown> | AsyncIterable<unknown>
  /** The part that an element stands for; `undefined` for one that says nothing. Must not throw. */
  readonly normalize: (element: unknown) => ModelPart | undefined
  /** The request as it was sent, as the provider reports it. */
  readonly requestBody?: unknown
  readonly responseHeaders?: Readonly<Record<string, string>>
  /** What the provider warns of before its first part; `stream-start` parts add to it. */
  readonly warnings?: ReadonlyArray<Warning>
}

/**
 * A language model. `answer` begins an answer, as an Effect or as a promise; a promise may reject with a `ModelError` or
 * with anything. Its signal fires when the answer is not wanted any more, while it is asked for or while it is read: then
 * the provider must stop. Nobody waits for that, and the source of an answer that comes too late is cancelled. It does not
 * fire after an answer that was read to its end.
 *
 * @since 0.1.0
 * @category models
 */
export interface LanguageModel {
  /** As the provider calls itself, for example `openai.responses`. */
  readonly provider: string
  readonly modelId: string
  readonly answer: (
    request: ModelRequest,
    signal: AbortSignal
  ) => Effect.Effect<ModelAnswer, ModelError> | Promise<ModelAnswer>
}

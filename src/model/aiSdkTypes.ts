/**
 * What eddy needs of an AI SDK language model, as structural types: wide enough for specifications V2, V3 and V4, so that
 * no version of `@ai-sdk/provider` has to be installed. `test/types/aiSdk.test.ts` holds them against the real ones.
 */
import type { ModelSettings } from "./ModelPort.js"

/** The specifications that are read here. */
export const versions = ["v2", "v3", "v4"] as const

export type SpecificationVersion = (typeof versions)[number]

/** Options of one call, in the words that all specifications share. */
export interface AiSdkCallOptions extends Omit<ModelSettings, "headers"> {
  readonly prompt: ReadonlyArray<object>
  readonly tools?: ReadonlyArray<object>
  readonly toolChoice?: { readonly type: string; readonly toolName?: string }
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly providerOptions?: Readonly<Record<string, object>>
  readonly responseFormat?: {
    readonly type: string
    readonly schema?: object
    readonly name?: string
    readonly description?: string
  }
  readonly includeRawChunks?: boolean
  readonly abortSignal?: AbortSignal
}

/** What a call comes to: a stream, and what the provider says of the exchange. */
export interface AiSdkStreamResult {
  readonly stream: ReadableStream<unknown>
  readonly request?: { readonly body?: unknown }
  readonly response?: { readonly headers?: Readonly<Record<string, string>> }
  /** Older packages warn here, and not in a part of the stream. */
  readonly warnings?: ReadonlyArray<unknown>
}

/** A language model of the AI SDK. `doStream` is a method on purpose: its options are compared bivariantly. */
export interface AiSdkModel {
  readonly specificationVersion: SpecificationVersion
  readonly provider: string
  readonly modelId: string
  doStream(options: AiSdkCallOptions): PromiseLike<AiSdkStreamResult>
}

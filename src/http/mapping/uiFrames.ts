/** The frames of the AI SDK's UI message stream that we send. */
import type { ProviderMetadata } from "../../protocol/safeJson.js"

interface WithMetadata {
  readonly providerMetadata?: ProviderMetadata
}

/** Why a response ended, in the words of the AI SDK. */
export type UiFinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "error" | "other"

export type UiFrame =
  | { readonly type: "start"; readonly messageId?: string }
  | { readonly type: "start-step" | "finish-step" }
  | { readonly type: "finish"; readonly finishReason: UiFinishReason }
  | { readonly type: "abort"; readonly reason?: string }
  | { readonly type: "error"; readonly errorText: string }
  | ({
      readonly type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"
      readonly id: string
    } & WithMetadata)
  | ({
      readonly type: "text-delta" | "reasoning-delta"
      readonly id: string
      readonly delta: string
    } & WithMetadata)
  | ({
      readonly type: "source-url"
      readonly sourceId: string
      readonly url: string
      readonly title?: string
    } & WithMetadata)
  | ({
      readonly type: "source-document"
      readonly sourceId: string
      readonly mediaType: string
      readonly title: string
      readonly filename?: string
    } & WithMetadata)
  | ({ readonly type: "file"; readonly url: string; readonly mediaType: string } & WithMetadata)
  | ({
      readonly type: "tool-input-start"
      readonly toolCallId: string
      readonly toolName: string
      readonly providerExecuted?: boolean
      readonly dynamic?: boolean
    } & WithMetadata)
  | { readonly type: "tool-input-delta"; readonly toolCallId: string; readonly inputTextDelta: string }
  | ({
      readonly type: "tool-input-available"
      readonly toolCallId: string
      readonly toolName: string
      readonly input: unknown
      readonly providerExecuted?: boolean
      readonly dynamic?: boolean
    } & WithMetadata)
  | { readonly type: "tool-approval-request"; readonly approvalId: string; readonly toolCallId: string }
  | ({
      readonly type: "tool-output-available"
      readonly toolCallId: string
      readonly output: unknown
      readonly providerExecuted?: boolean
      readonly preliminary?: boolean
    } & WithMetadata)
  | ({
      readonly type: "tool-output-error"
      readonly toolCallId: string
      readonly errorText: string
      readonly providerExecuted?: boolean
    } & WithMetadata)
  | { readonly type: "tool-output-denied"; readonly toolCallId: string }
  | {
      readonly type: `data-${string}`
      readonly data: unknown
      readonly id?: string
      readonly transient?: boolean
    }

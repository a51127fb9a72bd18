import type { ModelMessage } from "@ai-sdk/provider-utils"
import type * as Conversation from "../../src/protocol/Conversation.js"
export const f = (m: ModelMessage[]): Conversation.Input => m
export const g = (m: Array<{ role: "user" | "assistant"; content: string }>): Conversation.Input => m
export const h = (m: ModelMessage): Conversation.Input => m
type ToolPart =
  | {
      type: "tool-x"
      toolCallId: string
      state: "input-streaming"
      input: { a?: string } | undefined
      output?: never
      errorText?: never
      title?: string
    }
  | {
      type: "tool-x"
      toolCallId: string
      state: "output-error"
      input: { a: string } | undefined
      rawInput?: unknown
      output?: never
      errorText: string
    }
  | {
      type: "dynamic-tool"
      toolName: string
      toolCallId: string
      state: "output-available"
      input: unknown
      output: unknown
      callProviderMetadata?: Record<string, Record<string, unknown>>
    }
interface UIMessage {
  id: string
  role: "system" | "user" | "assistant"
  metadata?: unknown
  parts: Array<
    | ToolPart
    | { type: "text"; text: string; state?: "streaming" | "done" }
    | { type: "data-foo"; id?: string; data: number }
    | { type: "source-url"; sourceId: string; url: string }
    | { type: "step-start" }
    | { type: "file"; mediaType: string; url: string }
  >
}
export const k = (m: UIMessage[]): Conversation.Input => m

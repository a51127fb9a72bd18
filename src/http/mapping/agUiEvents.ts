/** The events of AG-UI 1.0 that we send. Fields that say nothing are absent: its clients refuse `null`. */
import type { Usage } from "../../protocol/Usage.js"

export interface Interrupt {
  readonly id: string
  readonly reason: "tool_approval" | "tool_suspension"
  readonly message: string
  readonly toolCallId: string
  readonly responseSchema?: { readonly [key: string]: unknown }
  readonly metadata: { readonly [key: string]: unknown }
}

export interface AddOperation {
  readonly op: "add"
  readonly path: string
  readonly value: unknown
}

type Content = { readonly [field: string]: unknown }

export type AgUiEvent =
  | { readonly type: "RUN_STARTED"; readonly threadId: string; readonly runId: string }
  | {
      readonly type: "RUN_FINISHED"
      readonly threadId: string
      readonly runId: string
      readonly outcome:
        | { readonly type: "success"; readonly pendingToolCallIds?: ReadonlyArray<string> }
        | { readonly type: "interrupt"; readonly interrupts: ReadonlyArray<Interrupt> }
        | { readonly type: "cancelled" }
      readonly usage?: ReadonlyArray<Usage>
    }
  | {
      readonly type: "RUN_ERROR"
      readonly message: string
      readonly usage?: ReadonlyArray<Usage>
    }
  | { readonly type: "STEP_STARTED" | "STEP_FINISHED"; readonly stepName: string }
  | { readonly type: "TEXT_MESSAGE_START"; readonly messageId: string; readonly role: "assistant" }
  | {
      readonly type: "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT"
      readonly messageId: string
      readonly delta: string
    }
  | { readonly type: "REASONING_MESSAGE_START"; readonly messageId: string; readonly role: "reasoning" }
  | {
      readonly type: "TEXT_MESSAGE_END" | "REASONING_START" | "REASONING_MESSAGE_END" | "REASONING_END"
      readonly messageId: string
    }
  | {
      readonly type: "TOOL_CALL_START"
      readonly toolCallId: string
      readonly toolCallName: string
      readonly parentMessageId: string
    }
  | { readonly type: "TOOL_CALL_ARGS"; readonly toolCallId: string; readonly delta: string }
  | { readonly type: "TOOL_CALL_END"; readonly toolCallId: string }
  | {
      readonly type: "TOOL_CALL_RESULT"
      readonly messageId: string
      readonly toolCallId: string
      readonly content: string
      readonly role: "tool"
    }
  | {
      readonly type: "ACTIVITY_SNAPSHOT"
      readonly messageId: string
      readonly activityType: string
      readonly content: Content
    }
  | {
      readonly type: "ACTIVITY_DELTA"
      readonly messageId: string
      readonly activityType: string
      readonly patch: ReadonlyArray<AddOperation>
    }
  | { readonly type: "CUSTOM"; readonly name: string; readonly value: unknown }

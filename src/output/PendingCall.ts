/** Calls that wait for a decision: what they are, and their chunks. */
import type { Of } from "../protocol/Chunk.js"
import { isRecord, type JsonValue, toJson } from "../protocol/safeJson.js"

/** A call that waits for a decision. @since 0.1.0 @category models */
export interface PendingCall {
  /** The id that a decision names it by. Of a call of an agent below: the ids of the calls that led to it, with `/` between. */
  readonly toolCallId: string
  readonly toolName: string
  readonly args: { readonly [key: string]: JsonValue }
  /** `approval`: it is executed once it is approved. `suspension`: its tool has suspended it. */
  readonly kind: "approval" | "suspension"
  /** What the tool has suspended with. */
  readonly suspendData?: JsonValue
  /** What it must be resumed with, as JSON Schema. */
  readonly resumeSchema?: { readonly [key: string]: JsonValue }
}

/** A chunk that names a call that waits. */
export type Suspension = Of<"tool-call-approval"> | Of<"tool-call-suspended">

/** A value as a JSON object; `{}` where it is none. */
export const jsonObject = (value: unknown): { readonly [key: string]: JsonValue } => {
  const json = toJson(value)
  return isJsonObject(json) ? json : {}
}

const isJsonObject = (value: JsonValue): value is { readonly [key: string]: JsonValue } =>
  isRecord(value) && !Array.isArray(value)

/** The call that a chunk names. */
export const pendingCall = (chunk: Suspension): PendingCall => {
  const { args, resumeSchema, toolCallId, toolName } = chunk.payload
  const suspendData = chunk.type === "tool-call-suspended" ? chunk.payload.suspendData : undefined
  return {
    toolCallId,
    toolName,
    kind: chunk.type === "tool-call-approval" ? "approval" : "suspension",
    args: jsonObject(args),
    ...(suspendData === undefined ? {} : { suspendData: toJson(suspendData) }),
    ...(resumeSchema === undefined ? {} : { resumeSchema: jsonObject(resumeSchema) })
  }
}

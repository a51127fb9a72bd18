/**
 * What a call came to, twice: as a chunk of the stream, and as the part of the next prompt that tells the model.
 *
 * @since 0.1.0
 */
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import type { Of, ToolCall, ToolResult } from "../protocol/Chunk.js"
import { ToolFailed } from "../protocol/Errors.js"
import { isError, squash } from "../protocol/foreignValue.js"
import type { ToolResultOutput, ToolResultPart } from "../protocol/Message.js"
import { isRecord, messageOf, toJson } from "../protocol/safeJson.js"
import { failureText } from "./failureText.js"
import { isErrorValue } from "./Tool.js"

/** The outcome of one call. @since 0.1.0 @category models */
export interface ToolOutcome {
  readonly chunk: ToolResult | Of<"tool-error"> | Of<"tool-output-denied">
  readonly part: ToolResultPart
}

const identity = ({ payload }: ToolCall) => ({
  toolCallId: payload.toolCallId,
  toolName: payload.toolName,
  ...(payload.args === undefined ? {} : { args: payload.args })
})

const toPart = ({ payload }: ToolCall, output: ToolResultOutput): ToolResultPart => ({
  type: "tool-result",
  toolCallId: payload.toolCallId,
  toolName: payload.toolName,
  output
})

/** The texts of an in-band error of the Model Context Protocol; `undefined` when it has none. */
const errorText = (value: object): string | undefined => {
  if (!Predicate.hasProperty(value, "content") || !Array.isArray(value.content)) return undefined
  const texts = value.content.flatMap((part: unknown) =>
    Predicate.hasProperty(part, "text") && typeof part.text === "string" ? [part.text] : []
  )
  return texts.length === 0 ? undefined : texts.join("\n")
}

const tellError = (value: object): ToolResultOutput => {
  const text = errorText(value)
  return text === undefined
    ? { type: "error-json", value: toJson(value) }
    : { type: "error-text", value: messageOf(text) }
}

const tellValue = (value: unknown): ToolResultOutput =>
  typeof value === "string"
    ? { type: "text", value: messageOf(value) }
    : { type: "json", value: toJson(value) }

const tagged = (told: object): ToolResultOutput | undefined => {
  if (!Predicate.hasProperty(told, "type") || !Predicate.hasProperty(told, "value")) return undefined
  const { type, value } = told
  switch (type) {
    case "text":
    case "error-text":
      return typeof value === "string" ? { type, value: messageOf(value) } : undefined
    case "json":
    case "error-json":
      return { type, value: toJson(value) }
    case "content":
      return Array.isArray(value) && value.every(isRecord)
        ? { type, value: value.map(safeRecord) }
        : undefined
    default:
      return undefined
  }
}

const safeRecord = (item: Record<string, unknown>): { readonly [key: string]: unknown } => {
  const safe = toJson(item)
  if (!isRecord(safe)) return {}
  if (safe["type"] !== "media") return safe
  // The older word, which newer specifications do not know.
  const isImage = String(safe["mediaType"]).startsWith("image/")
  return { ...safe, type: isImage ? "image-data" : "file-data" }
}

/** What `toModelOutput` gave: an output that says what it is, or any value. @since 0.1.0 @category conversions */
export const toldOutput = (told: unknown): ToolResultOutput =>
  (typeof told === "object" && told !== null ? tagged(told) : undefined) ?? tellValue(told ?? null)

/**
 * A value, and what the model is told of it, when that is something else. `undefined` is a `null` result; a value that says
 * that it is an error is a result with `isError`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const succeeded = (call: ToolCall, value: unknown, told?: ToolResultOutput): ToolOutcome => {
  const result = value === undefined ? null : value
  const isError = isErrorValue(result)
  return {
    chunk: {
      type: "tool-result",
      runId: call.runId,
      from: call.from,
      payload: { ...identity(call), result, ...(isError ? { isError: true } : {}) }
    },
    part: toPart(call, told ?? (isError ? tellError(result) : tellValue(result)))
  }
}

/** What the model reads of a failure. @since 0.1.0 @category conversions */
export const failureOutput = (cause: unknown): ToolResultOutput => ({
  type: "error-text",
  value: failureText(cause)
})

/** A failure; what the model reads of it is its {@link failureText}. @since 0.1.0 @category constructors */
export const failed = (call: ToolCall, cause: unknown): ToolOutcome => {
  const { toolName } = call.payload
  const message = messageOf(cause)
  const error = isError(cause) ? cause : new ToolFailed({ toolName, message, cause })
  return {
    chunk: {
      type: "tool-error",
      runId: call.runId,
      from: call.from,
      payload: { ...identity(call), error }
    },
    part: toPart(call, failureOutput(cause))
  }
}

/** A call that somebody refused: nothing was executed, and the model is told why. @since 0.1.0 @category constructors */
export const denied = (call: ToolCall, reason: string | undefined): ToolOutcome => {
  const said = reason === undefined || reason === "" ? undefined : messageOf(reason)
  return {
    chunk: {
      type: "tool-output-denied",
      runId: call.runId,
      from: call.from,
      payload: {
        ...identity(call),
        approval: { approved: false, ...(said === undefined ? {} : { reason: said }) }
      }
    },
    part: {
      ...toPart(call, {
        type: "error-text",
        value: said ?? `The call of "${call.payload.toolName}" was not approved: it was not executed.`
      }),
      // Who reads the thread later tells it from a call that failed.
      providerOptions: { eddy: { denied: true } }
    }
  }
}

/** How the execution of a call ended. @since 0.1.0 @category constructors */
export const fromExit = (call: ToolCall, exit: Exit.Exit<unknown, unknown>): ToolOutcome =>
  Exit.isSuccess(exit) ? succeeded(call, exit.value) : failed(call, squash(exit.cause))

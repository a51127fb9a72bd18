/**
 * Chunks as a client may see them: without what a provider or a tool said when it failed, without response headers and request
 * bodies. Pure.
 */
import type { Chunk, Of } from "../protocol/Chunk.js"
import * as Errors from "../protocol/Errors.js"
import { isRecord, stringify } from "../protocol/safeJson.js"
import { maskMessage, maskUiMessage } from "./maskingMessages.js"

/** What clients are told that is hidden from them otherwise. @since 0.1.0 @category models */
export interface Exposed {
  /** What failures say: of providers, of tools, of stores; in messages what the model reads of them. Never a stack. Default false. */
  readonly errors?: boolean
  /** Headers of provider responses, bodies of provider requests, and `raw` chunks. Default false. */
  readonly provider?: boolean
}

/** Errors of this library whose message is about the call, and holds nothing of anybody else. */
const isPublic = (error: unknown): boolean =>
  error instanceof Errors.RunAborted ||
  error instanceof Errors.RunTimedOut ||
  error instanceof Errors.ThreadBusy ||
  error instanceof Errors.RunSuspended ||
  error instanceof Errors.AgentDepthExceeded ||
  error instanceof Errors.InvalidMessage ||
  error instanceof Errors.ToolTimedOut ||
  error instanceof Errors.ToolCallCutOff ||
  error instanceof Errors.InvalidToolArguments ||
  error instanceof Errors.TaskRejected

const nameOf = (error: unknown, otherwise: string): string => {
  if (Errors.isAgentError(error)) return error._tag
  return error instanceof Errors.ToolNotFound ? error._tag : otherwise
}

const masked = (name: string, message: string): Error => {
  const error = new Error(message)
  error.name = name
  // A stack of this function would say where the server keeps it.
  error.stack = `${name}: ${message}`
  return error
}

/** What a run says that failed, when it does not say why. */
export const runFailed = (error: unknown): string =>
  error instanceof Errors.ModelError ? "The model could not answer." : "The run failed."

/** The error that a client is told. */
const publicError = (error: unknown, exposed: Exposed): unknown => {
  if (exposed.errors === true || isPublic(error)) return error
  return masked(nameOf(error, "Error"), runFailed(error))
}

const toolError = (error: unknown, { errors }: Exposed): unknown =>
  errors === true || isPublic(error) ? error : masked(nameOf(error, "ToolFailed"), "The tool failed.")

const withoutHeaders = <A extends { readonly headers?: unknown }>(response: A): Omit<A, "headers"> => {
  const { headers: _, ...rest } = response
  return rest
}

/** A tool may write anything: what has the envelope of a chunk is masked like one. */
const isChunk = (value: unknown): value is Chunk =>
  isRecord(value) &&
  typeof value["type"] === "string" &&
  typeof value["runId"] === "string" &&
  typeof value["from"] === "string"

const nested = (output: unknown, exposed: Exposed): unknown =>
  isChunk(output) ? (mask(output, exposed) ?? null) : output

const toolOutput = (chunk: Of<"tool-output">, exposed: Exposed): Of<"tool-output"> => {
  const output = nested(chunk.payload.output, exposed)
  return output === chunk.payload.output ? chunk : { ...chunk, payload: { ...chunk.payload, output } }
}

const requestOf = (request: Of<"step-start">["payload"]["request"]) => {
  const { body: _, ...rest } = request
  return rest
}

/** Hides what the provider said with its answer. */
const maskProvider = (chunk: Chunk): Chunk | undefined => {
  switch (chunk.type) {
    case "raw":
      return undefined
    case "response-metadata": {
      const { headers: _, ...payload } = chunk.payload
      return { ...chunk, payload }
    }
    case "step-start":
      return { ...chunk, payload: { ...chunk.payload, request: requestOf(chunk.payload.request) } }
    case "step-finish":
      return chunk.payload.response?.headers === undefined
        ? chunk
        : { ...chunk, payload: { ...chunk.payload, response: withoutHeaders(chunk.payload.response) } }
    case "finish":
      return {
        ...chunk,
        payload: {
          ...chunk.payload,
          response: withoutHeaders(chunk.payload.response)
        }
      }
    default:
      return chunk
  }
}

const maskFinish = (payload: Of<"finish">["payload"]): Of<"finish">["payload"] => ({
  ...payload,
  messages: {
    all: payload.messages.all.map(maskMessage),
    user: payload.messages.user,
    nonUser: payload.messages.nonUser.map(maskMessage)
  },
  response: {
    ...payload.response,
    messages: payload.response.messages.map(maskMessage),
    uiMessages: payload.response.uiMessages.map(maskUiMessage)
  }
})

/** Hides what failures said. */
const maskErrors = (chunk: Chunk, exposed: Exposed): Chunk => {
  switch (chunk.type) {
    case "error":
      return { ...chunk, payload: { error: publicError(chunk.payload.error, exposed) } }
    case "tool-error":
      return { ...chunk, payload: { ...chunk.payload, error: toolError(chunk.payload.error, exposed) } }
    case "background-task-failed":
      return exposed.errors === true
        ? chunk
        : { ...chunk, payload: { ...chunk.payload, error: { message: "The task failed." } } }
    case "finish":
      return exposed.errors === true ? chunk : { ...chunk, payload: maskFinish(chunk.payload) }
    default:
      return chunk
  }
}

/** The chunk that a client may see; `undefined` for none. Most chunks are given back as they are. */
export const mask = (chunk: Chunk, exposed: Exposed): Chunk | undefined => {
  switch (chunk.type) {
    case "text-delta":
    case "reasoning-delta":
    case "tool-call-delta":
      return chunk
    case "tool-output":
      return toolOutput(chunk, exposed)
    case "background-task-output": {
      const payload = toolOutput(chunk.payload.payload, exposed)
      return payload === chunk.payload.payload ? chunk : { ...chunk, payload: { ...chunk.payload, payload } }
    }
    case "step-output":
      return { ...chunk, payload: { ...chunk.payload, output: nested(chunk.payload.output, exposed) } }
    default: {
      const shown = exposed.provider === true ? chunk : maskProvider(chunk)
      return shown === undefined ? undefined : maskErrors(shown, exposed)
    }
  }
}

/** Whether JSON holds it as it is: texts without a lone surrogate, and nothing else. */
const isPlain = (record: object): boolean =>
  Object.values(record).every(
    value => value === undefined || (typeof value === "string" && value.isWellFormed())
  )

/** The JSON of a chunk, on one line. The same as that of `Chunk.encode`, without a schema. */
export const encode = (chunk: Chunk): string => {
  if (chunk.type === "file" && typeof chunk.payload.data !== "string") {
    return stringify({ ...chunk, payload: { ...chunk.payload, encoding: "base64" } })
  }
  // Most chunks are deltas: to look through one of them costs a fifth of what making it safe does.
  if (chunk.type !== "text-delta" && chunk.type !== "reasoning-delta") return stringify(chunk)
  const { payload, ...envelope } = chunk
  return isPlain(payload) && isPlain(envelope) ? JSON.stringify(chunk) : stringify(chunk)
}

/** An error in the middle of a stream, as a chunk. */
export const errorFrame = (runId: string, message: string): string =>
  stringify({ type: "error", runId, from: "SYSTEM", payload: { error: { name: "Error", message } } })

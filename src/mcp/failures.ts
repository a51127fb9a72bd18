/** What went wrong, in a sentence. Nothing of it is a secret: no arguments, environment, headers, or bodies of answers. */
import * as Predicate from "effect/Predicate"
import { messageOf } from "../protocol/safeJson.js"
import { oneLine } from "../tool/schemaIssues.js"
import { brokenOff } from "./answerStream.js"
import { McpError } from "./McpError.js"
import type { Settings } from "./settings.js"

/** Codes of errors that the SDK makes itself. A server may use them too, but not with these words. */
const connectionClosed = -32_000
const requestTimeout = -32_001

const isProtocolError = (
  cause: unknown
): cause is Error & { readonly code: unknown; readonly data: unknown } =>
  cause instanceof Error && cause.name === "McpError" && "code" in cause && "data" in cause

const isClosed = (cause: unknown): boolean =>
  isProtocolError(cause)
    ? cause.code === connectionClosed && cause.message.endsWith(": Connection closed")
    : cause instanceof Error && cause.message === "Not connected"

const isTimeout = (cause: unknown): boolean =>
  isProtocolError(cause) && cause.code === requestTimeout && Predicate.hasProperty(cause.data, "timeout")

/** The status of an HTTP answer. */
const statusOf = (cause: unknown): number | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "number" && cause.code >= 100
    ? cause.code
    : undefined

/** What the platform says, for example `ECONNREFUSED`: `fetch` says it in the cause. */
const systemCodeOf = (cause: unknown): string | undefined => {
  if (!(cause instanceof Error)) return undefined
  if ("code" in cause && typeof cause.code === "string") return cause.code
  return systemCodeOf(cause.cause)
}

const problemOf = (cause: unknown): string => {
  if (isProtocolError(cause)) {
    if (cause.message.endsWith(brokenOff)) return "broke off its answer."
    return `answered with an error: ${messageOf(cause).replace(`MCP error ${String(cause.code)}: `, "")}`
  }
  const status = statusOf(cause)
  if (status === 401) return "wants to know who asks (HTTP status 401). Give it `headers` that it accepts."
  if (status !== undefined) return `answered with HTTP status ${status}.`
  const code = systemCodeOf(cause)
  if (code !== undefined) return `cannot be reached (${code}).`
  return `gave no answer that can be read (${oneLine(messageOf(cause)).slice(0, 200)}).`
}

/**
 * Whether a server that keeps sessions does not know this one. The protocol has status 404 for it; servers that keep their
 * sessions in memory often answer 400 and name the session. Either way the request was not handled.
 */
export const isForgotten = (cause: unknown): boolean => {
  const status = statusOf(cause)
  return status === 404 || (status === 400 && /\bsession\b/i.test(messageOf(cause)))
}

/** The answer was lost with the session, which another request replaced. */
class LostSession extends McpError {}

export const lostSession = ({ who }: Settings, cause: unknown): McpError =>
  new LostSession({
    reason: "request",
    message: sentence(`${who} forgot the session before it answered.`),
    cause
  })

/** What `fetch` reports when a connection ends while an answer is awaited. */
const brokenConnection = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"])

/** Whether the server may have handled the request, and its answer was lost. */
export const isCutOff = (cause: unknown): boolean =>
  cause instanceof LostSession ||
  (isProtocolError(cause) && cause.message.endsWith(brokenOff)) ||
  brokenConnection.has(systemCodeOf(cause) ?? "")

/** Words as a sentence. */
export const sentence = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1)

export const timedOut = ({ who }: Settings, milliseconds: number, cause?: unknown): McpError =>
  new McpError({
    reason: "timeout",
    message: sentence(`${who} did not answer within ${milliseconds} ms.`),
    cause
  })

const closed = ({ who }: Settings, cause: unknown): McpError =>
  new McpError({ reason: "closed", message: `The connection to ${who} is closed. Connect again.`, cause })

/** Why a request failed. */
export const requestFailed = (settings: Settings, cause: unknown): McpError => {
  if (isTimeout(cause)) return timedOut(settings, settings.timeout, cause)
  if (isClosed(cause)) return closed(settings, cause)
  return new McpError({ reason: "request", message: sentence(`${settings.who} ${problemOf(cause)}`), cause })
}

/** Why there is no connection. */
export const connectFailed = (settings: Settings, cause: unknown): McpError => {
  const { address, who } = settings
  const code = systemCodeOf(cause)
  const problem = isClosed(cause)
    ? "ended before it answered. Its log says why."
    : address.kind === "stdio" && code !== undefined
      ? `could not be started (${code}). Check \`command\` and \`cwd\`.`
      : problemOf(cause)
  return new McpError({ reason: "connect", message: sentence(`${who} ${problem}`), cause })
}

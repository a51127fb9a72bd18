/** Parts of UI messages as version 4 of the AI SDK has them, and clients that were written for it, in the words of today. */
import { isRecord, stringify } from "./safeJson.js"

const states: Readonly<Record<string, string>> = {
  "partial-call": "input-streaming",
  call: "input-available",
  result: "output-available"
}

const toolPart = (part: Readonly<Record<string, unknown>>, call: Readonly<Record<string, unknown>>) => {
  const { args, isError, providerExecuted, result, state, toolCallId, toolName } = call
  const isFailed = state === "result" && isError === true
  const said = typeof state === "string" ? (states[state] ?? state) : state
  return {
    type: "dynamic-tool",
    toolName,
    toolCallId,
    state: isFailed ? "output-error" : said,
    input: args,
    ...(isFailed ? { errorText: typeof result === "string" ? result : stringify(result) } : {}),
    ...(state === "result" ? { output: result ?? null } : {}),
    providerExecuted,
    providerMetadata: part["providerMetadata"]
  }
}

const partOf = (part: unknown): unknown => {
  if (!isRecord(part)) return part
  const { data, details, mimeType, reasoning, text, toolInvocation, type, url } = part
  if (type === "tool-invocation" && isRecord(toolInvocation)) return toolPart(part, toolInvocation)
  if (type === "reasoning" && text === undefined && details !== undefined) return { ...part, text: reasoning }
  if (type === "file" && url === undefined && data !== undefined)
    return { ...part, url: data, mediaType: mimeType }
  // For the eye only, as those of today are.
  return type === "source" ? { type: "custom" } : part
}

/** The message, its parts in the words of today; one place for each, so that a wrong one is named by its own. */
export const ofToday = (message: unknown): unknown =>
  isRecord(message) && Array.isArray(message["parts"])
    ? { ...message, parts: message["parts"].map(partOf) }
    : message

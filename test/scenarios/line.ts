/** A chunk as one line: its type and what matters of it. Ids that eddy makes, times and messages are left out. */
import type { Chunk } from "eddy"

const json = (value: unknown): string => JSON.stringify(value)

/** What a JSON parser says is wrong differs between engines. */
const errorOf = (error: unknown): string =>
  error instanceof Error
    ? `${error.name}: ${error.message.replace(/no JSON \(.*\)\./s, "no JSON (…).")}`
    : json(error)

const tokens = (usage: Chunk.PayloadOf<"finish">["output"]["usage"]): string => {
  const {
    cachedInputTokens,
    inputTokens = "?",
    outputTokens = "?",
    reasoningTokens,
    totalTokens = "?"
  } = usage
  const more = [
    ...(reasoningTokens === undefined ? [] : [` reasoning ${reasoningTokens}`]),
    ...(cachedInputTokens === undefined ? [] : [` cached ${cachedInputTokens}`])
  ]
  return `${inputTokens}+${outputTokens}=${totalTokens}${more.join("")}`
}

const resultOf = (result: Chunk.PayloadOf<"step-finish">["stepResult"]): string => {
  const said = result.rawReason === undefined ? "" : ` (said ${result.rawReason})`
  const stopped = result.stoppedBy === undefined ? "" : ` by ${result.stoppedBy}`
  return `${result.reason}${said}${stopped}${result.isContinued ? " →" : ""}`
}

interface Call {
  readonly toolCallId: string
  readonly toolName: string
  readonly providerExecuted?: boolean
}

const callOf = ({ providerExecuted, toolCallId, toolName }: Call): string =>
  `${toolCallId} ${toolName}${providerExecuted === true ? " by the provider" : ""}`

/** What a tool wrote; a chunk of an agent below as a line in braces. */
const outputOf = (output: unknown): string => (isChunk(output) ? `{ ${line(output)} }` : json(output))

const isChunk = (output: unknown): output is Chunk.Chunk =>
  typeof output === "object" && output !== null && "runId" in output && "from" in output

const told = (chunk: Chunk.Chunk): ReadonlyArray<string | undefined> => {
  switch (chunk.type) {
    case "step-start":
      return [chunk.payload.warnings === undefined ? undefined : `warns ${json(chunk.payload.warnings)}`]
    case "response-metadata":
      return [String(chunk.payload["id"])]
    case "text-start":
    case "text-end":
    case "reasoning-start":
      return [chunk.payload.id]
    case "text-delta":
    case "reasoning-delta":
      return [chunk.payload.id, json(chunk.payload.text)]
    case "reasoning-end":
    case "reasoning-signature":
      return [chunk.payload.id, chunk.payload.signature]
    case "tool-call-input-streaming-start":
      return [callOf(chunk.payload)]
    case "tool-call-delta":
      return [chunk.payload.toolCallId, json(chunk.payload.argsTextDelta)]
    case "tool-call-input-streaming-end":
      return [chunk.payload.toolCallId]
    case "tool-call":
      return [callOf(chunk.payload), json(chunk.payload.args)]
    case "tool-result":
      return [
        callOf(chunk.payload),
        chunk.payload.isError === true ? "is an error" : undefined,
        json(chunk.payload.result)
      ]
    case "tool-error":
      return [callOf(chunk.payload), errorOf(chunk.payload.error)]
    case "tool-output":
      return [chunk.payload.toolCallId, outputOf(chunk.payload.output)]
    case "source": {
      const { filename, id, mimeType, sourceType, title, url } = chunk.payload
      return [id, sourceType, json(title), url, mimeType, filename]
    }
    case "file": {
      const { base64, data, mimeType } = chunk.payload
      return [
        mimeType,
        typeof data === "string" ? `text ${data}` : `bytes ${data}`,
        base64 === undefined ? undefined : `base64 ${base64}`
      ]
    }
    case "raw":
      return [json(chunk.payload)]
    case "step-finish": {
      const { output, stepResult } = chunk.payload
      return [
        resultOf(stepResult),
        tokens(output.usage),
        json(output.text),
        ...output.toolCalls.map(call => call.toolCallId)
      ]
    }
    case "finish": {
      const { output, stepResult } = chunk.payload
      return [resultOf(stepResult), tokens(output.usage), json(output.text)]
    }
    case "error":
      return [errorOf(chunk.payload.error)]
    case "abort":
      return [chunk.payload.reason === undefined ? undefined : json(chunk.payload.reason)]
    default:
      return "data" in chunk ? [json(chunk.data), chunk.transient === true ? "transient" : undefined] : []
  }
}

const metadataOf = (chunk: Chunk.Chunk): string | undefined => {
  if (!("payload" in chunk) || !("providerMetadata" in chunk.payload)) return undefined
  return `~${json(chunk.payload.providerMetadata)}`
}

/** The chunk as a line; `from` is told where it is not the agent. */
export const line = (chunk: Chunk.Chunk): string =>
  [chunk.type, chunk.from === "AGENT" ? undefined : `(${chunk.from})`, ...told(chunk), metadataOf(chunk)]
    .filter(word => word !== undefined)
    .join(" ")

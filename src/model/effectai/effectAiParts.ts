/** Parts of an `@effect/ai` response as parts of the port. */
import type * as Response from "@effect/ai/Response"
import type * as AiTool from "@effect/ai/Tool"
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as FinishReason from "../../protocol/reasons.js"
import { toBase64 } from "../../protocol/safeJson.js"
import * as Usage from "../../protocol/tokens.js"
import type * as Part from "../ModelPart.js"
import { metadataField, toMetadata } from "../providerMetadata.js"

/** A part of a streamed response, whatever its tools are. */
export type StreamPart = Response.StreamPart<Record<string, AiTool.Any>>

/** What the provider says of a part; absent when that is nothing, as on most parts. */
const metadataOf = (metadata: Response.ProviderMetadata) => metadataField(toMetadata(metadata))

const flag = (providerExecuted: boolean) => (providerExecuted ? { providerExecuted } : {})

/**
 * Providers add up figures that they do not know as if they were 0: a total that is no more than what is known of it says
 * nothing.
 */
const usageOf = ({ totalTokens, ...known }: Response.Usage): Usage.Usage => {
  const { inputTokens, outputTokens } = known
  const isSum = inputTokens !== undefined && outputTokens !== undefined
  const isTold =
    totalTokens !== undefined && (isSum || totalTokens > (inputTokens ?? 0) + (outputTokens ?? 0))
  return Usage.make(isTold ? { ...known, totalTokens } : known)
}

/** `unknown` is no word of the provider's; `pause` is one that the port does not know. */
const reasonOf = (reason: Response.FinishReason): Pick<Part.Finish, "reason" | "rawReason"> => {
  const known = FinishReason.answerReason(reason)
  return reason === known || reason === "unknown" ? { reason: known } : { reason: known, rawReason: reason }
}

const source = (part: Response.UrlSourcePart | Response.DocumentSourcePart): Part.Source => {
  const { id, metadata, title } = part
  if (part.sourceType === "url") {
    return { type: "source", id, sourceType: "url", title, url: part.url.href, ...metadataOf(metadata) }
  }
  const filename = part.fileName === undefined ? {} : { filename: part.fileName }
  const { mediaType } = part
  return {
    type: "source",
    id,
    sourceType: "document",
    title,
    mediaType,
    ...filename,
    ...metadataOf(metadata)
  }
}

const responseMetadata = (part: Response.ResponseMetadataPart): Part.ResponseMetadata => ({
  type: "response-metadata",
  id: Option.getOrUndefined(part.id),
  modelId: Option.getOrUndefined(part.modelId),
  timestamp: Option.getOrUndefined(Option.map(part.timestamp, DateTime.toDate))
})

/** The part of the port that a part stands for. */
export const toModelPart = (part: StreamPart): Part.ModelPart => {
  switch (part.type) {
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
      return { type: part.type, id: part.id, ...metadataOf(part.metadata) }
    case "text-delta":
    case "reasoning-delta":
      return { type: part.type, id: part.id, delta: part.delta, ...metadataOf(part.metadata) }
    case "tool-params-start": {
      const kept = { ...flag(part.providerExecuted), ...metadataOf(part.metadata) }
      return { type: "tool-input-start", id: part.id, toolName: part.name, ...kept }
    }
    case "tool-params-delta":
      return { type: "tool-input-delta", id: part.id, delta: part.delta, ...metadataOf(part.metadata) }
    case "tool-params-end":
      return { type: "tool-input-end", id: part.id, ...metadataOf(part.metadata) }
    case "tool-call": {
      const kept = { ...flag(part.providerExecuted), ...metadataOf(part.metadata) }
      return { type: "tool-call", toolCallId: part.id, toolName: part.name, input: part.params, ...kept }
    }
    case "tool-result": {
      const { encodedResult: result, id: toolCallId, isFailure: isError, name: toolName } = part
      return { type: "tool-result", toolCallId, toolName, result, isError, ...metadataOf(part.metadata) }
    }
    case "source":
      return source(part)
    case "file": {
      const { data, mediaType } = part
      return { type: "file", data: toBase64(data), mediaType, ...metadataOf(part.metadata) }
    }
    case "response-metadata":
      return responseMetadata(part)
    case "finish": {
      const usage = usageOf(part.usage)
      return { type: "finish", ...reasonOf(part.reason), usage, ...metadataOf(part.metadata) }
    }
    case "error":
      return { type: "error", error: part.error }
    default:
      return { type: "raw", value: part }
  }
}

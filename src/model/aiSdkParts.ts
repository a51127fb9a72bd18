/**
 * Stream parts of specifications V2, V3 and V4 as parts of the port. One function for all: a part is read for what it
 * holds, not for the version that its model claims, because wrappers mix them.
 *
 * Most parts have the port's shape already and are handed on as they are, whatever else they carry.
 */
import * as Predicate from "effect/Predicate"
import type { Warning } from "../protocol/Chunk.js"
import * as FinishReason from "../protocol/reasons.js"
import type { ProviderMetadata } from "../protocol/safeJson.js"
import * as Usage from "../protocol/tokens.js"
import type * as Part from "./ModelPart.js"

type Fields = { readonly [key: string | symbol]: unknown }

const isText = Predicate.isString

/** Looked at one level deep only: what lies below is the provider's own data, and this runs on every part. */
const isMetadata = (value: unknown): value is ProviderMetadata => Predicate.isRecord(value)

const hasMetadata = (part: Fields): boolean =>
  part["providerMetadata"] === undefined || isMetadata(part["providerMetadata"])

const isFlag = (value: unknown): boolean => value === undefined || typeof value === "boolean"

const isBlockEdge = (part: Fields): part is Fields & Part.BlockEdge => isText(part["id"]) && hasMetadata(part)

const isBlockDelta = (part: Fields): part is Fields & Part.BlockDelta =>
  isText(part["delta"]) && isText(part["id"]) && hasMetadata(part)

const isToolInputStart = (part: Fields): part is Fields & Part.ToolInputStart =>
  isText(part["id"]) &&
  isText(part["toolName"]) &&
  isFlag(part["providerExecuted"]) &&
  isFlag(part["dynamic"]) &&
  hasMetadata(part)

const isToolInputDelta = (part: Fields): part is Fields & Part.ToolInputDelta =>
  isText(part["delta"]) && isText(part["id"]) && hasMetadata(part)

const isToolInputEnd = (part: Fields): part is Fields & Part.ToolInputEnd =>
  isText(part["id"]) && hasMetadata(part)

const isToolCall = (part: Fields): part is Fields & Part.ToolCall =>
  isText(part["toolCallId"]) &&
  isText(part["toolName"]) &&
  isFlag(part["providerExecuted"]) &&
  isFlag(part["dynamic"]) &&
  hasMetadata(part)

const isToolResult = (part: Fields): part is Fields & Part.ToolResult =>
  isText(part["toolCallId"]) && isText(part["toolName"]) && isFlag(part["isError"]) && hasMetadata(part)

const isFailure = (part: Fields): part is Fields & Part.Failure => "error" in part

/** Numbers are ids too; one that is missing is empty, and the reader of the answer gives its own. */
const idOf = (part: Fields, field: "id" | "toolCallId" = "id"): string => {
  const id = part[field]
  return isText(id) ? id : typeof id === "number" ? String(id) : ""
}

const metadataOf = (part: Fields): { readonly providerMetadata?: ProviderMetadata } =>
  isMetadata(part["providerMetadata"]) ? { providerMetadata: part["providerMetadata"] } : {}

/** The named fields that are strings. */
const texts = <Name extends string>(
  part: Fields,
  ...names: ReadonlyArray<Name>
): { [Key in Name]?: string } => {
  const kept: { [Key in Name]?: string } = {}
  for (const name of names) {
    const value = part[name]
    if (isText(value)) kept[name] = value
  }
  return kept
}

/** The named fields that are booleans. */
const flags = <Name extends string>(
  part: Fields,
  ...names: ReadonlyArray<Name>
): { [Key in Name]?: boolean } => {
  const kept: { [Key in Name]?: boolean } = {}
  for (const name of names) {
    const value = part[name]
    if (typeof value === "boolean") kept[name] = value
  }
  return kept
}

const raw = (value: unknown): Part.Raw => ({ type: "raw", value })

const blockEdge = (type: Part.BlockEdge["type"], part: Fields): Part.ModelPart =>
  isBlockEdge(part) ? part : { type, id: idOf(part), ...metadataOf(part) }

const blockDelta = (type: Part.BlockDelta["type"], part: Fields): Part.ModelPart => {
  if (isBlockDelta(part)) return part
  const delta = part["delta"]
  return isText(delta) ? { type, id: idOf(part), delta, ...metadataOf(part) } : raw(part)
}

const toolInputDelta = (part: Fields): Part.ModelPart => {
  if (isToolInputDelta(part)) return part
  const { delta } = part
  return isText(delta) ? { type: "tool-input-delta", id: idOf(part), delta, ...metadataOf(part) } : raw(part)
}

const toolInputEnd = (part: Fields): Part.ModelPart =>
  isToolInputEnd(part) ? part : { type: "tool-input-end", id: idOf(part), ...metadataOf(part) }

/** A call of no tool helps nobody: it is `raw`. */
const toolInputStart = (part: Fields): Part.ModelPart => {
  if (isToolInputStart(part)) return part
  const { toolName } = part
  if (!isText(toolName)) return raw(part)
  const kept = { ...flags(part, "providerExecuted", "dynamic"), ...metadataOf(part) }
  return { type: "tool-input-start", id: idOf(part), toolName, ...kept }
}

const toolCall = (part: Fields): Part.ModelPart => {
  if (isToolCall(part)) return part
  const { toolName, input } = part
  if (!isText(toolName)) return raw(part)
  const kept = { ...flags(part, "providerExecuted", "dynamic"), ...metadataOf(part) }
  return { type: "tool-call", toolCallId: idOf(part, "toolCallId"), toolName, input, ...kept }
}

/** A preliminary result is no outcome yet, and a call has one outcome only. */
const toolResult = (part: Fields): Part.ModelPart => {
  if (part["preliminary"] === true) return raw(part)
  if (isToolResult(part)) return part
  const { toolName, result } = part
  if (!isText(toolName)) return raw(part)
  const kept = { ...flags(part, "isError"), ...metadataOf(part) }
  return { type: "tool-result", toolCallId: idOf(part, "toolCallId"), toolName, result, ...kept }
}

const source = (part: Fields): Part.ModelPart => {
  const { sourceType } = part
  if (sourceType !== "url" && sourceType !== "document") return raw(part)
  const described = texts(part, "title", "url", "mediaType", "filename")
  return { type: "source", id: idOf(part), sourceType, ...described, ...metadataOf(part) }
}

/** V4 tags the data. An address is no data: such a file is `raw`. */
const file = (part: Fields): Part.ModelPart => {
  const tagged = part["data"]
  const data = Predicate.isRecord(tagged) && tagged["type"] === "data" ? tagged["data"] : tagged
  if (!isText(data) && !(data instanceof Uint8Array)) return raw(part)
  const mediaType = isText(part["mediaType"]) ? part["mediaType"] : "application/octet-stream"
  return { type: "file", data, mediaType, ...metadataOf(part) }
}

/** V2's words for a warning become those of V3 and V4: `unsupported` and the `feature`. */
const warning = (value: unknown): Warning => {
  if (!Predicate.isRecord(value) || !isText(value["type"])) return { type: "other", message: value }
  const { setting, tool, ...rest } = value
  if (rest["type"] === "unsupported-setting") return { ...rest, type: "unsupported", feature: setting }
  if (rest["type"] === "unsupported-tool") {
    const name = Predicate.isRecord(tool) ? (tool["id"] ?? tool["name"]) : tool
    return { ...rest, type: "unsupported", feature: `tool ${String(name)}` }
  }
  return { ...value, type: value["type"] }
}

/** Warnings, wherever a provider puts them. */
export const warningsOf = (warnings: unknown): ReadonlyArray<Warning> =>
  Array.isArray(warnings) ? warnings.map(warning) : []

const streamStart = ({ warnings }: Fields): Part.StreamStart => ({
  type: "stream-start",
  warnings: warningsOf(warnings)
})

const responseMetadata = (part: Fields): Part.ResponseMetadata => {
  const { timestamp } = part
  const known = timestamp instanceof Date && !Number.isNaN(timestamp.getTime()) ? { timestamp } : {}
  return { type: "response-metadata", ...texts(part, "id", "modelId"), ...known }
}

/** What specifications say for "the provider gave no reason": no word of the provider's. */
const isNoWord = (word: string): boolean => word === "other" || word === "unknown"

/**
 * A string (V2) or `{ unified, raw }` (V3, V4). The raw reason is kept where it says more than the reason. It is left out
 * when the provider gave none, and is `interrupted` when V4 says that the answer broke off.
 */
const reasonOf = (value: unknown): Pick<Part.Finish, "reason" | "rawReason"> => {
  const unified = Predicate.isRecord(value) ? value["unified"] : value
  const given = Predicate.isRecord(value) ? value["raw"] : undefined
  // Some packages know no reason of that name, but an answer that ended with it has failed.
  const reason = FinishReason.answerReason(given === "error" ? given : unified)
  const word =
    isText(given) && given.trim() !== "" ? given : isText(unified) && !isNoWord(unified) ? unified : reason
  return word === reason ? { reason } : { reason, rawReason: word }
}

/** Flat (V2) or nested (V3, V4). */
const usageOf = (value: unknown): Usage.Usage => {
  if (!Predicate.isRecord(value)) return Usage.empty
  const { inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens } = value
  const input: Fields = Predicate.isRecord(inputTokens)
    ? inputTokens
    : { total: inputTokens, cacheRead: cachedInputTokens }
  const output: Fields = Predicate.isRecord(outputTokens)
    ? outputTokens
    : { total: outputTokens, reasoning: reasoningTokens }
  return Usage.make({
    inputTokens: input["total"],
    outputTokens: output["total"],
    totalTokens,
    reasoningTokens: output["reasoning"],
    cachedInputTokens: input["cacheRead"]
  })
}

const finish = (part: Fields): Part.Finish => ({
  type: "finish",
  ...reasonOf(part["finishReason"]),
  usage: usageOf(part["usage"]),
  ...metadataOf(part)
})

/** An event of a type that the provider package does not know; providers add some, and say that they may be skipped. */
const isUnknownEvent = ({ cause, name, value }: Fields): boolean =>
  name === "AI_TypeValidationError" &&
  Predicate.isRecord(value) &&
  isText(value["type"]) &&
  Predicate.isRecord(cause) &&
  Array.isArray(cause["issues"]) &&
  cause["issues"].some(
    (issue: unknown) =>
      Predicate.isRecord(issue) &&
      issue["note"] === "No matching discriminator" &&
      Array.isArray(issue["path"]) &&
      issue["path"].join() === "type"
  )

/** Nothing for an unknown event: the package itself tells it as `raw`, where that is asked for. */
const failure = (part: Fields): Part.Failure | undefined => {
  if (!isFailure(part)) return { type: "error", error: part }
  const { error } = part
  return Predicate.isRecord(error) && isUnknownEvent(error) ? undefined : part
}

const read = (part: Fields): Part.ModelPart | undefined => {
  const { type } = part
  switch (type) {
    case "text-delta":
    case "reasoning-delta":
      return blockDelta(type, part)
    case "tool-input-delta":
      return toolInputDelta(part)
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
      return blockEdge(type, part)
    case "tool-input-start":
      return toolInputStart(part)
    case "tool-input-end":
      return toolInputEnd(part)
    case "tool-call":
      return toolCall(part)
    case "tool-result":
      return toolResult(part)
    case "source":
      return source(part)
    case "file":
      return file(part)
    case "stream-start":
      return streamStart(part)
    case "response-metadata":
      return responseMetadata(part)
    case "finish":
      return finish(part)
    case "error":
      return failure(part)
    case "raw":
      return raw("rawValue" in part ? part["rawValue"] : part)
    default:
      return raw(part)
  }
}

/**
 * The part that an element of the provider's stream stands for; `undefined` for none at all. What is unknown, or lacks
 * what it is about, is `raw`. Total: an object whose getters throw is `raw` too.
 */
export const normalize = (element: unknown): Part.ModelPart | undefined => {
  if (!Predicate.isRecord(element))
    return element === undefined || element === null ? undefined : raw(element)
  try {
    return read(element)
  } catch {
    return raw(element)
  }
}

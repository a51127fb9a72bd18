/** What providers say about parts: kept with the part, and handed back with it. */
import { type JsonValue, type ProviderMetadata, toJson } from "../protocol/safeJson.js"

const isObject = (value: JsonValue): value is ProviderMetadata[string] =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** `__proto__` is a name that no provider uses, and a prototype where records are copied key by key. */
const namedEntries = <Value>(record: { readonly [key: string]: Value }): Array<[string, Value]> =>
  Object.entries(record).filter(([name]) => name !== "__proto__")

/**
 * Metadata as a provider sent it, in the shape that everything behind relies on: values of records are made safe for JSON,
 * keys whose value is no record are absent, and so is metadata that has none left. Total: it reads hostile objects too.
 */
export const toMetadata = (value: unknown): ProviderMetadata | undefined => {
  const metadata = toJson(value)
  if (!isObject(metadata)) return undefined
  const kept = namedEntries(metadata).flatMap(([provider, values]) =>
    isObject(values) ? [[provider, Object.fromEntries(namedEntries(values))] as const] : []
  )
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** The part with its metadata in shape; the same part when it has none. */
export const withMetadata = <Part extends { readonly type: string }>(part: Part): Part => {
  if (!("providerMetadata" in part) || part.providerMetadata === undefined) return part
  return { ...part, providerMetadata: toMetadata(part.providerMetadata) }
}

/** Provider by provider, key by key: what comes later wins. */
export const mergeMetadata = (
  self: ProviderMetadata | undefined,
  that: ProviderMetadata | undefined
): ProviderMetadata | undefined => {
  if (self === undefined || that === undefined) return that ?? self
  const merged: Record<string, ProviderMetadata[string]> = { ...self }
  for (const [provider, values] of Object.entries(that)) merged[provider] = { ...merged[provider], ...values }
  return merged
}

/** Where providers put the signature of a reasoning block: Anthropic and Bedrock, OpenAI and xAI, Google. */
const signatureKeys = [
  "signature",
  "reasoningEncryptedContent",
  "encryptedContent",
  "thoughtSignature"
] as const

/** The signature in a part's metadata, byte for byte. */
export const signatureOf = (metadata: ProviderMetadata | undefined): string | undefined => {
  if (metadata === undefined) return undefined
  for (const values of Object.values(metadata)) {
    for (const key of signatureKeys) {
      const value = values[key]
      if (typeof value === "string" && value !== "") return value
    }
  }
  return undefined
}

/**
 * Metadata of a delta that goes on with the signature before it, with the whole signature: Anthropic and Bedrock write it like
 * text, piece by piece, under `signature`. `undefined` when it does not: other providers sign each part anew.
 */
export const withJoinedSignature = (
  before: ProviderMetadata | undefined,
  metadata: ProviderMetadata
): ProviderMetadata | undefined => {
  for (const [provider, values] of Object.entries(metadata)) {
    const [first, rest] = [before?.[provider]?.["signature"], values["signature"]]
    if (typeof first !== "string" || typeof rest !== "string" || first === rest) continue
    return { ...metadata, [provider]: { ...values, signature: first + rest } }
  }
  return undefined
}

/** An optional field of a chunk: absent when there is nothing to say. */
export const metadataField = (
  providerMetadata: ProviderMetadata | undefined
): { readonly providerMetadata?: ProviderMetadata } =>
  providerMetadata === undefined ? {} : { providerMetadata }

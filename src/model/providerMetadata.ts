/** What providers say about parts: kept with the part, and handed back with it. */
import type { ProviderMetadata } from "../protocol/safeJson.js"

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

/** An optional field of a chunk: absent when there is nothing to say. */
export const metadataField = (
  providerMetadata: ProviderMetadata | undefined
): { readonly providerMetadata?: ProviderMetadata } =>
  providerMetadata === undefined ? {} : { providerMetadata }

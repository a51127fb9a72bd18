/**
 * What changed blocks of an answer mean for the rest of it: providers bind parts of one answer to each other by ids and
 * signatures, and refuse a prompt that holds one without the other. Pure.
 */
import type { AssistantMessage } from "../protocol/Message.js"
import type { ProviderMetadata } from "../protocol/safeJson.js"

type Part = AssistantMessage["content"][number]

/** Which kinds of blocks processors have changed. */
export interface ChangedBlocks {
  readonly text: boolean
  readonly reasoning: boolean
}

/** Providers that keep the items of an answer under ids (OpenAI's Responses): one item needs those around it. */
export const itemProviders = (metadata: ProviderMetadata | undefined): ReadonlyArray<string> =>
  metadata === undefined ? [] : Object.keys(metadata).filter(name => metadata[name]?.["itemId"] !== undefined)

const withoutProviders = (part: Part, names: ReadonlySet<string>): Part => {
  const { providerOptions, ...rest } = part
  if (providerOptions === undefined) return part
  const kept = Object.entries(providerOptions).filter(([name]) => !names.has(name))
  return kept.length === 0 ? rest : { ...rest, providerOptions: Object.fromEntries(kept) }
}

const withoutOptions = ({ providerOptions: _, ...part }: Part): Part => part

const isProviderExecuted = (part: Part): boolean =>
  part.type === "tool-result" || (part.type === "tool-call" && part.providerExecuted === true)

/**
 * The parts of an answer as a provider takes them back. Changed reasoning unsigns all reasoning of an answer with calls: there
 * it is read whole or not at all. A change of any block takes the item ids of the whole answer, and with them the calls that the provider
 * executed itself, which are nothing but ids there. Signatures of parts that stand for themselves stay (Gemini's).
 */
export const unbound = (
  parts: ReadonlyArray<Part>,
  changed: ChangedBlocks,
  items: ReadonlySet<string>
): ReadonlyArray<Part> => {
  if (!changed.text && !changed.reasoning) return parts
  const isUnsigned =
    changed.reasoning && parts.some(part => part.type === "tool-call" && part.providerExecuted !== true)
  return parts.flatMap(part => {
    if (items.size > 0 && isProviderExecuted(part)) return []
    const free = isUnsigned && part.type === "reasoning" ? withoutOptions(part) : part
    return part.type === "reasoning" && free.type === "reasoning" && free.text === "" && free !== part
      ? []
      : [withoutProviders(free, items)]
  })
}

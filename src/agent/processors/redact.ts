/** Takes personal data out of what goes in and out. */
import type { Chunk, Of } from "../../protocol/Chunk.js"
import { InvalidConfiguration } from "../../protocol/Errors.js"
import type { Message } from "../../protocol/Message.js"
import { refuseUnknown } from "../../protocol/options.js"
import { wellFormed } from "../../protocol/safeJson.js"
import { make, type Processor, type ProcessorState } from "./definition.js"
import { custom, type Finder, finders } from "./personalData.js"
import { Redacting, redacted } from "./redacting.js"

/** Personal data that is known by its form. @since 0.1.0 @category models */
export type PersonalData = keyof typeof finders

/** What is redacted, and what is said instead. @since 0.1.0 @category models */
export interface RedactOptions {
  /** Default `redact`. */
  readonly id?: string
  /** Default: all that are known. `[]`: only `patterns`. */
  readonly data?: ReadonlyArray<PersonalData>
  /**
   * More, by the name of its kind. A match may have up to `longest` characters, and what is looked at beside it counts; it is
   * found among so many at the end of what has been said, which are held back.
   */
  readonly patterns?: Readonly<Record<string, RegExp>>
  /** Characters of the longest match of `patterns`. Default 128. */
  readonly longest?: number
  /** What is said instead. Default: the kind in brackets, for example `[email]`. */
  readonly replacement?: string | ((kind: string, found: string) => string)
}

const optionNames = ["id", "data", "patterns", "longest", "replacement"] as const satisfies ReadonlyArray<
  keyof RedactOptions
>

const known = Object.keys(finders)

const isKnown = (kind: string): kind is PersonalData => known.includes(kind)

const finderOf = (kind: string): (() => Finder) => {
  if (isKnown(kind)) return finders[kind]
  throw new InvalidConfiguration({
    field: "data",
    message: `\`redact\` knows no data "${kind}". It knows ${known.join(", ")}; others are for \`patterns\`.`
  })
}

/** Makes the finders of the options, each time anew. Throws `InvalidConfiguration`. */
const makeFinders = ({
  data = known as ReadonlyArray<PersonalData>,
  longest = 128,
  patterns = {}
}: RedactOptions) => {
  if (!Number.isInteger(longest) || longest < 1) {
    const message = `\`longest\` of \`redact\` is ${longest}. Give a whole number of characters, at least 1.`
    throw new InvalidConfiguration({ field: "longest", message })
  }
  for (const [kind, pattern] of Object.entries(patterns)) {
    if (pattern instanceof RegExp) continue
    const message = `\`patterns.${kind}\` of \`redact\` is no regular expression. Give one, for example /sk-\\w{20,64}/.`
    throw new InvalidConfiguration({ field: `patterns.${kind}`, message })
  }
  const makers = data.map(finderOf)
  const own = Object.entries(patterns)
  if (makers.length + own.length === 0) {
    throw new InvalidConfiguration({
      field: "data",
      message: "`redact` has nothing to look for. Name `data`, or give `patterns`."
    })
  }
  return (): ReadonlyArray<Finder> => [
    ...own.map(([kind, pattern]) => custom(kind, pattern, longest)),
    ...makers.map(maker => maker())
  ]
}

type Delta = Of<"text-delta"> | Of<"reasoning-delta">

type End = Of<"text-end"> | Of<"reasoning-end">

/** The blocks of the answer that is being told, by run. */
const tellings = new WeakMap<ProcessorState, Map<string, Redacting>>()

const blocksOf = (state: ProcessorState): Map<string, Redacting> => {
  const known = tellings.get(state)
  if (known !== undefined) return known
  const made = new Map<string, Redacting>()
  tellings.set(state, made)
  return made
}

const deltaOf = ({ runId, type, payload: { id } }: End, text: string): Delta =>
  type === "text-end"
    ? { type: "text-delta", runId, from: "AGENT", payload: { id, text } }
    : { type: "reasoning-delta", runId, from: "AGENT", payload: { id, text } }

/**
 * Redacts personal data: emails, phone numbers, credit cards, IBANs, IP addresses, and whatever `patterns` say. Among
 * `inputProcessors` in the texts of new messages, before they are told or stored; among `outputProcessors` in text and
 * reasoning, wherever the model cuts it, with no more held back than may be the beginning of something. Arguments of tool calls
 * stay as they are.
 *
 * Reasoning of which something was redacted goes into the next prompt without its signature, and so does, beside calls, the rest of the
 * reasoning of its answer. Ids under which OpenAI keeps the items of an answer go with whatever is redacted in it.
 *
 * Throws `InvalidConfiguration` for data that is not known, and for patterns that are none.
 *
 * @since 0.1.0
 * @category processors
 */
export const redact = (options: RedactOptions = {}): Processor => {
  refuseUnknown("`redact`", options, optionNames)
  const findersOf = makeFinders(options)
  const { id = "redact", replacement } = options
  const replace = (kind: string, found: string): string =>
    replacement === undefined
      ? `[${kind}]`
      : wellFormed(typeof replacement === "string" ? replacement : replacement(kind, found))
  const textOf = (text: string): string => redacted(findersOf(), replace, text)
  const partOf = <Part extends { readonly type: string }>(part: Part): Part => {
    if (part.type !== "text" || !("text" in part) || typeof part.text !== "string") return part
    const text = textOf(part.text)
    return text === part.text ? part : { ...part, text }
  }
  const messageOf = (message: Message): Message => {
    if (message.role !== "user" && message.role !== "assistant") return message
    const content: ReadonlyArray<unknown> = message.content
    // A message that stays as it is keeps its identity.
    if (message.content.map(partOf).every((part, index) => part === content[index])) return message
    return message.role === "user"
      ? { ...message, content: message.content.map(partOf) }
      : { ...message, content: message.content.map(partOf) }
  }
  return make({
    id,
    processInput: messages => messages.map(messageOf),
    processOutputStream: (chunk, { state }): Chunk | ReadonlyArray<Chunk> | undefined => {
      switch (chunk.type) {
        case "step-start":
          // An answer that begins anew has said nothing yet.
          blocksOf(state).clear()
          return chunk
        case "text-delta":
        case "reasoning-delta": {
          const blocks = blocksOf(state)
          const redacting = blocks.get(chunk.payload.id) ?? new Redacting(findersOf(), replace)
          blocks.set(chunk.payload.id, redacting)
          const text = redacting.push(chunk.payload.text)
          return text === chunk.payload.text ? chunk : { ...chunk, payload: { ...chunk.payload, text } }
        }
        case "text-end":
        case "reasoning-end": {
          const blocks = blocksOf(state)
          const rest = blocks.get(chunk.payload.id)?.end() ?? ""
          blocks.delete(chunk.payload.id)
          return rest === "" ? chunk : [deltaOf(chunk, rest), chunk]
        }
        default:
          return chunk
      }
    }
  })
}

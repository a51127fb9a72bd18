/** Limits what a model is told, and what is told of its answers. */
import { settle } from "../../protocol/conversationPairs.js"
import { InvalidConfiguration } from "../../protocol/Errors.js"
import type { Message } from "../../protocol/Message.js"
import { refuseUnknown } from "../../protocol/options.js"
import { stringify, wellFormed } from "../../protocol/safeJson.js"
import { make, type Options, type Processor, type ProcessorState } from "./definition.js"

/** Limits in tokens; at least one of them must be given. @since 0.1.0 @category models */
export interface TokenLimitOptions {
  /** Default `token-limiter`. */
  readonly id?: string
  /**
   * Of what a model is told, for `inputProcessors`: the oldest messages are left out, calls with their results. What stays in any
   * case are the instructions, the last message of the user, and the last message. Files do not count.
   */
  readonly input?: number
  /** Of the text of one answer, for `outputProcessors`. Reasoning and tool calls do not count. */
  readonly output?: number
  /** What becomes of an answer that is longer: its text ends there, or the run does. Default `truncate`. */
  readonly strategy?: "truncate" | "block"
  /** Tokens of a text. Default: an estimate of four characters each. */
  readonly count?: (text: string) => number
}

const optionNames = ["id", "input", "output", "strategy", "count"] as const satisfies ReadonlyArray<
  keyof TokenLimitOptions
>

/** Characters of a token, as long as nobody counts better. */
const characters = 4

const estimate = (text: string): number => text.length / characters

const checkLimit = (field: "input" | "output", limit: number | undefined): void => {
  if (limit === undefined || (Number.isInteger(limit) && limit > 0)) return
  throw new InvalidConfiguration({
    field,
    message: `\`${field}\` of \`tokenLimiter\` is ${limit}. Give a whole number of tokens, at least 1.`
  })
}

/** Everything in a message that is text for a model. */
const textOf = ({ content }: Message): string => {
  if (typeof content === "string") return content
  return content
    .map(part => {
      switch (part.type) {
        case "text":
        case "reasoning":
          return part.text
        case "tool-call":
          return part.toolName + stringify(part.input)
        case "tool-result":
          return stringify(part.output.value)
        case "file":
          return ""
      }
    })
    .join("")
}

/** Messages that stay or go together: an answer and the outcomes of its calls. System messages stand alone. */
const unitsOf = (messages: ReadonlyArray<Message>): ReadonlyArray<ReadonlyArray<Message>> => {
  const units: Array<Array<Message>> = []
  for (const message of messages) {
    if (message.role === "tool" && units.length > 0) units.at(-1)?.push(message)
    else units.push([message])
  }
  return units
}

/** The newest of a conversation that there is room for. Pure. */
export const newest = (
  messages: ReadonlyArray<Message>,
  limit: number,
  count: (text: string) => number
): ReadonlyArray<Message> => {
  const sizes = new Map(messages.map(message => [message, count(textOf(message))]))
  const sizeOf = (unit: ReadonlyArray<Message>): number =>
    unit.reduce((sum, message) => sum + (sizes.get(message) ?? 0), 0)
  if (sizeOf(messages) <= limit) return messages
  const units = unitsOf(messages)
  const isSystem = (unit: ReadonlyArray<Message> | undefined): boolean => unit?.[0]?.role === "system"
  const isUser = (unit: ReadonlyArray<Message> | undefined): boolean => unit?.[0]?.role === "user"
  const lastUser = units.findLastIndex(isUser)
  const last = units.findLastIndex(unit => !isSystem(unit))
  const isKept = (unit: ReadonlyArray<Message>, index: number): boolean =>
    isSystem(unit) || index === lastUser || index === last
  let room = units.reduce((left, unit, index) => (isKept(unit, index) ? left - sizeOf(unit) : left), limit)
  let from = units.length
  for (let index = units.length - 1; index >= 0; index--) {
    const unit = units[index]
    if (unit === undefined || isKept(unit, index)) {
      from = index
      continue
    }
    room -= sizeOf(unit)
    if (room < 0) break
    from = index
  }
  // Providers want a conversation to begin with the user.
  const begins = units.findIndex((unit, index) => index >= from && isUser(unit))
  const first = begins === -1 ? from : begins
  const isIn = (unit: ReadonlyArray<Message>, index: number): boolean => isKept(unit, index) || index >= first
  return settle(units.filter(isIn).flat())
}

/** What of one answer was told. */
class Told {
  tokens = 0
  isOver = false
}

const tellings = new WeakMap<ProcessorState, Told>()

const toldOf = (state: ProcessorState, isBeginning: boolean): Told => {
  const known = isBeginning ? undefined : tellings.get(state)
  const told = known ?? new Told()
  if (known === undefined) tellings.set(state, told)
  return told
}

/** The beginning of a text that there is still room for: of what others count, nothing. */
const beginning = (text: string, room: number, isEstimate: boolean): string => {
  if (!isEstimate || room <= 0) return ""
  const cut = text.slice(0, Math.floor(room * characters))
  return cut.isWellFormed() ? cut : wellFormed(cut.slice(0, -1))
}

const outputHook = (
  limit: number,
  { count, strategy = "truncate" }: TokenLimitOptions
): Pick<Options, "processOutputStream"> => ({
  processOutputStream: (chunk, context) => {
    if (chunk.type !== "text-delta") {
      if (chunk.type === "step-start") toldOf(context.state, true)
      return chunk
    }
    const told = toldOf(context.state, false)
    if (told.isOver) return undefined
    const { text } = chunk.payload
    const tokens = (count ?? estimate)(text)
    if (told.tokens + tokens <= limit) {
      told.tokens += tokens
      return chunk
    }
    if (strategy === "block") return context.abort(`The answer is longer than ${limit} tokens.`)
    told.isOver = true
    const rest = beginning(text, limit - told.tokens, count === undefined)
    return rest === "" ? undefined : { ...chunk, payload: { ...chunk.payload, text: rest } }
  }
})

/**
 * Limits the tokens of what a model is told (`input`), and of the text of its answers (`output`). Throws `InvalidConfiguration`
 * when it has no limit.
 *
 * @since 0.1.0
 * @category processors
 */
export const tokenLimiter = (options: TokenLimitOptions): Processor => {
  const { count, id = "token-limiter", input, output, strategy = "truncate" } = options
  refuseUnknown("`tokenLimiter`", options, optionNames)
  checkLimit("input", input)
  checkLimit("output", output)
  if (input === undefined && output === undefined) {
    const message = "`tokenLimiter` has no limit. Give it `input`, `output`, or both."
    throw new InvalidConfiguration({ field: "tokenLimiter", message })
  }
  if (strategy !== "truncate" && strategy !== "block") {
    const message = `\`strategy\` of \`tokenLimiter\` is ${String(strategy)}. Give "truncate" or "block".`
    throw new InvalidConfiguration({ field: "strategy", message })
  }
  return make({
    id,
    ...(input === undefined
      ? {}
      : { processInputStep: messages => newest(messages, input, count ?? estimate) }),
    ...(output === undefined ? {} : outputHook(output, options))
  })
}

/**
 * Answers that `@effect/ai` gives up although only one call of them is wrong: a call of a tool that is not offered, and
 * arguments that are no JSON. The agent's loop tells the model what is wrong with a call, so the call is handed on, and the
 * answer ends with it. What would have come behind it, its usage too, is lost.
 */
import type * as AiError from "@effect/ai/AiError"
import * as Response from "@effect/ai/Response"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Batch from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Part from "../ModelPart.js"
import { parseArguments } from "../toolArguments.js"
import { type StreamPart, toModelPart } from "./effectAiParts.js"
import { type Tools, withNames } from "./effectAiTools.js"

interface Draft {
  readonly id: string
  readonly toolName: string
  text: string
}

/** What eddy could parse a provider has refused for another reason, and that is left to stand. */
const isNoJson = (text: string): boolean => text.trim() === "" || Either.isLeft(parseArguments(text))

/** The arguments that the model is writing, of calls that the agent answers. */
export class Drafts {
  private readonly open = new Map<string, Draft>()

  note(part: StreamPart): void {
    if (part.type === "tool-params-start" && !part.providerExecuted) {
      this.open.set(part.id, { id: part.id, toolName: part.name, text: "" })
    } else if (part.type === "tool-params-delta") {
      const draft = this.open.get(part.id)
      if (draft !== undefined) draft.text += part.delta
    } else if (part.type === "tool-call") {
      this.open.delete(part.id)
    }
  }

  /** The arguments that a provider could not parse. No text at all is taken for them only where the error says so. */
  unreadable({ cause, description = "" }: AiError.MalformedOutput): Draft | undefined {
    if (!(cause instanceof SyntaxError)) return undefined
    const isMeant = ({ text }: Draft) => text.trim() !== "" || description.endsWith(`Parameters: ${text}`)
    return [...this.open.values()].find(draft => isNoJson(draft.text) && isMeant(draft))
  }
}

const ending: Part.Finish = { type: "finish", reason: "tool-calls", usage: {} }

/** The encoded parts that could not be decoded. */
const undecoded = ({ cause }: AiError.MalformedOutput): ReadonlyArray<unknown> => {
  const actual: unknown = ParseResult.isParseError(cause) ? cause.issue.actual : undefined
  return Batch.isChunk(actual) ? Batch.toReadonlyArray(actual) : []
}

/** Names that the agent's loop will not find either. */
const unknownNames = (parts: ReadonlyArray<unknown>, { tools }: Toolkit.WithHandler<Tools>) =>
  parts.flatMap(part => {
    if (!Predicate.isRecord(part) || part["type"] !== "tool-call" || part["providerExecuted"] === true)
      return []
    const { name } = part
    return Predicate.isString(name) && !Object.hasOwn(tools, name) ? [name] : []
  })

/** The rest of an answer that failed with this; `None` when it cannot be saved. */
export const rescue = (
  error: AiError.AiError,
  drafts: Drafts,
  toolkit: Toolkit.WithHandler<Tools>
): Effect.Effect<Option.Option<ReadonlyArray<Part.ModelPart>>> => {
  if (error._tag !== "MalformedOutput") return Effect.succeedNone
  const draft = drafts.unreadable(error)
  if (draft !== undefined) {
    const { id: toolCallId, text: input, toolName } = draft
    return Effect.succeedSome([{ type: "tool-call", toolCallId, toolName, input }, ending])
  }
  const parts = undecoded(error)
  const names = unknownNames(parts, toolkit)
  if (names.length === 0) return Effect.succeedNone
  const decode = Schema.decodeUnknown(Schema.Array(Response.StreamPart(withNames(toolkit, names))))
  return Effect.map(
    Effect.option(decode(parts)),
    Option.map(said => [...said.map(toModelPart), ending])
  )
}

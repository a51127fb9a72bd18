/**
 * The structured value of a run: what its readers need to know of it, and what is told of it in chunks.
 *
 * Partial values are many, and each is as large as what came before it. A log keeps none of them: it keeps that there was one,
 * and whoever reads makes it again from the text.
 */
import type * as Effect from "effect/Effect"
import type { Chunk, Of } from "../protocol/Chunk.js"
import { StructuredOutputError } from "../protocol/Errors.js"
import { isRecord, messageOf } from "../protocol/safeJson.js"
import type { PartialAnswer, Root } from "./partialAnswer.js"

/** A value as far as it is known: of objects any field may be missing, of arrays the rest. @since 0.1.0 @category models */
export type DeepPartial<A> = unknown extends A
  ? unknown
  : A extends string | number | bigint | boolean | symbol | null | undefined | Date
    ? A
    : A extends ReadonlyArray<infer Item>
      ? ReadonlyArray<DeepPartial<Item>>
      : A extends object
        ? { readonly [Key in keyof A]?: DeepPartial<A[Key]> }
        : A

/** An element of an array. Of what is no array there is none. @since 0.1.0 @category models */
export type ElementOf<A> = unknown extends A ? unknown : A extends ReadonlyArray<infer Item> ? Item : never

/** What becomes of a run that gives no valid value. @since 0.1.0 @category models */
export type ErrorStrategy = "strict" | "warn" | "fallback"

/** What the readers of a run know of its value. */
export interface Structured {
  readonly root: Root
  /** Whether a model of its own writes the value: the text of the run is not it. */
  readonly isApart: boolean
  readonly errorStrategy: ErrorStrategy
  readonly decodeElement: (value: unknown) => Effect.Effect<unknown, unknown>
}

/** The value of one run, as its readers know it. */
export interface AwaitedValue extends Structured {
  /** Whether somebody is told when there is no value, so that it need not be logged. */
  isAwaited: boolean
  /** What makes partial values of its text again, from the beginning. */
  readonly remake: () => PartialAnswer
}

/** Partial values that can be made again, with the texts that are in no chunk. */
const partials = new WeakMap<Chunk, ReadonlyArray<string>>()

/** A partial value. `texts` is what it was read from since the last one, where no chunk holds that. */
export const partialChunk = (runId: string, object: unknown, texts: ReadonlyArray<string>): Of<"object"> => {
  const chunk: Of<"object"> = { type: "object", runId, from: "AGENT", object }
  partials.set(chunk, texts)
  return chunk
}

/** Says that a value was read from these texts too, which have not changed it. */
export const withTexts = (chunk: Chunk, texts: ReadonlyArray<string>): void => {
  partials.set(chunk, texts)
}

/** What stands in a log for a partial value. */
export class PartialMark {
  constructor(
    readonly runId: string,
    readonly texts: ReadonlyArray<string>,
    /** Whether there was a partial value, and not only more of the text. */
    readonly isValue: boolean
  ) {}
}

const noTexts: ReadonlyArray<string> = []

/** Marks for one log. */
export class Marking {
  private last: PartialMark | undefined

  /** What is kept in place of a partial value, or in front of the end of a step; `undefined`: nothing. */
  markOf(chunk: Of<"object"> | Of<"step-finish">): PartialMark | undefined {
    const texts = partials.get(chunk)
    if (texts === undefined) return undefined
    const isValue = chunk.type === "object"
    if (texts.length > 0) return new PartialMark(chunk.runId, texts, isValue)
    if (this.last?.runId !== chunk.runId) this.last = new PartialMark(chunk.runId, noTexts, isValue)
    return this.last
  }
}

/** Makes the partial values of a run again, as its reader comes by what they were made of. */
export class Remaking {
  private readonly partial: PartialAnswer

  constructor(private readonly structured: AwaitedValue) {
    this.partial = structured.remake()
  }

  /** A text delta. */
  text(text: string): void {
    if (!this.structured.isApart) this.partial.take(text)
  }

  /** Anything else. */
  chunk(chunk: Chunk): void {
    if (chunk.type === "step-start") this.partial.reset()
    else if (chunk.type === "text-delta") this.text(chunk.payload.text)
  }

  /** The partial value, where there was one. */
  remade(mark: PartialMark): Of<"object"> | undefined {
    for (const text of mark.texts) this.partial.take(text)
    if (!mark.isValue) return undefined
    return { type: "object", runId: mark.runId, from: "AGENT", object: this.partial.value }
  }

  /** Elements of an array that are complete, and not yet valid, each once. */
  takeElements(): ReadonlyArray<unknown> {
    return this.partial.takeElements()
  }
}

/** What `finish` says of the value. */
export interface ValueFields {
  readonly object?: unknown
  readonly objectError?: StructuredOutputError
  readonly usedFallbackValue?: boolean
}

const toObjectError = (error: unknown): StructuredOutputError => {
  if (error instanceof StructuredOutputError) return error
  // Of a chunk that was JSON.
  const message = isRecord(error) ? messageOf(error) : String(error)
  return new StructuredOutputError({ reason: "invalid", issues: [], text: "", message })
}

/** The same, read from `finish`. */
export const valueFields = ({
  object,
  objectError,
  usedFallbackValue
}: Of<"finish">["payload"]["output"]): ValueFields => ({
  ...(object === undefined ? {} : { object }),
  ...(objectError === undefined ? {} : { objectError: toObjectError(objectError) }),
  ...(usedFallbackValue === true ? { usedFallbackValue } : {})
})

/** The structured value of one run: told as its text comes, and settled when its model has said its last word. */
import * as Effect from "effect/Effect"
import { isSame } from "../../output/growingValue.js"
import { type Found, PartialAnswer } from "../../output/partialAnswer.js"
import { type AwaitedValue, partialChunk, type ValueFields, withTexts } from "../../output/structured.js"
import type { Chunk } from "../../protocol/Chunk.js"
import { StructuredOutputError } from "../../protocol/Errors.js"
import { logDebug, logError, logWarning } from "../../protocol/logging.js"
import type { InvalidValue } from "../../tool/ToolSchema.js"
import type { Structure } from "../structuredOutput.js"

/** What a step came to: a valid value, or why there is none. */
export type Outcome =
  | { readonly _tag: "Value"; readonly value: unknown }
  | { readonly _tag: "Failed"; readonly error: StructuredOutputError }

type Reason = StructuredOutputError["reason"]

/** What the readers of a run know of its value. */
export const awaitedOf = ({ decodeElement, errorStrategy, isApart, root }: Structure): AwaitedValue => ({
  root,
  isApart,
  errorStrategy,
  decodeElement,
  isAwaited: false,
  remake: () => new PartialAnswer(root, false)
})

export class Structuring {
  /** What the readers of the run know of the value. */
  readonly value: AwaitedValue
  private readonly partial: PartialAnswer
  private outcome: Outcome | undefined
  /** The text of the step, as it was told. */
  private told: Array<string> = []
  /** What the value was read from since the last partial, where that is told nobody. */
  private untold: Array<string> = []
  /** Whether a partial value of this step was told. */
  isShown = false

  constructor(
    readonly structure: Structure,
    private readonly runId: string,
    private readonly tell: (chunk: Chunk) => void,
    /** Who calls this agent as a tool is told the last value only: each partial would be kept as it is. */
    private readonly isNested: boolean
  ) {
    this.value = awaitedOf(structure)
    this.partial = new PartialAnswer(structure.root, true)
  }

  /** Nobody sees the chunks but a log, which keeps no partial value. */
  leaveUnseen(): void {
    this.partial.leaveUnseen()
  }

  /** Tells a chunk of the run, and the partial value behind it. */
  readonly emit = (chunk: Chunk): void => {
    // Its end may complete an element, and change nothing of the value.
    if (chunk.type === "step-finish" && this.untold.length > 0) withTexts(chunk, this.untold)
    this.tell(chunk)
    if (chunk.type === "text-delta") this.text(chunk.payload.text)
    else if (chunk.type === "step-start") this.begin()
  }

  /** Another step, or the same one once more: what the one before said is no value. */
  private begin(): void {
    this.outcome = undefined
    this.told = []
    this.restart()
  }

  /** Whoever writes the value begins. */
  restart(): void {
    this.partial.reset()
    this.untold = []
    this.isShown = false
  }

  private text(text: string): void {
    this.told.push(text)
    if (!this.structure.isApart && this.partial.take(text)) this.show([])
  }

  /** Text of the model that only writes the value. */
  written(text: string): void {
    this.untold.push(text)
    if (!this.partial.take(text)) return
    this.show(this.untold)
    this.untold = []
  }

  private show(texts: ReadonlyArray<string>): void {
    if (this.isNested) return
    this.isShown = true
    this.tell(partialChunk(this.runId, this.partial.value, texts))
  }

  /** The text of the step. */
  get stepText(): string {
    return this.told.join("")
  }

  /** What whoever wrote the value has written. */
  decode(text: string): Effect.Effect<Outcome> {
    return this.read(this.partial.end(), text)
  }

  private read(found: Found, text: string): Effect.Effect<Outcome> {
    switch (found._tag) {
      case "Values":
        return this.firstValid(found.values, text)
      case "Nothing":
        return Effect.succeed(this.failed("missing", text, "There is no value in the answer."))
      case "CutOff":
        return Effect.succeed(this.failed("truncated", text, "The answer ends in the middle of the value."))
      case "Broken":
        return Effect.succeed(this.failed("invalid", text, `The answer holds no JSON: ${found.problem}.`))
    }
  }

  /** Of several readings the first counts when none is valid. */
  private firstValid([value, ...others]: ReadonlyArray<unknown>, text: string): Effect.Effect<Outcome> {
    const { decode } = this.structure
    const valid = (decoded: unknown): Outcome => ({ _tag: "Value", value: decoded })
    const refused = (invalid: InvalidValue): Outcome =>
      this.failed("invalid", text, `The value does not match the schema: ${invalid.message}`, invalid.issues)
    return Effect.catchAll(Effect.map(decode(value), valid), invalid =>
      Effect.map(
        others.length === 0 ? Effect.fail(invalid) : Effect.firstSuccessOf(others.map(decode)),
        valid
      ).pipe(Effect.catchAll(() => Effect.succeed(refused(invalid))))
    )
  }

  failed(
    reason: Reason,
    text: string,
    problem: string,
    issues: StructuredOutputError["issues"] = [],
    cause?: unknown
  ): Outcome {
    const remedy =
      this.structure.errorStrategy === "strict"
        ? " Ask again, or give another `structuredOutput.errorStrategy`."
        : ""
    // What a library says of a value ends as it likes.
    const message = `${problem.replace(/[^.]$/, "$&.")}${remedy}`
    const error = new StructuredOutputError({
      reason,
      issues,
      text,
      message,
      ...(cause === undefined ? {} : { cause })
    })
    return { _tag: "Failed", error }
  }

  /** The answer was cut off: whether there is a value in it or not, it is not the whole one. */
  cutOff(reason: "length" | "content-filter"): Outcome {
    const why = reason === "length" ? "the token limit cut it off" : "a content filter cut it off"
    return this.failed("truncated", this.stepText, `The answer is not whole: ${why}.`)
  }

  /** The step has come to this: its last value is told. */
  settle(outcome: Outcome): void {
    this.outcome = outcome
    const { errorStrategy, fallbackValue } = this.structure
    if (outcome._tag === "Failed" && errorStrategy !== "fallback") return
    const object = outcome._tag === "Value" ? outcome.value : fallbackValue
    if (this.isShown && isSame(this.partial.value, object)) return
    this.tell({ type: "object", runId: this.runId, from: "AGENT", object })
  }

  /** What the run came to: of one whose last step called tools nobody was to read a value. */
  end(): Outcome {
    this.outcome ??= this.failed(
      "missing",
      this.stepText,
      "The run ended with calls of tools, and no answer."
    )
    return this.outcome
  }

  /** What `finish` says of the value. */
  fields(): ValueFields {
    const outcome = this.end()
    if (outcome._tag === "Value") return { object: outcome.value }
    const { errorStrategy, fallbackValue } = this.structure
    const objectError = outcome.error
    return errorStrategy === "fallback"
      ? { object: fallbackValue, objectError, usedFallbackValue: true }
      : { objectError }
  }

  /** Writes to the log that there is no valid value, as loud as the strategy says; `undefined`: there is nothing to write. */
  log(): Effect.Effect<void> | undefined {
    const outcome = this.end()
    if (outcome._tag === "Value") return undefined
    const line = `Run ${this.runId} has no valid structured value: ${outcome.error.message}`
    switch (this.structure.errorStrategy) {
      case "strict":
        return this.value.isAwaited ? undefined : logError(line)
      case "warn":
        return logWarning(line)
      case "fallback":
        return logDebug(line)
    }
  }
}

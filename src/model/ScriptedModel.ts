/**
 * A model that says what a script tells it: for tests and for examples without a key.
 *
 * It is strict: a call too many fails, and {@link unused} tells of turns that nobody asked for.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import { ModelError } from "../protocol/Errors.js"
import type { AnswerReason } from "../protocol/FinishReason.js"
import * as Usage from "../protocol/tokens.js"
import type * as ModelPart from "./ModelPart.js"
import type { LanguageModel, ModelAnswer, ModelRequest } from "./ModelPort.js"

/** Waits by the clock of the run before the next part. @since 0.1.0 @category models */
export interface Pause {
  readonly type: "pause"
  readonly duration: Duration.DurationInput
}

/** Says nothing more, and does not end. @since 0.1.0 @category models */
export interface Hang {
  readonly type: "hang"
}

/** What a turn of a script is made of. @since 0.1.0 @category models */
export type ScriptPart = ModelPart.ModelPart | Pause | Hang

/** One answer: its parts, or what to answer this request with. @since 0.1.0 @category models */
export type Turn = ReadonlyArray<ScriptPart> | ((request: ModelRequest) => ReadonlyArray<ScriptPart>)

/** A scripted model, and what it was asked. @since 0.1.0 @category models */
export interface ScriptedModel extends LanguageModel {
  readonly answer: (request: ModelRequest) => Effect.Effect<ModelAnswer, ModelError>
  /** Every request so far, in order. */
  readonly requests: ReadonlyArray<ModelRequest>
  /** Turns that nobody has asked for yet. */
  readonly unused: () => number
}

/** @since 0.1.0 @category models */
export interface Options {
  /** Default `scripted`. */
  readonly provider?: string
  /** Default `script`. */
  readonly modelId?: string
  /** Waits between two parts of text or reasoning, so that an example streams like a model. Default: none. */
  readonly pace?: Duration.DurationInput
}

/** A text block, word by word. @since 0.1.0 @category parts */
export const text = (content: string, id = "text"): ReadonlyArray<ModelPart.ModelPart> => [
  { type: "text-start", id },
  ...words(content).map((delta): ModelPart.ModelPart => ({ type: "text-delta", id, delta })),
  { type: "text-end", id }
]

/** A reasoning block, word by word. @since 0.1.0 @category parts */
export const reasoning = (content: string, id = "reasoning"): ReadonlyArray<ModelPart.ModelPart> => [
  { type: "reasoning-start", id },
  ...words(content).map((delta): ModelPart.ModelPart => ({ type: "reasoning-delta", id, delta })),
  { type: "reasoning-end", id }
]

const words = (content: string): ReadonlyArray<string> => content.match(/\s*\S+\s*$|\s*\S+/g) ?? [content]

/** A complete tool call. @since 0.1.0 @category parts */
export const toolCall = (toolCallId: string, toolName: string, input: unknown): ModelPart.ModelPart => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input: JSON.stringify(input)
})

/** The end of an answer. Usage in tokens; what is left out is not known. @since 0.1.0 @category parts */
export const finish = (reason: AnswerReason, usage: Usage.Usage = Usage.empty): ModelPart.ModelPart => ({
  type: "finish",
  reason,
  usage: Usage.make(usage)
})

/** A whole answer: a text, and its end. @since 0.1.0 @category parts */
export const reply = (content: string, usage?: Usage.Usage): ReadonlyArray<ModelPart.ModelPart> => [
  ...text(content),
  finish("stop", usage)
]

/** Waits before the next part. @since 0.1.0 @category parts */
export const pause = (duration: Duration.DurationInput): Pause => ({ type: "pause", duration })

/** Says nothing more. @since 0.1.0 @category parts */
export const hang: Hang = { type: "hang" }

const isPaced = (part: ScriptPart): boolean => part.type === "text-delta" || part.type === "reasoning-delta"

const isScripted = (part: ScriptPart): part is Pause | Hang => part.type === "pause" || part.type === "hang"

/** The source holds nothing but parts: `play` has taken the rest out. */
const identity = (part: unknown): ModelPart.ModelPart => part as ModelPart.ModelPart

/**
 * Makes a model that answers its calls with the turns, in order. A call after the last turn fails with a `ModelError` that
 * says so.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (turns: ReadonlyArray<Turn>, options: Options = {}): ScriptedModel => {
  const { modelId = "script", provider = "scripted" } = options
  const pace = Duration.decode(options.pace ?? 0)
  const requests: Array<ModelRequest> = []
  const isPacing = Duration.greaterThan(pace, Duration.zero)
  const waitOf = (part: ScriptPart): Effect.Effect<void> | undefined => {
    if (part.type === "hang") return Effect.never
    if (part.type === "pause") return Effect.sleep(part.duration)
    return isPacing && isPaced(part) ? Effect.sleep(pace) : undefined
  }
  return {
    provider,
    modelId,
    requests,
    unused: () => Math.max(0, turns.length - requests.length),
    answer: Effect.fnUntraced(function* (request) {
      const turn = turns[requests.length]
      requests.push(request)
      if (turn === undefined) {
        return yield* new ModelError({
          reason: "request",
          provider,
          modelId,
          message: `The script has ${turns.length} turns; this is call ${requests.length}. Add a turn.`
        })
      }
      const parts = typeof turn === "function" ? turn(request) : turn
      return { source: yield* play(parts, waitOf), normalize: identity }
    })
  }
}

/** One part per pull. A wait is interrupted when the reader cancels. */
const play = (
  parts: ReadonlyArray<ScriptPart>,
  waitOf: (part: ScriptPart) => Effect.Effect<void> | undefined
) =>
  Effect.map(Effect.runtime(), runtime => {
    const left = new AbortController()
    const rest = parts.values()
    const next = (controller: ReadableStreamDefaultController<unknown>): void | Promise<void> => {
      const { done, value: part } = rest.next()
      if (done === true) return controller.close()
      const wait = waitOf(part)
      if (wait === undefined) return controller.enqueue(part)
      return Runtime.runPromiseExit(runtime)(wait, { signal: left.signal }).then(() => {
        if (left.signal.aborted) return
        return isScripted(part) ? next(controller) : controller.enqueue(part)
      })
    }
    return new ReadableStream<unknown>({ pull: next, cancel: () => left.abort() }, { highWaterMark: 0 })
  })

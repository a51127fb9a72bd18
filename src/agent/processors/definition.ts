/** What a processor is: functions that see what goes into a model and what comes out, and may change or stop it. */
import type * as Effect from "effect/Effect"
import type { Chunk, ToolCall } from "../../protocol/Chunk.js"
import type { Input } from "../../protocol/Conversation.js"
import { InvalidConfiguration } from "../../protocol/Errors.js"
import type { FinishReason } from "../../protocol/FinishReason.js"
import type { AssistantMessage, Message } from "../../protocol/Message.js"
import { refuseUnknown } from "../../protocol/options.js"
import type { JsonValue } from "../../protocol/safeJson.js"
import type { Usage } from "../../protocol/Usage.js"
import type { DataPart, RequestContext } from "../../tool/ToolContext.js"

/** @since 0.1.0 @category symbols */
export const TypeId: unique symbol = Symbol.for("eddy/Processor")

/** @since 0.1.0 @category symbols */
export type TypeId = typeof TypeId

/** How a processor stops what it sees. @since 0.1.0 @category models */
export interface AbortOptions {
  /**
   * Whether the step is tried again, with the reason as feedback, as long as `maxProcessorRetries` allows. Only where a model
   * has answered: hooks of the input just stop. Default false.
   */
  readonly retry?: boolean
  /** Goes with the reason into the `tripwire` chunk, for example scores and categories. */
  readonly metadata?: unknown
}

/** What a processor may keep from one call of its hooks to the next. @since 0.1.0 @category models */
export type ProcessorState = Record<string, unknown>

/** What every hook of a processor knows of its run, whichever face it is written for. @since 0.1.0 @category models */
export interface ProcessorFacts {
  readonly runId: string
  readonly agentId: string
  /** 0-based. A step that is tried again keeps its number. */
  readonly stepNumber: number
  /** How often this step was rejected so far. */
  readonly retryCount: number
  readonly requestContext: RequestContext
  /** The processor's own, fresh in each run, and the same in all of its hooks. */
  readonly state: ProcessorState
  /** What the model is told, or is about to be told. For `processInput`: what was handed to the run. */
  readonly messages: ReadonlyArray<Message>
}

/** What a hook of a processor knows and can do. @since 0.1.0 @category models */
export interface ProcessorContext extends ProcessorFacts {
  /**
   * Stops what the hook sees: the tripwire. Does not come back; nothing can catch it, and nobody who tries keeps the run alive.
   * The first call counts; one that comes after its hook has returned, as long as the answer is not complete.
   */
  readonly abort: (reason: string, options?: AbortOptions) => Effect.Effect<never>
  /** Puts a `data-*` chunk on the stream. A hook of the stream may as well give one among its chunks. */
  readonly writeData: (part: DataPart) => Effect.Effect<void>
}

/** The whole answer of a step. @since 0.1.0 @category models */
export interface ProcessedAnswer {
  /** All text, as it was told. */
  readonly text: string
  /** All reasoning, as it was told. */
  readonly reasoning: string
  /** Those that are not executed yet, too. */
  readonly toolCalls: ReadonlyArray<ToolCall>
  readonly finishReason: FinishReason
  readonly usage: Usage
  /** As it would be remembered; `undefined` for an answer that says nothing. */
  readonly message: AssistantMessage | undefined
}

/** What `processOutputStream` makes of a chunk: it, another one, several, or nothing. @since 0.1.0 @category models */
export type ProcessedChunks = Chunk | ReadonlyArray<Chunk> | null | undefined

/** What `processOutputResult` may add. @since 0.1.0 @category models */
export interface ProcessedResult {
  /** For the user interface: `metadata` of the messages in `response.uiMessages`. */
  readonly metadata?: { readonly [key: string]: JsonValue }
}

type MaybeEffect<A> = A | Effect.Effect<A, unknown>

/**
 * The hooks of a processor. Each may be plain code, or give an Effect, which is waited for in order. One that throws, fails,
 * dies, or gives what it may not give, fails the run with `ProcessorFailed`: what was not checked does not pass.
 *
 * @since 0.1.0
 * @category models
 */
export interface Hooks {
  /**
   * Called once in a run, before anything is stored or asked, with what was handed to the run: with a thread the new messages,
   * else the whole conversation. What it gives is told and stored instead; nothing changes nothing. A turn that has no new
   * input does without. When it aborts, nothing is stored, also not the message of the user.
   */
  readonly processInput?: (
    messages: ReadonlyArray<Message>,
    context: ProcessorContext
  ) => MaybeEffect<Input | undefined>
  /**
   * Called before each model call of a step, retries of a failed call not counted, with everything that the model is about to
   * be told, instructions included. What it gives is told instead, and only told: nobody stores it.
   */
  readonly processInputStep?: (
    messages: ReadonlyArray<Message>,
    context: ProcessorContext
  ) => MaybeEffect<Input | undefined>
  /**
   * Called with each chunk of an answer, in order, before anybody is told of it. Of `text-delta`, `reasoning-delta`, `source`,
   * `file`, `raw`, `response-metadata` and `data-*` it gives what is told instead: the chunk, a changed one, several, or
   * nothing. The others are shown, and stay: a `-start`, an `-end`, whatever belongs to a tool call; text deltas may be put in
   * front of them (give `[delta, chunk]`), so that what was held back is told before its block ends. What is told is what is
   * remembered.
   *
   * A model call that failed is made again when nobody was told of it: a `step-start` begins anew.
   *
   * Plain code costs no more than its call; an Effect costs a fiber for each chunk, and the model is read no further ahead than
   * some chunks.
   */
  readonly processOutputStream?: (
    chunk: Chunk,
    context: ProcessorContext
  ) => ProcessedChunks | Effect.Effect<ProcessedChunks, unknown>
  /** Judges the whole answer of a step, before its tools are executed and before it is remembered. Gives nothing, or aborts. */
  readonly processOutputStep?: (
    answer: ProcessedAnswer,
    context: ProcessorContext
  ) => MaybeEffect<undefined> | Effect.Effect<void, unknown>
  /**
   * Judges an answer that would end the run, after `processOutputStep` and before it is remembered: one that leaves no call to
   * answer. May give metadata for the user interface, which are merged over those of the processors before it.
   */
  readonly processOutputResult?: (
    answer: ProcessedAnswer,
    context: ProcessorContext
  ) => MaybeEffect<ProcessedResult | undefined> | Effect.Effect<void, unknown>
}

/** What a processor is made of. @since 0.1.0 @category models */
export interface Options extends Hooks {
  /** Names it in `tripwire` chunks and errors. */
  readonly id: string
}

/**
 * A processor, made by `Processor.make`. As one of the `inputProcessors` its hooks of the input are called, as one of the
 * `outputProcessors` those of the output; one that has both may be in both lists.
 *
 * @since 0.1.0
 * @category models
 */
export interface Processor extends Options {
  readonly [TypeId]: TypeId
}

const inputHooks = ["processInput", "processInputStep"] as const satisfies ReadonlyArray<keyof Hooks>

const outputHooks = [
  "processOutputStream",
  "processOutputStep",
  "processOutputResult"
] as const satisfies ReadonlyArray<keyof Hooks>

/** The hooks that there are. */
export const hookNames: ReadonlyArray<keyof Hooks> = [...inputHooks, ...outputHooks]

/** Refuses what cannot work as a processor, on either face. Throws `InvalidConfiguration`. */
export const checkHooks = (options: { readonly [Name in keyof Options]?: unknown }): void => {
  const { id } = options
  if (typeof id !== "string" || id === "") {
    throw new InvalidConfiguration({
      field: "id",
      message: "A processor needs an `id`: a string that is not empty."
    })
  }
  refuseUnknown(`Processor "${id}"`, options, ["id", ...hookNames])
  const given = hookNames.filter(name => options[name] !== undefined)
  const wrong = given.find(name => typeof options[name] !== "function")
  if (wrong !== undefined || given.length === 0) {
    const what = wrong === undefined ? "has no hook" : `has a \`${wrong}\` that is no function`
    throw new InvalidConfiguration({
      field: wrong ?? "id",
      message: `Processor "${id}" ${what}. Give it functions: ${hookNames.join(", ")}.`
    })
  }
}

/**
 * Makes a processor. Throws `InvalidConfiguration` when it has no id, no hook, or one that nobody calls.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Processor => {
  checkHooks(options)
  return { [TypeId]: TypeId, ...options }
}

/** Whether a value is a processor. @since 0.1.0 @category guards */
export const isProcessor = (value: unknown): value is Processor =>
  typeof value === "object" && value !== null && TypeId in value

/** Processors of an option. Throws `InvalidConfiguration` for one that does nothing there. */
export const checkProcessors = (
  field: "inputProcessors" | "outputProcessors",
  given: ReadonlyArray<Processor> | undefined
): void => {
  if (given === undefined) return
  const refused = (place: string, message: string): InvalidConfiguration =>
    new InvalidConfiguration({ field: place, message: `\`${place}\` ${message}` })
  if (!Array.isArray(given)) throw refused(field, "are no list. Give the processors in one.")
  const hooks = field === "inputProcessors" ? inputHooks : outputHooks
  for (const [index, processor] of given.entries()) {
    const place = `${field}[${index}]`
    if (!isProcessor(processor)) {
      throw refused(place, "is no processor. Make it with Processor.make({ id, … }).")
    }
    if (hooks.every(name => processor[name] === undefined)) {
      throw refused(
        place,
        `("${processor.id}") has no hook that is called there. Give it one of ${hooks.join(", ")}, or put it in the other list.`
      )
    }
  }
}

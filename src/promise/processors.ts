/** Processors of plain TypeScript: objects whose hooks may promise. */
import type * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { type HookContext, plainContext } from "../agent/processors/context.js"
import {
  type AbortOptions,
  type ProcessorContext as CoreContext,
  type Processor as CoreProcessor,
  checkHooks,
  hookNames,
  isProcessor,
  make,
  type ProcessedAnswer,
  type ProcessedChunks,
  type ProcessedResult,
  type ProcessorFacts,
  type TypeId
} from "../agent/processors/definition.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { Input } from "../protocol/Conversation.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import type { Message } from "../protocol/Message.js"
import type { DataPart } from "../tool/ToolContext.js"
import { fromPromise } from "./fromPromise.js"

/** What a hook of a processor knows and can do. @since 0.1.0 @category models */
export interface ProcessorContext extends ProcessorFacts {
  /**
   * Stops what the hook sees: the tripwire. It throws, so that nothing behind it runs, and whoever catches that keeps nothing
   * alive. The first call counts; one that comes after its hook has returned, as long as the answer is not complete.
   */
  readonly abort: (reason: string, options?: AbortOptions) => never
  /** Puts a `data-*` chunk on the stream, at once. A hook of the stream may as well give one among its chunks. */
  readonly writeData: (part: DataPart) => void
}

/**
 * Sees what goes into a run and its model, or what comes out, and may change or stop it: an object with an id and at least one
 * hook. A hook that gives a promise is waited for, in order. One that throws or rejects, or gives what it may not give, fails
 * the run with `ProcessorFailed`: what was not checked does not pass.
 *
 * @since 0.1.0
 * @category models
 */
export interface Processor {
  /** Names it in `tripwire` chunks and errors. */
  readonly id: string
  /**
   * Called once in a run, before anything is stored or asked, with what was handed to the run: with a thread the new messages,
   * else the whole conversation. What it gives is told and stored instead; nothing changes nothing. A turn that has no new
   * input does without. When it aborts, nothing is stored, also not the message of the user.
   */
  readonly processInput?: (
    messages: ReadonlyArray<Message>,
    context: ProcessorContext
  ) => Input | undefined | Promise<Input | undefined>
  /**
   * Called before each model call of a step with everything that the model is about to be told, instructions included. What it
   * gives is told instead, and only told: nobody stores it.
   */
  readonly processInputStep?: (
    messages: ReadonlyArray<Message>,
    context: ProcessorContext
  ) => Input | undefined | Promise<Input | undefined>
  /**
   * Called with each chunk of an answer, in order, before anybody is told of it. Of `text-delta`, `reasoning-delta`, `source`,
   * `file`, `raw`, `response-metadata` and `data-*` it gives what is told instead: the chunk, a changed one, several, or
   * nothing. The others are shown, and stay; text deltas may be put in front of them (give `[delta, chunk]`). What is told is
   * what is remembered. A model call that failed is made again when nobody was told of it: a `step-start` begins anew.
   *
   * Without a promise it costs no more than its call.
   */
  readonly processOutputStream?: (
    chunk: Chunk,
    context: ProcessorContext
  ) => ProcessedChunks | Promise<ProcessedChunks>
  /** Judges the whole answer of a step, before its tools are executed and before it is remembered. Gives nothing, or aborts. */
  readonly processOutputStep?: (
    answer: ProcessedAnswer,
    context: ProcessorContext
  ) => undefined | Promise<void>
  /**
   * Judges an answer that would end the run, after `processOutputStep` and before it is remembered: one that leaves no call to
   * answer. May give metadata for the messages of `response.uiMessages`.
   */
  readonly processOutputResult?: (
    answer: ProcessedAnswer,
    context: ProcessorContext
  ) => ProcessedResult | undefined | Promise<ProcessedResult | undefined>
}

/**
 * One of plain TypeScript, or one that the library makes: `redact`, `blockWhen`, `tokenLimiter`.
 *
 * @since 0.1.0
 * @category models
 */
export type AnyProcessor = Processor | Pick<CoreProcessor, "id" | TypeId>

/** What `abort` throws. Nobody has to know it: that it was called is on record. */
class Tripped extends Error {
  override readonly name = "Tripped"

  constructor(reason: string) {
    super(`A processor stopped the run: ${reason}`)
  }
}

const contexts = new WeakMap<HookContext, ProcessorContext>()

const contextOf = (core: CoreContext): ProcessorContext => {
  const hook = plainContext(core)
  const known = contexts.get(hook)
  if (known !== undefined) return known
  const { agentId, messages, requestContext, retryCount, runId, state, stepNumber } = hook
  const made: ProcessorContext = {
    runId,
    agentId,
    stepNumber,
    retryCount,
    requestContext,
    state,
    messages,
    abort: (reason, options) => {
      hook.trip(reason, options)
      throw new Tripped(reason)
    },
    writeData: hook.write
  }
  contexts.set(hook, made)
  return made
}

const ignore = (): void => undefined

/** A hook of the core that calls one of plain TypeScript. `Later` is what promises of it give. */
const toHook =
  <A, Now, Later>(call: (value: A, context: ProcessorContext) => Now | Promise<Later>) =>
  (value: A, context: CoreContext): Now | Effect.Effect<Later, unknown> => {
    const given = call(value, contextOf(context))
    if (!isPromise(given)) return given
    // One that has stopped the run is waited for by nobody.
    given.then(ignore, ignore)
    return fromPromise(() => given)
  }

const isPromise = <Now, Later>(given: Now | Promise<Later>): given is Promise<Later> =>
  Predicate.isPromiseLike(given)

const translated = new WeakMap<Processor, CoreProcessor>()

const hooksOf = (given: Processor): Partial<Processor> =>
  Object.fromEntries(hookNames.map(name => [name, given[name]]))

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/** Throws `InvalidConfiguration`. */
const translate = (given: Processor): CoreProcessor => {
  // An instance of a class has its hooks in the prototype, and fields that are its own affair.
  const isPlain = [Object.prototype, null].includes(Object.getPrototypeOf(given))
  checkHooks(isPlain ? given : { id: given.id, ...hooksOf(given) })
  const { id, processInput, processInputStep, processOutputResult, processOutputStep, processOutputStream } =
    given
  return make({
    id,
    ...(processInput === undefined ? {} : { processInput: toHook(processInput.bind(given)) }),
    ...(processInputStep === undefined ? {} : { processInputStep: toHook(processInputStep.bind(given)) }),
    ...(processOutputStream === undefined
      ? {}
      : { processOutputStream: toHook(processOutputStream.bind(given)) }),
    ...(processOutputStep === undefined ? {} : { processOutputStep: toHook(processOutputStep.bind(given)) }),
    ...(processOutputResult === undefined
      ? {}
      : { processOutputResult: toHook(processOutputResult.bind(given)) })
  })
}

/** Throws `InvalidConfiguration`. */
const toProcessor =
  (field: string) =>
  (given: AnyProcessor, index: number): CoreProcessor => {
    if (isProcessor(given)) return given
    const place = `${field}[${index}]`
    if (!isObject(given)) {
      throw new InvalidConfiguration({
        field: place,
        message: `\`${place}\` is no processor. Give an object with an id and a hook, for example { id, processInput }.`
      })
    }
    const made = translated.get(given) ?? translate(given)
    translated.set(given, made)
    return made
  }

const toList = (field: string, given: ReadonlyArray<AnyProcessor>): ReadonlyArray<CoreProcessor> => {
  if (Array.isArray(given)) return given.map(toProcessor(field))
  throw new InvalidConfiguration({
    field,
    message: `\`${field}\` are no list. Give the processors in one.`
  })
}

/** Processors of options, in those of the core. Throws `InvalidConfiguration`. */
export const toProcessors = ({
  inputProcessors,
  outputProcessors
}: {
  readonly inputProcessors: ReadonlyArray<AnyProcessor> | undefined
  readonly outputProcessors: ReadonlyArray<AnyProcessor> | undefined
}) => ({
  ...(inputProcessors === undefined ? {} : { inputProcessors: toList("inputProcessors", inputProcessors) }),
  ...(outputProcessors === undefined
    ? {}
    : { outputProcessors: toList("outputProcessors", outputProcessors) })
})

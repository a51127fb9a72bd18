/**
 * The output of a run, as streams and promises.
 *
 * @since 0.1.0
 */
import type { FullOutput, Response, RunStatus, Step, Tripwire } from "../output/FullOutput.js"
import type { PendingCall } from "../output/PendingCall.js"
import { failureOf, type RunRecord, truncated } from "../output/RunRecord.js"
import { objectFailure } from "../output/settledObject.js"
import type { DeepPartial, ElementOf } from "../output/structured.js"
import type { Chunk, Of, RequestInfo, ToolCall, ToolResult, Warning } from "../protocol/Chunk.js"
import type { FinishReason } from "../protocol/FinishReason.js"
import type { ProviderMetadata } from "../protocol/safeJson.js"
import type { Usage } from "../protocol/Usage.js"
import { guard, type Log } from "./callbacks.js"
import { type ElementStream, elementStream } from "./elementStream.js"
import { RunStream } from "./RunStream.js"

/** @since 0.1.0 @category models */
export interface ConsumeStreamOptions {
  /** Gets the run's error, when it has one; `consumeStream` then does not reject. */
  readonly onError?: (error: Error) => unknown
}

const everything = (chunk: Chunk): Chunk => chunk

const textOnly = (chunk: Chunk): string | undefined =>
  chunk.type === "text-delta" ? chunk.payload.text : undefined

const ignore = (): void => undefined

/** Half of a text looks like a text: it is refused. */
const whole =
  <A>(pick: (full: FullOutput) => A) =>
  (full: FullOutput): A => {
    const refusal = truncated(full)
    if (refusal !== undefined) throw refusal
    return pick(full)
  }

/**
 * What `agent.stream()` gives: the run is going, and anything of it may be asked for in any order, at any time, by any
 * number of readers. Every stream begins at the first chunk. Every promise settles from the run's one cause: with its value
 * when the run succeeded, was stopped by a processor or was suspended; it rejects with the run's error when the run failed
 * or was aborted. A promise that nobody reads never becomes an unhandled rejection. `A` is the value that `structuredOutput`
 * asked for.
 *
 * A run waits for its readers: it is at most 64 chunks (and 64 more of the model) ahead of the furthest. Asking for a
 * promise, `getFullOutput` and `consumeStream` let it run to its end; so does a reader that leaves.
 *
 * @since 0.1.0
 * @category models
 */
export class ModelOutput<A = unknown> {
  readonly #record: RunRecord
  readonly #abort: (reason?: unknown) => void
  readonly #log: Log
  #values: Map<string, Promise<unknown>> | undefined
  #full: Promise<FullOutput<A>> | undefined
  #turns: Promise<ReadonlyArray<FullOutput>> | undefined
  #object: Promise<A> | undefined

  /** Made by `agent.stream()`. */
  constructor(record: RunRecord, abort: (reason?: unknown) => void, log: Log) {
    this.#record = record
    this.#abort = abort
    this.#log = log
  }

  /** The id of this run; every chunk has it. */
  get runId(): string {
    return this.#record.runId
  }

  /** The id of the message that this run answers with. `""` before the first chunk. */
  get messageId(): string {
    return this.#record.fold.message
  }

  /** Every chunk. A new stream each time it is asked for. */
  get fullStream(): RunStream<Chunk> {
    return new RunStream(this.#record.log, everything)
  }

  /**
   * Text deltas only, of the run that the values speak of. A new stream each time it is asked for; closes without an error also
   * when the run failed.
   */
  get textStream(): RunStream<string> {
    return new RunStream(this.#record.log, textOnly, this.#record.isOpenEnded, "text")
  }

  /**
   * The structured value as far as it is known, each different from the one before; the last is the valid one. Partial values are
   * as the model writes them: defaults and transformations are for the last. An attempt that is made again begins anew. Of the
   * first turn, and empty without `structuredOutput`. A new stream each time it is asked for; closes without an error.
   */
  get objectStream(): RunStream<DeepPartial<A>> {
    return new RunStream(
      this.#record.log,
      // What is validated, and what `A` is, come from one schema.
      chunk => (chunk.type === "object" ? (chunk.object as DeepPartial<A>) : undefined),
      true
    )
  }

  /**
   * Elements of a structured array, each as soon as it is complete, and valid by itself; others are left out. Of the first turn,
   * and empty where the value is no array. A new stream each time it is asked for; closes without an error.
   */
  get elementStream(): ElementStream<ElementOf<A>> {
    return elementStream(this.#record)
  }

  /**
   * The structured value. Rejects with `StructuredOutputError` when there is no valid one, unless the `errorStrategy` says otherwise
   * (`warn`: it is `undefined` then); with the error of a run that failed or was aborted, with `RunBlocked` or `RunSuspended` of
   * one that was stopped; with `InvalidConfiguration` when nobody has asked for a value.
   */
  get object(): Promise<A> {
    const { structured } = this.#record
    if (structured !== undefined) structured.isAwaited = true
    this.#object ??= this.#fullOutput().then(full => {
      const failure = objectFailure(full, structured)
      if (failure !== undefined) throw failure
      return full.object as A
    })
    this.#object.catch(ignore)
    return this.#object
  }

  /** All text of the run: the same as joining every `text-delta`. */
  get text(): Promise<string> {
    return this.#value(
      "text",
      whole(full => full.text)
    )
  }

  /** All reasoning text; `""` when there is none. */
  get reasoning(): Promise<string> {
    return this.#value(
      "reasoning",
      whole(full => full.reasoning ?? "")
    )
  }

  /** All reasoning text; `undefined` when there is none. */
  get reasoningText(): Promise<string | undefined> {
    return this.#value(
      "reasoningText",
      whole(full => full.reasoning)
    )
  }

  /** The `tool-call` chunks of all steps, in call order. */
  get toolCalls(): Promise<ReadonlyArray<ToolCall>> {
    return this.#value("toolCalls", full => full.toolCalls)
  }

  /** The `tool-result` chunks of all steps, in call order. */
  get toolResults(): Promise<ReadonlyArray<ToolResult>> {
    return this.#value("toolResults", full => full.toolResults)
  }

  /** Tokens of the whole run. A figure that no provider told is absent. */
  get usage(): Promise<Usage> {
    return this.#value("usage", full => full.usage)
  }

  /** The same as `usage`. */
  get totalUsage(): Promise<Usage> {
    return this.#value("totalUsage", full => full.totalUsage)
  }

  /** As in the `finish` chunk. Never rejects: a run that failed ended with `"error"`. */
  get finishReason(): Promise<FinishReason | undefined> {
    return this.#fullOutput().then(full => full.finishReason)
  }

  /** The last response, and the messages that the run added to the conversation. */
  get response(): Promise<Response> {
    return this.#value("response", full => full.response)
  }

  /** The steps that finished. */
  get steps(): Promise<ReadonlyArray<Step>> {
    return this.#value("steps", full => full.steps)
  }

  /** The `source` chunks of all steps. */
  get sources(): Promise<ReadonlyArray<Of<"source">>> {
    return this.#value("sources", full => full.sources)
  }

  /** The `file` chunks of all steps. */
  get files(): Promise<ReadonlyArray<Of<"file">>> {
    return this.#value("files", full => full.files)
  }

  /** What the provider warned of. */
  get warnings(): Promise<ReadonlyArray<Warning>> {
    return this.#value("warnings", full => full.warnings)
  }

  /** What the model was asked in the last step. */
  get request(): Promise<RequestInfo> {
    return this.#value("request", full => full.request)
  }

  /** What the provider said about the last step. */
  get providerMetadata(): Promise<ProviderMetadata | undefined> {
    return this.#value("providerMetadata", full => full.providerMetadata)
  }

  /**
   * Every run of the stream, when it is over: this one, and of an until-idle stream those that answered to its tasks. All
   * other values are those of the first. Never rejects: a run that failed is there with its error.
   */
  get turns(): Promise<ReadonlyArray<FullOutput>> {
    this.#turns ??= new Promise(resolve => {
      this.#record.log.wantAll()
      this.#record.onClosed(resolve)
    })
    return this.#turns
  }

  /** The run's error, once its `error` or `abort` chunk has passed. */
  get error(): Error | undefined {
    return this.#record.settled?.error ?? this.#record.fold.error
  }

  /** Where the run stands now. */
  get status(): RunStatus {
    return this.#record.settled?.status ?? this.#record.fold.status
  }

  /** Why a processor stopped the run, once it has. */
  get tripwire(): Tripwire | undefined {
    return this.#record.fold.tripped
  }

  /** The calls that wait for a decision, as `listSuspendedRuns` lists them: none until the run is suspended. */
  get pendingCalls(): ReadonlyArray<PendingCall> {
    return this.#record.fold.pendingCalls
  }

  /** What the first of them that has any was suspended with. */
  get suspendData(): unknown {
    return this.#record.fold.suspendData
  }

  /** Everything, at the end of the run. Resolves also when the run failed: with what was said until then, and `error`. */
  readonly getFullOutput = (): Promise<FullOutput<A>> => this.#fullOutput()

  /** The same for whoever is to have a value: rejects when `object` would because of it. */
  static readonly generated = async <B>(output: ModelOutput<B>): Promise<FullOutput<B>> => {
    const { structured } = output.#record
    if (structured !== undefined) structured.isAwaited = true
    const full = await output.#fullOutput()
    if (structured?.errorStrategy === "strict" && full.objectError !== undefined) throw full.objectError
    return full
  }

  /** Lets the stream go to its end. Rejects with the run's error when it failed, unless `onError` is there to get it. */
  readonly consumeStream = ({ onError }: ConsumeStreamOptions = {}): Promise<void> => {
    const consumed = this.#closed().then(full => {
      const error = failureOf(full)
      if (error === undefined) return
      if (onError === undefined) throw error
      guard("onError", this.#log, () => onError(error))
    })
    // Many call it for its effect and leave the promise alone.
    consumed.catch(ignore)
    return consumed
  }

  /**
   * Stops the run, and the stream: provider and tools within 50 ms. Background tasks go on. Resolves when the stream is over.
   */
  readonly cancel = async (reason?: unknown): Promise<void> => {
    this.#abort(reason)
    await this.#closed()
  }

  /** `await using` stops the run at the end of the block, when it is still going. */
  readonly [Symbol.asyncDispose] = (): Promise<void> => this.cancel("The output was disposed of.")

  /** What the last run of the stream came to, when it is over. */
  #closed(): Promise<FullOutput> {
    return this.turns.then(turns => turns.at(-1) ?? this.#fullOutput())
  }

  #fullOutput(): Promise<FullOutput<A>> {
    this.#full ??= new Promise<FullOutput<A>>(resolve => {
      this.#record.log.wantAll()
      this.#record.onSettled(full => resolve(full as FullOutput<A>))
    })
    return this.#full
  }

  #value<B>(name: string, pick: (full: FullOutput) => B): Promise<B> {
    const known = this.#values?.get(name)
    // The name belongs to one getter, and its promise to one type.
    if (known !== undefined) return known as Promise<B>
    const value = this.#fullOutput().then(full => {
      const error = failureOf(full)
      if (error !== undefined) throw error
      return pick(full)
    })
    value.catch(ignore)
    this.#values ??= new Map()
    this.#values.set(name, value)
    return value
  }
}

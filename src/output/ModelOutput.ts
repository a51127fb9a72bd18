/**
 * The output of a run that is already going: streams that any number of readers may open at any time, each from the first
 * chunk, and effects that wait for the end.
 *
 * Asking for a value, or running one of its effects, wants the whole run; reading a stream wants as much as is read.
 *
 * @since 0.1.0
 */
import * as Batch from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Chunk, Of, RequestInfo, ToolCall, ToolResult, Warning } from "../protocol/Chunk.js"
import {
  type AgentError,
  InvalidConfiguration,
  isAgentError,
  RunBlocked,
  RunSuspended,
  StructuredOutputError
} from "../protocol/Errors.js"
import type { FinishReason } from "../protocol/FinishReason.js"
import type { ProviderMetadata } from "../protocol/safeJson.js"
import type { Usage } from "../protocol/Usage.js"
import type { FullOutput, Response, RunStatus, Step, Tripwire } from "./FullOutput.js"
import type { Cursor } from "./RunLog.js"
import { failureOf, type RunRecord, truncated } from "./RunRecord.js"
import { objectFailure } from "./settledObject.js"
import type { DeepPartial, ElementOf } from "./structured.js"

/** Chunks that a reader takes at once. */
const batchSize = 64

/** What a reader makes of what it reads. */
type Take<A> = (chunk: Chunk, cursor: Cursor) => ReadonlyArray<A>

/** Everything that is there, or a wait for more: one Effect per batch. */
const pull = <A>(cursor: Cursor, take: Take<A>): Effect.Effect<Batch.Chunk<A>, Option.Option<never>> =>
  Effect.suspend(() => {
    const items: Array<A> = []
    if (cursor.drain(batchSize, chunk => items.push(...take(chunk, cursor))) > 0) {
      return Effect.succeed(Batch.unsafeFromArray(items))
    }
    if (cursor.isDone()) return Effect.fail(Option.none())
    return Effect.zipRight(
      Effect.async<void>(resume => cursor.wait(() => resume(Effect.void))),
      pull(cursor, take)
    )
  })

type Opening = Parameters<RunRecord["log"]["open"]>

const opened = (record: RunRecord, opening: Opening): Effect.Effect<Cursor, InvalidConfiguration> =>
  Effect.suspend(() => {
    const found = record.log.open(...opening)
    return found instanceof InvalidConfiguration ? Effect.fail(found) : Effect.succeed(found)
  })

/** Reads a record from its first chunk. Fails when that is not kept: see `replay: false`. @since 0.1.0 @category streams */
export const read = (record: RunRecord): Stream.Stream<Chunk, InvalidConfiguration> =>
  reading(record, [], chunk => [chunk])

const reading = <A>(
  record: RunRecord,
  opening: Opening,
  take: Take<A>
): Stream.Stream<A, InvalidConfiguration> =>
  Stream.unwrapScoped(
    Effect.acquireRelease(opened(record, opening), cursor => Effect.sync(() => cursor.close())).pipe(
      Effect.map(cursor => Stream.repeatEffectChunkOption(pull(cursor, take)))
    )
  )

/** What the structured value of a run fails with. @since 0.1.0 @category models */
export type ObjectError = AgentError | RunBlocked | RunSuspended | StructuredOutputError

const isObjectError = (error: Error): error is Exclude<ObjectError, AgentError> =>
  error instanceof StructuredOutputError || error instanceof RunBlocked || error instanceof RunSuspended

/**
 * The output of one run.
 *
 * `A` is the value that `structuredOutput` asked for. Every effect settles from the run's one cause: it succeeds when the run did, fails with
 * the run's error when it failed or was aborted, and has what was said so far after a tripwire or a suspension.
 *
 * @since 0.1.0
 * @category models
 */
export interface ModelOutput<A = unknown> {
  readonly runId: string
  /** Every chunk. Fails, after `finish`, with the error of a run that failed. Only this spans the turns of an until-idle stream. */
  readonly fullStream: Stream.Stream<Chunk, AgentError>
  /** Text deltas only, of the run that the values speak of. */
  readonly textStream: Stream.Stream<string, AgentError>
  /**
   * The structured value as far as it is known, each different from the one before; the last is the valid one. Partial values
   * are as the model writes them: defaults and transformations are for the last. An attempt that is made again begins anew. Of
   * the first turn, and empty without `structuredOutput`.
   */
  readonly objectStream: Stream.Stream<DeepPartial<A>, AgentError>
  /** Elements of a structured array, each as soon as it is complete, and valid by itself. Of the first turn. */
  readonly elementStream: Stream.Stream<ElementOf<A>, AgentError>
  /**
   * The structured value. Fails with `StructuredOutputError` when there is no valid one, unless the `errorStrategy` says
   * otherwise (`warn`: it is `undefined` then), with the error of a run that failed, with `RunBlocked` or `RunSuspended` of one
   * that was stopped; with `InvalidConfiguration` when nobody has asked for a value.
   */
  readonly object: Effect.Effect<A, ObjectError>
  readonly text: Effect.Effect<string, AgentError>
  /** `""` when there is none. */
  readonly reasoning: Effect.Effect<string, AgentError>
  /** Absent when there is none. */
  readonly reasoningText: Effect.Effect<Option.Option<string>, AgentError>
  readonly toolCalls: Effect.Effect<ReadonlyArray<ToolCall>, AgentError>
  readonly toolResults: Effect.Effect<ReadonlyArray<ToolResult>, AgentError>
  readonly usage: Effect.Effect<Usage, AgentError>
  readonly totalUsage: Effect.Effect<Usage, AgentError>
  /** Never fails: a run that failed ended with `error`. */
  readonly finishReason: Effect.Effect<FinishReason>
  readonly response: Effect.Effect<Response, AgentError>
  readonly steps: Effect.Effect<ReadonlyArray<Step>, AgentError>
  readonly sources: Effect.Effect<ReadonlyArray<Of<"source">>, AgentError>
  readonly files: Effect.Effect<ReadonlyArray<Of<"file">>, AgentError>
  readonly warnings: Effect.Effect<ReadonlyArray<Warning>, AgentError>
  readonly request: Effect.Effect<RequestInfo, AgentError>
  readonly providerMetadata: Effect.Effect<Option.Option<ProviderMetadata>, AgentError>
  /** Everything; never fails: a run that failed has what was said until then, with `error`. */
  readonly fullOutput: Effect.Effect<FullOutput<A>>
  /**
   * Every run of the stream, when it is over: this one, and of an until-idle stream those that answered to its tasks. All other
   * values are those of the first.
   */
  readonly turns: Effect.Effect<ReadonlyArray<FullOutput>>
  /** Done when the stream is; hands out nothing. Fails like `text`, also with the error of a later turn. */
  readonly drain: Effect.Effect<void, AgentError>
  /** Where the run stands now. */
  readonly status: Effect.Effect<RunStatus>
  /** Why a processor stopped the run, once it has. */
  readonly tripwire: Effect.Effect<Option.Option<Tripwire>>
  /** Stops the run; the first call counts. Does not wait for its end. */
  readonly abort: (reason?: unknown) => Effect.Effect<void>
}

/** Fails when the run did; dies with what the run died with. */
const check = (full: FullOutput): Effect.Effect<FullOutput, AgentError> => {
  const error = failureOf(full)
  if (error === undefined) return Effect.succeed(full)
  return isAgentError(error) ? Effect.fail(error) : Effect.die(error)
}

/** The output over a record; `abort` stops its run. @since 0.1.0 @category constructors */
export const make = <A = unknown>(record: RunRecord, abort: (reason?: unknown) => void): ModelOutput<A> => {
  const { structured } = record
  const fullOutput = Effect.async<FullOutput<A>>(resume => {
    record.log.wantAll()
    // What `A` is, and what the value is validated by, come from one schema.
    record.onSettled(full => resume(Effect.succeed(full as FullOutput<A>)))
  })
  const object = Effect.flatMap(fullOutput, full => {
    const failure = objectFailure(full, structured)
    if (failure === undefined) return Effect.succeed(full.object as A)
    if (isObjectError(failure) || isAgentError(failure)) return Effect.fail(failure)
    return Effect.die(failure)
  })
  const turns = Effect.async<ReadonlyArray<FullOutput>>(resume => {
    record.log.wantAll()
    record.onClosed(all => resume(Effect.succeed(all)))
  })
  const settled = Effect.flatMap(fullOutput, check)
  const value = <A>(pick: (full: FullOutput) => A): Effect.Effect<A, AgentError> => Effect.map(settled, pick)
  const text = <A>(pick: (full: FullOutput) => A): Effect.Effect<A, AgentError> =>
    Effect.flatMap(settled, full => {
      const refusal = truncated(full)
      return refusal === undefined ? Effect.succeed(pick(full)) : Effect.fail(refusal)
    })
  const last = (): FullOutput | undefined => record.turns.at(-1) ?? record.settled
  const withFailure = <B>(chunks: Stream.Stream<B, AgentError>, of: () => FullOutput | undefined) => {
    const failedEnd = Effect.suspend(() => {
      const full = of()
      return full?.status === "failed" ? Effect.asVoid(check(full)) : Effect.void
    })
    return Stream.concat(chunks, Stream.drain(Stream.fromEffect(failedEnd)))
  }
  const chunks = read(record)
  const fullStream = withFailure(chunks, last)
  const ofFirst = record.isOpenEnded ? Stream.takeUntil(chunks, ({ type }) => type === "finish") : chunks
  const textStream = withFailure(ofFirst, () => record.settled)
  const ofValue = <B>(take: Take<B>) => withFailure(reading(record, ["with-run"], take), () => record.settled)
  const objects = ofValue(chunk => (chunk.type === "object" ? [chunk.object as DeepPartial<A>] : []))
  const elements = ofValue((_, cursor) => cursor.takeElements())
  return {
    runId: record.runId,
    fullStream,
    textStream: Stream.mapChunks(textStream, batch =>
      Batch.filterMap(batch, chunk =>
        chunk.type === "text-delta" ? Option.some(chunk.payload.text) : Option.none()
      )
    ),
    objectStream: objects,
    elementStream:
      structured === undefined
        ? Stream.drain(elements)
        : Stream.filterMapEffect(elements, element =>
            Option.some(Effect.option(structured.decodeElement(element)))
          ).pipe(Stream.filterMap(valid => valid as Option.Option<ElementOf<A>>)),
    object: Effect.suspend(() => {
      if (structured !== undefined) structured.isAwaited = true
      return object
    }),
    text: text(full => full.text),
    reasoning: text(full => full.reasoning ?? ""),
    reasoningText: text(full => Option.fromNullable(full.reasoning)),
    toolCalls: value(full => full.toolCalls),
    toolResults: value(full => full.toolResults),
    usage: value(full => full.usage),
    totalUsage: value(full => full.totalUsage),
    finishReason: Effect.map(fullOutput, full => full.finishReason ?? "other"),
    response: value(full => full.response),
    steps: value(full => full.steps),
    sources: value(full => full.sources),
    files: value(full => full.files),
    warnings: value(full => full.warnings),
    request: value(full => full.request),
    providerMetadata: value(full => Option.fromNullable(full.providerMetadata)),
    fullOutput,
    turns,
    drain: Effect.zipRight(
      turns,
      Effect.suspend(() => {
        const full = last()
        return full === undefined ? Effect.void : Effect.asVoid(check(full))
      })
    ),
    status: Effect.sync(() => record.settled?.status ?? record.fold.status),
    tripwire: Effect.sync(() => Option.fromNullable(record.fold.tripped)),
    abort: reason => Effect.sync(() => abort(reason))
  }
}

/**
 * A run that is written once and read by many: its log, its fold, and the moment at which everything about it settles.
 *
 * A run settles with its `finish` chunk, from one cause: success, failure, abort, tripwire or suspension. A run whose
 * stream ends without one (it was interrupted, or died) settles as aborted or failed.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import type { Chunk } from "../protocol/Chunk.js"
import { InvalidConfiguration, RunAborted } from "../protocol/Errors.js"
import type { FullOutput } from "./FullOutput.js"
import * as RunFold from "./RunFold.js"
import * as RunLog from "./RunLog.js"

const interrupted = (): RunAborted =>
  new RunAborted({ message: "The run was interrupted before it had finished." })

/** What a record keeps that is not read again. @since 0.1.0 @category models */
export interface Retention {
  /** Characters of text and reasoning of one answer. */
  readonly textLimit: number
  /** The one reader has left before the end. */
  readonly onLeft: () => void
}

/** A run being recorded. Made by `RunRecord.make`. @since 0.1.0 @category models */
export class RunRecord {
  readonly log: RunLog.RunLog
  readonly fold: RunFold.RunFold
  private full: FullOutput | undefined
  private waiting: Array<(full: FullOutput) => void> = []

  constructor(
    readonly runId: string,
    /** Sees every chunk as it is written, before any reader. Must not throw. */
    private readonly observe: ((chunk: Chunk, record: RunRecord) => void) | undefined,
    retention: Retention | undefined,
    /** The fold of the run itself, which has taken what is written; without it the record makes its own. */
    private readonly folded: RunFold.RunFold | undefined
  ) {
    this.log = RunLog.make(runId, retention?.onLeft)
    this.fold = folded ?? RunFold.make(runId, retention?.textLimit)
  }

  /** Writes what the run tells. */
  write(chunks: ReadonlyArray<Chunk>): void {
    if (this.full !== undefined) return
    const { fold, folded, log, observe } = this
    for (const chunk of chunks) {
      // The text of a run comes with its `step-finish` and its `finish`; the log has it until then.
      if (folded === undefined && chunk.type !== "text-delta") fold.push(chunk)
      observe?.(chunk, this)
      log.add(chunk)
    }
    log.wake()
    if (fold.status !== "running") this.settle(fold.snapshot())
  }

  /** Whether a reader wants more than is written; when not, `resume` is called once, as soon as one does. */
  mayGoOn(resume: () => void): boolean {
    if (this.log.hasDemand()) return true
    this.log.onDemand(resume)
    return false
  }

  /** The stream of the run is over. Changes nothing for a run that has told its `finish`. */
  end(exit: Exit.Exit<unknown, unknown>): void {
    if (this.full !== undefined) return
    const isAborted = Exit.isSuccess(exit) || Cause.isInterrupted(exit.cause)
    const error = isAborted ? interrupted() : RunFold.toError(Cause.squash(exit.cause))
    this.settle({
      ...this.told().snapshot(),
      status: isAborted ? "aborted" : "failed",
      finishReason: isAborted ? "aborted" : "error",
      ...(this.log.isKept ? {} : { isTruncated: true }),
      error
    })
  }

  /** The fold has no text of a step that has not finished; the log has, unless it keeps nothing. */
  private told(): RunFold.RunFold {
    if (!this.log.isKept) return this.fold
    const told = RunFold.make(this.runId)
    for (const chunk of this.log.read()) told.push(chunk)
    return told
  }

  private settle(full: FullOutput): void {
    this.full = full
    this.log.close()
    const waiting = this.waiting
    this.waiting = []
    for (const callback of waiting) callback(full)
  }

  /** What the run came to; `undefined` as long as it runs. */
  get settled(): FullOutput | undefined {
    return this.full
  }

  /** Calls back once, when the run has settled; at once when it has. */
  onSettled(callback: (full: FullOutput) => void): void {
    if (this.full !== undefined) callback(this.full)
    else if (this.waiting.length > 0) this.waiting.push(callback)
    // An array that has grown has room for sixteen, and one is the rule.
    else this.waiting = [callback]
  }
}

/**
 * A record of a run that has told nothing yet. Without `retention` it keeps everything, for any number of readers.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  runId: string,
  observe?: (chunk: Chunk, record: RunRecord) => void,
  retention?: Retention,
  folded?: RunFold.RunFold
): RunRecord => new RunRecord(runId, observe, retention, folded)

/** What a value of text says that is only the beginning of it. @since 0.1.0 @category conversions */
export const truncated = (full: FullOutput): InvalidConfiguration | undefined =>
  full.isTruncated === true
    ? new InvalidConfiguration({
        field: "replay",
        message:
          "With `replay: false` only the beginning of a long answer is kept, and this one was longer. Read its stream, or leave `replay` out."
      })
    : undefined

/** The error of a run that has no values: it failed, or was stopped. @since 0.1.0 @category conversions */
export const failureOf = (full: FullOutput): Error | undefined =>
  full.status === "failed" || full.status === "aborted" ? (full.error ?? interrupted()) : undefined

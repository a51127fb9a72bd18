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
import { squash } from "../protocol/foreignValue.js"
import type { FullOutput } from "./FullOutput.js"
import * as RunFold from "./RunFold.js"
import * as RunLog from "./RunLog.js"
import type { AwaitedValue } from "./structured.js"

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
  /** The fold of the run; of a stream that does not begin with one, of the first that comes. */
  fold: RunFold.RunFold
  /** The fold of the turn that is told now: of the run itself, or of one that followed it. */
  current: RunFold.RunFold
  private hasBegun = false
  /** Whether a run has told its `start`, and not its `finish`. */
  private isTelling = false
  private full: FullOutput | undefined
  private finished: Array<FullOutput> = []
  private waiting: Array<(full: FullOutput) => void> = []
  private closing: Array<(turns: ReadonlyArray<FullOutput>) => void> = []

  constructor(
    readonly runId: string,
    /** Sees every chunk as it is written, before any reader. Must not throw. */
    private readonly observe: ((chunk: Chunk, record: RunRecord) => void) | undefined,
    private readonly retention: Retention | undefined,
    /** The fold of the run itself, which has taken what is written; without it the record makes its own. */
    private readonly folded: RunFold.RunFold | undefined,
    /** Whether the stream goes on after the `finish` of the run, with other runs: that of an until-idle stream does. */
    readonly isOpenEnded: boolean,
    /** The structured value of the run; `undefined`: nobody asked for one. */
    readonly structured: AwaitedValue | undefined
  ) {
    this.log = RunLog.make(runId, retention?.onLeft, structured)
    this.fold = folded ?? RunFold.make(runId, retention?.textLimit)
    this.current = this.fold
  }

  /** Writes what the run tells. */
  write(chunks: ReadonlyArray<Chunk>): void {
    if (this.log.isClosed) return
    const { folded, log, observe } = this
    for (const chunk of chunks) {
      // The text of a run comes with its `step-finish` and its `finish`; the log has it until then.
      if (folded === undefined && chunk.type !== "text-delta") this.push(chunk)
      observe?.(chunk, this)
      log.add(chunk)
      if (this.isOpenEnded && chunk.type === "finish") this.turnEnded()
    }
    log.wake()
    if (!this.isOpenEnded && this.fold.status !== "running") {
      this.turnEnded()
      this.close()
    }
  }

  private push(chunk: Chunk): void {
    if (chunk.type === "start") {
      this.hasBegun = true
      this.isTelling = true
    }
    if (chunk.type === "start" && chunk.runId !== this.current.runId) {
      this.current = RunFold.make(chunk.runId, this.retention?.textLimit)
      if (this.full === undefined) this.fold = this.current
    }
    this.current.push(chunk)
  }

  private turnEnded(): void {
    this.isTelling = false
    this.keep(this.current.snapshot())
  }

  private keep(full: FullOutput): void {
    this.finished.push(full)
    if (this.full === undefined) this.settle(full)
  }

  /** Whether a reader wants more than is written; when not, `resume` is called once, as soon as one does. */
  mayGoOn(resume: () => void): boolean {
    if (this.log.hasDemand()) return true
    this.log.onDemand(resume)
    return false
  }

  /** The stream is over. Changes nothing for runs that have told their `finish`. */
  end(exit: Exit.Exit<unknown, unknown>): void {
    if (this.log.isClosed) return
    if (this.full === undefined && this.isOpenEnded && Exit.isSuccess(exit) && !this.hasBegun) {
      // No run was needed.
      this.settle({ ...this.fold.snapshot(), status: "success" })
    } else if (this.full === undefined || this.isTelling) {
      this.keep(this.cutOff(this.told(), exit))
    } else if (this.isBroken(exit)) {
      this.keep(this.cutOff(RunFold.make(this.runId), exit))
    }
    this.close()
  }

  /** Whether it failed, and no run has said so. */
  private isBroken(exit: Exit.Exit<unknown, unknown>): boolean {
    if (Exit.isSuccess(exit) || Cause.isInterrupted(exit.cause)) return false
    return this.finished.at(-1)?.status !== "failed"
  }

  private cutOff(told: RunFold.RunFold, exit: Exit.Exit<unknown, unknown>): FullOutput {
    const isAborted = Exit.isSuccess(exit) || Cause.isInterrupted(exit.cause)
    return {
      ...told.snapshot(),
      status: isAborted ? "aborted" : "failed",
      finishReason: isAborted ? "aborted" : "error",
      ...(this.log.isKept ? {} : { isTruncated: true }),
      error: isAborted ? interrupted() : RunFold.toError(squash(exit.cause))
    }
  }

  /** The fold has no text of a step that has not finished; the log has, unless it keeps nothing. */
  private told(): RunFold.RunFold {
    if (!this.log.isKept) return this.current
    let told = RunFold.make(this.runId)
    for (const chunk of this.log.read()) {
      if (chunk.type === "start" && this.isOpenEnded) told = RunFold.make(chunk.runId)
      told.push(chunk)
    }
    return told
  }

  private settle(full: FullOutput): void {
    this.full = full
    const waiting = this.waiting
    this.waiting = []
    for (const callback of waiting) callback(full)
  }

  /** Nothing more is told. */
  private close(): void {
    if (this.log.isClosed) return
    this.log.close()
    const { closing } = this
    this.closing = []
    for (const callback of closing) callback(this.turns)
  }

  /** The runs that are over, the one that it began with first. */
  get turns(): ReadonlyArray<FullOutput> {
    return [...this.finished]
  }

  /** Calls back once, when the stream is over: with every run that was told; at once when it is. */
  onClosed(callback: (turns: ReadonlyArray<FullOutput>) => void): void {
    if (this.log.isClosed) callback(this.turns)
    else this.closing = [...this.closing, callback]
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
 * A record of a run that has told nothing yet. Without `retention` it keeps everything, for any number of readers. With
 * `isOpenEnded` other runs may follow: the record settles with the first, and closes with the stream. `structured` is there when
 * the runs have a structured value.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  runId: string,
  observe?: (chunk: Chunk, record: RunRecord) => void,
  retention?: Retention,
  folded?: RunFold.RunFold,
  isOpenEnded = false,
  structured?: AwaitedValue
): RunRecord => new RunRecord(runId, observe, retention, folded, isOpenEnded, structured)

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

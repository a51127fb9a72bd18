/**
 * The chunks of one run, kept once, read any number of times: an append-only log with a cursor per reader.
 *
 * Text and reasoning deltas are most of a run. The log keeps of such a delta only its string, and makes the chunk anew for
 * each reader; a marker stands in front of a delta whose block is not the one before it. Of a partial value it keeps only that
 * there was one: readers make it from the text that they have read.
 *
 * The writer is held by demand: it may be {@link ahead} entries in front of the reader that is furthest. Reading is plain
 * code without promises; whoever finds nothing leaves a callback.
 *
 * @since 0.1.0
 */
import type { Chunk, Of } from "../protocol/Chunk.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { type AwaitedValue, Marking, PartialMark, Remaking } from "./structured.js"

/** Entries that a run may be ahead of its furthest reader, before it waits. @since 0.1.0 @category constants */
export const ahead = 64

/** The same, for a log that keeps nothing that was read. @since 0.1.0 @category constants */
export const aheadUnkept = 16

/** What a reader is told that comes where nothing is kept. @since 0.1.0 @category constructors */
const readAlready = () =>
  new InvalidConfiguration({
    field: "replay",
    message:
      "With `replay: false` a run has one reader, from the beginning, and this one has been read. Leave `replay` out for any number of readers."
  })

type Delta = Of<"text-delta"> | Of<"reasoning-delta">

class Marker {
  constructor(
    readonly type: Delta["type"],
    readonly id: string
  ) {}
}

type Entry = Chunk | Marker | PartialMark | string

const isPlainDelta = (chunk: Chunk): chunk is Delta =>
  (chunk.type === "text-delta" || chunk.type === "reasoning-delta") &&
  chunk.payload.providerMetadata === undefined &&
  chunk.from === "AGENT"

/** What a writer and every reader agree on: the block that a bare string belongs to. */
interface Position {
  type: Delta["type"]
  id: string
}

const follow = (position: Position, entry: Exclude<Entry, PartialMark | string>): void => {
  if (entry instanceof Marker) {
    position.type = entry.type
    position.id = entry.id
  } else if (entry.type === "text-start") {
    position.type = "text-delta"
    position.id = entry.payload.id
  } else if (entry.type === "reasoning-start") {
    position.type = "reasoning-delta"
    position.id = entry.payload.id
  }
}

const nowhere = (): Position => ({ type: "text-delta", id: "" })

/** The log of a run. Made by `RunLog.make`. @since 0.1.0 @category models */
export class RunLog implements Source {
  /** For its cursors, as are {@link want}, {@link wait}, {@link forget} and {@link leave}. */
  readonly entries: Array<Entry> = []
  private readonly end: Position = nowhere()
  private readers = 0
  private waiting: Array<() => void> = []
  private resume: (() => void) | undefined
  private wanted = 0
  private closed = false
  private isRead = false
  private isDiscarding = false
  private readonly ahead: number
  private readonly marking = new Marking()

  constructor(
    readonly runId: string,
    /** Of a log that keeps nothing that was read: its one reader has left before the end. */
    private readonly onLeft: (() => void) | undefined,
    /** How its partial values can be made again; `undefined`: it has none. */
    readonly structured: AwaitedValue | undefined
  ) {
    this.ahead = onLeft === undefined ? ahead : aheadUnkept
  }

  get isClosed(): boolean {
    return this.closed
  }

  /** Whether what was read is kept for other readers. */
  get isKept(): boolean {
    return this.onLeft === undefined
  }

  /** Adds chunks and wakes the readers that wait. */
  append(chunks: Iterable<Chunk>): void {
    for (const chunk of chunks) this.add(chunk)
    this.wake()
  }

  /** Adds a chunk; the readers that wait are for {@link wake}. */
  add(chunk: Chunk): void {
    if (this.isDiscarding) return
    if (isPlainDelta(chunk) && chunk.runId === this.runId) {
      const { type, payload } = chunk
      if (this.end.type !== type || this.end.id !== payload.id) {
        const marker = new Marker(type, payload.id)
        follow(this.end, marker)
        this.entries.push(marker)
      }
      this.entries.push(payload.text)
    } else {
      follow(this.end, chunk)
      const { structured } = this
      const isOfValue = structured !== undefined && (chunk.type === "object" || chunk.type === "step-finish")
      const mark = isOfValue ? this.marking.markOf(chunk) : undefined
      if (mark !== undefined) this.entries.push(mark)
      if (mark?.isValue !== true) this.entries.push(chunk)
    }
  }

  /** Nothing more will come: readers end where the log ends. */
  close(): void {
    this.closed = true
    this.wake()
  }

  /** Calls `resume` once, as soon as there is demand for more; at once when there is. Returns how to forget it. */
  onDemand(resume: () => void): () => void {
    if (this.hasDemand()) {
      resume()
    } else {
      this.resume = resume
    }
    return () => {
      this.resume = undefined
    }
  }

  /** Whether the writer may go on. */
  hasDemand(): boolean {
    return this.entries.length < this.wanted + this.ahead
  }

  /**
   * Somebody wants the run up to its end, whether it is read or not. Where nothing is kept, its one reader still holds it;
   * that may be one that comes in the same turn of the event loop: a web stream asks for its first chunk a little later.
   */
  wantAll(): void {
    if (this.isKept) this.want(Number.POSITIVE_INFINITY)
    else if (!this.isRead) setImmediate(() => this.isRead || this.discard(undefined))
  }

  /** Readers hold the run no longer: it is about to end. */
  release(): void {
    this.want(Number.POSITIVE_INFINITY)
  }

  /** Nobody reads, and nobody will. Tells so before the run goes on. */
  private discard(tell: (() => void) | undefined): void {
    this.isRead = true
    this.isDiscarding = true
    this.entries.length = 0
    tell?.()
    this.release()
  }

  /** Lets go of what was read, unless it is kept; whether it did. Places count from there. */
  forget(count: number): boolean {
    if (this.isKept) return false
    this.entries.splice(0, count)
    this.wanted -= count
    return true
  }

  want(index: number): void {
    if (index <= this.wanted) return
    this.wanted = index
    // Not for each chunk that is read: half of what it may be ahead is worth waking the writer for.
    if (this.resume !== undefined && this.entries.length <= index + this.ahead / 2) {
      const resume = this.resume
      this.resume = undefined
      resume()
    }
  }

  wait(callback: () => void): void {
    // One reader is the rule, and an array that has grown has room for sixteen.
    if (this.waiting.length === 0) this.waiting = [callback]
    else this.waiting.push(callback)
  }

  /** Wakes the readers that wait. */
  wake(): void {
    if (this.waiting.length === 0) return
    const { waiting } = this
    this.waiting = []
    for (const callback of waiting) callback()
  }

  /** Everything that is there but partial values, read apart from the readers: it is no demand. */
  *read(): Generator<Chunk> {
    const cursor = new Cursor(this, false, "text")
    for (let chunk = cursor.next(); chunk !== undefined; chunk = cursor.next()) yield chunk
  }

  /** A reader that begins at the first chunk, and ends with the log, or with the first run. An error when that is not kept any more. */
  open(
    ends: "with-log" | "with-run" = "with-log",
    wants: Wants = "everything"
  ): Cursor | InvalidConfiguration {
    if (!this.isKept && this.isRead) return readAlready()
    this.isRead = true
    this.readers++
    return new Cursor(this, ends === "with-run", wants)
  }

  /** A reader leaves. */
  leave(isDone: boolean): void {
    this.readers--
    if (this.readers > 0) return
    // The run of a reader that has left is not left half done: what it does and what it tells goes on. Where nothing is kept
    // nobody can follow it any more, and it is stopped.
    if (this.isKept) this.wantAll()
    else this.discard(isDone ? undefined : this.onLeft)
  }
}

/** Who wants text only does not pay for partial values, and sees none. */
type Wants = "everything" | "text"

/** What a cursor needs of its log. */
interface Source {
  readonly entries: ReadonlyArray<Entry>
  readonly runId: string
  readonly isClosed: boolean
  readonly structured: AwaitedValue | undefined
  readonly want: (index: number) => void
  readonly wait: (callback: () => void) => void
  readonly forget: (count: number) => boolean
  readonly leave: (isDone: boolean) => void
}

/** One reader's place in the log. @since 0.1.0 @category models */
export class Cursor {
  private index = 0
  private isOpen = true
  private readonly position: Position = nowhere()

  private hasEnded = false
  private readonly remaking: Remaking | undefined

  constructor(
    private readonly log: Source,
    private readonly endsWithRun = false,
    wants: Wants = "everything"
  ) {
    if (log.structured !== undefined && wants === "everything") this.remaking = new Remaking(log.structured)
  }

  /** The next chunk that is there already. `undefined`: none, see {@link isDone} and {@link wait}. */
  next(): Chunk | undefined {
    const { remaking } = this
    const { entries, runId } = this.log
    if (this.hasEnded) return undefined
    while (this.index < entries.length) {
      const entry = entries[this.index++]
      if (typeof entry === "string") {
        const { type, id } = this.position
        if (remaking !== undefined && type === "text-delta") remaking.text(entry)
        return { type, runId, from: "AGENT", payload: { id, text: entry } }
      }
      if (entry === undefined) continue
      if (entry instanceof PartialMark) {
        const partial = remaking?.remade(entry)
        if (partial === undefined) continue
        return partial
      }
      follow(this.position, entry)
      if (entry instanceof Marker) continue
      remaking?.chunk(entry)
      if (this.endsWithRun && entry.type === "finish") this.hasEnded = true
      return entry
    }
    return undefined
  }

  /** Elements of the value that are complete by now, when it is an array: each once, and not yet valid. */
  takeElements(): ReadonlyArray<unknown> {
    return this.remaking?.takeElements() ?? []
  }

  /** At most `limit` chunks that are there already, handed to `take` in order; how many there were. */
  drain(limit: number, take: (chunk: Chunk) => void): number {
    let count = 0
    while (count < limit) {
      const chunk = this.next()
      if (chunk === undefined) break
      take(chunk)
      count++
    }
    // Of a reader that finds nothing, `wait` tells: what is written before it waits would not wake it.
    if (count > 0) this.wantMore()
    return count
  }

  /** Tells the writer how far this reader has come. {@link drain} and {@link wait} do it by themselves. */
  wantMore(): void {
    this.forget()
    this.log.want(this.index)
  }

  private forget(): void {
    if (this.log.forget(this.index)) this.index = 0
  }

  /** Whether everything was read and nothing more will come. */
  isDone(): boolean {
    return this.hasEnded || (this.log.isClosed && this.index >= this.log.entries.length)
  }

  /** Wants more, and calls back once when there is more or the end. */
  wait(callback: () => void): void {
    this.forget()
    // First this: a writer that was held writes at once, and may have nothing more to write then.
    this.log.wait(callback)
    this.log.want(this.index + 1)
  }

  /** The reader leaves. No other reader notices. */
  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.log.leave(this.isDone())
  }
}

/**
 * An empty log. Deltas of `runId` are kept as bare strings. With `onLeft` it keeps nothing that was read, has one reader, and
 * calls that when the reader leaves before the end. `structured` says how partial values are made again.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (runId: string, onLeft?: () => void, structured?: AwaitedValue): RunLog =>
  new RunLog(runId, onLeft, structured)

/**
 * The chunks of one run, kept once, read any number of times: an append-only log with a cursor per reader.
 *
 * Text and reasoning deltas are most of a run. The log keeps of such a delta only its string, and makes the chunk anew for
 * each reader; a marker stands in front of a delta whose block is not the one before it.
 *
 * The writer is held by demand: it may be {@link ahead} entries in front of the reader that is furthest. Reading is plain
 * code without promises; whoever finds nothing leaves a callback.
 *
 * @since 0.1.0
 */
import type { Chunk, Of } from "../protocol/Chunk.js"

/** Entries that a run may be ahead of its furthest reader, before it waits. @since 0.1.0 @category constants */
export const ahead = 64

type Delta = Of<"text-delta"> | Of<"reasoning-delta">

class Marker {
  constructor(
    readonly type: Delta["type"],
    readonly id: string
  ) {}
}

type Entry = Chunk | Marker | string

const isPlainDelta = (chunk: Chunk): chunk is Delta =>
  (chunk.type === "text-delta" || chunk.type === "reasoning-delta") &&
  chunk.payload.providerMetadata === undefined &&
  chunk.from === "AGENT"

/** What a writer and every reader agree on: the block that a bare string belongs to. */
interface Position {
  type: Delta["type"]
  id: string
}

const follow = (position: Position, entry: Chunk | Marker): void => {
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
export class RunLog {
  private readonly entries: Array<Entry> = []
  private readonly end: Position = nowhere()
  private readonly cursors = new Set<Cursor>()
  private waiting: Array<() => void> = []
  private resume: (() => void) | undefined
  private wanted = 0
  private closed = false

  constructor(private readonly runId: string) {}

  /** Adds chunks and wakes the readers that wait. */
  append(chunks: Iterable<Chunk>): void {
    for (const chunk of chunks) this.add(chunk)
    this.wake()
  }

  /** Adds a chunk; the readers that wait are for {@link wake}. */
  add(chunk: Chunk): void {
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
      this.entries.push(chunk)
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
    return this.entries.length < this.wanted + ahead
  }

  /** Somebody wants the run up to its end, whether it is read or not. */
  wantAll(): void {
    this.want(Number.POSITIVE_INFINITY)
  }

  private want(index: number): void {
    if (index <= this.wanted) return
    this.wanted = index
    // Not for each chunk that is read: half of what it may be ahead is worth waking the writer for.
    if (this.resume !== undefined && this.entries.length <= index + ahead / 2) {
      const resume = this.resume
      this.resume = undefined
      resume()
    }
  }

  /** Wakes the readers that wait. */
  wake(): void {
    if (this.waiting.length === 0) return
    const waiting = this.waiting
    this.waiting = []
    for (const callback of waiting) callback()
  }

  /** Everything that is there, read apart from the readers: it is no demand. */
  *read(): Generator<Chunk> {
    const cursor = new Cursor({
      entries: this.entries,
      runId: this.runId,
      isClosed: () => this.closed,
      want: () => undefined,
      wait: () => undefined,
      left: () => undefined
    })
    for (let chunk = cursor.next(); chunk !== undefined; chunk = cursor.next()) yield chunk
  }

  /** A reader that begins at the first chunk. */
  open(): Cursor {
    const cursor = new Cursor({
      entries: this.entries,
      runId: this.runId,
      isClosed: () => this.closed,
      want: index => this.want(index),
      wait: callback => {
        this.waiting.push(callback)
      },
      left: () => {
        this.cursors.delete(cursor)
        // The run of a reader that has left is not left half done: what it does and what it tells goes on.
        if (this.cursors.size === 0) this.wantAll()
      }
    })
    this.cursors.add(cursor)
    return cursor
  }
}

interface Source {
  readonly entries: ReadonlyArray<Entry>
  readonly runId: string
  readonly isClosed: () => boolean
  readonly want: (index: number) => void
  readonly wait: (callback: () => void) => void
  readonly left: () => void
}

/** One reader's place in the log. @since 0.1.0 @category models */
export class Cursor {
  private index = 0
  private readonly position: Position = nowhere()

  constructor(private readonly source: Source) {}

  /** The next chunk that is there already. `undefined`: none, see {@link isDone} and {@link wait}. */
  next(): Chunk | undefined {
    const { entries, runId } = this.source
    while (this.index < entries.length) {
      const entry = entries[this.index++]
      if (typeof entry === "string") {
        const { type, id } = this.position
        return { type, runId, from: "AGENT", payload: { id, text: entry } }
      }
      if (entry === undefined) continue
      follow(this.position, entry)
      if (!(entry instanceof Marker)) return entry
    }
    return undefined
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
    this.wantMore()
    return count
  }

  /** Tells the writer how far this reader has come. {@link drain} and {@link wait} do it by themselves. */
  wantMore(): void {
    this.source.want(this.index)
  }

  /** Whether everything was read and nothing more will come. */
  isDone(): boolean {
    return this.source.isClosed() && this.index >= this.source.entries.length
  }

  /** Wants more, and calls back once when there is more or the end. */
  wait(callback: () => void): void {
    this.source.want(this.index + 1)
    this.source.wait(callback)
  }

  /** The reader leaves. No other reader notices. */
  close(): void {
    this.source.left()
  }
}

/** An empty log. Deltas of `runId` are kept as bare strings. @since 0.1.0 @category constructors */
export const make = (runId: string): RunLog => new RunLog(runId)

/**
 * What the responses of one run are read from: its chunks by their index, kept as long as the bounds allow, with any number of
 * readers that begin anywhere. Plain code: whoever finds nothing leaves a callback.
 *
 * The writer waits for the reader that is furthest: it may be {@link ahead} chunks and a quarter of the bytes in front of it. A
 * reader that stalls holds the run, and not the memory. Readers further behind hold nothing: what they did not read in time may
 * be gone.
 */
import type { Chunk } from "../protocol/Chunk.js"

/** Chunks that the writer may be ahead of the furthest reader. */
export const ahead = 64

/** How much a log keeps. */
export interface Bounds {
  readonly maxChunks: number
  /** Of JSON. */
  readonly maxBytes: number
}

/** A chunk as clients may see it, and its JSON. */
export interface Entry {
  readonly chunk: Chunk
  readonly json: string
}

/** Why a log has ended: its run has told its end, or something broke. */
export type End = { readonly _tag: "Told" } | { readonly _tag: "Broken"; readonly message: string }

export class ReplayLog {
  private entries: Array<Entry | undefined> = []
  /** Places in front of the first entry that is kept. */
  private head = 0
  /** The index of the first place. */
  private base = 0
  private keptBytes = 0
  /** Of all that was ever written. */
  private writtenBytes = 0
  private readonly readers = new Set<LogReader>()
  private room: (() => void) | undefined
  private ended: End | undefined
  private isReleased = false

  constructor(private readonly bounds: Bounds) {}

  /** The index of the first chunk that is kept. */
  get first(): number {
    return this.base + this.head
  }

  /** The index that the next chunk gets. */
  get next(): number {
    return this.base + this.entries.length
  }

  get bytes(): number {
    return this.keptBytes
  }

  get written(): number {
    return this.writtenBytes
  }

  get end(): End | undefined {
    return this.ended
  }

  get readerCount(): number {
    return this.readers.size
  }

  append(entry: Entry): void {
    if (this.ended !== undefined) return
    this.entries.push(entry)
    this.keptBytes += entry.json.length
    this.writtenBytes += entry.json.length
    this.trim()
  }

  /** Wakes the readers that wait. */
  wake(): void {
    for (const reader of this.readers) reader.notify()
  }

  close(end: End): void {
    if (this.ended !== undefined) return
    this.ended = end
    this.wake()
    this.giveRoom()
  }

  at(index: number): Entry | undefined {
    return index < this.first ? undefined : this.entries[index - this.base]
  }

  /** Readers hold the writer no longer: it is about to end. */
  release(): void {
    this.isReleased = true
    this.giveRoom()
  }

  /** Whether the writer may go on. Where nobody reads, nobody holds it. */
  hasRoom(): boolean {
    if (this.ended !== undefined || this.isReleased || this.readers.size === 0) return true
    const furthest = this.furthest()
    return (
      this.next - furthest.index < ahead && this.writtenBytes - furthest.readBytes < this.bounds.maxBytes / 4
    )
  }

  /** Calls back once, when the writer may go on. Returns how to forget it. */
  onRoom(callback: () => void): () => void {
    if (this.hasRoom()) callback()
    else this.room = callback
    return () => {
      this.room = undefined
    }
  }

  /** A reader that begins at this index. */
  read(from: number): LogReader {
    const reader = new LogReader(this, from)
    this.readers.add(reader)
    this.giveRoom()
    return reader
  }

  leave(reader: LogReader): void {
    this.readers.delete(reader)
    this.giveRoom()
  }

  giveRoom(): void {
    if (this.room === undefined || !this.hasRoom()) return
    const { room } = this
    this.room = undefined
    room()
  }

  private furthest(): { readonly index: number; readonly readBytes: number } {
    let found = { index: 0, readBytes: 0 }
    for (const reader of this.readers) if (reader.index >= found.index) found = reader
    return found
  }

  /** Lets go of the oldest, but of nothing that the furthest reader has still to read. */
  private trim(): void {
    const { maxBytes, maxChunks } = this.bounds
    const limit = this.readers.size === 0 ? this.next - 1 : Math.min(this.furthest().index, this.next - 1)
    while (this.first < limit && (this.next - this.first > maxChunks || this.keptBytes > maxBytes)) {
      this.keptBytes -= this.entries[this.head]?.json.length ?? 0
      this.entries[this.head] = undefined
      this.head++
    }
    if (this.head < 1024 || this.head * 2 < this.entries.length) return
    this.entries = this.entries.slice(this.head)
    this.base += this.head
    this.head = 0
  }
}

/** One reader's place in a log. */
export class LogReader {
  /** Bytes in front of its place. */
  readBytes: number
  private waiting: (() => void) | undefined
  private isOpen = true

  constructor(
    private readonly log: ReplayLog,
    /** The next chunk that it reads. */
    public index: number
  ) {
    // What was written before it came counts as read, but for what it is going to read of it.
    this.readBytes = log.written
    for (let place = Math.max(index, log.first); place < log.next; place++) {
      this.readBytes -= log.at(place)?.json.length ?? 0
    }
  }

  /** Whether what it should read next is not kept any more. */
  get isTooLate(): boolean {
    return this.index < this.log.first
  }

  /** Whether it has read everything that will ever be there. */
  get isDone(): boolean {
    return this.log.end !== undefined && this.index >= this.log.next
  }

  /** Whether there is something to read, or the end. */
  get hasNews(): boolean {
    return !this.isOpen || this.log.end !== undefined || this.index < this.log.next
  }

  get end(): End | undefined {
    return this.log.end
  }

  get isClosed(): boolean {
    return !this.isOpen
  }

  /** What is there, at most so many. */
  take(limit: number): ReadonlyArray<Entry> {
    const taken: Array<Entry> = []
    while (taken.length < limit) {
      const entry = this.log.at(this.index)
      if (entry === undefined) break
      taken.push(entry)
      this.index++
      this.readBytes += entry.json.length
    }
    if (taken.length > 0) this.log.giveRoom()
    return taken
  }

  /** Calls back once, when there is more, or the end. Returns how to forget it. */
  wait(callback: () => void): () => void {
    this.waiting = callback
    return () => {
      this.waiting = undefined
    }
  }

  notify(): void {
    const { waiting } = this
    this.waiting = undefined
    waiting?.()
  }

  /** The reader leaves; one that waits is woken. */
  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.log.leave(this)
    this.notify()
  }
}

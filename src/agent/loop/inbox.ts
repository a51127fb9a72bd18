/**
 * Where a run's chunks come together: what the model says, what tools write, what the loop itself tells. One writer's
 * order is kept; there is one reader, the loop.
 *
 * Writing is plain code. A reader that waits is not woken for each chunk: it wakes for the first word of an answer, at the
 * end of the current turn of the event loop, or as soon as the inbox is full, so that a fast model costs one wake-up per
 * batch and a lone chunk waits for no more than that turn.
 */
import * as Effect from "effect/Effect"
import type { Chunk } from "../../protocol/Chunk.js"

/** Chunks that the model may be ahead of the reader. */
export const capacity = 64

/** The same of a run that keeps nothing: with what its log holds it is to be little. */
export const capacityUnkept = 16

export class Inbox {
  private chunks: Array<Chunk> = []
  private reader: (() => void) | undefined
  private turn: ReturnType<typeof setImmediate> | undefined
  private writers: Array<() => void> = []
  private isNotified = false
  private isTextAwaited = false
  private isClosed = false

  constructor(private readonly capacity: number) {}

  /** An answer begins: its first word is awaited, and does not wait for others. */
  awaitText(): void {
    this.isTextAwaited = true
  }

  /** Adds a chunk; dropped when the run is over. */
  push(chunk: Chunk): void {
    if (this.isClosed) return
    this.chunks.push(chunk)
    if (this.reader === undefined) return
    const isFirstWord = this.isTextAwaited && chunk.type === "text-delta"
    if (isFirstWord) this.isTextAwaited = false
    if (isFirstWord || this.chunks.length >= this.capacity) {
      this.wake()
    } else if (this.turn === undefined) {
      this.turn = setImmediate(this.wake)
    }
  }

  /** Something other than a chunk has happened: the reader looks at once. */
  notify(): void {
    this.isNotified = true
    this.wake()
  }

  private readonly wake = (): void => {
    if (this.turn !== undefined) clearImmediate(this.turn)
    this.turn = undefined
    const reader = this.reader
    this.reader = undefined
    reader?.()
  }

  /**
   * Whether there is a chunk, or something has happened since the last answer; when not, `reader` is called once, as soon as
   * there is. Forgets here and not in {@link take}: what happens while the reader looks is news, also a model that fails or
   * a tool that is done at once.
   */
  hasNews(reader: () => void): boolean {
    if (this.chunks.length > 0 || this.isNotified) {
      this.isNotified = false
      return true
    }
    this.reader = reader
    return false
  }

  /** The reader waits no longer. */
  leave(): void {
    this.reader = undefined
    this.wake()
  }

  /** Done when there is news. */
  get arrived(): Effect.Effect<void> {
    return Effect.async(resume => {
      const look = (): void => {
        if (this.hasNews(look)) resume(Effect.void)
      }
      look()
      return Effect.sync(() => this.leave())
    })
  }

  /** Everything that is there. */
  take(): ReadonlyArray<Chunk> {
    const taken = this.chunks
    if (taken.length > 0) this.chunks = []
    if (this.writers.length > 0) {
      const writers = this.writers
      this.writers = []
      for (const writer of writers) writer()
    }
    return taken
  }

  /** Whether the run is over. */
  get isOver(): boolean {
    return this.isClosed
  }

  get isFull(): boolean {
    return this.chunks.length >= this.capacity
  }

  /** Whether there is room; when not, `resume` is called once, when the reader has taken what is there or the run is over. */
  hasRoom(resume: () => void): boolean {
    if (this.isClosed || !this.isFull) return true
    this.writers.push(resume)
    return false
  }

  /** Settles when the reader has taken what is there, or the run is over. */
  drained(): Promise<void> {
    return new Promise(resolve => {
      if (this.hasRoom(resolve)) resolve()
    })
  }

  /** The run is over: nobody reads, and nobody is held. */
  close(): void {
    this.isClosed = true
    this.take()
    this.wake()
  }
}

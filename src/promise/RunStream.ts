/**
 * A run as a web stream. An ordinary `ReadableStream`, with an async iterator of its own: `for await` reads the log of the
 * run directly, and not through the stream's queue.
 *
 * @since 0.1.0
 */
import type { Cursor, RunLog } from "../output/RunLog.js"
import type { Chunk } from "../protocol/Chunk.js"
import { InvalidConfiguration } from "../protocol/Errors.js"

/** Chunks that one pull puts into the queue of the stream, when they are there. */
const batchSize = 32

const lockedError = () => new TypeError("This stream is locked: something else reads it. Open another one.")

/**
 * What `for await` gets. Written out here: the name that the types of the DOM have for it is not known to a project that has
 * Node's types only.
 */
interface RunIterator<A> extends AsyncIterableIterator<A> {
  [Symbol.asyncIterator](): RunIterator<A>
  [Symbol.asyncDispose](): PromiseLike<void>
}

/**
 * What a reader picks out of a run, from its first chunk on. Reading it slowly holds the run; cancelling it affects no
 * other reader, and the run goes on. It never errors: a run that failed says so in its chunks.
 *
 * @since 0.1.0
 * @category models
 */
export class RunStream<A> extends ReadableStream<A> {
  private controller: ReadableStreamDefaultController<A> | undefined
  private cursor: Cursor | undefined

  constructor(
    private readonly log: RunLog,
    /** What a chunk is to this reader; `undefined` for nothing. */
    private readonly pick: (chunk: Chunk, cursor: Cursor) => A | undefined,
    /** Whether it ends with the first run, also when others follow. */
    private readonly isFirstRunOnly = false,
    /** Who wants text only does not pay for structured values. */
    private readonly wants: "everything" | "text" = "everything"
  ) {
    let started: ReadableStreamDefaultController<A> | undefined
    super(
      {
        start: controller => {
          started = controller
        },
        pull: controller => this.fill(controller),
        cancel: () => this.leave()
      },
      { highWaterMark: 0 }
    )
    this.controller = started
  }

  /** The place of this stream in the log of its run, for who reads many chunks at once. */
  static readonly cursor = (stream: RunStream<unknown>): Cursor => stream.read()

  private read(): Cursor {
    if (this.cursor !== undefined) return this.cursor
    const opened = this.log.open(this.isFirstRunOnly ? "with-run" : "with-log", this.wants)
    if (opened instanceof InvalidConfiguration) throw opened
    this.cursor = opened
    return opened
  }

  private leave(): void {
    this.read().close()
  }

  private fill(controller: ReadableStreamDefaultController<A>): void | Promise<void> {
    const cursor = this.read()
    let count = 0
    while (count === 0) {
      const taken = cursor.drain(batchSize, chunk => {
        const item = this.pick(chunk, cursor)
        if (item === undefined) return
        controller.enqueue(item)
        count++
      })
      if (taken === 0) break
    }
    if (count > 0) return
    if (cursor.isDone()) return this.end(controller)
    return new Promise<void>(resolve => cursor.wait(resolve)).then(() => this.fill(controller))
  }

  private end(controller: ReadableStreamDefaultController<A> | undefined): void {
    this.read().close()
    controller?.close()
  }

  /** Iterates from the first chunk. Leaving the loop cancels this reader, unless `preventCancel` is set. */
  override values(options?: { readonly preventCancel?: boolean }): RunIterator<A> {
    // Somebody has read a part of it already: the queue of the stream knows where to go on.
    if (this.cursor !== undefined) return super.values(options)
    if (this.locked) throw lockedError()
    // May be refused, and then nothing is locked.
    const cursor = this.read()
    return this.iterate(this.getReader(), cursor, options?.preventCancel === true)
  }

  override [Symbol.asyncIterator](options?: { readonly preventCancel?: boolean }): RunIterator<A> {
    return this.values(options)
  }

  private iterate(
    reader: ReadableStreamDefaultReader<A>,
    cursor: Cursor,
    preventCancel: boolean
  ): RunIterator<A> {
    const { controller, pick } = this
    let isOver = false
    let pending: Promise<IteratorResult<A, undefined>> | undefined
    const over = (): IteratorResult<A, undefined> => {
      if (!isOver) {
        isOver = true
        this.end(controller)
        reader.releaseLock()
      }
      return { done: true, value: undefined }
    }
    let wake: (() => void) | undefined
    let count = 0
    const available = (): IteratorResult<A, undefined> | undefined => {
      if (isOver) return { done: true, value: undefined }
      for (let chunk = cursor.next(); chunk !== undefined; chunk = cursor.next()) {
        const value = pick(chunk, cursor)
        if (value === undefined) continue
        if (++count % batchSize === 0) cursor.wantMore()
        return { done: false, value }
      }
      return cursor.isDone() ? over() : undefined
    }
    const next = async (): Promise<IteratorResult<A, undefined>> => {
      let result = available()
      while (result === undefined) {
        await new Promise<void>(resolve => {
          wake = resolve
          cursor.wait(resolve)
        })
        result = available()
      }
      return result
    }
    const iterator: RunIterator<A> = {
      // Calls that do not wait for each other are answered in order.
      next: () => {
        if (pending === undefined) {
          const result = available()
          if (result !== undefined) return Promise.resolve(result)
          pending = next()
        } else {
          pending = pending.then(next)
        }
        const answer = pending
        const settled = () => {
          if (pending === answer) pending = undefined
        }
        answer.then(settled, settled)
        return answer
      },
      return: async () => {
        if (isOver) return { done: true, value: undefined }
        isOver = true
        // A `next` that waits is answered now, and not with the next chunk.
        wake?.()
        if (!preventCancel) await reader.cancel()
        // Where nothing is kept, whoever reads on is the same reader.
        else if (this.log.isKept) cursor.close()
        reader.releaseLock()
        return { done: true, value: undefined }
      },
      [Symbol.asyncIterator]: () => iterator,
      [Symbol.asyncDispose]: async () => {
        await iterator.return?.()
      }
    }
    return iterator
  }
}

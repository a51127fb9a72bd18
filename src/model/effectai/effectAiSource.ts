/** An Effect stream as an answer is read: by promises, and stopped at once, also while it is silent. */
import * as Batch from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Runtime from "effect/Runtime"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as Stream from "effect/Stream"
import { squash } from "../../protocol/foreignValue.js"

type Taken<A> = IteratorResult<A, undefined>

interface Taker<A> {
  readonly resolve: (taken: Taken<A>) => void
  readonly reject: (failure: unknown) => void
}

const over = { done: true, value: undefined } as const

const ignore = (): void => undefined

/**
 * What stands between the fiber that runs a stream and its one reader. The stream goes on when its last chunk has been
 * taken and more is wanted: so it is never ahead of its reader, and a failure loses nothing of what came before it.
 */
class Exchange<A, E> implements AsyncIterableIterator<A, undefined> {
  /** Hears once that there is something to take, or that nothing will come. */
  onNews: () => void = ignore
  /** Interrupts the stream. */
  stop: () => void = ignore

  private batch: ReadonlyArray<A> = []
  private taken = 0
  private ended: Exit.Exit<void, E> | undefined
  private taker: Taker<A> | undefined
  private goOn: () => void = ignore

  /** Hands a chunk over; ends when the stream is to go on. */
  offer(batch: ReadonlyArray<A>): Effect.Effect<void> {
    if (batch.length === 0) return Effect.void
    return Effect.async(resume => {
      this.batch = batch
      this.taken = 0
      this.goOn = () => resume(Effect.void)
      this.tell()
    })
  }

  end(exit: Exit.Exit<void, E>): void {
    this.ended = exit
    this.tell()
  }

  private tell(): void {
    this.onNews()
    this.onNews = ignore
    const { taker } = this
    this.taker = undefined
    if (taker !== undefined) this.give(taker)
  }

  private give(taker: Taker<A>): void {
    const value = this.batch[this.taken]
    if (value !== undefined) {
      this.taken++
      taker.resolve({ done: false, value })
    } else if (this.ended === undefined) {
      this.taker = taker
      this.goOn()
    } else {
      const { ended } = this
      // A failure is told once, and an interruption is no news to whoever stopped the stream.
      this.ended = Exit.void
      if (Exit.isSuccess(ended) || Exit.isInterrupted(ended)) taker.resolve(over)
      else taker.reject(squash(ended.cause))
    }
  }

  /** What the stream failed with before it said anything. */
  get refusal(): Exit.Exit<never, E> | undefined {
    const { ended } = this
    return ended !== undefined && Exit.isFailure(ended) ? Exit.failCause(ended.cause) : undefined
  }

  next(): Promise<Taken<A>> {
    return new Promise((resolve, reject) => this.give({ resolve, reject }))
  }

  return(): Promise<Taken<A>> {
    this.stop()
    return Promise.resolve(over)
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}

/**
 * Starts a stream, in a fiber of its own, and comes to its source as soon as it has said something or has ended; fails when
 * it fails before that. The stream is interrupted, and its finalizers run, when the effect is interrupted, when the signal
 * fires, and when the reader cancels. Nobody waits for that.
 */
export const begin = <A, E>(
  stream: Stream.Stream<A, E>,
  signal: AbortSignal
): Effect.Effect<AsyncIterable<A>, E> =>
  Effect.flatMap(Effect.runtime(), runtime =>
    Effect.async<AsyncIterable<A>, E>(resume => {
      if (signal.aborted) return resume(Effect.interrupt)
      const exchange = new Exchange<A, E>()
      exchange.onNews = () => resume(exchange.refusal ?? Effect.succeed(exchange))
      const running = Stream.runForEachChunk(stream, chunk => exchange.offer(Batch.toReadonlyArray(chunk)))
      // Whoever begins an answer may not be interrupted meanwhile; the answer may.
      const interruptible = Runtime.enableRuntimeFlag(runtime, RuntimeFlags.Interruption)
      const fiber = Runtime.runFork(interruptible)(Effect.exit(running))
      const stop = (): void => fiber.unsafeInterruptAsFork(FiberId.none)
      exchange.stop = stop
      signal.addEventListener("abort", stop)
      fiber.addObserver(exit => {
        signal.removeEventListener("abort", stop)
        exchange.end(Exit.flatten(exit))
      })
      return Effect.sync(stop)
    })
  )

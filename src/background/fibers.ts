/** The fibers of a manager: each is owned, and ends with it. */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"

/** Starts a fiber at once, on this stack, that its owner waits for. */
export type Fork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.RuntimeFiber<A, E>

/** A fiber of whatever kind, to whom only its end matters. */
type AnyFiber = Pick<Fiber.RuntimeFiber<unknown, unknown>, "addObserver" | "unsafeInterruptAsFork">

/** What cannot be interrupted is waited for so long when a manager ends, in milliseconds, and is left then. */
const farewell = 1000

/**
 * A set of those that are not done. A finalizer of a scope for each would do the same, at several times the cost of the fibers
 * themselves, of which most are done before whoever starts them goes on.
 */
export class Fibers {
  private readonly running = new Set<AnyFiber>()
  /** Those among them that are to be finished. */
  private readonly works = new Set<AnyFiber>()
  private isClosed = false
  private wake: (() => void) | undefined

  private constructor(private readonly runtime: Runtime.Runtime<never>) {}

  static readonly make: Effect.Effect<Fibers> = Effect.map(
    Effect.runtime<never>(),
    // A logger that throws must not hold a fiber at its end: its owner gets the failure.
    runtime => new Fibers(Runtime.setFiberRef(runtime, FiberRef.unhandledErrorLogLevel, Option.none()))
  )

  /** Nothing is started any more. */
  readonly isOver = (): boolean => this.isClosed

  /** Those that are not done. */
  get size(): number {
    return this.running.size
  }

  readonly fork: Fork = effect => {
    const fiber = Runtime.runFork(this.runtime, this.isClosed ? Effect.interrupt : effect)
    if (fiber.unsafePoll() === null) this.own(fiber)
    return fiber
  }

  /** The same of something that is to be finished: see {@link finished}. */
  readonly start: Fork = effect => {
    const fiber = this.fork(effect)
    if (fiber.unsafePoll() !== null) return fiber
    this.works.add(fiber)
    fiber.addObserver(() => {
      this.works.delete(fiber)
      if (this.works.size === 0) this.wake?.()
    })
    return fiber
  }

  private own(fiber: AnyFiber): void {
    this.running.add(fiber)
    fiber.addObserver(() => {
      this.running.delete(fiber)
      if (this.running.size === 0) this.wake?.()
    })
  }

  /** Waits until all that is to be finished is. */
  readonly finished: Effect.Effect<void> = Effect.suspend(() => this.untilEmpty(this.works))

  /** Starts nothing more, interrupts them all, and waits until they are done. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.isClosed = true
    for (const fiber of this.running) fiber.unsafeInterruptAsFork(FiberId.none)
    return Effect.asVoid(Effect.timeoutOption(this.untilEmpty(this.running), farewell))
  })

  private untilEmpty(fibers: ReadonlySet<AnyFiber>): Effect.Effect<void> {
    if (fibers.size === 0) return Effect.void
    const woken = Effect.async<void>(resume => {
      // They may have ended since.
      if (fibers.size === 0) resume(Effect.void)
      else this.wake = () => resume(Effect.void)
    })
    return Effect.zipRight(
      woken,
      Effect.suspend(() => this.untilEmpty(fibers))
    )
  }
}

/**
 * Time that nobody waits for: a turn of the event loop is a millisecond as long as somebody sleeps for that little; when all
 * that sleep are far away and nothing else has happened for some turns, it is the moment of the next of them. It cannot
 * hang, and it needs no timer of the platform.
 */
import { Clock, Duration, Effect } from "effect"

/** Sleeps up to this many milliseconds are waited for turn by turn. */
const near = 40

/** Turns of the event loop without a new sleeper, before time jumps. */
const patience = 8

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

export class JumpingClock implements Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  private now = 0
  private quiet = 0
  private readonly sleepers = new Set<Sleeper>()
  private isGoing = false

  /** How many sleep now. */
  get sleeping(): number {
    return this.sleepers.size
  }

  unsafeCurrentTimeMillis(): number {
    return this.now
  }

  unsafeCurrentTimeNanos(): bigint {
    return BigInt(Math.round(this.now)) * 1_000_000n
  }

  readonly currentTimeMillis = Effect.sync(() => this.unsafeCurrentTimeMillis())

  readonly currentTimeNanos = Effect.sync(() => this.unsafeCurrentTimeNanos())

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.async(resume => {
      const sleeper = { at: this.now + Duration.toMillis(duration), wake: () => resume(Effect.void) }
      this.sleepers.add(sleeper)
      this.quiet = 0
      this.go()
      return Effect.sync(() => this.sleepers.delete(sleeper))
    })
  }

  private go(): void {
    if (this.isGoing) return
    this.isGoing = true
    setImmediate(this.pass)
  }

  private readonly pass = (): void => {
    this.isGoing = false
    if (this.sleepers.size === 0) return
    const next = Math.min(...[...this.sleepers].map(({ at }) => at))
    if (next - this.now <= near) this.now = Math.min(next, this.now + 1)
    else if (++this.quiet >= patience) this.now = next
    for (const sleeper of [...this.sleepers]) {
      if (sleeper.at > this.now || !this.sleepers.delete(sleeper)) continue
      this.quiet = 0
      sleeper.wake()
    }
    if (this.sleepers.size > 0) this.go()
  }
}

/** What a task writes, told at once or no more often than it may. The last of it is never lost. */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as MutableQueue from "effect/MutableQueue"
import type { Core } from "./core.js"
import type { Entry } from "./entry.js"
import { capacity } from "./hub.js"
import { outputChunk } from "./taskChunks.js"

/** Outputs of one task that wait to be told: with those of its turn they never fill what a reader may be behind. */
const bound = capacity / 2

export class Throttle {
  /** The newest of what may not be told yet, at most as many as may be held. */
  private readonly held = MutableQueue.unbounded<unknown>()
  private timer: Fiber.RuntimeFiber<void> | undefined
  private onDrained: (() => void) | undefined

  constructor(
    private readonly core: Pick<Core, "fork" | "hub" | "settings" | "turns">,
    private readonly entry: Entry
  ) {}

  write(output: unknown): void {
    if (this.core.settings.progressThrottleMs !== undefined) {
      if (this.timer === undefined) this.open(output)
      else this.hold(output, 1)
    } else if (MutableQueue.isEmpty(this.held) && this.core.turns.take()) this.tell(output)
    else {
      if (MutableQueue.isEmpty(this.held)) this.core.turns.wait(this.tellNext)
      this.hold(output, bound)
    }
  }

  /** Tells the last of what is held, at once: nothing more comes. */
  flush(): void {
    this.timer?.unsafeInterruptAsFork(FiberId.none)
    this.timer = undefined
    const outputs = Array.from(this.held)
    MutableQueue.pollUpTo(this.held, outputs.length)
    if (outputs.length > 0) this.tell(outputs.at(-1))
    this.onDrained?.()
  }

  /** Waits until everything that is held is emitted, in turns; of what only time holds back, the last is emitted at once. */
  readonly drained: Effect.Effect<void> = Effect.suspend(() => {
    if (this.core.settings.progressThrottleMs !== undefined) this.flush()
    if (MutableQueue.isEmpty(this.held)) return Effect.void
    return Effect.async<void>(resume => {
      this.onDrained = () => resume(Effect.void)
    })
  })

  private open(output: unknown): void {
    const { progressThrottleMs = 0 } = this.core.settings
    this.tell(output)
    this.timer = this.core.fork(
      Effect.zipRight(
        Effect.sleep(progressThrottleMs),
        Effect.sync(() => {
          this.timer = undefined
          if (!MutableQueue.isEmpty(this.held)) this.open(MutableQueue.poll(this.held, undefined))
        })
      )
    )
  }

  private hold(output: unknown, limit: number): void {
    if (MutableQueue.length(this.held) >= limit) MutableQueue.poll(this.held, undefined)
    MutableQueue.offer(this.held, output)
  }

  /** Whether more is held. */
  private readonly tellNext = (): boolean => {
    if (MutableQueue.isEmpty(this.held)) return false
    this.tell(MutableQueue.poll(this.held, undefined))
    if (!MutableQueue.isEmpty(this.held)) return true
    this.onDrained?.()
    return false
  }

  private tell(output: unknown): void {
    const { task } = this.entry
    this.core.hub.tell(task, told => outputChunk(told, output))
  }
}

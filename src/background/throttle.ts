/** What a task writes, told at once or no more often than it may. The last of it is never lost. */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type { Core } from "./core.js"
import type { Entry } from "./entry.js"
import { outputChunk } from "./taskChunks.js"

export class Throttle {
  /** The newest of what may not be told yet. */
  private held: { readonly output: unknown } | undefined
  private timer: Fiber.RuntimeFiber<void> | undefined

  constructor(
    private readonly core: Pick<Core, "fork" | "hub" | "settings">,
    private readonly entry: Entry
  ) {}

  write(output: unknown): void {
    if (this.core.settings.progressThrottleMs === undefined) this.tell(output)
    else if (this.timer !== undefined) this.held = { output }
    else this.open(output)
  }

  /** Tells what is held: nothing more comes. */
  flush(): void {
    this.timer?.unsafeInterruptAsFork(FiberId.none)
    this.timer = undefined
    this.release()
  }

  private open(output: unknown): void {
    const { progressThrottleMs = 0 } = this.core.settings
    this.tell(output)
    this.timer = this.core.fork(
      Effect.zipRight(
        Effect.sleep(progressThrottleMs),
        Effect.sync(() => {
          this.timer = undefined
          const { held } = this
          this.held = undefined
          if (held !== undefined) this.open(held.output)
        })
      )
    )
  }

  private release(): void {
    const { held } = this
    this.held = undefined
    if (held !== undefined) this.tell(held.output)
  }

  private tell(output: unknown): void {
    const { task } = this.entry
    this.core.hub.tell(task, told => outputChunk(told, output))
  }
}

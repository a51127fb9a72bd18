/** How many outputs all tasks of a manager tell per turn of the event loop: readers get their turns between them. */
import * as Effect from "effect/Effect"
import type { Fork } from "./fibers.js"

/** Readers that are not slow take so many between two turns. */
const outputsPerTurn = 512

/** The next turn of the event loop, in real time: promises of readers are run before it. */
const nextTurn = Effect.async<void>(resume => {
  const timer = setTimeout(() => resume(Effect.void), 0)
  return Effect.sync(() => clearTimeout(timer))
})

export class Turns {
  private left = outputsPerTurn
  private isPassing = false
  private readonly waiting = new Set<() => boolean>()

  constructor(private readonly fork: Fork) {}

  /** Takes a place in this turn; whether there was one. */
  take(): boolean {
    if (this.left === 0) return false
    this.left--
    this.pass()
    return true
  }

  /** Calls back once per place, one task after the other, for as long as it returns true. */
  wait(next: () => boolean): void {
    this.waiting.add(next)
    this.pass()
  }

  private pass(): void {
    if (this.isPassing) return
    this.isPassing = true
    this.fork(
      Effect.map(nextTurn, () => {
        this.isPassing = false
        this.left = outputsPerTurn
        this.serve()
      })
    )
  }

  private serve(): void {
    for (const next of this.waiting) {
      if (!this.take()) return
      // Behind the others: a set is iterated in the order of insertion, also of what is added meanwhile.
      this.waiting.delete(next)
      if (next()) this.waiting.add(next)
    }
  }
}

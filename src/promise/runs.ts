/** The runs of one owner: an agent on its own, or the container it belongs to. Each is one fiber, which its owner ends. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { Recording } from "../agent/recording.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import type { ThreadStore } from "../storage/ThreadStore.js"

/** Runs effects somewhere. */
export interface Host {
  readonly runFork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.RuntimeFiber<A, unknown>
}

/** What the owner of runs does for them. */
export interface Runs {
  /** Starts a run. Rejects with what the run cannot begin with. */
  readonly start: (
    begin: Effect.Effect<Recording, unknown, ThreadStore>,
    abort: Recording["abort"]
  ) => Promise<Recording>
  /** Asks something. Rejects with what that fails with. */
  readonly ask: <A>(effect: Effect.Effect<A, unknown>) => Promise<A>
  /** Runs an effect of the log. */
  readonly log: (effect: Effect.Effect<void>) => void
  /** Aborts every run and waits for them; no other starts afterwards. */
  readonly shutdown: () => Promise<void>
}

const shutDownReason = "The container was shut down."

/** What everybody is told who comes later. */
export const shutDown = new InvalidConfiguration({
  field: "runtime",
  message: "This container was shut down. Make another one before you use it again."
})

export const make = (host: Host): Runs => {
  const open = new Map<Fiber.RuntimeFiber<void, unknown>, () => void>()
  let isShutDown = false

  const start: Runs["start"] = (needy, abort) => {
    // Where there is no store a run with a thread is refused, and no other asks for one.
    let begin: Effect.Effect<Recording, unknown> = needy as Effect.Effect<Recording, unknown>
    if (isShutDown) return Promise.reject(shutDown)
    return new Promise((resolve, reject) => {
      const fiber = host.runFork(
        Effect.flatMap(begin, recording => {
          resolve(recording)
          return recording.going
        })
      )
      // What is left of it is the run: input and options are not kept as long as it goes.
      begin = Effect.never
      open.set(fiber, () => abort(shutDownReason))
      fiber.addObserver(exit => {
        open.delete(fiber)
        // Settled already, unless the run could not begin.
        if (Exit.isFailure(exit)) reject(Cause.squash(exit.cause))
      })
    })
  }

  const shutdown = async (): Promise<void> => {
    isShutDown = true
    const ended = Array.from(open, ([fiber, abort]) => {
      abort()
      return new Promise(resolve => fiber.addObserver(resolve))
    })
    await Promise.all(ended)
  }

  const ask = <A>(effect: Effect.Effect<A, unknown>): Promise<A> =>
    isShutDown
      ? Promise.reject(shutDown)
      : new Promise((resolve, reject) => {
          host.runFork(effect).addObserver(exit => {
            if (Exit.isSuccess(exit)) resolve(exit.value)
            else reject(Cause.squash(exit.cause))
          })
        })

  return { start, ask, shutdown, log: effect => void host.runFork(effect) }
}

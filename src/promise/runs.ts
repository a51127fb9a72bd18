/** The runs of one owner: an agent on its own, or the container it belongs to. Each has a scope, closed when it settles. */
import { Cause, Effect, Exit, type Fiber, Scope } from "effect"
import type { Recording } from "../agent/Agent.js"
import { InvalidConfiguration } from "../protocol/Errors.js"

/** Runs effects somewhere. */
export interface Host {
  readonly runFork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.RuntimeFiber<A, E>
}

/** What the owner of runs does for them. */
export interface Runs {
  /** Starts a run and waits until it has begun. Rejects with what the run cannot begin with. */
  readonly start: (begin: Effect.Effect<Recording, unknown, Scope.Scope>) => Promise<Recording>
  /** Runs an effect of the log. */
  readonly log: (effect: Effect.Effect<void>) => void
  /** Aborts every run and waits for them; no other starts afterwards. */
  readonly shutdown: () => Promise<void>
}

export const make = (host: Host): Runs => {
  const open = new Set<Scope.CloseableScope>()
  let isShutDown = false

  const close = (scope: Scope.CloseableScope): Promise<unknown> =>
    open.delete(scope)
      ? new Promise(resolve => host.runFork(Scope.close(scope, Exit.void)).addObserver(resolve))
      : Promise.resolve()

  const start = async (begin: Effect.Effect<Recording, unknown, Scope.Scope>): Promise<Recording> => {
    if (isShutDown) {
      throw new InvalidConfiguration({
        field: "runtime",
        message: "This container was shut down. Make another one before you run its agents again."
      })
    }
    const scope = Effect.runSync(Scope.make())
    open.add(scope)
    const fiber = host.runFork(Scope.extend(begin, scope))
    const exit = await new Promise<Exit.Exit<Recording, unknown>>(resolve => fiber.addObserver(resolve))
    if (Exit.isFailure(exit)) {
      await close(scope)
      throw Cause.squash(exit.cause)
    }
    exit.value.recorded.onSettled(() => void close(scope))
    return exit.value
  }

  const shutdown = async (): Promise<void> => {
    isShutDown = true
    await Promise.all([...open].map(close))
  }

  return { start, shutdown, log: effect => void host.runFork(effect) }
}

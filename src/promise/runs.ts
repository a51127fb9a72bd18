/** The runs of one owner: an agent on its own, or the container it belongs to. Each is one fiber, which its owner ends. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { Recording } from "../agent/recording.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { squash } from "../protocol/foreignValue.js"
import { ThreadStore } from "../storage/ThreadStore.js"
import { inCallContext } from "./fromPromise.js"
import { startedWithin } from "./nestedCalls.js"

/** Runs effects somewhere. */
export interface Host {
  readonly runFork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.RuntimeFiber<A, unknown>
}

/** What the owner of runs does for them. */
export interface Runs {
  /** Starts a run. Rejects with what the run cannot begin with. */
  readonly start: <R extends Recording>(
    begin: Effect.Effect<R, unknown, ThreadStore>,
    abort: Recording["abort"]
  ) => Promise<R>
  /** Asks for something. Rejects with what it fails with, and when the container is shut down. */
  readonly ask: <A>(effect: Effect.Effect<A, unknown>) => Promise<A>
  /** Asks the store of threads. Rejects likewise, and where there is no store. */
  readonly askThreads: <A>(effect: Effect.Effect<A, unknown, ThreadStore>) => Promise<A>
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

const noStore = {
  field: "storage",
  message:
    "The agent has nowhere to keep threads. Give its container a store, for example new Eddy({ agents, storage: new InMemoryStore() })."
}

/**
 * Runs of this host. With `ready` they begin when that has resolved, on the stack of whoever asked for them, so that a trace
 * finds what is active there.
 */
export const make = (host: Host, ready?: () => Promise<unknown>): Runs => {
  const open = new Map<Fiber.RuntimeFiber<void, unknown>, () => void>()
  let isShutDown = false

  const start = <R extends Recording>(
    needy: Effect.Effect<R, unknown, ThreadStore>,
    abort: Recording["abort"]
  ): Promise<R> => {
    const nested = startedWithin(needy)
    if (ready === undefined) return begin(nested, abort)
    const go = () => begin(nested, abort)
    // A host that cannot begin says so to the run.
    return ready().then(go, go)
  }

  const begin = <R extends Recording>(
    needy: Effect.Effect<R, unknown, ThreadStore>,
    abort: Recording["abort"]
  ): Promise<R> => {
    // Where there is no store a run with a thread is refused, and no other asks for one.
    let beginning: Effect.Effect<R, unknown> = needy as Effect.Effect<R, unknown>
    if (isShutDown) return Promise.reject(shutDown)
    return new Promise((resolve, reject) => {
      const fiber = host.runFork(
        inCallContext(
          Effect.flatMap(beginning, recording => {
            resolve(recording)
            return recording.going
          })
        )
      )
      // What is left of it is the run: input and options are not kept as long as it goes.
      beginning = Effect.never
      open.set(fiber, () => abort(shutDownReason))
      fiber.addObserver(exit => {
        open.delete(fiber)
        // Settled already, unless the run could not begin.
        if (Exit.isFailure(exit)) reject(squash(exit.cause))
      })
    })
  }

  const ask: Runs["ask"] = effect => {
    if (isShutDown) return Promise.reject(shutDown)
    return new Promise((resolve, reject) =>
      host.runFork(inCallContext(effect)).addObserver(exit => {
        if (Exit.isSuccess(exit)) resolve(exit.value)
        else reject(Cause.isInterruptedOnly(exit.cause) ? shutDown : squash(exit.cause))
      })
    )
  }

  const askThreads: Runs["askThreads"] = effect =>
    ask(
      Effect.flatMap(Effect.serviceOption(ThreadStore), store =>
        Option.isSome(store)
          ? Effect.provideService(effect, ThreadStore, store.value)
          : Effect.fail(new InvalidConfiguration(noStore))
      )
    )

  const shutdown = async (): Promise<void> => {
    isShutDown = true
    const ended = Array.from(open, ([fiber, abort]) => {
      abort()
      return new Promise(resolve => fiber.addObserver(resolve))
    })
    await Promise.all(ended)
  }

  return { start, ask, askThreads, shutdown, log: effect => void host.runFork(effect) }
}

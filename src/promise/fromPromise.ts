/** Functions of plain TypeScript as Effects. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as Predicate from "effect/Predicate"
import * as Runtime from "effect/Runtime"
import { inspectable, squash } from "../protocol/foreignValue.js"
import { callWithin } from "./nestedCalls.js"

/** Calls a function in an asynchronous context, where `AsyncLocalStorage` finds what it holds. */
type Within = <A>(run: () => A) => A

const anywhere: Within = run => run()

/** The asynchronous context of this call; elsewhere than in Node, Deno and Bun the one in which a function happens to be called. */
const snapshot = (): Within => {
  const { process }: { readonly process?: Partial<NodeJS.Process> } = globalThis
  return process?.getBuiltinModule?.("node:async_hooks").AsyncLocalStorage.snapshot() ?? anywhere
}

/** The asynchronous context of the run. Tasks inherit it with the other `FiberRef`s of their call. */
const callContext = FiberRef.unsafeMake(anywhere)

/** The functions that the effect calls have the asynchronous context of this call. */
export const inCallContext = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.locally(effect, callContext, snapshot())

/**
 * A function that may throw, return or promise. What it throws is anything; it is told as it is. Interruption does not wait
 * for it. It has the asynchronous context of the run that it belongs to, whichever fiber was last on the stack.
 */
export const fromPromise = <A>(run: () => Promise<A> | A): Effect.Effect<A, unknown> =>
  Effect.withFiberRuntime(fiber => {
    const within = fiber.getFiberRef(callContext)
    return Effect.async(resume => {
      const fail = (cause: unknown) => resume(Effect.fail(inspectable(cause)))
      try {
        // The span of the fiber is the active one, whatever was active where the run was started.
        const answer = within(() => fiber.currentTracer.context(run, fiber))
        if (Predicate.isPromiseLike(answer)) answer.then(value => resume(Effect.succeed(value)), fail)
        else resume(Effect.succeed(answer))
      } catch (cause) {
        fail(cause)
      }
    })
  })

/** Suspends, and never fulfils: the code behind it does not run. */
export type Suspend<Data = unknown> = (data?: Data) => Promise<never>

/** An `AbortError`, which libraries neither report nor try again. */
const stopped = () =>
  new DOMException("`suspend` does not return: what it serves is suspended, or over.", "AbortError")

/**
 * Runs a function that gets a `suspend`. What the function returns or throws once it has suspended is dropped: the suspension
 * interrupts this effect. A suspension whose data is still being validated when the function ends is waited for. `suspend`
 * rejects when the effect has ended, so that `finally` blocks run, and with the error of the schema when that refuses the data.
 */
export const suspendable = <A>(
  suspend: (data: unknown) => Effect.Effect<never>,
  run: (suspend: Suspend, runtime: Runtime.Runtime<never>) => Promise<A> | A
): Effect.Effect<A, unknown> =>
  Effect.flatMap(Effect.runtime<never>(), runtime => {
    const suspending = new Set<Fiber.RuntimeFiber<never>>()
    let isOver = false
    const start: Suspend = data => {
      const rejected = new Promise<never>((_, reject) => {
        if (isOver) return reject(stopped())
        const fiber = Runtime.runFork(runtime)(suspend(data))
        suspending.add(fiber)
        fiber.addObserver(exit => {
          suspending.delete(fiber)
          const isRefused = Exit.isFailure(exit) && !Cause.isInterruptedOnly(exit.cause)
          reject(isRefused ? squash(exit.cause) : stopped())
        })
      })
      // A function that does not await it is suspended all the same: its rejection is not unhandled.
      rejected.catch(() => undefined)
      return rejected
    }
    const executed = Effect.flatMap(
      Effect.exit(fromPromise(() => callWithin(runtime.context, () => run(start, runtime)))),
      exit => (suspending.size === 0 ? exit : Effect.zipRight(Fiber.joinAll(suspending), exit))
    )
    const close = Effect.sync(() => {
      isOver = true
      for (const fiber of suspending) fiber.unsafeInterruptAsFork(FiberId.none)
    })
    return Effect.ensuring(executed, close)
  })

/** Waiting for an effect between two states of a run, without making the loop wait for anything but its inbox. */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import { fork, forkToEnd, type Run } from "./run.js"

/** Something is awaited. */
export interface Waiting<S> {
  readonly _tag: "Waiting"
  /** The state that follows; `undefined` as long as it is awaited. */
  readonly next: () => S | undefined
}

const waiting = <R, S, A, E>(
  run: Run<R>,
  effect: Effect.Effect<A, E>,
  start: (run: Run<R>, effect: Effect.Effect<void>) => unknown,
  next: (exit: Exit.Exit<A, E> | undefined) => S | undefined
): Waiting<S> => {
  let exit: Exit.Exit<A, E> | undefined
  const noted = Effect.map(Effect.exit(effect), ended => {
    exit = ended
    run.inbox.notify()
  })
  start(run, noted)
  return { _tag: "Waiting", next: () => next(exit) }
}

/** Waits for an effect. A run that is stopped meanwhile does not: `halted` is its next state, and the effect is interrupted. */
export const waitFor = <R, S, A, E>(
  run: Run<R>,
  effect: Effect.Effect<A, E>,
  then: (exit: Exit.Exit<A, E>) => S,
  halted: () => S
): Waiting<S> =>
  waiting(run, effect, fork, exit => {
    if (run.control.halted !== undefined) return halted()
    return exit === undefined ? undefined : then(exit)
  })

/** Waits for an effect that goes on when the run is stopped: it must end by itself. The run does not wait for it then. */
export const waitBeside = <R, S, A, E>(
  run: Run<R>,
  effect: Effect.Effect<A, E>,
  then: (exit: Exit.Exit<A, E>) => S,
  halted: () => S
): Waiting<S> =>
  waiting(run, effect, forkToEnd, exit => {
    if (run.control.halted !== undefined) return halted()
    return exit === undefined ? undefined : then(exit)
  })

/** Waits for an effect also when the run is stopped: it must end by itself, soon. */
export const waitToEnd = <R, S>(run: Run<R>, effect: Effect.Effect<void>, then: () => S): Waiting<S> =>
  waiting(run, effect, forkToEnd, exit => (exit === undefined ? undefined : then()))

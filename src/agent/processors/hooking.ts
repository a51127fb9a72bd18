/** Waits for hooks between two states of a run: until they are done, or one of them stops the run. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Tripwire } from "../../output/FullOutput.js"
import type { ProcessorFailed } from "../../protocol/Errors.js"
import { fork, type Run } from "../loop/run.js"
import type { State } from "../loop/state.js"
import { type Bound, HookContext, type Scene } from "./context.js"
import { sceneOf, tellData } from "./scene.js"

/** What follows. */
export interface Following<R, A> {
  readonly passed: (value: A) => State<R>
  readonly tripped: (tripwire: Tripwire) => State<R>
  readonly failed: (error: ProcessorFailed) => State<R>
  /** The run was stopped from outside meanwhile. */
  readonly halted: () => State<R>
}

/** Makes the context of a processor. */
export type ContextOf = (bound: Bound, messages: Scene["messages"]) => HookContext

/** Runs hooks one after the other. An abort takes effect at once, whatever the hook does after it. */
export const hooked = <R, A>(
  run: Run<R>,
  hooks: (contextOf: ContextOf) => Effect.Effect<A, ProcessorFailed>,
  following: Following<R, A>
): State<R> => {
  let tripwire: Tripwire | undefined
  let exit: Either.Either<A, ProcessorFailed> | undefined
  let stop = (_: unknown): void => undefined
  const trip = (thrown: Tripwire): void => {
    if (tripwire !== undefined || exit !== undefined) return
    tripwire = thrown
    stop(undefined)
    run.inbox.notify()
  }
  const contextOf: ContextOf = (bound, messages) =>
    new HookContext(sceneOf(run, { messages, trip, writeData: tellData(run, run.emit) }), bound)
  const noted = Effect.map(Effect.either(hooks(contextOf)), ended => {
    exit = ended
    run.inbox.notify()
  })
  stop = fork(run, noted)
  if (tripwire !== undefined) stop(undefined)
  return {
    _tag: "Waiting",
    next: () => {
      if (run.control.halted !== undefined) return following.halted()
      if (tripwire !== undefined) return following.tripped(tripwire)
      if (exit === undefined) return undefined
      return Either.isRight(exit) ? following.passed(exit.right) : following.failed(exit.left)
    }
  }
}

/** Functions of plain TypeScript as Effects. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { inspectable } from "../protocol/foreignValue.js"

/**
 * A function that may throw, return or promise. What it throws is anything; it is told as it is. Interruption does not wait
 * for it.
 */
export const fromPromise = <A>(run: () => Promise<A> | A): Effect.Effect<A, unknown> =>
  Effect.async(resume => {
    const fail = (cause: unknown) => resume(Effect.fail(inspectable(cause)))
    try {
      const answer = run()
      if (Predicate.isPromiseLike(answer)) answer.then(value => resume(Effect.succeed(value)), fail)
      else resume(Effect.succeed(answer))
    } catch (cause) {
      fail(cause)
    }
  })

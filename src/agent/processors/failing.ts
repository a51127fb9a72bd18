/** What becomes of hooks that fail: the run does. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { ProcessorFailed } from "../../protocol/Errors.js"
import { messageOf } from "../../protocol/safeJson.js"
import type { Hooks, Processor } from "./definition.js"

export const failedIn = ({ id }: Processor, hook: keyof Hooks, cause: unknown): ProcessorFailed =>
  cause instanceof ProcessorFailed
    ? cause
    : new ProcessorFailed({
        processorId: id,
        hook,
        message: `Processor "${id}" failed in ${hook}, and what it has not checked does not pass: ${messageOf(cause)}`,
        cause
      })

/** A hook gave what it may not give. */
export const gaveWrong = ({ id }: Processor, hook: keyof Hooks, what: string): ProcessorFailed =>
  new ProcessorFailed({
    processorId: id,
    hook,
    message: `Processor "${id}" gave something wrong in ${hook}: ${what}`
  })

/** Calls a hook, and runs the Effect that it gives. */
export const called = <A>(
  processor: Processor,
  hook: keyof Hooks,
  call: () => A | Effect.Effect<A, unknown>
): Effect.Effect<A, ProcessorFailed> =>
  Effect.suspend(() => {
    const given = call()
    return Effect.isEffect(given) ? (given as Effect.Effect<A, unknown>) : Effect.succeed(given)
  }).pipe(Effect.catchAllCause(cause => Effect.fail(failedIn(processor, hook, Cause.squash(cause)))))

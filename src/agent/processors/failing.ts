/** What becomes of hooks that fail: the run does. */
import * as Effect from "effect/Effect"
import { ProcessorFailed } from "../../protocol/Errors.js"
import { callUser, inspectable, squash } from "../../protocol/foreignValue.js"
import { messageOf } from "../../protocol/safeJson.js"
import type { Hooks, Processor } from "./definition.js"

export const failedIn = ({ id }: Processor, hook: keyof Hooks, thrown: unknown): ProcessorFailed => {
  const cause = inspectable(thrown)
  return cause instanceof ProcessorFailed
    ? cause
    : new ProcessorFailed({
        processorId: id,
        hook,
        message: `Processor "${id}" failed in ${hook}, and what it has not checked does not pass: ${messageOf(cause)}`,
        cause
      })
}

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
  Effect.catchAllCause(callUser(call), cause => Effect.fail(failedIn(processor, hook, squash(cause))))

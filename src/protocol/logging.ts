/** Lines of the log. A logger that throws, or a reason that cannot be printed, changes nothing for what logs. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { inspectable } from "./foreignValue.js"
import { messageOf } from "./safeJson.js"

type Write = (...message: ReadonlyArray<unknown>) => Effect.Effect<void>

const printable = (reason: unknown): unknown => {
  const cause = Cause.isCause(reason) ? reason : Cause.fail(inspectable(reason))
  try {
    Cause.pretty(cause, { renderErrorCause: true })
    return reason
  } catch {
    return Cause.fail(messageOf(Cause.squash(cause)))
  }
}

const line =
  (write: Write) =>
  (text: string, reason?: unknown): Effect.Effect<void> =>
    Effect.suspend(() => (reason === undefined ? write(text) : write(text, printable(reason)))).pipe(
      Effect.catchAllDefect(() => Effect.void)
    )

export const logDebug = line(Effect.logDebug)
export const logWarning = line(Effect.logWarning)
export const logError = line(Effect.logError)

/** Does something whose failure changes nothing, and is logged. */
export const ignoreLogged = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<void, never, R> =>
  Effect.matchCauseEffect(effect, {
    onFailure: cause => logDebug("A failure was ignored.", cause),
    onSuccess: () => Effect.void
  })

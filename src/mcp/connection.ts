/**
 * A connection to one server, until its scope ends. Requests go through one session. A server over HTTP may forget a
 * session, above all when it starts again: the first request that is refused for it opens another one, once for all of
 * them, and is sent again; the server refused it unread, so nothing happens twice. A request whose answer is cut off may
 * have had its effect: it is sent again, once, only when it is repeatable.
 */
import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import * as SynchronizedRef from "effect/SynchronizedRef"
import { isCutOff, isForgotten, lostSession, requestFailed } from "./failures.js"
import { McpError } from "./McpError.js"
import * as Session from "./session.js"
import { canOpenAgain, type Settings } from "./settings.js"

interface RequestOptions {
  readonly onProgress?: (progress: Session.Progress) => void
  /** Whether the request may be sent again although the server may have handled it. Default false. */
  readonly isRepeatable?: boolean
}

export interface Connection {
  readonly settings: Settings
  /** How its tools are to be used, in the server's words, for the instructions of an agent. */
  readonly instructions: string | undefined
  /** Whether the server has tools at all. */
  readonly hasTools: boolean
  /**
   * Sends a request. Interruption cancels it at the server. Fails with reason `request`, `timeout` or `closed`, and with
   * `connect` when a new session is needed and cannot be opened.
   */
  readonly request: (
    method: Session.Method,
    params: { readonly [key: string]: unknown },
    options?: RequestOptions
  ) => Effect.Effect<{ readonly [key: string]: unknown }, McpError>
  /** Closes the connection before its scope does. */
  readonly close: Effect.Effect<void>
}

interface Opened {
  readonly session: Session.Session
  readonly close: Effect.Effect<void>
}

/** Opens a connection, which the scope closes. When that fails or is interrupted, nothing is left open. */
export const open = Effect.fnUntraced(function* (settings: Settings) {
  const scope = yield* Effect.scope
  // A later session logs as the first one does, whichever call opens it.
  const runtime = yield* Effect.runtime<never>()
  const log = (line: Effect.Effect<void>): void => void Runtime.runFork(runtime)(line)
  const openSession = Effect.uninterruptibleMask(restore =>
    Effect.gen(function* () {
      const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      const close = Scope.close(own, Exit.void)
      const session = yield* restore(Scope.extend(Session.open(settings, log), own)).pipe(
        Effect.onError(() => close)
      )
      return { session, close } satisfies Opened
    })
  )
  const current = yield* SynchronizedRef.make<Opened>(yield* openSession)

  /** The session that follows a lost one. The calls that still wait in the lost one fail. */
  const after = (lost: Opened) =>
    SynchronizedRef.updateAndGetEffect(current, opened =>
      opened === lost
        ? Effect.tap(openSession, () => Effect.forkIn(lost.close, scope))
        : Effect.succeed(opened)
    )

  const isLost = (opened: Opened) =>
    Effect.map(SynchronizedRef.get(current), now => now !== opened && opened.session.isClosed())

  const request: Connection["request"] = (method, params, { isRepeatable = false, onProgress } = {}) => {
    const send = (opened: Opened) =>
      opened.session
        .request(method, params, onProgress)
        .pipe(
          Effect.catchAll(cause =>
            Effect.flatMap(isLost(opened), lost => Effect.fail(lost ? lostSession(settings, cause) : cause))
          )
        )
    const sendOnce = Effect.flatMap(SynchronizedRef.get(current), opened =>
      send(opened).pipe(
        Effect.catchIf(
          cause => canOpenAgain(settings.address) && opened.session.id() !== undefined && isForgotten(cause),
          () => Effect.flatMap(after(opened), send)
        )
      )
    )
    return sendOnce.pipe(
      Effect.catchIf(
        cause => isRepeatable && isCutOff(cause),
        () => sendOnce
      ),
      Effect.mapError(cause => (cause instanceof McpError ? cause : requestFailed(settings, cause)))
    )
  }

  const { hasTools, instructions } = (yield* SynchronizedRef.get(current)).session
  const connection: Connection = {
    settings,
    instructions,
    hasTools,
    request,
    close: Effect.flatMap(SynchronizedRef.get(current), ({ close }) => close)
  }
  return connection
})

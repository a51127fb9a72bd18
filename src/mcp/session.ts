/** One session with a server: the transport, the first handshake, and requests; closed with its scope. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { logDebug, logWarning } from "../protocol/logging.js"
import { messageOf } from "../protocol/safeJson.js"
import { oneLine } from "../tool/schemaIssues.js"
import { connectFailed, sentence, timedOut } from "./failures.js"
import { Link } from "./link.js"
import { loadClient, loadTypes, transportTo } from "./sdk.js"
import type { Settings } from "./settings.js"
import { lastLines } from "./standardError.js"

/** What a server reports of a call that runs. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export type Method = "tools/list" | "tools/call"

export interface Session {
  /** How its tools are to be used, in the server's words, for the instructions of an agent. */
  readonly instructions: string | undefined
  /** Whether the server has tools at all. */
  readonly hasTools: boolean
  /** The id that the server gave it; `undefined` where the server keeps no sessions. */
  readonly id: () => string | undefined
  /** Whether it was closed from this side. */
  readonly isClosed: () => boolean
  /** Sends a request. Interruption cancels it at the server. Fails with the SDK's own failure. */
  readonly request: (
    method: Method,
    params: { readonly [key: string]: unknown },
    onProgress?: (progress: Progress) => void
  ) => Effect.Effect<{ readonly [key: string]: unknown }, unknown>
}

/** The longest time that a timer takes, for requests that are timed here. */
const noTimeout = 2 ** 31 - 1

/** Also where nothing else can be interrupted. */
const atMostOneSecond = (wait: () => Promise<unknown>): Effect.Effect<unknown> =>
  Effect.timeoutOption(Effect.interruptible(Effect.ignore(Effect.tryPromise(wait))), "1 second")

/** Ends the session of a server that keeps one. */
const sayGoodbye = (transport: object): Effect.Effect<unknown> =>
  Effect.suspend(() => {
    if (!Predicate.hasProperty(transport, "terminateSession")) return Effect.void
    const { terminateSession } = transport
    return Predicate.isFunction(terminateSession)
      ? atMostOneSecond(async () => terminateSession.call(transport))
      : Effect.void
  })

/** Opens a session, which the scope closes. Fails with `McpError` of reason `connect` or `timeout`. */
export const open = Effect.fnUntraced(function* (
  settings: Settings,
  log: (line: Effect.Effect<void>) => void
) {
  const written = lastLines()
  const { Client } = yield* loadClient
  const { ResultSchema } = yield* loadTypes
  const transport = yield* transportTo(settings.address, line => {
    written.add(line)
    log(logDebug(sentence(`${settings.who} writes: ${line}`)))
  })
  const link = new Link(transport)
  const client = new Client(settings.clientInfo, { capabilities: {} })
  client.onerror = error => log(logDebug(sentence(`${settings.who}: ${oneLine(messageOf(error))}`)))
  client.onclose = () => {
    if (link.isLeft) return
    log(logWarning(sentence(`${settings.who} closed the connection.`), ...[written.read() || []].flat()))
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => link.leave()).pipe(
      Effect.zipRight(sayGoodbye(transport)),
      Effect.zipRight(Effect.promise(() => link.close())),
      // A process that had to be killed needs a moment; what it has started may hold its output open for longer.
      Effect.zipRight(atMostOneSecond(() => link.ended))
    )
  )
  yield* Effect.tryPromise({
    try: () => client.connect(link, { timeout: noTimeout }),
    catch: cause => connectFailed(settings, cause)
  }).pipe(
    Effect.timeoutFail({
      duration: settings.connectTimeout,
      onTimeout: () => timedOut(settings, settings.connectTimeout)
    })
  )
  const session: Session = {
    instructions: client.getInstructions(),
    hasTools: client.getServerCapabilities()?.tools !== undefined,
    id: () => link.sessionId,
    isClosed: () => link.isLeft,
    request: (method, params, onProgress) =>
      Effect.tryPromise({
        try: signal =>
          client.request({ method, params }, ResultSchema, {
            signal,
            timeout: settings.timeout,
            resetTimeoutOnProgress: true,
            ...(onProgress === undefined ? {} : { onprogress: onProgress })
          }),
        catch: cause => cause
      })
  }
  return session
})

/** A connection to one server: opened in a scope, asked, and closed with the scope. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Runtime from "effect/Runtime"
import { logDebug, logWarning } from "../protocol/logging.js"
import { messageOf } from "../protocol/safeJson.js"
import { oneLine } from "../tool/schemaIssues.js"
import { connectFailed, requestFailed, sentence, timedOut } from "./failures.js"
import { Link } from "./link.js"
import type { McpError } from "./McpError.js"
import { loadClient, loadTypes, transportTo } from "./sdk.js"
import type { Settings } from "./settings.js"
import { lastLines } from "./standardError.js"

/** What a server says of a call that is going on. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export interface Connection {
  readonly settings: Settings
  /** What the server says of its use, for the instructions of an agent. */
  readonly instructions: string | undefined
  /** Whether the server has tools at all. */
  readonly hasTools: boolean
  /** Asks the server. Interruption cancels the request there. Fails with reason `request`, `timeout` or `closed`. */
  readonly request: (
    method: "tools/list" | "tools/call",
    params: { readonly [key: string]: unknown },
    onProgress?: (progress: Progress) => void
  ) => Effect.Effect<{ readonly [key: string]: unknown }, McpError>
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

/**
 * Opens a connection and hands it to `begin`, which asks the first questions; what comes before its end is the first
 * contact: when that fails or is interrupted, the transport is closed at once.
 */
export const open = Effect.fnUntraced(function* <A>(
  settings: Settings,
  begin: (connection: Connection) => Effect.Effect<A, McpError>
) {
  const runtime = yield* Effect.runtime<never>()
  const log = (line: Effect.Effect<void>): void => void Runtime.runFork(runtime)(line)
  const said = lastLines()
  const { Client } = yield* loadClient
  const { ResultSchema } = yield* loadTypes
  const transport = yield* transportTo(settings.address, line => {
    said.add(line)
    log(logDebug(sentence(`${settings.who} writes: ${line}`)))
  })
  const link = new Link(transport)
  const client = new Client(settings.clientInfo, { capabilities: {} })
  client.onerror = error => log(logDebug(sentence(`${settings.who}: ${oneLine(messageOf(error))}`)))
  client.onclose = () => {
    if (link.isLeft) return
    log(logWarning(sentence(`${settings.who} closed the connection.`), ...[said.read() || []].flat()))
  }
  const close = yield* Effect.sync(() => link.leave()).pipe(
    Effect.zipRight(sayGoodbye(transport)),
    Effect.zipRight(Effect.promise(() => link.close())),
    // A process that had to be killed needs a moment; what it has started may hold its output open for longer.
    Effect.zipRight(atMostOneSecond(() => link.ended)),
    Effect.once
  )
  yield* Effect.addFinalizer(() => close)
  const shakeHands = Effect.tryPromise({
    try: () => client.connect(link, { timeout: noTimeout }),
    catch: cause => connectFailed(settings, cause)
  }).pipe(
    Effect.timeoutFail({
      duration: settings.connectTimeout,
      onTimeout: () => timedOut(settings, settings.connectTimeout)
    })
  )

  const request: Connection["request"] = (method, params, onProgress) =>
    Effect.tryPromise({
      try: signal =>
        client.request({ method, params }, ResultSchema, {
          signal,
          timeout: settings.timeout,
          resetTimeoutOnProgress: true,
          ...(onProgress === undefined ? {} : { onprogress: onProgress })
        }),
      catch: cause => requestFailed(settings, cause)
    })

  return yield* shakeHands.pipe(
    Effect.flatMap(() =>
      begin({
        settings,
        instructions: client.getInstructions(),
        hasTools: client.getServerCapabilities()?.tools !== undefined,
        request
      })
    ),
    Effect.onError(() => close)
  )
})

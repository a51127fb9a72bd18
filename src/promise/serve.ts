/**
 * A container over HTTP.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { routerOfHost, toWebHandler } from "../http/Http.js"
import { type NodeRequest, type NodeResponse, toNodeHandler } from "../http/nodeBridge.js"
import { type RunLogLimits, type Settings, type StreamLimits, settingKinds } from "../http/settings.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { squash } from "../protocol/foreignValue.js"
import { checkOptions, id, isOptions, type Kind, read, wholeNumber, wrongValue } from "../protocol/options.js"
import { messageOf } from "../protocol/safeJson.js"
import { maybeTime, optionsOf, said } from "./background.js"
import { Eddy } from "./Eddy.js"
import { fromPromise } from "./fromPromise.js"
import { hostOf } from "./httpHost.js"

/** Who sends a request, or nobody we know. @since 0.1.0 @category models */
type Authenticate = NonNullable<Settings["authenticate"]>

/** How a container is served. Times are milliseconds. @since 0.1.0 @category models */
export interface HandlerOptions
  extends Omit<
    Settings,
    "authenticate" | "files" | "keepAlive" | "streams" | "runLog" | "onDisconnect" | "maxGrace"
  > {
  /**
   * Says who sends a request; `undefined`, or what it throws: nobody we know, and the answer is 401. Without it everybody is the
   * same principal, and sees everything.
   */
  readonly authenticate?: (
    credentials: Parameters<Authenticate>[0]
  ) => PrincipalOrNobody | Promise<PrincipalOrNobody>
  /**
   * Files and images that messages name by a URL. Default `refuse`. With `hosts` the server fetches them, from public addresses,
   * and the run is told their bytes.
   */
  readonly files?:
    | "refuse"
    | (Omit<FetchedFiles, "timeout"> & {
        /** For all files of one request. Default 20 000. */
        readonly timeoutMs?: number
      })
  /** A stream that is silent for so long says a comment. Default 15 000. */
  readonly keepAliveMs?: number
  /** How many streams may be open and for how long, and how many runs may go on without one. */
  readonly streams?: Omit<StreamLimits, "maxAge"> & {
    /** After that a stream ends with an error that says where to go on reading. Default 3 600 000. */
    readonly maxAgeMs?: number
  }
  /** What is kept of runs, so that readers come late and come back. */
  readonly runLog?: Omit<RunLogLimits, "maxAge"> & {
    /** How long a run can be read after its end. Default 300 000. */
    readonly maxAgeMs?: number
  }
  /** What becomes of a run whose last reader has left, unless its request says otherwise. Default `abort`. */
  readonly onDisconnect?: "abort" | "continue" | { readonly graceMs: number }
  /** The longest grace that a request may ask for. Default 300 000. */
  readonly maxGraceMs?: number
}

type FetchedFiles = Exclude<NonNullable<Settings["files"]>, "refuse">

type PrincipalOrNobody = Effect.Effect.Success<ReturnType<Authenticate>>

/** How a container is served by Node. @since 0.1.0 @category models */
export interface ServeOptions extends HandlerOptions {
  /** Default 0: any that is free, see `url`. */
  readonly port?: number
  /** Default `127.0.0.1`: this machine only. `0.0.0.0` for everybody, and then give `authenticate`. */
  readonly hostname?: string
}

/** A server that listens. @since 0.1.0 @category models */
export interface Serving {
  /** Where it listens, without the prefix. */
  readonly url: string
  /** Stops its runs and ends every stream, within a second unless thousands are open. The container goes on. */
  readonly close: () => Promise<void>
  /** `await using` closes it at the end of the block. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/**
 * Requests in, responses out. When the signal of a request fires, its reader has left, also in the middle of the response: the
 * run is left to its policy.
 *
 * @since 0.1.0
 * @category models
 */
export interface WebHandler {
  readonly handler: (request: Request) => Promise<Response>
  /**
   * The same as a listener of Node's `http` server, for it and for the frameworks on top of it. It reads the body itself: mount
   * it before whatever parses bodies. Settles when the response is sent, or the client has left.
   */
  readonly nodeHandler: (request: NodeRequest, response: NodeResponse) => Promise<void>
  /** Stops its runs and ends every stream. The container goes on. */
  readonly close: () => Promise<void>
  /** `await using` closes it at the end of the block. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** A container, of whatever agents. @since 0.1.0 @category models */
export type Served = Pick<Eddy, "agents" | "threads">

const { keepAlive: _keepAlive, maxGrace: _maxGrace, ...sameKinds } = settingKinds

const handlerKinds = {
  ...sameKinds,
  keepAliveMs: read,
  maxGraceMs: read
} satisfies Record<keyof HandlerOptions, Kind>

const listenKinds = { port: wholeNumber(0), hostname: id }

const streamFields = ["perPrincipal", "total", "maxAgeMs", "detachedPerPrincipal", "detachedTotal"] as const

const toDisconnect = (policy: HandlerOptions["onDisconnect"]): Settings["onDisconnect"] => {
  if (!isOptions(policy)) return policy
  const { graceMs } = optionsOf("onDisconnect", policy, ["graceMs"])
  const grace = maybeTime("onDisconnect.graceMs", graceMs)
  if (grace !== undefined) return { grace }
  throw new InvalidConfiguration({
    field: "onDisconnect",
    message: '`onDisconnect` is no policy. Give "abort", "continue" or { graceMs }.'
  })
}

const toFiles = (files: HandlerOptions["files"]): Settings["files"] => {
  if (!isOptions(files)) return files
  const { hosts, maxBytes, timeoutMs } = optionsOf("files", files, ["hosts", "maxBytes", "timeoutMs"])
  const timeout = maybeTime("files.timeoutMs", timeoutMs)
  if (hosts === undefined) throw wrongValue("files.hosts", hosts, 'Give for example ["images.example"].')
  return { hosts, ...said<Omit<FetchedFiles, "hosts">>({ maxBytes, timeout }) }
}

const toSettings = (options: HandlerOptions): Settings => {
  checkOptions("The server", options, { kinds: handlerKinds })
  const { authenticate, files, keepAliveMs, maxGraceMs, onDisconnect, runLog, streams, ...rest } = options
  const limits = streams === undefined ? undefined : optionsOf("streams", streams, streamFields)
  const log =
    runLog === undefined
      ? undefined
      : optionsOf("runLog", runLog, ["maxChunks", "maxBytes", "maxAgeMs", "maxRuns", "maxTotalBytes"])
  return said<Settings>({
    ...rest,
    authenticate:
      authenticate && (credentials => fromPromise<PrincipalOrNobody>(() => authenticate(credentials))),
    files: toFiles(files),
    keepAlive: maybeTime("keepAliveMs", keepAliveMs),
    maxGrace: maybeTime("maxGraceMs", maxGraceMs),
    onDisconnect: toDisconnect(onDisconnect),
    streams:
      limits &&
      said<StreamLimits>({
        perPrincipal: limits.perPrincipal,
        total: limits.total,
        maxAge: maybeTime("streams.maxAgeMs", limits.maxAgeMs),
        detachedPerPrincipal: limits.detachedPerPrincipal,
        detachedTotal: limits.detachedTotal
      }),
    runLog:
      log &&
      said<RunLogLimits>({
        maxChunks: log.maxChunks,
        maxBytes: log.maxBytes,
        maxAge: maybeTime("runLog.maxAgeMs", log.maxAgeMs),
        maxRuns: log.maxRuns,
        maxTotalBytes: log.maxTotalBytes
      })
  })
}

/** Makes something in a scope of its own, where the container runs, and gives it with how to close it. */
const open = async <A, E>(
  eddy: Served,
  make: Effect.Effect<A, E, Scope.Scope>
): Promise<readonly [made: A, close: () => Promise<void>]> => {
  const scope = Effect.runSync(Scope.make())
  const closing = Effect.suspend(() => Scope.close(scope, Exit.void))
  const made = await Eddy.within(
    eddy,
    Effect.exit(Scope.extend(make, scope)).pipe(
      Effect.tap(exit => (Exit.isFailure(exit) ? closing : Effect.void))
    )
  )
  if (Exit.isFailure(made)) throw squash(made.cause)
  let closed: Promise<void> | undefined
  return [
    made.value,
    () => {
      closed ??= Effect.runPromise(closing)
      return closed
    }
  ]
}

const routesOf = (eddy: Served, settings: Settings) =>
  Effect.flatMap(hostOf(eddy.agents), host => routerOfHost(host, settings))

/** Loaded by whoever serves: other servers do without Node's. */
const nodeServer = Effect.tryPromise({
  try: () => import("../http/nodeServer.js"),
  catch: cause =>
    new InvalidConfiguration({
      field: "serve",
      message: `\`serve\` needs @effect/platform-node, which cannot be loaded (${messageOf(cause)}). Run: npm install @effect/platform-node`
    })
})

/**
 * Serves a container with Node, from one call. Rejects with `InvalidConfiguration` when an option cannot work, and with the
 * server's own error when it cannot listen. Needs the packages `@effect/platform` and `@effect/platform-node`.
 *
 * @since 0.1.0
 * @category serving
 */
export const serve = async (eddy: Served, options: ServeOptions = {}): Promise<Serving> => {
  checkOptions("The server", options, { kinds: { ...handlerKinds, ...listenKinds } })
  const { hostname = "127.0.0.1", port = 0, ...handlerOptions } = options
  const routes = routesOf(eddy, toSettings(handlerOptions))
  const [url, close] = await open(
    eddy,
    Effect.flatMap(nodeServer, ({ listen }) => listen(routes, { hostname, port }))
  )
  return { url, close, [Symbol.asyncDispose]: close }
}

/**
 * A container as a function from `Request` to `Response`, for a server that speaks the web's own types. Rejects with
 * `InvalidConfiguration`. Needs the package `@effect/platform`.
 *
 * @since 0.1.0
 * @category serving
 */
export const createHandler = async (eddy: Served, options: HandlerOptions = {}): Promise<WebHandler> => {
  const routes = routesOf(eddy, toSettings(options))
  const [handler, close] = await open(eddy, Effect.flatMap(routes, toWebHandler))
  return { handler, nodeHandler: toNodeHandler(handler), close, [Symbol.asyncDispose]: close }
}

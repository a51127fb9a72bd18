/**
 * Agents over HTTP: as routes of an application of `@effect/platform`, as a layer that serves them, and as a function from
 * `Request` to `Response` for other servers. Clients are those of `@mastra/client-js`, `EventSource`, or anything that reads
 * server-sent events.
 *
 * @since 0.1.0
 */
import * as HttpApp from "@effect/platform/HttpApp"
import type * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServer from "@effect/platform/HttpServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { checked } from "../agent/checkOptions.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { type Listed, refuseSharedIds } from "../protocol/options.js"
import { OpenStreams } from "./asked.js"
import type { Host } from "./Host.js"
import { type Agents, type AgentsRequirements, hostOf } from "./hostAgents.js"
import { leftWith } from "./nodeBridge.js"
import { appOf, routerOf } from "./router.js"
import { make as makeRuns } from "./runs.js"
import { type Settings, settingsOf } from "./settings.js"

export type {
  Host,
  HostAgent,
  HostCall,
  HostRunIds,
  HostRunOptions,
  HostSuspendedFilter,
  HostSuspendedRun,
  HostTasks
} from "./Host.js"
export type { Agents, AgentsRequirements } from "./hostAgents.js"
export type { Exposed } from "./masking.js"
export type {
  ClientOption,
  Credentials,
  FilePolicy,
  OnDisconnect,
  Principal,
  RunLogLimits,
  Settings,
  StreamLimits
} from "./settings.js"

/** What is served, and how. @since 0.1.0 @category models */
export interface Options<A extends Agents> extends Settings {
  /** By the name that their paths have: `/api/agents/<name>`. */
  readonly agents: A
}

const read = (settings: Settings) =>
  Effect.try({
    try: () => settingsOf(settings),
    catch: cause =>
      cause instanceof InvalidConfiguration
        ? cause
        : new InvalidConfiguration({ field: "options", message: String(cause) })
  })

/**
 * The routes of a host, for whoever has one. Runs belong to the scope: when it closes they are stopped, tell so, and every
 * stream is told its end. Fails with `InvalidConfiguration`, which names the option, when one cannot work.
 *
 * @since 0.1.0
 * @category constructors
 */
export const routerOfHost = (
  host: Host,
  options: Settings = {}
): Effect.Effect<HttpRouter.HttpRouter, InvalidConfiguration, Scope.Scope> =>
  Effect.gen(function* () {
    const settings = yield* read(options)
    const runs = yield* makeRuns(settings)
    return routerOf({ host, settings, runs, openStreams: new OpenStreams(settings) })
  })

/**
 * The routes of agents, to be put among others: `HttpRouter.concat(yield* Http.router({ agents }))`. A `ThreadStore` and
 * `BackgroundTasks` are used where they are provided. Runs belong to the scope, as with {@link routerOfHost}: close it before
 * the server, which waits for open streams.
 *
 * @since 0.1.0
 * @category constructors
 */
export const router = <const A extends Agents>(
  options: Options<A>
): Effect.Effect<HttpRouter.HttpRouter, InvalidConfiguration, AgentsRequirements<A> | Scope.Scope> => {
  const { agents, ...settings } = options
  const listed = Object.entries(agents).map(([name, agent]): Listed => [`agents.${name}`, agent])
  return checked(() => refuseSharedIds("agents", listed)).pipe(
    Effect.zipRight(hostOf(agents)),
    Effect.flatMap(host => routerOfHost(host, settings))
  )
}

/**
 * Serves the agents with the `HttpServer` that is provided, for example `NodeHttpServer.layer(createServer, { port: 3000 })`.
 * It ends before the server does, so that no stream holds that up.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = <const A extends Agents>(
  options: Options<A>
): Layer.Layer<never, InvalidConfiguration, AgentsRequirements<A> | HttpServer.HttpServer> =>
  Layer.scopedDiscard(Effect.flatMap(router(options), routes => HttpServer.serveEffect(appOf(routes))))

/**
 * A function from `Request` to `Response`, for servers that speak the web's own types. It works as long as the scope is open.
 * When the signal of a request fires, its reader has left, also in the middle of the response.
 *
 * @since 0.1.0
 * @category constructors
 */
export const webHandler = <const A extends Agents>(
  options: Options<A>
): Effect.Effect<
  (request: Request) => Promise<Response>,
  InvalidConfiguration,
  AgentsRequirements<A> | Scope.Scope
> => Effect.flatMap(router(options), toWebHandler)

/** The same of routes. When the signal of a request fires, its reader has left, before the response or after. @since 0.1.0 @category constructors */
export const toWebHandler = (
  routes: HttpRouter.HttpRouter
): Effect.Effect<(request: Request) => Promise<Response>> =>
  Effect.map(Effect.runtime<never>(), runtime => {
    const handler = HttpApp.toWebHandlerRuntime(runtime)(appOf(routes))
    return async (request: Request) => leftWith(await handler(request), request.signal)
  })

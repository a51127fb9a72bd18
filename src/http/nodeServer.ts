/** A server of Node that ends when it is told to, whoever still reads. */

import { createServer, type Server } from "node:http"
import type * as HttpRouter from "@effect/platform/HttpRouter"
import type { ServeError } from "@effect/platform/HttpServerError"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { appOf } from "./router.js"

/** Where a server listens. */
export interface Address {
  readonly port: number
  readonly hostname: string
}

/** Streams have been told their end by then. */
const closesWithin = 300

const closeConnections = (server: Server): Effect.Effect<void> =>
  Effect.sync(() => {
    server.closeIdleConnections()
    const timer = setTimeout(() => server.closeAllConnections(), closesWithin)
    server.once("close", () => clearTimeout(timer))
  })

const urlOf = (hostname: string, port: number): string =>
  `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`

/** Serves routes until the scope closes. The routes are made when the server listens, so that they end before it does. */
export const listen = <E, R>(
  routes: Effect.Effect<HttpRouter.HttpRouter, E, R>,
  { hostname, port }: Address
): Effect.Effect<string, E | ServeError, R | Scope.Scope> =>
  Effect.gen(function* () {
    const server = createServer()
    const http = yield* NodeHttpServer.make(() => server, { port, host: hostname })
    yield* Effect.addFinalizer(() => closeConnections(server))
    yield* http.serve(appOf(yield* routes))
    const { address } = http
    return urlOf(hostname, address._tag === "TcpAddress" ? address.port : port)
  })

/** The paths of a server, and what every request goes through. */
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { squash } from "../protocol/foreignValue.js"
import { logError } from "../protocol/logging.js"
import * as Agents from "./agentRoutes.js"
import * as AgUi from "./agUiRoutes.js"
import type { Asked, Handler, Server } from "./asked.js"
import * as Chat from "./chatRoutes.js"
import { preflight, withCors } from "./cors.js"
import { refuseCrossSite } from "./crossSite.js"
import * as OpenAi from "./openAiRoutes.js"
import { readBody, refuseParameters } from "./reading.js"
import { fromError, notFound, Refusal } from "./refusal.js"
import { refused } from "./responses.js"
import * as Runs from "./runRoutes.js"
import type { Principal, ServerSettings } from "./settings.js"
import * as Tasks from "./taskRoutes.js"
import * as Threads from "./threadRoutes.js"

/** A path, and who answers. */
type Route = readonly [method: "GET" | "POST" | "PATCH" | "DELETE", path: `/${string}`, handler: Handler]

const routes: ReadonlyArray<Route> = [
  ["GET", "/agents", Agents.list],
  ["GET", "/agents/:agentId", Agents.details],
  ["POST", "/agents/:agentId/generate", Agents.generate],
  ["POST", "/agents/:agentId/stream", Agents.stream],
  ["POST", "/agents/:agentId/stream-until-idle", Agents.streamUntilIdle],
  ["POST", "/agents/:agentId/resume-stream", Agents.resumeStream],
  ["POST", "/agents/:agentId/resume-stream-until-idle", Agents.resumeStreamUntilIdle],
  ["POST", "/agents/:agentId/approve-tool-call", Agents.approve],
  ["POST", "/agents/:agentId/decline-tool-call", Agents.decline],
  ["POST", "/agents/:agentId/approve-tool-call-generate", Agents.approveGenerate],
  ["POST", "/agents/:agentId/decline-tool-call-generate", Agents.declineGenerate],
  ["GET", "/agents/:agentId/suspended-runs", Agents.suspendedRuns],
  ["POST", "/agents/:agentId/observe", Runs.observe],
  ["GET", "/runs/:runId/events", Runs.readEvents],
  ["POST", "/runs/:runId/stop", Runs.stop],
  ["GET", "/background-tasks", Tasks.list],
  ["GET", "/background-tasks/stream", Tasks.stream],
  ["GET", "/background-tasks/:taskId", Tasks.get],
  ["POST", "/background-tasks/:taskId/cancel", Tasks.cancel],
  ["POST", "/background-tasks/:taskId/resume", Tasks.resume],
  ["GET", "/memory/threads", Threads.list],
  ["POST", "/memory/threads", Threads.create],
  ["GET", "/memory/threads/:threadId", Threads.get],
  ["PATCH", "/memory/threads/:threadId", Threads.update],
  ["DELETE", "/memory/threads/:threadId", Threads.remove],
  ["GET", "/memory/threads/:threadId/messages", Threads.messages],
  ["POST", "/agents/:agentId/chat", Chat.post],
  ["GET", "/agents/:agentId/chat/:chatId/stream", Chat.replay],
  ["POST", "/agents/:agentId/ag-ui", AgUi.post],
  ["POST", "/v1/chat/completions", OpenAi.chat],
  ["POST", "/v1/responses", OpenAi.responses],
  ["GET", "/v1/models", OpenAi.models],
  ["GET", "/v1/models/:agentId", OpenAi.model]
]

const unauthorized = new Refusal({ status: 401, message: "Invalid or expired token" })

/** Who sends the request: known before anything of its body is read. */
const authenticated = Effect.fnUntraced(function* (
  { authenticate }: ServerSettings,
  { headers, method, url }: HttpServerRequest.HttpServerRequest
) {
  if (authenticate === undefined) return undefined
  const principal = yield* Effect.catchAll(
    Effect.suspend(() => authenticate({ method, url, headers })),
    () => unauthorized
  )
  return isPrincipal(principal) ? principal : yield* unauthorized
})

/** The host that a request was sent to. */
const hostOf = ({ headers, originalUrl }: HttpServerRequest.HttpServerRequest): string | undefined =>
  headers["host"] ?? (URL.canParse(originalUrl) ? new URL(originalUrl).host : undefined)

/** A hook in JavaScript may give anything: one without a resource would see nothing, or everything. */
const isPrincipal = (principal: Principal | undefined): principal is Principal =>
  typeof principal?.id === "string" &&
  principal.id !== "" &&
  typeof principal.resource === "string" &&
  principal.resource !== ""

const queryOf = (url: string): URLSearchParams => {
  const place = url.indexOf("?")
  return new URLSearchParams(place < 0 ? "" : url.slice(place + 1))
}

/** What a refusal is to the clients of a path. */
type Refused = typeof refused

/** OpenAI's clients read errors of their own shape, whoever refuses. */
const refusedOf = (path: string): Refused => (path.startsWith("/v1/") ? OpenAi.refused : refused)

/** What a request fails with, as a response. What is the server's own fault is for its log. */
const failed = (settings: ServerSettings, refusedAs: Refused, cause: Cause.Cause<unknown>) => {
  // Nobody is there any more.
  if (Cause.isInterruptedOnly(cause))
    return Effect.failCause(Cause.empty).pipe(Effect.zipRight(Effect.interrupt))
  const isDefect = Cause.failureOption(cause)._tag === "None"
  const refusal = isDefect
    ? new Refusal({ status: 500, message: "The server could not do this." })
    : fromError(squash(cause), settings.expose.errors === true)
  const said = refusedAs(refusal)
  // Of a body that was not read to its end the rest would be taken for the next request.
  const response = Effect.succeed(
    refusal.status === 413 || refusal.status === 408
      ? HttpServerResponse.setHeader(said, "connection", "close")
      : said
  )
  return refusal.status === 500 || isDefect
    ? Effect.zipRight(logError("A request could not be answered.", cause), response)
    : response
}

const answer = (
  server: Server,
  path: string,
  handler: Handler
): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext | Scope.Scope
> =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const { params } = yield* HttpRouter.RouteContext
    const { settings } = server
    const { headers, method, url } = request
    const response = yield* Effect.gen(function* () {
      const foreign = refuseCrossSite({ method, headers, host: hostOf(request) }, settings.cors)
      if (foreign !== undefined) return yield* foreign
      const principal = yield* authenticated(settings, request)
      const query = queryOf(url)
      yield* refuseParameters(params, query)
      const asked: Asked = {
        ...server,
        principal,
        resource: principal?.resource,
        params,
        query,
        headers,
        body: method === "GET" ? {} : yield* readBody(request, settings.maxBodyBytes)
      }
      return yield* handler(asked)
    }).pipe(Effect.catchAllCause(cause => failed(settings, refusedOf(path), cause)))
    return withCors(response, headers, settings.cors)
  })

/** A router of every path. */
export const routerOf = (server: Server): HttpRouter.HttpRouter => {
  const known = routes.map(([method, path, handler]) =>
    HttpRouter.makeRoute(method, path, answer(server, path, handler))
  )
  // Of paths that nobody answers, and of other methods of those that somebody does.
  const nowhere = (path: `/${string}`) => {
    const unanswered = answer(server, path, () => notFound("Route"))
    const handler = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, method }) =>
      method === "OPTIONS" ? Effect.succeed(preflight(headers, server.settings.cors)) : unanswered
    )
    return HttpRouter.makeRoute("*", path, handler)
  }
  return HttpRouter.fromIterable([...known, nowhere("/v1/*"), nowhere("/*"), nowhere("/")]).pipe(
    HttpRouter.prefixAll(server.settings.prefix)
  )
}

/** What a router does not even look for, a path that cannot be decoded for example, is refused like what it does not find. */
export const appOf = (routes: HttpRouter.HttpRouter) =>
  Effect.catchTag(routes, "RouteNotFound", () => Effect.succeed(refused(notFound("Route"))))

/** What browsers are told of a server: nothing, but for the origins that it names. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import type { ServerSettings } from "./settings.js"

type Headers = Readonly<Record<string, string | undefined>>

const allowedHeaders =
  "content-type, authorization, last-event-id, x-on-disconnect, x-requested-with, x-stainless-arch, x-stainless-lang, x-stainless-os, x-stainless-package-version, x-stainless-retry-count, x-stainless-runtime, x-stainless-runtime-version, x-stainless-timeout"

const originOf = (headers: Headers, cors: NonNullable<ServerSettings["cors"]>): string | undefined => {
  const { origin } = headers
  return origin !== undefined && cors.origins.has(origin) ? origin : undefined
}

/** The answer to the question whether a browser may ask; 404 for whoever may not. */
export const preflight = (
  headers: Headers,
  cors: ServerSettings["cors"]
): HttpServerResponse.HttpServerResponse => {
  const origin = cors === undefined ? undefined : originOf(headers, cors)
  if (cors === undefined || origin === undefined) return HttpServerResponse.empty({ status: 404 })
  return withCors(
    HttpServerResponse.empty({
      status: 204,
      headers: {
        "access-control-allow-methods": "GET, POST, PATCH, DELETE",
        "access-control-allow-headers": allowedHeaders,
        "access-control-max-age": "600"
      }
    }),
    headers,
    cors
  )
}

/** A response that the page of an allowed origin may read. */
export const withCors = (
  response: HttpServerResponse.HttpServerResponse,
  headers: Headers,
  cors: ServerSettings["cors"]
): HttpServerResponse.HttpServerResponse => {
  if (cors === undefined) return response
  const origin = originOf(headers, cors)
  const varied = HttpServerResponse.setHeader(response, "vary", "origin")
  if (origin === undefined) return varied
  return HttpServerResponse.setHeaders(varied, {
    "access-control-allow-origin": origin,
    "access-control-expose-headers": "x-run-id",
    ...(cors.credentials ? { "access-control-allow-credentials": "true" } : {})
  })
}

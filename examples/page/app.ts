/**
 * A page and the agents that it talks to, as one application: the routes of eddy among those that serve the page's files. The
 * browser gets plain HTML, CSS and JavaScript modules; there is nothing to build.
 */
import { fileURLToPath } from "node:url"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Http } from "eddy/http"
import { Effect, Record } from "effect"

/** The files of the page, by their path. There are no others. */
const files: Readonly<Record<`/${string}`, string>> = {
  "/": "index.html",
  "/page.css": "page.css",
  "/entries.css": "entries.css",
  "/timeline.css": "timeline.css",
  "/icon.svg": "icon.svg",
  "/main.js": "main.js",
  "/client.js": "client.js",
  "/conversation.js": "conversation.js",
  "/answer.js": "answer.js",
  "/storage.js": "storage.js",
  "/timeline.js": "timeline.js",
  "/view.js": "view.js"
}

/** Nothing from elsewhere, nothing inline, and in no frame of anybody else. */
const headers = {
  "content-security-policy":
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
  "cache-control": "no-cache",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

const fileAt = (name: string) =>
  HttpServerResponse.file(fileURLToPath(new URL(name, import.meta.url)), { headers })

/**
 * Routes for the `HttpServer` of an application. Runs go on when a reader leaves, and are kept for readers that come back. Whoever
 * reaches the server is the one visitor: where there are more, give `authenticate`.
 */
export const app = <const A extends Http.Agents>(agents: A) =>
  Effect.gen(function* () {
    const api = yield* Http.router({ agents, onDisconnect: "continue", runLog: { maxAge: "1 hour" } })
    const page = Record.toEntries(files).map(([path, name]) =>
      HttpRouter.makeRoute("GET", path, fileAt(name))
    )
    return HttpRouter.fromIterable(page).pipe(HttpRouter.concat(api))
  })

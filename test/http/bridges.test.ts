/**
 * Servers that others make, with the handlers that one makes of a container: each starts a run, ends its stream, and stops the run
 * of a client that leaves. Express, Fastify and Hono stand in `test/clients`: where they are not installed they are skipped.
 */
import { existsSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createHandler, type WebHandler } from "eddy/http"
import { Eddy, InMemoryStore } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it, onTestFinished } from "vitest"
import { memoryLogger } from "../support/readers.js"
import { agentWith, chunksOf, post, readerOf, readUntil, saying, types } from "./kit.js"

const { hang, text } = ScriptedModel

type Listener = (request: IncomingMessage, response: ServerResponse) => unknown

/** Makes a server of the handlers, as the README says. */
type Recipe = (web: WebHandler) => Promise<Server>

const folder = new URL("../clients/node_modules/", import.meta.url)

const entries = {
  express: "express/index.js",
  fastify: "fastify/fastify.js",
  hono: "hono/dist/index.js",
  honoNode: "@hono/node-server/dist/index.mjs"
} as const

const isThere = (...names: ReadonlyArray<keyof typeof entries>): boolean =>
  names.every(name => existsSync(new URL(entries[name], folder)))

const load = (name: keyof typeof entries): Promise<unknown> => import(new URL(entries[name], folder).href)

interface ExpressModule {
  readonly default: () => { readonly use: (path: string, listener: Listener) => void } & Listener
}

interface FastifyReply {
  readonly raw: ServerResponse
  readonly hijack: () => void
}

interface FastifyModule {
  readonly default: () => {
    readonly server: Server
    readonly removeAllContentTypeParsers: () => void
    readonly addContentTypeParser: (
      type: string,
      parse: (request: unknown, payload: unknown, done: (error: null) => void) => void
    ) => void
    readonly all: (
      path: string,
      handle: (request: { readonly raw: IncomingMessage }, reply: FastifyReply) => unknown
    ) => void
    readonly ready: () => Promise<unknown>
  }
}

interface HonoModule {
  readonly Hono: new () => {
    readonly fetch: (request: Request) => unknown
    readonly all: (
      path: string,
      handle: (context: { readonly req: { readonly raw: Request } }) => unknown
    ) => void
  }
}

interface HonoNodeModule {
  readonly createAdaptorServer: (options: { readonly fetch: unknown }) => Server
}

const recipes: ReadonlyArray<readonly [name: string, isThere: boolean, recipe: Recipe]> = [
  [
    "node:http",
    true,
    async ({ nodeHandler }) => createServer((request, response) => void nodeHandler(request, response))
  ],
  [
    "Express",
    isThere("express"),
    async ({ nodeHandler }) => {
      const { default: express } = (await load("express")) as ExpressModule
      const app = express()
      app.use("/api", nodeHandler)
      return createServer((request, response) => void app(request, response))
    }
  ],
  [
    "Fastify",
    isThere("fastify"),
    async ({ nodeHandler }) => {
      const { default: fastify } = (await load("fastify")) as FastifyModule
      const app = fastify()
      app.removeAllContentTypeParsers()
      app.addContentTypeParser("*", (_request, _payload, done) => done(null))
      app.all("/api/*", (request, reply) => {
        reply.hijack()
        return nodeHandler(request.raw, reply.raw)
      })
      await app.ready()
      return app.server
    }
  ],
  [
    "Hono",
    isThere("hono", "honoNode"),
    async ({ handler }) => {
      const { Hono } = (await load("hono")) as HonoModule
      const { createAdaptorServer } = (await load("honoNode")) as HonoNodeModule
      const app = new Hono()
      app.all("/api/*", context => handler(context.req.raw))
      return createAdaptorServer({ fetch: app.fetch })
    }
  ]
]

const latch = (): { readonly promise: Promise<void>; readonly resolve: () => void } => {
  let resolve = (): void => undefined
  const promise = new Promise<void>(done => {
    resolve = done
  })
  return { promise, resolve: () => resolve() }
}

/** Handlers of an agent that answers, and then one that never ends; `left` is done when a run is stopped. */
const handlers = async () => {
  const { promise: left, resolve: onAbort } = latch()
  const turns = [saying("Hello."), [...text("endless"), hang], [...text("endless"), hang]]
  const helper = agentWith(turns, { defaultOptions: { onAbort: () => onAbort() } })
  const eddy = new Eddy({ agents: { helper }, storage: new InMemoryStore(), logger: memoryLogger() })
  const web = await createHandler(eddy)
  onTestFinished(async () => {
    await web.close()
    await eddy.shutdown()
  })
  return { left, web }
}

const listening = async (server: Server): Promise<string> => {
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(
    () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  )
  const address = server.address()
  return typeof address === "object" && address !== null ? `http://127.0.0.1:${address.port}/api` : ""
}

describe.each([...recipes])("a server of %s", (_, isHere, recipe) => {
  it.skipIf(!isHere)("answers, streams, and stops the run of a client that leaves", async () => {
    const { left, web } = await handlers()
    const api = await listening(await recipe(web))
    const agents = await fetch(`${api}/agents`)
    expect([agents.status, await agents.json()]).toEqual([200, { helper: { id: "helper", name: "helper" } }])
    const whole = await post(`${api}/agents/helper/stream`, { messages: "Hi" })
    expect(whole.headers.get("content-type")).toContain("text/event-stream")
    expect(types(chunksOf(await whole.text())).at(-1)).toBe("finish")
    expect((await post(`${api}/agents/helper/stream`, { messages: 1 })).status).toBe(400)

    const leaving = new AbortController()
    const response = await post(`${api}/agents/helper/stream`, { messages: "Hi" }, {}, leaving.signal)
    await readUntil(readerOf(response), so => so.includes("endless"))
    leaving.abort()
    await left
  })
})

describe("the signal of a request", () => {
  const request = (signal: AbortSignal, headers: Readonly<Record<string, string>> = {}) =>
    new Request("http://x/api/agents/helper/stream", {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ messages: "Hi" }),
      signal
    })

  it("is the client's leaving, when the headers are sent too", async () => {
    const { left, web } = await handlers()
    await (await web.handler(request(new AbortController().signal))).text()
    const leaving = new AbortController()
    const response = await web.handler(request(leaving.signal))
    const reader = readerOf(response)
    await readUntil(reader, so => so.includes("endless"))
    leaving.abort()
    await left
    await expect(reader.read()).rejects.toThrow()
  })

  it("leaves the run to its policy", async () => {
    const { web } = await handlers()
    await (await web.handler(request(new AbortController().signal))).text()
    const leaving = new AbortController()
    const response = await web.handler(request(leaving.signal, { "x-on-disconnect": "continue" }))
    await readUntil(readerOf(response), so => so.includes("endless"))
    leaving.abort()
    const runId = response.headers.get("x-run-id") ?? ""
    const again = await web.handler(new Request(`http://x/api/runs/${runId}/events`))
    const told = await readUntil(readerOf(again), so => so.includes("endless"))
    expect(told).not.toContain('"type":"abort"')
  })
})

/** How a server is made and ends, on both faces. */

import { createServer } from "node:http"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServer from "@effect/platform/HttpServer"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Agent, BackgroundTasks, RunStore, TaskStore, ThreadStore, Tool } from "eddy"
import { createHandler, Http, serve } from "eddy/http"
import { Eddy } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Context, Effect, Either, Exit, Layer, Schema, Scope } from "effect"
import { describe, expect, it } from "vitest"
import { agentWith, calling, chunksOf, post, readerOf, readUntil, saying, served, types } from "./kit.js"

const { hang, text } = ScriptedModel

class Greeting extends Context.Tag("Greeting")<Greeting, string>() {}

const greet = Tool.make("greet", {
  description: "Greets.",
  input: Schema.Struct({}),
  execute: () => Greeting
})

const stores = Layer.mergeAll(ThreadStore.layerMemory, TaskStore.layerMemory, RunStore.layerMemory)

const services = Layer.merge(
  Layer.provideMerge(BackgroundTasks.layer({ enabled: true }), stores),
  Layer.succeed(Greeting, "Good day")
)

const greeter = (turns: ReadonlyArray<ScriptedModel.Turn>) =>
  Agent.make({ id: "greeter", model: ScriptedModel.make(turns), tools: [greet] })

const addressOf = Effect.map(HttpServer.HttpServer, ({ address }) =>
  address._tag === "TcpAddress" ? `http://127.0.0.1:${address.port}` : ""
)

describe("serving", () => {
  it("is a layer over the HttpServer of an application, with what agents need provided", async () => {
    const agent = greeter([calling("greet"), saying("Greeted."), [...text("endless"), hang]])
    const node = NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })
    const app = Layer.provideMerge(Http.layer({ agents: { agent } }), Layer.merge(services, node))
    const scope = Effect.runSync(Scope.make())
    const context = await Effect.runPromise(Layer.buildWithScope(app, scope))
    const url = await Effect.runPromise(Effect.provide(addressOf, context))
    const memory = { thread: "t", resource: "r" }
    const response = await post(`${url}/api/agents/agent/stream`, { messages: "Hello", memory })
    const chunks = chunksOf(await response.text())
    const result = chunks.find(({ type }) => type === "tool-result")
    expect(result?.payload["result"]).toBe("Good day")
    expect(await (await fetch(`${url}/api/memory/threads/t`)).json()).toMatchObject({ resourceId: "r" })

    const open = readerOf(await post(`${url}/api/agents/agent/stream`, { messages: "Hello" }))
    await readUntil(open, so => so.includes("endless"))
    const begun = performance.now()
    const rest = readUntil(open, () => false)
    await Effect.runPromise(Scope.close(scope, Exit.void))
    expect(types(chunksOf(await rest)).slice(-2)).toEqual(["abort", "finish"])
    expect(performance.now() - begun).toBeLessThan(6000)
  })

  it("is a router among others", async () => {
    const program = Effect.gen(function* () {
      const routes = yield* Http.router({ agents: { greeter: greeter([saying("Yes.")]) }, prefix: "/ai/v1" })
      const all = HttpRouter.empty.pipe(
        HttpRouter.get("/health", Effect.succeed(HttpServerResponse.text("well"))),
        HttpRouter.concat(routes)
      )
      const handler = yield* Http.toWebHandler(all)
      const health = yield* Effect.promise(() => handler(new Request("http://x/health")))
      const agents = yield* Effect.promise(() => handler(new Request("http://x/ai/v1/agents")))
      return [yield* Effect.promise(() => health.text()), yield* Effect.promise(() => agents.json())]
    })
    const answers = await Effect.runPromise(Effect.scoped(Effect.provide(program, services)))
    expect(answers).toEqual(["well", { greeter: { id: "greeter", name: "greeter" } }])
  })

  it("refuses two agents of one id by both names, and takes one that is listed twice", async () => {
    const one = greeter([])
    const make = (agents: Readonly<Record<string, typeof one>>) =>
      Effect.runPromise(Effect.scoped(Effect.provide(Effect.either(Http.router({ agents })), services)))
    const refused = await make({ one, again: one, other: greeter([]) })
    expect(Either.getLeft(refused)).toMatchObject({
      _tag: "Some",
      value: { _tag: "InvalidConfiguration", field: "agents.other" }
    })
    expect(JSON.stringify(refused)).toContain("`agents.one` and `agents.other`")
    expect(Either.isRight(await make({ one, again: one }))).toBe(true)
  })

  it("is a function from Request to Response", async () => {
    await using eddy = new Eddy({
      agents: { helper: agentWith([saying("Yes."), [...text("endless"), hang]]) }
    })
    await using web = await createHandler(eddy)
    const ask = (signal?: AbortSignal) =>
      web.handler(
        new Request("http://x/api/agents/helper/stream", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ messages: "Hello", runId: signal === undefined ? "one" : "two" }),
          ...(signal === undefined ? {} : { signal })
        })
      )
    const response = await ask()
    expect(response.headers.get("content-type")).toContain("text/event-stream")
    expect(chunksOf(await response.text()).at(-1)?.payload["output"]).toMatchObject({ text: "Yes." })

    const reader = readerOf(await ask(new AbortController().signal))
    await readUntil(reader, so => so.includes("endless"))
    await reader.cancel()
    const told = await web.handler(new Request("http://x/api/runs/two/events"))
    expect(types(chunksOf(await told.text())).slice(-2)).toEqual(["abort", "finish"])
    const memory = await web.handler(new Request("http://x/api/memory/threads"))
    expect(memory.status).toBe(404)
  })

  it("ends every stream within a second, and says so in each", async () => {
    const agent = agentWith([
      [...text("endless"), hang],
      [...text("endless"), hang]
    ])
    const { api, serving } = await served({ helper: agent })
    const tasks = readerOf(await fetch(`${api}/background-tasks/stream`))
    const runs = [1, 2].map(async () => {
      const reader = readerOf(await post(`${api}/agents/helper/stream`, { messages: "Hello" }))
      await readUntil(reader, so => so.includes("endless"))
      return { rest: readUntil(reader, () => false) }
    })
    const open = await Promise.all(runs)
    const begun = performance.now()
    await serving.close()
    expect(performance.now() - begun).toBeLessThan(1000)
    for (const { rest } of open) {
      const text = await rest
      expect(types(chunksOf(text)).slice(-2)).toEqual(["abort", "finish"])
      expect(text.endsWith("data: [DONE]\n\n")).toBe(true)
    }
    await readUntil(tasks, () => false)
  })

  it("refuses options that cannot work, by name", async () => {
    await using eddy = new Eddy({ agents: {} })
    const wrong: ReadonlyArray<readonly [object, string]> = [
      [{ prefix: "api" }, "prefix"],
      [{ keepAliveMs: 0 }, "keepAliveMs"],
      [{ keepAlive: 5 }, "keepAlive"],
      [{ maxBodyBytes: 0.5 }, "maxBodyBytes"],
      [{ streams: { most: 1 } }, "most"],
      [{ streams: { detachedPerPrincipal: 0 } }, "streams.detachedPerPrincipal"],
      [{ files: { hosts: ["a.example"], maxBytes: 0 } }, "files.maxBytes"],
      [{ files: { hosts: ["a.example"], timeoutMs: 0 } }, "files.timeoutMs"],
      [{ files: { hosts: ["https://a.example"] } }, "files.hosts"],
      [{ runLog: { maxChunks: 1 } }, "runLog.maxChunks"],
      [{ onDisconnect: "wait" }, "onDisconnect"],
      [{ cors: { origins: ["*"] } }, "cors.origins"],
      [{ clientOptions: ["clientTools"] }, "clientOptions"],
      [{ expose: { stacks: true } }, "stacks"]
    ]
    for (const [options, field] of wrong) {
      await expect(serve(eddy, options)).rejects.toMatchObject({ _tag: "InvalidConfiguration", field })
    }
  })

  it("says why it cannot listen, and leaves the container as it was", async () => {
    await using eddy = new Eddy({ agents: { helper: agentWith([saying("Yes.")]) } })
    await using first = await serve(eddy)
    const { port } = new URL(first.url)
    await expect(serve(eddy, { port: Number(port) })).rejects.toThrow()
    await first.close()
    await first.close()
    await expect(fetch(first.url)).rejects.toThrow()
    expect((await eddy.agents.helper.generate("Hello")).text).toBe("Yes.")
  })

  it("decides about calls of agents of the Effect face", async () => {
    const paid: Array<string> = []
    const pay = Tool.make("pay", {
      input: Schema.Struct({ to: Schema.String }),
      requireApproval: true,
      execute: ({ to }) => Effect.sync(() => paid.push(to))
    })
    const model = ScriptedModel.make([
      calling("pay", { to: "bob" }),
      calling("pay", { to: "eve" }, "c2"),
      saying("Done.")
    ])
    const clerk = Agent.make({ id: "clerk", model, tools: [pay] })
    const scope = Effect.runSync(Scope.make())
    const context = await Effect.runPromise(Layer.buildWithScope(services, scope))
    const handler = await Effect.runPromise(
      Http.webHandler({ agents: { clerk } }).pipe(Effect.provide(context), Scope.extend(scope))
    )
    const ask = async (path: string, body?: object) => {
      const response = await handler(
        new Request(`http://x/api/agents/clerk/${path}`, {
          method: body === undefined ? "GET" : "POST",
          headers: { "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) })
        })
      )
      return { status: response.status, text: await response.text() }
    }
    const first = chunksOf((await ask("stream", { messages: "Pay." })).text)
    const call = { runId: first[0]?.runId, toolCallId: "c1" }
    expect(JSON.parse((await ask("suspended-runs")).text)).toMatchObject({
      runs: [{ runId: call.runId, toolCalls: [{ toolCallId: "c1", requiresApproval: true }] }]
    })
    expect((await ask("resume-stream", { ...call, resumeData: "yes" })).status).toBe(400)
    const approved = await ask("approve-tool-call", call)
    expect([approved.status, approved.text.slice(0, 6)]).toEqual([200, ": open"])
    const second = chunksOf(approved.text)
    expect(types(second)).toContain("tool-call-approval")
    const third = await ask("decline-tool-call", { ...call, toolCallId: "c2", reason: "No." })
    expect(types(chunksOf(third.text))).toContain("tool-output-denied")
    expect((await ask("approve-tool-call", call)).status).toBe(404)
    expect(paid).toEqual(["bob"])
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })
})

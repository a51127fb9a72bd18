/** Sessions that a server over HTTP has forgotten: another one is opened, and what is safe is sent again. */

import { describe, expect, it } from "@effect/vitest"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { Agent } from "eddy"
import { McpClient, type McpServer, McpTools } from "eddy/mcp"
import { Agent as PromiseAgent } from "eddy/promise"
import { Deferred, Effect, Fiber } from "effect"
import { chunksOf, only } from "../agent/kit.js"
import { type Asked, event, eventStream, result, serve } from "../support/mcpHttpServer.js"
import { agentOf, type Call, caller, startHttp } from "../support/mcpKit.js"

const answer = ({ id, response }: Asked): void => void response.end(event({ id, result }))

const refuse404: Parameters<typeof serve>[0]["refuse"] = response => response.writeHead(404).end()

const refuse400: Parameters<typeof serve>[0]["refuse"] = response =>
  response.writeHead(400).end("Bad Request: No valid session ID provided")

const outcomes = (tools: McpTools.McpTools["tools"], ...calls: ReadonlyArray<Call>) =>
  Effect.gen(function* () {
    const chunks = yield* chunksOf(Agent.stream(agentOf(tools, ...calls).agent, "go"))
    return {
      results: only(chunks, "tool-result").map(({ payload }) => payload.result),
      errors: only(chunks, "tool-error").map(({ payload }) => payload.error)
    }
  })

/** The two ways to use a connection: each calls the tool `about` of the server of the tests, and refreshes the list. */
const faces: ReadonlyArray<
  readonly [
    name: string,
    connect: (server: McpServer) => Effect.Effect<
      {
        readonly about: Effect.Effect<unknown>
        readonly refresh: Effect.Effect<number>
      },
      unknown,
      import("effect").Scope.Scope
    >
  ]
> = [
  [
    "Effect",
    server =>
      Effect.map(McpTools.connect(server), ({ refresh, tools }) => ({
        about: Effect.map(Effect.orDie(outcomes(tools, ["about"])), ({ results }) => results[0]),
        refresh: Effect.map(Effect.orDie(refresh), found => found.length)
      }))
  ],
  [
    "Promise",
    server =>
      Effect.map(
        Effect.acquireRelease(
          Effect.promise(() => McpClient.connect(server)),
          client => Effect.promise(() => client.close())
        ),
        client => ({
          about: Effect.promise(async () => {
            const agent = new PromiseAgent({
              id: "caller",
              model: caller(["about"]),
              tools: { ...client.tools }
            })
            const { toolResults } = await agent.generate("go")
            return toolResults[0]?.payload.result
          }),
          refresh: Effect.promise(async () => Object.keys(await client.refresh()).length)
        })
      )
  ]
]

describe.each(faces)("a server that is started again, %s face", (_, connect) => {
  it.scopedLive("goes on to be called and refreshed", () =>
    Effect.gen(function* () {
      const first = yield* startHttp()
      const { about, refresh } = yield* connect(first.server)
      expect(yield* about).toMatchObject({ structuredContent: { pid: first.child.pid } })
      yield* first.stop
      const second = yield* startHttp(`--port=${new URL(first.origin).port}`)
      expect(yield* about).toMatchObject({ structuredContent: { pid: second.child.pid } })
      yield* second.stop
      const third = yield* startHttp(`--port=${new URL(first.origin).port}`)
      expect(yield* refresh).toBeGreaterThan(5)
      expect(yield* about).toMatchObject({ structuredContent: { pid: third.child.pid } })
      expect(yield* Effect.promise(third.sessions)).toBe("1")
    })
  )
})

describe("a session that the server has forgotten", () => {
  it.scopedLive.each([
    ["with status 404", refuse404],
    ["with status 400 that names the session", refuse400]
  ] as const)("%s is followed by another one, and the call is made once", ([, refuse]) =>
    Effect.gen(function* () {
      const { calls, forget, opened, url } = yield* serve({ call: answer, refuse })
      const { tools } = yield* McpTools.connect({ url })
      forget()
      expect(yield* outcomes(tools, ["a"])).toStrictEqual({ results: [result], errors: [] })
      expect([opened(), calls()]).toStrictEqual([2, 1])
      forget()
      expect(yield* outcomes(tools, ["a"], ["a"], ["a"])).toStrictEqual({
        results: [result, result, result],
        errors: []
      })
      expect([opened(), calls()]).toStrictEqual([3, 4])
    })
  )

  it.scopedLive("is opened once for each failure, however the server goes on to refuse", () =>
    Effect.gen(function* () {
      const { calls, keepNone, opened, url } = yield* serve({ call: answer, refuse: refuse404 })
      const { tools } = yield* McpTools.connect({ url })
      keepNone()
      const { errors } = yield* outcomes(tools, ["a"])
      expect(errors).toMatchObject([
        {
          _tag: "ToolFailed",
          message: `The MCP server at ${new URL(url).origin} answered with HTTP status 404.`
        }
      ])
      expect([opened(), calls()]).toStrictEqual([2, 0])
    })
  )

  it.scopedLive("is none where the server keeps none: status 404 is a failure", () =>
    Effect.gen(function* () {
      const { opened, url } = yield* serve({
        call: ({ response }) => response.destroy(),
        refuse: undefined,
        missing: true
      })
      const { tools } = yield* McpTools.connect({ url })
      expect((yield* outcomes(tools, ["a"])).errors).toMatchObject([
        { message: `The MCP server at ${new URL(url).origin} answered with HTTP status 404.` }
      ])
      expect(opened()).toBe(1)
    })
  )

  it.scopedLive("takes the calls with it that wait in it, when another call replaces it", () =>
    Effect.gen(function* () {
      const waiting = yield* Deferred.make<void>()
      let isFirst = true
      const { forget, url } = yield* serve({
        call: asked => {
          if (!isFirst) return answer(asked)
          isFirst = false
          Effect.runSync(Deferred.succeed(waiting, undefined))
        },
        refuse: refuse404
      })
      const { tools } = yield* McpTools.connect({ url })
      const first = yield* Effect.fork(outcomes(tools, ["a"]))
      yield* Deferred.await(waiting)
      forget()
      expect((yield* outcomes(tools, ["a"], ["a"], ["a"])).errors).toStrictEqual([])
      expect((yield* Fiber.join(first)).errors).toMatchObject([
        { message: `The MCP server at ${new URL(url).origin} forgot the session before it answered.` }
      ])
    })
  )

  it.scopedLive("behind a transport needs a function that makes another one", () =>
    Effect.gen(function* () {
      const { forget, opened, url } = yield* serve({ call: answer, refuse: refuse404 })
      const make = () => new StreamableHTTPClientTransport(new URL(url))
      const once = yield* McpTools.connect({ transport: make() })
      const again = yield* McpTools.connect({ transport: make })
      forget()
      expect((yield* outcomes(again.tools, ["a"])).results).toStrictEqual([result])
      expect(opened()).toBe(3)
      expect((yield* outcomes(once.tools, ["a"])).errors).toMatchObject([
        { message: "The MCP server of the given transport answered with HTTP status 404." }
      ])
      expect(opened()).toBe(3)
    })
  )
})

/** Breaks off its first answer and forgets the session; the answer cannot be resumed. */
const forgetful = (annotations: object, isResumable: boolean) =>
  Effect.gen(function* () {
    let breakOff = true
    const server = yield* serve({
      annotations,
      call: asked => {
        if (!breakOff) return answer(asked)
        breakOff = false
        server.forget()
        const first = event(
          { method: "notifications/message", params: { level: "info", data: "x" } },
          isResumable ? "7" : undefined
        )
        asked.response.write(first, () => asked.response.destroy())
      },
      refuse: refuse404,
      resume: response => response.writeHead(404, eventStream).end()
    })
    return server
  })

describe("a call whose answer is cut off with the session", () => {
  for (const isResumable of [false, true]) {
    const how = isResumable ? "resumable" : "plain"

    it.scopedLive.each([{ readOnlyHint: true }, { idempotentHint: true }])(
      `is made again in another session when the tool declares %o (${how} stream)`,
      annotations =>
        Effect.gen(function* () {
          const { calls, opened, url } = yield* forgetful(annotations, isResumable)
          const { tools } = yield* McpTools.connect({ url })
          expect(yield* outcomes(tools, ["a"])).toStrictEqual({ results: [result], errors: [] })
          expect([opened(), calls()]).toStrictEqual([2, 2])
        })
    )

    it.scopedLive(`is not made again otherwise (${how} stream)`, () =>
      Effect.gen(function* () {
        const { calls, opened, url } = yield* forgetful({ destructiveHint: false }, isResumable)
        const { tools } = yield* McpTools.connect({ url })
        const message = `The MCP server at ${new URL(url).origin} broke off its answer.`
        expect((yield* outcomes(tools, ["a"])).errors).toMatchObject([{ _tag: "ToolFailed", message }])
        expect([opened(), calls()]).toStrictEqual([1, 1])
        expect((yield* outcomes(tools, ["a"])).results).toStrictEqual([result])
        expect([opened(), calls()]).toStrictEqual([2, 2])
      })
    )
  }
})

/** Connections: how they begin, fail and end, and what is left of them then: nothing. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Errors } from "eddy"
import { McpError, type McpOptions, type McpServer, McpTools } from "eddy/mcp"
import { Clock, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { chunksOf, only, read } from "../agent/kit.js"
import { agentOf, isAlive, logLines, startHttp, stdio, stubborn } from "../support/mcpKit.js"

const flawOf = (server: McpServer, options?: McpOptions) =>
  Effect.flip(Effect.scoped(McpTools.connect(server, options)))

/**
 * Connects, in the scope of the test, and hands on the process id that the server writes to its standard error: what has
 * ended before the scope has ended with the attempt.
 */
const connecting = (server: McpServer, options?: McpOptions) =>
  Effect.gen(function* () {
    const begun = yield* Deferred.make<number>()
    const lines: Array<string> = []
    const fiber = yield* Effect.fork(
      Effect.exit(McpTools.connect(server, options)).pipe(
        logLines(line => {
          lines.push(line)
          const pid = /writes: pid (\d+)/.exec(line)?.[1]
          if (pid !== undefined) Effect.runSync(Deferred.succeed(begun, Number(pid)))
        })
      )
    )
    return { fiber, pid: yield* Deferred.await(begun), lines }
  })

const about = (connection: McpTools.McpTools) =>
  Effect.gen(function* () {
    const { agent } = agentOf(connection.tools, ["about"])
    const chunks = yield* chunksOf(Agent.stream(agent, "go"))
    return only(chunks, "tool-result")[0]?.payload.result as {
      readonly structuredContent: {
        readonly pid: number
        readonly cwd: string
        readonly env: ReadonlyArray<string>
      }
    }
  })

describe("a process", () => {
  it.scopedLive("has ended when its scope is closed, and nobody is warned of that", () => {
    const lines: Array<string> = []
    return Effect.gen(function* () {
      const scope = yield* Scope.make()
      const connection = yield* Scope.extend(McpTools.connect(stdio), scope)
      const { pid } = (yield* about(connection)).structuredContent
      expect(isAlive(pid)).toBe(true)
      yield* Scope.close(scope, Exit.void)
      expect(isAlive(pid)).toBe(false)
      expect(lines.filter(line => !line.startsWith("DEBUG"))).toStrictEqual([])
    }).pipe(logLines(line => lines.push(line)))
  })

  it.scopedLive("gets its own directory and variables, and few of ours", () =>
    Effect.gen(function* () {
      process.env["EDDY_TEST_SECRET"] = "secret"
      const env = { TOKEN: "t" }
      const { cwd, env: names } = (yield* about(yield* McpTools.connect({ ...stdio, cwd: "/", env })))
        .structuredContent
      expect(cwd).toBe("/")
      expect(names).toContain("TOKEN")
      expect(names).toContain("PATH")
      expect(names).not.toContain("EDDY_TEST_SECRET")
    }).pipe(Effect.ensuring(Effect.sync(() => delete process.env["EDDY_TEST_SECRET"])))
  )

  it.scopedLive("that never answers ends with an interrupted connect, and with a timeout", () =>
    Effect.gen(function* () {
      const one = yield* connecting(stubborn("mute"))
      expect(isAlive(one.pid)).toBe(true)
      yield* Fiber.interrupt(one.fiber)
      expect(isAlive(one.pid)).toBe(false)

      const other = yield* connecting(stubborn("mute"), { connectTimeout: "2 seconds", name: "mute" })
      const exit = yield* Fiber.join(other.fiber)
      expect(isAlive(other.pid)).toBe(false)
      expect(exit).toStrictEqual(
        Exit.fail(
          new McpError({
            reason: "timeout",
            message: 'The MCP server "mute" did not answer within 2000 ms.',
            cause: undefined
          })
        )
      )
    })
  )

  it.scopedLive("that hears neither the end of its input nor SIGTERM is killed", () =>
    Effect.gen(function* () {
      const { fiber, pid } = yield* connecting(stubborn("deaf"))
      const before = yield* Clock.currentTimeMillis
      yield* Fiber.interrupt(fiber)
      expect(isAlive(pid)).toBe(false)
      expect((yield* Clock.currentTimeMillis) - before).toBeLessThan(8_000)
    })
  )

  it.scopedLive("that fails at once is no connection, and its last words are in the log", () =>
    Effect.gen(function* () {
      const { fiber, lines } = yield* connecting(stubborn("exit"))
      const exit = yield* Fiber.join(fiber)
      expect(exit).toMatchObject(
        Exit.fail({
          reason: "connect",
          message: 'The MCP server "node" ended before it answered. Its log says why.'
        })
      )
      expect(lines.filter(line => line.startsWith("WARN"))).toStrictEqual([
        expect.stringMatching(
          /^WARN The MCP server "node" closed the connection\. \| pid \d+\nAPI_KEY is not set$/
        )
      ])
    })
  )

  it.scopedLive("that prints what is no protocol is said to do so in the log", () =>
    Effect.gen(function* () {
      const { fiber, lines } = yield* connecting(stubborn("chatty"), { connectTimeout: "3 seconds" })
      expect(yield* Fiber.join(fiber)).toMatchObject(Exit.fail({ reason: "timeout" }))
      expect(lines.filter(line => line.includes("Unexpected token"))).not.toHaveLength(0)
    })
  )

  it.live("that does not exist is no connection, and leaves no arguments in the message", () =>
    Effect.gen(function* () {
      const error = yield* flawOf({
        command: "/no/such/program",
        args: ["--token", "secret"],
        env: { KEY: "secret" }
      })
      expect(error).toBeInstanceOf(McpError)
      expect(error).toMatchObject({
        reason: "connect",
        message: 'The MCP server "program" could not be started (ENOENT). Check `command` and `cwd`.'
      })
      expect(JSON.stringify(error)).not.toContain("secret")
    })
  )
})

describe("over HTTP", () => {
  it.scopedLive("the session has ended on the server when the scope is closed", () =>
    Effect.gen(function* () {
      const { server, sessions } = yield* startHttp()
      const during = yield* Effect.scoped(Effect.zipRight(McpTools.connect(server), Effect.promise(sessions)))
      expect(during).toBe("1")
      expect(yield* Effect.promise(sessions)).toBe("0")
    })
  )

  it.scopedLive("the scope closes although the server has died", () =>
    Effect.gen(function* () {
      const { child, server } = yield* startHttp()
      const scope = yield* Scope.make()
      yield* Scope.extend(McpTools.connect(server), scope)
      child.kill("SIGKILL")
      yield* Scope.close(scope, Exit.void)
    })
  )

  it.scopedLive("headers go with each request", () =>
    Effect.gen(function* () {
      const { server } = yield* startHttp("--locked")
      const headers = { authorization: "Bearer open" }
      const connection = yield* McpTools.connect({ ...server, headers })
      expect((yield* about(connection)).structuredContent.pid).toBeGreaterThan(0)
    })
  )

  it.scopedLive("a server that does not know us says so, and no secret is in the message", () =>
    Effect.gen(function* () {
      const { origin, server } = yield* startHttp("--locked")
      const error = yield* flawOf({ ...server, headers: { authorization: "Bearer secret" } })
      expect(error).toMatchObject({
        reason: "connect",
        message: `The MCP server at ${origin} wants to know who asks (HTTP status 401). Give it \`headers\` that it accepts.`
      })
      expect(JSON.stringify(error)).not.toContain("secret")
    })
  )

  it.scopedLive("an address where nobody listens is no connection, and only its origin is told", () =>
    Effect.gen(function* () {
      const { child, origin } = yield* startHttp()
      child.kill("SIGKILL")
      yield* Effect.promise(() => new Promise(resolve => child.once("exit", resolve)))
      const error = yield* flawOf({ url: `${origin}/secret?token=secret` })
      expect(error).toMatchObject({
        reason: "connect",
        message: `The MCP server at ${origin} cannot be reached (ECONNREFUSED).`
      })
    })
  )

  it.scopedLive("an address that answers otherwise is no connection", () =>
    Effect.gen(function* () {
      const { origin } = yield* startHttp()
      const error = yield* flawOf({ url: `${origin}/sessions` })
      expect(error).toMatchObject({
        reason: "connect",
        message: `The MCP server at ${origin} gave no answer that can be read (Streamable HTTP error: Unexpected content type: null).`
      })
    })
  )
})

describe("a connection that was closed", () => {
  it.scopedLive("fails calls at once, and the calls that it had", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { refresh, tools } = yield* Scope.extend(McpTools.connect(stdio, { name: "tests" }), scope)
      const { agent } = agentOf(tools, ["tests_wait"])
      const { chunks } = yield* read(Agent.stream(agent, "go"), chunk =>
        chunk.type === "tool-output" ? Scope.close(scope, Exit.void) : Effect.void
      )
      const seen: Array<unknown> = only(chunks, "tool-error").map(({ payload }) => payload.error)
      const after = agentOf(tools, ["tests_nothing"])
      for (const { payload } of only(yield* chunksOf(Agent.stream(after.agent, "go")), "tool-error")) {
        seen.push(payload.error)
      }
      const message = 'The connection to the MCP server "tests" is closed. Connect again.'
      expect(seen).toMatchObject([
        { _tag: "ToolFailed", toolName: "tests_wait", message },
        { _tag: "ToolFailed", toolName: "tests_nothing", message }
      ])
      expect(yield* Effect.flip(refresh)).toMatchObject({ _tag: "McpError", reason: "closed", message })
    })
  )
})

describe("two servers", () => {
  it.scopedLive("may have tools of one name when they are named", () =>
    Effect.gen(function* () {
      const one = yield* McpTools.connect(stdio, { name: "one" })
      const two = yield* McpTools.connect(stdio, { name: "two" })
      const { agent } = agentOf([...one.tools, ...two.tools], ["one_about"], ["two_about"])
      const chunks = yield* chunksOf(Agent.stream(agent, "go"))
      const pids = only(chunks, "tool-result").map(({ payload }) => payload.result)
      expect(pids).toHaveLength(2)
      expect(new Set(pids.map(result => JSON.stringify(result))).size).toBe(2)
    })
  )

  it.scopedLive("are refused by an agent when they are not", () =>
    Effect.gen(function* () {
      const { tools } = yield* McpTools.connect(stdio)
      expect(() => agentOf([...tools, ...tools])).toThrow('Two tools are called "add"')
    })
  )
})

const wrong: ReadonlyArray<readonly [what: string, server: unknown, options: McpOptions, field: string]> = [
  ["no server", {}, {}, "server"],
  ["two servers in one", { command: "a", url: "http://a" }, {}, "server"],
  ["an empty command", { command: "" }, {}, "server"],
  ["no address", { url: "/mcp?token=secret" }, {}, "url"],
  ["an address of something else", { url: "file:///secret" }, {}, "url"],
  ["a name that providers refuse", stdio, { name: "a.b" }, "name"],
  ["a name that is too long", stdio, { name: "a".repeat(65) }, "name"],
  ["no time to answer", stdio, { timeout: 0 }, "timeout"],
  ["a time that no timer takes", stdio, { connectTimeout: Number.POSITIVE_INFINITY }, "connectTimeout"]
]

describe("a connection is not begun with", () => {
  it.live.each(wrong)("%s", ([, server, options, field]) =>
    Effect.gen(function* () {
      const error = yield* flawOf(server as McpServer, options)
      expect(error).toBeInstanceOf(Errors.InvalidConfiguration)
      expect(error).toMatchObject({ field })
      expect(error.message).not.toContain("secret")
    })
  )
})

/** Calls of a server's tools, through an agent: results, errors, progress, cancellation. Over both transports. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, Errors } from "eddy"
import { type McpOptions, type McpServer, McpTools } from "eddy/mcp"
import { Clock, Effect, type Scope } from "effect"
import { chunksOf, only, read, types } from "../agent/kit.js"
import { expectGrammar } from "../support/grammar.js"
import { agentOf, type Call, logLines, transports } from "../support/mcpKit.js"

/** Real time that an abort may take: 50 ms are promised, the machine that runs this may be busy. */
const soon = 500

/** What a call of a dead server says, over a pipe and over HTTP. */
const dead =
  /^The connection to the MCP server "node" is closed\. Connect again\.$|^The MCP server at http:\/\/127\.0\.0\.1:\d+ (broke off its answer|cannot be reached \((ECONNREFUSED|UND_ERR_SOCKET)\))\.$/

const outcomes = (chunks: ReadonlyArray<Chunk.Chunk>) =>
  chunks
    .flatMap(chunk => (chunk.type === "tool-result" || chunk.type === "tool-error" ? [chunk] : []))
    .sort((one, other) => one.payload.toolCallId.localeCompare(other.payload.toolCallId))

const resultOf = (chunks: ReadonlyArray<Chunk.Chunk>): unknown =>
  only(chunks, "tool-result")[0]?.payload.result

const errorOf = (chunks: ReadonlyArray<Chunk.Chunk>): unknown => only(chunks, "tool-error")[0]?.payload.error

/** What the run of an agent told that makes these calls, and what its model was told of them. */
const called = (
  server: Effect.Effect<McpServer, never, Scope.Scope>,
  calls: ReadonlyArray<Call>,
  options: McpOptions = {}
) =>
  Effect.gen(function* () {
    const { tools } = yield* McpTools.connect(yield* server, options)
    const { agent, model } = agentOf(tools, ...calls)
    const chunks = yield* chunksOf(Agent.stream(agent, "go"))
    expectGrammar(chunks)
    const message = model.requests[1]?.messages.at(-1)
    const told = message?.role === "tool" ? message.content.map(({ output }) => output) : []
    return { chunks, told, tools, model }
  })

describe.each(transports)("over %s", (name, server) => {
  it.scopedLive("a call gives the server's whole result, and tells the model its data", () =>
    Effect.gen(function* () {
      const { chunks, model, told } = yield* called(server, [["add", { a: 2, b: 3 }]])
      expect(resultOf(chunks)).toStrictEqual({
        content: [{ type: "text", text: "2 + 3 = 5" }],
        structuredContent: { sum: 5 }
      })
      expect(told).toStrictEqual([{ type: "json", value: { sum: 5 } }])
      expect(model.requests[0]?.tools.find(({ name }) => name === "add")).toStrictEqual({
        name: "add",
        description: "Adds two numbers.",
        inputSchema: {
          type: "object",
          properties: { a: { type: "number" }, b: { type: "number" } },
          required: ["a", "b"]
        }
      })
    })
  )

  it.scopedLive("text and pictures come as they are", () =>
    Effect.gen(function* () {
      const { told } = yield* called(server, [["greet", { name: "Åse" }], ["draw"], ["nothing"]])
      expect(told).toStrictEqual([
        { type: "text", value: "Hello, Åse! 🌍 søtt 検索" },
        {
          type: "content",
          value: [
            { type: "text", text: "A dot" },
            { type: "image-data", data: "iVBORw0KGgo=", mediaType: "image/png" }
          ]
        },
        { type: "text", value: "" }
      ])
    })
  )

  it.scopedLive("a result of a megabyte comes whole", () =>
    Effect.gen(function* () {
      const { told } = yield* called(server, [["large", { length: 1_048_576 }]])
      expect(told).toStrictEqual([{ type: "text", value: "x".repeat(1_048_576) }])
    })
  )

  it.scopedLive("the server knows a tool by its own name", () =>
    Effect.gen(function* () {
      const { told } = yield* called(server, [["echo_back", { value: "dots" }]])
      expect(told).toStrictEqual([{ type: "text", value: "dots" }])
    })
  )

  it.scopedLive("wrong arguments are refused before the server sees them", () =>
    Effect.gen(function* () {
      const { chunks, told } = yield* called(server, [["add", { a: "two", b: 3 }]])
      const error = errorOf(chunks)
      expect(error).toBeInstanceOf(Errors.InvalidToolArguments)
      expect(told).toMatchObject([{ type: "error-text", value: expect.stringContaining('tool "add": a: ') }])
    })
  )

  it.scopedLive("what the server calls an error is a result that says so, and the model reads why", () =>
    Effect.gen(function* () {
      const { chunks, told } = yield* called(server, [["refuse"], ["refuse_silently"], ["blow_up"]])
      expect(outcomes(chunks).map(({ payload, type }) => ({ type, ...payload }))).toMatchObject([
        { type: "tool-result", isError: true, result: { content: [{ text: "The disk is full." }] } },
        { type: "tool-result", isError: true, result: { content: [], isError: true } },
        { type: "tool-result", isError: true, result: { content: [{ text: "Out of order" }] } }
      ])
      expect(told).toStrictEqual([
        { type: "error-text", value: "The disk is full." },
        { type: "error-json", value: { content: [], isError: true } },
        { type: "error-text", value: "Out of order" }
      ])
    })
  )

  it.scopedLive("progress comes as tool-output, in order, before the result", () =>
    Effect.gen(function* () {
      const { chunks } = yield* called(server, [["count", { to: 5 }]])
      const told = chunks.slice(types(chunks).indexOf("tool-call") + 1, types(chunks).indexOf("step-finish"))
      expect(types(told)).toStrictEqual([...Array<string>(5).fill("tool-output"), "tool-result"])
      expect(only(told, "tool-output").map(({ payload }) => payload)).toStrictEqual(
        [1, 2, 3, 4, 5].map(progress => ({
          toolCallId: "c1",
          toolName: "count",
          output: { type: "progress", progress, total: 5, message: `at ${progress}` }
        }))
      )
    })
  )

  it.scopedLive("many calls at once get their own results and their own progress", () =>
    Effect.gen(function* () {
      const calls = Array.from(
        { length: 20 },
        (_, index): Call => (index % 2 === 0 ? ["add", { a: index, b: 1 }] : ["count", { to: index }])
      )
      const { chunks, told } = yield* called(server, calls)
      expect(told).toStrictEqual(
        calls.map((_, index) =>
          index % 2 === 0 ? { type: "json", value: { sum: index + 1 } } : { type: "text", value: "counted" }
        )
      )
      for (const [index, [name]] of calls.entries()) {
        const mine = only(chunks, "tool-output").filter(
          ({ payload }) => payload.toolCallId === `c${index + 1}`
        )
        expect(mine).toHaveLength(name === "count" ? index : 0)
      }
    })
  )

  it.scopedLive("an abort ends the run at once, and the call on the server", () =>
    Effect.gen(function* () {
      const { tools } = yield* McpTools.connect(yield* server)
      const { agent } = agentOf(tools, ["wait"])
      const controller = new AbortController()
      let abortedAt = 0
      const { chunks } = yield* read(Agent.stream(agent, "go", { abortSignal: controller.signal }), chunk =>
        Effect.map(Clock.currentTimeMillis, now => {
          if (chunk.type !== "tool-output") return
          abortedAt = now
          controller.abort("enough")
        })
      )
      expect((yield* Clock.currentTimeMillis) - abortedAt).toBeLessThan(soon)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
      expect(errorOf(chunks)).toBeInstanceOf(Errors.RunAborted)
      // Answered when a call was cancelled.
      const after = agentOf(tools, ["cancellation"])
      const told = yield* chunksOf(Agent.stream(after.agent, "was it?"))
      expect(resultOf(told)).toStrictEqual({ content: [{ type: "text", text: "cancelled" }] })
    })
  )

  it.scopedLive("a call that takes too long fails and is cancelled", () =>
    Effect.gen(function* () {
      const { chunks, tools } = yield* called(server, [["wait"]], { timeout: 300 })
      const error = errorOf(chunks)
      expect(error).toBeInstanceOf(Errors.ToolTimedOut)
      expect(error).toMatchObject({ toolName: "wait", milliseconds: 300 })
      const after = agentOf(tools, ["cancellation"])
      const told = yield* chunksOf(Agent.stream(after.agent, "was it?"))
      expect(resultOf(told)).toStrictEqual({ content: [{ type: "text", text: "cancelled" }] })
    })
  )

  it.scopedLive("progress starts the time of a call anew", () =>
    Effect.gen(function* () {
      const timeout = "1 seconds"
      const { told } = yield* called(server, [["linger", { ms: 1_600, tells: true }]], { timeout })
      expect(told).toStrictEqual([{ type: "text", value: "lingered" }])
    })
  )

  it.scopedLive("a server that dies in the middle of a call fails it, and those after it", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const { chunks, told, tools } = yield* called(server, [["die"], ["wait"]]).pipe(
        logLines(line => lines.push(line))
      )
      expect(only(chunks, "tool-output").map(({ payload }) => payload.output)).toContainEqual({
        type: "progress",
        progress: 0,
        message: "farewell"
      })
      expect(
        only(chunks, "tool-error")
          .map(({ payload }) => payload.toolCallId)
          .sort()
      ).toStrictEqual(["c1", "c2"])
      for (const { payload } of only(chunks, "tool-error"))
        expect(payload.error).toBeInstanceOf(Errors.ToolFailed)
      expect(told).toHaveLength(2)
      for (const output of told) {
        expect(output).toMatchObject({ type: "error-text", value: expect.stringMatching(dead) })
      }
      const after = agentOf(tools, ["nothing"])
      const error = errorOf(yield* chunksOf(Agent.stream(after.agent, "again")))
      expect(error).toBeInstanceOf(Errors.ToolFailed)
      expect(error).toMatchObject({ message: expect.stringMatching(dead) })
      const warnings = lines.filter(line => line.startsWith("WARN"))
      // Nobody hears of a dead HTTP server before it is asked again.
      if (name === "stdio") {
        expect(warnings).toStrictEqual([
          'WARN The MCP server "node" closed the connection. | listening on standard input\nI am dying'
        ])
      } else expect(warnings).toStrictEqual([])
    })
  )

  it.scopedLive("a tool that was added is there after a refresh, and works", () =>
    Effect.gen(function* () {
      const { refresh, tools } = yield* McpTools.connect(yield* server)
      const grow = agentOf(tools, ["grow"])
      yield* chunksOf(Agent.stream(grow.agent, "go"))
      expect(tools.map(({ name }) => name)).not.toContain("grown")
      const after = agentOf(yield* refresh, ["grown"])
      const chunks = yield* chunksOf(Agent.stream(after.agent, "go"))
      expect(resultOf(chunks)).toStrictEqual({ content: [{ type: "text", text: "here" }] })
    })
  )

  it.scopedLive("the server's instructions are there", () =>
    Effect.gen(function* () {
      const { instructions } = yield* McpTools.connect(yield* server)
      expect(instructions).toBe("Add before you greet.")
    })
  )
})

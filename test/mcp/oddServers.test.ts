/** Servers that no one would write, and someone has: lists, schemas, answers and notices that are not as they should be. */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Agent, Errors } from "eddy"
import { type McpOptions, McpTools } from "eddy/mcp"
import { Effect } from "effect"
import { chunksOf, only, types } from "../agent/kit.js"
import { agentOf, type Call, type Handlers, logLines, scripted } from "../support/mcpKit.js"

const plain = { type: "object", properties: {} }

const tool = (name: string, more: object = {}) => ({ name, inputSchema: plain, ...more })

const listing = (...tools: ReadonlyArray<unknown>): Handlers => ({ "tools/list": () => ({ tools }) })

const texts = (value: string) => ({ content: [{ type: "text", text: value }] })

const connect = (handlers: Handlers, options: McpOptions = {}) => {
  const kit = scripted(handlers)
  return Effect.map(McpTools.connect(kit.server, options), connection => ({ ...connection, kit }))
}

const names = (connection: McpTools.McpTools) => connection.tools.map(({ name }) => name)

const calling = (handlers: Handlers, ...calls: ReadonlyArray<Call>) =>
  Effect.gen(function* () {
    const { kit, tools } = yield* connect(handlers)
    const { agent, model } = agentOf(tools, ...calls)
    const chunks = yield* chunksOf(Agent.stream(agent, "go"))
    const message = model.requests[1]?.messages.at(-1)
    const told = message?.role === "tool" ? message.content.map(({ output }) => output) : []
    return { chunks, told, kit, errors: only(chunks, "tool-error").map(({ payload }) => payload.error) }
  })

describe("the list of tools", () => {
  it.scopedLive("is read to its last page", () =>
    Effect.gen(function* () {
      const asked: Array<unknown> = []
      const pages: Readonly<Record<string, object>> = {
        start: { tools: [tool("a"), tool("b")], nextCursor: "2" },
        "2": { tools: [], nextCursor: "3" },
        "3": { tools: [tool("c")], nextCursor: "" }
      }
      const connection = yield* connect({
        "tools/list": ({ cursor = "start" }) => {
          asked.push(cursor)
          return { ...pages[String(cursor)] }
        }
      })
      expect(names(connection)).toStrictEqual(["a", "b", "c"])
      expect(asked).toStrictEqual(["start", "2", "3"])
    })
  )

  it.scopedLive("that leads in a circle is refused", () =>
    Effect.gen(function* () {
      const next: Readonly<Record<string, string>> = { start: "1", "1": "2", "2": "1" }
      const error = yield* Effect.flip(
        connect({
          "tools/list": ({ cursor = "start" }) => ({ tools: [], nextCursor: next[String(cursor)] })
        })
      )
      expect(error).toMatchObject({
        reason: "request",
        message:
          "The MCP server of the given transport lists its tools in a circle: it gave one cursor twice."
      })
    })
  )

  it.scopedLive("that is no list is empty, and is not asked of a server without tools", () =>
    Effect.gen(function* () {
      expect(names(yield* connect({ "tools/list": () => ({ tools: "many" }) }))).toStrictEqual([])
      const kit = scripted({}, { prompts: {} })
      expect(names(yield* McpTools.connect(kit.server))).toStrictEqual([])
      expect(kit.received).toStrictEqual(["initialize", "notifications/initialized"])
    })
  )

  it.scopedLive("loses only what is no tool, comes twice, or cannot be called", () => {
    const lines: Array<string> = []
    return Effect.gen(function* () {
      const connection = yield* connect(
        listing(
          tool("a", { description: "first" }),
          7,
          { inputSchema: plain },
          tool(""),
          tool("a", { description: "second" }),
          tool("slow", { execution: { taskSupport: "required" } }),
          tool("maybe", { execution: { taskSupport: "optional" } }),
          tool("titled", { title: "A title" }),
          tool("annotated", { annotations: { title: "Another" } })
        )
      )
      expect(
        connection.tools.map(({ definition }) => [definition.name, definition.description])
      ).toStrictEqual([
        ["a", "first"],
        ["maybe", undefined],
        ["titled", "A title"],
        ["annotated", "Another"]
      ])
      const start = "WARN Left out of the tools of the MCP server of the given transport: "
      expect(lines.filter(line => line.startsWith("WARN"))).toStrictEqual([
        `${start}one without a name.`,
        `${start}one without a name.`,
        `${start}one without a name.`,
        `${start}a second "a".`,
        `${start}"slow", which can only be called as a task.`
      ])
    }).pipe(logLines(line => lines.push(line)))
  })

  it.scopedLive("gives each tool a name of its own, and the server hears the one it knows", () =>
    Effect.gen(function* () {
      const heard: Array<unknown> = []
      const { tools } = yield* connect(
        {
          ...listing(tool("a.b"), tool("a/b"), tool("a_b")),
          "tools/call": ({ name }) => {
            heard.push(name)
            return texts("ok")
          }
        },
        { name: "odd" }
      )
      expect(tools.map(({ name }) => name)).toStrictEqual(["odd_a_b_2", "odd_a_b_3", "odd_a_b"])
      const { agent } = agentOf(tools, ["odd_a_b"], ["odd_a_b_2"], ["odd_a_b_3"])
      yield* chunksOf(Agent.stream(agent, "go"))
      expect(heard).toStrictEqual(["a_b", "a.b", "a/b"])
    })
  )
})

const schemas: ReadonlyArray<readonly [what: string, schema: unknown, told: object]> = [
  [
    "a pattern of another language",
    { type: "object", properties: { a: { type: "string", pattern: "(?i)abc" } } },
    { type: "object", properties: { a: { type: "string", pattern: "(?i)abc" } } }
  ],
  [
    "a reference to nowhere",
    { type: "object", properties: { a: { $ref: "#/$defs/gone" } } },
    { type: "object", properties: { a: { $ref: "#/$defs/gone" } } }
  ],
  ["no object at its root", { type: "string" }, { type: "object" }],
  ["nothing in it", {}, { type: "object" }],
  ["no schema at all", undefined, { type: "object" }],
  ["something that is no schema", "any", { type: "object" }]
]

describe("a tool whose schema has", () => {
  it.scopedLive.each(schemas)("%s is told as it is, and the server checks", ([, inputSchema, told]) =>
    Effect.gen(function* () {
      const heard: Array<unknown> = []
      const { tools } = yield* connect({
        ...listing({ name: "a", inputSchema }),
        "tools/call": params => {
          heard.push(params["arguments"])
          return texts("ok")
        }
      })
      expect(tools[0]?.definition.inputSchema).toStrictEqual(told)
      const { agent } = agentOf(tools, ["a", { a: 7 }])
      expect(only(yield* chunksOf(Agent.stream(agent, "go")), "tool-result")).toHaveLength(1)
      expect(heard).toStrictEqual([{ a: 7 }])
    })
  )
})

describe("a call", () => {
  it.scopedLive(
    "keeps progress that comes in one piece with the answer, in order, and drops what comes later",
    () =>
      Effect.gen(function* () {
        const progress = (params: Parameters<Handlers[string]>[0], at: number) => ({
          method: "notifications/progress",
          params: { progressToken: Object(params["_meta"]).progressToken, progress: at }
        })
        const { chunks } = yield* calling(
          {
            ...listing(tool("a")),
            "tools/call": (params, respond, id) => {
              respond(
                progress(params, 1),
                progress(params, 2),
                { id, result: texts("ok") },
                progress(params, 3)
              )
              return undefined
            }
          },
          ["a"]
        )
        const told = chunks.slice(
          types(chunks).indexOf("tool-call") + 1,
          types(chunks).indexOf("step-finish")
        )
        expect(types(told)).toStrictEqual(["tool-output", "tool-output", "tool-result"])
        expect(only(told, "tool-output").map(({ payload }) => payload.output)).toStrictEqual([
          { type: "progress", progress: 1 },
          { type: "progress", progress: 2 }
        ])
      })
  )

  it.scopedLive("that the server refuses fails with its words", () =>
    Effect.gen(function* () {
      const { errors, told } = yield* calling(
        {
          ...listing(tool("a")),
          "tools/call": (_, respond, id) => {
            respond({ id, error: { code: -32_602, message: "There is no a any more" } })
            return undefined
          }
        },
        ["a"]
      )
      const message = "The MCP server of the given transport answered with an error: There is no a any more"
      expect(errors).toMatchObject([{ _tag: "ToolFailed", toolName: "a", message }])
      expect(told).toStrictEqual([{ type: "error-text", value: message }])
    })
  )

  it.scopedLive("that the server refuses in the SDK's own codes is not taken for a timeout or an end", () =>
    Effect.gen(function* () {
      const { errors } = yield* calling(
        {
          ...listing(tool("a"), tool("b")),
          "tools/call": ({ name }, respond, id) => {
            const code = name === "a" ? -32_000 : -32_001
            respond({ id, error: { code, message: `Not ${String(name)}` } })
            return undefined
          }
        },
        ["a"],
        ["b"]
      )
      const start = "The MCP server of the given transport answered with an error: "
      expect(errors).toMatchObject([
        { _tag: "ToolFailed", message: `${start}Not a` },
        { _tag: "ToolFailed", message: `${start}Not b` }
      ])
    })
  )

  it.scopedLive("whose answer has no content, or some of a new kind, has a result", () =>
    Effect.gen(function* () {
      const { chunks, told } = yield* calling(
        {
          ...listing(tool("a"), tool("b")),
          "tools/call": ({ name }) =>
            name === "a" ? { _meta: { x: 1 } } : { content: [{ type: "hologram" }] }
        },
        ["a"],
        ["b"]
      )
      expect(only(chunks, "tool-result").map(({ payload }) => payload.result)).toStrictEqual([
        { content: [], _meta: { x: 1 } },
        { content: [{ type: "hologram" }] }
      ])
      expect(told).toStrictEqual([
        { type: "text", value: "" },
        { type: "text", value: '{"type":"hologram"}' }
      ])
    })
  )

  it.scopedLive("whose structured content is not what was promised fails; an error may have any", () =>
    Effect.gen(function* () {
      const outputSchema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] }
      const answers: Readonly<Record<string, object>> = {
        right: { content: [], structuredContent: { n: 1 } },
        wrong: { content: [], structuredContent: { n: "one" } },
        none: texts("only text"),
        failed: { content: [], structuredContent: {}, isError: true },
        unusable: { content: [], structuredContent: { n: "one" } }
      }
      const { chunks, errors } = yield* calling(
        {
          ...listing(
            ...Object.keys(answers).map(name =>
              tool(name, { outputSchema: name === "unusable" ? { $ref: "#/$defs/gone" } : outputSchema })
            )
          ),
          "tools/call": ({ name }) => ({ ...answers[String(name)] })
        },
        ...Object.keys(answers).map((name): Call => [name])
      )
      expect(errors).toHaveLength(1)
      expect(errors[0]).toBeInstanceOf(Errors.InvalidToolOutput)
      expect(errors[0]).toMatchObject({
        toolName: "wrong",
        message: expect.stringContaining('Tool "wrong" returned a wrong output: n: ')
      })
      const results = only(chunks, "tool-result").map(({ payload }) => payload.toolName)
      expect(results.sort()).toStrictEqual(["failed", "none", "right", "unusable"])
    })
  )

  it.scopedLive("is not disturbed by what the server asks of us", () =>
    Effect.gen(function* () {
      const { kit, told } = yield* calling(
        {
          ...listing(tool("a")),
          "tools/call": (_, respond, id) => {
            respond(
              { id: 900, method: "sampling/createMessage", params: {} },
              { method: "notifications/tools/list_changed" },
              { id: 77, result: { content: [] } },
              { id, result: texts("ok") }
            )
            return undefined
          }
        },
        ["a"]
      )
      expect(told).toStrictEqual([{ type: "text", value: "ok" }])
      expect(kit.received.filter(method => method === "tools/list")).toHaveLength(1)
    })
  )

  it.scopedLive("fails when the server leaves in the middle", () =>
    Effect.gen(function* () {
      const kit = scripted({
        ...listing(tool("a")),
        "tools/call": () => {
          void kit.close()
          return undefined
        }
      })
      const { tools } = yield* McpTools.connect(kit.server)
      const { agent } = agentOf(tools, ["a"])
      const chunks = yield* chunksOf(Agent.stream(agent, "go"))
      expect(only(chunks, "tool-error")[0]?.payload.error).toMatchObject({
        _tag: "ToolFailed",
        message: "The connection to the MCP server of the given transport is closed. Connect again."
      })
    }).pipe(logLines(() => undefined))
  )
})

describe("a handshake", () => {
  it.scopedLive("that is none is no connection, and the transport is closed", () =>
    Effect.gen(function* () {
      const kit = scripted({ initialize: () => ({ hello: "world" }) })
      const error = yield* Effect.flip(McpTools.connect(kit.server))
      expect(error).toMatchObject({
        reason: "connect",
        message: expect.stringMatching(
          /^The MCP server of the given transport gave no answer that can be read \(.{1,200}\)\.$/s
        )
      })
      expect(
        yield* Effect.flip(
          Effect.tryPromise(() => kit.server.transport.send({ jsonrpc: "2.0", method: "x" }))
        )
      ).toBeDefined()
    })
  )

  it.scopedLive("in a version that nobody knows is no connection", () =>
    Effect.gen(function* () {
      const kit = scripted({
        initialize: () => ({
          protocolVersion: "1999",
          capabilities: {},
          serverInfo: { name: "x", version: "1" }
        })
      })
      const error = yield* Effect.flip(McpTools.connect(kit.server))
      expect(error).toMatchObject({ reason: "connect", message: expect.stringContaining("1999") })
    })
  )

  it.scopedLive("tells the server who asks", () =>
    Effect.gen(function* () {
      const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))
      const asked: Array<unknown> = []
      const handlers: Handlers = {
        initialize: ({ capabilities, clientInfo, protocolVersion }) => {
          asked.push(clientInfo, capabilities)
          return { protocolVersion, capabilities: {}, serverInfo: { name: "x", version: "1" } }
        }
      }
      yield* connect(handlers)
      yield* connect(handlers, { clientInfo: { name: "mine", version: "7.0.0" } })
      expect(asked).toStrictEqual([{ name: "eddy", version }, {}, { name: "mine", version: "7.0.0" }, {}])
    })
  )
})

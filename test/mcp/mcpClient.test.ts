/** Servers of the Model Context Protocol, for plain TypeScript. */
import { McpClient, McpError } from "eddy/mcp"
import { Agent, InvalidConfiguration, ToolFailed } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { caller, isAlive, scripted, stdio, stubborn } from "../support/mcpKit.js"

const done = (agent: Agent) => agent.generate("go")

const resultsOf = (output: Awaited<ReturnType<typeof done>>): ReadonlyArray<unknown> =>
  output.steps.flatMap(({ toolResults }) => toolResults.map(({ payload }) => payload.result))

const pidOf = async (mcp: McpClient): Promise<number> => {
  const output = await done(new Agent({ id: "asker", model: caller(["about"]), tools: mcp.tools }))
  return Object(resultsOf(output)[0]).structuredContent.pid
}

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined
}

/** A promise that rejects, and what with. */
const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    cause => cause
  )

describe("McpClient", () => {
  it("gives tools to spread into an agent's", async () => {
    await using mcp = await McpClient.connect(stdio)
    expect(mcp.instructions).toBe("Add before you greet.")
    const model = caller(["add", { a: 1, b: 2 }], ["refuse"], ["count", { to: 2 }])
    const output = await done(new Agent({ id: "clerk", model, tools: { ...mcp.tools } }))
    expect(output.text).toBe("done")
    expect(resultsOf(output)).toContainEqual({
      content: [{ type: "text", text: "1 + 2 = 3" }],
      structuredContent: { sum: 3 }
    })
    expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { output: { type: "json", value: { sum: 3 } } },
      { output: { type: "error-text", value: "The disk is full." } },
      { output: { type: "text", value: "counted" } }
    ])
  })

  it("gives tools that may be registered under other names", async () => {
    await using mcp = await McpClient.connect(stdio)
    const { add } = mcp.tools
    if (add === undefined) throw new Error("There is no add")
    expect(add).toMatchObject({ id: "add", description: "Adds two numbers." })
    const model = caller(["plus", { a: 1, b: 2 }], ["plus", { a: "x" }])
    const output = await done(new Agent({ id: "clerk", model, tools: { plus: add } }))
    expect(resultsOf(output)).toMatchObject([{ structuredContent: { sum: 3 } }])
    expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      {},
      { output: { type: "error-text", value: expect.stringContaining('tool "plus"') } }
    ])
    expect(() => new Agent({ id: "x", model, tools: { "a b": add } })).toThrow(InvalidConfiguration)
  })

  it("has ended its process when it is closed, by hand and by `await using`, and may be closed again", async () => {
    let outside = 0
    {
      await using mcp = await McpClient.connect(stdio)
      outside = await pidOf(mcp)
      expect(isAlive(outside)).toBe(true)
    }
    expect(isAlive(outside)).toBe(false)

    const mcp = await McpClient.connect(stdio)
    const pid = await pidOf(mcp)
    await Promise.all([mcp.close(), mcp.close()])
    expect(isAlive(pid)).toBe(false)
    await mcp.close()
  })

  it("fails calls and refreshes once it is closed", async () => {
    const mcp = await McpClient.connect(stdio, { name: "gone" })
    await mcp.close()
    const agent = new Agent({ id: "late", model: caller(["gone_add", { a: 1, b: 2 }]), tools: mcp.tools })
    const output = await agent.stream("go")
    const errors: Array<unknown> = []
    for await (const chunk of output.fullStream) {
      if (chunk.type === "tool-error") errors.push(chunk.payload.error)
    }
    expect(errors).toHaveLength(1)
    expect(errors[0]).toBeInstanceOf(ToolFailed)
    const error = await rejection(mcp.refresh())
    expect(error).toBeInstanceOf(McpError)
    expect(error).toMatchObject({ reason: "closed" })
  })

  it("has other tools after a refresh; an agent keeps those it was made with", async () => {
    const lists = [["a"], ["b", "c"]]
    const { server } = scripted({
      "tools/list": () => ({
        tools: (lists.shift() ?? []).map(name => ({ name, inputSchema: { type: "object" } }))
      })
    })
    await using mcp = await McpClient.connect(server)
    const model = ScriptedModel.make([ScriptedModel.reply("one"), ScriptedModel.reply("two")])
    const agent = new Agent({ id: "keeper", model, tools: mcp.tools })
    expect(Object.keys(mcp.tools)).toStrictEqual(["a"])
    expect(Object.keys(await mcp.refresh())).toStrictEqual(["b", "c"])
    expect(Object.keys(mcp.tools)).toStrictEqual(["b", "c"])
    await done(agent)
    expect(model.requests[0]?.tools.map(({ name }) => name)).toStrictEqual(["a"])
  })

  it("rejects with what went wrong", async () => {
    const missing = await rejection(McpClient.connect({ command: "/no/such/program" }))
    expect(missing).toBeInstanceOf(McpError)
    expect(missing).toMatchObject({ name: "McpError", reason: "connect" })
    expect(JSON.parse(JSON.stringify(missing))).toStrictEqual({
      name: "McpError",
      message: 'The MCP server "program" could not be started (ENOENT). Check `command` and `cwd`.'
    })
    expect(await rejection(McpClient.connect({ url: "nowhere" }))).toBeInstanceOf(InvalidConfiguration)
    const misspelt: object = { timeOut: 5 }
    expect(await rejection(McpClient.connect(stdio, misspelt))).toMatchObject({
      _tag: "InvalidConfiguration",
      field: "timeOut"
    })
  })

  it("gives up connecting when its signal fires, and leaves no process", async () => {
    const controller = new AbortController()
    let pid = 0
    const logger = {
      ...silent,
      debug: (line: string) => {
        pid = Number(/writes: pid (\d+)/.exec(line)?.[1] ?? pid)
        if (pid > 0) controller.abort(new Error("too slow"))
      }
    }
    const error = await rejection(
      McpClient.connect(stubborn("mute"), { abortSignal: controller.signal, logger })
    )
    expect(error).toStrictEqual(new Error("too slow"))
    expect(pid).toBeGreaterThan(0)
    expect(isAlive(pid)).toBe(false)
    const early = McpClient.connect(stdio, { abortSignal: AbortSignal.abort("early") })
    expect(await rejection(early)).toBe("early")
  })

  it("tells its logger what a server says that fails", async () => {
    const lines: Array<string> = []
    const logger = { ...silent, warn: (...line: ReadonlyArray<unknown>) => void lines.push(line.join(" | ")) }
    await rejection(McpClient.connect(stubborn("exit"), { logger }))
    expect(lines).toStrictEqual([
      expect.stringMatching(/^The MCP server "node" closed the connection\. \| pid \d+\nAPI_KEY is not set$/)
    ])
  })
})

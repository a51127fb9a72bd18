/** What the server of the tests can do: the SDK's own server, with a tool for each thing that may happen to a call. */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { z } from "zod"

const text = value => ({ content: [{ type: "text", text: value }] })

/** Says how far a call is, when the client wants to know. */
const tell = ({ _meta, sendNotification }, progress, more = {}) =>
  sendNotification({
    method: "notifications/progress",
    params: { progressToken: _meta?.progressToken, progress, ...more }
  })

const untilAborted = signal =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener("abort", () => resolve())
  })

/** Resolves when a call of `wait` was cancelled, in any session of this process. */
let tellCancelled = () => undefined
const cancelled = new Promise(resolve => {
  tellCancelled = resolve
})

export const makeServer = () => {
  const server = new McpServer({ name: "tests", version: "1.0.0" }, { instructions: "Add before you greet." })
  const tool = (name, description, inputSchema, execute) =>
    server.registerTool(name, { description, inputSchema }, execute)

  server.registerTool(
    "add",
    {
      description: "Adds two numbers.",
      inputSchema: { a: z.number(), b: z.number() },
      outputSchema: { sum: z.number() }
    },
    ({ a, b }) => ({ ...text(`${a} + ${b} = ${a + b}`), structuredContent: { sum: a + b } })
  )
  tool("greet", "Greets.", { name: z.string() }, ({ name }) => text(`Hello, ${name}! 🌍 søtt 検索`))
  tool("echo.back", "Has a dot in its name.", { value: z.string() }, ({ value }) => text(value))
  tool("large", "Says much.", { length: z.number() }, ({ length }) => text("x".repeat(length)))
  tool("nothing", "Takes no arguments and says nothing.", {}, () => ({ content: [] }))
  tool("refuse", "Fails, and says why.", {}, () => ({ ...text("The disk is full."), isError: true }))
  tool("refuse_silently", "Fails, and says nothing.", {}, () => ({ content: [], isError: true }))
  tool("blow_up", "Throws.", {}, () => {
    throw new Error("Out of order")
  })
  tool("draw", "Gives a picture.", {}, () => ({
    content: [
      { type: "text", text: "A dot" },
      { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }
    ]
  }))
  tool("count", "Counts, and says how far it is.", { to: z.number() }, async ({ to }, extra) => {
    for (let at = 1; at <= to; at++) await tell(extra, at, { total: to, message: `at ${at}` })
    return text("counted")
  })
  tool("wait", "Waits until it is cancelled.", {}, async (_, extra) => {
    await tell(extra, 0)
    await untilAborted(extra.signal)
    tellCancelled("cancelled")
    return text("too late")
  })
  tool("cancellation", "Waits until a call of `wait` was cancelled.", {}, async () => text(await cancelled))
  tool(
    "linger",
    "Takes its time; says so every 40 ms, or never.",
    { ms: z.number(), tells: z.boolean() },
    async (args, extra) => {
      const steps = Math.ceil(args.ms / 40)
      for (let at = 0; at < steps && !extra.signal.aborted; at++) {
        await new Promise(resolve => setTimeout(resolve, 40))
        if (args.tells) await tell(extra, at)
      }
      return text("lingered")
    }
  )
  tool("die", "Ends the process of the server in the middle of the call.", {}, async (_, extra) => {
    await tell(extra, 0, { message: "farewell" })
    console.error("I am dying")
    setTimeout(() => process.exit(3), 20)
    await untilAborted(extra.signal)
    return text("never")
  })
  tool("about", "Tells of its process.", {}, () => ({
    ...text("about"),
    structuredContent: { pid: process.pid, cwd: process.cwd(), env: Object.keys(process.env) }
  }))
  tool("grow", "Adds a tool to the server.", {}, () => {
    tool("grown", "Was not there before.", {}, () => text("here"))
    return text("grown")
  })
  return server
}

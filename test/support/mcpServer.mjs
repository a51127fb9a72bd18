/**
 * A server of the Model Context Protocol as a program of its own: `node mcpServer.mjs stdio`, or `node mcpServer.mjs http`,
 * which prints its port (a free one, or that of `--port=N`), wants the header `authorization: Bearer open` when it is started with `--locked`, and counts its
 * sessions: `GET /sessions`.
 */
import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import { makeServer } from "./mcpServerTools.mjs"

const [kind, ...flags] = process.argv.slice(2)
const port = flags.find(flag => flag.startsWith("--port="))?.slice(7) ?? "0"
const isLocked = flags.includes("--locked")
const sessions = new Map()

const open = async () => {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: id => sessions.set(id, transport),
    onsessionclosed: id => sessions.delete(id)
  })
  await makeServer().connect(transport)
  return transport
}

const answer = async (request, response) => {
  if (request.url === "/sessions") return response.end(String(sessions.size))
  if (isLocked && request.headers.authorization !== "Bearer open") {
    return response.writeHead(401).end(`Not with ${request.headers.authorization}`)
  }
  const id = request.headers["mcp-session-id"]
  const transport = id === undefined ? await open() : sessions.get(id)
  if (transport === undefined) return response.writeHead(404).end()
  return transport.handleRequest(request, response)
}

if (kind === "stdio") {
  console.error("listening on standard input")
  await makeServer().connect(new StdioServerTransport())
} else {
  const server = createServer((request, response) => void answer(request, response))
  server.listen(Number(port), "127.0.0.1", () => console.log(server.address().port))
}

/** A server of the Model Context Protocol over HTTP, by hand: for answers and sessions that no real server has. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect } from "effect"

export interface Asked {
  readonly id: number
  readonly response: ServerResponse
}

export const eventStream = { "content-type": "text/event-stream" }

export const event = (message: object, id?: string): string =>
  `${id === undefined ? "" : `id: ${id}\nretry: 10\n`}event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`

export const result = { content: [{ type: "text", text: "here" }] }

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const piece of request) text += String(piece)
  return text
}

export interface Behaviour {
  /** Answers a call of the one tool, `a`; the head of an event stream is sent. */
  readonly call: (asked: Asked) => void
  /** Answers a request to resume after this event. */
  readonly resume?: (response: ServerResponse, from: string) => void
  /** What the tool declares of itself. */
  readonly annotations?: object
  /** Answers a request of a session that is not known. Without it there are no sessions. */
  readonly refuse?: ((response: ServerResponse) => void) | undefined
  /** Whether calls are answered with status 404. */
  readonly missing?: boolean
}

/** The server, until the scope is closed. `forget` forgets the sessions, after `keepNone` new ones are forgotten at once. */
export const serve = ({ annotations, call, missing = false, refuse, resume }: Behaviour) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      let calls = 0
      let opened = 0
      let keeps = true
      const sessions = new Set<unknown>()
      const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
        const from = request.headers["last-event-id"]
        if (request.method === "GET") {
          if (from === undefined) response.writeHead(405).end()
          else resume?.(response, String(from))
          return
        }
        if (request.method === "DELETE") {
          response.writeHead(sessions.delete(request.headers["mcp-session-id"]) ? 200 : 404).end()
          return
        }
        const { id, method, params } = JSON.parse(await bodyOf(request))
        const json = (value: object, headers: Record<string, string> = {}) =>
          response
            .writeHead(200, { "content-type": "application/json", ...headers })
            .end(JSON.stringify({ jsonrpc: "2.0", id, result: value }))
        if (method === "initialize") {
          const session = `s${++opened}`
          if (keeps) sessions.add(session)
          json(
            {
              protocolVersion: params.protocolVersion,
              capabilities: { tools: {} },
              serverInfo: { name: "broken", version: "1" }
            },
            refuse === undefined ? {} : { "mcp-session-id": session }
          )
        } else if (refuse !== undefined && !sessions.has(request.headers["mcp-session-id"])) refuse(response)
        else if (method === "tools/list") {
          json({ tools: [{ name: "a", inputSchema: { type: "object" }, annotations }] })
        } else if (method === "tools/call" && missing) response.writeHead(404).end()
        else if (method === "tools/call") {
          calls++
          call({ id, response: response.writeHead(200, eventStream) })
        } else response.writeHead(202).end()
      }
      const server = createServer((request, response) => void answer(request, response))
      await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      return {
        server,
        url: `http://127.0.0.1:${port}/`,
        calls: () => calls,
        opened: () => opened,
        forget: () => sessions.clear(),
        keepNone: () => {
          keeps = false
          sessions.clear()
        }
      }
    }),
    ({ server }) =>
      Effect.promise(async () => {
        server.closeAllConnections()
        await new Promise(resolve => server.close(resolve))
      })
  )

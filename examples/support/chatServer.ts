/**
 * A server on this machine that speaks the chat completions API as server-sent events: to each request the next reply, its
 * bytes cut every few, as networks do, also in the middle of a character.
 */
import { once } from "node:events"
import { createServer } from "node:http"
import { text as readText } from "node:stream/consumers"
import { setImmediate } from "node:timers/promises"

/** The deltas of one reply, and why it ends. */
export interface Reply {
  readonly deltas: ReadonlyArray<object>
  readonly reason: "stop" | "tool_calls"
}

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`

const bodyOf = ({ deltas, reason }: Reply, id: number): string => {
  const head = { id: `chat-${id}`, object: "chat.completion.chunk", created: 1_780_000_000, model: "brook-1" }
  const choice = (delta: object, finish_reason: string | null) =>
    event({ ...head, choices: [{ index: 0, delta, finish_reason }] })
  const usage = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 }
  return [
    ...deltas.map(delta => choice(delta, null)),
    choice({}, reason),
    event({ ...head, choices: [], usage }),
    "data: [DONE]\n\n"
  ].join("")
}

export interface ChatServer {
  readonly url: string
  /** The bodies of the requests so far. */
  readonly requests: ReadonlyArray<{ readonly messages: ReadonlyArray<{ readonly role: string }> }>
  /** Bytes sent so far, and in how many writes. */
  readonly sent: { readonly bytes: number; readonly writes: number }
  readonly close: () => void
}

export const serve = async (replies: ReadonlyArray<Reply>, cutEvery: number): Promise<ChatServer> => {
  const requests: Array<ChatServer["requests"][number]> = []
  const sent = { bytes: 0, writes: 0 }
  const server = createServer(async (request, response) => {
    requests.push(JSON.parse(await readText(request)))
    const reply = replies[requests.length - 1]
    if (reply === undefined) {
      response.writeHead(500).end("There is no reply left.")
      return
    }
    response.writeHead(200, { "content-type": "text/event-stream" })
    const bytes = new TextEncoder().encode(bodyOf(reply, requests.length))
    for (let start = 0; start < bytes.length; start += cutEvery) {
      const piece = bytes.subarray(start, start + cutEvery)
      response.write(piece)
      sent.bytes += piece.length
      sent.writes++
      // A turn of the event loop, or the operating system would join the pieces again.
      await setImmediate()
    }
    response.end()
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${port}/v1`, requests, sent, close }
}

/**
 * A server on this machine that plays transcripts: for each POST one reply, its bytes cut where the test says. It records
 * what it was sent and whether the client went away. Waiting is on latches: `Request.played`, `Request.disconnected`.
 */
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { setImmediate } from "node:timers/promises"
import { Deferred, Effect, type Scope } from "effect"

/** Where a body is cut into writes: nowhere, after every byte, or before these offsets. */
export type Cut = "none" | "every-byte" | ReadonlyArray<number>

/**
 * What happens after the last byte: the body ends as it should, the socket dies, or nothing at all. `silent` is a server
 * that never says anything, not even its headers.
 */
type End = "finish" | "destroy" | "hang" | "silent"

export interface Reply {
  readonly body: string | Uint8Array
  readonly cut?: Cut
  /** Only the first so many bytes are sent. */
  readonly bytes?: number
  readonly end?: End
  readonly status?: number
  readonly contentType?: string
}

export interface Request {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: unknown
  /** Opens when all bytes of the reply were written. */
  readonly played: Deferred.Deferred<void>
  /** Opens when the client closes the connection before the reply has ended. */
  readonly disconnected: Deferred.Deferred<void>
}

export interface TranscriptServer {
  readonly url: string
  /** The replies to the next requests, in order; the last one is for all that follow. */
  readonly play: (...replies: ReadonlyArray<Reply>) => void
  readonly requests: ReadonlyArray<Request>
  /** The first request, as soon as it is there. */
  readonly firstRequest: Effect.Effect<Request>
}

const bytesOf = (body: string | Uint8Array): Uint8Array =>
  typeof body === "string" ? new TextEncoder().encode(body) : body

const pieces = (body: Uint8Array, cut: Cut): ReadonlyArray<Uint8Array> => {
  if (cut === "every-byte") return Array.from(body, (_, index) => body.subarray(index, index + 1))
  const offsets = cut === "none" ? [] : [...new Set(cut)].filter(offset => offset > 0 && offset < body.length)
  const edges = [0, ...offsets.sort((left, right) => left - right), body.length]
  return edges.slice(1).map((end, index) => body.subarray(edges[index], end))
}

/** Where cutting hurts: inside each character of several bytes, between CR and LF, and between two line ends. */
export const awkwardCuts = (body: string | Uint8Array): ReadonlyArray<number> => {
  const bytes = bytesOf(body)
  const isLineEnd = (byte: number | undefined) => byte === 0x0a || byte === 0x0d
  return Array.from(bytes.keys()).filter(index => {
    const byte = bytes[index] ?? 0
    const isInsideCharacter = (byte & 0xc0) === 0x80
    return isInsideCharacter || (isLineEnd(byte) && isLineEnd(bytes[index - 1]))
  })
}

/** Every `size` bytes, which falls on anything. */
export const cutsEvery = (size: number, body: string | Uint8Array): ReadonlyArray<number> =>
  Array.from({ length: Math.floor(bytesOf(body).length / size) }, (_, index) => (index + 1) * size)

const readJson = async (request: IncomingMessage): Promise<unknown> => {
  const received: Array<Uint8Array> = []
  for await (const chunk of request) received.push(chunk)
  const text = Buffer.concat(received).toString("utf8")
  return text === "" ? undefined : JSON.parse(text)
}

const playReply = async (reply: Reply, request: Request, response: ServerResponse): Promise<void> => {
  response.on("close", () => {
    if (!response.writableFinished) Deferred.unsafeDone(request.disconnected, Effect.void)
  })
  if (reply.end === "silent") return
  response.writeHead(reply.status ?? 200, { "content-type": reply.contentType ?? "text/event-stream" })
  response.socket?.setNoDelay(true)
  response.flushHeaders()
  const body = bytesOf(reply.body).subarray(0, reply.bytes)
  for (const piece of pieces(body, reply.cut ?? "none")) {
    if (response.destroyed) return
    await new Promise(resolve => response.write(piece, resolve))
    // The client lives in this process. A whole turn of the event loop lets it read the piece, or its HTTP client would
    // join it to the next one and nothing would be cut at all.
    await setImmediate()
    await setImmediate()
  }
  Deferred.unsafeDone(request.played, Effect.void)
  if (reply.end === "destroy") response.destroy()
  if ((reply.end ?? "finish") === "finish") response.end()
}

/** A server that lives as long as the scope. Closing it closes every connection, whatever still hangs. */
export const make: Effect.Effect<TranscriptServer, never, Scope.Scope> = Effect.gen(function* () {
  const requests: Array<Request> = []
  const first = yield* Deferred.make<Request>()
  let replies: ReadonlyArray<Reply> = []

  const server = createServer(async (incoming, response) => {
    const request: Request = {
      method: incoming.method ?? "",
      url: incoming.url ?? "",
      headers: incoming.headers,
      body: await readJson(incoming),
      played: Effect.runSync(Deferred.make<void>()),
      disconnected: Effect.runSync(Deferred.make<void>())
    }
    requests.push(request)
    Deferred.unsafeDone(first, Effect.succeed(request))
    const [reply, ...later] = replies
    if (later.length > 0) replies = later
    await playReply(reply ?? { status: 500, body: "no reply was scripted" }, request, response)
  })

  yield* Effect.acquireRelease(
    Effect.promise(() => once(server.listen(0, "127.0.0.1"), "listening")),
    () =>
      Effect.async<void>(resume => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    play: (...next) => {
      replies = next
    },
    requests,
    firstRequest: Deferred.await(first)
  }
})

/** A function from `Request` to `Response` as a listener of Node's own server. It loads nothing of Node. */

/** What is read of a request of Node's `http` server, so that its types need not be installed. @since 0.2.0 @category models */
export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: { readonly host?: string | undefined }
  readonly headersDistinct: { readonly [name: string]: ReadonlyArray<string> | undefined }
  readonly [Symbol.asyncIterator]: () => AsyncIterator<Uint8Array>
}

/** What is used of a response of Node's `http` server. @since 0.2.0 @category models */
export interface NodeResponse {
  readonly closed: boolean
  readonly once: (event: "drain" | "close", listener: () => void) => unknown
  readonly off: (event: "drain" | "close", listener: () => void) => unknown
  readonly appendHeader: (name: string, value: string) => unknown
  readonly writeHead: (status: number) => unknown
  readonly write: (bytes: Uint8Array) => boolean
  readonly end: () => unknown
  readonly destroy: (error?: Error) => unknown
}

type Handler = (request: Request) => Promise<Response>

/**
 * Ends the body of a response when the signal fires, as if its reader had left: most servers fire it when the client does. A
 * pipe would do that, but on Node 20 it does not cancel a body that is silent when its reader cancels.
 */
export const leftWith = (response: Response, signal: AbortSignal): Response => {
  if (response.body === null) return response
  const reader = response.body.getReader()
  let leave = (): void => undefined
  const body = new ReadableStream<Uint8Array>(
    {
      start: controller => {
        leave = () => {
          controller.error(signal.reason)
          reader.cancel(signal.reason).catch(() => undefined)
        }
        if (signal.aborted) leave()
        else signal.addEventListener("abort", leave, { once: true })
      },
      pull: async controller => {
        const { done, value } = await reader.read()
        if (signal.aborted) return
        if (!done) return controller.enqueue(value)
        signal.removeEventListener("abort", leave)
        controller.close()
      },
      cancel: reason => {
        signal.removeEventListener("abort", leave)
        return reader.cancel(reason)
      }
    },
    { highWaterMark: 0 }
  )
  return new Response(body, response)
}

const headersOf = ({ headersDistinct }: NodeRequest): Headers => {
  const headers = new Headers()
  for (const [name, values] of Object.entries(headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value)
  }
  return headers
}

/** The bytes of a body, read as they are asked for. */
const bodyOf = (request: NodeRequest): ReadableStream<Uint8Array> => {
  const bytes: AsyncIterator<Uint8Array> = request[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      pull: async controller => {
        const { done, value } = await bytes.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      }
    },
    { highWaterMark: 0 }
  )
}

/** Frameworks that mount a listener under a path cut that off `url`, and keep the whole of it here. */
const urlOf = (request: NodeRequest & { readonly originalUrl?: string }): string =>
  `http://${request.headers.host ?? "localhost"}${request.originalUrl ?? request.url ?? "/"}`

const toRequest = (request: NodeRequest, signal: AbortSignal): Request => {
  const { method = "GET" } = request
  const hasBody = method !== "GET" && method !== "HEAD"
  const init = { method, headers: headersOf(request), signal }
  // A body that is a stream must say so.
  const streamed = { ...init, body: bodyOf(request), duplex: "half" }
  return new Request(urlOf(request), hasBody ? streamed : init)
}

/** Done when the connection takes more, or is closed. */
const room = (response: NodeResponse): Promise<void> =>
  new Promise(resolve => {
    const done = (): void => {
      response.off("drain", done)
      response.off("close", done)
      resolve()
    }
    response.once("drain", done)
    response.once("close", done)
  })

const send = async ({ body, headers, status }: Response, response: NodeResponse): Promise<void> => {
  for (const [name, value] of headers) response.appendHeader(name, value)
  response.writeHead(status)
  if (body === null) return void response.end()
  for (const reader = body.getReader(); ; ) {
    const { done, value } = await reader.read()
    if (done || response.closed) break
    if (!response.write(value)) await room(response)
  }
  response.end()
}

/**
 * Answers a request of Node. The client's leaving is the signal of the `Request`: a run without a reader is left to its policy.
 * Settles when the response is sent, or the connection is closed.
 */
export const toNodeHandler =
  (handler: Handler) =>
  async (request: NodeRequest, response: NodeResponse): Promise<void> => {
    const left = new AbortController()
    response.once("close", () => left.abort())
    try {
      await send(await handler(toRequest(request, left.signal)), response)
    } catch (error) {
      // A client that has left gets no answer.
      if (left.signal.aborted) return
      response.destroy(error instanceof Error ? error : undefined)
    }
  }

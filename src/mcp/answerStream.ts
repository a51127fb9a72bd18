/**
 * Over HTTP an answer may come as a stream of its own. When that stream breaks, the SDK reports an error that belongs to no
 * call, and the call waits until it times out. Here such a stream is told to the end: its last event answers the request.
 */
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as Predicate from "effect/Predicate"

/** The id of the request that a body holds; `undefined` when it holds none. */
const requestIdOf = (body: unknown): string | number | undefined => {
  if (typeof body !== "string") return undefined
  const message: unknown = JSON.parse(body)
  if (!Predicate.hasProperty(message, "id") || !Predicate.hasProperty(message, "method")) return undefined
  return typeof message.id === "string" || typeof message.id === "number" ? message.id : undefined
}

/** Whether the stream so far holds an event with an id: then the SDK resumes it. */
const idFinder = () => {
  const decoder = new TextDecoder()
  let tail = "\n"
  let found = false
  return {
    look: (bytes: Uint8Array): void => {
      if (found) return
      const text = tail + decoder.decode(bytes, { stream: true })
      found = /[\r\n]id: *[^\s]/.test(text)
      tail = text.slice(-6)
    },
    found: (): boolean => found
  }
}

/** The stream, and at its end, whatever ended it, these bytes; not when it can be resumed. */
export const endingWith = (
  stream: ReadableStream<Uint8Array>,
  last: Uint8Array
): ReadableStream<Uint8Array> => {
  const reader = stream.getReader()
  const finder = idFinder()
  return new ReadableStream<Uint8Array>(
    {
      pull: async controller => {
        const { done, failure, value } = await reader.read().then(
          read => ({ ...read, failure: undefined }),
          (cause: unknown) => ({ done: true, value: undefined, failure: { cause } })
        )
        if (value !== undefined) {
          finder.look(value)
          controller.enqueue(value)
        } else if (done) {
          if (!finder.found()) controller.enqueue(last)
          else if (failure !== undefined) return controller.error(failure.cause)
          controller.close()
        }
      },
      cancel: reason => reader.cancel(reason)
    },
    { highWaterMark: 0 }
  )
}

/** What the last event says. */
export const brokenOff = "The stream of the answer ended before the answer."

const lastEvent = (id: string | number): Uint8Array => {
  const message = { jsonrpc: "2.0", id, error: { code: -32_000, message: brokenOff } }
  // The empty line ends an event that was cut off.
  return new TextEncoder().encode(`\n\nevent: message\ndata: ${JSON.stringify(message)}\n\n`)
}

/** `fetch`, with answers that have an end. */
export const fetchAnswer: FetchLike = async (url, init) => {
  const response = await fetch(url, init)
  const { body, headers, status, statusText } = response
  const isStream = headers.get("content-type")?.includes("text/event-stream") === true
  const id = response.ok && isStream && body !== null ? requestIdOf(init?.body) : undefined
  if (id === undefined || body === null) return response
  return new Response(endingWith(body, lastEvent(id)), { headers, status, statusText })
}

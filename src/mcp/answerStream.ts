/**
 * Over HTTP an answer may come as a stream of its own. When that stream breaks, the SDK reports an error that belongs to no
 * call, and the call waits until it times out. Here such a stream always ends with an answer: its last event answers the
 * request with an error, unless the SDK resumes the stream; then the same holds for the stream that resumes it, also when
 * the server refuses to resume.
 */
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as Predicate from "effect/Predicate"

type RequestId = string | number

/** The id of the request that a body holds; `undefined` when it holds none. */
const requestIdOf = (body: unknown): RequestId | undefined => {
  if (typeof body !== "string") return undefined
  const message: unknown = JSON.parse(body)
  if (!Predicate.hasProperty(message, "id") || !Predicate.hasProperty(message, "method")) return undefined
  return typeof message.id === "string" || typeof message.id === "number" ? message.id : undefined
}

/** Of a line that is not complete yet, so many characters are kept: enough for a field and the id of an event. */
const maxLineLength = 2_048

/** Reads the bytes of an event stream; `last` is the id of the last complete event that has one: the SDK resumes from there. */
const eventIds = () => {
  const decoder = new TextDecoder()
  let rest = ""
  let id = ""
  let hasData = false
  let last: string | undefined
  const readLine = (line: string): void => {
    if (line === "") {
      if (hasData && id !== "") last = id
      id = ""
      hasData = false
    } else if (/^data(:|$)/.test(line)) hasData = true
    else if (line.startsWith("id:")) id = line.slice(3).replace(/^ /, "")
  }
  return {
    read: (bytes: Uint8Array): void => {
      // A carriage return at the end may be the first half of a line's end.
      const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/)
      rest = (lines.pop() ?? "").slice(0, maxLineLength)
      lines.forEach(readLine)
    },
    last: (): string | undefined => last
  }
}

/**
 * The stream, and at its end, whatever ended it, these bytes; not when it can be resumed: then `onResumable` gets the id of
 * the event from which it is, and a failure stays one.
 */
export const endingWith = (
  stream: ReadableStream<Uint8Array>,
  last: Uint8Array,
  onResumable: (eventId: string) => void = () => undefined
): ReadableStream<Uint8Array> => {
  const reader = stream.getReader()
  const ids = eventIds()
  return new ReadableStream<Uint8Array>(
    {
      pull: async controller => {
        const { done, failure, value } = await reader.read().then(
          read => ({ ...read, failure: undefined }),
          (cause: unknown) => ({ done: true, value: undefined, failure: { cause } })
        )
        if (value !== undefined) {
          ids.read(value)
          controller.enqueue(value)
        } else if (done) {
          const eventId = ids.last()
          if (eventId === undefined) controller.enqueue(last)
          else {
            onResumable(eventId)
            if (failure !== undefined) return controller.error(failure.cause)
          }
          controller.close()
        }
      },
      cancel: reason => reader.cancel(reason)
    },
    { highWaterMark: 0 }
  )
}

/** The message of the error that the last event holds. */
export const brokenOff = "The stream of the answer ended before the answer."

const lastEvent = (id: RequestId): Uint8Array => {
  const message = { jsonrpc: "2.0", id, error: { code: -32_000, message: brokenOff } }
  // The empty line ends an event that was cut off.
  return new TextEncoder().encode(`\n\nevent: message\ndata: ${JSON.stringify(message)}\n\n`)
}

const isEventStream = ({ headers, ok }: Response): boolean =>
  ok && headers.get("content-type")?.includes("text/event-stream") === true

/** `fetch` for one session: each request whose answer is a stream gets an answer. */
export const makeFetch = (): FetchLike => {
  /** The requests whose stream ended before the answer, by the event from which the SDK resumes it. */
  const unanswered = new Map<string, RequestId>()
  return async (url, init) => {
    const response = await fetch(url, init)
    const { body, headers, status, statusText } = response
    const eventId = new Headers(init?.headers).get("last-event-id") ?? undefined
    const id = eventId === undefined ? requestIdOf(init?.body) : unanswered.get(eventId)
    if (id === undefined) return response
    if (eventId !== undefined && status === 404) {
      await body?.cancel()
      unanswered.delete(eventId)
      return new Response(lastEvent(id).slice(), { headers: { "content-type": "text/event-stream" } })
    }
    if (!isEventStream(response) || body === null) return response
    if (eventId !== undefined) unanswered.delete(eventId)
    const ending = endingWith(body, lastEvent(id), event => unanswered.set(event, id))
    return new Response(ending, { headers, status, statusText })
  }
}

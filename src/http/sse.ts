/**
 * Server-sent events, in the one frame that every client reads: `data: `, JSON on one line, an empty line; LF only. Comments
 * and ids are frames of their own, but where the reader is known to read ids. Pure.
 */

/** The headers of a stream of events. `no-transform` keeps proxies from compressing it, which would hold frames back. */
export const headers: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  connection: "keep-alive",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff"
}

/** JSON text has no line ends of its own. */
export const data = (json: string): string => `data: ${json}\n\n`

/** What `EventSource` reads: it asks for what follows this id when it has lost the connection. */
export const dataWithId = (id: number, json: string): string => `id: ${id}\ndata: ${json}\n\n`

/** For readers that choose by the name of an event. */
export const namedData = (event: string, json: string): string => `event: ${event}\ndata: ${json}\n\n`

const lineEnds = /[\r\n]+/g

/** Read by nobody: it opens the response, or keeps it open. */
export const comment = (text: string): string => `: ${text.replace(lineEnds, " ")}\n\n`

/** The first frame of every stream: nothing of a response is sent before its first byte. */
export const open: string = comment("open")

/** Says that the connection lives. */
export const keepAlive: string = comment("keep-alive")

/** The last frame, for clients that wait for it. */
export const done: string = "data: [DONE]\n\n"

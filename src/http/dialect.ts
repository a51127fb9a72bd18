/** How the chunks of a run become the frames of one kind of client. */
import type { Chunk } from "../protocol/Chunk.js"
import { errorFrame } from "./masking.js"
import type { Entry } from "./replayLog.js"
import * as Sse from "./sse.js"

/** What makes the frames of one response. It begins at the first chunk that the response has. */
export interface Framing {
  /** The frames of a chunk, in one string; empty for none. */
  readonly frames: (entry: Entry, index: number) => string
  /** The frames of a failure in the middle. */
  readonly error: (message: string) => string
  /** The frames of the end, also behind a failure. */
  readonly end: () => string
}

/** A kind of client. */
export interface Dialect {
  readonly headers: Readonly<Record<string, string>>
  readonly framing: (runId: string) => Framing
}

/** Chunks as they are, each in one frame, then `[DONE]`. */
export const chunks: Dialect = {
  headers: {},
  framing: runId => ({
    frames: ({ json }) => Sse.data(json),
    error: message => Sse.data(errorFrame(runId, message)),
    end: () => Sse.done
  })
}

/** The same with ids, for readers that come back: `EventSource`. */
export const events: Dialect = {
  headers: {},
  framing: runId => ({
    frames: ({ json }, index) => Sse.dataWithId(index, json),
    error: message => Sse.data(errorFrame(runId, message)),
    end: () => ""
  })
}

/** A dialect of a pure mapping: the JSON texts of the events that a chunk becomes. */
export const mapped = (mapping: {
  readonly headers?: Readonly<Record<string, string>>
  readonly isDoneTold: boolean
  readonly make: (runId: string) => {
    readonly events: (chunk: Chunk) => ReadonlyArray<string>
    readonly error: (message: string) => ReadonlyArray<string>
    readonly end: () => ReadonlyArray<string>
  }
}): Dialect => ({
  headers: mapping.headers ?? {},
  framing: runId => {
    const made = mapping.make(runId)
    const join = (texts: ReadonlyArray<string>): string => texts.map(Sse.data).join("")
    return {
      frames: ({ chunk }) => join(made.events(chunk)),
      error: message => join(made.error(message)),
      end: () => `${join(made.end())}${mapping.isDoneTold ? Sse.done : ""}`
    }
  }
})

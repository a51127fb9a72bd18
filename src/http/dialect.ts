/** How the chunks of a run become the frames of one kind of client. */
import type { Chunk } from "../protocol/Chunk.js"
import { stringify } from "../protocol/safeJson.js"
import { errorFrame } from "./masking.js"
import type { Entry } from "./replayLog.js"
import * as Sse from "./sse.js"

/** What makes the frames of one response. It begins at the first chunk that the response has. */
interface Framing {
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

/** What a pure mapping makes of the chunks of one response. */
interface Mapper<Frame> {
  readonly push: (chunk: Chunk) => ReadonlyArray<Frame>
  /** The frames of the end; `failure` is why it comes too early. */
  readonly end: (failure?: unknown) => ReadonlyArray<Frame>
}

/** A dialect of a mapping. Its responses begin at the first chunk. */
export const mapped = <Frame>(mapping: {
  readonly headers?: Readonly<Record<string, string>>
  /** Whether `[DONE]` is the last frame: for some clients it must be, for others it is fatal. */
  readonly isDoneTold: boolean
  readonly mapper: (runId: string) => Mapper<Frame>
  /** A frame as it is sent. Default: its JSON as data. */
  readonly frame?: (frame: Frame) => string
}): Dialect => ({
  headers: mapping.headers ?? {},
  framing: runId => {
    const { frame = (one: Frame) => Sse.data(stringify(one)), isDoneTold, mapper } = mapping
    const { end, push } = mapper(runId)
    const join = (frames: ReadonlyArray<Frame>): string => frames.map(frame).join("")
    let hasFailed = false
    return {
      frames: ({ chunk }) => join(push(chunk)),
      error: message => {
        hasFailed = true
        return join(end(new Error(message)))
      },
      end: () => `${hasFailed ? "" : join(end())}${isDoneTold ? Sse.done : ""}`
    }
  }
})

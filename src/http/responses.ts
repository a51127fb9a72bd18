/** Responses: JSON, errors, and streams of events. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Batch from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { stringify } from "../protocol/safeJson.js"
import type { Dialect } from "./dialect.js"
import { keepAlive } from "./keepAlive.js"
import type { Refusal } from "./refusal.js"
import type { LogReader } from "./replayLog.js"
import type { Reading } from "./runs.js"
import type { ServerSettings } from "./settings.js"
import * as Sse from "./sse.js"

/** What no response may be without. */
const always: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff"
}

/** A value, made safe for JSON. */
export const json = (value: unknown, status = 200): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(stringify(value), { status, contentType: "application/json", headers: always })

/** The body that clients of this protocol read of a failure. */
export const refused = ({
  issues,
  message,
  retryAfter,
  status
}: Refusal): HttpServerResponse.HttpServerResponse => {
  const response = json(issues === undefined ? { error: message } : { error: message, issues }, status)
  const later =
    retryAfter === undefined
      ? response
      : HttpServerResponse.setHeader(response, "retry-after", String(retryAfter))
  // Of a body that was not read to its end the rest would be taken for the next request.
  return status === 413 ? HttpServerResponse.setHeader(later, "connection", "close") : later
}

const encoder = new TextEncoder()

/** A stream of frames as a response: opened at once, and never silent for long. */
export const eventStream = (
  frames: Stream.Stream<string>,
  settings: Pick<ServerSettings, "keepAlive">,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(
    Stream.make(Sse.open).pipe(
      Stream.concat(keepAlive(frames, settings.keepAlive, Sse.keepAlive)),
      Stream.map(frame => encoder.encode(frame))
    ),
    { headers: { ...Sse.headers, ...headers } }
  )

/** Chunks that one pull turns into one piece of the response. */
const batchSize = 64

const waitFor = (reader: LogReader): Effect.Effect<void> =>
  Effect.async<void>(resume => {
    // A fiber may have rested since it looked.
    if (reader.hasNews) return resume(Effect.void)
    const forget = reader.wait(() => resume(Effect.void))
    return Effect.sync(forget)
  })

/** The frames of a run from the reader's place on. Whatever goes wrong stands in a frame: it never just ends. */
const framesOf = ({ reader, run }: Reading, dialect: Dialect): Stream.Stream<string> => {
  const framing = dialect.framing(run.id)
  let isOver = false
  const broken = (message: string): Batch.Chunk<string> => {
    isOver = true
    return Batch.of(`${framing.error(message)}${framing.end()}`)
  }
  const next: Effect.Effect<Batch.Chunk<string>, Option.Option<never>> = Effect.suspend(() => {
    if (isOver) return Effect.fail(Option.none())
    if (reader.isTooLate) {
      return Effect.succeed(broken("This reader was too slow: what comes next is not kept any more."))
    }
    if (reader.isClosed) {
      return Effect.succeed(
        broken(`This stream is too old. Read the rest of the run from ${reader.index} on.`)
      )
    }
    const from = reader.index
    const taken = reader.take(batchSize)
    if (taken.length > 0) {
      const text = taken.map((entry, place) => framing.frames(entry, from + place)).join("")
      return text === "" ? next : Effect.succeed(Batch.of(text))
    }
    if (reader.end?._tag === "Broken") return Effect.succeed(broken(reader.end.message))
    if (reader.isDone) {
      isOver = true
      return Effect.succeed(Batch.of(framing.end()))
    }
    return Effect.zipRight(waitFor(reader), next)
  })
  return Stream.filter(Stream.repeatEffectChunkOption(next), text => text !== "")
}

/** The id of the run that a stream is of. */
export const runIdHeader = "x-run-id"

/** A run as a response. The reader is closed when it is too old, and the run is left. */
export const runStream = Effect.fnUntraced(function* (
  reading: Reading,
  dialect: Dialect,
  settings: Pick<ServerSettings, "keepAlive" | "maxStreamAge">
) {
  yield* Effect.forkScoped(Effect.delay(reading.leave, settings.maxStreamAge))
  return eventStream(framesOf(reading, dialect), settings, {
    [runIdHeader]: reading.run.id,
    ...dialect.headers
  })
})

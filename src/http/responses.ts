/** Responses: JSON, errors, and streams of events. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Batch from "effect/Chunk"
import * as Duration from "effect/Duration"
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
  return retryAfter === undefined
    ? response
    : HttpServerResponse.setHeader(response, "retry-after", String(retryAfter))
}

const encoder = new TextEncoder()

/** A stream of frames as a response: opened at once, and never silent for long. */
export const eventStream = (
  frames: Stream.Stream<string>,
  settings: Pick<ServerSettings, "keepAlive">
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(
    Stream.make(Sse.open).pipe(
      Stream.concat(keepAlive(frames, settings.keepAlive, Sse.keepAlive)),
      Stream.map(frame => encoder.encode(frame))
    ),
    { headers: Sse.headers }
  )

/** Chunks that one pull turns into one piece of the response. */
const batchSize = 64

/** Tells when a response has been silent for too long: one timer for all of it, and nothing for each chunk. */
class Pulse {
  private silence = 0
  private isDue = false
  private waiting: (() => void) | undefined

  /** Something was said. */
  said(): void {
    this.silence = 0
  }

  /** Half of the time is over. */
  tick(): void {
    this.silence++
    if (this.silence < 2) return
    this.silence = 0
    this.isDue = true
    this.waiting?.()
  }

  /** Whether it is time to say something, once. */
  take(): boolean {
    const { isDue } = this
    this.isDue = false
    return isDue
  }

  /** Waits for news of the reader, or until something is to be said. */
  next(reader: LogReader): Effect.Effect<void> {
    return Effect.async<void>(resume => {
      const wake = (): void => resume(Effect.void)
      // A fiber may have rested since it looked.
      if (reader.hasNews || this.isDue) return wake()
      const forget = reader.wait(wake)
      this.waiting = wake
      return Effect.sync(forget)
    })
  }
}

/** The frames of a run from the reader's place on. Whatever goes wrong stands in a frame: it never just ends. */
const framesOf = ({ reader, run }: Reading, dialect: Dialect, pulse: Pulse): Stream.Stream<Uint8Array> => {
  const framing = dialect.framing(run.id)
  let isBegun = false
  let isOver = false
  const say = (text: string): Effect.Effect<Batch.Chunk<Uint8Array>> => {
    pulse.said()
    return Effect.succeed(Batch.of(encoder.encode(text)))
  }
  const broken = (message: string) => {
    isOver = true
    return say(`${framing.error(message)}${framing.end()}`)
  }
  const next: Effect.Effect<Batch.Chunk<Uint8Array>, Option.Option<never>> = Effect.suspend(() => {
    if (isOver) return Effect.fail(Option.none())
    if (!isBegun) {
      isBegun = true
      return say(Sse.open)
    }
    if (reader.isTooLate) return broken("This reader was too slow: what comes next is not kept any more.")
    if (reader.isClosed)
      return broken(`This stream is too old. Read the rest of the run from ${reader.index} on.`)
    const from = reader.index
    const taken = reader.take(batchSize)
    if (taken.length > 0) {
      const text = taken.map((entry, place) => framing.frames(entry, from + place)).join("")
      return text === "" ? next : say(text)
    }
    if (reader.end?._tag === "Broken") return broken(reader.end.message)
    if (reader.isDone) {
      isOver = true
      const text = framing.end()
      return text === "" ? next : say(text)
    }
    if (pulse.take()) return say(Sse.keepAlive)
    return Effect.zipRight(pulse.next(reader), next)
  })
  return Stream.repeatEffectChunkOption(next)
}

/** The id of the run that a stream is of. */
const runIdHeader = "x-run-id"

/** An id as a header can hold it: what is no visible ASCII, and the percent sign, is percent-encoded as UTF-8. */
const headerValue = (id: string): string =>
  id
    .toWellFormed()
    .replace(/[^!-$&-~]/gu, character =>
      Array.from(
        encoder.encode(character),
        byte => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`
      ).join("")
    )

/** A run as a response. The reader is closed when it is too old, and the run is left. */
export const runStream = Effect.fnUntraced(function* (
  reading: Reading,
  dialect: Dialect,
  settings: Pick<ServerSettings, "keepAlive" | "maxStreamAge">
) {
  const pulse = new Pulse()
  const half = Duration.times(settings.keepAlive, 0.5)
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.delay(
        Effect.sync(() => pulse.tick()),
        half
      )
    )
  )
  yield* Effect.forkScoped(Effect.delay(reading.leave, settings.maxStreamAge))
  return HttpServerResponse.stream(framesOf(reading, dialect, pulse), {
    headers: { ...Sse.headers, [runIdHeader]: headerValue(reading.run.id), ...dialect.headers }
  })
})

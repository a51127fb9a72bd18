/** Runs that were begun: read again from anywhere, and stopped. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import { type Asked, agentOf, type Handler } from "./asked.js"
import { chunks, type Dialect, events } from "./dialect.js"
import { disconnectHeader, readPolicy } from "./policies.js"
import * as Read from "./reading.js"
import { invalidBody, invalidQuery, Refusal } from "./refusal.js"
import { json, runStream } from "./responses.js"

/** Reads on where the client has stopped: behind the last event that it has, or at the offset that it names. */
const firstOf = Effect.fnUntraced(function* ({ headers, query }: Asked) {
  const offset = yield* Read.queryNumber(query, "offset")
  if (offset !== undefined) return offset
  const last = headers["last-event-id"]
  if (last === undefined || last === "") return 0
  if (!/^\d{1,15}$/.test(last)) return yield* invalidQuery("last-event-id", "must be the id of an event")
  return Number(last) + 1
})

/** Of a run that is over, and was read: `EventSource` does not come back after this. */
const nothingLeft = HttpServerResponse.empty({ status: 204 })

const again = Effect.fnUntraced(function* (asked: Asked, runId: string, from: number, dialect: Dialect) {
  const { headers, openStreams, principal, resource, runs, settings } = asked
  yield* openStreams.enter(principal)
  const header = headers[disconnectHeader]
  const policy = header === undefined ? undefined : readPolicy(header, settings)
  if (policy instanceof Refusal) return yield* policy
  const reading = yield* runs.read(runId, resource, from, policy)
  if (dialect === events && from > 0 && reading.reader.isDone && reading.reader.end?._tag === "Told") {
    return nothingLeft
  }
  return yield* runStream(reading, dialect, settings)
})

/** The events of a run, with their index as id. `EventSource` that comes back gets what it has missed, and nothing twice. */
export const readEvents: Handler = asked =>
  Effect.flatMap(firstOf(asked), from => again(asked, asked.params["runId"] ?? "", from, events))

/** The same for clients that read no ids. */
export const observe: Handler = asked =>
  Effect.gen(function* () {
    yield* agentOf(asked)
    yield* Read.refuseFields(asked.body, ["runId", "offset"])
    const runId = yield* Read.id(asked.body, "runId")
    const { offset = 0 } = asked.body
    if (typeof offset !== "number" || !Number.isSafeInteger(offset) || offset < 0) {
      return yield* invalidBody("offset", "must be a whole number")
    }
    return yield* again(asked, runId, offset, chunks)
  })

/** Stops a run: it tells its end, whoever reads it. Its background tasks go on. */
export const stop: Handler = ({ params, resource, runs }) =>
  Effect.map(runs.stop(params["runId"] ?? "", resource), stopped => json({ stopped }))

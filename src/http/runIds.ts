/** Ids of runs that clients choose: each is one run's, in whatever process, and its owner is stored before the run starts. */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { ignoreLogged } from "../protocol/logging.js"
import type { Asked } from "./asked.js"
import type { Host } from "./Host.js"
import { Refusal } from "./refusal.js"

/**
 * How long an id stays taken, from the start of its run on and whatever becomes of that. A request that is sent again finds that
 * its run exists, also on another process, and what a process that died had taken is free at the end of this time.
 */
const takenFor = Duration.hours(24)

const existsAlready = new Refusal({ status: 409, message: "This run exists already." })

/** Tasks may be kept for longer than the id of their run is taken. */
const hasTasks = ({ tasks }: Host, runId: string) =>
  tasks === undefined
    ? Effect.succeed(false)
    : Effect.map(tasks.list({ runId, perPage: 0 }), ({ total }) => total > 0)

/** Takes the id for a run of the sender. 409: there is, or was, a run of this id. */
export const reserve = Effect.fnUntraced(function* ({ host, resource, runs }: Asked, runId: string) {
  if (runs.isKnown(runId) || (yield* hasTasks(host, runId))) return yield* existsAlready
  if (host.runIds === undefined) return
  const owner = resource === undefined ? {} : { resourceId: resource }
  if (!(yield* host.runIds.reserve({ runId, ...owner }, takenFor))) return yield* existsAlready
})

/** Gives an id back that no run has taken after all. */
export const release = ({ host }: Asked, runId: string): Effect.Effect<void> =>
  ignoreLogged(host.runIds?.release(runId) ?? Effect.void)

/** Whether the run is the sender's: what is stored decides, before what this process knows. */
export const ownsRun = Effect.fnUntraced(function* ({ host, resource, runs }: Asked, runId: string) {
  const reservation = yield* host.runIds?.reservation(runId) ?? Effect.succeedNone
  return Option.match(reservation, {
    onNone: () => runs.owns(runId, resource),
    onSome: ({ resourceId }) => resourceId === resource
  })
})

/** How runs of a server come to an end that is not their own. */
import * as Effect from "effect/Effect"
import type { ReplayLog } from "./replayLog.js"

/** A run that can be stopped. */
interface Stoppable {
  readonly log: ReplayLog
  readonly abort: (reason: string) => void
}

/** Timers and sockets have their turn. */
export const turn = Effect.sleep(0)

/** Runs that are stopped at the same time: of a thousand the last one would keep every clock waiting. */
const stoppedAtOnce = 16

/** Stops runs and waits until each has told so. */
export const stopped = (runs: ReadonlyArray<Stoppable>, reason: string): Effect.Effect<void> =>
  Effect.forEach(
    runs.flatMap((_, index) =>
      index % stoppedAtOnce === 0 ? [runs.slice(index, index + stoppedAtOnce)] : []
    ),
    some =>
      Effect.zipRight(
        Effect.sync(() => {
          for (const run of some) run.abort(reason)
        }),
        turn
      ),
    { discard: true }
  ).pipe(
    Effect.zipRight(
      Effect.forEach(runs, ({ log }) => ended(log), { concurrency: "unbounded", discard: true })
    )
  )

/** Waits for the end of a log, whether its readers read it or not. */
export const ended = (log: ReplayLog): Effect.Effect<void> =>
  Effect.async<void>(resume => {
    const watcher = log.read(Number.POSITIVE_INFINITY)
    const look = (): void => {
      if (log.end === undefined) watcher.wait(look)
      else resume(Effect.void)
    }
    look()
    return Effect.sync(() => watcher.close())
  })

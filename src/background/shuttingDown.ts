/** The end of a manager: running tasks get their time, and what is left goes to the next process. */
import * as Effect from "effect/Effect"
import { logWarning } from "../protocol/logging.js"
import { attemptsAreLeft, transition } from "../protocol/Task.js"
import { bounded, type Core, now, update } from "./core.js"
import type { Entry } from "./entry.js"
import { announce } from "./settling.js"

const isRunning = ({ isForeign, isSettled, task }: Entry): boolean =>
  !isSettled && !isForeign && task.status === "running"

const running = (core: Core): ReadonlyArray<Entry> => [...core.entries.values()].filter(isRunning)

const message = "The process was shut down before the task was done."

/** A task that has not come to its end: back into the queue, or failed. */
const giveBack = Effect.fnUntraced(function* (core: Core, entry: Entry) {
  const { isWaiting } = entry
  entry.stop?.(new DOMException(message, "AbortError"))
  const { owner, settings, store } = core
  const expected = { statuses: ["running"] as const, owner }
  // What waits to be begun, after it was resumed for one, has spent no attempt.
  if (settings.shutdown.unfinished === "pending" && (isWaiting || attemptsAreLeft(entry.task))) {
    yield* update(core, store.update(entry.task.id, expected, { status: "pending" }))
    entry.isForeign = true
    return
  }
  const at = yield* now
  const failed = transition(entry.task, { _tag: "Failed", at, message })
  if (failed === undefined) return
  const change = {
    status: "failed",
    completedAt: at,
    error: { message },
    isDelivered: failed.threadId === undefined
  } as const
  const isAgreed = yield* update(core, store.update(entry.task.id, expected, change))
  if (isAgreed) yield* announce(core, entry, failed, undefined)
})

const giveAllBack = (core: Core, entries: ReadonlyArray<Entry>): Effect.Effect<void> =>
  Effect.forEach(
    entries,
    entry =>
      Effect.catchAll(giveBack(core, entry), error =>
        logWarning(`Task ${entry.task.id} was left as it is: ${error.message}`, error)
      ),
    { concurrency: "unbounded", discard: true }
  )

/** Does something as long as it may take. */
const within = (effect: Effect.Effect<void>, milliseconds: number): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(effect, milliseconds))

/** The callbacks of tasks that ended last have so many milliseconds. */
const lastWords = 1000

/** Begins nothing more, waits for what runs as long as it may, and leaves the rest to others. */
export const shutDown = (core: Core): Effect.Effect<void> =>
  Effect.gen(function* () {
    core.isClosing = true
    for (const listener of core.closing) listener()
    core.slots.close()
    // What waits to be begun would wait in vain.
    yield* giveAllBack(
      core,
      running(core).filter(({ isWaiting }) => isWaiting)
    )
    yield* within(core.finished, core.settings.shutdown.graceMs)
    if (running(core).length > 0) {
      // What is being stored as done may still be.
      yield* giveAllBack(
        core,
        running(core).filter(({ isChanging }) => !isChanging)
      )
      yield* within(core.finished, lastWords)
    }
    yield* core.stopUpkeep
    yield* Effect.catchAll(bounded(core, "TaskStore.dropLease", core.store.dropLease(core.owner)), error =>
      logWarning(error.message, error)
    )
  })

/** A task on its way: from the queue into a slot, through its attempts, aside when it suspends, and to its end. */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import { InvalidResumeData, RunNotFound, ToolCallNotPending } from "../protocol/Errors.js"
import { squash } from "../protocol/foreignValue.js"
import { logError, logWarning } from "../protocol/logging.js"
import type { ToolResultOutput } from "../protocol/Message.js"
import { messageOf, toJson } from "../protocol/safeJson.js"
import { attemptsAreLeft } from "../protocol/Task.js"
import { failureText } from "../tool/failureText.js"
import { failureOutput } from "../tool/ToolOutcome.js"
import { type AttemptEnd, attempt } from "./attempt.js"
import { agreedOrDone, type Core, executorNotFound, now, persisted, update } from "./core.js"
import type { Entry } from "./entry.js"
import { pacing } from "./retrying.js"
import { type SettlingEvent, settle } from "./settling.js"
import type { Work } from "./slots.js"
import { runningChunk, suspendedChunk } from "./taskChunks.js"
import { Throttle } from "./throttle.js"

const limitOf = (core: Core, entry: Entry): number =>
  entry.executor?.concurrency ?? core.settings.perAgentConcurrency

/** Puts a task into the queue; it begins when there is a slot. */
export const enqueue = (core: Core, entry: Entry): void => {
  entry.isWaiting = true
  core.slots.enqueue(entry.task.agentId, limitOf(core, entry), workOf(core, entry))
}

/** Begins a task now, if there is a slot; whether there was. `first` comes before, in the slot, and once. */
export const beginNow = (core: Core, entry: Entry, first: Effect.Effect<boolean>): boolean => {
  const work = workOf(core, entry)
  const begin = Effect.suspend(() =>
    entry.isCreated ? work : Effect.flatMap(first, isReady => (isReady ? work : nothing))
  )
  return core.slots.begin(entry.task.agentId, limitOf(core, entry), begin)
}

const nothing: Effect.Effect<Effect.Effect<void>> = Effect.succeed(Effect.void)

const workOf = (core: Core, entry: Entry): Work => {
  const ticket = entry.nextTicket()
  const failed = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
    Cause.isInterruptedOnly(cause) ? Effect.interrupt : fail(core, entry, messageOf(squash(cause)))
  // What throws in the life of a task, in its slot or after it, is its failure.
  return Effect.matchCauseEffect(claimed(core, entry, ticket), {
    onFailure: cause => Effect.succeed(failed(cause)),
    onSuccess: after => Effect.succeed(after && Effect.catchAllCause(after, failed))
  })
}

const claimed = (core: Core, entry: Entry, ticket: number): Work =>
  Effect.suspend(() => {
    // It was queued again since, or is not to be begun any more.
    if (entry.ticket !== ticket || entry.isSettled || entry.isForeign || core.isClosing) return nothing
    if (entry.task.status === "suspended") return nothing
    entry.isWaiting = false
    if (entry.task.status === "running" && !entry.isRetry) return perform(core, entry)
    return Effect.matchEffect(entry.changing(claim(core, entry)), {
      onFailure: error => {
        entry.isWaiting = true
        entry.isUnsure = true
        return Effect.as(
          logWarning(`Task ${entry.task.id} did not begin: ${error.message}`, error),
          undefined
        )
      },
      onSuccess: isOurs => {
        entry.isUnsure = false
        if (isOurs) return perform(core, entry)
        // Cancelled, or taken over by another process: upkeep finds out, unless whoever did it has told already.
        entry.isForeign = !entry.isSettled
        return nothing
      }
    })
  })

/** Makes a pending task a running one, or begins the next attempt of one that runs. Whether the store agreed. */
const claim = Effect.fnUntraced(function* (core: Core, entry: Entry) {
  const at = yield* now
  const { owner, store } = core
  const { id, status } = entry.task
  const next = entry.task.attempt + 1
  const change = store.update(
    id,
    { statuses: [status], owner },
    { status: "running", startedAt: at, attempt: next }
  )
  const isClaimed = entry.isUnsure
    ? yield* agreedOrDone(
        core,
        id,
        change,
        stored => stored.owner === owner && stored.task.status === "running" && stored.task.attempt === next
      )
    : yield* update(core, change)
  if (!isClaimed || entry.isSettled) return false
  if (entry.isRetry) {
    entry.isRetry = false
    entry.task = { ...entry.task, startedAt: at, attempt: next }
  } else {
    entry.apply({ _tag: "Started", at })
    core.hub.tell(entry.task, runningChunk)
  }
  return true
})

/** One attempt, in the slot; what comes of it follows when the slot is free. */
const perform = (core: Core, entry: Entry): Effect.Effect<Effect.Effect<void>> => {
  const { executor } = entry
  // A listener of the event may have cancelled it.
  if (entry.isSettled) return nothing
  if (executor === undefined) {
    return Effect.succeed(fail(core, entry, executorNotFound(entry.task)))
  }
  const throttle = new Throttle(core, entry)
  entry.flush = () => throttle.flush()
  // What it wrote is emitted before its end.
  return Effect.map(
    Effect.zipLeft(
      attempt(core, entry, executor, output => throttle.write(output)),
      throttle.drained
    ),
    end => {
      entry.flush = undefined
      return after(core, entry, end)
    }
  )
}

const fail = (core: Core, entry: Entry, error: unknown): Effect.Effect<void> => {
  const message = messageOf(error)
  return Effect.flatMap(now, at =>
    settleFailed(core, entry, error, { _tag: "Failed", at, message }, failureOutput(error))
  )
}

/** Ends a task that failed for good, and writes it to the log when the store has agreed. */
const settleFailed = Effect.fnUntraced(function* (
  core: Core,
  entry: Entry,
  error: unknown,
  event: Extract<SettlingEvent, { readonly message: string }>,
  told: ToolResultOutput | undefined
) {
  const { agentId, id: taskId, runId, toolName } = entry.task
  if (!(yield* settle(core, entry, event, told))) return
  const line = logError(`Task ${taskId} of tool "${toolName}" of agent "${agentId}" failed: ${event.message}`)
  yield* Effect.annotateLogs(line, { taskId, toolName, runId, agentId, cause: failureText(error) })
})

/** What a call was resumed with is wrong, or comes too late. */
const isFinal = (error: unknown): boolean =>
  error instanceof InvalidResumeData || error instanceof RunNotFound || error instanceof ToolCallNotPending

const after = (core: Core, entry: Entry, end: AttemptEnd): Effect.Effect<void> => {
  switch (end._tag) {
    case "Done": {
      const { told, value } = end.executed
      const result = toJson(value)
      return Effect.asVoid(
        Effect.flatMap(now, at => settle(core, entry, { _tag: "Completed", at, result }, told))
      )
    }
    case "Failed": {
      // It would be the same another time.
      if (isFinal(end.error)) return fail(core, entry, end.error)
      return again(core, entry, end.error, fail(core, entry, end.error))
    }
    case "TimedOut": {
      const message = `The tool took longer than its ${end.milliseconds} ms and was stopped.`
      const error = new DOMException(message, "TimeoutError")
      const expire = Effect.flatMap(now, at =>
        settleFailed(core, entry, error, { _tag: "TimedOut", at, message }, undefined)
      )
      return again(core, entry, error, expire)
    }
    case "Suspended":
      return suspend(core, entry, end.data)
    case "Stopped":
      return Effect.void
  }
}

/** Tries again, after a while, or ends the task. */
const again = (core: Core, entry: Entry, error: unknown, end: Effect.Effect<void>): Effect.Effect<void> => {
  const paced = Effect.gen(function* () {
    entry.pacing ??= yield* pacing(core.settings.retry)
    return yield* entry.pacing(entry.task, error)
  })
  return Effect.suspend(() => {
    entry.isWaiting = true
    // There is no next attempt here: the next process makes it.
    if (core.isClosing && attemptsAreLeft(entry.task)) return Effect.void
    return Effect.flatMap(untilStopped(core, entry, paced), isWorthIt => {
      if (isWorthIt === undefined || entry.isSettled) return Effect.void
      if (!isWorthIt) {
        entry.isWaiting = false
        return end
      }
      entry.isRetry = true
      enqueue(core, entry)
      return Effect.void
    })
  })
}

/** Waits for something, unless the task is stopped meanwhile: then `undefined`. */
const untilStopped = <A>(core: Core, entry: Entry, effect: Effect.Effect<A>): Effect.Effect<A | undefined> =>
  Effect.async(resume => {
    const fiber = core.fork(effect)
    entry.stop = () => {
      entry.stop = undefined
      fiber.unsafeInterruptAsFork(FiberId.none)
      resume(Effect.succeed(undefined))
    }
    fiber.addObserver(exit => {
      entry.stop = undefined
      resume(exit)
    })
  })

/** Stored first, then told: whoever hears of it may resume it at once. */
const suspend = Effect.fnUntraced(function* (core: Core, entry: Entry, data: ReturnType<typeof toJson>) {
  const at = yield* now
  const { owner, store } = core
  const { id } = entry.task
  const isAgreed = yield* entry.changing(
    persisted(
      core,
      id,
      store.update(
        id,
        { statuses: ["running"], owner },
        { status: "suspended", suspension: Option.some({ at, data }), owner: null }
      ),
      ({ task }) => task.status === "suspended" && task.suspendedAt?.getTime() === at.getTime()
    )
  )
  if (!isAgreed || entry.isSettled || !entry.apply({ _tag: "Suspended", at, suspendData: data })) return
  entry.resumeData = Option.none()
  park(core, entry)
  core.hub.tell(entry.task, suspendedChunk)
})

/** Waits for the decision in a fiber that has no slot. */
const park = (core: Core, entry: Entry): void => {
  const parked = Deferred.unsafeMake<void>(FiberId.none)
  entry.parked = parked
  const waiting = Effect.zipRight(
    Deferred.await(parked),
    Effect.sync(() => {
      entry.parked = undefined
      enqueue(core, entry)
    })
  )
  const fiber = core.fork(waiting)
  entry.stop = () => {
    entry.stop = undefined
    entry.parked = undefined
    fiber.unsafeInterruptAsFork(FiberId.none)
  }
}

/** When a task that failed is tried again. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import { logWarning } from "../protocol/logging.js"
import { attemptsAreLeft, type Task } from "../protocol/Task.js"
import type { RetryPolicy } from "./settings.js"

/** Waits before the next attempt, or says that there is none. Keeps count of the failures of one task. */
export type Pacing = (task: Task, error: unknown) => Effect.Effect<boolean>

/** The time before another attempt, after this many. Pure. */
const delayAfter = (policy: Extract<RetryPolicy, { readonly _tag: "Backoff" }>, attempt: number): number =>
  Math.min(policy.maxDelayMs, policy.delayMs * policy.multiplier ** Math.max(0, attempt - 1))

/** What the predicate of the user throws is no reason to try again. */
const isRetryable = (judge: (error: unknown) => boolean, error: unknown): Effect.Effect<boolean> =>
  Effect.catchAllCause(
    Effect.sync(() => judge(error)),
    cause => Effect.as(logWarning("`retryableErrors` failed: the task is not tried again.", cause), false)
  )

/** How one task is paced. Made when it fails first. */
export const pacing = (policy: RetryPolicy): Effect.Effect<Pacing> => {
  if (policy._tag === "Backoff") {
    return Effect.succeed((task, error) =>
      attemptsAreLeft(task)
        ? Effect.flatMap(isRetryable(policy.isRetryable, error), isWorthIt =>
            isWorthIt
              ? Effect.as(Effect.sleep(delayAfter(policy, task.attempt)), true)
              : Effect.succeed(false)
          )
        : Effect.succeed(false)
    )
  }
  return Effect.map(Schedule.driver(policy.schedule), driver => (task, error) => {
    if (!attemptsAreLeft(task)) return Effect.succeed(false)
    // The driver waits by itself, and fails when the schedule is done.
    return Effect.map(Effect.exit(driver.next(error)), Exit.isSuccess)
  })
}

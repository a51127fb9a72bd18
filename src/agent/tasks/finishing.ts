/** A run whose model has said its last word, and whose tasks have not. */
import * as Effect from "effect/Effect"
import type { Run } from "../loop/run.js"
import type { RunTasks, TaskCall } from "./runTasks.js"

/**
 * Settled calls that no model has answered to, if the run waits for any of them: those that it does not wait for are answered
 * beside the others, as their outcomes are there.
 */
export const answerable = <R>({ unseen }: RunTasks<R>): ReadonlyArray<TaskCall> =>
  unseen.some(({ waitTimeoutMs }) => waitTimeoutMs !== undefined) ? unseen : []

/** Milliseconds that a run waits on; 0: it does not. The time of a task begins when the run would have finished but for it. */
export const remaining = <R>(run: Run<R>, tasks: RunTasks<R>): number => {
  const now = run.clock.unsafeCurrentTimeMillis()
  let longest = 0
  for (const call of tasks.awaited) {
    call.waitedSince ??= now
    longest = Math.max(longest, call.waitedSince + (call.waitTimeoutMs ?? 0) - now)
  }
  return longest
}

/** Done when one of the tasks has settled, or waits for somebody itself, or the time is over. */
export const oneSettled = <R>(tasks: RunTasks<R>, milliseconds: number): Effect.Effect<void> =>
  Effect.raceFirst(
    Effect.async<void>(resume => {
      const wake = (): void => resume(Effect.void)
      const { awaited } = tasks
      const ids = new Set(awaited.map(({ dispatched }) => dispatched.taskId))
      const forget = [
        ...awaited.map(({ dispatched }) => dispatched.onSettled(wake)),
        tasks.dispatcher.listen(({ id, status }) => {
          if (status === "suspended" && ids.has(id)) wake()
        })
      ]
      return Effect.sync(() => forget.forEach(stop => stop()))
    }),
    Effect.sleep(milliseconds)
  )

/** Tells how many tasks of a run are still going, as long as there are some and the run is. */
import * as Effect from "effect/Effect"
import type { Of } from "../../protocol/Chunk.js"
import { fork, type Run } from "../loop/run.js"

/** What is told of tasks that have been going since then. */
export const progressChunk = (
  runId: string,
  taskIds: ReadonlyArray<string>,
  elapsedMs: number
): Of<"background-task-progress"> => ({
  type: "background-task-progress",
  runId,
  from: "AGENT",
  payload: { taskIds, runningCount: taskIds.length, elapsedMs: Math.max(0, elapsedMs) }
})

/** Tells it; whether anything is going. */
const tell = <R>(run: Run<R>): boolean => {
  const { clock, emit, isOver, runId, tasks } = run
  const active = tasks?.active ?? []
  if (tasks === undefined || active.length === 0 || isOver) return false
  emit(progressChunk(runId, active, clock.unsafeCurrentTimeMillis() - (tasks.since ?? 0)))
  return true
}

/** Tells it right after each step that dispatched something, and from then on at every interval, until nothing is going. */
export const startProgress = <R>(run: Run<R>): void => {
  const { tasks } = run
  if (tasks === undefined || (tasks.isReported && tasks.calls.size === tasks.reported)) return
  tasks.reported = tasks.calls.size
  if (!tell(run) || tasks.isReported) return
  tasks.isReported = true
  const again: Effect.Effect<void> = Effect.suspend(() =>
    tell(run)
      ? Effect.zipRight(Effect.sleep(tasks.dispatcher.progressIntervalMs), again)
      : Effect.sync(() => {
          tasks.isReported = false
        })
  )
  fork(run, Effect.zipRight(Effect.sleep(tasks.dispatcher.progressIntervalMs), again))
}

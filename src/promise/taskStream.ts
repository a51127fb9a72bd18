/** What happens to tasks, as a web stream. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type { TaskChunk, TaskFilter } from "../background/hub.js"
import { TaskManager } from "../background/TaskManager.js"
import { squash } from "../protocol/foreignValue.js"
import { lazily } from "../protocol/lazily.js"

/** A web stream that `for await` reads too. @since 0.1.0 @category models */
export type TaskStream = ReadableStream<TaskChunk> & AsyncIterable<TaskChunk>

/** Loaded when somebody looks at tasks first. */
const taskChunks = lazily(() => import("../background/taskChunks.js"))

/** Starts effects where the manager is. */
type Start = <A, E>(effect: Effect.Effect<A, E, TaskManager>) => Fiber.RuntimeFiber<A, unknown>

/**
 * Listens from now on. Tasks that run come first, then everything as it happens. What nobody reads stays with the manager,
 * which lets go of a reader that is too far behind.
 */
export const open = (start: Start, filter: TaskFilter, signal: AbortSignal | undefined): TaskStream => {
  let fiber: Fiber.RuntimeFiber<void, unknown> | undefined
  let isOver = false
  /** Whether the reader has asked for more than there is, and whom to tell. */
  let isWanted = false
  let wake: (() => void) | undefined

  const leave = (): void => {
    isOver = true
    signal?.removeEventListener("abort", close)
    fiber?.unsafeInterruptAsFork(FiberId.none)
  }
  let close = (): void => undefined

  const wanted = Effect.async<void>(resume => {
    if (isWanted) resume(Effect.void)
    else wake = () => resume(Effect.void)
  })

  return new ReadableStream<TaskChunk>(
    {
      start: controller => {
        close = () => {
          if (isOver) return
          leave()
          controller.close()
        }
        if (signal?.aborted === true) return close()
        signal?.addEventListener("abort", close)
        const told = Effect.gen(function* () {
          const manager = yield* TaskManager
          const { active, next } = yield* manager.watch(filter)
          // What happens meanwhile is kept for it.
          const { runningChunk } = yield* taskChunks
          for (const task of active) if (task.status === "running") controller.enqueue(runningChunk(task))
          for (;;) {
            yield* wanted
            const happenings = yield* next
            // The manager is no more.
            if (happenings === undefined) return
            if (happenings.length === 0) continue
            isWanted = false
            for (const { chunk } of happenings) controller.enqueue(chunk)
          }
        })
        fiber = start(Effect.scoped(told))
        fiber.addObserver(exit => {
          if (isOver) return
          if (Exit.isSuccess(exit) || Cause.isInterruptedOnly(exit.cause)) return close()
          leave()
          controller.error(squash(exit.cause))
        })
      },
      pull: () => {
        isWanted = true
        wake?.()
      },
      cancel: leave
    },
    { highWaterMark: 0 }
  )
}

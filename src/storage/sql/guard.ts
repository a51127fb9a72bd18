/** A database that is asked again when that may help, and whose silence has an end. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { type Executor, SqlFailure } from "./executor.js"

/** How long a lock that another process holds, or a server that starts again, is waited for. */
const patience = Duration.seconds(10)

/** How long anything may take. */
const limit = Duration.seconds(30)

const again = Schedule.exponential("5 millis").pipe(
  Schedule.union(Schedule.spaced("250 millis")),
  Schedule.jittered,
  Schedule.upTo(patience)
)

/** A schedule is begun when it is needed only: most of what is asked is done the first time. */
const retried = <A>(asked: Effect.Effect<A, SqlFailure>): Effect.Effect<A, SqlFailure> =>
  Effect.catchAll(asked, failure =>
    failure.kind === "notYet"
      ? Effect.retry(asked, { schedule: again, while: ({ kind }) => kind === "notYet" })
      : Effect.fail(failure)
  )

const silent = (): SqlFailure =>
  new SqlFailure({
    kind: "unknown",
    message: `The database did not answer within ${Duration.toSeconds(limit)} seconds. What it was asked may have been done.`
  })

/** A file in this process, which always answers, and at once. */
export const local = (executor: Executor): Executor => ({
  execute: statement => retried(executor.execute(statement)),
  batch: statements => retried(executor.batch(statements))
})

/** Over a network: it may break, and it may be silent. What it is asked ends with the scope, after what is made later in it. */
export const remote = Effect.fnUntraced(function* (executor: Executor) {
  const scope = yield* Scope.fork(yield* Effect.scope, ExecutionStrategy.sequential)
  /**
   * Whoever asks may be interrupted at any time and does not wait. The database is left to finish, because drivers cancel by
   * connection, and would hit what another asks on it next. Only silence is cancelled.
   */
  const bounded = <A>(asked: Effect.Effect<A, SqlFailure>): Effect.Effect<A, SqlFailure> =>
    retried(asked).pipe(
      Effect.disconnect,
      Effect.timeoutFail({ duration: limit, onTimeout: silent }),
      Effect.interruptible,
      Effect.forkIn(scope),
      Effect.flatMap(fiber => Effect.flatten(Fiber.await(fiber)))
    )
  const guarded: Executor = {
    execute: statement => bounded(executor.execute(statement)),
    batch: statements => bounded(executor.batch(statements))
  }
  return guarded
})

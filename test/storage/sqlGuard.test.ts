/** What becomes of a database that is locked, gone or silent. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Scope, TestClock } from "effect"
import { type Executor, type Result, SqlFailure, statement } from "../../src/storage/sql/executor.js"
import * as Group from "../../src/storage/sql/group.js"
import { local, remote } from "../../src/storage/sql/guard.js"

const answer: Result = { rows: [{ answer: 42 }], rowsAffected: 0 }

const failure = (kind: SqlFailure["kind"]) => new SqlFailure({ kind, message: kind })

/** Does this whenever it is asked; `count` tells how often that was. */
const executorOf = (run: (count: number) => Effect.Effect<Result, SqlFailure>) => {
  const counter = { count: 0 }
  const asked = Effect.suspend(() => {
    counter.count++
    return run(counter.count)
  })
  const executor: Executor = { execute: () => asked, batch: () => Effect.map(asked, result => [result]) }
  return { counter, executor }
}

const select = statement("SELECT 42")

/** Lets time pass in steps, so that whoever sleeps again does so from where it woke up. */
const pass = (seconds: number) => Effect.repeatN(TestClock.adjust(Duration.millis(50)), seconds * 20 - 1)

for (const [name, guard] of [
  ["a file", (executor: Executor) => Effect.succeed(local(executor))],
  ["a server", remote]
] as const) {
  describe(name, () => {
    it.scoped("is asked again while it cannot yet", () =>
      Effect.gen(function* () {
        const { counter, executor } = executorOf(count =>
          count < 4 ? failure("notYet") : Effect.succeed(answer)
        )
        const guarded = yield* guard(executor)
        const asked = yield* Effect.fork(guarded.execute(select))
        yield* pass(1)
        expect(yield* Fiber.join(asked)).toBe(answer)
        expect(counter.count).toBe(4)
        expect(yield* guarded.batch([select])).toEqual([answer])
      })
    )

    it.scoped("is not asked for ever", () =>
      Effect.gen(function* () {
        const { counter, executor } = executorOf(() => failure("notYet"))
        const asked = yield* Effect.fork(Effect.flip((yield* guard(executor)).batch([select])))
        yield* pass(8)
        expect(asked.unsafePoll()).toBeNull()
        yield* pass(4)
        expect(yield* Fiber.join(asked)).toEqual(failure("notYet"))
        expect(counter.count).toBeGreaterThan(20)
        expect(counter.count).toBeLessThan(100)
      })
    )

    it.scoped("is asked once when it refuses, or may have done it", () =>
      Effect.gen(function* () {
        for (const kind of ["refused", "unknown"] as const) {
          const { counter, executor } = executorOf(() => failure(kind))
          expect(yield* Effect.flip((yield* guard(executor)).batch([select]))).toEqual(failure(kind))
          expect(counter.count).toBe(1)
        }
      })
    )
  })
}

describe("a server that is silent", () => {
  it.scoped("fails who asks after 30 seconds, also when it cannot even be told to stop", () =>
    Effect.gen(function* () {
      const stopped = yield* Deferred.make<void>()
      const silent = Effect.onInterrupt(Effect.never, () =>
        Effect.zipRight(Deferred.succeed(stopped, undefined), Effect.never)
      )
      const { executor } = executorOf(() => silent)
      const asked = yield* Effect.fork(Effect.flip((yield* remote(executor)).execute(select)))
      yield* TestClock.adjust("29 seconds")
      expect(asked.unsafePoll()).toBeNull()
      expect(yield* Deferred.isDone(stopped)).toBe(false)
      yield* TestClock.adjust("1 second")
      const error = yield* Fiber.join(asked)
      expect(error.kind).toBe("unknown")
      expect(error.message).toContain("within 30 seconds")
      yield* Deferred.await(stopped)
    })
  )

  it.scoped("keeps nobody who is interrupted, and is left to finish", () =>
    Effect.gen(function* () {
      const open = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<Exit.Exit<Result, SqlFailure>>()
      const slow = Effect.onExit(Effect.as(Deferred.await(open), answer), exit =>
        Deferred.succeed(ended, exit)
      )
      const { executor } = executorOf(() => slow)
      const asked = yield* Effect.fork((yield* remote(executor)).execute(select))
      yield* Effect.repeatN(Effect.yieldNow(), 20)
      expect(Exit.isInterrupted(yield* Fiber.interrupt(asked))).toBe(true)
      expect(yield* Deferred.isDone(ended)).toBe(false)
      yield* Deferred.succeed(open, undefined)
      expect(yield* Deferred.await(ended)).toEqual(Exit.succeed(answer))
    })
  )

  it.effect("ends what is in flight when the store closes", () =>
    Effect.gen(function* () {
      const open = yield* Deferred.make<void>()
      const { executor } = executorOf(() => Effect.as(Deferred.await(open), answer))
      const scope = yield* Scope.make()
      const group = yield* Scope.extend(Effect.flatMap(remote(executor), Group.make), scope)
      const asked = yield* Effect.fork(group.write("key", [select]))
      yield* Effect.repeatN(Effect.yieldNow(), 20)
      const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
      yield* Effect.repeatN(Effect.yieldNow(), 20)
      expect(closing.unsafePoll()).toBeNull()
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(closing)
      expect(yield* Fiber.join(asked)).toEqual([answer])
    })
  )
})

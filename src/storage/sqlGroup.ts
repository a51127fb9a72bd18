/**
 * Writes of many fibers in few transactions: what is asked for while one is in flight goes together in the next. Making a
 * transaction durable costs much more than what is in it.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type Executor, type Result, SqlFailure, type Statement } from "./sqlExecutor.js"

export interface Group {
  /**
   * Executes statements, all or none, and durable when it succeeds. When it is interrupted before they are begun they are
   * left out; later it waits for their end, so that whoever looks afterwards sees what came of them.
   *
   * `key` names what they change, first of all: transactions change things in the order of their keys, so that two processes
   * do not wait for each other.
   */
  readonly write: (
    key: string,
    statements: ReadonlyArray<Statement>
  ) => Effect.Effect<ReadonlyArray<Result>, SqlFailure>
}

interface Entry {
  readonly key: string
  readonly statements: ReadonlyArray<Statement>
  readonly done: Deferred.Deferred<ReadonlyArray<Result>, SqlFailure>
  state: "waiting" | "begun" | "gone"
}

/** Statements of one transaction, unless a single asker has more. */
const most = 256

const closed = (): SqlFailure =>
  new SqlFailure({ kind: "refused", message: "The store is closed: its scope has ended." })

const fail = (entries: ReadonlyArray<Entry>, failure: SqlFailure): Effect.Effect<void> =>
  Effect.forEach(entries, ({ done }) => Deferred.fail(done, failure), { discard: true })

const failureOf = (cause: Cause.Cause<SqlFailure>): SqlFailure => {
  const failure = Cause.squash(cause)
  return failure instanceof SqlFailure
    ? failure
    : new SqlFailure({ kind: "unknown", message: "The driver broke: see the cause.", cause: failure })
}

/** Gives each its part of the results. */
const settle = (entries: ReadonlyArray<Entry>, results: ReadonlyArray<Result>): Effect.Effect<void> => {
  let from = 0
  return Effect.forEach(
    entries,
    ({ done, statements }) => {
      const own = results.slice(from, from + statements.length)
      from += statements.length
      return Deferred.succeed(done, own)
    },
    { discard: true }
  )
}

/** Lives as long as the scope. */
export const make = Effect.fnUntraced(function* (executor: Executor) {
  let waiting: Array<Entry> = []
  let isClosed = false
  const bell = yield* Effect.makeLatch(false)

  /** The next ones, of which the first few fill a transaction. */
  const take = (): ReadonlyArray<Entry> => {
    waiting = waiting.filter(({ state }) => state === "waiting")
    let count = 0
    let size = 0
    for (const { statements } of waiting) {
      size += statements.length
      if (count > 0 && size > most) break
      count++
    }
    const taken = waiting.splice(0, count)
    for (const entry of taken) entry.state = "begun"
    return taken.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0))
  }

  const run: (entries: ReadonlyArray<Entry>) => Effect.Effect<void> = Effect.fnUntraced(function* (entries) {
    const exit = yield* Effect.exit(executor.batch(entries.flatMap(({ statements }) => statements)))
    if (Exit.isSuccess(exit)) return yield* settle(entries, exit.value)
    const failure = failureOf(exit.cause)
    // One of them is to blame, and nothing was done: each for itself, so that the others do not pay for it.
    return failure.kind === "refused" && entries.length > 1
      ? yield* Effect.forEach(entries, entry => run([entry]), { discard: true })
      : yield* fail(entries, failure)
  })

  const runAll = Effect.gen(function* () {
    bell.unsafeClose()
    // Those who were told of the last transaction ask again first.
    yield* Effect.yieldNow()
    for (let entries = take(); entries.length > 0; entries = take()) {
      yield* run(entries)
      yield* Effect.yieldNow()
    }
  })

  // In the opposite order: nobody may ask any more, what is in flight ends, and who was not heard is told.
  yield* Effect.addFinalizer(() => fail(waiting, closed()))
  yield* Effect.forkScoped(Effect.forever(Effect.zipRight(bell.await, Effect.uninterruptible(runAll))))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
    })
  )

  const group: Group = {
    write: (key, statements) =>
      Effect.uninterruptibleMask(restore =>
        Effect.gen(function* () {
          if (isClosed) return yield* closed()
          const done = yield* Deferred.make<ReadonlyArray<Result>, SqlFailure>()
          const entry: Entry = { key, statements, done, state: "waiting" }
          waiting.push(entry)
          bell.unsafeOpen()
          return yield* Effect.onInterrupt(restore(Deferred.await(done)), () => {
            if (entry.state === "begun") return Effect.exit(Deferred.await(done))
            entry.state = "gone"
            return Effect.void
          })
        })
      )
  }
  return group
})

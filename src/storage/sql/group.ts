/**
 * Writes of many fibers in few transactions: what is asked for while one is in flight goes together in the next. Making a
 * transaction durable costs much more than what is in it.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { squash } from "../../protocol/foreignValue.js"
import { type Executor, type Result, SqlFailure, type Statement } from "./executor.js"

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

type Answer = Exit.Exit<ReadonlyArray<Result>, SqlFailure>

/** What one asker wants. Plain code: there are thousands in a second. */
class Entry {
  state: "waiting" | "begun" | "gone" = "waiting"
  private answer: Answer | undefined
  private listeners: Array<(answer: Answer) => void> = []

  constructor(
    readonly key: string,
    readonly statements: ReadonlyArray<Statement>
  ) {}

  end(answer: Answer): void {
    if (this.answer !== undefined) return
    this.answer = answer
    for (const listener of this.listeners) listener(answer)
  }

  onEnd(listener: (answer: Answer) => void): void {
    if (this.answer === undefined) this.listeners.push(listener)
    else listener(this.answer)
  }

  /** Nobody asks any more. */
  get leave(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.state === "begun") {
        return Effect.async<void>(resume => this.onEnd(() => resume(Effect.void)))
      }
      this.state = "gone"
      return Effect.void
    })
  }
}

/** Statements of one transaction, unless a single asker has more. */
const most = 256

const closed = (): SqlFailure =>
  new SqlFailure({ kind: "refused", message: "The store is closed: its scope has ended." })

const fail = (entries: ReadonlyArray<Entry>, failure: SqlFailure): void => {
  for (const entry of entries) entry.end(Exit.fail(failure))
}

const failureOf = (cause: Cause.Cause<SqlFailure>): SqlFailure => {
  const failure = squash(cause)
  return failure instanceof SqlFailure
    ? failure
    : new SqlFailure({ kind: "unknown", message: "The driver broke: see the cause.", cause: failure })
}

/** Gives each its part of the results. */
const settle = (entries: ReadonlyArray<Entry>, results: ReadonlyArray<Result>): void => {
  let from = 0
  for (const entry of entries) {
    const end = from + entry.statements.length
    entry.end(Exit.succeed(results.slice(from, end)))
    from = end
  }
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
    if (Exit.isSuccess(exit)) return settle(entries, exit.value)
    const failure = failureOf(exit.cause)
    // One of them is to blame, and nothing was done: each for itself, so that the others do not pay for it.
    return failure.kind === "refused" && entries.length > 1
      ? yield* Effect.forEach(entries, entry => run([entry]), { discard: true })
      : fail(entries, failure)
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
  yield* Effect.addFinalizer(() => Effect.sync(() => fail(waiting, closed())))
  yield* Effect.forkScoped(Effect.forever(Effect.zipRight(bell.await, Effect.uninterruptible(runAll))))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
    })
  )

  const group: Group = {
    write: (key, statements) =>
      Effect.async(resume => {
        if (isClosed) {
          resume(Effect.fail(closed()))
          return undefined
        }
        const entry = new Entry(key, statements)
        entry.onEnd(resume)
        waiting.push(entry)
        bell.unsafeOpen()
        return entry.leave
      })
  }
  return group
})

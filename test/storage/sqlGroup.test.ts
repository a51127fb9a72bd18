/** Writes of many fibers in few transactions, over a database that does what a test says. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { type Executor, type Result, SqlFailure, statement } from "../../src/storage/sql/executor.js"
import * as Group from "../../src/storage/sql/group.js"

type Answer = Effect.Effect<ReadonlyArray<Result>, SqlFailure>

const done = (sql: string): Result => ({ rows: [{ sql }], rowsAffected: 1 })

const failure = (kind: SqlFailure["kind"]) => new SqlFailure({ kind, message: kind })

/** Remembers the statements of each transaction, and does with them what `answer` says. */
const recorded = (answer: (sqls: ReadonlyArray<string>, number: number) => Answer) => {
  const batches: Array<ReadonlyArray<string>> = []
  const executor: Executor = {
    execute: () => Effect.die("nobody reads here"),
    batch: statements =>
      Effect.suspend(() => {
        const sqls = statements.map(({ sql }) => sql)
        batches.push(sqls)
        return answer(sqls, batches.length)
      })
  }
  return { batches, executor }
}

const succeeds = (sqls: ReadonlyArray<string>): Answer => Effect.succeed(sqls.map(done))

/** Lets every fiber come as far as it can. */
const settle = Effect.repeatN(Effect.yieldNow(), 50)

const upTo = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}`.padStart(4, "0"))

const write = (group: Group.Group, ...sqls: ReadonlyArray<string>) =>
  Effect.map(
    group.write(
      sqls[0] ?? "",
      sqls.map(sql => statement(sql))
    ),
    results => results.map(({ rows }) => rows[0]?.["sql"])
  )

/** A group whose first transaction is in flight until `open` is done; what it is asked meanwhile waits. */
const busy = Effect.gen(function* () {
  const open = yield* Deferred.make<void>()
  const answers: Array<(sqls: ReadonlyArray<string>) => Answer> = []
  const { batches, executor } = recorded((sqls, number) =>
    number === 1 ? Effect.zipRight(Deferred.await(open), succeeds(sqls)) : (answers[0] ?? succeeds)(sqls)
  )
  const group = yield* Group.make(executor)
  const first = yield* Effect.fork(write(group, "first"))
  yield* settle
  expect(batches).toEqual([["first"]])
  return { answers, batches, first, group, open: Deferred.succeed(open, undefined) }
})

describe("the group", () => {
  it.scoped("makes one transaction of what is asked while another is in flight, and gives each its own", () =>
    Effect.gen(function* () {
      const { batches, group, open } = yield* busy
      const names = upTo(100)
      const fibers = yield* Effect.forEach(names, name => Effect.fork(write(group, name, `${name}b`)))
      yield* settle
      expect(batches).toHaveLength(1)
      yield* open
      const results = yield* Fiber.join(Fiber.all(fibers))
      expect(results).toEqual(names.map(name => [name, `${name}b`]))
      expect(batches).toHaveLength(2)
    })
  )

  it.scoped("begins with the first that is asked, without waiting for more", () =>
    Effect.gen(function* () {
      const { batches, executor } = recorded(succeeds)
      const group = yield* Group.make(executor)
      expect(yield* write(group, "a")).toEqual(["a"])
      expect(yield* write(group, "b")).toEqual(["b"])
      expect(batches).toEqual([["a"], ["b"]])
    })
  )

  it.scoped("puts no more than 256 statements into a transaction, unless one asker has more", () =>
    Effect.gen(function* () {
      const { batches, group, open } = yield* busy
      const large = upTo(300).map(name => `m${name}`)
      const small = upTo(300).map(name => `s${name}`)
      const all = [[...large], ...small.map(name => [name])]
      const fibers = yield* Effect.forEach(all, sqls => Effect.fork(write(group, ...sqls)))
      yield* settle
      yield* open
      expect(yield* Fiber.join(Fiber.all(fibers))).toEqual(all)
      expect(batches.map(({ length }) => length)).toEqual([1, 300, 256, 44])
    })
  )

  it.scoped("changes things in the order of their keys", () =>
    Effect.gen(function* () {
      const { batches, group, open } = yield* busy
      const fibers = yield* Effect.forEach(["c", "a", "b"], name =>
        Effect.fork(write(group, name, `${name}2`))
      )
      yield* settle
      yield* open
      expect(yield* Fiber.join(Fiber.all(fibers))).toEqual([
        ["c", "c2"],
        ["a", "a2"],
        ["b", "b2"]
      ])
      expect(batches[1]).toEqual(["a", "a2", "b", "b2", "c", "c2"])
    })
  )

  it.scoped("lets one bad statement fail its own asker only", () =>
    Effect.gen(function* () {
      const { answers, batches, group, open } = yield* busy
      answers.push(sqls => (sqls.includes("bad") ? failure("refused") : succeeds(sqls)))
      const fibers = yield* Effect.forEach(["a", "bad", "c"], name =>
        Effect.fork(Effect.exit(write(group, name)))
      )
      yield* settle
      yield* open
      const exits = yield* Fiber.join(Fiber.all(fibers))
      expect(exits).toEqual([Exit.succeed(["a"]), Exit.fail(failure("refused")), Exit.succeed(["c"])])
      expect(batches).toEqual([["first"], ["a", "bad", "c"], ["a"], ["bad"], ["c"]])
    })
  )

  it.scoped("does nothing twice of which it is not known whether it was done", () =>
    Effect.gen(function* () {
      const { answers, batches, group, open } = yield* busy
      answers.push(() => failure("unknown"))
      const fibers = yield* Effect.forEach(["a", "b"], name => Effect.fork(Effect.exit(write(group, name))))
      yield* settle
      yield* open
      const exits = yield* Fiber.join(Fiber.all(fibers))
      expect(exits).toEqual([Exit.fail(failure("unknown")), Exit.fail(failure("unknown"))])
      expect(batches).toEqual([["first"], ["a", "b"]])
      answers.splice(0)
      expect(yield* write(group, "c")).toEqual(["c"])
    })
  )

  it.scoped("goes on after a driver that broke", () =>
    Effect.gen(function* () {
      const { answers, group, open } = yield* busy
      yield* open
      answers.push(() => Effect.die("broken"))
      const error = yield* Effect.flip(write(group, "a"))
      expect(error).toMatchObject({ _tag: "SqlFailure", kind: "unknown", cause: "broken" })
      answers.splice(0)
      expect(yield* write(group, "b")).toEqual(["b"])
    })
  )

  it.scoped("leaves out who is interrupted before", () =>
    Effect.gen(function* () {
      const { batches, first, group, open } = yield* busy
      const gone = yield* Effect.fork(write(group, "gone"))
      const kept = yield* Effect.fork(write(group, "kept"))
      yield* settle
      yield* Fiber.interrupt(gone)
      yield* open
      expect(yield* Fiber.join(kept)).toEqual(["kept"])
      expect(yield* Fiber.join(first)).toEqual(["first"])
      expect(batches).toEqual([["first"], ["kept"]])
    })
  )

  it.scoped("lets who is interrupted in flight wait for the end, and breaks nobody", () =>
    Effect.gen(function* () {
      const { batches, first, group, open } = yield* busy
      const kept = yield* Effect.fork(write(group, "kept"))
      const interruption = yield* Effect.fork(Fiber.interrupt(first))
      yield* settle
      expect(interruption.unsafePoll()).toBeNull()
      yield* open
      expect(Exit.isInterrupted(yield* Fiber.join(interruption))).toBe(true)
      expect(yield* Fiber.join(kept)).toEqual(["kept"])
      expect(batches).toEqual([["first"], ["kept"]])
    })
  )

  it.effect("ends what was asked when its scope closes, and refuses what is asked afterwards", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { batches, first, group, open } = yield* Scope.extend(busy, scope)
      const waiting = yield* Effect.fork(write(group, "waiting"))
      yield* settle
      const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
      yield* settle
      const late = yield* Effect.flip(write(group, "late"))
      expect(late.message).toContain("closed")
      expect(closing.unsafePoll()).toBeNull()
      yield* open
      yield* Fiber.join(closing)
      expect(yield* Fiber.join(first)).toEqual(["first"])
      expect(yield* Fiber.join(waiting)).toEqual(["waiting"])
      expect(batches).toEqual([["first"], ["waiting"]])
    })
  )
})

/** PostgreSQL: several processes, connections that break, and what it says of what it cannot reach. */

import { describe, expect, it } from "@effect/vitest"
import { PostgresStore } from "eddy"
import { PostgresStore as PromiseStore } from "eddy/promise"
import { Effect, Either, Fiber, Option } from "effect"
import { freshSchema, postgresUrl, psql } from "../support/databases.js"
import { keepsExactly, say, sharedCases, start } from "../support/sharedDatabase.js"
import { taskOf } from "../support/taskOf.js"

const open = (url: string) => start(PostgresStore.layer({ url, maxConnections: 4 }))

const refused = (options: PostgresStore.Options) =>
  Effect.flip(Effect.scoped(start(PostgresStore.layer(options))))

const ids = (count: number) => Array.from({ length: count }, (_, index) => `task ${index}`)

describe.skipIf(postgresUrl === undefined)("PostgreSQL", () => {
  for (const { name, run } of sharedCases) {
    it.scopedLive(name, () =>
      Effect.gen(function* () {
        const url = yield* freshSchema
        const [one, other] = yield* Effect.all([open(url), open(url)], { concurrency: "unbounded" })
        yield* run(one, other)
      })
    )
  }

  it.scopedLive("keeps every character and number exactly", () =>
    Effect.flatMap(Effect.flatMap(freshSchema, open), keepsExactly)
  )

  it.scopedLive("holds everything when it is opened again, by either face", () =>
    Effect.gen(function* () {
      const url = yield* freshSchema
      const messages = yield* Effect.scoped(
        Effect.gen(function* () {
          const { threads } = yield* open(url)
          yield* threads.open({ id: "t", resourceId: "r" })
          return yield* threads.append("t", [say("a"), say("b")])
        })
      )
      const store = new PromiseStore({ url })
      expect(store.id).toBe("postgres")
      const { threads } = yield* start(store.layer)
      expect(yield* threads.messages("t")).toEqual(messages)
    })
  )

  it.scopedLive("goes on when its connections are killed, and has done what it announced", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema
      const name = `killed-${crypto.randomUUID()}`
      const { tasks } = yield* open(`${schema}&application_name=${name}`)
      const kill = psql(
        schema,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1",
        [name]
      )
      const killing = yield* Effect.fork(Effect.all([kill, kill, kill, kill, kill]))
      const done = yield* Effect.forEach(
        ids(800),
        id => Effect.map(Effect.either(tasks.create(taskOf(id), "me")), result => ({ id, result })),
        { concurrency: 40 }
      )
      const killed = yield* Fiber.join(killing)
      expect(killed.flat().some(({ count }) => Number(count) > 0)).toBe(true)
      const announced = done.filter(({ result }) => Either.isRight(result)).map(({ id }) => id)
      const places = yield* tasks.places(announced)
      expect(places).toHaveLength(announced.length)
      // What was in flight when it was committed may be told to have failed; nothing else is.
      expect(announced.length).toBeGreaterThan(500)
      yield* kill
      yield* tasks.create(taskOf("afterwards"), "me")
      expect(Option.isSome(yield* tasks.get("afterwards"))).toBe(true)
    })
  )

  it.scopedLive("readers that are interrupted break no others", () =>
    Effect.gen(function* () {
      const { tasks } = yield* Effect.flatMap(freshSchema, open)
      yield* tasks.create(taskOf("a"), "me")
      for (let round = 0; round < 30; round++) {
        const fibers = yield* Effect.replicateEffect(Effect.fork(tasks.get("a")), 12)
        yield* Effect.repeatN(Effect.yieldNow(), round)
        yield* Fiber.interruptAll(fibers.filter((_, index) => index % 2 === 0))
        const found = yield* Fiber.join(Fiber.all(fibers.filter((_, index) => index % 2 === 1)))
        expect(found.every(Option.isSome)).toBe(true)
      }
    })
  )

  it.scopedLive("recalls a few messages of a long thread without looking at all", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema
      const { threads } = yield* open(schema)
      yield* threads.open({ id: "t", resourceId: "r" })
      const messages = Array.from({ length: 5000 }, (_, index) => say(`${index}`))
      yield* threads.append("t", messages)
      // As it is when nothing was ever analyzed.
      const recalled = yield* threads.messages("t", { last: 3 })
      expect(recalled.map(({ id }) => id)).toEqual(["4997", "4998", "4999"])
      const [again] = yield* threads.append("t", [say("17")])
      expect(again?.sequence).toBe(18)
    })
  )
})

describe("options of PostgreSQL", () => {
  const wrong: ReadonlyArray<readonly [field: string, options: PostgresStore.Options]> = [
    ["url", { url: "" }],
    ["url", { url: "mysql://user:secret@localhost/db" }],
    ["maxConnections", { url: "postgres://localhost/db", maxConnections: 0 }],
    ["schema", Object.assign({ url: "postgres://localhost/db" }, { schema: "eddy" })]
  ]
  for (const [field, options] of wrong) {
    it.effect(`${JSON.stringify(options)} is refused`, () =>
      Effect.gen(function* () {
        const error = yield* refused(options)
        expect(error).toMatchObject({ _tag: "InvalidConfiguration", field })
        expect(error.message).not.toContain("secret")
        expect(() => new PromiseStore(options)).toThrow(expect.objectContaining({ field }))
      })
    )
  }

  it.live("a server that is not there is told in words, and its password is not", () =>
    Effect.gen(function* () {
      const error = yield* refused({ url: "postgres://user:secret@127.0.0.1:1/db" })
      expect(error).toMatchObject({ _tag: "StorageError", operation: "Storage.open" })
      expect(error.message).toContain("cannot be reached")
      expect(error.message).not.toContain("secret")
    })
  )
})

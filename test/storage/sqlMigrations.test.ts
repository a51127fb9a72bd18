/** The tables: made once, whoever begins at the same moment, and left alone when a newer eddy has made them. */

import { describe, expect, it } from "@effect/vitest"
import { createClient } from "@libsql/client"
import { LibSqlStore, Objective, PostgresStore } from "eddy"
import { Effect, Either, Exit, type Layer, Option, Scope } from "effect"
import { freshFile, freshSchema, postgresUrl, psql } from "../support/databases.js"
import { type Stores, say, start } from "../support/sharedDatabase.js"
import { taskOf } from "../support/taskOf.js"

/** Versions of the tables, as they are now. */
const current = [1, 2, 3, 4, 5]

const newer = current.length + 1

interface Database {
  readonly name: string
  readonly isThere: boolean
  readonly fresh: Effect.Effect<string, never, Scope.Scope>
  readonly layer: (url: string) => Layer.Layer<Stores, unknown>
  /** A statement outside of any store. */
  readonly execute: (url: string, sql: string) => Effect.Effect<ReadonlyArray<Record<string, unknown>>>
}

const databases: ReadonlyArray<Database> = [
  {
    name: "libSQL",
    isThere: true,
    fresh: freshFile,
    layer: url => LibSqlStore.layer({ url }),
    execute: (url, sql) =>
      Effect.promise(async () => {
        const client = createClient({ url })
        const { rows } = await client.execute(sql)
        client.close()
        return rows.map(row => ({ ...row }))
      })
  },
  {
    name: "PostgreSQL",
    isThere: postgresUrl !== undefined,
    fresh: freshSchema,
    layer: url => PostgresStore.layer({ url, maxConnections: 2 }),
    execute: psql
  }
]

for (const { execute, fresh, isThere, layer, name } of databases) {
  describe.skipIf(!isThere)(name, () => {
    const open = (url: string) => start(layer(url))

    /** As the fourth version left them. */
    const withoutOwners = (url: string) =>
      Effect.forEach(
        [
          "DROP TABLE eddy_run_ids",
          "DROP INDEX eddy_runs_by_resource",
          "DROP INDEX eddy_tasks_by_resource",
          "DROP INDEX eddy_tasks_by_run"
        ],
        sql => execute(url, sql)
      )

    /** As the third version left them, before which the fifth one is to be undone. */
    const withoutBlocks = (url: string) =>
      Effect.forEach(
        [
          "DROP TABLE eddy_thread_runs",
          "DROP INDEX eddy_messages_in_order",
          "DROP INDEX eddy_messages_of_users",
          "ALTER TABLE eddy_messages DROP COLUMN block",
          "CREATE INDEX eddy_messages_of_users ON eddy_messages (thread_id, sequence) WHERE role = 'user'"
        ],
        sql => execute(url, sql)
      )

    it.scopedLive("makes the tables once, and finds them the next time", () =>
      Effect.gen(function* () {
        const url = yield* fresh
        yield* Effect.scoped(open(url))
        const before = yield* execute(url, "SELECT * FROM eddy_migrations")
        expect(before.map(({ version }) => Number(version))).toEqual(current)
        yield* Effect.scoped(open(url))
        expect(yield* execute(url, "SELECT * FROM eddy_migrations")).toEqual(before)
      })
    )

    it.scopedLive("makes them once when many begin at the same moment", () =>
      Effect.gen(function* () {
        const url = yield* fresh
        const opened = Array.from({ length: 8 }, () => open(url))
        const processes = yield* Effect.all(opened, { concurrency: "unbounded" })
        yield* Effect.forEach(processes, ({ tasks }, index) => tasks.create(taskOf(`${index}`), "me"))
        const versions = yield* execute(url, "SELECT version FROM eddy_migrations")
        expect(versions.map(({ version }) => Number(version)).sort()).toEqual(current)
      })
    )

    it.scopedLive("refuses those of a newer version, and leaves them as they are", () =>
      Effect.gen(function* () {
        const url = yield* fresh
        yield* Effect.scoped(open(url))
        yield* execute(url, `INSERT INTO eddy_migrations (version, applied_at) VALUES (${newer}, 0)`)
        const opened = yield* Effect.either(Effect.scoped(open(url)))
        expect(Either.getLeft(opened)).toMatchObject({
          _tag: "Some",
          value: { _tag: "StorageError", operation: "Storage.migrate" }
        })
        expect(Either.match(opened, { onLeft: String, onRight: () => "" })).toContain(`version ${newer}`)
        expect(yield* execute(url, "SELECT version FROM eddy_migrations")).toHaveLength(newer)
      })
    )

    it.scopedLive("brings tables of the first version up to date, and keeps what they hold", () =>
      Effect.gen(function* () {
        const url = yield* fresh
        const old = yield* Scope.make()
        const before = yield* Effect.provideService(open(url), Scope.Scope, old)
        yield* before.threads.open({ id: "t", resourceId: "r", title: "old" })
        yield* before.threads.append("t", [say("one")])
        const settled = { ...taskOf("settled"), status: "completed", completedAt: new Date(1000) } as const
        yield* before.tasks.create(settled, "me")
        yield* before.tasks.delivered("settled")
        yield* Scope.close(old, Exit.void)
        // As the first version left them.
        yield* execute(url, "ALTER TABLE eddy_threads DROP COLUMN objective")
        yield* execute(url, "DROP TABLE eddy_run_leases")
        yield* execute(url, "DROP INDEX eddy_tasks_by_status")
        yield* execute(url, "ALTER TABLE eddy_tasks DROP COLUMN settled_at")
        yield* execute(url, "CREATE INDEX eddy_tasks_by_status ON eddy_tasks (status, completed_at)")
        yield* withoutOwners(url)
        yield* withoutBlocks(url)
        yield* execute(url, "DELETE FROM eddy_migrations WHERE version > 1")
        const { tasks, threads } = yield* open(url)
        // It had settled in 1970, by the clock of its process.
        expect(yield* tasks.deleteSettled(["completed"], "1 day")).toBe(1)
        const thread = { threadId: "t", resourceId: "r" }
        expect(yield* threads.objective(thread)).toEqual(Option.none())
        const objective = Option.some(Objective.make("Reach it.", 5, new Date(1000)))
        yield* threads.changeObjective(thread, () => Either.right(objective))
        expect(yield* threads.objective(thread)).toEqual(objective)
        expect(yield* threads.messages("t")).toHaveLength(1)
      })
    )

    it.scopedLive("keeps the order of messages that an earlier version stored", () =>
      Effect.gen(function* () {
        const url = yield* fresh
        const old = yield* Scope.make()
        const before = yield* Effect.provideService(open(url), Scope.Scope, old)
        yield* before.threads.open({ id: "t", resourceId: "r" })
        yield* Scope.close(old, Exit.void)
        yield* withoutOwners(url)
        yield* withoutBlocks(url)
        yield* execute(url, "DELETE FROM eddy_migrations WHERE version > 3")
        const interleaved = ["A", "B", "B", "A"]
        yield* Effect.forEach(interleaved, (run, index) =>
          execute(
            url,
            `INSERT INTO eddy_messages (thread_id, id, sequence, run_id, role, content, created_at)
            VALUES ('t', '${index + 1}', ${index + 1}, '${run}', 'user', '{"role":"user","content":[]}', 0)`
          )
        )
        const { threads } = yield* open(url)
        yield* threads.append("t", [{ ...say("5"), runId: "C" }])
        yield* threads.append("t", [{ ...say("6"), runId: "A" }])
        yield* threads.append("t", [{ ...say("7"), runId: "C" }])
        const ids = (yield* threads.messages("t")).map(({ id }) => id)
        expect(ids).toEqual(["1", "2", "3", "4", "5", "7", "6"])
      })
    )

    it.scopedLive("undoes a version that fails, and says so", () =>
      Effect.gen(function* () {
        const url = yield* fresh
        // Somebody else's table of the name of one that is made late.
        yield* execute(url, "CREATE TABLE eddy_runs (something TEXT)")
        const opened = yield* Effect.either(Effect.scoped(open(url)))
        expect(Either.getLeft(opened)).toMatchObject({
          _tag: "Some",
          value: { operation: "Storage.migrate" }
        })
        yield* execute(url, "DROP TABLE eddy_runs")
        yield* Effect.scoped(open(url))
      })
    )
  })
}

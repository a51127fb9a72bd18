/** PostgreSQL as an executor: a pool of connections. */
import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import { StorageError } from "../../protocol/Errors.js"
import { type Executor, type Result, type Row, SqlFailure, type Statement } from "./executor.js"
import { remote } from "./guard.js"
import { load } from "./loading.js"

/** Whether the connection is at fault, or the server as a whole: classes 08, 57 and what is no code of PostgreSQL. */
const isStatement = /^(?!08|57)(?:\d\d|F0|HV|P0|XX)[0-9A-Z]{3}$/

/** A conflict with another transaction, which is over the next time: serialization, deadlock, lock, connections. */
const isConflict = /^(?:40001|40P01|55P03|53300)$/

/** What was not committed was not done. */
const failureOf =
  (isCommit: boolean) =>
  (error: { readonly cause?: unknown }): SqlFailure => {
    const { cause } = error
    const code = Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : ""
    const kind = isConflict.test(code)
      ? "notYet"
      : isStatement.test(code)
        ? "refused"
        : isCommit
          ? "unknown"
          : "notYet"
    return new SqlFailure({ kind, message: "PostgreSQL failed: see the cause.", cause })
  }

const isRows = (value: unknown): value is ReadonlyArray<Row> => Array.isArray(value)

const toResult = (raw: unknown): Result => ({
  rows: Predicate.hasProperty(raw, "rows") && isRows(raw.rows) ? raw.rows : [],
  rowsAffected: Predicate.hasProperty(raw, "rowCount") ? Number(raw.rowCount) : 0
})

/** `$1`, `$2`, … for the places of arguments. */
const numbered = (sql: string): string => {
  let count = 0
  return sql.replaceAll("?", () => `$${++count}`)
}

const executorOf = (client: PgClient): Executor => ({
  execute: ({ args, sql }) =>
    Effect.mapBoth(client.unsafe(numbered(sql), args).raw, {
      onFailure: failureOf(false),
      onSuccess: toResult
    }),
  // Not `withTransaction`, which dies of a commit that fails.
  batch: statements =>
    Effect.scoped(
      Effect.gen(function* () {
        const connection = yield* Effect.mapError(client.reserve, failureOf(false))
        const run = ({ args, sql }: Pick<Statement, "args" | "sql">) =>
          Effect.map(connection.executeRaw(numbered(sql), args), toResult)
        const word = (sql: string) => run({ sql, args: [] })
        const results = yield* word("BEGIN").pipe(
          Effect.zipRight(Effect.forEach(statements, run)),
          Effect.mapError(failureOf(false)),
          Effect.onError(() => Effect.ignore(word("ROLLBACK")))
        )
        // Once it is asked for, nobody but the server knows whether it was done.
        yield* Effect.mapError(Effect.uninterruptible(word("COMMIT")), failureOf(true))
        return results
      })
    )
})

/** Password and host stay in the cause. */
const unreachable = (cause: unknown): StorageError =>
  new StorageError({
    operation: "Storage.open",
    message:
      "PostgreSQL cannot be reached: see the cause. Check that the server runs, and the host, the user and the database of `url`.",
    cause
  })

const packages = "@effect/sql-pg @effect/sql @effect/platform @effect/experimental"

/** A pool that is closed with the scope. */
export const make = Effect.fnUntraced(function* (url: string, maxConnections: number) {
  const Client = yield* load("PostgresStore", packages, () => import("@effect/sql-pg/PgClient"))
  const pool = Client.layer({
    url: Redacted.make(url),
    maxConnections,
    applicationName: "eddy",
    // Also when all are taken: who waits for one cannot be interrupted without losing it.
    connectTimeout: "5 seconds"
  })
  const context = yield* Effect.mapError(Layer.build(pool), unreachable)
  return yield* remote(executorOf(Context.get(context, Client.PgClient)))
})

/** libSQL as an executor: a file, or a server. */
import type { Client } from "@libsql/client"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { StorageError } from "../../protocol/Errors.js"
import { type Executor, type Result, type Row, SqlFailure, type Statement, statement } from "./executor.js"
import { local, remote } from "./guard.js"
import { load } from "./loading.js"

/**
 * Milliseconds for which a lock of another process is waited for in one go. The driver waits in the thread of JavaScript:
 * longer waits are many short ones, between which everything else goes on.
 */
const lockTimeout = 25

const isBusy = /^SQLITE_(?:BUSY|LOCKED)/
const isRefusal = /^(?:SQLITE_(?!IOERR)|SQL_|ARGS_)/

/** Says no to whoever asks: a token that is wrong, a database that is not there. */
const isDenied = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "cause") &&
  Predicate.hasProperty(cause.cause, "status") &&
  typeof cause.cause.status === "number" &&
  cause.cause.status >= 400 &&
  cause.cause.status < 500

/**
 * Of a file it is known that a transaction which failed was undone; of a server only when it says why. Reading did nothing, and
 * may be done again.
 */
const kindOf = (client: Client, code: string, isWrite: boolean): SqlFailure["kind"] => {
  // Somebody else made a new connection meanwhile, unless the client is closed for good.
  if (code === "CLIENT_CLOSED") return client.closed ? "refused" : "notYet"
  if (isBusy.test(code)) return "notYet"
  if (isRefusal.test(code) || (client.protocol === "file" && code === "")) return "refused"
  return isWrite ? "unknown" : "notYet"
}

/**
 * A transaction that is done is handed to the system, which keeps it when the process is killed; it is on the disk a moment
 * later. Waiting for the disk each time costs milliseconds, and only a power cut would tell the difference: it may take the last
 * of what was announced, and leaves the file whole.
 */
const perConnection = statement("PRAGMA synchronous = NORMAL")

/** A new connection, set as the one before it was. */
const reconnect = async (client: Client): Promise<void> => {
  await client.reconnect()
  // One that cannot be set is only slower.
  await client.execute(perConnection.sql).catch(() => undefined)
}

const failureOf = async (client: Client, cause: unknown, isWrite: boolean): Promise<SqlFailure> => {
  const code = Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : ""
  const kind = isDenied(cause) ? "refused" : kindOf(client, code, isWrite)
  // A statement that met a lock stays in progress until it is collected, and no transaction of its connection can end.
  if (isBusy.test(code) && client.protocol === "file" && !client.closed) await reconnect(client)
  return new SqlFailure({ kind, message: "libSQL failed: see the cause.", cause })
}

/** Numbers are stored as floating point unless they are `bigint`. */
const toStatement = ({ args, sql }: Statement) => ({
  sql,
  args: args.map(value => (typeof value === "number" ? BigInt(value) : value))
})

const toResult = (result: { readonly rows: ReadonlyArray<Row>; readonly rowsAffected: number }): Result => ({
  rows: result.rows,
  rowsAffected: result.rowsAffected
})

/**
 * The driver answers a file's asker before the event loop goes on: whoever asks again and again would keep timers, sockets and
 * the driver's own clearing up from ever having their turn.
 */
const turn = (client: Client): Promise<void> =>
  client.protocol === "file" ? new Promise(resolve => setImmediate(resolve)) : Promise.resolve()

const ask = <A>(client: Client, isWrite: boolean, asked: () => Promise<A>): Effect.Effect<A, SqlFailure> =>
  Effect.tryPromise({ try: () => turn(client).then(asked), catch: cause => cause }).pipe(
    Effect.catchAll(cause =>
      Effect.flatMap(
        Effect.promise(() => failureOf(client, cause, isWrite)),
        Effect.fail
      )
    )
  )

const executorOf = (client: Client): Executor => ({
  execute: statement =>
    ask(client, false, async () => toResult(await client.execute(toStatement(statement)))),
  batch: statements =>
    ask(client, true, async () => (await client.batch(statements.map(toStatement), "write")).map(toResult))
})

const isLocal = /^(?:file:|:memory:)/

/** What of an address may be told: all but what follows a question mark, and who asks. */
const told = (url: string): string => url.replace(/\?.*$/s, "").replace(/\/\/[^/@]*@/, "//")

const notOpened = (url: string, cause: unknown): StorageError =>
  new StorageError({
    operation: "Storage.open",
    message: isLocal.test(url)
      ? `The database "${told(url)}" cannot be opened. The folder that it is to be in must exist, and the file must be one of libSQL or SQLite that may be written: see the cause.`
      : `The database "${told(url)}" cannot be reached: see the cause.`,
    cause
  })

/** Readers and a writer do not wait for each other. Kept in the file. */
const perFile = statement("PRAGMA journal_mode = WAL")

/**
 * Takes what was written into the file itself, so that a copy of it is whole: the driver lets go of a file only when all of its
 * statements are collected. When others use the file it may not be done, and need not be.
 */
const tidy = statement("PRAGMA wal_checkpoint(TRUNCATE)")

/** A client that is closed with the scope. */
export const make = Effect.fnUntraced(function* (url: string, authToken: string | undefined) {
  const { createClient } = yield* load("LibSqlStore", "@libsql/client", () => import("@libsql/client"))
  const open = Effect.try({
    try: () =>
      createClient({
        url,
        // A file has one connection. A server is asked many things at a time.
        ...(isLocal.test(url) ? { concurrency: 1, timeout: lockTimeout } : {}),
        ...(authToken === undefined ? {} : { authToken })
      }),
    catch: cause => notOpened(url, cause)
  })
  const client = yield* Effect.acquireRelease(open, client => Effect.sync(() => client.close()))
  if (client.protocol !== "file") return yield* remote(executorOf(client))
  const executor = local(executorOf(client))
  yield* Effect.mapError(Effect.zip(executor.execute(perFile), executor.execute(perConnection)), cause =>
    notOpened(url, cause)
  )
  yield* Effect.addFinalizer(() => Effect.ignore(executorOf(client).execute(tidy)))
  return executor
})

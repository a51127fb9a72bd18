/** Databases of their own for tests: a file in a folder that is removed, a schema that is dropped. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted, type Scope } from "effect"

/** A folder that is removed with everything in it. */
export const freshFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "eddy-"))),
  folder => Effect.promise(() => rm(folder, { recursive: true, force: true }))
)

/** The address of a file that is not there yet. */
export const freshFile = Effect.map(freshFolder, folder => `file:${join(folder, "eddy.db")}`)

const given = process.env["EDDY_TEST_POSTGRES_URL"]

const local = "postgres://postgres@127.0.0.1:5432"

const candidates = given === undefined ? [`${local}/test`, `${local}/postgres`] : [given]

/** Statements outside of any store. */
export const psql = (
  url: string,
  sql: string,
  args: ReadonlyArray<string | number> = []
): Effect.Effect<ReadonlyArray<Record<string, unknown>>> =>
  Effect.flatMap(PgClient.PgClient, client => client.unsafe<Record<string, unknown>>(sql, args)).pipe(
    Effect.provide(Layer.fresh(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 }))),
    Effect.orDie
  )

const answers = (url: string): Promise<boolean> =>
  Effect.runPromise(
    psql(url, "SELECT 1").pipe(
      Effect.as(true),
      Effect.catchAllCause(() => Effect.succeed(false))
    )
  )

/** The PostgreSQL that the tests use; `undefined` when none answers, which must not be when one was named. */
export const postgresUrl: string | undefined = (
  await Promise.all(candidates.map(async url => ((await answers(url)) ? [url] : [])))
).flat()[0]

if (postgresUrl === undefined) {
  const missing = `No PostgreSQL answers at ${given === undefined ? "127.0.0.1:5432" : "EDDY_TEST_POSTGRES_URL"}`
  if (given !== undefined) throw new Error(`${missing}.`)
  process.stderr.write(`${missing}: its tests are skipped. Start one with: source .ci/postgres\n`)
}

/** The address of a schema that nobody else has. It is dropped with what is in it. */
export const freshSchema: Effect.Effect<string, never, Scope.Scope> = Effect.gen(function* () {
  const url = postgresUrl ?? ""
  const schema = `eddy_${crypto.randomUUID().replaceAll("-", "")}`
  yield* Effect.acquireRelease(psql(url, `CREATE SCHEMA ${schema}`), () =>
    psql(url, `DROP SCHEMA ${schema} CASCADE`)
  )
  const address = new URL(url)
  address.searchParams.set("options", `-c search_path=${schema}`)
  // Written with `+` for a space, which the driver does not read.
  return address.href.replaceAll("+", "%20")
})

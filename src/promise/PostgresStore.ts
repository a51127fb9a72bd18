/**
 * Storage of a container in PostgreSQL.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { lazily } from "../protocol/lazily.js"
import { checkOptions, id, read } from "../protocol/options.js"
import { checkPostgres } from "../storage/sql/options.js"
import type { Storage } from "./InMemoryStore.js"

const store = lazily(() => import("../storage/PostgresStore.js"))

/** @since 0.1.0 @category models */
export interface PostgresStoreOptions {
  /** Default `postgres`. */
  readonly id?: string
  /** `postgres://user:password@host:port/database`, with the parameters that `pg` knows. */
  readonly url: string
  /** How many connections this process opens at most. Default 10; one of them writes. */
  readonly maxConnections?: number
}

/**
 * Keeps threads, background tasks and suspended runs in PostgreSQL:
 * `new PostgresStore({ url: "postgres://user:password@localhost:5432/database" })`. Needs the packages `@effect/sql-pg`,
 * `@effect/sql`, `@effect/platform` and `@effect/experimental`. The database is opened when it is needed first, and closed
 * when the container is shut down.
 *
 * The constructor throws `InvalidConfiguration` for options that cannot work.
 *
 * @since 0.1.0
 * @category models
 */
export class PostgresStore implements Storage {
  readonly id: string
  readonly layer: Storage["layer"]

  constructor(options: PostgresStoreOptions) {
    checkOptions("PostgresStore", options, { kinds: { id, url: read, maxConnections: read } })
    const { id: storeId = "postgres", ...rest } = options
    checkPostgres(rest)
    this.id = storeId
    // Loaded by the container that uses it.
    this.layer = Layer.unwrapEffect(Effect.map(store, ({ layer }) => layer(rest)))
  }
}

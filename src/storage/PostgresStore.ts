/**
 * Threads, background tasks and suspended runs in PostgreSQL. Needs the packages `@effect/sql-pg`, `@effect/sql`,
 * `@effect/platform` and `@effect/experimental`.
 *
 * Any number of processes may use one database at the same time. The tables are made in the first schema of the search path.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { InvalidConfiguration, StorageError } from "../protocol/Errors.js"
import type { RunStore } from "./RunStore.js"
import { postgres } from "./sql/dialect.js"
import { checked, checkPostgres } from "./sql/options.js"
import * as Database from "./sql/postgres.js"
import * as Store from "./sql/store.js"
import type { TaskStore } from "./TaskStore.js"
import type { ThreadStore } from "./ThreadStore.js"

/** @since 0.1.0 @category models */
export interface Options {
  /** `postgres://user:password@host:port/database`, with the parameters that `pg` knows. */
  readonly url: string
  /** How many connections this process opens at most. Default 10; one of them writes. */
  readonly maxConnections?: number
}

/**
 * The stores over one pool of connections. Makes the tables that are missing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<ThreadStore | TaskStore | RunStore, StorageError | InvalidConfiguration> =>
  Layer.scopedContext(
    Effect.gen(function* () {
      yield* checked(() => checkPostgres(options))
      const { maxConnections = 10, url } = options
      const executor = yield* Database.make(url, maxConnections)
      return yield* Store.make(executor, postgres)
    })
  )

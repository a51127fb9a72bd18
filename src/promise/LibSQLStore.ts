/**
 * Storage of a container in libSQL: a file of SQLite, or a server such as Turso.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { lazily } from "../protocol/lazily.js"
import { checkOptions, id, read } from "../protocol/options.js"
import { checkLibSql } from "../storage/sql/options.js"
import type { Storage } from "./InMemoryStore.js"

const store = lazily(() => import("../storage/LibSqlStore.js"))

/** @since 0.1.0 @category models */
export interface LibSQLStoreOptions {
  /** Default `libsql`. */
  readonly id?: string
  /** `file:` and a path, whose folder must exist, or the address of a server: `libsql:`, `https:`, `http:`, `wss:` or `ws:`. */
  readonly url: string
  /** What a server lets this process in for. Without it: none. */
  readonly authToken?: string
}

/**
 * Keeps threads, background tasks and suspended runs in libSQL: `new LibSQLStore({ url: "file:eddy.db" })`. Needs the package
 * `@libsql/client`. Several processes may use one file at the same time. The database is opened when it is needed first, and
 * closed when the container is shut down.
 *
 * The constructor throws `InvalidConfiguration` for options that cannot work.
 *
 * @since 0.1.0
 * @category models
 */
export class LibSQLStore implements Storage {
  readonly id: string
  readonly layer: Storage["layer"]

  constructor(options: LibSQLStoreOptions) {
    checkOptions("LibSQLStore", options, { kinds: { id, url: read, authToken: read } })
    const { id: storeId = "libsql", ...rest } = options
    checkLibSql(rest)
    this.id = storeId
    // Loaded by the container that uses it.
    this.layer = Layer.unwrapEffect(Effect.map(store, ({ layer }) => layer(rest)))
  }
}

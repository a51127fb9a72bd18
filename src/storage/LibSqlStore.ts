/**
 * Threads, background tasks and suspended runs in libSQL: a file of SQLite, or a server such as Turso. Needs the package
 * `@libsql/client`.
 *
 * Several processes may use one file at the same time. What a call has announced as done survives the
 * process; a power cut may take the last moments of it, and leaves the file whole.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { InvalidConfiguration, StorageError } from "../protocol/Errors.js"
import type { RunStore } from "./RunStore.js"
import { libSql } from "./sql/dialect.js"
import * as Database from "./sql/libSql.js"
import { checked, checkLibSql } from "./sql/options.js"
import * as Store from "./sql/store.js"
import type { TaskStore } from "./TaskStore.js"
import type { ThreadStore } from "./ThreadStore.js"

/** @since 0.1.0 @category models */
export interface Options {
  /** `file:` and a path, whose folder must exist, or the address of a server: `libsql:`, `https:`, `http:`, `wss:` or `ws:`. */
  readonly url: string
  /** What a server lets this process in for. Without it: none. */
  readonly authToken?: string
}

/**
 * The stores over one connection. Makes the tables that are missing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<ThreadStore | TaskStore | RunStore, StorageError | InvalidConfiguration> =>
  Layer.scopedContext(
    Effect.gen(function* () {
      yield* checked(() => checkLibSql(options))
      const executor = yield* Database.make(options.url, options.authToken)
      return yield* Store.make(executor, libSql)
    })
  )

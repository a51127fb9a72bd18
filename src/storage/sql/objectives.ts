/** Objectives in a database of SQL: a column of their threads, so that they go with them. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Objectives } from "../threadRows.js"
import { type Executor, statement } from "./executor.js"
import type { Group } from "./group.js"
import { optionalText, read } from "./rows.js"

/** A driver over a database. */
export const make = (executor: Executor, group: Group): Objectives => ({
  get: (threadId, resourceId) =>
    Effect.flatMap(
      executor.execute(
        statement("SELECT objective FROM eddy_threads WHERE id = ? AND resource_id = ?", [
          threadId,
          resourceId
        ])
      ),
      ({ rows }) => read(() => Option.map(Arr.head(rows), row => optionalText(row, "objective")))
    ),
  replace: (threadId, resourceId, expected, content) => {
    const had = expected === null ? "objective IS NULL" : "objective = ?"
    return Effect.map(
      group.write(`thread ${threadId}`, [
        statement(`UPDATE eddy_threads SET objective = ? WHERE id = ? AND resource_id = ? AND ${had}`, [
          content,
          threadId,
          resourceId,
          ...(expected === null ? [] : [expected])
        ])
      ]),
      ([replaced]) => replaced?.rowsAffected === 1
    )
  }
})

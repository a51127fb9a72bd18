/** Background tasks in a database of SQL. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { isSettled, statuses } from "../../protocol/Task.js"
import type { Encoded, TaskPlace, TaskQuery, TaskRow, TaskTime } from "../taskRows.js"
import type { Dialect } from "./dialect.js"
import {
  type Executor,
  placesFor,
  type Row,
  SqlFailure,
  type Statement,
  statement,
  type Value
} from "./executor.js"
import type { Group } from "./group.js"
import { all, type Condition, is, page, readPage } from "./pages.js"
import { number, oneOf, optionalNumber, optionalText, read, text } from "./rows.js"

/** Columns by the fields that they hold, in the order of the table. */
const columnOf = {
  id: "id",
  status: "status",
  toolName: "tool_name",
  toolCallId: "tool_call_id",
  args: "args",
  agentId: "agent_id",
  threadId: "thread_id",
  resourceId: "resource_id",
  runId: "run_id",
  result: "result",
  error: "error",
  suspendData: "suspend_data",
  resumeData: "resume_data",
  createdAt: "created_at",
  startedAt: "started_at",
  suspendedAt: "suspended_at",
  completedAt: "completed_at",
  attempt: "attempt",
  maxRetries: "max_retries",
  timeoutMs: "timeout_ms",
  owner: "owner",
  isDelivered: "is_delivered"
} as const satisfies { readonly [Field in keyof TaskRow]: string }

const fields = Object.keys(columnOf) as ReadonlyArray<keyof TaskRow>

const columns = ["position", ...fields.map(field => `${columnOf[field]} AS "${field}"`)].join(", ")

/** Those of them that may change. */
const changing = [
  "status",
  "result",
  "error",
  "suspendData",
  "resumeData",
  "startedAt",
  "suspendedAt",
  "completedAt",
  "attempt",
  "owner",
  "isDelivered"
] as const

const readTask = (row: Row): TaskRow => ({
  id: text(row, "id"),
  status: oneOf(row, "status", statuses),
  toolName: text(row, "toolName"),
  toolCallId: text(row, "toolCallId"),
  args: text(row, "args"),
  agentId: text(row, "agentId"),
  threadId: optionalText(row, "threadId"),
  resourceId: optionalText(row, "resourceId"),
  runId: text(row, "runId"),
  result: optionalText(row, "result"),
  error: optionalText(row, "error"),
  suspendData: optionalText(row, "suspendData"),
  resumeData: optionalText(row, "resumeData"),
  createdAt: number(row, "createdAt"),
  startedAt: optionalNumber(row, "startedAt"),
  suspendedAt: optionalNumber(row, "suspendedAt"),
  completedAt: optionalNumber(row, "completedAt"),
  attempt: number(row, "attempt"),
  maxRetries: number(row, "maxRetries"),
  timeoutMs: number(row, "timeoutMs"),
  owner: optionalText(row, "owner"),
  isDelivered: number(row, "isDelivered") === 0 ? 0 : 1
})

const readPlace = (row: Row): TaskPlace => ({
  id: text(row, "id"),
  status: oneOf(row, "status", statuses),
  owner: optionalText(row, "owner")
})

const isOneOf = (column: string, values: ReadonlyArray<Value>): Condition =>
  values.length === 0
    ? { sql: "1 = 0", args: [] }
    : { sql: `${column} IN (${placesFor(values)})`, args: values }

const conditionOf = (query: TaskQuery): Condition => {
  const { agentId, dateField, from, resourceId, runId, threadId, to, toolCallId, toolName } = query
  return all([
    query.statuses === undefined ? undefined : isOneOf("status", query.statuses),
    is("agent_id", agentId),
    is("thread_id", threadId),
    is("resource_id", resourceId),
    is("run_id", runId),
    is("tool_name", toolName),
    is("tool_call_id", toolCallId),
    from === undefined ? undefined : { sql: `${columnOf[dateField]} >= ?`, args: [from] },
    to === undefined ? undefined : { sql: `${columnOf[dateField]} < ?`, args: [to] }
  ])
}

const orderOf = (field: TaskTime, direction: "asc" | "desc"): string => {
  const word = direction === "asc" ? "ASC" : "DESC"
  // Every task was created, and an index has them in that order.
  const untimed = field === "createdAt" ? "" : `"${field}" IS NULL, `
  return `${untimed}"${field}" ${word}, position ${word}`
}

const settled = statuses.filter(isSettled)

/** Tasks that their owner has to do something for. */
const isLeft: Condition = {
  sql: `(status IN ('pending', 'running') OR (status IN (${placesFor(settled)}) AND is_delivered = 0))`,
  args: settled
}

/** Ids of one statement: databases allow only so many arguments. */
const most = 20_000

const placesOf = (ids: ReadonlyArray<string>): Statement =>
  statement(`SELECT id, status, owner FROM eddy_tasks WHERE id IN (${placesFor(ids)})`, ids)

/** A driver over a database. */
export const make = (executor: Executor, group: Group, dialect: Dialect): Encoded => ({
  create: row =>
    Effect.filterOrFail(
      group.write("task", [
        // Without a conflict that breaks the transaction that others are in too.
        statement(
          `INSERT INTO eddy_tasks (${fields.map(field => columnOf[field]).join(", ")}, settled_at)
          VALUES (${placesFor(fields)}, ?) ON CONFLICT (id) DO NOTHING`,
          [...fields.map(field => row[field]), isSettled(row.status) ? row.completedAt : null]
        )
      ]),
      ([inserted]) => inserted?.rowsAffected === 1,
      () => new SqlFailure({ kind: "refused", message: `There is a task "${row.id}" already.` })
    ),
  update: (id, expected, change) => {
    const given = changing.filter(field => change[field] !== undefined)
    const expects = all([isOneOf("status", expected.statuses), is("owner", expected.owner)])
    const settledNow =
      change.status !== undefined && isSettled(change.status) ? [`settled_at = ${dialect.now}`] : []
    const sets = [...given.map(field => `${columnOf[field]} = ?`), ...settledNow]
    // Also of nothing that changes it is asked whether the task is as expected.
    const set = sets.length === 0 ? "id = id" : sets.join(", ")
    const args = [...given.map(field => change[field] ?? null), id, ...expects.args]
    // The `CASE` keeps PostgreSQL from looking for the task among all of its owner's, by the index that has those.
    const where = `id = ? AND CASE WHEN ${expects.sql} THEN 1 ELSE 0 END = 1`
    return Effect.map(
      group.write(`task ${id}`, [statement(`UPDATE eddy_tasks SET ${set} WHERE ${where}`, args)]),
      ([updated]) => updated?.rowsAffected === 1
    )
  },
  get: id =>
    Effect.flatMap(
      executor.execute(statement(`SELECT ${columns} FROM eddy_tasks WHERE id = ?`, [id])),
      ({ rows }) => read(() => Option.map(Arr.head(rows), readTask))
    ),
  list: query =>
    Effect.flatMap(
      executor.execute(
        page({
          table: "eddy_tasks",
          columns,
          where: conditionOf(query),
          order: orderOf(query.orderBy, query.direction),
          offset: query.offset,
          limit: query.limit
        })
      ),
      ({ rows }) => read(() => readPage(rows, "id", readTask))
    ),
  places: ids =>
    Effect.flatMap(
      Effect.forEach(Arr.chunksOf(Arr.dedupe(ids), most), ids => executor.execute(placesOf(ids))),
      results => read(() => results.flatMap(({ rows }) => rows.map(readPlace)))
    ),
  owned: owner =>
    Effect.flatMap(
      executor.execute(
        statement(`SELECT id, status, owner FROM eddy_tasks WHERE owner = ? AND ${isLeft.sql}`, [
          owner,
          ...isLeft.args
        ])
      ),
      ({ rows }) => read(() => rows.map(readPlace))
    ),
  deleteSettled: (statuses, age) => {
    const where = isOneOf("status", statuses.filter(isSettled))
    return Effect.map(
      group.write("tasks", [
        statement(
          `DELETE FROM eddy_tasks
          WHERE ${where.sql} AND settled_at <= ${dialect.now} - ? AND is_delivered = 1`,
          [...where.args, age]
        )
      ]),
      ([deleted]) => deleted?.rowsAffected ?? 0
    )
  },
  renewLease: (owner, milliseconds) =>
    Effect.asVoid(
      group.write(`owner ${owner}`, [
        statement(
          `INSERT INTO eddy_owners (id, lives_until) VALUES (?, ${dialect.now} + ?)
          ON CONFLICT (id) DO UPDATE SET lives_until = excluded.lives_until`,
          [owner, milliseconds]
        )
      ])
    ),
  dropLease: owner =>
    Effect.asVoid(
      group.write(`owner ${owner}`, [statement("DELETE FROM eddy_owners WHERE id = ?", [owner])])
    ),
  inherit: heir => {
    // One heir at a time, and its leases are seen by the next: otherwise what it has just got would seem to be left too.
    const alone = dialect.alone("inherit")
    return Effect.flatMap(
      group.write("tasks", [
        ...alone,
        statement(
          `WITH left_behind AS (
            SELECT position FROM eddy_tasks AS task
            WHERE task.owner IS NOT NULL
              AND ${isLeft.sql}
              AND NOT EXISTS (
                SELECT 1 FROM eddy_owners AS lease
                WHERE lease.id = task.owner AND lease.lives_until > ${dialect.now}
              )
            ORDER BY position ${dialect.claimed("task")}
          )
          UPDATE eddy_tasks SET owner = ? WHERE position IN (SELECT position FROM left_behind)
          RETURNING ${columns}`,
          [...isLeft.args, heir]
        )
      ]),
      results =>
        read(() =>
          [...(results[alone.length]?.rows ?? [])]
            .sort((one, other) => number(one, "position") - number(other, "position"))
            .map(readTask)
        )
    )
  }
})

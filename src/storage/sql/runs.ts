/** Suspended runs in a database of SQL. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Encoded, LeaseRow, ReservationRow, RunRow } from "../runRows.js"
import type { Dialect } from "./dialect.js"
import { type Executor, placesFor, type Row, type Statement, statement } from "./executor.js"
import type { Group } from "./group.js"
import { all, is, page, readPage } from "./pages.js"
import { number, optionalText, read, text, texts } from "./rows.js"

const columnsOf = (dialect: Dialect): string =>
  `position, run_id AS "runId", agent_id AS "agentId", thread_id AS "threadId", resource_id AS "resourceId",
  snapshot, revision, created_at AS "createdAt", updated_at AS "updatedAt",
  (
    SELECT ${dialect.texts("lease.owner")} FROM eddy_run_leases AS lease
    WHERE lease.run_id = eddy_runs.run_id AND lease.lives_until > ${dialect.now}
  ) AS holders`

const readRun = (row: Row): RunRow => ({
  runId: text(row, "runId"),
  agentId: text(row, "agentId"),
  threadId: optionalText(row, "threadId"),
  resourceId: optionalText(row, "resourceId"),
  snapshot: text(row, "snapshot"),
  revision: number(row, "revision"),
  createdAt: number(row, "createdAt"),
  updatedAt: number(row, "updatedAt"),
  holders: texts(row, "holders")
})

const readReservation = (row: Row): ReservationRow => ({
  runId: text(row, "runId"),
  resourceId: optionalText(row, "resourceId")
})

const first = (rows: ReadonlyArray<Row> | undefined) => read(() => Option.map(Arr.head(rows ?? []), readRun))

/** A lease on the run that is about to be saved, if it is as expected. Leases of the run that have ended go. */
const leasing = (
  { now }: Dialect,
  runId: string,
  expectedRevision: number | undefined,
  { milliseconds, owner }: LeaseRow
): ReadonlyArray<Statement> => {
  const run = all([is("run_id", runId), is("revision", expectedRevision)])
  const isExpected = `${expectedRevision === undefined ? "NOT " : ""}EXISTS (SELECT 1 FROM eddy_runs WHERE ${run.sql})`
  return [
    statement(`DELETE FROM eddy_run_leases WHERE run_id = ? AND lives_until <= ${now}`, [runId]),
    statement(
      `INSERT INTO eddy_run_leases (run_id, owner, lives_until)
      SELECT CAST(? AS TEXT), CAST(? AS TEXT), ${now} + CAST(? AS BIGINT) WHERE ${isExpected}
      ON CONFLICT (run_id, owner) DO UPDATE SET lives_until = excluded.lives_until`,
      [runId, owner, milliseconds, ...run.args]
    )
  ]
}

/** A driver over a database. */
export const make = (executor: Executor, group: Group, dialect: Dialect): Encoded => {
  const columns = columnsOf(dialect)
  return {
    save: ({ agentId, resourceId, runId, snapshot, threadId }, expectedRevision, now, lease) => {
      const inserted = [runId, agentId, threadId, resourceId, snapshot, 1, now, now]
      const save =
        expectedRevision === undefined
          ? statement(
              `INSERT INTO eddy_runs
              (run_id, agent_id, thread_id, resource_id, snapshot, revision, created_at, updated_at)
            VALUES (${placesFor(inserted)}) ON CONFLICT (run_id) DO NOTHING RETURNING ${columns}`,
              inserted
            )
          : statement(
              `UPDATE eddy_runs SET agent_id = ?, thread_id = ?, resource_id = ?, snapshot = ?,
              revision = revision + 1, updated_at = ?
            WHERE run_id = ? AND revision = ? RETURNING ${columns}`,
              [agentId, threadId, resourceId, snapshot, now, runId, expectedRevision]
            )
      const leases = lease === undefined ? [] : leasing(dialect, runId, expectedRevision, lease)
      return Effect.flatMap(group.write(`run ${runId}`, [...leases, save]), results =>
        first(results.at(-1)?.rows)
      )
    },
    get: runId =>
      Effect.flatMap(
        executor.execute(statement(`SELECT ${columns} FROM eddy_runs WHERE run_id = ?`, [runId])),
        ({ rows }) => first(rows)
      ),
    delete: (runId, expectedRevision) => {
      const { args, sql } = all([is("run_id", runId), is("revision", expectedRevision)])
      return Effect.map(
        group.write(`run ${runId}`, [
          statement(`DELETE FROM eddy_runs WHERE ${sql}`, args),
          statement(
            `DELETE FROM eddy_run_leases WHERE run_id = ?
          AND NOT EXISTS (SELECT 1 FROM eddy_runs WHERE run_id = ?)`,
            [runId, runId]
          )
        ]),
        ([deleted]) => deleted?.rowsAffected === 1
      )
    },
    reserve: ({ resourceId, runId }, milliseconds) =>
      Effect.map(
        group.write(`run ${runId}`, [
          statement(`DELETE FROM eddy_run_ids WHERE holds_until <= ${dialect.now}`),
          statement(
            `INSERT INTO eddy_run_ids (run_id, resource_id, holds_until)
            SELECT CAST(? AS TEXT), CAST(? AS TEXT), ${dialect.now} + CAST(? AS BIGINT)
            WHERE NOT EXISTS (SELECT 1 FROM eddy_runs WHERE run_id = ?)
            ON CONFLICT (run_id) DO NOTHING RETURNING run_id AS "runId"`,
            [runId, resourceId, milliseconds, runId]
          )
        ]),
        ([, inserted]) => inserted?.rows.length === 1
      ),
    reservation: runId =>
      Effect.flatMap(
        executor.execute(
          statement(
            `SELECT run_id AS "runId", resource_id AS "resourceId" FROM eddy_run_ids
            WHERE run_id = ? AND holds_until > ${dialect.now}`,
            [runId]
          )
        ),
        ({ rows }) => read(() => Option.map(Arr.head(rows), readReservation))
      ),
    release: runId =>
      Effect.asVoid(
        group.write(`run ${runId}`, [statement("DELETE FROM eddy_run_ids WHERE run_id = ?", [runId])])
      ),
    list: ({ agentId, limit, offset, resourceId, threadId }) =>
      Effect.flatMap(
        executor.execute(
          page({
            table: "eddy_runs",
            columns,
            where: all([is("agent_id", agentId), is("thread_id", threadId), is("resource_id", resourceId)]),
            order: "position",
            offset,
            limit
          })
        ),
        ({ rows }) => read(() => readPage(rows, "runId", readRun))
      )
  }
}

/** Threads in a database of SQL. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Encoded, MessageRow, NewMessageRow, Place, ThreadRow } from "../threadRows.js"
import type { Dialect } from "./dialect.js"
import { type Executor, placesFor, type Row, type Statement, statement } from "./executor.js"
import type { Group } from "./group.js"
import * as sqlObjectives from "./objectives.js"
import { all, is, page, readPage } from "./pages.js"
import { number, oneOf, optionalText, read, text } from "./rows.js"

const threadColumns = `id, resource_id AS "resourceId", title, metadata, created_at AS "createdAt",
  updated_at AS "updatedAt", change_order AS "changeOrder"`

const messageColumns = `thread_id AS "threadId", id, block, sequence, run_id AS "runId", role, content,
  created_at AS "createdAt"`

const roles: ReadonlyArray<MessageRow["role"]> = ["system", "user", "assistant", "tool"]

const readThread = (row: Row): ThreadRow => ({
  id: text(row, "id"),
  resourceId: text(row, "resourceId"),
  title: optionalText(row, "title"),
  metadata: optionalText(row, "metadata"),
  createdAt: number(row, "createdAt"),
  updatedAt: number(row, "updatedAt")
})

const readPlace = (row: Row): Place => ({
  block: number(row, "block"),
  sequence: number(row, "sequence"),
  createdAt: number(row, "createdAt")
})

const readMessage = (row: Row): MessageRow => ({
  ...readPlace(row),
  threadId: text(row, "threadId"),
  id: text(row, "id"),
  runId: optionalText(row, "runId"),
  role: oneOf(row, "role", roles),
  content: text(row, "content")
})

const first = <A>(rows: ReadonlyArray<Row> | undefined, readRow: (row: Row) => A) =>
  read(() => Option.map(Arr.head(rows ?? []), readRow))

/** Messages of one statement: databases allow only so many arguments. */
const most = 500

/** Behind all blocks of the row `thread` of `eddy_threads`, which is locked by then: no other transaction counts on from it. */
const nextBlock = `(SELECT coalesce(max(block), 0) + 1 FROM (
  SELECT max(block) AS block FROM eddy_messages WHERE thread_id = thread.id
  UNION ALL SELECT max(block) FROM eddy_thread_runs WHERE thread_id = thread.id
) AS used)`

const insertRun = (threadId: string, runId: string): Statement =>
  statement(
    `INSERT INTO eddy_thread_runs (thread_id, run_id, block)
    SELECT thread.id, ?, ${nextBlock} FROM eddy_threads AS thread WHERE thread.id = ?
    ON CONFLICT (thread_id, run_id) DO NOTHING`,
    [runId, threadId]
  )

/**
 * The thread is locked by then, and the runs have their blocks. A message that is there already is given a sequence that no other
 * row has: its own may not be in two rows, not even in one that is not stored.
 */
const insert = (threadId: string, messages: ReadonlyArray<NewMessageRow>, now: number): Statement => {
  const given = messages.map((_, index) => `(${index + 1}, ?, ?, ?, ?)`).join(", ")
  return statement(
    `WITH given (place, id, run_id, role, content) AS (VALUES ${given})
    INSERT INTO eddy_messages (thread_id, id, block, sequence, run_id, role, content, created_at)
    SELECT thread.id, given.id, coalesce(run.block, ${nextBlock}),
      CASE WHEN known.id IS NULL
        THEN (SELECT coalesce(max(sequence), 0) FROM eddy_messages WHERE thread_id = thread.id)
          + sum(CASE WHEN known.id IS NULL THEN 1 ELSE 0 END) OVER (ORDER BY given.place)
        ELSE -given.place
      END,
      given.run_id, given.role, given.content, CAST(? AS BIGINT)
    FROM eddy_threads AS thread
    CROSS JOIN given
    LEFT JOIN eddy_messages AS known ON known.thread_id = thread.id AND known.id = given.id
    LEFT JOIN eddy_thread_runs AS run ON run.thread_id = thread.id AND run.run_id = given.run_id
    WHERE thread.id = ?
    ON CONFLICT (thread_id, id) DO UPDATE
      SET run_id = excluded.run_id, role = excluded.role, content = excluded.content
    RETURNING id, block, sequence, created_at AS "createdAt"`,
    [...messages.flatMap(({ content, id, role, runId }) => [id, runId, role, content]), now, threadId]
  )
}

/** Messages that follow each other and are of one run, or of none: each has its block before the next gets one. */
const stretches = (messages: ReadonlyArray<NewMessageRow>): ReadonlyArray<ReadonlyArray<NewMessageRow>> => {
  const found: Array<Array<NewMessageRow>> = []
  for (const message of messages) {
    const last = found.at(-1)
    if (last !== undefined && last[0]?.runId === message.runId) last.push(message)
    else found.push([message])
  }
  return found
}

/** The places in the order of the messages. */
const readPlaces = (
  messages: ReadonlyArray<NewMessageRow>,
  rows: ReadonlyArray<Row>
): ReadonlyArray<Place> => {
  const places = new Map(rows.map(row => [text(row, "id"), readPlace(row)]))
  return messages.map(({ id }) => {
    const place = places.get(id)
    if (place !== undefined) return place
    throw new Error("A message was stored, but the database does not say where.")
  })
}

/** The messages from the beginning of the turn on that holds the first of the last so many. */
const recall = (threadId: string, last: number): Statement =>
  statement(
    `WITH oldest AS (
      SELECT block, sequence FROM eddy_messages WHERE thread_id = ?
      ORDER BY block DESC, sequence DESC LIMIT 1 OFFSET CAST(? AS BIGINT)
    ), turn AS (
      SELECT message.block, message.sequence
      FROM oldest JOIN eddy_messages AS message
        ON (message.block, message.sequence) <= (oldest.block, oldest.sequence)
      WHERE message.thread_id = ? AND message.role = 'user'
      ORDER BY message.block DESC, message.sequence DESC LIMIT 1
    ), start AS (
      SELECT coalesce(max(block), 0) AS first_block, coalesce(max(sequence), 0) AS first_sequence FROM turn
    )
    SELECT ${messageColumns}
    FROM start JOIN eddy_messages ON (block, sequence) >= (first_block, first_sequence)
    WHERE thread_id = ?
    ORDER BY block, sequence`,
    [threadId, last - 1, threadId, threadId]
  )

const select = (id: string): Statement =>
  statement(`SELECT ${threadColumns} FROM eddy_threads WHERE id = ?`, [id])

/** A driver over a database. */
export const make = (executor: Executor, group: Group, dialect: Dialect): Encoded => {
  const write = (id: string, statements: ReadonlyArray<Statement>) => group.write(`thread ${id}`, statements)
  const get = (id: string) =>
    Effect.flatMap(executor.execute(select(id)), ({ rows }) => first(rows, readThread))
  const changed = `updated_at = ?, change_order = ${dialect.nextChange}`

  const open: Encoded["open"] = Effect.fnUntraced(function* (thread) {
    const { createdAt, id, metadata, resourceId, title, updatedAt } = thread
    const create = statement(
      `INSERT INTO eddy_threads (id, resource_id, title, metadata, created_at, updated_at, change_order)
      VALUES (${placesFor([id, resourceId, title, metadata, createdAt, updatedAt])}, ${dialect.nextChange})
      ON CONFLICT (id) DO NOTHING`,
      [id, resourceId, title, metadata, createdAt, updatedAt]
    )
    // Most threads that are opened are there, and reading waits for nobody.
    let found = yield* get(id)
    // Whoever deletes it between the two statements of one transaction lets it be made again.
    while (Option.isNone(found)) {
      const [, selected] = yield* write(id, [create, select(id)])
      found = yield* first(selected?.rows, readThread)
    }
    return found.value
  })

  const startRun: Encoded["startRun"] = Effect.fnUntraced(function* (threadId, runId) {
    const [, , started] = yield* write(threadId, [
      // Locks the thread, and changes nothing of it.
      statement("UPDATE eddy_threads SET id = id WHERE id = ?", [threadId]),
      insertRun(threadId, runId),
      statement("SELECT block FROM eddy_thread_runs WHERE thread_id = ? AND run_id = ?", [threadId, runId])
    ])
    return yield* first(started?.rows, row => number(row, "block"))
  })

  const append: Encoded["append"] = Effect.fnUntraced(function* (threadId, messages, now) {
    const [touched, ...results] = yield* write(threadId, [
      // Locks the thread, whatever follows: others append before or afterwards.
      statement(`UPDATE eddy_threads SET ${changed} WHERE id = ?`, [now, threadId]),
      ...stretches(messages).flatMap(stretch => [
        ...(stretch[0]?.runId == null ? [] : [insertRun(threadId, stretch[0].runId)]),
        ...Arr.chunksOf(stretch, most).map(chunk => insert(threadId, chunk, now))
      ])
    ])
    if (touched === undefined || touched.rowsAffected === 0) return Option.none()
    const rows = results.flatMap(({ rows }) => rows)
    return Option.some(yield* read(() => readPlaces(messages, rows)))
  })

  return {
    open,
    get,
    list: ({ limit, offset, resourceId }) =>
      Effect.flatMap(
        executor.execute(
          page({
            table: "eddy_threads",
            columns: threadColumns,
            where: all([is("resource_id", resourceId)]),
            order: '"changeOrder" DESC',
            offset,
            limit
          })
        ),
        ({ rows }) => read(() => readPage(rows, "id", readThread))
      ),
    update: (id, { metadata, title, updatedAt }) =>
      Effect.flatMap(
        write(id, [
          statement(
            `UPDATE eddy_threads SET title = coalesce(?, title), metadata = coalesce(?, metadata), ${changed}
            WHERE id = ? RETURNING ${threadColumns}`,
            [title ?? null, metadata ?? null, updatedAt, id]
          )
        ]),
        ([updated]) => first(updated?.rows, readThread)
      ),
    delete: id =>
      Effect.map(
        write(id, [
          // The thread first, which waits for those who append, so that all of their messages are there to be deleted.
          statement("DELETE FROM eddy_threads WHERE id = ?", [id]),
          statement("DELETE FROM eddy_messages WHERE thread_id = ?", [id]),
          statement("DELETE FROM eddy_thread_runs WHERE thread_id = ?", [id])
        ]),
        ([deleted]) => deleted?.rowsAffected === 1
      ),
    startRun,
    append,
    messages: (threadId, last) =>
      Effect.flatMap(
        executor.execute(
          last === undefined
            ? statement(
                `SELECT ${messageColumns} FROM eddy_messages WHERE thread_id = ? ORDER BY block, sequence`,
                [threadId]
              )
            : recall(threadId, last)
        ),
        ({ rows }) => read(() => rows.map(readMessage))
      ),
    findTool: (threadId, content, before) =>
      Effect.flatMap(
        executor.execute(
          statement(
            `SELECT ${messageColumns} FROM eddy_messages
            WHERE thread_id = ? AND role = 'tool' AND sequence < ? AND ${dialect.holds("content")}
            ORDER BY sequence DESC LIMIT 1`,
            [threadId, before ?? Number.MAX_SAFE_INTEGER, content]
          )
        ),
        ({ rows }) => first(rows, readMessage)
      ),
    replace: (threadId, id, expected, content, now) =>
      Effect.map(
        write(threadId, [
          // The thread first here too: whoever takes locks in one order does not wait for somebody who waits for it.
          statement(
            `UPDATE eddy_threads SET ${changed} WHERE id = ? AND EXISTS (
              SELECT 1 FROM eddy_messages WHERE thread_id = ? AND id = ? AND content = ?
            )`,
            [now, threadId, threadId, id, expected]
          ),
          statement("UPDATE eddy_messages SET content = ? WHERE thread_id = ? AND id = ? AND content = ?", [
            content,
            threadId,
            id,
            expected
          ])
        ]),
        ([, replaced]) => replaced?.rowsAffected === 1
      ),
    deleteAfter: (threadId, id, now) =>
      Effect.map(
        write(threadId, [
          // The thread first here too, so that who appends does so before or afterwards.
          statement(
            `UPDATE eddy_threads SET ${changed} WHERE id = ? AND EXISTS (
              SELECT 1 FROM eddy_messages WHERE thread_id = ? AND id = ?
            )`,
            [now, threadId, threadId, id]
          ),
          statement(
            `DELETE FROM eddy_messages WHERE thread_id = ? AND (block, sequence) > (
              SELECT block, sequence FROM eddy_messages WHERE thread_id = ? AND id = ?
            )`,
            [threadId, threadId, id]
          )
        ]),
        ([cut]) => cut?.rowsAffected === 1
      ),
    objectives: sqlObjectives.make(executor, group)
  }
}

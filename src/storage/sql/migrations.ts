/** The tables, version by version. What was released is never changed: the next version changes the tables. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { StorageError } from "../../protocol/Errors.js"
import type { Dialect } from "./dialect.js"
import { type Executor, type SqlFailure, type Statement, statement } from "./executor.js"
import { number } from "./rows.js"

const first = ({ changes, counter, text }: Dialect): ReadonlyArray<Statement> => [
  ...changes,
  statement(`CREATE TABLE eddy_threads (
    id ${text} NOT NULL PRIMARY KEY,
    resource_id ${text} NOT NULL,
    title ${text},
    metadata ${text},
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    change_order BIGINT NOT NULL
  )`),
  statement("CREATE INDEX eddy_threads_by_change ON eddy_threads (change_order)"),
  statement("CREATE INDEX eddy_threads_by_resource ON eddy_threads (resource_id, change_order)"),
  statement(`CREATE TABLE eddy_messages (
    thread_id ${text} NOT NULL,
    id ${text} NOT NULL,
    sequence BIGINT NOT NULL,
    run_id ${text},
    role ${text} NOT NULL,
    content ${text} NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (thread_id, id),
    UNIQUE (thread_id, sequence)
  )`),
  // Where turns begin: what is recalled begins with one, however long it is.
  statement("CREATE INDEX eddy_messages_of_users ON eddy_messages (thread_id, sequence) WHERE role = 'user'"),
  statement(`CREATE TABLE eddy_tasks (
    position ${counter},
    id ${text} NOT NULL UNIQUE,
    status ${text} NOT NULL,
    tool_name ${text} NOT NULL,
    tool_call_id ${text} NOT NULL,
    args ${text} NOT NULL,
    agent_id ${text} NOT NULL,
    thread_id ${text},
    resource_id ${text},
    run_id ${text} NOT NULL,
    result ${text},
    error ${text},
    suspend_data ${text},
    resume_data ${text},
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    suspended_at BIGINT,
    completed_at BIGINT,
    attempt BIGINT NOT NULL,
    max_retries BIGINT NOT NULL,
    timeout_ms BIGINT NOT NULL,
    owner ${text},
    is_delivered BIGINT NOT NULL
  )`),
  statement("CREATE INDEX eddy_tasks_by_status ON eddy_tasks (status, completed_at)"),
  statement("CREATE INDEX eddy_tasks_by_owner ON eddy_tasks (owner, status)"),
  statement("CREATE INDEX eddy_tasks_by_agent ON eddy_tasks (agent_id, created_at, position)"),
  statement("CREATE INDEX eddy_tasks_by_creation ON eddy_tasks (created_at, position)"),
  statement("CREATE INDEX eddy_tasks_by_thread ON eddy_tasks (thread_id)"),
  statement(`CREATE TABLE eddy_owners (
    id ${text} NOT NULL PRIMARY KEY,
    lives_until BIGINT NOT NULL
  )`),
  statement(`CREATE TABLE eddy_runs (
    position ${counter},
    run_id ${text} NOT NULL UNIQUE,
    agent_id ${text} NOT NULL,
    thread_id ${text},
    resource_id ${text},
    snapshot ${text} NOT NULL,
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
  )`),
  statement("CREATE INDEX eddy_runs_by_agent ON eddy_runs (agent_id)"),
  statement("CREATE INDEX eddy_runs_by_thread ON eddy_runs (thread_id)")
]

const objectives = ({ text }: Dialect): ReadonlyArray<Statement> => [
  statement(`ALTER TABLE eddy_threads ADD COLUMN objective ${text}`)
]

/**
 * Leases of runs, and when tasks were stored as settled: both by the clock of the database. Of tasks that had settled before, a
 * process has said when.
 */
const storeTimes = ({ text }: Dialect): ReadonlyArray<Statement> => [
  statement(`CREATE TABLE eddy_run_leases (
    run_id ${text} NOT NULL,
    owner ${text} NOT NULL,
    lives_until BIGINT NOT NULL,
    PRIMARY KEY (run_id, owner)
  )`),
  statement("ALTER TABLE eddy_tasks ADD COLUMN settled_at BIGINT"),
  statement("UPDATE eddy_tasks SET settled_at = completed_at"),
  statement("DROP INDEX eddy_tasks_by_status"),
  statement("CREATE INDEX eddy_tasks_by_status ON eddy_tasks (status, settled_at)")
]

/** Messages that were stored before are one block, in their order, before the blocks of all runs. */
const blocks = ({ text }: Dialect): ReadonlyArray<Statement> => [
  statement(`CREATE TABLE eddy_thread_runs (
    thread_id ${text} NOT NULL,
    run_id ${text} NOT NULL,
    block BIGINT NOT NULL,
    PRIMARY KEY (thread_id, run_id),
    UNIQUE (thread_id, block)
  )`),
  statement("ALTER TABLE eddy_messages ADD COLUMN block BIGINT NOT NULL DEFAULT 0"),
  statement("CREATE INDEX eddy_messages_in_order ON eddy_messages (thread_id, block, sequence)"),
  statement("DROP INDEX eddy_messages_of_users"),
  statement(
    "CREATE INDEX eddy_messages_of_users ON eddy_messages (thread_id, block, sequence) WHERE role = 'user'"
  )
]

/** Ids that runs have taken, and what finds the runs and the tasks of a resource. */
const owners = ({ text }: Dialect): ReadonlyArray<Statement> => [
  statement(`CREATE TABLE eddy_run_ids (
    run_id ${text} NOT NULL PRIMARY KEY,
    resource_id ${text},
    holds_until BIGINT NOT NULL
  )`),
  statement("CREATE INDEX eddy_run_ids_by_end ON eddy_run_ids (holds_until)"),
  statement("CREATE INDEX eddy_runs_by_resource ON eddy_runs (resource_id)"),
  statement("CREATE INDEX eddy_tasks_by_resource ON eddy_tasks (resource_id, created_at, position)"),
  statement("CREATE INDEX eddy_tasks_by_run ON eddy_tasks (run_id)")
]

/** What makes version 1, version 2, and so on. */
const versions: ReadonlyArray<(dialect: Dialect) => ReadonlyArray<Statement>> = [
  first,
  objectives,
  storeTimes,
  blocks,
  owners
]

const operation = "Storage.migrate"

const failed = (cause: SqlFailure): StorageError =>
  new StorageError({ operation, message: "The tables could not be made or read: see the cause.", cause })

/** Undone whole when another has applied the version meanwhile: its row is there already. */
const apply = (dialect: Dialect, version: number, now: number): ReadonlyArray<Statement> => [
  ...dialect.alone("migrate"),
  statement("INSERT INTO eddy_migrations (version, applied_at) VALUES (?, ?)", [version, now]),
  ...(versions[version - 1]?.(dialect) ?? [])
]

/**
 * Makes what is missing. Several processes may do so at the same moment. Fails when the tables are of a version that is not
 * known here.
 */
export const migrate = Effect.fnUntraced(function* (executor: Executor, dialect: Dialect) {
  const highest = executor.execute(
    statement("SELECT coalesce(max(version), 0) AS version FROM eddy_migrations")
  )
  const create = executor.batch([
    ...dialect.alone("migrate"),
    statement(`CREATE TABLE IF NOT EXISTS eddy_migrations (
      version BIGINT NOT NULL PRIMARY KEY,
      applied_at BIGINT NOT NULL
    )`)
  ])
  const version = Effect.map(highest, ({ rows }) => rows.reduce((_, row) => number(row, "version"), 0))
  // Asked first: who may use the tables need not be allowed to make some.
  let current = yield* version.pipe(
    Effect.catchTag("SqlFailure", failure =>
      failure.kind === "refused" ? Effect.zipRight(create, version) : Effect.fail(failure)
    ),
    Effect.mapError(failed)
  )
  while (current < versions.length) {
    const now = yield* Clock.currentTimeMillis
    const applied = yield* Effect.either(executor.batch(apply(dialect, current + 1, now)))
    const reached = yield* Effect.mapError(version, failed)
    if (applied._tag === "Left" && reached === current) return yield* failed(applied.left)
    current = reached
  }
  if (current > versions.length) {
    return yield* new StorageError({
      operation,
      message: `The tables are of version ${current}, and this eddy knows those up to version ${versions.length}. Update eddy.`
    })
  }
})

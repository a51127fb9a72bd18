/** The ports over one database. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { make as makeRuns, RunStore } from "./RunStore.js"
import type { Dialect } from "./sqlDialect.js"
import type { Executor } from "./sqlExecutor.js"
import * as Group from "./sqlGroup.js"
import { migrate } from "./sqlMigrations.js"
import * as sqlRuns from "./sqlRuns.js"
import * as sqlTasks from "./sqlTasks.js"
import * as sqlThreads from "./sqlThreads.js"
import { make as makeTasks, TaskStore } from "./TaskStore.js"
import { make as makeThreads, ThreadStore } from "./ThreadStore.js"

/** Makes the tables that are missing. Lives as long as the scope, which the executor must outlive. */
export const make = Effect.fnUntraced(function* (executor: Executor, dialect: Dialect) {
  yield* migrate(executor, dialect)
  const group = yield* Group.make(executor)
  return Context.make(ThreadStore, makeThreads(sqlThreads.make(executor, group, dialect))).pipe(
    Context.add(TaskStore, makeTasks(sqlTasks.make(executor, group, dialect))),
    Context.add(RunStore, makeRuns(sqlRuns.make(executor, group)))
  )
})

/** The ports over one database. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { make as makeRuns, RunStore } from "../RunStore.js"
import { make as makeTasks, TaskStore } from "../TaskStore.js"
import { make as makeThreads, ThreadStore } from "../ThreadStore.js"
import type { Dialect } from "./dialect.js"
import type { Executor } from "./executor.js"
import * as Group from "./group.js"
import { migrate } from "./migrations.js"
import * as sqlRuns from "./runs.js"
import * as sqlTasks from "./tasks.js"
import * as sqlThreads from "./threads.js"

/** Makes the tables that are missing. Lives as long as the scope, which the executor must outlive. */
export const make = Effect.fnUntraced(function* (executor: Executor, dialect: Dialect) {
  yield* migrate(executor, dialect)
  const group = yield* Group.make(executor)
  return Context.make(ThreadStore, makeThreads(sqlThreads.make(executor, group, dialect))).pipe(
    Context.add(TaskStore, makeTasks(sqlTasks.make(executor, group, dialect))),
    Context.add(RunStore, makeRuns(sqlRuns.make(executor, group, dialect)))
  )
})

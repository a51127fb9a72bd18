/**
 * What every {@link TaskStore} must do, whatever database is behind it, as effects that any test runner runs:
 *
 * ```ts
 * for (const { name, run } of TaskStoreConformance.cases) {
 *   it.live(name, () => Effect.provide(run, layer))
 * }
 * ```
 *
 * @since 0.1.0
 */
import * as Conformance from "./conformance/kit.js"
import { taskCases } from "./conformance/taskCases.js"
import { taskChangeCases } from "./conformance/taskChangeCases.js"
import { together } from "./conformance/taskKit.js"
import { taskLeaseCases } from "./conformance/taskLeaseCases.js"
import { taskListCases } from "./conformance/taskListCases.js"
import type { TaskStore } from "./TaskStore.js"

/**
 * One thing that every store must do. `run` makes what it needs under random ids; it leaves its tasks there, of owners who
 * have a lease for centuries. Some cases delete settled tasks, and inherit the tasks of owners without a lease, also those that
 * others have left in the same database: run them in no database in which an application runs its tasks, and in one process
 * only. It fails with {@link NotConforming} when the store does something else.
 *
 * @since 0.1.0
 * @category models
 */
export type Case = Conformance.CaseOf<TaskStore>

/** A store does not do what it must. `message` says what was expected, and what was found. @since 0.1.0 @category errors */
export const NotConforming = Conformance.NotConforming

/** @since 0.1.0 @category errors */
export type NotConforming = Conformance.NotConforming

/**
 * Everything that a store must do. The cases may run in any order, in one process also at the same time.
 *
 * @since 0.1.0
 * @category cases
 */
export const cases: ReadonlyArray<Case> = [
  ...[...taskCases, ...taskChangeCases, ...taskListCases].map(together),
  ...taskLeaseCases
]

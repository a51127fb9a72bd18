/**
 * What every {@link RunStore} must do, whatever database is behind it, as effects that any test runner runs:
 *
 * ```ts
 * for (const { name, run } of RunStoreConformance.cases) {
 *   it.live(name, () => Effect.provide(run, layer))
 * }
 * ```
 *
 * @since 0.1.0
 */
import * as Conformance from "./conformance/kit.js"
import { runCases } from "./conformance/runCases.js"
import { runLeaseCases } from "./conformance/runLeaseCases.js"
import type { RunStore } from "./RunStore.js"

/**
 * One thing that every store must do. `run` makes what it needs under random ids, so it may run in a database that others
 * use; it leaves its runs there. It fails with {@link NotConforming} when the store does something else.
 *
 * @since 0.1.0
 * @category models
 */
export type Case = Conformance.CaseOf<RunStore>

/** A store does not do what it must. `message` says what was expected, and what was found. @since 0.1.0 @category errors */
export const NotConforming = Conformance.NotConforming

/** @since 0.1.0 @category errors */
export type NotConforming = Conformance.NotConforming

/** Everything that a store must do. The cases may run in any order, also at the same time. @since 0.1.0 @category cases */
export const cases: ReadonlyArray<Case> = [...runCases, ...runLeaseCases]

/**
 * What every {@link ThreadStore} must do, whatever database is behind it, as effects that any test runner runs:
 *
 * ```ts
 * for (const { name, run } of ThreadStoreConformance.cases) {
 *   it.live(name, () => Effect.provide(run, layer))
 * }
 * ```
 *
 * @since 0.1.0
 */

import { blockCases } from "./conformance/blockCases.js"
import { contentCases } from "./conformance/contentCases.js"
import { cutCases } from "./conformance/cutCases.js"
import * as Conformance from "./conformance/kit.js"
import { messageCases } from "./conformance/messageCases.js"
import * as Objectives from "./conformance/objectiveCases.js"
import { outcomeCases } from "./conformance/outcomeCases.js"
import { threadCases } from "./conformance/threadCases.js"

/**
 * One thing that every store must do. `run` makes what it needs under random ids, so it may run in a database that others
 * use; it leaves its threads there. It fails with {@link NotConforming} when the store does something else.
 *
 * @since 0.1.0
 * @category models
 */
export type Case = Conformance.Case

/** A store does not do what it must. `message` says what was expected, and what was found. @since 0.1.0 @category errors */
export const NotConforming = Conformance.NotConforming

/** @since 0.1.0 @category errors */
export type NotConforming = Conformance.NotConforming

/** Everything that a store must do. The cases may run in any order, also at the same time. @since 0.1.0 @category cases */
export const cases: ReadonlyArray<Case> = [
  ...threadCases,
  ...messageCases,
  ...blockCases,
  ...contentCases,
  ...outcomeCases,
  ...cutCases
]

/** What a store must do beside that whose driver keeps objectives: see `ThreadStore.Encoded`. @since 0.1.0 @category cases */
export const objectiveCases: ReadonlyArray<Case> = Objectives.objectiveCases

/** What every store must do, done by PostgreSQL. */

import { describe, layer } from "@effect/vitest"
import { PostgresStore } from "eddy"
import { RunStoreConformance, TaskStoreConformance, ThreadStoreConformance } from "eddy/testing"
import { Effect, Layer } from "effect"
import { freshSchema, postgresUrl } from "../support/databases.js"

const inSchema = Layer.unwrapScoped(Effect.map(freshSchema, url => PostgresStore.layer({ url })))

// At the same time, which saves waiting for the disk, and is how stores are used.
describe.skipIf(postgresUrl === undefined).concurrent("PostgreSQL", () => {
  layer(inSchema, { excludeTestServices: true })("in one schema", it => {
    for (const { name, run } of ThreadStoreConformance.cases) it.effect(`threads: ${name}`, () => run)
    for (const { name, run } of ThreadStoreConformance.objectiveCases) {
      it.effect(`objectives: ${name}`, () => run)
    }
    for (const { name, run } of TaskStoreConformance.cases) it.effect(`tasks: ${name}`, () => run)
    for (const { name, run } of RunStoreConformance.cases) it.effect(`runs: ${name}`, () => run)
  })
})

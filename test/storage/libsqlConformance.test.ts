/** What every store must do, done by libSQL on a file. */

import { describe, layer } from "@effect/vitest"
import { LibSqlStore } from "eddy"
import { RunStoreConformance, TaskStoreConformance, ThreadStoreConformance } from "eddy/testing"
import { Effect, Layer } from "effect"
import { freshFile } from "../support/databases.js"

const onFile = Layer.unwrapScoped(Effect.map(freshFile, url => LibSqlStore.layer({ url })))

describe("libSQL", () => {
  layer(onFile, { excludeTestServices: true })("on one file", it => {
    for (const { name, run } of ThreadStoreConformance.cases) it.effect(`threads: ${name}`, () => run)
    for (const { name, run } of ThreadStoreConformance.objectiveCases) {
      it.effect(`objectives: ${name}`, () => run)
    }
    for (const { name, run } of TaskStoreConformance.cases) it.effect(`tasks: ${name}`, () => run)
    for (const { name, run } of RunStoreConformance.cases) it.effect(`runs: ${name}`, () => run)

    it.effect(
      "does all of it at the same time",
      () =>
        Effect.all(
          [
            ...ThreadStoreConformance.cases.map(({ run }) => run),
            ...ThreadStoreConformance.objectiveCases.map(({ run }) => run),
            ...TaskStoreConformance.cases.map(({ run }) => run),
            ...RunStoreConformance.cases.map(({ run }) => run)
          ],
          { concurrency: "unbounded", discard: true }
        ),
      60_000
    )
  })
})

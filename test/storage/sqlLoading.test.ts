/** A package that is not installed: what is told of it. */
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { vi } from "vitest"

vi.mock("@libsql/client", () => {
  throw new Error("Cannot find package '@libsql/client'")
})
vi.mock("@effect/sql-pg/PgClient", () => {
  throw new Error("Cannot find package '@effect/sql-pg'")
})

it.effect("says which packages a store needs, and how to install them", () =>
  Effect.gen(function* () {
    const { LibSqlStore, PostgresStore } = yield* Effect.promise(() => import("eddy"))
    const layers = [
      [LibSqlStore.layer({ url: "file:a.db" }), "npm install @libsql/client"],
      [PostgresStore.layer({ url: "postgres://localhost/db" }), "npm install @effect/sql-pg @effect/sql "]
    ] as const
    for (const [layer, command] of layers) {
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      expect(error).toMatchObject({ _tag: "InvalidConfiguration", field: "storage" })
      expect(error.message).toContain(command)
    }
  })
)

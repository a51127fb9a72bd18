/** The store of runs: what its memory driver does as any driver must, and what holds whatever the driver does. */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Exit, FastCheck, Layer, Option } from "effect"
import * as memoryRuns from "../../src/storage/memoryRuns.js"
import * as RunStore from "../../src/storage/RunStore.js"
import * as RunStoreConformance from "../../src/storage/RunStoreConformance.js"
import type { Encoded, RunRow } from "../../src/storage/runRows.js"
import { brokenRunDrivers } from "./brokenRunDrivers.js"
import { failingDrivers } from "./failingDrivers.js"

const { cases } = RunStoreConformance

const layerOf = (driver: Encoded) => Layer.succeed(RunStore.RunStore, RunStore.make(driver))

/** The first case that a driver does not pass; each has a driver of its own. */
const firstFailure = (make: () => Encoded) =>
  Effect.findFirst(cases, ({ run }) =>
    Effect.map(Effect.exit(Effect.provide(run, layerOf(make()))), Exit.isFailure)
  )

const run: RunStore.NewRun = { runId: "run-1", agentId: "agent", snapshot: { step: [1, null] } }

const row: RunRow = {
  runId: "run-1",
  agentId: "agent",
  threadId: null,
  resourceId: null,
  snapshot: '{"step":[1,null]}',
  revision: 1,
  createdAt: 0,
  updatedAt: 0,
  holders: []
}

describe("the memory driver", () => {
  for (const { name, run } of cases) {
    it.live(name, () => Effect.provide(run, RunStore.layerMemory))
  }

  it.effect("does all of it under a test clock, in one store, at the same time, and again", () =>
    Effect.forEach([...cases, ...cases], ({ run }) => run, { concurrency: "unbounded", discard: true }).pipe(
      Effect.provide(RunStore.layerMemory)
    )
  )

  it.effect("begins empty with each layer", () =>
    Effect.gen(function* () {
      const save = Effect.flatMap(RunStore.RunStore, store =>
        Effect.zipRight(store.save(run, undefined), store.list())
      )
      for (const _ of [1, 2]) {
        const { total } = yield* Effect.provide(save, Layer.fresh(RunStore.layerMemory))
        expect(total).toBe(1)
      }
    })
  )

  it.effect("shares nothing with whoever saves and reads", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.RunStore
      const inner = [1]
      const saved = Option.getOrThrow(yield* store.save({ ...run, snapshot: { inner } }, undefined))
      inner.push(2)
      Object.assign(saved.snapshot ?? {}, { inner: "other" })
      const found = Option.getOrThrow(yield* store.get("run-1"))
      expect(found.snapshot).toEqual({ inner: [1] })
    }).pipe(Effect.provide(RunStore.layerMemory))
  )
})

describe("a snapshot", () => {
  it("of any JSON value comes back as it was", () =>
    FastCheck.assert(
      FastCheck.asyncProperty(FastCheck.json(), text =>
        Effect.gen(function* () {
          const store = RunStore.make(memoryRuns.make(Clock.make()))
          yield* store.save({ ...run, snapshot: JSON.parse(text) }, undefined)
          const found = Option.getOrThrow(yield* store.get("run-1"))
          expect(JSON.stringify(found.snapshot)).toBe(JSON.stringify(JSON.parse(text)))
        }).pipe(Effect.runPromise)
      )
    ))

  it.effect("that is no JSON does not reach the driver", () =>
    Effect.gen(function* () {
      const store = RunStore.make(failing(Effect.die("The driver was asked.")))
      for (const snapshot of [undefined, 2n, () => {}, { at: { deep: 2n } }]) {
        const error = yield* Effect.flip(store.save(Object.assign({ ...run }, { snapshot }), undefined))
        expect(error).toMatchObject({ _tag: "StorageError", operation: "RunStore.save" })
        expect(error.message).toContain('"run-1"')
        expect(error.cause).toBeInstanceOf(TypeError)
      }
    })
  )
})

describe("the conformance cases", () => {
  it("have names of their own", () => {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
    expect(cases.length).toBeGreaterThan(12)
  })

  it.live("pass a driver that answers later", () =>
    Effect.map(
      firstFailure(() => {
        const driver = memoryRuns.make(Clock.make())
        const later = <A, E>(effect: Effect.Effect<A, E>) =>
          Effect.yieldNow().pipe(Effect.zipRight(effect), Effect.zipLeft(Effect.yieldNow()))
        return {
          save: (...given) => later(driver.save(...given)),
          get: runId => later(driver.get(runId)),
          delete: (...given) => later(driver.delete(...given)),
          list: query => later(driver.list(query)),
          reserve: (...given) => later(driver.reserve(...given)),
          reservation: (...given) => later(driver.reservation(...given)),
          release: runId => later(driver.release(runId))
        }
      }),
      failed => expect(failed).toEqual(Option.none())
    )
  )

  it.live.each([...brokenRunDrivers])("fail a driver that %s", ([, make]) =>
    Effect.map(firstFailure(make), failed => expect(Option.isSome(failed)).toBe(true))
  )
})

/** Every operation, and what the driver is asked for it. */
const operations: Readonly<
  Record<
    keyof Encoded,
    (store: RunStore.RunStore["Type"]) => Effect.Effect<unknown, { readonly _tag: string }>
  >
> = {
  save: store => store.save(run, undefined),
  get: store => store.get("run-1"),
  delete: store => store.delete("run-1", 1),
  list: store => store.list(),
  reserve: store => store.reserve({ runId: "run-1" }, "1 hour"),
  reservation: store => store.reservation("run-1"),
  release: store => store.release("run-1")
}

const names = ["save", "get", "delete", "list", "reserve", "reservation", "release"] as const

const failing = (effect: Effect.Effect<never, unknown>): Encoded => ({
  save: () => effect,
  get: () => effect,
  delete: () => effect,
  list: () => effect,
  reserve: () => effect,
  reservation: () => effect,
  release: () => effect
})

describe("a driver that", () => {
  failingDrivers("RunStore", names, (name, answer) => operations[name](RunStore.make(failing(answer))))
})

describe("rows that cannot be read", () => {
  const wrong: ReadonlyArray<readonly [string, Partial<RunRow>]> = [
    ["a snapshot that is no JSON", { snapshot: "{" }],
    ["an empty snapshot", { snapshot: "" }],
    ["no time of creation", { createdAt: Number.NaN }],
    ["no time of change", { updatedAt: Infinity }],
    ["no revision", { revision: 0 }],
    ["half a revision", { revision: 1.5 }]
  ]

  it.effect.each([...wrong])("fail with a StorageError that names the run: %s", ([, fields]) =>
    Effect.gen(function* () {
      const broken = { ...row, ...fields }
      const store = RunStore.make({
        ...memoryRuns.make(Clock.make()),
        save: () => Effect.succeedSome(broken),
        get: () => Effect.succeedSome(broken),
        list: () => Effect.succeed({ rows: [{ ...row, runId: "run-0" }, broken], total: 2 })
      })
      for (const name of ["save", "get", "list"] as const) {
        const error = yield* Effect.flip(operations[name](store))
        expect(error).toMatchObject({ _tag: "StorageError", operation: `RunStore.${name}` })
        expect(error).toHaveProperty("message", expect.stringContaining('Run "run-1"'))
        expect(error).toHaveProperty("cause._tag", "ParseError")
      }
    })
  )
})

describe("what the driver is given", () => {
  it.effect("are plain rows, the revision that is expected, the time, and the lease", () =>
    Effect.gen(function* () {
      const driver = memoryRuns.make(Clock.make())
      const given: Array<unknown> = []
      const store = RunStore.make({
        ...driver,
        save: (...all) => {
          given.push(all)
          return driver.save(...all)
        },
        list: query => {
          given.push(query)
          return driver.list(query)
        }
      })
      yield* store.save(run, undefined)
      const other = { ...run, runId: "\ud83d", threadId: "t", resourceId: "r", snapshot: null }
      yield* store.save(other, 7, { owner: "\ud83d", duration: "2 seconds" })
      yield* store.list({ threadId: "\ude00", page: 2, perPage: 10 })
      const { createdAt: _, revision: __, updatedAt: ___, holders: ____, ...plain } = row
      expect(given).toEqual([
        [plain, undefined, 0, undefined],
        [
          { ...plain, runId: "\ufffd", threadId: "t", resourceId: "r", snapshot: "null" },
          7,
          0,
          { owner: "\ufffd", milliseconds: 2000 }
        ],
        { agentId: undefined, threadId: "\ufffd", resourceId: undefined, offset: 20, limit: 10 }
      ])
    })
  )
})

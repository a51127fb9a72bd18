/** The store of tasks: what its memory driver does as any driver must, and what holds whatever the driver does. */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Exit, Layer, Option } from "effect"
import type { Task } from "../../src/protocol/Task.js"
import * as memoryTasks from "../../src/storage/memoryTasks.js"
import * as TaskStore from "../../src/storage/TaskStore.js"
import * as TaskStoreConformance from "../../src/storage/TaskStoreConformance.js"
import type { Encoded, TaskRow } from "../../src/storage/taskRows.js"
import { brokenTaskDrivers } from "./brokenTaskDrivers.js"
import { failingDrivers } from "./failingDrivers.js"

const { cases } = TaskStoreConformance

const layerOf = (driver: Encoded) => Layer.succeed(TaskStore.TaskStore, TaskStore.make(driver))

/** The first case that a driver does not pass; each has a driver of its own. */
const firstFailure = (make: () => Encoded) =>
  Effect.findFirst(cases, ({ run }) =>
    Effect.map(Effect.exit(Effect.provide(run, layerOf(make()))), Exit.isFailure)
  )

const task: Task = {
  id: "t",
  status: "pending",
  toolName: "look",
  toolCallId: "call",
  args: { city: "Berlin" },
  agentId: "agent",
  runId: "run",
  createdAt: new Date(1),
  attempt: 0,
  maxRetries: 2,
  timeoutMs: 1000
}

const row: TaskRow = {
  id: "t",
  status: "pending",
  toolName: "look",
  toolCallId: "call",
  args: '{"city":"Berlin"}',
  agentId: "agent",
  threadId: null,
  resourceId: null,
  runId: "run",
  result: null,
  error: null,
  suspendData: null,
  resumeData: null,
  createdAt: 1,
  startedAt: null,
  suspendedAt: null,
  completedAt: null,
  attempt: 0,
  maxRetries: 2,
  timeoutMs: 1000,
  owner: "owner",
  isDelivered: 0
}

describe("the memory driver", () => {
  for (const { name, run } of cases) {
    it.live(name, () => Effect.provide(run, TaskStore.layerMemory))
  }

  it.effect("does all of it under a test clock, in one store, at the same time, and again", () =>
    Effect.forEach([...cases, ...cases], ({ run }) => run, { concurrency: "unbounded", discard: true }).pipe(
      Effect.provide(TaskStore.layerMemory)
    )
  )

  it.effect("begins empty with each layer", () =>
    Effect.gen(function* () {
      const create = Effect.flatMap(TaskStore.TaskStore, store =>
        Effect.zipRight(store.create(task, "owner"), store.list())
      )
      for (const _ of [1, 2]) {
        const { total } = yield* Effect.provide(create, Layer.fresh(TaskStore.layerMemory))
        expect(total).toBe(1)
      }
    })
  )

  it.effect("creates, changes and finds a task among many as fast as among few", () =>
    Effect.gen(function* () {
      const driver = memoryTasks.make(Clock.make())
      /** Milliseconds of this process, which the load of the machine does not change. */
      const cpuTime = (): number => {
        const { system, user } = process.cpuUsage()
        return (user + system) / 1000
      }
      let count = 0
      const measure = (): number => {
        const start = cpuTime()
        for (let round = 0; round < 1000; round++) {
          const id = `${count++}`
          Effect.runSync(driver.create({ ...row, id }))
          Effect.runSync(driver.update(id, { statuses: ["pending"] }, { status: "running" }))
          Effect.runSync(driver.get(id))
        }
        return cpuTime() - start
      }
      const few = Math.min(...Array.from({ length: 8 }, measure))
      for (let index = 0; index < 100_000; index++) yield* driver.create({ ...row, id: `many-${index}` })
      const many = Math.min(...Array.from({ length: 8 }, measure))
      // Whoever looks at all of them takes thousands of times as long.
      expect(many).toBeLessThan(5 * few + 5)
    })
  )
})

describe("the conformance cases", () => {
  it("have names of their own", () => {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
    expect(cases.length).toBeGreaterThan(30)
  })

  it.live("pass a driver that answers later", () =>
    Effect.map(
      firstFailure(() => {
        const driver = memoryTasks.make(Clock.make())
        const later = <A, E>(effect: Effect.Effect<A, E>) =>
          Effect.yieldNow().pipe(Effect.zipRight(effect), Effect.zipLeft(Effect.yieldNow()))
        return {
          create: row => later(driver.create(row)),
          update: (...given) => later(driver.update(...given)),
          get: id => later(driver.get(id)),
          list: query => later(driver.list(query)),
          places: ids => later(driver.places(ids)),
          owned: owner => later(driver.owned(owner)),
          deleteSettled: (...given) => later(driver.deleteSettled(...given)),
          renewLease: (...given) => later(driver.renewLease(...given)),
          dropLease: owner => later(driver.dropLease(owner)),
          inherit: heir => later(driver.inherit(heir))
        }
      }),
      failed => expect(failed).toEqual(Option.none())
    )
  )

  it.live.each([...brokenTaskDrivers])("fail a driver that %s", ([, make]) =>
    Effect.map(firstFailure(make), failed => expect(Option.isSome(failed)).toBe(true))
  )

  it.live("leave nothing that others would inherit", () =>
    Effect.gen(function* () {
      const store = yield* TaskStore.TaskStore
      for (const { run } of cases) yield* run
      expect(yield* store.inherit("heir")).toEqual([])
      expect((yield* store.list()).total).toBeGreaterThan(100)
    }).pipe(Effect.provide(TaskStore.layerMemory))
  )
})

/** Every operation, and what the driver is asked for it. */
const operations: Readonly<
  Record<
    keyof Encoded | "delivered",
    (store: TaskStore.TaskStore["Type"]) => Effect.Effect<unknown, { readonly _tag: string }>
  >
> = {
  create: store => store.create(task, "owner"),
  update: store => store.update("t", { statuses: ["pending"] }, { status: "running" }),
  get: store => store.get("t"),
  list: store => store.list(),
  places: store => store.places(["t"]),
  delivered: store => store.delivered("t"),
  owned: store => store.owned("owner"),
  deleteSettled: store => store.deleteSettled(["failed"], 1),
  renewLease: store => store.renewLease("owner", 1),
  dropLease: store => store.dropLease("owner"),
  inherit: store => store.inherit("heir")
}

const names = [
  "create",
  "update",
  "get",
  "list",
  "places",
  "delivered",
  "owned",
  "deleteSettled",
  "renewLease",
  "dropLease",
  "inherit"
] as const

const failing = (effect: Effect.Effect<never, unknown>): Encoded => ({
  create: () => effect,
  update: () => effect,
  get: () => effect,
  list: () => effect,
  places: () => effect,
  owned: () => effect,
  deleteSettled: () => effect,
  renewLease: () => effect,
  dropLease: () => effect,
  inherit: () => effect
})

describe("a driver that", () => {
  failingDrivers("TaskStore", names, (name, answer) => operations[name](TaskStore.make(failing(answer))))
})

describe("rows that cannot be read", () => {
  const wrong: ReadonlyArray<readonly [string, Partial<TaskRow>]> = [
    ["arguments that are no JSON", { args: "{" }],
    ["arguments that are no object", { args: "[1]" }],
    ["arguments that are null", { args: "null" }],
    ["a result that is no JSON", { result: "undefined" }],
    ["an empty result", { result: "" }],
    ["a suspension that is no JSON", { suspendData: "{" }],
    ["a resumption that is no JSON", { resumeData: "'" }],
    ["no time of creation", { createdAt: Number.NaN }],
    ["a time of its end that is none", { completedAt: Infinity }],
    ["an attempt that is no number", { attempt: Number.NaN }],
    ["half an attempt", { attempt: 0.5 }],
    ["retries below none", { maxRetries: -1 }]
  ]

  it.effect.each([...wrong])("fail with a StorageError that names the task: %s", ([, fields]) =>
    Effect.gen(function* () {
      const broken = { ...row, id: "t-2", ...fields }
      const store = TaskStore.make({
        ...memoryTasks.make(Clock.make()),
        get: () => Effect.succeedSome(broken),
        list: () => Effect.succeed({ rows: [row, broken], total: 2 })
      })
      for (const name of ["get", "list"] as const) {
        const error = yield* Effect.flip(operations[name](store))
        expect(error).toMatchObject({ _tag: "StorageError", operation: `TaskStore.${name}` })
        expect(error).toHaveProperty("message", expect.stringContaining('Task "t-2"'))
        expect(error).toHaveProperty("cause._tag", "ParseError")
      }
    })
  )

  it.effect("of an unknown status, or told neither nor not, fail", () =>
    Effect.gen(function* () {
      for (const fields of [{ status: "asleep" }, { isDelivered: 2 }, { threadId: undefined }]) {
        const broken = Object.assign({ ...row }, fields)
        const store = TaskStore.make({
          ...memoryTasks.make(Clock.make()),
          get: () => Effect.succeedSome(broken)
        })
        expect(yield* Effect.flip(store.get("t"))).toMatchObject({ _tag: "StorageError" })
      }
    })
  )

  it.effect("keep no other from being inherited", () =>
    Effect.gen(function* () {
      const rows = [row, { ...row, id: "t-2", args: "{" }, { ...row, id: "t-3" }]
      const store = TaskStore.make({ ...memoryTasks.make(Clock.make()), inherit: () => Effect.succeed(rows) })
      const inherited = yield* store.inherit("heir")
      expect(inherited.map(({ task }) => task.id)).toEqual(["t", "t-3"])
    })
  )

  it.effect("and those whose status and fields do not fit each other can be read", () =>
    Effect.gen(function* () {
      const odd: ReadonlyArray<Partial<TaskRow>> = [
        { status: "completed" },
        { status: "failed", result: "1" },
        { status: "pending", error: "no", completedAt: 3 },
        { status: "suspended", suspendData: null, suspendedAt: null },
        { status: "running", isDelivered: 1, owner: null }
      ]
      for (const fields of odd) {
        const store = TaskStore.make({
          ...memoryTasks.make(Clock.make()),
          get: () => Effect.succeedSome({ ...row, ...fields })
        })
        const found = Option.getOrThrow(yield* store.get("t"))
        expect(found.task.status).toBe(fields.status)
        expect(found.task.error?.message).toBe(fields.error)
        expect("result" in found.task).toBe(fields.result !== undefined)
      }
    })
  )
})

describe("what the driver is given", () => {
  const recording = () => {
    const driver = memoryTasks.make(Clock.make())
    const given: Array<unknown> = []
    const store = TaskStore.make({
      ...driver,
      create: row => {
        given.push(row)
        return driver.create(row)
      },
      update: (...all) => {
        given.push(all)
        return driver.update(...all)
      },
      list: query => {
        given.push(query)
        return driver.list(query)
      }
    })
    return { given, store }
  }

  it.effect("is a plain row", () =>
    Effect.gen(function* () {
      const { given, store } = recording()
      yield* store.create(task, "owner")
      yield* store.create(
        { ...task, id: "\ud83d", threadId: "th", result: null, startedAt: new Date(5) },
        "o"
      )
      expect(given).toEqual([
        row,
        { ...row, id: "\ufffd", threadId: "th", result: "null", startedAt: 5, owner: "o" }
      ])
    })
  )

  it.effect("are the fields that change, and no other", () =>
    Effect.gen(function* () {
      const { given, store } = recording()
      const suspension = Option.some({ at: new Date(7), data: null })
      yield* store.update("t", { statuses: ["running"] }, { status: "suspended", suspension, owner: null })
      yield* store.update("t", { statuses: ["suspended"], owner: "o" }, { suspension: Option.none() })
      yield* store.update("t", { statuses: ["pending"] }, {})
      expect(given).toEqual([
        [
          "t",
          { statuses: ["running"] },
          { status: "suspended", suspendedAt: 7, suspendData: "null", owner: null }
        ],
        ["t", { statuses: ["suspended"], owner: "o" }, { suspendedAt: null, suspendData: null }],
        ["t", { statuses: ["pending"] }, {}]
      ])
    })
  )

  it.effect("is a query of everything that is asked", () =>
    Effect.gen(function* () {
      const { given, store } = recording()
      yield* store.list()
      yield* store.list({ status: "failed", agentId: "\ud83d", page: 2, perPage: 10, toDate: new Date(9) })
      const query = {
        statuses: undefined,
        agentId: undefined,
        threadId: undefined,
        resourceId: undefined,
        runId: undefined,
        toolName: undefined,
        toolCallId: undefined,
        dateField: "createdAt",
        from: undefined,
        to: undefined,
        orderBy: "createdAt",
        direction: "asc",
        offset: 0,
        limit: 100
      }
      const asked = { statuses: ["failed"], agentId: "\ufffd", to: 9, offset: 20, limit: 10 }
      expect(given).toEqual([query, { ...query, ...asked }])
    })
  )
})

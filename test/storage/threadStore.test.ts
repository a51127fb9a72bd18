/** The store of threads: what its memory driver does as any driver must, and what holds whatever the driver does. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { describe, expect, it } from "@effect/vitest"
import { type Message, Objective, ThreadStore } from "eddy"
import { ThreadStoreConformance } from "eddy/testing"
import { Effect, Either, Exit, Layer, Option } from "effect"
import * as memoryThreads from "../../src/storage/memoryThreads.js"
import type { Encoded, MessageRow, NewMessageRow, ThreadRow } from "../../src/storage/threadRows.js"
import { brokenDrivers } from "./brokenDrivers.js"
import { failingDrivers } from "./failingDrivers.js"

const cases = [...ThreadStoreConformance.cases, ...ThreadStoreConformance.objectiveCases]

const layerOf = (driver: Encoded) => Layer.succeed(ThreadStore.ThreadStore, ThreadStore.make(driver))

/** The first case that a driver does not pass; each has a driver of its own. */
const firstFailure = (make: () => Encoded) =>
  Effect.findFirst(cases, ({ run }) =>
    Effect.map(Effect.exit(Effect.provide(run, layerOf(make()))), Exit.isFailure)
  )

const say = (id: string, text = id): ThreadStore.NewMessage => ({
  id,
  message: { role: "user", content: [{ type: "text", text }] }
})

const outcome = (toolCallId: string, value: string): Message.ToolResultPart => ({
  type: "tool-result",
  toolCallId,
  toolName: "look",
  output: { type: "text", value }
})

const told = (id: string, ...content: ReadonlyArray<Message.ToolResultPart>): ThreadStore.NewMessage => ({
  id,
  message: { role: "tool", content }
})

describe("the memory driver", () => {
  for (const { name, run } of cases) {
    it.live(name, () => Effect.provide(run, ThreadStore.layerMemory))
  }

  it.effect("does all of it under a test clock, in one store, at the same time", () =>
    Effect.forEach(cases, ({ run }) => run, { concurrency: "unbounded", discard: true }).pipe(
      Effect.provide(ThreadStore.layerMemory)
    )
  )

  it.effect("begins empty with each layer", () =>
    Effect.gen(function* () {
      const open = Effect.flatMap(ThreadStore.ThreadStore, store =>
        Effect.zipRight(store.open({ id: "t", resourceId: "r" }), store.list())
      )
      for (const _ of [1, 2]) {
        const { total } = yield* Effect.provide(open, Layer.fresh(ThreadStore.layerMemory))
        expect(total).toBe(1)
      }
    })
  )

  it.effect("frees the memory of a thread that is deleted", () =>
    Effect.gen(function* () {
      setFlagsFromString("--expose-gc")
      const gc: () => void = runInNewContext("gc")
      const used = (): number => {
        gc()
        return process.memoryUsage().heapUsed
      }
      const store = yield* ThreadStore.ThreadStore
      yield* store.open({ id: "other", resourceId: "r" })
      yield* store.append("other", [say("a")])
      const before = used()
      yield* store.open({ id: "t", resourceId: "r" })
      for (let batch = 0; batch < 20; batch++) {
        yield* store.append("t", [say(`${batch}`, "x".repeat(500_000) + batch)])
      }
      expect(used() - before).toBeGreaterThan(8_000_000)
      expect(yield* store.delete("t")).toBe(true)
      expect(used() - before).toBeLessThan(1_000_000)
      expect(yield* store.messages("other")).toHaveLength(1)
    }).pipe(Effect.provide(ThreadStore.layerMemory))
  )

  it.effect("appends and recalls in a long thread as fast as in a short one", () =>
    Effect.gen(function* () {
      const driver = memoryThreads.make()
      let count = 0
      const newRow = (): NewMessageRow => ({
        id: `${count++}`,
        runId: null,
        role: count % 2 === 0 ? "user" : "assistant",
        content: "{}"
      })
      const append = (id: string, size: number) => driver.append(id, Array.from({ length: size }, newRow), 0)
      const open = (id: string) =>
        driver.open({ id, resourceId: "r", title: null, metadata: null, createdAt: 0, updatedAt: 0 })
      /** Milliseconds of this process, which the load of the machine does not change. */
      const cpuTime = (): number => {
        const { system, user } = process.cpuUsage()
        return (user + system) / 1000
      }
      const measure = (id: string): number => {
        let recalled = 0
        const start = cpuTime()
        for (let round = 0; round < 200; round++) {
          Effect.runSync(append(id, 2))
          recalled += Effect.runSync(driver.messages(id, 40)).length
        }
        const time = cpuTime() - start
        expect(recalled).toBeGreaterThanOrEqual(200 * 40)
        return time
      }
      yield* open("long")
      const start = cpuTime()
      for (let batch = 0; batch < 200; batch++) {
        yield* append("long", 500)
        // Whoever looks at all for each that is added would be at it for minutes.
        expect(cpuTime() - start).toBeLessThan(5000)
      }
      const times: Array<readonly [short: number, long: number]> = []
      for (const id of ["a", "b", "c", "d", "e", "f", "g", "h"]) {
        yield* open(id)
        yield* append(id, 50)
        times.push([measure(id), measure("long")])
      }
      const short = Math.min(...times.map(([short]) => short))
      const long = Math.min(...times.map(([, long]) => long))
      // Whoever looks at all of them takes dozens of times as long.
      expect(long).toBeLessThan(5 * short + 2)
    })
  )
})

describe("the conformance cases", () => {
  it("have names of their own", () => {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
    expect(cases.length).toBeGreaterThan(45)
  })

  it.live("pass a driver that answers later", () =>
    Effect.map(
      firstFailure(() => {
        const driver = memoryThreads.make()
        const {
          append,
          delete: remove,
          deleteAfter,
          findTool,
          get,
          list,
          messages,
          objectives,
          open,
          replace,
          startRun,
          update
        } = driver
        const later = <A, E>(effect: Effect.Effect<A, E>) =>
          Effect.yieldNow().pipe(Effect.zipRight(effect), Effect.zipLeft(Effect.yieldNow()))
        return {
          append: (...given) => later(append(...given)),
          delete: id => later(remove(id)),
          deleteAfter: (...given) => later(deleteAfter(...given)),
          findTool: (...given) => later(findTool(...given)),
          get: id => later(get(id)),
          list: page => later(list(page)),
          messages: (...given) => later(messages(...given)),
          startRun: (...given) => later(startRun(...given)),
          ...(objectives === undefined
            ? {}
            : {
                objectives: {
                  get: (...given) => later(objectives.get(...given)),
                  replace: (...given) => later(objectives.replace(...given))
                }
              }),
          open: thread => later(open(thread)),
          replace: (...given) => later(replace(...given)),
          update: (...given) => later(update(...given))
        }
      }),
      failed => expect(failed).toEqual(Option.none())
    )
  )

  it.live.each([...brokenDrivers])("fail a driver that %s", ([, make]) =>
    Effect.map(firstFailure(make), failed => expect(Option.isSome(failed)).toBe(true))
  )

  it.live("say what was expected, and what was found", () =>
    Effect.gen(function* () {
      const driver = memoryThreads.make()
      const store = layerOf({ ...driver, delete: id => Effect.as(driver.delete(id), true) })
      const broken = cases.filter(({ name }) => name.startsWith("delete removes"))
      const [error] = yield* Effect.forEach(broken, ({ run }) => Effect.flip(Effect.provide(run, store)))
      expect(error).toMatchObject({
        _tag: "NotConforming",
        message: "whether there is one still: expected false but found true"
      })
    })
  )
})

const names = [
  "open",
  "get",
  "list",
  "update",
  "delete",
  "startRun",
  "append",
  "messages",
  "deleteAfter",
  "replaceOutcome",
  "outcome",
  "objective",
  "changeObjective"
] as const

const mine = { threadId: "t", resourceId: "r" }

const reachIt = Objective.make("Reach it.", 5, new Date(1000))

/** Every operation, and what the driver is asked for it. */
const operations: Readonly<
  Record<
    (typeof names)[number],
    (store: ThreadStore.ThreadStore["Type"]) => Effect.Effect<unknown, { readonly _tag: string }>
  >
> = {
  open: store => store.open({ id: "t", resourceId: "r" }),
  get: store => store.get("t"),
  list: store => store.list(),
  update: store => store.update("t", { title: "new" }),
  delete: store => store.delete("t"),
  append: store => store.append("t", [say("a")]),
  startRun: store => store.startRun("t", "run"),
  messages: store => store.messages("t"),
  deleteAfter: store => store.deleteAfter("t", "m"),
  outcome: store => store.outcome("t", "call", () => true),
  replaceOutcome: store => store.replaceOutcome("t", outcome("call", "done")),
  objective: store => store.objective(mine),
  changeObjective: store => store.changeObjective(mine, () => Either.right(Option.some(reachIt)))
}

const failing = (effect: Effect.Effect<never, unknown>): Encoded => ({
  open: () => effect,
  get: () => effect,
  list: () => effect,
  update: () => effect,
  delete: () => effect,
  startRun: () => effect,
  append: () => effect,
  messages: () => effect,
  findTool: () => effect,
  replace: () => effect,
  deleteAfter: () => effect,
  objectives: { get: () => effect, replace: () => effect }
})

describe("a driver that", () => {
  failingDrivers("ThreadStore", names, (name, answer) => operations[name](ThreadStore.make(failing(answer))))

  it.effect("fails once loses nothing of the store", () =>
    Effect.gen(function* () {
      const driver = memoryThreads.make()
      let isFailing = true
      const store = ThreadStore.make({
        ...driver,
        append: (...given) =>
          Effect.suspend(() => (isFailing ? Effect.fail("deadlock") : driver.append(...given)))
      })
      yield* store.open({ id: "t", resourceId: "r" })
      expect(yield* Effect.flip(store.append("t", [say("a")]))).toMatchObject({ cause: "deadlock" })
      isFailing = false
      yield* store.append("t", [say("a")])
      expect(yield* store.messages("t")).toHaveLength(1)
    })
  )
})

describe("an outcome that is replaced", () => {
  /** A store in whose thread something is done the first time after an outcome was found, and before it is replaced. */
  const storeWith = (
    meanwhile: (store: ThreadStore.ThreadStore["Type"]) => Effect.Effect<unknown, unknown>
  ) => {
    const driver = memoryThreads.make()
    const plain = ThreadStore.make(driver)
    const asked: Array<string> = []
    let isFirst = true
    const store = ThreadStore.make({
      ...driver,
      findTool: (...given) => {
        asked.push("find")
        return driver.findTool(...given)
      },
      replace: (...given) => {
        asked.push("replace")
        const first = isFirst
        isFirst = false
        return Effect.zipRight(first ? meanwhile(plain) : Effect.void, driver.replace(...given))
      }
    })
    return { asked, store }
  }

  const given = [told("m-1", outcome("b", "wait")), told("m-2", outcome("a", "old"), outcome("b", "wait"))]

  const messagesOf = (store: ThreadStore.ThreadStore["Type"]) =>
    Effect.map(store.messages("t"), messages => messages.map(({ message }) => message))

  it.effect("keeps what others have changed in its message meanwhile", () =>
    Effect.gen(function* () {
      const changed = told("m-2", outcome("a", "new"), outcome("b", "wait"))
      const { asked, store } = storeWith(plain => plain.append("t", [changed, say("m-3")]))
      yield* store.open({ id: "t", resourceId: "r" })
      yield* store.append("t", given)
      expect(yield* store.replaceOutcome("t", outcome("b", "done"))).toBe(true)
      expect(yield* messagesOf(store)).toEqual([
        given[0]?.message,
        told("m-2", outcome("a", "new"), outcome("b", "done")).message,
        say("m-3").message
      ])
      expect(asked).toEqual(["find", "replace", "find", "replace"])
    })
  )

  it.effect("is replaced where it stands now when its message has lost it meanwhile", () =>
    Effect.gen(function* () {
      const changed = told("m-2", outcome("a", "new"))
      const { store } = storeWith(plain => plain.append("t", [changed]))
      yield* store.open({ id: "t", resourceId: "r" })
      yield* store.append("t", given)
      expect(yield* store.replaceOutcome("t", outcome("b", "done"))).toBe(true)
      expect(yield* messagesOf(store)).toEqual([told("m-1", outcome("b", "done")).message, changed.message])
    })
  )

  it.effect("is not there any more when its thread is deleted meanwhile", () =>
    Effect.gen(function* () {
      const { asked, store } = storeWith(plain => plain.delete("t"))
      yield* store.open({ id: "t", resourceId: "r" })
      yield* store.append("t", given)
      expect(yield* store.replaceOutcome("t", outcome("b", "done"))).toBe(false)
      expect(asked).toEqual(["find", "replace", "find"])
    })
  )

  it.effect("costs one message when the newest has it", () =>
    Effect.gen(function* () {
      const { asked, store } = storeWith(() => Effect.void)
      yield* store.open({ id: "t", resourceId: "r" })
      yield* store.append("t", given)
      yield* store.replaceOutcome("t", outcome("b", "done"))
      expect(asked).toEqual(["find", "replace"])
    })
  )

  it.effect("fails with a StorageError when the driver finds it and cannot replace it", () =>
    Effect.gen(function* () {
      const driver = memoryThreads.make()
      const store = ThreadStore.make({ ...driver, replace: () => Effect.fail("read only") })
      yield* store.open({ id: "t", resourceId: "r" })
      yield* store.append("t", given)
      const error = yield* Effect.flip(store.replaceOutcome("t", outcome("b", "done")))
      expect(error).toMatchObject({ operation: "ThreadStore.replaceOutcome", cause: "read only" })
      expect(yield* messagesOf(store)).toEqual(given.map(({ message }) => message))
    })
  )

  it.effect("is not replaced by something that cannot be read again", () =>
    Effect.gen(function* () {
      const store = ThreadStore.make(memoryThreads.make())
      yield* store.open({ id: "t", resourceId: "r" })
      yield* store.append("t", given)
      const broken = Object.assign(outcome("b", ""), { output: { type: "smell" } })
      const error = yield* Effect.flip(store.replaceOutcome("t", broken))
      expect(error).toMatchObject({ _tag: "StorageError", operation: "ThreadStore.replaceOutcome" })
      expect(yield* messagesOf(store)).toEqual(given.map(({ message }) => message))
    })
  )
})

describe("a driver without objectives", () => {
  const withoutObjectives = (): Encoded => {
    const { objectives: _, ...driver } = memoryThreads.make()
    return driver
  }

  it.live("does everything else", () =>
    Effect.forEach(ThreadStoreConformance.cases, ({ run }) =>
      Effect.provide(run, layerOf(withoutObjectives()))
    )
  )

  it.effect("has threads without one, and refuses to set one", () =>
    Effect.gen(function* () {
      const store = ThreadStore.make(withoutObjectives())
      yield* store.open({ id: "t", resourceId: "r" })
      expect(yield* store.objective(mine)).toEqual(Option.none())
      expect(yield* store.changeObjective(mine, () => Either.right(Option.none()))).toEqual(Option.none())
      expect(yield* Effect.flip(operations.changeObjective(store))).toMatchObject({
        _tag: "StorageError",
        operation: "ThreadStore.changeObjective",
        message: expect.stringContaining("keeps no objectives")
      })
      const foreign = { threadId: "t", resourceId: "other" }
      expect(yield* Effect.flip(store.objective(foreign))).toMatchObject({ _tag: "ThreadNotFound" })
    })
  )
})

describe("an objective that cannot be read", () => {
  const { objectives } = memoryThreads.make()

  it.effect.each([
    "",
    "{",
    "{}",
    "null",
    '"text"',
    '{"objective":"x","status":"lost","maxRuns":1,"runsUsed":0,"createdAt":0,"updatedAt":0}',
    '{"objective":"x","status":"active","maxRuns":1,"runsUsed":-1,"createdAt":0,"updatedAt":0}',
    '{"objective":"x","status":"active","maxRuns":1,"runsUsed":0,"createdAt":null,"updatedAt":0}'
  ])("fails with a StorageError that names its thread: %s", content =>
    Effect.gen(function* () {
      const driver = memoryThreads.make()
      const get = () => Effect.succeedSome(content)
      const store = ThreadStore.make({
        ...driver,
        ...(objectives === undefined ? {} : { objectives: { ...objectives, get } })
      })
      const error = yield* Effect.flip(store.objective(mine))
      expect(error).toMatchObject({ _tag: "StorageError", operation: "ThreadStore.objective" })
      expect(error.message).toContain('thread "t"')
    })
  )

  it.effect("is not written", () =>
    Effect.gen(function* () {
      const store = ThreadStore.make(memoryThreads.make())
      yield* store.open({ id: "t", resourceId: "r" })
      const broken = Option.some({ ...reachIt, maxRuns: Number.NaN })
      const error = yield* Effect.flip(store.changeObjective(mine, () => Either.right(broken)))
      expect(error).toMatchObject({ _tag: "StorageError", operation: "ThreadStore.changeObjective" })
      expect(yield* store.objective(mine)).toEqual(Option.none())
    })
  )

  it.effect("that changes each time is given up", () =>
    Effect.gen(function* () {
      const driver = memoryThreads.make()
      const replace = () => Effect.succeed(false)
      const store = ThreadStore.make({
        ...driver,
        ...(driver.objectives === undefined ? {} : { objectives: { ...driver.objectives, replace } })
      })
      yield* store.open({ id: "t", resourceId: "r" })
      expect(yield* Effect.flip(operations.changeObjective(store))).toMatchObject({
        _tag: "StorageError",
        message: expect.stringContaining("changed each time")
      })
    })
  )
})

describe("rows that cannot be read", () => {
  const good: MessageRow = {
    id: "m-2",
    threadId: "t",
    runId: null,
    block: 1,
    sequence: 2,
    role: "user",
    createdAt: 0,
    content: '{"role":"user","content":[]}'
  }

  const wrongMessages: ReadonlyArray<readonly [string, Partial<MessageRow>]> = [
    ["no JSON", { content: "{" }],
    ["empty", { content: "" }],
    ["no message", { content: '{"role":"user"}' }],
    ["of an unknown role", { content: '{"role":"nobody","content":[]}' }],
    ["of an unknown part", { content: '{"role":"user","content":[{"type":"smell"}]}' }],
    [
      "with a file that is nowhere",
      { content: '{"role":"user","content":[{"type":"file","data":"no url: x","mediaType":"a/b"}]}' }
    ],
    ["of no time", { createdAt: Number.NaN }],
    ["of no place", { sequence: Number.NaN }],
    ["of no block", { block: Number.NaN }]
  ]

  it.effect.each([...wrongMessages])("fail with a StorageError that names the message: %s", ([, wrong]) =>
    Effect.gen(function* () {
      const first = { ...good, id: "m-1", sequence: 1 }
      const rows = [first, { ...good, ...wrong }]
      const store = ThreadStore.make({ ...memoryThreads.make(), messages: () => Effect.succeed(rows) })
      const error = yield* Effect.flip(store.messages("t", { last: 2 }))
      expect(error).toMatchObject({ _tag: "StorageError", operation: "ThreadStore.messages" })
      expect(error.message).toContain('"m-2" of thread "t"')
      expect(error.message).not.toContain("m-1")
      expect(error.cause).toMatchObject({ _tag: "ParseError" })
    })
  )

  const wrongThreads: ReadonlyArray<readonly [string, Partial<ThreadRow>]> = [
    ["no JSON", { metadata: "{" }],
    ["no object", { metadata: "[1]" }],
    ["of no time", { updatedAt: Number.NaN }]
  ]

  it.effect.each([...wrongThreads])("fail with a StorageError that names the thread: %s", ([, wrong]) =>
    Effect.gen(function* () {
      const row = {
        id: "t",
        resourceId: "r",
        title: null,
        metadata: null,
        createdAt: 0,
        updatedAt: 0,
        ...wrong
      }
      const store = ThreadStore.make({
        ...memoryThreads.make(),
        open: () => Effect.succeed(row),
        get: () => Effect.succeedSome(row),
        list: () => Effect.succeed({ rows: [row], total: 1 }),
        update: () => Effect.succeedSome(row)
      })
      for (const name of ["open", "get", "list", "update"] as const) {
        const error = yield* Effect.flip(operations[name](store))
        expect(error).toMatchObject({ _tag: "StorageError", operation: `ThreadStore.${name}` })
        expect(error).toHaveProperty("message", expect.stringContaining('Thread "t"'))
      }
    })
  )
})

describe("what cannot be stored", () => {
  const untouched = failing(Effect.die("The driver was asked."))

  it.effect("does not reach the driver, and names the message", () =>
    Effect.gen(function* () {
      const broken = { id: "m-2", message: Object.assign(say("x").message, { content: "text" }) }
      const error = yield* Effect.flip(
        ThreadStore.make(untouched).append("t", [say("m-1"), broken, say("m-3")])
      )
      expect(error).toMatchObject({ _tag: "StorageError", operation: "ThreadStore.append" })
      expect(error.message).toContain('"m-2"')
    })
  )

  it.effect("does not reach the driver when it is metadata", () =>
    Effect.gen(function* () {
      const store = ThreadStore.make(untouched)
      const metadata = Object.assign([], {})
      const given = { id: "t", resourceId: "r" }
      Object.assign(given, { metadata })
      const change = {}
      Object.assign(change, { metadata })
      expect(yield* Effect.flip(store.open(given))).toMatchObject({ operation: "ThreadStore.open" })
      expect(yield* Effect.flip(store.update("t", change))).toMatchObject({ operation: "ThreadStore.update" })
    })
  )

  it.effect("nothing to do does not reach the driver", () =>
    Effect.gen(function* () {
      expect(yield* ThreadStore.make(untouched).messages("t", { last: 0 })).toEqual([])
    })
  )
})

describe("what the driver is given", () => {
  it.effect("are plain rows, one of each id", () =>
    Effect.gen(function* () {
      const driver = memoryThreads.make()
      const given: Array<unknown> = []
      const store = ThreadStore.make({
        ...driver,
        open: row => {
          given.push(row)
          return driver.open(row)
        },
        append: (id, rows, now) => {
          given.push(...rows)
          return driver.append(id, rows, now)
        }
      })
      yield* store.open({ id: "t", resourceId: "r", metadata: { a: [1] } })
      yield* store.append("t", [say("\ud83d", "old"), { ...say("b"), runId: "run-1" }, say("\ude00", "new")])
      expect(given).toEqual([
        { id: "t", resourceId: "r", title: null, metadata: '{"a":[1]}', createdAt: 0, updatedAt: 0 },
        {
          id: "\ufffd",
          runId: null,
          role: "user",
          content: '{"role":"user","content":[{"type":"text","text":"new"}]}'
        },
        {
          id: "b",
          runId: "run-1",
          role: "user",
          content: '{"role":"user","content":[{"type":"text","text":"b"}]}'
        }
      ])
    })
  )
})

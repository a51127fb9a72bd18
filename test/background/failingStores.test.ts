/** Stores that fail in the middle: whoever asked is told, no task is lost, no slot is stuck, and all goes on afterwards. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { type Fault, faulty } from "./faultyStore.js"
import {
  breathe,
  call,
  dispatch,
  executor,
  failing,
  giving,
  hanging,
  journal,
  pass,
  start,
  statuses,
  stores,
  within
} from "./kit.js"

const faults: ReadonlyArray<Fault> = ["fails", "hangs", "dies", "loses its answer"]

const asking = executor(({ resumeData, suspend }) =>
  resumeData === undefined ? suspend("x") : Effect.succeed(resumeData)
)

const open = Effect.gen(function* () {
  const store = faulty(yield* stores)
  const process = yield* start({ globalConcurrency: 1, perAgentConcurrency: 1 }, store)
  return { process, store }
})

/** After a failure: a task of each way through a manager comes to its end. */
const works = (process: Effect.Effect.Success<typeof open>["process"]) =>
  Effect.gen(function* () {
    const done = yield* dispatch(process, "after", giving("fine"))
    const task = yield* within(process.background.await(done.taskId))
    expect(task.status).toBe("completed")
    expect((yield* statuses(process)).filter(status => /running|pending/.test(status))).toEqual([])
  })

for (const fault of faults) {
  describe(`a store that ${fault}`, () => {
    for (const backpressure of ["queue", "reject", "fallback-sync"] as const) {
      it.scoped(
        `when a task is dispatched with \`${backpressure}\`: the caller is told, and it never runs`,
        () =>
          Effect.gen(function* () {
            const store = faulty(yield* stores)
            const process = yield* start({ globalConcurrency: 1, backpressure }, store)
            const { entries, note } = journal()
            store.faults.set("create", fault)
            const exit = yield* within(
              Effect.exit(
                process.manager.dispatch(
                  call("a"),
                  executor(() => note("ran"))
                )
              )
            )
            expect(exit).toMatchObject(Exit.fail({ _tag: "StorageError" }))
            store.faults.clear()
            yield* works(process)
            expect(entries).toEqual([])
            expect((yield* statuses(process)).filter(status => status.endsWith(" a"))).toEqual(
              fault === "loses its answer" ? ["cancelled a"] : []
            )
          })
      )
    }

    it.scoped("when a task is to begin: it begins when the store is well again, in its turn and once", () =>
      Effect.gen(function* () {
        const { process, store } = yield* open
        const { entries, note } = journal()
        const tool = executor(({ task }) => note(`${task.toolCallId} ${task.attempt}`))
        store.faults.set("update", fault)
        for (const id of ["a", "b", "c"]) yield* dispatch(process, id, tool)
        yield* pass("15 seconds")
        expect(entries).toEqual([])
        store.faults.clear()
        yield* pass("15 seconds")
        expect(entries).toEqual(["a 1", "b 1", "c 1"])
        expect(yield* statuses(process)).toEqual(["completed a", "completed b", "completed c"])
        for (const id of ["a", "b", "c"]) {
          const own = process.told.filter(event => event.endsWith(id))
          expect(own).toEqual([`running ${id}`, `completed ${id}`])
        }
        yield* works(process)
      })
    )

    it.scoped("when a task is done: it keeps no slot, and is settled when the store is well again", () =>
      Effect.gen(function* () {
        const { process, store } = yield* open
        const latch = yield* Effect.makeLatch()
        const a = yield* dispatch(
          process,
          "a",
          executor(() => Effect.as(latch.await, "done"))
        )
        store.faults.set("update", fault)
        yield* latch.open
        yield* pass("30 seconds")
        expect(process.told).toEqual(["running a"])
        store.faults.clear()
        yield* pass("15 seconds")
        expect(process.told).toEqual(["running a", "completed a"])
        expect(a.task()).toMatchObject({ status: "completed", result: "done" })
        yield* works(process)
      })
    )

    it.scoped("when a task suspends: it is suspended, and can be resumed, when the store is well again", () =>
      Effect.gen(function* () {
        const { process, store } = yield* open
        const latch = yield* Effect.makeLatch()
        const tool = executor(({ resumeData, suspend }) =>
          resumeData === undefined ? Effect.zipRight(latch.await, suspend("x")) : Effect.succeed(resumeData)
        )
        const { taskId } = yield* dispatch(process, "a", tool)
        store.faults.set("update", fault)
        yield* latch.open
        yield* pass("30 seconds")
        store.faults.clear()
        yield* pass("15 seconds")
        expect(process.told).toEqual(["running a", "suspended a"])
        yield* process.background.resume(taskId, "y")
        yield* breathe
        expect(process.told).toEqual(["running a", "suspended a", "resumed a", "completed a"])
        yield* works(process)
      })
    )

    it.scoped("when a task is resumed: the caller is told, and it goes on, or can be resumed again", () =>
      Effect.gen(function* () {
        const { process, store } = yield* open
        const { taskId } = yield* dispatch(process, "a", asking)
        store.faults.set("update", fault)
        const exit = yield* within(Effect.exit(process.background.resume(taskId, "y")))
        expect(exit).toMatchObject(Exit.fail({ _tag: "StorageError" }))
        store.faults.clear()
        yield* pass("15 seconds")
        if (fault !== "loses its answer") yield* process.background.resume(taskId, "y")
        yield* breathe
        expect(process.told).toEqual(["running a", "suspended a", "resumed a", "completed a"])
        yield* works(process)
      })
    )

    it.scoped(
      "when it is asked for the task to resume or to cancel: the caller is told, and nothing has changed",
      () =>
        Effect.gen(function* () {
          const { process, store } = yield* open
          const { taskId } = yield* dispatch(process, "a", asking)
          store.faults.set("get", fault)
          const exit = yield* within(Effect.exit(process.background.resume(taskId, "y")))
          expect(exit).toMatchObject(Exit.fail({ _tag: "StorageError" }))
          store.faults.clear()
          expect(process.told).toEqual(["running a", "suspended a"])
          yield* process.background.resume(taskId, "y")
          yield* works(process)
        })
    )

    it.scoped(
      "when a task is cancelled: the caller is told, and it is stopped, or can be cancelled again",
      () =>
        Effect.gen(function* () {
          const { entries, note } = journal()
          const store = faulty(yield* stores)
          const process = yield* start({ globalConcurrency: 1, onTaskCancelled: () => note("called") }, store)
          const { taskId } = yield* dispatch(process, "a", hanging())
          store.faults.set("update", fault)
          const exit = yield* within(Effect.exit(process.background.cancel(taskId)))
          expect(exit).toMatchObject(Exit.fail({ _tag: "StorageError" }))
          store.faults.clear()
          yield* pass("15 seconds")
          if (fault !== "loses its answer") yield* process.background.cancel(taskId)
          expect(process.told).toEqual(["running a", "cancelled a"])
          expect(entries).toEqual(["called"])
          yield* works(process)
        })
    )

    it.scoped("when a task is to be tried again: it is, once, when the store is well again", () =>
      Effect.gen(function* () {
        const { process, store } = yield* open
        const attempts: Array<number> = []
        const tool = executor(({ task }) => {
          attempts.push(task.attempt)
          return task.attempt === 1 ? Effect.fail("x") : Effect.succeed("y")
        })
        yield* dispatch(process, "a", tool, { maxRetries: 1 })
        store.faults.set("update", fault)
        yield* pass("15 seconds")
        expect(attempts).toEqual([1])
        store.faults.clear()
        yield* pass("15 seconds")
        expect(attempts).toEqual([1, 2])
        expect(process.told).toEqual(["running a", "completed a"])
        yield* works(process)
      })
    )

    it.scoped("when it looks after tasks: it looks again, and keeps its lease meanwhile if it can", () =>
      Effect.gen(function* () {
        const shared = yield* stores
        const store = faulty(shared)
        const process = yield* start({}, store)
        const other = yield* start({}, shared)
        yield* dispatch(process, "a", hanging(), { timeoutMs: 600_000 })
        for (const operation of ["owned", "places", "inherit", "deleteSettled", "get"] as const) {
          store.faults.set(operation, fault)
        }
        yield* pass("2 minutes")
        expect(yield* statuses(other)).toEqual(["running a"])
        store.faults.clear()
        const [found] = (yield* other.background.list()).tasks
        yield* other.background.cancel(found?.id ?? "")
        yield* pass("20 seconds")
        expect(process.told).toEqual(["running a", "cancelled a"])
      })
    )

    it.scoped("when threads are told: everybody else is, and the thread is told later", () =>
      Effect.gen(function* () {
        const shared = yield* stores
        let isWell = false
        const threads: typeof shared.threads = {
          ...shared.threads,
          replaceOutcome: (threadId, part) =>
            Effect.suspend(() => {
              if (isWell) return shared.threads.replaceOutcome(threadId, part)
              if (fault === "hangs") return Effect.never
              return fault === "dies" ? Effect.die("x") : Effect.die(new Error("x"))
            })
        }
        const process = yield* start({}, { ...shared, threads })
        yield* threads.open({ id: "thread", resourceId: "user" })
        const task = yield* dispatch(process, "a", failing("no luck"), { threadId: "thread" })
        yield* Effect.fork(task.lost)
        yield* pass("15 seconds")
        expect(process.told).toEqual(["running a", "failed a"])
        expect(yield* threads.messages("thread")).toEqual([])
        isWell = true
        yield* pass("30 seconds")
        expect(yield* threads.messages("thread")).toHaveLength(2)
      })
    )
  })
}

for (const decision of ["cancelled", "resumed"] as const) {
  it.scoped(`a task is ${decision} as a whole, also when the caller gives up while the store is slow`, () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const answer = yield* Effect.makeLatch(true)
      const tasks: typeof shared.tasks = {
        ...shared.tasks,
        update: (id, expected, change) =>
          Effect.zipLeft(shared.tasks.update(id, expected, change), answer.await)
      }
      const process = yield* start({}, { ...shared, tasks })
      const { taskId } = yield* dispatch(process, "a", asking)
      yield* breathe
      yield* answer.close
      const { cancel, resume } = process.background
      const deciding = yield* Effect.fork(decision === "cancelled" ? cancel(taskId) : resume(taskId, "y"))
      yield* breathe
      yield* Fiber.interruptFork(deciding)
      yield* breathe
      yield* answer.open
      yield* breathe
      expect(process.told).toEqual([
        "running a",
        "suspended a",
        ...(decision === "cancelled" ? ["cancelled a"] : ["resumed a", "completed a"])
      ])
    })
  )
}

it.scoped("a store that fails at the start keeps the manager from starting", () =>
  Effect.gen(function* () {
    for (const operation of ["renewLease", "inherit"] as const) {
      const store = faulty(yield* stores)
      store.faults.set(operation, "fails")
      expect(yield* Effect.exit(start({}, store))).toMatchObject(Exit.fail({ _tag: "StorageError" }))
    }
  })
)

it.scoped("a store that fails at the end lets the manager end", () =>
  Effect.gen(function* () {
    for (const fault of faults) {
      const store = faulty(yield* stores)
      const process = yield* start({}, store)
      yield* dispatch(process, "a", hanging())
      store.faults.set("all", fault)
      yield* within(process.background.shutdown)
      store.faults.clear()
      expect((yield* statuses(process))[0]).toMatch(/running a|failed a/)
    }
  })
)

it.scoped("a task whose row is gone is told as cancelled: nobody waits for it for ever", () =>
  Effect.gen(function* () {
    const store = faulty(yield* stores)
    const none = Effect.succeed([])
    let isGone = false
    const tasks: typeof store.tasks = {
      ...store.tasks,
      places: ids => (isGone ? none : store.tasks.places(ids)),
      owned: owner => (isGone ? none : store.tasks.owned(owner)),
      get: id => (isGone ? Effect.succeedNone : store.tasks.get(id))
    }
    const process = yield* start({}, { ...store, tasks })
    const { taskId } = yield* dispatch(process, "a", hanging())
    const waiting = yield* Effect.fork(process.background.await(taskId))
    isGone = true
    yield* pass("10 seconds")
    expect(yield* waiting.await).toMatchObject(Exit.succeed({ status: "cancelled" }))
    expect(process.told).toEqual(["running a", "cancelled a"])
  })
)

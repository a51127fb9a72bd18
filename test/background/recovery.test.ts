/** Tasks that outlive their process: what the next one makes of them, and that two never work against each other. */
import { describe, expect, it } from "@effect/vitest"
import type { Task } from "eddy"
import { Effect, Either, Exit } from "effect"
import { type Fault, faulty } from "./faultyStore.js"
import {
  breathe,
  call,
  dispatch,
  type Executor,
  executor,
  giving,
  hanging,
  journal,
  pass,
  type Stores,
  start,
  statuses,
  statusOf,
  stores,
  within
} from "./kit.js"

/** A process that can be killed: its store hears nothing of it any more, and what it does has no effect. */
const mortal = (shared: Stores, options = {}) =>
  Effect.gen(function* () {
    const store = faulty(shared)
    const process = yield* start(options, store)
    const kill = (fault: Fault = "fails") => Effect.sync(() => void store.faults.set("all", fault))
    return { process, kill }
  })

const lease = "16 seconds"
const tools = (run: Executor) => new Map([["look", run]])

describe("the next process", () => {
  it.scoped("runs what was pending, all of it, beyond its limit too, in order", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const { kill, process } = yield* mortal(shared, { globalConcurrency: 1 })
      yield* dispatch(process, "running", hanging(), { maxRetries: 1 })
      const ids = Array.from({ length: 30 }, (_, index) => `${index}`)
      for (const id of ids) yield* dispatch(process, id, hanging(), { agentId: `agent ${Number(id) % 3}` })
      yield* kill()
      yield* pass(lease)
      const { entries, note } = journal()
      const next = yield* start({ globalConcurrency: 2, perAgentConcurrency: 2 }, shared)
      const run = executor(({ task }) => Effect.zipRight(note(task.toolCallId), Effect.yieldNow()))
      for (const agentId of ["agent", "agent 0", "agent 1", "agent 2"]) {
        yield* next.manager.register(agentId, tools(run))
      }
      yield* breathe
      expect(entries).toHaveLength(31)
      for (const agent of [0, 1, 2]) {
        const own = ids.filter(id => Number(id) % 3 === agent)
        expect(entries.filter(id => own.includes(id))).toEqual(own)
      }
      expect((yield* statuses(next)).every(status => status.startsWith("completed"))).toBe(true)
    })
  )

  it.scoped("runs what it knows from the start in the order of creation", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const { kill, process } = yield* mortal(shared, { globalConcurrency: 1 })
      const ids = Array.from({ length: 20 }, (_, index) => `${index}`)
      for (const id of ids) yield* dispatch(process, id, hanging())
      const { tasks } = yield* process.background.list()
      yield* process.background.cancel(tasks[0]?.id ?? "")
      yield* kill()
      const next = yield* start({ globalConcurrency: 1 }, shared)
      const { entries, note } = journal()
      yield* next.manager.register("agent", tools(executor(({ task }) => note(task.toolCallId))))
      expect(entries).toEqual([])
      yield* pass(lease)
      yield* breathe
      expect(entries).toEqual(ids.slice(1))
    })
  )

  it.scoped("tries again what was running when attempts are left, and fails it otherwise, everywhere", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      yield* shared.threads.open({ id: "thread", resourceId: "user" })
      const { kill, process } = yield* mortal(shared)
      yield* dispatch(process, "a", hanging(), { maxRetries: 1 })
      yield* dispatch(process, "b", hanging(), { threadId: "thread" })
      yield* kill()
      yield* pass(lease)
      const { entries, note } = journal()
      const next = yield* start({ onTaskFailed: ({ toolCallId }) => note(`failed ${toolCallId}`) }, shared)
      yield* next.manager.register(
        "agent",
        tools(executor(({ task }) => note(`${task.toolCallId} ${task.attempt}`)))
      )
      yield* breathe
      expect(yield* statuses(next)).toEqual(["completed a", "failed b"])
      expect(entries.toSorted()).toEqual(["a 2", "failed b"])
      expect(yield* shared.threads.messages("thread")).toHaveLength(2)
      const { tasks } = yield* next.background.list({ toolCallId: "b" })
      expect(tasks[0]?.error?.message).toContain("process")
    })
  )

  it.scoped("waits with a task until somebody can run it", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const { kill, process } = yield* mortal(shared, { globalConcurrency: 1 })
      yield* dispatch(process, "a", hanging(), { maxRetries: 1 })
      const { taskId } = yield* dispatch(process, "b", giving(1))
      yield* kill()
      yield* pass(lease)
      const next = yield* start({}, shared)
      yield* pass("1 minutes")
      expect(yield* statuses(next)).toEqual(["pending a", "pending b"])
      yield* next.background.registerTaskContext(taskId, {
        executor: ({ task }) => Effect.succeed(task.args)
      })
      yield* breathe
      expect(yield* statuses(next)).toEqual(["pending a", "completed b"])
      yield* next.manager.register("agent", tools(giving(1)))
      yield* breathe
      expect(yield* statuses(next)).toEqual(["completed a", "completed b"])
    })
  )

  it.scoped("leaves suspended tasks, and resumes them with what it is given", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const { kill, process } = yield* mortal(shared)
      const ask = executor(({ resumeData, suspend }) =>
        resumeData === undefined ? suspend({ question: 1 }) : Effect.succeed(resumeData)
      )
      const { taskId } = yield* dispatch(process, "a", ask)
      yield* kill()
      const next = yield* start({}, shared)
      expect(yield* Effect.flip(next.background.resume(taskId, 1))).toMatchObject({
        _tag: "TaskExecutorNotFound",
        taskId,
        agentId: "agent",
        toolName: "look"
      })
      expect(yield* statusOf(next, taskId)).toBe("suspended")
      yield* next.background.registerTaskContext(taskId, {
        executor: ({ resumeData, task }) => Effect.succeed({ resumeData, args: task.args })
      })
      yield* next.background.resume(taskId, { answer: 2 })
      expect(yield* next.background.await(taskId)).toMatchObject({
        status: "completed",
        result: { resumeData: { answer: 2 }, args: { of: "a" } }
      })
      expect(next.told).toEqual(["resumed a", "completed a"])
    })
  )

  it.scoped("gives a task that was resumed before its process died the same data again", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const { kill, process } = yield* mortal(shared)
      const ask = executor(({ resumeData, suspend }) =>
        resumeData === undefined ? suspend(1) : Effect.never
      )
      const { taskId } = yield* dispatch(process, "a", ask, { maxRetries: 1 })
      yield* process.background.resume(taskId, { answer: 2 })
      yield* kill()
      yield* pass(lease)
      const next = yield* start({}, shared)
      yield* next.manager.register("agent", tools(executor(({ resumeData }) => Effect.succeed(resumeData))))
      expect(yield* next.background.await(taskId)).toMatchObject({ result: { answer: 2 }, attempt: 2 })
    })
  )

  it.scoped("tells the thread what its process could not tell it any more", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      yield* shared.threads.open({ id: "thread", resourceId: "user" })
      const { kill, process } = yield* mortal(shared)
      yield* dispatch(process, "a", giving("done"), { threadId: "thread" })
      yield* breathe
      yield* kill()
      yield* pass(lease)
      const { entries, note } = journal()
      const next = yield* start({ onTaskComplete: () => note("called again") }, shared)
      yield* breathe
      const told = yield* shared.threads.messages("thread")
      expect(told.map(({ message }) => message.role)).toEqual(["assistant", "tool"])
      // It had settled, and whoever listened was told.
      expect(next.told).toEqual([])
      expect(entries).toEqual([])
    })
  )

  it.scoped("comes to an end with a task that kills every process", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      let attempts = 0
      const deadly = executor(() => {
        attempts++
        return Effect.never
      })
      const first = yield* mortal(shared)
      yield* dispatch(first.process, "a", deadly, { maxRetries: 2 })
      yield* first.kill()
      for (let life = 0; life < 5; life++) {
        yield* pass(lease)
        const { kill, process } = yield* mortal(shared)
        yield* process.manager.register("agent", tools(deadly))
        yield* breathe
        yield* kill()
      }
      expect(attempts).toBe(3)
      const { tasks } = yield* shared.tasks.list()
      expect(tasks).toMatchObject([{ status: "failed", attempt: 3 }])
    })
  )

  it.scoped("has all its slots, however many tasks dead processes had begun", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const { kill, process } = yield* mortal(shared)
      for (const id of ["a", "b", "c", "d", "e"]) yield* dispatch(process, id, hanging())
      yield* kill()
      const next = yield* start({ globalConcurrency: 1 }, shared)
      yield* dispatch(next, "f", giving(1))
      yield* breathe
      expect((yield* statuses(next)).at(-1)).toBe("completed f")
      yield* pass(lease)
      expect((yield* statuses(next)).slice(0, 5)).toEqual(["a", "b", "c", "d", "e"].map(id => `failed ${id}`))
      expect(next.told.filter(event => event.startsWith("failed"))).toHaveLength(5)
    })
  )

  it.scoped("takes nothing over when it is told not to", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const { kill, process } = yield* mortal(shared)
      yield* dispatch(process, "a", hanging(), { maxRetries: 1 })
      yield* kill()
      yield* pass(lease)
      const next = yield* start({ recoverOnStart: false }, shared)
      yield* next.manager.register("agent", tools(giving(1)))
      yield* pass("1 minutes")
      expect(yield* statuses(next)).toEqual(["running a"])
    })
  )

  it.scoped("goes on at once with what a process has left that ended in order", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const process = yield* start({ shutdown: { grace: 1 } }, shared)
      yield* dispatch(process, "a", hanging(), { maxRetries: 1 })
      yield* within(process.background.shutdown)
      const next = yield* start({}, shared)
      yield* next.manager.register("agent", tools(giving(1)))
      yield* breathe
      expect(yield* statuses(next)).toEqual(["completed a"])
    })
  )
})

describe("two processes that live", () => {
  it.scoped("do not take each other's tasks, however long these run", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const one = yield* start({ globalConcurrency: 1 }, shared)
      const two = yield* start({ globalConcurrency: 1 }, shared)
      const { entries, note } = journal()
      yield* two.manager.register("agent", tools(executor(({ task }) => note(`two ${task.toolCallId}`))))
      for (const id of ["a", "b"]) yield* dispatch(one, id, hanging(), { maxRetries: 3, timeoutMs: 600_000 })
      yield* pass("2 minutes")
      expect(yield* statuses(two)).toEqual(["running a", "pending b"])
      expect(entries).toEqual([])
    })
  )

  for (const status of ["pending", "running", "suspended"] as const) {
    it.scoped(`may cancel each other's tasks: a ${status} one is stopped, and told once by each`, () =>
      Effect.gen(function* () {
        const shared = yield* stores
        const { entries, note } = journal()
        const one = yield* start(
          { globalConcurrency: 1, onTaskCancelled: () => note("called by one") },
          shared
        )
        const two = yield* start({ onTaskCancelled: () => note("called by two") }, shared)
        if (status === "pending") yield* dispatch(one, "first", hanging(), { timeoutMs: 600_000 })
        const tool =
          status === "suspended"
            ? executor(({ suspend }) => suspend("x"))
            : executor(() => Effect.onInterrupt(Effect.never, () => note("stopped")))
        const { taskId } = yield* dispatch(one, "a", tool)
        const waiting = yield* Effect.fork(one.background.await(taskId))
        const cancelled: Task.Task = yield* two.background.cancel(taskId)
        expect(cancelled.status).toBe("cancelled")
        yield* pass("10 seconds")
        expect(entries).toEqual(status === "running" ? ["called by two", "stopped"] : ["called by two"])
        const before =
          status === "pending" ? [] : status === "running" ? ["running a"] : ["running a", "suspended a"]
        expect(one.told.filter(event => event.endsWith(" a"))).toEqual([...before, "cancelled a"])
        expect(two.told).toEqual(["cancelled a"])
        expect((yield* waiting).status).toBe("cancelled")
        yield* dispatch(one, "b", giving(1))
        yield* breathe
        expect(yield* statuses(one)).toContain(status === "pending" ? "pending b" : "completed b")
      })
    )
  }

  it.scoped("resume a suspended task once, whichever of them does", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const one = yield* start({}, shared)
      const two = yield* start({}, shared)
      let runs = 0
      const ask = executor(({ resumeData, suspend }) => {
        if (resumeData === undefined) return suspend("x")
        runs++
        return Effect.as(Effect.sleep("20 seconds"), resumeData)
      })
      yield* two.manager.register("agent", tools(ask))
      const { taskId } = yield* dispatch(one, "a", ask)
      const answers = yield* Effect.all(
        [one, two].map(({ background }, index) => Effect.either(background.resume(taskId, index))),
        { concurrency: "unbounded" }
      )
      expect(answers.filter(Either.isRight)).toHaveLength(1)
      yield* pass("30 seconds")
      expect(runs).toBe(1)
      expect((yield* one.background.await(taskId)).status).toBe("completed")
      expect((yield* two.background.await(taskId)).status).toBe("completed")
    })
  )

  it.scoped("hand a suspended task to and fro", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const one = yield* start({}, shared)
      const two = yield* start({}, shared)
      const ask = executor(({ resumeData, suspend }) =>
        resumeData === 3 ? Effect.succeed("done") : suspend(resumeData ?? "x")
      )
      yield* two.manager.register("agent", tools(ask))
      const { taskId } = yield* dispatch(one, "a", ask)
      yield* two.background.resume(taskId, 1)
      yield* pass("10 seconds")
      yield* one.background.resume(taskId, 2)
      yield* pass("10 seconds")
      yield* two.background.resume(taskId, 3)
      yield* pass("10 seconds")
      expect(yield* statusOf(one, taskId)).toBe("completed")
      expect(one.told).toEqual(["running a", "suspended a", "resumed a", "suspended a", "completed a"])
      expect(two.told).toEqual(["resumed a", "suspended a", "resumed a", "completed a"])
    })
  )

  it.scoped("do not take their own tasks for those of a dead process when their lease has ended", () =>
    Effect.gen(function* () {
      const store = faulty(yield* stores)
      const one = yield* start({}, store)
      let runs = 0
      const tool = executor(() => {
        runs++
        return Effect.never
      })
      yield* one.manager.register("agent", tools(tool))
      yield* dispatch(one, "a", tool, { maxRetries: 3, timeoutMs: 600_000 })
      store.faults.set("renewLease", "fails")
      yield* pass("1 minutes")
      expect(store.asked).toContain("inherit")
      expect(runs).toBe(1)
      expect(yield* statuses(one)).toEqual(["running a"])
    })
  )

  it.scoped(
    "go on with nothing of their own that another has taken over while their store did not answer",
    () =>
      Effect.gen(function* () {
        const shared = yield* stores
        const store = faulty(shared)
        const one = yield* start({}, store)
        const { entries, note } = journal()
        const tool = executor(() => Effect.onInterrupt(Effect.never, () => note("stopped")))
        const { taskId } = yield* dispatch(one, "a", tool, { maxRetries: 1, timeoutMs: 600_000 })
        store.faults.set("all", "fails")
        yield* pass(lease)
        const two = yield* start({}, shared)
        yield* two.manager.register("agent", tools(executor(() => Effect.sleep("30 seconds"))))
        yield* breathe
        store.faults.clear()
        yield* pass("10 seconds")
        expect(entries).toEqual(["stopped"])
        const waiting = yield* Effect.fork(one.background.await(taskId))
        yield* pass("40 seconds")
        expect((yield* waiting).status).toBe("completed")
        expect(one.told).toEqual(["running a", "completed a"])
        expect(two.told).toEqual(["running a", "completed a"])
      })
  )
})

describe("a change that was stored while its answer was lost", () => {
  it.scoped("is taken up: tasks that were inherited run, and their outcomes reach their thread", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      yield* shared.threads.open({ id: "thread", resourceId: "user" })
      const dead = yield* mortal(shared, { globalConcurrency: 1 })
      yield* dispatch(dead.process, "a", hanging(), { maxRetries: 1, timeoutMs: 600_000 })
      yield* dispatch(dead.process, "b", giving(1))
      yield* dispatch(dead.process, "c", giving(1), { threadId: "thread" })
      yield* dead.kill()
      const store = faulty(shared)
      const next = yield* start({}, store)
      const { entries, note } = journal()
      yield* next.manager.register("agent", tools(executor(({ task }) => note(task.toolCallId))))
      store.faults.set("inherit", "loses its answer")
      yield* pass(lease)
      expect(yield* statuses(next)).toEqual(["completed a", "completed b", "completed c"])
      expect(entries.toSorted()).toEqual(["a", "b", "c"])
      expect(yield* shared.threads.messages("thread")).toHaveLength(2)
      yield* pass("1 minute")
      expect(entries).toHaveLength(3)
    })
  )

  it.scoped("is given back: a dispatch that failed is never run by the process that made it", () =>
    Effect.gen(function* () {
      const store = faulty(yield* stores)
      const process = yield* start({}, store)
      const { entries, note } = journal()
      const tool = executor(({ task }) => note(task.toolCallId))
      yield* process.manager.register("agent", tools(tool))
      store.faults.set("create", "loses its answer")
      store.faults.set("update", "fails")
      const exit = yield* Effect.exit(process.manager.dispatch(call("a"), tool))
      expect(exit).toMatchObject(Exit.fail({ _tag: "StorageError" }))
      yield* pass("30 seconds")
      expect(yield* statuses(process)).toEqual(["pending a"])
      store.faults.clear()
      yield* pass("30 seconds")
      expect(yield* statuses(process)).toEqual(["cancelled a"])
      expect(entries).toEqual([])
    })
  )

  it.scoped("is taken up: an outcome whose delivery was not stored is cleaned up in time", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      yield* shared.threads.open({ id: "thread", resourceId: "user" })
      const store = faulty(shared)
      const process = yield* start({ cleanup: { completed: "1 minute", other: "1 minute" } }, store)
      store.faults.set("delivered", "fails")
      const task = yield* dispatch(process, "a", giving(1), { threadId: "thread" })
      yield* task.lost
      yield* pass("10 seconds")
      store.faults.clear()
      yield* pass("3 minutes")
      expect(yield* statuses(process)).toEqual([])
      expect(yield* shared.threads.messages("thread")).toHaveLength(2)
    })
  )
})

/** The end of a manager: what runs has its time, the rest is for the next process, and nothing happens afterwards. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Fibers } from "../../src/background/fibers.js"
import { faulty } from "./faultyStore.js"
import {
  breathe,
  dispatch,
  executor,
  giving,
  hanging,
  journal,
  pass,
  start,
  statuses,
  statusOf,
  stores,
  within
} from "./kit.js"

describe("a manager that ends", () => {
  it.scoped("waits for what runs, with its callbacks, and begins nothing more", () =>
    Effect.gen(function* () {
      const { entries, note } = journal()
      const process = yield* start({
        globalConcurrency: 1,
        onTaskComplete: () => Effect.zipRight(Effect.sleep(100), note("called"))
      })
      yield* dispatch(
        process,
        "a",
        executor(() => Effect.sleep("1 seconds"))
      )
      yield* dispatch(
        process,
        "b",
        executor(() => note("b ran"))
      )
      const ending = yield* Effect.fork(process.background.shutdown)
      yield* pass("1 seconds")
      expect(ending.unsafePoll()).toBeNull()
      yield* pass(100)
      expect(yield* Fiber.join(ending)).toBeUndefined()
      expect(entries).toEqual(["called"])
      expect(yield* statuses(process)).toEqual(["completed a", "pending b"])
      yield* pass("1 minutes")
      expect(process.told).toEqual(["running a", "completed a"])
    })
  )

  it.scoped(
    "gives what is not done in time back to the queue, when attempts are left, and fails the rest",
    () =>
      Effect.gen(function* () {
        const process = yield* start({ shutdown: { grace: 500 } })
        const reasons: Array<unknown> = []
        const tool = executor(({ signal }) => {
          const given = signal()
          given.addEventListener("abort", () => reasons.push(given.reason))
          return Effect.never
        })
        yield* dispatch(process, "a", tool, { maxRetries: 1 })
        const { taskId } = yield* dispatch(process, "b", tool)
        const ending = yield* Effect.fork(process.background.shutdown)
        yield* pass(499)
        expect(yield* statuses(process)).toEqual(["running a", "running b"])
        yield* pass(1)
        yield* Fiber.join(ending)
        expect(yield* statuses(process)).toEqual(["pending a", "failed b"])
        expect(reasons).toMatchObject([{ name: "AbortError" }, { name: "AbortError" }])
        const found = yield* process.background.get(taskId)
        expect(found).toMatchObject({ value: { error: { message: expect.stringContaining("shut down") } } })
        expect(process.told).toEqual(["running a", "running b", "failed b"])
      })
  )

  it.scoped("fails all that is not done in time when it is told so, with events, callbacks and threads", () =>
    Effect.gen(function* () {
      const { entries, note } = journal()
      const process = yield* start({
        shutdown: { grace: 500, unfinished: "failed" },
        onTaskFailed: ({ toolCallId }) => note(`called ${toolCallId}`)
      })
      yield* process.threads.open({ id: "thread", resourceId: "user" })
      const task = yield* dispatch(process, "a", hanging(), { maxRetries: 3, threadId: "thread" })
      yield* task.lost
      yield* within(process.background.shutdown)
      expect(yield* statuses(process)).toEqual(["failed a"])
      expect(process.told).toEqual(["running a", "failed a"])
      expect(entries).toEqual(["called a"])
      expect(yield* process.threads.messages("thread")).toHaveLength(2)
    })
  )

  it.scoped("does not wait for what waits to be tried again, or for a slot after it was resumed", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1 })
      const tool = executor(({ resumeData, suspend }) =>
        resumeData === undefined ? suspend("x") : Effect.succeed("done")
      )
      const { taskId } = yield* dispatch(process, "a", tool)
      yield* dispatch(
        process,
        "b",
        executor(() => Effect.fail("x")),
        { maxRetries: 3 }
      )
      yield* dispatch(
        process,
        "c",
        executor(() => Effect.sleep("2 seconds"))
      )
      yield* process.background.resume(taskId, 1)
      yield* breathe
      expect(yield* statuses(process)).toEqual(["running a", "running b", "running c"])
      const ending = yield* Effect.fork(process.background.shutdown)
      yield* breathe
      expect(yield* statuses(process)).toEqual(["pending a", "pending b", "running c"])
      yield* pass("2 seconds")
      yield* Fiber.join(ending)
      expect(yield* statuses(process)).toEqual(["pending a", "pending b", "completed c"])
    })
  )

  it.scoped("ends once, whoever asks for it, and also when they give up waiting", () =>
    Effect.gen(function* () {
      const process = yield* start()
      yield* dispatch(process, "a", hanging(), { maxRetries: 1 })
      const impatient = yield* Effect.fork(process.background.shutdown)
      yield* breathe
      yield* Fiber.interrupt(impatient)
      const patient = yield* Effect.fork(process.background.shutdown)
      yield* pass("5 seconds")
      yield* pass("1 seconds")
      expect(yield* patient.await).toEqual(Exit.void)
      yield* process.end
      yield* process.background.shutdown
      expect(yield* statuses(process)).toEqual(["pending a"])
    })
  )

  it.scoped("keeps what a tool came to while the store did not answer, when it does in time", () =>
    Effect.gen(function* () {
      const store = faulty(yield* stores)
      const process = yield* start({}, store)
      yield* dispatch(
        process,
        "a",
        executor(() => Effect.as(Effect.sleep("1 seconds"), "done"))
      )
      store.faults.set("update", "fails")
      const ending = yield* Effect.fork(process.background.shutdown)
      yield* pass("2 seconds")
      store.faults.clear()
      yield* pass("10 seconds")
      yield* Fiber.join(ending)
      expect(yield* statuses(process)).toEqual(["completed a"])
      expect(process.told).toEqual(["running a", "completed a"])
    })
  )

  it.scoped("can be ended by a callback of a task", () =>
    Effect.gen(function* () {
      const ends: Array<Effect.Effect<void>> = []
      const process = yield* start({ onTaskComplete: () => ends[0] })
      ends.push(process.background.shutdown)
      yield* dispatch(process, "a", giving(1))
      yield* within(process.background.shutdown)
      expect(yield* statuses(process)).toEqual(["completed a"])
    })
  )

  it.scoped("leaves suspended tasks as they are, and refuses to resume them", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { taskId } = yield* dispatch(
        process,
        "a",
        executor(({ suspend }) => suspend("x"))
      )
      yield* within(process.background.shutdown)
      expect(yield* statusOf(process, taskId)).toBe("suspended")
      const late = yield* Effect.flip(process.background.resume(taskId, 1))
      expect(late).toMatchObject({ _tag: "InvalidTaskState", status: "suspended" })
      expect(yield* statusOf(process, taskId)).toBe("suspended")
    })
  )

  it.scoped("does not wait for ever for a tool that cannot be interrupted", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const latch = yield* Effect.makeLatch()
      yield* dispatch(
        process,
        "a",
        executor(() => Effect.uninterruptible(latch.await))
      )
      yield* within(process.background.shutdown)
      expect(yield* statuses(process)).toEqual(["failed a"])
      yield* latch.open
      yield* breathe
      expect(yield* statuses(process)).toEqual(["failed a"])
      expect(process.told).toEqual(["running a", "failed a"])
    })
  )
})

it.effect("the fibers of a manager end with it, and none begins afterwards", () =>
  Effect.gen(function* () {
    const { entries, note } = journal()
    const fibers = yield* Fibers.make
    fibers.fork(Effect.onInterrupt(Effect.never, () => note("stopped")))
    fibers.start(Effect.onInterrupt(Effect.never, () => note("stopped")))
    expect(fibers.fork(Effect.succeed(1)).unsafePoll()).toEqual(Exit.succeed(1))
    expect(fibers.size).toBe(2)
    yield* fibers.close
    expect(entries).toEqual(["stopped", "stopped"])
    expect(fibers.size).toBe(0)
    const late = fibers.fork(note("late"))
    expect(Exit.isInterrupted(yield* late.await)).toBe(true)
    expect(entries).toHaveLength(2)
  })
)

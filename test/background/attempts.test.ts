/** Attempts of a task: how long one may take, and when there is another. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { Broken } from "../support/broken.js"
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
  statusOf
} from "./kit.js"

describe("an attempt that takes too long", () => {
  for (const kind of ["hangs", "ignores its signal", "cannot be interrupted"] as const) {
    it.scoped(`ends, and frees its slot, when its tool ${kind}`, () =>
      Effect.gen(function* () {
        const process = yield* start({ globalConcurrency: 1 })
        const latch = yield* Effect.makeLatch()
        const { entries, note } = journal()
        const late = Effect.zipRight(latch.await, note("late"))
        const tool = executor(({ signal, write }) => {
          const { aborted } = signal()
          expect(aborted).toBe(false)
          if (kind === "hangs") return Effect.never
          if (kind === "ignores its signal") return Effect.promise(() => Effect.runPromise(late))
          return Effect.uninterruptible(
            Effect.zipRight(
              late,
              Effect.sync(() => write("late"))
            )
          )
        })
        const { taskId } = yield* dispatch(process, "a", tool, { timeoutMs: 50 })
        yield* dispatch(process, "b", giving(1))
        yield* pass("49 millis")
        expect(yield* statuses(process)).toEqual(["running a", "pending b"])
        yield* pass("1 millis")
        expect(yield* statuses(process)).toEqual(["timed_out a", "completed b"])
        yield* latch.open
        yield* breathe
        expect(entries).toEqual(kind === "hangs" ? [] : ["late"])
        expect(yield* statuses(process)).toEqual(["timed_out a", "completed b"])
        expect(process.told.filter(event => event.endsWith(" a"))).toEqual(["running a", "failed a"])
        const { error } = yield* process.manager.settled(taskId)
        expect(error?.message).toContain("50 ms")
      })
    )
  }

  it.scoped("tells the tool by its signal, with the reason", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const reasons: Array<unknown> = []
      const tool = executor(({ signal }) => {
        const given = signal()
        given.addEventListener("abort", () => reasons.push(given.reason))
        return Effect.never
      })
      yield* dispatch(process, "a", tool, { timeoutMs: 50 })
      yield* pass("50 millis")
      expect(reasons).toMatchObject([{ name: "TimeoutError" }])
    })
  )

  it.scoped("leaves no timer behind when it is over before", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const latch = yield* Effect.makeLatch()
      yield* dispatch(
        process,
        "a",
        executor(() => latch.await),
        { timeoutMs: 50 }
      )
      yield* latch.open
      yield* breathe
      yield* pass("1 minutes")
      expect(process.told).toEqual(["running a", "completed a"])
    })
  )
})

describe("a task that fails", () => {
  it.scoped("fails with what its tool failed with, at once, when there are no retries", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { taskId } = yield* dispatch(process, "a", failing("no luck"))
      const task = yield* process.manager.settled(taskId)
      expect(task).toMatchObject({ status: "failed", error: { message: "no luck" }, attempt: 1 })
      expect(process.told).toEqual(["running a", "failed a"])
    })
  )

  for (const [name, run] of [
    ["dies", Effect.die(new Error("no luck"))],
    [
      "throws",
      Effect.sync(() => {
        throw new Error("no luck")
      })
    ],
    ["interrupts itself", Effect.interrupt]
  ] as const) {
    it.scoped(`has failed when its tool ${name}`, () =>
      Effect.gen(function* () {
        const process = yield* start({ globalConcurrency: 1 })
        const { taskId } = yield* dispatch(
          process,
          "a",
          executor(() => run)
        )
        expect((yield* process.manager.settled(taskId)).status).toBe("failed")
        yield* dispatch(process, "b", giving(1))
        yield* breathe
        expect(yield* statuses(process)).toEqual(["failed a", "completed b"])
      })
    )
  }

  it.scoped("is tried again after longer and longer, up to the longest time, and counts its attempts", () =>
    Effect.gen(function* () {
      const process = yield* start({
        defaultRetries: { retryDelay: 100, backoffMultiplier: 3, maxRetryDelay: 500 }
      })
      const attempts: Array<number> = []
      const tool = executor(({ task }) => {
        attempts.push(task.attempt)
        return Effect.fail(new Broken({ message: `attempt ${task.attempt}` }))
      })
      const { taskId } = yield* dispatch(process, "a", tool, { maxRetries: 4 })
      for (const [delay, made] of [
        [100, 2],
        [300, 3],
        [500, 4],
        [500, 5]
      ] as const) {
        yield* pass(delay - 1)
        expect(attempts).toHaveLength(made - 1)
        yield* pass(1)
        expect(attempts).toHaveLength(made)
      }
      expect(attempts).toEqual([1, 2, 3, 4, 5])
      const task = yield* process.manager.settled(taskId)
      expect(task).toMatchObject({ status: "failed", error: { message: "attempt 5" }, attempt: 5 })
      // One event for each transition: an attempt is none.
      expect(process.told).toEqual(["running a", "failed a"])
    })
  )

  it.scoped("frees its slot until it is tried again", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1, defaultRetries: { maxRetries: 1 } })
      const tool = executor(({ task }) => (task.attempt === 1 ? Effect.fail("x") : Effect.succeed("y")))
      yield* dispatch(process, "a", tool, { maxRetries: 1 })
      yield* dispatch(process, "b", giving(1))
      yield* breathe
      expect(yield* statuses(process)).toEqual(["running a", "completed b"])
      yield* dispatch(process, "c", hanging())
      yield* pass("1 seconds")
      expect(yield* statuses(process)).toEqual(["running a", "completed b", "running c"])
    })
  )

  it.scoped("is tried again when it took too long", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const tool = executor(({ task }) => (task.attempt === 1 ? Effect.never : Effect.succeed("done")))
      yield* dispatch(process, "a", tool, { maxRetries: 1, timeoutMs: 50 })
      yield* pass("50 millis")
      expect(yield* statuses(process)).toEqual(["running a"])
      yield* pass("1 seconds")
      expect(yield* statuses(process)).toEqual(["completed a"])
    })
  )

  it.scoped(
    "is tried again only when the failure is worth it, and the predicate is told the failure itself",
    () =>
      Effect.gen(function* () {
        const asked: Array<unknown> = []
        const process = yield* start({
          defaultRetries: {
            retryableErrors: error => {
              asked.push(error)
              return error instanceof DOMException
            }
          }
        })
        const first = new TypeError("not worth it")
        yield* dispatch(
          process,
          "a",
          executor(() => Effect.fail(first)),
          { maxRetries: 3 }
        )
        yield* dispatch(process, "b", hanging(), { maxRetries: 1, timeoutMs: 50 })
        yield* pass("50 millis")
        expect(asked[0]).toBe(first)
        expect(asked[1]).toMatchObject({ name: "TimeoutError" })
        expect(yield* statuses(process)).toEqual(["failed a", "running b"])
        yield* pass("1050 millis")
        expect(yield* statuses(process)).toEqual(["failed a", "timed_out b"])
      })
  )

  it.scoped("has failed when the predicate throws", () =>
    Effect.gen(function* () {
      const process = yield* start({
        defaultRetries: {
          retryableErrors: () => {
            throw new Error("the predicate is broken")
          }
        }
      })
      const { taskId } = yield* dispatch(process, "a", failing("no luck"), { maxRetries: 3 })
      expect((yield* process.manager.settled(taskId)).error?.message).toBe("no luck")
    })
  )

  it.scoped("is tried again as a schedule says", () =>
    Effect.gen(function* () {
      const process = yield* start({
        defaultRetries: Schedule.intersect(Schedule.spaced("2 seconds"), Schedule.recurs(2))
      })
      let attempts = 0
      const tool = executor(() => Effect.failSync(() => ++attempts))
      const { taskId } = yield* dispatch(process, "a", tool, {
        maxRetries: process.manager.settings.maxRetries
      })
      expect(attempts).toBe(1)
      yield* pass("2 seconds")
      yield* pass("2 seconds")
      expect(attempts).toBe(3)
      expect((yield* process.manager.settled(taskId)).status).toBe("failed")
    })
  )

  it.scoped("keeps count of its retries while it is suspended", () =>
    Effect.gen(function* () {
      const process = yield* start({ defaultRetries: { retryDelay: 10, backoffMultiplier: 1 } })
      const tool = executor(({ resumeData, suspend, task }) => {
        if (task.attempt === 2 && resumeData === undefined) return suspend("a question")
        return Effect.fail(new Broken({ message: `attempt ${task.attempt}` }))
      })
      const { taskId } = yield* dispatch(process, "a", tool, { maxRetries: 2 })
      yield* pass(10)
      expect(yield* statusOf(process, taskId)).toBe("suspended")
      yield* process.background.resume(taskId, "an answer")
      yield* pass(10)
      const task = yield* process.manager.settled(taskId)
      expect(task).toMatchObject({ status: "failed", attempt: 3, error: { message: "attempt 3" } })
    })
  )
})

describe("what a tool gives", () => {
  for (const [given, stored] of [
    [0, 0],
    ["", ""],
    [false, false],
    [null, null],
    [[], []],
    [{}, {}],
    ["s", "s"],
    [undefined, null],
    [{ at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }]
  ] as const) {
    it.scoped(`is stored as it is, or as JSON has it: ${JSON.stringify(given)}`, () =>
      Effect.gen(function* () {
        const process = yield* start()
        const { taskId } = yield* dispatch(process, "a", giving(given))
        const found = yield* process.background.get(taskId)
        expect(found).toMatchObject({ _tag: "Some", value: { status: "completed" } })
        expect(found._tag === "Some" && found.value.result).toEqual(stored)
        expect((yield* process.manager.settled(taskId)).result).toEqual(stored)
      })
    )
  }
})

describe("what an execution knows", () => {
  it.scoped("is its task, running, with its arguments", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { taskId } = yield* dispatch(
        process,
        "a",
        executor(({ resumeData, task }) =>
          Effect.succeed([task.status, task.attempt, task.args, resumeData ?? "none"])
        )
      )
      const { result } = yield* process.manager.settled(taskId)
      expect(result).toEqual(["running", 1, { of: "a" }, "none"])
    })
  )

  it.scoped("a task is written once, with everything that it is called with", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const given = call("a", { threadId: "thread", resourceId: "user", maxRetries: 2 })
      const dispatched = yield* process.manager.dispatch(given, hanging())
      const found = yield* process.background.get(dispatched?.taskId ?? "")
      expect(found).toMatchObject({ _tag: "Some", value: { ...given, status: "running", attempt: 1 } })
    })
  )
})

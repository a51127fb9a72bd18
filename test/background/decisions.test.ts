/** What people decide about tasks: to cancel one, and to resume one that was suspended. */
import { describe, expect, it } from "@effect/vitest"
import { Errors } from "eddy"
import { Effect, Either } from "effect"
import {
  breathe,
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

/** Asks at first, and gives its answer. */
const asking = executor(({ resumeData, suspend }) =>
  resumeData === undefined ? suspend({ question: 1 }) : Effect.succeed(resumeData)
)

describe("a task is cancelled", () => {
  it.scoped("while it is pending: its tool never runs", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1 })
      const latch = yield* Effect.makeLatch()
      const { entries, note } = journal()
      yield* dispatch(
        process,
        "a",
        executor(() => latch.await)
      )
      const { taskId } = yield* dispatch(
        process,
        "b",
        executor(() => note("b ran"))
      )
      const cancelled = yield* process.background.cancel(taskId)
      expect(cancelled).toMatchObject({ status: "cancelled", toolCallId: "b", attempt: 0 })
      yield* latch.open
      yield* breathe
      expect(entries).toEqual([])
      expect(process.told).toEqual(["running a", "cancelled b", "completed a"])
    })
  )

  it.scoped("while it runs: its tool is stopped, its slot is free, and what it comes to is dropped", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1 })
      const { entries, note } = journal()
      const latch = yield* Effect.makeLatch()
      const reasons: Array<unknown> = []
      const tool = executor(({ signal, write }) => {
        const given = signal()
        given.addEventListener("abort", () => reasons.push(given.reason))
        const late = Effect.zipRight(
          note("late"),
          Effect.sync(() => write("late"))
        )
        return Effect.uninterruptible(Effect.zipRight(latch.await, late))
      })
      const { taskId } = yield* dispatch(process, "a", tool)
      yield* dispatch(process, "b", giving(1))
      yield* process.background.cancel(taskId)
      yield* breathe
      expect(yield* statuses(process)).toEqual(["cancelled a", "completed b"])
      expect(reasons).toMatchObject([{ name: "AbortError" }])
      yield* latch.open
      yield* breathe
      expect(entries).toEqual(["late"])
      expect(yield* statuses(process)).toEqual(["cancelled a", "completed b"])
      expect(process.told).toEqual(["running a", "cancelled a", "running b", "completed b"])
    })
  )

  it.scoped("while it waits to be tried again: it is not", () =>
    Effect.gen(function* () {
      const process = yield* start()
      let attempts = 0
      const tool = executor(() => Effect.failSync(() => ++attempts))
      const { taskId } = yield* dispatch(process, "a", tool, { maxRetries: 5 })
      yield* process.background.cancel(taskId)
      yield* pass("1 minutes")
      expect(attempts).toBe(1)
      expect(process.told).toEqual(["running a", "cancelled a"])
    })
  )

  it.scoped("while it is suspended: it cannot be resumed any more", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { taskId } = yield* dispatch(process, "a", asking)
      const cancelled = yield* process.background.cancel(taskId)
      expect(cancelled.status).toBe("cancelled")
      expect(cancelled.suspendData).toBeUndefined()
      const late = yield* Effect.either(process.background.resume(taskId, 1))
      expect(late).toMatchObject(Either.left({ _tag: "InvalidTaskState", status: "cancelled", taskId }))
      expect(process.told).toEqual(["running a", "suspended a", "cancelled a"])
    })
  )

  it.scoped("by whoever hears that it runs, before its tool begins", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { entries, note } = journal()
      process.manager.listen(({ chunk, task }) => {
        if (chunk.type === "background-task-running") Effect.runSync(process.background.cancel(task.id))
      })
      const { taskId } = yield* dispatch(
        process,
        "a",
        executor(() => note("ran"))
      )
      yield* breathe
      expect(yield* statusOf(process, taskId)).toBe("cancelled")
      expect(entries).toEqual([])
      expect(process.told).toEqual(["running a", "cancelled a"])
    })
  )

  it.scoped("once: whoever cancels it at the same time is told where it stands", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { taskId } = yield* dispatch(process, "a", hanging())
      const answers = yield* Effect.all(
        Array.from({ length: 5 }, () => Effect.either(process.background.cancel(taskId))),
        { concurrency: "unbounded" }
      )
      expect(answers.filter(Either.isRight)).toHaveLength(1)
      for (const answer of answers.filter(Either.isLeft)) {
        expect(answer).toMatchObject(Either.left({ _tag: "InvalidTaskState", status: "cancelled" }))
      }
      expect(process.told).toEqual(["running a", "cancelled a"])
    })
  )

  for (const [status, tool] of [
    ["completed", giving(1)],
    ["failed", failing("no luck")],
    ["timed_out", hanging()]
  ] as const) {
    it.scoped(`but not when it is ${status}`, () =>
      Effect.gen(function* () {
        const process = yield* start()
        const { taskId } = yield* dispatch(process, "a", tool, { timeoutMs: 50 })
        yield* pass(50)
        const before = yield* process.background.get(taskId)
        for (const decide of [process.background.cancel(taskId), process.background.resume(taskId, 1)]) {
          const refused = yield* Effect.flip(decide)
          expect(refused).toBeInstanceOf(Errors.InvalidTaskState)
          expect(refused.message).toContain(status)
        }
        expect(yield* process.background.get(taskId)).toEqual(before)
        expect(process.told).toHaveLength(2)
      })
    )
  }

  it.scoped("but not when there is none of this id", () =>
    Effect.gen(function* () {
      const { background } = yield* start()
      for (const decide of [background.cancel("x"), background.resume("x"), background.await("x")]) {
        expect(yield* Effect.flip(decide)).toMatchObject({ _tag: "TaskNotFound", taskId: "x" })
      }
    })
  )
})

describe("a task that suspends", () => {
  it.scoped("frees its slot, is stored with what it said, and has no time limit meanwhile", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1 })
      const { taskId } = yield* dispatch(process, "a", asking, { timeoutMs: 100 })
      yield* dispatch(process, "b", giving(1))
      yield* pass("2 minutes")
      const found = yield* process.background.get(taskId)
      expect(found).toMatchObject({
        value: { status: "suspended", suspendData: { question: 1 }, suspendedAt: new Date(0) }
      })
      expect(process.told).toEqual(["running a", "suspended a", "running b", "completed b"])
    })
  )

  it.scoped("is run again from its start with what it is resumed with, and is shown as it is then", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { taskId } = yield* dispatch(process, "a", asking)
      yield* pass("1 minutes")
      const resumed = yield* process.background.resume(taskId, { answer: 2 })
      expect(resumed).toMatchObject({ status: "running", attempt: 1, startedAt: new Date(60_000) })
      expect(resumed.suspendData).toBeUndefined()
      const task = yield* process.background.await(taskId)
      expect(task).toMatchObject({ status: "completed", result: { answer: 2 }, attempt: 1 })
      expect(process.told).toEqual(["running a", "suspended a", "resumed a", "completed a"])
    })
  )

  it.scoped("may suspend again and again", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const tool = executor(({ resumeData, suspend }) =>
        resumeData === 3 ? Effect.succeed("done") : suspend({ got: resumeData ?? "nothing" })
      )
      const { taskId } = yield* dispatch(process, "a", tool)
      for (const [answer, before] of [
        [1, "nothing"],
        [2, 1],
        [3, 2]
      ] as const) {
        const found = yield* process.background.get(taskId)
        expect(found).toMatchObject({ value: { status: "suspended", suspendData: { got: before } } })
        yield* process.background.resume(taskId, answer)
        yield* breathe
      }
      expect(yield* statusOf(process, taskId)).toBe("completed")
    })
  )

  it.scoped("can be resumed by whoever hears of it", () =>
    Effect.gen(function* () {
      const process = yield* start()
      process.manager.listen(({ chunk, task }) => {
        if (chunk.type === "background-task-suspended")
          Effect.runSync(process.background.resume(task.id, "now"))
      })
      const { taskId } = yield* dispatch(process, "a", asking)
      expect(yield* process.background.await(taskId)).toMatchObject({ status: "completed", result: "now" })
      expect(process.told).toEqual(["running a", "suspended a", "resumed a", "completed a"])
    })
  )

  it.scoped("waits for a slot when it is resumed, behind those that came before", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1 })
      const latch = yield* Effect.makeLatch()
      const { entries, note } = journal()
      const { taskId } = yield* dispatch(process, "a", asking)
      yield* dispatch(
        process,
        "b",
        executor(() => latch.await)
      )
      yield* dispatch(
        process,
        "c",
        executor(() => note("c ran"))
      )
      expect((yield* process.background.resume(taskId, 1)).status).toBe("running")
      yield* breathe
      expect(yield* statuses(process)).toEqual(["running a", "running b", "pending c"])
      expect(entries).toEqual([])
      yield* latch.open
      yield* breathe
      expect(yield* statuses(process)).toEqual(["completed a", "completed b", "completed c"])
    })
  )

  it.scoped("can be cancelled while it waits for a slot after it was resumed", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1 })
      const latch = yield* Effect.makeLatch()
      const { entries, note } = journal()
      const tool = executor(({ resumeData, suspend }) =>
        resumeData === undefined ? suspend(1) : note("ran")
      )
      const { taskId } = yield* dispatch(process, "a", tool)
      yield* dispatch(
        process,
        "b",
        executor(() => latch.await)
      )
      yield* process.background.resume(taskId, 1)
      yield* process.background.cancel(taskId)
      yield* latch.open
      yield* breathe
      expect(entries).toEqual([])
      expect(process.told.filter(event => event.endsWith("a"))).toEqual([
        "running a",
        "suspended a",
        "resumed a",
        "cancelled a"
      ])
    })
  )

  it.scoped("is resumed once, however many do it at the same time", () =>
    Effect.gen(function* () {
      const process = yield* start()
      let runs = 0
      const tool = executor(({ resumeData, suspend }) => {
        if (resumeData === undefined) return suspend(1)
        runs++
        return Effect.never
      })
      const { taskId } = yield* dispatch(process, "a", tool)
      const answers = yield* Effect.all(
        [1, 2, 3].map(data => Effect.either(process.background.resume(taskId, data))),
        { concurrency: "unbounded" }
      )
      yield* breathe
      expect(answers.filter(Either.isRight)).toHaveLength(1)
      expect(answers.find(Either.isLeft)).toMatchObject(
        Either.left({ _tag: "InvalidTaskState", status: "running" })
      )
      expect(runs).toBe(1)
      const again = yield* Effect.flip(process.background.resume(taskId, 4))
      expect(again.message).toContain("running")
    })
  )

  it.scoped("stays suspended when it is resumed with something else than it asked for", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const refused = new Errors.InvalidResumeData({ toolName: "look", message: "no number" })
      const { taskId } = yield* dispatch(process, "a", {
        ...asking,
        readResumeData: data => (typeof data === "number" ? Effect.succeed(data * 2) : Effect.fail(refused))
      })
      expect(yield* Effect.flip(process.background.resume(taskId, "x"))).toBe(refused)
      expect(yield* statusOf(process, taskId)).toBe("suspended")
      expect(process.told).toEqual(["running a", "suspended a"])
      yield* process.background.resume(taskId, 4)
      expect(yield* process.background.await(taskId)).toMatchObject({ result: 8 })
    })
  )

  it.scoped(
    "can be cancelled while what it was resumed with is read again, and fails when it cannot be any more",
    () =>
      Effect.gen(function* () {
        const process = yield* start()
        const { entries, note } = journal()
        const refused = new Errors.InvalidResumeData({ toolName: "look", message: "no number" })
        const tool = executor(({ resumeData, suspend }) =>
          resumeData === undefined ? suspend("x") : note("ran")
        )
        for (const [id, second] of [
          ["a", Effect.never],
          ["b", Effect.fail(refused)]
        ] as const) {
          let reads = 0
          const readResumeData = () => Effect.suspend(() => (reads++ === 0 ? Effect.succeed(1) : second))
          const { taskId } = yield* dispatch(process, id, { ...tool, readResumeData }, { maxRetries: 3 })
          yield* process.background.resume(taskId, 1)
          if (id === "a") yield* process.background.cancel(taskId)
          yield* breathe
        }
        expect(entries).toEqual([])
        expect(yield* statuses(process)).toEqual(["cancelled a", "failed b"])
      })
  )

  it.scoped("writes nothing after it has suspended, and its tool is stopped", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { entries, note } = journal()
      const tool = executor(({ suspend, write }) =>
        Effect.onInterrupt(suspend("x"), () =>
          Effect.zipRight(
            note("stopped"),
            Effect.sync(() => write("late"))
          )
        )
      )
      yield* dispatch(process, "a", tool)
      yield* breathe
      expect(entries).toEqual(["stopped"])
      expect(process.told).toEqual(["running a", "suspended a"])
    })
  )
})

describe("a stale wish to begin", () => {
  it.scoped("begins nothing again that has begun, suspended or settled", () =>
    Effect.gen(function* () {
      const process = yield* start()
      let runs = 0
      const counting = (tool: ReturnType<typeof giving>) =>
        executor(context => {
          runs++
          return Effect.map(tool.execute(context), ({ value }) => value)
        })
      const tools = { a: giving(1), b: failing("x"), c: hanging(), d: asking }
      for (const [id, tool] of Object.entries(tools))
        yield* dispatch(process, id, counting(tool), { timeoutMs: 50 })
      yield* pass(50)
      const before = yield* statuses(process)
      expect(before).toEqual(["completed a", "failed b", "timed_out c", "suspended d"])
      // Whoever registers tools looks for tasks that wait for them; upkeep looks for what was left behind.
      yield* process.manager.register("agent", new Map([["look", counting(giving(2))]]))
      yield* pass("2 minutes")
      expect(yield* statuses(process)).toEqual(before)
      expect(runs).toBe(4)
      expect(process.told).toHaveLength(8)
    })
  )
})

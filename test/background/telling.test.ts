/** What is told of tasks: to those who listen, as it happens, and to those who asked to be called. */
import { describe, expect, it } from "@effect/vitest"
import { BackgroundTasks } from "eddy"
import { Effect, Exit, Fiber, Predicate, Scope, Stream } from "effect"
import { Hub } from "../../src/background/hub.js"
import {
  breathe,
  collect,
  dispatch,
  executor,
  failing,
  giving,
  hanging,
  journal,
  type Process,
  pass,
  start
} from "./kit.js"

const outputs = (items: ReadonlyArray<BackgroundTasks.TaskChunk>): ReadonlyArray<unknown> =>
  items.flatMap(chunk =>
    chunk.type === "background-task-output" ? [chunk.payload.payload.payload.output] : [chunk.type]
  )

/** A turn of the event loop: promises and timers that are due get theirs. */
const turn = Effect.promise(() => new Promise(resolve => setTimeout(resolve, 0)))

const half = BackgroundTasks.capacity / 2

describe("what a task writes", () => {
  const writing = () => {
    const hands: { write: (output: unknown) => void; done: () => void } = {
      write: () => undefined,
      done: () => undefined
    }
    const tool = executor(({ write }) =>
      Effect.async<string>(resume => {
        hands.write = write
        hands.done = () => resume(Effect.succeed("done"))
      })
    )
    return { hands, tool }
  }

  it.scoped("is told as it comes when nothing else was said", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { items } = yield* collect(process.background.stream())
      const { hands, tool } = writing()
      yield* dispatch(process, "a", tool)
      for (const output of [1, 2, 3]) hands.write(output)
      hands.done()
      yield* breathe
      hands.write("late")
      yield* breathe
      expect(outputs(items)).toEqual(["background-task-running", 1, 2, 3, "background-task-completed"])
    })
  )

  it.scoped("is told at once, then no more often than it may, and the last of it before the end", () =>
    Effect.gen(function* () {
      const process = yield* start({ progressThrottle: 100 })
      const { items } = yield* collect(process.background.stream())
      const { hands, tool } = writing()
      yield* dispatch(process, "a", tool)
      for (const output of [1, 2, 3]) hands.write(output)
      yield* pass(99)
      expect(outputs(items)).toEqual(["background-task-running", 1])
      yield* pass(1)
      expect(outputs(items)).toEqual(["background-task-running", 1, 3])
      for (const output of [4, 5]) hands.write(output)
      hands.done()
      yield* breathe
      const all = ["background-task-running", 1, 3, 5, "background-task-completed"]
      expect(outputs(items)).toEqual(all)
      yield* pass("1 minutes")
      expect(outputs(items)).toEqual(all)
    })
  )

  it.scoped("is told after a pause at once", () =>
    Effect.gen(function* () {
      const process = yield* start({ progressThrottle: 100 })
      const { items } = yield* collect(process.background.stream())
      const { hands, tool } = writing()
      yield* dispatch(process, "a", tool)
      hands.write(1)
      yield* pass(150)
      hands.write(2)
      yield* breathe
      expect(outputs(items)).toEqual(["background-task-running", 1, 2])
    })
  )

  it.scoped("is not told once the task is cancelled", () =>
    Effect.gen(function* () {
      const process = yield* start({ progressThrottle: 100 })
      const { items } = yield* collect(process.background.stream())
      const { hands, tool } = writing()
      const { taskId } = yield* dispatch(process, "a", tool)
      for (const output of [1, 2]) hands.write(output)
      yield* process.background.cancel(taskId)
      hands.write(3)
      yield* pass("1 minutes")
      expect(outputs(items)).toEqual(["background-task-running", 1, 2, "background-task-cancelled"])
    })
  )

  it.scoped("is told before the task is suspended", () =>
    Effect.gen(function* () {
      const process = yield* start({ progressThrottle: 100 })
      const { items } = yield* collect(process.background.stream())
      const tool = executor(({ suspend, write }) =>
        Effect.suspend(() => {
          write(1)
          write(2)
          return suspend("x")
        })
      )
      yield* dispatch(process, "a", tool)
      yield* pass("1 minutes")
      expect(outputs(items)).toEqual(["background-task-running", 1, 2, "background-task-suspended"])
    })
  )
})

describe("tasks that write more than their readers can take between two turns", () => {
  const many = 9000
  const writing = (name: string, end: Effect.Effect<unknown, unknown> = Effect.void) =>
    executor(({ write }) =>
      Effect.suspend(() => {
        for (let index = 0; index < many; index++) write({ name, index })
        return end
      })
    )
  const indexesOf = (items: ReadonlyArray<BackgroundTasks.TaskChunk>, name: string) =>
    outputs(items).flatMap(output =>
      Predicate.isRecord(output) && output["name"] === name ? [Number(output["index"])] : []
    )

  it.scoped("end no reader, keep the newest outputs in order, and lose no other event", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const readers = yield* Effect.all([0, 1, 2].map(() => collect(process.background.stream())))
      const tasks = yield* Effect.forEach(["a", "b"], name => dispatch(process, name, writing(name)))
      for (const { taskId } of tasks) yield* process.background.await(taskId)
      yield* turn
      for (const { fiber, items } of readers) {
        expect(fiber.unsafePoll()).toBeNull()
        for (const name of ["a", "b"]) {
          const indexes = indexesOf(items, name)
          expect(indexes).toEqual([...indexes].sort((one, other) => one - other))
          expect(indexes.slice(-half)).toEqual(
            Array.from({ length: half }, (_, index) => many - half + index)
          )
          expect(indexes.length).toBeLessThan(BackgroundTasks.capacity)
        }
        const events = items.flatMap(({ payload, type }) =>
          type === "background-task-output"
            ? []
            : [`${type.slice("background-task-".length)} ${payload.toolCallId}`]
        )
        expect([...events].sort()).toEqual(["completed a", "completed b", "running a", "running b"])
        expect(items.at(-1)?.type).toBe("background-task-completed")
      }
    })
  )

  it.scoped("take turns", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { items } = yield* collect(process.background.stream())
      const hands = yield* Effect.forEach(["a", "b"], name =>
        dispatch(process, name, writing(name, Effect.never))
      )
      while (indexesOf(items, "b").length < 100) yield* turn
      expect(indexesOf(items, "a").length).toBeLessThan(half)
      // The last of it is told when the task is cancelled before its turn.
      for (const { taskId } of hands) yield* process.background.cancel(taskId)
      yield* turn
      for (const name of ["a", "b"]) expect(indexesOf(items, name).at(-1)).toBe(many - 1)
    })
  )

  it.scoped("fail, are suspended and are stopped after their last output", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { items } = yield* collect(process.background.stream())
      yield* dispatch(process, "a", writing("a", Effect.fail("no luck")))
      const suspending = executor(({ suspend, write }) =>
        Effect.suspend(() => {
          for (let index = 0; index < many; index++) write({ name: "b", index })
          return suspend("x")
        })
      )
      yield* dispatch(process, "b", suspending)
      const ends = (): ReadonlyArray<string> =>
        items.flatMap(({ type }, index) => (/failed|suspended/.test(type) ? [`${type} ${index}`] : []))
      while (ends().length < 2) yield* turn
      for (const [name, type] of [
        ["a", "background-task-failed"],
        ["b", "background-task-suspended"]
      ] as const) {
        const ofTask = outputs(items.filter(({ payload }) => payload.toolCallId === name))
        expect(ofTask.slice(-2)).toEqual([{ name, index: many - 1 }, type])
      }
    })
  )
})

describe("callbacks", () => {
  for (const [outcome, tool] of [
    ["Complete", giving(1)],
    ["Failed", failing("no luck")],
    ["Failed", hanging()],
    ["Cancelled", hanging()]
  ] as const) {
    it.scoped(`of tool, agent and manager are called in this order, after the event: ${outcome}`, () =>
      Effect.gen(function* () {
        const { entries } = journal()
        const note =
          (level: string) =>
          (task: { readonly status: string }): void =>
            void entries.push(`${level} ${task.status}`)
        const level = (name: string) => ({
          onComplete: note(`${name} Complete`),
          onFailed: note(`${name} Failed`),
          onCancelled: note(`${name} Cancelled`)
        })
        const process = yield* start({
          onTaskComplete: note("manager Complete"),
          onTaskFailed: note("manager Failed"),
          onTaskCancelled: note("manager Cancelled")
        })
        process.manager.listen(({ chunk }) => entries.push(chunk.type))
        const callbacks = [level("tool"), level("agent")]
        const { taskId } = yield* dispatch(process, "a", { ...tool, callbacks }, { timeoutMs: 50 })
        if (outcome === "Cancelled") yield* process.background.cancel(taskId)
        yield* pass(50)
        const { status } = yield* process.background.await(taskId)
        const event = outcome === "Complete" ? "completed" : outcome.toLowerCase()
        expect(entries).toEqual([
          "background-task-running",
          `background-task-${event}`,
          ...["tool", "agent", "manager"].map(name => `${name} ${outcome} ${status}`)
        ])
      })
    )
  }

  it.scoped("that throw, fail, die or reject are logged, and stop nothing", () =>
    Effect.gen(function* () {
      const { entries, note } = journal()
      const process = yield* start({ onTaskComplete: () => note("manager") })
      const bad: ReadonlyArray<() => Effect.Effect<unknown, unknown> | Promise<unknown>> = [
        () => {
          throw new Error("thrown")
        },
        () => Effect.fail("failed"),
        () => Effect.die("died"),
        () => Promise.reject(new Error("rejected"))
      ]
      const callbacks = bad.map(onComplete => ({ onComplete, onFailed: undefined, onCancelled: undefined }))
      yield* dispatch(process, "a", giving(1, { callbacks }))
      while (entries.length === 0) yield* Effect.promise(() => Promise.resolve())
      expect(entries).toEqual(["manager"])
      expect(process.told).toEqual(["running a", "completed a"])
    })
  )

  it.scoped("that are never done hold up neither other tasks nor whoever cancels", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1, onTaskCancelled: () => Effect.never })
      const { taskId } = yield* dispatch(process, "a", hanging())
      expect((yield* process.background.cancel(taskId)).status).toBe("cancelled")
      yield* dispatch(process, "b", giving(1))
      yield* breathe
      expect(process.told).toEqual(["running a", "cancelled a", "running b", "completed b"])
    })
  )

  it.scoped("are not called for a task that is suspended", () =>
    Effect.gen(function* () {
      const { entries, note } = journal()
      const onAny = () => note("called")
      const process = yield* start({ onTaskComplete: onAny, onTaskFailed: onAny, onTaskCancelled: onAny })
      yield* dispatch(
        process,
        "a",
        executor(({ suspend }) => suspend(1))
      )
      yield* breathe
      expect(entries).toEqual([])
    })
  )
})

describe("a stream of tasks", () => {
  const calls = [
    ["a", { agentId: "a1", runId: "r1", threadId: "t1", resourceId: "u1" }],
    ["b", { agentId: "a1", runId: "r2", threadId: "t2", resourceId: "u1" }],
    ["c", { agentId: "a2", runId: "r3", threadId: "t1", resourceId: "u2" }],
    ["d", { agentId: "a2", runId: "r4" }]
  ] as const

  for (const [filter, heard] of [
    [{}, "abcd"],
    [{ agentId: "a1" }, "ab"],
    [{ runId: "r3" }, "c"],
    [{ threadId: "t1" }, "ac"],
    [{ resourceId: "u1" }, "ab"],
    [{ threadId: "t1", resourceId: "u1" }, "a"],
    [{ agentId: "a2", threadId: "t2" }, ""],
    [{ taskId: "nothing" }, ""]
  ] as const) {
    it.scoped(`tells of those that match ${JSON.stringify(filter)}, running or not yet`, () =>
      Effect.gen(function* () {
        const process = yield* start()
        const latch = yield* Effect.makeLatch()
        const tool = executor(() => latch.await)
        for (const [id, more] of calls.slice(0, 2)) yield* dispatch(process, id, tool, more)
        const { items } = yield* collect(process.background.stream(filter))
        for (const [id, more] of calls.slice(2)) yield* dispatch(process, id, tool, more)
        yield* latch.open
        yield* breathe
        const about = (type: string) =>
          items
            .filter(chunk => chunk.type === type)
            .map(chunk => chunk.payload.toolCallId)
            .sort()
            .join("")
        expect(about("background-task-running")).toBe(heard)
        expect(about("background-task-completed")).toBe(heard)
        expect(items).toHaveLength(2 * heard.length)
      })
    )
  }

  it.scoped("tells of one task by its id", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const { taskId } = yield* dispatch(process, "a", hanging())
      yield* dispatch(process, "b", hanging())
      const { items } = yield* collect(process.background.stream({ taskId }))
      expect(items).toMatchObject([
        {
          type: "background-task-running",
          runId: "run",
          from: "AGENT",
          payload: {
            taskId,
            toolName: "look",
            toolCallId: "a",
            agentId: "agent",
            runId: "run",
            args: { of: "a" }
          }
        }
      ])
    })
  )

  it.scoped("tells nothing twice and leaves nothing out, whenever it begins", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 8, perAgentConcurrency: 8 })
      const tool = executor(() => Effect.repeatN(Effect.yieldNow(), 4))
      const streams = yield* Effect.forEach(Array.from({ length: 40 }), (_, index) =>
        Effect.gen(function* () {
          const { taskId } = yield* dispatch(process, `${index}`, tool)
          const { items } = yield* collectNow(process)
          return { items, taskId }
        })
      )
      yield* pass(0)
      for (const { items } of streams) {
        const seen = items.map(chunk => `${chunk.type} ${chunk.payload.taskId}`)
        expect(new Set(seen).size).toBe(seen.length)
        const begun = items.filter(({ type }) => type === "background-task-running")
        const ended = items.filter(({ type }) => type === "background-task-completed")
        // Whoever was running was told, so every end has its beginning.
        expect(new Set(ended.map(chunk => chunk.payload.taskId))).toEqual(
          new Set(begun.map(chunk => chunk.payload.taskId))
        )
      }
    })
  )

  it.scoped("ends for a reader that is too slow, while tasks go on", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const latch = yield* Effect.makeLatch()
      const slow = yield* Effect.fork(Stream.runForEach(process.background.stream(), () => latch.await))
      const { items } = yield* collect(process.background.stream())
      const tool = executor(({ write }) =>
        Effect.gen(function* () {
          for (const told of [1, 2, 3]) {
            for (let index = 0; index < half; index++) write(index)
            while (items.length < told * half + 1) yield* turn
          }
        })
      )
      const { taskId } = yield* dispatch(process, "a", tool)
      const task = yield* process.background.await(taskId)
      expect(task.status).toBe("completed")
      yield* breathe
      expect(items).toHaveLength(3 * half + 2)
      yield* latch.open
      const exit = yield* slow.await
      expect(exit).toMatchObject(Exit.fail({ _tag: "TaskReaderTooSlow", capacity: BackgroundTasks.capacity }))
    })
  )

  it.scoped("ends with the manager, after everything was told", () =>
    Effect.gen(function* () {
      const process = yield* start({ shutdown: { unfinished: "failed" } })
      yield* dispatch(process, "a", hanging())
      const { fiber, items } = yield* collect(process.background.stream())
      const ending = yield* Effect.fork(process.background.shutdown)
      yield* pass("10 seconds")
      yield* ending.await
      expect(yield* fiber.await).toEqual(Exit.void)
      expect(items.map(({ type }) => type)).toEqual(["background-task-running", "background-task-failed"])
    })
  )

  it.scoped("goes on when somebody who listens otherwise throws", () =>
    Effect.gen(function* () {
      const process = yield* start()
      process.manager.listen(() => {
        throw new Error("a broken listener")
      })
      const { items } = yield* collect(process.background.stream())
      yield* dispatch(process, "a", giving(1))
      yield* breathe
      expect(items).toHaveLength(2)
    })
  )

  it.scoped("leaves nothing behind when its reader goes", () =>
    Effect.gen(function* () {
      const hub = new Hub(() => {
        throw new Error("nobody is to be woken")
      })
      const scope = yield* Scope.make()
      const { next } = yield* Scope.extend(
        hub.subscribe(() => undefined),
        scope
      )
      const waiting = yield* Effect.fork(next)
      yield* breathe
      expect(hub.size).toBe(1)
      yield* Fiber.interrupt(waiting)
      yield* Scope.close(scope, Exit.void)
      expect(hub.size).toBe(0)
      const process = yield* start()
      const readers = yield* Effect.forEach([1, 2, 3], () =>
        Effect.fork(Stream.runDrain(process.background.stream()))
      )
      yield* breathe
      yield* Fiber.interruptAll(readers)
      yield* dispatch(process, "a", giving(1))
      expect(process.told).toHaveLength(2)
    })
  )

  it.scoped("gives many readers the same", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const readers = yield* Effect.forEach(Array.from({ length: 30 }), () =>
        collect(process.background.stream())
      )
      for (const id of ["a", "b", "c"]) yield* dispatch(process, id, giving(id))
      yield* breathe
      for (const { items } of readers) {
        expect(items.map(chunk => `${chunk.type.slice(16)} ${chunk.payload.toolCallId}`)).toEqual(
          process.told
        )
      }
      expect(process.told).toHaveLength(6)
    })
  )
})

const collectNow = (process: Process) => collect(process.background.stream())

/** Keeping a stream open, apart from agents: turns are streams of any kind here, and the manager is a stub. */
import { describe, expect, it } from "@effect/vitest"
import type { Chunk, Task } from "eddy"
import { Cause, Deferred, Effect, Exit, Fiber, FiberId, FastCheck as fc, Stream } from "effect"
import { capacity, type Happening } from "../../src/background/hub.js"
import type { ManagerService } from "../../src/background/TaskManager.js"
import { outputChunk, runningChunk, settledChunk, suspendedChunk } from "../../src/background/taskChunks.js"
import * as UntilIdle from "../../src/background/UntilIdle.js"
import { settle, types } from "../agent/kit.js"
import { taskOf } from "../support/taskOf.js"

const running = (id: string): Task.Task => ({ ...taskOf(id), status: "running", startedAt: new Date(0) })

const completed = (id: string): Task.Task => ({
  ...running(id),
  status: "completed",
  result: null,
  completedAt: new Date(0)
})

/** A manager whose tasks are what the test says. */
const stub = () => {
  const listeners = new Set<(happening: Happening) => void>()
  const tasks = new Map<string, Task.Task>()
  const closing = new Set<() => void>()
  let asked = 0
  const tell = (happening: Happening): void => {
    tasks.set(happening.task.id, happening.task)
    for (const listener of listeners) listener(happening)
  }
  const manager: UntilIdle.UntilIdleOptions<never, never>["manager"] = {
    // The rest of them nobody asks for here.
    settings: { progressIntervalMs: 3000 } as ManagerService["settings"],
    idleScopes: new Map(),
    active: isWanted => {
      asked++
      return [...tasks.values()].filter(task => task.status === "running" && isWanted(task))
    },
    listen: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    onClosing: listener => {
      closing.add(listener)
      return () => void closing.delete(listener)
    }
  }
  return {
    manager,
    run: (id: string) => tell({ chunk: runningChunk(running(id)), task: running(id) }),
    write: (id: string) => tell({ chunk: outputChunk(running(id), "half"), task: running(id) }),
    suspend: (id: string) => {
      const task: Task.Task = { ...running(id), status: "suspended", suspendedAt: new Date(0) }
      tell({ chunk: suspendedChunk(task), task })
    },
    complete: (id: string) => tell({ chunk: settledChunk(completed(id)), task: completed(id) }),
    end: Effect.sync(() => closing.forEach(listener => listener())),
    asked: () => asked,
    left: () => [listeners.size, closing.size, manager.idleScopes.size]
  }
}

const turn = (runId: string): Chunk.Chunk => ({ type: "start", runId, from: "AGENT", payload: {} })

const started = (taskId: string): Chunk.Chunk => ({
  type: "background-task-started",
  runId: "run",
  from: "AGENT",
  payload: { taskId, toolName: "look", toolCallId: `call-${taskId}` }
})

const optionsOf = <E = never>(
  manager: ReturnType<typeof stub>["manager"],
  more: Partial<UntilIdle.UntilIdleOptions<E, never>> = {}
): UntilIdle.UntilIdleOptions<E, never> => ({
  manager,
  scope: () => true,
  name: "scope",
  first: Stream.make(turn("first")),
  isDispatching: () => false,
  heard: () => [],
  continueWith: tasks => Stream.make(turn(tasks.map(({ id }) => id).join())),
  isAnswered: () => false,
  maxIdleMs: 60_000,
  batch: "ready",
  isStopped: () => false,
  report: (taskIds, elapsedMs) => ({
    type: "background-task-progress",
    runId: "run",
    from: "AGENT",
    payload: { taskIds, runningCount: taskIds.length, elapsedMs }
  }),
  ...more
})

/** Reads it beside the test. */
const reading = <E>(options: UntilIdle.UntilIdleOptions<E, never>) =>
  Effect.gen(function* () {
    const chunks: Array<Chunk.Chunk> = []
    const reader = Stream.runForEach(UntilIdle.make(options), chunk =>
      Effect.sync(() => void chunks.push(chunk))
    )
    const fiber = yield* Effect.fork(Effect.exit(reader))
    yield* settle
    return { chunks, fiber }
  })

const runIds = (chunks: ReadonlyArray<Chunk.Chunk>) =>
  chunks.flatMap(({ runId, type }) => (type === "start" ? runId : []))

describe("a turn", () => {
  it.effect("that dies ends the stream with the defect, and leaves nothing", () =>
    Effect.gen(function* () {
      const { complete, left, manager, run } = stub()
      run("a")
      const defect = new Error("broken")
      const { chunks, fiber } = yield* reading(
        optionsOf(manager, {
          continueWith: () => {
            throw defect
          }
        })
      )
      complete("a")
      const exit = yield* Effect.flatten(Fiber.join(fiber)).pipe(Effect.exit)
      expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toBe(defect)
      expect(types(chunks)).toStrictEqual(["start", "background-task-completed"])
      expect(left()).toStrictEqual([0, 0, 0])
    })
  )

  it.effect("that fails ends the stream after what it has told", () =>
    Effect.gen(function* () {
      const { left, manager, run } = stub()
      run("a")
      const first = Stream.concat(Stream.make(turn("first")), Stream.fail("no"))
      const { chunks, fiber } = yield* reading(optionsOf<string>(manager, { first }))
      expect(yield* Fiber.join(fiber)).toStrictEqual(Exit.fail("no"))
      expect(runIds(chunks)).toStrictEqual(["first"])
      expect(left()).toStrictEqual([0, 0, 0])
    })
  )
})

describe("what happens to a task", () => {
  it.effect("that the turn has yet to name is told after that", () =>
    Effect.gen(function* () {
      const { complete, manager, run, write } = stub()
      const gate = yield* Deferred.make<void>()
      const first = Stream.concat(
        Stream.fromIterable([turn("first")]),
        Stream.fromEffect(Effect.as(Deferred.await(gate), started("a")))
      )
      const { chunks, fiber } = yield* reading(optionsOf(manager, { first, isDispatching: () => true }))
      run("a")
      write("a")
      complete("a")
      yield* settle
      expect(types(chunks)).toStrictEqual(["start"])
      yield* Deferred.succeed(gate, undefined)
      expect(yield* Fiber.join(fiber)).toStrictEqual(Exit.void)
      expect(types(chunks)).toStrictEqual([
        "start",
        "background-task-started",
        "background-task-running",
        "background-task-output",
        "background-task-completed",
        "start"
      ])
    })
  )

  it.effect("that no turn ever names is told when the turn is over", () =>
    Effect.gen(function* () {
      const { complete, manager, run } = stub()
      const gate = yield* Deferred.make<void>()
      const first = Stream.fromEffect(Effect.as(Deferred.await(gate), turn("first")))
      const { chunks, fiber } = yield* reading(optionsOf(manager, { first, isDispatching: () => true }))
      run("a")
      complete("a")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(fiber)
      expect(types(chunks)).toStrictEqual([
        "start",
        "background-task-running",
        "background-task-completed",
        "start"
      ])
    })
  )

  it.effect("as output is kept when another task writes more than its reader takes", () =>
    Effect.gen(function* () {
      const { complete, manager, run, write } = stub()
      const chunks: Array<Chunk.Chunk> = []
      const latch = yield* Effect.makeLatch()
      const reader = Stream.runForEach(UntilIdle.make(optionsOf(manager)), chunk =>
        Effect.zipRight(
          latch.await,
          Effect.sync(() => void chunks.push(chunk))
        )
      )
      run("quiet")
      run("loud")
      const fiber = yield* Effect.fork(reader)
      yield* settle
      write("quiet")
      for (let count = 0; count < 2 * capacity; count++) write("loud")
      complete("quiet")
      complete("loud")
      yield* latch.open
      yield* Fiber.join(fiber)
      const ofQuiet = chunks.flatMap(chunk =>
        (chunk.type === "background-task-output" || chunk.type === "background-task-completed") &&
        chunk.payload.taskId === "quiet"
          ? [chunk.type]
          : []
      )
      expect(ofQuiet).toEqual(["background-task-output", "background-task-completed"])
      expect(chunks.filter(({ type }) => type === "background-task-output")).toHaveLength(capacity)
    })
  )

  it.effect("as output costs no look at all tasks", () =>
    Effect.gen(function* () {
      const { asked, complete, manager, run, write } = stub()
      run("a")
      const { chunks, fiber } = yield* reading(optionsOf(manager))
      const before = asked()
      for (let count = 0; count < 1000; count++) write("a")
      yield* settle
      expect(asked()).toBe(before)
      complete("a")
      yield* Fiber.join(fiber)
      expect(types(chunks).filter(type => type === "background-task-output")).toHaveLength(1000)
    })
  )
})

describe("a manager that ends", () => {
  it.effect("ends the stream, and whatever it waits for", () =>
    Effect.gen(function* () {
      const { end, left, manager, run } = stub()
      run("a")
      const { chunks, fiber } = yield* reading(optionsOf(manager))
      expect(fiber.unsafePoll()).toBeNull()
      yield* end
      expect(yield* Fiber.join(fiber)).toStrictEqual(Exit.void)
      expect(runIds(chunks)).toStrictEqual(["first"])
      expect(left()).toStrictEqual([0, 0, 0])
    })
  )
})

describe("a name", () => {
  it.effect("stays with the younger when the older ends late", () =>
    Effect.gen(function* () {
      const { complete, left, manager, run } = stub()
      run("a")
      const gate = yield* Deferred.make<void>()
      const first = Stream.fromEffect(Effect.as(Deferred.await(gate), turn("older")))
      const older = yield* reading(optionsOf(manager, { first }))
      const younger = yield* reading(optionsOf(manager))
      yield* Deferred.succeed(gate, undefined)
      expect(yield* Fiber.join(older.fiber)).toStrictEqual(Exit.void)
      expect(left()[2]).toBe(1)
      complete("a")
      yield* Fiber.join(younger.fiber)
      expect(runIds(older.chunks)).toStrictEqual(["older"])
      expect(runIds(younger.chunks)).toStrictEqual(["first", "a"])
      expect(left()).toStrictEqual([0, 0, 0])
    })
  )
})

/** What may happen to one of four tasks, or to the turn that runs. */
type Move = readonly ["run" | "complete" | "suspend" | "write", number] | readonly ["endTurn"]

const moves: fc.Arbitrary<ReadonlyArray<Move>> = fc.array(
  fc.oneof(
    fc.tuple(
      fc.constantFrom("run" as const, "complete" as const, "suspend" as const, "write" as const),
      fc.nat(3)
    ),
    fc.constant(["endTurn"] as const)
  ),
  { maxLength: 24 }
)

/** A stream whose turns end when the moves say so, and what its turns were begun for. */
const driven = (batch: "ready" | "all", happened: ReadonlyArray<Move>) =>
  Effect.gen(function* () {
    const { left, manager, ...tasks } = stub()
    const answered: Array<string> = []
    const gates: Array<Deferred.Deferred<void>> = []
    const gated = (runId: string) =>
      Stream.unwrap(
        Effect.map(Deferred.make<void>(), gate => {
          gates.push(gate)
          return Stream.fromEffect(Effect.as(Deferred.await(gate), turn(runId)))
        })
      )
    const { chunks, fiber } = yield* reading(
      optionsOf(manager, {
        batch,
        first: gated("first"),
        continueWith: settled => {
          answered.push(...settled.map(({ id }) => id))
          return gated("next")
        }
      })
    )
    const isOver = () => fiber.unsafePoll() !== null
    const stateOf = new Map<number, "running" | "suspended" | "completed">()
    const endTurn = Effect.suspend(() =>
      Deferred.succeed(gates.shift() ?? Deferred.unsafeMake<void>(FiberId.none), undefined)
    )
    const apply = ([what, task = 0]: Move): Effect.Effect<unknown> => {
      const id = String(task)
      const state = stateOf.get(task)
      if (what === "endTurn") return endTurn
      if (what === "run" && state !== "completed" && state !== "running") {
        stateOf.set(task, "running")
        tasks.run(id)
      }
      if (state !== "running") return Effect.void
      if (what === "write") tasks.write(id)
      if (what === "complete") {
        stateOf.set(task, "completed")
        tasks.complete(id)
      }
      if (what === "suspend") {
        stateOf.set(task, "suspended")
        tasks.suspend(id)
      }
      return Effect.void
    }
    for (const move of happened) {
      if (isOver()) break
      yield* apply(move)
      // Half of the time the stream gets to see it before something else happens.
      if (move[0] === "endTurn" || move[1] % 2 === 0) yield* Effect.yieldNow()
    }
    for (let count = 0; count < 20 && !isOver(); count++) {
      for (const task of stateOf.keys()) yield* apply(["complete", task])
      yield* endTurn
      yield* settle
    }
    expect(isOver()).toBe(true)
    expect(yield* Fiber.join(fiber)).toStrictEqual(Exit.void)
    const completedIds = types(chunks).filter(type => type === "background-task-completed")
    expect([...answered].sort()).toStrictEqual([...new Set(answered)].sort())
    expect(completedIds).toHaveLength(answered.length)
    expect(left()).toStrictEqual([0, 0, 0])
  })

describe("every interleaving", () => {
  for (const batch of ["ready", "all"] as const) {
    it.effect(`ends, with every outcome told and answered once, with batch "${batch}"`, () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(moves, happened => Effect.runPromise(driven(batch, happened))),
          { numRuns: 150 }
        )
      )
    )
  }
})

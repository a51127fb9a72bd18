/** What a background task asks of its store, in counts that no machine's load can change. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  breathe,
  dispatch,
  type Executor,
  executor,
  giving,
  hanging,
  type Process,
  type Stores,
  start,
  stores
} from "../background/kit.js"

type TaskStoreService = Stores["tasks"]

/** A store that writes down what it is asked, each time it is. */
const counted = (store: TaskStoreService) => {
  const calls: Array<string> = []
  const tasks = new Proxy(store, {
    get: (target, key, receiver) => {
      const member: unknown = Reflect.get(target, key, receiver)
      if (typeof member !== "function") return member
      return (...parameters: ReadonlyArray<unknown>) => {
        const asked: Effect.Effect<unknown, unknown> = Reflect.apply(member, target, parameters)
        return Effect.suspend(() => {
          calls.push(String(key))
          return asked
        })
      }
    }
  })
  /** What it is asked by this: how often each operation. */
  const during = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Readonly<Record<string, number>>, E> =>
    Effect.suspend(() => {
      const from = calls.length
      return Effect.map(effect, () => {
        const counts: Record<string, number> = {}
        for (const call of calls.slice(from)) counts[call] = (counts[call] ?? 0) + 1
        return counts
      })
    })
  return { tasks, during }
}

const open = (options: Parameters<typeof start>[0] = {}) =>
  Effect.gen(function* () {
    const { tasks, threads } = yield* stores
    const { during, tasks: asked } = counted(tasks)
    const process = yield* start(
      { globalConcurrency: 100, perAgentConcurrency: 100, ...options },
      { tasks: asked, threads }
    )
    return { process, during }
  })

/** Until so many are told as completed. */
const untilDone = (process: Process, count: number) =>
  Effect.gen(function* () {
    const done = () => process.told.filter(event => event.startsWith("completed")).length
    for (let round = 0; round < count && done() < count; round++) yield* breathe
    expect(done()).toBe(count)
  })

const many = (process: Process, count: number, tool: Executor) =>
  Effect.gen(function* () {
    for (let at = 0; at < count; at++) yield* dispatch(process, `call-${at}`, tool)
    yield* untilDone(process, count)
  })

const thread = { threadId: "thread", resourceId: "user" }

/** As a run does it: the acknowledgement is stored with the step that made the call. */
const manyInThread = (process: Process, count: number, tool: Executor) =>
  Effect.gen(function* () {
    yield* process.threads.open({ id: "thread", resourceId: "user" })
    for (let at = 0; at < count; at++) {
      const toolCallId = `call-${at}`
      const task = yield* dispatch(process, toolCallId, tool, thread)
      yield* process.threads.append("thread", [
        {
          id: `${toolCallId}-1`,
          message: {
            role: "assistant",
            content: [{ type: "tool-call", toolCallId, toolName: "look", input: {} }]
          }
        },
        {
          id: `${toolCallId}-2`,
          message: {
            role: "tool",
            content: [
              {
                type: "tool-result",
                toolCallId,
                toolName: "look",
                output: { type: "text", value: "started" }
              }
            ]
          }
        }
      ])
      yield* task.stored
    }
    yield* untilDone(process, count)
  })

const tools = [
  ["a tool that is done at once", giving("done")],
  ["a tool that takes a while", executor(() => Effect.as(breathe, "done"))]
] as const

describe("what a task asks of its store", () => {
  for (const [name, tool] of tools) {
    for (const count of [100, 1000]) {
      it.scoped(`is three calls, of ${count} tasks of ${name}`, () =>
        Effect.gen(function* () {
          const { during, process } = yield* open()
          const counts = yield* during(many(process, count, tool))
          expect(counts).toEqual({ create: count, update: 2 * count })
        })
      )

      it.scoped(`is a fourth for what its thread was told, of ${count} tasks of ${name}`, () =>
        Effect.gen(function* () {
          const { during, process } = yield* open()
          const counts = yield* during(manyInThread(process, count, tool))
          expect(counts).toEqual({ create: count, update: 2 * count, delivered: count })
        })
      )
    }
  }

  it.scoped("does not depend on how many wait", () =>
    Effect.gen(function* () {
      const found = []
      for (const waiting of [0, 10, 1000]) {
        const { during, process } = yield* open({ globalConcurrency: 10 })
        const latch = yield* Effect.makeLatch()
        const first = executor(() => Effect.as(latch.await, "done"))
        yield* dispatch(process, "first", first)
        for (let at = 1; at < 10; at++) yield* dispatch(process, `running-${at}`, hanging())
        for (let at = 0; at < waiting; at++) yield* dispatch(process, `waiting-${at}`, hanging())
        const oneMore = yield* during(Effect.zipRight(dispatch(process, "more", hanging()), breathe))
        const oneDone = yield* during(Effect.zipRight(latch.open, breathe))
        expect(process.told).toContain("completed first")
        found.push({ oneMore, oneDone })
      }
      // The one that is done, and the one that begins in its slot.
      const expected = { oneMore: { create: 1 }, oneDone: { update: 2 } }
      expect(found).toEqual([expected, expected, expected])
    })
  )
})

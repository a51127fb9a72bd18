/** What a thread is told of a task: the outcome takes the place of the acknowledgement, whichever comes first. */
import { describe, expect, it } from "@effect/vitest"
import type { Message } from "eddy"
import { Effect, Stream } from "effect"
import {
  breathe,
  type Dispatched,
  dispatch,
  executor,
  failing,
  giving,
  hanging,
  pass,
  type Stores,
  start,
  stores
} from "./kit.js"

const inThread = { threadId: "thread", resourceId: "user" }

const open = ({ threads }: Pick<Stores, "threads">) => threads.open({ id: "thread", resourceId: "user" })

/** The messages of the thread, as text. */
const messages = ({ threads }: Pick<Stores, "threads">) =>
  Effect.map(threads.messages("thread"), all => all.map(({ message }) => message))

/** What a run stores with the step that made the call. */
const acknowledge = ({ threads }: Pick<Stores, "threads">, id: string, runId = "run") =>
  threads.append("thread", [
    {
      id: `${runId}-${id}-1`,
      runId,
      message: {
        role: "assistant",
        content: [{ type: "tool-call", toolCallId: id, toolName: "look", input: {} }]
      }
    },
    {
      id: `${runId}-${id}-2`,
      runId,
      message: {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: id,
            toolName: "look",
            output: { type: "text", value: "started" }
          }
        ]
      }
    }
  ])

const outcomes = (stores: Pick<Stores, "threads">) =>
  Effect.map(messages(stores), all =>
    all.flatMap(({ content }) => {
      const parts: ReadonlyArray<unknown> = typeof content === "string" ? [] : content
      return parts.flatMap(part => {
        const { output, toolCallId, type } = part as Message.ToolResultPart
        return type === "tool-result" ? [[toolCallId, output.type === "content" ? "" : output.value]] : []
      })
    })
  )

describe("a thread", () => {
  for (const [name, tool, value] of [
    ["the result", giving({ found: 3 }), { found: 3 }],
    ["a text", giving("three"), "three"],
    ["what went wrong", failing("no luck"), "Broken: no luck"],
    ["that it took too long", hanging(), expect.stringContaining("50 ms")],
    ["that it was cancelled", hanging(), expect.stringContaining("cancelled")]
  ] as const) {
    it.scoped(`holds ${name} in place of the acknowledgement`, () =>
      Effect.gen(function* () {
        const process = yield* start()
        yield* open(process)
        const latch = yield* Effect.makeLatch()
        const run = executor(context =>
          Effect.zipRight(
            latch.await,
            Effect.map(tool.execute(context), executed => executed.value)
          )
        )
        const task = yield* dispatch(process, "a", run, { ...inThread, timeoutMs: 50 })
        yield* acknowledge(process, "a")
        yield* task.stored
        expect(yield* outcomes(process)).toEqual([["a", "started"]])
        yield* latch.open
        if (name.includes("cancelled")) yield* process.background.cancel(task.taskId)
        yield* pass(50)
        expect(yield* outcomes(process)).toEqual([["a", value]])
        expect(task.outcome()).toMatchObject({ type: "tool-result", toolCallId: "a" })
      })
    )
  }

  it.scoped("holds the result when that was there before the acknowledgement was stored", () =>
    Effect.gen(function* () {
      const process = yield* start()
      yield* open(process)
      const task = yield* dispatch(process, "a", giving("done"), inThread)
      yield* breathe
      expect(process.told).toEqual(["running a", "completed a"])
      expect(yield* messages(process)).toEqual([])
      yield* acknowledge(process, "a")
      yield* task.stored
      expect(yield* outcomes(process)).toEqual([["a", "done"]])
      yield* task.stored
      yield* task.lost
      expect(yield* messages(process)).toHaveLength(2)
    })
  )

  it.scoped("keeps what a later run has for the same id of a call", () =>
    Effect.gen(function* () {
      const process = yield* start()
      yield* open(process)
      const latch = yield* Effect.makeLatch()
      const run = executor(() => Effect.as(latch.await, "done"))
      const task = yield* dispatch(process, "a", run, inThread)
      yield* acknowledge(process, "a")
      yield* task.stored
      yield* acknowledge(process, "a", "later")
      yield* latch.open
      yield* breathe
      expect(yield* outcomes(process)).toEqual([
        ["a", "done"],
        ["a", "started"]
      ])
    })
  )

  it.scoped("gets call and outcome when the run ended before it stored them, early or late", () =>
    Effect.gen(function* () {
      const process = yield* start()
      yield* open(process)
      const early = yield* dispatch(process, "a", giving("done"), inThread)
      yield* breathe
      yield* early.lost
      const latch = yield* Effect.makeLatch()
      const late = yield* dispatch(
        process,
        "b",
        executor(() => Effect.as(latch.await, "late")),
        inThread
      )
      yield* late.lost
      yield* latch.open
      yield* breathe
      expect(yield* outcomes(process)).toEqual([
        ["a", "done"],
        ["b", "late"]
      ])
      expect((yield* messages(process)).map(({ role }) => role)).toEqual([
        "assistant",
        "tool",
        "assistant",
        "tool"
      ])
    })
  )

  it.scoped("is told once when the acknowledgement is stored while it is asked for it", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const asked = yield* Effect.makeLatch()
      const answer = yield* Effect.makeLatch()
      const threads: Stores["threads"] = {
        ...shared.threads,
        replaceOutcome: (threadId, part) =>
          Effect.zipLeft(
            shared.threads.replaceOutcome(threadId, part),
            Effect.zipRight(asked.open, answer.await)
          )
      }
      const process = yield* start({}, { ...shared, threads })
      yield* open(process)
      const task = yield* dispatch(process, "a", giving("done"), inThread)
      yield* asked.await
      yield* acknowledge(process, "a")
      const storing = yield* Effect.fork(task.stored)
      yield* breathe
      yield* answer.open
      yield* storing.await
      expect(yield* outcomes(process)).toEqual([["a", "done"]])
      expect(yield* messages(process)).toHaveLength(2)
    })
  )

  it.scoped("is told before those who listen, after the row, and callbacks come last", () =>
    Effect.gen(function* () {
      const shared = yield* stores
      const order: Array<string> = []
      const note = (entry: string) => Effect.sync(() => void order.push(entry))
      const process = yield* start(
        { onTaskComplete: () => note("callback") },
        {
          tasks: {
            ...shared.tasks,
            update: (id, expected, change) =>
              Effect.zipLeft(shared.tasks.update(id, expected, change), note(`row ${change.status}`)),
            delivered: id => Effect.zipLeft(shared.tasks.delivered(id), note("row delivered"))
          },
          threads: {
            ...shared.threads,
            replaceOutcome: (threadId, part) =>
              Effect.zipLeft(shared.threads.replaceOutcome(threadId, part), note("thread"))
          }
        }
      )
      yield* open(process)
      process.manager.listen(({ chunk }) => order.push(chunk.type))
      const latch = yield* Effect.makeLatch()
      const task = yield* dispatch(
        process,
        "a",
        executor(() => latch.await),
        inThread
      )
      yield* acknowledge(process, "a")
      yield* task.stored
      yield* latch.open
      yield* breathe
      expect(order).toEqual([
        "row running",
        "background-task-running",
        "row completed",
        "thread",
        "row delivered",
        "background-task-completed",
        "callback"
      ])
    })
  )

  it.scoped("of its own gets it, and no other: neither does whoever listens to another", () =>
    Effect.gen(function* () {
      const process = yield* start()
      yield* open(process)
      yield* process.threads.open({ id: "other", resourceId: "user" })
      const chunks: Array<string> = []
      yield* Effect.forkScoped(
        Stream.runForEach(process.background.stream({ threadId: "other" }), ({ type }) =>
          Effect.sync(() => void chunks.push(type))
        )
      )
      yield* breathe
      const task = yield* dispatch(process, "a", giving("done"), inThread)
      yield* task.lost
      expect(chunks).toEqual([])
      expect(yield* process.threads.messages("other")).toEqual([])
      expect(yield* outcomes(process)).toEqual([["a", "done"]])
    })
  )

  it.scoped("knows an outcome by its metadata, and not by its words", () =>
    Effect.gen(function* () {
      const process = yield* start()
      const task = yield* dispatch(process, "a", giving('The call of "look" was started in the background'))
      yield* breathe
      expect(task.outcome()?.providerOptions).toEqual({
        eddy: { backgroundTask: { taskId: task.taskId, status: "completed" } }
      })
    })
  )

  it.scoped("that is gone is told nothing, and the task is done with all the same", () =>
    Effect.gen(function* () {
      const process = yield* start({ cleanup: { completed: 1000 } })
      const task = yield* dispatch(process, "a", giving("done"), inThread)
      yield* task.lost
      yield* breathe
      yield* pass("1 minutes")
      expect((yield* process.background.get(task.taskId))._tag).toBe("None")
    })
  )

  it.scoped("whose call was taken out of it meanwhile does not get it back", () =>
    Effect.gen(function* () {
      const process = yield* start()
      yield* open(process)
      const latch = yield* Effect.makeLatch()
      const task = yield* dispatch(
        process,
        "a",
        executor(() => latch.await),
        inThread
      )
      yield* task.stored
      yield* latch.open
      yield* breathe
      expect(yield* messages(process)).toEqual([])
      expect(process.told).toEqual(["running a", "completed a"])
    })
  )
})

it.scoped("a run that is told of the end of its task forgets it when it likes", () =>
  Effect.gen(function* () {
    const process = yield* start()
    const latch = yield* Effect.makeLatch()
    const told: Array<string> = []
    const task: Dispatched = yield* dispatch(
      process,
      "a",
      executor(() => latch.await)
    )
    task.onSettled(() => void told.push("one"))
    const forget = task.onSettled(() => void told.push("two"))
    forget()
    yield* latch.open
    yield* breathe
    task.onSettled(() => void told.push("three"))
    expect(told).toEqual(["one", "three"])
    expect(task.task().status).toBe("completed")
  })
)

/** What a store must do with a change of a task: it is made if the task is as expected, whole, and by one only. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { statuses, type Task } from "../../protocol/Task.js"
import { type TaskChange, TaskStore } from "../TaskStore.js"
import { type CaseOf, freshId, same, upTo, values } from "./kit.js"
import { createAll, freshOwner, freshStored, freshTask, holdsTask as holds, stored, time } from "./taskKit.js"

/** One case each. */
export const taskChangeCases: ReadonlyArray<CaseOf<TaskStore>> = [
  {
    name: "update sets what is given and nothing else",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const owner = yield* freshOwner
      const pending = freshTask({ threadId: freshId(), args: { kept: true }, maxRetries: 3 })
      const bystander = freshTask({ runId: pending.runId, toolCallId: pending.toolCallId })
      yield* createAll([pending, bystander], owner)
      const { id } = pending
      let expected = stored(pending, owner)
      const step = Effect.fnUntraced(function* (change: TaskChange, fields: Partial<Task>, more = {}) {
        const isDone = yield* store.update(id, { statuses }, change)
        yield* same(`whether ${Object.keys(change)} is set`, isDone, true)
        expected = Option.map(expected, old => ({ ...old, task: { ...old.task, ...fields }, ...more }))
        yield* holds(`the task with ${Object.keys(change)}`, id, expected)
      })
      const plain = [
        { status: "running" },
        { attempt: 3 },
        { startedAt: time(1) },
        { completedAt: time(2) },
        { error: { message: "it's \ud83d\ude00" } },
        { status: "timed_out", attempt: 4, startedAt: time(3) }
      ] as const
      for (const change of plain) yield* step(change, change)
      for (const result of values) yield* step({ result }, { result })
      for (const data of values) {
        yield* step({ resumeData: data }, {}, { resumeData: Option.some(data) })
        const suspension = Option.some({ at: time(4), data })
        yield* step({ suspension }, { suspendedAt: time(4), suspendData: data })
      }
      const other = yield* freshOwner
      yield* step({ owner: other }, {}, { owner: other })
      yield* step({ isDelivered: true }, {}, { isDelivered: true })
      yield* step({ owner: null }, {}, { owner: undefined })
      yield* step({ isDelivered: false }, {}, { isDelivered: false })
      yield* step({}, {})
      yield* holds("another task", bystander.id, stored(bystander, owner))
    })
  },
  {
    name: "update of a suspension that is over takes its time and its data away",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const task = freshTask({ status: "running", startedAt: time(1), attempt: 1 })
      const owner = yield* freshOwner
      yield* store.create({ ...task, suspendedAt: time(2), suspendData: { ask: "?" } }, owner)
      yield* store.update(task.id, { statuses: ["running"], owner }, { suspension: Option.none() })
      yield* holds("the task", task.id, stored(task, owner))
    })
  },
  {
    name: "update changes nothing of a task that is not as expected",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const change = { status: "failed", attempt: 9, owner: null, isDelivered: true, result: 1 } as const
      for (const status of statuses) {
        const { owner, task } = yield* freshStored({ status })
        const { id } = task
        const others = statuses.filter(other => other !== status)
        yield* same(
          "whether another status is its",
          yield* store.update(id, { statuses: others }, change),
          false
        )
        for (const stranger of [yield* freshOwner, "", `${owner} `]) {
          const isDone = yield* store.update(id, { statuses, owner: stranger }, change)
          yield* same("whether a stranger is its owner", isDone, false)
        }
        yield* holds("the task", id, stored(task, owner))
        yield* same("whether it is one of all", yield* store.update(id, { statuses, owner }, {}), true)
        yield* store.update(id, { statuses: [status] }, { owner: null })
        yield* same("whether nobody is somebody", yield* store.update(id, { statuses, owner }, change), false)
        yield* holds("the task of nobody", id, stored(task, undefined))
      }
    })
  },
  {
    name: "update of a task that is not there makes none",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const id = freshId()
      const change = { status: "running", attempt: 1 } as const
      yield* same("whether there was one", yield* store.update(id, { statuses }, change), false)
      yield* holds("the task", id, Option.none())
    })
  },
  {
    name: "of many that start a task at once one does",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const { task } = yield* freshStored()
      const owners = yield* Effect.all(upTo(16).map(() => freshOwner))
      const started = (index: number) => ({ status: "running" as const, attempt: 1, startedAt: time(index) })
      const start = (owner: string, index: number) =>
        store.update(task.id, { statuses: ["pending"] }, { ...started(index), owner })
      const won = yield* Effect.forEach(owners, start, { concurrency: "unbounded" })
      yield* same("the number of those that started it", won.filter(Boolean).length, 1)
      const index = won.indexOf(true)
      yield* holds("the task", task.id, stored({ ...task, ...started(index) }, owners[index]))
    })
  },
  {
    name: "of many that settle a task at once one does, and nothing of the others is seen",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const { owner, task } = yield* freshStored({ status: "running", attempt: 1, startedAt: time(0) })
      const ends = upTo(20).map(number => {
        const completedAt = time(number)
        if (number % 3 === 0) return { status: "cancelled" as const, completedAt }
        return number % 3 === 1
          ? { status: "completed" as const, completedAt, result: number }
          : { status: "failed" as const, completedAt, error: { message: `${number}` } }
      })
      const settle = (end: TaskChange) => store.update(task.id, { statuses: ["running"], owner }, end)
      const won = yield* Effect.forEach(ends, settle, { concurrency: "unbounded" })
      const winners = ends.filter((_, index) => won[index] === true)
      yield* same("the number of those that settled it", winners.length, 1)
      for (const winner of winners) yield* holds("the task", task.id, stored({ ...task, ...winner }, owner))
    })
  },
  {
    name: "nobody sees half of an update",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const { task } = yield* freshStored({ attempt: 0, result: 0, startedAt: time(0) })
      const change = (attempt: number) =>
        store.update(task.id, { statuses }, { attempt, result: attempt, startedAt: time(attempt) })
      const writer = yield* Effect.fork(Effect.forEach(upTo(20), change))
      while (Option.isNone(yield* Fiber.poll(writer))) {
        const found = Option.map(yield* store.get(task.id), stored => stored.task)
        const { attempt = -1, result, startedAt } = Option.getOrElse(found, (): Partial<Task> => ({}))
        yield* same("what is seen", { result, startedAt }, { result: attempt, startedAt: time(attempt) })
        yield* Effect.yieldNow()
      }
      yield* Fiber.join(writer)
      yield* same(
        "the attempts",
        Option.map(yield* store.get(task.id), ({ task }) => task.attempt),
        Option.some(20)
      )
    })
  },
  {
    name: "an update that is interrupted is done whole or not at all",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      for (const turns of upTo(20)) {
        const { owner, task } = yield* freshStored({ status: "running", attempt: 1 })
        const end = { status: "completed" as const, completedAt: time(turns), result: { turns } }
        const change = { ...end, owner: null, isDelivered: true }
        // Interrupted later each time, so that some are caught in the middle.
        const update = yield* Effect.fork(store.update(task.id, { statuses: ["running"] }, change))
        yield* Effect.repeatN(Effect.yieldNow(), turns - 1)
        yield* Fiber.interrupt(update)
        const found = yield* store.get(task.id)
        const isDone = Option.exists(found, stored => stored.task.status === "completed")
        const done = stored({ ...task, ...end }, undefined, { isDelivered: true })
        yield* same("the task", found, isDone ? done : stored(task, owner))
      }
    })
  }
]

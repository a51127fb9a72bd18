/** What a store must do when tasks are listed: which, in what order, and how many at a time. */
import * as Effect from "effect/Effect"
import { statuses, type Task } from "../../protocol/Task.js"
import { type ListOptions, TaskStore } from "../TaskStore.js"
import { type CaseOf, freshId, lookalikes, same } from "./kit.js"
import { createAll, freshOwner, freshTask, time } from "./taskKit.js"

/** Stores tasks, and gives a way to list some of them by their indexes. */
const listing = Effect.fnUntraced(function* (tasks: ReadonlyArray<Task>) {
  const store = yield* TaskStore
  yield* createAll(tasks, yield* freshOwner)
  const indexes = new Map(tasks.map(({ id }, index) => [id, index]))
  return (options: ListOptions) =>
    Effect.map(store.list(options), page => page.tasks.map(({ id }) => indexes.get(id)))
})

const fields = ["agentId", "threadId", "resourceId", "runId", "toolName", "toolCallId"] as const

/** The times of tasks in the order of their creation: those that have none, and those that have the same. */
const moments: ReadonlyArray<readonly [created: number, other: number | undefined]> = [
  [10, 40],
  [10, undefined],
  [10, 20],
  [20, 40],
  [20, 20],
  [30, undefined],
  [30, 40],
  [30, 10]
]

/** The indexes of tasks by each of these times. Those that have none come last, in either direction. */
const orders = {
  created: { asc: [0, 1, 2, 3, 4, 5, 6, 7], desc: [7, 6, 5, 4, 3, 2, 1, 0] },
  other: { asc: [7, 2, 4, 0, 3, 6, 1, 5], desc: [6, 3, 0, 4, 2, 7, 5, 1] }
}

const otherTimes = ["startedAt", "suspendedAt", "completedAt"] as const

/** Tasks with these times; the times that are not asked for say the contrary. */
const timed = (agentId: string, field: (typeof otherTimes)[number]): ReadonlyArray<Task> =>
  moments.map(([created, other]) => {
    const contrary = time(1000 - created)
    const createdAt = time(created)
    const task = freshTask({ agentId, createdAt, startedAt: contrary, suspendedAt: contrary })
    const { [field]: _, ...rest } = { ...task, completedAt: contrary }
    return other === undefined ? rest : { ...rest, [field]: time(other) }
  })

/** One case each. */
export const taskListCases: ReadonlyArray<CaseOf<TaskStore>> = [
  {
    name: "list gives tasks as they are",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const agentId = freshId()
      const tasks = [
        freshTask({ agentId, args: { a: [1] }, threadId: freshId(), resourceId: freshId() }),
        freshTask({ agentId, status: "completed", result: null, startedAt: time(1), completedAt: time(2) }),
        freshTask({ agentId, status: "failed", error: { message: "no" }, attempt: 3, maxRetries: 2 })
      ]
      yield* createAll(tasks, yield* freshOwner)
      yield* same("the page", yield* store.list({ agentId }), { tasks, total: 3 })
      const nobodys = yield* store.list({ agentId: freshId() })
      yield* same("the page of nobody", nobodys, { tasks: [], total: 0 })
      const all = yield* store.list({ perPage: 2 })
      yield* same("the number of tasks on a page of all", all.tasks.length, 2)
      yield* same("whether the total counts the tasks of all", all.total >= 3, true)
    })
  },
  {
    name: "list gives tasks of one status, of several, and of none",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const agentId = freshId()
      const tasks = statuses.map(status => freshTask({ agentId, status }))
      const list = yield* listing(tasks)
      for (const [index, status] of statuses.entries()) {
        yield* same(`the ${status} tasks`, yield* list({ agentId, status }), [index])
      }
      const several = { agentId, status: ["failed", "pending", "failed"] } as const
      yield* same("the tasks of two statuses", yield* list(several), [0, 4])
      yield* same("the tasks of every status", (yield* list({ agentId, status: statuses })).length, 7)
      const none = yield* store.list({ agentId, status: [] })
      yield* same("the tasks of none of the statuses", none, { tasks: [], total: 0 })
    })
  },
  {
    name: "list gives tasks of one agent, thread, resource, run, tool and call, told apart exactly",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      for (const field of fields) {
        const prefix = freshId()
        const tasks = lookalikes.map(id => freshTask({ [field]: prefix + id }))
        const list = yield* listing([...tasks, freshTask()])
        for (const [index, id] of lookalikes.entries()) {
          const found = yield* list({ [field]: prefix + id })
          yield* same(`the tasks whose ${field} ends in ${JSON.stringify(id)}`, found, [index])
        }
        const { total } = yield* store.list({ [field]: prefix })
        yield* same(`the number of tasks whose ${field} is a part of another's`, total, 0)
      }
    })
  },
  {
    name: "list gives tasks that match everything that is asked",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const task = freshTask({ threadId: freshId(), resourceId: freshId(), toolName: freshId() })
      const { agentId, resourceId = "", runId, threadId = "", toolCallId, toolName } = task
      const all = { agentId, resourceId, runId, threadId, toolCallId, toolName }
      // Each differs from the first in one thing.
      const others = fields.map(field => ({ ...task, id: freshId(), [field]: freshId() }))
      const { resourceId: _, threadId: __, ...bare } = { ...task, id: freshId() }
      const later = { ...task, id: freshId(), createdAt: time(5), status: "running" as const }
      const list = yield* listing([task, ...others, bare, later])
      yield* same("those that match all", yield* list({ ...all, status: "pending" }), [0])
      yield* same("those that match the span too", yield* list({ ...all, fromDate: time(5) }), [8])
      yield* same(
        "those of a call",
        yield* list({ toolCallId, runId, status: "pending" }),
        [0, 1, 2, 3, 5, 7]
      )
      const page = yield* store.list({ ...all, toDate: task.createdAt })
      yield* same("those that match all but the span", page, { tasks: [], total: 0 })
    })
  },
  {
    name: "list gives tasks of a span of each of their times",
    run: Effect.gen(function* () {
      const agentId = freshId()
      const at = [10, 20, 30].map(time)
      const tasks = at.map(date =>
        freshTask({ agentId, createdAt: date, startedAt: date, suspendedAt: date, completedAt: date })
      )
      const list = yield* listing([...tasks, freshTask({ agentId, createdAt: time(40) })])
      yield* same("those created at or after", yield* list({ agentId, fromDate: time(20) }), [1, 2, 3])
      yield* same("those created before", yield* list({ agentId, toDate: time(20) }), [0])
      for (const dateFilterBy of otherTimes) {
        const span = (from: number, to: number) =>
          list({ agentId, dateFilterBy, fromDate: time(from), toDate: time(to) })
        const what = `by ${dateFilterBy}`
        yield* same(`the first is in, the last is not, ${what}`, yield* span(10, 30), [0, 1])
        yield* same(`a span between, ${what}`, yield* span(11, 30), [1])
        yield* same(`a span of one, ${what}`, yield* span(30, 31), [2])
        yield* same(`an empty span, ${what}`, yield* span(20, 20), [])
        yield* same(`a span that is turned, ${what}`, yield* span(31, 10), [])
        const [from, to] = [{ fromDate: time(0) }, { toDate: time(99) }]
        yield* same(`from, ${what}`, yield* list({ agentId, dateFilterBy, ...from }), [0, 1, 2])
        yield* same(`to, ${what}`, yield* list({ agentId, dateFilterBy, ...to }), [0, 1, 2])
        yield* same(`no span, ${what}`, yield* list({ agentId, dateFilterBy }), [0, 1, 2, 3])
      }
    })
  },
  {
    name: "list gives tasks in the order of each of their times; of one time, in that of their creation",
    run: Effect.gen(function* () {
      for (const other of otherTimes) {
        const agentId = freshId()
        const list = yield* listing(timed(agentId, other))
        yield* same("the order when nothing is said of it", yield* list({ agentId }), orders.created.asc)
        for (const orderDirection of ["asc", "desc"] as const) {
          const created = yield* list({ agentId, orderDirection })
          yield* same(`the order of creation, ${orderDirection}`, created, orders.created[orderDirection])
          const found = yield* list({ agentId, orderBy: other, orderDirection })
          yield* same(`the order of ${other}, ${orderDirection}`, found, orders.other[orderDirection])
        }
      }
    })
  },
  {
    name: "tasks that are stored at the same time stand in the order in which that was asked for",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const owner = yield* freshOwner
      const agentId = freshId()
      const tasks = Array.from({ length: 20 }, () => freshTask({ agentId }))
      yield* Effect.forEach(tasks, task => store.create(task, owner), {
        concurrency: "unbounded",
        discard: true
      })
      const listed = yield* store.list({ agentId })
      yield* same(
        "the order",
        listed.tasks.map(({ id }) => id),
        tasks.map(({ id }) => id)
      )
    })
  },
  {
    name: "a task that changes keeps its place in the order of creation",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const agentId = freshId()
      const tasks = [1, 2, 3].map(() => freshTask({ agentId }))
      const list = yield* listing(tasks)
      for (const { id } of [...tasks].reverse()) {
        yield* store.update(id, { statuses }, { status: "running", startedAt: time(1), attempt: 1 })
        yield* same("the order", yield* list({ agentId }), [0, 1, 2])
        yield* same("the order of one time", yield* list({ agentId, orderBy: "completedAt" }), [0, 1, 2])
      }
      yield* same("the order of the start", yield* list({ agentId, orderBy: "startedAt" }), [0, 1, 2])
    })
  },
  {
    name: "list gives pages, and the total",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const agentId = freshId()
      const tasks = [1, 2, 3, 4, 5].map(() => freshTask({ agentId, status: "running" }))
      yield* createAll([...tasks, freshTask({ agentId })], yield* freshOwner)
      const page = (page: number, perPage: number) =>
        store.list({ agentId, status: "running", page, perPage })
      yield* same("page 0", yield* page(0, 2), { tasks: tasks.slice(0, 2), total: 5 })
      yield* same("page 1", yield* page(1, 2), { tasks: tasks.slice(2, 4), total: 5 })
      yield* same("the last page", yield* page(2, 2), { tasks: tasks.slice(4), total: 5 })
      yield* same("the page behind the last", yield* page(3, 2), { tasks: [], total: 5 })
      yield* same("a page of none", yield* page(0, 0), { tasks: [], total: 5 })
      yield* same("a page of all", yield* page(0, Number.POSITIVE_INFINITY), { tasks, total: 5 })
      yield* same("a page before the first", yield* page(-1, 2), yield* page(0, 2))
      yield* same("a broken page", yield* page(1.5, 2.5), yield* page(1, 2))
      const backwards = yield* store.list({ agentId, perPage: 2, page: 1, orderDirection: "desc" })
      const expected = { tasks: [tasks[3], tasks[2]], total: 6 }
      yield* same("page 1 turned round", backwards, expected)
    })
  },
  {
    name: "list gives 100 tasks when nothing is said of pages",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const agentId = freshId()
      const tasks = Array.from({ length: 101 }, () => freshTask({ agentId }))
      yield* createAll(tasks, yield* freshOwner)
      yield* same("the page", yield* store.list({ agentId }), { tasks: tasks.slice(0, 100), total: 101 })
    })
  }
]

/** What a store must do with tasks that are over, and with those whose owner is: delete them, and give them away. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { statuses, type Task, type TaskStatus } from "../../protocol/Task.js"
import { TaskStore } from "../TaskStore.js"
import { at, type CaseOf, freshId, idsOf, same, upTo } from "./kit.js"
import {
  alone,
  createAll,
  freshOwner,
  freshStored,
  freshTask,
  holdsTask,
  settled,
  stored
} from "./taskKit.js"

/** Long ago, and far ahead: the clocks of two processes, neither of which is the store's. */
const past = 0
const future = 4_000_000_000_000

/** Stores a task of this owner, who may have no lease. */
const left = Effect.fnUntraced(function* (agentId: string, owner: string, status: TaskStatus = "pending") {
  const store = yield* TaskStore
  const isSettled = settled.includes(status)
  const task = freshTask({ agentId, status, ...(isSettled ? { completedAt: new Date(past) } : {}) })
  yield* store.create(task, owner)
  return task
})

/** What an heir is given of the tasks of this agent: others may have left something too. */
const inherit = (agentId: string, heir: string) =>
  Effect.flatMap(TaskStore, store =>
    Effect.map(store.inherit(heir), inherited => inherited.filter(({ task }) => task.agentId === agentId))
  )

/** One case each. */
export const taskLeaseCases: ReadonlyArray<CaseOf<TaskStore>> = [
  {
    name: "deleteSettled deletes delivered tasks of the given statuses",
    run: alone(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        // What other cases have left.
        yield* store.deleteSettled(settled, 0)
        const owner = yield* freshOwner
        const tasksOf = (statuses: ReadonlyArray<TaskStatus>) =>
          statuses.map(status => freshTask({ agentId, status, completedAt: new Date(past) }))
        const delivered = tasksOf(settled)
        const silent = tasksOf(settled)
        const open = ["pending", "running", "suspended"] as const
        const others = tasksOf(open)
        yield* createAll([...delivered, ...silent, ...others], owner)
        for (const { id } of delivered) yield* store.delivered(id)
        for (const { id } of others) yield* store.update(id, { statuses }, { isDelivered: true })
        const leaves = Effect.fnUntraced(function* (
          from: ReadonlyArray<TaskStatus>,
          expected: ReadonlyArray<Task>
        ) {
          yield* store.deleteSettled(from, 0)
          const { tasks } = yield* store.list({ agentId })
          yield* same(`what is left after ${from} is deleted`, idsOf(tasks), idsOf(expected))
        })
        const kept = [...silent, ...others]
        yield* leaves([], [...delivered, ...kept])
        yield* leaves(open, [...delivered, ...kept])
        const unlike = delivered.filter(({ status }) => status !== "failed")
        yield* leaves(["failed"], [...unlike, ...kept])
        yield* same("the number that was deleted", yield* store.deleteSettled(settled, 0), unlike.length)
        yield* leaves(settled, kept)
        for (const { id } of delivered) yield* holdsTask("a task that is deleted", id, Option.none())
      })
    )
  },
  {
    name: "deleteSettled measures the age by the clock of the store, from when the task was stored as settled",
    run: alone(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const owner = yield* freshOwner
        const times = [past, future]
        const tasks = times.map(() => freshTask({ agentId, status: "running" }))
        yield* createAll(tasks, owner)
        for (const [index, { id }] of tasks.entries()) {
          const completedAt = new Date(times[index] ?? past)
          yield* at(past)(store.update(id, { statuses }, { status: "completed", completedAt }))
        }
        for (const { id } of tasks) yield* store.delivered(id)
        for (const time of [past, future]) {
          yield* at(time)(store.deleteSettled(settled, "1 hour"))
        }
        const young = (yield* store.list({ agentId })).tasks
        yield* same("the young tasks", idsOf(young), idsOf(tasks))
        yield* at(past)(store.deleteSettled(settled, 0))
        yield* same("the number after all were old enough", (yield* store.list({ agentId })).total, 0)
      })
    )
  },
  {
    name: "inherit gives what owners have left who have no lease, or whose lease is over",
    run: alone(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const [never, over, dropped] = [freshId(), freshId(), freshId()]
        const [living, heir] = [freshId(), freshId()]
        yield* store.renewLease(over, "1 hour")
        yield* store.renewLease(over, 0)
        yield* store.renewLease(living, 0)
        yield* store.renewLease(living, "1 hour")
        yield* store.renewLease(dropped, "1 hour")
        yield* store.renewLease(heir, "1 hour")
        const first = yield* left(agentId, never)
        const second = yield* left(agentId, over)
        const others = yield* left(agentId, living)
        const third = yield* left(agentId, dropped)
        yield* store.dropLease(dropped)
        yield* store.dropLease(freshId())
        const inherited = yield* inherit(agentId, heir)
        const expected = [first, second, third].map(task => stored(task, heir))
        yield* same("what is inherited", inherited.map(Option.some), expected)
        for (const task of [first, second, third]) {
          yield* holdsTask("a task that is inherited", task.id, stored(task, heir))
        }
        yield* holdsTask("a task of one who lives", others.id, stored(others, living))
      })
    )
  },
  {
    name: "inherit gives pending, running and untold tasks, in the order of their creation",
    run: alone(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const [owner, heir] = [freshId(), yield* freshOwner]
        const order = [...statuses].reverse()
        const tasks = yield* Effect.forEach(order, status => left(agentId, owner, status))
        const told = yield* Effect.forEach(settled, status => left(agentId, owner, status))
        for (const { id } of told) yield* store.delivered(id)
        const nobodys = yield* left(agentId, owner)
        yield* store.update(nobodys.id, { statuses }, { owner: null })
        const waiting = yield* left(agentId, owner, "suspended")
        yield* store.update(waiting.id, { statuses }, { owner: null })
        const last = yield* left(agentId, owner, "running")
        // A task that changes keeps its place.
        const change = { resumeData: { again: true }, attempt: 1 }
        yield* store.update(tasks[0]?.id ?? "", { statuses }, change)
        const inherited = yield* inherit(agentId, heir)
        const expected = [...tasks, last].filter(({ status }) => status !== "suspended")
        const ids = expected.map(({ id }) => id)
        yield* same(
          "what is inherited",
          inherited.map(({ task }) => task.id),
          ids
        )
        const [changed] = inherited
        yield* same("what it was resumed with", changed?.resumeData, Option.some({ again: true }))
        yield* same("its attempts", changed?.task.attempt, 1)
        const suspended = tasks.filter(({ status }) => status === "suspended")
        for (const task of suspended) yield* holdsTask("a suspended task", task.id, stored(task, owner))
        for (const task of told) {
          yield* holdsTask("a task that was told", task.id, stored(task, owner, { isDelivered: true }))
        }
        for (const task of [nobodys, waiting]) {
          yield* holdsTask("a task of nobody", task.id, stored(task, undefined))
        }
      })
    )
  },
  {
    name: "what is inherited is the heir's, until the heir is no more",
    run: alone(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const [owner, heir, next] = [freshId(), freshId(), yield* freshOwner]
        yield* store.renewLease(heir, "1 hour")
        const { id } = yield* left(agentId, owner, "running")
        const owners = Effect.map(
          store.get(id),
          Option.map(found => found.owner)
        )
        yield* same("the number of tasks", (yield* inherit(agentId, heir)).length, 1)
        yield* same("the number that is there again", (yield* inherit(agentId, heir)).length, 0)
        yield* same("the number that is there for another", (yield* inherit(agentId, next)).length, 0)
        const late = yield* store.update(id, { statuses, owner }, { status: "completed" })
        yield* same("whether it is the first owner's still", late, false)
        yield* same("its owner", yield* owners, Option.some(heir))
        yield* same(
          "whether the heir may change it",
          yield* store.update(id, { statuses, owner: heir }, {}),
          true
        )
        yield* store.renewLease(heir, "2 hours")
        yield* same("the number after the lease is renewed", (yield* inherit(agentId, next)).length, 0)
        yield* store.renewLease(heir, 0)
        yield* same("the number after the lease is over", (yield* inherit(agentId, next)).length, 1)
        yield* same("its owner then", yield* owners, Option.some(next))
      })
    )
  },
  {
    name: "leases are computed and judged by the clock of the store, whatever the clocks of the callers are",
    run: alone(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const heir = yield* freshOwner
        for (const [renewing, inheriting] of [
          [past, future],
          [future, past]
        ] as const) {
          const [living, over] = [freshId(), freshId()]
          yield* at(renewing)(store.renewLease(living, "1 hour"))
          yield* at(renewing)(store.renewLease(over, 0))
          const kept = yield* left(agentId, living, "running")
          const given = yield* left(agentId, over, "running")
          const inherited = yield* at(inheriting)(inherit(agentId, heir))
          const [first] = inherited
          yield* same("the number of tasks that are inherited", inherited.length, 1)
          yield* same("the task that is inherited", first?.task.id, given.id)
          yield* holdsTask("a task whose owner has a lease", kept.id, stored(kept, living))
          yield* store.dropLease(living)
          yield* inherit(agentId, heir)
        }
      })
    )
  },
  {
    name: "owned gives the pending, running and undelivered tasks of an owner",
    run: alone(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const [owner, other] = [yield* freshOwner, yield* freshOwner]
        const tasks = yield* Effect.forEach(statuses, status => left(agentId, owner, status))
        yield* left(agentId, other)
        const delivered = yield* Effect.forEach(settled, status => left(agentId, owner, status))
        for (const { id } of delivered) yield* store.delivered(id)
        const places = yield* store.owned(owner)
        const expected = tasks.flatMap(({ id, status }) =>
          status === "suspended" ? [] : [{ id, status, owner }]
        )
        const byId = (one: { readonly id: string }, two: { readonly id: string }) =>
          one.id < two.id ? -1 : 1
        yield* same("what is owned", [...places].sort(byId), [...expected].sort(byId))
        yield* same("what an owner without tasks has", yield* store.owned(freshId()), [])
      })
    )
  },
  {
    name: "of many heirs at once each is given other tasks",
    run: alone(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const owner = freshId()
        const tasks = yield* Effect.forEach(upTo(60), () => left(agentId, owner))
        const heirs = yield* Effect.all(upTo(8).map(() => freshOwner))
        const shares = yield* Effect.forEach(heirs, heir => inherit(agentId, heir), {
          concurrency: "unbounded"
        })
        const owners = new Map(
          shares.flatMap((share, index) => share.map(({ task }) => [task.id, heirs[index]] as const))
        )
        yield* same("the number of tasks that were given", shares.flat().length, tasks.length)
        yield* same("the number of different tasks that were given", owners.size, tasks.length)
        for (const { id } of tasks) {
          const [place] = yield* store.places([id])
          yield* same("the owner of a task", place?.owner, owners.get(id))
        }
      })
    )
  },
  {
    name: "a task that settles while it is inherited is changed by one of both",
    run: alone(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        for (const turns of upTo(10)) {
          const [owner, heir] = [freshId(), yield* freshOwner]
          const { id } = yield* left(agentId, owner, "running")
          const settle = Effect.zipRight(
            Effect.repeatN(Effect.yieldNow(), turns),
            store.update(id, { statuses: ["running"], owner }, { status: "completed", isDelivered: true })
          )
          const [isSettled, inherited] = yield* Effect.all([settle, inherit(agentId, heir)], {
            concurrency: "unbounded"
          })
          yield* same("whether it was inherited", inherited.length === 1, !isSettled)
          const [place] = yield* store.places([id])
          const expected = isSettled
            ? { id, status: "completed", owner }
            : { id, status: "running", owner: heir }
          yield* same("where it stands", place, expected)
        }
      })
    )
  },
  {
    name: "inherit changes nothing but the owner",
    run: alone(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const [owner, heir] = [freshId(), yield* freshOwner]
        const task = freshTask({
          agentId,
          status: "failed",
          error: { message: "no" },
          args: { a: ["\ud83d\ude00"] },
          threadId: freshId(),
          resourceId: freshId(),
          startedAt: new Date(2),
          completedAt: new Date(3),
          attempt: 2,
          maxRetries: 1
        })
        yield* store.create(task, owner)
        const untouched = yield* freshStored({ toolCallId: task.toolCallId })
        const inherited = yield* inherit(agentId, heir)
        yield* same("what is inherited", inherited.map(Option.some), [stored(task, heir)])
        yield* holdsTask("the task", task.id, stored(task, heir))
        yield* holdsTask("another", untouched.task.id, stored(untouched.task, untouched.owner))
      })
    )
  }
]

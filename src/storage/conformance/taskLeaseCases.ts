/** What a store must do with tasks that are over, and with those whose owner is: delete them, and give them away. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { statuses, type Task, type TaskStatus } from "../../protocol/Task.js"
import { TaskStore } from "../TaskStore.js"
import { type CaseOf, freshId, idsOf, same, upTo } from "./kit.js"
import {
  createAll,
  freshOwner,
  freshStored,
  freshTask,
  holdsTask,
  inTurn,
  settled,
  stored
} from "./taskKit.js"

/** In the first ten seconds of 1970: see `inTurn`. */
const early = (milliseconds: number): Date => new Date(milliseconds)

/** Stores a task of this owner, who may have no lease. */
const left = Effect.fnUntraced(function* (agentId: string, owner: string, status: TaskStatus = "pending") {
  const store = yield* TaskStore
  const isSettled = settled.includes(status)
  const task = freshTask({ agentId, status, ...(isSettled ? { completedAt: early(500) } : {}) })
  yield* store.create(task, owner)
  return task
})

/** What an heir is given of the tasks of this agent: others may have left something too. */
const inherit = (agentId: string, heir: string, now: number) =>
  Effect.flatMap(TaskStore, store =>
    Effect.map(store.inherit(heir, early(now)), inherited =>
      inherited.filter(({ task }) => task.agentId === agentId)
    )
  )

/** One case each. */
export const taskLeaseCases: ReadonlyArray<CaseOf<TaskStore>> = [
  {
    name: "deleteSettled deletes tasks that settled before, and were told",
    run: inTurn(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const owner = yield* freshOwner
        const at = (status: TaskStatus, completedAt: number) =>
          freshTask({ agentId, status, completedAt: early(completedAt) })
        const before = settled.map(status => at(status, 999))
        const after = settled.map(status => at(status, 1000))
        const silent = settled.map(status => at(status, 999))
        const timeless = freshTask({ agentId, status: "completed" })
        const open = ["pending", "running", "suspended"] as const
        const others = open.map(status => freshTask({ agentId, status }))
        yield* createAll([...before, ...after, ...silent, timeless, ...others], owner)
        const told = [...before, ...after, timeless]
        for (const { id } of told) yield* store.delivered(id)
        for (const { id } of others) yield* store.update(id, { statuses }, { isDelivered: true })
        const leaves = Effect.fnUntraced(function* (
          from: ReadonlyArray<TaskStatus>,
          expected: ReadonlyArray<Task>
        ) {
          const { total } = yield* store.list({ agentId })
          const deleted = yield* store.deleteSettled(from, early(1000))
          yield* same(`the number that was deleted of ${from}`, deleted, total - expected.length)
          const { tasks } = yield* store.list({ agentId })
          yield* same("what is left", idsOf(tasks), idsOf(expected))
        })
        const kept = [...after, ...silent, timeless, ...others]
        yield* leaves([], [...before, ...kept])
        yield* leaves(open, [...before, ...kept])
        const unlike = before.filter(({ status }) => status !== "failed")
        yield* leaves(["failed"], [...unlike, ...kept])
        yield* leaves(settled, kept)
        for (const { id } of before) yield* holdsTask("a task that is deleted", id, Option.none())
      })
    )
  },
  {
    name: "inherit gives what owners have left who have no lease, or whose lease is over",
    run: inTurn(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const [never, over, dropped] = [freshId(), freshId(), freshId()]
        const [living, heir] = [freshId(), freshId()]
        yield* store.renewLease(over, early(1000))
        yield* store.renewLease(living, early(1001))
        yield* store.renewLease(dropped, early(9000))
        yield* store.renewLease(heir, early(9000))
        const first = yield* left(agentId, never)
        const second = yield* left(agentId, over)
        const others = yield* left(agentId, living)
        const third = yield* left(agentId, dropped)
        yield* store.dropLease(dropped)
        yield* store.dropLease(freshId())
        const inherited = yield* inherit(agentId, heir, 1000)
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
    run: inTurn(
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
        const inherited = yield* inherit(agentId, heir, 1000)
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
    run: inTurn(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const [owner, heir, next] = [freshId(), freshId(), yield* freshOwner]
        yield* store.renewLease(heir, early(5000))
        const { id } = yield* left(agentId, owner, "running")
        const owners = Effect.map(
          store.get(id),
          Option.map(found => found.owner)
        )
        yield* same("the number of tasks", (yield* inherit(agentId, heir, 1000)).length, 1)
        yield* same("the number that is there again", (yield* inherit(agentId, heir, 4999)).length, 0)
        yield* same("the number that is there for another", (yield* inherit(agentId, next, 4999)).length, 0)
        const late = yield* store.update(id, { statuses, owner }, { status: "completed" })
        yield* same("whether it is the first owner's still", late, false)
        yield* same("its owner", yield* owners, Option.some(heir))
        yield* same(
          "whether the heir may change it",
          yield* store.update(id, { statuses, owner: heir }, {}),
          true
        )
        yield* store.renewLease(heir, early(8000))
        yield* same("the number after the lease is renewed", (yield* inherit(agentId, next, 7999)).length, 0)
        yield* same("the number after the lease is over", (yield* inherit(agentId, next, 8000)).length, 1)
        yield* same("its owner then", yield* owners, Option.some(next))
      })
    )
  },
  {
    name: "of many heirs at once each is given other tasks",
    run: inTurn(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        const owner = freshId()
        const tasks = yield* Effect.forEach(upTo(60), () => left(agentId, owner))
        const heirs = yield* Effect.all(upTo(8).map(() => freshOwner))
        const shares = yield* Effect.forEach(heirs, heir => inherit(agentId, heir, 1000), {
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
    run: inTurn(
      Effect.fnUntraced(function* (agentId) {
        const store = yield* TaskStore
        for (const turns of upTo(10)) {
          const [owner, heir] = [freshId(), yield* freshOwner]
          const { id } = yield* left(agentId, owner, "running")
          const settle = Effect.zipRight(
            Effect.repeatN(Effect.yieldNow(), turns),
            store.update(id, { statuses: ["running"], owner }, { status: "completed", isDelivered: true })
          )
          const [isSettled, inherited] = yield* Effect.all([settle, inherit(agentId, heir, 1000)], {
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
    run: inTurn(
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
          startedAt: early(2),
          completedAt: early(3),
          attempt: 2,
          maxRetries: 1
        })
        yield* store.create(task, owner)
        const untouched = yield* freshStored({ toolCallId: task.toolCallId })
        const inherited = yield* inherit(agentId, heir, 1000)
        yield* same("what is inherited", inherited.map(Option.some), [stored(task, heir)])
        yield* holdsTask("the task", task.id, stored(task, heir))
        yield* holdsTask("another", untouched.task.id, stored(untouched.task, untouched.owner))
      })
    )
  }
]

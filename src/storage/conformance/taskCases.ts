/** What a store must do with one task: keep it, and tell where it stands. Its changes are in `taskChangeCases.ts`. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { statuses, type Task } from "../../protocol/Task.js"
import { TaskStore } from "../TaskStore.js"
import { type CaseOf, failsWith, freshId, lookalikes, same, upTo, values } from "./kit.js"
import {
  createAll,
  forCenturies,
  freshOwner,
  freshStored,
  freshTask,
  holdsTask as holds,
  settled,
  stored,
  time
} from "./taskKit.js"

/** A task of which everything is told. */
const full = (): Task =>
  freshTask({
    status: "running",
    args: { city: "\u00c5rhus \ud83d\ude00", days: 3, list: [null, {}] },
    toolName: "look 'up' \"it\" \\ \ud83d\ude00",
    threadId: freshId(),
    resourceId: freshId(),
    createdAt: time(123),
    startedAt: time(456),
    attempt: 2,
    maxRetries: 7,
    timeoutMs: 86_400_000
  })

/** One case each. */
export const taskCases: ReadonlyArray<CaseOf<TaskStore>> = [
  {
    name: "create stores a task of its owner",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const owner = yield* freshOwner
      for (const task of [freshTask(), full()]) {
        yield* holds("the task before it is stored", task.id, Option.none())
        yield* store.create(task, owner)
        yield* holds("the task", task.id, stored(task, owner))
      }
    })
  },
  {
    name: "create keeps the fields of every status",
    run: Effect.gen(function* () {
      const owner = yield* freshOwner
      const begun = { startedAt: time(1), attempt: 1 }
      const ended = { ...begun, completedAt: time(3) }
      const tasks = [
        freshTask({ ...begun, status: "suspended", suspendedAt: time(2), suspendData: { ask: "?" } }),
        freshTask({ ...ended, status: "completed", result: { answer: 42 } }),
        freshTask({ ...ended, status: "failed", error: { message: "no \ud83d\ude00\nnext 'line'" } }),
        freshTask({ ...ended, status: "timed_out", error: { message: "" } }),
        freshTask({ status: "cancelled", completedAt: time(4) })
      ]
      yield* createAll(tasks, owner)
      for (const task of tasks) yield* holds(`the ${task.status} task`, task.id, stored(task, owner))
    })
  },
  {
    name: "create refuses a task whose id is there, and changes nothing",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const { owner, task } = yield* freshStored()
      const other = { ...full(), id: task.id }
      yield* failsWith("create", "StorageError", store.create(other, yield* freshOwner))
      yield* holds("the task", task.id, stored(task, owner))
      yield* same("tasks of the other", yield* store.list({ agentId: other.agentId }), {
        tasks: [],
        total: 0
      })
    })
  },
  {
    name: "create of one id from many fibers stores one task",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const owner = yield* freshOwner
      const first = freshTask()
      const tasks = upTo(16).map(number => ({ ...first, toolName: `tool ${number}` }))
      const exits = yield* Effect.forEach(tasks, task => Effect.exit(store.create(task, owner)), {
        concurrency: "unbounded"
      })
      const created = tasks.filter((_, index) => Exit.isSuccess(exits[index] ?? Exit.void))
      yield* same("the number that was created", created.length, 1)
      for (const task of created) yield* holds("the task", task.id, stored(task, owner))
    })
  },
  {
    name: "ids are told apart exactly",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const owner = yield* freshOwner
      const prefix = freshId()
      const tasks = lookalikes.map(id => freshTask({ id: prefix + id }))
      yield* createAll(tasks, owner)
      for (const task of tasks) {
        const { id } = task
        yield* holds(`task ${JSON.stringify(id)}`, id, stored(task, owner))
        const places = [{ id, status: "pending", owner }]
        yield* same(`the place of ${JSON.stringify(id)}`, yield* store.places([id]), places)
      }
    })
  },
  {
    name: "owners are told apart exactly",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const prefix = freshId()
      const owners = lookalikes.map(id => prefix + id)
      for (const owner of owners) yield* store.renewLease(owner, forCenturies)
      for (const owner of owners) {
        const task = freshTask()
        yield* store.create(task, owner)
        for (const other of owners) {
          const isExpected = yield* store.update(task.id, { statuses: ["pending"], owner: other }, {})
          yield* same(
            `whether ${JSON.stringify(owner)} is ${JSON.stringify(other)}`,
            isExpected,
            owner === other
          )
        }
      }
    })
  },
  {
    name: "strings and values of a task are made safe",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const owner = yield* freshOwner
      const unique = freshId()
      const given = freshTask({
        id: `${unique}\ud83d`,
        toolName: "\ude00",
        threadId: `${unique}\udc00`,
        args: { "\ud83d": "\ude00", number: Number.NaN }
      })
      const safe = {
        ...given,
        id: `${unique}\ufffd`,
        toolName: "\ufffd",
        threadId: `${unique}\ufffd`,
        args: { "\ufffd": "\ufffd", number: null }
      }
      yield* store.create(given, owner)
      yield* holds("the task by its given id", given.id, stored(safe, owner))
      const { tasks } = yield* store.list({ threadId: `${unique}\udc00` })
      yield* same("the tasks by the given thread", tasks, [safe])
      yield* store.update(given.id, { statuses }, { status: "failed", error: { message: "half \ud83d" } })
      const failed: Task = { ...safe, status: "failed", error: { message: "half \ufffd" } }
      yield* holds("the updated task", safe.id, stored(failed, owner))
      const [place] = yield* store.places([given.id])
      yield* same("the place by the given id", place?.status, "failed")
    })
  },
  {
    name: "results come back as they were, null and nothing told apart",
    run: Effect.gen(function* () {
      const owner = yield* freshOwner
      const without = freshTask({ status: "completed", completedAt: time(0) })
      const tasks = [without, ...values.map(result => ({ ...without, id: freshId(), result }))]
      yield* createAll(tasks, owner)
      for (const task of tasks) yield* holds("the task", task.id, stored(task, owner))
    })
  },
  {
    name: "what a task suspended and was resumed with comes back as it was, null and nothing told apart",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      for (const data of values) {
        const { owner, task } = yield* freshStored({ status: "running", attempt: 1 })
        const { id } = task
        const suspended: Task = { ...task, status: "suspended", suspendedAt: time(0), suspendData: data }
        const suspension = Option.some({ at: time(0), data })
        yield* store.update(id, { statuses: ["running"] }, { status: "suspended", suspension, owner: null })
        yield* holds("the suspended task", id, stored(suspended, undefined))
        const resumption = { status: "running" as const, suspension: Option.none(), resumeData: data, owner }
        yield* store.update(id, { statuses: ["suspended"] }, resumption)
        yield* holds("the resumed task", id, stored(task, owner, { resumeData: Option.some(data) }))
      }
    })
  },
  {
    name: "long values come back as they were",
    run: Effect.gen(function* () {
      const text = `${"\u4f60\u597d\ud83d\ude00'\"\\ ".repeat(60_000)}end`
      const { owner, task } = yield* freshStored({
        args: { text },
        status: "completed",
        result: [text, text]
      })
      yield* holds("the task", task.id, stored(task, owner))
    })
  },
  {
    name: "delivered is said of settled tasks only",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      for (const status of statuses) {
        const isSettled = settled.includes(status)
        const { owner, task } = yield* freshStored({ status, completedAt: time(0) })
        yield* same(`whether a ${status} task is told`, yield* store.delivered(task.id), isSettled)
        yield* holds(`the ${status} task`, task.id, stored(task, owner, { isDelivered: isSettled }))
      }
      yield* same("whether one that is not there is told", yield* store.delivered(freshId()), false)
    })
  },
  {
    name: "places tell where tasks stand, and nothing of those that are not there",
    run: Effect.gen(function* () {
      const store = yield* TaskStore
      const owner = yield* freshOwner
      const tasks = statuses.map(status => freshTask({ status }))
      yield* createAll([...tasks, freshTask()], owner)
      const [first] = tasks
      if (first !== undefined) yield* store.update(first.id, { statuses }, { owner: null })
      const missing = upTo(5000).map(() => freshId())
      const ids = tasks.map(({ id }) => id)
      const places = yield* store.places([...missing, ...ids, ...missing])
      const sorted = [...places].sort((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id))
      const expected = tasks.map(task => ({
        id: task.id,
        status: task.status,
        owner: task === first ? null : owner
      }))
      yield* same("the places", sorted, expected)
      yield* same("the places of none", yield* store.places([]), [])
      yield* same("the places of those that are not there", yield* store.places(missing), [])
    })
  }
]

/** Tasks, owners and turns that conformance cases need. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { statuses, type Task, type TaskStatus } from "../../protocol/Task.js"
import { type StoredTask, TaskStore } from "../TaskStore.js"
import { type CaseOf, freshId, same } from "./kit.js"

/** A task that nobody has yet. */
export const freshTask = (more: Partial<Task> = {}): Task => ({
  id: freshId(),
  status: "pending",
  toolName: "look",
  toolCallId: freshId(),
  args: {},
  agentId: freshId(),
  runId: freshId(),
  createdAt: new Date(20_000),
  attempt: 0,
  maxRetries: 0,
  timeoutMs: 60_000,
  ...more
})

/** A lease that outlives every case: what is its owner's, no case that inherits takes away. */
export const forCenturies = "100000 days"

/** An owner who has a lease for centuries. */
export const freshOwner = Effect.gen(function* () {
  const store = yield* TaskStore
  const owner = freshId()
  yield* store.renewLease(owner, forCenturies)
  return owner
})

/** Stores tasks of one owner, one after the other. */
export const createAll = (tasks: ReadonlyArray<Task>, owner: string) =>
  Effect.flatMap(TaskStore, store =>
    Effect.forEach(tasks, task => store.create(task, owner), { discard: true })
  )

/** Stores a task of an owner who outlives every case. */
export const freshStored = (more: Partial<Task> = {}) =>
  Effect.flatMap(freshOwner, owner => {
    const task = freshTask(more)
    return Effect.as(createAll([task], owner), { task, owner })
  })

/** A time of this many milliseconds after one that is long past. */
export const time = (milliseconds: number): Date => new Date(1_700_000_000_000 + milliseconds)

/** What `get` gives of a task that is not told yet. */
export const stored = (task: Task, owner: string | undefined, more: Partial<StoredTask> = {}) =>
  Option.some({ task, owner, resumeData: Option.none(), isDelivered: false, ...more })

/** Fails unless `get` gives this. */
export const holdsTask = (what: string, id: string, expected: Option.Option<StoredTask>) =>
  Effect.flatMap(TaskStore, store => Effect.flatMap(store.get(id), found => same(what, found, expected)))

/** The statuses from which nothing leads away. */
export const settled: ReadonlyArray<TaskStatus> = ["completed", "failed", "timed_out", "cancelled"]

/** More than there are cases that may run at the same time. */
const most = 10_000

const turns = Effect.unsafeMakeSemaphore(most)

/** A case that may run beside others, but beside none that runs alone. */
export const together = (each: CaseOf<TaskStore>): CaseOf<TaskStore> => ({
  ...each,
  run: turns.withPermits(1)(each.run)
})

/**
 * Alone: to delete and to inherit concerns what other cases have stored. What is left of this agent afterwards is settled,
 * delivered and deleted.
 */
export const alone = <A, E>(run: (agentId: string) => Effect.Effect<A, E, TaskStore>) =>
  turns.withPermits(most)(
    Effect.suspend(() => {
      const agentId = freshId()
      return Effect.ensuring(run(agentId), Effect.ignore(sweep(agentId)))
    })
  )

const sweep = Effect.fnUntraced(function* (agentId: string) {
  const store = yield* TaskStore
  const { tasks } = yield* store.list({ agentId, perPage: Number.POSITIVE_INFINITY })
  for (const { id } of tasks) {
    yield* store.update(
      id,
      { statuses },
      { status: "cancelled", completedAt: new Date(0), isDelivered: true }
    )
  }
  yield* store.deleteSettled(["cancelled"], 0)
})

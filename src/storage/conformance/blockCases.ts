/** What a store must do with the runs of a thread: the messages of one stand together, in the order in which the runs started. */
import * as Effect from "effect/Effect"
import { type NewMessage, ThreadStore } from "../ThreadStore.js"
import { type Case, failsWith, freshId, freshThread, idsOf, same, say, upTo } from "./kit.js"

const of = (runId: string, message: NewMessage): NewMessage => ({ ...message, runId })

/** Appends messages, each in a call of its own, told by run and id: `A:1`. A small letter before the id is its role. */
const appended = (threadId: string, messages: ReadonlyArray<string>) =>
  Effect.flatMap(ThreadStore, store =>
    Effect.forEach(messages, message => {
      const [runId = "", id = ""] = message.split(":")
      return store.append(threadId, [of(runId, say(message, id, id[0]))])
    })
  )

const holdsInOrder = (threadId: string, ids: ReadonlyArray<string>, last?: number) =>
  Effect.flatMap(ThreadStore, store =>
    Effect.flatMap(store.messages(threadId, last === undefined ? {} : { last }), messages =>
      same(last === undefined ? "the messages in order" : `the last ${last}`, idsOf(messages), ids)
    )
  )

export const blockCases: ReadonlyArray<Case> = [
  {
    name: "messages of one run stand together, in the order in which the runs started",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* same("the block of A", yield* store.startRun(id, "A"), 1)
      yield* same("the block of B", yield* store.startRun(id, "B"), 2)
      yield* appended(id, ["B:u1", "A:u1", "B:a2", "C:u1", "A:a2"])
      yield* holdsInOrder(id, ["A:u1", "A:a2", "B:u1", "B:a2", "C:u1"])
      const places = (yield* store.messages(id)).map(({ block, sequence }) => [block, sequence])
      yield* same("their places", places, [
        [1, 2],
        [1, 5],
        [2, 1],
        [2, 3],
        [3, 4]
      ])
    })
  },
  {
    name: "a run that goes on later keeps its block",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* appended(id, ["A:u1", "B:u1", "B:a2"])
      yield* same("the block of A", yield* store.startRun(id, "A"), 1)
      yield* same("the block of B", yield* store.startRun(id, "B"), 2)
      yield* appended(id, ["A:a2"])
      yield* holdsInOrder(id, ["A:u1", "A:a2", "B:u1", "B:a2"])
    })
  },
  {
    name: "messages that no run sent stand behind all that started before",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* store.startRun(id, "A")
      yield* store.append(id, [say("x"), say("y")])
      yield* store.append(id, [say("z")])
      yield* appended(id, ["A:u1", "B:u1"])
      yield* holdsInOrder(id, ["A:u1", "x", "y", "z", "B:u1"])
    })
  },
  {
    name: "what is recalled begins where a turn begins, in the order of blocks",
    run: Effect.gen(function* () {
      const { id } = yield* freshThread()
      yield* appended(id, ["A:u1", "B:u1", "B:a2", "A:a2", "A:a3"])
      const all = ["A:u1", "A:a2", "A:a3", "B:u1", "B:a2"]
      const counts = [2, 2, 5, 5, 5, 5]
      yield* Effect.forEach(counts, (count, index) => holdsInOrder(id, all.slice(-count), index + 1))
    })
  },
  {
    name: "deleteAfter takes away what stands behind a message in the order of blocks",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* appended(id, ["A:u1", "B:u1", "B:a2", "A:a2", "A:a3"])
      yield* store.deleteAfter(id, "A:a2")
      yield* holdsInOrder(id, ["A:u1", "A:a2"])
      yield* appended(id, ["B:u3", "A:a4"])
      yield* holdsInOrder(id, ["A:u1", "A:a2", "A:a4", "B:u3"])
      yield* store.deleteAfter(id, "A:a4")
      yield* holdsInOrder(id, ["A:u1", "A:a2", "A:a4"])
    })
  },
  {
    name: "blocks belong to one thread, and go with it",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const [one, other] = [yield* freshThread(), yield* freshThread()]
      yield* store.startRun(one.id, "A")
      yield* store.startRun(one.id, "B")
      yield* same("the block of B in the other", yield* store.startRun(other.id, "B"), 1)
      yield* store.delete(one.id)
      yield* failsWith("startRun", "ThreadNotFound", store.startRun(one.id, "B"))
      yield* store.open(one)
      yield* same("the block of B in the new one", yield* store.startRun(one.id, "B"), 1)
      yield* failsWith("startRun of no thread", "ThreadNotFound", store.startRun(freshId(), "A"))
    })
  },
  {
    name: "startRun does not count as a change of the thread",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const resourceId = freshId()
      const first = yield* freshThread({ resourceId })
      const second = yield* freshThread({ resourceId })
      yield* store.startRun(first.id, "A")
      const { threads } = yield* store.list({ resourceId })
      yield* same("the threads", threads, [second, first])
    })
  },
  {
    name: "runs that start at the same time get different blocks",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const runs = upTo(40).map(String)
      const blocks = yield* Effect.forEach(runs, run => store.startRun(id, run), { concurrency: "unbounded" })
      yield* same(
        "the blocks",
        [...blocks].sort((one, other) => one - other),
        upTo(40)
      )
    })
  }
]

/** What a store must do with the messages of a thread: their order, their places, and how many are recalled. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { type NewMessage, type ThreadMessage, ThreadStore } from "../ThreadStore.js"
import {
  at,
  type Case,
  conversation,
  failsWith,
  freshId,
  freshThread,
  holds,
  idsOf,
  same,
  say,
  upTo
} from "./kit.js"

/** Roles of a thread, and how many messages come when the last 0, 1, 2, … are asked for. */
const recalls: ReadonlyArray<readonly [letters: string, counts: ReadonlyArray<number>]> = [
  ["", [0, 0]],
  ["u", [0, 1, 1]],
  ["a", [0, 1, 1]],
  ["uuu", [0, 1, 2, 3, 3]],
  ["uaua", [0, 2, 2, 4, 4, 4]],
  ["uatauata", [0, 4, 4, 4, 4, 8, 8, 8, 8, 8]],
  ["suau", [0, 1, 3, 3, 4, 4]],
  ["uusa", [0, 3, 3, 3, 4, 4]],
  ["aat", [0, 3, 3, 3, 3]],
  ["aatau", [0, 1, 5, 5, 5, 5, 5]]
]

const batch = (name: string, size: number): ReadonlyArray<NewMessage> =>
  upTo(size).map(number => say(`${name}.${number}`))

const batchOf = (id: string): string => id.split(".")[0] ?? ""

/** Fails unless each batch is there whole, with nothing of another in between. */
const areWhole = (what: string, messages: ReadonlyArray<ThreadMessage>, size: number) => {
  const ids = idsOf(messages)
  const batches = [...new Set(ids.map(batchOf))]
  return same(
    what,
    ids,
    batches.flatMap(name => idsOf(batch(name, size)))
  )
}

/** One case each. */
export const messageCases: ReadonlyArray<Case> = [
  {
    name: "append adds messages at the end, in their order",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const first = { ...say("b"), runId: "run-1" }
      const stored = yield* at(1000)(store.append(id, [first, say("a", "two", "a")]))
      const later = yield* at(2000)(store.append(id, [{ ...say("c"), runId: "run-2" }]))
      const expected: ReadonlyArray<ThreadMessage> = [
        { ...first, threadId: id, block: 1, sequence: 1, createdAt: new Date(1000) },
        { ...say("a", "two", "a"), threadId: id, block: 2, sequence: 2, createdAt: new Date(1000) },
        { ...say("c"), runId: "run-2", threadId: id, block: 3, sequence: 3, createdAt: new Date(2000) }
      ]
      yield* same("what append gives", [...stored, ...later], expected)
      yield* same("the stored messages", yield* store.messages(id), expected)
    })
  },
  {
    name: "the order is that of appending, whatever clocks and ids say",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const ids = ["9", "10", "z", "a", "M", "1", "e", "d"]
      // A clock that stands, and then goes backwards.
      const times = [5000, 5000, 5000, 5000, 5000, 4000, 3000, 2000]
      yield* Effect.forEach(ids, (message, index) => at(times[index] ?? 0)(store.append(id, [say(message)])))
      yield* holds(id, ids)
      const created = (yield* store.messages(id)).map(({ createdAt }) => createdAt.getTime())
      yield* same("the times", created, times)
      const recalled = yield* store.messages(id, { last: 3 })
      yield* same("the last 3", idsOf(recalled), ids.slice(-3))
    })
  },
  {
    name: "append touches the time of the thread, and nothing else of it",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const thread = yield* at(1000)(freshThread({ title: "title", metadata: { a: 1 } }))
      yield* at(2000)(store.append(thread.id, [say("one")]))
      const touched = { ...thread, updatedAt: new Date(2000) }
      yield* same("the thread", yield* store.get(thread.id), Option.some(touched))
      yield* at(3000)(store.append(thread.id, [say("one", "again")]))
      const again = { ...thread, updatedAt: new Date(3000) }
      yield* same("the thread after a message was replaced", yield* store.get(thread.id), Option.some(again))
    })
  },
  {
    name: "a message whose id is there already takes that one's place",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* at(1000)(store.append(id, [{ ...say("a"), runId: "run-1" }, say("b"), say("c")]))
      const stored = yield* at(2000)(
        store.append(id, [say("d"), { ...say("b", "new", "a"), runId: "run-2" }, say("a", "new")])
      )
      const [a, b, c, d]: ReadonlyArray<ThreadMessage> = [
        { ...say("a", "new"), threadId: id, block: 1, sequence: 1, createdAt: new Date(1000) },
        {
          ...say("b", "new", "a"),
          runId: "run-2",
          threadId: id,
          block: 2,
          sequence: 2,
          createdAt: new Date(1000)
        },
        { ...say("c"), threadId: id, block: 2, sequence: 3, createdAt: new Date(1000) },
        { ...say("d"), threadId: id, block: 3, sequence: 4, createdAt: new Date(2000) }
      ]
      yield* same("what append gives, in the order given", stored, [d, b, a])
      yield* same("the stored messages", yield* store.messages(id), [a, b, c, d])
      yield* store.append(id, [say("e")])
      yield* holds(id, ["a", "b", "c", "d", "e"])
    })
  },
  {
    name: "of messages of one id in one call the last counts, at the place of the first",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const time = { threadId: id, block: 1, createdAt: new Date(1000) }
      const stored = yield* at(1000)(store.append(id, [say("a", "old"), say("b"), say("a", "new")]))
      const a = { ...say("a", "new"), ...time, sequence: 1 }
      const b = { ...say("b"), ...time, sequence: 2 }
      yield* same("what append gives", stored, [a, b, a])
      yield* same("the stored messages", yield* store.messages(id), [a, b])
    })
  },
  {
    name: "threads may hold messages of the same id",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const [one, other] = yield* Effect.all([freshThread(), freshThread()])
      yield* store.append(one.id, [say("a", "of one"), say("b", "of one")])
      yield* store.append(other.id, [say("b", "of the other"), say("a", "of the other")])
      yield* holds(one.id, ["a", "b"])
      yield* holds(other.id, ["b", "a"])
      const messages = (yield* store.messages(one.id)).map(({ message }) => message)
      yield* same("the messages of one", messages, [say("a", "of one").message, say("b", "of one").message])
    })
  },
  {
    name: "append refuses a thread that is not there, and makes none",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const [id, resourceId] = [freshId(), freshId()]
      yield* failsWith("append", "ThreadNotFound", store.append(id, [say("a")]))
      yield* failsWith("append of nothing", "ThreadNotFound", store.append(id, []))
      yield* same("the thread", yield* store.get(id), Option.none())
      yield* store.open({ id, resourceId })
      yield* holds(id, [])
    })
  },
  {
    name: "append of nothing changes nothing",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const thread = yield* at(1000)(freshThread())
      yield* same("what append gives", yield* at(2000)(store.append(thread.id, [])), [])
      yield* same("the thread", yield* store.get(thread.id), Option.some(thread))
    })
  },
  {
    name: "append of many messages at once keeps all, in order",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const messages = conversation("uata".repeat(300))
      const stored = yield* store.append(id, messages)
      yield* same("the ids that append gives", idsOf(stored), idsOf(messages))
      yield* holds(id, idsOf(messages))
    })
  },
  {
    name: "messages of a thread that is not there are none",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      yield* same("all", yield* store.messages(freshId()), [])
      yield* same("the last 3", yield* store.messages(freshId(), { last: 3 }), [])
    })
  },
  {
    name: "messages begin where the turn begins that the last so many begin in",
    run: Effect.forEach(
      recalls,
      Effect.fnUntraced(function* ([letters, counts]) {
        const store = yield* ThreadStore
        const { id } = yield* freshThread()
        // One by one: batches are no turns.
        yield* Effect.forEach(conversation(letters), message => store.append(id, [message]))
        const all = yield* store.messages(id)
        yield* same(`all of ${letters}`, all.length, letters.length)
        for (const [last, count] of counts.entries()) {
          const recalled = yield* store.messages(id, { last })
          yield* same(`the last ${last} of "${letters}"`, recalled, all.slice(all.length - count))
        }
      }),
      { discard: true }
    )
  },
  {
    name: "messages of a long thread come as many as are asked for",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const messages = conversation("ua".repeat(150))
      yield* store.append(id, messages)
      const last = (last: number) => Effect.map(store.messages(id, { last }), idsOf)
      yield* same("the last 40", yield* last(40), idsOf(messages.slice(-40)))
      yield* same("the last 39", yield* last(39), idsOf(messages.slice(-40)))
      yield* same("the last 38.5", yield* last(38.5), idsOf(messages.slice(-38)))
      yield* same("the last infinitely many", yield* last(Infinity), idsOf(messages))
      yield* same("less than none", yield* last(-1), [])
      yield* same("not a number", yield* last(Number.NaN), [])
    })
  },
  {
    name: "a message that was replaced counts with its new role",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* store.append(id, [say("a"), say("b"), say("c", "c", "a"), say("d", "d", "a")])
      yield* store.append(id, [say("b", "b", "a"), say("c")])
      yield* same("the last 1", idsOf(yield* store.messages(id, { last: 1 })), ["c", "d"])
      yield* same("the last 3", idsOf(yield* store.messages(id, { last: 3 })), ["a", "b", "c", "d"])
    })
  },
  {
    name: "appends from many fibers keep their batches whole",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const names = upTo(20).map(String)
      const stored = yield* Effect.forEach(names, name => store.append(id, batch(name, 5)), {
        concurrency: "unbounded"
      })
      const all = yield* store.messages(id)
      yield* areWhole("the batches", all, 5)
      yield* holds(id, idsOf(all))
      const given = stored.flat().sort((one, other) => one.sequence - other.sequence)
      yield* same("what the appends gave", given, all)
      yield* same("the number of messages", all.length, 100)
    })
  },
  {
    name: "nobody sees half of a batch",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const names = upTo(20).map(String)
      const writer = yield* Effect.fork(Effect.forEach(names, name => store.append(id, batch(name, 5))))
      while (Option.isNone(yield* Fiber.poll(writer))) {
        yield* areWhole("the batches that are seen", yield* store.messages(id), 5)
        yield* Effect.yieldNow()
      }
      yield* Fiber.join(writer)
      yield* same("the number of messages", (yield* store.messages(id)).length, 100)
    })
  },
  {
    name: "an append that is interrupted has stored all or nothing",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      // Interrupted later each time, so that some are caught in the middle.
      for (const turns of upTo(40)) {
        const append = yield* Effect.fork(store.append(id, batch(String(turns), 5)))
        yield* Effect.repeatN(Effect.yieldNow(), turns)
        yield* Fiber.interrupt(append)
      }
      const all = yield* store.messages(id)
      yield* areWhole("the batches", all, 5)
      yield* holds(id, idsOf(all))
    })
  },
  {
    name: "one message from many fibers is there once",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const texts = upTo(16).map(String)
      yield* Effect.forEach(texts, text => store.append(id, [say("a", text), say(text)]), {
        concurrency: "unbounded"
      })
      const all = yield* store.messages(id)
      yield* same("the number of messages", all.length, 17)
      yield* holds(id, idsOf(all))
      yield* same("the first message", all[0]?.id, "a")
    })
  },
  {
    name: "a thread that is deleted while others append leaves no messages",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id, resourceId } = yield* freshThread()
      const appends = upTo(16).map(name => Effect.ignore(store.append(id, batch(String(name), 3))))
      const all = [...appends.slice(0, 8), store.delete(id), ...appends.slice(8)]
      yield* Effect.all(all, { concurrency: "unbounded", discard: true })
      yield* same("the thread", yield* store.get(id), Option.none())
      yield* same("its messages", yield* store.messages(id), [])
      yield* store.open({ id, resourceId })
      yield* holds(id, [])
    })
  }
]

/** What a store must do with threads. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { type NewThread, ThreadStore } from "../ThreadStore.js"
import { at, type Case, failsWith, freshId, freshThread, holds, idsOf, lookalikes, same, say } from "./kit.js"

const open = (thread: NewThread) => Effect.flatMap(ThreadStore, store => store.open(thread))

const metadata = {
  text: 'a "quoted" \\ line\n\u2028\u0000\ud83d\ude00',
  numbers: [0, -1.5, 1e308, 5e-324, Number.MAX_SAFE_INTEGER],
  nothing: null,
  yes: true,
  "": { deep: [[[{ er: [] }]]], none: {} },
  constructor: "data",
  ...JSON.parse('{"__proto__":{"is":"data"}}')
}

/** One case each. */
export const threadCases: ReadonlyArray<Case> = [
  {
    name: "open makes a thread of what is given",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const given = { id: freshId(), resourceId: freshId(), title: "A title", metadata }
      const opened = yield* at(1_700_000_000_123)(store.open(given))
      const time = new Date(1_700_000_000_123)
      yield* same("the thread", opened, { ...given, createdAt: time, updatedAt: time })
      yield* same("the stored thread", yield* store.get(given.id), Option.some(opened))
      const bare = { id: freshId(), resourceId: given.resourceId }
      const barely = yield* at(5)(store.open(bare))
      yield* same("a bare thread", barely, { ...bare, createdAt: new Date(5), updatedAt: new Date(5) })
      yield* same("the stored bare thread", yield* store.get(bare.id), Option.some(barely))
    })
  },
  {
    name: "open gives a thread that is there as it is",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const first = yield* at(1000)(freshThread({ title: "first", metadata: { first: true } }))
      yield* store.append(first.id, [say("one")]).pipe(at(2000))
      const { id, resourceId } = first
      const again = yield* at(3000)(store.open({ id, resourceId, title: "again", metadata: { again: true } }))
      yield* same("the thread opened again", again, { ...first, updatedAt: new Date(2000) })
      yield* holds(id, ["one"])
    })
  },
  {
    name: "open refuses a thread of another resource, and leaves it as it is",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread({ title: "mine" })
      const before = yield* store.get(id)
      const resourceId = freshId()
      yield* failsWith("open by another resource", "ThreadNotFound", open({ id, resourceId, title: "yours" }))
      yield* same("the thread", yield* store.get(id), before)
      yield* same("the threads of the other", yield* store.list({ resourceId }), { threads: [], total: 0 })
    })
  },
  {
    name: "open from many fibers makes one thread",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const [id, resourceId] = [freshId(), freshId()]
      const titles = Array.from({ length: 16 }, (_, index) => `title ${index}`)
      const opened = yield* Effect.forEach(titles, title => open({ id, resourceId, title }), {
        concurrency: "unbounded"
      })
      const stored = yield* store.get(id)
      for (const thread of opened) yield* same("the thread of each fiber", Option.some(thread), stored)
      yield* same("the number of threads", (yield* store.list({ resourceId })).total, 1)
    })
  },
  {
    name: "open from many resources gives the thread to one",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const id = freshId()
      const resources = Array.from({ length: 8 }, freshId)
      const results = yield* Effect.forEach(
        resources,
        resourceId => Effect.either(open({ id, resourceId })),
        { concurrency: "unbounded" }
      )
      const owners = results.filter(Either.isRight).map(({ right }) => right.resourceId)
      const stored = Option.toArray(yield* store.get(id)).map(({ resourceId }) => resourceId)
      yield* same("the resources that got it", owners, stored)
      yield* same("the number of owners", owners.length, 1)
    })
  },
  {
    name: "get gives nothing of a thread that is not there",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      yield* same("the thread", yield* store.get(freshId()), Option.none())
    })
  },
  {
    name: "ids are told apart exactly",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const prefix = freshId()
      const resources = lookalikes.map(id => prefix + id)
      // Forwards, backwards: none may be taken for one that was there before.
      yield* Effect.forEach(resources, (id, index) => open({ id, resourceId: id, title: `${index}` }))
      for (const [index, id] of [...resources.entries()].reverse()) {
        const thread = Option.map(yield* store.get(id), ({ id, title }) => ({ id, title }))
        yield* same(`thread ${JSON.stringify(id)}`, thread, Option.some({ id, title: `${index}` }))
        const { threads, total } = yield* store.list({ resourceId: id })
        yield* same(`the threads of resource ${JSON.stringify(id)}`, [idsOf(threads), total], [[id], 1])
      }
      const { id } = yield* freshThread()
      yield* store.append(
        id,
        lookalikes.map(id => say(id))
      )
      yield* holds(id, lookalikes)
    })
  },
  {
    name: "strings and metadata of a thread are made safe",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const unique = freshId()
      const given = {
        id: `${unique}\ud83d`,
        resourceId: `${unique}\ude00`,
        title: "half \ud83d and \ud83d\ude00",
        metadata: { "\udc00": "\ud800", number: Number.NaN }
      }
      const safe = {
        id: `${unique}\ufffd`,
        resourceId: `${unique}\ufffd`,
        title: "half \ufffd and \ud83d\ude00",
        metadata: { "\ufffd": "\ufffd", number: null }
      }
      const time = { createdAt: new Date(7), updatedAt: new Date(7) }
      yield* same("the thread", yield* at(7)(store.open(given)), { ...safe, ...time })
      yield* same("the thread by its given id", yield* store.get(given.id), yield* store.get(safe.id))
      const { total } = yield* store.list({ resourceId: given.resourceId })
      yield* same("the threads by the given resource", total, 1)
      const updated = yield* at(7)(store.update(given.id, { title: "\ud83d", metadata: { at: Infinity } }))
      const changed = { title: "\ufffd", metadata: { at: null } }
      yield* same("the updated thread", updated, { ...safe, ...time, ...changed })
      yield* store.append(given.id, [say("one")])
      yield* holds(given.id, ["one"])
      yield* same("whether it was deleted by its given id", yield* store.delete(given.id), true)
    })
  },
  {
    name: "list gives the thread that changed last first, whatever the clock says",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const resourceId = freshId()
      const [a, b, c] = yield* Effect.all([
        at(3000)(freshThread({ resourceId })),
        at(3000)(freshThread({ resourceId })),
        at(2000)(freshThread({ resourceId }))
      ])
      const order = Effect.map(store.list({ resourceId }), ({ threads }) => idsOf(threads))
      yield* same("the order of opening", yield* order, [c.id, b.id, a.id])
      yield* at(3000)(store.append(a.id, [say("one")]))
      yield* same("the order after an append", yield* order, [a.id, c.id, b.id])
      yield* at(1000)(store.update(b.id, { title: "changed" }))
      yield* same("the order after an update", yield* order, [b.id, a.id, c.id])
      yield* at(3000)(store.append(c.id, [say("one")]))
      yield* at(3000)(store.append(a.id, [say("one", "again")]))
      yield* same("the order after a message was replaced", yield* order, [a.id, c.id, b.id])
      yield* at(9000)(store.open({ id: b.id, resourceId }))
      yield* at(9000)(store.append(b.id, []))
      yield* same("the order after nothing was changed", yield* order, [a.id, c.id, b.id])
    })
  },
  {
    name: "list gives pages, and the total",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const resourceId = freshId()
      const threads = yield* Effect.forEach([1, 2, 3, 4, 5], () => freshThread({ resourceId }))
      yield* freshThread()
      const newest = [...threads].reverse()
      const page = (page: number, perPage: number) => store.list({ resourceId, page, perPage })
      yield* same("all", yield* store.list({ resourceId }), { threads: newest, total: 5 })
      yield* same("page 0", yield* page(0, 2), { threads: newest.slice(0, 2), total: 5 })
      yield* same("page 1", yield* page(1, 2), { threads: newest.slice(2, 4), total: 5 })
      yield* same("the last page", yield* page(2, 2), { threads: newest.slice(4), total: 5 })
      yield* same("the page behind the last", yield* page(3, 2), { threads: [], total: 5 })
      yield* same("a page of none", yield* page(0, 0), { threads: [], total: 5 })
      yield* same("a page of all", yield* page(0, Infinity), { threads: newest, total: 5 })
      yield* same("a page before the first", yield* page(-1, 2), yield* page(0, 2))
      yield* same("a broken page", yield* page(1.5, 2.5), yield* page(1, 2))
      yield* Effect.forEach(threads.slice(2, 3), ({ id }) => store.delete(id))
      const left = newest.filter(thread => thread !== threads[2])
      yield* same("page 1 after one was deleted", yield* page(1, 2), { threads: left.slice(2), total: 4 })
    })
  },
  {
    name: "list without a resource gives threads of all",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      yield* freshThread()
      yield* freshThread()
      const { threads, total } = yield* store.list({ perPage: 1 })
      yield* same("the number of threads on a page", threads.length, 1)
      yield* same("whether the total counts the threads of all", total >= 2, true)
    })
  },
  {
    name: "update sets what is given and nothing else",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const thread = yield* at(1000)(freshThread({ title: "old", metadata: { old: 1, kept: 2 } }))
      const { id } = thread
      yield* store.append(id, [say("one")])
      const titled = yield* at(2000)(store.update(id, { title: "" }))
      yield* same("the title", titled, { ...thread, title: "", updatedAt: new Date(2000) })
      const marked = yield* at(3000)(store.update(id, { metadata: { new: 3 } }))
      yield* same("the metadata", marked, { ...titled, metadata: { new: 3 }, updatedAt: new Date(3000) })
      const both = yield* at(4000)(store.update(id, { title: "new", metadata: {} }))
      const expected = { ...thread, title: "new", metadata: {}, updatedAt: new Date(4000) }
      yield* same("both", both, expected)
      const touched = yield* at(5000)(store.update(id, {}))
      yield* same("nothing but the time", touched, { ...expected, updatedAt: new Date(5000) })
      yield* same("the stored thread", yield* store.get(id), Option.some(touched))
      yield* holds(id, ["one"])
    })
  },
  {
    name: "update refuses a thread that is not there, and makes none",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const id = freshId()
      yield* failsWith("update", "ThreadNotFound", store.update(id, { title: "new" }))
      yield* same("the thread", yield* store.get(id), Option.none())
    })
  },
  {
    name: "updates of different things from two fibers both count",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const changes = [{ title: "new" }, { metadata: { new: true } }]
      yield* Effect.forEach(changes, change => store.update(id, change), { concurrency: "unbounded" })
      const thread = Option.map(yield* store.get(id), ({ metadata, title }) => ({ metadata, title }))
      yield* same("the thread", thread, Option.some({ title: "new", metadata: { new: true } }))
    })
  },
  {
    name: "delete removes a thread and its messages, and no other",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const resourceId = freshId()
      const [kept, gone] = yield* Effect.all([freshThread({ resourceId }), freshThread({ resourceId })])
      yield* store.append(kept.id, [say("one"), say("two")])
      yield* store.append(gone.id, [say("one"), say("two")])
      yield* same("whether there was one", yield* store.delete(gone.id), true)
      yield* same("the thread", yield* store.get(gone.id), Option.none())
      yield* same("its messages", yield* store.messages(gone.id), [])
      yield* failsWith("append", "ThreadNotFound", store.append(gone.id, [say("three")]))
      yield* same("whether there is one still", yield* store.delete(gone.id), false)
      yield* same("what is listed", (yield* store.list({ resourceId })).total, 1)
      yield* holds(kept.id, ["one", "two"])
      yield* store.open({ id: gone.id, resourceId: freshId() })
      yield* holds(gone.id, [])
      yield* store.append(gone.id, [say("two")])
      yield* holds(gone.id, ["two"])
    })
  }
]

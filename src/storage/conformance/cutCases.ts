/** What a store must do when a thread is cut: what stands behind a message goes, and nothing else. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { ThreadStore } from "../ThreadStore.js"
import { at, type Case, freshThread, holds, lookalikes, same, say, upTo } from "./kit.js"

const cuts = (threadId: string, messageId: string, expected = true) =>
  Effect.flatMap(ThreadStore, store =>
    Effect.flatMap(store.deleteAfter(threadId, messageId), isDone =>
      same(`whether there was a message ${JSON.stringify(messageId)}`, isDone, expected)
    )
  )

export const cutCases: ReadonlyArray<Case> = [
  {
    name: "deleteAfter takes away what stands behind a message, by its place",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      // By time and by id they would stand in another order.
      yield* at(3000)(store.append(id, [say("c"), say("a")]))
      yield* at(1000)(store.append(id, [say("d"), say("b")]))
      yield* cuts(id, "a")
      yield* holds(id, ["c", "a"])
      yield* cuts(id, "a")
      yield* holds(id, ["c", "a"])
      yield* cuts(id, "c")
      yield* holds(id, ["c"])
    })
  },
  {
    name: "what is appended to a thread that was cut takes the places that are free, without gaps",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* at(1000)(store.append(id, [say("a"), say("b"), say("c")]))
      yield* cuts(id, "a")
      const appended = yield* at(2000)(store.append(id, [say("c", "again"), say("d")]))
      const places = appended.map(({ createdAt, sequence }) => [sequence, createdAt.getTime()])
      yield* same("the places", places, [
        [2, 2000],
        [3, 2000]
      ])
      yield* holds(id, ["a", "c", "d"])
    })
  },
  {
    name: "deleteAfter leaves other threads alone, and a thread without the message",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const [one, other] = [yield* freshThread(), yield* freshThread()]
      yield* store.append(one.id, [say("a"), say("b")])
      yield* store.append(other.id, [say("x"), say("a"), say("b"), say("c")])
      yield* cuts(one.id, "x", false)
      yield* cuts(`${one.id}-no`, "a", false)
      yield* holds(one.id, ["a", "b"])
      yield* cuts(one.id, "a")
      yield* holds(one.id, ["a"])
      yield* holds(other.id, ["x", "a", "b", "c"])
    })
  },
  {
    name: "deleteAfter knows ids exactly",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* store.append(
        id,
        lookalikes.map(message => say(message))
      )
      for (const count of upTo(lookalikes.length).map(index => lookalikes.length - index)) {
        yield* cuts(id, lookalikes[count] ?? "nobody", lookalikes[count] !== undefined)
        yield* holds(id, lookalikes.slice(0, count + 1))
      }
    })
  },
  {
    name: "deleteAfter touches the time of the thread, where it has the message",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const thread = yield* at(1000)(freshThread({ title: "title" }))
      yield* at(1000)(store.append(thread.id, [say("a"), say("b")]))
      yield* at(2000)(cuts(thread.id, "c", false))
      yield* same("the thread", yield* store.get(thread.id), Option.some(thread))
      yield* at(3000)(cuts(thread.id, "a"))
      const touched = { ...thread, updatedAt: new Date(3000) }
      yield* same("the thread that was cut", yield* store.get(thread.id), Option.some(touched))
    })
  },
  {
    name: "deleteAfter at the same time as append leaves all of a call, or none of it",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* store.append(id, [say("first"), say("old")])
      const batch = upTo(20).map(number => say(`new.${number}`))
      const appending = yield* Effect.fork(store.append(id, batch))
      yield* cuts(id, "first")
      yield* Fiber.join(appending)
      const [first, ...rest] = (yield* store.messages(id)).map(message => message.id)
      yield* same("the first message", first, "first")
      const whole = batch.map(message => message.id)
      yield* same("what came meanwhile", rest.length === 0 ? whole : rest, whole)
    })
  }
]

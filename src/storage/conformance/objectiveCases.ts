/** What a store must do with the objectives of threads, when its driver keeps them. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Objective from "../../protocol/Objective.js"
import { type OwnedThread, type Thread, ThreadStore } from "../ThreadStore.js"
import { at, type Case, failsWith, freshId, freshThread, holds, idsOf, lookalikes, same, say } from "./kit.js"

const owned = ({ id, resourceId }: Thread): OwnedThread => ({ threadId: id, resourceId })

const set = (thread: OwnedThread, objective: Option.Option<Objective.Objective>) =>
  Effect.flatMap(ThreadStore, store => store.changeObjective(thread, () => Either.right(objective)))

const get = (thread: OwnedThread) => Effect.flatMap(ThreadStore, store => store.objective(thread))

const begin = (text: string, maxRuns = 50) => Option.some(Objective.make(text, maxRuns, new Date(1000)))

const hasObjective = (thread: OwnedThread, expected: Option.Option<Objective.Objective>) =>
  Effect.flatMap(get(thread), found => same("the objective of the thread", found, expected))

const counted = (objective: Objective.Objective): Objective.Objective =>
  Objective.judged(objective, { outcome: "rejected", reason: `${objective.runsUsed + 1}` }, new Date(2000))

/** One evaluation more of whatever stands there. */
const count = (thread: OwnedThread) =>
  Effect.flatMap(ThreadStore, store =>
    store.changeObjective(thread, present => Either.right(Option.map(present, counted)))
  )

const odd = 'a "quoted" \\ line\n\u2028\u0000\ud83d\ude00 e\u0301 \u00e9 '

/** One case each. */
export const objectiveCases: ReadonlyArray<Case> = [
  {
    name: "a thread has no objective until one is set",
    run: Effect.gen(function* () {
      const thread = owned(yield* freshThread())
      yield* hasObjective(thread, Option.none())
      yield* same("the objective that was set", yield* set(thread, begin("First.")), begin("First."))
      yield* hasObjective(thread, begin("First."))
    })
  },
  {
    name: "an objective comes back as it was given",
    run: Effect.gen(function* () {
      const thread = owned(yield* freshThread())
      const texts = [odd, "  ", "null", "x".repeat(70_000)]
      for (const text of texts) {
        for (const status of Objective.statuses) {
          const objective: Objective.Objective = {
            objective: text,
            status,
            maxRuns: Number.MAX_SAFE_INTEGER,
            runsUsed: 3,
            reason: odd,
            createdAt: new Date(1_700_000_000_123),
            updatedAt: new Date(1_700_000_000_124)
          }
          yield* same("what was set", yield* set(thread, Option.some(objective)), Option.some(objective))
          yield* hasObjective(thread, Option.some(objective))
        }
      }
    })
  },
  {
    name: "the strings of an objective are made safe",
    run: Effect.gen(function* () {
      const thread = owned(yield* freshThread())
      const broken = Option.map(begin("half \ud83d"), objective => ({ ...objective, reason: "\udc00" }))
      const safe = Option.map(begin("half \ufffd"), objective => ({ ...objective, reason: "\ufffd" }))
      yield* same("what was set", yield* set(thread, broken), safe)
      yield* hasObjective(thread, safe)
    })
  },
  {
    name: "an objective is replaced whole, and taken away",
    run: Effect.gen(function* () {
      const thread = owned(yield* freshThread())
      yield* set(thread, begin("First."))
      yield* count(thread)
      yield* set(thread, begin("Second.", 3))
      yield* hasObjective(thread, begin("Second.", 3))
      yield* same("what is left", yield* set(thread, Option.none()), Option.none())
      yield* hasObjective(thread, Option.none())
      yield* set(thread, begin("Third."))
      yield* hasObjective(thread, begin("Third."))
    })
  },
  {
    name: "an objective is the thread's own",
    run: Effect.gen(function* () {
      const resourceId = freshId()
      const [one, other] = yield* Effect.all([freshThread({ resourceId }), freshThread({ resourceId })])
      yield* set(owned(one), begin("One."))
      yield* hasObjective(owned(other), Option.none())
      yield* set(owned(other), begin("Other."))
      yield* set(owned(one), Option.none())
      yield* hasObjective(owned(other), begin("Other."))
    })
  },
  {
    name: "threads of objectives are told apart exactly",
    run: Effect.gen(function* () {
      const prefix = freshId()
      const threads = lookalikes.map(id => ({ threadId: prefix + id, resourceId: prefix + id }))
      const store = yield* ThreadStore
      for (const { resourceId, threadId } of threads) yield* store.open({ id: threadId, resourceId })
      for (const [index, thread] of threads.entries()) yield* set(thread, begin(`${index}`))
      for (const [index, thread] of threads.entries()) yield* hasObjective(thread, begin(`${index}`))
      for (const { threadId } of threads) {
        const others = threads.filter(other => other.threadId !== threadId)
        for (const { resourceId } of others) {
          yield* failsWith("a look from a similar resource", "ThreadNotFound", get({ threadId, resourceId }))
        }
      }
    })
  },
  {
    name: "an objective of another resource's thread cannot be seen or changed",
    run: Effect.gen(function* () {
      const thread = owned(yield* freshThread())
      const foreign = { ...thread, resourceId: freshId() }
      yield* failsWith("a foreign look at nothing", "ThreadNotFound", get(foreign))
      yield* failsWith("a foreign objective", "ThreadNotFound", set(foreign, begin("Theirs.")))
      yield* hasObjective(thread, Option.none())
      yield* set(thread, begin("Mine."))
      yield* failsWith("a foreign look", "ThreadNotFound", get(foreign))
      yield* failsWith("a foreign change", "ThreadNotFound", set(foreign, begin("Theirs.")))
      yield* failsWith("a foreign end", "ThreadNotFound", set(foreign, Option.none()))
      yield* hasObjective(thread, begin("Mine."))
    })
  },
  {
    name: "a thread that is not there has no objective, and gets none",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const thread = { threadId: freshId(), resourceId: freshId() }
      yield* failsWith("a look", "ThreadNotFound", get(thread))
      yield* failsWith("an objective", "ThreadNotFound", set(thread, begin("Nothing.")))
      yield* same("the thread", yield* store.get(thread.threadId), Option.none())
      yield* store.open({ id: thread.threadId, resourceId: thread.resourceId })
      yield* hasObjective(thread, Option.none())
    })
  },
  {
    name: "an objective goes with its thread",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const [kept, gone] = yield* Effect.all([freshThread(), freshThread()])
      yield* set(owned(kept), begin("Kept."))
      yield* set(owned(gone), begin("Gone."))
      yield* store.delete(gone.id)
      yield* failsWith("a look", "ThreadNotFound", get(owned(gone)))
      yield* failsWith("a change", "ThreadNotFound", count(owned(gone)))
      yield* store.open({ id: gone.id, resourceId: gone.resourceId })
      yield* hasObjective(owned(gone), Option.none())
      yield* hasObjective(owned(kept), begin("Kept."))
    })
  },
  {
    name: "opening, updating and appending leave an objective as it is, and it leaves them",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const resourceId = freshId()
      const first = yield* at(1000)(freshThread({ resourceId, title: "first" }))
      const second = yield* at(2000)(freshThread({ resourceId }))
      yield* at(3000)(set(owned(first), begin("First.")))
      yield* same("the thread", yield* store.get(first.id), Option.some(first))
      const { threads } = yield* store.list({ resourceId })
      yield* same("the order of the threads", idsOf(threads), [second.id, first.id])
      yield* at(4000)(store.append(first.id, [say("one")]))
      yield* at(5000)(store.update(first.id, { title: "changed" }))
      yield* at(6000)(store.open({ id: first.id, resourceId }))
      yield* hasObjective(owned(first), begin("First."))
      const changed = { ...first, title: "changed", updatedAt: new Date(5000) }
      yield* at(7000)(count(owned(first)))
      yield* same("the changed thread", yield* store.get(first.id), Option.some(changed))
      yield* holds(first.id, ["one"])
    })
  },
  {
    name: "a change that fails, or changes nothing, leaves the objective as it is",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const thread = owned(yield* freshThread())
      yield* set(thread, begin("First."))
      const refused = store.changeObjective(thread, () => Either.left({ _tag: "Refused" as const }))
      yield* failsWith("the change", "Refused", refused)
      yield* hasObjective(thread, begin("First."))
      const kept = yield* store.changeObjective(thread, present => Either.right(present))
      yield* same("what was not changed", kept, begin("First."))
      yield* hasObjective(thread, begin("First."))
    })
  },
  {
    name: "changes from many fibers all count, once each",
    run: Effect.gen(function* () {
      const thread = owned(yield* freshThread())
      yield* set(thread, begin("Counted."))
      const fibers = Array.from({ length: 16 }, () => count(thread))
      const told = yield* Effect.all(fibers, { concurrency: "unbounded" })
      const runs = told.flatMap(objective =>
        Option.toArray(Option.map(objective, ({ runsUsed }) => runsUsed))
      )
      const numbers = Array.from({ length: 16 }, (_, index) => index + 1)
      yield* same(
        "the numbers that the fibers were told",
        runs.sort((one, other) => one - other),
        numbers
      )
      const stored = yield* get(thread)
      yield* same(
        "the number of evaluations",
        Option.map(stored, ({ runsUsed }) => runsUsed),
        Option.some(16)
      )
    })
  },
  {
    name: "an objective that is set first is set by one of many",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const thread = owned(yield* freshThread())
      const texts = Array.from({ length: 8 }, (_, index) => `${index}`)
      const told = yield* Effect.forEach(
        texts,
        text =>
          store.changeObjective(thread, present =>
            Either.right(Option.isSome(present) ? present : begin(text))
          ),
        { concurrency: "unbounded" }
      )
      const stored = yield* get(thread)
      for (const objective of told) yield* same("the objective of each fiber", objective, stored)
    })
  }
]

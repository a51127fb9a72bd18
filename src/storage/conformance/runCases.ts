/** What a store must do with runs that wait: keep them as they are, and let one at a time go on with each. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { JsonValue } from "../../protocol/safeJson.js"
import { type NewRun, RunStore, type StoredRun } from "../RunStore.js"
import { at, type CaseOf, failsWith, freshId, lookalikes, same, upTo, values } from "./kit.js"

const freshRun = (more: Partial<NewRun> = {}): NewRun => ({
  runId: freshId(),
  agentId: freshId(),
  snapshot: { step: 1 },
  ...more
})

const stored = (run: NewRun, revision: number, createdAt: number, updatedAt = createdAt): StoredRun => ({
  ...run,
  revision,
  createdAt: new Date(createdAt),
  updatedAt: new Date(updatedAt),
  holders: []
})

const holds = (what: string, runId: string, expected: StoredRun | undefined) =>
  Effect.flatMap(RunStore, store =>
    Effect.flatMap(store.get(runId), found => same(what, found, Option.fromNullable(expected)))
  )

/** Stores a run that nobody else knows, as revision 1. */
const freshSaved = (more: Partial<NewRun> = {}) =>
  Effect.flatMap(RunStore, store => {
    const run = freshRun(more)
    return Effect.as(store.save(run, undefined), run)
  })

/** Nested deeper than what comes from outside may be. */
const deep = (): JsonValue => {
  let value: JsonValue = "the bottom"
  for (let level = 0; level < 500; level++) value = level % 2 === 0 ? [value] : { value }
  return value
}

/** One case each. */
export const runCases: ReadonlyArray<CaseOf<RunStore>> = [
  {
    name: "save stores a run of what is given",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const full = freshRun({ threadId: freshId(), resourceId: freshId() })
      for (const run of [full, freshRun()]) {
        yield* holds("the run before it is saved", run.runId, undefined)
        const saved = yield* at(1_700_000_000_123)(store.save(run, undefined))
        const expected = stored(run, 1, 1_700_000_000_123)
        yield* same("what save gives", saved, Option.some(expected))
        yield* holds("the run", run.runId, expected)
      }
    })
  },
  {
    name: "save without a revision refuses a run that is there, and changes nothing",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const run = freshRun()
      yield* at(1000)(store.save(run, undefined))
      const other = freshRun({ runId: run.runId, threadId: freshId(), snapshot: "other" })
      yield* same("what save gives", yield* at(2000)(store.save(other, undefined)), Option.none())
      yield* holds("the run", run.runId, stored(run, 1, 1000))
      const { total } = yield* store.list({ agentId: other.agentId })
      yield* same("the number of runs of the other", total, 0)
    })
  },
  {
    name: "save with its revision replaces a run, all but the time of its creation",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const first = freshRun({ threadId: freshId(), resourceId: freshId() })
      const bystander = yield* at(1000)(freshSaved({ agentId: first.agentId }))
      yield* at(1000)(store.save(first, undefined))
      const second = freshRun({ runId: first.runId, snapshot: [2] })
      const third = freshRun({ runId: first.runId, threadId: freshId(), snapshot: null })
      const saved = yield* at(3000)(store.save(second, 1))
      yield* same("what save gives", saved, Option.some(stored(second, 2, 1000, 3000)))
      yield* holds("the second revision", first.runId, stored(second, 2, 1000, 3000))
      // A clock that goes backwards.
      yield* at(2000)(store.save(third, 2))
      yield* holds("the third revision", first.runId, stored(third, 3, 1000, 2000))
      yield* holds("another run", bystander.runId, stored(bystander, 1, 1000))
    })
  },
  {
    name: "save with another revision changes nothing",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const run = freshRun()
      yield* at(1000)(store.save(run, undefined))
      yield* at(1000)(store.save(run, 1))
      for (const revision of [0, 1, 3, Number.MAX_SAFE_INTEGER]) {
        const refused = yield* at(2000)(store.save({ ...run, snapshot: "late" }, revision))
        yield* same(`what save of revision ${revision} gives`, refused, Option.none())
        yield* holds("the run", run.runId, stored(run, 2, 1000))
      }
    })
  },
  {
    name: "save with a revision makes no run",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const run = freshRun()
      for (const revision of [0, 1]) {
        yield* same("what save gives", yield* store.save(run, revision), Option.none())
        yield* holds("the run", run.runId, undefined)
      }
    })
  },
  {
    name: "of many that save a run at once one does",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const { runId } = freshRun()
      for (const expected of [undefined, 1, 2]) {
        const runs = upTo(16).map(snapshot => freshRun({ runId, snapshot }))
        const saved = yield* Effect.forEach(runs, run => store.save(run, expected), {
          concurrency: "unbounded"
        })
        const winners = saved.filter(Option.isSome)
        yield* same("the number of those that saved it", winners.length, 1)
        for (const winner of winners) yield* same("the run", yield* store.get(runId), winner)
        const index = saved.findIndex(Option.isSome)
        const snapshots = winners.map(({ value }) => value.snapshot)
        yield* same("what was saved", snapshots, [runs[index]?.snapshot])
      }
    })
  },
  {
    name: "a save that is interrupted is done whole or not at all",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      for (const turns of upTo(20)) {
        const run = yield* at(1000)(freshSaved())
        const next = freshRun({ runId: run.runId, threadId: freshId(), snapshot: { turns } })
        // Interrupted later each time, so that some are caught in the middle.
        const save = yield* Effect.fork(at(2000)(store.save(next, 1)))
        yield* Effect.repeatN(Effect.yieldNow(), turns - 1)
        yield* Fiber.interrupt(save)
        const found = yield* store.get(run.runId)
        const isSaved = Option.exists(found, ({ revision }) => revision > 1)
        const expected = isSaved ? stored(next, 2, 1000, 2000) : stored(run, 1, 1000)
        yield* same("the run", found, Option.some(expected))
      }
    })
  },
  {
    name: "snapshots come back as they were",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const text = `${"\u4f60\u597d\ud83d\ude00'\"\\ ".repeat(60_000)}end`
      const snapshots = [...values, deep(), [text, text], "half \ud83d", { "\udc00": "\ud83d" }]
      const runId = freshId()
      for (const [revision, snapshot] of snapshots.entries()) {
        const saved = yield* store.save(freshRun({ runId, snapshot }), revision === 0 ? undefined : revision)
        yield* same(
          "what save gives",
          Option.map(saved, run => run.snapshot),
          Option.some(snapshot)
        )
        const found = yield* store.get(runId)
        yield* same(
          "the snapshot",
          Option.map(found, run => run.snapshot),
          Option.some(snapshot)
        )
      }
    })
  },
  {
    name: "a snapshot that is no JSON is refused",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const run = freshRun()
      const inside: Array<JsonValue> = []
      inside.push(inside)
      yield* failsWith("save", "StorageError", store.save({ ...run, snapshot: inside }, undefined))
      yield* holds("the run", run.runId, undefined)
    })
  },
  {
    name: "strings of a run are made safe",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const unique = freshId()
      const id = (half: string) => `${unique}${half}`
      const given = { runId: id("\ud83d"), agentId: id("\ude00"), threadId: id("\udc00"), snapshot: 1 }
      const safe = { runId: id("\ufffd"), agentId: id("\ufffd"), threadId: id("\ufffd"), snapshot: 1 }
      const expected = stored(safe, 1, 1000)
      const saved = yield* at(1000)(store.save(given, undefined))
      yield* same("what save gives", saved, Option.some(expected))
      yield* holds("the run by its given id", given.runId, expected)
      const { agentId, threadId } = given
      const page = { runs: [expected], total: 1 }
      yield* same("the runs by the given agent and thread", yield* store.list({ agentId, threadId }), page)
      yield* same("whether it was deleted by its given id", yield* store.delete(given.runId), true)
    })
  },
  {
    name: "delete removes a run, and no other",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const agentId = freshId()
      const kept = yield* at(1000)(freshSaved({ agentId }))
      const gone = yield* at(1000)(freshSaved({ agentId }))
      yield* same("whether there was one", yield* store.delete(gone.runId), true)
      yield* holds("the run", gone.runId, undefined)
      yield* holds("another run", kept.runId, stored(kept, 1, 1000))
      yield* same("whether there is one still", yield* store.delete(gone.runId), false)
      yield* same("whether there is one of a revision", yield* store.delete(gone.runId, 1), false)
      yield* same("what is listed", (yield* store.list({ agentId })).total, 1)
      yield* at(5000)(store.save(gone, undefined))
      yield* holds("the run that is saved anew", gone.runId, stored(gone, 1, 5000))
    })
  },
  {
    name: "delete with a revision removes a run that has it",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const run = freshRun()
      yield* at(1000)(store.save(run, undefined))
      yield* at(1000)(store.save(run, 1))
      for (const revision of [0, 1, 3]) {
        yield* same(`whether it has revision ${revision}`, yield* store.delete(run.runId, revision), false)
      }
      yield* holds("the run", run.runId, stored(run, 2, 1000))
      yield* same("whether it has revision 2", yield* store.delete(run.runId, 2), true)
      yield* holds("the run that is deleted", run.runId, undefined)
    })
  },
  {
    name: "of many that take a run away, and one that saves it, one does",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* freshSaved()
      const save = Effect.map(store.save({ ...run, snapshot: "saved" }, 1), Option.isSome)
      const take = store.delete(run.runId, 1)
      const done = yield* Effect.all([take, take, take, save, take, take], { concurrency: "unbounded" })
      yield* same("the number of those that did", done.filter(Boolean).length, 1)
      const found = Option.map(yield* store.get(run.runId), ({ snapshot }) => snapshot)
      yield* same("what is left", found, done[3] === true ? Option.some("saved") : Option.none())
    })
  },
  {
    name: "reserve takes an id, until it is released or the time is over",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      for (const owner of [{ resourceId: freshId() }, {}]) {
        const first = { runId: freshId(), ...owner }
        const { runId } = first
        yield* same("the reservation before", yield* store.reservation(runId), Option.none())
        yield* same("whether it is reserved", yield* store.reserve(first, "1 hour"), true)
        yield* same("the reservation", yield* store.reservation(runId), Option.some(first))
        const other = { runId, resourceId: freshId() }
        yield* same("whether it is reserved again", yield* store.reserve(other, "2 hours"), false)
        yield* same("the reservation after that", yield* store.reservation(runId), Option.some(first))
        yield* same(
          "whether another id is reserved",
          yield* store.reserve({ ...first, runId: freshId() }, "1 hour"),
          true
        )
        const later = (yield* Clock.currentTimeMillis) + 7_200_000
        yield* same(
          "the reservation by another clock",
          yield* at(later)(store.reservation(runId)),
          Option.some(first)
        )
        yield* same("whether it is reserved by it", yield* at(later)(store.reserve(other, "1 hour")), false)
        yield* store.release(runId)
        yield* same("the reservation that is released", yield* store.reservation(runId), Option.none())
        yield* same("whether it is reserved anew", yield* store.reserve(other, 0), true)
        yield* same("the reservation whose time is over", yield* store.reservation(runId), Option.none())
        yield* same("whether it is reserved after that", yield* store.reserve(first, "1 hour"), true)
      }
    })
  },
  {
    name: "reserve refuses the id of a run that is saved, and saving needs none",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* at(1000)(freshSaved())
      const { runId } = run
      yield* same("whether it is reserved", yield* store.reserve({ runId }, "1 hour"), false)
      yield* same("the reservation", yield* store.reservation(runId), Option.none())
      yield* holds("the run", runId, stored(run, 1, 1000))
      const next = freshRun()
      yield* same("whether the next is reserved", yield* store.reserve({ runId: next.runId }, "1 hour"), true)
      yield* holds("the next before it is saved", next.runId, undefined)
      yield* at(1000)(store.save(next, undefined))
      yield* holds("the next", next.runId, stored(next, 1, 1000))
      yield* store.delete(next.runId)
      const kept = Option.some({ runId: next.runId })
      yield* same("its reservation after it", yield* store.reservation(next.runId), kept)
    })
  },
  {
    name: "of many that reserve an id at once one does",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const runId = freshId()
      const reservations = upTo(16).map(() => ({ runId, resourceId: freshId() }))
      const taken = yield* Effect.forEach(reservations, given => store.reserve(given, "1 hour"), {
        concurrency: "unbounded"
      })
      yield* same("the number of those that did", taken.filter(Boolean).length, 1)
      const winner = Option.fromNullable(reservations[taken.indexOf(true)])
      yield* same("the reservation", yield* store.reservation(runId), winner)
    })
  },
  {
    name: "ids are told apart exactly",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const prefix = freshId()
      const runs = lookalikes.map(id =>
        freshRun({ runId: prefix + id, agentId: prefix + id, threadId: prefix + id, resourceId: prefix + id })
      )
      for (const run of runs) yield* at(1000)(store.save(run, undefined))
      for (const run of runs) {
        const { agentId, resourceId = "", runId, threadId = "" } = run
        const expected = stored(run, 1, 1000)
        yield* holds(`run ${JSON.stringify(runId)}`, runId, expected)
        for (const options of [{ agentId }, { threadId }, { resourceId }]) {
          const page = yield* store.list(options)
          yield* same(`the runs of ${JSON.stringify(options)}`, page, { runs: [expected], total: 1 })
        }
      }
    })
  },
  {
    name: "list gives runs that match everything that is asked",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const all = { agentId: freshId(), threadId: freshId(), resourceId: freshId() }
      const first = yield* freshSaved(all)
      for (const field of ["agentId", "threadId", "resourceId"] as const) {
        yield* freshSaved({ ...all, [field]: freshId() })
      }
      yield* freshSaved({ agentId: all.agentId })
      const { runs, total } = yield* store.list(all)
      yield* same(
        "those that match all",
        runs.map(({ runId }) => runId),
        [first.runId]
      )
      yield* same("their number", total, 1)
      const { agentId, resourceId, threadId } = all
      yield* same("the number of the agent's", (yield* store.list({ agentId })).total, 4)
      yield* same("the number of the thread's", (yield* store.list({ threadId })).total, 3)
      yield* same("the number of the resource's", (yield* store.list({ resourceId })).total, 3)
      const nobodys = yield* store.list({ ...all, threadId: freshId() })
      yield* same("those of a thread of nobody", nobodys, { runs: [], total: 0 })
      const some = yield* store.list({ perPage: 2 })
      yield* same("the number on a page of all", some.runs.length, 2)
      yield* same("whether the total counts the runs of all", some.total >= 5, true)
    })
  },
  {
    name: "list gives the run first that was saved first, whatever the clock says, and pages",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const agentId = freshId()
      const first = yield* at(5000)(freshSaved({ agentId }))
      const others = yield* Effect.forEach([5000, 4000, 6000, 5000], time =>
        at(time)(freshSaved({ agentId }))
      )
      const ids = [first, ...others].map(({ runId }) => runId)
      const list = (page?: number, perPage?: number) =>
        Effect.map(
          store.list({
            agentId,
            ...(page === undefined ? {} : { page }),
            ...(perPage === undefined ? {} : { perPage })
          }),
          ({ runs, total }) => [runs.map(({ runId }) => runId), total]
        )
      yield* same("the order", yield* list(), [ids, 5])
      yield* at(9000)(store.save(first, 1))
      yield* same("the order after one was saved again", yield* list(), [ids, 5])
      yield* same("page 1", yield* list(1, 2), [ids.slice(2, 4), 5])
      yield* same("the last page", yield* list(2, 2), [ids.slice(4), 5])
      yield* same("the page behind the last", yield* list(3, 2), [[], 5])
      yield* same("a page of none", yield* list(0, 0), [[], 5])
      yield* same("a page of all", yield* list(0, Number.POSITIVE_INFINITY), [ids, 5])
      yield* same("a broken page", yield* list(1.5, 2.5), [ids.slice(2, 4), 5])
      yield* store.delete(first.runId)
      yield* at(1)(store.save(first, undefined))
      yield* same("the order after one was saved anew", yield* list(), [[...ids.slice(1), first.runId], 5])
    })
  }
]

/** What a store must do with leases on runs: compute when they end, and judge it, by its own clock. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type NewRun, RunStore } from "../RunStore.js"
import { at, type CaseOf, freshId, same } from "./kit.js"

const freshRun = (): NewRun => ({ runId: freshId(), agentId: freshId(), snapshot: { step: 1 } })

/** Fails unless the run has leases of these owners, however it is read. */
const isHeldBy = Effect.fnUntraced(function* ({ agentId, runId }: NewRun, owners: ReadonlyArray<string>) {
  const store = yield* RunStore
  const found = Option.toArray(yield* store.get(runId))
  const { runs } = yield* store.list({ agentId })
  for (const [how, run] of [
    ["by its id", found[0]],
    ["in a list", runs.find(run => run.runId === runId)]
  ] as const) {
    yield* same(`the holders of the run ${how}`, [...(run?.holders ?? ["none"])].sort(), [...owners].sort())
  }
})

/** Long ago, and far ahead: the clocks of two processes, neither of which is the store's. */
const past = 1000
const future = 4_000_000_000_000

/** One case each. */
export const runLeaseCases: ReadonlyArray<CaseOf<RunStore>> = [
  {
    name: "save with a lease makes its owner a holder, until the lease ends",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const run = freshRun()
      const [one, other] = [`\u0000${freshId()}`, freshId()]
      const first = yield* store.save(run, undefined, { owner: one, duration: "1 hour" })
      yield* same(
        "the holders that save gives",
        Option.map(first, run => run.holders),
        Option.some([one])
      )
      yield* isHeldBy(run, [one])
      yield* store.save(run, 1, { owner: other, duration: "1 hour" })
      yield* isHeldBy(run, [one, other])
      yield* store.save(run, 2)
      yield* isHeldBy(run, [one, other])
      yield* store.save(run, 3, { owner: one, duration: 0 })
      yield* isHeldBy(run, [other])
      yield* store.save(run, 4, { owner: one, duration: "1 hour" })
      yield* isHeldBy(run, [one, other])
    })
  },
  {
    name: "a run that is not saved gets no lease",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const run = freshRun()
      const lease = { owner: freshId(), duration: "1 hour" } as const
      yield* store.save(run, 1, lease)
      yield* store.save(run, undefined)
      yield* isHeldBy(run, [])
      for (const revision of [undefined, 0, 2]) yield* store.save(run, revision, lease)
      yield* isHeldBy(run, [])
    })
  },
  {
    name: "leases are the run's, and go with it",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      const [run, other] = [freshRun(), freshRun()]
      const owner = freshId()
      yield* store.save(run, undefined, { owner, duration: "1 hour" })
      yield* store.save(other, undefined)
      yield* isHeldBy(other, [])
      yield* store.delete(run.runId, 2)
      yield* isHeldBy(run, [owner])
      yield* store.delete(run.runId, 1)
      yield* store.save(run, undefined)
      yield* isHeldBy(run, [])
    })
  },
  {
    name: "leases are computed and judged by the clock of the store, whatever the clocks of the callers are",
    run: Effect.gen(function* () {
      const store = yield* RunStore
      for (const [saving, reading] of [
        [past, future],
        [future, past]
      ] as const) {
        const run = freshRun()
        const [living, over] = [freshId(), freshId()]
        yield* at(saving)(store.save(run, undefined, { owner: living, duration: "1 hour" }))
        yield* at(saving)(store.save(run, 1, { owner: over, duration: 0 }))
        yield* at(reading)(isHeldBy(run, [living]))
      }
    })
  }
]

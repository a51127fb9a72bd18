/** The queue of tasks, against a list that is searched from its beginning. */
import { expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { type First, FirstComeFirstServed } from "../../src/background/firstComeFirstServed.js"

const owner = FastCheck.constantFrom("a", "b", "c", "d")

const step = FastCheck.oneof(
  { weight: 5, arbitrary: FastCheck.record({ do: FastCheck.constant("add" as const), owner }) },
  { weight: 4, arbitrary: FastCheck.record({ do: FastCheck.constant("take" as const), owner }) },
  { weight: 1, arbitrary: FastCheck.record({ do: FastCheck.constant("putBack" as const), owner }) },
  { weight: 2, arbitrary: FastCheck.record({ do: FastCheck.constant("block" as const), owner }) },
  { weight: 2, arbitrary: FastCheck.record({ do: FastCheck.constant("unblock" as const), owner }) }
)

it("gives the job that came first of those whose owner is not blocked, whatever was put back", () => {
  FastCheck.assert(
    FastCheck.property(FastCheck.array(step, { maxLength: 400, size: "max" }), steps => {
      const queue = new FirstComeFirstServed<number>()
      let list: Array<{ readonly owner: string; readonly job: number }> = []
      const blocked = new Set<string>()
      const taken: Array<First<number>> = []
      let jobs = 0
      for (const next of steps) {
        const first = queue.first()
        const expected = list.find(waiting => !blocked.has(waiting.owner))
        expect(first?.job).toBe(expected?.job)
        expect(first?.owner).toBe(expected?.owner)
        expect(queue.size).toBe(list.length)
        if (next.do === "add") {
          const job = jobs++
          queue.add(next.owner, job)
          list.push({ owner: next.owner, job })
        } else if (next.do === "unblock") {
          queue.unblock(next.owner)
          blocked.delete(next.owner)
        } else if (next.do === "putBack") {
          const back = taken.pop()
          // An owner whose jobs are all gone is not blocked either.
          if (back === undefined || blocked.has(back.owner)) continue
          queue.putBack(back)
          list = [...list, back].toSorted((one, other) => one.job - other.job)
        } else if (first !== undefined) {
          if (next.do === "block") {
            queue.block()
            blocked.add(first.owner)
          } else {
            queue.take()
            taken.push(first)
            list = list.filter(({ job }) => job !== first.job)
          }
        }
      }
    }),
    { numRuns: 300 }
  )
})

/** What may become of an objective: every event in every state. */
import { describe, expect, it } from "@effect/vitest"
import { Objective } from "eddy"
import { Either } from "effect"

const begun = new Date(1000)
const later = new Date(2000)

const objective = (
  status: Objective.ObjectiveStatus,
  runsUsed: number,
  maxRuns = 3
): Objective.Objective => ({
  ...Objective.make("Count.", maxRuns, begun),
  status,
  runsUsed,
  reason: "before"
})

describe("an objective", () => {
  it("begins active and unused", () => {
    expect(Objective.make("Count.", 3, begun)).toEqual({
      objective: "Count.",
      status: "active",
      maxRuns: 3,
      runsUsed: 0,
      createdAt: begun,
      updatedAt: begun
    })
  })

  it.each([
    ["active", 0, "passed", "done"],
    ["active", 0, "rejected", "active"],
    ["active", 1, "rejected", "active"],
    ["active", 2, "rejected", "paused"],
    ["active", 2, "passed", "done"],
    ["active", 7, "rejected", "paused"],
    ["active", 0, "failed", "paused"],
    ["active", 2, "failed", "paused"],
    ["paused", 0, "passed", "done"],
    ["paused", 0, "rejected", "paused"],
    ["paused", 3, "rejected", "paused"],
    ["paused", 0, "failed", "paused"],
    ["done", 1, "passed", "done"],
    ["done", 1, "rejected", "done"],
    ["done", 1, "failed", "done"]
  ] as const)(
    "that is %s with %i of 3 runs used, and whose answer is %s, is %s then",
    (status, used, outcome, next) => {
      const after = Objective.judged(objective(status, used), { outcome, reason: "after" }, later)
      expect(after).toEqual({
        ...objective(next, used + 1),
        reason: status === "done" && outcome !== "passed" ? "before" : "after",
        updatedAt: later
      })
      expect(Objective.isExhausted(after)).toBe(next === "paused" && used + 1 >= 3)
    }
  )

  it("forgets a reason that the last evaluation did not give", () => {
    const after = Objective.judged(objective("active", 0), { outcome: "rejected" }, later)
    expect("reason" in after).toBe(false)
  })

  it.each([
    ["active", 1, {}, "active", 3],
    ["active", 1, { maxRuns: 2 }, "active", 2],
    ["active", 1, { maxRuns: 1 }, undefined, 0],
    ["active", 1, { status: "paused" }, "paused", 3],
    ["active", 1, { status: "paused", maxRuns: 1 }, "paused", 1],
    ["paused", 3, {}, "paused", 3],
    ["paused", 3, { maxRuns: 1 }, "paused", 1],
    ["paused", 3, { maxRuns: 9 }, "paused", 9],
    ["paused", 3, { status: "active" }, undefined, 0],
    ["paused", 3, { status: "active", maxRuns: 4 }, "active", 4],
    ["paused", 1, { status: "active" }, "active", 3],
    ["done", 1, {}, "done", 3],
    ["done", 1, { maxRuns: 9 }, "done", 9],
    ["done", 1, { status: "active" }, "active", 3],
    ["done", 3, { status: "active" }, undefined, 0],
    ["done", 1, { status: "paused" }, undefined, 0]
  ] as const)(
    "that is %s with %i of 3 runs used, changed by %o, is %s of %i",
    (status, used, options, next, maxRuns) => {
      const changed = Objective.changed(objective(status, used), options, later)
      if (next === undefined) {
        expect(Either.getLeft(changed)).toMatchObject({
          _tag: "Some",
          value: { _tag: "InvalidConfiguration" }
        })
      } else {
        expect(Either.getOrThrow(changed)).toEqual({ ...objective(next, used, maxRuns), updatedAt: later })
      }
    }
  )

  it("is another one when it is set anew, and the same however far it is", () => {
    const one = objective("active", 0)
    expect(Objective.isSame(one, objective("done", 3))).toBe(true)
    expect(Objective.isSame(one, { ...one, createdAt: later })).toBe(false)
    expect(Objective.isSame(one, { ...one, objective: "Count on." })).toBe(false)
  })
})

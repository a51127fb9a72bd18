/** What an until-idle stream does next: a table, and a property over every interleaving of what may happen. */
import type { Task } from "eddy"
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { IdleState } from "../../src/background/idleState.js"
import { taskOf } from "../support/taskOf.js"

const done = (id: string): Task.Task => ({ ...taskOf(id), status: "completed" })

const never = (): boolean => false

const next = (state: IdleState, active: number) => {
  const decision = state.decide(active)
  return decision._tag === "Continue" ? decision.tasks.map(({ id }) => id) : decision._tag
}

/** A state between two turns. */
const between = (batch: "ready" | "all" = "ready", isAnswered: (id: string) => boolean = never) => {
  const state = new IdleState(batch, isAnswered)
  state.turnEnded()
  return state
}

describe("what is done next", () => {
  const table: ReadonlyArray<{
    readonly when: string
    readonly state: () => IdleState
    readonly active: number
    readonly expected: string | ReadonlyArray<string>
  }> = [
    { when: "the first turn runs", state: () => new IdleState("ready", never), active: 0, expected: "Busy" },
    { when: "nothing was dispatched", state: () => between(), active: 0, expected: "Close" },
    { when: "something runs", state: () => between(), active: 2, expected: "Wait" },
    {
      when: "something has settled while others run",
      state: () => {
        const state = between()
        state.settled(done("a"))
        return state
      },
      active: 1,
      expected: ["a"]
    },
    {
      when: "the same, and all are awaited",
      state: () => {
        const state = between("all")
        state.settled(done("a"))
        return state
      },
      active: 1,
      expected: "Wait"
    },
    {
      when: "all have settled that were awaited",
      state: () => {
        const state = between("all")
        state.settled(done("b"))
        state.settled(done("a"))
        return state
      },
      active: 0,
      expected: ["b", "a"]
    },
    {
      when: "the model has seen it in its turn",
      state: () => {
        const state = between("ready", id => id === "a")
        state.settled(done("a"))
        state.settled(done("b"))
        return state
      },
      active: 0,
      expected: ["b"]
    },
    {
      when: "something settled while a turn runs",
      state: () => {
        const state = new IdleState("ready", never)
        state.settled(done("a"))
        return state
      },
      active: 0,
      expected: "Busy"
    },
    {
      when: "it was stopped, and something is unanswered",
      state: () => {
        const state = between()
        state.settled(done("a"))
        state.stop()
        return state
      },
      active: 1,
      expected: "Close"
    },
    {
      when: "it was stopped in a turn",
      state: () => {
        const state = new IdleState("ready", never)
        state.stop()
        return state
      },
      active: 1,
      expected: "Busy"
    },
    {
      when: "a settled task is told again after it was answered",
      state: () => {
        const state = between()
        const task = done("a")
        state.settled(task)
        state.turnBegan([task])
        state.settled(task)
        state.turnEnded()
        return state
      },
      active: 0,
      expected: "Close"
    }
  ]

  for (const { active, expected, state, when } of table) {
    it(`when ${when}`, () => {
      expect(next(state(), active)).toStrictEqual(expected)
    })
  }
})

/** What may happen to a task of so many, and to the stream. */
type Move =
  | { readonly to: "dispatch" | "settle" | "suspend" | "resume" | "see"; readonly task: number }
  | { readonly to: "decide" | "endTurn" | "stop" }

const moves: fc.Arbitrary<ReadonlyArray<Move>> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        to: fc.constantFrom(
          "dispatch" as const,
          "settle" as const,
          "suspend" as const,
          "resume" as const,
          "see" as const
        ),
        task: fc.nat(5)
      })
    },
    { weight: 6, arbitrary: fc.record({ to: fc.constantFrom("decide" as const, "endTurn" as const) }) },
    { weight: 1, arbitrary: fc.constant({ to: "stop" as const }) }
  ),
  { maxLength: 80 }
)

/** A stream as it would be driven, and what became of its tasks. */
class Driven {
  readonly stateOf = new Map<number, "active" | "suspended" | "settled">()
  readonly answers = new Map<string, number>()
  readonly seen = new Set<string>()
  isStopped = false
  isInTurn = true
  isClosed = false
  readonly state: IdleState

  constructor(readonly batch: "ready" | "all") {
    this.state = new IdleState(batch, id => this.seen.has(id))
  }

  get active(): number {
    return [...this.stateOf.values()].filter(one => one === "active").length
  }

  private get unanswered(): ReadonlyArray<string> {
    return [...this.stateOf].flatMap(([task, state]) => {
      const id = String(task)
      return state === "settled" && !this.seen.has(id) && !this.answers.has(id) ? id : []
    })
  }

  private change(task: number, from: string | undefined, to: "active" | "suspended" | "settled"): void {
    if (this.stateOf.get(task) !== from) return
    this.stateOf.set(task, to)
    if (to === "settled") this.state.settled(done(String(task)))
  }

  move(move: Move): void {
    switch (move.to) {
      case "dispatch":
        this.change(move.task, undefined, "active")
        break
      case "settle":
        this.change(move.task, "active", "settled")
        break
      case "suspend":
        this.change(move.task, "active", "suspended")
        break
      case "resume":
        this.change(move.task, "suspended", "active")
        break
      case "see":
        // Only a turn sees, and only what nobody has answered.
        if (this.isInTurn && this.unanswered.includes(String(move.task))) this.seen.add(String(move.task))
        break
      case "endTurn":
        if (this.isInTurn) this.state.turnEnded()
        this.isInTurn = false
        break
      case "stop":
        this.isStopped = true
        this.state.stop()
        break
      case "decide":
        this.decide()
    }
  }

  private decide(): void {
    const { active, unanswered } = this
    const decision = this.state.decide(active)
    if (this.isInTurn) expect(decision._tag).toBe("Busy")
    else if (this.isStopped) expect(decision._tag).toBe("Close")
    else if (unanswered.length > 0 && (this.batch === "ready" || active === 0)) {
      expect(decision._tag).toBe("Continue")
    } else expect(decision._tag).toBe(active > 0 ? "Wait" : "Close")
    if (decision._tag === "Close") this.isClosed = true
    if (decision._tag === "Continue") this.answer(decision.tasks, unanswered)
  }

  private answer(tasks: ReadonlyArray<Task.Task>, unanswered: ReadonlyArray<string>): void {
    expect(tasks.map(({ id }) => id).sort()).toStrictEqual([...unanswered].sort())
    for (const { id } of tasks) this.answers.set(id, (this.answers.get(id) ?? 0) + 1)
    this.isInTurn = true
    this.state.turnBegan(tasks)
  }

  /** Whatever is going comes to its end. */
  finish(): void {
    for (let count = 0; !this.isClosed; count++) {
      expect(count).toBeLessThan(20)
      for (const task of this.stateOf.keys()) this.move({ to: "settle", task })
      this.move({ to: "endTurn" })
      this.move({ to: "decide" })
    }
  }
}

describe("every interleaving", () => {
  for (const batch of ["ready", "all"] as const) {
    it(`ends, and answers each settled task once, with batch "${batch}"`, () => {
      fc.assert(
        fc.property(moves, happened => {
          const driven = new Driven(batch)
          for (const move of happened) if (!driven.isClosed) driven.move(move)
          driven.finish()
          for (const [task, state] of driven.stateOf) {
            const id = String(task)
            const answers = (driven.answers.get(id) ?? 0) + (driven.seen.has(id) ? 1 : 0)
            if (!driven.isStopped && state === "settled") expect(answers).toBe(1)
            else expect(answers).toBeLessThan(2)
          }
        }),
        { numRuns: 2000 }
      )
    })
  }
})

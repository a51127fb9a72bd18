/** What may become of a task: every event in every state, and what holds whatever happens. */
import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import type { JsonValue } from "../../src/protocol/safeJson.js"
import * as Task from "../../src/protocol/Task.js"

const at = (milliseconds: number): Date => new Date(1_700_000_000_000 + milliseconds)

const base = {
  id: "task-1",
  toolName: "look",
  toolCallId: "call-1",
  args: { city: "Berlin" },
  agentId: "agent",
  threadId: "thread",
  resourceId: "resource",
  runId: "run-1",
  createdAt: at(0),
  maxRetries: 1,
  timeoutMs: 1000
}

const begun = { ...base, startedAt: at(1), attempt: 1 }

/** One task of each status, with every field that it has. */
const tasks: { readonly [Status in Task.TaskStatus]: Task.Task } = {
  pending: { ...base, status: "pending", attempt: 0 },
  running: { ...begun, status: "running" },
  suspended: { ...begun, status: "suspended", suspendedAt: at(2), suspendData: { ask: "?" } },
  completed: { ...begun, status: "completed", completedAt: at(3), result: "sunny" },
  failed: { ...begun, status: "failed", completedAt: at(3), error: { message: "no" } },
  timed_out: { ...begun, status: "timed_out", completedAt: at(3), error: { message: "late" } },
  cancelled: { ...begun, status: "cancelled", completedAt: at(3) }
}

const events: { readonly [Tag in Task.TaskEvent["_tag"]]: Task.TaskEvent } = {
  Started: { _tag: "Started", at: at(9) },
  Completed: { _tag: "Completed", at: at(9), result: null },
  Failed: { _tag: "Failed", at: at(9), message: "broken" },
  TimedOut: { _tag: "TimedOut", at: at(9), message: "too long" },
  Cancelled: { _tag: "Cancelled", at: at(9) },
  Suspended: { _tag: "Suspended", at: at(9), suspendData: null },
  Resumed: { _tag: "Resumed", at: at(9) },
  Recovered: { _tag: "Recovered" }
}

/** What becomes of a task; what is not here cannot happen. */
const table: {
  readonly [Status in Task.TaskStatus]: { readonly [Tag in Task.TaskEvent["_tag"]]?: Task.Task }
} = {
  pending: {
    Started: { ...base, status: "running", startedAt: at(9), attempt: 1 },
    Failed: { ...base, status: "failed", attempt: 0, completedAt: at(9), error: { message: "broken" } },
    Cancelled: { ...base, status: "cancelled", attempt: 0, completedAt: at(9) }
  },
  running: {
    Completed: { ...begun, status: "completed", completedAt: at(9), result: null },
    Failed: { ...begun, status: "failed", completedAt: at(9), error: { message: "broken" } },
    TimedOut: { ...begun, status: "timed_out", completedAt: at(9), error: { message: "too long" } },
    Cancelled: { ...begun, status: "cancelled", completedAt: at(9) },
    Suspended: { ...begun, status: "suspended", suspendedAt: at(9), suspendData: null },
    Recovered: { ...begun, status: "pending" }
  },
  suspended: {
    Cancelled: { ...begun, status: "cancelled", completedAt: at(9) },
    Resumed: { ...begun, status: "running", startedAt: at(9) }
  },
  completed: {},
  failed: {},
  timed_out: {},
  cancelled: {}
}

const tags = [
  "Started",
  "Completed",
  "Failed",
  "TimedOut",
  "Cancelled",
  "Suspended",
  "Resumed",
  "Recovered"
] as const

const settled: ReadonlyArray<Task.TaskStatus> = ["completed", "failed", "timed_out", "cancelled"]

describe("the table", () => {
  it("has every status and every event", () => {
    expect(Object.keys(table)).toEqual([...Task.statuses])
    expect(Object.keys(events)).toEqual([...tags])
    expect(Object.keys(Task.allowed).sort()).toEqual([...tags].sort())
  })

  for (const status of Task.statuses) {
    for (const tag of tags) {
      const expected = table[status][tag]
      const title =
        expected === undefined ? "changes nothing" : `makes it ${expected.status}, and changes nothing else`
      it(`${tag} of a ${status} task ${title}`, () => {
        const before = structuredClone(tasks[status])
        const after = Task.transition(tasks[status], events[tag])
        // Strictly: a field that is `undefined` is there.
        expect(after).toStrictEqual(expected)
        expect(Task.allowed[tag].includes(status)).toBe(expected !== undefined)
        expect(tasks[status]).toStrictEqual(before)
      })
    }
  }
})

describe("isSettled", () => {
  it.each([...Task.statuses])("knows whether a %s task is over", status => {
    expect(Task.isSettled(status)).toBe(settled.includes(status))
    expect(Task.isSettled(status)).toBe(Object.keys(table[status]).length === 0)
  })
})

describe("a task whose process died", () => {
  it.each([
    { attempt: 1, maxRetries: 0, isLeft: false },
    { attempt: 1, maxRetries: 1, isLeft: true },
    { attempt: 2, maxRetries: 1, isLeft: false },
    { attempt: 3, maxRetries: 3, isLeft: true },
    { attempt: 4, maxRetries: 3, isLeft: false },
    { attempt: 0, maxRetries: 0, isLeft: true }
  ])("after attempt $attempt of 1 and $maxRetries more: another is left is $isLeft", given => {
    const { attempt, isLeft, maxRetries } = given
    const task = { ...tasks.running, attempt, maxRetries }
    expect(Task.attemptsAreLeft(task)).toBe(isLeft)
    const recovered = Task.transition(task, events.Recovered)
    expect(recovered).toStrictEqual(isLeft ? { ...task, status: "pending" } : undefined)
  })
})

const date = FastCheck.nat({ max: 1_000_000 }).map(at)

const json = FastCheck.constantFrom<JsonValue>(null, "", 0, false, [], {}, { a: [1] })

const event: FastCheck.Arbitrary<Task.TaskEvent> = FastCheck.oneof(
  date.map(at => ({ _tag: "Started" as const, at })),
  FastCheck.record({ _tag: FastCheck.constant("Completed" as const), at: date, result: json }),
  FastCheck.record({ _tag: FastCheck.constant("Failed" as const), at: date, message: FastCheck.string() }),
  FastCheck.record({ _tag: FastCheck.constant("TimedOut" as const), at: date, message: FastCheck.string() }),
  date.map(at => ({ _tag: "Cancelled" as const, at })),
  FastCheck.record({ _tag: FastCheck.constant("Suspended" as const), at: date, suspendData: json }),
  date.map(at => ({ _tag: "Resumed" as const, at })),
  FastCheck.constant({ _tag: "Recovered" as const })
)

const fresh = FastCheck.nat({ max: 3 }).map((maxRetries): Task.Task => ({ ...tasks.pending, maxRetries }))

/** Long enough to reach every state. */
const story = FastCheck.record({ task: fresh, events: FastCheck.array(event, { maxLength: 40 }) })

/** Fields that a task of each status has, and no other has. */
const expectedFields = (task: Task.Task): ReadonlyArray<string> => {
  const { attempt, status } = task
  return [
    ...(status === "completed" ? ["result"] : []),
    ...(status === "failed" || status === "timed_out" ? ["error"] : []),
    ...(status === "suspended" ? ["suspendData", "suspendedAt"] : []),
    ...(Task.isSettled(status) ? ["completedAt"] : []),
    ...(attempt > 0 ? ["startedAt"] : [])
  ]
}

const changing = ["result", "error", "suspendData", "suspendedAt", "completedAt", "startedAt"]

const diagram: { readonly [Status in Task.TaskStatus]: ReadonlyArray<Task.TaskStatus> } = {
  pending: ["running", "failed", "cancelled"],
  running: ["completed", "failed", "timed_out", "cancelled", "suspended", "pending"],
  suspended: ["running", "cancelled"],
  completed: [],
  failed: [],
  timed_out: [],
  cancelled: []
}

/** Runs a story; tells of each step what was before and after it. */
const tell = (
  given: { readonly task: Task.Task; readonly events: ReadonlyArray<Task.TaskEvent> },
  look: (before: Task.Task, after: Task.Task | undefined, event: Task.TaskEvent) => void
): Task.Task => {
  let task = given.task
  for (const event of given.events) {
    const after = Task.transition(task, event)
    look(task, after, event)
    task = after ?? task
  }
  return task
}

describe("whatever happens to a task", () => {
  const reached = new Set<Task.TaskStatus>()

  it("it never leaves the diagram, and every state is reached", () => {
    FastCheck.assert(
      FastCheck.property(story, given => {
        const last = tell(given, (before, after) => {
          if (after !== undefined) expect(diagram[before.status]).toContain(after.status)
        })
        reached.add(last.status)
      }),
      { numRuns: 1000 }
    )
    expect([...reached].sort()).toEqual([...Task.statuses].sort())
  })

  it("nothing changes a task that has settled", () => {
    FastCheck.assert(
      FastCheck.property(story, given => {
        tell(given, (before, after) => {
          if (settled.includes(before.status)) expect(after).toBe(undefined)
        })
      })
    )
  })

  it("it has the fields of its state, and none of another", () => {
    FastCheck.assert(
      FastCheck.property(story, given => {
        tell(given, (_, after) => {
          if (after === undefined) return
          const fields = changing.filter(field => field in after)
          expect(fields.sort()).toEqual([...expectedFields(after)].sort())
        })
      })
    )
  })

  it("its attempts never fall, and are never more than it may have", () => {
    FastCheck.assert(
      FastCheck.property(story, given => {
        tell(given, (before, after, event) => {
          if (after === undefined) return
          expect(after.attempt).toBe(before.attempt + (event._tag === "Started" ? 1 : 0))
          expect(after.attempt).toBeLessThanOrEqual(1 + after.maxRetries)
        })
      })
    )
  })

  it("what it is stays what it is", () => {
    FastCheck.assert(
      FastCheck.property(story, given => {
        const last = tell(given, () => {})
        expect(last).toMatchObject({ ...base, maxRetries: given.task.maxRetries })
      })
    )
  })
})

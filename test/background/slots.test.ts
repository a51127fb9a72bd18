/** Who runs when: in the order in which they came, within the limits, and what happens when there is no slot. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { breathe, call, dispatch, executor, giving, hanging, journal, start, statuses } from "./kit.js"

/** A tool that runs until it is let go, by the id of its call. */
const gates = () => {
  const open = new Map<string, () => void>()
  const started: Array<string> = []
  const gate = executor(({ task }) =>
    Effect.async<string>(resume => {
      started.push(task.toolCallId)
      open.set(task.toolCallId, () => resume(Effect.succeed(task.toolCallId)))
    })
  )
  const release = (id: string) =>
    Effect.zipRight(
      Effect.sync(() => open.get(id)?.()),
      breathe
    )
  return { gate, release, started }
}

describe("tasks that find no slot", () => {
  it.scoped("are pending, can be found, and begin in the order in which they came", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1 })
      const { gate, release, started } = gates()
      for (const id of ["a", "b", "c", "d"]) yield* dispatch(process, id, gate)
      expect(yield* statuses(process)).toEqual(["running a", "pending b", "pending c", "pending d"])
      for (const id of ["a", "b", "c"]) yield* release(id)
      expect(started).toEqual(["a", "b", "c", "d"])
      expect(yield* statuses(process)).toEqual(["completed a", "completed b", "completed c", "running d"])
      yield* release("d")
      for (const id of ["a", "b", "c", "d"]) {
        const own = process.told.filter(event => event.endsWith(id))
        expect(own).toEqual([`running ${id}`, `completed ${id}`])
      }
    })
  )

  it.scoped("do not hold up those of another agent", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 3, perAgentConcurrency: 1 })
      const { gate, release, started } = gates()
      for (const id of ["a1", "a2", "a3"]) yield* dispatch(process, id, gate, { agentId: "a" })
      yield* dispatch(process, "b1", gate, { agentId: "b" })
      expect(started).toEqual(["a1", "b1"])
      yield* release("a1")
      expect(started).toEqual(["a1", "b1", "a2"])
    })
  )

  it.scoped("wait for their turn among all agents when it is the common limit that is reached", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1, perAgentConcurrency: 1 })
      const { gate, release, started } = gates()
      yield* dispatch(process, "a1", gate, { agentId: "a" })
      yield* dispatch(process, "a2", gate, { agentId: "a" })
      yield* dispatch(process, "b1", gate, { agentId: "b" })
      yield* dispatch(process, "a3", gate, { agentId: "a" })
      for (const id of ["a1", "a2", "b1"]) yield* release(id)
      expect(started).toEqual(["a1", "a2", "b1", "a3"])
    })
  )

  it.scoped("begin all by themselves when two thousand of them are done at once", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 2, perAgentConcurrency: 2 })
      const gate = yield* Effect.makeLatch()
      let done = 0
      const tool = executor(() => Effect.map(gate.await, () => ++done))
      for (let index = 0; index < 2000; index++) {
        yield* dispatch(process, `${index}`, tool, { agentId: `agent ${index % 7}` })
      }
      yield* gate.open
      while (done < 2000) yield* Effect.yieldNow()
      yield* breathe
      const { total } = yield* process.manager.list({ status: "completed", perPage: 0 })
      expect(total).toBe(2000)
    })
  )
})

describe("limits", () => {
  for (const [name, globalConcurrency, perAgentConcurrency, own, agents, most] of [
    ["of all", 3, 10, undefined, ["a"], 3],
    ["of an agent", 10, 2, undefined, ["a"], 2],
    ["of each agent", 10, 2, undefined, ["a", "b", "c"], 6],
    ["of an agent that says so itself", 10, 2, 4, ["a"], 4],
    ["of all, whatever an agent says", 3, 2, 8, ["a"], 3]
  ] as const) {
    it.scoped(`${name} are kept, however many come at the same time`, () =>
      Effect.gen(function* () {
        const process = yield* start({ globalConcurrency, perAgentConcurrency })
        let running = 0
        let highest = 0
        const tool = executor(
          () =>
            Effect.gen(function* () {
              highest = Math.max(highest, ++running)
              yield* Effect.repeatN(Effect.yieldNow(), 5)
              running--
            }),
          { concurrency: own }
        )
        const all = agents.flatMap(agentId => Array.from({ length: 20 }, (_, index) => ({ agentId, index })))
        const ids = yield* Effect.forEach(
          all,
          ({ agentId, index }) =>
            Effect.map(dispatch(process, `${agentId}${index}`, tool, { agentId }), ({ taskId }) => taskId),
          { concurrency: "unbounded" }
        )
        yield* Effect.forEach(ids, id => process.manager.settled(id), { discard: true })
        expect(highest).toBe(most)
        expect(running).toBe(0)
      })
    )
  }

  it.scoped("that become wider let those begin that wait", () =>
    Effect.gen(function* () {
      const process = yield* start({ perAgentConcurrency: 1 })
      const { gate, started } = gates()
      yield* dispatch(process, "a", gate)
      yield* dispatch(process, "b", gate)
      expect(started).toEqual(["a"])
      yield* dispatch(process, "c", { ...gate, concurrency: 3 })
      expect(started).toEqual(["a", "b", "c"])
    })
  )
})

describe("a call that finds every slot taken", () => {
  it.scoped("is refused with `reject`, and is no task", () =>
    Effect.gen(function* () {
      const process = yield* start({ globalConcurrency: 1, backpressure: "reject" })
      const { gate, release } = gates()
      yield* dispatch(process, "a", gate)
      const second = yield* Effect.either(process.manager.dispatch(call("b"), giving(1)))
      expect(second).toMatchObject(Either.left({ _tag: "TaskRejected", toolName: "look", agentId: "agent" }))
      expect(yield* statuses(process)).toEqual(["running a"])
      yield* release("a")
      yield* dispatch(process, "c", giving(1))
      expect(yield* statuses(process)).toEqual(["completed a", "completed c"])
    })
  )

  it.scoped("is the run's to make with `fallback-sync`, and is no task", () =>
    Effect.gen(function* () {
      const process = yield* start({ perAgentConcurrency: 1, backpressure: "fallback-sync" })
      yield* dispatch(process, "a", hanging())
      expect(yield* process.manager.dispatch(call("b"), giving(1))).toBeUndefined()
      yield* dispatch(process, "c", giving(1), { agentId: "another" })
      expect(yield* statuses(process)).toEqual(["running a", "completed c"])
      expect(process.told).toEqual(["running a", "running c", "completed c"])
    })
  )

  it.scoped("is refused by a manager that has ended, whatever the slots", () =>
    Effect.gen(function* () {
      const process = yield* start()
      yield* process.background.shutdown
      const late = yield* Effect.either(process.manager.dispatch(call("a"), giving(1)))
      expect(late).toMatchObject(Either.left({ _tag: "TaskRejected" }))
      expect(yield* statuses(process)).toEqual([])
    })
  )
})

it.scoped("the caller who gives up while the task is stored leaves a whole task, whose outcome is told", () =>
  Effect.gen(function* () {
    const { entries, note } = journal()
    const process = yield* start()
    yield* process.threads.open({ id: "thread", resourceId: "user" })
    const dispatching = yield* Effect.fork(
      process.manager.dispatch(
        call("a", { threadId: "thread" }),
        executor(() => note("ran"))
      )
    )
    yield* Effect.yieldNow()
    yield* dispatching.interruptAsFork(dispatching.id())
    yield* breathe
    expect(entries.length).toBeLessThanOrEqual(1)
    expect(yield* statuses(process)).toEqual(entries.length === 1 ? ["completed a"] : [])
  })
)

/** Tasks of two threads at once never meet, and nothing is left of a run and its tasks. */
import { getEventListeners } from "node:events"
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Fiber, Schema, Supervisor } from "effect"
import { quietTimers } from "../invariants/leftovers.js"
import {
  callOf,
  calls,
  gated,
  heard,
  isAcknowledged,
  loadEverything,
  managed,
  outputIn,
  pass,
  tasks
} from "./backgroundKit.js"
import { chunksOf, finishOf, only, settle, turns } from "./kit.js"
import { memory, messagesOf, reply, toolCall } from "./memoryKit.js"

beforeAll(loadEverything)

const users = ["u1", "u2"] as const

const memoryOf = (user: string) => ({ thread: `thread of ${user}`, resource: user })

describe("two users at once", () => {
  it.effect("see nothing of each other's tasks", () =>
    Effect.gen(function* () {
      // One agent, and the same call ids: a provider may number them.
      const dig = Tool.make("dig", {
        input: Schema.Struct({ secret: Schema.String }),
        background: { enabled: true, waitTimeout: 100 },
        execute: ({ secret }, { resourceId, write }) =>
          Effect.zipRight(
            write(`${secret} of ${resourceId}`),
            Effect.delay(Effect.succeed(`${secret} for ${resourceId}`), secret === "s1" ? 30 : 60)
          )
      })
      const run = (user: string, index: number) => {
        const model = ScriptedModel.make([
          calls(toolCall("c1", "dig", { secret: `s${index}` })),
          reply("started"),
          reply("done")
        ])
        const agent = Agent.make({ id: "shared", model, tools: [dig] })
        return Effect.map(
          chunksOf(Agent.stream(agent, `I am ${user}`, { memory: memoryOf(user) })),
          chunks => ({
            chunks,
            model
          })
        )
      }
      const told = yield* Effect.forEach(users, user => heard({ resourceId: user }))
      const fibers = yield* Effect.forEach(users, (user, index) => Effect.fork(run(user, index + 1)))
      yield* settle
      yield* pass(30)
      yield* pass(30)
      const runs = yield* Effect.forEach(fibers, Fiber.join)
      for (const [index, user] of users.entries()) {
        const own = `s${index + 1} for ${user}`
        const others = users[1 - index] ?? ""
        const { chunks, model } = runs[index] ?? expect.fail("no run")
        const held = yield* messagesOf(memoryOf(user).thread)
        expect(outputIn(held, "c1")).toStrictEqual({ type: "text", value: own })
        expect(outputIn(model.requests[2]?.messages ?? [], "c1")).toStrictEqual({ type: "text", value: own })
        expect(only(chunks, "background-task-started")).toHaveLength(1)
        expect(told[index]?.map(({ type }) => type)).toStrictEqual([
          "background-task-running",
          "background-task-output",
          "background-task-completed"
        ])
        for (const seen of [chunks, held, model.requests, told[index]]) {
          const said = JSON.stringify(seen)
          expect(said).not.toContain(others)
          expect(said).not.toContain(`s${2 - index}`)
        }
      }
    }).pipe(Effect.scoped, managed())
  )

  it.effect("one whose task ends while the other's run goes on", () =>
    Effect.gen(function* () {
      const dig = gated("dig")
      const one = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
      const two = ScriptedModel.make([calls(callOf("c1", "wait", 2)), reply("ok")])
      const wait = gated("wait", { enabled: false })
      const tools = [dig.tool, wait.tool]
      yield* chunksOf(
        Agent.stream(Agent.make({ id: "a", model: one, tools }), "go", { memory: memoryOf("u1") })
      )
      const fiber = yield* Effect.fork(
        chunksOf(Agent.stream(Agent.make({ id: "a", model: two, tools }), "go", { memory: memoryOf("u2") }))
      )
      yield* settle
      yield* dig.end(1)
      yield* wait.end(2)
      const chunks = yield* Fiber.join(fiber)
      expect(chunks.filter(({ type }) => type.startsWith("background-task-"))).toStrictEqual([])
      expect(outputIn(finishOf(chunks).messages.all, "c1")).toStrictEqual({ type: "json", value: { n: 2 } })
      expect(outputIn(yield* messagesOf(memoryOf("u1").thread), "c1")).toStrictEqual({
        type: "json",
        value: { n: 1 }
      })
    }).pipe(managed())
  )

  it.effect("two agents of one thread have each their own", () =>
    Effect.gen(function* () {
      const dig = gated("dig", { enabled: true, waitTimeout: 50 })
      const make = (id: string, n: number) => {
        const model = ScriptedModel.make([calls(callOf(id, "dig", n)), reply("started"), reply("done")])
        return { model, stream: Agent.stream(Agent.make({ id, model, tools: [dig.tool] }), "go", { memory }) }
      }
      const first = make("first", 1)
      const second = make("second", 2)
      const one = yield* Effect.fork(chunksOf(first.stream))
      yield* settle
      const two = yield* Effect.fork(chunksOf(second.stream))
      yield* settle
      yield* dig.end(2)
      yield* Fiber.join(two)
      expect(one.unsafePoll()).toBeNull()
      expect(first.model.requests).toHaveLength(2)
      expect(isAcknowledged(yield* messagesOf(), "first")).toBe(true)
      yield* dig.end(1)
      yield* Fiber.join(one)
      expect(outputIn(yield* messagesOf(), "first")).toStrictEqual({ type: "json", value: { n: 1 } })
      expect(outputIn(yield* messagesOf(), "second")).toStrictEqual({ type: "json", value: { n: 2 } })
    }).pipe(managed())
  )
})

describe("what is left", () => {
  const waits = { enabled: true, waitTimeout: 100, timeout: 1000 } as const

  /** Counts fibers, timers and listeners before and after, with tasks that have all settled in between. */
  const leavesNothing = <E, R>(
    live: (signal: AbortSignal, controller: AbortController) => Effect.Effect<void, E, R>
  ) =>
    Effect.gen(function* () {
      const supervisor = yield* Supervisor.track
      const alive = Effect.map(
        supervisor.value,
        fibers => fibers.filter(fiber => fiber.unsafePoll() === null).length
      )
      const timers = yield* Effect.promise(quietTimers)
      yield* Effect.gen(function* () {
        const controller = new AbortController()
        // What a manager begins with is over.
        yield* pass(1000)
        const before = yield* alive
        yield* live(controller.signal, controller)
        yield* turns(30)
        const statuses = (yield* tasks).map(({ status }) => status)
        expect(statuses.filter(status => status === "running" || status === "pending")).toStrictEqual([])
        expect(statuses).not.toStrictEqual([])
        yield* settle
        // Those of the manager, which go on until it ends.
        expect(yield* alive).toBe(before)
        expect(getEventListeners(controller.signal, "abort")).toHaveLength(0)
      }).pipe(managed({ progressInterval: 50, progressThrottle: 10 }), Effect.supervised(supervisor))
      yield* turns(30)
      expect(yield* alive).toBe(0)
      expect(yield* Effect.promise(quietTimers)).toBeLessThanOrEqual(timers)
    })

  it.effect("of a run that has waited for its tasks: nothing", () =>
    leavesNothing(signal =>
      Effect.gen(function* () {
        const dig = gated("dig", waits)
        const model = ScriptedModel.make([
          calls(callOf("c1", "dig", 1), callOf("c2", "dig", 2)),
          reply("started"),
          reply("one")
        ])
        const agent = Agent.make({ id: "a", model, tools: [dig.tool] })
        const fiber = yield* Effect.fork(chunksOf(Agent.stream(agent, "go", { memory, abortSignal: signal })))
        yield* settle
        yield* pass(60)
        yield* dig.end(1)
        yield* pass(40)
        yield* Fiber.join(fiber)
        yield* dig.end(2)
      })
    )
  )

  it.effect("of a run that was aborted while it waited: nothing", () =>
    leavesNothing((signal, controller) =>
      Effect.gen(function* () {
        const dig = gated("dig", waits)
        const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
        const agent = Agent.make({ id: "a", model, tools: [dig.tool] })
        const fiber = yield* Effect.fork(chunksOf(Agent.stream(agent, "go", { memory, abortSignal: signal })))
        yield* settle
        controller.abort()
        yield* Fiber.join(fiber)
        yield* dig.end(1)
      })
    )
  )

  it.effect("of a run that nobody reads any more: nothing", () =>
    leavesNothing(signal =>
      Effect.gen(function* () {
        const dig = gated("dig", waits)
        const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), [ScriptedModel.hang]])
        const agent = Agent.make({ id: "a", model, tools: [dig.tool] })
        const fiber = yield* Effect.fork(chunksOf(Agent.stream(agent, "go", { memory, abortSignal: signal })))
        yield* settle
        yield* Fiber.interrupt(fiber)
        yield* dig.end(1)
      })
    )
  )

  it.effect("of a task that was cancelled, and one that took too long: nothing", () =>
    leavesNothing(signal =>
      Effect.gen(function* () {
        const inner = gated("dig", waits)
        const helper = Agent.make({
          id: "helper",
          model: ScriptedModel.make([calls(callOf("i1", "dig", 1)), reply("never")]),
          tools: [inner.tool]
        })
        const dig = gated("drill", waits)
        const model = ScriptedModel.make([
          calls(toolCall("c1", "agent-helper", { prompt: "go" }), callOf("c2", "drill", 2)),
          reply("started")
        ])
        const agent = Agent.make({ id: "a", model, tools: [Agent.asTool(helper), dig.tool], maxSteps: 2 })
        yield* chunksOf(Agent.stream(agent, "go", { memory, abortSignal: signal }))
        const service = yield* BackgroundTasks.BackgroundTasks
        yield* service.cancel((yield* tasks)[1]?.id ?? "")
        yield* pass(1000)
        expect((yield* tasks).map(({ status }) => status)).toStrictEqual(["timed_out", "cancelled"])
      })
    )
  )
})

/** What a call in the background has of the surroundings of its run: the `FiberRef`s, and a scope of its own. */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, FiberRef, HashMap, TestClock } from "effect"
import { callOf, calls, loadEverything, managed, tasks } from "./backgroundKit.js"
import { chunksOf, settle } from "./kit.js"
import { reply } from "./memoryKit.js"

beforeAll(loadEverything)

const tenant = FiberRef.unsafeMake("nobody")

const model = () => ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])

const surroundings = Effect.zipWith(
  FiberRef.get(tenant),
  FiberRef.get(FiberRef.currentLogAnnotations),
  (name, annotations) => ({ name, request: HashMap.unsafeGet(annotations, "request") })
)

describe("the FiberRefs of a call in the background", () => {
  it.effect("are those of the run that made it, in retried and resumed attempts and in callbacks too", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const note = (where: string) =>
        Effect.map(surroundings, found => {
          seen.push({ where, ...found })
        })
      const dig = Tool.make("dig", {
        background: { enabled: true, retries: 1, onComplete: () => note("callback") },
        execute: (_, { resumeData, suspend }) =>
          Effect.gen(function* () {
            yield* note("attempt")
            if (resumeData !== undefined) return "done"
            if (seen.length === 1) return yield* Effect.fail("not yet")
            return yield* suspend()
          })
      })
      const agent = Agent.make({ id: "a", model: model(), tools: [dig] })
      yield* chunksOf(Agent.stream(agent, "go", { runId: "r1" })).pipe(
        Effect.annotateLogs("request", "r-1"),
        Effect.locally(tenant, "acme")
      )
      yield* TestClock.adjust("1 second")
      yield* settle
      const [task] = yield* tasks
      expect(task?.status).toBe("suspended")
      const manager = yield* BackgroundTasks.BackgroundTasks
      yield* Effect.locally(manager.resume(task?.id ?? "", "go on"), tenant, "somebody else")
      yield* settle
      const acme = { name: "acme", request: "r-1" }
      expect(seen).toEqual([
        { where: "attempt", ...acme },
        { where: "attempt", ...acme },
        { where: "attempt", ...acme },
        { where: "callback", ...acme }
      ])
    }).pipe(managed())
  )

  it.effect("leave those of the manager and of other runs alone", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const dig = Tool.make("dig", {
        background: { enabled: true },
        execute: () =>
          Effect.zipRight(
            Effect.map(FiberRef.get(tenant), name => seen.push(name)),
            FiberRef.set(tenant, "changed")
          )
      })
      for (const name of ["one", "two"]) {
        const agent = Agent.make({ id: "a", model: model(), tools: [dig] })
        yield* Effect.locally(chunksOf(Agent.stream(agent, "go")), tenant, name)
        yield* settle
      }
      expect(seen).toEqual(["one", "two"])
      expect(yield* FiberRef.get(tenant)).toBe("nobody")
    }).pipe(managed())
  )
})

describe("the scope of a call in the background", () => {
  it.effect("is that of the attempt: what it acquires is released with it, and not with the run", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const dig = Tool.make("dig", {
        execute: () =>
          Effect.gen(function* () {
            yield* Effect.acquireRelease(
              Effect.sync(() => told.push("acquired")),
              () => Effect.sync(() => told.push("released"))
            )
            yield* Effect.sleep("1 second")
            told.push("used")
          })
      })
      const agent = Agent.make({
        id: "a",
        model: model(),
        tools: [dig],
        backgroundTasks: { tools: "all" }
      })
      yield* Effect.scoped(chunksOf(Agent.stream(agent, "go")))
      told.push("run over")
      yield* TestClock.adjust("1 second")
      yield* settle
      expect(told).toEqual(["acquired", "run over", "used", "released"])
    }).pipe(managed())
  )
})

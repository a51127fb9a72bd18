/** What a model is told of the results of tools that run in the background. */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Fiber } from "effect"
import {
  callOf,
  calls,
  gated,
  isAcknowledged,
  loadEverything,
  managed,
  outputIn,
  tasks
} from "./backgroundKit.js"
import { chunksOf, settle } from "./kit.js"
import { memory, messagesOf, nextPrompt, reply } from "./memoryKit.js"

beforeAll(loadEverything)

describe("the result of a task", () => {
  it.effect.each(["text", "", 0, false, null, [], {}, undefined, { isError: true, content: [] }])(
    "is exactly what the tool gave: %j",
    value =>
      Effect.gen(function* () {
        const dig = gated("dig")
        const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("started")])
        const agent = Agent.make({ id: "a", model, tools: [dig.tool] })
        yield* chunksOf(Agent.stream(agent, "go", { memory }))
        yield* dig.end(1, Effect.succeed(value))
        const given = value === undefined ? null : value
        const [task] = yield* tasks
        expect(task?.result).toStrictEqual(given)
        const kind = typeof given === "object" && given !== null && "isError" in given ? "error-json" : "json"
        const told = typeof given === "string" ? { type: "text", value: given } : { type: kind, value: given }
        expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(told)
        expect(outputIn(yield* nextPrompt(), "c1")).toStrictEqual(told)
      }).pipe(managed())
  )
})

describe("`toModelOutput` of a tool in the background", () => {
  const shown = (seen: Array<unknown>) =>
    gated(
      "dig",
      { enabled: true },
      {
        toModelOutput: output => {
          seen.push(output)
          // What was written for results would choke on anything else.
          return `${(output as { readonly n: number }).n.toFixed(1)} dug`
        }
      }
    )

  it.effect("sees results, and never the acknowledgement", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const dig = shown(seen)
      const wait = gated("wait", { enabled: false })
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1)),
        calls(callOf("c2", "wait", 2)),
        reply("done")
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, wait.tool] })
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(agent, "go", { memory })))
      yield* settle
      expect(seen).toStrictEqual([])
      expect(isAcknowledged(model.requests[1]?.messages ?? [], "c1")).toBe(true)
      yield* dig.end(1)
      yield* wait.end(2)
      yield* Fiber.join(fiber)
      expect(seen).toStrictEqual([{ n: 1 }])
      const told = { type: "text", value: "1.0 dug" }
      expect(outputIn(model.requests[2]?.messages ?? [], "c1")).toStrictEqual(told)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(told)
      expect(yield* tasks).toMatchObject([{ status: "completed", result: { n: 1 } }])
    }).pipe(managed())
  )

  it.effect("sees nothing of a task that came to nothing", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const dig = shown(seen)
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1), callOf("c2", "dig", 2)), reply("ok")])
      yield* chunksOf(Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go", { memory }))
      yield* dig.end(1, Effect.fail("no"))
      yield* Effect.flatMap(BackgroundTasks.BackgroundTasks, service =>
        Effect.flatMap(tasks, made => service.cancel(made[1]?.id ?? ""))
      )
      expect(seen).toStrictEqual([])
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "error-text", value: "no" })
    }).pipe(managed())
  )

  it.effect("that fails fails the task", () =>
    Effect.gen(function* () {
      const dig = shown([])
      const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), reply("ok")])
      yield* chunksOf(Agent.stream(Agent.make({ id: "a", model, tools: [dig.tool] }), "go", { memory }))
      yield* dig.end(1, Effect.succeed("no number"))
      expect(yield* tasks).toMatchObject([{ status: "failed" }])
      expect(outputIn(yield* messagesOf(), "c1")).toMatchObject({ type: "error-text" })
    }).pipe(managed())
  )
})

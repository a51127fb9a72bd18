/** The option `untilIdle`: as a default, in a run, where there is nothing to wait for, and what is refused. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type RunOptions, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Schema } from "effect"
import { callOf, calls, gated, loadEverything, managed } from "./backgroundKit.js"
import { expectClosed, expectOpen, failureOf, idling, setUp, textsOf } from "./untilIdleKit.js"

const { reply } = ScriptedModel

await loadEverything()

const two = calls(callOf("c1", "work", 1), callOf("c2", "work", 2))

describe("the option", () => {
  const hello = [reply("Wait."), reply("Done.")]

  /** An agent whose default it is. */
  const byDefault = (
    untilIdle: Agent.AnyRunOptions["untilIdle"],
    turns: ReadonlyArray<ScriptedModel.Turn>
  ) => {
    const work = gated("work")
    const model = ScriptedModel.make(turns)
    const agent = Agent.make({
      id: "worker",
      model,
      tools: [work.tool],
      ...(untilIdle === undefined ? {} : { untilIdle })
    })
    return { agent, model, work }
  }

  it.effect("works as a default, and a turn does not begin another stream", () =>
    Effect.gen(function* () {
      const { agent, model, work } = byDefault(true, [two, ...hello, reply("Both.")])
      const open = yield* idling(agent, {})
      yield* work.end(1)
      yield* work.end(2)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Wait.", "Done.", "Both."])
      expect(model.requests).toHaveLength(4)
    }).pipe(managed())
  )

  it.effect("of the run wins over a default", () =>
    Effect.gen(function* () {
      const { agent, model } = byDefault(true, [two, reply("Wait.")])
      const open = yield* idling(agent, { untilIdle: false })
      expectClosed(open)
      expect(model.requests).toHaveLength(2)
    }).pipe(managed())
  )

  const wrong: ReadonlyArray<readonly [unknown, string]> = [
    [null, "untilIdle"],
    ["yes", "untilIdle"],
    [{ maxIdle: 0 }, "untilIdle.maxIdle"],
    [{ maxIdle: "soon" }, "untilIdle.maxIdle"],
    [{ maxIdle: Number.POSITIVE_INFINITY }, "untilIdle.maxIdle"],
    [{ batch: "some" }, "untilIdle.batch"],
    [{ maxIdleMs: 5 }, "maxIdleMs"]
  ]

  for (const [untilIdle, field] of wrong) {
    it.effect(`is refused by name: ${JSON.stringify(untilIdle)}`, () =>
      Effect.gen(function* () {
        const { agent, model } = setUp([reply("Hi.")])
        const options = { untilIdle } as RunOptions<[], undefined>
        const open = yield* idling(agent, options)
        expect(failureOf(open)).toMatchObject({ _tag: "InvalidConfiguration" })
        expect(String((failureOf(open) as { readonly message?: string }).message)).toContain(field)
        expect(model.requests).toHaveLength(0)
      }).pipe(managed())
    )
  }

  it.effect("gives a plain stream where no tasks are enabled", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([two, reply("Done.")])
      const open = yield* idling(agent)
      expectOpen(open)
      yield* work.end(1)
      yield* work.end(2)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Done."])
    }).pipe(managed({ enabled: false }))
  )

  it.effect("gives a plain stream where there is no manager", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([two, reply("Done.")])
      const open = yield* idling(agent)
      yield* work.end(1)
      yield* work.end(2)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Done."])
    })
  )

  it.effect("of an agent that another one calls is ignored", () =>
    Effect.gen(function* () {
      const quick = Tool.make("quick", {
        input: Schema.Struct({ n: Schema.Number }),
        execute: ({ n }) => Effect.succeed({ n })
      })
      const helper = Agent.make({
        id: "helper",
        model: ScriptedModel.make([calls(callOf("h1", "quick", 1)), reply("Found.")]),
        tools: [quick],
        untilIdle: true
      })
      const model = ScriptedModel.make([
        calls(ScriptedModel.toolCall("c1", "agent-helper", { prompt: "find" })),
        reply("Done.")
      ])
      const agent = Agent.make({ id: "chief", model, tools: [Agent.asTool(helper)], untilIdle: true })
      const open = yield* idling(agent, {})
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Done."])
    }).pipe(managed())
  )

  it.effect("is no option of generate, which ignores a default", () =>
    Effect.gen(function* () {
      const { agent } = byDefault(true, [two, reply("Wait.")])
      expect((yield* Agent.generate(agent, "go")).text).toBe("Wait.")
      const error = yield* Effect.flip(Agent.generate(agent, "go", { untilIdle: true }))
      expect(error).toMatchObject({ _tag: "InvalidConfiguration", field: "untilIdle" })
    }).pipe(managed())
  )
})

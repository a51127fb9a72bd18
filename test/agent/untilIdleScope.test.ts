/** Whose tasks an until-idle stream tells of, and in which order. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Schema } from "effect"
import { callOf, calls, gated, heard, loadEverything, managed } from "./backgroundKit.js"
import { chunksOf } from "./kit.js"
import {
  agentOf,
  eventsOf,
  expectClosed,
  expectOpen,
  idling,
  idlingIn,
  setUp,
  textsOf
} from "./untilIdleKit.js"

const { reply } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

await loadEverything()

describe("whose chunks", () => {
  it.effect("are told: never those of another user, thread or agent", () =>
    Effect.gen(function* () {
      const worlds = [
        { id: "worker", memory: { thread: "t1", resource: "u1" } },
        { id: "worker", memory: { thread: "t2", resource: "u2" } },
        { id: "worker", memory: { thread: "t3", resource: "u1" } },
        { id: "other", memory: { thread: "t1", resource: "u1" } },
        { id: "worker", memory: undefined },
        { id: "worker", memory: undefined }
      ]
      const made = worlds.map(({ id, memory }, index) => {
        const work = gated("work")
        const call = callOf(`c${index}`, "work", index)
        const model = ScriptedModel.make([calls(call), reply("Wait."), reply(`Done ${index}.`)])
        return { work, memory, agent: agentOf(model, [work.tool], id), model }
      })
      const open = yield* Effect.forEach(made, ({ agent, memory }) =>
        memory === undefined ? idling(agent) : idlingIn(agent, memory)
      )
      yield* Effect.forEach(made, ({ work }, index) => work.end(index))
      for (const [index, stream] of open.entries()) {
        expectClosed(stream)
        expect(textsOf(stream.chunks)).toStrictEqual(["Wait.", `Done ${index}.`])
        const told = made.map((_, other) => eventsOf(stream.chunks, `c${other}`))
        expect(told).toStrictEqual(
          made.map((_, other) => (other === index ? ["started", "running", "completed"] : []))
        )
      }
    }).pipe(managed({ perAgentConcurrency: 10 }))
  )

  it.effect("are told of tasks that a plain stream has called in the same thread", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([
        calls(callOf("c1", "work", 1)),
        reply("Wait."),
        reply("Hello."),
        reply("Done.")
      ])
      yield* chunksOf(Agent.stream(agent, "go", { memory }))
      const open = yield* idlingIn(agent, memory)
      expectOpen(open)
      yield* work.end(1)
      expectClosed(open)
      expect(textsOf(open.chunks)).toStrictEqual(["Hello.", "Done."])
      expect(eventsOf(open.chunks, "c1")).toStrictEqual(["completed"])
    }).pipe(managed())
  )
})

describe("the order", () => {
  it.effect("of a task: its start is told before anything else of it, and nothing twice", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const noisy = Tool.make("noisy", {
          input: Schema.Struct({ n: Schema.Number }),
          background: { enabled: true },
          execute: ({ n }, context) => Effect.as(context.write({ n }), { n })
        })
        const many = [...Array(5).keys()]
        const model = ScriptedModel.make([
          calls(...many.map(n => callOf(`c${n}`, "noisy", n))),
          reply("All.")
        ])
        const manager = yield* heard()
        const open = yield* idling(agentOf(model, [noisy]))
        expectClosed(open)
        for (const n of many) {
          expect(eventsOf(open.chunks, `c${n}`)).toStrictEqual(["started", "running", "output", "completed"])
        }
        expect(manager.filter(({ type }) => type === "background-task-completed")).toHaveLength(5)
      })
    ).pipe(managed())
  )
})

/** The turns of an until-idle stream after the first: what their model is told, and with which options. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Message } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Stream } from "effect"
import {
  callOf,
  calls,
  gated,
  isAcknowledged,
  loadEverything,
  managed,
  notesIn,
  outcomesIn,
  outputIn
} from "./backgroundKit.js"
import { chunksOf, only, settle } from "./kit.js"
import { messagesOf, rolesOf, textIn } from "./memoryKit.js"
import { expectClosed, idling, idlingIn, setUp } from "./untilIdleKit.js"

const { reply } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

await loadEverything()

describe("the prompt of a continuation", () => {
  it.effect("is the thread and one system message, which nobody stores", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([calls(callOf("c1", "work", 1)), reply("Wait."), reply("Done.")])
      const open = yield* idlingIn(agent, memory)
      const before = yield* messagesOf()
      yield* work.end(1)
      expectClosed(open)
      const prompt: ReadonlyArray<Message.Message> = model.requests[2]?.messages ?? []
      expect(notesIn(prompt)).toHaveLength(1)
      expect(rolesOf(prompt).filter(role => role !== "system")).toStrictEqual(rolesOf(before))
      expect(outcomesIn(before, "c1")).toHaveLength(1)
      expect(isAcknowledged(before, "c1")).toBe(true)
      const after = yield* messagesOf()
      expect(rolesOf(after)).toStrictEqual(["user", "assistant", "tool", "assistant", "assistant"])
      expect(outputIn(after, "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      expect(textIn(after, "assistant")).toBe("Wait.Done.")
    }).pipe(managed())
  )

  it.effect("holds what a user has said in the thread meanwhile", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([
        calls(callOf("c1", "work", 1)),
        reply("Wait."),
        reply("Sure."),
        reply("Done.")
      ])
      const open = yield* idlingIn(agent, memory)
      yield* chunksOf(Agent.stream(agent, "hurry up", { memory }))
      yield* work.end(1)
      expectClosed(open)
      const prompt = model.requests[3]?.messages ?? []
      expect(textIn(prompt, "user")).toBe("gohurry up")
      expect(textIn(prompt, "assistant")).toBe("Wait.Sure.")
    }).pipe(managed())
  )
})

describe("a turn after the first", () => {
  it.effect("has the options of the first again, but its id", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([calls(callOf("c1", "work", 1)), reply("Wait."), reply("Done.")])
      const open = yield* idling(agent, {
        runId: "mine",
        instructions: "Be kind.",
        modelSettings: { temperature: 0.5 }
      })
      yield* work.end(1)
      expectClosed(open)
      const [first, second] = only(open.chunks, "start").map(({ runId }) => runId)
      expect(first).toBe("mine")
      expect(second).not.toBe("mine")
      expect(model.requests.map(({ settings }) => settings?.temperature)).toStrictEqual([0.5, 0.5, 0.5])
      expect(model.requests.every(({ messages }) => textIn(messages, "system").startsWith("Be kind."))).toBe(
        true
      )
    }).pipe(managed())
  )

  it.effect("is told the turn that it continues, also where the thread is not recalled", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([calls(callOf("c1", "work", 1)), reply("Wait."), reply("Done.")])
      const stream = Agent.stream(agent, "go", {
        untilIdle: true,
        memory: { ...memory, lastMessages: false }
      })
      const fiber = yield* Effect.fork(Stream.runCollect(stream))
      yield* settle
      yield* work.end(1)
      yield* fiber
      expect(textIn(model.requests[2]?.messages ?? [], "user")).toBe("go")
      expect(outputIn(model.requests[2]?.messages ?? [], "c1")).toStrictEqual({
        type: "json",
        value: { n: 1 }
      })
    }).pipe(managed())
  )

  it.effect("is told the call that it answers to, however long ago that was", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([
        calls(callOf("c1", "work", 1)),
        reply("Wait."),
        ...[1, 2, 3, 4].map(n => reply(`Chat ${n}.`)),
        reply("Done.")
      ])
      const short = { ...memory, lastMessages: 2 }
      const open = yield* idlingIn(agent, short)
      for (const n of [1, 2, 3, 4]) yield* chunksOf(Agent.stream(agent, `hello ${n}`, { memory: short }))
      yield* work.end(1)
      expectClosed(open)
      expect(textIn(model.requests[5]?.messages ?? [], "user")).toBe("hello 3hello 4")
      const prompt = model.requests[6]?.messages ?? []
      expect(outputIn(prompt, "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      expect(textIn(prompt, "user")).toBe("gohello 1hello 2hello 3hello 4")
    }).pipe(managed())
  )

  it.effect("counts what an agent in the background has used", () =>
    Effect.gen(function* () {
      const used = { inputTokens: 100, outputTokens: 10, totalTokens: 110 }
      const gate = gated("hold", { enabled: false })
      const helper = Agent.make({
        id: "helper",
        model: ScriptedModel.make([calls(callOf("h1", "hold", 1)), reply("Found.", used)]),
        tools: [gate.tool]
      })
      const own = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
      const model = ScriptedModel.make([
        calls(ScriptedModel.toolCall("c1", "agent-helper", { prompt: "find" })),
        reply("Wait.", own),
        reply("Done.", own)
      ])
      const agent = Agent.make({
        id: "chief",
        model,
        tools: [Agent.asTool(helper)],
        backgroundTasks: { tools: { "agent-helper": true } }
      })
      const open = yield* idling(agent)
      yield* gate.end(1)
      expectClosed(open)
      const usages = only(open.chunks, "finish").map(({ payload }) => payload.output["usage"])
      expect(usages).toMatchObject([own, { inputTokens: 101, outputTokens: 11, totalTokens: 112 }])
    }).pipe(managed())
  )
})

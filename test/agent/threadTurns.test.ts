/** Several runs on one thread: what a busy thread means for the next run, and where the messages of each stand. */
import { describe, expect, it } from "@effect/vitest"
import {
  Agent,
  type Chunk,
  Errors,
  Id,
  type LanguageModel,
  type Message,
  type ModelPart,
  type ThreadStore,
  Tool
} from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Cause, Effect, Exit, Layer, Option, Schedule } from "effect"
import { stores as allStores, calling, guarded } from "./approvalKit.js"
import { loadEverything } from "./backgroundKit.js"
import { finishOf, only, settle, types } from "./kit.js"
import { memory, messagesOf, reply, stored, textIn, toolCall } from "./memoryKit.js"
import { failureOf, opened } from "./untilIdleKit.js"

await loadEverything()

const stores = Layer.merge(allStores, Id.layerSequential)

/** A model that answers a user's text when the test lets it, with `answer to` the text; what it was sent is kept. */
const gatedModel = () => {
  const gates = new Map<string, () => void>()
  const prompts = new Map<string, ReadonlyArray<Message.Message>>()
  const model: LanguageModel.LanguageModel = {
    provider: "kit",
    modelId: "gated",
    answer: ({ messages }) =>
      Effect.async(resume => {
        const said = textIn(messages.slice(-1))
        prompts.set(said, messages)
        gates.set(said, () =>
          resume(
            Effect.succeed({
              source: (async function* () {
                yield* reply(`answer to ${said}`)
              })(),
              normalize: (part: unknown) => part as ModelPart.ModelPart
            })
          )
        )
      })
  }
  const answer = (said: string) =>
    Effect.gen(function* () {
      yield* settle
      gates.get(said)?.()
      yield* settle
    })
  const prompt = (said: string): ReadonlyArray<string> =>
    (prompts.get(said) ?? []).map(message => textIn([message]))
  return { agent: Agent.make({ id: "keeper", model }), answer, prompt }
}

const texts = Effect.map(messagesOf(), messages => messages.map(message => textIn([message])))

type WhenBusy = ThreadStore.WhenBusy

const say = <R>(agent: Agent.Agent<R>, input: string, whenBusy?: WhenBusy, abortSignal?: AbortSignal) =>
  opened(
    Agent.stream(agent, input, {
      memory: { ...memory, ...(whenBusy === undefined ? {} : { whenBusy }) },
      runId: `run ${input}`,
      ...(abortSignal === undefined ? {} : { abortSignal })
    })
  )

const isOver = (open: { readonly chunks: ReadonlyArray<Chunk.Chunk> }): boolean =>
  open.chunks.at(-1)?.type === "finish"

describe("a run of a busy thread", () => {
  it.effect("starts at once, and recalls the thread when the run before it has ended", () =>
    Effect.gen(function* () {
      const { agent, answer, prompt } = gatedModel()
      const a = yield* say(agent, "A")
      const b = yield* say(agent, "B")
      const c = yield* say(agent, "C")
      expect([a, b, c].map(({ chunks }) => types(chunks)[0])).toStrictEqual(["start", "start", "start"])
      expect(types(b.chunks)).toStrictEqual(["start"])
      yield* answer("A")
      expect([a, b, c].map(isOver)).toStrictEqual([true, false, false])
      expect(prompt("B")).toStrictEqual(["A", "answer to A", "B"])
      expect(prompt("C")).toStrictEqual([])
      yield* answer("B")
      yield* answer("C")
      expect([a, b, c].map(isOver)).toStrictEqual([true, true, true])
      expect(prompt("C")).toStrictEqual(["A", "answer to A", "B", "answer to B", "C"])
      expect(yield* texts).toStrictEqual(["A", "answer to A", "B", "answer to B", "C", "answer to C"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("waits for no run of another thread or resource", () =>
    Effect.gen(function* () {
      const { agent, answer } = gatedModel()
      const a = yield* say(agent, "A")
      const other = yield* opened(
        Agent.stream(agent, "B", { memory: { thread: "t2", resource: memory.resource } })
      )
      const stranger = yield* opened(
        Agent.stream(agent, "C", { memory: { thread: memory.thread, resource: "somebody" } })
      )
      expect(failureOf(stranger)).toBeInstanceOf(Errors.ThreadNotFound)
      yield* answer("B")
      expect([isOver(a), isOver(other)]).toStrictEqual([false, true])
      yield* answer("A")
    }).pipe(Effect.provide(stores))
  )

  it.effect("is refused under `reject`, and the error names the run that speaks", () =>
    Effect.gen(function* () {
      const { agent, answer } = gatedModel()
      const a = yield* say(agent, "A")
      const b = yield* say(agent, "B", "reject")
      expect(types(b.chunks)).toStrictEqual(["start", "error", "finish"])
      expect(failureOf(b)).toMatchObject({ _tag: "ThreadBusy", threadId: memory.thread, runId: "run A" })
      yield* answer("A")
      expect(isOver(a)).toBe(true)
      const c = yield* say(agent, "C", "reject")
      yield* answer("C")
      expect(isOver(c)).toBe(true)
      expect(yield* texts).toStrictEqual(["A", "answer to A", "C", "answer to C"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("speaks at once under `parallel`, and the messages of each stand together", () =>
    Effect.gen(function* () {
      const { agent, answer, prompt } = gatedModel()
      yield* say(agent, "A")
      const b = yield* say(agent, "B", "parallel")
      const c = yield* say(agent, "C")
      yield* answer("B")
      expect([isOver(b), isOver(c)]).toStrictEqual([true, false])
      expect(prompt("C")).toStrictEqual([])
      yield* answer("A")
      yield* answer("C")
      expect(yield* texts).toStrictEqual(["A", "answer to A", "B", "answer to B", "C", "answer to C"])
      expect(prompt("C")).toStrictEqual(["A", "answer to A", "B", "answer to B", "C"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("is set for all runs of an agent, and changed by one", () =>
    Effect.gen(function* () {
      const { agent, answer } = gatedModel()
      const rejecting = Agent.make({ id: "keeper", model: agent.model, memory: { whenBusy: "reject" } })
      yield* say(agent, "A")
      const b = yield* say(rejecting, "B")
      const c = yield* say(rejecting, "C", "queue")
      expect(failureOf(b)).toBeInstanceOf(Errors.ThreadBusy)
      yield* answer("A")
      yield* answer("C")
      expect(isOver(c)).toBe(true)
    }).pipe(Effect.provide(stores))
  )

  it.effect("that is aborted while it waits ends with `abort` and `finish`, and leaves the line", () =>
    Effect.gen(function* () {
      const { agent, answer } = gatedModel()
      const controller = new AbortController()
      yield* say(agent, "A")
      const b = yield* say(agent, "B", "queue", controller.signal)
      const c = yield* say(agent, "C")
      controller.abort()
      yield* settle
      expect(types(b.chunks)).toStrictEqual(["start", "abort", "finish"])
      expect(b.exit()).toStrictEqual(Exit.void)
      yield* answer("A")
      yield* answer("C")
      expect(isOver(c)).toBe(true)
      expect(yield* texts).toStrictEqual(["A", "answer to A", "C", "answer to C"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("that is interrupted leaves the line, waiting or speaking", () =>
    Effect.gen(function* () {
      const { agent, answer } = gatedModel()
      const a = yield* say(agent, "A")
      const b = yield* say(agent, "B")
      const c = yield* say(agent, "C")
      yield* b.leave
      expect(types(c.chunks)).toStrictEqual(["start"])
      yield* a.leave
      yield* answer("C")
      expect(isOver(c)).toBe(true)
      expect(yield* texts).toStrictEqual(["A", "C", "answer to C"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("waits for a run that fails no longer than for one that ends well", () =>
    Effect.gen(function* () {
      const { agent, answer } = gatedModel()
      const failing = Agent.make({
        id: "keeper",
        model: ScriptedModel.make([[{ type: "error", error: "no" }]])
      })
      yield* say(agent, "A")
      const b = yield* say(failing, "B")
      const c = yield* say(agent, "C")
      yield* answer("A")
      yield* Effect.repeat(settle, Schedule.recurs(3))
      expect(failureOf(b)).toBeInstanceOf(Errors.ModelError)
      yield* answer("C")
      expect(isOver(c)).toBe(true)
    }).pipe(Effect.provide(stores))
  )

  it.effect("is refused when the option is no such word", () =>
    Effect.gen(function* () {
      const { agent } = gatedModel()
      const options = { memory: { ...memory, whenBusy: "wait" as never } }
      const exit = yield* Effect.exit(Agent.generate(agent, "A", options))
      const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.failureOption(exit.cause)) : undefined
      expect(error).toMatchObject({ _tag: "InvalidConfiguration", field: "memory.whenBusy" })
      expect(() => Agent.make({ id: "a", model: agent.model, memory: options.memory as never })).toThrow()
    }).pipe(Effect.provide(stores))
  )
})

describe("a run that works for a run of the same thread", () => {
  it.effect("does not wait for it", () =>
    Effect.gen(function* () {
      const { agent: inner, answer } = gatedModel()
      const consult = Tool.make("consult", {
        input: { type: "object" },
        execute: () => Effect.map(Agent.generate(inner, "inside", { memory }), ({ text }) => text)
      })
      const model = ScriptedModel.make([calling(toolCall("c1", "consult", {})), reply("done")])
      const outer = yield* say(Agent.make({ id: "outer", model, tools: [consult] }), "A")
      yield* answer("inside")
      yield* settle
      expect(finishOf(outer.chunks).output["text"]).toBe("done")
      expect(only(outer.chunks, "tool-result")).toHaveLength(1)
      const blocks = (yield* stored()).map(({ block, runId }) => [block, runId === "run A"])
      expect(blocks).toStrictEqual([
        [1, true],
        [1, true],
        [1, true],
        [1, true],
        [2, false],
        [2, false]
      ])
    }).pipe(Effect.provide(stores))
  )
})

describe("a suspended run", () => {
  it.effect("is not busy, and goes on in its block: the prompt holds what stood up to it", () =>
    Effect.gen(function* () {
      const { agent: talking, answer, prompt } = gatedModel()
      const { tool } = guarded()
      const model = ScriptedModel.make([calling(toolCall("c1", "remove", { n: 1 })), reply("removed")])
      const careful = Agent.make({ id: "careful", model, tools: [tool] })
      const first = yield* say(careful, "A")
      expect(finishOf(first.chunks).stepResult.reason).toBe("suspended")
      yield* say(talking, "B")
      yield* answer("B")
      const leg = yield* opened(Agent.approveToolCall(careful, { memory, runId: "run A" }))
      yield* settle
      expect(finishOf(leg.chunks).output["text"]).toBe("removed")
      const spoken = (model.requests[1]?.messages ?? []).map(message => textIn([message]))
      expect(spoken).not.toContain("answer to B")
      expect(yield* texts).toStrictEqual(["A", "", "", "removed", "B", "answer to B"])
      yield* say(talking, "C")
      yield* answer("C")
      expect(prompt("C")).toStrictEqual(["A", "", "", "removed", "B", "answer to B", "C"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("that goes on waits for its turn, and the call waits as before when that is aborted", () =>
    Effect.gen(function* () {
      const { agent: talking, answer } = gatedModel()
      const { executed, tool } = guarded()
      const model = ScriptedModel.make([calling(toolCall("c1", "remove", { n: 1 })), reply("removed")])
      const careful = Agent.make({ id: "careful", model, tools: [tool] })
      yield* say(careful, "A")
      yield* say(talking, "B")
      const controller = new AbortController()
      const abortSignal = controller.signal
      const aborted = yield* opened(Agent.approveToolCall(careful, { memory, runId: "run A", abortSignal }))
      expect(types(aborted.chunks)).toStrictEqual(["start"])
      controller.abort()
      yield* settle
      expect(types(aborted.chunks)).toStrictEqual(["start", "abort", "finish"])
      const leg = yield* opened(Agent.approveToolCall(careful, { memory, runId: "run A" }))
      expect(types(leg.chunks)).toStrictEqual(["start"])
      expect(executed).toStrictEqual([])
      yield* answer("B")
      yield* settle
      expect(executed).toStrictEqual([1])
      expect(finishOf(leg.chunks).output["text"]).toBe("removed")
      expect(yield* texts).toStrictEqual(["A", "", "", "removed", "B", "answer to B"])
    }).pipe(Effect.provide(stores))
  )
})

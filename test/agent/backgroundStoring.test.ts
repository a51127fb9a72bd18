/** What a task came to, and the order in which stores, runs and clients come to speak of it. */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, TaskStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { expectGrammar } from "../support/grammar.js"
import {
  callOf,
  calls,
  gated,
  isAcknowledged,
  loadEverything,
  managed,
  outputIn,
  pass,
  tasks
} from "./backgroundKit.js"
import { chunksOf, errorOf, finishOf, read, settle, types } from "./kit.js"
import { changed, ends, memory, messagesOf, nextPrompt, reply, rolesOf, text, toolCall } from "./memoryKit.js"

beforeAll(loadEverything)

/** An agent that dispatches one call and goes on with these answers. */
const agentOf = (rest: Parameters<typeof ScriptedModel.make>[0] = [reply("started")]) => {
  const dig = gated("dig")
  const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), ...rest])
  return { agent: Agent.make({ id: "a", model, tools: [dig.tool] }), dig }
}

describe("the outcome of a task", () => {
  it.effect("is in `finish` when it comes while the last answer is told", () =>
    Effect.gen(function* () {
      const { agent, dig } = agentOf([
        [...text("I am"), ScriptedModel.pause(20), ...text("done", "t2"), ends("stop")]
      ])
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(agent, "go", { memory })))
      yield* settle
      yield* dig.end(1)
      yield* pass(20)
      const chunks = yield* Fiber.join(fiber)
      expect(outputIn(finishOf(chunks).messages.all, "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
    }).pipe(managed())
  )

  it.effect("is in `finish` when it comes while the last answer is stored", () => {
    const open = Effect.runSync(Deferred.make<void>())
    return Effect.gen(function* () {
      const { agent, dig } = agentOf()
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(agent, "go", { memory })))
      yield* settle
      yield* dig.end(1)
      expect(fiber.unsafePoll()).toBeNull()
      yield* Deferred.succeed(open, undefined)
      const chunks = yield* Fiber.join(fiber)
      expect(outputIn(finishOf(chunks).messages.all, "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
    }).pipe(
      managed(
        {},
        Layer.merge(
          TaskStore.layerMemory,
          changed(store => ({
            append: (id, messages) =>
              messages.every(({ message }) => message.role === "assistant")
                ? Effect.zipRight(Deferred.await(open), store.append(id, messages))
                : store.append(id, messages)
          }))
        )
      )
    )
  })

  it.effect("is told with its call when the run never stored it", () =>
    Effect.gen(function* () {
      const { agent, dig } = agentOf()
      const { chunks } = yield* read(Agent.stream(agent, "go", { memory }))
      expect(errorOf(chunks)).toMatchObject({ _tag: "StorageError" })
      expect(rolesOf(yield* messagesOf())).toStrictEqual(["user"])
      yield* dig.end(1)
      const held = yield* messagesOf()
      expect(rolesOf(held)).toStrictEqual(["user", "assistant", "tool"])
      expect(outputIn(held, "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      expect(outputIn(yield* nextPrompt(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
    }).pipe(
      managed(
        {},
        Layer.merge(
          TaskStore.layerMemory,
          changed(store => {
            let isBroken = true
            return {
              append: (id, messages) => {
                const isStep = messages.some(({ message }) => message.role === "tool")
                if (!isStep || !isBroken) return store.append(id, messages)
                isBroken = false
                return Effect.dieMessage("broken")
              }
            }
          })
        )
      )
    )
  )

  it.effect("takes its place also when the task was suspended, and others have gone on since", () =>
    Effect.gen(function* () {
      const ask = Tool.make("ask", {
        background: { enabled: true },
        execute: (_, { resumeData, suspend }) =>
          resumeData === undefined ? suspend("what?") : Effect.succeed(`told ${String(resumeData)}`)
      })
      const model = ScriptedModel.make([calls(toolCall("c1", "ask", {})), reply("asked")])
      yield* chunksOf(Agent.stream(Agent.make({ id: "a", model, tools: [ask] }), "go", { memory }))
      expect(yield* tasks).toMatchObject([{ status: "suspended", suspendData: "what?" }])
      const prompt = yield* nextPrompt("meanwhile")
      expect(isAcknowledged(prompt, "c1")).toBe(true)
      const before = yield* messagesOf()
      const service = yield* BackgroundTasks.BackgroundTasks
      yield* service.resume((yield* tasks)[0]?.id ?? "", "this")
      yield* settle
      const after = yield* messagesOf()
      expect(outputIn(after, "c1")).toStrictEqual({ type: "text", value: "told this" })
      expect(after.filter(({ role }) => role !== "tool")).toStrictEqual(
        before.filter(({ role }) => role !== "tool")
      )
      expect(rolesOf(after)).toStrictEqual(rolesOf(before))
    }).pipe(managed())
  )

  it.effect("survives a client that sends the acknowledgement again", () =>
    Effect.gen(function* () {
      const { agent, dig } = agentOf()
      const chunks = yield* chunksOf(Agent.stream(agent, "go", { memory }))
      const { uiMessages } = finishOf(chunks).response
      yield* dig.end(1)
      const output = { type: "json", value: { n: 1 } }
      const prompt = yield* nextPrompt([
        ...uiMessages,
        { id: "q2", role: "user", parts: [{ type: "text", text: "and?" }] }
      ])
      expect(outputIn(prompt, "c1")).toStrictEqual(output)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(output)
    }).pipe(managed())
  )

  it.effect("survives one that does so while the task settles", () => {
    const open = Effect.runSync(Deferred.make<void>())
    let isSlow = false
    return Effect.gen(function* () {
      const { agent, dig } = agentOf()
      const chunks = yield* chunksOf(Agent.stream(agent, "go", { memory }))
      const { uiMessages } = finishOf(chunks).response
      isSlow = true
      const fiber = yield* Effect.fork(
        nextPrompt([...uiMessages, { id: "q2", role: "user", parts: [{ type: "text", text: "and?" }] }])
      )
      yield* settle
      yield* dig.end(1)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(fiber)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
    }).pipe(
      managed(
        {},
        Layer.merge(
          TaskStore.layerMemory,
          changed(store => ({
            append: (id, messages) =>
              isSlow
                ? Effect.zipRight(Deferred.await(open), store.append(id, messages))
                : store.append(id, messages)
          }))
        )
      )
    )
  })

  it.effect("survives a run that stores its step once more, as it was stopped while it did", () => {
    const controller = new AbortController()
    const [isThere, open] = [Effect.runSync(Deferred.make<void>()), Effect.runSync(Deferred.make<void>())]
    let times = 0
    return Effect.gen(function* () {
      const { agent, dig } = agentOf([])
      const fiber = yield* Effect.fork(
        chunksOf(Agent.stream(agent, "go", { memory, abortSignal: controller.signal }))
      )
      yield* Deferred.await(isThere)
      controller.abort("enough")
      yield* settle
      expect(times).toBe(2)
      // It finds its call in the thread, and the run is about to store that again.
      yield* dig.end(1)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      yield* Deferred.succeed(open, undefined)
      const chunks = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(outputIn(finishOf(chunks).messages.all, "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual({ type: "json", value: { n: 1 } })
    }).pipe(
      managed(
        {},
        Layer.merge(
          TaskStore.layerMemory,
          changed(store => ({
            append: (id, messages) => {
              if (!messages.some(({ message }) => message.role === "tool")) return store.append(id, messages)
              times++
              if (times > 1) return Effect.zipRight(Deferred.await(open), store.append(id, messages))
              // Done, but not said.
              return store
                .append(id, messages)
                .pipe(Effect.zipRight(Deferred.succeed(isThere, undefined)), Effect.zipRight(Effect.never))
            }
          }))
        )
      )
    )
  })

  it.effect("survives the end of calls that were left to the client", () => {
    const controller = new AbortController()
    return Effect.gen(function* () {
      const now = Tool.make("now", { background: { enabled: true }, execute: () => Effect.succeed("now") })
      const client = Tool.make("client", {})
      const model = ScriptedModel.make([calls(toolCall("c1", "now", {}), toolCall("c2", "client", {}))])
      const agent = Agent.make({ id: "a", model, tools: [now, client] })
      const chunks = yield* chunksOf(Agent.stream(agent, "go", { memory, abortSignal: controller.signal }))
      expectGrammar(chunks)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
      const output = { type: "text", value: "now" }
      expect(outputIn(finishOf(chunks).messages.all, "c1")).toStrictEqual(output)
      const held = yield* messagesOf()
      expect(outputIn(held, "c1")).toStrictEqual(output)
      expect(outputIn(held, "c2")).toMatchObject({ type: "error-text" })
    }).pipe(
      managed(
        {},
        Layer.merge(
          TaskStore.layerMemory,
          // The step is stored, and its task is told, when the run is stopped: it stores the step again.
          changed(store => ({
            replaceOutcome: (id, part) =>
              Effect.tap(store.replaceOutcome(id, part), isThere => {
                if (isThere) controller.abort("enough")
              })
          }))
        )
      )
    )
  })
})

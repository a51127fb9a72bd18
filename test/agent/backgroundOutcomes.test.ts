/** What a task came to takes the place of its acknowledgement, whenever it comes and however the run ends. */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, TaskStore, type ThreadStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { Broken } from "../support/broken.js"
import { expectGrammar } from "../support/grammar.js"
import {
  callOf,
  calls,
  gated,
  isAcknowledged,
  loadEverything,
  managed,
  outcomesIn,
  outputIn,
  pass,
  taskOf,
  tasks
} from "./backgroundKit.js"
import { chunksOf, finishOf, only, settle, types } from "./kit.js"
import {
  changed,
  ends,
  memory,
  messagesOf,
  nextPrompt,
  reply,
  rolesOf,
  stored,
  text,
  toolCall
} from "./memoryKit.js"

beforeAll(loadEverything)

/** Cancels the task of call `c1`. */
const cancel = Effect.gen(function* () {
  const service = yield* BackgroundTasks.BackgroundTasks
  const task = (yield* tasks).find(({ toolCallId }) => toolCallId === "c1")
  yield* service.cancel(task?.id ?? "")
  yield* settle
})

/** How a task may end, and what the model is told of it. */
const endings = [
  { status: "completed", output: { type: "json", value: { n: 1 } } },
  { status: "failed", output: { type: "error-text", value: "Broken: it broke" } },
  { status: "timed_out", output: { type: "error-text", value: expect.stringContaining("50 ms") } },
  { status: "cancelled", output: { type: "error-text", value: expect.stringContaining("cancelled") } }
] as const

type Status = (typeof endings)[number]["status"]

/** Ends the call of number 1 like this. */
const endAs = (dig: ReturnType<typeof gated>, status: Status) => {
  switch (status) {
    case "completed":
      return dig.end(1)
    case "failed":
      return dig.end(1, Effect.fail(new Broken({ message: "it broke" })))
    case "timed_out":
      return pass(50)
    case "cancelled":
      return Effect.orDie(cancel)
  }
}

/** An agent that dispatches one call and goes on with these answers. */
const agentOf = (
  rest: Parameters<typeof ScriptedModel.make>[0] = [reply("started")],
  more: Partial<Agent.Options<ReadonlyArray<Tool.Tool>>> = {}
) => {
  const dig = gated("dig", { enabled: true, timeout: 50 })
  const wait = gated("wait", { enabled: false })
  const model = ScriptedModel.make([calls(callOf("c1", "dig", 1)), ...rest])
  const agent = Agent.make({ id: "a", model, tools: [dig.tool, wait.tool], ...more })
  return { agent, dig, wait, model }
}

/** The parts of a conversation but for the outcome of this call, as it stands in the thread. */
const besides = (messages: ReadonlyArray<ThreadStore.ThreadMessage>, toolCallId: string) =>
  messages.map(
    ({ message, updatedAt: _, ...place }: ThreadStore.ThreadMessage & { updatedAt?: unknown }) => ({
      ...place,
      message:
        message.role === "tool"
          ? { ...message, content: message.content.filter(part => part.toolCallId !== toolCallId) }
          : message
    })
  )

describe.each(endings)("what a task that is $status came to", ({ output, status }) => {
  it.effect("is in the prompt of a later step, in `finish` and in the thread", () =>
    Effect.gen(function* () {
      const { agent, dig, model, wait } = agentOf([calls(callOf("c2", "wait", 2)), reply("done")])
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(agent, "go", { memory })))
      yield* settle
      expect(isAcknowledged(model.requests[1]?.messages ?? [], "c1")).toBe(true)
      yield* endAs(dig, status)
      yield* wait.end(2)
      const chunks = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(outputIn(model.requests[2]?.messages ?? [], "c1")).toStrictEqual(output)
      const { messages, response } = finishOf(chunks)
      expect(outputIn(messages.all, "c1")).toStrictEqual(output)
      expect(outputIn(messages.nonUser, "c1")).toStrictEqual(output)
      expect(outputIn(response.messages, "c1")).toStrictEqual(output)
      const held = yield* messagesOf()
      expect(outputIn(held, "c1")).toStrictEqual(output)
      const [task] = yield* tasks
      expect(task?.status).toBe(status)
      expect(taskOf(outcomesIn(held, "c1")[0]?.providerOptions)).toStrictEqual({ taskId: task?.id, status })
      // The stream had told the acknowledgement, and tells no second result.
      expect(only(chunks, "tool-result").filter(({ payload }) => payload.toolCallId === "c1")).toHaveLength(1)
    }).pipe(managed())
  )

  it.effect("is in the thread after the run: in its place, and nothing else changes", () =>
    Effect.gen(function* () {
      const quick = Tool.make("quick", { execute: () => Effect.succeed("quick") })
      const dig = gated("dig", { enabled: true, timeout: 50 })
      const model = ScriptedModel.make([
        [
          ...text("let me"),
          callOf("c0", "dig", 0),
          callOf("c1", "dig", 1),
          toolCall("c2", "quick", {}),
          ends("tool-calls")
        ],
        reply("started")
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, quick] })
      yield* chunksOf(Agent.stream(agent, "go", { memory }))
      // Others go on with the thread meanwhile.
      yield* nextPrompt("meanwhile")
      const before = yield* stored()
      expect(
        isAcknowledged(
          before.map(({ message }) => message),
          "c1"
        )
      ).toBe(true)
      yield* dig.end(0, Effect.succeed("first"))
      yield* endAs(dig, status)
      const after = yield* stored()
      expect(
        outputIn(
          after.map(({ message }) => message),
          "c1"
        )
      ).toStrictEqual(output)
      expect(besides(after, "c1")).toStrictEqual(
        besides(before, "c1").map(({ message, ...place }) => ({
          ...place,
          message:
            message.role === "tool"
              ? {
                  ...message,
                  content: message.content.map(part =>
                    part.toolCallId === "c0"
                      ? outcomesIn(
                          after.map(held => held.message),
                          "c0"
                        )[0]
                      : part
                  )
                }
              : message
        }))
      )
      expect(
        outputIn(
          after.map(({ message }) => message),
          "c0"
        )
      ).toStrictEqual({ type: "text", value: "first" })
      // The next run on the thread sees it.
      const prompt = yield* nextPrompt("and now?")
      expect(outputIn(prompt, "c1")).toStrictEqual(output)
    }).pipe(managed())
  )

  it.effect("wins over the acknowledgement when it is there before the step is stored", () =>
    Effect.gen(function* () {
      const dig = gated("dig", { enabled: true, timeout: 50 })
      const wait = gated("wait", { enabled: false })
      const model = ScriptedModel.make([
        calls(callOf("c1", "dig", 1), callOf("c2", "wait", 2)),
        reply("done")
      ])
      const agent = Agent.make({ id: "a", model, tools: [dig.tool, wait.tool] })
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(agent, "go", { memory })))
      yield* settle
      yield* endAs(dig, status)
      expect(yield* tasks).toMatchObject([{ status }])
      expect(rolesOf(yield* messagesOf())).toStrictEqual(["user"])
      yield* wait.end(2)
      const chunks = yield* Fiber.join(fiber)
      expect(outputIn(model.requests[1]?.messages ?? [], "c1")).toStrictEqual(output)
      expect(outputIn(finishOf(chunks).messages.all, "c1")).toStrictEqual(output)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(output)
    }).pipe(managed())
  )

  it.effect("is in the thread when the store was slow with the acknowledgement", () => {
    const open = Effect.runSync(Deferred.make<void>())
    return Effect.gen(function* () {
      const { agent, dig, model, wait } = agentOf([calls(callOf("c2", "wait", 2)), reply("done")])
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(agent, "go", { memory })))
      yield* settle
      expect(rolesOf(yield* messagesOf())).toStrictEqual(["user"])
      yield* endAs(dig, status)
      yield* Deferred.succeed(open, undefined)
      yield* settle
      // While the run still goes on.
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(output)
      yield* wait.end(2)
      const chunks = yield* Fiber.join(fiber)
      expect(outputIn(model.requests[1]?.messages ?? [], "c1")).toStrictEqual(output)
      expect(outputIn(finishOf(chunks).messages.all, "c1")).toStrictEqual(output)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(output)
    }).pipe(
      managed(
        {},
        Layer.merge(
          TaskStore.layerMemory,
          changed(store => ({
            append: (id, messages) =>
              messages.some(({ message }) => message.role === "tool")
                ? Effect.zipRight(Deferred.await(open), store.append(id, messages))
                : store.append(id, messages)
          }))
        )
      )
    )
  })

  it.effect("is in the thread after an abort of the run, which stops no task", () =>
    Effect.gen(function* () {
      const { agent, dig } = agentOf([[...text("I am"), ScriptedModel.hang]])
      const controller = new AbortController()
      const stream = Agent.stream(agent, "go", { memory, abortSignal: controller.signal })
      const fiber = yield* Effect.fork(chunksOf(stream))
      yield* settle
      controller.abort("enough")
      const chunks = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
      expect(dig.contexts[0]?.abortSignal.aborted).toBe(false)
      expect(isAcknowledged(finishOf(chunks).messages.all, "c1")).toBe(true)
      yield* endAs(dig, status)
      const held = yield* messagesOf()
      expect(outputIn(held, "c1")).toStrictEqual(output)
      expect(rolesOf(held)).toStrictEqual(["user", "assistant", "tool", "assistant"])
      expect(outputIn(yield* nextPrompt(), "c1")).toStrictEqual(output)
    }).pipe(managed())
  )

  it.effect("is in the thread when nobody reads the run any more", () =>
    Effect.gen(function* () {
      const { agent, dig } = agentOf([[...text("I am"), ScriptedModel.hang]])
      yield* Agent.stream(agent, "go", { memory }).pipe(
        Stream.takeUntil(({ type }) => type === "text-delta"),
        Stream.runDrain
      )
      expect(isAcknowledged(yield* messagesOf(), "c1")).toBe(true)
      expect(yield* tasks).toMatchObject([{ status: "running" }])
      yield* endAs(dig, status)
      expect(outputIn(yield* messagesOf(), "c1")).toStrictEqual(output)
    }).pipe(managed())
  )

  it.effect("is kept of a run without a thread, in what it tells at its end", () =>
    Effect.gen(function* () {
      const { agent, dig, model, wait } = agentOf([calls(callOf("c2", "wait", 2)), reply("done")])
      const fiber = yield* Effect.fork(chunksOf(Agent.stream(agent, "go")))
      yield* settle
      yield* endAs(dig, status)
      yield* wait.end(2)
      const chunks = yield* Fiber.join(fiber)
      expect(outputIn(model.requests[2]?.messages ?? [], "c1")).toStrictEqual(output)
      expect(outputIn(finishOf(chunks).messages.all, "c1")).toStrictEqual(output)
      expect(yield* tasks).toMatchObject([{ status }])
    }).pipe(managed())
  )
})

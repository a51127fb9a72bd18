/** Outcomes of background tasks go to the run that speaks next in their thread, once. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Message, RunStore, ThreadStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Layer, Schema } from "effect"
import {
  callOf,
  calls,
  gated,
  isAcknowledged,
  loadEverything,
  managed,
  notesIn,
  outputIn,
  stores as taskStores
} from "./backgroundKit.js"
import { chunksOf, settle } from "./kit.js"
import { memory, messagesOf, reply, textIn } from "./memoryKit.js"
import {
  agentOf,
  expectClosed,
  expectOpen,
  failureOf,
  idlingIn,
  namedIn,
  opened,
  setUp,
  textsOf
} from "./untilIdleKit.js"

await loadEverything()

const result = (n: number) => ({ type: "json", value: { n } })

/** A tool in the foreground that ends when the test lets it. */
const held = () => {
  const gate = Effect.runSync(Deferred.make<void>())
  const tool = Tool.make("hold", {
    input: Schema.Struct({ n: Schema.Number }),
    execute: () => Effect.as(Deferred.await(gate), "held")
  })
  return { tool, open: Effect.zipRight(Deferred.succeed(gate, undefined), settle) }
}

/** An agent that holds its thread in a tool, and then answers. */
const speaking = (...answers: ReadonlyArray<ScriptedModel.Turn>) => {
  const hold = held()
  const model = ScriptedModel.make(answers)
  return { hold, model, agent: Agent.make({ id: "speaker", model, tools: [hold.tool] }) }
}

const promptOf = (model: ScriptedModel.ScriptedModel, index: number): ReadonlyArray<Message.Message> =>
  model.requests[index]?.messages ?? []

const texts = Effect.map(messagesOf(), messages =>
  messages.map(message => textIn([message])).filter(text => text !== "")
)

describe("an outcome that arrives while another run of the thread speaks", () => {
  it.effect("is in the prompt of its next step, and named there", () =>
    Effect.gen(function* () {
      const { agent, work } = setUp([calls(callOf("c1", "work", 1)), reply("Started.")])
      const speaker = speaking(
        calls(callOf("h1", "hold", 1)),
        calls(callOf("h2", "hold", 2)),
        reply("Answered.")
      )
      yield* chunksOf(Agent.stream(agent, "go", { memory }))
      const open = yield* opened(Agent.stream(speaker.agent, "And?", { memory }))
      expect(isAcknowledged(promptOf(speaker.model, 0), "c1")).toBe(true)
      yield* work.end(1)
      yield* speaker.hold.open
      expectClosed(open)
      const [second, third] = [promptOf(speaker.model, 1), promptOf(speaker.model, 2)]
      expect(outputIn(second, "c1")).toStrictEqual(result(1))
      expect(namedIn(second)).toStrictEqual(["c1 completed"])
      expect(second.at(-1)?.role).toBe("system")
      expect(outputIn(third, "c1")).toStrictEqual(result(1))
      expect(notesIn(third)).toHaveLength(1)
      expect(third.at(-1)?.role).toBe("tool")
    }).pipe(managed())
  )

  it.effect("is read from the thread, also when another process has settled its task", () =>
    Effect.gen(function* () {
      const store = yield* ThreadStore.ThreadStore
      const part = (status: string, value: string): Message.ToolResultPart => ({
        type: "tool-result",
        toolCallId: "c1",
        toolName: "work",
        output: { type: "text", value },
        providerOptions: { eddy: { backgroundTask: { taskId: "task-1", status } } }
      })
      yield* store.open({ id: memory.thread, resourceId: memory.resource })
      yield* store.append(memory.thread, [
        { id: "1", message: { role: "user", content: [{ type: "text", text: "go" }] } },
        {
          id: "2",
          message: {
            role: "assistant",
            content: [{ type: "tool-call", toolCallId: "c1", toolName: "work", input: {} }]
          }
        },
        { id: "3", message: { role: "tool", content: [part("running", "started")] } }
      ])
      const speaker = speaking(calls(callOf("h1", "hold", 1)), reply("Answered."))
      const open = yield* opened(Agent.stream(speaker.agent, "And?", { memory }))
      yield* store.replaceOutcome(memory.thread, part("failed", "no disk"))
      yield* speaker.hold.open
      expectClosed(open)
      expect(outputIn(promptOf(speaker.model, 0), "c1")).toStrictEqual({ type: "text", value: "started" })
      expect(outputIn(promptOf(speaker.model, 1), "c1")).toStrictEqual({ type: "text", value: "no disk" })
      expect(namedIn(promptOf(speaker.model, 1))).toStrictEqual(["c1 failed"])
    }).pipe(Effect.provide(ThreadStore.layerMemory))
  )

  it.effect("ends an until-idle stream that waited for it, without another turn", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([calls(callOf("c1", "work", 1)), reply("Started.")])
      const speaker = speaking(calls(callOf("h1", "hold", 1)), reply("Answered."))
      const idle = yield* idlingIn(agent, memory)
      expectOpen(idle)
      const open = yield* opened(Agent.stream(speaker.agent, "And?", { memory }))
      yield* work.end(1)
      expectOpen(idle)
      expect(model.requests).toHaveLength(2)
      yield* speaker.hold.open
      expectClosed(open)
      expectClosed(idle)
      expect(textsOf(idle.chunks)).toStrictEqual(["Started."])
      expect(outputIn(promptOf(speaker.model, 1), "c1")).toStrictEqual(result(1))
      expect(yield* texts).toStrictEqual(["go", "Started.", "And?", "Answered."])
    }).pipe(managed())
  )

  it.effect("goes to a continuation when that run has no step left, after it", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([
        calls(callOf("c1", "work", 1)),
        reply("Started."),
        reply("Done.")
      ])
      const gate = yield* Deferred.make<void>()
      const said = ScriptedModel.make([reply("Hello.")])
      const speaker = agentOf(
        { ...said, answer: request => Effect.zipLeft(said.answer(request), Deferred.await(gate)) },
        [],
        "speaker"
      )
      const idle = yield* idlingIn(agent, memory)
      const open = yield* opened(Agent.stream(speaker, "And?", { memory }))
      yield* work.end(1)
      expect(model.requests).toHaveLength(2)
      yield* Deferred.succeed(gate, undefined)
      yield* settle
      expectClosed(open)
      expectClosed(idle)
      expect(textsOf(idle.chunks)).toStrictEqual(["Started.", "Done."])
      expect(namedIn(promptOf(model, 2))).toStrictEqual(["c1 completed"])
      expect(yield* texts).toStrictEqual(["go", "Started.", "And?", "Hello.", "Done."])
    }).pipe(managed())
  )

  it.effect("is left to the continuation when that run fails before it has answered", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([
        calls(callOf("c1", "work", 1)),
        reply("Started."),
        reply("Done.")
      ])
      const speaker = speaking(calls(callOf("h1", "hold", 1)), [{ type: "error", error: "overloaded" }])
      const idle = yield* idlingIn(agent, memory)
      const open = yield* opened(Agent.stream(speaker.agent, "And?", { memory, maxRetries: 0 }))
      yield* work.end(1)
      yield* speaker.hold.open
      expect(failureOf(open)).toMatchObject({ _tag: "ModelError" })
      expectClosed(idle)
      expect(outputIn(promptOf(speaker.model, 1), "c1")).toStrictEqual(result(1))
      expect(namedIn(promptOf(model, 2))).toStrictEqual(["c1 completed"])
    }).pipe(managed())
  )

  it.effect("is waited for no longer when the stream is aborted in the queue", () =>
    Effect.gen(function* () {
      const { agent, model, work } = setUp([calls(callOf("c1", "work", 1)), reply("Started.")])
      const speaker = speaking(calls(callOf("h1", "hold", 1)), reply("Answered."))
      const controller = new AbortController()
      const idle = yield* idlingIn(agent, memory, { abortSignal: controller.signal })
      yield* opened(Agent.stream(speaker.agent, "And?", { memory }))
      yield* work.end(1)
      controller.abort()
      yield* settle
      expectClosed(idle)
      expect(idle.chunks.slice(-3).map(({ type }) => type)).toStrictEqual(["start", "abort", "finish"])
      expect(model.requests).toHaveLength(2)
    }).pipe(managed())
  )
})

describe("a message of the user", () => {
  it.effect(
    "is answered at once between two turns of an until-idle stream, and while a run waits for its task",
    () =>
      Effect.gen(function* () {
        const { agent } = setUp([calls(callOf("c1", "work", 1)), reply("Started.")])
        const idle = yield* idlingIn(agent, memory)
        const dig = gated("dig", { enabled: true, waitTimeout: "1 minute" })
        const waiting = agentOf(
          ScriptedModel.make([calls(callOf("c2", "dig", 2)), reply("Digging."), reply("Dug.")]),
          [dig.tool]
        )
        const waits = yield* opened(Agent.stream(waiting, "dig", { memory }))
        expectOpen(waits)
        const quick = agentOf(ScriptedModel.make([reply("Yes?")]), [], "quick")
        const answer = yield* opened(
          Agent.stream(quick, "Hello", { memory: { ...memory, whenBusy: "reject" } })
        )
        expectClosed(answer)
        expectOpen(idle)
        expectOpen(waits)
        yield* dig.end(2)
        expectClosed(waits)
        expect(yield* texts).toStrictEqual(["go", "Started.", "dig", "Digging.", "Dug.", "Hello", "Yes?"])
      }).pipe(managed())
  )
})

describe("a task that settles while an until-idle run of its thread is suspended, or goes on", () => {
  const stores = Layer.merge(taskStores, RunStore.layerMemory)

  /** The task of one run, and a run of the same thread that waits for approval. */
  const waiting = Effect.gen(function* () {
    const work = gated("work")
    const gate = yield* Deferred.make<void>()
    const remove = Tool.make("remove", {
      input: Schema.Struct({ n: Schema.Number }),
      requireApproval: true,
      execute: () => Effect.as(Deferred.await(gate), "removed")
    })
    const model = ScriptedModel.make([
      calls(callOf("c1", "work", 1)),
      reply("Started."),
      calls(callOf("c2", "remove", 2)),
      reply("Removed."),
      reply("Done.")
    ])
    const agent = agentOf(model, [work.tool, remove])
    const first = yield* idlingIn(agent, memory)
    const second = yield* idlingIn(agent, memory, { runId: "second" })
    expectClosed(first)
    expectClosed(second)
    const options = { memory, runId: "second", toolCallId: "c2", untilIdle: true }
    return {
      model,
      work,
      approve: opened(Agent.approveToolCall(agent, options)),
      finish: Effect.zipRight(Deferred.succeed(gate, undefined), settle)
    }
  })

  const isAnsweredOnce = (model: ScriptedModel.ScriptedModel, request: number): void => {
    expect(model.requests).toHaveLength(request + 1)
    expect(outputIn(promptOf(model, request), "c1")).toStrictEqual(result(1))
    expect(namedIn(promptOf(model, request))).toStrictEqual(["c1 completed"])
  }

  it.effect("is answered by the run that goes on, when it settles before the approval", () =>
    Effect.gen(function* () {
      const { approve, finish, model, work } = yield* waiting
      yield* work.end(1)
      const going = yield* approve
      yield* finish
      expectClosed(going)
      expect(textsOf(going.chunks)).toStrictEqual(["Removed."])
      isAnsweredOnce(model, 3)
    }).pipe(managed({}, stores))
  )

  it.effect("is answered by the run that goes on, when it settles while the approved call runs", () =>
    Effect.gen(function* () {
      const { approve, finish, model, work } = yield* waiting
      const going = yield* approve
      yield* work.end(1)
      yield* finish
      expectClosed(going)
      expect(textsOf(going.chunks)).toStrictEqual(["Removed."])
      isAnsweredOnce(model, 3)
    }).pipe(managed({}, stores))
  )

  it.effect("is answered by a continuation, when it settles after the last step", () =>
    Effect.gen(function* () {
      const { approve, finish, model, work } = yield* waiting
      const going = yield* approve
      yield* finish
      expectOpen(going)
      yield* work.end(1)
      expectClosed(going)
      expect(textsOf(going.chunks)).toStrictEqual(["Removed.", "Done."])
      isAnsweredOnce(model, 4)
    }).pipe(managed({}, stores))
  )
})

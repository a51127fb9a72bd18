/** Suspended calls that are resumed as a stream: which task it is, what is told of it, and the turn that answers. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, Id, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Layer, Schema } from "effect"
import {
  callOf,
  calls,
  gated,
  loadEverything,
  managed,
  outputIn,
  pass,
  stores,
  tasks
} from "./backgroundKit.js"
import { chunksOf, only, settle, types } from "./kit.js"
import { messagesOf, textIn } from "./memoryKit.js"
import {
  agentOf,
  counted,
  eventsOf,
  expectClosed,
  expectNothingLeft,
  expectOpen,
  failureOf,
  idling,
  idlingIn,
  namedIn,
  opened,
  textsOf
} from "./untilIdleKit.js"

const { reply } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

await loadEverything()

const question = Schema.Struct({ n: Schema.Number })

/** A tool that asks, tells what it was answered, and gives that; asks again as often as the answer says so. */
const asking = () =>
  Tool.make("ask", {
    input: question,
    resume: Schema.Struct({ answer: Schema.String }),
    background: { enabled: true },
    execute: ({ n }, { resumeData, suspend, write }) => {
      if (resumeData === undefined) return suspend({ question: n })
      const { answer } = resumeData as { readonly answer: string }
      return answer === "again" ? suspend({ again: n }) : Effect.as(write(answer), { n, answer })
    }
  })

const two = calls(callOf("c1", "ask", 1), callOf("c2", "ask", 2))

const setUp = (turns: ReadonlyArray<ScriptedModel.Turn>) => {
  const model = ScriptedModel.make(turns)
  return { model, agent: agentOf(model, [asking()]) }
}

const call = (toolCallId: string, runId = "r1") => ({ toolCallId, runId })

const statuses = Effect.map(tasks, all => all.map(({ status }) => status))

describe("with untilIdle", () => {
  for (const [first, second] of [
    ["c1", "c2"],
    ["c2", "c1"]
  ] as const) {
    for (const inThread of [true, false]) {
      it.effect(
        `two calls of one tool: ${first} before ${second}, ${inThread ? "in a" : "without a"} thread`,
        () =>
          Effect.gen(function* () {
            const { agent, model } = setUp([two, reply("Asked."), reply("One."), reply("Two.")])
            const resume = (toolCallId: string, answer: string) => {
              const options = { ...call(toolCallId), untilIdle: true }
              return inThread
                ? opened(Agent.resumeStream(agent, { answer }, { ...options, memory }))
                : opened(Agent.resumeStream(agent, { answer }, options))
            }
            yield* inThread ? idlingIn(agent, memory, { runId: "r1" }) : idling(agent, { runId: "r1" })
            const one = yield* resume(first, "yes")
            expectClosed(one)
            expect(eventsOf(one.chunks, first)).toStrictEqual(["resumed", "output", "completed"])
            expect(eventsOf(one.chunks, second)).toStrictEqual([])
            expect(textsOf(one.chunks)).toStrictEqual(["One."])
            const other = yield* resume(second, "no")
            expectClosed(other)
            expect(eventsOf(other.chunks, second)).toStrictEqual(["resumed", "output", "completed"])
            expect(textsOf(other.chunks)).toStrictEqual(["Two."])
            expect(model.requests.slice(2).map(({ messages }) => namedIn(messages))).toStrictEqual([
              [`${first} completed`],
              [`${second} completed`]
            ])
            const last = model.requests[3]?.messages ?? []
            const numberOf = (id: string) => (id === "c1" ? 1 : 2)
            expect(outputIn(last, second)).toStrictEqual({
              type: "json",
              value: { n: numberOf(second), answer: "no" }
            })
            if (!inThread) return
            expect(outputIn(last, first)).toStrictEqual({
              type: "json",
              value: { n: numberOf(first), answer: "yes" }
            })
            expect(textIn(yield* messagesOf(), "assistant")).toBe("Asked.One.Two.")
          }).pipe(managed())
      )
    }
  }

  it.effect("that suspends again closes without a turn, and can be resumed again", () =>
    Effect.gen(function* () {
      const { agent } = setUp([calls(callOf("c1", "ask", 1)), reply("Asked."), reply("Done.")])
      yield* idlingIn(agent, memory, { runId: "r1" })
      const options = { ...call("c1"), memory, untilIdle: true }
      const again = yield* opened(Agent.resumeStream(agent, { answer: "again" }, options))
      expectClosed(again)
      expect(types(again.chunks)).toStrictEqual(["background-task-resumed", "background-task-suspended"])
      yield* expectNothingLeft(again)
      const done = yield* opened(Agent.resumeStream(agent, { answer: "yes" }, options))
      expectClosed(done)
      expect(textsOf(done.chunks)).toStrictEqual(["Done."])
    }).pipe(counted, managed())
  )

  it.effect("waits for whatever else runs in the thread, and takes over", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const model = ScriptedModel.make([
        calls(callOf("c1", "ask", 1), callOf("c2", "work", 2)),
        reply("Asked."),
        reply("Answered."),
        reply("Done.")
      ])
      const agent = agentOf(model, [asking(), work.tool])
      const first = yield* idlingIn(agent, memory, { runId: "r1" })
      expectOpen(first)
      const options = { ...call("c1"), memory, untilIdle: true }
      const resumed = yield* opened(Agent.resumeStream(agent, { answer: "yes" }, options))
      expectClosed(first)
      expectOpen(resumed)
      yield* work.end(2)
      expectClosed(resumed)
      expect(textsOf(resumed.chunks)).toStrictEqual(["Answered.", "Done."])
    }).pipe(managed())
  )

  it.effect("of a call in a thread needs that thread, and leaves it suspended otherwise", () =>
    Effect.gen(function* () {
      const { agent } = setUp([two, reply("Asked.")])
      yield* idlingIn(agent, memory, { runId: "r1" })
      const open = yield* opened(
        Agent.resumeStream(agent, { answer: "yes" }, { ...call("c1"), untilIdle: true })
      )
      expect(failureOf(open)).toMatchObject({ _tag: "InvalidConfiguration", field: "memory" })
      expect(yield* statuses).toStrictEqual(["suspended", "suspended"])
    }).pipe(managed())
  )
})

describe("without untilIdle", () => {
  it.effect("tells what happens to the task, asks no model, and leaves the outcome in the thread", () =>
    Effect.gen(function* () {
      const { agent, model } = setUp([two, reply("Asked.")])
      yield* idlingIn(agent, memory, { runId: "r1" })
      const chunks = yield* chunksOf(Agent.resumeStream(agent, { answer: "yes" }, { ...call("c2"), memory }))
      expect(types(chunks)).toStrictEqual([
        "background-task-resumed",
        "background-task-output",
        "background-task-completed"
      ])
      expect(eventsOf(chunks, "c2")).toHaveLength(3)
      expect(model.requests).toHaveLength(2)
      expect(outputIn(yield* messagesOf(), "c2")).toStrictEqual({
        type: "json",
        value: { n: 2, answer: "yes" }
      })
    }).pipe(managed())
  )

  it.effect("closes when the task suspends again", () =>
    Effect.gen(function* () {
      const { agent } = setUp([two, reply("Asked.")])
      yield* idling(agent, { runId: "r1" })
      const open = yield* opened(Agent.resumeStream(agent, { answer: "again" }, call("c1")))
      expectClosed(open)
      expect(types(open.chunks)).toStrictEqual(["background-task-resumed", "background-task-suspended"])
      yield* expectNothingLeft(open)
    }).pipe(counted, managed())
  )

  it.effect("disturbs no until-idle stream of the same thread, which answers", () =>
    Effect.gen(function* () {
      const work = gated("work")
      const model = ScriptedModel.make([
        calls(callOf("c1", "ask", 1), callOf("c2", "work", 2)),
        reply("Asked."),
        reply("Answered."),
        reply("Done.")
      ])
      const agent = agentOf(model, [asking(), work.tool])
      const first = yield* idlingIn(agent, memory, { runId: "r1" })
      const resumed = yield* opened(Agent.resumeStream(agent, { answer: "yes" }, { ...call("c1"), memory }))
      expectClosed(resumed)
      expect(textsOf(resumed.chunks)).toStrictEqual([])
      expectOpen(first)
      yield* work.end(2)
      expectClosed(first)
      expect(textsOf(first.chunks)).toStrictEqual(["Asked.", "Answered.", "Done."])
    }).pipe(managed())
  )

  it.effect("ends with its signal, its reader, or the manager; the task goes on", () =>
    Effect.gen(function* () {
      const gate = gated("hold", { enabled: false })
      const holding = Tool.make("ask", {
        input: question,
        background: { enabled: true },
        execute: (input, context) =>
          context.resumeData === undefined
            ? context.suspend(input)
            : gate.tool.call === undefined
              ? Effect.never
              : gate.tool.call(input, context)
      })
      const model = ScriptedModel.make([
        calls(...[1, 2, 3].map(n => callOf(`c${n}`, "ask", n))),
        reply("Asked.")
      ])
      const agent = agentOf(model, [holding])
      yield* idling(agent, { runId: "r1" })
      const controller = new AbortController()
      const { signal } = controller
      const aborted = yield* opened(Agent.resumeStream(agent, "go", { ...call("c1"), abortSignal: signal }))
      const left = yield* opened(Agent.resumeStream(agent, "go", call("c2")))
      const ended = yield* opened(Agent.resumeStream(agent, "go", call("c3")))
      controller.abort()
      yield* settle
      expectClosed(aborted)
      yield* left.leave
      expectOpen(ended)
      expect(yield* statuses).toStrictEqual(["running", "running", "running"])
      yield* gate.end(1)
      const { shutdown } = yield* BackgroundTasks.BackgroundTasks
      yield* Effect.fork(shutdown)
      yield* pass(10)
      expectClosed(ended)
      for (const open of [aborted, left, ended]) yield* expectNothingLeft(open, signal)
      expect((yield* statuses)[0]).toBe("completed")
    }).pipe(counted, managed({ shutdown: { grace: 10 } }))
  )
})

describe("a call that cannot be resumed", () => {
  const refused = (
    what: string,
    options: {
      readonly runId?: string
      readonly toolCallId?: string
      readonly thread?: string
      readonly resource?: string
      readonly untilIdle?: boolean
    },
    data: unknown,
    expected: object
  ) =>
    it.effect(what, () =>
      Effect.gen(function* () {
        const { agent, model } = setUp([two, reply("Asked.")])
        yield* idlingIn(agent, memory, { runId: "r1" })
        const { resource = "u1", thread = "t1", ...rest } = options
        const open = yield* opened(
          Agent.resumeStream(agent, data, { ...call("c1"), ...rest, memory: { thread, resource } })
        )
        expect(failureOf(open)).toMatchObject(expected)
        expect(open.chunks).toStrictEqual([])
        expect(yield* statuses).toStrictEqual(["suspended", "suspended"])
        expect(model.requests).toHaveLength(2)
        yield* expectNothingLeft(open)
      }).pipe(counted, managed())
    )

  const yes = { answer: "yes" }
  const missing = { _tag: "RunNotFound" }

  refused("of another run", { runId: "r2" }, yes, missing)
  refused("that is none", { toolCallId: "c9" }, yes, missing)
  refused("of another thread", { thread: "t2" }, yes, missing)
  refused("of another resource", { resource: "u2" }, yes, missing)
  refused("with data that does not match", {}, { answer: 5 }, { _tag: "InvalidResumeData" })
  refused("with data that does not match, until idle", { untilIdle: true }, {}, { _tag: "InvalidResumeData" })
  refused("without the id of a run", { runId: "" }, yes, { _tag: "InvalidConfiguration", field: "runId" })
  refused("without the id of a call", { toolCallId: "" }, yes, {
    _tag: "InvalidConfiguration",
    field: "toolCallId"
  })

  it.effect("with options that no turn could have", () =>
    Effect.gen(function* () {
      const { agent } = setUp([two, reply("Asked.")])
      yield* idling(agent, { runId: "r1" })
      const wrong = [
        [{ maxSteps: 0 }, "maxSteps"],
        [{ untilIdle: { maxIdle: -1 } }, "untilIdle.maxIdle"]
      ] as const
      for (const [options, field] of wrong) {
        const open = yield* opened(Agent.resumeStream(agent, yes, { ...call("c1"), ...options }))
        expect(failureOf(open)).toMatchObject({ _tag: "InvalidConfiguration", field })
      }
      expect(yield* statuses).toStrictEqual(["suspended", "suspended"])
    }).pipe(managed())
  )

  it.effect("because it is not suspended: the error names its state", () =>
    Effect.gen(function* () {
      const { agent } = setUp([calls(callOf("c1", "ask", 1)), reply("Asked.")])
      yield* idling(agent, { runId: "r1" })
      yield* chunksOf(Agent.resumeStream(agent, yes, call("c1")))
      const open = yield* opened(Agent.resumeStream(agent, yes, call("c1")))
      expect(failureOf(open)).toMatchObject({
        _tag: "ToolCallNotPending",
        message: expect.stringContaining("completed")
      })
    }).pipe(managed())
  )

  it.effect("of another agent", () =>
    Effect.gen(function* () {
      const { agent } = setUp([calls(callOf("c1", "ask", 1)), reply("Asked.")])
      yield* idling(agent, { runId: "r1" })
      const other = agentOf(ScriptedModel.make([]), [asking()], "other")
      const open = yield* opened(Agent.resumeStream(other, yes, call("c1")))
      expect(failureOf(open)).toMatchObject(missing)
    }).pipe(managed())
  )

  it.effect("where there is no manager", () =>
    Effect.gen(function* () {
      const { agent } = setUp([])
      const open = yield* opened(Agent.resumeStream(agent, yes, call("c1")))
      expect(failureOf(open)).toMatchObject({ _tag: "InvalidConfiguration", field: "backgroundTasks" })
    })
  )
})

describe("after a restart", () => {
  it.effect("an agent that was never run there finds its call in the store, and answers", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const start = Layer.buildWithScope(
        Layer.provideMerge(BackgroundTasks.layer(), Id.layerSequential),
        scope
      )
      const before = setUp([calls(callOf("c1", "ask", 1)), reply("Asked.")])
      const first = yield* start
      yield* Effect.provide(idlingIn(before.agent, memory, { runId: "r1" }), first)
      yield* Effect.provide(
        Effect.flatMap(BackgroundTasks.BackgroundTasks, ({ shutdown }) => shutdown),
        first
      )
      const after = setUp([reply("Answered.")])
      const second = yield* start
      const open = yield* Effect.provide(
        opened(
          Agent.resumeStream(after.agent, { answer: "yes" }, { ...call("c1"), memory, untilIdle: true })
        ),
        second
      )
      expectClosed(open)
      expect(eventsOf(open.chunks, "c1")).toStrictEqual(["resumed", "output", "completed"])
      expect(textsOf(open.chunks)).toStrictEqual(["Answered."])
      const prompt = after.model.requests[0]?.messages ?? []
      expect(outputIn(prompt, "c1")).toStrictEqual({ type: "json", value: { n: 1, answer: "yes" } })
      expect(textIn(prompt, "assistant")).toBe("Asked.")
      expect(only(open.chunks, "start")).toHaveLength(1)
    }).pipe(Effect.scoped, Effect.provide(stores))
  )
})

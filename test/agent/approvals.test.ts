/** Calls that somebody has to decide about: how a run is laid aside, and how it goes on. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, Errors, RunStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, Option, Schema } from "effect"
import {
  asking,
  calling,
  figures,
  guarded,
  reasonOf,
  reply,
  stores,
  suspended,
  textIn,
  told,
  toolCall,
  waitingIn
} from "./approvalKit.js"
import { errorOf, finishOf, only, read, types } from "./kit.js"

const run = { runId: "r1" } as const

const deciding = (toolCallId: string) => ({ ...run, toolCallId })

const failureOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flip(Effect.exit(effect).pipe(Effect.flatten))

const outputs = (chunks: ReadonlyArray<Chunk.Chunk>) =>
  only(chunks, "tool-result").map(({ payload }) => [payload.toolCallId, payload.result])

describe("a call that has to be approved", () => {
  it.effect("ends the run, and is executed when it is approved", () =>
    Effect.gen(function* () {
      const { executed, tool } = guarded()
      const model = ScriptedModel.make([
        calling(toolCall("c1", "remove", { n: 1 })),
        reply("Removed.", figures)
      ])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      const first = yield* suspended(agent)
      expect(types(first)).toEqual([
        "start",
        "step-start",
        "tool-call",
        "step-finish",
        "tool-call-approval",
        "finish"
      ])
      expect(only(first, "tool-call-approval")[0]?.payload).toMatchObject({
        toolCallId: "c1",
        toolName: "remove",
        args: { n: 1 },
        resumeSchema: { type: "object", required: ["approved"] }
      })
      expect(executed).toEqual([])
      const runs = yield* RunStore.RunStore
      expect(Option.isSome(yield* runs.get("r1"))).toBe(true)

      const second = yield* told(Agent.approveToolCall(agent, deciding("c1")), ["c1"])
      expect(types(second)).toEqual([
        "start",
        "step-start",
        "tool-result",
        "step-finish",
        "step-start",
        "text-start",
        "text-delta",
        "text-end",
        "step-finish",
        "finish"
      ])
      expect(executed).toEqual([1])
      expect(textIn(second)).toBe("Removed.")
      expect(second[0]?.runId).toBe("r1")
      expect(only(second, "start")[0]?.payload.messageId).not.toBe(only(first, "start")[0]?.payload.messageId)
      expect(finishOf(second).output.usage).toEqual({ inputTokens: 20, outputTokens: 2, totalTokens: 22 })
      expect(model.requests[1]?.messages.at(-1)).toEqual({
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "c1",
            toolName: "remove",
            output: { type: "json", value: { removed: 1 } }
          }
        ]
      })
      expect(Option.isNone(yield* runs.get("r1"))).toBe(true)
    }).pipe(Effect.provide(stores))
  )

  it.effect("is not executed when it is declined, and the model reads why", () =>
    Effect.gen(function* () {
      const { executed, tool } = guarded()
      const model = ScriptedModel.make([calling(toolCall("c1", "remove", { n: 1 })), reply("All right.")])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      yield* suspended(agent)
      const declined = yield* told(Agent.declineToolCall(agent, { ...deciding("c1"), reason: "Keep it." }), [
        "c1"
      ])
      expect(only(declined, "tool-output-denied")[0]?.payload).toEqual({
        toolCallId: "c1",
        toolName: "remove",
        args: { n: 1 },
        approval: { approved: false, reason: "Keep it." }
      })
      expect(executed).toEqual([])
      expect(JSON.stringify(model.requests[1]?.messages)).toContain("Keep it.")
      expect(finishOf(declined).stepResult.reason).toBe("stop")
    }).pipe(Effect.provide(stores))
  )

  it.effect("that fails when it is approved is a tool-error", () =>
    Effect.gen(function* () {
      const { tool } = guarded("remove", { fails: true })
      const model = ScriptedModel.make([calling(toolCall("c1", "remove", { n: 1 })), reply("It failed.")])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      yield* suspended(agent)
      const approved = yield* told(Agent.approveToolCall(agent, deciding("c1")), ["c1"])
      expect(only(approved, "tool-error")).toHaveLength(1)
      expect(textIn(approved)).toBe("It failed.")
    }).pipe(Effect.provide(stores))
  )

  for (const order of [
    ["c1", "c2"],
    ["c2", "c1"]
  ]) {
    it.effect(`beside others: decided in the order ${order.join(", ")}`, () =>
      Effect.gen(function* () {
        const remove = guarded()
        const ask = asking()
        const look = Tool.make("look", { execute: () => Effect.succeed("seen") })
        const model = ScriptedModel.make([
          calling(
            toolCall("c1", "remove", { n: 1 }),
            toolCall("c0", "look", {}),
            toolCall("c2", "ask", { n: 2 })
          ),
          reply("Done.")
        ])
        const agent = Agent.make({ id: "a", model, tools: [remove.tool, look, ask.tool] })
        const first = yield* suspended(agent)
        expect(outputs(first)).toEqual([["c0", "seen"]])
        expect(waitingIn(first)).toEqual(["c1", "c2"])
        expect(only(first, "tool-call-suspended")[0]?.payload).toMatchObject({
          suspendData: { question: 2 },
          resumeSchema: { type: "object", required: ["answer"] }
        })
        const decide = (id: string) =>
          id === "c1"
            ? Agent.approveToolCall(agent, deciding("c1"))
            : Agent.resumeStream(agent, { answer: "yes" }, deciding("c2"))
        const [one = "", other = ""] = order
        const second = yield* told(decide(one), ["c1", "c2"])
        expect(reasonOf(second)).toBe("suspended")
        expect(waitingIn(second)).toEqual([other])
        const third = yield* told(decide(other), [other])
        expect(reasonOf(third)).toBe("stop")
        expect(model.requests[1]?.messages.at(-1)).toMatchObject({
          content: [
            { toolCallId: "c1", output: { value: { removed: 1 } } },
            { toolCallId: "c0", output: { value: "seen" } },
            { toolCallId: "c2", output: { value: { n: 2, answer: "yes" } } }
          ]
        })
        expect(ask.executed).toEqual([
          { resumeData: undefined, suspendData: undefined },
          { resumeData: { answer: "yes" }, suspendData: { question: 2 } }
        ])
        expect(remove.executed).toEqual([1])
      }).pipe(Effect.provide(stores))
    )
  }

  it.effect("is asked about by policies: the tool's own wins, and one that fails asks", () =>
    Effect.gen(function* () {
      const asked: Array<unknown> = []
      const make = (name: string, requireApproval?: boolean | ((args: { readonly n: number }) => boolean)) =>
        Tool.make(name, {
          input: Schema.Struct({ n: Schema.Number }),
          ...(requireApproval === undefined ? {} : { requireApproval }),
          execute: () => Effect.succeed("done")
        })
      const broken = (): boolean => {
        throw new Error("broken")
      }
      const tools = [
        make("free", false),
        make("plain"),
        make("large", ({ n }) => n > 5),
        make("broken", broken)
      ]
      const model = ScriptedModel.make([
        calling(
          toolCall("c1", "free", { n: 1 }),
          toolCall("c2", "plain", { n: 1 }),
          toolCall("c3", "large", { n: 1 }),
          toolCall("c4", "large", { n: 9 }),
          toolCall("c5", "broken", { n: 1 }),
          toolCall("c6", "plain", { n: "wrong" })
        )
      ])
      const agent = Agent.make({
        id: "a",
        model,
        tools,
        requireToolApproval: state => {
          asked.push(state.toolCallId)
          return Effect.succeed(true)
        }
      })
      const first = yield* suspended(agent)
      expect(waitingIn(first)).toEqual(["c2", "c4", "c5"])
      expect(asked).toEqual(["c2"])
      expect(only(first, "tool-error").map(({ payload }) => payload.toolCallId)).toEqual(["c6"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("is decided once: what comes too late, or never waited, is refused", () =>
    Effect.gen(function* () {
      const { executed, tool } = guarded()
      const model = ScriptedModel.make([
        calling(toolCall("c1", "remove", { n: 1 })),
        calling(toolCall("c2", "remove", { n: 2 })),
        reply("Done.")
      ])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      const other = Agent.make({ id: "b", model, tools: [tool] })
      yield* suspended(agent)
      expect(yield* failureOf(told(Agent.approveToolCall(other, deciding("c1"))))).toBeInstanceOf(
        Errors.RunNotFound
      )
      expect(
        yield* failureOf(told(Agent.approveToolCall(agent, { runId: "r9", toolCallId: "c1" })))
      ).toBeInstanceOf(Errors.RunNotFound)
      expect(yield* failureOf(told(Agent.resumeStream(agent, { yes: 1 }, deciding("c1"))))).toBeInstanceOf(
        Errors.InvalidResumeData
      )
      // The model tries again with another call.
      const declined = yield* told(Agent.declineToolCall(agent, deciding("c1")), ["c1"])
      expect(waitingIn(declined)).toEqual(["c2"])
      const stale = yield* failureOf(told(Agent.approveToolCall(agent, deciding("c1"))))
      expect(stale).toMatchObject({ _tag: "ToolCallNotPending", toolCallId: "c1", pending: ["c2"] })
      expect(executed).toEqual([])
      const approved = yield* told(Agent.approveToolCall(agent, run), ["c2"])
      expect(reasonOf(approved)).toBe("stop")
      expect(executed).toEqual([2])
      expect(yield* failureOf(told(Agent.approveToolCall(agent, deciding("c2"))))).toBeInstanceOf(
        Errors.RunNotFound
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("fails the run where nothing could be kept", () =>
    Effect.gen(function* () {
      const { executed, tool } = guarded()
      const ask = asking()
      for (const [name, calls] of [
        ["remove", calling(toolCall("c1", "remove", { n: 1 }))],
        ["ask", calling(toolCall("c1", "ask", { n: 1 }))]
      ] as const) {
        const model = ScriptedModel.make([calls])
        const agent = Agent.make({ id: "a", model, tools: [tool, ask.tool] })
        const { chunks, exit } = yield* read(Agent.stream(agent, "go"))
        expect(Exit.isFailure(exit)).toBe(true)
        expect(errorOf(chunks)).toMatchObject({ _tag: "InvalidConfiguration", field: "storage" })
        expect(only(chunks, "tool-error")).toHaveLength(1)
        expect(JSON.stringify(errorOf(chunks))).toContain(name)
      }
      expect(executed).toEqual([])
    })
  )
})

describe("a tool that suspends", () => {
  it.effect("may do so again, and after it was approved", () =>
    Effect.gen(function* () {
      const executed: Array<unknown> = []
      const tool = Tool.make("both", {
        requireApproval: true,
        suspend: Schema.Struct({ question: Schema.Number }),
        execute: (_, { resumeData, suspend }) => {
          executed.push(resumeData)
          return resumeData === 2 ? Effect.succeed("enough") : suspend({ question: executed.length })
        }
      })
      const model = ScriptedModel.make([calling(toolCall("c1", "both", {})), reply("Done.")])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      yield* suspended(agent)
      const approved = yield* told(Agent.approveToolCall(agent, deciding("c1")), ["c1"])
      expect(only(approved, "tool-call-suspended")[0]?.payload.suspendData).toEqual({ question: 1 })
      const again = yield* told(Agent.resumeStream(agent, 1, deciding("c1")), ["c1"])
      expect(only(again, "tool-call-suspended")[0]?.payload.suspendData).toEqual({ question: 2 })
      const done = yield* told(Agent.resumeStream(agent, 2, deciding("c1")), ["c1"])
      expect(outputs(done)).toEqual([["c1", "enough"]])
      expect(executed).toEqual([undefined, 1, 2])
    }).pipe(Effect.provide(stores))
  )

  it.effect("with what does not match its schema fails", () =>
    Effect.gen(function* () {
      const tool = Tool.make("ask", {
        suspend: Schema.Struct({ question: Schema.Number }),
        execute: (_, { suspend }) => suspend({ question: "why" })
      })
      const model = ScriptedModel.make([calling(toolCall("c1", "ask", {})), reply("Done.")])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      const chunks = yield* told(Agent.stream(agent, "go"))
      expect(only(chunks, "tool-error")[0]?.payload.error).toBeInstanceOf(Errors.InvalidSuspendData)
      expect(reasonOf(chunks)).toBe("stop")
    }).pipe(Effect.provide(stores))
  )

  it.effect("with what JSON cannot hold is stored safely", () =>
    Effect.gen(function* () {
      const tool = Tool.make("ask", {
        execute: (_, { suspend, suspendData }) =>
          suspendData === undefined
            ? suspend({ at: new Date(0), big: 3n, no: () => 1 })
            : Effect.succeed(suspendData)
      })
      const model = ScriptedModel.make([calling(toolCall("c1", "ask", {})), reply("Done.")])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      const first = yield* suspended(agent)
      const safe = { at: "1970-01-01T00:00:00.000Z", big: "3" }
      expect(only(first, "tool-call-suspended")[0]?.payload.suspendData).toEqual(safe)
      const done = yield* told(Agent.resumeStream(agent, "yes", deciding("c1")), ["c1"])
      expect(outputs(done)).toEqual([["c1", safe]])
    }).pipe(Effect.provide(stores))
  )
})

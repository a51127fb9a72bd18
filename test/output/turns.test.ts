/** The output of an until-idle run: its values are those of the first turn, its stream and its `turns` those of all. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, type RunOptions, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Cause, Effect, Exit, Fiber, FiberId, Schema, Scope, Stream } from "effect"
import { recordResumed } from "../../src/agent/tasks/resuming.js"
import * as RunRecord from "../../src/output/RunRecord.js"
import { callOf, calls, gated, loadEverything, managed, pass } from "../agent/backgroundKit.js"
import { chunksOf, failing, settle, types } from "../agent/kit.js"
import { agentOf, counted, expectNothingLeft, idling, textsOf } from "../agent/untilIdleKit.js"

const { hang, reply, text } = ScriptedModel

await loadEverything()

const one = calls(callOf("c1", "work", 1))

/** A recorded run that waits for its call. */
const running = Effect.fnUntraced(function* (
  turns: ReadonlyArray<ScriptedModel.Turn>,
  options: RunOptions<[], undefined> = {}
) {
  const work = gated("work")
  const model = ScriptedModel.make(turns)
  const output = yield* Agent.run(agentOf(model, [work.tool]), "go", { untilIdle: true, ...options })
  yield* settle
  return { output, work, model }
})

/** What an effect gave, if it has ended. */
const soFar = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(effect)
    yield* settle
    const exit = fiber.unsafePoll()
    yield* Fiber.interrupt(fiber)
    return exit
  })

const used = { inputTokens: 3, outputTokens: 4, totalTokens: 7 }

describe("the values of an until-idle run", () => {
  it.scoped("are those of the first turn, and there as soon as it ends", () =>
    Effect.gen(function* () {
      const { output, work } = yield* running([one, reply("Wait.", used), reply("Done.", used)])
      expect(yield* soFar(output.text)).toStrictEqual(Exit.succeed("Wait."))
      expect(yield* output.usage).toMatchObject(used)
      expect(yield* output.finishReason).toBe("stop")
      expect((yield* output.toolCalls).map(({ payload }) => payload.toolCallId)).toStrictEqual(["c1"])
      expect(yield* output.status).toBe("success")
      expect(yield* soFar(output.turns)).toBeNull()
      expect(yield* soFar(output.drain)).toBeNull()
      yield* work.end(1)
      expect(yield* soFar(output.drain)).toStrictEqual(Exit.void)
      expect(yield* output.text).toBe("Wait.")
      expect((yield* output.fullOutput).text).toBe("Wait.")
      const turns = yield* output.turns
      expect(turns.map(({ status, text: said }) => [status, said])).toStrictEqual([
        ["success", "Wait."],
        ["success", "Done."]
      ])
      expect(turns[0]?.runId).toBe(output.runId)
      expect(turns[1]?.runId).not.toBe(output.runId)
      expect(turns.map(({ usage }) => usage)).toMatchObject([used, used])
    }).pipe(managed())
  )

  it.scoped("are the same of a run that is not until idle, which is its only turn", () =>
    Effect.gen(function* () {
      const { output } = yield* running([reply("Hi.")], { untilIdle: false })
      expect((yield* output.turns).map(({ text: said }) => said)).toStrictEqual(["Hi."])
      expect(yield* output.text).toBe("Hi.")
    }).pipe(managed())
  )

  it.scoped("of a turn that fails later stay what they are; the stream and drain fail with its error", () =>
    Effect.gen(function* () {
      const turns = [one, reply("Wait."), failing(new Error("overloaded"))]
      const { output, work } = yield* running(turns, { maxRetries: 0 })
      yield* Effect.fork(Effect.exit(output.drain))
      yield* work.end(1)
      expect(yield* output.text).toBe("Wait.")
      const [first, second] = yield* output.turns
      expect(first?.status).toBe("success")
      expect(second?.status).toBe("failed")
      expect(yield* Effect.flip(output.drain)).toBe(second?.error)
      expect(yield* Effect.flip(Stream.runDrain(output.fullStream))).toBe(second?.error)
      expect([...(yield* Stream.runCollect(output.textStream))].join("")).toBe("Wait.")
    }).pipe(managed())
  )
})

describe("its readers", () => {
  it.scoped("all see the same sequence, whenever they come; text is that of the first turn", () =>
    Effect.gen(function* () {
      const { output, work } = yield* running([one, reply("Wait."), reply("Done.")])
      const early = yield* Effect.fork(chunksOf(output.fullStream))
      const words = yield* Effect.fork(Stream.runCollect(output.textStream))
      yield* settle
      // The first turn is over, and so is its text.
      expect([...(yield* Fiber.join(words))].join("")).toBe("Wait.")
      const middle = yield* Effect.fork(chunksOf(output.fullStream))
      yield* work.end(1)
      const told = yield* Fiber.join(early)
      expect(yield* Fiber.join(middle)).toStrictEqual(told)
      expect(yield* chunksOf(output.fullStream)).toStrictEqual(told)
      expect(textsOf(told)).toStrictEqual(["Wait.", "Done."])
      expect([...(yield* Stream.runCollect(output.textStream))].join("")).toBe("Wait.")
    }).pipe(managed())
  )

  it.scoped("that leave hold up nobody: the run goes on", () =>
    Effect.gen(function* () {
      const { output, work } = yield* running([one, reply("Wait."), reply("Done.")])
      yield* Stream.runDrain(Stream.take(output.fullStream, 1))
      yield* work.end(1)
      expect((yield* output.turns).map(({ text: said }) => said)).toStrictEqual(["Wait.", "Done."])
    }).pipe(managed())
  )

  it.scoped("of one that keeps nothing: one, from the beginning to the end", () =>
    Effect.gen(function* () {
      const { output, work } = yield* running([one, reply("Wait."), reply("Done.")], { replay: false })
      const reader = yield* Effect.fork(chunksOf(output.fullStream))
      yield* settle
      yield* work.end(1)
      expect(textsOf(yield* Fiber.join(reader))).toStrictEqual(["Wait.", "Done."])
      expect((yield* output.turns).map(({ status }) => status)).toStrictEqual(["success", "success"])
      expect(yield* Effect.flip(Stream.runDrain(output.fullStream))).toMatchObject({ field: "replay" })
    }).pipe(managed())
  )

  it.scoped("of one that keeps nothing: one that leaves stops it", () =>
    Effect.gen(function* () {
      const turns = [one, reply("Wait."), [...text("Don"), hang]]
      const { model, output, work } = yield* running(turns, { replay: false })
      const left = Stream.takeUntil(output.fullStream, ({ type }) => type === "finish")
      yield* Stream.runDrain(left)
      yield* work.end(1)
      expect((yield* output.turns).map(({ status }) => status)).toStrictEqual(["success"])
      expect(model.requests).toHaveLength(2)
    }).pipe(managed())
  )
})

describe("stopped", () => {
  it.scoped("between two turns, it closes and has those that were", () =>
    Effect.gen(function* () {
      const { model, output } = yield* running([one, reply("Wait.")])
      const reader = yield* Effect.fork(chunksOf(output.fullStream))
      yield* settle
      yield* output.abort("enough")
      yield* output.drain
      expect(textsOf(yield* Fiber.join(reader))).toStrictEqual(["Wait."])
      expect((yield* output.turns).map(({ status }) => status)).toStrictEqual(["success"])
      expect(model.requests).toHaveLength(2)
    }).pipe(managed())
  )

  it.scoped("in a continuation, that is aborted", () =>
    Effect.gen(function* () {
      const { output, work } = yield* running([one, reply("Wait."), [...text("Don"), hang]])
      yield* Effect.fork(Effect.exit(output.drain))
      yield* work.end(1)
      yield* output.abort("enough")
      const turns = yield* output.turns
      expect(turns.map(({ status, text: said }) => [status, said])).toStrictEqual([
        ["success", "Wait."],
        ["aborted", "Don"]
      ])
      expect(yield* Effect.flip(output.drain)).toMatchObject({ _tag: "RunAborted" })
      expect(yield* output.text).toBe("Wait.")
    }).pipe(managed())
  )

  it.effect("by its scope, nothing of it is left, and the task goes on", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { output, work } = yield* Scope.extend(running([one, reply("Wait.")]), scope)
      yield* Effect.fork(Effect.exit(output.drain))
      yield* settle
      yield* Scope.close(scope, Exit.void)
      expect((yield* output.turns).map(({ status }) => status)).toStrictEqual(["success"])
      const open = { chunks: [], exit: () => undefined, leave: Effect.void, fibers: Effect.succeed(0) }
      yield* expectNothingLeft(open)
      yield* work.end(1)
    }).pipe(counted, managed())
  )

  it.scoped("before anybody reads, it is aborted like any run", () =>
    Effect.gen(function* () {
      const { output } = yield* running([[...text("Wa"), hang]])
      yield* output.abort()
      expect(yield* Effect.flip(output.text)).toMatchObject({ _tag: "RunAborted" })
      expect((yield* output.turns).map(({ status }) => status)).toStrictEqual(["aborted"])
    }).pipe(managed())
  )
})

describe("a call that was resumed", () => {
  const asking = Tool.make("ask", {
    input: Schema.Struct({ n: Schema.Number }),
    background: { enabled: true },
    execute: (input, { resumeData, suspend }) =>
      resumeData === undefined || resumeData === "again" ? suspend(input) : Effect.succeed(resumeData)
  })

  /** The record of a call that is resumed with this. */
  const resumed = Effect.fnUntraced(function* (data: unknown, untilIdle: boolean) {
    const model = ScriptedModel.make([
      calls(callOf("c1", "ask", 1)),
      reply("Asked."),
      ...(untilIdle && data !== "again" ? [reply("Answered.")] : [])
    ])
    const agent = agentOf(model, [asking])
    yield* idling(agent, { runId: "r1" })
    const call = { runId: "r1", toolCallId: "c1" }
    const { going, recorded } = yield* recordResumed<never, [], undefined>(agent, data, {
      ...call,
      untilIdle
    })
    recorded.log.wantAll()
    yield* going
    expect(model.unused()).toBe(0)
    const open = { chunks: [], exit: () => undefined, leave: Effect.void, fibers: Effect.succeed(0) }
    yield* expectNothingLeft(open)
    return recorded
  })

  for (const [data, untilIdle] of [
    ["again", true],
    ["again", false],
    ["yes", false]
  ] as const) {
    it.effect(`and needs no turn has succeeded, and said nothing: "${data}", until idle ${untilIdle}`, () =>
      Effect.gen(function* () {
        const recorded = yield* resumed(data, untilIdle)
        expect(recorded.settled).toMatchObject({ status: "success", text: "", runId: "r1" })
        expect(recorded.turns).toStrictEqual([])
        expect(types([...recorded.log.read()])).toStrictEqual([
          "background-task-resumed",
          data === "again" ? "background-task-suspended" : "background-task-completed"
        ])
      }).pipe(counted, managed())
    )
  }

  it.effect("has the values of the turn that answers", () =>
    Effect.gen(function* () {
      const recorded = yield* resumed("yes", true)
      expect(recorded.settled).toMatchObject({ status: "success", text: "Answered." })
      expect(recorded.turns).toHaveLength(1)
    }).pipe(counted, managed())
  )
})

describe("the record of an open-ended stream", () => {
  const start = (runId: string): Chunk.Chunk => ({ type: "start", runId, from: "AGENT", payload: {} })
  const said = (runId: string, content: string): Chunk.Chunk => ({
    type: "text-delta",
    runId,
    from: "AGENT",
    payload: { id: "0", text: content }
  })

  const recordOf = () => RunRecord.make("r1", undefined, undefined, undefined, true)

  it("says so", () => {
    expect(recordOf().isOpenEnded).toBe(true)
    expect(RunRecord.make("r1").isOpenEnded).toBe(false)
  })

  it("keeps a turn that was cut off, with what it had said", () => {
    const record = recordOf()
    record.write([start("r1"), said("r1", "half")])
    record.end(Exit.interrupt(FiberId.none))
    expect(record.turns.map(({ status, text: told }) => [status, told])).toStrictEqual([["aborted", "half"]])
    expect(record.settled?.status).toBe("aborted")
  })

  const finish = (runId: string): Chunk.Chunk => ({
    type: "finish",
    runId,
    from: "AGENT",
    payload: {
      stepResult: { reason: "stop", isContinued: false },
      output: { usage: {}, text: "all" },
      metadata: {},
      messages: { all: [], user: [], nonUser: [] },
      response: { messages: [], uiMessages: [] }
    }
  })

  it("that breaks between two turns has failed, and its first turn has not", () => {
    const record = recordOf()
    record.write([start("r1"), said("r1", "all"), finish("r1")])
    record.end(Exit.failCause(Cause.die(new Error("broken"))))
    record.end(Exit.failCause(Cause.die(new Error("again"))))
    expect(record.settled?.status).toBe("success")
    expect(record.turns.map(({ error, status, text: told }) => [status, told, error?.message])).toStrictEqual(
      [
        ["success", "all", undefined],
        ["failed", "", "broken"]
      ]
    )
  })

  it("that ends between two turns is as it was, also when it was interrupted", () => {
    for (const exit of [Exit.void, Exit.interrupt(FiberId.none)]) {
      const record = recordOf()
      record.write([start("r1"), finish("r1")])
      record.end(exit)
      expect(record.turns.map(({ status }) => status)).toStrictEqual(["success"])
    }
  })
})

it.effect("time does not close an output whose task runs on", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const { output, work } = yield* running([one, reply("Wait."), reply("Done.")])
      const drained = yield* Effect.fork(output.drain)
      yield* pass(60_000)
      expect(drained.unsafePoll()).toBeNull()
      yield* work.end(1)
      yield* Fiber.join(drained)
    })
  ).pipe(managed())
)

/** How long things may take: the model's silence, a step, a run, a tool; to the millisecond, and with nothing left behind. */
import { describe, expect, it } from "@effect/vitest"
import {
  Agent,
  type Chunk,
  Errors,
  Id,
  type LanguageModel,
  Message,
  type ModelPart,
  type RunOptions,
  type Timeouts,
  Tool
} from "eddy"
import * as Facade from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Clock, Deferred, Duration, Effect, Exit, Fiber, Scope, Stream, Supervisor, TestClock } from "effect"
import { expectGrammar } from "../support/grammar.js"
import {
  call,
  errorOf,
  evenly,
  failing,
  finish,
  finishOf,
  inTime,
  modelOf,
  only,
  read,
  refusal,
  settle,
  textOf,
  timed,
  turn,
  turns,
  types
} from "./kit.js"

const { finish: ends, hang, pause, reply, toolCall } = ScriptedModel

const delta = (text: string): ModelPart.ModelPart => ({ type: "text-delta", id: "0", delta: text })

const never = (): Promise<never> => new Promise(() => undefined)

const scripted = (...turns: ReadonlyArray<ScriptedModel.Turn>) => timed(ScriptedModel.make(turns))

const agentOf = <const Tools extends ReadonlyArray<Tool.Any> = []>(
  model: LanguageModel.LanguageModel,
  tools?: Tools
) => Agent.make({ id: "punctual", model, ...(tools === undefined ? {} : { tools }) })

/** Reads a run while time passes, and tells when it was over. */
const run = (agent: Agent.Agent, options: RunOptions<[], undefined> = {}) =>
  Effect.gen(function* () {
    const told = yield* inTime(read(Agent.stream(agent, "go", options)))
    return { ...told, at: yield* Clock.currentTimeMillis }
  }).pipe(evenly, Effect.provide(Id.layerSequential))

const expectFailed = (chunks: ReadonlyArray<Chunk.Chunk>, error: object): void => {
  expectGrammar(chunks)
  expect(types(chunks).slice(-2)).toStrictEqual(["error", "finish"])
  expect(errorOf(chunks)).toMatchObject(error)
  expect(finishOf(chunks).stepResult).toStrictEqual({ reason: "error", isContinued: false })
}

/** Runs, and expects that no fiber is left that the run has started. */
const leavingNothing = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const supervisor = yield* Supervisor.track
    const value = yield* Effect.supervised(effect, supervisor)
    yield* settle
    expect(yield* supervisor.value).toHaveLength(0)
    return value
  })

describe("timeouts.firstContent", () => {
  const limited = (firstContent: Timeouts["firstContent"] & {}) => ({ timeouts: { firstContent } })

  it.effect("makes a call again that says nothing, as if it had never been", () =>
    Effect.gen(function* () {
      const preamble: ReadonlyArray<ModelPart.ModelPart> = [
        { type: "stream-start", warnings: [] },
        { type: "response-metadata", id: "r-1" },
        { type: "reasoning-start", id: "0" }
      ]
      const answer = [...ScriptedModel.text("ok", "0"), ends("stop")]
      const { model, times } = scripted([...preamble, hang], answer)
      const { at, chunks } = yield* run(agentOf(model), limited("10 seconds"))
      expectGrammar(chunks)
      expect(times).toStrictEqual([0, 11_000])
      expect(at).toBe(11_000)
      const plain = yield* run(agentOf(ScriptedModel.make([answer])))
      expect(chunks).toStrictEqual(plain.chunks)
      expect(types(chunks)).toStrictEqual([
        "start",
        "step-start",
        "text-start",
        "text-delta",
        "text-end",
        "step-finish",
        "finish"
      ])
    })
  )

  const late: ReadonlyArray<
    readonly [what: string, turn: ReadonlyArray<ScriptedModel.ScriptPart>, at: number | undefined]
  > = [
    ["content a moment before", [pause(9_999), ...reply("ok")], undefined],
    ["content a moment too late", [pause(10_001), ...reply("ok")], 10_000],
    [
      "what is no content",
      [
        pause(4_000),
        { type: "response-metadata", id: "r" },
        pause(4_000),
        { type: "text-start", id: "0" },
        pause(4_000),
        ...reply("ok")
      ],
      10_000
    ],
    ["an empty delta", [pause(4_000), delta(""), hang], 10_000],
    [
      "a start of a call",
      [{ type: "tool-input-start", id: "c", toolName: "t" }, pause(60_000), ends("length")],
      undefined
    ],
    ["an end without content", [pause(9_999), ends("stop")], undefined],
    ["content at once, and then silence", [delta("a"), pause(60_000), ends("stop")], undefined]
  ]

  it.effect.each(late)("%s: over at $2", ([, turn, failsAt]) =>
    Effect.gen(function* () {
      const { model } = scripted(turn)
      const { at, chunks, exit } = yield* run(agentOf(model), { maxRetries: 0, ...limited(10_000) })
      expectGrammar(chunks)
      if (failsAt === undefined) {
        expect(exit).toStrictEqual(Exit.void)
        return
      }
      expect(at).toBe(failsAt)
      expectFailed(chunks, { _tag: "ModelError", reason: "timeout", provider: "scripted", modelId: "script" })
      expect(exit).toStrictEqual(Exit.fail(errorOf(chunks)))
      expect(errorOf(chunks)).toMatchObject({ message: expect.stringMatching(/10000 ms.*firstContent/) })
      expect(textOf(chunks)).toBe("")
    })
  )

  it.effect("begins anew with each call and each step, and a tool may take its time", () =>
    Effect.gen(function* () {
      const slow = Tool.make("slow", { execute: () => Effect.sleep("1 hour") })
      const { model, times } = scripted(
        [pause(9_000), toolCall("c1", "slow", {}), ends("tool-calls")],
        [hang],
        [pause(9_000), ...reply("ok")]
      )
      const { chunks } = yield* run(agentOf(model, [slow]), limited(10_000))
      expectGrammar(chunks)
      expect(textOf(chunks)).toBe("ok")
      expect(times).toStrictEqual([0, 3_609_000, 3_620_000])
    })
  )

  it.effect("counts from the call, also when the model has not begun to answer", () =>
    Effect.gen(function* () {
      const stopped: Array<string> = []
      const answers: ReadonlyArray<LanguageModel.LanguageModel["answer"]> = [
        () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => stopped.push("interrupted"))),
        (_, signal) => {
          signal.addEventListener("abort", () => stopped.push("signal"))
          return never()
        }
      ]
      let calls = 0
      const silent: LanguageModel.LanguageModel = {
        provider: "kit",
        modelId: "kit-1",
        answer: (request, signal) =>
          answers[calls++]?.(request, signal) ?? ScriptedModel.make([reply("ok")]).answer(request)
      }
      const stoppedBefore: Array<ReadonlyArray<string>> = []
      const model: LanguageModel.LanguageModel = {
        ...silent,
        answer: (request, signal) => {
          stoppedBefore.push([...stopped])
          return silent.answer(request, signal)
        }
      }
      const { at, chunks } = yield* run(agentOf(model), limited(10_000))
      expect(textOf(chunks)).toBe("ok")
      expect(at).toBe(10_000 + 1_000 + 10_000 + 2_000)
      // Whoever is given up is stopped then, and not when the run is over.
      expect(stoppedBefore).toStrictEqual([[], ["interrupted"], ["interrupted", "signal"]])
    })
  )

  it.effect("tells the provider: its signal fires with the error, and what it sends is cancelled", () =>
    Effect.gen(function* () {
      let isCancelled = false
      const { model, signals } = modelOf([
        () =>
          new ReadableStream({
            pull: never,
            cancel: () => {
              isCancelled = true
            }
          })
      ])
      const { chunks } = yield* leavingNothing(run(agentOf(model), { maxRetries: 0, ...limited(10_000) }))
      expectFailed(chunks, { reason: "timeout" })
      expect(isCancelled).toBe(true)
      expect(signals[0]?.aborted).toBe(true)
      expect(signals[0]?.reason).toBe(errorOf(chunks))
    })
  )

  it.effect("drops what a provider that was given up says later", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { model } = modelOf([
        async function* () {
          await Effect.runPromise(Deferred.await(gate))
          yield delta("late")
          yield finish("stop")
        },
        async function* () {
          yield delta("o")
          Deferred.unsafeDone(gate, Effect.void)
          await turn()
          yield delta("k")
          yield finish("stop")
        }
      ])
      const { chunks } = yield* run(agentOf(model), limited(10_000))
      expectGrammar(chunks)
      expect(textOf(chunks)).toBe("ok")
    })
  )

  it.effect("of one model of a list gives the next its turn", () =>
    Effect.gen(function* () {
      const silent = scripted([hang], [hang])
      const other = timed(ScriptedModel.make([reply("ok")], { modelId: "other" }))
      const agent = Agent.make({ id: "a", model: [{ model: silent.model, maxRetries: 1 }, other.model] })
      const { chunks } = yield* run(agent, limited(10_000))
      expectGrammar(chunks)
      expect(silent.times).toStrictEqual([0, 11_000])
      expect(other.times).toStrictEqual([21_000])
      expect(finishOf(chunks).metadata).toMatchObject({ modelId: "other" })
    })
  )
})

describe("timeouts.betweenChunks", () => {
  const silences: ReadonlyArray<
    readonly [
      what: string,
      timeouts: Timeouts,
      turn: ReadonlyArray<ScriptedModel.ScriptPart>,
      failsAt: number | undefined
    ]
  > = [
    ["silence after content", { betweenChunks: 5_000 }, [delta("a"), hang], 5_000],
    ["silence of just less", { betweenChunks: 5_000 }, [delta("a"), pause(4_999), ...reply("b")], undefined],
    [
      "several of just less, then one",
      { betweenChunks: 5_000 },
      [delta("a"), pause(4_999), delta("b"), pause(4_999), delta("c"), hang],
      14_998
    ],
    ["content just before somebody looks", { betweenChunks: 5_000 }, [pause(4_999), delta("a"), hang], 9_999],
    ["content just after", { betweenChunks: 5_000 }, [pause(5_001), delta("a"), hang], 10_001],
    ["silence before any content", { betweenChunks: 5_000 }, [pause(60_000), ...reply("a")], undefined],
    [
      "silence after a beginning that says nothing",
      { betweenChunks: 5_000 },
      [{ type: "text-start", id: "0" }, pause(60_000), ...reply("a")],
      undefined
    ],
    [
      "a longer wait for the first content",
      { firstContent: 10_000, betweenChunks: 1_000 },
      [pause(9_500), delta("a"), hang],
      10_500
    ],
    [
      "a shorter wait for the first content",
      { firstContent: 2_000, betweenChunks: 60_000 },
      [pause(1_000), delta("a"), hang],
      61_000
    ],
    [
      "edges of blocks",
      { betweenChunks: 5_000 },
      [delta("a"), pause(4_000), { type: "text-end", id: "0" }, pause(4_000), ends("stop")],
      undefined
    ],
    [
      "silence in the arguments of a call",
      { betweenChunks: 5_000 },
      [
        { type: "tool-input-start", id: "c", toolName: "t" },
        pause(1_000),
        { type: "tool-input-delta", id: "c", delta: "{" },
        hang
      ],
      6_000
    ]
  ]

  it.effect.each(silences)("%s: over at $3", ([, timeouts, turn, failsAt]) =>
    Effect.gen(function* () {
      const { model, requests } = scripted(turn)
      const { at, chunks } = yield* leavingNothing(run(agentOf(model), { timeouts }))
      expectGrammar(chunks)
      if (failsAt === undefined) {
        expect(finishOf(chunks).stepResult.reason).toBe("stop")
        return
      }
      expect(at).toBe(failsAt)
      expectFailed(chunks, { _tag: "ModelError", reason: "timeout" })
      expect(errorOf(chunks)).toMatchObject({
        message: expect.stringMatching(new RegExp(`${timeouts.betweenChunks} ms.*betweenChunks`))
      })
      // Somebody has read it: it is not asked again.
      expect(requests).toHaveLength(1)
      expect(finishOf(chunks).output.text).toBe(textOf(chunks))
      expect(finishOf(chunks).messages.all).toStrictEqual([Message.user("go")])
    })
  )

  const keepAlive: ReadonlyArray<readonly [string, ReadonlyArray<ModelPart.ModelPart>]> = [
    ["raw parts", [{ type: "raw", value: "ping" }]],
    ["empty deltas of text", [delta("")]],
    ["empty deltas of reasoning", [{ type: "reasoning-delta", id: "r", delta: "" }]],
    ["empty deltas of arguments", [{ type: "tool-input-delta", id: "c", delta: "" }]],
    ["metadata", [{ type: "text-delta", id: "0", delta: "", providerMetadata: { kit: { a: 1 } } }]],
    ["response metadata", [{ type: "response-metadata", id: "r" }]],
    ["warnings", [{ type: "stream-start", warnings: [] }]]
  ]

  it.effect.each(keepAlive)("is not put off by %s", ([_, parts]) =>
    Effect.gen(function* () {
      const pings = Array.from(
        { length: 20 },
        (): ReadonlyArray<ScriptedModel.ScriptPart> => [pause(1_000), ...parts]
      )
      const { model } = scripted([delta("a"), ...pings.flat(), ...reply("late")])
      const { at, chunks } = yield* run(agentOf(model), {
        includeRawChunks: true,
        timeouts: { betweenChunks: 5_000 }
      })
      expectFailed(chunks, { reason: "timeout" })
      expect(at).toBe(5_000)
    })
  )

  it.effect("is put off by whatever is content", () =>
    Effect.gen(function* () {
      const parts: ReadonlyArray<ModelPart.ModelPart> = [
        { type: "reasoning-delta", id: "r", delta: "hm" },
        { type: "tool-input-start", id: "c", toolName: "search", providerExecuted: true },
        { type: "tool-input-delta", id: "c", delta: "{}" },
        { type: "tool-input-end", id: "c" },
        { type: "tool-call", toolCallId: "c", toolName: "search", input: "{}", providerExecuted: true },
        { type: "tool-result", toolCallId: "c", toolName: "search", result: 1 },
        { type: "source", id: "s", sourceType: "url" },
        { type: "file", data: "AQI=", mediaType: "image/png" },
        delta("a")
      ]
      const { model } = scripted([...parts.flatMap(part => [part, pause(4_999)]), ends("stop")])
      const { at, chunks } = yield* run(agentOf(model), { timeouts: { betweenChunks: 5_000 } })
      expect(errorOf(chunks)).toBeUndefined()
      expect(at).toBe(4_999 * parts.length)
    })
  )

  it.effect("is not put off by readers that hold a model which sends raw parts only", () =>
    Effect.gen(function* () {
      const pings = Array.from({ length: 200 }, (): ModelPart.ModelPart => ({ type: "raw", value: "ping" }))
      const { model } = scripted([delta("a"), ...pings.flatMap(ping => [pause(50), ping]), ...reply("late")])
      const stream = Agent.stream(agentOf(model), "go", {
        includeRawChunks: true,
        timeouts: { betweenChunks: 5_000 }
      })
      const { chunks } = yield* inTime(read(stream, () => Effect.sleep(50))).pipe(evenly)
      expectFailed(chunks, { reason: "timeout" })
    })
  )

  it.effect("does not depend on the time of day, which may be set back", () =>
    Effect.gen(function* () {
      const { model } = scripted([delta("a"), pause(1_000), delta("b"), hang])
      const clock = yield* Effect.clock
      let isSetBack = false
      const wrong: Clock.Clock = {
        ...clock,
        currentTimeMillis: Effect.map(clock.currentTimeMillis, now => now - (isSetBack ? 3_600_000 : 0)),
        unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis() - (isSetBack ? 3_600_000 : 0),
        unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
        sleep: duration => clock.sleep(duration)
      }
      const stream = Agent.stream(agentOf(model), "go", { timeouts: { betweenChunks: 5_000 } })
      const reading = read(stream, chunk =>
        Effect.sync(() => {
          if (chunk.type === "text-delta") isSetBack = chunk.payload.text === "b"
        })
      )
      const told = yield* inTime(Effect.withClock(reading, wrong)).pipe(evenly)
      expectFailed(told.chunks, { reason: "timeout" })
      expect(yield* Clock.currentTimeMillis).toBe(6_000)
    })
  )

  const many = Array.from({ length: 200 }, (_, index) => delta(`${index} `))

  it.effect("is no measure of readers: the time for which they hold the model does not count", () =>
    Effect.gen(function* () {
      const { model } = scripted([...many, hang])
      const options = { timeouts: { betweenChunks: 5_000 } }
      const scope = yield* Scope.make()
      const pull = yield* Scope.extend(Stream.toPull(Agent.stream(agentOf(model), "go", options)), scope)
      let said = ""
      const chunks: Array<Chunk.Chunk> = []
      // A minute between two looks, as long as there is something to look at.
      const look = Effect.gen(function* () {
        const batch = [...(yield* pull)]
        chunks.push(...batch)
        said += textOf(batch)
      })
      while (!said.endsWith("199 ")) {
        yield* look
        yield* settle
        // With more than 64 to come the model waits until there is room.
        if (Number(said.trimEnd().split(" ").at(-1)) < 130) yield* TestClock.adjust("1 minute")
        yield* settle
      }
      expect(yield* Clock.currentTimeMillis).toBeGreaterThan(60_000)
      const heldUntil = yield* Clock.currentTimeMillis
      const rest = yield* Effect.fork(Effect.exit(Effect.forever(look)))
      yield* settle
      yield* TestClock.adjust(4_999)
      yield* settle
      expect(errorOf(chunks)).toBeUndefined()
      yield* TestClock.adjust(1)
      yield* Fiber.join(rest)
      expectFailed(chunks, { reason: "timeout" })
      expect((yield* Clock.currentTimeMillis) - heldUntil).toBe(5_000)
      yield* Scope.close(scope, Exit.void)
    })
  )

  it.effect("nor of a run that goes by itself until nobody reads it", () =>
    Effect.gen(function* () {
      const { model } = scripted([...many, pause(4_000), ends("stop")])
      const options = { timeouts: { betweenChunks: 5_000, firstContent: 5_000 } }
      const output = yield* Agent.run(agentOf(model), "go", options)
      yield* settle
      yield* TestClock.adjust("1 minute")
      yield* settle
      expect(yield* output.status).toBe("running")
      const chunks = [...(yield* inTime(Stream.runCollect(output.fullStream)))]
      expectGrammar(chunks)
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    }).pipe(Effect.scoped)
  )

  it.effect("of an answer that is finished, and whose source does not close, is no matter", () =>
    Effect.gen(function* () {
      const { model } = modelOf([
        async function* () {
          yield delta("ok")
          yield finish("stop")
          await never()
        }
      ])
      const { at, chunks } = yield* run(agentOf(model), { timeouts: { betweenChunks: 5_000 } })
      expect(at).toBe(0)
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )
})

describe.each(["run", "step"] as const)("timeouts.%s", limit => {
  const options = { timeouts: { [limit]: "5 seconds" } }

  const expectTimedOut = (chunks: ReadonlyArray<Chunk.Chunk>, at: number): void => {
    expectFailed(chunks, { _tag: "RunTimedOut", limit, milliseconds: 5_000 })
    expect(errorOf(chunks)).toMatchObject({ message: expect.stringMatching(`5000 ms.*timeouts.${limit}`) })
    expect(at).toBe(5_000)
  }

  it.effect("stops a model that has not begun", () =>
    Effect.gen(function* () {
      const { model, signals } = modelOf([() => new ReadableStream({ pull: never })])
      const { at, chunks, exit } = yield* leavingNothing(run(agentOf(model), options))
      expectTimedOut(chunks, at)
      expect(exit).toStrictEqual(Exit.fail(errorOf(chunks)))
      expect(types(chunks)).toStrictEqual(["start", "step-start", "error", "finish"])
      expect(signals[0]?.reason).toBe(errorOf(chunks))
      expect(finishOf(chunks).response.messages).toStrictEqual([])
    })
  )

  it.effect("stops a model in the middle: its text was said, and is not in the conversation", () =>
    Effect.gen(function* () {
      const { model } = scripted([delta("par"), pause(4_000), delta("tly"), toolCall("c1", "t", {}), hang])
      const { at, chunks } = yield* leavingNothing(run(agentOf(model), options))
      expectTimedOut(chunks, at)
      expect(finishOf(chunks).output.text).toBe("partly")
      expect(finishOf(chunks).messages.all).toStrictEqual([Message.user("go")])
      expect(only(chunks, "tool-error").map(({ payload }) => payload.error)).toStrictEqual([errorOf(chunks)])
      expect(only(chunks, "step-finish")).toHaveLength(0)
    })
  )

  it.effect(
    "stops tools: their signals fire with the error, and the step that was answered is told whole",
    () =>
      Effect.gen(function* () {
        const reasons: Array<unknown> = []
        const ended: Array<string> = []
        const wait = Tool.make("wait", {
          execute: (_, { abortSignal, toolCallId }) => {
            abortSignal.addEventListener("abort", () => reasons.push(abortSignal.reason))
            return Effect.ensuring(
              Effect.never,
              Effect.sync(() => ended.push(toolCallId))
            )
          }
        })
        const quick = Tool.make("quick", { execute: () => Effect.succeed("done") })
        const { model, requests } = scripted([
          ...ScriptedModel.text("so"),
          toolCall("c1", "wait", {}),
          toolCall("c2", "quick", {}),
          toolCall("c3", "wait", {}),
          ends("tool-calls", { inputTokens: 4 })
        ])
        const { at, chunks } = yield* leavingNothing(run(agentOf(model, [wait, quick]), options))
        expectTimedOut(chunks, at)
        const error = errorOf(chunks)
        expect(reasons).toStrictEqual([error, error])
        expect(ended).toStrictEqual(["c1", "c3"])
        expect(only(chunks, "tool-result").map(({ payload }) => payload.toolCallId)).toStrictEqual(["c2"])
        expect(
          only(chunks, "tool-error").map(({ payload }) => [payload.toolCallId, payload.error])
        ).toStrictEqual([
          ["c1", error],
          ["c3", error]
        ])
        expect(types(chunks).slice(-3)).toStrictEqual(["step-finish", "error", "finish"])
        expect(only(chunks, "step-finish")[0]?.payload.stepResult).toStrictEqual({
          reason: "tool-calls",
          isContinued: false
        })
        expect(finishOf(chunks).output).toStrictEqual({ text: "so", usage: { inputTokens: 4 } })
        expect(finishOf(chunks).response.messages).toMatchObject([
          { role: "assistant" },
          { role: "tool", content: [{ toolCallId: "c1" }, { toolCallId: "c2" }, { toolCallId: "c3" }] }
        ])
        expect(requests).toHaveLength(1)
      })
  )

  it.effect("does not wait for a tool that ignores it", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const deaf = Tool.make("deaf", {
        execute: (_, { write }) =>
          Effect.uninterruptible(Effect.as(Effect.zipRight(Deferred.await(gate), write("late")), "late"))
      })
      const { model } = scripted([toolCall("c1", "deaf", {}), ends("tool-calls")])
      let toldAt = Number.NaN
      const reading = read(Agent.stream(agentOf(model, [deaf]), "go", options), chunk => {
        if (chunk.type !== "finish") return Effect.void
        // Only now may the tool end: the end of the run was told without it.
        return Effect.flatMap(Clock.currentTimeMillis, now => {
          toldAt = now
          return Effect.asVoid(Deferred.succeed(gate, undefined))
        })
      })
      const { chunks } = yield* inTime(reading)
      expectTimedOut(chunks, toldAt)
      expect(only(chunks, "tool-output")).toHaveLength(0)
      expect(only(chunks, "tool-error")).toHaveLength(1)
    })
  )

  it.effect("stops a run between two calls of its model", () =>
    Effect.gen(function* () {
      const { model, times } = scripted(failing(refusal(503)), failing(refusal(503)), failing(refusal(503)))
      const { at, chunks } = yield* leavingNothing(run(agentOf(model), { maxRetries: 5, ...options }))
      expectTimedOut(chunks, at)
      expect(times).toStrictEqual([0, 1_000, 3_000])
      expect(types(chunks)).toStrictEqual(["start", "step-start", "error", "finish"])
    })
  )

  it.effect("covers the retries of silence", () =>
    Effect.gen(function* () {
      const { model, times } = scripted([hang], [hang], [hang])
      const timeouts = { ...options.timeouts, firstContent: 2_000 }
      const { at, chunks } = yield* run(agentOf(model), { timeouts })
      expectTimedOut(chunks, at)
      expect(times).toStrictEqual([0, 3_000])
    })
  )

  it.effect("stops a run whose next step is never prepared", () =>
    Effect.gen(function* () {
      const { model, requests } = scripted(reply("never"))
      const { at, chunks } = yield* leavingNothing(
        run(agentOf(model), { ...options, prepareStep: () => Effect.never })
      )
      expectTimedOut(chunks, at)
      expect(types(chunks)).toStrictEqual(["start", "error", "finish"])
      expect(requests).toHaveLength(0)
    })
  )

  it.effect("stops a run whose stop condition never decides; its step is told whole", () =>
    Effect.gen(function* () {
      const quick = Tool.make("quick", { execute: () => Effect.succeed("done") })
      const { model } = scripted([toolCall("c1", "quick", {}), ends("tool-calls")])
      const { at, chunks } = yield* leavingNothing(
        run(agentOf(model, [quick]), { ...options, stopWhen: () => Effect.never })
      )
      expectTimedOut(chunks, at)
      expect(types(chunks).slice(-3)).toStrictEqual(["step-finish", "error", "finish"])
      expect(finishOf(chunks).response.messages).toHaveLength(2)
    })
  )

  it.effect("that is not reached changes nothing, and leaves no clock running", () =>
    Effect.gen(function* () {
      const { model } = scripted([pause(4_999), ...reply("ok")])
      const { at, chunks } = yield* leavingNothing(run(agentOf(model), options))
      expect(at).toBe(4_999)
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
      yield* TestClock.adjust("1 hour")
    })
  )

  it.effect("fails the values of a run that goes by itself", () =>
    Effect.gen(function* () {
      const { model } = scripted([delta("par"), hang])
      const output = yield* Agent.run(agentOf(model), "go", options)
      yield* inTime(Effect.exit(output.drain))
      expect(yield* output.status).toBe("failed")
      expect(yield* Effect.flip(output.text)).toBeInstanceOf(Errors.RunTimedOut)
      expect(yield* output.fullOutput).toMatchObject({ text: "par", finishReason: "error" })
    }).pipe(Effect.scoped)
  )
})

describe("the clocks of steps and run", () => {
  const slow = Tool.make("slow", { execute: () => Effect.sleep(3_000) })

  const fourSteps = () =>
    scripted(
      ...[1, 2, 3].map(index => [pause(1_000), toolCall(`c${index}`, "slow", {}), ends("tool-calls")]),
      [pause(1_000), ...reply("ok")]
    )

  it.effect("of a step begin anew with each; that of the run does not", () =>
    Effect.gen(function* () {
      const steps = yield* leavingNothing(
        run(agentOf(fourSteps().model, [slow]), { timeouts: { step: 5_000 } })
      )
      expect(finishOf(steps.chunks).stepResult.reason).toBe("stop")
      expect(steps.at).toBe(13_000)
      const whole = yield* leavingNothing(
        run(agentOf(fourSteps().model, [slow]), { timeouts: { step: 5_000, run: 10_000 } })
      )
      expectFailed(whole.chunks, { _tag: "RunTimedOut", limit: "run" })
      expect(whole.at - steps.at).toBe(10_000)
      // Two steps were whole, and the third had its call.
      expect(
        only(whole.chunks, "step-finish").map(({ payload }) => payload.stepResult.isContinued)
      ).toStrictEqual([true, true, false])
    })
  )

  it.effect("stop nobody after an abort: the first cause counts", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const { model } = scripted([hang])
      const stream = Agent.stream(agentOf(model), "go", {
        abortSignal: controller.signal,
        timeouts: { run: 5_000, step: 5_000 }
      })
      const fiber = yield* Effect.fork(read(stream))
      yield* settle
      yield* TestClock.adjust(4_999)
      controller.abort("enough")
      yield* TestClock.adjust(1)
      const { chunks } = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
    })
  )

  it.effect("of a run take the place of the agent's", () =>
    Effect.gen(function* () {
      const { model } = scripted([pause(7_000), ...reply("ok")])
      const agent = Agent.make({ id: "a", model, timeouts: { run: 5_000 } })
      const { chunks } = yield* run(agent, { timeouts: { run: 10_000 } })
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
      const again = Agent.make({ id: "a", model: scripted([hang]).model, timeouts: { run: 5_000 } })
      expectFailed((yield* run(again)).chunks, { _tag: "RunTimedOut", milliseconds: 5_000 })
    })
  )

  it.effect("reach a Promise tool by its signal", () =>
    Effect.promise(async () => {
      const seen: Array<unknown> = []
      const wait = Facade.createTool({
        id: "wait",
        execute: async (_, { abortSignal }) => {
          abortSignal.addEventListener("abort", () => seen.push(abortSignal.reason))
          await never()
        }
      })
      const model = ScriptedModel.make([[toolCall("c1", "wait", {}), ends("tool-calls")]])
      const agent = new Facade.Agent({ id: "a", model, tools: { wait } })
      const failure = await agent.generate("go", { timeouts: { run: 20 } }).catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(Facade.RunTimedOut)
      expect(seen).toStrictEqual([failure])
    })
  )
})

/** A clock, and for how many milliseconds those sleep that it has put to sleep. */
const countingSleepers = (inner: Clock.Clock) => {
  const sleepers: Array<number> = []
  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => inner.unsafeCurrentTimeMillis(),
    unsafeCurrentTimeNanos: () => inner.unsafeCurrentTimeNanos(),
    currentTimeMillis: inner.currentTimeMillis,
    currentTimeNanos: inner.currentTimeNanos,
    sleep: duration =>
      Effect.acquireUseRelease(
        Effect.sync(() => sleepers.push(Duration.toMillis(duration))),
        () => inner.sleep(duration),
        () => Effect.sync(() => sleepers.splice(sleepers.indexOf(Duration.toMillis(duration)), 1))
      )
  }
  return { clock, sleepers }
}

describe("the timeout of a tool", () => {
  const outputs = (request: LanguageModel.ModelRequest | undefined) => {
    const last = request?.messages.at(-1)
    return last?.role === "tool" ? last.content.map(({ output }) => output) : undefined
  }

  it.effect("is told to the model, and the run goes on", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const slow = Tool.make("slow", {
        timeout: "2 seconds",
        execute: (_, { abortSignal }) => {
          abortSignal.addEventListener("abort", () => seen.push(abortSignal.reason))
          return Effect.onInterrupt(Effect.never, () => Effect.sync(() => seen.push("interrupted")))
        }
      })
      const quick = Tool.make("quick", { timeout: "2 seconds", execute: () => Effect.sleep(1_999) })
      const { model, requests, times } = scripted(
        [toolCall("c1", "slow", {}), toolCall("c2", "quick", {}), ends("tool-calls")],
        reply("ok")
      )
      const { chunks } = yield* leavingNothing(run(agentOf(model, [slow, quick])))
      expectGrammar(chunks)
      const [error] = only(chunks, "tool-error").map(({ payload }) => payload.error)
      expect(error).toBeInstanceOf(Errors.ToolTimedOut)
      expect(error).toMatchObject({ toolName: "slow", milliseconds: 2_000 })
      expect(seen).toStrictEqual([error, "interrupted"])
      expect(only(chunks, "tool-result").map(({ payload }) => payload.toolCallId)).toStrictEqual(["c2"])
      expect(outputs(requests[1])).toStrictEqual([
        { type: "error-text", value: expect.stringMatching(/"slow".*2000 ms/) },
        { type: "json", value: null }
      ])
      expect(times).toStrictEqual([0, 2_000])
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )

  it.effect("does not wait for one that ignores it: what it says and returns later is dropped", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const signals: Array<AbortSignal> = []
      const deaf = Tool.make("deaf", {
        timeout: 2_000,
        execute: (_, { abortSignal, write, writeData }) => {
          signals.push(abortSignal)
          return Effect.gen(function* () {
            yield* write("early")
            yield* Deferred.await(gate)
            yield* write("late")
            yield* writeData({ type: "data-late", data: 1 })
            return "late"
          }).pipe(Effect.uninterruptible)
        }
      })
      const { model, requests } = scripted(
        [toolCall("c1", "deaf", {}), ends("tool-calls")],
        [delta("o"), pause(1_000), delta("k"), ends("stop")]
      )
      // The tool ends in the middle of the next answer.
      const reading = read(Agent.stream(agentOf(model, [deaf]), "go"), chunk =>
        chunk.type === "text-delta" ? Effect.asVoid(Deferred.succeed(gate, undefined)) : Effect.void
      )
      const { chunks } = yield* leavingNothing(inTime(reading))
      expectGrammar(chunks)
      expect(signals[0]?.aborted).toBe(true)
      expect(only(chunks, "tool-output").map(({ payload }) => payload.output)).toStrictEqual(["early"])
      expect(types(chunks)).not.toContain("data-late")
      expect(only(chunks, "tool-result")).toHaveLength(0)
      expect(textOf(chunks)).toBe("ok")
      expect(outputs(requests[1])).toHaveLength(1)
    })
  )

  it.effect("counts from the beginning of the call, not from its turn in the queue", () =>
    Effect.gen(function* () {
      const work = Tool.make("work", { timeout: 2_000, execute: () => Effect.sleep(1_500) })
      const { model, times } = scripted(
        [
          toolCall("c1", "work", {}),
          toolCall("c2", "work", {}),
          toolCall("c3", "work", {}),
          ends("tool-calls")
        ],
        reply("ok")
      )
      const { chunks } = yield* leavingNothing(run(agentOf(model, [work]), { toolCallConcurrency: 1 }))
      expect(only(chunks, "tool-error")).toHaveLength(0)
      expect(times).toStrictEqual([0, 4_500])
    })
  )

  it.effect("makes room for the call that waits behind it", () =>
    Effect.gen(function* () {
      const deaf = Tool.make("deaf", { timeout: 2_000, execute: () => Effect.never })
      const quick = Tool.make("quick", { execute: () => Effect.succeed("done") })
      const { model, times } = scripted(
        [toolCall("c1", "deaf", {}), toolCall("c2", "quick", {}), ends("tool-calls")],
        reply("ok")
      )
      const { chunks } = yield* run(agentOf(model, [deaf, quick]), { toolCallConcurrency: 1 })
      expectGrammar(chunks)
      expect(times).toStrictEqual([0, 2_000])
      expect(only(chunks, "tool-result").map(({ payload }) => payload.result)).toStrictEqual(["done"])
    })
  )

  it.effect("covers what is told to the model", () =>
    Effect.gen(function* () {
      const wordy = Tool.make("wordy", {
        timeout: 2_000,
        execute: () => Effect.as(Effect.sleep(1_000), "x"),
        toModelOutput: () => Effect.as(Effect.sleep(1_500), "y")
      })
      const { model, times } = scripted([toolCall("c1", "wordy", {}), ends("tool-calls")], reply("ok"))
      const { chunks } = yield* run(agentOf(model, [wordy]))
      expectGrammar(chunks)
      expect(only(chunks, "tool-error").map(({ payload }) => payload.error)).toMatchObject([
        { _tag: "ToolTimedOut" }
      ])
      expect(times).toStrictEqual([0, 2_000])
    })
  )

  it.effect("leaves no clock behind a tool that is done, fails, or is aborted", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const { clock, sleepers } = countingSleepers(yield* Effect.clock)
      const timeout = "1 hour"
      const hours = () => sleepers.filter(duration => duration === 3_600_000).length
      const soon = Tool.make("soon", { timeout, execute: () => Effect.sleep(1) })
      const bad = Tool.make("bad", {
        timeout,
        execute: () => Effect.zipRight(Effect.sleep(1), Effect.fail("no"))
      })
      const wait = Tool.make("wait", { timeout, execute: () => Effect.never })
      const { model } = scripted(
        [toolCall("c1", "soon", {}), toolCall("c2", "bad", {}), ends("tool-calls")],
        [toolCall("c3", "wait", {}), ends("tool-calls")]
      )
      const stream = Agent.stream(agentOf(model, [soon, bad, wait]), "go", {
        abortSignal: controller.signal
      })
      const seen: Array<readonly [type: string, clocks: number]> = []
      const fiber = yield* read(stream, chunk =>
        Effect.gen(function* () {
          yield* settle
          seen.push([chunk.type, hours()])
        })
      ).pipe(Effect.withClock(clock), Effect.fork)
      yield* turns(200)
      expect(hours()).toBe(2)
      yield* TestClock.adjust(1)
      yield* turns(200)
      expect(hours()).toBe(1)
      controller.abort()
      const { chunks } = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(hours()).toBe(0)
      expect(seen.filter(([type]) => type === "step-finish" || type === "abort")).toStrictEqual([
        ["step-finish", 0],
        ["step-finish", 0],
        ["abort", 0]
      ])
    })
  )

  it("stops a Promise tool that never settles", async () => {
    const seen: Array<unknown> = []
    const wait = Facade.createTool({
      id: "wait",
      timeout: 20,
      execute: async (_, { abortSignal, writer }) => {
        abortSignal.addEventListener("abort", () => {
          seen.push(abortSignal.reason)
          void writer.write("late")
        })
        await never()
      }
    })
    const model = ScriptedModel.make([[call("c1", "wait"), ends("tool-calls")], reply("ok")])
    const output = await new Facade.Agent({ id: "a", model, tools: { wait } }).stream("go")
    const chunks: Array<Facade.Chunk> = []
    for await (const chunk of output.fullStream) chunks.push(chunk)
    expectGrammar(chunks)
    expect(seen).toStrictEqual([expect.objectContaining({ _tag: "ToolTimedOut", milliseconds: 20 })])
    expect(only(chunks, "tool-output")).toHaveLength(0)
    expect(await output.text).toBe("ok")
  })
})

describe("a limit that is none is refused", () => {
  const model = ScriptedModel.make([])
  const values = [
    0,
    -1,
    Number.NaN,
    "soon",
    "0 seconds",
    "-1 seconds",
    "25 days",
    2_147_483_648,
    Number.POSITIVE_INFINITY,
    null,
    {}
  ]
  const limits = ["firstContent", "betweenChunks", "step", "run"] as const
  const wrong = limits.flatMap(limit => values.map(value => [limit, value] as const))

  it.each(wrong)("timeouts.%s: %s", (limit, value) => {
    const timeouts = { [limit]: value } as Timeouts
    const refused = expect.objectContaining({ _tag: "InvalidConfiguration", field: `timeouts.${limit}` })
    expect(() => Agent.make({ id: "a", model, timeouts })).toThrow(refused)
    const failure = Effect.runSync(
      Effect.flip(Stream.runDrain(Agent.stream(Agent.make({ id: "a", model }), "go", { timeouts })))
    )
    expect(failure).toStrictEqual(refused)
  })

  it.each(values)("of a tool: %s", value => {
    const refused = expect.objectContaining({ _tag: "InvalidConfiguration", field: "timeout" })
    expect(() => Tool.make("t", { timeout: value as never })).toThrow(refused)
    expect(() => Facade.createTool({ id: "t", timeout: value as never })).toThrow(refused)
  })

  it.each<Timeouts["run"] & {}>([1, "1 millis", "24 days", 2_147_483_647, "5 minutes"])(
    "%s is one",
    value => {
      expect(() => Agent.make({ id: "a", model, timeouts: { run: value } })).not.toThrow()
      expect(() => Tool.make("t", { timeout: value })).not.toThrow()
    }
  )

  const odd: ReadonlyArray<readonly [what: string, timeouts: unknown, field: string]> = [
    ["one that nobody knows", { total: 5 }, "total"],
    ["a number alone", 5_000, "timeouts"],
    ["a text alone", "5 seconds", "timeouts"],
    ["null", null, "timeouts"]
  ]

  it.each(odd)("%s", (_, timeouts, field) => {
    expect(() => Agent.make({ id: "a", model, timeouts: timeouts as Timeouts })).toThrow(
      expect.objectContaining({ _tag: "InvalidConfiguration", field })
    )
  })
})

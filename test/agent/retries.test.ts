/** Model calls that fail before anything was shown: made again, after a while, or made of another model; and no trace of it. */
import { createOpenAI } from "@ai-sdk/openai"
import { describe, expect, it } from "@effect/vitest"
import {
  Agent,
  type Chunk,
  Errors,
  Id,
  LanguageModel,
  Message,
  type ModelPart,
  type RunOptions,
  Tool
} from "eddy"
import * as Facade from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Exit, Fiber, FastCheck as fc, Random, Stream, Supervisor, TestClock } from "effect"
import { makeRouter } from "../../src/model/router/routerModel.js"
import { expectGrammar } from "../support/grammar.js"
import { chat } from "../support/transcripts.js"
import {
  errorOf,
  evenly,
  failing,
  finishOf,
  inTime,
  modelOf,
  only,
  read,
  refusal,
  settle,
  textOf,
  timed,
  types
} from "./kit.js"

const { finish: ends, reply, text, toolCall } = ScriptedModel

const busy = refusal(503)

const echo = Tool.make("echo", {
  input: { type: "object" },
  execute: () => Effect.succeed("echoed")
})

const agentOf = (
  model: Agent.Options<[]>["model"],
  more: Omit<Agent.Options<[typeof echo]>, "id" | "model" | "tools"> = {}
) => Agent.make({ id: "persistent", model, tools: [echo], ...more })

const scripted = (turns: ReadonlyArray<ScriptedModel.Turn>, modelId = "first") =>
  timed(ScriptedModel.make(turns, { modelId }))

/** Reads a run while time passes. Runs are called the same, to be compared. */
const run = (agent: Agent.Agent, options: RunOptions<[], undefined> = {}) =>
  inTime(read(Agent.stream(agent, "go", options))).pipe(evenly, Effect.provide(Id.layerSequential))

const expectFailed = (chunks: ReadonlyArray<Chunk.Chunk>, error: unknown): void => {
  expectGrammar(chunks)
  expect(types(chunks).slice(-2)).toStrictEqual(["error", "finish"])
  expect(errorOf(chunks)).toMatchObject(error as object)
  expect(finishOf(chunks).stepResult).toStrictEqual({ reason: "error", isContinued: false })
}

describe("a call that fails before it has said anything", () => {
  it.effect("is made again, as it was, and the run is as if it had succeeded at once", () =>
    Effect.gen(function* () {
      const { model, requests, times } = scripted([failing(busy), reply("ok")])
      const { chunks, exit } = yield* run(agentOf(model))
      expectGrammar(chunks)
      expect(exit).toStrictEqual(Exit.void)
      expect(times).toStrictEqual([0, 1000])
      expect(requests[1]).toStrictEqual(requests[0])
      const plain = yield* run(agentOf(ScriptedModel.make([reply("ok")], { modelId: "first" })))
      expect(chunks).toStrictEqual(plain.chunks)
      expect(types(chunks).slice(0, 2)).toStrictEqual(["start", "step-start"])
    })
  )

  const failures: ReadonlyArray<
    readonly [what: string, turn: ReadonlyArray<ModelPart.ModelPart>, calls: number]
  > = [
    ["429", failing(refusal(429)), 2],
    ["408", failing(refusal(408)), 2],
    ["400", failing(refusal(400)), 1],
    ["401", failing(refusal(401)), 1],
    ["a 400 that may be tried again", failing(refusal(400, { isRetryable: true })), 2],
    ["a 503 that may not", failing(refusal(503, { isRetryable: false })), 1],
    ["an error that says nothing", failing(new Error("broken")), 1],
    ["no part at all", [], 2],
    ["a start and no more", [{ type: "text-start", id: "0" }], 2],
    ["an end for other reasons, broken off", [{ ...ends("other"), rawReason: "interrupted" } as never], 2],
    ["an end with an error", [ends("error")], 1]
  ]

  it.effect.each(failures)("%s: $2 calls", ([, turn, calls]) =>
    Effect.gen(function* () {
      const { model, requests } = scripted([turn, reply("ok")])
      const { chunks } = yield* run(agentOf(model))
      expectGrammar(chunks)
      expect(requests).toHaveLength(calls)
      expect(only(chunks, "step-start")).toHaveLength(1)
      expect(textOf(chunks)).toBe(calls === 1 ? "" : "ok")
      expect(finishOf(chunks).stepResult.reason).toBe(calls === 1 ? "error" : "stop")
    })
  )

  const begins: ReadonlyArray<
    readonly [what: string, answer: LanguageModel.LanguageModel["answer"], calls: number]
  > = [
    ["a promise that rejects with 503", () => Promise.reject(refused({ statusCode: 503 })), 3],
    ["a promise that rejects with anything", () => Promise.reject(busy), 3],
    ["an Effect that fails", () => Effect.fail(refused({ isRetryable: true })), 3],
    ["an Effect that fails for good", () => Effect.fail(refused({ statusCode: 403 })), 1],
    ["an Effect that dies", () => Effect.die(new TypeError("a defect")), 1],
    [
      "a throw",
      () => {
        throw new TypeError("a defect")
      },
      1
    ]
  ]

  const refused = (fields: Partial<ConstructorParameters<typeof Errors.ModelError>[0]>) =>
    new Errors.ModelError({ reason: "request", provider: "p", modelId: "m", message: "no", ...fields })

  it.effect.each(begins)("%s", ([, answer, calls]) =>
    Effect.gen(function* () {
      let asked = 0
      const model: LanguageModel.LanguageModel = {
        provider: "kit",
        modelId: "kit-1",
        answer: (...args) => {
          asked++
          return answer(...args)
        }
      }
      const { chunks, exit } = yield* run(agentOf(model))
      expectFailed(chunks, { _tag: "ModelError" })
      expect(exit).toStrictEqual(Exit.fail(errorOf(chunks)))
      expect(types(chunks)).toStrictEqual(["start", "step-start", "error", "finish"])
      expect(asked).toBe(calls)
    })
  )

  it.effect.each([
    { agent: undefined, given: undefined, calls: 3 },
    { agent: 0, given: undefined, calls: 1 },
    { agent: 0, given: 1, calls: 2 },
    { agent: 4, given: 0, calls: 1 },
    { agent: undefined, given: 4, calls: 5 }
  ])("at most maxRetries times more: $calls calls (agent $agent, run $given)", ({ agent, calls, given }) =>
    Effect.gen(function* () {
      const { model, times } = scripted(Array.from({ length: 6 }, () => failing(busy)))
      const { chunks } = yield* run(
        agentOf(model, agent === undefined ? {} : { maxRetries: agent }),
        given === undefined ? {} : { maxRetries: given }
      )
      expectFailed(chunks, { statusCode: 503, message: "status 503" })
      expect(times).toStrictEqual([0, 1000, 3000, 7000, 15_000].slice(0, calls))
    })
  )

  it.effect("counts anew in each step, and each step keeps those before it", () =>
    Effect.gen(function* () {
      const { model, requests, times } = scripted([
        failing(busy),
        failing(busy),
        [...text("one "), toolCall("c1", "echo", {}), ends("tool-calls", { inputTokens: 3 })],
        failing(busy),
        failing(busy),
        [...text("two"), ends("stop", { inputTokens: 4 })]
      ])
      const { chunks } = yield* run(agentOf(model))
      expectGrammar(chunks)
      expect(times).toStrictEqual([0, 1000, 3000, 3000, 4000, 6000])
      expect(requests[5]).toStrictEqual(requests[3])
      expect(requests[5]?.messages.map(({ role }) => role)).toStrictEqual(["user", "assistant", "tool"])
      expect(only(chunks, "step-start")).toHaveLength(2)
      expect(only(chunks, "tool-result")).toHaveLength(1)
      expect(finishOf(chunks)).toMatchObject({
        output: { text: "one two", usage: { inputTokens: 7 } },
        stepResult: { reason: "stop" }
      })
      expect(finishOf(chunks).response.messages.map(({ role }) => role)).toStrictEqual([
        "assistant",
        "tool",
        "assistant"
      ])
    })
  )

  it.effect("in a later step, for good, fails the run and keeps the steps before it", () =>
    Effect.gen(function* () {
      const { model } = scripted([
        [...text("one"), toolCall("c1", "echo", {}), ends("tool-calls", { inputTokens: 3 })],
        failing(busy),
        failing(refusal(400))
      ])
      const { chunks } = yield* run(agentOf(model))
      expectFailed(chunks, { statusCode: 400 })
      expect(finishOf(chunks).output).toStrictEqual({ text: "one", usage: { inputTokens: 3 } })
      expect(finishOf(chunks).messages.all.map(({ role }) => role)).toStrictEqual([
        "user",
        "assistant",
        "tool"
      ])
      expect(only(chunks, "step-finish")).toHaveLength(1)
    })
  )

  it.effect("is waited for a fifth more or less than 1 s, 2 s, 4 s, as chance has it", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<number>> = []
      for (const random of [0, 0.25, 0.999999]) {
        const { model, times } = scripted([failing(busy), failing(busy), failing(busy), reply("ok")])
        const stream = Agent.stream(agentOf(model, { maxRetries: 3 }), "go")
        yield* inTime(read(stream)).pipe(Effect.withRandom(Random.fixed([random])))
        seen.push(times.slice(1).map((time, index) => Math.round(time - (times[index] ?? 0))))
      }
      expect(seen).toStrictEqual([
        [800, 1600, 3200],
        [900, 1800, 3600],
        [1200, 2400, 4800]
      ])
    })
  )

  it.effect("is waited for without asking anybody: nothing is told meanwhile", () =>
    Effect.gen(function* () {
      const { model, requests } = scripted([failing(busy), reply("ok")])
      const chunks: Array<Chunk.Chunk> = []
      const fiber = yield* Agent.stream(agentOf(model), "go").pipe(
        Stream.runForEach(chunk => Effect.sync(() => void chunks.push(chunk))),
        evenly,
        Effect.fork
      )
      yield* settle
      yield* TestClock.adjust(999)
      yield* settle
      expect(types(chunks)).toStrictEqual(["start"])
      expect(requests).toHaveLength(1)
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
      expect(textOf(chunks)).toBe("ok")
    })
  )
})

describe("the time that a provider asks for", () => {
  const date = "Mon, 30 Nov 2026 10:00:00 GMT"
  const headers: ReadonlyArray<
    readonly [what: string, headers: Readonly<Record<string, string>>, wait: number | undefined]
  > = [
    ["retry-after-ms", { "retry-after-ms": "3000" }, 3000],
    ["retry-after-ms before retry-after", { "retry-after": "50", "retry-after-ms": "2500.5" }, 2500.5],
    ["seconds", { "retry-after": "7" }, 7000],
    ["seconds, in a header of another case", { "Retry-After": "7" }, 7000],
    ["a date, by the provider's own clock", { "retry-after": "Mon, 30 Nov 2026 10:00:05 GMT", date }, 5000],
    ["a date that is over", { "retry-after": "Mon, 30 Nov 2026 09:00:00 GMT", date }, 1000],
    ["a date without the provider's clock", { "retry-after": "Mon, 30 Nov 2026 10:00:05 GMT" }, 1000],
    ["less than the back-off", { "retry-after": "0" }, 1000],
    ["less than nothing", { "retry-after": "-7" }, 1000],
    ["no time", { "retry-after": "soon" }, 1000],
    ["an empty time", { "retry-after": "" }, 1000],
    ["an empty time in milliseconds", { "retry-after-ms": "", "retry-after": "7" }, 7000],
    ["a minute", { "retry-after": "60" }, 60_000],
    ["more than a minute", { "retry-after": "61" }, undefined],
    ["a date in an hour", { "retry-after": "Mon, 30 Nov 2026 11:00:00 GMT", date }, undefined]
  ]

  /** A model of the AI SDK that is busy, then not. */
  const sdkModel = (responseHeaders: Readonly<Record<string, string>>, modelId = "sdk-1") => {
    let calls = 0
    return LanguageModel.fromAiSdk({
      specificationVersion: "v3",
      provider: "kit",
      modelId,
      doStream: async () => {
        if (calls++ === 0) throw refusal(429, { responseHeaders })
        return {
          stream: new ReadableStream({
            start: controller => {
              for (const part of [
                { type: "stream-start", warnings: [] },
                { type: "text-start", id: "0" },
                { type: "text-delta", id: "0", delta: "ok" },
                { type: "text-end", id: "0" },
                {
                  type: "finish",
                  finishReason: { unified: "stop", raw: "stop" },
                  usage: { inputTokens: {}, outputTokens: {} }
                }
              ])
                controller.enqueue(part)
              controller.close()
            }
          })
        }
      }
    })
  }

  it.effect.each(headers)("%s", ([, responseHeaders, wait]) =>
    Effect.gen(function* () {
      const { chunks } = yield* run(agentOf(sdkModel(responseHeaders)))
      expect(yield* TestClock.currentTimeMillis).toBe(wait ?? 0)
      expect(textOf(chunks)).toBe(wait === undefined ? "" : "ok")
      if (wait === undefined) expectFailed(chunks, { _tag: "ModelError", statusCode: 429, reason: "request" })
    })
  )

  it.effect("in an error part counts as well", () =>
    Effect.gen(function* () {
      const overloaded = refusal(529, { responseHeaders: { "retry-after": "9" } })
      const { model, times } = scripted([failing(overloaded), reply("ok")])
      yield* run(agentOf(model))
      expect(times).toStrictEqual([0, 9000])
    })
  )

  it.effect("that is too long for anybody to wait gives the next model its turn at once", () =>
    Effect.gen(function* () {
      const { model, times } = scripted([reply("second")], "second")
      const { chunks } = yield* run(agentOf([sdkModel({ "retry-after": "3600" }), model]))
      expectGrammar(chunks)
      expect(times).toStrictEqual([0])
      expect(textOf(chunks)).toBe("second")
    })
  )

  it.effect("is read from a provider package's own error", () =>
    Effect.gen(function* () {
      const bodies: ReadonlyArray<() => Response> = [
        () =>
          new Response('{"error":{"message":"slow down"}}', {
            status: 429,
            headers: { "content-type": "application/json", "retry-after": "12" }
          }),
        () => new Response(chat.text, { headers: { "content-type": "text/event-stream" } })
      ]
      let calls = 0
      const fetch = async () => bodies[calls++]?.() ?? Response.error()
      const model = LanguageModel.fromAiSdk(createOpenAI({ apiKey: "none", fetch }).chat("gpt-4o"))
      const { chunks, exit } = yield* run(agentOf(model))
      expectGrammar(chunks)
      expect(exit).toStrictEqual(Exit.void)
      expect(calls).toBe(2)
      expect(yield* TestClock.currentTimeMillis).toBe(12_000)
      expect(textOf(chunks)).not.toBe("")
    })
  )
})

describe("what a failed call leaves behind", () => {
  /** Everything that may come before content, with what there is to remember in it. */
  const preamble: ReadonlyArray<ModelPart.ModelPart> = [
    { type: "stream-start", warnings: [{ type: "other", message: "of the first" }] },
    { type: "response-metadata", id: "first-response", modelId: "first-model" },
    { type: "raw", value: { of: "the first" } },
    { type: "reasoning-start", id: "0" },
    { type: "reasoning-end", id: "0" },
    { type: "text-start", id: "0" }
  ]

  const answer: ReadonlyArray<ModelPart.ModelPart> = [
    { type: "stream-start", warnings: [{ type: "other", message: "of the second" }] },
    { type: "response-metadata", id: "second-response" },
    { type: "raw", value: { of: "the second" } },
    ...ScriptedModel.reasoning("hm", "0"),
    ...text("ok", "0"),
    ends("stop", { inputTokens: 1 })
  ]

  const broken: ReadonlyArray<
    readonly [what: string, turn: ReadonlyArray<ScriptedModel.ScriptPart>, options: object]
  > = [
    ["with an error", failing(busy, ...preamble), {}],
    [
      "with an error after its usage",
      [
        ...preamble,
        { type: "finish", reason: "other", rawReason: "interrupted", usage: { inputTokens: 99 } }
      ],
      {}
    ],
    ["without a finish", preamble, {}],
    ["in silence", [...preamble, ScriptedModel.hang], { timeouts: { firstContent: "10 seconds" } }]
  ]

  it.effect.each(broken)("that failed %s is nothing", ([, turn, options]) =>
    Effect.gen(function* () {
      const { model, requests } = scripted([turn, answer])
      const agent = agentOf(model)
      const { chunks } = yield* run(agent, { includeRawChunks: true, ...options })
      const alone = ScriptedModel.make([answer], { modelId: "first" })
      const plain = yield* run(agentOf(alone), { includeRawChunks: true })
      expectGrammar(chunks)
      expect(requests).toHaveLength(2)
      expect(chunks).toStrictEqual(plain.chunks)
    })
  )

  it.effect("is nothing in what the run gives at its end either", () =>
    Effect.gen(function* () {
      const { model } = scripted([failing(busy, ...preamble), answer])
      const output = yield* evenly(inTime(Agent.generate(agentOf(model), "go", { includeRawChunks: true })))
      expect(output).toMatchObject({
        status: "success",
        text: "ok",
        reasoning: "hm",
        usage: { inputTokens: 1 },
        warnings: [{ type: "other", message: "of the second" }],
        response: { id: "second-response" }
      })
      expect(output.response).not.toHaveProperty("modelId")
      expect(output.steps).toHaveLength(1)
      expect(output).not.toHaveProperty("error")
      expect(JSON.stringify(output)).not.toContain("of the first")
    })
  )

  it.effect("are no ids: blocks of later answers are called as if it had never been", () =>
    Effect.gen(function* () {
      const started: ReadonlyArray<ModelPart.ModelPart> = [
        { type: "text-start", id: "0" },
        { type: "text-end", id: "0" },
        { type: "text-start", id: "0" },
        { type: "reasoning-start", id: "1" }
      ]
      const { model } = scripted([
        failing(busy, ...started),
        [...text("a", "0"), ...text("b", "0"), toolCall("c1", "echo", {}), ends("tool-calls")],
        failing(busy, ...started),
        failing(busy, ...started),
        [...text("c", "0"), ...text("d", "1"), ...text("e", "0:2"), ends("stop")]
      ])
      const { chunks } = yield* run(agentOf(model))
      expectGrammar(chunks)
      expect(only(chunks, "text-start").map(({ payload }) => payload.id)).toStrictEqual([
        "0",
        "0:2",
        "0:3",
        "1",
        "0:2:2"
      ])
    })
  )

  const kinds = fc.constantFrom("busy", "cut", "interrupted", "silent")
  const preambles = fc.subarray([...preamble])
  const attempts = fc.array(fc.tuple(preambles, kinds), { maxLength: 3 })
  const answers = fc.array(
    fc.tuple(
      attempts,
      fc.constantFrom("text", "reasoning", "nothing", "two calls"),
      fc.constantFrom("0", "1")
    ),
    { minLength: 1, maxLength: 3 }
  )

  const turnOf = (said: string, id: string, isLast: boolean): ReadonlyArray<ModelPart.ModelPart> => {
    const content =
      said === "text"
        ? text("ok", id)
        : said === "reasoning"
          ? ScriptedModel.reasoning("hm", id)
          : said === "two calls" && isLast
            ? text("two", id)
            : []
    const calls = isLast
      ? []
      : [toolCall("c", "echo", {}), ...(said === "two calls" ? [toolCall("c", "echo", { n: 1 })] : [])]
    return [
      ...preamble.slice(0, 2),
      ...content,
      ...calls,
      ends(isLast ? "stop" : "tool-calls", { inputTokens: 1 })
    ]
  }

  const brokenTurn = (parts: ReadonlyArray<ModelPart.ModelPart>, kind: string): ScriptedModel.Turn => {
    if (kind === "silent") return [...parts, ScriptedModel.hang]
    if (kind === "busy") return failing(busy, ...parts)
    if (kind === "cut") return parts
    return [
      ...parts,
      { type: "finish", reason: "other", rawReason: "interrupted", usage: { inputTokens: 9 } }
    ]
  }

  it.effect.prop(
    "is nothing, however often and however it failed, in whichever step",
    [answers],
    ([steps]) =>
      Effect.gen(function* () {
        const whole = steps.map(([, said, id], index) => turnOf(said, id, index === steps.length - 1))
        const troubled = steps.flatMap(([failures, ,], index) => [
          ...failures.map(([parts, kind]) => brokenTurn(parts, kind)),
          whole[index] ?? []
        ])
        const options = { includeRawChunks: true, maxRetries: 3, timeouts: { firstContent: 5_000 } }
        const { model, requests, unused } = scripted(troubled)
        const { chunks } = yield* run(agentOf(model), options)
        const alone = ScriptedModel.make(whole, { modelId: "first" })
        const plain = yield* run(agentOf(alone), options)
        expectGrammar(chunks)
        expect(unused()).toBe(0)
        expect(chunks).toStrictEqual(plain.chunks)
        const asked = requests.filter(
          (request, index) => request.messages.length !== requests[index + 1]?.messages.length
        )
        expect(asked).toStrictEqual(alone.requests)
      }),
    { fastCheck: { numRuns: 30 } }
  )

  it.effect("that failed for good is told as begun, with what the provider said of it, and no more", () =>
    Effect.gen(function* () {
      const { model } = scripted([failing(refusal(400), ...preamble)])
      const { chunks } = yield* run(agentOf(model), { includeRawChunks: true })
      expectFailed(chunks, { statusCode: 400 })
      expect(types(chunks)).toStrictEqual([
        "start",
        "step-start",
        "response-metadata",
        "raw",
        "error",
        "finish"
      ])
      expect(finishOf(chunks).response).toMatchObject({ id: "first-response", messages: [] })
    })
  )

  it.effect("an answer without content shows its start all the same, when it is complete", () =>
    Effect.gen(function* () {
      const { model } = scripted([
        [
          { type: "response-metadata", id: "r" },
          { type: "text-start", id: "0" },
          { type: "text-end", id: "0" },
          ends("stop")
        ]
      ])
      const { chunks } = yield* run(agentOf(model))
      expectGrammar(chunks)
      expect(types(chunks)).toStrictEqual([
        "start",
        "step-start",
        "response-metadata",
        "text-start",
        "text-end",
        "step-finish",
        "finish"
      ])
    })
  )
})

describe("a call that fails after it was shown", () => {
  const contents: ReadonlyArray<readonly [what: string, parts: ReadonlyArray<ModelPart.ModelPart>]> = [
    ["text", [{ type: "text-delta", id: "0", delta: "par" }]],
    ["reasoning", [{ type: "reasoning-delta", id: "0", delta: "par" }]],
    ["the start of a call", [{ type: "tool-input-start", id: "c1", toolName: "echo" }]],
    ["a call", [toolCall("c1", "echo", {})]],
    [
      "a call of the provider's",
      [{ type: "tool-call", toolCallId: "p", toolName: "s", input: "{}", providerExecuted: true }]
    ],
    ["a source", [{ type: "source", id: "s", sourceType: "url", url: "https://example.org" }]],
    ["a file", [{ type: "file", data: "AA==", mediaType: "image/png" }]]
  ]

  it.effect.each(contents)("by %s, fails the run: not again, and of no other model", ([, parts]) =>
    Effect.gen(function* () {
      const { model, requests } = scripted([failing(busy, ...parts), reply("again")])
      const second = scripted([reply("other")], "second")
      const { chunks, exit } = yield* run(agentOf([model, second.model]))
      expectFailed(chunks, { statusCode: 503, modelId: "first" })
      expect(exit).toStrictEqual(Exit.fail(errorOf(chunks)))
      expect(requests).toHaveLength(1)
      expect(second.requests).toHaveLength(0)
      expect(finishOf(chunks).messages.all).toStrictEqual([Message.user("go")])
      expect(finishOf(chunks).response.messages).toStrictEqual([])
      expect(finishOf(chunks).response.uiMessages).toStrictEqual([])
      // A call that was told has its outcome.
      for (const { payload } of only(chunks, "tool-call").filter(chunk => !chunk.payload.providerExecuted)) {
        expect(only(chunks, "tool-error")).toMatchObject([
          { payload: { toolCallId: payload.toolCallId, error: errorOf(chunks) } }
        ])
      }
    })
  )

  it.effect("keeps what was said until then where it was said, and out of the conversation", () =>
    Effect.gen(function* () {
      const { model } = scripted([
        [...text("one "), toolCall("c1", "echo", {}), ends("tool-calls")],
        failing(busy, { type: "text-delta", id: "0", delta: "until then" })
      ])
      const { chunks } = yield* run(agentOf(model))
      expectFailed(chunks, { statusCode: 503 })
      expect(textOf(chunks)).toBe("one until then")
      expect(finishOf(chunks).output.text).toBe("one until then")
      expect(finishOf(chunks).response.messages).toMatchObject([
        { role: "assistant", content: [{ type: "text", text: "one " }, { type: "tool-call" }] },
        { role: "tool" }
      ])
      expect(only(chunks, "step-finish")).toHaveLength(1)
    })
  )

  it("is so on the Promise face too", async () => {
    const model = ScriptedModel.make([
      failing(busy, { type: "text-delta", id: "0", delta: "until then" }),
      reply("again")
    ])
    const output = await new Facade.Agent({ id: "a", model }).stream("go", { onError: () => undefined })
    const full = await output.getFullOutput()
    expect(full).toMatchObject({ status: "failed", text: "until then", error: { statusCode: 503 } })
    expect(full.response.messages).toStrictEqual([])
    expect(model.requests).toHaveLength(1)
  })
})

describe("an abort while a call is waited for", () => {
  it.effect("ends the run at once: no further call, and not of another model", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const { model, requests } = scripted([failing(busy, { type: "text-start", id: "0" }), reply("never")])
      const second = scripted([reply("never")], "second")
      const fiber = yield* read(
        Agent.stream(agentOf([model, second.model]), "go", { abortSignal: controller.signal })
      ).pipe(evenly, Effect.fork)
      yield* settle
      yield* TestClock.adjust(500)
      controller.abort("enough")
      const { chunks, exit } = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(exit).toStrictEqual(Exit.void)
      expect(types(chunks)).toStrictEqual(["start", "step-start", "abort", "finish"])
      expect(finishOf(chunks).stepResult).toStrictEqual({ reason: "aborted", isContinued: false })
      expect(finishOf(chunks).messages.all).toStrictEqual([Message.user("go")])
      yield* TestClock.adjust("1 hour")
      yield* settle
      expect(requests).toHaveLength(1)
      expect(second.requests).toHaveLength(0)
    })
  )

  it.effect("between steps keeps those before it", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const { model, requests } = scripted([
        [...text("one"), toolCall("c1", "echo", {}), ends("tool-calls")],
        failing(busy)
      ])
      const fiber = yield* read(Agent.stream(agentOf(model), "go", { abortSignal: controller.signal })).pipe(
        Effect.fork
      )
      yield* settle
      expect(requests).toHaveLength(2)
      controller.abort()
      const { chunks } = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(finishOf(chunks)).toMatchObject({ stepResult: { reason: "aborted" }, output: { text: "one" } })
      expect(finishOf(chunks).response.messages.map(({ role }) => role)).toStrictEqual(["assistant", "tool"])
    })
  )

  it.effect("and interruption leave nothing that would call later", () =>
    Effect.gen(function* () {
      const supervisor = yield* Supervisor.track
      const { model, requests } = scripted([failing(busy), reply("never")])
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.fork(Stream.runDrain(Agent.stream(agentOf(model), "go")))
        yield* settle
        expect((yield* supervisor.value).length).toBeGreaterThan(1)
        expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
      }).pipe(Effect.supervised(supervisor))
      expect(yield* supervisor.value).toHaveLength(0)
      yield* TestClock.adjust("1 hour")
      yield* settle
      expect(requests).toHaveLength(1)
    })
  )
})

describe("a list of models", () => {
  const metadata = { provider: "scripted", modelId: "second" }

  const failures: ReadonlyArray<readonly [what: string, turns: ReadonlyArray<ScriptedModel.Turn>]> = [
    ["401", [failing(refusal(401))]],
    ["503, as often as it may", [failing(busy), failing(busy), failing(busy)]],
    ["nothing", [[], [], []]],
    [
      "a defect",
      [
        () => {
          throw new TypeError("a defect")
        }
      ]
    ]
  ]

  it.effect.each(failures)("falls back on the next when the one before fails with %s", ([, turns]) =>
    Effect.gen(function* () {
      const first = scripted(turns)
      const second = scripted([reply("ok")], "second")
      const { chunks, exit } = yield* run(agentOf([first.model, second.model]))
      expectGrammar(chunks)
      expect(exit).toStrictEqual(Exit.void)
      expect(first.unused()).toBe(0)
      expect(only(chunks, "step-start").map(({ payload }) => payload.request)).toStrictEqual([metadata])
      expect(only(chunks, "step-finish")[0]?.payload.metadata).toStrictEqual(metadata)
      expect(finishOf(chunks).metadata).toStrictEqual(metadata)
      // At once: its turn has come when the one before has failed for good.
      expect(second.times).toStrictEqual([first.times.at(-1)])
      expect(second.requests).toStrictEqual(first.requests.slice(-1))
    })
  )

  it.effect("falls back when a package is missing", () =>
    Effect.gen(function* () {
      const router = makeRouter({
        load: () => Promise.reject(new Error("Cannot find package '@ai-sdk/openai' imported from here")),
        environment: () => "a key"
      })
      const second = scripted([reply("ok")], "second")
      const { chunks } = yield* run(agentOf([router("openai/gpt-5"), second.model]))
      expectGrammar(chunks)
      expect(textOf(chunks)).toBe("ok")
      const alone = yield* run(agentOf(router("openai/gpt-5")))
      expectFailed(alone.chunks, { _tag: "InvalidConfiguration", field: "model" })
    })
  )

  it.effect("stays with the one that took over, for the rest of the run and no longer", () =>
    Effect.gen(function* () {
      const first = scripted([failing(refusal(401)), reply("first again")])
      const second = scripted(
        [
          [...text("one "), toolCall("c1", "echo", {}), ends("tool-calls")],
          [toolCall("c2", "echo", {}), ends("tool-calls")],
          reply("three")
        ],
        "second"
      )
      const agent = agentOf([first.model, second.model])
      const { chunks } = yield* run(agent)
      expectGrammar(chunks)
      expect(textOf(chunks)).toBe("one three")
      expect(first.requests).toHaveLength(1)
      expect(only(chunks, "step-start").map(({ payload }) => payload.request)).toStrictEqual([
        metadata,
        metadata,
        metadata
      ])
      const next = yield* run(agent)
      expect(textOf(next.chunks)).toBe("first again")
    })
  )

  it.effect("falls back in a later step, with the conversation so far", () =>
    Effect.gen(function* () {
      const first = scripted([
        [...text("one "), toolCall("c1", "echo", {}), ends("tool-calls")],
        failing(refusal(401))
      ])
      const second = scripted([reply("two")], "second")
      const { chunks } = yield* run(agentOf([first.model, second.model]))
      expectGrammar(chunks)
      expect(textOf(chunks)).toBe("one two")
      expect(second.requests[0]?.messages.map(({ role }) => role)).toStrictEqual([
        "user",
        "assistant",
        "tool"
      ])
      expect(only(chunks, "step-finish").map(({ payload }) => payload.metadata)).toStrictEqual([
        { provider: "scripted", modelId: "first" },
        metadata
      ])
    })
  )

  it.effect("has retries of its own for each", () =>
    Effect.gen(function* () {
      const busyOnes = () => Array.from({ length: 5 }, () => failing(busy))
      const models = ["a", "b", "c", "d"].map(modelId => scripted(busyOnes(), modelId))
      const [a, b, c, d] = models.map(({ model }) => model)
      if (a === undefined || b === undefined || c === undefined || d === undefined) return expect.fail()
      const agent = agentOf([{ model: a, maxRetries: 0 }, b, { model: c, maxRetries: 2 }, { model: d }])
      const { chunks } = yield* run(agent, { maxRetries: 1 })
      expectFailed(chunks, { statusCode: 503, modelId: "d" })
      expect(models.map(({ times }) => times)).toStrictEqual([
        [0],
        [0, 1000],
        [1000, 2000, 4000],
        [4000, 5000]
      ])
      expect(finishOf(chunks).metadata).toStrictEqual({ provider: "scripted", modelId: "d" })
    })
  )

  it.effect("of which all fail gives the last error, and one start of the step", () =>
    Effect.gen(function* () {
      const first = scripted([
        failing(refusal(401, { message: "first" }), { type: "response-metadata", id: "a" })
      ])
      const second = scripted([failing(refusal(403, { message: "second" }))], "second")
      const { chunks, exit } = yield* run(agentOf([first.model, second.model]))
      expectFailed(chunks, { message: "second", modelId: "second" })
      expect(exit).toStrictEqual(Exit.fail(errorOf(chunks)))
      expect(types(chunks)).toStrictEqual(["start", "step-start", "error", "finish"])
      expect(only(chunks, "step-start")[0]?.payload.request).toStrictEqual(metadata)
      expect(finishOf(chunks).response).not.toHaveProperty("id")
    })
  )

  it.effect("does not fall back because of an abort", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const asked = yield* Deferred.make<void>()
      const { model, signals } = modelOf([
        signal =>
          new ReadableStream({
            start: controller =>
              signal.addEventListener("abort", () =>
                controller.error(new DOMException("aborted", "AbortError"))
              ),
            pull: () => void Deferred.unsafeDone(asked, Effect.void)
          })
      ])
      const second = scripted([reply("never")], "second")
      const stream = Agent.stream(agentOf([model, second.model]), "go", { abortSignal: controller.signal })
      const fiber = yield* Effect.fork(read(stream))
      yield* Deferred.await(asked)
      controller.abort("enough")
      const { chunks } = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(types(chunks)).toStrictEqual(["start", "step-start", "abort", "finish"])
      expect(signals.map(({ reason }) => reason)).toStrictEqual(["enough"])
      yield* settle
      expect(second.requests).toHaveLength(0)
    })
  )

  it.effect("is asked in its order, also of a model that stands in it twice", () =>
    Effect.gen(function* () {
      const { model, times } = scripted([failing(refusal(401)), failing(refusal(401)), reply("third time")])
      const { chunks } = yield* run(agentOf([model, model, model]))
      expect(textOf(chunks)).toBe("third time")
      expect(times).toStrictEqual([0, 0, 0])
    })
  )

  const model = ScriptedModel.make([])
  const wrong: ReadonlyArray<readonly [field: string, models: unknown]> = [
    ["model", []],
    ["model[1]", [model, {}]],
    ["model[0]", [undefined]],
    ["model[1]", [model, { model: "openai/gpt-5" }]],
    ["model[0].maxRetries", [{ model, maxRetries: -1 }]],
    ["model[0].maxRetries", [{ model, maxRetries: 0.5 }]],
    ["maxRetry", [{ model, maxRetry: 1 }]]
  ]

  it.each(wrong)("is refused when the agent is made, by %s", (field, models) => {
    expect(() => Agent.make({ id: "a", model: models as never })).toThrow(
      expect.objectContaining({ _tag: "InvalidConfiguration", field })
    )
  })

  it.each([-1, 1.5, Number.NaN, "2", null])("maxRetries of %s is refused", maxRetries => {
    expect(() => Agent.make({ id: "a", model, maxRetries: maxRetries as never })).toThrow(
      expect.objectContaining({ _tag: "InvalidConfiguration", field: "maxRetries" })
    )
  })
})

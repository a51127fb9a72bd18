/**
 * Models of the AI SDK behind the port, without any provider package: what a call is given, what it fails with, how it is
 * interrupted, and what becomes of every part of every specification.
 */
import { describe, expect, it } from "@effect/vitest"
import { Agent } from "eddy"
import { Deferred, Effect, Exit, FastCheck, Fiber, Option, Stream } from "effect"
import * as AiSdk from "../../src/model/AiSdk.js"
import { normalize } from "../../src/model/aiSdkParts.js"
import type { LanguageModel, ModelRequest } from "../../src/model/ModelPort.js"
import { InvalidConfiguration } from "../../src/protocol/Errors.js"
import type { Message } from "../../src/protocol/Message.js"
import { begin, readAll, request, withSignal } from "../support/readAnswer.js"

type Version = AiSdk.AiSdkModel["specificationVersion"]

const allVersions: ReadonlyArray<Version> = ["v2", "v3", "v4"]

const streamOf = (...parts: ReadonlyArray<unknown>): ReadableStream<unknown> =>
  new ReadableStream({
    start: controller => {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    }
  })

const modelOf = (
  doStream: AiSdk.AiSdkModel["doStream"],
  specificationVersion: Version = "v4"
): AiSdk.AiSdkModel => ({ specificationVersion, provider: "brook.chat", modelId: "brook-1", doStream })

/** A model that records its calls and answers nothing. */
const recorder = (version: Version) => {
  const calls: Array<AiSdk.AiSdkCallOptions> = []
  const model = modelOf(async options => {
    calls.push(options)
    return { stream: streamOf() }
  }, version)
  return { calls, model: AiSdk.make(model) }
}

const sent = (version: Version, asked: Partial<ModelRequest>) =>
  Effect.gen(function* () {
    const { calls, model } = recorder(version)
    yield* readAll(model, request(asked))
    expect(calls.length).toBe(1)
    return calls[0] ?? expect.fail("no call")
  })

/** An answer that nobody reads; its signal fires when it is interrupted. */
const answerOf = (model: LanguageModel) => withSignal(signal => begin(model, request(), signal))

const failureOf = (doStream: AiSdk.AiSdkModel["doStream"]) =>
  Effect.flip(answerOf(AiSdk.make(modelOf(doStream))))

describe("AiSdk.make", () => {
  it("says which field is wrong and what to do", () => {
    const refused = (model: unknown): unknown => {
      try {
        // What JavaScript callers pass: the types would not let it through.
        AiSdk.make(model as AiSdk.AiSdkModel)
      } catch (error) {
        return error
      }
      return "made"
    }
    const v1 = refused({ ...modelOf(() => Promise.reject()), specificationVersion: "v1" })
    expect(v1).toBeInstanceOf(InvalidConfiguration)
    expect(v1).toMatchObject({
      field: "model.specificationVersion",
      message: expect.stringMatching(/"v1".*v2, v3 and v4\. Pass a language model/)
    })
    for (const model of [undefined, null, "openai/gpt-5", {}, { specificationVersion: 4 }]) {
      expect(refused(model)).toBeInstanceOf(InvalidConfiguration)
    }
  })

  it("keeps the names that the provider goes by", () => {
    const model = AiSdk.make(modelOf(() => Promise.reject()))
    expect(model).toMatchObject({ provider: "brook.chat", modelId: "brook-1" })
  })
})

describe("the call", () => {
  it.effect("passes settings, tools and choice", () =>
    Effect.gen(function* () {
      const options = yield* sent("v3", {
        tools: [{ name: "weather", description: "Tells the weather.", inputSchema: { type: "object" } }],
        toolChoice: { type: "tool", toolName: "weather" },
        settings: {
          maxOutputTokens: 9,
          temperature: 0,
          topK: 3,
          stopSequences: ["END"],
          headers: { "x-a": "b" }
        },
        providerOptions: { brook: { effort: "low" } },
        includeRawChunks: true
      })
      const { abortSignal, prompt, ...rest } = options
      expect(rest).toStrictEqual({
        tools: [
          {
            type: "function",
            name: "weather",
            description: "Tells the weather.",
            inputSchema: { type: "object" }
          }
        ],
        toolChoice: { type: "tool", toolName: "weather" },
        maxOutputTokens: 9,
        temperature: 0,
        topK: 3,
        stopSequences: ["END"],
        headers: { "x-a": "b" },
        providerOptions: { brook: { effort: "low" } },
        includeRawChunks: true
      })
      expect(abortSignal).toBeInstanceOf(AbortSignal)
      expect(prompt).toHaveLength(1)
    })
  )

  it.effect("says nothing of what was not asked", () =>
    Effect.gen(function* () {
      const { abortSignal, prompt, ...rest } = yield* sent("v4", { toolChoice: "required" })
      expect(rest).toStrictEqual({ includeRawChunks: false })
      const choice = yield* sent("v4", { toolChoice: "none", tools: [{ name: "a", inputSchema: {} }] })
      expect(choice.toolChoice).toStrictEqual({ type: "none" })
    })
  )

  it.effect("tells the request's body and the response's headers", () =>
    Effect.gen(function* () {
      const model = AiSdk.make(
        modelOf(async () => ({
          stream: streamOf(),
          request: { body: { model: "brook-1" } },
          response: { headers: { "x-request-id": "7" } }
        }))
      )
      const answer = yield* answerOf(model)
      expect(answer).toMatchObject({
        requestBody: { model: "brook-1" },
        responseHeaders: { "x-request-id": "7" }
      })
    })
  )
})

describe("the prompt", () => {
  const file: Message = {
    role: "user",
    content: [
      { type: "text", text: "Was ist das?" },
      { type: "file", data: "aGk=", mediaType: "image/png", filename: "a.png" },
      { type: "file", data: new URL("https://example.org/b.pdf"), mediaType: "application/pdf" }
    ]
  }
  const call: Message = {
    role: "assistant",
    content: [
      { type: "reasoning", text: "Hm.", providerOptions: { brook: { signature: "s+/=" } } },
      { type: "tool-call", toolCallId: "c1", toolName: "look", input: { at: "b" } }
    ]
  }
  const result: Message = {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: "c1",
        toolName: "look",
        output: {
          type: "content",
          value: [
            { type: "text", text: "Zwei Bilder." },
            { type: "image-data", data: "aGk=", mediaType: "image/png" },
            { type: "file-url", url: "https://example.org/b.pdf", mediaType: "application/pdf" },
            { type: "image-file-id", fileId: "file-7" },
            { type: "custom", providerOptions: { brook: { cache: true } } }
          ]
        }
      }
    ]
  }
  const system: Message = { role: "system", content: "Sei knapp." }
  const messages = [system, file, call, result]

  it.effect("is handed over as it is to V3, in a fresh array", () =>
    Effect.gen(function* () {
      const { prompt } = yield* sent("v3", { messages })
      expect(prompt).not.toBe(messages)
      expect(prompt.every((message, index) => message === messages[index])).toBe(true)
    })
  )

  it.effect("has media and text in tool results of V2", () =>
    Effect.gen(function* () {
      const { prompt } = yield* sent("v2", { messages })
      expect(prompt.slice(0, 3).every((message, index) => message === messages[index])).toBe(true)
      expect(prompt[3]).toMatchObject({
        content: [
          {
            toolCallId: "c1",
            output: {
              type: "content",
              value: [
                { type: "text", text: "Zwei Bilder." },
                { type: "media", data: "aGk=", mediaType: "image/png" },
                { type: "text", text: "https://example.org/b.pdf" },
                { type: "text", text: '{"type":"image-file-id","fileId":"file-7"}' },
                { type: "text", text: '{"type":"custom","providerOptions":{"brook":{"cache":true}}}' }
              ]
            }
          }
        ]
      })
    })
  )

  it.effect("has tagged files in V4", () =>
    Effect.gen(function* () {
      const { prompt } = yield* sent("v4", { messages })
      expect(prompt[0]).toBe(system)
      expect(prompt[2]).toBe(call)
      expect(prompt[1]).toStrictEqual({
        role: "user",
        content: [
          { type: "text", text: "Was ist das?" },
          { type: "file", data: { type: "data", data: "aGk=" }, mediaType: "image/png", filename: "a.png" },
          {
            type: "file",
            data: { type: "url", url: new URL("https://example.org/b.pdf") },
            mediaType: "application/pdf"
          }
        ]
      })
      expect(prompt[3]).toMatchObject({
        content: [
          {
            output: {
              value: [
                { type: "text", text: "Zwei Bilder." },
                { type: "file", data: { type: "data", data: "aGk=" }, mediaType: "image/png" },
                {
                  type: "file",
                  data: { type: "url", url: new URL("https://example.org/b.pdf") },
                  mediaType: "application/pdf"
                },
                {
                  type: "file",
                  data: { type: "reference", reference: { brook: "file-7" } },
                  mediaType: "image/*"
                },
                { type: "custom", providerOptions: { brook: { cache: true } } }
              ]
            }
          }
        ]
      })
    })
  )

  it.effect("converts a message once, however often it is repeated", () =>
    Effect.gen(function* () {
      const { calls, model } = recorder("v4")
      yield* readAll(model, request({ messages: [file, result] }))
      yield* readAll(model, request({ messages: [file, result, call] }))
      const [first, second] = calls
      expect(second?.prompt[0]).toBe(first?.prompt[0])
      expect(second?.prompt[1]).toBe(first?.prompt[1])
      expect(second?.prompt).not.toBe(first?.prompt)
    })
  )
})

describe("a system message behind the first word of a conversation", () => {
  const first: Message = { role: "system", content: "Be brief." }
  const said: ReadonlyArray<Message> = [
    { role: "user", content: [{ type: "text", text: "Go." }] },
    { role: "assistant", content: [{ type: "text", text: "Started." }] }
  ]
  const note: Message = { role: "system", content: "Call c1 is done." }

  const promptOf = (version: Version, provider: string) =>
    Effect.gen(function* () {
      const calls: Array<AiSdk.AiSdkCallOptions> = []
      const doStream: AiSdk.AiSdkModel["doStream"] = async options => {
        calls.push(options)
        return { stream: streamOf() }
      }
      const model = AiSdk.make({ ...modelOf(doStream, version), provider })
      yield* readAll(model, request({ messages: [first, ...said, note] }))
      return calls[0]?.prompt
    })

  it.effect.each(
    allVersions.flatMap(version => ["openai.chat", "brook.chat"].map(name => [version, name] as const))
  )("stays where it stands: %s, %s", ([version, provider]) =>
    Effect.gen(function* () {
      expect(yield* promptOf(version, provider)).toEqual([first, ...said, note])
    })
  )

  it.effect.each(
    allVersions.flatMap(version =>
      ["anthropic.messages", "google.generative-ai", "amazon-bedrock"].map(name => [version, name] as const)
    )
  )(
    "comes from outside where providers take none, and no conversation ends with the model: %s, %s",
    ([version, provider]) =>
      Effect.gen(function* () {
        const told = {
          role: "user",
          content: [{ type: "text", text: "<system-message>\nCall c1 is done.\n</system-message>" }]
        }
        expect(yield* promptOf(version, provider)).toEqual([first, ...said, told])
      })
  )
})

describe("a call that fails", () => {
  it.effect("keeps status, retryability and cause", () =>
    Effect.gen(function* () {
      const cause = Object.assign(new Error("Slow down, please."), {
        statusCode: 429,
        isRetryable: true,
        responseHeaders: { "set-cookie": "secret" },
        responseBody: "secret"
      })
      const error = yield* failureOf(() => Promise.reject(cause))
      expect(error).toMatchObject({
        _tag: "ModelError",
        reason: "request",
        provider: "brook.chat",
        modelId: "brook-1",
        message: "Slow down, please.",
        statusCode: 429,
        isRetryable: true
      })
      expect(error.cause).toBe(cause)
    })
  )

  it.effect("may throw before it returns a promise", () =>
    Effect.gen(function* () {
      const error = yield* failureOf(() => {
        throw new Error("no key")
      })
      expect(error.message).toBe("no key")
    })
  )

  it.effect("may answer without a stream", () =>
    Effect.gen(function* () {
      for (const result of [undefined, {}, { stream: "text" }]) {
        // What a broken provider returns.
        const error = yield* failureOf(async () => result as AiSdk.AiSdkStreamResult)
        expect(error).toMatchObject({ reason: "request", message: "The provider answered without a stream." })
      }
    })
  )

  it.effect("never puts bodies, headers or stacks into the message", () =>
    Effect.gen(function* () {
      const messages = yield* Effect.forEach(
        [
          { statusCode: 500, responseBody: "secret", headers: { cookie: "secret" } },
          Object.assign(new Error("JSON parsing failed: Text: secret"), { name: "AI_JSONParseError" }),
          Object.assign(new Error('Type validation failed: Value: {"secret":1}'), {
            name: "AI_TypeValidationError"
          }),
          new Error("broken\n    at secret (file.js:1:1)"),
          new Error(""),
          undefined
        ],
        cause =>
          Effect.map(
            failureOf(() => Promise.reject(cause)),
            error => error.message
          )
      )
      expect(messages).toStrictEqual([
        "The model call failed with status 500.",
        "The provider sent something that is no JSON.",
        "The provider sent JSON of an unexpected shape.",
        "broken",
        "The model call failed.",
        "The model call failed."
      ])
    })
  )
})

describe("interruption", () => {
  /** A provider that ignores its signal and answers when the gate opens. */
  const deaf = Effect.gen(function* () {
    const asked = yield* Deferred.make<AbortSignal>()
    const gate = yield* Deferred.make<void>()
    const cancelled = yield* Deferred.make<void>()
    const stream = new ReadableStream<unknown>({
      cancel: () => Deferred.unsafeDone(cancelled, Effect.void)
    })
    const model = AiSdk.make(
      modelOf(async ({ abortSignal }) => {
        if (abortSignal !== undefined) Deferred.unsafeDone(asked, Effect.succeed(abortSignal))
        await Effect.runPromise(Deferred.await(gate))
        return { stream }
      })
    )
    return { asked, gate, cancelled, model }
  })

  it.live("is not waited for when it is deaf, and the stream that comes too late is cancelled", () =>
    Effect.gen(function* () {
      const { asked, cancelled, gate, model } = yield* deaf
      const reading = Effect.fork(Stream.runDrain(Agent.stream(Agent.make({ id: "deaf", model }), "Hello?")))
      const fiber = yield* reading
      const signal = yield* Deferred.await(asked)
      expect(signal.aborted).toBe(false)
      yield* Effect.timeout(Fiber.interrupt(fiber), "1 second")
      expect(signal.aborted).toBe(true)
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.timeout(Deferred.await(cancelled), "1 second")
    })
  )

  it.live("hands the caller's signal on, and leaves the stream to its reader", () =>
    Effect.gen(function* () {
      const { asked, gate, model } = yield* deaf
      yield* Deferred.succeed(gate, undefined)
      const controller = new AbortController()
      const { source } = yield* begin(model, request(), controller.signal)
      expect(yield* Deferred.await(asked)).toBe(controller.signal)
      expect(source).toBeInstanceOf(ReadableStream)
      expect("locked" in source && source.locked).toBe(false)
    })
  )

  it.live("ends the call of a provider that heeds the signal", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const model = AiSdk.make(modelOf(async ({ abortSignal }) => Promise.reject(abortSignal?.reason)))
      controller.abort(new Error("enough"))
      const error = yield* Effect.flip(begin(model, request(), controller.signal))
      expect(error).toMatchObject({ reason: "request", message: "enough" })
    })
  )

  it.live("ignores a rejection that comes too late", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const model = AiSdk.make(
        modelOf(
          ({ abortSignal }) =>
            new Promise((_, reject) => {
              abortSignal?.addEventListener("abort", () => reject(new Error("aborted")))
              Deferred.unsafeDone(asked, Effect.void)
            })
        )
      )
      const fiber = yield* Effect.fork(answerOf(model))
      yield* Deferred.await(asked)
      const exit = yield* Fiber.interrupt(fiber)
      expect(Exit.isInterrupted(exit)).toBe(true)
    })
  )
})

describe("normalize", () => {
  const same: ReadonlyArray<unknown> = [
    { type: "text-start", id: "0" },
    { type: "text-delta", id: "0", delta: "a", providerMetadata: { brook: { a: 1 } } },
    { type: "text-end", id: "0", citations: [] },
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "" },
    { type: "reasoning-end", id: "r", providerMetadata: { brook: { signature: "+/=" } } },
    { type: "tool-input-start", id: "c", toolName: "look", dynamic: true },
    { type: "tool-input-delta", id: "c", delta: "{" },
    { type: "tool-input-end", id: "c" },
    { type: "tool-call", toolCallId: "c", toolName: "look", input: "{}", providerExecuted: true },
    { type: "tool-result", toolCallId: "c", toolName: "look", result: { a: 1 }, isError: false },
    { type: "error", error: undefined }
  ]

  it("passes parts of the right shape by identity", () => {
    for (const part of same) expect(normalize(part)).toBe(part)
  })

  it("repairs what lacks an id, and keeps no metadata that is none", () => {
    expect(normalize({ type: "text-delta", delta: "a", providerMetadata: 5 })).toStrictEqual({
      type: "text-delta",
      id: "",
      delta: "a"
    })
    expect(normalize({ type: "reasoning-start", id: 7 })).toStrictEqual({ type: "reasoning-start", id: "7" })
    expect(normalize({ type: "tool-call", toolName: "look", input: "{}", dynamic: null })).toStrictEqual({
      type: "tool-call",
      toolCallId: "",
      toolName: "look",
      input: "{}"
    })
  })

  const reasons: ReadonlyArray<readonly [unknown, object]> = [
    ["stop", { reason: "stop" }],
    ["unknown", { reason: "other" }],
    ["other", { reason: "other" }],
    ["eos", { reason: "other", rawReason: "eos" }],
    [{ unified: "stop", raw: "" }, { reason: "stop" }],
    [
      { unified: "stop", raw: "end_turn" },
      { reason: "stop", rawReason: "end_turn" }
    ],
    [{ unified: "stop", raw: "stop" }, { reason: "stop" }],
    [{ unified: "tool-calls", raw: undefined }, { reason: "tool-calls" }],
    [{ unified: "other", raw: undefined }, { reason: "other" }],
    [
      { unified: "other", raw: "eos" },
      { reason: "other", rawReason: "eos" }
    ],
    [
      { unified: "interrupted", raw: undefined },
      { reason: "other", rawReason: "interrupted" }
    ],
    [{ unified: "other", raw: "error" }, { reason: "error" }],
    [undefined, { reason: "other" }],
    [{}, { reason: "other" }]
  ]
  it.each(reasons)("reads the finish reason %j", (finishReason, expected) => {
    expect(normalize({ type: "finish", finishReason, usage: {} })).toStrictEqual({
      type: "finish",
      ...expected,
      usage: {}
    })
  })

  it("reads usage of both shapes, and no figure that is none", () => {
    const usageOf = (usage: unknown) => normalize({ type: "finish", finishReason: "stop", usage })
    const flat = {
      inputTokens: 5,
      outputTokens: 7,
      totalTokens: 13,
      reasoningTokens: 2,
      cachedInputTokens: 1
    }
    expect(usageOf(flat)).toMatchObject({ usage: flat })
    expect(
      usageOf({
        inputTokens: { total: 5, noCache: 4, cacheRead: 1, cacheWrite: undefined },
        outputTokens: { total: 7, text: 5, reasoning: 2 }
      })
    ).toMatchObject({ usage: { ...flat, totalTokens: 12 } })
    const none = { total: undefined, noCache: undefined }
    expect(usageOf({ inputTokens: none, outputTokens: none })).toMatchObject({ usage: {} })
    for (const usage of [undefined, null, 3, { inputTokens: Number.NaN, outputTokens: "7" }]) {
      expect(usageOf(usage)).toStrictEqual({ type: "finish", reason: "stop", usage: {} })
    }
  })

  it("gives warnings of V2 the words of V3 and V4", () => {
    expect(
      normalize({
        type: "stream-start",
        warnings: [
          { type: "unsupported-setting", setting: "topK", details: "no" },
          {
            type: "unsupported-tool",
            tool: { type: "provider-defined", id: "brook.search", name: "search" }
          },
          { type: "unsupported", feature: "seed" },
          { type: "other", message: "hm" }
        ]
      })
    ).toStrictEqual({
      type: "stream-start",
      warnings: [
        { type: "unsupported", feature: "topK", details: "no" },
        { type: "unsupported", feature: "tool brook.search" },
        { type: "unsupported", feature: "seed" },
        { type: "other", message: "hm" }
      ]
    })
    expect(normalize({ type: "stream-start" })).toStrictEqual({ type: "stream-start", warnings: [] })
  })

  it("unwraps files, and keeps addresses as raw", () => {
    const bytes = new Uint8Array([1, 2])
    expect(normalize({ type: "file", mediaType: "image/png", data: bytes })).toMatchObject({ data: bytes })
    const metadata = { providerMetadata: { brook: {} } }
    expect(
      normalize({ type: "file", mediaType: "image/png", data: { type: "data", data: "aGk=" }, ...metadata })
    ).toStrictEqual({ type: "file", mediaType: "image/png", data: "aGk=", ...metadata })
    const address = {
      type: "file",
      mediaType: "image/png",
      data: { type: "url", url: new URL("https://e.org") }
    }
    expect(normalize(address)).toStrictEqual({ type: "raw", value: address })
  })

  it("reads sources and response metadata", () => {
    expect(
      normalize({ type: "source", sourceType: "url", id: "s", url: "https://e.org", title: 4 })
    ).toStrictEqual({ type: "source", sourceType: "url", id: "s", url: "https://e.org" })
    const timestamp = new Date(0)
    expect(normalize({ type: "response-metadata", id: "r", timestamp, modelId: null })).toStrictEqual({
      type: "response-metadata",
      id: "r",
      timestamp
    })
    expect(normalize({ type: "response-metadata", timestamp: new Date(Number.NaN) })).toStrictEqual({
      type: "response-metadata"
    })
  })

  it("keeps what it does not know as raw", () => {
    const unknown = [
      { type: "ping" },
      { type: "custom", kind: "brook.note" },
      { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: "aGk=" } },
      { type: "tool-approval-request", approvalId: "a", toolCallId: "c" },
      { type: "tool-result", toolCallId: "c", toolName: "look", result: 1, preliminary: true },
      { type: "tool-call", toolCallId: "c" },
      { type: "text-delta", id: "0", delta: 5 },
      { type: "later" },
      {},
      [],
      0
    ]
    for (const value of unknown) expect(normalize(value)).toStrictEqual({ type: "raw", value })
    expect(normalize({ type: "raw", rawValue: { a: 1 } })).toStrictEqual({ type: "raw", value: { a: 1 } })
    expect(normalize(undefined)).toBeUndefined()
    expect(normalize(null)).toBeUndefined()
  })

  it("says nothing of an event that the package does not know, and tells every other failure", () => {
    const invalid = (value: unknown, path: ReadonlyArray<string>) => ({
      type: "error",
      error: Object.assign(new Error("Type validation failed"), {
        name: "AI_TypeValidationError",
        value,
        cause: { issues: [{ code: "invalid_union", note: "No matching discriminator", path }] }
      })
    })
    expect(normalize(invalid({ type: "weather_report" }, ["type"]))).toBeUndefined()
    for (const part of [
      invalid({ type: "content_block_start", content_block: { type: "song" } }, ["content_block", "type"]),
      invalid({ error: { message: "no" } }, ["type"]),
      { type: "error", error: new Error("no") }
    ]) {
      expect(normalize(part)).toBe(part)
    }
  })

  it("never throws", () => {
    const types = [
      ...same.flatMap(part => Option.toArray(typeOf(part))),
      "finish",
      "file",
      "source",
      "stream-start"
    ]
    const fields = FastCheck.dictionary(
      FastCheck.constantFrom(
        "id",
        "delta",
        "toolName",
        "usage",
        "finishReason",
        "warnings",
        "data",
        "timestamp"
      ),
      FastCheck.anything()
    )
    const garbage = FastCheck.oneof(
      FastCheck.anything(),
      FastCheck.tuple(FastCheck.constantFrom(...types), fields).map(([type, rest]) => ({ ...rest, type }))
    )
    FastCheck.assert(
      FastCheck.property(garbage, element => {
        const part = normalize(element)
        return part === undefined || typeof part.type === "string"
      }),
      { numRuns: 2000 }
    )
    const hostile = Object.defineProperty({}, "type", {
      get: () => {
        throw new Error("no")
      }
    })
    expect(normalize(hostile)).toStrictEqual({ type: "raw", value: hostile })
  })

  it.effect.each(allVersions)("is part of every answer of %s", version =>
    Effect.gen(function* () {
      const parts = [same[0], same[1], { type: "ping" }, null]
      const model = AiSdk.make(modelOf(async () => ({ stream: streamOf(...parts) }), version))
      const read = yield* readAll(model)
      expect(read.parts).toStrictEqual([same[0], same[1], { type: "raw", value: { type: "ping" } }])
    })
  )
})

const typeOf = (part: unknown): Option.Option<string> =>
  typeof part === "object" && part !== null && "type" in part && typeof part.type === "string"
    ? Option.some(part.type)
    : Option.none()

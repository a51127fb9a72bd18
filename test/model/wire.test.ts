/**
 * The real provider packages of all three specifications, over real HTTP, against transcripts that are cut, broken off or
 * held back. What is pinned here of a package is what the agent's loop has to live with.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Stream } from "effect"
import type { ModelPart } from "../../src/model/ModelPart.js"
import type { LanguageModel, ModelRequest } from "../../src/model/ModelPort.js"
import type { Message } from "../../src/protocol/Message.js"
import * as Models from "../support/aiSdkModels.js"
import { begin, elements, readAll, request, withSignal } from "../support/readAnswer.js"
import * as Server from "../support/transcriptServer.js"
import { anthropic, chat, gemini, refusals, responses, signatures } from "../support/transcripts.js"

type MakeModel = (url: string) => LanguageModel

const tools: ModelRequest["tools"] = ["weather", "tide"].map(name => ({
  name,
  inputSchema: { type: "object", properties: {} }
}))

const play = (makeModel: MakeModel, reply: Server.Reply, asked: Partial<ModelRequest> = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* Server.make
      server.play(reply)
      return yield* readAll(makeModel(server.url), request({ tools, ...asked }))
    })
  )

const textOf = (
  parts: ReadonlyArray<ModelPart>,
  type: "text-delta" | "reasoning-delta" = "text-delta"
): string => parts.map(part => (part.type === type && "delta" in part ? part.delta : "")).join("")

const reasoningOf = (parts: ReadonlyArray<ModelPart>): string => textOf(parts, "reasoning-delta")

const callsOf = (parts: ReadonlyArray<ModelPart>) =>
  parts.flatMap(part =>
    part.type === "tool-call"
      ? [{ id: part.toolCallId, name: part.toolName, input: JSON.parse(String(part.input)) }]
      : []
  )

const ofType = <Type extends ModelPart["type"]>(parts: ReadonlyArray<ModelPart>, type: Type) =>
  parts.filter((part): part is Extract<ModelPart, { readonly type: Type }> => part.type === type)

/** Everything that parts say of one kind of metadata, empty strings left out. */
const metadataOf = (parts: ReadonlyArray<ModelPart>, provider: string, key: string): ReadonlyArray<unknown> =>
  parts.flatMap(part => {
    const value = "providerMetadata" in part ? part.providerMetadata?.[provider]?.[key] : undefined
    return value === undefined || value === "" ? [] : [value]
  })

/** The parts of an answer that came through. */
const readWhole = (makeModel: MakeModel, body: string | Uint8Array) =>
  Effect.map(play(makeModel, { body }), read => {
    expect(read.failure).toBeUndefined()
    return read.parts
  })

const chatModels: ReadonlyArray<readonly [string, MakeModel]> = [
  ["openai-compatible, V2", Models.chatV2],
  ["openai-compatible, V3", Models.chatV3],
  ["openai-compatible, V4", Models.chatV4],
  ["openai chat, V4", Models.openaiChat]
]

const chatUsage = {
  inputTokens: 21,
  outputTokens: 13,
  totalTokens: 34,
  reasoningTokens: 5,
  cachedInputTokens: 8
}

describe.each(chatModels)("chat completions: %s", (_, makeModel) => {
  it.live("text, usage and reason", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(makeModel, chat.text)
      expect(textOf(parts)).toBe("Größe 日本 👩‍🚀 – ok ✓")
      expect(ofType(parts, "finish")).toMatchObject([{ reason: "stop", usage: chatUsage }])
      expect(ofType(parts, "response-metadata")).toMatchObject([{ id: "chatcmpl-river", modelId: "brook-1" }])
    })
  )

  it.live("parallel calls whose arguments come in turns", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(makeModel, chat.parallelCalls)
      expect(callsOf(parts)).toStrictEqual([
        { id: "call_nord", name: "weather", input: { city: "Malmö 🌊" } },
        { id: "call_süd", name: "tide", input: { port: "⚓ Kiel 🛟" } }
      ])
      for (const call of ofType(parts, "tool-call")) {
        const written = parts.map(part =>
          part.type === "tool-input-delta" && part.id === call.toolCallId ? part.delta : ""
        )
        expect(written.join("")).toBe(call.input)
      }
      expect(ofType(parts, "finish")).toMatchObject([{ reason: "tool-calls" }])
    })
  )

  it.live("an error object in the middle is an error part", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(makeModel, chat.errorInTheMiddle)
      expect(textOf(parts)).toBe("Bis hier")
      expect(ofType(parts, "error")).toMatchObject([{ error: { message: "The engine ran dry." } }])
      expect(ofType(parts, "finish")).toMatchObject([{ reason: "error", usage: {} }])
    })
  )
})

describe.each(chatModels.slice(0, 3))("reasoning_content: %s", (_, makeModel) => {
  it.live("is reasoning", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(makeModel, chat.reasoning)
      expect(reasoningOf(parts)).toBe("Erst denken 🤔, dann reden.")
      expect(textOf(parts)).toBe("Also: 42.")
    })
  )
})

describe("OpenAI Responses", () => {
  it.live("text, usage and reason", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(Models.openaiResponses, responses.text)
      expect(textOf(parts)).toBe("Guten Morgen ☕️ – こんにちは 🏔️")
      const usage = {
        inputTokens: 44,
        outputTokens: 30,
        totalTokens: 74,
        reasoningTokens: 12,
        cachedInputTokens: 16
      }
      expect(ofType(parts, "finish")).toMatchObject([{ reason: "stop", usage }])
    })
  )

  it.live("calls", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(Models.openaiResponses, responses.calls)
      expect(callsOf(parts)).toStrictEqual([
        { id: "call_eins", name: "weather", input: { city: "Tromsø 🌌" } },
        { id: "call_zwei", name: "tide", input: {} }
      ])
      expect(ofType(parts, "finish")).toMatchObject([{ reason: "tool-calls" }])
    })
  )

  it.live("encrypted reasoning, byte for byte", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(Models.openaiResponses, responses.reasoning)
      expect(reasoningOf(parts)).toBe("Abwägen ⚖️")
      expect(metadataOf(parts, "openai", "reasoningEncryptedContent")).toStrictEqual([signatures.openai])
      expect(textOf(parts)).toBe("Ja.")
    })
  )

  it.live("an error event in the middle is an error part", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(Models.openaiResponses, responses.errorInTheMiddle)
      expect(ofType(parts, "error")).toMatchObject([{ error: { message: "The engine ran dry." } }])
      expect(ofType(parts, "finish")).toMatchObject([{ reason: "error" }])
    })
  )
})

describe("Anthropic messages", () => {
  it.live("text and calls, one without arguments", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(Models.anthropic, anthropic.toolUse)
      expect(textOf(parts)).toBe("Moment, ich schaue 👀.")
      expect(callsOf(parts)).toStrictEqual([
        { id: "toolu_eins", name: "weather", input: { city: "Zürich 🏔️" } },
        { id: "toolu_zwei", name: "tide", input: {} }
      ])
      const usage = { inputTokens: 94, outputTokens: 57, totalTokens: 151, cachedInputTokens: 24 }
      expect(ofType(parts, "finish")).toMatchObject([{ reason: "tool-calls", rawReason: "tool_use", usage }])
    })
  )

  it.live("thinking, signed and redacted, byte for byte", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(Models.anthropic, anthropic.thinking)
      expect(reasoningOf(parts)).toBe("Erst die Gezeiten 🌊, dann der Wind.")
      expect(metadataOf(parts, "anthropic", "signature")).toStrictEqual([signatures.anthropic])
      expect(metadataOf(parts, "anthropic", "redactedData")).toStrictEqual([signatures.redacted])
      expect(textOf(parts)).toBe("Segel setzen ⛵")
    })
  )

  it.live("an error event in the middle is an error part, and no finish follows", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(Models.anthropic, anthropic.errorInTheMiddle)
      expect(textOf(parts)).toBe("Bis hier")
      expect(ofType(parts, "error")).toMatchObject([{ error: { message: "Overloaded", statusCode: 529 } }])
      expect(ofType(parts, "finish")).toStrictEqual([])
    })
  )

  it.live("an error event at the start is a request that failed", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(play(Models.anthropic, { body: anthropic.errorAtTheStart }))
      expect(error).toMatchObject({
        reason: "request",
        message: "Overloaded",
        statusCode: 529,
        isRetryable: true
      })
    })
  )
})

describe("Google Gemini", () => {
  it.live("text, usage and reason", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(Models.google, gemini.text)
      expect(textOf(parts)).toBe("Über den Bergen 🌄")
      const usage = {
        inputTokens: 50,
        outputTokens: 13,
        totalTokens: 63,
        reasoningTokens: 7,
        cachedInputTokens: 11
      }
      expect(ofType(parts, "finish")).toMatchObject([{ reason: "stop", rawReason: "STOP", usage }])
    })
  )

  it.live("thought, and parallel calls without ids; each signature stays on its own part", () =>
    Effect.gen(function* () {
      const parts = yield* readWhole(Models.google, gemini.calls)
      expect(reasoningOf(parts)).toBe("Zwei Fragen 🧭.")
      expect(callsOf(parts)).toStrictEqual([
        { id: "call_1", name: "weather", input: { city: "Göteborg 🌉" } },
        { id: "call_2", name: "tide", input: {} }
      ])
      const signaturesOfCalls = ofType(parts, "tool-call").map(call => call.providerMetadata)
      expect(signaturesOfCalls).toStrictEqual([
        { google: { thoughtSignature: signatures.google } },
        undefined
      ])
      const ofText = metadataOf([...ofType(parts, "text-delta")], "google", "thoughtSignature")
      expect(ofText).toStrictEqual([signatures.googleText])
      expect(ofType(parts, "finish")).toMatchObject([{ reason: "tool-calls", rawReason: "STOP" }])
    })
  )
})

describe("wherever the bytes are cut, the parts are equal", () => {
  it.scopedLive("and they are cut: a client sees the pieces", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const body = "ä\r\n🦊"
      const lengthsOf = (cut: Server.Cut) =>
        Effect.promise(async () => {
          server.play({ body, cut })
          const response = await fetch(server.url, { method: "POST", body: "{}" })
          const lengths: Array<number> = []
          for await (const piece of response.body ?? []) lengths.push(piece.length)
          return lengths
        })
      expect(yield* lengthsOf("none")).toStrictEqual([8])
      expect(yield* lengthsOf("every-byte")).toStrictEqual([1, 1, 1, 1, 1, 1, 1, 1])
      expect(Server.awkwardCuts(body)).toStrictEqual([1, 3, 5, 6, 7])
      expect(yield* lengthsOf(Server.awkwardCuts(body))).toStrictEqual([1, 2, 2, 1, 1, 1])
    })
  )

  const transcripts: ReadonlyArray<readonly [string, MakeModel, string | Uint8Array]> = [
    ...chatModels.flatMap(([name, makeModel]) => [
      [`${name}: text`, makeModel, chat.text] as const,
      [`${name}: text with CR LF`, makeModel, chat.textCrLf] as const,
      [`${name}: parallel calls`, makeModel, chat.parallelCalls] as const,
      [`${name}: broken off inside a character`, makeModel, chat.truncated] as const
    ]),
    ["responses: text", Models.openaiResponses, responses.text],
    ["responses: calls", Models.openaiResponses, responses.calls],
    ["responses: reasoning", Models.openaiResponses, responses.reasoning],
    ["anthropic: tool use", Models.anthropic, anthropic.toolUse],
    ["anthropic: thinking", Models.anthropic, anthropic.thinking],
    ["anthropic: error", Models.anthropic, anthropic.errorInTheMiddle],
    ["gemini: calls, with CR LF", Models.google, gemini.calls],
    ["gemini: text", Models.google, gemini.text]
  ]

  it.live.each(transcripts)("%s", ([_, makeModel, body]) =>
    Effect.gen(function* () {
      const whole = yield* readWhole(makeModel, body)
      const cuts: ReadonlyArray<Server.Cut> = [
        // Single bytes where that is quickly done; elsewhere every third cut is enough.
        body.length < 2000 ? "every-byte" : Server.cutsEvery(3, body),
        Server.awkwardCuts(body),
        Server.cutsEvery(7, body)
      ]
      for (const cut of cuts) {
        const read = yield* play(makeModel, { body, cut })
        expect(read).toStrictEqual({ parts: whole })
      }
    })
  )
})

describe("a body that ends too early", () => {
  const broken: ReadonlyArray<readonly [string, MakeModel, string | Uint8Array, string]> = [
    ["openai-compatible, V2", Models.chatV2, chat.truncated, "no reason"],
    ["openai-compatible, V3", Models.chatV3, chat.truncated, "error"],
    ["openai-compatible, V4", Models.chatV4, chat.truncated, "error"],
    ["openai chat, V4", Models.openaiChat, chat.truncated, "interrupted"],
    ["openai responses, V4", Models.openaiResponses, responses.text.slice(0, 1500), "interrupted"],
    ["anthropic, V4", Models.anthropic, anthropic.truncated, "interrupted"],
    ["anthropic, V4, before any output", Models.anthropic, anthropic.truncated.slice(0, 300), "no finish"],
    ["google, V4", Models.google, gemini.truncated, "interrupted"]
  ]

  /** What a loop can tell from: it never looks like an answer that is complete. */
  const signOf = (parts: ReadonlyArray<ModelPart>): string => {
    const [finish] = ofType(parts, "finish")
    if (finish === undefined) return "no finish"
    if (finish.reason === "error")
      return ofType(parts, "error").length === 1 ? "error" : "error without a part"
    return finish.reason === "other" ? (finish.rawReason ?? "no reason") : finish.reason
  }

  it.live.each(broken)("%s", ([_, makeModel, body, sign]) =>
    Effect.gen(function* () {
      const parts = yield* readWhole(makeModel, body)
      expect(signOf(parts)).toBe(sign)
    })
  )

  it.live.each(chatModels)(
    "a call cut in its arguments is told as a call all the same: %s",
    ([_, makeModel]) =>
      Effect.gen(function* () {
        const parts = yield* readWhole(makeModel, chat.truncatedCall)
        expect(ofType(parts, "tool-call")).toMatchObject([{ toolCallId: "call_halb", input: '{"city":"Mal' }])
        expect(["no reason", "error", "interrupted"]).toContain(signOf(parts))
      })
  )

  it.live.each(broken)("a socket that dies fails the source: %s", ([_, makeModel, body]) =>
    Effect.gen(function* () {
      const read = yield* Effect.either(play(makeModel, { body, end: "destroy" }))
      // A package that waits for the first event before it answers fails there instead.
      const failure = read._tag === "Left" ? read.left : read.right.failure
      expect(failure).toBeInstanceOf(Error)
      if (read._tag === "Right") expect(ofType(read.right.parts, "finish")).toStrictEqual([])
    })
  )
})

describe("a request that is refused", () => {
  const refused: ReadonlyArray<readonly [string, MakeModel, object]> = [
    ...chatModels.map(([name, makeModel]) => [name, makeModel, refusals.openai] as const),
    ["openai responses", Models.openaiResponses, refusals.openai],
    ["anthropic", Models.anthropic, refusals.anthropic],
    ["google", Models.google, refusals.google]
  ]

  it.live.each(refused)("%s", ([_, makeModel, json]) =>
    Effect.gen(function* () {
      const body = JSON.stringify(json)
      const error = yield* Effect.flip(
        play(makeModel, { status: 429, contentType: "application/json", body })
      )
      expect(error).toMatchObject({
        _tag: "ModelError",
        reason: "request",
        message: "Slow down, please.",
        statusCode: 429,
        isRetryable: true
      })
    })
  )

  it.live.each(refused)("without quoting a page of HTML: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const reply = { status: 400, contentType: "text/html", body: "<html>secret</html>" }
      const error = yield* Effect.flip(play(makeModel, reply))
      expect(error).toMatchObject({ statusCode: 400, isRetryable: false })
      expect(error.message).not.toContain("secret")
      expect(error.message).not.toBe("")
    })
  )
})

describe("interruption", () => {
  const every: ReadonlyArray<readonly [string, MakeModel, string]> = [
    ["openai-compatible, V2", Models.chatV2, chat.text],
    ["openai-compatible, V3", Models.chatV3, chat.text],
    ["openai-compatible, V4", Models.chatV4, chat.text],
    ["openai chat", Models.openaiChat, chat.text],
    ["openai responses", Models.openaiResponses, responses.text],
    ["anthropic", Models.anthropic, anthropic.toolUse],
    ["google", Models.google, gemini.text]
  ]

  const soon = Duration.millis(250)

  it.scopedLive.each(every)("of a reader reaches the server at once: %s", ([_, makeModel, body]) =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.play({ body, bytes: Math.floor(body.length * 0.7), end: "hang" })
      const reading = yield* Deferred.make<void>()
      const fiber = yield* withSignal(signal =>
        Effect.flatMap(begin(makeModel(server.url), request({ tools }), signal), answer =>
          Stream.runForEach(elements(answer), element =>
            answer.normalize(element)?.type === "text-delta"
              ? Deferred.succeed(reading, undefined)
              : Effect.void
          )
        )
      ).pipe(Effect.fork)
      const asked = yield* server.firstRequest
      yield* Deferred.await(reading)
      yield* Effect.timeout(Fiber.interrupt(fiber), soon)
      yield* Effect.timeout(Deferred.await(asked.disconnected), soon)
    })
  )

  it.scopedLive.each(every)("of a call that has no answer yet: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.play({ body: "", end: "silent" })
      const fiber = yield* Effect.fork(readAll(makeModel(server.url)))
      const asked = yield* server.firstRequest
      yield* Effect.timeout(Fiber.interrupt(fiber), soon)
      yield* Effect.timeout(Deferred.await(asked.disconnected), soon)
    })
  )

  it.scopedLive.each(every)("is not what a whole answer ends with: %s", ([_, makeModel, body]) =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.play({ body })
      const read = yield* readAll(makeModel(server.url), request({ tools }))
      expect(read.failure).toBeUndefined()
      const asked = yield* server.firstRequest
      expect(yield* Deferred.isDone(asked.disconnected)).toBe(false)
    })
  )
})

describe("what is sent", () => {
  const messages: ReadonlyArray<Message> = [
    { role: "system", content: "Sei knapp." },
    {
      role: "user",
      content: [
        { type: "text", text: "Wetter? 🌦️" },
        { type: "file", data: "aGFsbG8=", mediaType: "image/png" }
      ]
    },
    {
      role: "assistant",
      content: [
        { type: "text", text: "Ich sehe nach." },
        { type: "tool-call", toolCallId: "call_1", toolName: "weather", input: { city: "Malmö" } },
        { type: "tool-call", toolCallId: "call_2", toolName: "tide", input: {} }
      ]
    },
    {
      role: "tool",
      content: [
        {
          type: "tool-result",
          toolCallId: "call_1",
          toolName: "weather",
          output: { type: "json", value: { sky: "☁️" } }
        },
        {
          type: "tool-result",
          toolCallId: "call_2",
          toolName: "tide",
          output: { type: "error-text", value: "no tide table" }
        }
      ]
    }
  ]

  const bodyOf = (makeModel: MakeModel, reply: string, asked: Partial<ModelRequest> = {}) =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* Server.make
        server.play({ body: reply })
        yield* readAll(makeModel(server.url), request({ messages, tools, toolChoice: "auto", ...asked }))
        const { body, headers, method } = yield* server.firstRequest
        expect(method).toBe("POST")
        return { body, headers }
      })
    )

  it.live.each(chatModels)("chat completions: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const { body, headers } = yield* bodyOf(makeModel, chat.text, {
        settings: { temperature: 0.5, maxOutputTokens: 100, headers: { "x-trace": "7" } }
      })
      expect(headers["x-trace"]).toBe("7")
      expect(body).toMatchObject({
        stream: true,
        temperature: 0.5,
        tool_choice: "auto",
        tools: [
          { type: "function", function: { name: "weather", parameters: { type: "object" } } },
          { type: "function", function: { name: "tide" } }
        ],
        messages: [
          { role: "system", content: "Sei knapp." },
          {
            role: "user",
            content: [
              { type: "text", text: "Wetter? 🌦️" },
              { type: "image_url", image_url: { url: "data:image/png;base64,aGFsbG8=" } }
            ]
          },
          {
            role: "assistant",
            content: "Ich sehe nach.",
            tool_calls: [
              {
                id: "call_1",
                type: "function",
                function: { name: "weather", arguments: '{"city":"Malmö"}' }
              },
              { id: "call_2", type: "function", function: { name: "tide", arguments: "{}" } }
            ]
          },
          { role: "tool", tool_call_id: "call_1", content: '{"sky":"☁️"}' },
          { role: "tool", tool_call_id: "call_2", content: expect.stringContaining("no tide table") }
        ]
      })
    })
  )

  it.live("responses", () =>
    Effect.gen(function* () {
      const { body } = yield* bodyOf(Models.openaiResponses, responses.text)
      expect(body).toMatchObject({
        stream: true,
        input: [
          { content: "Sei knapp." },
          {
            role: "user",
            content: [
              { type: "input_text", text: "Wetter? 🌦️" },
              { type: "input_image", image_url: "data:image/png;base64,aGFsbG8=" }
            ]
          },
          { role: "assistant", content: "Ich sehe nach." },
          { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Malmö"}' },
          { type: "function_call", call_id: "call_2", name: "tide", arguments: "{}" },
          { type: "function_call_output", call_id: "call_1", output: '{"sky":"☁️"}' },
          {
            type: "function_call_output",
            call_id: "call_2",
            output: expect.stringContaining("no tide table")
          }
        ]
      })
    })
  )

  it.live("anthropic, thinking with its signature byte for byte", () =>
    Effect.gen(function* () {
      const thinking: Message = {
        role: "assistant",
        content: [
          {
            type: "reasoning",
            text: "Hm 🌊.",
            providerOptions: { anthropic: { signature: signatures.anthropic } }
          },
          {
            type: "reasoning",
            text: "",
            providerOptions: { anthropic: { redactedData: signatures.redacted } }
          },
          ...(messages[2]?.role === "assistant" ? messages[2].content : [])
        ]
      }
      const { body } = yield* bodyOf(Models.anthropic, anthropic.toolUse, {
        messages: messages.map(message => (message.role === "assistant" ? thinking : message)),
        providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } }
      })
      expect(body).toMatchObject({
        system: [{ type: "text", text: "Sei knapp." }],
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Wetter? 🌦️" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: "aGFsbG8=" } }
            ]
          },
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "Hm 🌊.", signature: signatures.anthropic },
              { type: "redacted_thinking", data: signatures.redacted },
              { type: "text", text: "Ich sehe nach." },
              { type: "tool_use", id: "call_1", name: "weather", input: { city: "Malmö" } },
              { type: "tool_use", id: "call_2", name: "tide", input: {} }
            ]
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "call_1", content: '{"sky":"☁️"}' },
              { type: "tool_result", tool_use_id: "call_2", content: "no tide table", is_error: true }
            ]
          }
        ]
      })
    })
  )

  it.live("google, the thought's signature byte for byte", () =>
    Effect.gen(function* () {
      const signed: Message = {
        role: "assistant",
        content: [
          {
            type: "tool-call",
            toolCallId: "call_1",
            toolName: "weather",
            input: { city: "Malmö" },
            providerOptions: { google: { thoughtSignature: signatures.google } }
          },
          { type: "tool-call", toolCallId: "call_2", toolName: "tide", input: {} }
        ]
      }
      const { body } = yield* bodyOf(Models.google, gemini.text, {
        messages: messages.map(message => (message.role === "assistant" ? signed : message))
      })
      expect(body).toMatchObject({
        systemInstruction: { parts: [{ text: "Sei knapp." }] },
        contents: [
          {
            role: "user",
            parts: [{ text: "Wetter? 🌦️" }, { inlineData: { mimeType: "image/png", data: "aGFsbG8=" } }]
          },
          {
            role: "model",
            parts: [
              {
                functionCall: { name: "weather", args: { city: "Malmö" } },
                thoughtSignature: signatures.google
              },
              { functionCall: { name: "tide", args: {} } }
            ]
          },
          {
            role: "user",
            parts: [
              { functionResponse: { name: "weather", response: { content: { sky: "☁️" } } } },
              { functionResponse: { name: "tide", response: { error: "no tide table" } } }
            ]
          }
        ]
      })
    })
  )
})

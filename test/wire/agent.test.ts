/**
 * Agents over the real provider packages and real HTTP, on both faces: what a run tells, executes, sends back and ends
 * with, whatever the server does. `test/model/wire.test.ts` pins what the packages hand on; this is what becomes of it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Errors } from "eddy"
import { Effect } from "effect"
import { sdk } from "../support/aiSdkModels.js"
import { expectGrammar } from "../support/grammar.js"
import { textOf, typesOf } from "../support/readers.js"
import * as Server from "../support/transcriptServer.js"
import { anthropic, chat, gemini, responses, signatures } from "../support/transcripts.js"
import { type Api, everywhere, named } from "../support/wireApis.js"
import {
  comparable,
  effectFace,
  type Face,
  faces,
  finishOf,
  instructions,
  type Options,
  ofType,
  promiseFace,
  runOver,
  tideNow,
  weatherIn
} from "../support/wireRuns.js"

const optionsOf = ({ providerOptions }: Api): Options =>
  providerOptions === undefined ? {} : { providerOptions }

/** What a run tells, without repeated deltas. */
const outline = (types: ReadonlyArray<string>): ReadonlyArray<string> =>
  types.filter((type, index) => !type.endsWith("-delta") || type !== types[index - 1])

describe("text", () => {
  it.live.each(everywhere)("%s", ([_, { api, face }]) =>
    Effect.gen(function* () {
      const { chunks, failure, output, requests } = yield* runOver(face, api.makeModel, [
        { body: api.text.body }
      ])
      expectGrammar(chunks)
      expect(failure).toBeUndefined()
      const told = outline(typesOf(chunks)).filter(type => type !== "response-metadata")
      expect(told).toStrictEqual([
        "start",
        "step-start",
        "text-start",
        "text-delta",
        "text-end",
        "step-finish",
        "finish"
      ])
      expect(textOf(chunks)).toBe(api.text.said)
      expect(finishOf(chunks)).toMatchObject({
        stepResult: { reason: "stop", isContinued: false },
        output: { text: api.text.said }
      })
      const [step] = ofType(chunks, "step-finish")
      for (const { usage } of [finishOf(chunks).output, step?.payload.output ?? expect.fail("no step")]) {
        expect(usage).toMatchObject(api.text.usage)
      }
      expect(requests).toHaveLength(1)
      expect(JSON.stringify(requests[0]?.body)).toContain(instructions)
      if (output === undefined) return
      const said = yield* Effect.promise(() =>
        Promise.all([output.text, output.usage, output.finishReason, output.steps])
      )
      expect(said).toMatchObject([api.text.said, api.text.usage, "stop", [{ text: api.text.said }]])
      expect(output.status).toBe("success")
    })
  )

  it.live.each(named)("is told alike on both faces: %s", ([_, api]) =>
    Effect.gen(function* () {
      const replies = [{ body: api.calls.body }, { body: api.text.body }]
      const [first, second] = yield* Effect.forEach([effectFace, promiseFace], face =>
        Effect.flatMap(runOver(face, api.makeModel, replies, { ...optionsOf(api), isCrossed: true }), ran =>
          comparable(ran.chunks)
        )
      )
      expect(second).toStrictEqual(first)
    })
  )
})

describe("parallel calls", () => {
  it.live.each(everywhere)("%s", ([_, { api, face }]) =>
    Effect.gen(function* () {
      const { made, said, sent } = api.calls
      const replies = [{ body: api.calls.body }, { body: api.text.body }]
      const { chunks, executed, failure, output, requests } = yield* runOver(face, api.makeModel, replies, {
        ...optionsOf(api),
        isCrossed: true
      })
      expectGrammar(chunks)
      expect(failure).toBeUndefined()
      expect(ofType(chunks, "tool-call").map(({ payload }) => payload)).toMatchObject(made)
      expect(executed).toStrictEqual(made.map(({ args, toolName }) => ({ toolName, input: args })))

      // The tide was done first: outcomes come as they are, and stand in the prompt in call order.
      const [weather, tide] = made
      const results = ofType(chunks, "tool-result").map(({ payload }) => payload)
      expect(results).toMatchObject([
        { toolCallId: tide?.toolCallId, result: tideNow },
        { toolCallId: weather?.toolCallId, result: weatherIn(String(weather?.args["city"])) }
      ])
      expect(requests).toHaveLength(2)
      expect(requests[1]?.body).toMatchObject(sent)

      expect(ofType(chunks, "step-finish").map(({ payload }) => payload.stepResult)).toMatchObject([
        { reason: "tool-calls", isContinued: true },
        { reason: "stop", isContinued: false }
      ])
      expect(finishOf(chunks)).toMatchObject({
        stepResult: { reason: "stop" },
        output: { text: said + api.text.said }
      })
      if (output === undefined) return
      const [text, calls, ordered] = yield* Effect.promise(() =>
        Promise.all([output.text, output.toolCalls, output.toolResults])
      )
      expect(text).toBe(said + api.text.said)
      const ids = made.map(({ toolCallId }) => toolCallId)
      expect(calls.map(({ payload }) => payload.toolCallId)).toStrictEqual(ids)
      expect(ordered.map(({ payload }) => payload.toolCallId)).toStrictEqual(ids)
    })
  )
})

describe("reasoning", () => {
  interface Reasoned {
    readonly name: string
    readonly makeModel: Api["makeModel"]
    readonly providerOptions?: Options["providerOptions"]
    readonly body: string
    readonly said: string
    readonly signatures: ReadonlyArray<string>
    /** In the request of the second step. */
    readonly sent: object
    readonly final: string
  }

  const chatReasoned = (name: string, makeModel: Api["makeModel"]): Reasoned => ({
    name,
    makeModel,
    body: chat.reasoningThenCalls,
    said: "Erst denken 🤔.",
    signatures: [],
    sent: {
      messages: [
        { role: "system" },
        { role: "user" },
        {
          role: "assistant",
          ...(makeModel === sdk.chatV2 ? {} : { reasoning_content: "Erst denken 🤔." }),
          tool_calls: [{ id: "call_nord" }]
        },
        { role: "tool", tool_call_id: "call_nord" }
      ]
    },
    final: chat.text
  })

  const reasoned: ReadonlyArray<Reasoned> = [
    chatReasoned("openai-compatible, V2", sdk.chatV2),
    chatReasoned("openai-compatible, V3", sdk.chatV3),
    chatReasoned("openai-compatible, V4", sdk.chatV4),
    {
      name: "openai responses, V4",
      makeModel: sdk.openaiResponses,
      providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } },
      body: responses.reasoningThenCalls,
      said: "Abwägen ⚖️",
      signatures: [signatures.openai],
      sent: {
        input: [
          {},
          { role: "user" },
          {
            type: "reasoning",
            encrypted_content: signatures.openai,
            summary: [{ type: "summary_text", text: "Abwägen ⚖️" }]
          },
          { type: "function_call", call_id: "call_eins" },
          { type: "function_call_output", call_id: "call_eins" }
        ]
      },
      final: responses.text
    },
    {
      name: "anthropic, V4",
      makeModel: sdk.anthropic,
      providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } },
      body: anthropic.thinkingThenCalls,
      said: "Erst die Gezeiten 🌊.",
      signatures: [signatures.anthropic],
      sent: {
        messages: [
          { role: "user" },
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "Erst die Gezeiten 🌊.", signature: signatures.anthropic },
              { type: "redacted_thinking", data: signatures.redacted },
              { type: "tool_use", id: "toolu_eins" }
            ]
          },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_eins" }] }
        ]
      },
      final: anthropic.text
    },
    {
      name: "google, V4",
      makeModel: sdk.google,
      body: gemini.thoughtThenCalls,
      said: "Erst denken 🧭.",
      signatures: [signatures.googleText],
      sent: {
        contents: [
          { role: "user" },
          {
            role: "model",
            parts: [
              { text: "Erst denken 🧭.", thought: true, thoughtSignature: signatures.googleText },
              { functionCall: { name: "weather" }, thoughtSignature: signatures.google }
            ]
          },
          { role: "user", parts: [{ functionResponse: { name: "weather" } }] }
        ]
      },
      final: gemini.text
    }
  ]

  const cases = faces.flatMap(([faceName, face]) =>
    reasoned.map(one => [`${one.name}, through ${faceName}`, { ...one, face }] as const)
  )

  it.live.each(cases)("and its signatures go into the next request byte for byte: %s", ([_, asked]) =>
    Effect.gen(function* () {
      const { body, face, final, makeModel, providerOptions, said, sent } = asked
      const options = providerOptions === undefined ? {} : { providerOptions }
      const ran = yield* runOver(face, makeModel, [{ body }, { body: final }], options)
      const { chunks, output, requests } = ran
      expectGrammar(chunks)
      expect(ran.failure).toBeUndefined()
      const told = ofType(chunks, "reasoning-delta").map(({ payload }) => payload.text)
      expect(told.join("")).toBe(said)
      expect(ofType(chunks, "reasoning-signature").map(({ payload }) => payload.signature)).toStrictEqual(
        asked.signatures
      )
      expect(requests).toHaveLength(2)
      expect(requests[1]?.body).toMatchObject(sent)
      if (output !== undefined) expect(yield* Effect.promise(() => output.reasoning)).toBe(said)
    })
  )

  it.live("that OpenAI keeps itself is told by reference", () =>
    Effect.gen(function* () {
      const replies = [{ body: responses.reasoningThenCalls }, { body: responses.text }]
      const { requests } = yield* runOver(effectFace, sdk.openaiResponses, replies)
      expect(requests[1]?.body).toMatchObject({
        input: [
          {},
          { role: "user" },
          { type: "item_reference", id: "rs_river" },
          { type: "function_call", call_id: "call_eins" },
          { type: "function_call_output", call_id: "call_eins" }
        ]
      })
    })
  )

  it.live("that is redacted is kept as it came, and shown to nobody", () =>
    Effect.gen(function* () {
      const { chunks } = yield* runOver(effectFace, sdk.anthropic, [{ body: anthropic.thinking }])
      const redacted = ofType(chunks, "reasoning-start").filter(
        ({ payload }) => payload.providerMetadata?.["anthropic"]?.["redactedData"] === signatures.redacted
      )
      expect(redacted).toHaveLength(1)
      const id = redacted[0]?.payload.id
      const shown = ofType(chunks, "reasoning-delta").filter(({ payload }) => payload.id === id)
      expect(shown).toStrictEqual([])
    })
  )
})

describe("wherever the bytes are cut, the chunks are equal", () => {
  const told = (face: Face, api: Api, cut: Server.Cut, body: string) =>
    runOver(face, api.makeModel, [{ body, cut }, { body: api.text.body }], {
      ...optionsOf(api),
      isCrossed: true
    }).pipe(Effect.flatMap(ran => comparable(ran.chunks)))

  it.live.each(named)("text, after every byte: %s", ([_, api]) =>
    Effect.gen(function* () {
      const { body } = api.text
      const whole = yield* told(effectFace, api, "none", body)
      expect(yield* told(effectFace, api, "every-byte", body)).toStrictEqual(whole)
      expect(yield* told(promiseFace, api, Server.awkwardCuts(body), body)).toStrictEqual(whole)
    })
  )

  it.live.each(named)("calls, wherever it hurts: %s", ([_, api]) =>
    Effect.gen(function* () {
      const { body } = api.calls
      const whole = yield* told(effectFace, api, "none", body)
      expect(yield* told(promiseFace, api, Server.awkwardCuts(body), body)).toStrictEqual(whole)
      expect(yield* told(effectFace, api, Server.cutsEvery(7, body), body)).toStrictEqual(whole)
    })
  )
})

describe("a request that is refused", () => {
  const message = "Slow down, please."
  const bodyOf = ({ name }: Api): string =>
    JSON.stringify({
      type: "error",
      error: {
        message,
        ...(name.startsWith("google") ? { code: 400, status: "NO" } : { type: "refused", param: null }),
        hint: "secret detail"
      }
    })

  const statuses = [
    { status: 401, isRetryable: false },
    { status: 429, isRetryable: true },
    { status: 500, isRetryable: true }
  ]

  const cases = everywhere.flatMap(([name, one]) =>
    statuses.map(status => [`${status.status}: ${name}`, { ...one, ...status }] as const)
  )

  it.live.each(cases)("%s", ([_, { api, face, isRetryable, status }]) =>
    Effect.gen(function* () {
      const reply = { status, contentType: "application/json", body: bodyOf(api) }
      const { chunks, failure, output } = yield* runOver(face, api.makeModel, [reply])
      expectGrammar(chunks)
      expect(typesOf(chunks)).toStrictEqual(["start", "step-start", "error", "finish"])
      expect(failure).toBeInstanceOf(Errors.ModelError)
      expect(failure).toMatchObject({ reason: "request", message, statusCode: status, isRetryable })
      expect(ofType(chunks, "error").map(({ payload }) => payload.error)).toStrictEqual([failure])
      expect(finishOf(chunks)).toMatchObject({ stepResult: { reason: "error" }, output: { usage: {} } })
      const json = JSON.stringify(yield* comparable(chunks))
      expect(json).not.toContain("secret")
      if (output === undefined) return
      const rejection = yield* Effect.promise(() => output.text.catch((error: unknown) => error))
      expect(rejection).toBe(failure)
    })
  )
})

/** Servers that do what no specification has, through the real provider packages, on the face where users meet it. */
import { describe, expect, it } from "@effect/vitest"
import { Errors } from "eddy"
import { Effect } from "effect"
import { type MakeSdkModel, sdk } from "../support/aiSdkModels.js"
import { expectGrammar } from "../support/grammar.js"
import { textOf, typesOf } from "../support/readers.js"
import type * as Server from "../support/transcriptServer.js"
import { chat, chatCall, chatChunk, data, done, gemini, geminiChunk } from "../support/transcripts.js"
import { effectFace, finishOf, ofType, promiseFace, runOver } from "../support/wireRuns.js"

const compatible: ReadonlyArray<readonly [string, MakeSdkModel]> = [
  ["openai-compatible, V2", sdk.chatV2],
  ["openai-compatible, V3", sdk.chatV3],
  ["openai-compatible, V4", sdk.chatV4]
]

const chatModels: typeof compatible = [...compatible, ["openai chat, V4", sdk.openaiChat]]

const play = (makeModel: MakeSdkModel, replies: ReadonlyArray<Server.Reply>, options = {}) =>
  Effect.tap(runOver(promiseFace, makeModel, replies, options), ({ chunks }) => expectGrammar(chunks))

const weather = (id: string | undefined, args: string, index = 0): string =>
  chatCall(index, {
    ...(id === undefined ? {} : { id }),
    type: "function",
    function: { name: "weather", arguments: args }
  })

describe("a call that the token limit cut, under a finish that says tool_calls", () => {
  const masked =
    chatChunk({ role: "assistant", content: null }) +
    weather("call_1", '{"city":"Mal') +
    chatChunk({}, "tool_calls") +
    done

  it.live.each(chatModels)(
    "is not executed; the model is told, and its answer is the end: %s",
    ([_, makeModel]) =>
      Effect.gen(function* () {
        const { chunks, executed, output, requests } = yield* play(makeModel, [
          { body: masked },
          { body: chat.text }
        ])
        expect(executed).toStrictEqual([])
        const errors = ofType(chunks, "tool-error").map(({ payload }) => payload)
        expect(errors).toHaveLength(1)
        expect(errors[0]?.error).toBeInstanceOf(Errors.InvalidToolArguments)
        expect(requests).toHaveLength(2)
        // What goes back is JSON: a server that insists on it would refuse the thread for good.
        const sent = JSON.stringify(requests[1]?.body)
        const args = /"arguments":("(?:[^"\\]|\\.)*")/.exec(sent)?.[1] ?? ""
        expect(JSON.parse(JSON.parse(args))).toStrictEqual({ malformedArguments: '{"city":"Mal' })
        expect(output?.status).toBe("success")
      })
  )

  it.live("is asked for no more often than steps allow", () =>
    Effect.gen(function* () {
      const { executed, requests } = yield* play(sdk.chatV4, [{ body: masked }], { maxSteps: 3 })
      expect(requests).toHaveLength(3)
      expect(executed).toStrictEqual([])
    })
  )
})

describe("arguments that come before the name", () => {
  const body =
    chatCall(0, { id: "call_1", type: "function", function: { arguments: '{"city"' } }) +
    chatCall(0, { function: { name: "weather", arguments: ':"Oulu"}' } }) +
    chatChunk({}, "tool_calls") +
    done

  it.live.each(compatible.slice(1))("are kept until it comes: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const { chunks, executed } = yield* play(makeModel, [{ body }, { body: chat.text }])
      expect(executed).toStrictEqual([{ toolName: "weather", input: { city: "Oulu" } }])
      expect(ofType(chunks, "tool-call-delta").map(({ payload }) => payload.argsTextDelta)).toStrictEqual([
        '{"city":"Oulu"}'
      ])
    })
  )

  it.live.each([...compatible.slice(0, 1), ...chatModels.slice(3)])(
    "are refused by the package, and nothing is executed: %s",
    ([_, makeModel]) =>
      Effect.gen(function* () {
        const { chunks, executed } = yield* play(makeModel, [{ body }, { body: chat.text }])
        expect(executed).toStrictEqual([])
        expect(finishOf(chunks).stepResult.reason).toBe("error")
      })
  )
})

describe("calls without ids", () => {
  const blank = (id: string | undefined): string =>
    weather(id, '{"city":"Turku"}', 0) +
    weather(id, '{"city":"Turku"}', 1) +
    chatChunk({}, "tool_calls") +
    done

  const cases = chatModels.flatMap(([name, makeModel]) =>
    [undefined, ""].map(id => [`${name}, ${id === undefined ? "none" : "blank"}`, { id, makeModel }] as const)
  )

  it.live.each(cases)(
    "two in each of two answers have one each, and results go to their own: %s",
    ([_, kind]) =>
      Effect.gen(function* () {
        const { makeModel, id } = kind
        const replies = [{ body: blank(id) }, { body: blank(id) }, { body: chat.text }]
        const { chunks, executed, requests } = yield* play(makeModel, replies)
        expect(executed).toHaveLength(4)
        const ids = ofType(chunks, "tool-call").map(({ payload }) => payload.toolCallId)
        expect(new Set(ids).size).toBe(4)
        for (const made of ids) expect(made).toMatch(/\S/)
        const [one, two, three, four] = ids.map(tool_call_id => ({ role: "tool", tool_call_id }))
        expect(requests[2]?.body).toMatchObject({
          messages: [{}, {}, { role: "assistant" }, one, two, { role: "assistant" }, three, four]
        })
      })
  )

  it.live("of Gemini, in each of two answers", () =>
    Effect.gen(function* () {
      const asking = geminiChunk([{ functionCall: { name: "weather", args: { city: "Chur" } } }], 3, {
        finishReason: "STOP"
      })
      const { executed, requests } = yield* play(sdk.google, [
        { body: asking },
        { body: asking },
        { body: gemini.text }
      ])
      expect(executed).toHaveLength(2)
      const sent = JSON.stringify(requests[2]?.body)
      const idsOf = (kind: string) =>
        Array.from(sent.matchAll(new RegExp(`"${kind}":\\{"id":"([^"]+)"`, "g")), ([, id]) => id)
      expect(new Set(idsOf("functionCall")).size).toBe(2)
      expect(idsOf("functionResponse")).toStrictEqual(idsOf("functionCall"))
    })
  )
})

describe("reasoning", () => {
  const thinking =
    chatChunk({ role: "assistant", content: "" }) +
    ["a", "b", "c"].map(reasoning_content => chatChunk({ reasoning_content })).join("")

  const failure = data({ error: { code: 500, message: "The parser disagrees.", type: "server_error" } })

  const ends: ReadonlyArray<readonly [string, Server.Reply]> = [
    ["an error event", { body: thinking + failure }],
    ["a socket that dies", { body: thinking, end: "destroy" }]
  ]

  const cases = compatible.flatMap(([name, makeModel]) =>
    ends.map(([what, reply]) => [`${what}: ${name}`, { makeModel, reply }] as const)
  )

  it.live.each(cases)(
    "that is broken off is closed before the run says so, by %s",
    ([_, { makeModel, reply }]) =>
      Effect.gen(function* () {
        const { chunks, failure: error } = yield* play(makeModel, [reply])
        expect(typesOf(chunks).slice(-3)).toStrictEqual(["reasoning-end", "error", "finish"])
        expect(ofType(chunks, "reasoning-delta").map(({ payload }) => payload.text)).toStrictEqual([
          "a",
          "b",
          "c"
        ])
        expect(error).toBeInstanceOf(Errors.ModelError)
      })
  )

  it.live.each(compatible)(
    "alone is an answer: its text is empty, and nothing has failed: %s",
    ([_, makeModel]) =>
      Effect.gen(function* () {
        const { failure: error, output } = yield* play(makeModel, [
          { body: thinking + chatChunk({}, "stop") + done }
        ])
        expect(error).toBeUndefined()
        expect(yield* Effect.promise(() => output?.text ?? Promise.reject())).toBe("")
        expect(yield* Effect.promise(() => output?.reasoning ?? Promise.reject())).toBe("abc")
      })
  )
})

describe("a chunk that holds the usage beside words", () => {
  const usage = (completion_tokens: number): object => ({
    usage: { prompt_tokens: 4, completion_tokens, total_tokens: 4 + completion_tokens }
  })

  it.live.each(chatModels)("tells both, also when it is the first and the last: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const body =
        chatChunk({ role: "assistant", content: "A" }, null, usage(1)) +
        chatChunk({ content: "B" }, null, usage(2)) +
        chatChunk({ content: "C" }, "stop", usage(3)) +
        done
      const { chunks } = yield* play(makeModel, [{ body }])
      expect(textOf(chunks)).toBe("ABC")
      expect(finishOf(chunks).output.usage).toMatchObject({ inputTokens: 4, outputTokens: 3, totalTokens: 7 })
    })
  )
})

describe("signatures of Gemini", () => {
  it.live("on two parts of one text, on an empty one behind it, on a call: each goes back on its own", () =>
    Effect.gen(function* () {
      const body = [
        geminiChunk([{ text: "A", thoughtSignature: "c2lnLTE=" }], 1),
        geminiChunk([{ text: "B", thoughtSignature: "c2lnLTI=" }], 2),
        geminiChunk([{ text: "", thoughtSignature: "c2lnLTM=" }], 2),
        geminiChunk(
          [{ functionCall: { name: "weather", args: { city: "Bern" } }, thoughtSignature: "c2lnLTQ=" }],
          3,
          { finishReason: "STOP" }
        )
      ].join("")
      const { chunks, requests } = yield* Effect.tap(
        runOver(effectFace, sdk.google, [{ body }, { body: gemini.text }]),
        ran => expectGrammar(ran.chunks)
      )
      expect(ofType(chunks, "step-finish")[0]?.payload.output.text).toBe("AB")
      expect(requests[1]?.body).toMatchObject({
        contents: [
          { role: "user" },
          {
            role: "model",
            parts: [
              { text: "A", thoughtSignature: "c2lnLTE=" },
              { text: "B", thoughtSignature: "c2lnLTI=" },
              { text: "", thoughtSignature: "c2lnLTM=" },
              { functionCall: { name: "weather" }, thoughtSignature: "c2lnLTQ=" }
            ]
          },
          { role: "user" }
        ]
      })
    })
  )
})

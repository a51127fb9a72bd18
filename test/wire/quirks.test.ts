/**
 * What servers do that no specification has, through the real provider packages and the agent, as far as it reaches us through
 * a package; where a package stands in the way, the test says what becomes of it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Errors } from "eddy"
import { Effect } from "effect"
import { type MakeSdkModel, sdk } from "../support/aiSdkModels.js"
import { expectGrammar } from "../support/grammar.js"
import { anthropicQuirks, chatQuirks, geminiQuirks } from "../support/quirks.js"
import { textOf } from "../support/readers.js"
import * as Server from "../support/transcriptServer.js"
import { anthropic, chat, gemini, signatures } from "../support/transcripts.js"
import {
  comparable,
  effectFace,
  finishOf,
  ofType,
  promiseFace,
  type Ran,
  runOver
} from "../support/wireRuns.js"

const compatible: ReadonlyArray<readonly [string, MakeSdkModel]> = [
  ["openai-compatible, V2", sdk.chatV2],
  ["openai-compatible, V3", sdk.chatV3],
  ["openai-compatible, V4", sdk.chatV4]
]

const chatModels: typeof compatible = [...compatible, ["openai chat, V4", sdk.openaiChat]]

/** One answer with this body; if it asks for tools, one more that ends the run. */
const play = (makeModel: MakeSdkModel, body: string, final: string) =>
  Effect.tap(runOver(effectFace, makeModel, [{ body }, { body: final }]), ({ chunks }) =>
    expectGrammar(chunks)
  )

const firstReason = ({ chunks }: Ran) => ofType(chunks, "step-finish")[0]?.payload.stepResult

const callsOf = ({ chunks }: Ran) =>
  ofType(chunks, "tool-call").map(({ payload: { args, toolCallId, toolName } }) => ({
    id: toolCallId,
    name: toolName,
    args
  }))

const expectFailure = ({ chunks, executed, failure }: Ran): Errors.ModelError => {
  expect(executed).toStrictEqual([])
  expect(ofType(chunks, "error")).toHaveLength(1)
  expect(finishOf(chunks).stepResult.reason).toBe("error")
  return failure instanceof Errors.ModelError ? failure : expect.fail(`No ModelError: ${String(failure)}`)
}

describe("06: an error beside choices", () => {
  it.live.each(chatModels.slice(1))("fails the run, once: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const ran = yield* play(makeModel, chatQuirks.errorBesideChoices, chat.text)
      expect(expectFailure(ran).reason).toBe("stream")
      expect(finishOf(ran.chunks).output.text).toBe("Bis hier")
    })
  )

  it.live("is dropped by openai-compatible, V2, which says that there was no reason to finish", () =>
    Effect.gen(function* () {
      const ran = yield* play(sdk.chatV2, chatQuirks.errorBesideChoices, chat.text)
      expect(finishOf(ran.chunks).stepResult.reason).toBe("other")
    })
  )
})

describe("09: events of an unknown type", () => {
  it.live("are skipped", () =>
    Effect.gen(function* () {
      const ran = yield* play(sdk.anthropic, anthropicQuirks.unknownEvents, anthropic.text)
      expect(callsOf(ran)).toStrictEqual([
        { id: "toolu_1", name: "weather", args: { city: "Sofia 🌉" } },
        { id: "toolu_2", name: "tide", args: {} }
      ])
      expect(ran.executed).toHaveLength(2)
      expect(firstReason(ran)).toMatchObject({ reason: "tool-calls", rawReason: "tool_use" })
      expect(textOf(ran.chunks)).toBe("Ich sehe nach 👀.Segel setzen ⛵")
    })
  )

  it.live("but not blocks of an unknown type: what they say would be lost", () =>
    Effect.gen(function* () {
      const ran = yield* play(sdk.anthropic, anthropicQuirks.unknownBlock, anthropic.text)
      expect(expectFailure(ran).message).toBe("The provider sent JSON of an unexpected shape.")
    })
  )
})

describe("a signature of Anthropic in two deltas", () => {
  it.live("goes back as one, on one thinking block", () =>
    Effect.gen(function* () {
      const ran = yield* runOver(
        effectFace,
        sdk.anthropic,
        [{ body: anthropicQuirks.tornSignature }, { body: anthropic.text }],
        { providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } } }
      )
      expectGrammar(ran.chunks)
      const [first] = ofType(ran.chunks, "reasoning-end")
      expect(first?.payload.signature).toBe(signatures.anthropic)
      expect(ran.requests[1]?.body).toMatchObject({
        messages: [
          { role: "user" },
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "Hm.", signature: signatures.anthropic },
              { type: "tool_use", id: "toolu_1" }
            ]
          },
          { role: "user" }
        ]
      })
    })
  )
})

describe("12: Gemini's calls without ids", () => {
  it.live("get ids of their own, and every signature goes back on its own part", () =>
    Effect.gen(function* () {
      const ran = yield* play(sdk.google, geminiQuirks.signatures, gemini.text)
      expect(callsOf(ran)).toStrictEqual([
        { id: "call_1", name: "weather", args: { city: "Bern" } },
        { id: "call_2", name: "weather", args: { city: "Chur" } }
      ])
      expect(firstReason(ran)).toMatchObject({ reason: "tool-calls", rawReason: "STOP" })
      const [step] = ofType(ran.chunks, "step-finish")
      // The figures grow: the last ones count.
      expect(step?.payload.output.usage).toMatchObject({ inputTokens: 50, outputTokens: 29, totalTokens: 79 })
      expect(ran.requests[1]?.body).toMatchObject({
        contents: [
          { role: "user" },
          {
            role: "model",
            parts: [
              { text: "Zwei Fragen.", thought: true },
              { text: "Ich frage.", thoughtSignature: signatures.googleText },
              { functionCall: { args: { city: "Bern" } }, thoughtSignature: signatures.google },
              { functionCall: { args: { city: "Chur" } } },
              { text: "", thoughtSignature: signatures.openai }
            ]
          },
          {
            role: "user",
            parts: [
              { functionResponse: { response: { content: { city: "Bern" } } } },
              { functionResponse: { response: { content: { city: "Chur" } } } }
            ]
          }
        ]
      })
    })
  )
})

describe("13: reasoning under two names, and figures that grow", () => {
  it.live.each(compatible)("is told once, and the last figures count: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const { chunks } = yield* play(makeModel, chatQuirks.reasoningNames, chat.text)
      const reasoning = ofType(chunks, "reasoning-delta").map(({ payload }) => payload.text)
      expect(reasoning.join("")).toBe("Erst 🌊, dann ⛵, zuletzt ⚓.")
      expect(textOf(chunks)).toBe("\n\nAlso ja.")
      expect(finishOf(chunks).output.usage).toMatchObject({
        inputTokens: 9,
        outputTokens: 12,
        totalTokens: 21
      })
    })
  )

  it.live("is no reasoning for openai chat, which knows none of the names", () =>
    Effect.gen(function* () {
      const { chunks } = yield* play(sdk.openaiChat, chatQuirks.reasoningNames, chat.text)
      expect(ofType(chunks, "reasoning-delta")).toStrictEqual([])
      expect(textOf(chunks)).toBe("\n\nAlso ja.")
    })
  )
})

describe("14: a byte order mark and line ends of every kind", () => {
  it.live.each(chatModels)("wherever they are cut: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const { lineEnds } = chatQuirks
      const told = (cut: Server.Cut, face = effectFace) =>
        Effect.flatMap(runOver(face, makeModel, [{ body: lineEnds, cut }]), ran => comparable(ran.chunks))
      const whole = yield* play(makeModel, lineEnds, chat.text)
      expect(textOf(whole.chunks)).toBe("ä☕🦊")
      expect(finishOf(whole.chunks)).toMatchObject({ stepResult: { reason: "stop" }, output: { usage: {} } })
      const expected = yield* comparable(whole.chunks)
      expect(yield* told("every-byte")).toStrictEqual(expected)
      expect(yield* told(Server.awkwardCuts(lineEnds), promiseFace)).toStrictEqual(expected)
    })
  )
})

describe("15: comments that keep a connection alive", () => {
  it.live.each(chatModels)("are nothing: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const { chunks } = yield* play(makeModel, chatQuirks.comments, chat.text)
      expect(textOf(chunks)).toBe("Hallo")
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )

  it.live.each(chatModels)("but an event of empty data is no JSON to the package: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const ran = yield* play(makeModel, chatQuirks.emptyData, chat.text)
      expect(expectFailure(ran).message).toBe("The provider sent something that is no JSON.")
      expect(textOf(ran.chunks)).toBe("Hallo")
    })
  )
})

describe("17: bytes that break off inside a character", () => {
  it.live.each(chatModels.slice(1))("are an answer that is not complete: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const ran = yield* runOver(promiseFace, makeModel, [{ body: chat.truncated }])
      const { message } = expectFailure(ran)
      expect(message).not.toMatch(/JSON|parse/)
      expect(textOf(ran.chunks)).toBe("Halb ")
    })
  )
})

describe("18: calls without an identity", () => {
  const [a, b, c] = [
    { id: "call_a", name: "weather", args: { city: "Å" } },
    { id: "call_b", name: "weather", args: { city: "Ä" } },
    { id: "call_c", name: "tide", args: { port: "Ö" } }
  ]
  const last = { name: "tide", args: { port: "Ü" } }

  it.live("are four calls to openai-compatible, V4", () =>
    Effect.gen(function* () {
      const ran = yield* play(sdk.chatV4, chatQuirks.identities, chat.text)
      expect(callsOf(ran)).toMatchObject([a, b, c, last])
      expect(ran.executed).toHaveLength(4)
      expect(callsOf(ran)[3]?.id).toMatch(/\S/)
    })
  )

  it.live.each(compatible.slice(0, 2))(
    "lose their ends in %s: then they are not executed",
    ([_, makeModel]) =>
      Effect.gen(function* () {
        const ran = yield* play(makeModel, chatQuirks.identities, chat.text)
        const torn = ofType(ran.chunks, "tool-error").map(({ payload }) => payload.toolCallId)
        expect(torn).toContain("call_b")
        expect(ran.executed).toHaveLength(4 - torn.length)
        for (const { input } of ran.executed) {
          expect([a, c, last].map(({ args }) => args)).toContainEqual(input)
        }
      })
  )

  it.live("are not read by openai chat, which insists on an index", () =>
    Effect.gen(function* () {
      const ran = yield* play(sdk.openaiChat, chatQuirks.identities, chat.text)
      expect(expectFailure(ran).message).toBe("The provider sent JSON of an unexpected shape.")
    })
  )
})

describe("20, 22, 23, 25: calls", () => {
  const tromso = { name: "weather", args: { city: "Tromsø" } }
  const oulu = { name: "weather", args: { city: "Oulu" } }
  const kinds: ReadonlyArray<readonly [string, string, ReadonlyArray<object>, object | undefined]> = [
    [
      "20: whole, of one index, with reason stop",
      chatQuirks.wholeCalls,
      [tromso, { name: "weather", args: { city: "Malmö" } }],
      undefined
    ],
    ["22: with a name on every piece", chatQuirks.repeatedName, [oulu], { totalTokens: 15 }],
    ["23: finished twice, with blanks behind", chatQuirks.doubleFinish, [oulu], { totalTokens: 15 }],
    [
      "25: without ids",
      chatQuirks.noIds,
      [oulu, { name: "weather", args: { city: "Turku" } }, oulu],
      undefined
    ]
  ]
  const cases = kinds.flatMap(([name, body, made, usage]) =>
    chatModels.map(([model, makeModel]) => [`${name}: ${model}`, { body, made, makeModel, usage }] as const)
  )

  it.live.each(cases)("%s", ([_, { body, made, makeModel, usage }]) =>
    Effect.gen(function* () {
      const ran = yield* play(makeModel, body, chat.text)
      const calls = callsOf(ran)
      expect(calls).toMatchObject(made)
      expect(new Set(calls.map(({ id }) => id)).size).toBe(made.length)
      expect(ran.executed).toHaveLength(made.length)
      expect(firstReason(ran)).toMatchObject({ reason: "tool-calls", isContinued: true })
      const [step] = ofType(ran.chunks, "step-finish")
      if (usage === undefined) expect(step?.payload.output.usage).toStrictEqual({})
      else expect(step?.payload.output.usage).toMatchObject(usage)
      // Each result goes back under the id of its call.
      const ids = calls.map(({ id }) => ({ role: "tool", tool_call_id: id }))
      expect(ran.requests[1]?.body).toMatchObject({ messages: [{}, {}, { role: "assistant" }, ...ids] })
    })
  )
})

describe("24: an answer that ends with an error and holds nothing", () => {
  it.live("fails the run with the provider's word for it, and keeps the figures", () =>
    Effect.gen(function* () {
      const ran = yield* play(sdk.google, geminiQuirks.malformedCall, gemini.text)
      expect(expectFailure(ran).message).toContain("MALFORMED_FUNCTION_CALL")
      expect(finishOf(ran.chunks).stepResult).toStrictEqual({
        reason: "error",
        rawReason: "MALFORMED_FUNCTION_CALL",
        isContinued: false
      })
      expect(finishOf(ran.chunks).output.usage).toMatchObject({ inputTokens: 120, totalTokens: 120 })
    })
  )
})

describe("an answer without the mark that nothing follows", () => {
  it.live.each(chatModels)("is complete all the same: %s", ([_, makeModel]) =>
    Effect.gen(function* () {
      const { chunks, failure } = yield* play(makeModel, chatQuirks.noDone, chat.text)
      expect(failure).toBeUndefined()
      expect(finishOf(chunks)).toMatchObject({ stepResult: { reason: "stop" }, output: { text: "Hallo" } })
    })
  )
})

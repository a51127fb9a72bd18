/** What is said: every word, once, in its order, with what belongs to it. */
import { describe, expect, it } from "@effect/vitest"
import { Chunk, Agent as CoreAgent, Errors, LanguageModel } from "eddy"
import { createTool } from "eddy/promise"
import { Effect } from "effect"
import { finishOf, inTime, only, read } from "../agent/kit.js"
import { expectGrammar } from "../support/grammar.js"
import { collect, refuseUnhandledRejections, textOf, typesOf } from "../support/readers.js"
import * as Kit from "./kit.js"

refuseUnhandledRejections()

const reasoningOf = (chunks: ReadonlyArray<Chunk.Chunk>): string =>
  only(chunks, "reasoning-delta")
    .map(({ payload }) => payload.text)
    .join("")

describe("words of a block that was never begun", () => {
  const orphans: ReadonlyArray<readonly [what: string, parts: ReadonlyArray<Kit.Part>]> = [
    ["text, and its end", [Kit.says("hi"), Kit.textEnd()]],
    ["text alone", [Kit.says("h"), Kit.says("i")]],
    ["text of no id at all", [Kit.says("h", undefined), Kit.says("i", undefined)]],
    ["text of a number", [Kit.says("hi", 7)]],
    ["text behind the end of its block", [...Kit.text("h"), Kit.says("i")]],
    ["text behind nothing at all", [Kit.says(undefined), Kit.says(""), Kit.says(null), Kit.says("hi")]]
  ]

  it.each(orphans)("%s", async (_, parts) => {
    const { chunks, output } = await Kit.run([[...parts, Kit.finish()]])
    expect(textOf(chunks)).toBe("hi")
    expect(await output.text).toBe("hi")
    expect((await output.response).messages).toMatchObject([{ role: "assistant" }])
    expect((await collect(output.textStream)).join("")).toBe("hi")
  })

  it("reasoning, in the middle of text of the same id", async () => {
    const { chunks, output } = await Kit.run([
      [Kit.textStart(), Kit.says("a"), Kit.thinks("hm"), Kit.says("b"), Kit.textEnd(), Kit.finish()]
    ])
    expect(reasoningOf(chunks)).toBe("hm")
    expect(await output.reasoning).toBe("hm")
    expect(await output.text).toBe("ab")
  })
})

describe("an answer that only thinks", () => {
  it.each([
    ["and stops", [Kit.thinkStart(), Kit.thinks("hm"), Kit.thinkEnd(), Kit.finish()]],
    ["and says nothing in a block of text", [Kit.thinks("hm"), Kit.textStart(), Kit.textEnd(), Kit.finish()]]
  ])("%s: its text is empty, and nothing has failed", async (_, answer) => {
    const { chunks, output } = await Kit.run([answer])
    expect(await output.text).toBe("")
    expect(await output.reasoningText).toBe("hm")
    expect(output.status).toBe("success")
    expect(only(chunks, "error")).toStrictEqual([])
  })

  const broken: ReadonlyArray<readonly [what: string, end: Kit.Entry]> = [
    ["an error object", Kit.fails({ code: 500, message: "parser disagrees", type: "server_error" })],
    ["a socket that dies", Kit.breaks(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }))]
  ]

  it.each(broken)(
    "and is broken off by %s: what was open is closed before the run says so",
    async (_, end) => {
      const { chunks, output } = await Kit.run([
        [Kit.thinkStart(), Kit.thinks("a"), Kit.thinks("b"), Kit.thinks("c"), end]
      ])
      expect(typesOf(chunks).slice(-3)).toStrictEqual(["reasoning-end", "error", "finish"])
      expect(reasoningOf(chunks)).toBe("abc")
      expect(output.error).toBeInstanceOf(Errors.ModelError)
      expect(await output.getFullOutput()).toMatchObject({ reasoning: "abc", text: "" })
    }
  )
})

describe("a first attempt that comes to nothing", () => {
  const preamble = (id: string): ReadonlyArray<Kit.Part> => [
    { type: "stream-start", warnings: [{ type: "other", message: id }] },
    { type: "response-metadata", id, modelId: "mill-1" }
  ]

  const nothings: ReadonlyArray<readonly [what: string, parts: ReadonlyArray<Kit.Entry>]> = [
    ["goes silent behind the start of its reasoning", [Kit.thinkStart(), Kit.hangs]],
    ["goes silent in an empty block", [Kit.textStart(), Kit.says(""), Kit.hangs]],
    ["goes silent behind an empty block", [...Kit.text(""), Kit.thinkStart("1"), Kit.hangs]],
    ["fails behind the start of its text", [Kit.textStart(), Kit.fails({ statusCode: 503 })]],
    ["ends behind the start of its text", [Kit.textStart()]],
    [
      "has its stream cut",
      [Kit.thinkStart(), Kit.breaks(Object.assign(new Error("reset"), { isRetryable: true }))]
    ]
  ]

  /** A run on the clock of the test, on which silence and back-off take no time. */
  const told = (first: Kit.Played, ...more: ReadonlyArray<Kit.Played>) =>
    inTime(
      read(
        CoreAgent.stream(
          CoreAgent.make({
            id: "patient",
            model: [first, ...more].map(({ model }) => LanguageModel.fromAiSdk(model))
          }),
          "go",
          { timeouts: { firstContent: "100 millis" }, maxRetries: 1, includeRawChunks: true }
        )
      )
    )

  it.effect.each(nothings)("and %s is as if it had never been", ([, parts]) =>
    Effect.gen(function* () {
      const place = Kit.played([
        [...preamble("r1"), ...parts],
        [...preamble("r2"), Kit.textStart(), Kit.says("ok"), Kit.textEnd(), Kit.finish()]
      ])
      const { chunks } = yield* told(place)
      expectGrammar(chunks)
      expect(place.calls).toHaveLength(2)
      expect(typesOf(chunks)).toStrictEqual([
        "start",
        "step-start",
        "response-metadata",
        "text-start",
        "text-delta",
        "text-end",
        "step-finish",
        "finish"
      ])
      // As the first block of a run is called that has seen no other.
      expect(only(chunks, "text-start")[0]?.payload.id).toBe("0")
      expect(only(chunks, "response-metadata")[0]?.payload.id).toBe("r2")
      expect(only(chunks, "step-start")[0]?.payload.warnings).toMatchObject([{ message: "r2" }])
      expect(finishOf(chunks).output).toMatchObject({ text: "ok", usage: { totalTokens: 15 } })
    })
  )

  it.effect("and that was silent is told so: what it sends is not waited for", () =>
    Effect.gen(function* () {
      const silent = () => [...preamble("r1"), Kit.thinkStart(), Kit.hangs]
      const first = Kit.played(silent)
      const second = Kit.played([[...preamble("r2"), ...Kit.replies("ok")]], "v3")
      const { chunks } = yield* told(first, second)
      expectGrammar(chunks)
      expect(only(chunks, "step-start")).toHaveLength(1)
      expect(only(chunks, "reasoning-start")).toStrictEqual([])
      expect(finishOf(chunks).output.text).toBe("ok")
      expect(first.cancelled()).toBe(2)
      expect(first.calls.map(({ abortSignal }) => abortSignal?.aborted)).toStrictEqual([true, true])
    })
  )
})

describe("halves of a surrogate pair", () => {
  const jsonOf = (chunks: ReadonlyArray<Chunk.Chunk>) =>
    Effect.runPromise(Effect.map(Effect.forEach(chunks, Chunk.encode), encoded => JSON.stringify(encoded)))

  /** A lone surrogate is escaped in JSON text, and strict parsers refuse that. */
  const expectWhole = (json: string): void => expect(json).not.toMatch(/\\ud[89a-f][0-9a-f]{2}/i)

  const said: ReadonlyArray<readonly [what: string, parts: ReadonlyArray<Kit.Part>, text: string]> = [
    ["of two deltas", [Kit.says("a\ud83d"), Kit.says("\ude00b")], "a😀b"],
    [
      "of two deltas, with a call between them",
      [Kit.says("\ud83d"), Kit.call("c1", "echo"), Kit.says("\ude00")],
      "😀"
    ],
    [
      "of two deltas, with an empty one between them",
      [Kit.says("\ud83d"), Kit.says(""), Kit.says("\ude00")],
      "😀"
    ],
    [
      "of two deltas, with reasoning between them",
      [Kit.says("\ud83d"), Kit.thinks("\ud83d"), Kit.says("\ude00"), Kit.thinks("\ude00")],
      "😀"
    ],
    ["that stays alone", [Kit.says("a\ud83d"), Kit.says("b"), Kit.says("\ude00")], "a\ufffdb\ufffd"],
    ["that is the last word", [Kit.says("a\ud83d")], "a\ufffd"]
  ]

  it.each(said)("%s", async (_, parts, whole) => {
    const place = await Kit.run([
      [...parts, Kit.call("c9", "echo"), Kit.finish("tool-calls")],
      Kit.replies("")
    ])
    expect(textOf(place.chunks)).toBe(whole)
    expect(await place.output.text).toBe(whole)
    expectWhole(JSON.stringify(place.calls.at(-1)?.prompt))
    expectWhole(await jsonOf(place.chunks))
  })

  it("in everything that goes into a prompt, or out to a reader", async () => {
    const cut = createTool({
      id: "cut",
      inputSchema: { type: "object" },
      execute: async (_, { writer }) => {
        await writer.write({ "key \ud83d": "written \ud83d" })
        await writer.custom({ type: "data-cut", data: "data \ud83d" })
        return { text: "😀".slice(0, 1), list: ["ok \ud83d"] }
      }
    })
    const failing = createTool({ id: "failing", execute: () => Promise.reject(new Error("no \ud83d")) })
    const place = Kit.set(
      [
        [
          Kit.call("c1", "cut", '{"for":"\\ud83d","\\ude00":1}'),
          Kit.call("c2", "failing"),
          Kit.call("c3", "cut", '{"broken":"\ud83d'),
          Kit.finish("tool-calls")
        ],
        Kit.replies("ok")
      ],
      { agent: { tools: { cut, failing }, instructions: "always \ud83d" } }
    )
    const output = await place.agent.stream(
      [{ role: "system", content: "be \ud83d" }, { role: "user", content: "go \ude00" }, "and \ud83d"],
      Kit.once
    )
    const chunks = await Kit.readAll(output)
    expect(place.calls).toHaveLength(2)
    expectWhole(JSON.stringify(place.calls.map(({ prompt }) => prompt)))
    expectWhole(await jsonOf(chunks))
    expectWhole(JSON.stringify((await output.response).messages))
  })
})

describe("what a provider signs goes back as it was signed", () => {
  const signed = (thoughtSignature: string): Kit.Part => ({
    providerMetadata: { google: { thoughtSignature } }
  })

  const options = (thoughtSignature: string) => ({ providerOptions: { google: { thoughtSignature } } })

  it("parts that stand in one block, under signatures of their own", async () => {
    const place = await Kit.run([
      [
        Kit.thinkStart("0", signed("s0")),
        Kit.thinks("hm", "0", signed("s0")),
        Kit.thinks("hm", "0", signed("s1")),
        Kit.thinkEnd("0"),
        Kit.textStart("1", signed("s2")),
        Kit.says("A", "1", signed("s2")),
        Kit.says("B", "1", signed("s3")),
        Kit.says("b", "1"),
        Kit.says("", "1", signed("s4")),
        Kit.textEnd("1"),
        Kit.call("c1", "echo", "{}", signed("s5")),
        Kit.call("c2", "echo", "{}"),
        Kit.textStart("2", signed("s6")),
        Kit.textEnd("2"),
        Kit.finish()
      ],
      Kit.replies("ok")
    ])
    expect(Kit.lastPrompt(place).at(-2)?.content).toStrictEqual([
      { type: "reasoning", text: "hm", ...options("s0") },
      { type: "reasoning", text: "hm", ...options("s1") },
      { type: "text", text: "A", ...options("s2") },
      { type: "text", text: "Bb", ...options("s3") },
      { type: "text", text: "", ...options("s4") },
      { type: "tool-call", toolCallId: "c1", toolName: "echo", input: {}, ...options("s5") },
      { type: "tool-call", toolCallId: "c2", toolName: "echo", input: {} },
      { type: "text", text: "", ...options("s6") }
    ])
    expect(await place.output.text).toBe("ABbok")
    expect(only(place.chunks, "reasoning-signature").map(({ payload }) => payload.signature)).toStrictEqual([
      "s0",
      "s1"
    ])
  })

  it("but a signature that comes behind the words, or with each of them, signs them all", async () => {
    const place = await Kit.run([
      [
        Kit.thinkStart(),
        Kit.thinks("a"),
        Kit.thinks("b"),
        Kit.thinks("", "0", { providerMetadata: { anthropic: { signature: "s" } } }),
        Kit.thinkEnd("0", { providerMetadata: { anthropic: { signature: "s" } } }),
        Kit.textStart("1", { providerMetadata: { openai: { itemId: "m1" } } }),
        Kit.says("A", "1", { providerMetadata: { openai: { index: 1 } } }),
        Kit.says("B", "1", { providerMetadata: { openai: { index: 2 } } }),
        Kit.textEnd("1"),
        Kit.call("c1", "echo"),
        Kit.finish()
      ],
      Kit.replies("ok")
    ])
    expect(Kit.lastPrompt(place).at(-2)?.content).toMatchObject([
      { type: "reasoning", text: "ab", providerOptions: { anthropic: { signature: "s" } } },
      { type: "text", text: "AB", providerOptions: { openai: { itemId: "m1", index: 2 } } },
      { type: "tool-call" }
    ])
    expect(only(place.chunks, "text-start")).toHaveLength(2)
  })
})

it("parts stand in the order of their first words, and hold all of them", async () => {
  const place = await Kit.run([
    [
      Kit.textStart("empty"),
      Kit.textStart(),
      Kit.says("I will "),
      Kit.call("c1", "echo"),
      Kit.says("late", "empty"),
      Kit.says("look"),
      Kit.textEnd(),
      Kit.textEnd("empty"),
      Kit.finish("tool-calls")
    ],
    Kit.replies("done")
  ])
  const { messages } = await place.output.response
  expect(messages).toMatchObject([
    {
      role: "assistant",
      content: [
        { type: "text", text: "I will look" },
        { type: "tool-call", toolCallId: "c1" },
        { type: "text", text: "late" }
      ]
    },
    { role: "tool", content: [{ toolCallId: "c1" }] },
    { role: "assistant", content: [{ type: "text", text: "done" }] }
  ])
  expect(textOf(place.chunks)).toBe("I will latelookdone")
  expect(finishOf(place.chunks).output.text).toBe("I will latelookdone")
})

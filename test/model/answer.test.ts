/** One answer, part by part: the small rules that repair what providers leave undone. */
import { describe, expect, it } from "@effect/vitest"
import type { Chunk, ModelPart } from "eddy"
import { FastCheck as fc } from "effect"
import * as Answer from "../../src/model/Answer.js"
import * as RunIds from "../../src/model/runIds.js"
import { anyPart } from "../support/randomParts.js"

/** Reads parts into a new answer; several answers of one run share `ids`. */
const read = (parts: ReadonlyArray<ModelPart.ModelPart>, ids: RunIds.RunIds = RunIds.make()) => {
  const chunks: Array<Chunk.Chunk> = []
  let made = 0
  const answer = Answer.make({
    runId: "r",
    messageId: "m",
    ids,
    makeCallId: () => `made-${++made}`,
    includeRawChunks: true,
    emit: chunk => chunks.push(chunk)
  })
  for (const part of parts) answer.accept(part)
  return { answer, chunks }
}

const short = (chunk: Chunk.Chunk): string => {
  switch (chunk.type) {
    case "text-delta":
    case "reasoning-delta":
      return `${chunk.type} ${chunk.payload.id} ${JSON.stringify(chunk.payload.text)}`
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
    case "source":
      return `${chunk.type} ${chunk.payload.id}`
    case "reasoning-signature":
      return `${chunk.type} ${chunk.payload.id} ${chunk.payload.signature}`
    case "tool-call-input-streaming-start":
    case "tool-call-input-streaming-end":
      return `${chunk.type.slice("tool-call-".length)} ${chunk.payload.toolCallId}`
    case "tool-call-delta":
      return `${chunk.type} ${chunk.payload.toolCallId} ${chunk.payload.argsTextDelta}`
    case "tool-call":
      return `${chunk.type} ${chunk.payload.toolCallId} ${chunk.payload.toolName} ${JSON.stringify(chunk.payload.args)}`
    case "tool-result":
      return `${chunk.type} ${chunk.payload.toolCallId} ${JSON.stringify(chunk.payload.result)}`
    default:
      return chunk.type
  }
}

/** The content of a whole answer, in short, without its `step-start`. */
const content = (parts: ReadonlyArray<ModelPart.ModelPart>, ids?: RunIds.RunIds): ReadonlyArray<string> => {
  const { answer, chunks } = read(parts, ids)
  answer.close(true)
  expect(chunks[0]?.type).toBe("step-start")
  return chunks.slice(1).map(short)
}

const text = (delta: string, id = "0"): ModelPart.ModelPart => ({ type: "text-delta", id, delta })
const think = (delta: string, signature?: string): ModelPart.ModelPart => ({
  type: "reasoning-delta",
  id: "0",
  delta,
  ...(signature === undefined ? {} : { providerMetadata: { kit: { signature } } })
})
const edge = (type: ModelPart.BlockEdge["type"], id = "0", signature?: string): ModelPart.ModelPart => ({
  type,
  id,
  ...(signature === undefined ? {} : { providerMetadata: { kit: { signature } } })
})
const inputStart = (id = "c", toolName = "a"): ModelPart.ModelPart => ({
  type: "tool-input-start",
  id,
  toolName
})
const inputDelta = (delta: string, id = "c"): ModelPart.ModelPart => ({ type: "tool-input-delta", id, delta })
const inputEnd = (id = "c"): ModelPart.ModelPart => ({ type: "tool-input-end", id })
const call = (input: unknown, toolCallId = "c", toolName = "a"): ModelPart.ModelPart => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input
})
const result = (toolCallId: string, value: unknown = 1, toolName = "a"): ModelPart.ModelPart => ({
  type: "tool-result",
  toolCallId,
  toolName,
  result: value
})

describe("blocks", () => {
  it("are opened before their first delta and closed at the end", () => {
    expect(content([text("hi")])).toStrictEqual(["text-start 0", 'text-delta 0 "hi"', "text-end 0"])
    expect(content([think("hm"), edge("reasoning-end"), text("hi", "1")])).toStrictEqual([
      "reasoning-start 0",
      'reasoning-delta 0 "hm"',
      "reasoning-end 0",
      "text-start 1",
      'text-delta 1 "hi"',
      "text-end 1"
    ])
  })

  it("have ids of their own, in this answer and the ones before", () => {
    const ids = RunIds.make()
    expect(content([text("a"), edge("text-end"), text("b"), think("c")], ids)).toStrictEqual([
      "text-start 0",
      'text-delta 0 "a"',
      "text-end 0",
      "text-start 0:2",
      'text-delta 0:2 "b"',
      "reasoning-start 0:3",
      'reasoning-delta 0:3 "c"',
      "text-end 0:2",
      "reasoning-end 0:3"
    ])
    expect(content([text("d"), text("e", "0:2")], ids)).toStrictEqual([
      "text-start 0:4",
      'text-delta 0:4 "d"',
      "text-start 0:2:2",
      'text-delta 0:2:2 "e"',
      "text-end 0:4",
      "text-end 0:2:2"
    ])
  })

  it("without an id get one that says what they are", () => {
    expect(content([text("a", ""), { type: "source", id: "", sourceType: "url" }])).toStrictEqual([
      "text-start text",
      'text-delta text "a"',
      "source source",
      "text-end text"
    ])
  })

  it("that are begun again are closed first; an end of nothing says nothing", () => {
    expect(
      content([edge("text-end"), edge("text-start"), edge("text-start"), edge("text-end")])
    ).toStrictEqual(["text-start 0", "text-end 0", "text-start 0:2", "text-end 0:2"])
  })

  it("may interleave: each keeps its words, and the text of the answer is what was said when", () => {
    const { answer } = read([
      text("a", "0"),
      text("b", "1"),
      text("c", "0"),
      text("d", "1"),
      edge("text-end", "0")
    ])
    answer.close(true)
    expect(answer.text).toBe("abcd")
    expect(answer.toMessage(true)?.content).toStrictEqual([
      { type: "text", text: "ac" },
      { type: "text", text: "bd" }
    ])
  })

  it("stand in the order of their first words, not of their starts", () => {
    const { answer } = read([edge("text-start"), call("{}"), think("hm"), text("hi")])
    answer.close(true)
    expect(answer.toMessage(true)?.content.map(part => part.type)).toStrictEqual([
      "tool-call",
      "reasoning",
      "text"
    ])
  })

  it("that say nothing are in no message, and empty deltas nowhere", () => {
    const nothing: unknown = { type: "text-delta", id: "0", delta: undefined }
    const parts = [
      edge("text-start"),
      text(""),
      nothing as ModelPart.ModelPart,
      edge("text-end"),
      text("", "1")
    ]
    expect(content(parts)).toStrictEqual(["text-start 0", "text-end 0"])
    expect(read(parts).answer.toMessage(true)).toBeUndefined()
  })

  it("keep white space", () => {
    expect(content([text(" "), text("\n")])).toStrictEqual([
      "text-start 0",
      'text-delta 0 " "',
      'text-delta 0 "\\n"',
      "text-end 0"
    ])
  })

  it("merge what the provider says with each part, the later the stronger", () => {
    const { answer } = read([
      { type: "text-start", id: "0", providerMetadata: { kit: { a: 1, b: 1 } } },
      { type: "text-delta", id: "0", delta: "x", providerMetadata: { kit: { b: 2 }, other: { c: 1 } } },
      { type: "text-end", id: "0", providerMetadata: { other: { c: 2 } } }
    ])
    answer.close(true)
    expect(answer.toMessage(true)?.content).toStrictEqual([
      { type: "text", text: "x", providerOptions: { kit: { a: 1, b: 2 }, other: { c: 2 } } }
    ])
  })
})

describe("surrogate pairs", () => {
  it("that are cut in two are joined, halves that stay alone are replaced", () => {
    expect(content([text("a\ud83d"), text("\ude00b"), text("\ude00"), text("\ud83d")])).toStrictEqual([
      "text-start 0",
      'text-delta 0 "a"',
      'text-delta 0 "😀b"',
      'text-delta 0 "\ufffd"',
      'text-delta 0 "\ufffd"',
      "text-end 0"
    ])
  })

  it("of two blocks are not mixed up", () => {
    const { answer } = read([text("\ud83d", "0"), text("\ude00", "1"), text("\ude00", "0")])
    answer.close(true)
    expect(answer.toMessage(true)?.content).toStrictEqual([
      { type: "text", text: "😀" },
      { type: "text", text: "\ufffd" }
    ])
    expect(answer.text).toBe("\ufffd😀")
  })

  it("that stay alone at the end of one block do not take the words of another", () => {
    const { answer } = read([think("\ud83d"), text("a"), edge("reasoning-end"), text("b")])
    answer.close(true)
    expect(answer.text).toBe("ab")
  })

  const units = fc.array(fc.constantFrom("a", "\ud83d", "\ude00", "😀", '"'), { maxLength: 12 })

  it.prop(
    "come out the same however the text was cut",
    [units, fc.array(fc.nat(12), { maxLength: 6 })],
    ([units, cuts]) => {
      const whole = units.join("")
      const places = [0, ...cuts.filter(cut => cut < whole.length), whole.length].sort((a, b) => a - b)
      const pieces = places.slice(1).map((end, index) => whole.slice(places[index], end))
      const { answer, chunks } = read(pieces.map(piece => text(piece)))
      answer.close(true)
      expect(answer.text).toBe(whole.toWellFormed())
      const input = read([inputStart(), ...pieces.map(piece => inputDelta(piece))])
      input.answer.close(false)
      const args = input.chunks.map(chunk =>
        chunk.type === "tool-call-delta" ? chunk.payload.argsTextDelta : ""
      )
      expect(args.join("")).toBe(whole.toWellFormed())
      for (const chunk of [...chunks, ...input.chunks]) {
        expect(JSON.stringify(chunk)).not.toMatch(/\\ud[89a-f]/)
      }
    }
  )
})

describe("signatures", () => {
  it("are told once each, and stand in the end of their block", () => {
    expect(content([think("hm", "s1"), think("", "s1"), edge("reasoning-end", "0", "s1")])).toStrictEqual([
      "reasoning-start 0",
      "reasoning-signature 0 s1",
      'reasoning-delta 0 "hm"',
      'reasoning-delta 0 ""',
      "reasoning-end 0"
    ])
    const { answer, chunks } = read([think("hm"), edge("reasoning-end", "0", "s1")])
    answer.close(true)
    expect(chunks.at(-1)?.type).toBe("reasoning-end")
    expect(chunks.at(-1)).toMatchObject({
      payload: { signature: "s1", providerMetadata: { kit: { signature: "s1" } } }
    })
    expect(chunks.filter(chunk => chunk.type === "reasoning-signature")).toHaveLength(1)
  })

  it("that come with the start, or alone, are told too", () => {
    expect(content([edge("reasoning-start", "0", "s1"), edge("reasoning-end")])).toStrictEqual([
      "reasoning-start 0",
      "reasoning-signature 0 s1",
      "reasoning-end 0"
    ])
    expect(content([think("", "s2")])).toStrictEqual([
      "reasoning-start 0",
      "reasoning-signature 0 s2",
      "reasoning-end 0"
    ])
  })

  const kept = (given: ReadonlyArray<ModelPart.ModelPart>) => {
    const { answer, chunks } = read(given)
    answer.close(true)
    return {
      told: chunks.slice(1).map(short),
      ends: chunks.flatMap(chunk => (chunk.type === "reasoning-end" ? [chunk.payload.signature] : [])),
      content: answer.toMessage(true)?.content
    }
  }

  it("that come in pieces with no text between are one signature of one block", () => {
    const { content, ends, told } = kept([
      think("hm"),
      think("", "ab"),
      think("", "cd"),
      think("", "e="),
      edge("reasoning-end")
    ])
    expect(told).toStrictEqual([
      "reasoning-start 0",
      'reasoning-delta 0 "hm"',
      "reasoning-signature 0 ab",
      "reasoning-signature 0 abcd",
      "reasoning-signature 0 abcde=",
      "reasoning-end 0"
    ])
    expect(ends).toStrictEqual(["abcde="])
    expect(content).toStrictEqual([
      { type: "reasoning", text: "hm", providerOptions: { kit: { signature: "abcde=" } } }
    ])
  })

  it("of what is thought on behind them are those of another block", () => {
    expect(kept([think("a", "s1"), think("b", "s2")]).content).toStrictEqual([
      { type: "reasoning", text: "a", providerOptions: { kit: { signature: "s1" } } },
      { type: "reasoning", text: "b", providerOptions: { kit: { signature: "s2" } } }
    ])
  })

  it("of Gemini's parts are each one of its own", () => {
    const thought = (thoughtSignature: string): ModelPart.ModelPart => ({
      type: "reasoning-delta",
      id: "0",
      delta: "",
      providerMetadata: { google: { thoughtSignature } }
    })
    expect(kept([think("hm"), thought("g1"), thought("g2")]).content).toStrictEqual([
      { type: "reasoning", text: "hm", providerOptions: { google: { thoughtSignature: "g1" } } },
      { type: "reasoning", text: "", providerOptions: { google: { thoughtSignature: "g2" } } }
    ])
  })

  it("of text are metadata only", () => {
    const { answer, chunks } = read([
      { type: "text-delta", id: "0", delta: "x", providerMetadata: { google: { thoughtSignature: "s" } } }
    ])
    answer.close(true)
    expect(chunks.some(chunk => chunk.type === "reasoning-signature")).toBe(false)
    expect(answer.toMessage(true)?.content[0]?.providerOptions).toStrictEqual({
      google: { thoughtSignature: "s" }
    })
  })

  it("decide whether reasoning of a cut answer is kept", () => {
    const { answer } = read([
      think("signed", "s1"),
      edge("reasoning-end"),
      think("not signed"),
      edge("reasoning-end"),
      text("hi")
    ])
    answer.close(false)
    expect(answer.toMessage(false)?.content.map(part => part.type)).toStrictEqual(["reasoning", "text"])
    expect(answer.toMessage(true)?.content.map(part => part.type)).toStrictEqual([
      "reasoning",
      "reasoning",
      "text"
    ])
  })
})

describe("calls", () => {
  it("that are written and sent are one call", () => {
    expect(
      content([inputStart(), inputDelta('{"n"'), inputDelta(":1}"), inputEnd(), call('{"n":1}')])
    ).toStrictEqual([
      "input-streaming-start c",
      'tool-call-delta c {"n"',
      "tool-call-delta c :1}",
      "input-streaming-end c",
      'tool-call c a {"n":1}'
    ])
  })

  it("that are sent again with the same arguments are one call, with others they are two", () => {
    expect(content([call('{"n":1}'), call('{ "n": 1 }'), call({ n: 1 })])).toStrictEqual([
      'tool-call c a {"n":1}'
    ])
    expect(content([call('{"n":'), call('{"n":')])).toStrictEqual(["tool-call c a undefined"])
    expect(
      content([call('{"n":1}'), call('{"n":2}'), call('{"n":1}'), call('{"n":1}', "c", "b")])
    ).toStrictEqual(['tool-call c a {"n":1}', 'tool-call c:2 a {"n":2}', 'tool-call c:3 b {"n":1}'])
  })

  it("whose end or sending is missing are ended, and made when their arguments are complete", () => {
    expect(content([inputStart(), inputDelta("{}"), call("{}")])).toStrictEqual([
      "input-streaming-start c",
      "tool-call-delta c {}",
      "input-streaming-end c",
      "tool-call c a {}"
    ])
    expect(content([inputStart(), inputDelta("{}")])).toStrictEqual([
      "input-streaming-start c",
      "tool-call-delta c {}",
      "input-streaming-end c",
      "tool-call c a {}"
    ])
  })

  it("are not told by deltas and ends that belong to no start, nor by what comes behind their end", () => {
    expect(
      content([
        inputDelta("{"),
        inputEnd(),
        inputStart(),
        inputDelta("{}"),
        inputEnd(),
        inputDelta(" "),
        call("{}"),
        inputDelta(" ")
      ])
    ).toStrictEqual([
      "input-streaming-start c",
      "tool-call-delta c {}",
      "input-streaming-end c",
      "tool-call c a {}"
    ])
  })

  it("without an id get one each, also when they are written side by side", () => {
    expect(content([call("{}", ""), call("{}", "")])).toStrictEqual([
      "tool-call made-1 a {}",
      "tool-call made-2 a {}"
    ])
    const written = [
      inputStart("", "a"),
      inputDelta('{"n":1}', ""),
      inputEnd(""),
      inputStart("", "b"),
      inputDelta('{"n":2}', ""),
      inputEnd("")
    ]
    const calls = ['tool-call made-1 a {"n":1}', 'tool-call made-2 b {"n":2}']
    const isCall = (line: string) => line.startsWith("tool-call made")
    expect(content(written).filter(isCall)).toStrictEqual(calls)
    expect(
      content([...written, call('{"n":1}', "", "a"), call('{"n":2}', "", "b")]).filter(isCall)
    ).toStrictEqual(calls)
  })

  it.each([
    ["", {}],
    ["  ", {}],
    [undefined, {}],
    [null, {}],
    ['{"n":1}', { n: 1 }],
    [{ n: 1 }, { n: 1 }],
    ['{"s":"\\ud83d"}', { s: "\ufffd" }],
    [
      { s: "\ud83d", n: 1n },
      { s: "\ufffd", n: "1" }
    ],
    ["[1]", [1], { malformedArguments: [1] }]
  ] as ReadonlyArray<readonly [input: unknown, expected: unknown, told?: unknown]>)(
    "with arguments %s",
    (input, expected, told = expected) => {
      const { answer } = read([call(input)])
      expect(answer.calls.map(({ input, malformed, part }) => [input, part.input, malformed])).toStrictEqual([
        [expected, told, undefined]
      ])
    }
  )

  it("whose arguments are no JSON say why, and hold them as a value", () => {
    const { answer } = read([call('{"n":')])
    expect(answer.calls[0]).toMatchObject({
      malformed: expect.stringMatching(/JSON/),
      part: { input: { malformedArguments: '{"n":' } }
    })
    expect("args" in (answer.calls[0]?.chunk.payload ?? {})).toBe(false)
  })

  it("that broke off tear the answer, those that the provider ended do not", () => {
    const isTorn = (...parts: ReadonlyArray<ModelPart.ModelPart>) => read(parts).answer.isTorn
    expect(isTorn(inputStart(), inputDelta('{"n":'))).toBe(true)
    expect(isTorn(inputStart(), inputDelta('{"n":'), inputEnd())).toBe(false)
    expect(isTorn(inputStart(), inputDelta('{"n":1}'))).toBe(false)
    expect(isTorn(inputStart())).toBe(false)
    expect(isTorn(inputStart(), inputDelta('{"n":'), call("{}"))).toBe(false)
    expect(
      isTorn(inputStart("c"), inputDelta("{", "c"), inputEnd("c"), inputStart("d"), inputDelta("{", "d"))
    ).toBe(true)
  })

  it("of a cut answer are ended and not made", () => {
    const { answer, chunks } = read([inputStart(), inputDelta("{}")])
    answer.close(false)
    expect(chunks.slice(1).map(short)).toStrictEqual([
      "input-streaming-start c",
      "tool-call-delta c {}",
      "input-streaming-end c"
    ])
    expect(answer.toMessage(false)).toBeUndefined()
  })

  it("merge what the provider says of their arguments and of themselves", () => {
    const { answer } = read([
      { type: "tool-input-start", id: "c", toolName: "a", providerMetadata: { kit: { a: 1 } } },
      { type: "tool-input-end", id: "c", providerMetadata: { kit: { b: 2 } } },
      { type: "tool-call", toolCallId: "c", toolName: "a", input: "{}", providerMetadata: { kit: { a: 3 } } }
    ])
    expect(answer.calls[0]?.part.providerOptions).toStrictEqual({ kit: { a: 3, b: 2 } })
    expect(answer.calls[0]?.chunk.payload.providerMetadata).toStrictEqual({ kit: { a: 3, b: 2 } })
  })
})

describe("ids and names that are blank", () => {
  const blank = { id: "", modelId: "" }
  const response = (part: object): ModelPart.ModelPart => ({ type: "response-metadata", ...part })

  it.each([
    { said: [blank, { id: "r1", modelId: "m1" }, blank] },
    { said: [{ id: "r1" }, { ...blank, modelId: "m1" }, { id: " ", modelId: "\t" }] },
    {
      said: [
        { id: "r1", modelId: "m1" },
        { id: "r2", modelId: "m2" }
      ]
    }
  ])("of a response are absent, and the first of each stays: $said", ({ said }) => {
    const { answer, chunks } = read(said.map(response))
    expect(answer.response).toStrictEqual({ id: "r1", modelId: "m1" })
    expect(JSON.stringify(chunks)).not.toMatch(/"(id|modelId)":"\s*"/)
    expect(chunks.at(-1)).toMatchObject({ payload: { id: "r1", modelId: "m1" } })
  })

  it("of a response that has no other leave nothing, and the zero of its clock does not overwrite a time", () => {
    const { answer, chunks } = read([response(blank)])
    expect(answer.response).toStrictEqual({})
    expect(chunks.at(-1)).toMatchObject({ type: "response-metadata", payload: {} })
    const at = new Date(1_700_000_000_000)
    expect(
      read([response({ timestamp: at }), response({ timestamp: new Date(0) })]).answer.response
    ).toStrictEqual({ timestamp: at })
  })

  it("of a call are those of its other parts, or made up", () => {
    expect(content([inputStart("c", "a"), inputDelta("{}"), call("{}", "c", "")])).toContain(
      "tool-call c a {}"
    )
    expect(content([inputStart("c", " "), inputDelta("{}"), call("{}", "c", "a")])).toStrictEqual([
      "tool-call c a {}"
    ])
    expect(content([call("{}", " ")])).toStrictEqual(["tool-call made-1 a {}"])
  })

  it("of a result that comes late are those of its call", () => {
    const ids = RunIds.make()
    content([{ ...Object(call("{}", "p", "search")), providerExecuted: true }], ids)
    const { chunks } = read([result("p", 1, "")], ids)
    expect(chunks.at(-1)).toMatchObject({ payload: { toolCallId: "p", toolName: "search" } })
  })
})

describe("results of the provider's", () => {
  const provided: ModelPart.ModelPart = {
    type: "tool-call",
    toolCallId: "c",
    toolName: "a",
    input: "{}",
    providerExecuted: true
  }

  it("belong to their call; a second one is dropped", () => {
    expect(
      content([provided, { ...result("c"), result: undefined } as ModelPart.ModelPart, result("c", 2)])
    ).toStrictEqual(["tool-call c a {}", "tool-result c null"])
  })

  it("make a call of arguments that were only written, and of nothing at all", () => {
    expect(content([inputStart(), inputDelta('{"n":1}'), result("c")])).toStrictEqual([
      "input-streaming-start c",
      'tool-call-delta c {"n":1}',
      "input-streaming-end c",
      'tool-call c a {"n":1}',
      "tool-result c 1"
    ])
    expect(content([result("x")])).toStrictEqual(["tool-call x a {}", "tool-result x 1"])
  })

  it("make their call the provider's", () => {
    const { answer } = read([call("{}"), result("c")])
    expect(
      answer.calls.map(({ isProviderExecuted, part }) => [isProviderExecuted, part.providerExecuted])
    ).toStrictEqual([[true, true]])
  })

  it("may come with a later answer, under the id that the run gave the call", () => {
    const ids = RunIds.make()
    expect(content([text("x", "c"), provided], ids)).toContain("tool-call c:2 a {}")
    expect(content([result("c")], ids)).toStrictEqual(["tool-result c:2 1"])
    expect(content([result("c")], ids)).toStrictEqual(["tool-call c:3 a {}", "tool-result c:3 1"])
  })

  it("without ids belong to their calls one by one", () => {
    const nameless = { ...provided, toolCallId: "" } as const
    expect(content([nameless, nameless, result("", 1), result("", 2), result("", 3)])).toStrictEqual([
      "tool-call made-1 a {}",
      "tool-call made-2 a {}",
      "tool-result made-1 1",
      "tool-result made-2 2"
    ])
  })
})

describe("the end of an answer", () => {
  const finish = (
    reason: ModelPart.Finish["reason"],
    usage: ModelPart.Finish["usage"] = {},
    rawReason?: string
  ): ModelPart.ModelPart => ({
    type: "finish",
    reason,
    usage,
    ...(rawReason === undefined ? {} : { rawReason })
  })

  it("is the first specific reason, with the last figures", () => {
    const { answer } = read([
      finish("other", { inputTokens: 1, outputTokens: 1 }, "eos"),
      finish("tool-calls", { outputTokens: 2 }, "tool_calls"),
      finish("stop", { inputTokens: 3 }, "stop")
    ])
    expect(answer.finished).toStrictEqual({ reason: "tool-calls", rawReason: "tool_calls" })
    expect(answer.usage).toStrictEqual({ inputTokens: 3, outputTokens: 2 })
  })

  it("lets nothing count that comes behind it but usage and metadata", () => {
    const { answer, chunks } = read([
      text("hi"),
      finish("stop"),
      text("late"),
      edge("text-start", "1"),
      call("{}"),
      { type: "source", id: "s", sourceType: "url" },
      { type: "raw", value: 1 },
      { type: "response-metadata", id: "late" },
      { type: "error", error: "late" },
      { type: "finish", reason: "stop", usage: { inputTokens: 1 }, providerMetadata: { kit: { a: 1 } } }
    ])
    answer.close(true)
    expect(chunks.map(chunk => chunk.type)).toStrictEqual([
      "step-start",
      "text-start",
      "text-delta",
      "text-end"
    ])
    expect(answer.failure).toBeUndefined()
    expect(answer.response).toStrictEqual({})
    expect(answer.usage).toStrictEqual({ inputTokens: 1 })
    expect(answer.providerMetadata).toStrictEqual({ kit: { a: 1 } })
  })

  it("is the first error, also when it says nothing", () => {
    expect(
      read([
        { type: "error", error: undefined },
        { type: "error", error: "second" }
      ]).answer.failure
    ).toStrictEqual({
      error: undefined
    })
  })

  it("tells the start of a step that had no part, once", () => {
    const { answer, chunks } = read([{ type: "stream-start", warnings: [{ type: "w" }] }])
    expect(chunks).toHaveLength(0)
    answer.close(true)
    answer.begin()
    expect(chunks).toStrictEqual([
      {
        type: "step-start",
        runId: "r",
        from: "AGENT",
        payload: { messageId: "m", request: {}, warnings: [{ type: "w" }] }
      }
    ])
  })
})

describe("a reader that stops the run on the stack of a chunk", () => {
  /** Closes the answer when the chunk of this place is emitted. */
  const stopped = (parts: ReadonlyArray<ModelPart.ModelPart>, place: number) => {
    const chunks: Array<Chunk.Chunk> = []
    let after: number | undefined
    const answer = Answer.make({
      runId: "r",
      messageId: "m",
      ids: RunIds.make(),
      makeCallId: () => "made",
      includeRawChunks: true,
      emit: chunk => {
        chunks.push(chunk)
        if (chunks.length !== place) return
        answer.close(false)
        after = chunks.length
      }
    })
    for (const part of parts) if (after === undefined) answer.accept(part)
    if (after === undefined) answer.close(false)
    return { chunks, after: after ?? chunks.length }
  }

  it.prop(
    "finds every start with one end, and nothing behind it",
    [fc.array(anyPart, { maxLength: 10 }), fc.integer({ min: 1, max: 20 })],
    ([drawn, place]) => {
      const parts = drawn.flatMap(part => (part === "turn" ? [] : [part]))
      const { after, chunks } = stopped(parts, place)
      const open = new Set<string>()
      for (const chunk of chunks) {
        const [what, edge] = [
          short(chunk).replace(/-(start|end)\b/, ""),
          /-(start|end)$/.exec(chunk.type)?.[1]
        ]
        if (chunk.type === "step-start" || edge === undefined) continue
        expect(open.has(what)).toBe(edge === "end")
        if (edge === "start") open.add(what)
        else open.delete(what)
      }
      expect([...open]).toStrictEqual([])
      expect(chunks).toHaveLength(after)
    }
  )

  it("ends a block of half a character once", () => {
    const parts = [text("\ud83d"), edge("text-start")]
    expect(stopped(parts, 3).chunks.map(short)).toStrictEqual([
      "step-start",
      "text-start 0",
      'text-delta 0 "\ufffd"',
      "text-end 0"
    ])
  })
})

describe("files", () => {
  it("are told as they came, and stand in the message as base64 text", () => {
    const providerMetadata = { kit: { a: 1 } }
    const { answer, chunks } = read([
      { type: "file", data: new Uint8Array([1, 2]), mediaType: "image/png" },
      { type: "file", data: "AQI=", mediaType: "image/gif", providerMetadata }
    ])
    expect(chunks.slice(1).map(chunk => (chunk.type === "file" ? chunk.payload : undefined))).toStrictEqual([
      { data: new Uint8Array([1, 2]), mimeType: "image/png" },
      { data: "AQI=", base64: "AQI=", mimeType: "image/gif", providerMetadata }
    ])
    expect(answer.toMessage(true)?.content).toStrictEqual([
      { type: "file", data: "AQI=", mediaType: "image/png" },
      { type: "file", data: "AQI=", mediaType: "image/gif", providerOptions: providerMetadata }
    ])
  })
})

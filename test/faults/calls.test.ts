/** Calls of tools: executed once, with what the model wrote, or not at all; each with one outcome that is true. */
import { Errors } from "eddy"
import { createTool } from "eddy/promise"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { finishOf, only } from "../agent/kit.js"
import { collect, latch, refuseUnhandledRejections, typesOf } from "../support/readers.js"
import * as Kit from "./kit.js"

refuseUnhandledRejections()

const ids = (chunks: ReadonlyArray<{ readonly payload: { readonly toolCallId: string } }>) =>
  chunks.map(({ payload }) => payload.toolCallId)

/** What the model was told in the prompt's last message. */
const toldLast = (place: Pick<Kit.Played, "calls">) => {
  const last = Kit.lastPrompt(place).at(-1)
  return last?.role === "tool" ? last.content.map(({ output, toolCallId }) => ({ toolCallId, output })) : []
}

/** The calls that stand in the prompt. */
const calledBefore = (place: Pick<Kit.Played, "calls">) =>
  Kit.lastPrompt(place).flatMap(message =>
    message.role === "assistant"
      ? message.content.flatMap(part => (part.type === "tool-call" ? [[part.toolCallId, part.input]] : []))
      : []
  )

describe("a call is executed once", () => {
  const q1 = '{"q":1}'
  const kinds: ReadonlyArray<readonly [what: string, parts: ReadonlyArray<Kit.Part>]> = [
    [
      "with blanks behind its arguments",
      [...Kit.writes("c1", "echo", q1, "", " "), Kit.written("c1"), Kit.call("c1", "echo", q1)]
    ],
    ["with blanks behind its arguments, never sent", [...Kit.writes("c1", "echo", q1, "", " ", "\n")]],
    [
      "with arguments that go on after their end",
      [
        ...Kit.writes("c1", "echo", q1),
        Kit.written("c1"),
        ...Kit.writes("c1", "echo").slice(1),
        Kit.call("c1", "echo", q1)
      ]
    ],
    ["sent twice", [Kit.call("c1", "echo", q1), Kit.call("c1", "echo", q1)]],
    ["sent again with blanks", [Kit.call("c1", "echo", q1), Kit.call("c1", "echo", '{ "q": 1 } ')]],
    ["sent again as an object", [Kit.call("c1", "echo", q1), Kit.call("c1", "echo", { q: 1 })]],
    ["sent again without arguments", [Kit.call("c1", "echo", q1), Kit.call("c1", "echo", "")]],
    ["sent again with a blank for arguments", [Kit.call("c1", "echo", q1), Kit.call("c1", "echo", " ")]],
    [
      "written and sent, and sent again",
      [
        ...Kit.writes("c1", "echo", q1),
        Kit.written("c1"),
        Kit.call("c1", "echo", q1),
        Kit.call("c1", "echo", "")
      ]
    ],
    [
      "written under one id and sent under another",
      [...Kit.writes("w1", "echo", '{"q"', ":1}"), Kit.written("w1"), Kit.call("c1", "echo", q1)]
    ],
    [
      "written under an id and sent without one",
      [...Kit.writes("w1", "echo", q1), Kit.written("w1"), Kit.call(undefined, "echo", q1)]
    ]
  ]

  it.each(kinds)("%s", async (_, parts) => {
    const place = await Kit.run([[...parts, Kit.finish("tool-calls")], Kit.replies("ok")])
    expect(place.executed).toStrictEqual([{ q: 1 }])
    expect(only(place.chunks, "tool-call")).toHaveLength(1)
    expect(only(place.chunks, "tool-result")).toHaveLength(1)
    expect(calledBefore(place).map(([, input]) => input)).toStrictEqual([{ q: 1 }])
  })

  it("but two calls that ask for the same are two, as long as their ids differ or are missing", async () => {
    const { executed, ...place } = await Kit.run([
      [
        Kit.call("c1", "echo", q1),
        Kit.call("c2", "echo", q1),
        Kit.call("", "echo", q1),
        Kit.call(undefined, "echo", { q: 1 }),
        Kit.finish("tool-calls")
      ],
      Kit.replies("ok")
    ])
    expect(executed).toHaveLength(4)
    expect(new Set(ids(only(place.chunks, "tool-result"))).size).toBe(4)
    expect(toldLast(place).map(({ toolCallId }) => toolCallId)).toStrictEqual(
      calledBefore(place).map(([id]) => id)
    )
  })

  it("and two whose arguments were written under other ids are two", async () => {
    const { executed } = await Kit.run([
      [
        ...["w1", "w2"].flatMap(id => [...Kit.writes(id, "echo", q1), Kit.written(id)]),
        Kit.call("c1", "echo", q1),
        Kit.call("c2", "echo", q1),
        Kit.finish("tool-calls")
      ],
      Kit.replies("ok")
    ])
    expect(executed).toHaveLength(2)
  })
})

describe("calls as local servers send them", () => {
  it("whole, without ids, arguments as objects, under a finish that denies them", async () => {
    const place = await Kit.run([
      [
        { type: "response-metadata", id: "one" },
        Kit.call(undefined, "echo", { city: "Zürich" }),
        { type: "response-metadata", id: "two" },
        Kit.call(undefined, "echo", { city: "Oslo" }),
        Kit.finish("stop")
      ],
      [Kit.call(undefined, "echo", { city: "Zürich" }), Kit.finish("stop")],
      Kit.replies("ok")
    ])
    expect(place.calls).toHaveLength(3)
    expect(place.executed).toStrictEqual([{ city: "Zürich" }, { city: "Oslo" }, { city: "Zürich" }])
    const called = calledBefore(place)
    expect(new Set(called.map(([id]) => id)).size).toBe(3)
    expect(called.map(([, input]) => input)).toStrictEqual(place.executed)
    const results = Kit.lastPrompt(place).flatMap(message =>
      message.role === "tool" ? message.content.map(({ output, toolCallId }) => [toolCallId, output]) : []
    )
    expect(results).toStrictEqual(called.map(([id, value]) => [id, { type: "json", value }]))
    expect(only(place.chunks, "step-finish").map(({ payload }) => payload.stepResult.reason)).toStrictEqual([
      "tool-calls",
      "tool-calls",
      "stop"
    ])
  })

  it("with ids that each answer uses again: results go to their own calls", async () => {
    const place = await Kit.run([
      [Kit.call("0", "echo", '{"n":1}'), Kit.call("1", "echo", '{"n":2}'), Kit.finish("tool-calls")],
      [Kit.call("0", "echo", '{"n":3}'), Kit.finish("tool-calls")],
      Kit.replies("ok")
    ])
    expect(place.executed).toStrictEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    expect(new Set(calledBefore(place).map(([id]) => id)).size).toBe(3)
    expect(toldLast(place)).toMatchObject([{ output: { value: { n: 3 } } }])
  })
})

describe("an answer that was cut off executes nothing", () => {
  const cut: ReadonlyArray<readonly [reason: string, parts: ReadonlyArray<Kit.Part>]> = [
    ["length", [Kit.call("c1", "echo", '{"path":"a","content":"trunc"}')]],
    ["content-filter", [Kit.call("c1", "echo", '{"path":"a","content":"trunc"}')]],
    ["length", [...Kit.writes("c1", "echo", '{"path":"a","con')]],
    ["length", [...Kit.writes("c1", "echo", '{"path":"a","con'), Kit.written("c1")]],
    ["length", [...Kit.text("so"), Kit.call("c1", "echo", "")]]
  ]

  it.each(cut)("%s", async (reason, parts) => {
    const { calls, chunks, executed, output } = await Kit.run([
      [...parts, Kit.finish(reason)],
      Kit.replies("no")
    ])
    expect(executed).toStrictEqual([])
    expect(calls).toHaveLength(1)
    expect(only(chunks, "tool-result")).toStrictEqual([])
    const errors = only(chunks, "tool-error").map(({ payload }) => payload)
    expect(errors.map(({ toolCallId }) => toolCallId)).toStrictEqual(["c1"])
    expect(errors[0]?.error).toBeInstanceOf(Errors.ToolCallCutOff)
    expect(await output.finishReason).toBe(reason)
    expect(output.status).toBe("success")
  })

  const torn: ReadonlyArray<readonly [what: string, parts: ReadonlyArray<Kit.Entry>]> = [
    ["the end", []],
    ["the end of its arguments, and of the answer", [Kit.written("c1")]],
    ["a stream that fails", [Kit.breaks(new Error("reset"))]],
    ["an error part", [Kit.fails(new Error("reset"))]],
    ["a finish that says stop", [Kit.finish("stop")]],
    ["a finish that says nothing", [Kit.finish(null)]]
  ]

  it.each(torn)("in the middle of arguments, by %s: the run has failed", async (_, end) => {
    const { calls, chunks, executed, output } = await Kit.run([
      [...Kit.text("so"), ...Kit.writes("c1", "echo", '{"path":"a","con'), ...end],
      Kit.replies("no")
    ])
    expect(executed).toStrictEqual([])
    expect(calls).toHaveLength(1)
    expect(only(chunks, "tool-call-input-streaming-start")).toHaveLength(1)
    expect(only(chunks, "tool-call-input-streaming-end")).toHaveLength(1)
    expect(only(chunks, "tool-result")).toStrictEqual([])
    expect(finishOf(chunks).stepResult.reason).toBe("error")
    await expect(output.text).rejects.toBe(output.error)
  })

  it("arguments that the provider calls complete and that are none are told to the model, no more often than steps allow", async () => {
    const { calls, chunks, executed } = await Kit.run(
      call => [
        ...Kit.writes(`c${call}`, "echo", '{"path":"a.txt","content":"abc'),
        Kit.written(`c${call}`),
        Kit.call(`c${call}`, "echo", '{"path":"a.txt","content":"abc'),
        Kit.finish("tool-calls")
      ],
      { maxSteps: 3 }
    )
    expect(calls).toHaveLength(3)
    expect(executed).toStrictEqual([])
    for (const { payload } of only(chunks, "tool-error")) {
      expect(payload.error).toBeInstanceOf(Errors.InvalidToolArguments)
    }
    expect(finishOf(chunks).stepResult.stoppedBy).toBe("max-steps")
  })
})

describe("what a tool throws is an error, what it returns is a result", () => {
  const thrown: ReadonlyArray<readonly [what: string, thrown: unknown, told: string]> = [
    ["an error", new Error("no such file"), "no such file"],
    ["an error without words", new RangeError(), "RangeError"],
    ["a string", "no such file", "no such file"],
    ["a record", { code: 7 }, '{"code":7}'],
    ["what says that it is an error", { isError: true, message: "bad key" }, "bad key"],
    ["half a surrogate pair", new Error("no \ud83d"), "no \ufffd"]
  ]

  it.each(thrown)("thrown: %s", async (_, cause, told) => {
    const failing = createTool({ id: "failing", execute: () => Promise.reject(cause) })
    const place = await Kit.run(
      [[Kit.call("c1", "failing"), Kit.finish("tool-calls")], Kit.replies("ok")],
      {},
      { agent: { tools: { failing } } }
    )
    expect(only(place.chunks, "tool-result")).toStrictEqual([])
    expect(only(place.chunks, "tool-error")).toHaveLength(1)
    expect(toldLast(place)).toStrictEqual([{ toolCallId: "c1", output: { type: "error-text", value: told } }])
    expect(await place.output.text).toBe("ok")
  })

  const returned: ReadonlyArray<readonly [what: string, value: unknown]> = [
    ["an error", new Error("just a value")],
    ["what looks like one", { error: "x" }],
    ["what looks like a thrown one", { name: "Error", message: "x", stack: "at x" }],
    ["false", false],
    ["an empty text", ""],
    ["what says that it is no error", { isError: false, content: [] }]
  ]

  it.each(returned)("returned: %s", async (_, value) => {
    const returning = createTool({ id: "returning", execute: async () => value })
    const { chunks } = await Kit.run(
      [[Kit.call("c1", "returning"), Kit.finish("tool-calls")], Kit.replies("ok")],
      {},
      { agent: { tools: { returning } } }
    )
    expect(only(chunks, "tool-error")).toStrictEqual([])
    expect(only(chunks, "tool-result").map(({ payload }) => payload)).toStrictEqual([
      { toolCallId: "c1", toolName: "returning", args: {}, result: value }
    ])
  })

  const inBand = { isError: true as const, content: [{ type: "text", text: "bad key" }] }

  it.each([
    ["without a schema", createTool({ id: "remote", execute: async () => inBand })],
    [
      "with a schema of what it is not",
      createTool({
        id: "remote",
        outputSchema: z.object({ temperature: z.number() }),
        execute: async () => inBand as never
      })
    ]
  ])("a result that says that it is an error is a result that says so, %s", async (_, remote) => {
    const place = await Kit.run(
      [[Kit.call("c1", "remote"), Kit.finish("tool-calls")], Kit.replies("ok")],
      {},
      { agent: { tools: { remote } } }
    )
    expect(only(place.chunks, "tool-error")).toStrictEqual([])
    expect(only(place.chunks, "tool-result").map(({ payload }) => payload)).toMatchObject([
      { toolCallId: "c1", isError: true, result: inBand }
    ])
    expect(toldLast(place)).toStrictEqual([
      { toolCallId: "c1", output: { type: "error-text", value: "bad key" } }
    ])
  })
})

describe("outcomes of one step", () => {
  it("are seen as they come, and stand in the prompt in call order", async () => {
    const gate = latch()
    const quick = createTool({ id: "quick", execute: async () => "a" })
    const slow = createTool({
      id: "slow",
      execute: async () => {
        await gate.wait
        return "b"
      }
    })
    const place = Kit.set(
      [[Kit.call("b", "slow"), Kit.call("a", "quick"), Kit.finish("tool-calls")], Kit.replies("ok")],
      { agent: { tools: { quick, slow } } }
    )
    const output = await place.agent.stream("go", Kit.once)
    const seen = []
    for await (const chunk of output.fullStream) {
      seen.push(chunk)
      // The slow tool waits until the other's result was seen.
      if (chunk.type === "tool-result") gate.open()
    }
    expect(ids(only(seen, "tool-result"))).toStrictEqual(["a", "b"])
    expect(toldLast(place).map(({ toolCallId }) => toolCallId)).toStrictEqual(["b", "a"])
    expect(ids(await output.toolResults)).toStrictEqual(["b", "a"])
  })
})

describe("what a tool writes", () => {
  it("comes between the chunks as it is, when it is data", async () => {
    const writing = createTool({
      id: "writing",
      execute: async (_, { writer }) => {
        void writer.custom({ type: "data-workspace", data: { a: 1 } })
        await writer.custom({ type: "data-zz", data: undefined, transient: true })
        return "written"
      }
    })
    const { chunks, output } = await Kit.run(
      [
        [
          ...Kit.text("look"),
          { type: "zz-future", a: 1 },
          Kit.call("c1", "writing"),
          Kit.finish("tool-calls")
        ],
        Kit.replies("ed")
      ],
      {},
      { agent: { tools: { writing } } }
    )
    const data = chunks.filter(({ type }) => type.startsWith("data-"))
    expect(data).toStrictEqual([
      { type: "data-workspace", data: { a: 1 }, runId: output.runId, from: "USER" },
      { type: "data-zz", data: undefined, transient: true, runId: output.runId, from: "USER" }
    ])
    expect(await output.text).toBe("looked")
    expect(chunks.at(-1)?.type).toBe("finish")
  })

  const forged: ReadonlyArray<readonly [what: string, part: unknown]> = [
    ["a finish", { type: "finish", payload: { stepResult: { reason: "stop" } } }],
    ["an error", { type: "error", payload: { error: "mine" } }],
    [
      "a result of its own",
      { type: "tool-result", payload: { toolCallId: "c1", toolName: "forging", result: 1 } }
    ],
    ["text", { type: "text-delta", payload: { id: "0", text: "mine" } }],
    ["what nobody knows", { type: "zz-future", data: 1 }],
    ["what has no type", { data: 1 }],
    ["nothing", undefined]
  ]

  it.each(forged)("is dropped when it is no data, and the log says so: %s", async (_, part) => {
    const forging = createTool({
      id: "forging",
      // No await: a tool need not wait for what it writes.
      execute: (_, { writer }) => void writer.custom(part as never)
    })
    const { chunks, lines, output } = await Kit.run(
      [[Kit.call("c1", "forging"), Kit.finish("tool-calls")], Kit.replies("ok")],
      {},
      { agent: { tools: { forging } } }
    )
    expect(typesOf(chunks)).toStrictEqual([
      "start",
      "step-start",
      "tool-call",
      "tool-result",
      "step-finish",
      "step-start",
      "text-start",
      "text-delta",
      "text-end",
      "step-finish",
      "finish"
    ])
    expect(await output.getFullOutput()).toMatchObject({ text: "ok", status: "success" })
    expect(lines).toStrictEqual([["warn", expect.stringContaining('"forging" wrote a part')]])
  })
})

describe("calls that the provider executes", () => {
  const searching = Kit.call("p1", "search", '{"q":1}', { providerExecuted: true })

  const found = (toolCallId: string, result: unknown): Kit.Part => ({
    type: "tool-result",
    toolCallId,
    toolName: "search",
    result
  })

  it("have the result that comes under an id of its own", async () => {
    const place = await Kit.run([
      [searching, Kit.call("c1", "echo"), found("p1-result", ["hit"]), Kit.finish("tool-calls")],
      Kit.replies("ok")
    ])
    expect(ids(only(place.chunks, "tool-call"))).toStrictEqual(["p1", "c1"])
    expect(only(place.chunks, "tool-result").map(({ payload }) => payload)).toMatchObject([
      { toolCallId: "p1", result: ["hit"], providerExecuted: true },
      { toolCallId: "c1" }
    ])
    expect(calledBefore(place).map(([id]) => id)).toStrictEqual(["p1", "c1"])
  })

  it("have each the result that is theirs, under ids of their own or not", async () => {
    const { chunks } = await Kit.run([
      [
        searching,
        Kit.call("p2", "search", '{"q":2}', { providerExecuted: true }),
        found("p2", 2),
        found("other", 1),
        found("p2", "again"),
        ...Kit.text("ok"),
        Kit.finish()
      ]
    ])
    const results = only(chunks, "tool-result").map(({ payload }) => [payload.toolCallId, payload.result])
    expect(results).toStrictEqual([
      ["p2", 2],
      ["p1", 1]
    ])
  })
})

it("a reader that comes while a tool runs sees what it has written, once", async () => {
  const gate = latch()
  const writing = createTool({
    id: "writing",
    execute: async (_, { writer }) => {
      await writer.write("half")
      await gate.wait
      await writer.write("whole")
    }
  })
  const { agent } = Kit.set([[Kit.call("c1", "writing"), Kit.finish("tool-calls")], Kit.replies("ok")], {
    agent: { tools: { writing } }
  })
  const output = await agent.stream("go", Kit.once)
  let late: Promise<ReadonlyArray<unknown>> | undefined
  const seen = []
  for await (const chunk of output.fullStream) {
    seen.push(chunk)
    if (chunk.type === "tool-output" && late === undefined) {
      late = collect(output.fullStream)
      gate.open()
    }
  }
  expect(await late).toStrictEqual(seen)
  expect(only(seen, "tool-output").map(({ payload }) => payload.output)).toStrictEqual(["half", "whole"])
})

it.each(["", " ", "null", " null\n"])("arguments that are none are an empty object: %j", async written => {
  const place = await Kit.run([
    [Kit.call("c1", "echo", written), Kit.finish("tool-calls")],
    Kit.replies("ok")
  ])
  expect(place.executed).toStrictEqual([{}])
  expect(only(place.chunks, "tool-call")[0]?.payload.args).toStrictEqual({})
  expect(Kit.lastPrompt(place).slice(-2)).toMatchObject([
    { content: [{ toolCallId: "c1", toolName: "echo", input: {} }] },
    { content: [{ toolCallId: "c1", toolName: "echo" }] }
  ])
})

describe("a call that no provider takes back goes back as one that every provider takes", () => {
  const odd: ReadonlyArray<readonly [what: string, call: Kit.Part, name: string, input: unknown]> = [
    ["a name with a dot", Kit.call("c1", "multi_tool_use.parallel"), "multi_tool_use_parallel", {}],
    ["a name with a token of the model's", Kit.call("c1", "echo<|end|>"), "echo__end__", {}],
    ["half a surrogate pair for a name", Kit.call("c1", "no\ud83d"), "no_", {}],
    ["no name", Kit.call("c1", ""), "_", {}],
    ["a number for arguments", Kit.call("c1", "echo", "5"), "echo", { malformedArguments: 5 }],
    ["a list for arguments", Kit.call("c1", "echo", "[1]"), "echo", { malformedArguments: [1] }]
  ]

  it.each(odd)("%s", async (_, part, toolName, input) => {
    const place = await Kit.run([[part, Kit.finish("tool-calls")], Kit.replies("ok")])
    expect(place.executed).toStrictEqual([])
    expect(Kit.lastPrompt(place).slice(-2)).toMatchObject([
      { content: [{ toolCallId: "c1", toolName, input }] },
      { content: [{ toolCallId: "c1", toolName, output: { type: "error-text" } }] }
    ])
    expect(only(place.chunks, "tool-call")[0]?.payload.toolName).toBe(part["toolName"])
  })
})

/** What makes a run go on, and what makes it stop: what the answer holds, and not what the provider calls it. */
import { createTool } from "eddy/promise"
import { describe, expect, it, vi } from "vitest"
import { finishOf, only } from "../agent/kit.js"
import { collect, latch, refuseUnhandledRejections, typesOf } from "../support/readers.js"
import * as Kit from "./kit.js"

refuseUnhandledRejections()

const nested = { inputTokens: { total: 5 }, outputTokens: { total: 2 } }

/** As it is, also when it is `undefined`. */
const finishing = (finishReason: unknown, usage: unknown): Kit.Part => ({
  type: "finish",
  finishReason,
  usage
})

/** The word for the end of an answer, as providers and their packages write it, and what is kept of it. */
const words: ReadonlyArray<readonly [word: unknown, reason: string, raw: string | undefined]> = [
  ["stop", "stop", undefined],
  ["unknown", "other", undefined],
  ["other", "other", undefined],
  [undefined, "other", undefined],
  [null, "other", undefined],
  [3, "other", undefined],
  [["stop"], "other", undefined],
  [{}, "other", undefined],
  [{ type: "stop" }, "other", undefined],
  [{ unified: "stop", raw: "end_turn" }, "stop", "end_turn"],
  [{ unified: "stop", raw: undefined }, "stop", undefined],
  [{ unified: "eos", raw: "eos" }, "other", "eos"],
  ["end_turn", "other", "end_turn"]
]

describe("an answer of text alone", () => {
  it.each(words)("whose finish says %j is one call of the model", async (word, reason, raw) => {
    const { calls, chunks, output } = await Kit.run(
      () => [...Kit.text("hi"), finishing(word, nested)],
      { maxSteps: 20 },
      { version: "v3" }
    )
    expect(calls).toHaveLength(1)
    expect(finishOf(chunks).stepResult).toStrictEqual({
      reason,
      isContinued: false,
      ...(raw === undefined ? {} : { rawReason: raw })
    })
    expect(await output.usage).toStrictEqual({ inputTokens: 5, outputTokens: 2, totalTokens: 7 })
  })

  it.each([undefined, null, "many", { inputTokens: Number.NaN }, { inputTokens: { total: "5" } }])(
    "whose usage is %j has used what nobody knows, and not NaN",
    async usage => {
      const { calls, output } = await Kit.run([[...Kit.text("hi"), finishing("stop", usage)]])
      expect(calls).toHaveLength(1)
      expect(await output.usage).toStrictEqual({})
    }
  )
})

describe("an answer with a complete call", () => {
  it.each(words)("whose finish says %j goes on", async (word, reason, raw) => {
    const { calls, chunks, executed } = await Kit.run(
      [[Kit.call("c1", "echo", '{"q":1}'), finishing(word, nested)], Kit.replies("ok")],
      {},
      { version: "v3" }
    )
    expect(calls).toHaveLength(2)
    expect(executed).toStrictEqual([{ q: 1 }])
    const [first] = only(chunks, "step-finish")
    expect(first?.payload.stepResult).toMatchObject({ reason: "tool-calls", isContinued: true })
    expect(first?.payload.stepResult.rawReason).toBe(raw ?? reason)
    expect(finishOf(chunks).output.text).toBe("ok")
  })

  it("and no finish at all has failed: nothing is executed", async () => {
    const { calls, chunks, executed } = await Kit.run([
      [Kit.call("c1", "echo", '{"q":1}')],
      Kit.replies("ok")
    ])
    expect(calls).toHaveLength(1)
    expect(executed).toStrictEqual([])
    expect(finishOf(chunks).stepResult.reason).toBe("error")
    expect(only(chunks, "tool-error")).toHaveLength(1)
  })

  it("whose finish comes twice is one answer: the first word counts, the last figures", async () => {
    const { calls, chunks, executed, output } = await Kit.run([
      [
        ...Kit.writes("c1", "echo", '{"q":1}'),
        Kit.written("c1"),
        Kit.call("c1", "echo", '{"q":1}'),
        Kit.finish("tool-calls", {}),
        Kit.finish("stop", Kit.tokens(7, 3)),
        { type: "source", id: "s", sourceType: "url", url: "https://example.org" },
        Kit.call("c1", "echo", '{"q":1}')
      ],
      Kit.replies("ok")
    ])
    expect(calls).toHaveLength(2)
    expect(executed).toStrictEqual([{ q: 1 }])
    expect(only(chunks, "step-finish")[0]?.payload.stepResult).toStrictEqual({
      reason: "tool-calls",
      isContinued: true
    })
    expect(await output.usage).toStrictEqual({ inputTokens: 17, outputTokens: 8, totalTokens: 25 })
  })
})

describe("a run of steps", () => {
  const restless: Kit.Script = call => [Kit.call(`c${call}`, "echo", '{"q":1}'), Kit.finish("tool-calls")]

  const done = createTool({ id: "done", execute: () => "done" })

  it("stops at its own condition, although it has a limit too", async () => {
    const script: Kit.Script = call =>
      call === 1
        ? [Kit.call("d", "done"), Kit.finish("tool-calls")]
        : [Kit.call(`c${call}`, "echo"), Kit.finish()]
    const { calls, chunks } = await Kit.run(
      script,
      {
        maxSteps: 10,
        stopWhen: ({ steps }) =>
          steps.at(-1)?.toolCalls.some(({ payload }) => payload.toolName === "done") === true
      },
      { agent: { tools: { done } } }
    )
    expect(calls).toHaveLength(2)
    expect(finishOf(chunks).stepResult).toMatchObject({ reason: "tool-calls", stoppedBy: "stop-when" })
  })

  it.each([
    ["its limit alone", { maxSteps: 3 }, 3],
    ["its limit, before its condition", { maxSteps: 2, stopWhen: async () => false }, 2],
    ["its condition, on the step that its limit ends with", { maxSteps: 2, stopWhen: [async () => true] }, 1],
    ["neither", {}, 5]
  ])("with %s: %s", async (_, options, count) => {
    const { calls } = await Kit.run(restless, options)
    expect(calls).toHaveLength(count)
  })

  it("that its limit ends says so, and its text is empty", async () => {
    const onFinish = vi.fn()
    const { chunks, output } = await Kit.run(restless, { maxSteps: 2, onFinish })
    expect(finishOf(chunks).stepResult).toStrictEqual({
      reason: "tool-calls",
      isContinued: false,
      stoppedBy: "max-steps"
    })
    expect(await output.text).toBe("")
    expect(await output.finishReason).toBe("tool-calls")
    expect(only(chunks, "tool-result")).toHaveLength(2)
    expect(onFinish).toHaveBeenCalledTimes(1)
  })

  it("shows its condition every result of the last step in call order, whichever came first", async () => {
    const gate = latch()
    const send = createTool({
      id: "send",
      execute: async () => {
        await gate.wait
        return "sent"
      }
    })
    const endTurn = createTool({
      id: "endTurn",
      execute: () => {
        setImmediate(gate.open)
        return "ended"
      }
    })
    const seen: Array<unknown> = []
    const { chunks } = await Kit.run(
      [
        [Kit.call("c1", "echo"), Kit.finish("tool-calls")],
        [Kit.call("c2", "send"), Kit.call("c3", "endTurn"), Kit.finish("tool-calls")]
      ],
      {
        stopWhen: ({ steps }) => {
          seen.push(steps.at(-1)?.toolResults.map(({ payload }) => [payload.toolCallId, payload.result]))
          return steps.length === 2
        }
      },
      { agent: { tools: { send, endTurn } } }
    )
    expect(only(chunks, "tool-result").map(({ payload }) => payload.toolCallId)).toStrictEqual([
      "c1",
      "c3",
      "c2"
    ])
    expect(seen).toStrictEqual([
      [["c1", {}]],
      [
        ["c2", "sent"],
        ["c3", "ended"]
      ]
    ])
  })

  it("has one finish, and it is the last chunk: who leaves at a step's finish misses the rest alone", async () => {
    const { agent } = Kit.set([
      [...Kit.text("Looking. "), Kit.call("c1", "echo"), Kit.finish("tool-calls")],
      Kit.replies("Found.")
    ])
    const output = await agent.stream("go")
    const whole = collect(output.fullStream)
    const seen = []
    for await (const chunk of output.fullStream) {
      seen.push(chunk)
      if (chunk.type === "step-finish") break
    }
    const types = typesOf(await whole)
    expect(seen).toHaveLength(types.indexOf("step-finish") + 1)
    expect(types.filter(type => type === "finish")).toHaveLength(1)
    expect(types.filter(type => type === "step-finish")).toHaveLength(2)
    expect(types.at(-1)).toBe("finish")
    expect(await output.text).toBe("Looking. Found.")
  })

  it("has ids of its own for every block, also where a provider finishes before it has ended one", async () => {
    const answer = [
      Kit.textStart(),
      Kit.says("a"),
      Kit.call("c1", "echo"),
      Kit.finish("tool-calls"),
      Kit.textEnd()
    ]
    const { chunks } = await Kit.run([answer, answer, Kit.replies("b")])
    const ids = only(chunks, "text-start").map(({ payload }) => payload.id)
    expect(new Set(ids).size).toBe(3)
    expect(only(chunks, "text-end").map(({ payload }) => payload.id)).toStrictEqual(ids)
    expect(only(chunks, "text-delta").map(({ payload }) => payload.id)).toStrictEqual(ids)
    expect(finishOf(chunks).output.text).toBe("aab")
  })
})

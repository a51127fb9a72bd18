/** What a call came to, as the chunk that readers get and as the part that the model gets. */
import { describe, expect, it } from "@effect/vitest"
import { type Chunk, Errors } from "eddy"
import { Cause, Exit, FiberId } from "effect"
import * as ToolOutcome from "../../src/tool/ToolOutcome.js"

const call: Chunk.ToolCall = {
  type: "tool-call",
  runId: "r",
  from: "AGENT",
  payload: { toolCallId: "c", toolName: "t", args: { a: 1 }, providerMetadata: { kit: { s: "s" } } }
}

const identity = { toolCallId: "c", toolName: "t", args: { a: 1 } }
const toldAs = (output: unknown) => ({ type: "tool-result", toolCallId: "c", toolName: "t", output })
const circle: { self?: unknown } = {}
circle.self = circle

describe("a value", () => {
  it.each([
    ["text", "hi", "hi", { type: "text", value: "hi" }],
    ["half a pair", "\ud83d", "\ud83d", { type: "text", value: "\ufffd" }],
    ["nothing", undefined, null, { type: "json", value: null }],
    ["null", null, null, { type: "json", value: null }],
    ["false", false, false, { type: "json", value: false }],
    ["a number that JSON cannot hold", Number.NaN, Number.NaN, { type: "json", value: null }],
    ["a record", { a: [1n] }, { a: [1n] }, { type: "json", value: { a: ["1"] } }],
    ["a circle", circle, circle, { type: "json", value: { self: "[Circular]" } }],
    ["an error", new Error("x"), new Error("x"), { type: "json", value: { name: "Error", message: "x" } }]
  ])("that is %s is a result", (_, value, result, output) => {
    expect(ToolOutcome.succeeded(call, value)).toStrictEqual({
      chunk: { type: "tool-result", runId: "r", from: "AGENT", payload: { ...identity, result } },
      part: toldAs(output)
    })
  })

  it.each([
    [
      "with texts",
      {
        isError: true,
        content: [{ type: "text", text: "bad" }, { type: "image" }, { type: "text", text: "key\ud83d" }]
      },
      { type: "error-text", value: "bad\nkey\ufffd" }
    ],
    [
      "without texts",
      { isError: true, content: [{ type: "image" }] },
      { type: "error-json", value: { isError: true, content: [{ type: "image" }] } }
    ],
    [
      "without content",
      { isError: true, reason: 1n },
      { type: "error-json", value: { isError: true, reason: "1" } }
    ],
    [
      "with content that is no list",
      { isError: true, content: "bad" },
      { type: "error-json", value: { isError: true, content: "bad" } }
    ]
  ])("that says that it is an error, %s, is told as one", (_, value, output) => {
    expect(ToolOutcome.succeeded(call, value)).toStrictEqual({
      chunk: {
        type: "tool-result",
        runId: "r",
        from: "AGENT",
        payload: { ...identity, result: value, isError: true }
      },
      part: toldAs(output)
    })
  })
})

describe("a failure", () => {
  it("with an error keeps it", () => {
    const error = new RangeError("out of range")
    const outcome = ToolOutcome.failed(call, error)
    expect(outcome).toStrictEqual({
      chunk: { type: "tool-error", runId: "r", from: "AGENT", payload: { ...identity, error } },
      part: toldAs({ type: "error-text", value: "out of range" })
    })
    expect(outcome.chunk.type === "tool-error" && outcome.chunk.payload.error).toBe(error)
  })

  it.each([
    ["text", "sold out\ud83d", "sold out\ufffd"],
    ["a record with a message", { message: "no" }, "no"],
    ["a tagged value", { _tag: "SoldOut" }, "SoldOut"],
    ["a record", { a: 1n }, '{"a":"1"}'],
    ["nothing", undefined, "null"]
  ])("with %s is an error that says it", (_, cause, message) => {
    const { chunk, part } = ToolOutcome.failed(call, cause)
    const error = chunk.type === "tool-error" ? chunk.payload.error : undefined
    expect(error).toBeInstanceOf(Errors.ToolFailed)
    expect(error).toMatchObject({ toolName: "t", message, cause })
    expect(part).toStrictEqual(toldAs({ type: "error-text", value: message }))
  })

  it("of a call whose arguments were no record has none", () => {
    const { args: _, ...payload } = call.payload
    expect(ToolOutcome.failed({ ...call, payload }, "x").chunk.payload).not.toHaveProperty("args")
    expect(ToolOutcome.succeeded({ ...call, payload }, "x").chunk.payload).not.toHaveProperty("args")
  })
})

describe("the exit of an execution", () => {
  const message = (exit: Exit.Exit<unknown, unknown>) => ToolOutcome.fromExit(call, exit).part.output

  it("is what it came to", () => {
    expect(message(Exit.succeed("hi"))).toStrictEqual({ type: "text", value: "hi" })
    expect(message(Exit.fail("no"))).toStrictEqual({ type: "error-text", value: "no" })
    expect(message(Exit.die(new Error("defect")))).toStrictEqual({ type: "error-text", value: "defect" })
    expect(message(Exit.failCause(Cause.sequential(Cause.fail("first"), Cause.die("second"))))).toStrictEqual(
      {
        type: "error-text",
        value: "first"
      }
    )
    expect(ToolOutcome.fromExit(call, Exit.interrupt(FiberId.none)).chunk.type).toBe("tool-error")
  })
})

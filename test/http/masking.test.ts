/** What clients see of chunks, and its JSON. */
import { Chunk } from "eddy"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import { encode, mask } from "../../src/http/masking.js"
import * as Sse from "../../src/http/sse.js"

const chunks = Arbitrary.make(Chunk.Chunk)

describe("chunks on the wire", () => {
  it("have the JSON of their schema, on one line", () => {
    FastCheck.assert(
      FastCheck.property(chunks, chunk => {
        const json = encode(chunk)
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(Effect.runSync(Chunk.encode(chunk)))))
        expect(json).not.toMatch(/[\r\n]/)
        expect(Sse.data(json).split("\n\n")).toHaveLength(2)
      }),
      { numRuns: 150 }
    )
  })

  it("stay chunks when they are masked, and are masked once", () => {
    FastCheck.assert(
      FastCheck.property(chunks, chunk => {
        const masked = mask(chunk, {})
        if (masked === undefined) {
          expect(chunk.type).toBe("raw")
          return
        }
        expect(Chunk.is(masked)).toBe(true)
        expect(encode(mask(masked, {}) ?? masked)).toBe(encode(masked))
      }),
      { numRuns: 150 }
    )
  })

  it("are as they were where the host hides nothing", () => {
    FastCheck.assert(
      FastCheck.property(chunks, chunk => {
        expect(mask(chunk, { errors: true, provider: true })).toEqual(chunk)
      }),
      { numRuns: 50 }
    )
  })

  it("hide headers of responses and bodies of requests", () => {
    const headers = { "set-cookie": "session=1" }
    const envelope = { runId: "r", from: "AGENT" } as const
    const told: ReadonlyArray<Chunk.Chunk> = [
      { type: "response-metadata", ...envelope, payload: { headers } },
      { type: "step-start", ...envelope, payload: { request: { body: { prompt: "session=1" } } } },
      { type: "raw", ...envelope, payload: headers }
    ]
    expect(told.map(chunk => JSON.stringify(mask(chunk, {}))).join()).not.toContain("session")
  })

  it("hide what is nested in what tools write", () => {
    const error: Chunk.Chunk = {
      type: "error",
      runId: "inner",
      from: "AGENT",
      payload: { error: new Error("sk-123") }
    }
    const output: Chunk.Of<"tool-output"> = {
      type: "tool-output",
      runId: "r",
      from: "USER",
      payload: { toolCallId: "c1", output: error }
    }
    const task: Chunk.Chunk = {
      type: "background-task-output",
      runId: "r",
      from: "AGENT",
      payload: { taskId: "t", toolName: "x", toolCallId: "c1", runId: "r", agentId: "a", payload: output }
    }
    expect([output, task].map(chunk => JSON.stringify(mask(chunk, {}))).join()).not.toContain("sk-123")
  })
})

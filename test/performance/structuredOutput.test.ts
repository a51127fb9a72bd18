/** What a structured value costs: nothing where nobody asks for one, and no partial that is kept. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import type { LanguageModel, ModelPart } from "eddy"
import { Agent } from "eddy/promise"
import { Effect } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { JsonReader } from "../../src/output/jsonReader.js"
import { PartialAnswer } from "../../src/output/partialAnswer.js"

/** Says a text in pieces of ten characters. */
const modelOf = (text: string): LanguageModel.LanguageModel => ({
  provider: "test",
  modelId: "json",
  answer: () =>
    Effect.sync(() => {
      let at = 0
      const next = (): ModelPart.ModelPart => {
        if (at >= text.length) return { type: "finish", reason: "stop", usage: {} }
        at += 10
        return { type: "text-delta", id: "0", delta: text.slice(at - 10, at) }
      }
      const source = new ReadableStream<ModelPart.ModelPart>({
        pull: controller => {
          const part = next()
          controller.enqueue(part)
          if (part.type === "finish") controller.close()
        }
      })
      return { source, normalize: part => part as ModelPart.ModelPart }
    })
})

const orders = (length: number): string =>
  JSON.stringify({
    items: Array.from({ length: length / 100 }, (_, id) => ({
      id,
      name: `order ${id}`,
      note: "x".repeat(60)
    }))
  })

const agentOf = (text: string) => new Agent({ id: "counters", model: modelOf(text) })

const schema = { type: "object" }

afterEach(() => void vi.restoreAllMocks())

describe("what a structured value costs", () => {
  it("nothing where nobody asks for one: no text is looked at", async () => {
    const taken = vi.spyOn(PartialAnswer.prototype, "take")
    const read = vi.spyOn(JsonReader.prototype, "read")
    const text = orders(10_000)
    const plain = await agentOf(text).stream("go")
    let count = 0
    for await (const _ of plain.fullStream) count++
    for await (const _ of plain.objectStream) count++
    expect(count).toBeGreaterThan(900)
    expect([taken.mock.calls.length, read.mock.calls.length]).toEqual([0, 0])
    const structured = await agentOf(text).stream("go", { structuredOutput: { schema } })
    await structured.object
    expect(taken.mock.calls.length).toBeGreaterThan(900)
  })

  it("nothing more for a reader of the text", async () => {
    const taken = vi.spyOn(PartialAnswer.prototype, "take")
    const output = await agentOf(orders(10_000)).stream("go", { structuredOutput: { schema } })
    await output.text
    const once = taken.mock.calls.length
    for await (const _ of output.textStream);
    expect(taken.mock.calls.length).toBe(once)
    for await (const _ of output.objectStream);
    expect(taken.mock.calls.length).toBe(2 * once)
  })

  it("keeps little more than the text, however many partial values were told", async () => {
    setFlagsFromString("--expose-gc")
    const gc: () => void = runInNewContext("gc")
    await (await agentOf(orders(5_000)).stream("go", { structuredOutput: { schema } })).object
    const text = orders(100_000)
    gc()
    const before = process.memoryUsage().heapUsed
    const output = await agentOf(text).stream("go", { structuredOutput: { schema } })
    let partials = 0
    for await (const _ of output.objectStream) partials++
    gc()
    const kept = process.memoryUsage().heapUsed - before
    expect(partials).toBeGreaterThan(8_000)
    expect(await output.object).toEqual(JSON.parse(text))
    // All of them would be a thousand times the text.
    expect(kept).toBeLessThan(20 * text.length)
  })
})

/** What a chunk costs, in counts that no machine's load can change: promises, transform streams, bytes kept. */
import { createHook } from "node:async_hooks"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import type { LanguageModel, ModelPart } from "eddy"
import { Agent } from "eddy/promise"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"

/** One part per pull, as fast as it is asked for; every delta is a string of its own. */
const fastModel = (deltas: number): LanguageModel.LanguageModel => ({
  provider: "test",
  modelId: "fast",
  answer: () =>
    Effect.sync(() => {
      let index = -2
      const next = (): ModelPart.ModelPart => {
        index++
        if (index === -1) return { type: "text-start", id: "0" }
        if (index < deltas) return { type: "text-delta", id: "0", delta: String(index).padStart(10, "0") }
        if (index === deltas) return { type: "text-end", id: "0" }
        return { type: "finish", reason: "stop", usage: {} }
      }
      const source = new ReadableStream<ModelPart.ModelPart>({
        pull: controller => (index > deltas ? controller.close() : controller.enqueue(next()))
      })
      return { source, normalize: part => part as ModelPart.ModelPart }
    })
})

const agentOf = (deltas: number) => new Agent({ id: "counters", model: fastModel(deltas) })

const readAll = async (stream: ReadableStream<unknown>): Promise<number> => {
  const reader = stream.getReader()
  let count = 0
  while (!(await reader.read()).done) count++
  return count
}

const promisesOf = async (run: () => Promise<unknown>): Promise<number> => {
  let count = 0
  const hook = createHook({
    init: (_id, type) => {
      if (type === "PROMISE") count++
    }
  })
  hook.enable()
  await run()
  hook.disable()
  return count
}

/** The price of one more chunk: two lengths, so that what a run costs at its start and end drops out. */
const promisesPerChunk = async (run: (deltas: number) => Promise<unknown>): Promise<number> => {
  await run(100)
  const short = await promisesOf(() => run(2_000))
  const long = await promisesOf(() => run(6_000))
  return (long - short) / 4_000
}

describe("what a chunk costs", () => {
  it("makes at most 8 promises when the full stream is read", async () => {
    const cost = await promisesPerChunk(async deltas =>
      readAll((await agentOf(deltas).stream("hi")).fullStream)
    )
    expect(cost).toBeGreaterThan(1)
    expect(cost).toBeLessThanOrEqual(8)
  })

  it("makes at most 8 promises when it is iterated", async () => {
    const cost = await promisesPerChunk(async deltas => {
      for await (const _ of (await agentOf(deltas).stream("hi")).fullStream);
    })
    expect(cost).toBeLessThanOrEqual(8)
  })

  it("makes at most 12 promises when the full stream and the text are read", async () => {
    const cost = await promisesPerChunk(async deltas => {
      const output = await agentOf(deltas).stream("hi")
      await Promise.all([readAll(output.fullStream), readAll(output.textStream), output.text])
    })
    expect(cost).toBeLessThanOrEqual(12)
  })

  it("makes no TransformStream and tees nothing", async () => {
    const made: Array<string> = []
    const { TransformStream: original } = globalThis
    const tee = ReadableStream.prototype.tee
    globalThis.TransformStream = new Proxy(original, {
      construct: (target, parameters) => {
        made.push("TransformStream")
        return Reflect.construct(target, parameters)
      }
    })
    ReadableStream.prototype.tee = function (this: ReadableStream) {
      made.push("tee")
      return tee.call(this)
    } as typeof tee
    try {
      const output = await agentOf(50).stream("hi")
      await Promise.all([readAll(output.fullStream), readAll(output.textStream), output.getFullOutput()])
      new TransformStream()
      expect(made).toEqual(["TransformStream"])
    } finally {
      globalThis.TransformStream = original
      ReadableStream.prototype.tee = tee
    }
  })

  it("keeps at most 90 bytes per text delta", async () => {
    setFlagsFromString("--expose-gc")
    const gc: () => void = runInNewContext("gc")
    const deltas = 100_000
    await (await agentOf(1_000).stream("hi")).text
    gc()
    const before = process.memoryUsage().heapUsed
    const output = await agentOf(deltas).stream("hi")
    expect(await readAll(output.fullStream)).toBe(deltas + 6)
    gc()
    const kept = (process.memoryUsage().heapUsed - before) / deltas
    expect(output.status).toBe("success")
    expect(kept).toBeLessThanOrEqual(90)
  })
})

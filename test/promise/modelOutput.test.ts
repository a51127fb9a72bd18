/** The output of a run as promises and web streams: every way to read it, how far it runs ahead, and how it is stopped. */
import { Agent, type Chunk, ModelOutput, RunAborted } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import * as RunRecord from "../../src/output/RunRecord.js"
import {
  chunks,
  collect,
  collectByReader,
  countingModel,
  delta,
  finish,
  flush,
  latch,
  pausingModel,
  refuseUnhandledRejections,
  textOf,
  typesOf,
  until
} from "../support/readers.js"

refuseUnhandledRejections()

type Model = ConstructorParameters<typeof Agent>[0]["model"]

const stream = (model: Model, options: Parameters<Agent["stream"]>[1] = {}): Promise<ModelOutput> =>
  new Agent({ id: "hand", model }).stream("Go!", { onError: () => undefined, ...options })

/** Says the numbers up to `count`, one per delta. */
const counting = (count: number) =>
  ScriptedModel.make([
    [...Array.from({ length: count }, (_, index) => delta("a", `${index} `)), ScriptedModel.finish("stop")]
  ])

const numbers = (count: number): string => Array.from({ length: count }, (_, index) => `${index} `).join("")

const failing = () => ScriptedModel.make([[delta("a", "Half"), { type: "error", error: "overloaded" }]])

const isText = (chunk: Chunk): boolean => chunk.type === "text-delta"

describe("members", () => {
  it("work when destructured", async () => {
    const output = await stream(counting(3), { runId: "mine" })
    const { fullStream, textStream, text, usage, finishReason, getFullOutput, consumeStream, cancel, runId } =
      output
    expect(runId).toBe("mine")
    expect(textOf(await collect(fullStream))).toBe(numbers(3))
    expect(await collect(textStream)).toEqual(["0 ", "1 ", "2 "])
    expect([await text, await usage, await finishReason]).toEqual([numbers(3), {}, "stop"])
    expect((await getFullOutput()).text).toBe(numbers(3))
    await consumeStream()
    await cancel("too late to count")
    expect(output.status).toBe("success")
  })

  it("that are not promises are there at any time", async () => {
    const gate = latch()
    const output = await stream(pausingModel([delta("a", "x"), gate, { type: "error", error: "overloaded" }]))
    const [start] = await collectUntil(output, isText)
    expect(start).toMatchObject({
      type: "start",
      runId: output.runId,
      payload: { messageId: output.messageId }
    })
    expect(output).toMatchObject({
      status: "running",
      error: undefined,
      tripwire: undefined,
      suspendData: undefined
    })
    gate.open()
    await output.getFullOutput()
    expect(output.status).toBe("failed")
    expect(output.error).toMatchObject({ name: "ModelError", message: "overloaded" })
  })

  it("`turns` holds the run itself", async () => {
    const output = await stream(counting(2))
    expect(await output.turns).toEqual([await output.getFullOutput()])
  })

  it("a promise is the same each time, a stream a new one", async () => {
    const output = await stream(counting(2))
    expect(output.text).toBe(output.text)
    expect(output.usage).toBe(output.usage)
    expect(output.fullStream).not.toBe(output.fullStream)
    expect(await collect(output.fullStream)).toEqual(await collect(output.fullStream))
  })
})

/** What a new reader sees up to the first chunk that is it; it leaves then. */
const collectUntil = async (
  output: ModelOutput,
  isIt: (chunk: Chunk) => boolean
): Promise<ReadonlyArray<Chunk>> => {
  const seen: Array<Chunk> = []
  for await (const chunk of output.fullStream) {
    seen.push(chunk)
    if (isIt(chunk)) break
  }
  return seen
}

describe("ways to read", () => {
  it("iterator, reader, both branches of a tee, pipe and response give the same", async () => {
    const output = await stream(counting(200))
    const [left, right] = output.textStream.tee()
    const bytes = output.textStream.pipeThrough(new TextEncoderStream())
    const decoded = output.textStream
      .pipeThrough(new TextEncoderStream())
      .pipeThrough(new TextDecoderStream())
    const all = await Promise.all([
      collect(output.textStream),
      collectByReader(output.textStream),
      collectByReader(left),
      collect(right),
      collect(decoded)
    ])
    for (const one of all) expect(one.join("")).toBe(numbers(200))
    expect(await new Response(bytes).text()).toBe(numbers(200))
  })

  it("many readers, each at its own speed, some late, see the same", async () => {
    const output = await stream(counting(300))
    const slowly = async (pause: number): Promise<ReadonlyArray<Chunk>> => {
      const seen: Array<Chunk> = []
      for await (const chunk of output.fullStream) {
        seen.push(chunk)
        if (seen.length % pause === 0) await flush(1)
      }
      return seen
    }
    const early = [
      slowly(1),
      slowly(7),
      slowly(50),
      collectByReader(output.fullStream),
      collect(output.fullStream)
    ]
    await early[2]
    const late = [slowly(3), collectByReader(output.fullStream)]
    const [first, ...others] = await Promise.all([...early, ...late])
    expect(first?.at(-1)?.type).toBe("finish")
    expect(textOf(first ?? [])).toBe(numbers(300))
    for (const other of others) expect(other).toEqual(first)
  })

  it("leaving a loop cancels that reader alone, and the run goes on", async () => {
    const model = countingModel(500)
    const output = await stream(model)
    const other = output.fullStream.getReader()
    await other.read()
    const left = output.fullStream
    for await (const chunk of left) if (isText(chunk)) break
    expect(left.locked).toBe(false)
    expect(await collect(left)).toEqual([])
    expect(await output.text).toBe(numbers(500))
    other.releaseLock()
    expect(model.isCancelled()).toBe(false)
  })

  it("the only reader leaves, nobody asks for anything: the run goes to its end", async () => {
    const model = countingModel(1000)
    const output = await stream(model)
    await collectUntil(output, isText)
    await until(() => output.status === "success", "the run has ended")
    expect(model.pulled()).toBe(1001)
    const reader = (await stream(countingModel(1000))).textStream.getReader()
    await reader.read()
    await reader.cancel("enough")
    expect((await reader.read()).done).toBe(true)
  })

  it("an error in a loop lets go of the stream", async () => {
    const output = await stream(counting(5))
    const broken = output.fullStream
    const reading = async () => {
      for await (const _ of broken) throw new RangeError("mine")
    }
    await expect(reading()).rejects.toThrow("mine")
    expect(broken.locked).toBe(false)
    expect(await output.text).toBe(numbers(5))
  })

  it("a stream that is being read refuses another reader with a TypeError", async () => {
    const output = await stream(counting(2))
    const read = output.fullStream
    const reader = read.getReader()
    expect(() => read.values()).toThrow(TypeError)
    expect(() => read.getReader()).toThrow(TypeError)
    await expect(collect(read)).rejects.toThrow(TypeError)
    reader.releaseLock()
    const iterator = read.values()
    expect(() => read.values()).toThrow(TypeError)
    expect(() => read.getReader()).toThrow(TypeError)
    await iterator.return?.()
    expect(read.locked).toBe(false)
  })

  it.each([0, 1, 5, 40])("%i chunks by a reader, the rest by a loop", async count => {
    const output = await stream(counting(100))
    const whole = await collect(output.fullStream)
    const read = output.fullStream
    const reader = read.getReader()
    const seen: Array<Chunk> = []
    for (let index = 0; index < count; index++) {
      const { value } = await reader.read()
      if (value !== undefined) seen.push(value)
    }
    reader.releaseLock()
    for await (const chunk of read) seen.push(chunk)
    expect(seen).toEqual(whole)
  })

  it.each([1, 5, 40])(
    "a loop that leaves the stream open after %i chunks, the rest by another",
    async count => {
      const output = await stream(counting(100))
      const whole = await collect(output.fullStream)
      for (const rest of [collect<Chunk>, collectByReader<Chunk>]) {
        const read = output.fullStream
        const seen: Array<Chunk> = []
        for await (const chunk of read.values({ preventCancel: true })) {
          seen.push(chunk)
          if (seen.length === count) break
        }
        expect(read.locked).toBe(false)
        expect([...seen, ...(await rest(read))]).toEqual(whole)
      }
    }
  )

  it("a loop that leaves the stream open while the run goes on", async () => {
    const gate = latch()
    const output = await stream(pausingModel([delta("a", "one"), gate, delta("a", "two"), finish("stop")]))
    const read = output.textStream
    for await (const text of read.values({ preventCancel: true })) {
      expect(text).toBe("one")
      break
    }
    const rest = collect(read)
    gate.open()
    expect(await rest).toEqual(["two"])
  })

  it("calls of `next` that do not wait for each other are answered in order", async () => {
    const gate = latch()
    const output = await stream(
      pausingModel([delta("a", "0"), gate, delta("a", "1"), delta("a", "2"), delta("a", "3"), finish("stop")])
    )
    const iterator = output.textStream.values()
    const answers = Array.from({ length: 4 }, () => iterator.next())
    await flush()
    answers.push(iterator.next())
    gate.open()
    await flush()
    answers.push(iterator.next(), iterator.next())
    const values = (await Promise.all(answers)).map(({ done, value }) => (done ? "done" : value))
    expect(values).toEqual(["0", "1", "2", "3", "done", "done", "done"])
  })

  it("also when a chunk comes and another call follows before the first is answered", async () => {
    const record = RunRecord.make("run-1")
    const output = new ModelOutput(
      record,
      () => undefined,
      () => undefined
    )
    const iterator = output.textStream.values()
    const first = iterator.next()
    record.write([chunks.text("a", "one"), chunks.text("a", "two")])
    const second = iterator.next()
    expect([(await first).value, (await second).value]).toEqual(["one", "two"])
  })

  it("a stream that was read to its end is closed and free", async () => {
    const output = await stream(counting(2))
    const read = output.textStream
    await collect(read)
    expect(read.locked).toBe(false)
    const reader = read.getReader()
    await reader.closed
    expect(await reader.read()).toEqual({ done: true, value: undefined })
  })

  it("an iterator that is left has nothing more, however often it is asked", async () => {
    const output = await stream(counting(5))
    const iterator = output.textStream.values()
    expect(await iterator.next()).toEqual({ done: false, value: "0 " })
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined })
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined })
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
  })

  it("leaving answers a `next` that waits for a silent model", async () => {
    const output = await stream(ScriptedModel.make([[ScriptedModel.hang]]))
    const iterator = output.textStream.values()
    const waiting = iterator.next()
    await flush()
    await iterator.return?.()
    let answer: unknown
    void waiting.then(result => {
      answer = result
    })
    await flush()
    expect(answer).toEqual({ done: true, value: undefined })
    await output.cancel()
  })

  it("a reader that is cancelled while it waits is answered, and the others go on", async () => {
    const gate = latch()
    const output = await stream(pausingModel([delta("a", "one"), gate, delta("a", "two"), finish("stop")]))
    const other = collect(output.textStream)
    const reader = output.textStream.getReader()
    expect((await reader.read()).value).toBe("one")
    const waiting = reader.read()
    await reader.cancel()
    expect(await waiting).toEqual({ done: true, value: undefined })
    gate.open()
    expect(await other).toEqual(["one", "two"])
  })

  it("a text delta that one reader changes is unchanged for the others", async () => {
    const output = await stream(counting(3))
    for await (const chunk of output.fullStream) {
      if (chunk.type === "text-delta") Object.assign(chunk.payload, { text: "forged" })
    }
    expect(textOf(await collect(output.fullStream))).toBe(numbers(3))
    expect(await output.text).toBe(numbers(3))
  })
})

describe("how a failed run is read", () => {
  it("streams close without an error, after error and finish", async () => {
    const output = await stream(failing())
    expect(await collect(output.textStream)).toEqual(["Half"])
    expect(await collectByReader(output.textStream)).toEqual(["Half"])
    for (const seen of [await collect(output.fullStream), await collectByReader(output.fullStream)]) {
      expect(typesOf(seen).slice(-2)).toEqual(["error", "finish"])
      expect(typesOf(seen).filter(type => type === "error")).toHaveLength(1)
    }
  })

  it("a reader that joins exactly between error and finish gets both", async () => {
    const gate = latch()
    const joined: Array<Promise<ReadonlyArray<Chunk>>> = []
    const output = await stream(
      pausingModel([delta("a", "Half"), gate, { type: "error", error: "overloaded" }]),
      {
        onChunk: chunk => {
          if (chunk.type !== "error") return
          joined.push(collect(output.fullStream), collectByReader(output.fullStream))
        }
      }
    )
    gate.open()
    await output.getFullOutput()
    const whole = await collect(output.fullStream)
    expect(typesOf(whole).slice(-2)).toEqual(["error", "finish"])
    expect(joined).toHaveLength(2)
    for (const seen of await Promise.all(joined)) expect(seen).toEqual(whole)
  })

  it("also when finish comes much later than error", async () => {
    const record = RunRecord.make("run-1")
    const output = new ModelOutput(
      record,
      () => undefined,
      () => undefined
    )
    record.write([chunks.start, chunks.error(new Error("overloaded"))])
    const joined = [collect(output.fullStream), collectByReader(output.fullStream)]
    await flush()
    expect(output.error?.message).toBe("overloaded")
    expect(output.status).toBe("running")
    record.write([chunks.finish("error", "", {})])
    for (const seen of await Promise.all(joined)) expect(typesOf(seen)).toEqual(["start", "error", "finish"])
  })

  it("consumeStream rejects with the run's error, or hands it to onError", async () => {
    const output = await stream(failing())
    await expect(output.consumeStream()).rejects.toThrow("overloaded")
    await expect(output.consumeStream()).rejects.toBe(output.error)
    const seen: Array<Error> = []
    await output.consumeStream({ onError: error => seen.push(error) })
    await output.consumeStream({ onError: error => seen.push(error) })
    expect(seen).toEqual([output.error, output.error])
    expect(seen[0]?.message).toBe("overloaded")
  })

  it("consumeStream of a run that succeeds calls nothing", async () => {
    const seen: Array<Error> = []
    const output = await stream(counting(3))
    expect(await output.consumeStream({ onError: error => seen.push(error) })).toBeUndefined()
    expect(await output.consumeStream()).toBeUndefined()
    expect(seen).toEqual([])
  })
})

describe("how far a run goes by itself", () => {
  /** Chunks of the log, parts in the inbox, and what stands around the text. */
  const most = 128 + 8

  it("nobody reads: it waits", async () => {
    const model = countingModel(10_000)
    const output = await stream(model)
    await flush(50)
    expect(model.pulled()).toBeGreaterThan(64)
    expect(model.pulled()).toBeLessThanOrEqual(most)
    expect(output.status).toBe("running")
    await output.cancel()
    expect(model.isCancelled()).toBe(true)
  })

  const drivers: Readonly<Record<string, (output: ModelOutput) => Promise<unknown>>> = {
    text: output => output.text,
    usage: output => output.usage,
    finishReason: output => output.finishReason,
    getFullOutput: output => output.getFullOutput(),
    consumeStream: output => output.consumeStream(),
    textStream: output => collect(output.textStream),
    "a reader of fullStream": output => collectByReader(output.fullStream)
  }

  it.each(Object.entries(drivers))("%s alone lets it run to its end", async (_, drive) => {
    const model = countingModel(1000)
    const output = await stream(model)
    await flush()
    await drive(output)
    expect(model.pulled()).toBe(1001)
    expect(output.status).toBe("success")
  })

  it.each([
    ["iterator", (output: ModelOutput) => output.textStream.values()],
    [
      "reader",
      (output: ModelOutput) => {
        const reader = output.textStream.getReader()
        return { next: () => reader.read() }
      }
    ]
  ])("a reader that pauses holds it: %s", async (_, open) => {
    const model = countingModel(10_000)
    const output = await stream(model)
    const reader = open(output)
    for (const read of [1, 200, 1000]) {
      for (let count = 0; count < read; count++) await reader.next()
      await flush(50)
      expect(model.pulled()).toBeLessThanOrEqual(1201 + 32 + most)
    }
    expect(model.pulled()).toBeGreaterThan(1201)
    expect(output.status).toBe("running")
    expect(await output.text).toBe(numbers(10_000))
  })
})

describe("stopping", () => {
  it("cancel stops the provider, settles everything and keeps the reason", async () => {
    const output = await stream(
      pausingModel([delta("a", "Half"), { wait: new Promise(() => undefined), open: () => undefined }])
    )
    const reading = collect(output.fullStream)
    const text = output.text
    await collectUntil(output, isText)
    await output.cancel("enough")
    expect(output.status).toBe("aborted")
    await expect(text).rejects.toBeInstanceOf(RunAborted)
    expect(output.error).toMatchObject({ message: "The run was aborted: enough", cause: "enough" })
    expect(typesOf(await reading).slice(-2)).toEqual(["abort", "finish"])
    expect(await output.getFullOutput()).toMatchObject({ text: "Half", finishReason: "aborted" })
    await output.cancel("again")
    expect(output.error?.cause).toBe("enough")
  })

  it("a run that waits for its readers hears it too", async () => {
    const model = countingModel(10_000)
    const output = await stream(model)
    await flush(20)
    await output.cancel()
    expect(output.status).toBe("aborted")
    expect(model.isCancelled()).toBe(true)
    expect(await collect(output.fullStream)).toHaveProperty("length")
  })

  it("`await using` stops a run that is going and leaves one that has ended", async () => {
    let going: ModelOutput
    let ended: ModelOutput
    {
      await using hanging = await stream(ScriptedModel.make([[ScriptedModel.hang]]))
      await using done = await stream(counting(2))
      await done.text
      going = hanging
      ended = done
    }
    expect(going.status).toBe("aborted")
    expect(ended.status).toBe("success")
  })

  it("an abort signal that has fired before", async () => {
    const model = counting(2)
    const output = await stream(model, { abortSignal: AbortSignal.abort("never mind") })
    await expect(output.text).rejects.toMatchObject({ cause: "never mind" })
    expect(typesOf(await collect(output.fullStream))).toEqual(["start", "abort", "finish"])
    expect(model.requests).toHaveLength(0)
  })
})

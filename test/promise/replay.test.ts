/** `replay: false` through promises and web streams: one reader, which holds the run and stops it when it leaves; nothing that was read is kept. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import type { ModelPart } from "eddy"
import {
  Agent,
  type Chunk,
  createTool,
  Eddy,
  InvalidConfiguration,
  type ModelOutput,
  RunAborted
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { watchedModel } from "../output/watchedModel.js"
import { expectGrammar } from "../support/grammar.js"
import {
  collect,
  collectByReader,
  delta,
  finish,
  flush,
  latch,
  modelOf,
  refuseUnhandledRejections,
  textOf,
  typesOf,
  until
} from "../support/readers.js"

refuseUnhandledRejections()

type Options = NonNullable<Parameters<Agent["stream"]>[1]>
type Settings = ConstructorParameters<typeof Agent>[0]

const stream = (
  model: Settings["model"],
  options: Options = {},
  settings: Partial<Settings> = {}
): Promise<ModelOutput> =>
  new Agent({ id: "hand", model, ...settings }).stream("Go!", {
    replay: false,
    onError: () => undefined,
    ...options
  })

const numbers = (count: number): string => Array.from({ length: count }, (_, index) => `${index} `).join("")

const look = createTool({ id: "look", execute: () => "found" })

/** Reasoning, a tool and three blocks of text that interleave: everything that the log keeps in its own way. */
const variedModel = () =>
  ScriptedModel.make([
    [
      ...ScriptedModel.reasoning("Let me have a look at it."),
      delta("a", "First"),
      delta("b", "Second"),
      delta("a", " and more"),
      { type: "text-delta", id: "b", delta: "signed", providerMetadata: { hand: { at: 1 } } },
      ScriptedModel.toolCall("c1", "look", {}),
      finish("tool-calls")
    ],
    [
      ...Array.from({ length: 300 }, (_, index) => delta("a", `${index} `)),
      ...ScriptedModel.reasoning("Done."),
      finish("stop", { outputTokens: 7 })
    ]
  ])

/** What a reader is told that comes too late, or second. */
const refusal = { _tag: "InvalidConfiguration", field: "replay" }

const expectRefused = async (output: ModelOutput): Promise<void> => {
  const refused = output.fullStream
  await expect(collect(refused)).rejects.toMatchObject(refusal)
  expect(refused.locked).toBe(false)
  await expect(collectByReader(output.fullStream)).rejects.toMatchObject(refusal)
  await expect(collectByReader(output.textStream)).rejects.toBeInstanceOf(InvalidConfiguration)
  await expect(output.textStream.pipeTo(new WritableStream())).rejects.toMatchObject(refusal)
}

describe("one reader", () => {
  const slowly = async (output: ModelOutput): Promise<ReadonlyArray<Chunk>> => {
    const seen: Array<Chunk> = []
    for await (const chunk of output.fullStream) {
      seen.push(chunk)
      if (seen.length % 5 === 0) await flush(1)
    }
    return seen
  }

  const ways: Readonly<Record<string, (output: ModelOutput) => Promise<ReadonlyArray<Chunk>>>> = {
    "a loop": output => collect(output.fullStream),
    "a slow loop": slowly,
    "a reader": output => collectByReader(output.fullStream),
    "a reader and then a loop": async output => {
      const read = output.fullStream
      const reader = read.getReader()
      const { value } = await reader.read()
      reader.releaseLock()
      return [...(value === undefined ? [] : [value]), ...(await collect(read))]
    },
    "a loop that leaves it open, and then a reader": async output => {
      const read = output.fullStream
      const seen: Array<Chunk> = []
      for await (const chunk of read.values({ preventCancel: true })) if (seen.push(chunk) === 40) break
      await flush(20)
      return [...seen, ...(await collectByReader(read))]
    },
    "a pipe": async output => {
      const seen: Array<Chunk> = []
      const write = (chunk: Chunk): void => {
        seen.push(chunk)
      }
      await output.fullStream.pipeTo(new WritableStream({ write }))
      return seen
    },
    "a branch of a tee": async output => {
      const [left, right] = output.fullStream.tee()
      const [seen, same] = await Promise.all([collect(left), collect(right)])
      expect(same).toEqual(seen)
      return seen
    },
    "a branch of a tee whose other one is cancelled": async output => {
      const [left, right] = output.fullStream.tee()
      void right.cancel()
      return collect(left)
    }
  }

  it.each(Object.entries(ways))("sees every chunk once, in order, to the finish: %s", async (_, read) => {
    const told: Array<Chunk> = []
    const onChunk = (chunk: Chunk): void => {
      told.push(structuredClone(chunk))
    }
    const output = await stream(variedModel(), { onChunk }, { tools: { look } })
    const seen = await read(output)
    expect(seen).toEqual(told)
    expectGrammar(seen)
    expect(seen.length).toBeGreaterThan(320)
    expect(output.status).toBe("success")
    expect(await output.text).toBe(textOf(seen))
  })

  it("of the text alone", async () => {
    expect((await collect((await stream(watchedModel(500).model)).textStream)).join("")).toBe(numbers(500))
    const response = new Response(
      (await stream(watchedModel(500).model)).textStream.pipeThrough(new TextEncoderStream())
    )
    expect(await response.text()).toBe(numbers(500))
  })

  it.each([true, false])(
    "ends behind whatever it does not pick, also when the run was held before it came; replay %s",
    async replay => {
      for (let count = 10; count < 200; count += 3) {
        const silent = Array.from(
          { length: count },
          () => ({ type: "reasoning-delta", id: "r", delta: "hm" }) as const
        )
        const output = await stream(ScriptedModel.make([[...silent, delta("a", "said"), finish("stop")]]), {
          replay
        })
        await flush(10)
        expect(await collect(output.textStream)).toEqual(["said"])
      }
    }
  )

  it("that comes when a short run is over sees all of it", async () => {
    const output = await stream(watchedModel(3).model)
    await until(() => output.status === "success", "the run has ended")
    expect(textOf(await collect(output.fullStream))).toBe(numbers(3))
    await expectRefused(output)
  })

  it("of a run that fails sees error and finish; values reject", async () => {
    const parts = [delta("a", "Half"), { type: "error", error: "overloaded" } as const]
    const output = await stream(ScriptedModel.make([parts]))
    expect(typesOf(await collect(output.fullStream)).slice(-2)).toEqual(["error", "finish"])
    await expect(output.text).rejects.toThrow("overloaded")
    expect(await output.getFullOutput()).toMatchObject({ status: "failed", text: "Half" })
  })
})

describe("a second reader", () => {
  it("is refused, and does not disturb the first", async () => {
    const { model, stopped } = watchedModel(1000)
    const output = await stream(model)
    const reader = output.textStream.getReader()
    const seen = [(await reader.read()).value]
    await expectRefused(output)
    await expect(output.fullStream.cancel()).rejects.toMatchObject(refusal)
    await flush(20)
    expect(output.status).toBe("running")
    for (let next = await reader.read(); !next.done; next = await reader.read()) seen.push(next.value)
    expect(seen.join("")).toBe(numbers(1000))
    expect(stopped).toEqual([])
    expect(output.status).toBe("success")
    await expectRefused(output)
  })

  it("is refused also when the first has left", async () => {
    const output = await stream(watchedModel(1000).model)
    for await (const _ of output.fullStream) break
    await expectRefused(output)
  })

  it("a reader that comes after values were asked is refused, and they settle", async () => {
    const output = await stream(watchedModel(1000).model)
    const text = output.text
    await flush(1)
    await expectRefused(output)
    expect(await text).toBe(numbers(1000))
    await expectRefused(output)
  })

  it.each(["first", "last"])(
    "values asked in the turn in which a reader comes do not count: %s",
    async when => {
      for (const read of [collect<string>, collectByReader<string>]) {
        const output = await stream(watchedModel(1000).model)
        const early = when === "first" ? output.text : undefined
        const reading = read(output.textStream)
        const text = early ?? output.text
        expect((await reading).join("")).toBe(numbers(1000))
        expect(await text).toBe(numbers(1000))
      }
    }
  )
})

/**
 * Parts that the provider may be ahead of the log's reader: fewer than 16 entries and the inbox of 16 that came on top of
 * them, the inbox of 64 that has filled since, and the part that is just being handed over.
 */
const aheadOfLog = 15 + 16 + 16 + 1

/** The same for whoever reads a stream: one pull puts 32 chunks into its queue. */
const ahead = aheadOfLog + 32

describe("how far the provider is ahead", () => {
  it("nobody reads: it waits", async () => {
    const { model, pulled, stopped } = watchedModel(10_000)
    const output = await stream(model)
    await flush(50)
    expect(pulled()).toBeGreaterThan(16)
    expect(pulled()).toBeLessThanOrEqual(aheadOfLog)
    expect(output.status).toBe("running")
    await output.cancel()
    expect(stopped).toEqual(["signal", "cancelled"])
  })

  it.each([
    ["a loop", (output: ModelOutput) => output.textStream.values()],
    [
      "a reader",
      (output: ModelOutput) => {
        const reader = output.textStream.getReader()
        return { next: () => reader.read() }
      }
    ]
  ])("a reader holds it at every chunk, also when values were asked: %s", async (_, open) => {
    const { model, pulled } = watchedModel(3000)
    const output = await stream(model)
    const reader = open(output)
    const seen: Array<string | undefined> = []
    let text: Promise<string> | undefined
    let most = 0
    for (let next = await reader.next(); !next.done; next = await reader.next()) {
      seen.push(next.value)
      if (seen.length === 1000) text = output.text
      if (seen.length % 7 === 0) await flush(4)
      most = Math.max(most, pulled() - seen.length)
    }
    expect(most).toBeGreaterThan(16)
    expect(most).toBeLessThanOrEqual(ahead)
    expect(seen.join("")).toBe(numbers(3000))
    expect(await text).toBe(numbers(3000))
  })

  it("values asked while a reader pauses wait for it", async () => {
    const { model, pulled } = watchedModel(3000)
    const output = await stream(model)
    const iterator = output.textStream.values()
    await iterator.next()
    const values = [output.text, output.usage, output.getFullOutput(), output.consumeStream()]
    await flush(100)
    expect(pulled()).toBeLessThanOrEqual(1 + ahead)
    expect(output.status).toBe("running")
    expect(await collect({ [Symbol.asyncIterator]: () => iterator })).toHaveLength(2999)
    expect(await Promise.all(values)).toMatchObject([numbers(3000), {}, { text: numbers(3000) }, undefined])
  })
})

describe("values without a reader", () => {
  const drivers: Readonly<Record<string, (output: ModelOutput) => Promise<unknown>>> = {
    text: output => output.text,
    usage: output => output.usage,
    finishReason: output => output.finishReason,
    getFullOutput: output => output.getFullOutput(),
    consumeStream: output => output.consumeStream()
  }

  it.each(Object.entries(drivers))("%s alone lets the run go to its end", async (_, drive) => {
    const { model, pulled, stopped } = watchedModel(1000)
    const output = await stream(model)
    await drive(output)
    expect(pulled()).toBe(1001)
    expect(stopped).toEqual([])
    expect(output.status).toBe("success")
    expect(await output.text).toBe(numbers(1000))
  })

  it("generate gives the same as without", async () => {
    const full = (replay: boolean) =>
      new Agent({ id: "hand", model: variedModel(), tools: { look } }).generate("Go!", {
        replay,
        runId: "mine"
      })
    const [left, right] = await Promise.all([full(true), full(false)])
    const { messageId: _, response: __, ...kept } = left
    expect(right).toMatchObject(kept)
    expect(right.response.messages).toEqual(left.response.messages)
  })
})

describe("a reader that leaves before the end stops the run", () => {
  const broken = async (read: AsyncIterable<unknown>): Promise<void> => {
    for await (const _ of read) throw new RangeError("mine")
  }

  const ways: Readonly<Record<string, (output: ModelOutput) => Promise<unknown>>> = {
    "break out of a loop": async output => {
      for await (const _ of output.fullStream) break
    },
    "an error in a loop": output => expect(broken(output.textStream)).rejects.toThrow("mine"),
    "return of an iterator that waits": async output => {
      const iterator = output.fullStream.values()
      const seen: Array<Promise<unknown>> = []
      for (let count = 0; count < 200; count++) seen.push(iterator.next())
      await flush()
      await iterator.return?.()
      await Promise.all(seen)
    },
    "a reader that is cancelled": async output => {
      const reader = output.textStream.getReader()
      await reader.read()
      await reader.cancel("enough")
    },
    "a reader that is cancelled while it waits": async output => {
      const reader = output.textStream.getReader()
      for (let count = 0; count < 100; count++) await reader.read()
      const waiting = reader.read()
      await flush()
      await reader.cancel("enough")
      expect(await waiting).toEqual({ done: true, value: undefined })
    },
    "a stream that is cancelled unread": output => output.fullStream.cancel(),
    "a loop over a stream that a reader began": async output => {
      const read = output.textStream
      const reader = read.getReader()
      await reader.read()
      reader.releaseLock()
      for await (const _ of read) break
    },
    "a client that closes its response": async output => {
      const body = new Response(output.textStream.pipeThrough(new TextEncoderStream())).body
      const reader = body?.getReader()
      await reader?.read()
      await reader?.cancel()
    },
    "a pipe whose other end breaks": output => {
      const write = (): never => {
        throw new RangeError("mine")
      }
      return expect(output.fullStream.pipeTo(new WritableStream({ write }))).rejects.toThrow("mine")
    },
    "both branches of a tee": async output => {
      const [left, right] = output.fullStream.tee()
      await left.getReader().read()
      await Promise.all([right.cancel(), left.cancel().catch(() => undefined)])
    }
  }

  const { "both branches of a tee": tee, ...others } = ways

  it.each(Object.entries(others))("%s", async (_, leave) => {
    const ends: Array<string> = []
    const { model, stopped } = watchedModel(100, { isSilent: true })
    const output = await stream(model, {
      onAbort: ({ error }) => ends.push(error.message),
      onError: () => ends.push("error"),
      onFinish: () => ends.push("finish")
    })
    await flush(20)
    const text = output.text
    const early = [text, output.usage, output.consumeStream()].map(value => value.catch(String))
    await leave(output)
    // A few turns of the event loop, far less than the 100 ms that are promised.
    await flush(4)
    expect(stopped).toEqual(["signal", "cancelled"])
    expect(output.status).toBe("aborted")
    await expect(text).rejects.toBeInstanceOf(RunAborted)
    expect(await Promise.all(early)).toHaveLength(3)
    await expect(output.toolCalls).rejects.toMatchObject({ cause: "Its reader has left." })
    expect(await output.finishReason).toBe("aborted")
    const full = await output.getFullOutput()
    expect(full.status).toBe("aborted")
    expect(full.text).not.toBe("")
    expect(numbers(100).startsWith(full.text)).toBe(true)
    await flush()
    expect(ends).toEqual(["The run was aborted: Its reader has left."])
  })

  it("both branches of a tee, one is not enough", async () => {
    const { model, stopped } = watchedModel(100, { isSilent: true })
    const output = await stream(model)
    const [left, right] = output.fullStream.tee()
    const reader = left.getReader()
    await reader.read()
    const cancelled = right.cancel()
    await flush(20)
    expect(output.status).toBe("running")
    await reader.cancel()
    await cancelled
    await flush(4)
    expect(stopped).toEqual(["signal", "cancelled"])
    expect(tee).toBeTypeOf("function")
  })

  it("tools too", async () => {
    const begun = latch()
    const stopped = latch()
    const wait = createTool({
      id: "wait",
      execute: (_, { abortSignal }) =>
        new Promise(() => {
          abortSignal?.addEventListener("abort", () => stopped.open())
          begun.open()
        })
    })
    const model = ScriptedModel.make([[ScriptedModel.toolCall("c1", "wait", {}), finish("tool-calls")]])
    const output = await stream(model, {}, { tools: { wait } })
    const iterator = output.fullStream.values()
    while ((await iterator.next()).value?.type !== "tool-call");
    await begun.wait
    await iterator.return?.()
    await stopped.wait
    expect((await output.getFullOutput()).status).toBe("aborted")
  })

  it("but not one that has read the finish", async () => {
    const ends: Array<string> = []
    const output = await stream(watchedModel(10).model, {
      onAbort: () => ends.push("abort"),
      onFinish: () => ends.push("finish")
    })
    for await (const chunk of output.fullStream) if (chunk.type === "finish") break
    expect(await output.text).toBe(numbers(10))
    await flush()
    expect(ends).toEqual(["finish"])
  })

  it("nor a loop that leaves the stream open: it still holds the run, and may be read on", async () => {
    const { model, pulled, stopped } = watchedModel(1000)
    const output = await stream(model)
    const read = output.textStream
    for await (const _ of read.values({ preventCancel: true })) break
    const text = output.text
    await flush(50)
    expect(output.status).toBe("running")
    expect(pulled()).toBeLessThanOrEqual(1 + ahead)
    expect((await collect(read)).join("")).toBe(numbers(1000).slice(2))
    expect(await text).toBe(numbers(1000))
    expect(stopped).toEqual([])
  })
})

describe("what stops a run whose reader is slow", () => {
  const nobody = async (): Promise<void> => undefined

  const readers: Readonly<Record<string, (output: ModelOutput) => Promise<unknown>>> = {
    "nobody reads": nobody,
    "a loop that pauses": output => output.fullStream.values().next(),
    "a reader that pauses": output => output.fullStream.getReader().read(),
    "a reader that let go": async output => {
      const reader = output.textStream.getReader()
      await reader.read()
      reader.releaseLock()
    }
  }

  const stops: Readonly<Record<string, (output: ModelOutput, signal: AbortController) => unknown>> = {
    cancel: output => output.cancel("enough"),
    "its signal": (_, controller) => controller.abort("enough"),
    disposal: output => output[Symbol.asyncDispose]()
  }

  const cases = Object.entries(readers).flatMap(([reading, read]) =>
    Object.entries(stops).map(([stopping, stop]) => ({ reading, read, stopping, stop }))
  )

  it.each(cases)("$stopping, and $reading", async ({ read, stop }) => {
    const controller = new AbortController()
    const { model, stopped } = watchedModel(10_000)
    let aborts = 0
    const output = await stream(model, { abortSignal: controller.signal, onAbort: () => aborts++ })
    await read(output)
    await flush(20)
    // Asked where nobody reads, values would let the run go on.
    const values = read === nobody ? [] : [output.text, output.usage, output.response]
    for (const value of values) value.catch(() => undefined)
    await flush(20)
    expect(output.status).toBe("running")
    await stop(output, controller)
    for (const value of values) await expect(value).rejects.toBeInstanceOf(RunAborted)
    await output.getFullOutput()
    expect(output.status).toBe("aborted")
    expect(stopped).toEqual(["signal", "cancelled"])
    await flush()
    expect(aborts).toBe(1)
  })

  it("the reader goes on and sees how it ended", async () => {
    for (const open of [
      (output: ModelOutput) => output.fullStream.values(),
      (output: ModelOutput) => output.fullStream.getReader()
    ]) {
      const output = await stream(watchedModel(10_000).model)
      const reader = open(output)
      const next = () => ("read" in reader ? reader.read() : reader.next())
      const seen: Array<Chunk> = []
      for (let count = 0; count < 5; count++) {
        const { value } = await next()
        if (value !== undefined) seen.push(value)
      }
      await flush(20)
      await output.cancel("enough")
      for (let { done, value } = await next(); !done; { done, value } = await next()) {
        if (value !== undefined) seen.push(value)
      }
      expect(typesOf(seen).slice(-2)).toEqual(["abort", "finish"])
      expectGrammar(seen)
      expect((await output.getFullOutput()).text).toBe(textOf(seen))
    }
  })

  it.each(["run", "step"] as const)("timeouts.%s", async limit => {
    for (const read of Object.values(readers)) {
      const { model, stopped } = watchedModel(10_000)
      const output = await stream(model, { timeouts: { [limit]: 20 } })
      await read(output)
      while (output.status === "running") await flush(1)
      await expect(output.consumeStream()).rejects.toMatchObject({ _tag: "RunTimedOut", limit })
      expect(stopped).toEqual(["signal", "cancelled"])
      expect(output.status).toBe("failed")
    }
  })

  it("the silence of a model that its reader holds is not its own", async () => {
    const output = await stream(watchedModel(1000).model, { timeouts: { betweenChunks: 30 } })
    const iterator = output.textStream.values()
    await iterator.next()
    await new Promise(resolve => setTimeout(resolve, 90))
    expect(await collect({ [Symbol.asyncIterator]: () => iterator })).toHaveLength(999)
    expect(output.status).toBe("success")
  })

  it("its container is shut down", async () => {
    const { model, stopped } = watchedModel(10_000)
    const agent = new Agent({ id: "hand", model })
    const eddy = new Eddy({ agents: { agent } })
    const output = await agent.stream("Go!", { replay: false })
    await output.fullStream.getReader().read()
    await eddy.shutdown()
    expect(output.status).toBe("aborted")
    expect(stopped).toEqual(["signal", "cancelled"])
  })
})

describe("what is kept", () => {
  setFlagsFromString("--expose-gc")
  const gc: () => void = runInNewContext("gc")

  /** A string that nobody else holds, made of its own characters and not of other strings. */
  const say = (index: number) => delta("a", Buffer.alloc(8192, 97 + (index % 26)).toString("latin1"))

  /** Bytes on the heap that a run of 32 MB of text holds when nearly all of it was read. */
  const heldBy = async (replay: boolean): Promise<number> => {
    const deltas = 4096
    const { model } = watchedModel(deltas, { isSilent: true, say })
    const output = await stream(model, { replay })
    const iterator = output.fullStream.values()
    let read = 0
    let before = 0
    while (read < deltas - 200) {
      const { value } = await iterator.next()
      if (value?.type !== "text-delta") continue
      // The first 2^20 characters are kept for the next prompt.
      if (read++ !== 300) continue
      await flush()
      gc()
      before = process.memoryUsage().heapUsed
    }
    await flush()
    gc()
    const held = process.memoryUsage().heapUsed - before
    expect(output.status).toBe("running")
    await output.cancel()
    return held
  }

  it("nothing that was read", async () => {
    expect(await heldBy(false)).toBeLessThan(4 * 2 ** 20)
    // The check sees what is kept.
    expect(await heldBy(true)).toBeGreaterThan(24 * 2 ** 20)
  })

  it("nothing of a run that nobody reads", async () => {
    const { model, pulled } = watchedModel(4096, { isSilent: true, say })
    const output = await stream(model)
    const settled = output.consumeStream().catch(String)
    await until(() => pulled() >= 300, "it is under way")
    gc()
    const before = process.memoryUsage().heapUsed
    await until(() => pulled() === 4096, "everything was said")
    await flush()
    gc()
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(4 * 2 ** 20)
    await output.cancel()
    await settled
  })
})

describe("an answer that is longer than what is kept", () => {
  const kept = 2 ** 20
  const size = 2 ** 16

  /** Says so many characters of it, in pieces that do not divide what is kept. */
  const pieces = (type: "text-delta" | "reasoning-delta", characters: number): Array<ModelPart.ModelPart> => {
    const whole = "0123456789abcdefghijklmnopqrstuvwxyz-"
      .repeat(Math.ceil(characters / 37))
      .slice(0, characters)
    return Array.from({ length: Math.ceil(characters / size) }, (_, index) => ({
      type,
      id: "a",
      delta: whole.slice(index * size, (index + 1) * size)
    }))
  }

  const lengthOf = (chunks: ReadonlyArray<Chunk>, type: "text-delta" | "reasoning-delta"): number =>
    chunks.reduce((sum, chunk) => {
      const isDelta = chunk.type === "text-delta" || chunk.type === "reasoning-delta"
      return isDelta && chunk.type === type ? sum + chunk.payload.text.length : sum
    }, 0)

  const outputOf = (chunks: ReadonlyArray<Chunk>, type: "step-finish" | "finish") => {
    const found = chunks.find(chunk => chunk.type === type)
    if (found?.type !== "step-finish" && found?.type !== "finish") return expect.fail(`no ${type}`)
    return found.payload.output
  }

  it.each([
    ["text", "text-delta"],
    ["reasoning", "reasoning-delta"]
  ] as const)("%s: all of it is told, the values say that it is not whole", async (_, type) => {
    const output = await stream(ScriptedModel.make([[...pieces(type, kept + 1), finish("stop")]]))
    const chunks = await collect(output.fullStream)
    expect(lengthOf(chunks, type)).toBe(kept + 1)
    for (const end of ["step-finish", "finish"] as const) {
      expect(outputOf(chunks, end).isTruncated).toBe(true)
      expect(outputOf(chunks, end).text).toHaveLength(type === "text-delta" ? kept : 0)
    }
    expect(output.status).toBe("success")
    for (const value of [output.text, output.reasoning, output.reasoningText]) {
      await expect(value).rejects.toMatchObject(refusal)
    }
    const full = await output.getFullOutput()
    expect(full.isTruncated).toBe(true)
    expect(full.error).toBeUndefined()
    expect((type === "text-delta" ? full.text : full.reasoning)?.length).toBe(kept)
    expect(await output.finishReason).toBe("stop")
    expect(await output.steps).toHaveLength(1)
    await output.consumeStream()
  })

  it("text and reasoning count together", async () => {
    const half = kept / 2
    const model = (more: number) =>
      ScriptedModel.make([
        [...pieces("reasoning-delta", half), ...pieces("text-delta", half + more), finish("stop")]
      ])
    const output = await stream(model(1))
    await expect(output.text).rejects.toMatchObject(refusal)
    const exact = await stream(model(0))
    expect(await exact.text).toHaveLength(half)
    expect(await exact.reasoning).toHaveLength(half)
    expect((await exact.getFullOutput()).isTruncated).toBeUndefined()
  })

  it("each answer has its own room", async () => {
    const model = ScriptedModel.make([
      [...pieces("text-delta", kept), ScriptedModel.toolCall("c1", "look", {}), finish("tool-calls")],
      [...pieces("text-delta", kept), finish("stop")]
    ])
    const output = await stream(model, {}, { tools: { look } })
    expect(await output.text).toHaveLength(2 * kept)
    expect((await output.getFullOutput()).isTruncated).toBeUndefined()
  })

  it("surrogate pairs are not cut in two", async () => {
    const output = await stream(
      ScriptedModel.make([
        [...pieces("text-delta", kept - 1), delta("a", "😀"), delta("a", "😀"), finish("stop")]
      ])
    )
    const chunks = await collect(output.fullStream)
    expect(lengthOf(chunks, "text-delta")).toBe(kept + 3)
    const { text } = await output.getFullOutput()
    expect(text.isWellFormed()).toBe(true)
    expect(text.length).toBeLessThanOrEqual(kept)
  })

  it("an answer that was cut off says so too", async () => {
    const model = ScriptedModel.make([[...pieces("text-delta", kept + 1), ScriptedModel.hang]])
    const output = await stream(model)
    const chunks: Array<Chunk> = []
    for await (const chunk of output.fullStream) {
      chunks.push(chunk)
      if (lengthOf([chunk], "text-delta") === 1) void output.cancel()
    }
    expect(outputOf(chunks, "finish")).toMatchObject({ isTruncated: true })
    expect(await output.getFullOutput()).toMatchObject({ status: "aborted", isTruncated: true })
    await expect(output.text).rejects.toBeInstanceOf(RunAborted)
  })

  it("with replay everything is kept", async () => {
    const model = ScriptedModel.make([[...pieces("text-delta", kept + 1), finish("stop")]])
    const output = await stream(model, { replay: true })
    expect(await output.text).toHaveLength(kept + 1)
    expect((await output.getFullOutput()).isTruncated).toBeUndefined()
  })

  it("short texts are whole: values, finish, and the next prompt", async () => {
    const model = variedModel()
    const output = await stream(model, {}, { tools: { look } })
    const chunks = await collect(output.fullStream)
    expect(JSON.stringify(chunks)).not.toContain("isTruncated")
    const full = await output.getFullOutput()
    expect(full.isTruncated).toBeUndefined()
    expect(full.text).toBe(textOf(chunks))
    expect(await output.reasoning).toBe("Let me have a look at it.Done.")
    expect(model.requests[1]?.messages.slice(1)).toMatchObject([
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "Let me have a look at it." },
          { type: "text", text: "First and more" },
          { type: "text", text: "Secondsigned" },
          { type: "tool-call", toolCallId: "c1" }
        ]
      },
      { role: "tool", content: [{ type: "tool-result", toolCallId: "c1" }] }
    ])
  })
})

describe("many at once", () => {
  it("200 runs settle, whatever their readers do, and no source stays open", async () => {
    let open = 0
    const model = modelOf(async function* (call) {
      open++
      try {
        yield delta("a", "said")
        if (call % 3 === 0) yield finish("stop")
        else if (call % 3 === 1) yield { type: "error", error: "overloaded" }
        else for (let index = 0; index < 500; index++) yield delta("a", "x")
      } finally {
        open--
      }
    })
    const outputs = await Promise.all(Array.from({ length: 200 }, () => stream(model)))
    const all = await Promise.all(
      outputs.map(async (output, place) => {
        if (place % 5 === 0) await output.cancel()
        else if (place % 5 === 1) for await (const _ of output.fullStream) break
        else if (place % 5 === 2) await collect(output.fullStream)
        else if (place % 5 === 3) await collectByReader(output.textStream)
        return output.getFullOutput()
      })
    )
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set(["success", "failed", "aborted"]))
    expect(outputs.every(({ status }) => status !== "running")).toBe(true)
    await until(() => open === 0, "every source was closed or cancelled")
  })
})

/** Processors of the promise face: plain objects, threads, callbacks, until-idle streams. */
import {
  Agent,
  type AgentOptions,
  blockWhen,
  type Chunk,
  createTool,
  Eddy,
  InMemoryStore,
  InvalidConfiguration,
  type Processor,
  ProcessorFailed,
  redact,
  type StreamOptions
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { expectGrammar } from "../support/grammar.js"
import { collect, latch, memoryLogger, refuseUnhandledRejections } from "../support/readers.js"

refuseUnhandledRejections()

const { finish, reply, text, toolCall } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

/** A container of one agent that says this, turn by turn. */
const containerOf = (turns: ReadonlyArray<ScriptedModel.Turn>, more: Partial<AgentOptions> = {}) => {
  const model = ScriptedModel.make(turns)
  const agent = new Agent({ id: "guarded", model, ...more })
  const eddy = new Eddy({
    agents: { agent },
    storage: new InMemoryStore(),
    backgroundTasks: { enabled: true },
    logger: memoryLogger()
  })
  const stored = async () =>
    JSON.stringify((await eddy.threads.messages("t1", { resource: "u1" })).map(row => row.message))
  return { agent, eddy, model, stored }
}

const chunksOf = async (agent: Agent, options: StreamOptions = {}): Promise<ReadonlyArray<Chunk>> => {
  const output = await agent.stream("Hello?", options)
  const chunks = await collect(output.fullStream)
  expectGrammar(chunks)
  return chunks
}

const typesOf = (chunks: ReadonlyArray<Chunk>): ReadonlyArray<string> => chunks.map(({ type }) => type)

describe("plain objects", () => {
  it("see and change, with promises and without", async () => {
    const seen: Array<string> = []
    const shout: Processor = {
      id: "shout",
      processInput: async messages => {
        await Promise.resolve()
        seen.push("input")
        return messages
      },
      processInputStep: () => {
        seen.push("step")
        return undefined
      },
      processOutputStream: async chunk => {
        await Promise.resolve()
        return chunk.type === "text-delta"
          ? { ...chunk, payload: { ...chunk.payload, text: chunk.payload.text.toUpperCase() } }
          : chunk
      },
      processOutputStep: async answer => {
        seen.push(answer.text)
      },
      processOutputResult: async () => ({ metadata: { score: 1 } })
    }
    const { agent } = containerOf([reply("one two three")], {
      inputProcessors: [shout],
      outputProcessors: [shout]
    })
    const output = await agent.stream("Hello?")
    expectGrammar(await collect(output.fullStream))
    expect(await output.text).toBe("ONE TWO THREE")
    expect(seen).toEqual(["input", "step", "ONE TWO THREE"])
    expect((await output.response).uiMessages?.[0]?.metadata).toEqual({ score: 1 })
  })

  it("a class will do", async () => {
    class Suffix implements Processor {
      readonly id = "suffix"
      private readonly suffix = "!"

      processOutputStream(chunk: Chunk) {
        return chunk.type === "text-delta"
          ? { ...chunk, payload: { ...chunk.payload, text: chunk.payload.text + this.suffix } }
          : chunk
      }
    }
    const { agent } = containerOf([reply("one two")], { outputProcessors: [new Suffix()] })
    expect((await agent.generate("Hello?")).text).toBe("one! two!")
  })

  it("write data", async () => {
    const writer: Processor = {
      id: "writer",
      processInput: (_, { writeData }) => {
        writeData({ type: "data-checked", data: { ok: true }, transient: true })
        return undefined
      }
    }
    const { agent } = containerOf([reply("Hi.")], { inputProcessors: [writer] })
    const chunks = await chunksOf(agent)
    expect(chunks[1]).toMatchObject({
      type: "data-checked",
      data: { ok: true },
      transient: true,
      from: "USER"
    })
  })

  it("that cannot work are refused", () => {
    const model = ScriptedModel.make([])
    const make = (more: object) => () => new Agent({ id: "a", model, ...more })
    expect(make({ inputProcessors: [{ id: "x" }] })).toThrow(InvalidConfiguration)
    expect(make({ inputProcessors: [{ id: "x", processOutputStep: () => undefined }] })).toThrow(
      InvalidConfiguration
    )
    expect(make({ outputProcessors: [{ id: "x", proces: 1 }] })).toThrow(InvalidConfiguration)
    expect(make({ outputProcessors: { id: "x" } })).toThrow(InvalidConfiguration)
    expect(make({ outputProcessors: [5] })).toThrow(InvalidConfiguration)
  })
})

describe("abort", () => {
  const swallowing = (hook: keyof Processor): Processor => ({
    id: "swallowing",
    [hook]: async (_: unknown, { abort }: { abort: (reason: string) => never }) => {
      try {
        abort("Stop.")
      } catch {
        return undefined
      }
      return undefined
    }
  })

  it.each([
    "processInput",
    "processInputStep",
    "processOutputStream",
    "processOutputStep",
    "processOutputResult"
  ] as const)("counts although it was caught: %s", async hook => {
    const isInput = hook.startsWith("processInput")
    const { agent, eddy } = containerOf([reply("Hi there.")], {
      [isInput ? "inputProcessors" : "outputProcessors"]: [swallowing(hook)]
    })
    const output = await agent.stream("Hello?")
    const chunks = await collect(output.fullStream)
    expectGrammar(chunks)
    expect(typesOf(chunks).slice(-2)).toEqual(["tripwire", "finish"])
    expect(output.status).toBe("tripwire")
    expect(output.tripwire).toEqual({ reason: "Stop.", processorId: "swallowing" })
    expect(await output.text).toBe("")
    expect(await output.finishReason).toBe("tripwire")
    expect(await output.steps).toEqual([])
    expect(output.error).toBeUndefined()
    await eddy.shutdown()
  })

  it("of a check beside the stream stops it, although its hook has returned", async () => {
    const bad = latch()
    const beside: Processor = {
      id: "beside",
      processOutputStream: (chunk, { abort, state }) => {
        state["check"] ??= bad.wait.then(() => abort("Found out late.")).catch(() => undefined)
        return chunk
      }
    }
    const model = ScriptedModel.make([[...text("one"), ScriptedModel.hang]])
    const agent = new Agent({ id: "beside", model, outputProcessors: [beside] })
    const output = await agent.stream("Hello?")
    const reading = collect(output.fullStream)
    bad.open()
    expectGrammar(await reading)
    expect(output.tripwire?.reason).toBe("Found out late.")
  })

  it("generate resolves, with the tripwire", async () => {
    const { agent } = containerOf(
      [[...text("Looking."), toolCall("c1", "look", {}), finish("tool-calls")], reply("bad")],
      {
        tools: { look: createTool({ id: "look", execute: () => "seen" }) },
        outputProcessors: [blockWhen({ text: words => words === "bad" })]
      }
    )
    const full = await agent.generate("Hello?")
    expect(full).toMatchObject({
      status: "tripwire",
      text: "Looking.",
      tripwire: { processorId: "block-when" }
    })
  })
})

describe("callbacks", () => {
  it("onFinish is called once, onStepFinish for no step that was rejected", async () => {
    const called: Array<string> = []
    const { agent } = containerOf([reply("bad"), reply("good")], {
      outputProcessors: [blockWhen({ text: words => words === "bad", retry: true })]
    })
    await chunksOf(agent, {
      onStepFinish: step => called.push(`step ${step.text}`),
      onFinish: output => called.push(`finish ${output.text}`),
      onError: () => called.push("error"),
      onAbort: () => called.push("abort")
    })
    expect(called).toEqual(["step good", "finish good"])
  })

  it("onFinish is called with a tripwire, onError with a processor that failed", async () => {
    const called: Array<string> = []
    const options: StreamOptions = {
      onFinish: output => called.push(`finish ${output.status}`),
      onError: ({ error }) => called.push(error instanceof ProcessorFailed ? `failed ${error.hook}` : "error")
    }
    const blocked = containerOf([reply("bad")], { outputProcessors: [blockWhen({ text: () => true })] })
    await chunksOf(blocked.agent, options)
    const faulty: Processor = { id: "faulty", processOutputStep: () => Promise.reject(new Error("broken")) }
    await chunksOf(containerOf([reply("Hi.")], { outputProcessors: [faulty] }).agent, options)
    expect(called).toEqual(["finish tripwire", "failed processOutputStep"])
  })
})

describe("a thread", () => {
  it("holds what the processors gave, as one text", async () => {
    const pii = redact()
    const { agent, stored } = containerOf([reply("Hello ada@mail.example, welcome")], {
      inputProcessors: [pii],
      outputProcessors: [pii]
    })
    const output = await agent.stream("I am bob@mail.example", { memory })
    expect(await output.text).toBe("Hello [email], welcome")
    expect(JSON.parse(await stored())).toEqual([
      { role: "user", content: [{ type: "text", text: "I am [email]" }] },
      { role: "assistant", content: [{ type: "text", text: "Hello [email], welcome" }] }
    ])
  })

  it("holds nothing of input that was stopped", async () => {
    const { agent, eddy } = containerOf([], { inputProcessors: [blockWhen({ text: () => "No." })] })
    const chunks = await chunksOf(agent, { memory })
    expect(typesOf(chunks)).toEqual(["start", "tripwire", "finish"])
    const { threads } = await eddy.threads.list({ resource: "u1" })
    expect(threads).toEqual([])
  })

  it("holds nothing of answers that were rejected, and neither does the next prompt", async () => {
    const { agent, model, stored } = containerOf([reply("bad"), reply("good"), reply("bad"), reply("next")], {
      outputProcessors: [blockWhen({ text: words => words === "bad", retry: true, reason: "Nicer." })]
    })
    await chunksOf(agent, { memory })
    await chunksOf(agent, { memory, maxProcessorRetries: 0 })
    expect(await stored()).not.toMatch(/bad|Nicer/)
    await chunksOf(agent, { memory, outputProcessors: [] })
    expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toMatch(/bad|Nicer/)
  })

  it("a thread of a run that was stopped goes on", async () => {
    const { agent, model } = containerOf([reply("bad"), reply("fine")], {
      outputProcessors: [blockWhen({ text: words => words === "bad" })]
    })
    await chunksOf(agent, { memory })
    expect((await agent.generate("Again?", { memory })).text).toBe("fine")
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(["user", "user"])
  })
})

describe("an until-idle stream", () => {
  const open = (turns: ReadonlyArray<ScriptedModel.Turn>, more: Partial<AgentOptions>) => {
    const work = createTool({ id: "work", background: { enabled: true }, execute: () => "worked" })
    return containerOf(turns, { tools: { work }, ...more })
  }

  const calling = [toolCall("c1", "work", {}), finish("tool-calls")]

  it("a turn that was stopped is over, and the tasks of the stream are answered in the next", async () => {
    const { agent } = open([calling, reply("bad"), reply("It has worked.")], {
      outputProcessors: [blockWhen({ text: words => words === "bad" })]
    })
    const output = await agent.stream("Go.", { untilIdle: true })
    await output.consumeStream({ onError: () => undefined })
    const turns = await output.turns
    expect(turns.map(({ status, text: words }) => [status, words])).toEqual([
      ["tripwire", ""],
      ["success", "It has worked."]
    ])
  })

  it("a turn that answers to tasks has no new input; when it is stopped, its tasks are not answered again", async () => {
    const inputs: Array<number> = []
    const { agent, model } = open([calling, reply("On it."), reply("bad")], {
      inputProcessors: [
        {
          id: "count",
          processInput: messages => {
            inputs.push(messages.length)
            return undefined
          }
        }
      ],
      outputProcessors: [blockWhen({ text: words => words === "bad" })]
    })
    const output = await agent.stream("Go.", { untilIdle: true })
    await output.consumeStream({ onError: () => undefined })
    expect((await output.turns).map(({ status }) => status)).toEqual(["success", "tripwire"])
    expect(inputs).toEqual([1])
    expect(model.unused()).toBe(0)
  })
})

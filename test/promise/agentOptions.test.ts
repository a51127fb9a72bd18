/** What an agent of plain TypeScript may be made of, and its runs be told: models by name, functions, steps, limits. */
import { createOpenAI } from "@ai-sdk/openai"
import {
  Agent,
  type AgentOptions,
  createTool,
  Eddy,
  InvalidConfiguration,
  InvalidMessage,
  type Message,
  ModelError,
  type ModelInput,
  type PrepareStep,
  type RequestContext,
  RunAborted,
  RunTimedOut,
  type StepState,
  type StreamOptions
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { afterEach, describe, expect, it, vi } from "vitest"
import { z } from "zod"
import { failing, refusal } from "../agent/kit.js"
import { expectGrammar } from "../support/grammar.js"
import {
  collect,
  flush,
  latch,
  memoryLogger,
  refuseUnhandledRejections,
  typesOf
} from "../support/readers.js"
import { chat } from "../support/transcripts.js"

refuseUnhandledRejections()

afterEach(() => {
  vi.unstubAllGlobals()
  vi.unstubAllEnvs()
})

const { finish: ends, reply, toolCall } = ScriptedModel

const look = createTool({
  id: "look",
  inputSchema: z.object({ for: z.string().optional() }),
  execute: async input => `found ${input.for ?? "it"}`
})

const other = createTool({ id: "other", execute: () => "other" })

const calling = (toolName: string, more: ReadonlyArray<ScriptedModel.Turn> = [reply("done")]) =>
  ScriptedModel.make([[toolCall("c1", toolName, {}), ends("tool-calls")], ...more])

const system = (content: string): Message => ({ role: "system", content })

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail("nothing was rejected"),
    (error: unknown) => error
  )

/** Settles with what the promise settles with, or says that it does not. */
const promptly = (promise: Promise<unknown>): Promise<unknown> =>
  Promise.race([promise.catch((error: unknown) => error), flush(50).then(() => "still waiting")])

const expectRefusal = (error: unknown, field: string, ...words: ReadonlyArray<string | RegExp>): void => {
  expect(error).toBeInstanceOf(InvalidConfiguration)
  expect(error).toMatchObject({ field })
  for (const word of words) expect((error as Error).message).toMatch(word)
}

const caught = (act: () => unknown): unknown => {
  try {
    act()
  } catch (error) {
    return error
  }
  return expect.fail("nothing was thrown")
}

/** A server that says the same to everybody, where the platform's `fetch` should be. */
const stubFetch = () => {
  const addresses: Array<string> = []
  vi.stubGlobal("fetch", async (input: string | URL | Request) => {
    addresses.push(input instanceof Request ? input.url : String(input))
    return new Response(chat.text, { headers: { "content-type": "text/event-stream" } })
  })
  return addresses
}

const chatText = "Größe 日本 👩‍🚀 – ok ✓"

describe("a model", () => {
  const named: ReadonlyArray<readonly [what: string, model: ModelInput, address: string]> = [
    ["its name", "ollama/llama3", "http://127.0.0.1:11434/v1/chat/completions"],
    [
      "its name, with a key in the environment",
      "groq/llama3",
      "https://api.groq.com/openai/v1/chat/completions"
    ],
    [
      "a name and a place",
      { id: "brook/brook-1", url: "http://127.0.0.1:9/v1" },
      "http://127.0.0.1:9/v1/chat/completions"
    ],
    [
      "a list of names",
      ["ollama/llama3", { id: "brook/brook-1", url: "http://127.0.0.1:9/v1" }],
      "http://127.0.0.1:11434/v1/chat/completions"
    ],
    [
      "a list with retries",
      [{ model: "ollama/llama3", maxRetries: 0 }],
      "http://127.0.0.1:11434/v1/chat/completions"
    ]
  ]

  it.each(named)("may be %s", async (_, model, address) => {
    vi.stubEnv("GROQ_API_KEY", "no-key-at-all")
    const addresses = stubFetch()
    const { text } = await new Agent({ id: "hand", model }).generate("Go!")
    expect(text).toBe(chatText)
    expect(addresses).toEqual([address])
    const made = await new Agent({ id: "hand", model: () => model }).generate("Go!")
    expect(made.text).toBe(chatText)
    expect(addresses).toEqual([address, address])
  })

  const sdkModel = () => {
    const model = {
      specificationVersion: "v3" as const,
      provider: "kit",
      modelId: "sdk-1",
      calls: 0,
      doStream: async () => {
        model.calls++
        throw refusal(401)
      }
    }
    return model
  }

  it("falls back in its list, whatever its members are", async () => {
    const addresses = stubFetch()
    const first = sdkModel()
    const second = ScriptedModel.make([failing(refusal(403))])
    const agent = new Agent({
      id: "hand",
      model: [first, { model: second, maxRetries: 0 }, { model: "ollama/llama3" }]
    })
    const output = await agent.stream("Go!")
    const chunks = await collect(output.fullStream)
    expectGrammar(chunks)
    expect(first.calls).toBe(1)
    expect(second.unused()).toBe(0)
    expect(addresses).toHaveLength(1)
    expect(await output.text).toBe(chatText)
    expect(chunks.at(-1)).toMatchObject({ payload: { metadata: { provider: "ollama", modelId: "llama3" } } })
  })

  it("without a key gives the next its turn, and alone fails the run", async () => {
    vi.stubEnv("OPENAI_API_KEY", "")
    const model = ScriptedModel.make([reply("ok")])
    expect((await new Agent({ id: "hand", model: ["openai/gpt-5", model] }).generate("Go!")).text).toBe("ok")
    expectRefusal(
      await rejection(new Agent({ id: "hand", model: "openai/gpt-5" }).generate("Go!")),
      "model",
      "OPENAI_API_KEY"
    )
  })

  it("may be made for each run, from its context", async () => {
    const models: Readonly<Record<string, ScriptedModel.ScriptedModel>> = {
      small: ScriptedModel.make([reply("small")]),
      large: ScriptedModel.make([reply("large")])
    }
    const agent = new Agent({
      id: "hand",
      model: async ({ requestContext }) => models[String(requestContext.get("size"))] ?? expect.fail()
    })
    const texts = [
      (await agent.generate("Go!", { requestContext: { size: "small" } })).text,
      (await agent.generate("Go!", { requestContext: new Map([["size", "large"]]) })).text
    ]
    expect(texts).toEqual(["small", "large"])
  })

  it("is tried again as often as `maxRetries` says", async () => {
    const model = ScriptedModel.make([
      failing(refusal(503, { responseHeaders: { "retry-after": "99" } })),
      reply("ok")
    ])
    const error = await rejection(new Agent({ id: "hand", model }).generate("Go!"))
    expect(error).toBeInstanceOf(ModelError)
    expect(error).toMatchObject({ statusCode: 503, retryAfter: 99_000 })
    const never = ScriptedModel.make([failing(refusal(503)), reply("ok")])
    const agent = new Agent({ id: "hand", model: never, defaultOptions: { maxRetries: 2 } })
    expect(await rejection(agent.generate("Go!", { maxRetries: 0 }))).toMatchObject({ statusCode: 503 })
    const again = ScriptedModel.make([failing(refusal(503)), reply("ok")])
    const onError = vi.fn()
    expect(
      (await new Agent({ id: "hand", model: again }).generate("Go!", { maxRetries: 1, onError })).text
    ).toBe("ok")
    expect(onError).not.toHaveBeenCalled()
  })

  const wrong: ReadonlyArray<readonly [what: string, model: unknown, field: string]> = [
    ["a name without a provider", "gpt-5", "model"],
    ["an empty name", "", "model"],
    ["a provider that nobody knows, and no place", "nobody/gpt-5", "model"],
    [
      "a place with an option that nobody knows",
      { id: "brook/b", url: "http://127.0.0.1:9/v1", key: "x" },
      "model"
    ],
    ["a number", 5, "model"],
    ["no list", [], "model"],
    ["a list with nothing in it", [undefined], "model"],
    ["a list with null", [null], "model"],
    ["a list with a wrong name", ["ollama/llama3", "gpt-5"], "model"],
    ["an entry with a wrong name", [{ model: "gpt-5" }], "model"],
    ["an entry without a model", [{ model: undefined }], "model"],
    ["an entry with a wrong number", [{ model: "ollama/llama3", maxRetries: -1 }], "model[0].maxRetries"],
    ["an entry with an option that nobody knows", [{ model: "ollama/llama3", enabled: false }], "enabled"],
    ["a model of no known specification", { specificationVersion: "v1" }, "model.specificationVersion"],
    ["an object", {}, "model.specificationVersion"]
  ]

  it.each(wrong)("is refused when the agent is made: %s", (_, model, field) => {
    expectRefusal(
      caught(() => new Agent({ id: "hand", model } as AgentOptions)),
      field
    )
  })

  it.each(wrong)("is refused before any chunk when a function makes it: %s", async (_, model) => {
    const agent = new Agent({ id: "hand", model: () => model } as AgentOptions)
    const error = await rejection(agent.stream("Go!"))
    expect(error).toBeInstanceOf(InvalidConfiguration)
    expect((error as Error).message).not.toMatch(/undefined is|cannot read|not a function/i)
  })
})

describe("a provider where its model should be", () => {
  it("is refused before any chunk", async () => {
    const openai = createOpenAI({ apiKey: "no-key-at-all" })
    const agent = new Agent({ id: "hand", model: openai as never })
    expectRefusal(
      await rejection(agent.stream("Go!", { requestContext: { secret: 1 } })),
      "model",
      "by its name"
    )
  })
})

describe("instructions and tools", () => {
  it("may be functions, called once for each run", async () => {
    const contexts: Array<RequestContext> = []
    const model = calling("look")
    const agent = new Agent({
      id: "hand",
      model,
      instructions: ({ requestContext }) => {
        contexts.push(requestContext)
        return `For ${requestContext.get("user")}.`
      },
      tools: async ({ requestContext }) => {
        contexts.push(requestContext)
        return { look }
      }
    })
    const requestContext = new Map([["user", "ada"]])
    const { toolResults } = await agent.generate("Go!", { requestContext })
    expect(toolResults.map(({ payload }) => payload.result)).toEqual(["found it"])
    expect(model.requests.map(({ messages }) => messages[0])).toEqual([
      system("For ada."),
      system("For ada.")
    ])
    expect(contexts).toHaveLength(2)
    for (const context of contexts) expect(context).toBe(requestContext)
  })

  it("may be promises, and tools be called as the record says", async () => {
    const model = calling("renamed")
    const agent = new Agent({
      id: "hand",
      model,
      instructions: async () => "Late.",
      tools: async () => ({ renamed: look })
    })
    const { toolResults } = await agent.generate("Go!")
    expect(toolResults).toHaveLength(1)
    expect(model.requests[0]?.messages[0]).toEqual(system("Late."))
  })

  it("may be no tools, when there are none for this run", async () => {
    const model = ScriptedModel.make([reply("ok"), reply("ok")])
    await new Agent({ id: "hand", model, tools: () => ({}) }).generate("Go!")
    await new Agent({ id: "hand", model, tools: () => undefined as never }).generate("Go!")
    expect(model.requests.map(({ tools }) => tools)).toEqual([[], []])
  })

  const oops = (): never => {
    throw new Error("oh no")
  }
  const broken: ReadonlyArray<readonly [what: string, options: Partial<AgentOptions>, field: string]> = [
    ["instructions that throw", { instructions: oops }, "instructions"],
    ["instructions that reject", { instructions: async () => oops() }, "instructions"],
    ["a model that throws", { model: oops }, "model"],
    ["a model that rejects", { model: async () => oops() }, "model"],
    ["tools that throw", { tools: oops }, "tools"],
    ["tools that reject with a text", { tools: () => Promise.reject("oh no") }, "tools"]
  ]

  it.each(broken)("%s reject the call, before any chunk", async (_, options, field) => {
    const onChunk = vi.fn()
    const onError = vi.fn()
    const model = ScriptedModel.make([])
    const agent = new Agent({ id: "hand", model, ...options })
    expectRefusal(await rejection(agent.stream("Go!", { onChunk, onError })), field, "oh no", `\`${field}\``)
    expectRefusal(await rejection(agent.generate("Go!", { onChunk, onError })), field, "oh no")
    await flush()
    expect(onChunk).not.toHaveBeenCalled()
    expect(onError).not.toHaveBeenCalled()
    expect(model.requests).toHaveLength(0)
  })

  const wrong: ReadonlyArray<readonly [what: string, options: object, field: string]> = [
    ["what is no tool", { tools: () => ({ look: {} }) }, "tools"],
    ["a list of tools by mistake", { tools: () => [{}] }, "tools"],
    ["instructions that are no text", { instructions: () => 5 }, "instructions"]
  ]

  it.each(wrong)("%s rejects the call", async (_, options, field) => {
    const agent = new Agent({ id: "hand", model: ScriptedModel.make([]), ...options } as AgentOptions)
    expectRefusal(await rejection(agent.stream("Go!")), field)
  })

  it("that are no text are refused when the agent is made, or at the latest when it runs", async () => {
    const make = async () =>
      new Agent({ id: "hand", model: ScriptedModel.make([]), instructions: { text: "x" } as never }).stream(
        "Go!"
      )
    expectRefusal(await rejection(make()), "instructions")
  })
})

describe("a function that never answers", () => {
  const pending = (part: "instructions" | "model" | "tools") => {
    const asked = latch()
    const agent = new Agent({
      id: "hand",
      model: ScriptedModel.make([]),
      [part]: () => {
        asked.open()
        return new Promise<never>(() => undefined)
      }
    })
    return { agent, asked: asked.wait }
  }

  it.each(["instructions", "model", "tools"] as const)(
    "%s: does not hold a run that is aborted",
    async part => {
      const { agent, asked } = pending(part)
      const controller = new AbortController()
      const started = agent.stream("Go!", { abortSignal: controller.signal, onAbort: () => undefined })
      await asked
      controller.abort("enough")
      const outcome = await promptly(started.then(({ status }) => status))
      expect(outcome === "aborted" || outcome instanceof RunAborted).toBe(true)
    }
  )

  it("does not hold the end of its container", async () => {
    const { agent, asked } = pending("instructions")
    const eddy = new Eddy({ agents: { agent }, logger: memoryLogger() })
    const started = agent.stream("Go!")
    started.catch(() => undefined)
    await asked
    expect(await promptly(eddy.shutdown())).toBeUndefined()
    expect(await promptly(started.then(({ status }) => status))).not.toBe("still waiting")
  })
})

describe("prepareStep", () => {
  it("knows the step, and changes it: model, tools, messages, settings", async () => {
    const states: Array<StepState> = []
    const model = calling("look", [reply("done")])
    const second = ScriptedModel.make([[toolCall("c2", "renamed", {}), ends("tool-calls")]], {
      modelId: "second"
    })
    const output = await new Agent({ id: "hand", model, tools: { look } }).stream("Go!", {
      requestContext: { user: "ada" },
      prepareStep: async state => {
        states.push(state)
        if (state.stepNumber !== 1) return
        return {
          model: [{ model: second, maxRetries: 0 }],
          tools: { renamed: other },
          instructions: `For ${state.requestContext.get("user")}.`,
          messages: [{ role: "user", content: "Other." }],
          modelSettings: { seed: 1 },
          toolChoice: "required"
        }
      }
    })
    const chunks = await collect(output.fullStream)
    expectGrammar(chunks)
    expect(states.map(({ stepNumber, steps }) => [stepNumber, steps.length])).toEqual([
      [0, 0],
      [1, 1],
      [2, 2]
    ])
    expect(second.requests[0]).toMatchObject({
      messages: [system("For ada."), { role: "user", content: [{ type: "text", text: "Other." }] }],
      tools: [{ name: "look" }, { name: "renamed" }],
      settings: { seed: 1 },
      toolChoice: "required"
    })
    expect((await output.toolResults).map(({ payload }) => payload.result)).toEqual(["found it", "other"])
    expect(model.requests[1]?.tools.map(({ name }) => name)).toEqual(["look"])
    expect(await output.text).toBe("done")
  })

  it("may name a model", async () => {
    const addresses = stubFetch()
    const model = ScriptedModel.make([])
    const { text } = await new Agent({ id: "hand", model }).generate("Go!", {
      prepareStep: () => ({ model: "ollama/llama3" })
    })
    expect(text).toBe(chatText)
    expect(addresses).toHaveLength(1)
    expect(model.requests).toHaveLength(0)
  })

  it("of the agent's default options holds, unless the run has its own", async () => {
    const model = ScriptedModel.make([reply("a"), reply("b")])
    const defaultOptions: StreamOptions = { prepareStep: () => ({ instructions: "Mine." }) }
    const agent = new Agent({ id: "hand", model, defaultOptions })
    await agent.generate("Go!")
    await agent.generate("Go!", { prepareStep: () => undefined })
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([2, 1])
  })

  const broken: ReadonlyArray<readonly [what: string, prepareStep: PrepareStep, error: object]> = [
    [
      "throws",
      () => {
        throw new Error("oh no")
      },
      { name: "InvalidConfiguration", field: "prepareStep", message: expect.stringContaining("oh no") }
    ],
    [
      "rejects",
      () => Promise.reject(new Error("oh no")),
      { field: "prepareStep", message: expect.stringContaining("oh no") }
    ],
    [
      "gives an option that nobody knows",
      (() => ({ system: "x" })) as never,
      { name: "InvalidConfiguration", field: "system" }
    ],
    [
      "gives a wrong name of a model",
      () => ({ model: "gpt-5" as never }),
      { name: "InvalidConfiguration", field: "model" }
    ],
    [
      "gives what is no tool",
      () => ({ tools: { look: {} as never } }),
      { name: "InvalidConfiguration", field: "tools.look" }
    ],
    ["gives a wrong message", () => ({ messages: [{ role: "robot" } as never] }), { name: "InvalidMessage" }],
    ["gives a number", (() => 5) as never, { name: "InvalidConfiguration", field: "prepareStep" }],
    ["gives a text", (() => "x") as never, { name: "InvalidConfiguration", field: "prepareStep" }],
    ["gives a list", (() => ["x"]) as never, { name: "InvalidConfiguration", field: "prepareStep" }]
  ]

  it.each(broken)("that %s fails the run", async (_, prepareStep, error) => {
    const onError = vi.fn()
    const model = ScriptedModel.make([])
    const output = await new Agent({ id: "hand", model }).stream("Go!", { prepareStep, onError })
    const chunks = await collect(output.fullStream)
    expectGrammar(chunks)
    expect(typesOf(chunks)).toEqual(["start", "error", "finish"])
    expect(output.error).toMatchObject(error)
    expect(output.error instanceof InvalidConfiguration || output.error instanceof InvalidMessage).toBe(true)
    expect(onError).toHaveBeenCalledTimes(1)
    expect(model.requests).toHaveLength(0)
  })

  it("that never answers is no matter to a run that is cancelled", async () => {
    const asked = latch()
    const output = await new Agent({ id: "hand", model: ScriptedModel.make([]) }).stream("Go!", {
      prepareStep: () => {
        asked.open()
        return new Promise<never>(() => undefined)
      }
    })
    await asked.wait
    await output.cancel("enough")
    expect(output.status).toBe("aborted")
    expect(typesOf(await collect(output.fullStream))).toEqual(["start", "abort", "finish"])
  })
})

describe("an option of undefined", () => {
  it("is as good as none: what the agent says by default holds", async () => {
    const model = calling("look")
    const agent = new Agent({
      id: "hand",
      model,
      tools: { look, other },
      defaultOptions: {
        maxSteps: 1,
        activeTools: ["look"],
        instructions: "Be brief.",
        modelSettings: { seed: 1 }
      }
    })
    // TypeScript allows it unless it is told to be exact.
    const options = {
      maxSteps: undefined,
      activeTools: undefined,
      instructions: undefined,
      modelSettings: undefined
    }
    await agent.generate("Go!", options as object)
    expect(model.requests).toMatchObject([{ tools: [{ name: "look" }], settings: { seed: 1 } }])
    expect(model.requests[0]?.messages[0]).toEqual(system("Be brief."))
  })
})

describe("toModelOutput of a tool", () => {
  const told = (model: ScriptedModel.ScriptedModel) => {
    const last = model.requests[1]?.messages.at(-1)
    return last?.role === "tool" ? last.content.map(({ output }) => output) : undefined
  }

  const content = [
    { type: "text", text: "see" },
    { type: "image-data", data: "AAEC", mediaType: "image/png" }
  ]
  const outputs: ReadonlyArray<readonly [what: string, given: unknown, told: unknown]> = [
    ["a text", "short", { type: "text", value: "short" }],
    ["a promise of JSON", Promise.resolve({ n: 1 }), { type: "json", value: { n: 1 } }],
    ["content", { type: "content", value: content }, { type: "content", value: content }],
    [
      "an image in the older word",
      { type: "content", value: [{ type: "media", data: "AAEC", mediaType: "image/png" }] },
      { type: "content", value: [content[1]] }
    ],
    ["nothing", undefined, { type: "json", value: null }]
  ]

  it.each(outputs)("may give %s, and the stream has the output itself", async (_, given, expected) => {
    const rows = Array.from({ length: 100 }, (_, index) => index)
    const fetch = createTool({ id: "fetch", execute: async () => ({ rows }), toModelOutput: () => given })
    const model = calling("fetch")
    const { toolResults } = await new Agent({ id: "hand", model, tools: { fetch } }).generate("Go!")
    expect(toolResults.map(({ payload }) => payload.result)).toEqual([{ rows }])
    expect(told(model)).toEqual([expected])
  })

  it.each([
    [
      "throws",
      () => {
        throw new TypeError("oh no")
      }
    ],
    ["rejects", () => Promise.reject(new TypeError("oh no"))]
  ])("that %s is a failure of the tool", async (_, toModelOutput) => {
    const fetch = createTool({ id: "fetch", execute: () => 1, toModelOutput })
    const model = calling("fetch")
    const { steps, text, toolResults } = await new Agent({ id: "hand", model, tools: { fetch } }).generate(
      "Go!"
    )
    expect(toolResults).toEqual([])
    expect(steps[0]?.toolErrors.map(({ payload }) => payload.error)).toEqual([expect.any(TypeError)])
    expect(told(model)).toEqual([{ type: "error-text", value: "oh no" }])
    expect(text).toBe("done")
  })

  it("is given what the schema says", async () => {
    const fetch = createTool({
      id: "fetch",
      outputSchema: z.object({ n: z.number() }),
      execute: () => ({ n: 1, more: true }) as { n: number },
      toModelOutput: ({ n }) => `n is ${n}`
    })
    const model = calling("fetch")
    await new Agent({ id: "hand", model, tools: { fetch } }).generate("Go!")
    expect(told(model)).toEqual([{ type: "text", value: "n is 1" }])
  })
})

describe("time limits", () => {
  const hanging = () => ScriptedModel.make([[ScriptedModel.hang], [ScriptedModel.hang]])

  it("of a run fail it", async () => {
    const agent = new Agent({
      id: "hand",
      model: hanging(),
      defaultOptions: { timeouts: { run: "10 millis" } }
    })
    const error = await rejection(agent.generate("Go!"))
    expect(error).toBeInstanceOf(RunTimedOut)
    expect(error).toMatchObject({ limit: "run", milliseconds: 10 })
  })

  it("of a model's silence fail its call", async () => {
    const agent = new Agent({ id: "hand", model: [hanging(), ScriptedModel.make([reply("ok")])] })
    const options = { maxRetries: 0, timeouts: { firstContent: 10 } }
    expect((await agent.generate("Go!", options)).text).toBe("ok")
    const error = await rejection(new Agent({ id: "hand", model: hanging() }).generate("Go!", options))
    expect(error).toMatchObject({ name: "ModelError", reason: "timeout" })
  })

  const wrong: ReadonlyArray<readonly [what: string, options: object, field: string]> = [
    ["no time", { timeouts: { run: 0 } }, "timeouts.run"],
    ["no word for a time", { timeouts: { step: "soon" } }, "timeouts.step"],
    ["too long a time", { timeouts: { firstContent: "25 days" } }, "timeouts.firstContent"],
    ["a misspelt limit", { timeouts: { total: 5 } }, "total"],
    ["a time alone", { timeouts: { run: {} } }, "timeouts.run"],
    ["retries below none", { maxRetries: -1 }, "maxRetries"]
  ]

  it.each(wrong)("%s is refused", async (_, options, field) => {
    const model = ScriptedModel.make([])
    expectRefusal(await rejection(new Agent({ id: "hand", model }).stream("Go!", options)), field)
    expectRefusal(
      caught(() => new Agent({ id: "hand", model, defaultOptions: options })),
      field
    )
  })
})

describe("active tools", () => {
  it("are those that the model may call", async () => {
    const model = calling("look")
    const agent = new Agent({
      id: "hand",
      model,
      tools: { look, other },
      defaultOptions: { activeTools: ["other"] }
    })
    const { steps } = await agent.generate("Go!")
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["other"])
    expect(steps[0]?.toolErrors.map(({ payload }) => payload.error)).toMatchObject([
      { name: "ToolNotFound", available: ["other"] }
    ])
  })

  const wrong: ReadonlyArray<readonly [what: string, options: StreamOptions, field: string]> = [
    ["one that is not there", { activeTools: ["loook"] }, "activeTools"],
    ["no list", { activeTools: "look" as never }, "activeTools"],
    [
      "a choice of one that is not active",
      { activeTools: ["other"], toolChoice: { type: "tool", toolName: "look" } },
      "toolChoice"
    ]
  ]

  it.each(wrong)("%s is refused", async (_, options, field) => {
    const model = ScriptedModel.make([])
    const agent = new Agent({ id: "hand", model, tools: { look, other } })
    expectRefusal(await rejection(agent.stream("Go!", options)), field)
  })
})

describe("the context of a request", () => {
  it("reaches tools, and the agents below, as it was given", async () => {
    const seen: Array<RequestContext> = []
    const note = createTool({
      id: "note",
      execute: (_, { requestContext }) => {
        seen.push(requestContext)
        requestContext.set(`call ${seen.length}`, true)
      }
    })
    const below = new Agent({
      id: "below",
      model: calling("note", [reply("below")]),
      tools: { note },
      // The caller's counts.
      defaultOptions: { requestContext: { user: "nobody" } }
    })
    const above = new Agent({
      id: "above",
      model: ScriptedModel.make([
        [toolCall("c1", "note", {}), toolCall("c2", "agent-below", { prompt: "Go!" }), ends("tool-calls")],
        reply("done")
      ]),
      tools: { note },
      agents: { below }
    })
    const requestContext: RequestContext = new Map([["user", "ada"]])
    await above.generate("Go!", { requestContext })
    expect(seen).toHaveLength(2)
    for (const context of seen) expect(context).toBe(requestContext)
    expect([...requestContext.keys()]).toEqual(["user", "call 1", "call 2"])
  })

  it("of the default options is a new one for each run, when it is a record", async () => {
    const seen: Array<RequestContext> = []
    const note = createTool({
      id: "note",
      execute: (_, { requestContext }) => void seen.push(requestContext.set("n", 1))
    })
    const model = ScriptedModel.make([
      [toolCall("c1", "note", {}), ends("tool-calls")],
      reply("a"),
      [toolCall("c1", "note", {}), ends("tool-calls")],
      reply("b")
    ])
    const agent = new Agent({
      id: "hand",
      model,
      tools: { note },
      defaultOptions: { requestContext: { user: "ada" } }
    })
    await agent.generate("Go!")
    await agent.generate("Go!")
    expect(seen).toEqual([
      new Map<string, unknown>([
        ["user", "ada"],
        ["n", 1]
      ]),
      new Map<string, unknown>([
        ["user", "ada"],
        ["n", 1]
      ])
    ])
    expect(seen[0]).not.toBe(seen[1])
  })
})

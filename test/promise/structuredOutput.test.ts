/** The structured value of a run on the Promise face: its settlement, its streams, and who is told of what is wrong. */
import type { LanguageModel } from "eddy"
import { Agent, createTool, Eddy, InMemoryStore, type ModelOutput, StructuredOutputError } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Schema } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { z } from "zod"
import { expectGrammar } from "../support/grammar.js"

const { finish, reply, text, toolCall } = ScriptedModel

const person = z.object({ name: z.string(), age: z.number() })

const unhandled: Array<unknown> = []
const note = (reason: unknown): void => void unhandled.push(reason)

beforeEach(() => {
  unhandled.length = 0
  process.on("unhandledRejection", note)
})

afterEach(async () => {
  await new Promise(setImmediate)
  process.off("unhandledRejection", note)
  expect(unhandled).toEqual([])
})

const all = async <A>(stream: AsyncIterable<A>): Promise<ReadonlyArray<A>> => {
  const items: Array<A> = []
  for await (const item of stream) items.push(item)
  return items
}

/** A turn that says these deltas. */
const deltas = (...pieces: ReadonlyArray<string>): ReadonlyArray<ScriptedModel.ScriptPart> => [
  { type: "text-start", id: "0" },
  ...pieces.map((delta): ScriptedModel.ScriptPart => ({ type: "text-delta", id: "0", delta })),
  { type: "text-end", id: "0" },
  finish("stop", { inputTokens: 2, outputTokens: 3 })
]

const lines: Array<string> = []
const logger = {
  debug: (line: string) => void lines.push(`debug ${line}`),
  info: (line: string) => void lines.push(`info ${line}`),
  warn: (line: string) => void lines.push(`warn ${line}`),
  error: (line: string) => void lines.push(`error ${line}`)
}

beforeEach(() => {
  lines.length = 0
})

/** An agent in a container whose log is kept in `lines`. */
const agentOf = (
  turns: ReadonlyArray<ScriptedModel.Turn>,
  more: Partial<ConstructorParameters<typeof Agent>[0]> = {}
) => {
  const model = ScriptedModel.make(turns)
  const agent = new Agent({ id: "a", model, ...more })
  new Eddy({ agents: { agent }, logger })
  return { agent, model }
}

const errorOf = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    return expect.fail(`no error, but ${JSON.stringify(await promise)}`)
  } catch (error) {
    return error
  }
}

/** Everything an output has of its value. */
const valueOf = async <A>(output: ModelOutput<A>) => {
  const [chunks, partials, full] = await Promise.all([
    all(output.fullStream),
    all(output.objectStream),
    output.getFullOutput()
  ])
  expectGrammar(chunks)
  const objects = chunks.flatMap(chunk => (chunk.type === "object" ? [chunk.object] : []))
  expect(partials).toEqual(objects)
  // A reader that comes late sees the same.
  expect(await all(output.objectStream)).toEqual(objects)
  expect(await all(output.fullStream)).toEqual(chunks)
  return { chunks, objects, full }
}

describe("a structured value", () => {
  it("comes in parts, and is valid at last", async () => {
    const { agent, model } = agentOf([deltas('{"na', 'me":"Jo', 'hn"', ' , "age"', ":3", "0", "}")])
    const output = await agent.stream("go", { structuredOutput: { schema: person } })
    const { chunks, full, objects } = await valueOf(output)
    expect(objects).toEqual([{ name: "Jo" }, { name: "John" }, { name: "John", age: 30 }])
    expect(await output.object).toEqual({ name: "John", age: 30 })
    expect(full).toMatchObject({ object: { name: "John", age: 30 }, status: "success", finishReason: "stop" })
    expect(full).not.toHaveProperty("objectError")
    expect(full.text).toBe('{"name":"John" , "age":30}')
    const last = chunks.at(-1)
    expect(last?.type === "finish" && last.payload.output["object"]).toEqual({ name: "John", age: 30 })
    expect(model.requests[0]?.responseFormat).toEqual({
      type: "json",
      schema: {
        type: "object",
        properties: { name: { type: "string" }, age: { type: "number" } },
        required: ["name", "age"],
        additionalProperties: false
      }
    })
    expect(lines).toEqual([])
  })

  it("has the defaults and transformations of its schema in the last one only", async () => {
    const schema = z.object({
      at: z.iso.date().transform(day => new Date(day)),
      tags: z.array(z.string()).default([])
    })
    const { agent } = agentOf([deltas('{"at":"2025-', '01-02"}')], {})
    const structuredOutput = { schema: { schema, jsonSchema: { type: "object" } } }
    const output = await agent.stream("go", { structuredOutput })
    const value = { at: new Date("2025-01-02"), tags: [] }
    expect((await valueOf(output)).objects).toEqual([{ at: "2025-" }, { at: "2025-01-02" }, value])
    expect(await output.object).toEqual(value)
  })

  it.each([
    ["zod", z.array(z.number()), '{"elements":[1,2]}', [1, 2]],
    ["zod, raw", z.array(z.number()), "[1,2]", [1, 2]],
    ["Effect", Schema.Array(Schema.NumberFromString), '["1","2"]', [1, 2]],
    ["JSON Schema", { type: "object", required: ["a"] }, '{"a":1}', { a: 1 }],
    ["a boolean", z.boolean(), "false", false],
    ["a wrapped boolean", z.boolean(), '{"result":false}', false],
    ["a number", Schema.Number, "0", 0],
    ["an empty text", z.string(), '""', ""],
    ["null", z.string().nullable(), "null", null],
    ["wrapped null", z.string().nullable(), '{"result":null}', null],
    ["a word", z.enum(["red", "green"]), "red", "red"],
    ["a quoted word", z.enum(["red", "green"]), '"green"', "green"],
    ["a union", z.union([z.object({ result: z.number() }), z.null()]), '{"result":5}', { result: 5 }],
    [
      "a union, wrapped",
      z.union([z.object({ result: z.number() }), z.null()]),
      '{"result":{"result":5}}',
      { result: 5 }
    ]
  ])("may be of any kind: %s", async (_, schema, answer, value) => {
    const { agent, model } = agentOf([deltas(...answer)])
    const output = await agent.stream("go", { structuredOutput: { schema } })
    expect((await valueOf(output)).objects.at(-1)).toEqual(value)
    expect(await output.object).toEqual(value)
    expect(model.requests).toHaveLength(1)
  })

  it("is put into an object for the provider when it is none", async () => {
    const { agent, model } = agentOf([reply("[]"), reply('"a"')])
    await agent.generate("go", { structuredOutput: { schema: z.array(z.object({ a: z.number() })) } })
    await agent.generate("go", { structuredOutput: { schema: z.enum(["a"]) } })
    const element = {
      type: "object",
      properties: { a: { type: "number" } },
      required: ["a"],
      additionalProperties: false
    }
    const around = { type: "object", additionalProperties: false }
    expect(model.requests.map(({ responseFormat }) => responseFormat?.schema)).toEqual([
      { ...around, properties: { elements: { type: "array", items: element } }, required: ["elements"] },
      { ...around, properties: { result: { type: "string", enum: ["a"] } }, required: ["result"] }
    ])
  })

  it("of an array comes element by element, each complete and valid", async () => {
    const schema = z.array(z.object({ n: z.number().transform(n => n + 1) }))
    const structuredOutput = { schema: { schema, jsonSchema: { type: "array" } } }
    const { agent } = agentOf([deltas('[{"n":1}', ',{"n":', '"x"},', '{"n":2', "}", "]")])
    const output = await agent.stream("go", { structuredOutput })
    expect(await all(output.elementStream)).toEqual([{ n: 2 }, { n: 3 }])
    expect(await all(output.elementStream)).toEqual([{ n: 2 }, { n: 3 }])
    expect(await errorOf(output.object)).toMatchObject({ reason: "invalid", issues: [{ path: [1, "n"] }] })
  })

  it("gives an element before the answer is over", async () => {
    const { agent } = agentOf([[...deltas('[{"a":"x"}').slice(0, 2), ScriptedModel.hang]])
    const output = await agent.stream("go", {
      structuredOutput: { schema: z.array(z.object({ a: z.string() })) }
    })
    const iterator = output.elementStream[Symbol.asyncIterator]()
    expect(await iterator.next()).toEqual({ done: false, value: { a: "x" } })
    await output.cancel()
    expect(await iterator.next()).toMatchObject({ done: true })
  })

  it("is not what is said beside calls of tools", async () => {
    const { agent } = agentOf([
      [...text('Looking: {"name":"no","age":1}'), toolCall("c1", "missing", {}), finish("tool-calls")],
      reply('{"name":"Ada","age":36}')
    ])
    const output = await agent.stream("go", { structuredOutput: { schema: person } })
    await valueOf(output)
    expect(await output.object).toEqual({ name: "Ada", age: 36 })
  })

  it("tolerates fences, prose and what protocols leave behind", async () => {
    for (const around of [
      '```json\n{"name":"A","age":1}\n```',
      'Here:\n{"name":"A","age":1} Enjoy!',
      '{"name":"A","age":1}</tool_call>'
    ]) {
      const { agent } = agentOf([deltas("", around, "")])
      expect((await agent.generate("go", { structuredOutput: { schema: person } })).object).toEqual({
        name: "A",
        age: 1
      })
    }
  })
})

describe("without a valid value", () => {
  const wrong = "[1,2,3]"

  it("strict: object and generate reject, the run has succeeded", async () => {
    const { agent } = agentOf([deltas(wrong), deltas(wrong), deltas(wrong)])
    const output = await agent.stream("go", { structuredOutput: { schema: person } })
    expect(await output.text).toBe(wrong)
    expect(await output.finishReason).toBe("stop")
    expect(lines).toEqual([expect.stringMatching(/^error Run run-\S+ has no valid structured value/)])
    const { full, objects } = await valueOf(output)
    expect(objects).toEqual([])
    const error = await errorOf(output.object)
    expect(error).toBeInstanceOf(StructuredOutputError)
    expect(error).toMatchObject({ reason: "invalid", text: wrong, issues: [{ path: [] }] })
    expect(full).toMatchObject({ status: "success", objectError: error })
    expect(full).not.toHaveProperty("object")
    expect(await errorOf(agent.generate("go", { structuredOutput: { schema: person } }))).toBeInstanceOf(
      StructuredOutputError
    )
    lines.length = 0
    const awaited = await agent.stream("go", { structuredOutput: { schema: person } })
    expect(await errorOf(awaited.object)).toMatchObject({ reason: "invalid" })
    expect(lines).toEqual([])
  })

  it("warn: there is none, and the log says so", async () => {
    const { agent } = agentOf([deltas(wrong)])
    const output = await agent.stream("go", { structuredOutput: { schema: person, errorStrategy: "warn" } })
    const { full } = await valueOf(output)
    expect(await output.object).toBeUndefined()
    expect(await output.text).toBe(wrong)
    expect(full.objectError).toMatchObject({ reason: "invalid" })
    expect(lines).toEqual([expect.stringMatching(/^warn /)])
  })

  it("fallback: it is the one that was given", async () => {
    const fallbackValue = { name: "nobody", age: 0 }
    const { agent } = agentOf([deltas("No."), deltas(wrong)])
    const structuredOutput = { schema: person, errorStrategy: "fallback", fallbackValue } as const
    const output = await agent.stream("go", { structuredOutput })
    const { full, objects } = await valueOf(output)
    expect(objects).toEqual([fallbackValue])
    expect(await output.object).toBe(fallbackValue)
    expect(full).toMatchObject({
      object: fallbackValue,
      usedFallbackValue: true,
      objectError: { reason: "missing" }
    })
    expect(lines).toEqual([expect.stringMatching(/^debug /)])
    expect(await agent.generate("go", { structuredOutput })).toMatchObject({
      object: fallbackValue,
      usedFallbackValue: true
    })
  })

  it("tells why", async () => {
    const cases: ReadonlyArray<readonly [ReadonlyArray<ScriptedModel.ScriptPart>, string]> = [
      [deltas("I would rather not."), "missing"],
      [[finish("stop")], "missing"],
      [deltas('{"name":"A","age"'), "truncated"],
      [[...text('{"name":"A","age":1}'), finish("length")], "truncated"],
      [[...text('{"name":"A"'), finish("content-filter")], "truncated"],
      [deltas('{"name" "A"}'), "invalid"],
      [deltas('{"name":"A"}'), "invalid"]
    ]
    for (const [turn, reason] of cases) {
      const { agent } = agentOf([turn])
      const output = await agent.stream("go", { structuredOutput: { schema: person } })
      expect(await errorOf(output.object)).toMatchObject({ _tag: "StructuredOutputError", reason })
      await valueOf(output)
    }
  })

  it("is what a run has that ended with calls", async () => {
    const call = [...text('{"name":"A","age":1}'), toolCall("c1", "none", {}), finish("tool-calls")]
    const { agent } = agentOf([call])
    const output = await agent.stream("go", { maxSteps: 1, structuredOutput: { schema: person } })
    expect(await errorOf(output.object)).toMatchObject({ reason: "missing" })
    await valueOf(output)
  })

  it("object is the error of a run that failed or was aborted, and every stream closes", async () => {
    const failing = agentOf([[...text('{"name":"A'), { type: "error", error: new Error("The line broke.") }]])
    const failed = await failing.agent.stream("go", {
      onError: () => undefined,
      structuredOutput: { schema: z.array(person) }
    })
    expect(await all(failed.elementStream)).toEqual([])
    await valueOf(failed)
    expect(await errorOf(failed.object)).toMatchObject({ _tag: "ModelError", message: "The line broke." })
    const hanging = agentOf([[...deltas('{"name":"A').slice(0, 2), ScriptedModel.hang]])
    const aborted = await hanging.agent.stream("go", { structuredOutput: { schema: person } })
    const partials = aborted.objectStream[Symbol.asyncIterator]()
    expect(await partials.next()).toEqual({ done: false, value: { name: "A" } })
    const object = errorOf(aborted.object)
    await aborted.cancel("enough")
    expect(await object).toMatchObject({ _tag: "RunAborted" })
    expect(await partials.next()).toMatchObject({ done: true })
  })

  it("object says so when nobody asked for one, and its streams are empty", async () => {
    const { agent } = agentOf([reply('{"a":1}')])
    const output = await agent.stream("go")
    expect(await all(output.objectStream)).toEqual([])
    expect(await all(output.elementStream)).toEqual([])
    expect(await errorOf(output.object)).toMatchObject({
      _tag: "InvalidConfiguration",
      field: "structuredOutput"
    })
  })
})

describe("a model of its own", () => {
  it("writes the value from the answer, and is told nowhere else", async () => {
    const writer = ScriptedModel.make([deltas('{"name":"Ada",', '"age":', "36}")])
    const { agent, model } = agentOf([
      [toolCall("c1", "none", {}), finish("tool-calls")],
      [...text("Ada is 36."), finish("stop", { inputTokens: 10, outputTokens: 1 })]
    ])
    const output = await agent.stream("go", {
      structuredOutput: { schema: person, model: writer, instructions: "Full names." }
    })
    const { full, objects } = await valueOf(output)
    expect(objects).toEqual([{ name: "Ada" }, { name: "Ada", age: 36 }])
    expect(await output.object).toEqual({ name: "Ada", age: 36 })
    expect(full.text).toBe("Ada is 36.")
    expect(full.usage).toMatchObject({ inputTokens: 12, outputTokens: 4 })
    expect(full.steps).toHaveLength(2)
    expect(model.requests.map(({ responseFormat }) => responseFormat)).toEqual([undefined, undefined])
    expect(writer.requests).toHaveLength(1)
    expect(writer.requests[0]?.responseFormat?.type).toBe("json")
    expect(JSON.stringify(writer.requests[0]?.messages)).toContain("Ada is 36.")
    expect(JSON.stringify(writer.requests[0]?.messages)).toContain("Full names.")
  })

  it("gives every element of an array, also the last", async () => {
    const writer = ScriptedModel.make([deltas('{"elements":[{"a":"x"}', ',{"a":"y', '"', "}", "]}")])
    const { agent } = agentOf([reply("x and y")])
    const schema = z.array(z.object({ a: z.string() }))
    const output = await agent.stream("go", { structuredOutput: { schema, model: writer } })
    expect(await all(output.elementStream)).toEqual([{ a: "x" }, { a: "y" }])
    expect((await valueOf(output)).objects).toEqual([[{ a: "x" }], [{ a: "x" }, { a: "y" }]])
  })

  it("that fails fails the value only", async () => {
    const writer: LanguageModel.LanguageModel = {
      provider: "p",
      modelId: "m",
      answer: () => Promise.reject(new Error("No such model."))
    }
    const { agent } = agentOf([reply("Ada is 36.")])
    const output = await agent.stream("go", { structuredOutput: { schema: person, model: writer } })
    expect(await output.text).toBe("Ada is 36.")
    expect(await errorOf(output.object)).toMatchObject({
      reason: "model",
      cause: { message: "No such model." }
    })
    await valueOf(output)
  })

  it("is stopped with the run", async () => {
    const writer = ScriptedModel.make([[...deltas('{"name":"Ada"').slice(0, 2), ScriptedModel.hang]])
    const { agent } = agentOf([reply("Ada is 36.")])
    const output = await agent.stream("go", { structuredOutput: { schema: person, model: writer } })
    const partials = output.objectStream[Symbol.asyncIterator]()
    expect(await partials.next()).toEqual({ done: false, value: { name: "Ada" } })
    await output.cancel()
    expect(output.status).toBe("aborted")
    expect(await errorOf(output.object)).toMatchObject({ _tag: "RunAborted" })
    expectGrammar(await all(output.fullStream))
  })
})

describe("an until-idle stream", () => {
  it("speaks of its first turn, but for the full stream and the turns", async () => {
    let end = (_: string): void => undefined
    const work = createTool({
      id: "work",
      background: { enabled: true },
      execute: () =>
        new Promise<string>(resolve => {
          end = resolve
        })
    })
    const later = { name: "Bob", age: 2 }
    const model = ScriptedModel.make([
      [toolCall("c1", "work", {}), finish("tool-calls")],
      deltas('{"name":"A', '","age":1}'),
      deltas('{"name":"Bo', 'b","age":2}')
    ])
    const agent = new Agent({ id: "a", model, tools: { work } })
    await using eddy = new Eddy({
      agents: { agent },
      logger,
      storage: new InMemoryStore(),
      backgroundTasks: { enabled: true }
    })
    const output = await eddy.agents.agent.stream("go", {
      untilIdle: true,
      structuredOutput: { schema: person }
    })
    const first = [{ name: "A" }, { name: "A", age: 1 }]
    expect(await all(output.objectStream)).toEqual(first)
    expect(await output.object).toEqual({ name: "A", age: 1 })
    end("done")
    const chunks = await all(output.fullStream)
    const objects = chunks.flatMap(chunk => (chunk.type === "object" ? [chunk.object] : []))
    expect(objects).toEqual([...first, { name: "Bo" }, later])
    expect((await output.turns).map(({ object }) => object)).toEqual([{ name: "A", age: 1 }, later])
    expect(await all(output.objectStream)).toEqual(first)
    expect(await output.object).toEqual({ name: "A", age: 1 })
  })
})

describe("the option", () => {
  it("may put the schema into the prompt", async () => {
    const { agent, model } = agentOf([reply('{"name":"A","age":1}')], { instructions: "Be brief." })
    await agent.generate("go", {
      structuredOutput: { schema: person, jsonPromptInjection: true, instructions: "Full names." }
    })
    const [request] = model.requests
    expect(request?.responseFormat).toBeUndefined()
    const [system] = request?.messages ?? []
    expect(system?.role === "system" && system.content).toMatch(
      /^Be brief\.\n\nFull names\.\n\n[\s\S]*"required":\["name","age"\]/
    )
  })

  it("may be a default of the agent", async () => {
    const { agent } = agentOf([reply('{"name":"A","age":1}')], {
      defaultOptions: { structuredOutput: { schema: person } }
    })
    expect((await agent.generate("go")).object).toEqual({ name: "A", age: 1 })
  })

  it("is refused when it cannot work", async () => {
    const { agent } = agentOf([])
    const refused = async (structuredOutput: object, field: string) => {
      const asked = { structuredOutput } as unknown as Parameters<typeof agent.stream>[1]
      expect(await errorOf(agent.stream("go", asked))).toMatchObject({ _tag: "InvalidConfiguration", field })
      expect(
        () => new Agent({ id: "b", model: ScriptedModel.make([]), defaultOptions: { ...asked } })
      ).toThrow()
    }
    await refused({}, "structuredOutput.schema")
    await refused({ schema: person, strategy: "warn" }, "strategy")
    await refused({ schema: person, errorStrategy: "loud" }, "structuredOutput.errorStrategy")
    await refused({ schema: person, errorStrategy: "fallback" }, "structuredOutput.fallbackValue")
    await refused({ schema: person, fallbackValue: {} }, "structuredOutput.fallbackValue")
    await refused({ schema: { a: z.string() } }, "structuredOutput.schema")
    await refused({ schema: person, model: 5 }, "structuredOutput.model")
    await refused({ schema: person, instructions: 5 }, "structuredOutput.instructions")
  })

  it("works where nothing is kept", async () => {
    const { agent } = agentOf([deltas('{"name":"A', '","age":', "1}"), deltas('{"name":"A","age":1}')])
    const output = await agent.stream("go", { replay: false, structuredOutput: { schema: person } })
    expect(await all(output.objectStream)).toEqual([{ name: "A" }, { name: "A", age: 1 }])
    expect(await output.object).toEqual({ name: "A", age: 1 })
  })
})

/** The structured value of a run on the Effect face: cold streams, hot outputs, retries, attempts, turns and sub-agents. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type ModelOutput, type ModelPart } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, Schema, Stream } from "effect"
import { Structuring } from "../../src/agent/loop/structuring.js"
import { structureOf } from "../../src/agent/structuredOutput.js"
import * as RunLog from "../../src/output/RunLog.js"
import { expectGrammar } from "../support/grammar.js"
import { chunksOf, evenly, failing, finish, inTime, only, read, refusal, turns } from "./kit.js"

const { reply, text, toolCall } = ScriptedModel

const person = Schema.Struct({ name: Schema.String, age: Schema.Number })
const ada = { name: "Ada", age: 36 }
const answer = JSON.stringify(ada)

const deltas = (...pieces: ReadonlyArray<string>): ReadonlyArray<ModelPart.ModelPart> => [
  { type: "text-start", id: "0" },
  ...pieces.map((delta): ModelPart.ModelPart => ({ type: "text-delta", id: "0", delta })),
  { type: "text-end", id: "0" },
  finish("stop")
]

const agentOf = (
  script: ReadonlyArray<ScriptedModel.Turn>,
  more: Partial<Parameters<typeof Agent.make>[0]> = {}
) => {
  const model = ScriptedModel.make(script)
  return { agent: Agent.make({ id: "a", ...more, model, tools: [] }), model }
}

const objectsOf = (chunks: Parameters<typeof only>[0]) => only(chunks, "object").map(({ object }) => object)

const structuredOutput = { schema: person }

/** What an output gives, all of it. */
const everything = <A>(output: ModelOutput.ModelOutput<A>) =>
  Effect.all(
    {
      object: Effect.exit(output.object),
      partials: Stream.runCollect(output.objectStream).pipe(Effect.map(items => [...items])),
      elements: Stream.runCollect(output.elementStream).pipe(Effect.map(items => [...items])),
      full: output.fullOutput
    },
    { concurrency: "unbounded" }
  )

describe("a structured value", () => {
  it.effect("is told by the cold stream, each partial behind its text", () =>
    Effect.gen(function* () {
      const { agent } = agentOf([deltas('{"name":"A', 'da",', '"age":3', "6}")])
      const chunks = yield* chunksOf(Agent.stream(agent, "go", { structuredOutput }))
      expectGrammar(chunks)
      expect(chunks.map(({ type }) => type)).toEqual([
        "start",
        "step-start",
        "text-start",
        "text-delta",
        "object",
        "text-delta",
        "object",
        "text-delta",
        "text-delta",
        "object",
        "text-end",
        "step-finish",
        "finish"
      ])
      expect(objectsOf(chunks)).toEqual([{ name: "A" }, { name: "Ada" }, ada])
    })
  )

  it.scoped("is an effect and two streams of a hot run", () =>
    Effect.gen(function* () {
      const list = { schema: Schema.Array(Schema.NumberFromString) }
      const { agent } = agentOf([deltas('["1"', ',"2', '","x"]'), deltas('["1"', ',"2', '"]')])
      const broken = yield* everything(yield* Agent.run(agent, "go", { structuredOutput: list }))
      expect(broken.elements).toEqual([1, 2])
      expect(broken.partials.at(-1)).toEqual(["1", "2", "x"])
      expect(Exit.isFailure(broken.object)).toBe(true)
      const whole = yield* everything(yield* Agent.run(agent, "go", { structuredOutput: list }))
      expect(whole.object).toEqual(Exit.succeed([1, 2]))
      expect(whole.partials).toEqual([["1"], ["1", "2"], [1, 2]])
      expect(whole.full.object).toEqual([1, 2])
    })
  )

  it.effect("fails generate when it is not valid, with what is wrong", () =>
    Effect.gen(function* () {
      const { agent } = agentOf([reply('{"name":"Ada"}'), reply("No."), reply("No."), reply(answer)])
      const error = yield* Effect.flip(Agent.generate(agent, "go", { structuredOutput }))
      expect(error).toMatchObject({
        _tag: "StructuredOutputError",
        reason: "invalid",
        text: '{"name":"Ada"}',
        issues: [{ path: ["age"] }]
      })
      expect(JSON.stringify(error)).toBe(JSON.stringify({ name: error.name, message: error.message }))
      const warned = yield* Agent.generate(agent, "go", {
        structuredOutput: { ...structuredOutput, errorStrategy: "warn" }
      })
      expect(warned).toMatchObject({ status: "success", text: "No.", objectError: { reason: "missing" } })
      const fallen = yield* Agent.generate(agent, "go", {
        structuredOutput: { ...structuredOutput, errorStrategy: "fallback", fallbackValue: ada }
      })
      expect(fallen).toMatchObject({ object: ada, usedFallbackValue: true })
      expect((yield* Agent.generate(agent, "go", { structuredOutput })).object).toEqual(ada)
    })
  )

  it.effect("leaves nothing of a call that is made again", () =>
    Effect.gen(function* () {
      const { agent } = agentOf([failing(refusal(503)), deltas('{"name":"A', 'da","age":36}')])
      const chunks = yield* inTime(evenly(chunksOf(Agent.stream(agent, "go", { structuredOutput }))))
      expectGrammar(chunks)
      expect(objectsOf(chunks)).toEqual([{ name: "A" }, ada])
    })
  )

  it.effect("asks a model of its own again, as long as it has shown nothing", () =>
    Effect.gen(function* () {
      const writer = ScriptedModel.make([failing(refusal(503)), deltas('{"name":"A', 'da","age":36}')])
      const { agent } = agentOf([reply("Ada is 36.")])
      const run = Agent.stream(agent, "go", { structuredOutput: { ...structuredOutput, model: writer } })
      const chunks = yield* inTime(evenly(chunksOf(run)))
      expectGrammar(chunks)
      expect(objectsOf(chunks)).toEqual([{ name: "A" }, ada])
      expect(writer.unused()).toBe(0)
    })
  )

  it.effect("has the time of a step for a model of its own, and no more", () =>
    Effect.gen(function* () {
      const writer = ScriptedModel.make([[ScriptedModel.hang]])
      const { agent } = agentOf([reply("Ada is 36.")])
      const run = Agent.stream(agent, "go", {
        structuredOutput: { ...structuredOutput, model: writer },
        timeouts: { step: "1 second" }
      })
      const { chunks, exit } = yield* inTime(read(run))
      expectGrammar(chunks)
      expect(exit).toMatchObject({ _tag: "Failure", cause: { error: { _tag: "RunTimedOut" } } })
    })
  )

  it.effect("has the silence of a model of its own for its own failure", () =>
    Effect.gen(function* () {
      const writer = ScriptedModel.make([[ScriptedModel.hang]])
      const { agent } = agentOf([reply("Ada is 36.")], { maxRetries: 0 })
      const run = Agent.generate(agent, "go", {
        structuredOutput: { ...structuredOutput, model: writer },
        timeouts: { firstContent: "1 second" }
      })
      expect(yield* Effect.flip(inTime(run))).toMatchObject({ reason: "model", cause: { reason: "timeout" } })
    })
  )

  it.effect("of a sub-agent is told whole, and its text is the result", () =>
    Effect.gen(function* () {
      const { agent: below } = agentOf([deltas('{"name":"A', 'da","age":36}')], {
        id: "below",
        structuredOutput
      })
      const model = ScriptedModel.make([
        [toolCall("c1", "agent-below", { prompt: "go" }), finish("tool-calls")],
        reply("Done.")
      ])
      const above = Agent.make({ id: "above", model, tools: [Agent.asTool(below)] })
      const chunks = yield* chunksOf(Agent.stream(above, "go"))
      const nested = only(chunks, "tool-output").map(({ payload }) => payload.output)
      expect(nested.filter(output => (output as { type: string }).type === "object")).toMatchObject([
        { object: ada }
      ])
      expect(only(chunks, "tool-result")[0]?.payload.result).toEqual({ text: answer })
    })
  )

  it.scoped("does not change what is remembered: one text", () =>
    Effect.gen(function* () {
      const { agent } = agentOf([deltas('{"name":"A', 'da","age":36}')])
      const { response } = yield* Agent.generate(agent, "go", { structuredOutput })
      expect(response.messages).toEqual([{ role: "assistant", content: [{ type: "text", text: answer }] }])
    })
  )
})

describe("an attempt that is made again", () => {
  const told = () => {
    const chunks: Array<Parameters<Structuring["emit"]>[0]> = []
    const structure = structureOf(structuredOutput)
    if (structure === undefined) throw new Error("no structure")
    const structuring = new Structuring(structure, "run-1", chunk => chunks.push(chunk), false)
    return { chunks, structuring }
  }
  const stepStart = { type: "step-start", runId: "run-1", from: "AGENT", payload: { request: {} } } as const
  const delta = (said: string) =>
    ({ type: "text-delta", runId: "run-1", from: "AGENT", payload: { id: "0", text: said } }) as const

  it.effect("begins its value anew, for whoever reads now or later", () =>
    Effect.gen(function* () {
      const { chunks, structuring } = told()
      structuring.emit(stepStart)
      structuring.emit(delta('{"name":"No'))
      structuring.emit(delta('","age":1}'))
      structuring.settle(yield* structuring.decode(""))
      structuring.emit(stepStart)
      structuring.emit(delta('{"name":"A'))
      structuring.emit(delta('da","age":36}'))
      structuring.settle(yield* structuring.decode(""))
      const objects = [{ name: "No" }, { name: "No", age: 1 }, { name: "A" }, ada]
      expect(objectsOf(chunks)).toEqual(objects)
      expect(structuring.fields()).toEqual({ object: ada })
      const log = RunLog.make("run-1", undefined, structuring.value)
      log.append(chunks)
      expect(objectsOf([...read2(log)])).toEqual(objects)
    })
  )

  const read2 = function* (log: RunLog.RunLog) {
    const cursor = log.open()
    if (!(cursor instanceof RunLog.Cursor)) throw cursor
    for (let chunk = cursor.next(); chunk !== undefined; chunk = cursor.next()) yield chunk
  }

  it("keeps no partial value in the log", () => {
    const { chunks, structuring } = told()
    structuring.emit(stepStart)
    structuring.emit(delta('{"name":"'))
    for (let count = 0; count < 1_000; count++) structuring.emit(delta("x"))
    const log = RunLog.make("run-1", undefined, structuring.value)
    log.append(chunks)
    expect(chunks).toHaveLength(2 + 1 + 2_000)
    expect(new Set(log.entries.filter(entry => typeof entry === "object")).size).toBeLessThan(5)
    const textOnly = log.open("with-log", "text")
    if (!(textOnly instanceof RunLog.Cursor)) throw textOnly
    const types = new Set<string>()
    for (let chunk = textOnly.next(); chunk !== undefined; chunk = textOnly.next()) types.add(chunk.type)
    expect([...types]).toEqual(["step-start", "text-delta"])
  })
})

describe("whoever is stopped", () => {
  it.scoped("gets the reason of the abort for a value, wherever it comes", () =>
    Effect.gen(function* () {
      const { agent } = agentOf([[...text('{"name":"A'), ScriptedModel.hang]])
      const output = yield* Agent.run(agent, "go", { structuredOutput })
      const object = yield* Effect.fork(Effect.flip(output.object))
      yield* turns(5)
      yield* output.abort("enough")
      expect(yield* object).toMatchObject({ _tag: "RunAborted" })
      expect([...(yield* Stream.runCollect(output.elementStream))]).toEqual([])
    })
  )
})

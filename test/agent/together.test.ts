/** Where structured output and processors meet: what is told, kept and asked is of the answer that counts. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Processor } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, Schema } from "effect"
import { conversationFaults } from "../support/conversationFaults.js"
import { expectGrammar } from "../support/grammar.js"
import { chunksOf, finishOf, read } from "./kit.js"
import { memory } from "./memoryKit.js"
import { changing } from "./processorsKit.js"
import {
  deltas,
  expectUsage,
  objectsOf,
  saidIn,
  storedIn,
  stores,
  streamed,
  structuredOutput
} from "./togetherKit.js"

const refusing = (isWrong: (text: string) => boolean, retry = true) =>
  Processor.make({
    id: "refusing",
    processOutputStep: ({ text }, { abort }) => (isWrong(text) ? abort("not this", { retry }) : undefined)
  })

describe("structured output and processors", () => {
  it.effect("J08: is the value of the attempt that was accepted, everywhere", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([deltas('{"a"', ":1", "}"), deltas('{"a"', ":2", "}"), deltas("Bye.")])
      const agent = Agent.make({ id: "a", model, outputProcessors: [refusing(text => text.includes("1"))] })
      const output = yield* Agent.run(agent, "go", { structuredOutput, memory })
      const { chunks } = yield* read(output.fullStream)
      expectGrammar(chunks)
      expect(yield* output.object).toEqual({ a: 2 })
      expect(yield* output.text).toBe('{"a":2}')
      expect((yield* streamed(output.objectStream)).at(-1)).toEqual({ a: 2 })
      const second = chunks.findLastIndex(({ type }) => type === "step-start")
      expect(objectsOf(chunks.slice(0, second))).toEqual([{ a: 1 }])
      expect(objectsOf(chunks.slice(second))).toEqual([{ a: 2 }])
      expect(finishOf(chunks).output).toMatchObject({ object: { a: 2 }, text: '{"a":2}' })
      expectUsage(chunks, 2)
      expect(yield* output.usage).toMatchObject({ inputTokens: 20, outputTokens: 2 })
      expect(JSON.stringify(saidIn(yield* storedIn("t1")))).not.toContain(":1}")
      yield* chunksOf(Agent.stream(agent, "more", { memory }))
      const prompt = model.requests[2]?.messages ?? []
      expect(conversationFaults(prompt, () => false)).toEqual([])
      expect(JSON.stringify(prompt)).not.toContain('{\\"a\\":1}')
      expect(JSON.stringify(prompt)).toContain('{\\"a\\":2}')
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.effect("tells the value again when another attempt says the same", () =>
    Effect.gen(function* () {
      let count = 0
      const model = ScriptedModel.make([deltas('{"a":1}'), deltas('{"a":1}')])
      const agent = Agent.make({ id: "a", model, outputProcessors: [refusing(() => count++ === 0)] })
      const chunks = yield* chunksOf(Agent.stream(agent, "go", { structuredOutput }))
      const second = chunks.findLastIndex(({ type }) => type === "step-start")
      expect(objectsOf(chunks.slice(second)).at(-1)).toEqual({ a: 1 })
    })
  )

  it.effect("has no value when a processor stops the run", () =>
    Effect.gen(function* () {
      for (const errorStrategy of ["strict", "warn", "fallback"] as const) {
        const model = ScriptedModel.make([deltas('{"a":1}')])
        const stopped = Agent.make({ id: "a", model, outputProcessors: [refusing(() => true, false)] })
        const options =
          errorStrategy === "fallback"
            ? { ...structuredOutput, errorStrategy, fallbackValue: { a: 0 } }
            : { ...structuredOutput, errorStrategy }
        const output = yield* Agent.run(stopped, "go", { structuredOutput: options })
        const object = yield* Effect.exit(output.object)
        expect(Exit.isFailure(object)).toBe(true)
        expect(String(object)).toContain("RunBlocked")
        expect((yield* output.fullOutput).object).toBeUndefined()
        expect(yield* output.finishReason).toBe("tripwire")
      }
    }).pipe(Effect.scoped)
  )

  it.effect("J09: keeps one text, the processed one, and reads the value from it", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([deltas('{"a"', ":1}")])
      const rewriting = changing(text => text.replace("1", "7"))
      const agent = Agent.make({ id: "a", model, outputProcessors: [rewriting] })
      const output = yield* Agent.run(agent, "go", { structuredOutput, memory })
      expect(yield* output.object).toEqual({ a: 7 })
      expect(yield* output.text).toBe('{"a":7}')
      expect(saidIn(yield* storedIn("t1"))).toMatchObject([[{ type: "text", text: '{"a":7}' }]])
      expect(saidIn(yield* storedIn("t1"))[0]).toHaveLength(1)
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.effect("J05, J06: settles every promise when the processed text is no value", () =>
    Effect.gen(function* () {
      for (const errorStrategy of ["strict", "warn", "fallback"] as const) {
        const model = ScriptedModel.make([deltas('{"a":1}')])
        const agent = Agent.make({
          id: "a",
          model,
          outputProcessors: [changing(text => text.replace("1", '"x"'))]
        })
        const options =
          errorStrategy === "fallback"
            ? { ...structuredOutput, errorStrategy, fallbackValue: { a: 0 } }
            : { ...structuredOutput, errorStrategy }
        const output = yield* Agent.run(agent, "go", { structuredOutput: options })
        expect(yield* output.text).toBe('{"a":"x"}')
        expect(yield* output.finishReason).toBe("stop")
        const object = yield* Effect.exit(output.object)
        const full = yield* output.fullOutput
        expect(full.objectError).toMatchObject({ reason: "invalid", text: '{"a":"x"}' })
        expect(full.usedFallbackValue).toBe(errorStrategy === "fallback" ? true : undefined)
        if (errorStrategy === "strict") expect(Exit.isFailure(object)).toBe(true)
        else expect(object).toEqual(Exit.succeed(errorStrategy === "warn" ? undefined : { a: 0 }))
      }
    }).pipe(Effect.scoped)
  )

  it.effect("asks another model for the value with the processed text, once", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([deltas("It is 1."), deltas("It is 2.")])
      const writer = ScriptedModel.make([deltas('{"a":2}')])
      const agent = Agent.make({
        id: "a",
        model,
        outputProcessors: [changing(text => text.replace("It", "That")), refusing(text => text.includes("1"))]
      })
      const chunks = yield* chunksOf(
        Agent.stream(agent, "go", { structuredOutput: { ...structuredOutput, model: writer } })
      )
      expectGrammar(chunks)
      expect(JSON.stringify(writer.requests[0]?.messages)).toContain("That is 2.")
      expect(writer.requests).toHaveLength(1)
      expect(finishOf(chunks).output.object).toEqual({ a: 2 })
      expectUsage(chunks, 3)
    })
  )

  const contact = Schema.Struct({ text: Schema.String })
  const secrets = [
    "ada@example.com",
    "+49 30 1234567",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "192.168.0.1",
    "bob007"
  ]

  it.effect("keeps JSON valid in which something was redacted, behind any character", () =>
    Effect.gen(function* () {
      for (const secret of secrets) {
        for (const before of ["", "x ", "\n", "\t", "\r\n", '"', "\\", "\\\n", "\u0001"]) {
          const said = JSON.stringify({ text: `${before}${secret} end` })
          for (const cut of [1, 3, said.length]) {
            const pieces = said.match(new RegExp(`[^]{1,${cut}}`, "g")) ?? []
            const agent = Agent.make({
              id: "a",
              model: ScriptedModel.make([deltas(...pieces)]),
              outputProcessors: [Processor.redact({ patterns: { name: /[a-z]+\d{3}/ } })]
            })
            const full = yield* Agent.generate(agent, "go", {
              structuredOutput: { schema: contact, errorStrategy: "warn" }
            })
            expect([said, full.object?.text]).toEqual([said, expect.stringMatching(/\[\w+\]/)])
            expect(full.object?.text.startsWith(before)).toBe(true)
            expect(full.object?.text).not.toContain(secret)
          }
        }
      }
    })
  )
})

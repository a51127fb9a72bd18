/** Scenarios that need more than one model, time that passes, or a store of threads. */
import { describe, expect, it } from "@effect/vitest"
import { type Chunk, Agent as EffectAgent, LanguageModel, type Tool } from "eddy"
import { Agent, Eddy, InMemoryStore } from "eddy/promise"
import { Effect, Fiber, Stream, TestClock } from "effect"
import { expectGrammar } from "../support/grammar.js"
import { flush, memoryLogger, refuseUnhandledRejections } from "../support/readers.js"
import { line } from "./line.js"
import { makeStage } from "./replay.js"
import { linesOf } from "./scenario.js"
import { modelOf, type PlayedModel, type Script } from "./script.js"
import { type WideScenario, wide } from "./wide.js"

refuseUnhandledRejections()

const partOf = (part: unknown): string => {
  if (typeof part !== "object" || part === null) return ""
  return "text" in part ? String(part.text) : "toolCallId" in part ? `[${String(part.toolCallId)}]` : ""
}

/** A message in words: its role, its text, and the calls that it is about. */
const said = (message: object): string => {
  const content: unknown = "content" in message ? message.content : ""
  const words = Array.isArray(content) ? content.map(partOf).join("") : String(content)
  return `${"role" in message ? String(message.role) : ""} ${words}`
}

const scriptOf = ({ next, script }: WideScenario): Script =>
  next === undefined || typeof script === "function" ? script : [...script, next.answer]

/** A scenario made ready: its models and its tools. `second` is the model to fall back on, or of the agent below. */
const begin = (scenario: WideScenario) => {
  const stage = makeStage()
  const second = scenario.fallback ?? scenario.helper
  return {
    stage,
    first: modelOf(scriptOf(scenario), stage),
    second: modelOf(second ?? [], stage),
    tools: scenario.tools?.(stage) ?? {}
  }
}

const expectCalls = ({ calls, offered }: WideScenario, first: PlayedModel, second: PlayedModel): void => {
  expect([first.calls.length, second.calls.length].slice(0, calls.length)).toEqual(calls)
  if (offered === undefined) return
  const found = first.calls.map(({ toolChoice, tools = [] }) =>
    [...tools.map(tool => ("name" in tool ? String(tool.name) : "")), toolChoice?.type ?? ""].join(" ").trim()
  )
  expect(found).toEqual(offered)
}

/** Lets a run go on, and time pass whenever it has come to a halt. */
const awaitRun = <A, E>(fiber: Fiber.RuntimeFiber<A, E>): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    while (fiber.unsafePoll() === null) {
      yield* Effect.promise(() => flush(20))
      yield* TestClock.adjust("1 second")
    }
    return yield* Fiber.join(fiber)
  })

const streamOf = (scenario: WideScenario, { first, second, stage, tools }: ReturnType<typeof begin>) => {
  const { agentRetries, fallback, helper, options } = scenario
  const model = LanguageModel.fromAiSdk(first.model)
  const other = LanguageModel.fromAiSdk(second.model)
  const below: ReadonlyArray<Tool.Tool> =
    helper === undefined ? [] : [EffectAgent.asTool(EffectAgent.make({ id: "helper", model: other }))]
  const agent = EffectAgent.make({
    id: "replay",
    model: fallback === undefined ? model : [model, other],
    tools: [...Object.entries(tools).map(([name, tool]) => tool.named(name)), ...below],
    ...(agentRetries === undefined ? {} : { maxRetries: agentRetries })
  })
  const { memory: _, ...rest } = options ?? {}
  return EffectAgent.stream(agent, "Hello", { ...rest, abortSignal: stage.signal })
}

/** Those that time out or wait between two calls take that time in this face. */
const takesTime = ["31e", "31g", "33h"]

describe.each(wide.map(scenario => [`${scenario.id}: ${scenario.title}`, scenario] as const))(
  "%s",
  (_, scenario) => {
    const expected = linesOf(scenario.chunks)

    it.effect("as a stream of Effect", () =>
      Effect.gen(function* () {
        const begun = begin(scenario)
        const chunks: Array<Chunk.Chunk> = []
        const running = Stream.runForEach(streamOf(scenario, begun), chunk =>
          Effect.sync(() => {
            chunks.push(chunk)
            if (begun.stage.see(chunk) === scenario.abort) begun.stage.abort()
          })
        )
        yield* awaitRun(yield* Effect.fork(Effect.exit(running)))
        expect(chunks.map(line)).toEqual(expected)
        expectGrammar(chunks)
        expectCalls(scenario, begun.first, begun.second)
      })
    )

    if (takesTime.includes(scenario.id)) return

    it("as a web stream, and what is stored", async () => {
      const { agentRetries, fallback, helper, options = {} } = scenario
      const { first, second, stage, tools } = begin(scenario)
      const agent = new Agent({
        id: "replay",
        model: fallback === undefined ? first.model : [first.model, second.model],
        tools,
        ...(helper === undefined
          ? {}
          : { agents: { helper: new Agent({ id: "below", model: second.model }) } }),
        ...(agentRetries === undefined ? {} : { defaultOptions: { maxRetries: agentRetries } })
      })
      const logger = memoryLogger()
      const { threads } = new Eddy({ agents: { agent }, logger, storage: new InMemoryStore() })
      const abortSignal = stage.signal
      const output = await agent.stream("Hello", { ...options, abortSignal, onError: () => undefined })
      const lines: Array<string> = []
      for await (const chunk of output.fullStream) {
        const count = scenario.storedAt?.[line(chunk)]
        if (count !== undefined) expect(await threads.messages("th-1")).toHaveLength(count)
        lines.push(stage.see(chunk))
        if (lines.at(-1) === scenario.abort) stage.abort()
      }
      expect(lines).toEqual(expected)
      expectCalls(scenario, first, second)
      if (scenario.stored !== undefined) {
        const stored = await threads.messages("th-1")
        expect(stored.map(({ message }) => said(message))).toEqual(scenario.stored)
      }
      if (scenario.next !== undefined) {
        await agent.generate(scenario.next.input, options)
        expect(first.calls.at(-1)?.prompt.map(said)).toEqual(scenario.next.told)
      }
      expect(logger.lines).toEqual([])
    })
  }
)

/** What providers really send, replayed: exactly these chunks, in both faces, and one answer whoever asks for what and when. */
import type { Chunk } from "eddy"
import type { ModelOutput } from "eddy/promise"
import { describe, expect, it } from "vitest"
import { expectGrammar } from "../support/grammar.js"
import { collect, refuseUnhandledRejections, textOf } from "../support/readers.js"
import { scenarios } from "./all.js"
import { line } from "./line.js"
import { read, start, stream } from "./replay.js"
import { linesOf } from "./scenario.js"
import type { PlayedModel } from "./script.js"

refuseUnhandledRejections()

const promises = [
  "text",
  "reasoning",
  "reasoningText",
  "toolCalls",
  "toolResults",
  "usage",
  "totalUsage",
  "finishReason",
  "response",
  "steps",
  "sources",
  "files",
  "warnings",
  "request",
  "providerMetadata"
] as const satisfies ReadonlyArray<keyof ModelOutput>

/** What every promise of an output comes to, by its name. */
const settled = async (output: ModelOutput) => {
  const results = await Promise.allSettled(promises.map(name => output[name]))
  return Object.fromEntries(promises.map((name, index) => [name, results[index]]))
}

const finishOf = (chunks: ReadonlyArray<Chunk.Chunk>): Chunk.PayloadOf<"finish"> => {
  const last = chunks.at(-1)
  if (last?.type !== "finish") expect.fail(`The run ends with ${last?.type}`)
  return last.payload
}

const statuses: Readonly<Record<string, string>> = { error: "failed", aborted: "aborted" }

/** The end that its chunks tell is the end that everything else tells. */
const expectOneEnd = async (output: ModelOutput, chunks: ReadonlyArray<Chunk.Chunk>): Promise<void> => {
  const finish = finishOf(chunks)
  const { reason } = finish.stepResult
  const isWhole = reason !== "error" && reason !== "aborted"
  const full = await output.getFullOutput()
  expect(full.text).toBe(textOf(chunks))
  expect(full.text).toBe(finish.output.text)
  expect(full.usage).toEqual(finish.output.usage)
  expect(full.finishReason).toBe(reason)
  expect(full.status).toBe(statuses[reason] ?? "success")
  expect(output.status).toBe(full.status)
  expect(output.error).toBe(full.error)
  expect(full.error === undefined).toBe(isWhole)
  expect(full.response.messages).toEqual(finish.response.messages)
  expect((await collect(output.textStream)).join("")).toBe(full.text)
  const results = await settled(output)
  for (const name of promises) {
    const { status } = results[name] ?? {}
    expect([name, status]).toEqual([name, isWhole || name === "finishReason" ? "fulfilled" : "rejected"])
  }
  const errors: Array<Error> = []
  await output.consumeStream({ onError: error => errors.push(error) })
  expect(errors).toEqual(isWhole ? [] : [full.error])
}

const isOutcome = (chunk: Chunk.Chunk): chunk is Chunk.ToolResult | Chunk.Of<"tool-error"> =>
  (chunk.type === "tool-result" || chunk.type === "tool-error") && chunk.payload.providerExecuted !== true

/** What the model is told of an outcome, in the words of specification V2. */
const toldOf = (outcome: Chunk.ToolResult | Chunk.Of<"tool-error">) => {
  const { toolCallId, toolName } = outcome.payload
  const tell = (type: string, value: unknown) => ({ toolCallId, toolName, output: { type, value } })
  if (outcome.type === "tool-error") {
    const { error } = outcome.payload
    if (!(error instanceof Error)) return tell("error-text", "")
    // The fields that a tool gave its own error; errors of the library tell theirs in the message.
    const code = !("_tag" in error) && "code" in error ? `\n${JSON.stringify({ code: error.code })}` : ""
    return tell("error-text", error.message + code)
  }
  const { result } = outcome.payload
  return tell(typeof result === "string" ? "text" : "json", result)
}

/** Every outcome repeats its call; the next answer is asked for with every outcome of the step, in call order. */
const expectPrompts = (chunks: ReadonlyArray<Chunk.Chunk>, played: PlayedModel): void => {
  const calls = chunks.flatMap(chunk => (chunk.type === "tool-call" ? [chunk.payload] : []))
  const outcomes = new Map(
    chunks.filter(isOutcome).map(outcome => [outcome.payload.toolCallId, outcome] as const)
  )
  for (const [toolCallId, { payload }] of outcomes) {
    const call = calls.find(call => call.toolCallId === toolCallId)
    expect([payload.toolName, payload.args]).toEqual([call?.toolName, call?.args])
  }
  const steps = chunks.flatMap(chunk => (chunk.type === "step-finish" ? [chunk.payload] : []))
  const told = steps.flatMap(({ output }) =>
    output.toolCalls.flatMap(({ toolCallId }) => {
      const outcome = outcomes.get(toolCallId)
      return outcome === undefined ? [] : [toldOf(outcome)]
    })
  )
  const prompts = played.calls.map(({ prompt }) =>
    prompt.flatMap(message =>
      "role" in message && message.role === "tool" && "content" in message ? message.content : []
    )
  )
  const count = (index: number) =>
    steps
      .slice(0, index)
      .flatMap(({ output }) => output.toolCalls.filter(({ toolCallId }) => outcomes.has(toolCallId))).length
  expect(prompts).toEqual(
    prompts.map((_, index) =>
      told
        .slice(0, count(index))
        .map(part =>
          expect.objectContaining({ ...part, toolName: part.toolName.replace(/[^A-Za-z0-9_-]/g, "_") })
        )
    )
  )
}

/** Which callbacks told of the end. */
const endCallbacks = () => {
  const called: Array<string> = []
  const note = (name: string) => () => void called.push(name)
  return { called, onFinish: note("finish"), onError: note("error"), onAbort: note("aborted") }
}

describe.each(scenarios.map(scenario => [`${scenario.id}: ${scenario.title}`, scenario] as const))(
  "%s",
  (_, scenario) => {
    const expected = linesOf(scenario.chunks)

    it("as a web stream, and everything at its end", async () => {
      const { called, ...callbacks } = endCallbacks()
      const run = await start(scenario, { ...callbacks, ...scenario.callbacks })
      const chunks = await read(scenario, run)
      expect(chunks.map(line)).toEqual(expected)
      expectGrammar(chunks)
      expectPrompts(chunks, run.played)
      await expectOneEnd(run.output, chunks)
      const { reason } = finishOf(chunks).stepResult
      if (scenario.callbacks === undefined) {
        expect(called).toEqual([reason === "error" || reason === "aborted" ? reason : "finish"])
        expect(run.logger.lines).toEqual([])
      }
    })

    it("as a web stream, everything asked for before it begins", async () => {
      const run = await start(scenario, { onError: () => undefined, ...scenario.callbacks })
      const early = settled(run.output)
      const chunks = await read(scenario, run)
      expect(chunks.map(line)).toEqual(expected)
      expect(await early).toEqual(await settled(run.output))
      await expectOneEnd(run.output, chunks)
    })

    // The other face has no callbacks.
    if (scenario.callbacks !== undefined) return

    it("as a stream of Effect", async () => {
      const { chunks, failure } = await stream(scenario)
      expect(chunks.map(line)).toEqual(expected)
      expectGrammar(chunks)
      const told = chunks.find(chunk => chunk.type === "error")
      expect(failure).toBe(told?.payload.error)
    })
  }
)

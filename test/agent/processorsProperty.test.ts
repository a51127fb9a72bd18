/** Whatever models say and processors do: the order of chunks holds, and what is told is what is remembered. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, Processor, Tool } from "eddy"
import { Effect, FastCheck as fc } from "effect"
import { violationsOf } from "../support/grammar.js"
import { anyPart, reasons, toolNames, usage } from "../support/randomParts.js"
import { finish, finishOf, modelOf, read, turn } from "./kit.js"

type Deed = "pass" | "drop" | "twice" | "shout" | "hold" | "abort" | "retry" | "throw"

interface Scripted {
  readonly isWaiting: boolean
  readonly deeds: ReadonlyArray<Deed>
  readonly step: Deed
}

const deed = fc.constantFrom<Deed>(
  ...([
    "pass",
    "pass",
    "pass",
    "pass",
    "drop",
    "twice",
    "shout",
    "hold",
    "hold",
    "abort",
    "retry",
    "throw"
  ] as const)
)

const scripted: fc.Arbitrary<Scripted> = fc.record({
  isWaiting: fc.boolean(),
  deeds: fc.array(deed, { minLength: 1, maxLength: 20 }),
  step: fc.constantFrom<Deed>("pass", "pass", "abort", "retry", "throw")
})

/** A processor that does these things, one after the other. */
const processorOf = ({ deeds, isWaiting, step }: Scripted, index: number): Processor.Processor => {
  let count = 0
  let steps = 0
  const held = new Map<string, string>()
  const look = (
    chunk: Chunk.Chunk,
    context: Processor.ProcessorContext
  ): ReturnType<NonNullable<Processor.Hooks["processOutputStream"]>> => {
    const now = deeds[count++ % deeds.length] ?? "pass"
    if (now === "abort" && count > 6) return context.abort("no")
    if (now === "retry" && count > 3) return context.abort("again", { retry: true })
    if (now === "throw" && count > 12) throw new Error("broken")
    if (chunk.type === "text-end") {
      const text = held.get(chunk.payload.id) ?? ""
      const { runId, payload } = chunk
      return text === ""
        ? chunk
        : [{ type: "text-delta", runId, from: "AGENT", payload: { id: payload.id, text } }, chunk]
    }
    if (chunk.type !== "text-delta") return now === "drop" ? undefined : chunk
    const { id, text } = chunk.payload
    if (now === "drop") return undefined
    if (now === "twice") return [chunk, chunk]
    if (now === "shout") return { ...chunk, payload: { ...chunk.payload, text: text.toUpperCase() } }
    if (now !== "hold") return chunk
    held.set(id, (held.get(id) ?? "") + text)
    return undefined
  }
  return Processor.make({
    id: `p${index}`,
    processOutputStream: (chunk, context) =>
      isWaiting
        ? Effect.flatMap(Effect.promise(turn), () => {
            const given = look(chunk, context)
            return Effect.isEffect(given) ? given : Effect.succeed(given)
          })
        : look(chunk, context),
    processOutputStep: (_, { abort }) => {
      if (steps++ > 3) return undefined
      if (step === "abort") return abort("no step")
      if (step === "retry") return abort("step again", { retry: true })
      if (step === "throw") throw new Error("broken step")
      return undefined
    }
  })
}

const answer = fc.record({ parts: fc.array(anyPart, { maxLength: 14 }), reason: reasons, usage })

type RandomAnswer = typeof answer extends fc.Arbitrary<infer Value> ? Value : never

type RandomPart = RandomAnswer["parts"][number]

const tools = toolNames.map(name => Tool.make(name, { execute: () => Effect.succeed(1) }))

const scriptOf = (deeds: ReadonlyArray<Deed>, isWaiting = false): Scripted => ({
  isWaiting,
  deeds,
  step: "pass"
})

const answered = (...parts: ReadonlyArray<RandomPart>): RandomAnswer => ({
  parts: [...parts],
  reason: "stop",
  usage: {}
})

const call = (toolCallId: string, providerExecuted?: boolean): RandomPart => ({
  type: "tool-call",
  toolCallId,
  toolName: "a",
  input: "",
  providerExecuted,
  providerMetadata: undefined
})

const result = (toolCallId: string): RandomPart => ({
  type: "tool-result",
  toolCallId,
  toolName: "a",
  result: 1,
  isError: undefined
})

/** What was wrong once: results that a processor held back, and those of calls that it stopped. */
const found: Array<[Array<RandomAnswer>, Array<Scripted>, number | undefined]> = [
  [[answered(call("c1"), result("c1")), answered()], [scriptOf(["pass"], true)], 2],
  [[answered(call("c2"), call("c1"), result("c1"))], [scriptOf(["pass", "abort", "pass"])], undefined],
  [
    [answered(result("c2"), call("c2", true))],
    [scriptOf(["pass", "pass", "pass", "retry", "pass"]), scriptOf(["pass"])],
    undefined
  ]
]

describe("random processors", () => {
  it.effect(
    "keep the order of chunks",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.array(answer, { minLength: 1, maxLength: 4 }),
            fc.array(scripted, { minLength: 1, maxLength: 3 }),
            fc.option(fc.nat({ max: 30 }), { nil: undefined }),
            async (answers, processors, abortAfter) => {
              const sources = Array.from({ length: 40 }, (_, index) => () => {
                const one = answers[index % answers.length]
                const parts = one === undefined ? [] : [...one.parts, finish(one.reason, one.usage)]
                return (async function* () {
                  for (const part of parts) yield part
                })()
              })
              const controller = new AbortController()
              const agent = Agent.make({
                id: "random",
                model: modelOf(sources).model,
                tools,
                outputProcessors: processors.map(processorOf),
                maxRetries: 0
              })
              const { chunks } = await Effect.runPromise(
                read(Agent.stream(agent, "go", { abortSignal: controller.signal }), (_, count) =>
                  Effect.sync(() => {
                    if (count === abortAfter) controller.abort()
                  })
                )
              )
              expect(violationsOf(chunks)).toEqual([])
              const committed = chunks.flatMap(chunk =>
                chunk.type === "step-finish" ? [chunk.payload.output.text] : []
              )
              const { output, stepResult } = finishOf(chunks)
              expect(output.text.startsWith(committed.join(""))).toBe(true)
              // Each step that counts says what its deltas said.
              let said = ""
              for (const chunk of chunks) {
                if (chunk.type === "step-start") said = ""
                if (chunk.type === "text-delta") said += chunk.payload.text
                if (chunk.type === "step-finish" && chunk.payload.stepResult.reason !== "tripwire") {
                  expect(chunk.payload.output.text).toBe(said)
                }
              }
              if (stepResult.reason === "tripwire") expect(output.text).toBe(committed.join(""))
            }
          ),
          { numRuns: 150, examples: found }
        )
      ),
    60_000
  )
})

/** Whatever parts an agent has at once, and whatever they come to: its runs keep their order, their sums and their promises. */
import { describe, expect, it } from "@effect/vitest"
import {
  Agent,
  BackgroundTasks,
  type Chunk,
  type LanguageModel,
  Processor,
  TaskStore,
  Tool,
  type Usage
} from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, FastCheck as fc, Layer, Logger, LogLevel } from "effect"
import { conversationFaults } from "../support/conversationFaults.js"
import { violationsOf } from "../support/grammar.js"
import { asking, guarded, waitingIn } from "./approvalKit.js"
import { setObjective } from "./goalsKit.js"
import { finish, modelOf, only, read, turn } from "./kit.js"
import { memory } from "./memoryKit.js"
import { stores, structuredOutput } from "./togetherKit.js"

const names = ["lookUp", "fails", "remove", "ask", "work", "agent-helper", "unknown"] as const

interface Said {
  readonly text: string
  readonly calls: ReadonlyArray<(typeof names)[number]>
  readonly isKnown: boolean
  readonly reason: "stop" | "length"
}

const answer: fc.Arbitrary<Said> = fc.record({
  text: fc.constantFrom(
    '{"a":1}',
    '{"a":2}',
    "Words.",
    '{"passed":true}',
    '{"passed":false}',
    '{"a":"x"}',
    ""
  ),
  calls: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 2, arbitrary: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }) }
  ),
  isKnown: fc.boolean(),
  reason: fc.constantFrom("stop", "stop", "stop", "stop", "length")
})

const deeds = fc.array(fc.constantFrom("pass", "pass", "pass", "retry", "abort"), { maxLength: 8 })

const plan = fc.record({
  answers: fc.array(answer, { minLength: 1, maxLength: 6 }),
  verdicts: fc.array(fc.constantFrom('{"passed":true}', '{"passed":false}', "no verdict"), {
    minLength: 1,
    maxLength: 4
  }),
  values: fc.constantFrom(undefined, "same", "model") as fc.Arbitrary<"same" | "model" | undefined>,
  strategy: fc.constantFrom("strict", "warn", "fallback"),
  steps: fc.option(deeds, { nil: undefined }),
  results: fc.option(deeds, { nil: undefined }),
  stream: fc.constantFrom(undefined, "shouts", "waits") as fc.Arbitrary<"shouts" | "waits" | undefined>,
  goal: fc.boolean(),
  hasThread: fc.boolean(),
  untilIdle: fc.boolean(),
  waits: fc.boolean(),
  decisions: fc.array(fc.constantFrom("approve", "decline", "resume"), { minLength: 1, maxLength: 4 }),
  maxSteps: fc.integer({ min: 1, max: 5 }),
  abortAfter: fc.option(fc.nat({ max: 40 }), { nil: undefined, freq: 3 })
})

type Plan = typeof plan extends fc.Arbitrary<infer A> ? A : never

const most = 60

/** What all models have used, and what the one of the agent was asked. */
class Used {
  input = 0
  output = 0
  known = 0

  add(isKnown: boolean): Usage.Usage {
    if (!isKnown) return {}
    this.known++
    this.input += 10
    this.output += 1
    return { inputTokens: 10, outputTokens: 1 }
  }
}

const speaking = (used: Used, said: (index: number) => Said): ReturnType<typeof modelOf> =>
  modelOf(
    Array.from(
      { length: most * 4 },
      (_, index) => () =>
        (async function* () {
          const { calls, isKnown, reason, text } = said(index)
          if (text !== "") {
            yield* ScriptedModel.text(text.slice(0, 3)).slice(0, 2)
            await turn()
            yield { type: "text-delta", id: "text", delta: text.slice(3) }
            yield { type: "text-end", id: "text" }
          }
          for (const name of calls)
            yield ScriptedModel.toolCall(`${name}-${index}`, name, { n: 1, prompt: "do" })
          yield finish(calls.length > 0 ? "tool-calls" : reason, used.add(isKnown))
        })()
    )
  )

const judging = (
  id: string,
  deeds: ReadonlyArray<string> | undefined,
  hook: "processOutputStep" | "processOutputResult"
) => {
  if (deeds === undefined) return []
  let count = 0
  return [
    Processor.make({
      id,
      [hook]: (_: unknown, { abort }: Processor.ProcessorContext) => {
        const deed = deeds[count++] ?? "pass"
        return deed === "pass" ? undefined : abort(deed, { retry: deed === "retry" })
      }
    })
  ]
}

const streaming = (kind: Plan["stream"]) =>
  kind === undefined
    ? []
    : [
        Processor.make({
          id: kind,
          processOutputStream: chunk => {
            if (chunk.type !== "text-delta") return chunk
            const changed = {
              ...chunk,
              payload: { ...chunk.payload, text: chunk.payload.text.replace("W", "w") }
            }
            return kind === "shouts" ? changed : Effect.as(Effect.promise(turn), changed)
          }
        })
      ]

const isTaskEvent = ({ type }: Chunk.Chunk): boolean => type.startsWith("background-task-")

/** What one run, or one leg of it, told. */
const faultsOf = (
  chunks: ReadonlyArray<Chunk.Chunk>,
  waiting: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const faults = [...violationsOf(chunks, waiting)]
  const last = chunks.at(-1)
  if (last?.type !== "finish") return [...faults, `the last chunk is ${last?.type}`]
  if (only(chunks, "finish").length !== 1) faults.push("more than one finish")
  const { messages, output, stepResult } = last.payload
  faults.push(...conversationFaults(messages.all, () => false))
  let said = ""
  let committed = ""
  for (const chunk of chunks) {
    if (chunk.type === "step-start") said = ""
    if (chunk.type === "text-delta") said += chunk.payload.text
    if (chunk.type === "step-finish" && chunk.payload.stepResult.reason !== "tripwire") {
      if (chunk.payload.output.text !== said)
        faults.push(`a step says ${chunk.payload.output.text}, not ${said}`)
      committed += chunk.payload.output.text
      said = ""
    } else if (chunk.type === "step-finish") said = ""
  }
  const whole =
    stepResult.reason === "aborted" || stepResult.reason === "error" ? committed + said : committed
  if (output.text !== whole) faults.push(`the text is ${String(output.text)}, not ${whole}`)
  const objects = only(chunks, "object").map(({ object }) => object)
  // Of a run that ended with calls the fallback is told by its finish only.
  const isTold = "object" in output && stepResult.reason !== "tool-calls"
  if (isTold && JSON.stringify(objects.at(-1)) !== JSON.stringify(output["object"]))
    faults.push(
      `the last value told is ${JSON.stringify(objects.at(-1))}, not ${JSON.stringify(output["object"])}`
    )
  const total = only(chunks, "step-finish").at(-1)?.payload.totalUsage
  if (stepResult.reason !== "aborted" && stepResult.reason !== "error" && stepResult.reason !== "tripwire") {
    if (JSON.stringify(total ?? {}) !== JSON.stringify(output.usage))
      faults.push(`steps used ${JSON.stringify(total)}, the run ${JSON.stringify(output.usage)}`)
  }
  for (const figure of Object.values(output.usage)) if (!(figure > 0)) faults.push(`a figure is ${figure}`)
  return faults
}

const live = async (made: Plan): Promise<void> => {
  const used = new Used()
  const said = (index: number): Said => {
    const one = made.answers[index % made.answers.length] as Said
    // Whoever calls for ever comes to an end.
    return index < most ? one : { ...one, calls: [] }
  }
  const main = speaking(used, said)
  const help = speaking(used, index => ({ ...said(index), calls: index % 2 === 0 ? ["remove"] : [] }))
  const writer = speaking(used, index => ({ ...said(index), calls: [], reason: "stop" }))
  let judgements = 0
  const judge = speaking(used, () => ({
    text: made.verdicts[judgements++ % made.verdicts.length] ?? "",
    calls: [],
    isKnown: true,
    reason: "stop"
  }))
  const outputProcessors = [
    ...streaming(made.stream),
    ...judging("step", made.steps, "processOutputStep"),
    ...judging("result", made.results, "processOutputResult")
  ]
  const { tool: remove } = guarded()
  const { tool: ask } = asking()
  const helper = Agent.make({
    id: "helper",
    model: help.model,
    tools: [remove],
    outputProcessors: streaming(made.stream),
    maxSteps: 3
  })
  const tools = [
    Tool.make("lookUp", { execute: () => Effect.succeed(1) }),
    Tool.make("fails", { execute: () => Effect.fail("no") }),
    remove,
    ask,
    Tool.make("work", {
      background: { enabled: true },
      execute: () => Effect.as(Effect.promise(turn), "worked")
    }),
    Agent.asTool(helper)
  ]
  const value =
    made.values === undefined
      ? {}
      : {
          structuredOutput: {
            ...structuredOutput,
            errorStrategy: made.strategy as "fallback",
            ...(made.strategy === "fallback" ? { fallbackValue: { a: 0 } } : {}),
            ...(made.values === "model" ? { model: writer.model } : {})
          } as never
        }
  const agent = Agent.make({
    id: "a",
    model: main.model as LanguageModel.LanguageModel,
    tools,
    outputProcessors,
    maxRetries: 0,
    maxSteps: made.maxSteps,
    ...value,
    ...(made.goal ? { goal: { judge: judge.model, maxRuns: 3 } } : {}),
    ...(made.waits ? { backgroundTasks: { waitTimeout: 1000 } } : {})
  })
  const options = {
    ...(made.hasThread ? { memory } : {}),
    ...(made.untilIdle ? { untilIdle: true } : {})
  }
  const controller = new AbortController()
  let seen = 0
  const look = () =>
    Effect.sync(() => {
      if (seen++ === made.abortAfter) controller.abort()
    })
  const told: Array<Chunk.Chunk> = []
  const faults: Array<string> = []
  let lastUsage: Usage.Usage = {}
  let isTripped = false
  const check = (chunks: ReadonlyArray<Chunk.Chunk>, waiting: ReadonlyArray<string>): void => {
    told.push(...chunks)
    const plain = chunks.filter(chunk => !isTaskEvent(chunk))
    for (const runId of new Set(plain.map(({ runId }) => runId))) {
      faults.push(
        ...faultsOf(
          plain.filter(chunk => chunk.runId === runId),
          waiting
        )
      )
    }
    for (const { payload } of only(chunks, "finish")) {
      lastUsage = payload.output.usage
      isTripped ||= payload.stepResult.reason === "error"
    }
  }
  await Effect.gen(function* () {
    if (made.hasThread && made.goal) yield* setObjective(agent)
    const output = yield* Agent.run(agent, "go", { runId: "r", ...options, abortSignal: controller.signal })
    const { chunks } = yield* read(output.fullStream, look)
    check(chunks, [])
    const promises: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
      output.object as Effect.Effect<unknown, unknown>,
      output.text,
      output.usage,
      output.steps,
      output.toolCalls,
      output.response,
      output.finishReason
    ]
    for (const promise of promises) yield* Effect.exit(promise)
    const full = yield* output.fullOutput
    const finishes = only(chunks, "finish")
    if (JSON.stringify(full.usage) !== JSON.stringify(finishes.at(-1)?.payload.output.usage)) {
      if (finishes.length < 2) faults.push("the output has used something else")
    }
    let waiting = waitingIn(chunks)
    for (let leg = 0; leg < 12 && waiting.length > 0 && made.abortAfter === undefined; leg++) {
      const [suspended] = yield* Agent.listSuspendedRuns(agent)
      if (suspended === undefined) {
        faults.push("nobody waits")
        break
      }
      const toolCallId = waiting[leg % waiting.length] ?? ""
      const decision = made.decisions[leg % made.decisions.length]
      const decided = { runId: suspended.runId, toolCallId, ...options }
      const isQuestion = toolCallId.startsWith("ask")
      const stream =
        decision === "decline"
          ? Agent.declineToolCall(agent, decided)
          : Agent.resumeStream(agent, isQuestion ? { answer: "yes" } : { approved: true }, decided)
      const next = yield* read(stream)
      if (next.exit._tag === "Failure" && next.chunks.length === 0) {
        faults.push(`a decision failed: ${String(next.exit.cause)}`)
        break
      }
      check(next.chunks, waiting)
      waiting = waitingIn(next.chunks)
    }
    for (const { messages } of main.requests) faults.push(...conversationFaults(messages, () => false))
  }).pipe(
    Effect.scoped,
    Effect.provide(
      BackgroundTasks.layer({ enabled: true }).pipe(
        Layer.provideMerge(Layer.merge(stores, TaskStore.layerMemory))
      )
    ),
    Effect.timeoutFail({ duration: "8 seconds", onTimeout: () => new Error("it never ends") }),
    Logger.withMinimumLogLevel(LogLevel.None),
    Effect.runPromise
  )
  const runs = new Set(only(told, "start").map(({ runId }) => runId))
  const hasTask = told.some(isTaskEvent)
  if (made.abortAfter === undefined && runs.size === 1 && !hasTask && !isTripped) {
    const all = used.known === 0 ? {} : { inputTokens: used.input, outputTokens: used.output }
    if (lastUsage.inputTokens !== all.inputTokens || lastUsage.outputTokens !== all.outputTokens)
      faults.push(`models used ${JSON.stringify(all)}, the run says ${JSON.stringify(lastUsage)}`)
  }
  if (faults.length > 0) throw new Error(faults.join("\n"))
}

const unhandled: Array<unknown> = []
const note = (reason: unknown): void => void unhandled.push(reason)

describe("random agents with several features at once", () => {
  it("keep order, sums, promises and prompts", async () => {
    process.on("unhandledRejection", note)
    await fc.assert(fc.asyncProperty(plan, live), { numRuns: Number(process.env["TOGETHER"] ?? 100) })
    await turn()
    process.off("unhandledRejection", note)
    expect(unhandled).toEqual([])
  }, 120_000)
})

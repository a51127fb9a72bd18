/** Whatever providers and tools do: the order of chunks holds, and the conversation stays well formed. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Chunk, Conversation, type ModelPart, Tool, Usage } from "eddy"
import { Effect, Exit, FastCheck as fc, Schema } from "effect"
import { conversationFaults } from "../support/conversationFaults.js"
import { violationsOf } from "../support/grammar.js"
import { anyPart, loosely, reasons, toolNames, usage } from "../support/randomParts.js"
import { finish, finishOf, modelOf, only, read, textOf, turn, turns } from "./kit.js"

/** How an answer ends, when no finish part has ended it. */
type Ending = "eof" | "throw" | "hang"

interface Answer {
  readonly parts: ReadonlyArray<ModelPart.ModelPart | "turn">
  readonly ending: Ending
}

type Behaviour =
  | "instant"
  | "fails"
  | "fails with a string"
  | "dies"
  | "throws"
  | "returns nothing"
  | "says that it failed"
  | "writes"
  | "is strict"
  | "ignores interruption"
  | "is the client's"

interface Scenario {
  readonly answers: ReadonlyArray<Answer>
  readonly tools: ReadonlyArray<{ readonly behaviour: Behaviour; readonly turns: number }>
  readonly maxSteps: number
  readonly concurrency: number
  /** Chunks after which the run is aborted; 0: before it begins. */
  readonly abortAfter: number | undefined
  readonly isSlowReader: boolean
  readonly includeRawChunks: boolean
}

const answer: fc.Arbitrary<Answer> = fc
  .record({
    parts: fc.array(anyPart, { maxLength: 14 }),
    last: fc.option(fc.record({ reason: reasons, usage }), { freq: 8, nil: undefined }),
    more: fc.array(anyPart, { maxLength: 2 }),
    ending: fc.constantFrom<Ending>("eof", "eof", "eof", "throw", "hang")
  })
  .map(({ ending, last, more, parts }) => ({
    parts: last === undefined ? parts : [...parts, finish(last.reason, last.usage), ...more],
    ending
  }))

const scenario: fc.Arbitrary<Scenario> = fc.record({
  answers: fc.array(answer, { minLength: 1, maxLength: 4 }),
  tools: fc.tuple(
    ...toolNames.map(() =>
      fc.record({
        behaviour: fc.constantFrom<Behaviour>(
          "instant",
          "fails",
          "fails with a string",
          "dies",
          "throws",
          "returns nothing",
          "says that it failed",
          "writes",
          "is strict",
          "ignores interruption",
          "is the client's"
        ),
        turns: fc.constantFrom(0, 0, 1, 3)
      })
    )
  ),
  maxSteps: fc.integer({ min: 1, max: 4 }),
  concurrency: fc.constantFrom(1, 2, 10),
  abortAfter: fc.option(fc.nat(40), { nil: undefined }),
  isSlowReader: fc.boolean(),
  includeRawChunks: fc.boolean()
})

/** Turns of the event loop after a finish would make it a matter of luck what is read behind it. */
async function* play({ ending, parts }: Answer, hangs: () => void) {
  let isFinished = false
  for (const part of parts) {
    if (part !== "turn") yield part
    else if (!isFinished) await turn()
    if (part !== "turn" && part.type === "finish") isFinished = true
  }
  if (ending === "throw") throw new Error("broken")
  if (ending === "hang") {
    hangs()
    await new Promise(() => undefined)
  }
}

const toolOf = (
  name: string,
  { behaviour, turns: count }: Scenario["tools"][number],
  executions: Map<string, boolean>
): Tool.Tool => {
  if (behaviour === "is the client's") return Tool.make(name, {})
  const behave: Record<
    Exclude<Behaviour, "is the client's">,
    (context: WriteContext) => Effect.Effect<unknown, unknown>
  > = {
    instant: () => Effect.succeed("done \ud83d"),
    fails: () => Effect.fail({ _tag: "Failed" }),
    "fails with a string": () => Effect.fail("failed \ud83d"),
    dies: () => Effect.die({ odd: 1n }),
    throws: () => {
      throw new Error("thrown")
    },
    "returns nothing": () => Effect.void,
    "says that it failed": () => Effect.succeed({ isError: true, content: [{ type: "text", text: "bad" }] }),
    writes: ({ write, writeData }) =>
      Effect.zipRight(write(new Map([["a", 1n]])), Effect.as(writeData({ type: "data-x", data: 1 }), 1)),
    "is strict": () => Effect.succeed({ n: 1 }),
    "ignores interruption": () => Effect.succeed(null)
  }
  const executed = (context: WriteContext) => {
    if (executions.has(context.toolCallId)) throw new Error(`"${context.toolCallId}" is executed again`)
    executions.set(context.toolCallId, false)
    const work = Effect.zipRight(
      turns(count),
      Effect.suspend(() => behave[behaviour](context))
    )
    const whole = behaviour === "ignores interruption" ? Effect.uninterruptible(work) : work
    return Effect.ensuring(
      whole,
      Effect.sync(() => executions.set(context.toolCallId, true))
    )
  }
  return Tool.make(name, {
    input: behaviour === "is strict" ? Schema.Struct({ n: Schema.Number }) : { type: "object" },
    execute: (_, context) => executed(context)
  })
}

type WriteContext = Parameters<NonNullable<Tool.Tool["call"]>>[1]

const runOf = Effect.fnUntraced(function* (scenario: Scenario) {
  const controller = new AbortController()
  const executions = new Map<string, boolean>()
  const hang = () => void turn().then(() => controller.abort("hung"))
  const last: Answer = { parts: [finish("stop")], ending: "eof" }
  const answers = [...scenario.answers, last, last, last, last]
  const { model, requests } = modelOf(answers.map(answer => () => play(answer, hang)))
  const agent = Agent.make({
    id: "kit",
    model,
    tools: toolNames.map((name, index) =>
      toolOf(name, scenario.tools[index] ?? { behaviour: "instant", turns: 0 }, executions)
    )
  })
  if (scenario.abortAfter === 0) controller.abort("early")
  const { abortAfter, concurrency, includeRawChunks, isSlowReader, maxSteps } = scenario
  const stream = Agent.stream(agent, "go", {
    abortSignal: controller.signal,
    includeRawChunks,
    maxSteps,
    // Retries have a property of their own.
    maxRetries: 0,
    toolCallConcurrency: concurrency
  })
  const told = yield* read(stream, (_, count) => {
    if (count === abortAfter) controller.abort({ odd: 1n })
    return isSlowReader && count % 3 === 0 ? Effect.promise(turn) : Effect.void
  })
  return { ...told, answers, executions, requests }
})

type Ran = Effect.Effect.Success<ReturnType<typeof runOf>>

/** The stream of a run that failed fails with the error that it told; all others just end. */
const expectExit = ({ chunks, exit }: Ran) => {
  const errors = only(chunks, "error").map(chunk => chunk.payload.error)
  expect(exit).toStrictEqual(errors.length === 0 ? Exit.void : Exit.fail(errors[0]))
}

/** The last figure of each answer, the sum over answers; what nobody told is absent. */
const expectUsage = ({ answers, chunks }: Ran) => {
  const steps = only(chunks, "step-finish")
  let total = Usage.empty
  for (const [index, { payload }] of steps.entries()) {
    const told = (answers[index]?.parts ?? []).flatMap(part =>
      part !== "turn" && part.type === "finish" ? [part.usage] : []
    )
    expect(payload.output.usage).toStrictEqual(told.reduce(Usage.replace, Usage.empty))
    total = Usage.combine(total, payload.output.usage)
    expect(payload.totalUsage).toStrictEqual(total)
  }
  const { output } = finishOf(chunks)
  const isCutOff = only(chunks, "step-start").length > steps.length
  if (!isCutOff) expect(output.usage).toStrictEqual(total)
  for (const figure of Object.values(output.usage)) expect(figure).toBeGreaterThanOrEqual(0)
}

/** Texts say in sum what was told bit by bit, and hold no half of a pair. */
const expectTexts = ({ chunks }: Ran) => {
  let told = ""
  for (const chunk of chunks) {
    if (chunk.type === "step-start") told = ""
    if (chunk.type === "text-delta") told += chunk.payload.text
    if (chunk.type === "text-delta" || chunk.type === "reasoning-delta") {
      expect(chunk.payload.text.isWellFormed()).toBe(true)
      expect(chunk.payload.text !== "" || chunk.payload.providerMetadata !== undefined).toBe(true)
    }
    if (chunk.type === "tool-call-delta") expect(chunk.payload.argsTextDelta.isWellFormed()).toBe(true)
    if (chunk.type === "step-finish") expect(chunk.payload.output.text).toBe(told)
  }
  const { messages, output, stepResult } = finishOf(chunks)
  expect(output.text).toBe(textOf(chunks))
  // Of an answer that failed nothing goes into the next prompt.
  const finished = only(chunks, "step-finish").map(chunk => chunk.payload.output.text)
  const kept = stepResult.reason === "error" ? finished.join("") : output.text
  const stored = messages.all.flatMap(message => (message.role === "assistant" ? message.content : []))
  const storedText = stored.map(part => (part.type === "text" ? part.text : "")).join("")
  expect([...storedText].sort()).toStrictEqual([...kept].sort())
}

/** What the run leaves behind is what the next prompt begins with, and what each prompt of it began with. */
const expectConversation = Effect.fnUntraced(function* ({ chunks, requests }: Ran) {
  const { messages, stepResult } = finishOf(chunks)
  const { all } = messages
  const isWhole = stepResult.reason !== "error" && stepResult.reason !== "aborted"
  expect(
    conversationFaults(
      all,
      call => isWhole && (call.providerExecuted === true || stepResult.stoppedBy === "client-tool")
    )
  ).toStrictEqual([])
  // A provider that still owes a result when the run is cut off takes its call with it.
  const isOwed = only(chunks, "tool-call").some(chunk => chunk.payload.providerExecuted === true)
  for (const request of isWhole || !isOwed ? requests : []) {
    expect(all.slice(0, request.messages.length)).toStrictEqual(request.messages)
  }
  expect([...messages.user, ...messages.nonUser]).toHaveLength(all.length)
  const next = yield* Conversation.fromInput([...all, "more"])
  expect(conversationFaults(next, () => false)).toStrictEqual([])
  if (!isWhole) expect(next.slice(0, -1)).toStrictEqual(all)
})

const expectWire = ({ chunks }: Ran) =>
  Effect.forEach(chunks, chunk =>
    Effect.gen(function* () {
      const encoded = yield* Chunk.encode(chunk)
      const json = JSON.stringify(encoded)
      expect(json).not.toMatch(/\\ud[89a-f]/i)
      const decoded = yield* Chunk.decode(JSON.parse(json))
      expect(decoded.type).toBe(chunk.type)
      expect(yield* Chunk.encode(decoded)).toStrictEqual(encoded)
    })
  )

const check = Effect.fnUntraced(function* (scenario: Scenario) {
  const ran = yield* runOf(scenario)
  expect(violationsOf(ran.chunks)).toStrictEqual([])
  expectExit(ran)
  expectUsage(ran)
  expectTexts(ran)
  yield* expectConversation(ran)
  yield* expectWire(ran)
  expect([...ran.executions.values()].every(isOver => isOver)).toBe(true)
})

describe("any run", () => {
  it.effect("keeps the order of chunks and leaves a well-formed conversation", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(scenario, scenario => Effect.runPromise(check(scenario))),
        { numRuns: 400, timeout: 2_000 }
      )
    )
  )
})

describe("the checker", () => {
  const rich = Effect.gen(function* () {
    const parts: ReadonlyArray<ModelPart.ModelPart> = [
      { type: "reasoning-delta", id: "r", delta: "hm", providerMetadata: { kit: { signature: "s" } } },
      { type: "text-delta", id: "t", delta: "so" },
      { type: "source", id: "s", sourceType: "url", url: "https://kit.test" },
      { type: "tool-input-start", id: "c", toolName: "a" },
      { type: "tool-input-delta", id: "c", delta: "{}" },
      { type: "tool-input-end", id: "c" },
      finish("tool-calls")
    ]
    const ran = yield* runOf({
      answers: [
        { parts, ending: "eof" },
        { parts: [loosely({ type: "text-delta", id: "t", delta: "ok" }), finish("stop")], ending: "eof" }
      ],
      tools: [{ behaviour: "writes", turns: 0 }],
      maxSteps: 5,
      concurrency: 1,
      abortAfter: undefined,
      isSlowReader: false,
      includeRawChunks: false
    })
    return ran.chunks
  })

  /** Without one of these a run says less, and nothing wrong. */
  const optional = new Set([
    "text-delta",
    "reasoning-delta",
    "reasoning-signature",
    "source",
    "tool-call-delta",
    "tool-output",
    "data-x"
  ])

  /** These may come twice. */
  const repeatable = new Set([...optional].filter(type => type !== "source"))

  it.effect("notices each chunk that is missing, comes twice, or comes too early", () =>
    Effect.gen(function* () {
      const chunks = yield* rich
      expect(violationsOf(chunks)).toStrictEqual([])
      expect(chunks.map(chunk => chunk.type)).toContain("reasoning-signature")
      for (const [index, chunk] of chunks.entries()) {
        const rest = chunks.toSpliced(index, 1)
        expect([chunk.type, violationsOf(rest).length > 0]).toStrictEqual([
          chunk.type,
          !optional.has(chunk.type)
        ])
        const twice = chunks.toSpliced(index, 0, chunk)
        expect([chunk.type, violationsOf(twice).length > 0]).toStrictEqual([
          chunk.type,
          !repeatable.has(chunk.type)
        ])
        if (index > 0) {
          expect([chunk.type, violationsOf([chunk, ...rest]).length > 0]).toStrictEqual([chunk.type, true])
        }
      }
    })
  )

  it.effect("notices another run, a wrong reason and a chunk after the finish", () =>
    Effect.gen(function* () {
      const chunks = yield* rich
      const end = chunks.at(-1)
      const abort = { type: "abort", runId: chunks[0]?.runId ?? "", from: "AGENT", payload: {} } as const
      expect(violationsOf(chunks.with(3, { ...abort, runId: "another" })).length).toBeGreaterThan(0)
      expect(violationsOf([...chunks, abort])).toStrictEqual([`[${chunks.length}] abort after finish`])
      if (end === undefined) throw new Error("no chunk")
      expect(violationsOf([...chunks.slice(0, -1), abort, end])).toStrictEqual([
        `[${chunks.length}] finish says "stop" after abort`
      ])
      expect(violationsOf([])).toStrictEqual(["[0] no finish"])
    })
  )
})

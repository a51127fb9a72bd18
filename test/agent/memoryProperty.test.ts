/** Whatever models say and however runs end: the thread holds what was said, once, and the next prompt can be sent. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, type Conversation, type Message, type ModelPart, ThreadStore, Tool } from "eddy"
import { Deferred, Effect, Fiber, FastCheck as fc, Stream } from "effect"
import { conversationFaults } from "../support/conversationFaults.js"
import { violationsOf } from "../support/grammar.js"
import { anyPart, reasons, toolNames, usage } from "../support/randomParts.js"
import { finish, modelOf, only, read, textOf, turn } from "./kit.js"
import { nextPrompt, stored, textIn, whole } from "./memoryKit.js"

type Ending = "eof" | "throw" | "hang"

interface Answer {
  readonly parts: ReadonlyArray<ModelPart.ModelPart | "turn">
  readonly ending: Ending
}

type Way = "signal" | "interruption" | "leaving"

interface Turn {
  readonly answers: ReadonlyArray<Answer>
  readonly maxSteps: number
  /** How the run is stopped, after so many chunks: behind `start`, when the thread is open. */
  readonly stop: { readonly way: Way; readonly after: number } | undefined
  /** Whether the client sends everything again, or what its tools came to, or only what is new. */
  readonly next: "new" | "again" | "results"
}

const answer: fc.Arbitrary<Answer> = fc
  .record({
    parts: fc.array(anyPart, { maxLength: 12 }),
    last: fc.option(fc.record({ reason: reasons, usage }), { freq: 8, nil: undefined }),
    ending: fc.constantFrom<Ending>("eof", "eof", "eof", "throw", "hang")
  })
  .map(({ ending, last, parts }) => ({
    parts: last === undefined ? parts : [...parts, finish(last.reason, last.usage)],
    ending
  }))

const turnOf: fc.Arbitrary<Turn> = fc.record({
  answers: fc.array(answer, { minLength: 1, maxLength: 3 }),
  maxSteps: fc.integer({ min: 1, max: 3 }),
  stop: fc.option(
    fc.record({
      way: fc.constantFrom<Way>("signal", "interruption", "leaving"),
      after: fc.integer({ min: 2, max: 30 })
    }),
    { nil: undefined }
  ),
  next: fc.constantFrom("new", "again", "results")
})

async function* play({ ending, parts }: Answer, hangs: () => void) {
  for (const part of parts) {
    if (part === "turn") await turn()
    else yield part
  }
  if (ending === "throw") throw new Error("broken")
  if (ending === "hang") {
    hangs()
    await new Promise(() => undefined)
  }
}

/** Call ids differ from turn to turn: of two calls of one id nobody could say which of them a client has executed. */
const inTurn = (part: ModelPart.ModelPart | "turn", index: number): typeof part => {
  if (part === "turn") return part
  if ("toolCallId" in part && part.toolCallId !== "") {
    return { ...part, toolCallId: `${index}-${part.toolCallId}` }
  }
  return part.type.startsWith("tool-input") && "id" in part && part.id !== ""
    ? ({ ...part, id: `${index}-${part.id}` } as ModelPart.ModelPart)
    : part
}

/** One executes, one fails, one is the client's. */
const tools: ReadonlyArray<Tool.Tool> = toolNames.map((name, index) =>
  index === 2
    ? Tool.make(name, { input: { type: "object" } })
    : Tool.make(name, {
        input: { type: "object" },
        execute: args => (index === 0 ? Effect.promise(() => turn().then(() => args)) : Effect.fail("no"))
      })
)

/** One turn of the conversation; a run that hangs is stopped in its own way. */
const take = Effect.fnUntraced(function* (input: Conversation.Input, { answers, maxSteps, stop }: Turn) {
  const controller = new AbortController()
  const reached = yield* Deferred.make<void>()
  const way = stop?.way ?? "signal"
  const halt = (): void => {
    if (way === "signal") controller.abort("stopped")
    else Effect.runSync(Deferred.succeed(reached, undefined))
  }
  const hangs = () => void turn().then(halt)
  const last: Answer = { parts: [finish("stop")], ending: "eof" }
  const { model, requests } = modelOf([...answers, last, last, last].map(answer => () => play(answer, hangs)))
  const agent = Agent.make({ id: "kit", model, tools, maxSteps, maxRetries: 0 })
  const stream = Agent.stream(agent, input, {
    memory: whole,
    abortSignal: controller.signal,
    runId: `run-${++runs}`
  })
  const chunks: Array<Chunk.Chunk> = []
  const note = (chunk: Chunk.Chunk): void => {
    chunks.push(chunk)
    if (stop !== undefined && chunks.length === stop.after) halt()
  }
  if (way === "interruption") {
    const fiber = yield* Effect.fork(read(stream, chunk => Effect.sync(() => note(chunk))))
    yield* Effect.race(Deferred.await(reached), Fiber.await(fiber))
    yield* Fiber.interrupt(fiber)
  } else {
    yield* stream.pipe(
      Stream.tap(chunk => Effect.sync(() => note(chunk))),
      Stream.interruptWhenDeferred(reached),
      Stream.runDrain,
      Effect.exit
    )
  }
  return { chunks, requests, runId: `run-${runs}` }
})

let runs = 0

const strict = () => false

/**
 * What a prompt says, in any order. A user interface has of a failure its text only, and an outcome of the provider's stands
 * with its call there: reasoning that is last then is left out.
 */
const saidIn = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<string> =>
  messages
    .flatMap(({ content }): ReadonlyArray<unknown> => (typeof content === "string" ? [content] : content))
    .map(part =>
      JSON.stringify(part, (_, value) =>
        value?.type === "error-json" ? { type: "error-text", value: JSON.stringify(value.value) } : value
      )
    )
    .filter(part => !part.startsWith('{"type":"reasoning"'))
    .sort()

const sorted = (text: string): string => [...text].sort().join("")

const check = Effect.fnUntraced(function* (script: ReadonlyArray<Turn>) {
  const history: Array<Conversation.UIMessageInput | Message.UIMessage> = []
  let input: Conversation.Input = []
  for (const [index, step] of script.entries()) {
    const question: Conversation.UIMessageInput = {
      id: `question-${index}`,
      role: "user",
      parts: [{ type: "text", text: `question ${index}` }]
    }
    history.push(question)
    const given = Array.isArray(input) ? [...input, question] : [question]
    const answers = step.answers.map(answer => ({
      ...answer,
      parts: answer.parts.map(part => inTurn(part, index))
    }))
    const { chunks, requests, runId } = yield* take(given, { ...step, answers })
    const held = yield* stored()
    const all = held.map(({ message }) => message)
    expect(held.map(({ sequence }) => sequence)).toStrictEqual(held.map((_, place) => place + 1))
    expect(new Set(held.map(({ id }) => id)).size).toBe(held.length)
    for (const [place, { messages }] of requests.entries()) {
      expect(messages[0]?.role).toBe("user")
      const mayOwe = place === 0 ? strict : (call: Message.ToolCallPart) => call.providerExecuted === true
      expect(conversationFaults(messages, mayOwe)).toStrictEqual([])
    }
    const added = held.filter(message => message.runId === runId)
    const end = chunks.at(-1)
    if (end?.type === "finish") {
      expect(violationsOf(chunks)).toStrictEqual([])
      const { response, stepResult } = end.payload
      const said = added.map(({ message }) => message)
      const finished = only(chunks, "step-finish")
        .map(({ payload }) => payload.output.text)
        .join("")
      // What was told of an answer that failed is not kept; everything else is.
      const told = stepResult.reason === "error" ? finished : textOf(chunks)
      expect(sorted(textIn(said, "assistant"))).toBe(sorted(told))
      expect(sorted(textIn(response.messages, "assistant"))).toBe(sorted(told))
      history.push(...response.uiMessages)
    } else {
      // Nobody read to the end: what was read is there, but for what a failed answer had said.
      expect(chunks.some(({ type }) => type === "finish")).toBe(false)
    }
    const next = yield* nextPrompt([])
    yield* drop(1)
    expect(conversationFaults(next, strict)).toStrictEqual([])
    expect(all.filter(({ role }) => role === "user")).toHaveLength(index + 1)
    if (step.next === "again") {
      input = [...history]
      const again = yield* nextPrompt([...history])
      yield* drop(1)
      expect(saidIn(again)).toStrictEqual(saidIn(next))
    } else if (step.next === "results") {
      const calls = all.flatMap(message =>
        message.role === "assistant"
          ? message.content.flatMap(part =>
              part.type === "tool-call" && part.toolName === "c" && part.providerExecuted !== true
                ? [part]
                : []
            )
          : []
      )
      input = [
        {
          id: `result-${index}`,
          role: "tool",
          content: calls.map(({ toolCallId, toolName }) => ({
            type: "tool-result",
            toolCallId,
            toolName,
            output: { type: "text", value: "the client's" }
          }))
        }
      ]
    } else {
      input = []
    }
  }
})

/** Takes the last messages of the thread away again. */
const drop = (count: number) =>
  Effect.gen(function* () {
    const store = yield* ThreadStore.ThreadStore
    const held = (yield* store.messages("t1")).slice(0, -count)
    yield* store.delete("t1")
    yield* store.open({ id: "t1", resourceId: "u1" })
    yield* store.append("t1", held)
  })

describe("any conversation", () => {
  it.effect(
    "is kept whole, once, and can be gone on with",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(turnOf, { minLength: 1, maxLength: 3 }), script =>
            Effect.runPromise(Effect.provide(check(script), ThreadStore.layerMemory))
          ),
          { numRuns: 60, timeout: 10_000 }
        )
      ),
    60_000
  )
})

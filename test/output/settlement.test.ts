/**
 * One cause, settled once: every member of the output of a run has one answer, whenever it is asked for, on both faces, for
 * each of the five ways in which a run ends.
 */

import { Agent, type Chunk, Errors, ModelOutput, type ModelPart, Processor, Tool, type Usage } from "eddy"
import { createTool, Agent as PromiseAgent, ModelOutput as PromiseOutput } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Cause, Effect, Exit, Option, Scope, Stream } from "effect"
import { describe, expect, it } from "vitest"
import * as RunRecord from "../../src/output/RunRecord.js"
import {
  chunks,
  collect,
  collectByReader,
  delta,
  finish,
  flush,
  latch,
  modelOf,
  refuseUnhandledRejections,
  textOf,
  typesOf,
  until
} from "../support/readers.js"

refuseUnhandledRejections()

type Outcome = { readonly value: unknown } | { readonly error: unknown }

/** What every member came to. */
type Answers = Readonly<Record<string, Outcome>>

const outcomeOf = (promise: Promise<unknown>): Promise<Outcome> =>
  promise.then(
    value => ({ value }),
    (error: unknown) => ({ error })
  )

const all = async (promises: Readonly<Record<string, Promise<unknown>>>): Promise<Answers> =>
  Object.fromEntries(
    await Promise.all(
      Object.entries(promises).map(async ([name, promise]) => [name, await outcomeOf(promise)] as const)
    )
  )

/** Members that have a value only when the run did not fail. */
const values = [
  "text",
  "reasoning",
  "reasoningText",
  "toolCalls",
  "toolResults",
  "usage",
  "totalUsage",
  "response",
  "steps",
  "sources",
  "files",
  "warnings",
  "request",
  "providerMetadata",
  "consumed"
]

/** Asks for everything at once, now. */
const askPromises = (output: PromiseOutput): Promise<Answers> =>
  all({
    text: output.text,
    reasoning: output.reasoning,
    reasoningText: output.reasoningText,
    toolCalls: output.toolCalls,
    toolResults: output.toolResults,
    usage: output.usage,
    totalUsage: output.totalUsage,
    response: output.response,
    steps: output.steps,
    sources: output.sources,
    files: output.files,
    warnings: output.warnings,
    request: output.request,
    providerMetadata: output.providerMetadata,
    turns: output.turns,
    consumed: output.consumeStream(),
    finishReason: output.finishReason,
    fullOutput: output.getFullOutput(),
    fullStream: collect(output.fullStream),
    fullStreamByReader: collectByReader(output.fullStream),
    textStream: collect(output.textStream),
    textStreamByReader: collectByReader(output.textStream)
  })

const run = async <A>(effect: Effect.Effect<A, unknown>): Promise<A> => {
  const exit = await Effect.runPromiseExit(effect)
  if (Exit.isSuccess(exit)) return exit.value
  throw Cause.squash(exit.cause)
}

const ignore = (): void => undefined

const promisesOf = (record: RunRecord.RunRecord): PromiseOutput => new PromiseOutput(record, ignore, ignore)

const effectsOf = (record: RunRecord.RunRecord): ModelOutput.ModelOutput => ModelOutput.make(record, ignore)

/** What a stream gave, and how it ended. */
const drained = async <A>(stream: Stream.Stream<A, unknown>) => {
  const seen: Array<A> = []
  const exit = await Effect.runPromiseExit(
    Stream.runForEach(stream, one => Effect.sync(() => seen.push(one)))
  )
  return { seen, ...(Exit.isSuccess(exit) ? {} : { error: Cause.squash(exit.cause) }) }
}

const askEffects = (output: ModelOutput.ModelOutput): Promise<Answers> =>
  all({
    text: run(output.text),
    reasoning: run(output.reasoning),
    reasoningText: run(Effect.map(output.reasoningText, Option.getOrUndefined)),
    toolCalls: run(output.toolCalls),
    toolResults: run(output.toolResults),
    usage: run(output.usage),
    totalUsage: run(output.totalUsage),
    response: run(output.response),
    steps: run(output.steps),
    sources: run(output.sources),
    files: run(output.files),
    warnings: run(output.warnings),
    request: run(output.request),
    providerMetadata: run(Effect.map(output.providerMetadata, Option.getOrUndefined)),
    turns: run(output.turns),
    consumed: run(output.drain),
    finishReason: run(output.finishReason),
    fullOutput: run(output.fullOutput),
    fullStream: drained(output.fullStream),
    textStream: drained(output.textStream)
  })

const valueOf = (answers: Answers, name: string): unknown => {
  const outcome = answers[name]
  if (outcome === undefined || "error" in outcome) expect.fail(`${name} has no value: ${outcome?.error}`)
  return outcome.value
}

const errorOf = (answers: Answers, name: string): unknown => {
  const outcome = answers[name]
  if (outcome === undefined || "value" in outcome) expect.fail(`${name} did not reject`)
  return outcome.error
}

/** The same answers, and the very same error, at every time of asking. */
const expectOneAnswer = (asked: ReadonlyArray<Answers>): Answers => {
  const [first, ...others] = asked
  if (first === undefined) expect.fail("nothing was asked")
  for (const other of others) {
    expect(other).toStrictEqual(first)
    for (const [name, outcome] of Object.entries(first)) {
      if ("error" in outcome) expect(errorOf(other, name)).toBe(outcome.error)
    }
  }
  return first
}

const expectRejections = (answers: Answers, error: unknown): void => {
  for (const name of values) expect([name, errorOf(answers, name)]).toEqual([name, error])
  for (const name of values) expect(errorOf(answers, name)).toBe(error)
}

const firstUsage: Usage.Usage = { inputTokens: 5, outputTokens: 3, totalTokens: 8 }
const lastUsage: Usage.Usage = { inputTokens: 7, outputTokens: 1, totalTokens: 8 }
const allUsage: Usage.Usage = { inputTokens: 12, outputTokens: 4, totalTokens: 16 }
const warning = { type: "unsupported-setting", setting: "seed" }

const broken = new Errors.ModelError({
  reason: "stream",
  provider: "hand",
  modelId: "made",
  message: "The wire was cut."
})

/** How a run ends, and what its members are to say of that. */
interface Row {
  readonly status: ModelOutput.ModelOutput["status"] extends Effect.Effect<infer Status> ? Status : never
  readonly finishReason: string
  readonly text: string
  readonly chunks: ReadonlyArray<Chunk.Chunk>
  /** What the values reject with: this very error, or an abort error. None: they have their values. */
  readonly error?: Error | typeof Errors.RunAborted
  /** More of the full output. */
  readonly more?: Readonly<Record<string, unknown>>
}

const opened: ReadonlyArray<Chunk.Chunk> = [
  chunks.start,
  chunks.stepStart([warning]),
  chunks.reasoningStart("r"),
  chunks.reasoning("r", "Hm. "),
  chunks.reasoningEnd("r"),
  chunks.textStart("a"),
  chunks.text("a", "Looking. "),
  chunks.source("s"),
  chunks.file("data"),
  chunks.textEnd("a"),
  chunks.toolCall("c1"),
  chunks.toolCall("c2"),
  chunks.toolResult("c2"),
  chunks.toolResult("c1"),
  chunks.stepFinish("Looking. ", firstUsage, { reason: "tool-calls", isContinued: true }),
  chunks.stepStart(),
  chunks.textStart("b"),
  chunks.text("b", "Half")
]

const row = (ending: ReadonlyArray<Chunk.Chunk>, rest: Omit<Row, "chunks">): Row => ({
  ...rest,
  chunks: [...opened, ...ending]
})

const rows: Readonly<Record<string, Row>> = {
  success: row(
    [
      chunks.text("b", " done"),
      chunks.textEnd("b"),
      chunks.stepFinish("Half done", lastUsage),
      chunks.finish("stop", "Looking. Half done", allUsage)
    ],
    { status: "success", finishReason: "stop", text: "Looking. Half done" }
  ),
  failure: row(
    [chunks.textEnd("b"), chunks.error(broken), chunks.finish("error", "Looking. Half", allUsage)],
    {
      status: "failed",
      finishReason: "error",
      text: "Looking. Half",
      error: broken
    }
  ),
  "failure with a foreign error": row(
    [chunks.error(new RangeError("foreign")), chunks.finish("error", "Looking. Half", allUsage)],
    { status: "failed", finishReason: "error", text: "Looking. Half", error: new RangeError("foreign") }
  ),
  abort: row(
    [chunks.textEnd("b"), chunks.abort("enough"), chunks.finish("aborted", "Looking. Half", allUsage)],
    {
      status: "aborted",
      finishReason: "aborted",
      text: "Looking. Half",
      error: Errors.RunAborted
    }
  ),
  tripwire: row(
    [chunks.textEnd("b"), chunks.tripwire("No names."), chunks.finish("tripwire", "Looking. ", allUsage)],
    {
      status: "tripwire",
      finishReason: "tripwire",
      // What was stopped was not said.
      text: "Looking. ",
      more: { tripwire: { reason: "No names.", retry: false, processorId: "guard" } }
    }
  ),
  suspension: row(
    [
      chunks.textEnd("b"),
      chunks.suspended("c1", { ask: "Really?" }),
      chunks.finish("suspended", "Looking. Half", allUsage)
    ],
    {
      status: "suspended",
      finishReason: "suspended",
      text: "Looking. Half",
      more: { suspendData: { ask: "Really?" } }
    }
  )
}

const said = (row: Row): Readonly<Record<string, unknown>> => ({
  text: row.text,
  reasoning: "Hm. ",
  toolCalls: [chunks.toolCall("c1"), chunks.toolCall("c2")],
  toolResults: [chunks.toolResult("c1"), chunks.toolResult("c2")],
  usage: allUsage,
  totalUsage: allUsage,
  sources: [chunks.source("s")],
  files: [chunks.file("data")],
  warnings: [warning],
  request: { provider: "hand", modelId: "made" },
  response: { id: "last", messages: [], uiMessages: [] },
  providerMetadata: { hand: { said: row.status === "success" ? "Half done" : "Looking. " } }
})

const expectFull = (full: unknown, row: Row): Error | undefined => {
  const { error, tripwire, suspendData, ...rest } = full as Partial<Record<string, unknown>>
  const { status, finishReason, more } = row
  expect(rest).toMatchObject({ ...said(row), runId: "run-1", messageId: "message-1", status, finishReason })
  expect({ tripwire, suspendData }).toStrictEqual({ tripwire: undefined, suspendData: undefined, ...more })
  if (row.error === undefined) expect(error).toBeUndefined()
  else if (row.error instanceof Error) expect(error).toStrictEqual(row.error)
  else expect(error).toBeInstanceOf(row.error)
  return error as Error | undefined
}

/** What no stream is part of, in terms of the row. */
const expectMembers = (answers: Answers, row: Row): Error | undefined => {
  const error = expectFull(valueOf(answers, "fullOutput"), row)
  expect(valueOf(answers, "finishReason")).toBe(row.finishReason)
  if (error !== undefined) {
    expectRejections(answers, error)
    return error
  }
  for (const [name, value] of Object.entries(said(row)))
    expect([name, valueOf(answers, name)]).toEqual([name, value])
  expect(valueOf(answers, "reasoningText")).toBe("Hm. ")
  expect(valueOf(answers, "steps")).toHaveLength(row.status === "success" ? 2 : 1)
  expect(valueOf(answers, "turns")).toEqual([valueOf(answers, "fullOutput")])
  expect(valueOf(answers, "consumed")).toBeUndefined()
  return undefined
}

const deltasOf = (all: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<string> =>
  all.flatMap(chunk => (chunk.type === "text-delta" ? [chunk.payload.text] : []))

describe.each(Object.entries(rows))(
  "a run written by hand, asked around each of its chunks: %s",
  (_, row) => {
    /** Fresh outputs over one record at every place, so that nothing is remembered between them. */
    const askAround = async (ask: (record: RunRecord.RunRecord) => Promise<Answers>) => {
      const record = RunRecord.make("run-1")
      const asked: Array<Promise<Answers>> = []
      for (const chunk of row.chunks) {
        asked.push(ask(record))
        record.write([chunk])
        await flush(1)
      }
      asked.push(ask(record))
      record.end(Exit.void)
      asked.push(ask(record))
      await flush()
      asked.push(ask(record))
      return expectOneAnswer(await Promise.all(asked))
    }

    it("promises", async () => {
      const answers = await askAround(record => askPromises(promisesOf(record)))
      expectMembers(answers, row)
      for (const name of ["fullStream", "fullStreamByReader"]) {
        expect([name, valueOf(answers, name)]).toEqual([name, row.chunks])
      }
      for (const name of ["textStream", "textStreamByReader"]) {
        expect([name, valueOf(answers, name)]).toEqual([name, deltasOf(row.chunks)])
      }
    })

    it("effects", async () => {
      const answers = await askAround(record => askEffects(effectsOf(record)))
      const error = expectMembers(answers, row)
      // After its `finish`, the stream of a run that failed fails; that of one that was aborted just ends.
      const end = row.status === "failed" ? { error } : {}
      expect(valueOf(answers, "fullStream")).toEqual({ seen: row.chunks, ...end })
      expect(valueOf(answers, "textStream")).toEqual({ seen: deltasOf(row.chunks), ...end })
    })

    it("what is there without waiting follows the chunks", () => {
      const record = RunRecord.make("run-1")
      const output = promisesOf(record)
      const effects = effectsOf(record)
      const seen = new Set<string>()
      expect(output.messageId).toBe("")
      for (const chunk of row.chunks) {
        expect(output.status).toBe("running")
        record.write([chunk])
        seen.add(chunk.type)
        expect(output.messageId).toBe("message-1")
        expect(output.error !== undefined).toBe(seen.has("error") || seen.has("abort"))
        expect(output.tripwire !== undefined).toBe(seen.has("tripwire"))
        expect(output.suspendData !== undefined).toBe(seen.has("tool-call-suspended"))
      }
      expect(output.status).toBe(row.status)
      expect(Effect.runSync(effects.status)).toBe(row.status)
      expect(Effect.runSync(Effect.map(effects.tripwire, Option.isSome))).toBe(row.status === "tripwire")
    })
  }
)

describe("a run that ends without a word", () => {
  const cut = opened.slice(0, -1)
  const ends: ReadonlyArray<readonly [string, Exit.Exit<unknown, unknown>, "aborted" | "failed", unknown]> = [
    ["it just ends", Exit.void, "aborted", Errors.RunAborted],
    ["it is interrupted", Effect.runSyncExit(Effect.interrupt), "aborted", Errors.RunAborted],
    ["it dies", Exit.die(new TypeError("a defect")), "failed", TypeError],
    ["it dies of no error", Exit.die("a defect"), "failed", Error],
    ["it fails", Exit.fail(broken), "failed", Errors.ModelError]
  ]

  it.each(ends)("%s", async (_, exit, status, type) => {
    const record = RunRecord.make("run-1")
    const asked = [askPromises(promisesOf(record))]
    record.write(cut)
    asked.push(askPromises(promisesOf(record)))
    record.end(exit)
    const output = promisesOf(record)
    asked.push(askPromises(output))
    const answers = expectOneAnswer(await Promise.all(asked))
    expectRejections(answers, output.error)
    expect(output.error).toBeInstanceOf(type)
    expect(output.status).toBe(status)
    expect(valueOf(answers, "finishReason")).toBe(status === "failed" ? "error" : "aborted")
    expect(valueOf(answers, "fullStream")).toEqual(cut)
    expect(valueOf(answers, "fullOutput")).toMatchObject({ text: "Looking. ", status, error: output.error })
  })

  it("nothing counts after the finish", async () => {
    const record = RunRecord.make("run-1")
    const { chunks: told, ...success } = rows.success ?? expect.fail()
    record.write(told)
    record.write([chunks.error(broken), chunks.text("b", "late"), chunks.finish("error", "", {})])
    record.end(Exit.die("late"))
    const answers = await askPromises(promisesOf(record))
    expectMembers(answers, { ...success, chunks: told })
    expect(valueOf(answers, "fullStream")).toEqual(told)
  })
})

/** A run of an agent on one of the faces. */
interface Going {
  readonly ask: () => Promise<Answers>
  readonly status: () => string
  readonly abort: (reason?: unknown) => void
  readonly close: () => Promise<void>
}

interface Face {
  readonly name: string
  readonly start: (
    model: ScriptedModel.ScriptedModel | ReturnType<typeof modelOf>,
    outputProcessors?: ReadonlyArray<Processor.Processor>
  ) => Promise<Going>
}

const promiseFace: Face = {
  name: "promises",
  start: async (model, outputProcessors = []) => {
    const look = createTool({ id: "look", execute: () => "found" })
    const agent = new PromiseAgent({ id: "hand", model, tools: { look }, outputProcessors })
    const output = await agent.stream("Look!", { onError: () => undefined })
    return {
      ask: () => askPromises(output),
      status: () => output.status,
      abort: reason => void output.cancel(reason),
      close: async () => undefined
    }
  }
}

const effectFace: Face = {
  name: "effects",
  start: async (model, outputProcessors = []) => {
    const look = Tool.make("look", { execute: () => Effect.succeed("found") })
    const agent = Agent.make({ id: "hand", model, tools: [look], outputProcessors })
    const scope = Effect.runSync(Scope.make())
    const output = await run(Scope.extend(Agent.run(agent, "Look!"), scope))
    return {
      ask: () => askEffects(output),
      status: () => Effect.runSync(output.status),
      abort: reason => Effect.runSync(output.abort(reason)),
      close: () => run(Scope.close(scope, Exit.void))
    }
  }
}

interface Ending {
  readonly after: (going: Going) => void
  readonly parts: () => AsyncGenerator<ModelPart.ModelPart>
  readonly reason: string
  readonly error?: unknown
  readonly processors?: ReadonlyArray<Processor.Processor>
}

const never = () => new Promise<never>(() => undefined)

const endings: Readonly<Record<string, Ending>> = {
  success: {
    after: () => undefined,
    parts: async function* () {
      yield delta("a", " done")
      yield finish("stop", lastUsage)
    },
    reason: "stop"
  },
  "an error part": {
    after: () => undefined,
    parts: async function* () {
      yield { type: "error", error: new RangeError("overloaded") }
    },
    reason: "error",
    error: Errors.ModelError
  },
  "a source that throws": {
    after: () => undefined,
    parts: async function* () {
      throw new RangeError("overloaded")
    },
    reason: "error",
    error: Errors.ModelError
  },
  "a source that closes before its finish": {
    after: () => undefined,
    parts: async function* () {},
    reason: "error",
    error: Errors.ModelError
  },
  "a tripwire of the stream": {
    after: () => undefined,
    parts: async function* () {
      yield delta("a", "bad")
    },
    reason: "tripwire",
    processors: [
      Processor.blockWhen({ chunk: chunk => chunk.type === "text-delta" && chunk.payload.text === "bad" })
    ]
  },
  "a tripwire of a step": {
    after: () => undefined,
    parts: async function* () {
      yield delta("a", " done")
      yield finish("stop")
    },
    reason: "tripwire",
    processors: [Processor.blockWhen({ text: text => text === "Half done" })]
  },
  abort: {
    after: going => going.abort("enough"),
    parts: async function* () {
      yield await never()
    },
    reason: "aborted",
    error: Errors.RunAborted
  }
}

describe.each([promiseFace, effectFace])(
  "a run of an agent, asked before, during and after it: $name",
  face => {
    it.each(Object.entries(endings))("%s", async (_, ending) => {
      const begin = latch()
      const end = latch()
      let isHalf = false
      const model = modelOf(async function* (call) {
        if (call === 0) {
          await begin.wait
          yield ScriptedModel.toolCall("c1", "look", {})
          yield finish("tool-calls", firstUsage)
        } else {
          yield delta("a", "Half")
          isHalf = true
          await end.wait
          yield* ending.parts()
        }
      })
      const going = await face.start(model, ending.processors)
      const before = going.ask()
      await flush()
      expect(going.status()).toBe("running")
      begin.open()
      await until(() => isHalf, "the second answer has begun")
      await flush()
      const during = going.ask()
      end.open()
      ending.after(going)
      await until(() => going.status() !== "running", "the run has ended")
      const after = going.ask()
      await flush()
      const answers = expectOneAnswer(await Promise.all([before, during, after, going.ask()]))
      await going.close()

      expect(valueOf(answers, "finishReason")).toBe(ending.reason)
      const full = valueOf(answers, "fullOutput")
      const isDone = ending.error === undefined
      const isTripped = ending.reason === "tripwire"
      expect(full).toMatchObject({
        text: isTripped ? "" : isDone ? "Half done" : "Half",
        usage: isDone && !isTripped ? allUsage : firstUsage,
        finishReason: ending.reason
      })
      if (ending.error !== undefined) {
        const error = errorOf(answers, "text")
        expect(error).toBeInstanceOf(ending.error)
        expectRejections(answers, error)
        expect(full).toHaveProperty("error", error)
      } else {
        expect(full).not.toHaveProperty("error")
        expect(valueOf(answers, "text")).toBe(isTripped ? "" : "Half done")
        expect(valueOf(answers, "toolResults")).toMatchObject([
          { payload: { toolCallId: "c1", result: "found" } }
        ])
      }
    })

    it("a model that refuses before any part", async () => {
      const going = await face.start(ScriptedModel.make([]))
      const early = going.ask()
      await until(() => going.status() !== "running", "the run has ended")
      const answers = expectOneAnswer(await Promise.all([early, going.ask()]))
      await going.close()
      expect(errorOf(answers, "text")).toBeInstanceOf(Errors.ModelError)
      expectRejections(answers, errorOf(answers, "text"))
      expect(valueOf(answers, "fullOutput")).toMatchObject({ text: "", status: "failed", usage: {} })
    })

    it.each([
      ["no reason", undefined, "The run was aborted."],
      ["words", "too slow", "The run was aborted: too slow"],
      ["an error", new Error("too slow"), "The run was aborted: too slow"]
    ])("an abort with %s keeps its reason as the cause of the error", async (_, reason, message) => {
      const going = await face.start(ScriptedModel.make([[ScriptedModel.hang]]))
      const early = going.ask()
      going.abort(reason)
      going.abort("a second one counts for nothing")
      const answers = expectOneAnswer(await Promise.all([early, going.ask()]))
      await going.close()
      const error = errorOf(answers, "text")
      expect(error).toBeInstanceOf(Errors.RunAborted)
      expect(error).toMatchObject({ message })
      expect((error as Error).cause).toBe(reason)
    })
  }
)

describe("nobody looks", () => {
  const failing = () => ScriptedModel.make([[delta("a", "Half"), { type: "error", error: "overloaded" }]])

  it("a failed run of which only the chunks are read rejects nothing", async () => {
    const agent = new PromiseAgent({ id: "hand", model: failing() })
    const output = await agent.stream("Go!", { onError: () => undefined })
    const seen = await collect(output.fullStream)
    expect(typesOf(seen).slice(-2)).toEqual(["error", "finish"])
    expect(textOf(seen)).toBe("Half")
    await flush()
    await expect(output.text).rejects.toThrow("overloaded")
  })

  it("promises that were touched and left reject in silence, also that of consumeStream", async () => {
    const agent = new PromiseAgent({ id: "hand", model: failing() })
    const output = await agent.stream("Go!", { onError: () => undefined })
    const { text, usage, steps, toolResults, turns, request } = output
    void [text, usage, steps, toolResults, turns, request]
    void output.consumeStream()
    await output.getFullOutput()
    void output.consumeStream()
    void output.response
    await flush()
    expect(output.status).toBe("failed")
  })

  it("an aborted run rejects nothing", async () => {
    const agent = new PromiseAgent({ id: "hand", model: ScriptedModel.make([[ScriptedModel.hang]]) })
    const output = await agent.stream("Go!")
    void output.text
    void output.consumeStream()
    await output.cancel(new Error("enough"))
    expect(output.status).toBe("aborted")
  })
})

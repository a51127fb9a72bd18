/** The fold over the chunks of a run: total over any sequence, and exact for a run that keeps the grammar. */
import { afterAll, describe, expect, it } from "@effect/vitest"
import { Agent, Chunk, type ModelPart, RunFold, Tool, Usage } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Arbitrary, Effect, FastCheck, Stream } from "effect"
import { chunks, textOf } from "../support/readers.js"

// Schemas nest arbitraries deeply; small parts keep a hundred sequences within a second.
FastCheck.configureGlobal({ baseSize: "xsmall" })
afterAll(() => FastCheck.resetConfigureGlobal())

const deepFreeze = <A>(value: A): A => {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value
  // Typed arrays cannot be frozen.
  if (ArrayBuffer.isView(value)) return value
  Object.freeze(value)
  for (const one of Object.values(value)) deepFreeze(one)
  return value
}

const foldOf = (all: Iterable<Chunk.Chunk>): RunFold.RunFold => {
  const fold = RunFold.make("run-1")
  for (const chunk of all) fold.push(chunk)
  return fold
}

const anyChunk = Arbitrary.make(Chunk.Chunk)

describe("any sequence of chunks", () => {
  it.prop(
    "has an answer, without changing the chunks",
    [FastCheck.array(anyChunk, { maxLength: 12, size: "max" })],
    ([all]) => {
      const fold = foldOf(deepFreeze(all))
      const full = fold.snapshot()
      expect(full).toStrictEqual(foldOf(all).snapshot())
      const last = all.filter(chunk => chunk.type === "finish").at(-1)
      expect(full.finishReason).toBe(last?.payload.stepResult.reason)
      expect(full.status === "running").toBe(last === undefined)
      expect(fold.error !== undefined).toBe(all.some(({ type }) => type === "error" || type === "abort"))
      for (const figure of Object.values(full.usage)) expect(figure).toBeGreaterThanOrEqual(0)
    }
  )

  it.prop(
    "also when every chunk comes twice and after the finish",
    [FastCheck.array(anyChunk, { maxLength: 6, size: "max" })],
    ([all]) => {
      const fold = foldOf([...all, chunks.finish("stop", "", {}), ...all, ...all])
      expect(() => fold.snapshot()).not.toThrow()
      expect(typeof fold.snapshot().text).toBe("string")
    }
  )

  it("the first error is the error of the run", () => {
    const first = new RangeError("first")
    const fold = foldOf([chunks.error(first), chunks.error(new Error("second")), chunks.abort()])
    expect(fold.error).toBe(first)
    expect(foldOf([chunks.error("words")]).error).toStrictEqual(new Error("words"))
  })
})

/** What happens in a step, in an order that keeps the grammar. */
interface Script {
  readonly said: ReadonlyArray<{ readonly block: "a" | "b" | "r"; readonly text: string }>
  readonly calls: number
  /** Numbers to sort the results by, so that they come in any order; `undefined` for a call that failed. */
  readonly results: ReadonlyArray<number | undefined>
  readonly usage: Usage.Usage
}

const figures = FastCheck.record(
  { inputTokens: FastCheck.nat(1000), outputTokens: FastCheck.nat(1000), reasoningTokens: FastCheck.nat(9) },
  { requiredKeys: [] }
)

const script: FastCheck.Arbitrary<Script> = FastCheck.record({
  said: FastCheck.array(
    FastCheck.record({ block: FastCheck.constantFrom("a", "b", "r"), text: FastCheck.string() }),
    { maxLength: 8, size: "max" }
  ),
  calls: FastCheck.nat(4),
  results: FastCheck.array(FastCheck.option(FastCheck.nat(99), { nil: undefined }), {
    minLength: 4,
    maxLength: 4
  }),
  usage: figures
})

const textIn = ({ said }: Script): string =>
  said.map(({ block, text }) => (block === "r" ? "" : text)).join("")

const reasoningIn = ({ said }: Script): string =>
  said.map(({ block, text }) => (block === "r" ? text : "")).join("")

const callsIn = (script: Script, step: number): ReadonlyArray<string> =>
  Array.from({ length: script.calls }, (_, index) => `call ${step}.${index}`)

const hasResult = (script: Script) => (_: string, index: number) => script.results[index] !== undefined

/** The chunks of a step up to its `step-finish`, which comes last. Blocks interleave, results come in any order. */
const stepChunks = (script: Script, step: number, isContinued: boolean): ReadonlyArray<Chunk.Chunk> => {
  const calls = callsIn(script, step)
  const results = calls
    .filter(hasResult(script))
    .toSorted(
      (left, right) =>
        (script.results[calls.indexOf(left)] ?? 0) - (script.results[calls.indexOf(right)] ?? 0)
    )
  return [
    chunks.stepStart(),
    chunks.textStart(`a${step}`),
    chunks.textStart(`b${step}`),
    chunks.reasoningStart(`r${step}`),
    ...script.said.map(({ block, text }) =>
      block === "r" ? chunks.reasoning(`r${step}`, text) : chunks.text(`${block}${step}`, text)
    ),
    chunks.reasoningEnd(`r${step}`),
    chunks.textEnd(`b${step}`),
    chunks.textEnd(`a${step}`),
    ...calls.map(chunks.toolCall),
    ...results.map(chunks.toolResult),
    chunks.stepFinish(textIn(script), script.usage, {
      reason: isContinued ? "tool-calls" : "stop",
      isContinued
    })
  ]
}

const runChunks = (scripts: ReadonlyArray<Script>): ReadonlyArray<Chunk.Chunk> => [
  chunks.start,
  ...scripts.flatMap((script, step) => stepChunks(script, step, step < scripts.length - 1))
]

const scripts = FastCheck.array(script, { minLength: 1, maxLength: 4, size: "max" })

const sum = (scripts: ReadonlyArray<Script>, field: "inputTokens" | "outputTokens" | "reasoningTokens") => {
  const known = scripts.flatMap(({ usage }) => usage[field] ?? [])
  return known.length === 0 ? undefined : known.reduce((left, right) => left + right)
}

describe("a run that keeps the grammar", () => {
  it.prop("is told exactly", [scripts], ([scripts]) => {
    const fold = foldOf([...runChunks(scripts), chunks.finish("stop", "", {})])
    const full = fold.snapshot()
    expect(full.text).toBe(scripts.map(textIn).join(""))
    expect(full.reasoning ?? "").toBe(scripts.map(reasoningIn).join(""))
    const calls = scripts.flatMap((script, step) => callsIn(script, step))
    expect(full.toolCalls).toEqual(calls.map(chunks.toolCall))
    expect(full.toolResults).toEqual(
      scripts
        .flatMap((script, step) => callsIn(script, step).filter(hasResult(script)))
        .map(chunks.toolResult)
    )
    expect(full.usage).toStrictEqual(
      Object.fromEntries(
        (["inputTokens", "outputTokens", "reasoningTokens"] as const).flatMap(field => {
          const figure = sum(scripts, field)
          return figure === undefined ? [] : [[field, figure]]
        })
      )
    )
    expect(full.totalUsage).toStrictEqual(full.usage)
    expect(full.steps.map(({ stepNumber }) => stepNumber)).toEqual(scripts.map((_, step) => step))
    expect(full.steps.map(({ text }) => text)).toEqual(scripts.map(textIn))
    expect(full.steps.map(({ usage }) => usage)).toEqual(scripts.map(({ usage }) => usage))
    expect(full).toMatchObject({ runId: "run-1", messageId: "message-1", status: "success" })
    expect(fold.usageSoFar).toStrictEqual(full.usage)
  })

  it.prop("the finish has the last word on usage, field by field", [scripts, figures], ([scripts, usage]) => {
    const told = foldOf(runChunks(scripts)).snapshot().usage
    const full = foldOf([...runChunks(scripts), chunks.finish("stop", "", usage)]).snapshot()
    expect(full.usage).toStrictEqual(Usage.replace(told, usage))
  })

  it.prop(
    "cut off anywhere, it has what was said until there",
    [scripts, FastCheck.nat(), FastCheck.constantFrom("error" as const, "aborted" as const, undefined)],
    ([scripts, place, reason]) => {
      const whole = runChunks(scripts)
      const told = whole.slice(0, place % (whole.length + 1))
      const cause = reason === "error" ? chunks.error(new Error("cut")) : chunks.abort()
      const end = reason === undefined ? [] : [cause, chunks.finish(reason, "", {})]
      const full = foldOf([...told, ...end]).snapshot()
      expect(full.text).toBe(textOf(told))
      expect(full.toolCalls).toEqual(told.filter(({ type }) => type === "tool-call"))
      expect(full.steps).toHaveLength(told.filter(({ type }) => type === "step-finish").length)
      expect(new Set(full.toolResults)).toEqual(new Set(told.filter(({ type }) => type === "tool-result")))
      expect(full.status).toBe(reason === undefined ? "running" : reason === "error" ? "failed" : "aborted")
      expect(full.error?.message).toBe(
        reason === undefined ? undefined : reason === "error" ? "cut" : "The run was aborted."
      )
    }
  )

  it.prop("a step foreseen is the step that is recorded", [scripts], ([scripts]) => {
    const fold = RunFold.make("run-1")
    let count = 0
    for (const chunk of runChunks(scripts)) {
      if (chunk.type !== "step-finish") {
        fold.push(chunk)
        continue
      }
      const foreseen = fold.stepOf(chunk.payload)
      expect(fold.finishedSteps).toHaveLength(count++)
      fold.push(chunk)
      expect(fold.finishedSteps.at(-1)).toStrictEqual(foreseen)
      expect(foreseen.reasoning).toBe(reasoningIn(scripts[count - 1] ?? expect.fail()))
    }
    expect(count).toBe(scripts.length)
  })

  it("a snapshot does not change later", () => {
    const fold = foldOf([chunks.start, chunks.stepStart(), chunks.text("a", "one"), chunks.toolCall("c1")])
    const early = fold.snapshot()
    const copy = structuredClone(early)
    for (const chunk of [chunks.text("a", "two"), chunks.toolResult("c1"), chunks.stepFinish("onetwo", {})]) {
      fold.push(chunk)
    }
    expect(early).toEqual(copy)
    expect(fold.snapshot().text).toBe("onetwo")
  })
})

/** What a model says in a step: deltas of two blocks of text and one of reasoning, in any order. */
const partsOf = ({ said }: Script): ReadonlyArray<ModelPart.ModelPart> =>
  said.map(({ block, text }) =>
    block === "r"
      ? { type: "reasoning-delta", id: block, delta: text }
      : { type: "text-delta", id: block, delta: text }
  )

describe("a run of an agent", () => {
  it.effect("blocks that interleave are joined as they came", () =>
    Effect.gen(function* () {
      const parts = ["a", "b", "a", "b"].map(
        (id, place): ModelPart.ModelPart => ({ type: "text-delta", id, delta: `${place}` })
      )
      const model = ScriptedModel.make([[...parts, ScriptedModel.finish("stop")]])
      const full = yield* Agent.generate(Agent.make({ id: "hand", model }), "Go!")
      expect([full.text, full.steps[0]?.text]).toEqual(["0123", "0123"])
    })
  )

  const look = Tool.make("look", { execute: () => Effect.succeed("found") })

  it.effect.prop(
    "folds to what its output says, and its text is the join of its deltas",
    [
      scripts,
      FastCheck.constantFrom<ModelPart.ModelPart>(ScriptedModel.finish("stop"), {
        type: "error",
        error: "cut"
      })
    ],
    ([scripts, end]) =>
      Effect.gen(function* () {
        const last = scripts.length - 1
        const turns = scripts.map((script, step) => [
          ...partsOf(script),
          ...(step < last
            ? [
                ScriptedModel.toolCall(`call ${step}`, "look", {}),
                ScriptedModel.finish("tool-calls", script.usage)
              ]
            : [end])
        ])
        const agent = Agent.make({ id: "hand", model: ScriptedModel.make(turns), tools: [look] })
        const output = yield* Agent.run(agent, "Look!")
        const full = yield* output.fullOutput
        const told = yield* Stream.runCollect(output.fullStream.pipe(Stream.catchAll(() => Stream.empty)))
        const fold = RunFold.make(output.runId)
        for (const chunk of told) fold.push(chunk)
        expect(fold.snapshot()).toStrictEqual(full)
        expect(full.text).toBe(textOf([...told]))
        expect([...told].at(-1)).toMatchObject({ type: "finish", payload: { output: { text: full.text } } })
        expect(full.status).toBe(end.type === "finish" ? "success" : "failed")
      }).pipe(Effect.scoped)
  )
})

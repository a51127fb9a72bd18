/** A run that is stopped wherever one part hands over to another: it says so once, settles everything, and leaves nothing. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, Processor, RunStore } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { conversationFaults } from "../support/conversationFaults.js"
import { expectGrammar } from "../support/grammar.js"
import { guarded } from "./approvalKit.js"
import { loadGoals, setObjective } from "./goalsKit.js"
import { finishOf, only, read, settle } from "./kit.js"
import { memory } from "./memoryKit.js"
import { Traces } from "./telemetryKit.js"
import { calling, deltas, one, stores, structuredOutput } from "./togetherKit.js"

const { hang, reply, toolCall } = ScriptedModel

const hanging = (reached: Deferred.Deferred<void>): Effect.Effect<never> =>
  Effect.zipRight(Deferred.succeed(reached, undefined), Effect.never)

/** A model that is asked, and never answers. */
const silent = (reached: Deferred.Deferred<void>, ...parts: ReadonlyArray<ScriptedModel.ScriptPart>) =>
  ScriptedModel.make([
    () => {
      Effect.runSync(Deferred.succeed(reached, undefined))
      return [...parts, hang]
    }
  ])

const stuckRuns = (reached: Deferred.Deferred<void>) =>
  Layer.map(RunStore.layerMemory, context => {
    const store = Context.get(context, RunStore.RunStore)
    return Context.make(RunStore.RunStore, { ...store, save: () => hanging(reached) })
  })

type Parts = Omit<Agent.Options<[]>, "id" | "tools">

interface Seam {
  readonly parts: (reached: Deferred.Deferred<void>) => Parts
  /** Whether the answer counts: its step has a finish. */
  readonly isSaid: boolean
  /** Whether the thread keeps what of it was told. */
  readonly isKept: boolean
  readonly stores?: (reached: Deferred.Deferred<void>) => Layer.Layer<RunStore.RunStore>
  readonly used: number
}

const seams: Record<string, Seam> = {
  "a judge answers": {
    parts: reached => ({ model: ScriptedModel.make([deltas('{"a":1}')]), goal: { judge: silent(reached) } }),
    isSaid: true,
    isKept: true,
    used: 1
  },
  "a scorer takes its time": {
    parts: reached => ({
      model: ScriptedModel.make([deltas('{"a":1}')]),
      goal: { scorer: () => hanging(reached) }
    }),
    isSaid: true,
    isKept: true,
    used: 1
  },
  "a structuring model answers": {
    parts: reached => ({
      model: ScriptedModel.make([deltas("It is 1.")]),
      structuredOutput: {
        ...structuredOutput,
        model: silent(
          reached,
          { type: "text-start", id: "0" },
          { type: "text-delta", id: "0", delta: '{"a"' }
        )
      }
    }),
    isSaid: true,
    isKept: true,
    used: 1
  },
  "a structuring model answers to what processors have accepted": {
    parts: reached => ({
      model: ScriptedModel.make([deltas("It is 1.")]),
      structuredOutput: { ...structuredOutput, model: silent(reached) },
      outputProcessors: [Processor.make({ id: "judging", processOutputStep: () => undefined })]
    }),
    isSaid: true,
    isKept: true,
    used: 1
  },
  "a processor of the stream holds a chunk": {
    parts: reached => ({
      model: ScriptedModel.make([deltas('{"a":1}')]),
      outputProcessors: [
        Processor.make({
          id: "holding",
          processOutputStream: chunk => (chunk.type === "text-end" ? hanging(reached) : chunk)
        })
      ]
    }),
    isSaid: false,
    isKept: true,
    used: 1
  },
  "a processor judges the answer": {
    parts: reached => ({
      model: ScriptedModel.make([deltas('{"a":1}')]),
      outputProcessors: [Processor.make({ id: "judging", processOutputStep: () => hanging(reached) })]
    }),
    isSaid: false,
    isKept: false,
    used: 1
  },
  "a processor reads the prompt": {
    parts: reached => ({
      model: ScriptedModel.make([deltas('{"a":1}')]),
      inputProcessors: [Processor.make({ id: "reading", processInputStep: () => hanging(reached) })]
    }),
    isSaid: false,
    isKept: false,
    used: 0
  },
  "a suspension is stored": {
    parts: () => ({ model: ScriptedModel.make([calling(toolCall("c1", "remove", { n: 1 }))]) }),
    stores: stuckRuns,
    isSaid: true,
    isKept: false,
    used: 1
  }
}

const typesOf = (chunks: ReadonlyArray<Chunk.Chunk>) => chunks.map(({ type }) => type)

describe("a run that is stopped while", () => {
  for (const [name, { isKept, isSaid, parts, stores: runs, used }] of Object.entries(seams)) {
    for (const how of ["abort", "interrupt"] as const) {
      it.effect(`${name}: ${how}`, () =>
        Effect.gen(function* () {
          yield* Effect.promise(loadGoals)
          const reached = yield* Deferred.make<void>()
          const traces = new Traces()
          yield* Effect.gen(function* () {
            const { executed, tool } = guarded()
            const agent = Agent.make({ id: "a", structuredOutput, ...parts(reached), tools: [tool] })
            yield* setObjective(agent)
            if (how === "interrupt") {
              const fiber = yield* Effect.fork(read(Agent.stream(agent, "go", { memory, runId: "r1" })))
              yield* Deferred.await(reached)
              yield* settle
              yield* Fiber.interrupt(fiber)
            } else {
              const output = yield* Agent.run(agent, "go", { memory, runId: "r1" })
              const reader = yield* Effect.fork(read(output.fullStream))
              yield* Deferred.await(reached)
              yield* settle
              yield* output.abort("enough")
              const { chunks } = yield* Fiber.join(reader)
              expectGrammar(chunks)
              expect(typesOf(chunks).slice(-2)).toEqual(["abort", "finish"])
              expect(typesOf(chunks).filter(type => type === "finish")).toHaveLength(1)
              for (const promise of [output.object, output.text, output.usage, output.steps]) {
                expect(String(yield* Effect.exit(promise as Effect.Effect<unknown, unknown>))).toContain(
                  "RunAborted"
                )
              }
              expect(yield* output.finishReason).toBe("aborted")
              const { usage } = finishOf(chunks).output
              if (name.includes("structuring")) expect(usage.outputTokens).toBe(1)
              else expect(usage.outputTokens).toBe(used === 0 ? undefined : used)
              expect(only(chunks, "step-finish")).toHaveLength(isSaid ? 1 : 0)
              expect(finishOf(chunks).output.object).toBeUndefined()
              expect(conversationFaults(finishOf(chunks).messages.all, () => false)).toEqual([])
            }
            expect(executed).toEqual([])
            expect(yield* Agent.listSuspendedRuns(agent)).toEqual([])
            const next = ScriptedModel.make([reply("Hello.", one)])
            yield* read(Agent.stream(Agent.make({ id: "a", model: next }), "again", { memory }))
            const prompt = next.requests[0]?.messages ?? []
            expect(conversationFaults(prompt, () => false)).toEqual([])
            expect(/It is 1|\\"a\\":1/.test(JSON.stringify(prompt))).toBe(isKept)
          }).pipe(
            Effect.scoped,
            Effect.provide(
              Layer.merge(traces.layer, runs === undefined ? stores : Layer.merge(stores, runs(reached)))
            )
          )
          expect(traces.unfinished).toEqual([])
        })
      )
    }
  }
})

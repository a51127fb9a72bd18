/** What the tests of workflows share. */
import { type Chunk, RunStore, WorkflowStep as Step } from "eddy"
import { Effect, Schema, type Stream } from "effect"
import { read } from "../agent/kit.js"
import { expectWorkflow } from "../support/workflowGrammar.js"

/** What an agent is given that is a step. */
export const Prompt = Schema.Struct({ prompt: Schema.String })

export const Count = Schema.Struct({ count: Schema.Number })

/** Adds to a count. */
export const add = <const Id extends string>(id: Id, by: number) =>
  Step.make(id, {
    input: Count,
    success: Count,
    execute: ({ count }) => Effect.succeed({ count: count + by })
  })

/** Chunk types, with the step that they are about. */
export const story = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<string> =>
  chunks.flatMap(chunk => {
    switch (chunk.type) {
      case "watch":
        return []
      case "step-start":
        return [`step-start ${chunk.payload.request["stepId"]}`]
      case "step-finish":
        return [`step-finish ${chunk.payload.id} ${chunk.payload.metadata["status"]}`]
      case "step-output":
        return [`step-output ${chunk.payload.stepId}`]
      case "finish":
        return [`finish ${chunk.payload.stepResult.reason}`]
      default:
        return [chunk.type]
    }
  })

/** Reads a run to its end, and checks its order; of one that could not begin there is none. */
export const follow = <E, R>(stream: Stream.Stream<Chunk.Chunk, E, R>) =>
  Effect.tap(read(stream), ({ chunks }) =>
    Effect.sync(() => {
      if (chunks.length > 0) expectWorkflow(chunks)
    })
  )

/** What the last chunk of a run says. */
export const outputOf = (chunks: ReadonlyArray<Chunk.Chunk>): Chunk.PayloadOf<"finish">["output"] => {
  const last = chunks.at(-1)
  if (last?.type !== "finish") throw new Error(`The run ends with ${last?.type}`)
  return last.payload.output
}

/** With runs in a store. */
export const stored = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, RunStore.layerMemory)

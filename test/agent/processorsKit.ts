/** What the tests of processors share: one run of a script, and small processors. */
import { Agent, type Chunk, type Conversation, type FullOutput, Processor, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect } from "effect"
import { expectGrammar } from "../support/grammar.js"
import { read } from "./kit.js"

export type Turns = Parameters<typeof ScriptedModel.make>[0]

export type Options = Omit<Agent.Options<[]>, "id" | "model" | "tools">

export const lookUp = Tool.make("lookUp", { execute: () => Effect.succeed("found") })

/** Runs a script to its end. The order of chunks holds, whatever the processors do. */
export const ran = (turns: Turns, options: Options, input: Conversation.Input = "Hello?", tools = [lookUp]) =>
  Effect.gen(function* () {
    const model = ScriptedModel.make(turns)
    const agent = Agent.make({ id: "guarded", model, tools, ...options })
    const output = yield* Agent.run(agent, input)
    const { chunks } = yield* read(output.fullStream)
    const full: FullOutput = yield* output.fullOutput
    expectGrammar(chunks)
    return { chunks, full, requests: model.requests }
  }).pipe(Effect.scoped)

/** A processor of the stream that changes texts; `undefined` drops one. */
export const changing = (change: (text: string) => string | undefined, id = "changing") =>
  Processor.make({
    id,
    processOutputStream: chunk => {
      if (chunk.type !== "text-delta" && chunk.type !== "reasoning-delta") return chunk
      const text = change(chunk.payload.text)
      return text === undefined ? undefined : { ...chunk, payload: { ...chunk.payload, text } }
    }
  })

/** Everything that a prompt or a conversation says, as one text. */
export const said = (value: unknown): string => JSON.stringify(value)

/** The metadata of the steps that were rejected. */
export const rejections = (chunks: ReadonlyArray<Chunk.Chunk>) =>
  chunks.flatMap(chunk =>
    chunk.type === "step-finish" && chunk.payload.stepResult.reason === "tripwire" ? [chunk.payload] : []
  )

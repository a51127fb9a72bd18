// EDDY_DIST points the bench at another build, to compare two of ours.
import { Effect, Stream } from "effect"
import { z } from "zod"
import { scripted } from "../kit/model.mjs"

export const dist = process.env.EDDY_DIST
  ? new URL(`${process.env.EDDY_DIST}/`, "file:///")
  : new URL("../../../dist/", import.meta.url)

const { Agent, createTool } = await import(new URL("promise.js", dist).href)
const { Agent: EffectAgent, LanguageModel } = await import(new URL("index.js", dist).href)

const add = createTool({
  id: "add",
  description: "Add one",
  inputSchema: z.object({ n: z.number() }),
  execute: async ({ n }) => ({ sum: n + 1 })
})

export const eddy = {
  name: "eddy",
  textOf: chunk => chunk.payload.text,
  resultOf: chunk => chunk.payload.result,
  open: script => {
    const model = scripted(script, "v3")
    const tools = script.steps ? { add } : undefined
    const agent = new Agent({ id: "bench", instructions: "Answer.", model, tools })
    const options = { maxSteps: script.turns }
    return { model, stream: () => agent.stream("hi", options) }
  }
}

/** The Effect face: no output object, the run is the stream. */
export const streamEffect = script => {
  const model = LanguageModel.fromAiSdk(scripted(script, "v3"))
  const agent = EffectAgent.make({ id: "bench", instructions: "Answer.", model, tools: [] })
  return async () => {
    const seen = { deltas: 0, length: 0 }
    await Effect.runPromise(
      Stream.runForEach(EffectAgent.stream(agent, "hi"), chunk =>
        Effect.sync(() => {
          if (chunk.type !== "text-delta") return
          seen.deltas++
          seen.length += chunk.payload.text.length
        })
      )
    )
    return seen
  }
}

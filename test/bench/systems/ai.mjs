import { Output, stepCountIs, streamText, tool } from "ai"
import { z } from "zod"
import { scripted } from "../kit/model.mjs"

const add = tool({
  description: "Add one",
  inputSchema: z.object({ n: z.number() }),
  execute: async ({ n }) => ({ sum: n + 1 })
})

export const ai = {
  name: "ai",
  textOf: chunk => chunk.text,
  resultOf: chunk => chunk.output,
  open: script => {
    // v4 is what ai 7 speaks itself: v3 would cost it a TransformStream more
    const model = scripted(script, "v4")
    const tools = script.steps ? { add } : undefined
    const stopWhen = stepCountIs(script.turns)
    const options = { model, instructions: "Answer.", prompt: "hi", tools, stopWhen }
    return { model, stream: async () => streamText(options) }
  },
  openObjects: (script, schema) => {
    const model = scripted(script, "v4")
    const options = { model, instructions: "Answer.", prompt: "hi", output: Output.object({ schema }) }
    return { stream: async () => streamText(options), objectsOf: out => out.partialOutputStream }
  }
}

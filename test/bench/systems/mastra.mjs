import { Agent } from "@mastra/core/agent"
import { createTool } from "@mastra/core/tools"
import { z } from "zod"
import { scripted } from "../kit/model.mjs"

const add = createTool({
  id: "add",
  description: "Add one",
  inputSchema: z.object({ n: z.number() }),
  execute: async ({ n }) => ({ sum: n + 1 })
})

export const mastra = {
  name: "mastra",
  textOf: chunk => chunk.payload.text,
  resultOf: chunk => chunk.payload.result,
  nestedIn: chunk => (chunk.type === "tool-output" ? chunk.payload.output : undefined),
  open: script => {
    const model = scripted(script, "v3")
    const tools = script.steps ? { add } : undefined
    const agent = new Agent({ id: "bench", name: "bench", instructions: "Answer.", model, tools })
    const options = { maxSteps: script.turns }
    return { model, stream: () => agent.stream("hi", options) }
  },
  openObjects: (script, schema) => {
    const model = scripted(script, "v3")
    const agent = new Agent({ id: "bench", name: "bench", instructions: "Answer.", model })
    const stream = () => agent.stream("hi", { structuredOutput: { schema } })
    return { stream, objectsOf: out => out.objectStream }
  },
  openNested: scripts => {
    const agent = scripts.reduceRight(
      (below, script, depth) =>
        new Agent({
          id: `bench-${depth}`,
          name: `bench-${depth}`,
          description: "Tells.",
          instructions: "Answer.",
          model: scripted(script, "v3"),
          ...(below && { agents: { below } })
        }),
      undefined
    )
    return { stream: () => agent.stream("hi") }
  }
}

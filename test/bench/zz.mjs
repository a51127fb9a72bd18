import { Agent as M } from "@mastra/core/agent"
import { createTool as mtool } from "@mastra/core/tools"
import { stepCountIs, streamText, tool } from "ai"
import { z } from "zod"
import { mk, one, run } from "/tmp/tools2.mjs"

const madd = mtool({
  id: "add",
  description: "x",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => ({ sum: a + b })
})
const aadd = tool({
  description: "x",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => ({ sum: a + b })
})
const drain = async s => {
  const r = s.getReader()
  for (;;) {
    const { done, value } = await r.read()
    if (done) return
  }
}
const firstOf = async s => {
  const r = s.getReader()
  for (;;) {
    const { done, value } = await r.read()
    if (done || value.type === "text-delta") return
  }
}
const sys = {
  eddy: { tools: run, first: one },
  mastra: {
    tools: async S =>
      drain(
        (
          await new M({ id: "a", name: "a", instructions: "x", model: mk(S), tools: { add: madd } }).stream(
            "hi",
            { maxSteps: S + 5 }
          )
        ).fullStream
      ),
    first: async () =>
      firstOf(
        (
          await new M({ id: "a", name: "a", instructions: "x", model: mk(0), tools: { add: madd } }).stream(
            "hi"
          )
        ).fullStream
      )
  },
  ai: {
    tools: async S =>
      drain(
        streamText({ model: mk(S), prompt: "hi", tools: { add: aadd }, stopWhen: stepCountIs(S + 5) })
          .fullStream
      ),
    first: async () => firstOf(streamText({ model: mk(0), prompt: "hi", tools: { add: aadd } }).fullStream)
  }
}
const res = {}
for (let r = 0; r < 12; r++)
  for (const k of Object.keys(sys).sort(() => Math.random() - 0.5)) {
    for (const what of ["tools", "first"]) {
      const t = performance.now()
      if (what === "tools") await sys[k].tools(50)
      else for (let i = 0; i < 10; i++) await sys[k].first()
      const n = what === "tools" ? 50 : 10
      ;(res[k + what] ??= []).push((performance.now() - t) / n)
    }
  }
for (const [k, v] of Object.entries(res)) {
  const w = v.slice(4).sort((a, b) => a - b)
  console.log(k, "median", w[4].toFixed(3), "min", w[0].toFixed(3))
}
process.exit(0)

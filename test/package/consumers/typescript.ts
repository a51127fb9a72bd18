/** An application in plain TypeScript: a run with a tool in a container, read by chunk and by text. */
import { Agent, createTool, Eddy } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"

const { finish, reply, toolCall } = ScriptedModel
const model = ScriptedModel.make([
  [toolCall("c1", "weather", { city: "Oslo" }), finish("tool-calls")],
  reply("Take an umbrella.")
])
const weather = createTool({
  id: "weather",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  execute: async input => `rain for ${JSON.stringify(input)}`
})

const eddy = new Eddy({ agents: { guide: new Agent({ id: "guide", model, tools: { weather } }) } })
const output = await eddy.getAgent("guide").stream("An umbrella in Oslo?")
for await (const chunk of output.fullStream) {
  if (chunk.type === "tool-result") console.log(chunk.payload.result)
  // @ts-expect-error A chunk has its type in every project: it never falls back to `any`.
  if (chunk.type === "tool-results") console.log(chunk)
}
for await (const text of output.textStream) console.log(text.trim())
await eddy.shutdown()

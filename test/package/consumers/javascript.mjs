/** An application in plain JavaScript: a run with a tool. */
import { Errors } from "eddy"
import { Agent, createTool, ModelError } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"

const { finish, reply, toolCall } = ScriptedModel
const model = ScriptedModel.make([
  [toolCall("c1", "weather", { city: "Oslo" }), finish("tool-calls")],
  reply("Take an umbrella.")
])
const weather = createTool({
  id: "weather",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  execute: async ({ city }) => `rain in ${city}`
})

const output = await new Agent({ id: "guide", model, tools: { weather } }).stream("An umbrella in Oslo?")
for await (const chunk of output.fullStream) {
  if (chunk.type === "tool-result") console.log(chunk.payload.result)
}
console.log(await output.text)

const error = await new Agent({ id: "mute", model }).generate("And now?").catch(cause => cause)
console.log(error instanceof ModelError, error instanceof Errors.ModelError)

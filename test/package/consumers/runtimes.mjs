/** A handler on a runtime that has nothing of Node's: whoever asks for a module of Node's is told that there is none. */
import { register } from "node:module"

const hooks = `export const resolve = async (specifier, context, next) => {
  const found = await next(specifier, context)
  if (found.url.startsWith("node:")) throw new Error(specifier + " for " + context.parentURL)
  return found
}`
register(`data:text/javascript,${encodeURIComponent(hooks)}`)

const { createHandler } = await import("eddy/http")
const { Agent, Eddy } = await import("eddy/promise")
const { ScriptedModel } = await import("eddy/testing")
const model = ScriptedModel.make([ScriptedModel.reply("Yes.")])
const eddy = new Eddy({ agents: { helper: new Agent({ id: "helper", model }) } })
const { close, handler } = await createHandler(eddy)
const response = await handler(
  new Request("http://localhost/api/agents/helper/stream", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages: "Hello" })
  })
)
const text = await response.text()
console.log(response.status, text.includes("Yes.") && text.endsWith("[DONE]\n\n"))
await close()
await eddy.shutdown()

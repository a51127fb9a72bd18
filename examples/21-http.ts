/**
 * Over HTTP: a container is served, and a client with nothing but `fetch` asks its agent. A slow tool becomes a background task.
 * The connection breaks in the middle of a sentence; the run goes on, and the client reads on from where it was.
 *
 * Run it: npm run example -- http
 *
 * It prints what the client reads:
 *
 *     I ask …
 *     -- the connection breaks
 *     … the harbour office.
 *     task: completed, Sunday
 *     The berth is free until Sunday.
 *     -- read to the end: 204
 *     nothing lost, nothing twice: true
 */
import { setTimeout } from "node:timers/promises"
import { serve } from "eddy/http"
import { Agent, createTool, Eddy, InMemoryStore } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { z } from "zod"
import { pickModel } from "./support/model.js"

const { finish, reply, toolCall } = ScriptedModel
const call = [toolCall("c1", "berth", { boat: "Ada" }), finish("tool-calls")]
const answers = [call, reply("I ask the harbour office."), reply("The berth is free until Sunday.")]
const script = ScriptedModel.make(answers, { pace: "20 millis" })
const berth = createTool({
  id: "berth",
  description: "Asks the harbour office for a berth. Takes long.",
  inputSchema: z.object({ boat: z.string() }),
  background: { enabled: true },
  execute: (_, { abortSignal }) => setTimeout(400, { freeUntil: "Sunday" }, { signal: abortSignal })
})
const guide = new Agent({ id: "guide", model: await pickModel(script), tools: { berth } })
await using eddy = new Eddy({
  agents: { guide },
  storage: new InMemoryStore(),
  backgroundTasks: { enabled: true }
})
await using server = await serve(eddy)

/** The JSON of each chunk of a response, as it comes. Frames without one are comments, and the end. */
async function* chunksOf(response: Response) {
  let rest = ""
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const frames = `${rest}${piece}`.split("\n\n")
    rest = frames.pop() ?? ""
    yield* frames.flatMap(frame => /^data: (\{.*)$/m.exec(frame)?.[1] ?? [])
  }
}

const read: Array<string> = []
let line = ""
const show = (json: string): void => {
  read.push(json)
  const { payload, type } = JSON.parse(json)
  if (type === "text-delta") line += payload.text
  if (type === "background-task-completed") console.log(`task: completed, ${payload.result.freeUntil}`)
  if (type === "text-end") console.log(line)
  if (type === "text-end") line = ""
}

const headers = { "content-type": "application/json", "x-on-disconnect": "continue" }
const body = `{ "messages": "Is there a berth?", "runId": "visit", "memory": { "thread": "t1", "resource": "u1" } }`
const url = `${server.url}/api/agents/guide/stream-until-idle`
for await (const json of chunksOf(await fetch(url, { method: "POST", headers, body }))) {
  show(json)
  // Leaving the loop closes the connection.
  if (line.length > 3) break
}
console.log(`${line} …\n-- the connection breaks`)
line = "…"

const events = (from: number) => fetch(`${server.url}/api/runs/visit/events?offset=${from}`)
for await (const json of chunksOf(await events(read.length))) show(json)
console.log(`-- read to the end: ${(await events(read.length)).status}`)
const whole: Array<string> = []
for await (const json of chunksOf(await events(0))) whole.push(json)
console.log(`nothing lost, nothing twice: ${whole.join() === read.join()}`)

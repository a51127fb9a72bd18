/**
 * Tools in the background: the agent answers at once while two slow tools run, and answers again, in the same stream, as
 * soon as each result is there.
 *
 * Run it: npm run example
 *
 * It prints what was started, how many tasks run, each result with its answer, and last:
 *
 *       ✓ currents: 3 knots, south (… s)
 *     The ebb sets south at three knots: leave before noon.
 *     3 turns, 4 model calls
 */
import { setTimeout } from "node:timers/promises"
import { Agent, createTool, InMemoryStore, Mastra } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { z } from "zod"
import { pickModel } from "./support/model.js"

const { finish, reply, toolCall } = ScriptedModel
const script = ScriptedModel.make(
  [
    [
      toolCall("c1", "depth", { bay: "Sound" }),
      toolCall("c2", "currents", { bay: "Sound" }),
      finish("tool-calls")
    ],
    reply("On it: ask me anything meanwhile."),
    reply("The bay is 14 m deep."),
    reply("The ebb sets south at three knots: leave before noon.")
  ],
  { pace: "10 millis" }
)

/** A survey that takes a while. `background` makes each call of it a task. */
const survey = (id: string, milliseconds: number, result: string) =>
  createTool({
    id,
    description: `Surveys the ${id} of a bay. Takes long.`,
    inputSchema: z.object({ bay: z.string() }),
    background: { enabled: true, timeoutMs: 60_000, maxRetries: 1 },
    execute: (_, { abortSignal }) => setTimeout(milliseconds, result, { signal: abortSignal })
  })

const pilot = new Agent({
  id: "pilot",
  instructions: "Answer in one short sentence.",
  model: await pickModel(script),
  tools: { depth: survey("depth", 500, "14 m"), currents: survey("currents", 1_300, "3 knots, south") }
})

await using mastra = new Mastra({
  agents: { pilot },
  storage: new InMemoryStore(),
  backgroundTasks: { enabled: true, progressIntervalMs: 200 }
})

const stream = await mastra.getAgent("pilot").stream("How deep is the Sound, and how does it run?", {
  memory: { thread: "t1", resource: "u1" },
  untilIdle: true
})

const since = performance.now()
let running = 0
for await (const chunk of stream.fullStream) {
  if (chunk.type === "step-finish" && chunk.payload.output.text !== "") console.log(chunk.payload.output.text)
  if (chunk.type === "background-task-started") console.log(`  … ${chunk.payload.toolName}`)
  if (chunk.type === "background-task-progress" && chunk.payload.runningCount !== running) {
    running = chunk.payload.runningCount
    console.log(`  ${running} running`)
  }
  if (chunk.type === "background-task-completed") {
    const seconds = ((performance.now() - since) / 1000).toFixed(1)
    console.log(`  ✓ ${chunk.payload.toolName}: ${chunk.payload.result} (${seconds} s)`)
  }
}

const turns = await stream.turns
console.log(`${turns.length} turns, ${turns.flatMap(({ steps }) => steps).length} model calls`)

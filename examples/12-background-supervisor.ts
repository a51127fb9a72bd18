/**
 * Agents in the background: a supervisor hands its work to two others and answers at once. They run as tasks, one of them
 * with a tool of its own; what they say comes nested in the supervisor's stream, which answers again when both are done.
 *
 * Run it: npm run example -- background-supervisor
 *
 * It prints what the three say and come to, and last:
 *
 *     agent-researcher ‹ high water at 12:00
 *     agent-researcher: High water is at noon.
 *     agent-researcher is done: {"text":"High water is at noon."}
 *     supervisor: Tides turn twice a day; today's high water is at noon.
 *     2 turns of the supervisor
 */
import { setTimeout } from "node:timers/promises"
import { Agent, createTool, InMemoryStore, Mastra, unnest } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"

const { finish, pause, reply, toolCall } = ScriptedModel

const lookUp = createTool({ id: "lookUp", execute: () => setTimeout(500, "high water at 12:00") })

const researcher = new Agent({
  id: "researcher",
  description: "Finds things out.",
  model: ScriptedModel.make([
    [toolCall("r1", "lookUp", {}), finish("tool-calls")],
    reply("High water is at noon.")
  ]),
  tools: { lookUp }
})

const writer = new Agent({
  id: "writer",
  description: "Writes a sentence about anything.",
  model: ScriptedModel.make([[pause("200 millis"), ...reply("Tides turn twice a day.")]])
})

const supervisor = new Agent({
  id: "supervisor",
  instructions: "Coordinate research and writing using the available agents.",
  model: ScriptedModel.make([
    [
      toolCall("c1", "agent-researcher", { prompt: "When is high water today?" }),
      toolCall("c2", "agent-writer", { prompt: "What are tides?" }),
      finish("tool-calls")
    ],
    reply("Both are at it."),
    reply("Tides turn twice a day; today's high water is at noon.")
  ]),
  agents: { researcher, writer },
  // By the names of `agents`; each delegation as a whole is one task.
  backgroundTasks: { tools: { researcher: { timeoutMs: 60_000 }, writer: true } }
})

const storage = new InMemoryStore()
await using _ = new Mastra({ agents: { supervisor }, storage, backgroundTasks: { enabled: true } })

const stream = await supervisor.stream("Write about today's tides.", {
  memory: { thread: "t1", resource: "u1" },
  // One answer when everything is there, and not one for each.
  untilIdle: { batch: "all" }
})

for await (const outer of stream.fullStream) {
  // Of a task, what it writes stands within a `background-task-output`; otherwise it is as in the foreground.
  const { chunk, path } = unnest(outer)
  const who = path.map(({ toolName }) => toolName).join(" › ") || "supervisor"
  if (chunk.type === "step-finish" && chunk.payload.output.text !== "") {
    console.log(`${who}: ${chunk.payload.output.text}`)
  }
  if (chunk.type === "tool-result" && path.length > 0) console.log(`${who} ‹ ${chunk.payload.result}`)
  if (chunk.type === "background-task-completed") {
    console.log(`${chunk.payload.toolName} is done: ${JSON.stringify(chunk.payload.result)}`)
  }
}

console.log(`${(await stream.turns).length} turns of the supervisor`)

/**
 * Agents as tools: a supervisor asks two others at once. Their chunks come nested in its stream, and what they used is
 * counted into its own usage. One of them fails, and the supervisor is told.
 *
 * Run it: npm run example -- supervisor
 *
 * It prints what the three say and come to, and last:
 *
 *     supervisor ‹ {"text":"The tide turns at noon."}
 *     supervisor: The tide turns at noon; nobody has edited this.
 *     finished in 2 steps, 60 tokens in, 24 out
 */
import { Agent, createTool, unnest } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"

const { finish, reply, text, toolCall } = ScriptedModel

const lookUp = createTool({ id: "lookUp", execute: () => "high water at 12:00" })

const researcher = new Agent({
  id: "researcher",
  description: "Finds things out.",
  model: ScriptedModel.make(
    [
      [toolCall("r1", "lookUp", {}), finish("tool-calls", { inputTokens: 10, outputTokens: 4 })],
      reply("The tide turns at noon.", { inputTokens: 15, outputTokens: 5 })
    ],
    { pace: "20 millis" }
  ),
  tools: { lookUp }
})

const editor = new Agent({
  id: "editor",
  description: "Makes a text read well.",
  model: ScriptedModel.make([[{ type: "error", error: "The editor is on holiday." }]])
})

const supervisor = new Agent({
  id: "supervisor",
  instructions: "Ask the agents, then answer.",
  model: ScriptedModel.make([
    [
      toolCall("c1", "agent-researcher", { prompt: "When does the tide turn?" }),
      toolCall("c2", "agent-editor", { prompt: "Edit: tide turn when" }),
      finish("tool-calls", { inputTokens: 15, outputTokens: 10 })
    ],
    [
      ...text("The tide turns at noon; nobody has edited this."),
      finish("stop", { inputTokens: 20, outputTokens: 5 })
    ]
  ]),
  agents: { researcher, editor }
})

const output = await supervisor.stream("When does the tide turn? Have it edited.")
for await (const outer of output.fullStream) {
  const { chunk, path } = unnest(outer)
  const who = path.map(({ toolName }) => toolName).join(" › ") || "supervisor"
  if (chunk.type === "step-finish" && chunk.payload.output.text !== "") {
    console.log(`${who}: ${chunk.payload.output.text}`)
  }
  if (chunk.type === "tool-result") console.log(`${who} ‹ ${JSON.stringify(chunk.payload.result)}`)
  if (chunk.type === "tool-error")
    console.log(`${chunk.payload.toolName}: Error: ${messageOf(chunk.payload.error)}`)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const { steps, usage } = await output.getFullOutput()
console.log(`finished in ${steps.length} steps, ${usage.inputTokens} tokens in, ${usage.outputTokens} out`)

/**
 * Two payments wait for a human. The process that asked ends; a second one, with nothing but the same file, hears what the human
 * decides, in another order: one is declined, the other approved. Each is decided once, and the model reads both outcomes.
 *
 * Run it: npm run example -- human-approval
 *
 * It prints what waits, what was decided, and what was paid:
 *
 *     pay 20 to Ada waits
 *     pay 9000 to Bob waits
 *     denied: 9000 for what?
 *     pay 20 to Ada waits
 *     paid 20 to Ada
 *     clerk: Ada has her 20. Bob has to wait.
 *     nothing waits
 */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Agent, createTool, Eddy, LibSQLStore, type ModelOutput } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { z } from "zod"
import { pickLanguageModel } from "./support/languageModel.js"

const { finish, reply, toolCall } = ScriptedModel
const payments = [
  toolCall("c1", "pay", { to: "Ada", amount: 20 }),
  toolCall("c2", "pay", { to: "Bob", amount: 9000 }),
  toolCall("c3", "pay", { to: "Cy", amount: 1 })
]
const answers = [[...payments, finish("tool-calls")], reply("Ada has her 20. Bob has to wait.")]
const model = await pickLanguageModel(ScriptedModel.make(answers))

const pay = createTool({
  id: "pay",
  description: "Pays an amount to somebody.",
  inputSchema: z.object({ to: z.string(), amount: z.number() }),
  // Small change needs nobody.
  requireApproval: ({ amount }) => amount > 10,
  execute: ({ to, amount }) => ({ paid: amount, to })
})

const folder = await mkdtemp(join(tmpdir(), "eddy-"))
const memory = { thread: "payments", resource: "carol" }

/** Everything that a process has: its own agent, its own container. */
const start = () => {
  const clerk = new Agent({ id: "clerk", model, tools: { pay } })
  const storage = new LibSQLStore({ url: `file:${join(folder, "app.db")}` })
  return { clerk, eddy: new Eddy({ agents: { clerk }, storage }) }
}

const tell = async (output: ModelOutput): Promise<void> => {
  for await (const chunk of output.fullStream) {
    if (chunk.type === "tool-call-approval") {
      const { amount, to } = chunk.payload.args
      console.log(`pay ${amount} to ${to} waits`)
    }
    if (chunk.type === "tool-output-denied") console.log(`denied: ${chunk.payload.approval.reason}`)
    if (chunk.type === "tool-result" && chunk.payload.toolCallId === "c1") console.log("paid 20 to Ada")
  }
  const text = await output.text
  if (text !== "") console.log(`clerk: ${text}`)
}

{
  const { clerk, eddy } = start()
  await tell(await clerk.stream("Pay what is open.", { memory }))
  await eddy.shutdown()
}

const { clerk, eddy } = start()
const [{ runId = "" } = {}] = await clerk.listSuspendedRuns({ memory })
await tell(await clerk.declineToolCall({ runId, toolCallId: "c2", reason: "9000 for what?" }))
await tell(await clerk.approveToolCall({ runId, toolCallId: "c1" }))
if ((await clerk.listSuspendedRuns()).length === 0) console.log("nothing waits")
await eddy.shutdown()
await rm(folder, { recursive: true })

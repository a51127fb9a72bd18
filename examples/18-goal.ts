/**
 * A goal: the agent has answered, and is sent on until a judge says that the objective is reached, as far as its budget goes.
 * The budget is used up here; somebody raises it, and the next run goes on where the last one was stopped.
 *
 * Run it: npm run example -- goal
 *
 * It prints each answer with what the judge said of it, and last where the objective stands:
 *
 *     A packing list: tent, stove.
 *       1 of 2: rejected, active. There is nothing to sleep in.
 *     And a sleeping bag.
 *       2 of 2: rejected, paused. Nobody can see at night.
 *     The budget is used up: somebody raises it.
 *     And a torch, with batteries.
 *       3 of 4: passed, done. It is complete.
 *     The objective is done after 3 evaluations.
 */
import { Agent, Eddy, InMemoryStore } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"

const { reply } = ScriptedModel

const verdict = (passed: boolean, reason: string) => reply(JSON.stringify({ passed, reason }))

/** A real one is any model, small ones do: openai("gpt-5-mini"). It is told the objective and the answer. */
const judge = ScriptedModel.make([
  verdict(false, "There is nothing to sleep in."),
  verdict(false, "Nobody can see at night."),
  verdict(true, "It is complete.")
])

const model = ScriptedModel.make([
  reply("A packing list: tent, stove."),
  reply("And a sleeping bag."),
  reply("And a torch, with batteries.")
])

const packer = new Agent({ id: "packer", model, goal: { judge, prompt: "Two nights in the hills, in May." } })
const eddy = new Eddy({ agents: { packer }, storage: new InMemoryStore() })
const thread = { threadId: "t1", resourceId: "ada" }

const run = async (words: string) => {
  const output = await packer.stream(words, { memory: { thread: "t1", resource: "ada" } })
  for await (const chunk of output.fullStream) {
    if (chunk.type === "text-end") process.stdout.write("\n")
    if (chunk.type === "text-delta") process.stdout.write(chunk.payload.text)
    if (chunk.type !== "goal") continue
    const { iteration, maxRuns, passed, reason, status } = chunk.payload
    console.log(`  ${iteration} of ${maxRuns}: ${passed ? "passed" : "rejected"}, ${status}. ${reason}`)
  }
}

await packer.setObjective("A packing list that leaves nothing out.", { ...thread, maxRuns: 2 })
await run("What do I need?")

console.log("The budget is used up: somebody raises it.")
await packer.updateObjectiveOptions({ ...thread, maxRuns: 4, status: "active" })
await run("Go on.")

const objective = await packer.getObjective(thread)
console.log(`The objective is ${objective?.status} after ${objective?.runsUsed} evaluations.`)
await eddy.shutdown()

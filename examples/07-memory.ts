/**
 * A thread: the second run knows what the first was told, and a run that is aborted leaves a conversation that goes on.
 *
 * Run it: npm run example -- memory
 *
 * It prints what the model was told each time, and last what the thread holds:
 *
 *     1. user: I am Ada, and I keep bees.
 *     2. assistant: Nice to meet you, Ada.
 *     3. user: What do I keep?
 *     4. assistant: You keep
 *     5. user: Go on.
 *     6. assistant: … bees.
 */
import { Agent, Eddy, InMemoryStore, type Message } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"

const { hang, reply, text } = ScriptedModel

const model = ScriptedModel.make([
  reply("Nice to meet you, Ada."),
  // The connection hangs in the middle of the answer.
  [...text("You keep"), hang],
  reply("… bees.")
])

const keeper = new Agent({ id: "keeper", model, memory: { lastMessages: 20 } })
await using eddy = new Eddy({ agents: { keeper }, storage: new InMemoryStore() })
const memory = { thread: "t1", resource: "ada" }

const textOf = ({ content }: Message): string =>
  typeof content === "string"
    ? content
    : content.map(part => (part.type === "text" ? part.text : "")).join("")

await keeper.generate("I am Ada, and I keep bees.", { memory })

const output = await keeper.stream("What do I keep?", { memory })
for await (const piece of output.textStream) {
  if (piece.endsWith("keep")) await output.cancel("Ada pressed stop")
}
console.log(`The second run: ${output.status}.`)

await keeper.generate("Go on.", { memory })

for (const [index, { messages }] of model.requests.entries()) {
  console.log(`Run ${index + 1} told the model: ${messages.map(textOf).join(" | ")}`)
}

for (const { message, sequence } of await eddy.threads.messages("t1", { resource: "ada" })) {
  console.log(`${sequence}. ${message.role}: ${textOf(message)}`)
}

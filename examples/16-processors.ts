/**
 * Processors: personal data is taken out of what goes in and comes out, wherever the model cuts it; an answer that breaks a
 * rule is asked for again, with the reason; and a request that nobody may make stops before a model is asked.
 *
 * Run it: npm run example -- processors
 *
 * It prints what was rejected, what the model and the reader were told, and what was stopped:
 *
 *     rejected: {"reason":"Promise no refunds.","retry":true,"processorId":"no-promises"}
 *     the model was told: [{"type":"text","text":"I am [email], may I return my boots?"}]
 *     the reader was told: Write to [email] and we will see.
 *     stopped by gate: Nobody asks for that.
 */
import { Agent, blockWhen, type Processor, redact } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"

const { reply } = ScriptedModel
const model = ScriptedModel.make([
  reply("You will get a refund!"),
  reply("Write to help@boots.example and we will see.")
])

/** One object for both directions: what is redacted is neither told nor stored nor shown. */
const personal = redact({ data: ["email", "phone"] })

/** Judges whole answers, before they are remembered. What it rejects is in no value, no thread and no prompt. */
const noPromises: Processor = {
  id: "no-promises",
  processOutputStep: ({ text }, { abort }) => {
    if (text.includes("refund")) abort("Promise no refunds.", { retry: true })
    return undefined
  }
}

const clerk = new Agent({
  id: "clerk",
  model,
  inputProcessors: [
    blockWhen({ id: "gate", text: text => text.includes("password"), reason: "Nobody asks for that." }),
    personal
  ],
  outputProcessors: [personal, noPromises]
})

const output = await clerk.stream("I am ada@mail.example, may I return my boots?")
for await (const chunk of output.fullStream) {
  if (chunk.type !== "step-finish" || chunk.payload.stepResult.reason !== "tripwire") continue
  console.log(`rejected: ${JSON.stringify(chunk.payload.metadata["tripwire"])}`)
}
const [told] = model.requests[0]?.messages ?? []
console.log(`the model was told: ${JSON.stringify(told?.content)}`)
console.log(`the reader was told: ${await output.text}`)

const { tripwire } = await clerk.generate("What is the password of bob@mail.example?")
console.log(`stopped by ${tripwire?.processorId}: ${tripwire?.reason}`)

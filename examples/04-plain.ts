/**
 * Plain TypeScript: one run, several readers, promises beside them, callbacks, a stop condition, and a second run that goes
 * on with the conversation of the first.
 *
 * Run it: npm run example -- plain
 *
 * It prints what the readers and the callbacks saw, and last:
 *
 *     finished: stop, 2 steps, 96 tokens
 *     onFinish: success
 *     second answer: Then it is $84.00.
 */
import { Agent, createTool } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { z } from "zod"
import { pickModel } from "./support/model.js"

const { finish, text, toolCall } = ScriptedModel
const script = ScriptedModel.make(
  [
    [toolCall("c1", "price", { item: "kettle" }), finish("tool-calls", { inputTokens: 40, outputTokens: 9 })],
    [...text("The kettle is $42.00."), finish("stop", { inputTokens: 41, outputTokens: 6 })],
    [...text("Then it is $84.00."), finish("stop")]
  ],
  { pace: "20 millis" }
)

const price = createTool({
  id: "price",
  description: "The price of an item, in cents",
  inputSchema: z.object({ item: z.string() }),
  outputSchema: z.object({ cents: z.number().int() }),
  execute: ({ item }) => ({ cents: item.length * 700 })
})

const shop = new Agent({
  id: "shop",
  instructions: "Answer in one short sentence, prices in dollars.",
  model: await pickModel(script),
  tools: { price },
  defaultOptions: { maxSteps: 4, onFinish: ({ status }) => console.log(`onFinish: ${status}`) }
})

const output = await shop.stream("What is a kettle?", {
  onStepFinish: step => console.log(`onStepFinish: step ${step.stepNumber}, ${step.finishReason}`),
  // Holds beside `maxSteps`; here the model stops before both.
  stopWhen: ({ steps }) => steps.length === 3
})

/** Each reader sees the whole run, whenever it begins. Leaving the loop ends this reader, not the run. */
const firstCall = async () => {
  for await (const chunk of output.fullStream) {
    if (chunk.type === "tool-call") return chunk.payload.toolName
  }
  return "none"
}

const words = async () => {
  let count = 0
  for await (const _ of output.textStream) count++
  return count
}

console.log("readers:", await Promise.all([firstCall(), words(), output.text]))

const { finishReason, response, steps, usage } = await output.getFullOutput()
console.log(`finished: ${finishReason}, ${steps.length} steps, ${usage.totalTokens} tokens`)

const second = await shop.generate(["What is a kettle?", ...response.messages, "And two of them?"])
console.log(`second answer: ${second.text}`)

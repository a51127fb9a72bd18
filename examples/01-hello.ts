/**
 * The smallest agent: a question in, text out as it streams. Plain TypeScript.
 *
 * Run it: npm run example -- hello
 *
 * It prints a sentence, word by word, and what the run used:
 *
 *     An eddy is a small whirl in a stream, running against its current.
 *     27 tokens
 */
import { Agent } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { pickModel } from "./support/model.js"

const script = ScriptedModel.make(
  [
    [
      ...ScriptedModel.text("An eddy is a small whirl in a stream, running against its current."),
      ScriptedModel.finish("stop", { inputTokens: 12, outputTokens: 15 })
    ]
  ],
  { pace: "30 millis" }
)

const agent = new Agent({
  id: "hello",
  instructions: "Answer in one short sentence.",
  model: await pickModel(script)
})

const output = await agent.stream("What is an eddy?")
for await (const text of output.textStream) process.stdout.write(text)

const { totalTokens } = await output.usage
console.log(`\n${totalTokens} tokens`)

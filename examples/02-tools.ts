/**
 * An agent with a tool: text as it streams, calls of one step at once, each with a spinner and how long it took, a call
 * that fails and is told to the model, and the usage at the end.
 *
 * Run it: npm run example -- tools
 *
 * It prints the text and the calls of three steps, and last:
 *
 *       ✓ forecast Osaka: 27, clear (… s)
 *     Pack the umbrella for Oslo only.
 *     3 steps, 4 tool calls, 1 failed, 683 tokens in, 74 out
 */
import { setTimeout } from "node:timers/promises"
import { Agent, createTool } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { z } from "zod"
import { pickModel } from "./support/model.js"
import { Screen } from "./support/terminal.js"

const { finish, pause, text, toolCall } = ScriptedModel

const script = ScriptedModel.make(
  [
    [
      ...text("I will look at the three forecasts at once."),
      toolCall("c1", "forecast", { city: "Lisbon" }),
      toolCall("c2", "forecast", { city: "Oslo" }),
      toolCall("c3", "forecast", { city: "Kyoto" }),
      finish("tool-calls", { inputTokens: 160, outputTokens: 39 })
    ],
    [
      pause("200 millis"),
      ...text("Kyoto does not answer; Osaka is close by."),
      toolCall("c4", "forecast", { city: "Osaka" }),
      finish("tool-calls", { inputTokens: 241, outputTokens: 21 })
    ],
    [...text("Pack the umbrella for Oslo only."), finish("stop", { inputTokens: 282, outputTokens: 14 })]
  ],
  { pace: "25 millis" }
)

const stations: Readonly<Record<string, { celsius: number; sky: string; delay: number }>> = {
  Lisbon: { celsius: 24, sky: "clear", delay: 300 },
  Oslo: { celsius: 11, sky: "rain", delay: 1_200 },
  Osaka: { celsius: 27, sky: "clear", delay: 600 }
}

const forecast = createTool({
  id: "forecast",
  description: "The forecast of tomorrow for a city",
  inputSchema: z.object({ city: z.string() }),
  outputSchema: z.object({ celsius: z.number(), sky: z.string() }),
  execute: async ({ city }, { abortSignal, writer }) => {
    await writer.write("asking the station")
    const station = stations[city]
    await setTimeout(station?.delay ?? 700, undefined, { signal: abortSignal })
    if (station === undefined) throw new Error(`No station in ${city}. Try a city near it.`)
    return { celsius: station.celsius, sky: station.sky }
  }
})

const agent = new Agent({ id: "packer", model: await pickModel(script), tools: { forecast } })
const screen = new Screen()
const output = await agent.stream("Where do I need an umbrella tomorrow: Lisbon, Oslo or Kyoto?")

for await (const chunk of output.fullStream) {
  if (chunk.type === "text-delta") screen.text(chunk.payload.text)
  if (chunk.type === "tool-call") screen.begin(chunk.payload)
  if (chunk.type === "tool-output") screen.note(chunk.payload.toolCallId, chunk.payload.output)
  if (chunk.type === "tool-result") screen.end(chunk.payload.toolCallId, true, chunk.payload.result)
  if (chunk.type === "tool-error") screen.end(chunk.payload.toolCallId, false, chunk.payload.error)
}

const { steps, toolCalls, toolResults, usage } = await output.getFullOutput()
const failed = toolCalls.length - toolResults.length
const calls = `${toolCalls.length} tool calls, ${failed} failed`
console.log(`\n${steps.length} steps, ${calls}, ${usage.inputTokens} tokens in, ${usage.outputTokens} out`)

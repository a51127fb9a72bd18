/**
 * The whole path down to the bytes: a provider package of the AI SDK (`@ai-sdk/openai-compatible`) talks HTTP with a small
 * server on this machine, which streams a tool call and then an answer, cut every 7 bytes. Needs no key and no network.
 *
 * Run it: npm run example -- provider
 *
 * It prints the arguments as they stream in, the answer, and last what went over the wire:
 *
 *     request 1: system user
 *     request 2: system user assistant tool
 *     stop, 50 tokens, 1742 bytes in 250 writes
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { Agent, createTool } from "eddy/promise"
import { z } from "zod"
import { serve } from "./support/chatServer.js"

const call = (fields: object) => ({ tool_calls: [{ index: 0, ...fields }] })
const server = await serve(
  [
    {
      reason: "tool_calls",
      deltas: [
        call({ id: "call_1", type: "function", function: { name: "tide", arguments: "" } }),
        call({ function: { arguments: '{"port":' } }),
        call({ function: { arguments: '"Malmö"}' } })
      ]
    },
    { reason: "stop", deltas: [{ content: "In Malmö it is " }, { content: "high water at 14:20 🌊" }] }
  ],
  7
)

const provider = createOpenAICompatible({ name: "brook", baseURL: server.url, includeUsage: true })

const tide = createTool({
  id: "tide",
  description: "When it is high water in a port",
  inputSchema: z.object({ port: z.string() }),
  execute: ({ port }) => ({ port, at: "14:20" })
})

const agent = new Agent({
  id: "harbour",
  instructions: "You know the tides.",
  model: provider("brook-1"),
  tools: { tide }
})

const output = await agent.stream("When is it high water in Malmö?")
for await (const chunk of output.fullStream) {
  if (chunk.type === "tool-call-delta") console.log("arguments:", chunk.payload.argsTextDelta)
  if (chunk.type === "tool-call") console.log("call:", chunk.payload.toolName, chunk.payload.args)
  if (chunk.type === "tool-result") console.log("result:", chunk.payload.result)
  if (chunk.type === "text-delta") console.log("text:", chunk.payload.text)
  if (chunk.type === "error") console.error("error:", chunk.payload.error)
}

for (const [index, { messages }] of server.requests.entries()) {
  console.log(`request ${index + 1}: ${messages.map(({ role }) => role).join(" ")}`)
}
const { finishReason, usage } = await output.getFullOutput()
const { bytes, writes } = server.sent
console.log(`${finishReason}, ${usage.totalTokens} tokens, ${bytes} bytes in ${writes} writes`)
server.close()

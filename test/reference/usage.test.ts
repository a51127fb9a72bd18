/** The usage examples of the reference run as they are written there. */
import { readFile } from "node:fs/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fences, type Sandbox, sandbox } from "./snippets.js"

const read = async (file: string): Promise<ReadonlyArray<string>> =>
  fences(await readFile(new URL(file, import.meta.url), "utf8"), "ts")

/** What stands before an example: imports, a tool, and an agent whose model says these turns. */
const withAgent = (turns: string, code = "", tools = "{}"): string => `
import { Agent, createTool } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { z } from "zod"

const { finish, reasoning, text: say, toolCall } = ScriptedModel
const weatherTool = createTool({
  id: "weather",
  description: "The weather in a city",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => \`sunny in \${city}\`
})
const agent = new Agent({ id: "agent", model: ScriptedModel.make(${turns}), tools: ${tools} })

${code}`

const plain = `[[...say("Deep green water"), finish("stop", { inputTokens: 5, outputTokens: 3 })]]`

const failing = `[[...say("Half a"), { type: "error", error: new Error("The line broke.") }]]`

const calling = `[
  [
    ...reasoning("Look outside."),
    toolCall("c1", "weather", { city: "NYC" }),
    finish("tool-calls", { inputTokens: 4, outputTokens: 2 })
  ],
  [...say("It is sunny."), finish("stop", { inputTokens: 6, outputTokens: 3, reasoningTokens: 1 })]
]`

const agentTools = "{ weather: weatherTool }"

let box: Sandbox
let printed: ReadonlyMap<string, string>

const outputOf = (name: string): string =>
  (printed.get(name) ?? "nothing was run").replace(/\b(run|message)-[0-9a-f-]{36}/g, "$1-…")

beforeAll(async () => {
  const [chunkSwitch] = await read("chunk-type.md")
  const [textStreaming, toolCalls, fullOutput, fullStream, errorHandling] = await read("model-output.md")
  box = await sandbox({
    "chunk-switch": withAgent(calling, chunkSwitch, agentTools),
    "chunk-switch-failing": withAgent(failing, chunkSwitch),
    "text-streaming": withAgent(plain, textStreaming),
    "tool-calls": withAgent(calling, toolCalls),
    "full-output": withAgent(calling, fullOutput, agentTools),
    "full-stream": withAgent(calling, fullStream, agentTools),
    "error-handling": withAgent(plain, errorHandling),
    "error-handling-failing": withAgent(failing, errorHandling)
  })
  printed = await box.run()
}, 60_000)

afterAll(() => box.remove())

describe("the usage examples of the reference", () => {
  it("type-check as they are", { timeout: 60_000 }, async () => {
    expect(await box.check()).toBe("")
  })

  it("chunks: a switch over the full stream", () => {
    expect(outputOf("chunk-switch")).toBe(
      `
Reasoning: Look
Reasoning:  outside.
Calling tool: weather
Tool result: sunny in NYC
Text: It
Text:  is
Text:  sunny.
Finished: stop
Usage: {
  inputTokens: 10,
  outputTokens: 5,
  totalTokens: 15,
  reasoningTokens: 1
}`.trim()
    )
  })

  it("chunks: the same over a run that fails", () => {
    const lines = outputOf("chunk-switch-failing").split("\n")
    const isLog = (line: string) => line.startsWith("stderr: timestamp=")
    // Nobody gave the run an `onError`: its failure is logged, where it is in nobody's way.
    expect(lines.filter(isLog)).toEqual([expect.stringContaining("failed: The line broke.")])
    const said = lines.filter(line => !isLog(line))
    expect(said.slice(0, 2)).toEqual(["Text: Half", "Text:  a"])
    expect(said[2]).toMatch(/^stderr: Error: ModelError: The line broke\./)
    expect(said.slice(-2)).toEqual(["Finished: error", "Usage: {}"])
  })

  it("output: text as it streams, and the complete text", () => {
    expect(outputOf("text-streaming")).toBe("Deep green waterDeep green water")
  })

  it("output: tool calls and results, with a tool of the call", () => {
    expect(outputOf("tool-calls")).toBe(
      `
Tools called: [
  {
    type: 'tool-call',
    runId: 'run-…',
    from: 'AGENT',
    payload: { toolCallId: 'c1', toolName: 'weather', args: [Object] }
  }
]
Results: [
  {
    type: 'tool-result',
    runId: 'run-…',
    from: 'AGENT',
    payload: {
      toolCallId: 'c1',
      toolName: 'weather',
      args: [Object],
      result: 'sunny in NYC'
    }
  }
]`.trim()
    )
  })

  it("output: the full output", () => {
    expect(outputOf("full-output")).toBe(
      `
{
  text: 'It is sunny.',
  usage: {
    inputTokens: 10,
    outputTokens: 5,
    totalTokens: 15,
    reasoningTokens: 1
  },
  reasoning: 'Look outside.',
  finishReason: 'stop'
}`.trim()
    )
  })

  it("output: the full stream, with the messages for user interfaces at its end", () => {
    expect(outputOf("full-stream")).toBe(
      `
Reasoning: Look
Reasoning:  outside.
Calling weather...
It is sunny.Done! Reason: stop
Response messages: [
  {
    id: 'message-…',
    role: 'assistant',
    parts: [ [Object], [Object], [Object], [Object], [Object] ]
  }
]`.trim()
    )
  })

  it("output: error handling of a run without an error says nothing", () => {
    expect(outputOf("error-handling")).toBe("")
  })

  it("output: error handling tells the error three ways", () => {
    const heads = outputOf("error-handling-failing")
      .split("\n")
      .filter(line => line.startsWith("stderr:") && !line.startsWith("stderr: timestamp="))
    expect(heads).toEqual([
      expect.stringMatching(/^stderr: Stream error: ModelError: The line broke\./),
      expect.stringMatching(/^stderr: Failed to get result: ModelError: The line broke\./),
      expect.stringMatching(/^stderr: Stream had errors: ModelError: The line broke\./)
    ])
  })
})

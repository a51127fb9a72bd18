/** The usage examples of the reference run as they are written there. */
import { readFile } from "node:fs/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { programs, scripts } from "./background.js"
import { type Server, serve } from "./openAi.js"
import { examples, fences, type Sandbox, sandbox } from "./snippets.js"

const textOf = (file: string): Promise<string> => readFile(new URL(file, import.meta.url), "utf8")

const read = async (file: string): Promise<ReadonlyArray<string>> => fences(await textOf(file), "ts")

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

const user = `[[...say('{"name": "John", "age": 30, "email": "john@example.com"}'), finish("stop")]]`

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

/** The examples for background tasks with what they leave open. */
const tasks = async (): Promise<Readonly<Record<string, string>>> => {
  const all = examples(await textOf("background-tasks.md"))
  const used = new Set<string>()
  const made = programs(name => {
    used.add(name)
    return all.get(name) ?? expect.fail(`there is no example "${name}"`)
  })
  expect([...used].sort()).toEqual([...all.keys()].sort())
  return Object.fromEntries(Object.entries(made).map(([name, code]) => [`tasks-${name}`, code]))
}

let box: Sandbox
let server: Server
let printed: ReadonlyMap<string, string>

const outputOf = (name: string): string =>
  (printed.get(name) ?? "nothing was run").replace(/\b(run|message|task)-[0-9a-f-]{36}/g, "$1-…")

const isLog = (line: string): boolean => line.startsWith("stderr: timestamp=")

/** Without the log of the host, which has each task that fails. */
const withoutLog = (name: string): string =>
  outputOf(name)
    .split("\n")
    .filter(line => !isLog(line))
    .join("\n")

beforeAll(async () => {
  const [chunkSwitch] = await read("chunk-type.md")
  const [textStreaming, structuredOutput, toolCalls, fullOutput, fullStream, errorHandling] =
    await read("model-output.md")
  server = await serve(scripts)
  const snippets = {
    "chunk-switch": withAgent(calling, chunkSwitch, agentTools),
    "chunk-switch-failing": withAgent(failing, chunkSwitch),
    "text-streaming": withAgent(plain, textStreaming),
    "structured-output": withAgent(user, structuredOutput),
    "tool-calls": withAgent(calling, toolCalls),
    "full-output": withAgent(calling, fullOutput, agentTools),
    "full-stream": withAgent(calling, fullStream, agentTools),
    "error-handling": withAgent(plain, errorHandling),
    "error-handling-failing": withAgent(failing, errorHandling),
    ...(await tasks())
  }
  box = await sandbox(snippets, { OPENAI_API_KEY: "none", OPENAI_BASE_URL: server.url })
  printed = await box.run()
}, 60_000)

afterAll(async () => {
  server.close()
  await box.remove()
})

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

  it("output: a structured value, as it grows and valid at last", () => {
    expect(outputOf("structured-output")).toBe(
      `
Progress: { name: 'John' }
Progress: { name: 'John', age: 30 }
Progress: { name: 'John', age: 30, email: 'john@example.com' }
Final: { name: 'John', age: 30, email: 'john@example.com' }`.trim()
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

describe("the usage examples of the reference for background tasks", () => {
  it("a container with a manager", () => {
    expect(outputOf("tasks-manager")).toBe("{ tasks: [], total: 0 }")
  })

  it("a tool that says of itself that it runs in the background, and what a model says of one call", () => {
    expect(outputOf("tasks-tool")).toBe(
      `
{ topic: 'tides' } completed 600000 1
{ topic: 'solana' } completed 900000 1`.trim()
    )
  })

  it.each(["tasks-until-idle", "tasks-until-idle-for"])("what an agent says of its tools: %s", name => {
    expect(outputOf(name)).toBe(
      `
[ 'On it.', 'Solana is a chain.' ]
[
  'The call of "researchTool" was started in the background as task task-…. Its result is not there yet: you are told when it is. Do not call it again for the same work.',
  'short'
]
researchTool completed 600000 all about solana`.trim()
    )
  })

  it("sub-agents that a supervisor lists", () => {
    expect(outputOf("tasks-supervisor")).toBe(
      `
They are at it. Here is what there is.
agent-researchAgent completed 900000 { text: 'facts' }
agent-writingAgent completed 900000 { text: 'an article' }`.trim()
    )
  })

  it("a sub-agent that has a tool for the background: it is the task, and is waited for as it says", () => {
    expect(outputOf("tasks-inherited")).toBe(
      `
[ '', 'Somebody looks.', 'Solana is a chain.' ]
agent-researchAgent completed 600000 { text: 'It is a chain.' }`.trim()
    )
  })

  it("a tool that suspends, and is resumed", () => {
    expect(outputOf("tasks-resume")).toBe(
      `
suspended { awaiting: 'approval', draft: 'v1' }
{ approvedBy: 'alice@example.com', edits: 'Reworded paragraph 3.' }`.trim()
    )
  })

  it("one that is resumed by its agent, which answers", () => {
    expect(outputOf("tasks-resume-stream")).toBe(
      `
suspended { awaiting: 'approval', draft: 'v1' }
background-task-resumed
background-task-completed
[ 'It is approved.' ]`.trim()
    )
  })

  it("one that is cancelled", () => {
    expect(outputOf("tasks-cancel")).toBe(
      `
suspended { awaiting: 'approval', draft: 'v1' }
cancelled`.trim()
    )
  })

  it("callbacks of a container, for tasks of a process that is gone", () => {
    expect(withoutLog("tasks-callbacks")).toBe(
      `
Background task complete {
  taskId: 'task-…',
  toolName: 'wait'
}
stderr: Background task failed {
  taskId: 'task-…',
  error: { message: 'Nothing came.' }
}`.trim()
    )
  })

  it("everything that happens to tasks", () => {
    expect(withoutLog("tasks-events")).toBe(
      `
started task-… fall
stderr: failed task-… { message: 'It is deep.' }
started task-… dig
done task-… gold`.trim()
    )
  })

  it("what happens to tasks of one agent, thread and resource", () => {
    expect(withoutLog("tasks-filtered-events")).toBe(
      `
background-task-running dig
background-task-completed dig`.trim()
    )
  })

  it("tasks as they are stored", () => {
    expect(outputOf("tasks-reading")).toBe("running true [ 'dig' ] 1")
  })
})

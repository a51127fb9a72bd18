/** What the examples for background tasks leave open, put around them; their text stays as it is. */
import type { Scripts } from "./openAi.js"

/** What the models say that the examples call by their names. */
export const scripts: Scripts = {
  "You research topics and answer questions.": [
    [
      { name: "researchTool", args: { topic: "solana" } },
      { name: "summarizeTool", args: {} }
    ],
    "On it.",
    "Solana is a chain."
  ],
  "Coordinate research and writing using the available agents.": [
    [
      { name: "agent-researchAgent", args: { prompt: "AI in education" } },
      { name: "agent-writingAgent", args: { prompt: "AI in education" } }
    ],
    "They are at it.",
    "Here is what there is.",
    "Here is what there is."
  ],
  "Facts about solana, please.": [[{ name: "deepResearchTool", args: {} }], "It is a chain."]
}

const testing = `
import { setImmediate } from "node:timers/promises"
import { ScriptedModel } from "eddy/testing"

const { finish, reply, toolCall } = ScriptedModel
const memory = { thread: "t1", resource: "u1" }`

/** A container for one agent, and waiting until its model has said something in the thread. */
const container = (agent: string): string => `
const container = new Mastra({
  agents: { agent: ${agent} },
  storage: new InMemoryStore(),
  backgroundTasks: { enabled: true }
})
const until = async (text: string): Promise<string> => {
  while (!JSON.stringify(await container.threads.messages("t1")).includes(text)) await setImmediate()
  return text
}`

/** What the tasks of the container came to. */
const results = `
const page = await container.backgroundTaskManager?.listTasks()
for (const { result, status, timeoutMs, toolName } of page?.tasks ?? []) {
  console.log(toolName, status, timeoutMs, result)
}
await container.shutdown()`

const turns = `
console.log((await stream.turns).map(({ text }) => text))`

const researcher = (agent: string, run: string): string => `
import { createTool, InMemoryStore, Mastra } from "eddy/promise"
import { z } from "zod"
${testing}

const researchTool = createTool({
  id: "research",
  inputSchema: z.object({ topic: z.string() }),
  execute: async ({ topic }) => {
    await until("On it.")
    return \`all about \${topic}\`
  }
})
const summarizeTool = createTool({ id: "summarize", background: { enabled: true }, execute: () => "short" })
${agent}
${container("researcher")}
const agent = container.getAgent("agent")
${run}
${turns}
console.log((await stream.toolResults).map(({ payload }) => payload.result))
${results}`

/** The line of an example before which its agent gets a container. */
const running = "\nconst stream = await supervisor.stream("

const supervisor = (code: string): string => {
  const [agent = "", run = ""] = code.split(running)
  return `
import { InMemoryStore, Mastra } from "eddy/promise"
${testing}

const saying = (id: string, text: string) =>
  new Agent({
    id,
    instructions: () => until("They are at it."),
    model: ScriptedModel.make([reply(text)])
  })
const researchAgent = saying("research-agent", "facts")
const writingAgent = saying("writing-agent", "an article")
${agent}
${container("supervisor")}
${running}${run}
console.log((await stream.turns)[0]?.text, (await stream.turns).at(-1)?.text)
${results}`
}

const inherited = (agent: string): string => `
import { Agent, createTool, InMemoryStore, Mastra } from "eddy/promise"
${testing}

const model = ScriptedModel.make([
  [toolCall("c1", "agent-researchAgent", { prompt: "Facts about solana, please." }), finish("tool-calls")],
  reply("Somebody looks."),
  reply("Solana is a chain.")
])
const deepResearchTool = createTool({
  id: "deepResearch",
  execute: async (_, { taskId }) => {
    while (model.requests.length < 2) await setImmediate()
    return { isTask: taskId !== undefined }
  }
})
${agent}
const supervisor = new Agent({ id: "supervisor", model, agents: { researchAgent } })
${container("supervisor")}
const stream = await supervisor.stream("What is solana?")
console.log((await stream.steps).map(({ text }) => text))
${results}`

/** A task of the agent that waits for somebody: its id is \`taskId\`. */
const suspended = (tool: string): string => `
import { Agent, InMemoryStore, Mastra } from "eddy/promise"
${testing}
${tool}
const agent = new Agent({
  id: "editor",
  model: ScriptedModel.make([
    [toolCall("c1", "review", { draft: "v1" }), finish("tool-calls")],
    reply("I have asked."),
    reply("It is approved.")
  ]),
  tools: { review: reviewTool }
})
const mastra = new Mastra({
  agents: { agent },
  storage: new InMemoryStore(),
  backgroundTasks: { enabled: true }
})
const manager = mastra.backgroundTaskManager
if (!manager) throw new Error("Background tasks are not enabled")
await (await agent.stream("Have it reviewed.", { memory, untilIdle: true })).consumeStream()
const [suspendedTask] = (await manager.listTasks()).tasks
if (!suspendedTask) throw new Error("Nothing was started")
const { id: taskId, runId, toolCallId } = suspendedTask
console.log(suspendedTask.status, suspendedTask.suspendData)`

const callbacks = (code: string): string => `
import { Agent, createTool, LibSQLStore, Mastra } from "eddy/promise"
${testing}

const storage = new LibSQLStore({ url: "file:callbacks.db" })
const logger = {
  info: (message: string, details: object) => console.log(message, details),
  error: (message: string, details: object) => console.error(message, details)
}
const wait = createTool({
  id: "wait",
  background: { enabled: true },
  execute: (_, { agent }) => agent.suspend?.()
})
const calls = [toolCall("c1", "wait", {}), toolCall("c2", "wait", {}), finish("tool-calls")]
const agent = new Agent({ id: "gone", model: ScriptedModel.make([calls, reply("I wait.")]), tools: { wait } })
const before = new Mastra({ agents: { agent }, storage, backgroundTasks: { enabled: true } })
await (await agent.stream("Wait.", { memory, untilIdle: true })).consumeStream()
await before.shutdown()

${code}
const manager = mastra.backgroundTaskManager
const executors = { c1: () => "It came.", c2: () => Promise.reject(new Error("Nothing came.")) }
for (const [toolCallId, executor] of Object.entries(executors)) {
  for (const { id } of (await manager?.listTasks({ toolCallId }))?.tasks ?? []) {
    await manager?.registerTaskContext(id, { executor })
    await manager?.resume(id)
    await manager?.waitFor(id)
  }
}
await mastra.shutdown()`

/** An agent with a tool that works, and one that fails, each called in a thread of its own. */
const worker = `
import { Agent, createTool, InMemoryStore, Mastra } from "eddy/promise"
${testing}

const dig = createTool({ id: "dig", background: { enabled: true }, execute: () => "gold" })
const fall = createTool({
  id: "fall",
  background: { enabled: true },
  execute: () => Promise.reject(new Error("It is deep."))
})
const agent = new Agent({
  id: "researcher",
  model: ScriptedModel.make([
    [toolCall("c1", "fall", {}), finish("tool-calls")],
    reply("On it."),
    [toolCall("c2", "dig", {}), finish("tool-calls")],
    reply("On it.")
  ]),
  tools: { dig, fall }
})
const mastra = new Mastra({
  agents: { agent },
  storage: new InMemoryStore(),
  backgroundTasks: { enabled: true }
})
const work = async (): Promise<void> => {
  await agent.generate("Fall.", { memory: { thread: "t2", resource: "u1" } })
  const page = await mastra.backgroundTaskManager?.listTasks()
  for (const { id } of page?.tasks ?? []) await mastra.backgroundTaskManager?.waitFor(id)
  await agent.generate("Dig.", { memory })
}`

const events = (code: string): string => `
${worker}
const { log } = console
let lines = 0
// What goes to standard error comes by here too.
console.log = (...values) => {
  lines++
  log(...values)
}
const untilTold = async (): Promise<void> => {
  await work()
  while (lines < 4) await setImmediate()
  controller.abort()
}
const done = untilTold()
${code}
await done
console.log = log
await mastra.shutdown()`

const filteredEvents = (code: string): string => `
${worker}
const bgManager = mastra.backgroundTaskManager
if (!bgManager) throw new Error("Background tasks are not enabled")
const controller = new AbortController()
${code}
await work()
for await (const chunk of stream) {
  console.log(chunk.type, chunk.payload.toolName)
  if (chunk.type === "background-task-completed") controller.abort()
}
await mastra.shutdown()`

const reading = (code: string): string => `
import { Agent, createTool, InMemoryStore, Mastra } from "eddy/promise"
${testing}

let open = (): void => undefined
const gate = new Promise<void>(resolve => {
  open = resolve
})
const taskIds: Array<string> = []
const dig = createTool({
  id: "dig",
  background: { enabled: true },
  execute: (_, { taskId = "" }) => {
    taskIds.push(taskId)
    return gate
  }
})
const agent = new Agent({
  id: "researcher",
  model: ScriptedModel.make([[toolCall("c1", "dig", {}), finish("tool-calls")], reply("On it.")]),
  tools: { dig }
})
const made = new Mastra({ agents: { agent }, storage: new InMemoryStore(), backgroundTasks: { enabled: true } })
if (!made.backgroundTaskManager) throw new Error("Background tasks are not enabled")
// The example takes for granted that there is a manager, which the type of a container does not promise.
const mastra = { backgroundTaskManager: made.backgroundTaskManager }
await agent.generate("Dig.", { memory })
while (taskIds.length === 0) await setImmediate()
const [taskId = ""] = taskIds
${code}
console.log(task?.status, task?.id === taskId, tasks.map(({ toolName }) => toolName), total)
open()
await made.shutdown()`

const tool = (code: string, args: string): string => `
import { Agent, InMemoryStore, Mastra } from "eddy/promise"
${testing}
${code}
const calls = [toolCall("c1", "research", { topic: "tides" }), toolCall("c2", "research", ${args})]
const agent = new Agent({
  id: "researcher",
  model: ScriptedModel.make([[...calls, finish("tool-calls")], reply("On it.")]),
  tools: { research: researchTool }
})
const mastra = new Mastra({ agents: { agent }, storage: new InMemoryStore(), backgroundTasks: { enabled: true } })
await agent.generate("Research solana", { memory })
const manager = mastra.backgroundTaskManager
for (const { id } of (await manager?.listTasks({ orderBy: "createdAt" }))?.tasks ?? []) {
  const task = await manager?.waitFor(id)
  console.log(task?.args, task?.status, task?.timeoutMs, task?.maxRetries)
}
await mastra.shutdown()`

/** The examples as programs, by what they show. `example` gives the text of one. */
export const programs = (example: (name: string) => string): Readonly<Record<string, string>> => ({
  manager: `
${example("manager")}
console.log(await mastra.backgroundTaskManager?.listTasks())
await mastra.shutdown()`,
  tool: tool(example("tool"), example("override")),
  "until-idle": researcher(example("agent"), example("until-idle")),
  "until-idle-for": researcher(example("agent"), example("until-idle-for")),
  supervisor: supervisor(example("supervisor")),
  inherited: inherited(example("inherited")),
  resume: `
${suspended(example("suspend"))}
${example("resume")}
console.log((await manager.waitFor(taskId)).result)
await mastra.shutdown()`,
  "resume-stream": `
${suspended(example("suspend"))}
const resumeData = { reviewer: "alice@example.com" }
const stream = await ${example("resume-stream")}
for await (const chunk of stream.fullStream) {
  if (chunk.type.startsWith("background-task-")) console.log(chunk.type)
}
${turns}
await mastra.shutdown()`,
  cancel: `
${suspended(example("suspend"))}
const cancelled = await ${example("cancel")}
console.log(cancelled.status)
await mastra.shutdown()`,
  callbacks: callbacks(example("callbacks")),
  events: events(example("events")),
  "filtered-events": filteredEvents(example("filtered-events")),
  reading: reading(example("reading"))
})

/** The examples of the reference about background tasks, as they are written there, over models that are played. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Agent, type ChunkType, createTool, LibSQLStore, Mastra } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { z } from "zod"
import { refuseUnhandledRejections, until } from "../support/readers.js"

refuseUnhandledRejections()

const { finish, reply, toolCall } = ScriptedModel

const home = process.cwd()
const folder = mkdtempSync(join(tmpdir(), "eddy-background-"))

beforeAll(() => process.chdir(folder))

afterAll(() => {
  process.chdir(home)
  rmSync(folder, { recursive: true })
})

const open: Array<{ readonly shutdown: () => Promise<void> }> = []

afterEach(async () => {
  for (const mastra of open.splice(0)) await mastra.shutdown()
})

const calling = (id: string, name: string, args: unknown) => [toolCall(id, name, args), finish("tool-calls")]

let databases = 0
const storage = () => new LibSQLStore({ id: "storage", url: `file:mastra-${databases++}.db` })

const researchTool = createTool({
  id: "research",
  description: "Run a long research job",
  inputSchema: z.object({ topic: z.string() }),
  background: {
    enabled: true,
    timeoutMs: 600_000,
    maxRetries: 1
  },
  execute: async ({ topic }) => {
    return { found: topic }
  }
})

const summarizeTool = createTool({ id: "summarize", background: { enabled: true }, execute: () => "short" })

describe("the examples of the reference", () => {
  it("quick start, an agent's tools, and a stream that is open until it is idle", async () => {
    const researcher = new Agent({
      id: "researcher",
      instructions: "You research topics and answer questions.",
      model: ScriptedModel.make([
        [
          toolCall("c1", "researchTool", {
            topic: "solana",
            _background: { enabled: true, timeoutMs: 900_000 }
          }),
          toolCall("c2", "summarizeTool", {}),
          finish("tool-calls")
        ],
        reply("On it."),
        reply("Here it is.")
      ]),
      tools: { researchTool, summarizeTool },
      backgroundTasks: {
        tools: {
          researchTool: { enabled: true, timeoutMs: 600_000 },
          summarizeTool: false
        }
      }
    })
    const mastra = new Mastra({
      agents: { researcher },
      storage: new LibSQLStore({ id: "storage", url: "file:mastra.db" }),
      backgroundTasks: {
        enabled: true,
        globalConcurrency: 10,
        perAgentConcurrency: 5,
        backpressure: "queue",
        defaultTimeoutMs: 300_000
      }
    })
    open.push(mastra)
    const agent = mastra.getAgent("researcher")
    const stream = await agent.stream("Research solana for me", {
      memory: { thread: "t1", resource: "u1" },
      untilIdle: true
    })
    const types: Array<ChunkType> = []
    for await (const chunk of stream.fullStream) {
      types.push(chunk.type)
    }
    expect(types.filter(type => type === "background-task-started")).toHaveLength(1)
    expect(types.filter(type => type === "background-task-completed")).toHaveLength(1)
    expect((await stream.turns).at(-1)?.text).toBe("Here it is.")

    // @ts-expect-error: the manager may be undefined, which the example does not look at.
    // biome-ignore lint/correctness/noUnsafeOptionalChaining: so it is written in the reference
    const { tasks, total } = await mastra.backgroundTaskManager?.listTasks({
      status: "completed",
      agentId: "researcher"
    })
    expect(total).toBe(1)
    const task = await mastra.backgroundTaskManager?.getTask(tasks[0].id)
    expect(task).toMatchObject({
      toolName: "researchTool",
      args: { topic: "solana" },
      result: { found: "solana" },
      timeoutMs: 900_000
    })
  })

  it("sub-agents in the background", async () => {
    const saying = (id: string, text: string) => new Agent({ id, model: ScriptedModel.make([reply(text)]) })
    const researchAgent = saying("research-agent", "facts")
    const writingAgent = saying("writing-agent", "article")
    const supervisor = new Agent({
      id: "supervisor",
      instructions: "Coordinate research and writing using the available agents.",
      model: ScriptedModel.make([
        [
          toolCall("c1", "agent-researchAgent", { prompt: "AI" }),
          toolCall("c2", "agent-writingAgent", { prompt: "AI" }),
          finish("tool-calls")
        ],
        reply("They are at it."),
        reply("Done."),
        reply("Done.")
      ]),
      agents: { researchAgent, writingAgent },
      backgroundTasks: {
        tools: {
          researchAgent: { enabled: true, timeoutMs: 900_000 },
          writingAgent: { enabled: true, timeoutMs: 900_000 }
        }
      }
    })
    const mastra = new Mastra({
      agents: { supervisor },
      storage: storage(),
      backgroundTasks: { enabled: true }
    })
    open.push(mastra)
    const stream = await supervisor.stream("Research AI in education and write an article", {
      memory: { thread: "t1", resource: "u1" },
      untilIdle: true
    })
    await stream.consumeStream()
    const page = await mastra.backgroundTaskManager?.listTasks({ status: "completed" })
    expect(page?.tasks.map(({ result }) => result)).toEqual([{ text: "facts" }, { text: "article" }])
  })

  it("suspend, resume, and what the manager tells meanwhile", async () => {
    const lines: Array<unknown> = []
    const logger = {
      debug: () => undefined,
      warn: () => undefined,
      info: (message: string, details?: unknown) => void lines.push([message, details]),
      error: (message: string, details?: unknown) => void lines.push([message, details])
    }
    const reviewTool = createTool({
      id: "review",
      description: "Submit a draft for human review.",
      inputSchema: z.object({ draft: z.string() }),
      outputSchema: z.object({ approvedBy: z.string(), edits: z.string().optional() }),
      background: { enabled: true },
      execute: async ({ draft }, context) => {
        const { suspend, resumeData } = context.agent
        if (!resumeData) {
          await suspend?.({ awaiting: "approval", draft })
          return { approvedBy: "", edits: undefined }
        }
        const { reviewer, edits } = resumeData as { reviewer: string; edits?: string }
        return { approvedBy: reviewer, edits }
      }
    })
    const agent = new Agent({
      id: "researcher",
      model: ScriptedModel.make([calling("c1", "review", { draft: "v1" }), reply("I have asked.")]),
      tools: { review: reviewTool }
    })
    const mastra = new Mastra({
      agents: { agent },
      storage: storage(),
      backgroundTasks: {
        enabled: true,
        onTaskComplete: task => {
          logger.info("Background task complete", { taskId: task.id, toolName: task.toolName })
        },
        onTaskFailed: task => {
          logger.error("Background task failed", { taskId: task.id, error: task.error })
        }
      }
    })
    open.push(mastra)

    const bgManager = mastra.backgroundTaskManager
    if (!bgManager) throw new Error("Background tasks are not enabled")
    const controller = new AbortController()
    const stream = bgManager.stream({
      agentId: "researcher",
      threadId: "t1",
      resourceId: "u1",
      abortSignal: controller.signal
    })
    const told: Array<ReadonlyArray<unknown>> = []
    const watching = (async () => {
      for await (const chunk of stream) {
        switch (chunk.type) {
          case "background-task-running":
            told.push(["started", chunk.payload.taskId, chunk.payload.toolName])
            break
          case "background-task-suspended":
            told.push(["suspended", chunk.payload.taskId, chunk.payload.suspendData])
            break
          case "background-task-completed":
            told.push(["done", chunk.payload.taskId, chunk.payload.result])
            break
          case "background-task-failed":
            told.push(["failed", chunk.payload.taskId, chunk.payload.error])
            break
        }
      }
    })()

    const output = await agent.stream("Review it", {
      memory: { thread: "t1", resource: "u1" },
      untilIdle: true
    })
    await output.consumeStream()
    await until(() => told.length === 2, "it is suspended")
    const taskId = String(told[0]?.[1])
    await mastra.backgroundTaskManager?.resume(taskId, {
      reviewer: "alice@example.com",
      edits: "Reworded paragraph 3."
    })
    const result = { approvedBy: "alice@example.com", edits: "Reworded paragraph 3." }
    await until(() => lines.length === 1 && told.length === 3, "it is done")
    controller.abort()
    await watching
    expect(told).toEqual([
      ["started", taskId, "review"],
      ["suspended", taskId, { awaiting: "approval", draft: "v1" }],
      ["done", taskId, result]
    ])
    expect(lines).toEqual([["Background task complete", { taskId, toolName: "review" }]])
  })
})

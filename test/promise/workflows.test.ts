/** Workflows of plain TypeScript. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  Agent,
  type Chunk,
  createStep,
  createTool,
  createWorkflow,
  Eddy,
  InMemoryStore,
  InvalidConfiguration,
  InvalidResumeData,
  InvalidStepInput,
  InvalidStepResumeData,
  LibSQLStore,
  RunAborted,
  RunSuspended,
  StepNotSuspended,
  unnest
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { expectWorkflow } from "../support/workflowGrammar.js"
import { outputOf, story } from "../workflow/kit.js"

const { finish, reply, toolCall } = ScriptedModel

const collect = async (stream: AsyncIterable<Chunk>): Promise<ReadonlyArray<Chunk>> => {
  const chunks: Array<Chunk> = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}

const draft = createStep({
  id: "draft",
  inputSchema: z.object({ topic: z.string() }),
  outputSchema: z.object({ text: z.string() }),
  execute: async ({ inputData, writer }) => {
    await writer.write("thinking")
    return { text: `On ${inputData.topic}` }
  }
})

const approve = createStep({
  id: "approve",
  inputSchema: z.object({ text: z.string() }),
  outputSchema: z.object({ text: z.string(), by: z.string() }),
  resumeSchema: z.object({ by: z.string() }),
  suspendSchema: z.object({ awaiting: z.string() }),
  execute: async ({ inputData, resumeData, suspend }) => {
    if (resumeData === undefined) return suspend({ awaiting: "approval" })
    return { ...inputData, by: resumeData.by }
  }
})

const publishing = () =>
  createWorkflow({ id: "publishing", inputSchema: z.object({ topic: z.string() }) })
    .then(draft)
    .then(approve)
    .commit()

const inputData = { topic: "eddies" }

describe("a workflow of plain TypeScript", () => {
  it("tells the same to every reader, those that come late included", async () => {
    const workflow = createWorkflow({ id: "w", inputSchema: z.object({ topic: z.string() }) })
      .then(draft)
      .commit()
    const output = await workflow.stream({ inputData })
    const first = await collect(output.fullStream)
    expectWorkflow(first)
    expect(story(first)).toEqual([
      "start",
      "step-start draft",
      "step-output draft",
      "step-finish draft success",
      "finish stop"
    ])
    expect(await output.result).toEqual({ text: "On eddies" })
    expect(await collect(output.fullStream)).toEqual(first)
    expect(output.status).toBe("success")
  })

  it("runs an agent as a step, with its chunks and what it used", async () => {
    const model = ScriptedModel.make([
      [...ScriptedModel.reply("Hello").slice(0, -1), finish("stop", { inputTokens: 3, outputTokens: 2 })]
    ])
    const writer = new Agent({ id: "writer", model })
    const workflow = createWorkflow({ id: "w", inputSchema: z.object({ prompt: z.string() }) })
      .then(createStep(writer))
      .map(({ inputData: { text } }) => text.length)
      .commit()
    const output = await workflow.stream({ inputData: { prompt: "Say hello" } })
    const chunks = await collect(output.fullStream)
    expectWorkflow(chunks)
    const inner = chunks.flatMap(chunk => (chunk.type === "step-output" ? [chunk.payload] : []))
    expect(inner.every(({ stepId }) => stepId === "writer")).toBe(true)
    expect(inner.map(({ output: nested }) => (nested as Chunk).type).at(-1)).toBe("finish")
    expect(await output.result).toBe(5)
    expect(await output.usage).toEqual({ inputTokens: 3, outputTokens: 2, totalTokens: 5 })
    expect(outputOf(chunks).usage).toEqual({ inputTokens: 3, outputTokens: 2, totalTokens: 5 })
  })

  it.each([
    ["without a store", {}],
    ["with a store", { storage: new InMemoryStore() }]
  ])("suspends and is resumed once, %s", async (_, options) => {
    const workflow = publishing()
    await using eddy = new Eddy({ workflows: { publishing: workflow }, ...options })
    const output = await eddy.getWorkflow("publishing").stream({ inputData })
    const chunks = await collect(output.fullStream)
    expectWorkflow(chunks)
    expect(outputOf(chunks)["suspended"]).toEqual([
      { stepId: "approve", suspendData: { awaiting: "approval" } }
    ])
    expect(output.status).toBe("suspended")
    await expect(output.result).rejects.toBeInstanceOf(RunSuspended)
    const { runs } = await workflow.listRuns()
    expect(runs.map(({ status }) => status)).toEqual(["suspended"])

    await expect(output.resume({ resumeData: { by: 7 } })).rejects.toMatchObject({
      _tag: "InvalidStepResumeData"
    })
    await expect(output.resume({ step: "draft" })).rejects.toBeInstanceOf(StepNotSuspended)
    const resumed = await output.resume({ step: approve, resumeData: { by: "ada" } })
    const later = await collect(resumed.fullStream)
    expectWorkflow(later)
    expect(story(later)).toEqual([
      "start",
      "step-start approve",
      "step-finish approve success",
      "finish stop"
    ])
    expect(await resumed.result).toEqual({ text: "On eddies", by: "ada" })
    await expect(output.resume({ resumeData: { by: "bob" } })).rejects.toMatchObject({
      _tag: "WorkflowRunNotFound"
    })
    expect((await workflow.listRuns()).total).toBe(0)
  })

  it("stops what it does when it is cancelled", async () => {
    const stopped: Array<unknown> = []
    const slow = createStep({
      id: "slow",
      execute: ({ abortSignal }) => {
        abortSignal.addEventListener("abort", () => stopped.push(abortSignal.reason))
        return new Promise<void>(() => undefined)
      }
    })
    const output = await createWorkflow({ id: "w" }).then(slow).commit().stream({ inputData: null })
    const reader = output.fullStream.getReader()
    await reader.read()
    await reader.read()
    await reader.read()
    await output.cancel("enough")
    const chunks = await collect(output.fullStream)
    expectWorkflow(chunks)
    expect(story(chunks)).toEqual([
      "start",
      "step-start slow",
      "step-finish slow aborted",
      "abort",
      "finish aborted"
    ])
    expect(stopped).toEqual(["enough"])
    await expect(output.result).rejects.toBeInstanceOf(RunAborted)
    expect((await output.getFullOutput()).status).toBe("aborted")
  })

  it("stays in the storage when its container is shut down, and goes on in another one", async () => {
    const url = `file:${mkdtempSync(join(tmpdir(), "eddy-workflow-"))}/eddy.db`
    const executed: Array<string> = []
    let isStuck = true
    let started: () => void = () => undefined
    const isStarted = new Promise<void>(resolve => {
      started = resolve
    })
    const first = createStep({ id: "first", execute: () => void executed.push("first") })
    const second = createStep({
      id: "second",
      execute: () => {
        executed.push("second")
        started()
        return isStuck ? new Promise<string>(() => undefined) : "done"
      }
    })
    const make = () => createWorkflow({ id: "w" }).then(first).then(second).commit()
    const before = make()
    const eddy = new Eddy({ workflows: { before }, storage: new LibSQLStore({ url }) })
    const output = await before.stream({ inputData: null, runId: "r" })
    const settled = output.getFullOutput()
    await isStarted
    await eddy.shutdown()
    expect((await settled).status).toBe("aborted")
    await expect(before.stream({ inputData: null })).rejects.toBeInstanceOf(InvalidConfiguration)

    isStuck = false
    const after = make()
    await using other = new Eddy({ workflows: { after }, storage: new LibSQLStore({ url }) })
    expect(await other.workflows.after.listRuns()).toEqual({
      runs: [{ runId: "r", status: "interrupted", suspended: [] }],
      total: 1
    })
    expect(await after.restart({ runId: "r" })).toMatchObject({ status: "success", result: "done" })
    expect(executed).toEqual(["first", "second", "second"])
    expect(await after.deleteRun("r")).toBe(false)
  })

  it("is a tool of an agent", async () => {
    const workflow = createWorkflow({ id: "drafting", inputSchema: z.object({ topic: z.string() }) })
      .then(draft)
      .commit()
    const model = ScriptedModel.make([
      [toolCall("c1", "workflow-write", { topic: "cats" }), finish("tool-calls")],
      reply("Done.")
    ])
    const agent = new Agent({ id: "boss", model, workflows: { write: workflow } })
    const output = await agent.stream("Write")
    const chunks = await collect(output.fullStream)
    const inner = chunks.filter(({ type }) => type === "tool-output").map(chunk => unnest(chunk).chunk)
    expectWorkflow(inner)
    const [result] = await output.toolResults
    expect(result?.payload.result).toEqual({ text: "On cats" })
    expect(await output.text).toBe("Done.")
  })

  it("suspends the task that it is in the background, and goes on when that is resumed", async () => {
    const executed: Array<string> = []
    const count = createStep({
      id: "count",
      inputSchema: z.object({ topic: z.string() }),
      execute: ({ inputData: { topic } }) => {
        executed.push(topic)
        return { text: topic }
      }
    })
    const workflow = createWorkflow({
      id: "publishing",
      inputSchema: z.object({ topic: z.string() }),
      background: { enabled: true }
    })
      .then(count)
      .then(approve)
      .commit()
    const model = ScriptedModel.make([
      [toolCall("c1", "workflow-publish", { topic: "cats" }), finish("tool-calls")],
      reply("It waits."),
      reply("It is out.")
    ])
    const agent = new Agent({ id: "boss", model, workflows: { publish: workflow } })
    await using eddy = new Eddy({
      agents: { agent },
      workflows: { workflow },
      storage: new InMemoryStore(),
      backgroundTasks: { enabled: true }
    })
    const memory = { thread: "t", resource: "r" }
    const output = await agent.stream("Publish", { memory, untilIdle: true })
    const chunks = await collect(output.fullStream)
    const suspended = chunks.find(({ type }) => type === "background-task-suspended")
    expect(suspended).toMatchObject({
      payload: {
        suspendData: {
          workflowId: "publishing",
          suspended: [{ stepId: "approve", suspendData: { awaiting: "approval" } }]
        }
      }
    })
    const runId = output.runId
    const resumed = await agent.resumeStream(
      { by: "ada" },
      { runId, toolCallId: "c1", memory, untilIdle: true }
    )
    const later = await collect(resumed.fullStream)
    const completed = later.find(({ type }) => type === "background-task-completed")
    expect(completed).toMatchObject({ payload: { result: { text: "cats", by: "ada" } } })
    expect(executed).toEqual(["cats"])
    expect((await eddy.getWorkflow("workflow").listRuns()).total).toBe(0)
  })

  it("waits for the calls of an agent that is a step, and goes on with them in another container", async () => {
    const url = `file:${join(mkdtempSync(join(tmpdir(), "eddy-workflow-")), "runs.db")}`
    const executed: Array<unknown> = []
    const model = ScriptedModel.make([
      [toolCall("c1", "remove", { n: 1 }), toolCall("c2", "remove", { n: 2 }), finish("tool-calls")],
      reply("Done.")
    ])
    const containerOf = () => {
      const remove = createTool({
        id: "remove",
        inputSchema: z.object({ n: z.number() }),
        requireApproval: true,
        execute: ({ n }) => {
          executed.push(n)
          return { removed: n }
        }
      })
      const helper = new Agent({ id: "helper", model, tools: { remove } })
      const workflow = createWorkflow({ id: "w", inputSchema: z.object({ prompt: z.string() }) })
        .then(createStep(helper))
        .commit()
      const eddy = new Eddy({
        agents: { helper },
        workflows: { workflow },
        storage: new LibSQLStore({ url })
      })
      return { eddy, helper, workflow: eddy.getWorkflow("workflow") }
    }
    const one = containerOf()
    const first = await one.workflow.start({ inputData: { prompt: "go" }, runId: "r" })
    expect(first).toMatchObject({
      status: "suspended",
      suspended: [{ stepId: "helper", suspendData: { calls: [{ toolCallId: "c1" }, { toolCallId: "c2" }] } }]
    })
    await one.eddy.shutdown()

    const other = containerOf()
    expect(await other.helper.listSuspendedRuns()).toEqual([])
    const resume = (resumeData: unknown) => other.workflow.resume({ runId: "r", step: "helper", resumeData })
    await expect(resume({ approved: true })).rejects.toBeInstanceOf(InvalidStepResumeData)
    const second = await resume({ toolCallId: "c2", approved: true })
    expect(second).toMatchObject({
      status: "suspended",
      suspended: [{ suspendData: { calls: [{ toolCallId: "c1" }] } }]
    })
    await other.eddy.shutdown()

    const last = containerOf()
    const output = await last.workflow.resumeStream({
      runId: "r",
      resumeData: { approved: false, reason: "Keep it." }
    })
    expectWorkflow(await collect(output.fullStream))
    expect(await output.result).toEqual({ text: "Done." })
    expect(executed).toEqual([2])
    expect(JSON.stringify(model.requests[1]?.messages)).toContain("Keep it.")
    expect((await last.workflow.listRuns()).total).toBe(0)
    await last.eddy.shutdown()
  })

  it("lays the call of an agent aside, which goes on with the same run in another container", async () => {
    const url = `file:${join(mkdtempSync(join(tmpdir(), "eddy-workflow-")), "runs.db")}`
    const executed: Array<string> = []
    const model = ScriptedModel.make([
      [toolCall("c1", "workflow-publish", inputData), finish("tool-calls")],
      reply("It is out.")
    ])
    const containerOf = () => {
      const count = createStep({
        id: "count",
        inputSchema: z.object({ topic: z.string() }),
        execute: ({ inputData: { topic } }) => {
          executed.push(topic)
          return { text: topic }
        }
      })
      const workflow = createWorkflow({ id: "publishing", inputSchema: z.object({ topic: z.string() }) })
        .then(count)
        .then(approve)
        .commit()
      const agent = new Agent({ id: "boss", model, workflows: { publish: workflow } })
      return {
        agent,
        eddy: new Eddy({ agents: { agent }, workflows: { workflow }, storage: new LibSQLStore({ url }) })
      }
    }
    const one = containerOf()
    const output = await one.agent.stream("Publish")
    expect(await output.getFullOutput()).toMatchObject({
      status: "suspended",
      suspendData: { workflowId: "publishing", suspended: [{ stepId: "approve" }] }
    })
    const { runId } = output
    await one.eddy.shutdown()
    const other = containerOf()
    await expect(other.agent.resumeStream({ by: 7 }, { runId })).rejects.toBeInstanceOf(InvalidResumeData)
    const resumed = await other.agent.resumeStream({ by: "ada" }, { runId })
    const chunks = await collect(resumed.fullStream)
    const result = chunks.find(({ type }) => type === "tool-result")
    expect(result).toMatchObject({ payload: { result: { by: "ada" } } })
    expect(executed).toHaveLength(1)
    expect((await other.eddy.getWorkflow("workflow").listRuns()).total).toBe(0)
    expect(await other.agent.listSuspendedRuns()).toEqual([])
    await other.eddy.shutdown()
  })

  it("refuses what cannot work", async () => {
    const workflow = publishing()
    // JavaScript may give anything.
    await expect(workflow.stream({ inputData: { topic: 7 as never } })).rejects.toBeInstanceOf(
      InvalidStepInput
    )
    await expect(workflow.stream({ inputData, memory: {} } as never)).rejects.toBeInstanceOf(
      InvalidConfiguration
    )
    expect(() => createStep({ id: "a.b", execute: () => 1 })).toThrow(InvalidConfiguration)
    expect(() => createStep({ id: "a", input: 1, execute: () => 1 } as never)).toThrow(/inputSchema/)
    expect(() =>
      createWorkflow({ id: "w" })
        .then(draft as never)
        .then(draft as never)
    ).toThrow(/two steps "draft"/)
    expect(() => createWorkflow({ id: "" })).toThrow(InvalidConfiguration)
    expect(() => new Eddy({ workflows: { w: {} as never } })).toThrow(/createWorkflow/)
    const waiting = () => Promise.resolve<unknown>(createWorkflow({ id: "w" }))
    await expect(waiting()).rejects.toThrow(/nobody can wait for it/)
    expect(createTool).toBeDefined()
  })
})

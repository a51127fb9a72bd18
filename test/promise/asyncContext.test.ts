/** The asynchronous context (`AsyncLocalStorage`) of who calls an agent, in the functions of its tools. */
import { AsyncLocalStorage } from "node:async_hooks"
import { Agent, createStep, createTool, createWorkflow } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { flush, refuseUnhandledRejections, until } from "../support/readers.js"
import { containerOf, sharedStorage } from "./tasksKit.js"

refuseUnhandledRejections()

const { finish, reply, toolCall } = ScriptedModel

const model = () => ScriptedModel.make([[toolCall("c1", "work", {}), finish("tool-calls")], reply("Done.")])

const request = new AsyncLocalStorage<string>()

describe("the asynchronous context of a call", () => {
  it("is there in the background: in retried and resumed attempts, and in callbacks of the tool", async () => {
    const seen: Array<unknown> = []
    const work = createTool({
      id: "work",
      background: {
        enabled: true,
        maxRetries: 1,
        onComplete: () => void seen.push(["callback", request.getStore()])
      },
      execute: async (_, { resumeData, suspend }) => {
        await flush(1)
        seen.push(["attempt", request.getStore()])
        if (resumeData !== undefined) return "done"
        if (seen.length === 1) throw new Error("not yet")
        return suspend()
      }
    })
    const agent = new Agent({ id: "a", model: model(), tools: { work } })
    const { eddy, manager } = containerOf({
      agents: { agent },
      storage: sharedStorage(),
      backgroundTasks: { enabled: true, defaultRetries: { retryDelayMs: 1 } }
    })
    const events = manager.stream().getReader()
    await request.run("r-1", async () => (await agent.stream("go")).getFullOutput())
    let id = ""
    while (id === "") {
      const { value } = await events.read()
      if (value?.type === "background-task-suspended") id = value.payload.taskId
    }
    await request.run("r-2", () => manager.resume(id, "go on"))
    await manager.waitFor(id)
    await until(() => seen.length === 4, "the callback was called")
    expect(seen).toEqual([
      ["attempt", "r-1"],
      ["attempt", "r-1"],
      ["attempt", "r-1"],
      ["callback", "r-1"]
    ])
    await events.cancel()
    await eddy.shutdown()
  })

  it("is that of each run, of runs that go side by side", async () => {
    const seen: Array<unknown> = []
    const work = createTool({
      id: "work",
      execute: async (_, { runId }) => {
        seen.push([runId, request.getStore()])
        await flush(1)
        seen.push([runId, request.getStore()])
        return "done"
      }
    })
    const ids = ["r-1", "r-2", "r-3", "r-4"]
    await Promise.all(
      ids.map(runId =>
        request.run(runId, async () => {
          const agent = new Agent({ id: "a", model: model(), tools: { work } })
          await (await agent.stream("go", { runId })).getFullOutput()
        })
      )
    )
    expect(seen).toHaveLength(8)
    for (const pair of seen) expect(pair).toEqual([(pair as [string])[0], (pair as [string])[0]])
  })

  it("is there in the steps of a workflow", async () => {
    const seen: Array<unknown> = []
    const look = (id: string) => createStep({ id, execute: () => void seen.push(request.getStore()) })
    const workflow = createWorkflow({ id: "w" }).then(look("one")).then(look("two")).commit()
    await request.run("r-1", async () => (await workflow.stream({ inputData: null })).getFullOutput())
    expect(seen).toEqual(["r-1", "r-1"])
  })
})

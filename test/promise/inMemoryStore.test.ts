/** One `InMemoryStore` in several containers: they have the same threads, tasks and suspended runs. */
import { Agent, createTool, InMemoryStore } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { calling, reply, toolCall } from "../agent/approvalKit.js"
import { latch } from "../support/readers.js"
import { containerOf } from "./tasksKit.js"

const memory = { thread: "t1", resource: "ada" }

const processes = (storage = new InMemoryStore()) => {
  const begun: Array<string> = []
  const gate = latch()
  const process = (name: string, ...turns: Parameters<typeof ScriptedModel.make>[0]) => {
    const remove = createTool({ id: "remove", requireApproval: true, execute: () => `removed by ${name}` })
    const slow = createTool({
      id: "slow",
      background: { enabled: true, maxRetries: 1 },
      execute: async () => {
        begun.push(name)
        if (name === "one") await gate.wait
        return name
      }
    })
    const agent = new Agent({ id: "clerk", model: ScriptedModel.make(turns), tools: { remove, slow } })
    return {
      agent,
      ...containerOf({
        agents: { agent },
        storage,
        backgroundTasks: { shutdown: { graceMs: 1 } }
      })
    }
  }
  return { process, begun, gate }
}

describe("one store in two containers", () => {
  it("has one set of threads and suspended runs, which stay when a container ends", async () => {
    const { process } = processes()
    const one = process("one", reply("Hello."), calling(toolCall("c1", "remove", {})))
    const two = process("two", reply("Done."))
    await one.agent.generate("Hi.", { memory })
    expect(await two.eddy.threads.messages("t1")).toEqual(await one.eddy.threads.messages("t1"))
    expect(await two.eddy.threads.messages("t1")).toHaveLength(2)
    const { pendingCalls, runId } = await one.agent.generate("Remove it.", { memory })
    await one.eddy.shutdown()
    const [waiting] = await two.agent.listSuspendedRuns({ memory })
    expect(waiting).toMatchObject({ runId, calls: pendingCalls })
    const output = await two.agent.approveToolCall({ runId, toolCallId: "c1" })
    expect(await output.text).toBe("Done.")
    await two.eddy.shutdown()
  })

  it("has one set of tasks: those of a container that lives stay its own", async () => {
    const { begun, gate, process } = processes()
    const one = process("one", calling(toolCall("c1", "slow", {})), reply("Running."), reply("Told."))
    await one.agent.generate("Go.", { memory })
    const two = process("two")
    const [task] = (await two.manager.listTasks()).tasks
    expect(task).toMatchObject({ status: "running", toolCallId: "c1" })
    gate.open()
    const { id } = task ?? expect.fail("there is no task")
    expect(await two.manager.waitFor(id)).toMatchObject({ status: "completed", result: "one" })
    expect(begun).toEqual(["one"])
    await Promise.all([one.eddy.shutdown(), two.eddy.shutdown()])
  })

  it("leaves the tasks of a container that ended to the other", async () => {
    const { begun, process } = processes()
    const one = process("one", calling(toolCall("c1", "slow", {})), reply("Running."))
    await one.agent.generate("Go.", { memory })
    const [task] = (await one.manager.listTasks()).tasks
    const { id } = task ?? expect.fail("there is no task")
    await one.eddy.shutdown()
    const two = process("two", reply("Told."))
    expect(await two.manager.waitFor(id)).toMatchObject({ status: "completed", result: "two" })
    expect(begun).toEqual(["one", "two"])
    await two.eddy.shutdown()
  })
})

/** The real `@mastra/client-js`, unmodified, over loopback. */
import { createTool } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { clientOf, isInstalled, read } from "./clientKit.js"
import { agentWith, calling, research, saying, served, type Told, types } from "./kit.js"

const memory = { thread: "t1", resource: "ada" }

/** A task that waits for somebody. */
const publish = createTool({
  id: "publish",
  description: "Publishes, once somebody has approved.",
  background: { enabled: true },
  execute: async (_, { agent: { resumeData, suspend } }) => {
    if (resumeData === undefined) return suspend?.({ awaiting: "approval" })
    return { published: resumeData }
  }
})

describe.skipIf(!isInstalled)("@mastra/client-js", () => {
  it("lists agents and tells them apart, without their instructions", async () => {
    const { url } = await served({ helper: agentWith([], { description: "Helps." }) })
    const mastra = await clientOf(url)
    expect(await mastra.listAgents()).toEqual({
      helper: { id: "helper", name: "helper", description: "Helps." }
    })
    expect(await mastra.getAgent("helper").details()).toMatchObject({ description: "Helps." })
    await expect(mastra.getAgent("nobody").details()).rejects.toMatchObject({ status: 404 })
  })

  it("generates", async () => {
    const { url } = await served({ helper: agentWith([saying("Yes.")]) })
    const full = await (await clientOf(url)).getAgent("helper").generate("Hello", { memory })
    expect(full).toMatchObject({ text: "Yes.", finishReason: "stop" })
  })

  it("streams every chunk", async () => {
    const { url } = await served({ helper: agentWith([saying("Grüße, 世界.")]) })
    const chunks = await read(await (await clientOf(url)).getAgent("helper").stream("Hello"))
    expect(types(chunks).at(0)).toBe("start")
    expect(types(chunks).at(-1)).toBe("finish")
    const deltas = chunks.filter(({ type }) => type === "text-delta").map(({ payload }) => payload["text"])
    expect(deltas.join("")).toBe("Grüße, 世界.")
  })

  it("streams until idle, and finds the tasks and the thread afterwards", async () => {
    const agent = agentWith([calling("research"), saying("Wait."), saying("Water.")], { tools: { research } })
    const { url } = await served({ helper: agent })
    const mastra = await clientOf(url)
    const chunks = await read(await mastra.getAgent("helper").streamUntilIdle("Hello", { memory }))
    expect(types(chunks)).toContain("background-task-completed")
    expect(types(chunks).filter(type => type === "finish")).toHaveLength(2)

    const { tasks, total } = await mastra.listBackgroundTasks({ agentId: "helper", status: "completed" })
    expect(total).toBe(1)
    const [task] = tasks
    expect(await mastra.getBackgroundTask(task?.id ?? "")).toMatchObject({
      status: "completed",
      result: { found: "water" }
    })

    const thread = mastra.getMemoryThread({ threadId: "t1", agentId: "helper" })
    expect(await thread.get()).toMatchObject({ id: "t1", resourceId: "ada" })
    const { messages } = await thread.listMessages()
    expect(messages.map(({ role }: Told & { readonly role?: string }) => role)).toEqual([
      "user",
      "assistant",
      "assistant"
    ])
    expect(await thread.update({ title: "Water" })).toMatchObject({ title: "Water" })
    expect(await thread.delete()).toEqual({ result: "Thread deleted" })
    await expect(thread.get()).rejects.toMatchObject({ status: 404 })
  })

  it("makes threads and lists them", async () => {
    const { url } = await served({ helper: agentWith([]) })
    const mastra = await clientOf(url)
    const made = await mastra.createMemoryThread({ agentId: "helper", resourceId: "ada", title: "New" })
    expect(made).toMatchObject({ resourceId: "ada", title: "New" })
    expect(await mastra.listMemoryThreads({ resourceId: "ada" })).toMatchObject({ total: 1, hasMore: false })
    expect(await mastra.listMemoryThreads({ resourceId: "bob" })).toMatchObject({ total: 0 })
  })

  it("resumes a task until idle", async () => {
    const turns = [calling("publish"), saying("It waits."), saying("It is out.")]
    const { url } = await served({ helper: agentWith(turns, { tools: { publish } }) })
    const agent = (await clientOf(url)).getAgent("helper")
    const first = await read(await agent.streamUntilIdle("Publish it.", { memory }))
    expect(types(first)).toContain("background-task-suspended")
    const runId = first[0]?.runId
    const call = { runId, toolCallId: "c1", memory }
    const second = await read(await agent.resumeStreamUntilIdle("ada says yes", call))
    expect(types(second)).toContain("background-task-completed")
    expect(second.at(-1)?.payload["output"]).toMatchObject({ text: "It is out." })
    await expect(agent.resumeStream("again", call)).rejects.toMatchObject({ status: 409 })
    await expect(agent.resumeStream("no", { ...call, toolCallId: "c9" })).rejects.toMatchObject({
      status: 404
    })
  })

  it("watches tasks, cancels one and resumes another", async () => {
    const turns = [calling("publish"), saying("A."), calling("publish"), saying("B.")]
    const { url } = await served({ helper: agentWith(turns, { tools: { publish } }) })
    const mastra = await clientOf(url)
    const events = (await mastra.streamBackgroundTasks({ agentId: "helper" })).getReader()
    await read(await mastra.getAgent("helper").streamUntilIdle("One", { memory }))
    await read(await mastra.getAgent("helper").streamUntilIdle("Two", { memory }))
    const { tasks } = await mastra.listBackgroundTasks({ status: "suspended" })
    const [one, two] = tasks.map(({ id }) => id)
    expect(await mastra.request(`/background-tasks/${one}/cancel`, { method: "POST" })).toMatchObject({
      status: "cancelled"
    })
    await mastra.request(`/background-tasks/${two}/resume`, { method: "POST", body: { resumeData: "yes" } })
    const seen: Array<string> = []
    while (!seen.includes("background-task-completed")) {
      const { value } = await events.read()
      if (value !== undefined) seen.push(value.type)
    }
    await events.cancel()
    expect(seen).toContain("background-task-cancelled")
    await expect(mastra.request(`/background-tasks/${one}/cancel`, { method: "POST" })).rejects.toMatchObject(
      { status: 409 }
    )
    await expect(mastra.getBackgroundTask("nothing")).rejects.toMatchObject({ status: 404 })
  })

  it("observes a run from an offset", async () => {
    const { url } = await served({ helper: agentWith([saying("One two three.")]) })
    const agent = (await clientOf(url)).getAgent("helper")
    const all = await read(await agent.stream("Hello", { runId: "mine" }))
    expect(await read(await agent.observe({ runId: "mine" }))).toEqual(all)
    expect(await read(await agent.observe({ runId: "mine", offset: 3 }))).toEqual(all.slice(3))
  })

  it("is told of a failure, and does not repeat what was done", async () => {
    const script = ScriptedModel.make([[{ type: "error", error: new Error("secret") }]])
    const { url } = await served({
      helper: agentWith([], { model: script, defaultOptions: { maxRetries: 0 } })
    })
    const agent = (await clientOf(url)).getAgent("helper")
    await expect(agent.generate("Hello", { maxSteps: 99 })).rejects.toMatchObject({
      status: 400,
      body: { issues: [{ field: "maxSteps" }] }
    })
    await expect(agent.generate("Hello")).rejects.toMatchObject({
      status: 424,
      body: { error: "The model could not answer." }
    })
    expect(script.requests).toHaveLength(1)
  })
})

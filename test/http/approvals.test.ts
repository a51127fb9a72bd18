/** Approvals and suspended runs of real agents, by the real `@mastra/client-js`. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createTool, LibSQLStore } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it, onTestFinished } from "vitest"
import { z } from "zod"
import { type ClientAgent, clientOf, isInstalled, read } from "./clientKit.js"
import { agentWith, post, saying, served, type Told, types } from "./kit.js"

const { finish, toolCall } = ScriptedModel

/** A tool that waits for somebody, and what it has done. */
const payments = () => {
  const paid: Array<string> = []
  const pay = createTool({
    id: "pay",
    inputSchema: z.object({ to: z.string() }),
    requireApproval: true,
    execute: async ({ to }) => {
      paid.push(to)
      return { paid: to }
    }
  })
  const ask = createTool({
    id: "ask",
    inputSchema: z.object({ to: z.string() }),
    resumeSchema: z.object({ answer: z.string() }),
    execute: async (_, { agent: { resumeData, suspend } }) =>
      resumeData === undefined ? suspend({ question: "When?" }) : resumeData
  })
  return { paid, tools: { pay, ask } }
}

const payTwo: ScriptedModel.Turn = [
  toolCall("c1", "pay", { to: "bob" }),
  toolCall("c2", "pay", { to: "eve" }),
  finish("tool-calls")
]

const memory = { thread: "t1", resource: "ada" }

const users = {
  authenticate: ({ headers }: { readonly headers: Readonly<Record<string, string | undefined>> }) => {
    const name = headers["x-user"]
    return name === undefined ? undefined : { id: name, resource: name }
  }
}

const agentFor = async (url: string, user: string): Promise<ClientAgent> =>
  (await clientOf(url, { "x-user": user })).getAgent("clerk")

const runIdOf = (chunks: ReadonlyArray<Told>): string => chunks[0]?.runId ?? ""

describe.skipIf(!isInstalled)("approvals of real agents", () => {
  it("are asked for, listed, declined and approved, each once", async () => {
    const { paid, tools } = payments()
    const { url } = await served(
      { clerk: agentWith([payTwo, saying("Paid.")], { id: "clerk", tools }) },
      users
    )
    const clerk = await agentFor(url, "ada")
    const first = await read(await clerk.stream("Pay both.", { memory }))
    expect(types(first).filter(type => type === "tool-call-approval")).toHaveLength(2)
    const runId = runIdOf(first)
    expect(await clerk.listSuspendedRuns({ threadId: "t1", resourceId: "ada" })).toMatchObject({
      total: 1,
      runs: [
        {
          runId,
          threadId: "t1",
          resourceId: "ada",
          status: "suspended",
          toolCalls: [
            { toolCallId: "c1", toolName: "pay", args: { to: "bob" }, requiresApproval: true },
            { toolCallId: "c2" }
          ]
        }
      ]
    })

    const declined = await read(
      await clerk.declineToolCall({ runId, toolCallId: "c2", reason: "Eve has enough." })
    )
    expect(types(declined)).toContain("tool-output-denied")
    expect(declined.at(-1)?.payload).toMatchObject({ stepResult: { reason: "suspended" } })
    await expect(clerk.declineToolCall({ runId, toolCallId: "c2" })).rejects.toMatchObject({ status: 409 })
    expect(await clerk.listSuspendedRuns()).toMatchObject({ runs: [{ toolCalls: [{ toolCallId: "c1" }] }] })

    const approved = await read(await clerk.approveToolCall({ runId, toolCallId: "c1" }))
    expect(types(approved)).toContain("tool-result")
    expect(approved.at(-1)?.payload["output"]).toMatchObject({ text: "Paid." })
    expect(runIdOf(approved)).toBe(runId)
    expect(paid).toEqual(["bob"])
    await expect(clerk.approveToolCall({ runId, toolCallId: "c1" })).rejects.toMatchObject({ status: 404 })
    expect(await clerk.listSuspendedRuns()).toMatchObject({ runs: [], total: 0 })
  })

  it("are decided once, of two who decide at the same time", async () => {
    const { paid, tools } = payments()
    const { url } = await served({ clerk: agentWith([payTwo], { id: "clerk", tools }) }, users)
    const clerk = await agentFor(url, "ada")
    const runId = runIdOf(await read(await clerk.stream("Pay both.", { memory })))
    const both = await Promise.allSettled(
      [0, 1].map(async () => read(await clerk.approveToolCall({ runId, toolCallId: "c1" })))
    )
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"])
    expect(both.find(({ status }) => status === "rejected")).toMatchObject({ reason: { status: 409 } })
    expect(paid).toEqual(["bob"])
  })

  it("come whole too", async () => {
    const { paid, tools } = payments()
    const turns = [payTwo, saying("Done.")]
    const { url } = await served({ clerk: agentWith(turns, { id: "clerk", tools }) }, users)
    const clerk = await agentFor(url, "ada")
    const full = await clerk.generate("Pay both.", { memory })
    expect(full).toMatchObject({ finishReason: "suspended", suspendPayload: { toolCallId: "c1" } })
    const waiting = [
      { toolCallId: "c1", toolName: "pay", kind: "approval" },
      { toolCallId: "c2", toolName: "pay", kind: "approval" }
    ]
    expect(full).toMatchObject({ pendingCalls: waiting })
    const { runId } = full
    expect(await clerk.declineToolCallGenerate({ runId, toolCallId: "c1" })).toMatchObject({
      finishReason: "suspended"
    })
    expect(await clerk.approveToolCallGenerate({ runId, toolCallId: "c2" })).toMatchObject({ text: "Done." })
    expect(paid).toEqual(["eve"])
  })

  it("are nobody else's", async () => {
    const { paid, tools } = payments()
    const { url } = await served({ clerk: agentWith([payTwo], { id: "clerk", tools }) }, users)
    const clerk = await agentFor(url, "ada")
    const inThread = runIdOf(await read(await clerk.stream("Pay both.", { memory })))
    const eve = await agentFor(url, "eve")
    expect(await eve.listSuspendedRuns({ threadId: "t1", resourceId: "ada" })).toMatchObject({ total: 0 })
    for (const runId of [inThread, "no-run"]) {
      const call = { runId, toolCallId: "c1" }
      const own = { thread: "t1", resource: "ada" }
      for (const deciding of [
        () => eve.approveToolCall(call),
        () => eve.approveToolCall({ ...call, memory: own }),
        () => eve.declineToolCall(call),
        () => eve.approveToolCallGenerate(call),
        () => eve.resumeStream({ approved: true }, call)
      ]) {
        await expect(deciding()).rejects.toMatchObject({ status: 404 })
      }
    }
    expect(paid).toEqual([])
    expect(await clerk.listSuspendedRuns()).toMatchObject({ runs: [{ toolCalls: [{}, {}] }] })
  })

  it("refuse wrong data, and wait as before", async () => {
    const { tools } = payments()
    const asking: ScriptedModel.Turn = [toolCall("c1", "ask", { to: "bob" }), finish("tool-calls")]
    const turns = [asking, saying("At noon.")]
    const { url } = await served({ clerk: agentWith(turns, { id: "clerk", tools }) }, users)
    const clerk = await agentFor(url, "ada")
    const first = await read(await clerk.stream("When?", { memory }))
    expect(types(first)).toContain("tool-call-suspended")
    const call = { runId: runIdOf(first), toolCallId: "c1" }
    const waiting = await clerk.listSuspendedRuns()
    expect(waiting).toMatchObject({
      runs: [{ toolCalls: [{ requiresApproval: false, suspendPayload: { question: "When?" } }] }]
    })
    await expect(clerk.resumeStream({ answer: 12 }, call)).rejects.toMatchObject({
      status: 400,
      body: { issues: [{ field: "resumeData" }] }
    })
    await expect(clerk.resumeStream({ answer: "noon" }, { ...call, toolCallId: "c9" })).rejects.toMatchObject(
      { status: 409 }
    )
    expect(await clerk.listSuspendedRuns()).toEqual(waiting)
    const rest = await read(await clerk.resumeStream({ answer: "noon" }, call))
    expect(rest.at(-1)?.payload["output"]).toMatchObject({ text: "At noon." })
  })

  it("need no run id in the log, nor the process that asked: the store has them", async () => {
    const folder = await mkdtemp(join(tmpdir(), "eddy-http-"))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const storage = () => new LibSQLStore({ url: `file:${join(folder, "runs.db")}` })
    const { paid, tools } = payments()
    const turns = [saying("All paid.")]
    const before = await served({ clerk: agentWith([payTwo], { id: "clerk", tools }) }, users, {
      storage: storage()
    })
    const asked = await agentFor(before.url, "ada")
    const runId = runIdOf(await read(await asked.stream("Pay both.", { memory })))
    await before.serving.close()
    await before.eddy.shutdown()

    const after = await served({ clerk: agentWith(turns, { id: "clerk", tools }) }, users, {
      storage: storage()
    })
    const eve = await agentFor(after.url, "eve")
    await expect(eve.approveToolCall({ runId, toolCallId: "c1" })).rejects.toMatchObject({ status: 404 })
    const clerk = await agentFor(after.url, "ada")
    expect(await clerk.listSuspendedRuns()).toMatchObject({ runs: [{ runId }] })
    await read(await clerk.resumeStream({ approved: true }, { runId, toolCallId: "c1" }))
    const rest = await read(await clerk.approveToolCall({ runId, toolCallId: "c2" }))
    expect(rest.at(-1)?.payload["output"]).toMatchObject({ text: "All paid." })
    expect(paid).toEqual(["bob", "eve"])
  })

  it("want a body that says which run", async () => {
    const { tools } = payments()
    const { api } = await served({ clerk: agentWith([], { id: "clerk", tools }) })
    const response = await post(`${api}/agents/clerk/approve-tool-call`, { toolCallId: "c1" })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ issues: [{ field: "runId" }] })
  })
})

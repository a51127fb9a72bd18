/** Approvals over HTTP, of a host that can decide. */
import type { Chunk } from "eddy"
import { Http } from "eddy/http"
import { createTool } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, Scope, Stream } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { agentWith, chunksOf, post, saying, served, types } from "./kit.js"

const { finish, toolCall } = ScriptedModel

const waiting: ReadonlyArray<Http.HostSuspendedRun> = ["alice", "bob"].map(resourceId => ({
  runId: `of-${resourceId}`,
  threadId: `thread-of-${resourceId}`,
  resourceId,
  suspendedAt: new Date(0),
  toolCalls: [{ toolCallId: "c1", toolName: "pay", args: { sum: 5 }, requiresApproval: true }]
}))

const envelope = (runId: string) => ({ runId, from: "AGENT" }) as const

const run = (runId: string, result: unknown): Stream.Stream<Chunk.Chunk> =>
  Stream.make<Array<Chunk.Chunk>>(
    { type: "start", ...envelope(runId), payload: { agentId: "clerk" } },
    { type: "tool-result", ...envelope(runId), payload: { toolCallId: "c1", toolName: "pay", result } },
    {
      type: "finish",
      ...envelope(runId),
      payload: {
        stepResult: { reason: "stop", isContinued: false },
        output: { usage: {}, text: "Done." },
        metadata: {},
        messages: { all: [], user: [], nonUser: [] },
        response: { messages: [], uiMessages: [] }
      }
    }
  )

/** A server whose agent notes what was decided. */
const deciding = async () => {
  const decided: Array<unknown> = []
  const clerk: Http.HostAgent = {
    id: "clerk",
    name: "Clerk",
    description: undefined,
    stream: () => Stream.empty,
    resume: () => Stream.empty,
    decide: (decision, call) => {
      decided.push([decision, call])
      return run(call.runId, decision.approved)
    },
    suspendedRuns: ({ runId, threadId }) =>
      Effect.succeed(
        waiting.filter(
          one =>
            (runId === undefined || one.runId === runId) &&
            (threadId === undefined || one.threadId === threadId)
        )
      )
  }
  const host: Http.Host = { agents: new Map([["clerk", clerk]]), threads: undefined, tasks: undefined }
  const scope = Effect.runSync(Scope.make())
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const handler = await Effect.runPromise(
    Http.routerOfHost(host, {
      authenticate: ({ headers }) => {
        const name = headers["x-user"] ?? ""
        return Effect.succeed({ id: name, resource: name })
      }
    }).pipe(Effect.flatMap(Http.toWebHandler), Scope.extend(scope))
  )
  const ask = (user: string, path: string, body?: object): Promise<Response> =>
    handler(
      new Request(`http://x/api/agents/clerk/${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { "x-user": user, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
    )
  return { ask, decided }
}

describe("approvals over HTTP", () => {
  it("list the runs that wait, each to whom they belong", async () => {
    const { ask } = await deciding()
    expect(await (await ask("alice", "suspended-runs")).json()).toEqual({
      runs: [{ ...waiting[0], status: "suspended", suspendedAt: "1970-01-01T00:00:00.000Z" }],
      total: 1
    })
    expect(await (await ask("alice", "suspended-runs?resourceId=bob")).json()).toMatchObject({ total: 1 })
    const foreign = await ask("alice", "suspended-runs?threadId=thread-of-bob")
    expect(await foreign.json()).toEqual({ runs: [], total: 0 })
    const later = await ask("alice", "suspended-runs?fromDate=2000-01-01T00:00:00Z")
    expect(await later.json()).toEqual({ runs: [], total: 0 })
    expect((await ask("alice", "suspended-runs?perPage=x")).status).toBe(400)
  })

  it("decide, and stream what follows", async () => {
    const { ask, decided } = await deciding()
    const call = { runId: "of-alice", toolCallId: "c1" }
    const approved = await ask("alice", "approve-tool-call", call)
    expect(types(chunksOf(await approved.text()))).toEqual(["start", "tool-result", "finish"])
    const declined = await ask("alice", "decline-tool-call", { ...call, reason: "Too much." })
    await declined.text()
    const whole = await ask("alice", "approve-tool-call-generate", { runId: "of-alice" })
    expect(await whole.json()).toMatchObject({ text: "Done.", runId: "of-alice" })
    expect((await ask("alice", "decline-tool-call-generate", call)).status).toBe(200)
    expect(decided).toEqual([
      [{ approved: true }, call],
      [{ approved: false, reason: "Too much." }, call],
      [{ approved: true }, { runId: "of-alice" }],
      [{ approved: false }, call]
    ])
  })

  it("are nobody else's, and need a run", async () => {
    const { ask, decided } = await deciding()
    const paths = ["approve-tool-call", "decline-tool-call", "approve-tool-call-generate", "resume-stream"]
    for (const path of paths) {
      const body = path === "resume-stream" ? { resumeData: true } : {}
      const answers = await Promise.all(
        ["of-alice", "of-nobody"].map(runId => ask("bob", path, { ...body, runId, toolCallId: "c1" }))
      )
      const said = await Promise.all(answers.map(async one => [one.status, await one.text()]))
      expect(said).toEqual([
        [404, '{"error":"Run not found"}'],
        [404, '{"error":"Run not found"}']
      ])
      expect((await ask("bob", path, body)).status).toBe(400)
    }
    expect(decided).toEqual([])
  })
})

describe("a call that was declined", () => {
  it("is told from one that failed, in the thread too", async () => {
    const pay = createTool({ id: "pay", requireApproval: true, execute: async () => "paid" })
    const burn = createTool({ id: "burn", execute: () => Promise.reject(new Error("sk-123")) })
    const turns = [
      [toolCall("c1", "pay", {}), toolCall("c2", "burn", {}), finish("tool-calls")],
      saying("I leave it.")
    ] as const
    const { api } = await served({ clerk: agentWith(turns, { tools: { pay, burn } }) })
    const memory = { thread: "t1", resource: "ada" }
    await (await post(`${api}/agents/clerk/stream`, { messages: "Pay.", runId: "r1", memory })).text()
    const call = { runId: "r1", toolCallId: "c1", reason: "Too much.", memory }
    const told = chunksOf(await (await post(`${api}/agents/clerk/decline-tool-call`, call)).text())

    const messages = async (format: string): Promise<string> =>
      (await fetch(`${api}/memory/threads/t1/messages?format=${format}`)).text()
    const stored = JSON.parse(await messages("model"))
    const outcomes = stored.messages.flatMap(
      ({ message }: { readonly message: { readonly role: string } }) =>
        message.role === "tool" ? [message] : []
    )
    expect(outcomes).toMatchObject([
      {
        content: [
          {
            toolCallId: "c1",
            output: { type: "error-text", value: "Too much." },
            providerOptions: { eddy: { denied: true } }
          },
          { toolCallId: "c2", output: { type: "error-text", value: "The tool failed." } }
        ]
      }
    ])
    const shown = await messages("ui")
    expect(shown).toContain('"errorText":"Too much."')
    expect(shown).toContain('"errorText":"The tool failed."')
    for (const seen of [shown, JSON.stringify(told)]) {
      expect(seen).toContain("Too much.")
      expect(seen).not.toContain("sk-123")
    }
  })
})

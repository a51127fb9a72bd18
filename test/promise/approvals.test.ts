/** Calls that somebody has to decide about, in plain TypeScript: on their own, in a container, and after a restart. */
import {
  Agent,
  type Chunk,
  createTool,
  Eddy,
  InMemoryStore,
  LibSQLStore,
  RunNotFound,
  type Storage,
  ToolCallNotPending
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { freshFile } from "../support/databases.js"
import { expectGrammar } from "../support/grammar.js"
import { collect, refuseUnhandledRejections, typesOf } from "../support/readers.js"

refuseUnhandledRejections()

const { finish, reply, toolCall } = ScriptedModel

const withFile = <A>(use: (url: string) => Promise<A>): Promise<A> =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(freshFile, url => Effect.promise(() => use(url)))))

const calls = (...made: ReadonlyArray<ReturnType<typeof toolCall>>) => [...made, finish("tool-calls")]

const number = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const

const guarded = () => {
  const executed: Array<unknown> = []
  const remove = createTool({
    id: "remove",
    inputSchema: number,
    requireApproval: true,
    execute: input => {
      executed.push(input)
      return { removed: true }
    }
  })
  return { remove, executed }
}

const ask = createTool({
  id: "ask",
  inputSchema: number,
  suspendSchema: { type: "object", properties: { question: { type: "string" } }, required: ["question"] },
  resumeSchema: { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] },
  execute: async (_, { agent: { resumeData, suspend, suspendData } }) => {
    if (resumeData !== undefined) return { resumeData, suspendData }
    await suspend({ question: "Why?" })
    return "ignored"
  }
})

const chunksOf = async (
  output: Promise<{ readonly fullStream: AsyncIterable<Chunk> }>,
  waiting: Iterable<string> = []
) => {
  const chunks = await collect((await output).fullStream)
  expectGrammar(chunks, waiting)
  return chunks
}

const reasonOf = (chunks: ReadonlyArray<Chunk>) => {
  const last = chunks.at(-1)
  return last?.type === "finish" ? last.payload.stepResult.reason : undefined
}

describe("an agent on its own", () => {
  it("keeps its suspended runs in memory", async () => {
    const { executed, remove } = guarded()
    const model = ScriptedModel.make([
      calls(toolCall("c1", "remove", { n: 1 }), toolCall("c2", "ask", { n: 2 })),
      reply("Done.")
    ])
    const agent = new Agent({ id: "a", model, tools: { remove, ask } })
    const output = await agent.stream("go", { runId: "r1" })
    const first = await output.getFullOutput()
    expect(first).toMatchObject({
      status: "suspended",
      finishReason: "suspended",
      suspendData: { question: "Why?" }
    })
    expect(output.status).toBe("suspended")
    expect(executed).toEqual([])
    expect(await agent.listSuspendedRuns()).toMatchObject([
      {
        runId: "r1",
        agentId: "a",
        calls: [
          { toolCallId: "c1", toolName: "remove", kind: "approval", args: { n: 1 } },
          { toolCallId: "c2", toolName: "ask", kind: "suspension", suspendData: { question: "Why?" } }
        ]
      }
    ])
    const second = await chunksOf(agent.approveToolCall({ runId: "r1", toolCallId: "c1" }), ["c1", "c2"])
    expect(reasonOf(second)).toBe("suspended")
    expect((await agent.listSuspendedRuns())[0]?.calls.map(({ toolCallId }) => toolCallId)).toEqual(["c2"])
    const third = await chunksOf(agent.resumeStream({ answer: "so" }, { runId: "r1", toolCallId: "c2" }), [
      "c2"
    ])
    expect(reasonOf(third)).toBe("stop")
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('"suspendData":{"question":"Why?"}')
    expect(executed).toEqual([{ n: 1 }])
    expect(await agent.listSuspendedRuns()).toEqual([])
    await expect(agent.approveToolCall({ runId: "r1", toolCallId: "c1" })).rejects.toBeInstanceOf(RunNotFound)
  })

  it("calls onFinish of a run that is suspended, and no other", async () => {
    const { remove } = guarded()
    const model = ScriptedModel.make([calls(toolCall("c1", "remove", { n: 1 })), reply("Done.")])
    const called: Array<string> = []
    const callbacks = {
      onFinish: ({ status }: { readonly status: string }) => called.push(status),
      onError: () => called.push("error"),
      onAbort: () => called.push("abort")
    }
    const agent = new Agent({ id: "a", model, tools: { remove }, defaultOptions: callbacks })
    await (await agent.stream("go", { runId: "r1" })).getFullOutput()
    await (await agent.declineToolCall({ runId: "r1", toolCallId: "c1" })).getFullOutput()
    expect(called).toEqual(["suspended", "success"])
  })

  it("may decide as soon as it is told, within the chunk handler", async () => {
    const { executed, remove } = guarded()
    const model = ScriptedModel.make([
      calls(toolCall("c1", "remove", { n: 1 }), toolCall("c2", "remove", { n: 2 })),
      reply("Done.")
    ])
    const agent = new Agent({ id: "a", model, tools: { remove } })
    const legs: Array<Promise<ReadonlyArray<Chunk>>> = []
    const output = await agent.stream("go", {
      runId: "r1",
      onChunk: chunk => {
        if (chunk.type !== "tool-call-approval") return
        const { toolCallId } = chunk.payload
        legs.push(agent.approveToolCall({ runId: "r1", toolCallId }).then(leg => collect(leg.fullStream)))
      }
    })
    expect((await output.getFullOutput()).status).toBe("suspended")
    const told = await Promise.all(legs)
    expect(told.map(reasonOf).sort()).toEqual(["stop", "suspended"])
    expect(executed).toHaveLength(2)
    expect(model.unused()).toBe(0)
    expect(JSON.stringify(model.requests[1]?.messages.at(-1)).match(/removed/g)).toHaveLength(2)
  })
})

describe("in a container", () => {
  const stores: Readonly<Record<string, (url: string) => Storage>> = {
    libSQL: url => new LibSQLStore({ url })
  }
  for (const [name, make] of Object.entries(stores)) {
    it(`goes on in another process: ${name}`, () =>
      withFile(async url => {
        const memory = { thread: "t1", resource: "u1" }
        const model = ScriptedModel.make([
          calls(toolCall("c1", "remove", { n: 1 }), toolCall("c2", "remove", { n: 2 })),
          reply("Done.")
        ])
        const containerOf = () => {
          const { executed, remove } = guarded()
          const agent = new Agent({ id: "a", model, tools: { remove } })
          return { agent, executed, eddy: new Eddy({ agents: { agent }, storage: make(url) }) }
        }
        const one = containerOf()
        const first = await chunksOf(one.agent.stream("go", { memory, requireToolApproval: () => true }))
        expect(reasonOf(first)).toBe("suspended")
        const runId = first[0]?.runId ?? ""
        await one.eddy.shutdown()

        const other = containerOf()
        const [found] = await other.agent.listSuspendedRuns({ memory })
        expect(found).toMatchObject({ runId, threadId: "t1", resourceId: "u1" })
        await expect(
          other.agent.approveToolCall({ runId, toolCallId: "c1", memory: { ...memory, resource: "u2" } })
        ).rejects.toBeInstanceOf(RunNotFound)
        const second = await chunksOf(
          other.agent.declineToolCall({ memory, toolCallId: "c2", reason: "No." }),
          ["c1", "c2"]
        )
        expect(reasonOf(second)).toBe("suspended")
        await expect(other.agent.approveToolCall({ runId, toolCallId: "c2" })).rejects.toBeInstanceOf(
          ToolCallNotPending
        )
        await other.eddy.shutdown()

        const last = containerOf()
        const third = await chunksOf(last.agent.approveToolCall({ runId }), ["c1"])
        expect(typesOf(third)).toContain("tool-result")
        expect(reasonOf(third)).toBe("stop")
        expect([...one.executed, ...other.executed, ...last.executed]).toEqual([{ n: 1 }])
        const stored = await last.eddy.threads.messages("t1")
        expect(stored.map(({ message }) => message.role)).toEqual(["user", "assistant", "tool", "assistant"])
        expect(stored[2]?.message).toMatchObject({
          content: [
            { toolCallId: "c1", output: { value: { removed: true } } },
            { toolCallId: "c2", output: { type: "error-text", value: "No." } }
          ]
        })
        await last.eddy.shutdown()
      }))
  }

  it("is refused by nobody with storage in memory", async () => {
    const { remove } = guarded()
    const model = ScriptedModel.make([calls(toolCall("c1", "remove", { n: 1 })), reply("Done.")])
    const agent = new Agent({ id: "a", model, tools: { remove } })
    await using eddy = new Eddy({ agents: { agent }, storage: new InMemoryStore() })
    const first = await chunksOf(agent.stream("go", { runId: "r1" }))
    expect(reasonOf(first)).toBe("suspended")
    expect(reasonOf(await chunksOf(agent.approveToolCall({ runId: "r1" }), ["c1"]))).toBe("stop")
    expect(eddy.agents.agent).toBe(agent)
  })

  it("is refused without storage", async () => {
    const { remove } = guarded()
    const model = ScriptedModel.make([calls(toolCall("c1", "remove", { n: 1 }))])
    const agent = new Agent({ id: "a", model, tools: { remove } })
    await using eddy = new Eddy({ agents: { agent } })
    const output = await agent.stream("go", { onError: () => undefined })
    expect((await output.getFullOutput()).error).toMatchObject({ field: "storage" })
    expect(eddy.agents.agent).toBe(agent)
  })
})

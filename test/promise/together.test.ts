/** Features that meet, in plain TypeScript: values, processors, approvals, goals and agents below, in one container. */
import {
  Agent,
  type AgentOptions,
  type ChunkOf,
  createTool,
  Eddy,
  InMemoryStore,
  type ModelOutput,
  RunBlocked,
  RunSuspended
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { expectGrammar } from "../support/grammar.js"
import { collect, memoryLogger, refuseUnhandledRejections } from "../support/readers.js"

refuseUnhandledRejections()

const { finish, reply, toolCall } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const
const one = { inputTokens: 10, outputTokens: 1 }
const schema = {
  type: "object",
  properties: { a: { type: "number" } },
  required: ["a"],
  additionalProperties: false
} as const
const structuredOutput = { schema }

const removal = () =>
  createTool({
    id: "remove",
    inputSchema: { type: "object", properties: {} },
    requireApproval: true,
    execute: () => ({ removed: true })
  })

const removing = (id = "c1") => [toolCall(id, "remove", {}), finish("tool-calls", one)]

type OutputProcessor = NonNullable<AgentOptions["outputProcessors"]>[number]

const refusing = (isWrong: (text: string) => boolean, retry = true): OutputProcessor => ({
  id: "refusing",
  processOutputStep: ({ text }, { abort }) => (isWrong(text) ? abort("not this", { retry }) : undefined)
})

const contained = (turns: ReadonlyArray<ScriptedModel.Turn>, more: Partial<AgentOptions> = {}) => {
  const model = ScriptedModel.make(turns)
  const agent = new Agent({ id: "worker", model, ...more })
  const eddy = new Eddy({ agents: { agent }, storage: new InMemoryStore(), logger: memoryLogger() })
  return { agent, eddy, model }
}

const read = async (output: ModelOutput<unknown>, waiting: Iterable<string> = []) => {
  const chunks = await collect(output.fullStream)
  expectGrammar(chunks, waiting)
  const last = chunks.at(-1)
  if (last?.type !== "finish") throw new Error("no finish")
  return { chunks, finish: last.payload }
}

/** The same is told of what was used, everywhere. */
const expectUsage = async (output: ModelOutput<unknown>, calls: number, waiting: Iterable<string> = []) => {
  const { chunks, finish } = await read(output, waiting)
  const used = { inputTokens: 10 * calls, outputTokens: calls }
  expect(finish.output.usage).toMatchObject(used)
  const steps = chunks.filter((chunk): chunk is ChunkOf<"step-finish"> => chunk.type === "step-finish")
  expect(steps.at(-1)?.payload.totalUsage).toMatchObject(used)
  expect((await output.getFullOutput()).usage).toMatchObject(used)
}

describe("features that meet", () => {
  it("J08: give the value of the attempt that was accepted", async () => {
    const { agent, eddy } = contained([reply('{"a":1}', one), reply('{"a":2}', one)], {
      outputProcessors: [refusing(text => text.includes("1"))]
    })
    const output = await agent.stream("go", { memory, structuredOutput })
    await expectUsage(output, 2)
    expect(await output.object).toEqual({ a: 2 })
    expect(await output.text).toBe('{"a":2}')
    expect((await collect(output.objectStream)).at(-1)).toEqual({ a: 2 })
    expect(await output.usage).toMatchObject({ outputTokens: 2 })
    await eddy.shutdown()
  })

  it("reject the value of a run that a processor stopped, and of one that waits, each by its name", async () => {
    const stopped = contained([reply('{"a":1}', one)], {
      outputProcessors: [refusing(() => true, false)]
    })
    const blocked = await stopped.agent.stream("go", { structuredOutput })
    await expect(blocked.object).rejects.toBeInstanceOf(RunBlocked)
    expect(await blocked.finishReason).toBe("tripwire")
    const { agent } = contained([removing(), reply('{"a":1}', one)], { tools: { remove: removal() } })
    const waiting = await agent.stream("go", { runId: "r1", structuredOutput })
    await expect(waiting.object).rejects.toBeInstanceOf(RunSuspended)
    const leg = await agent.approveToolCall({ runId: "r1", toolCallId: "c1", structuredOutput })
    expect(await leg.object).toEqual({ a: 1 })
    await expectUsage(leg, 2, ["c1"])
  })

  it("count models that judge, that write values, agents below and rejected answers, across legs", async () => {
    const judge = ScriptedModel.make([
      reply('{"passed":false,"reason":"more"}', one),
      reply('{"passed":true}', one)
    ])
    const writer = ScriptedModel.make([reply('{"a":1}', one), reply('{"a":2}', one)])
    const helper = new Agent({
      id: "helper",
      model: ScriptedModel.make([reply("Bad.", one), reply("Help.", one)]),
      outputProcessors: [refusing(text => text === "Bad.")]
    })
    const { agent, eddy } = contained(
      [
        [toolCall("h1", "agent-helper", { prompt: "help" }), finish("tool-calls", one)],
        reply("Bad.", one),
        reply("One.", one),
        removing(),
        reply("Two.", one)
      ],
      {
        agents: { helper },
        tools: { remove: removal() },
        goal: { judge },
        outputProcessors: [refusing(text => text === "Bad.")]
      }
    )
    await agent.setObjective("Count.", { threadId: "t1", resourceId: "u1" })
    const options = { structuredOutput: { schema, model: writer }, memory }
    const first = await agent.stream("go", { runId: "r1", ...options })
    // Four of its own, two below, the value and its judge.
    await expectUsage(first, 8)
    const second = await agent.approveToolCall({ runId: "r1", toolCallId: "c1", ...options })
    await expectUsage(second, 11, ["c1"])
    expect(await second.object).toEqual({ a: 2 })
    await eddy.shutdown()
  })
})

/** Several runs on one thread, in the Promise face: the same rules, and agents that plain code of a tool runs. */
import { Agent, createTool, Eddy, InMemoryStore, ThreadBusy } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { textIn } from "../agent/memoryKit.js"
import { latch, memoryLogger, refuseUnhandledRejections, until } from "../support/readers.js"

refuseUnhandledRejections()

const { finish, reply, toolCall } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

/** A container with an agent whose first run waits in a tool until the test opens the latch. */
const busy = (whenBusy?: "queue" | "reject" | "parallel") => {
  const gate = latch()
  const entered = latch()
  const wait = createTool({
    id: "wait",
    execute: async () => {
      entered.open()
      await gate.wait
      return "waited"
    }
  })
  const slow = new Agent({
    id: "slow",
    model: ScriptedModel.make([[toolCall("c1", "wait", {}), finish("tool-calls")], reply("slow answer")]),
    tools: { wait }
  })
  const quickModel = ScriptedModel.make([reply("quick answer")])
  const quick = new Agent({
    id: "quick",
    model: quickModel,
    ...(whenBusy === undefined ? {} : { memory: { whenBusy } })
  })
  const eddy = new Eddy({ agents: { quick, slow }, storage: new InMemoryStore(), logger: memoryLogger() })
  const texts = async () =>
    (await eddy.threads.messages("t1")).map(({ message }) => textIn([message])).filter(text => text !== "")
  return { eddy, entered, gate, quick, quickModel, slow, texts }
}

describe("two runs of one thread", () => {
  it("speak one after the other, and both streams are open at once", async () => {
    const { eddy, entered, gate, quick, quickModel, slow, texts } = busy()
    const first = await slow.stream("A", { memory })
    await entered.wait
    const second = await quick.stream("B", { memory })
    const reader = second.fullStream.getReader()
    expect((await reader.read()).value).toMatchObject({ type: "start" })
    expect(quickModel.requests).toHaveLength(0)
    gate.open()
    expect(await second.text).toBe("quick answer")
    expect(await first.text).toBe("slow answer")
    expect(await texts()).toEqual(["A", "slow answer", "B", "quick answer"])
    await reader.cancel()
    await eddy.shutdown()
  })

  it("are refused under `reject`, with the run that speaks", async () => {
    const { eddy, entered, gate, quick, slow, texts } = busy("reject")
    const first = await slow.stream("A", { memory, runId: "first" })
    await entered.wait
    const refused: unknown = await quick.generate("B", { memory }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(ThreadBusy)
    expect(refused).toMatchObject({ threadId: "t1", runId: "first" })
    gate.open()
    await first.text
    expect(await texts()).toEqual(["A", "slow answer"])
    await eddy.shutdown()
  })

  it("speak at once under `parallel`, each in its block", async () => {
    const { eddy, entered, gate, quick, slow, texts } = busy()
    const first = await slow.stream("A", { memory })
    await entered.wait
    const { text } = await quick.generate("B", { memory: { ...memory, whenBusy: "parallel" } })
    expect(text).toBe("quick answer")
    gate.open()
    await first.text
    expect(await texts()).toEqual(["A", "slow answer", "B", "quick answer"])
    await eddy.shutdown()
  })
})

describe("an agent that a tool runs in the thread of its own run", () => {
  it("does not wait for that run, also after an await", async () => {
    const inner = new Agent({ id: "inner", model: ScriptedModel.make([reply("inner answer")]) })
    const consult = createTool({
      id: "consult",
      execute: async () => {
        await new Promise(resolve => setImmediate(resolve))
        return (await inner.generate("inside", { memory })).text
      }
    })
    const outer = new Agent({
      id: "outer",
      model: ScriptedModel.make([[toolCall("c1", "consult", {}), finish("tool-calls")], reply("done")]),
      tools: { consult }
    })
    const eddy = new Eddy({ agents: { inner, outer }, storage: new InMemoryStore(), logger: memoryLogger() })
    const output = await outer.stream("A", { memory })
    let text: string | undefined
    output.text.then(said => {
      text = said
    }, String)
    await until(() => text !== undefined, "the outer run ends")
    expect(text).toBe("done")
    await eddy.shutdown()
  })
})

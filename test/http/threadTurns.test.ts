/** A busy thread over HTTP: the host's `whenBusy` holds, and clients do not choose it. */
import { Agent } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { modelOf } from "../agent/kit.js"
import { latch } from "../support/readers.js"
import { chunksOf, post, readerOf, readUntil, served } from "./kit.js"

const { reply } = ScriptedModel

const memory = { thread: "t1", resource: "u1" }

/** A server whose first run speaks until the test lets it end. */
const busy = async (whenBusy: "queue" | "reject") => {
  const gate = latch()
  const held = () =>
    (async function* () {
      yield { type: "text-start", id: "0" }
      yield { type: "text-delta", id: "0", delta: "first" }
      await gate.wait
      yield* reply("").slice(1)
    })()
  const second = () =>
    (async function* () {
      yield* reply("second")
    })()
  const { model } = modelOf([held, second])
  const helper = new Agent({ id: "helper", model, memory: { whenBusy } })
  const { api, eddy } = await served({ helper })
  const begun = await post(`${api}/agents/helper/stream`, { messages: "A", runId: "first", memory })
  await readUntil(readerOf(begun), text => text.includes("text-delta"))
  return { api, eddy, gate }
}

describe("a busy thread", () => {
  it("is waited for, with the stream open", async () => {
    const { api, eddy, gate } = await busy("queue")
    const waiting = await post(`${api}/agents/helper/stream`, { messages: "B", memory })
    expect(waiting.status).toBe(200)
    gate.open()
    const chunks = chunksOf(await waiting.text())
    expect(chunks.map(({ type }) => type)).toContain("finish")
    const { length } = await eddy.threads.messages("t1")
    expect(length).toBe(4)
  })

  it("refuses under `reject`: 409, and the run that speaks", async () => {
    const { api, gate } = await busy("reject")
    const refused = await post(`${api}/agents/helper/generate`, { messages: "B", memory })
    expect(refused.status).toBe(409)
    expect(await refused.text()).toContain("first")
    const told = await post(`${api}/agents/helper/stream`, { messages: "B", memory })
    const error = chunksOf(await told.text()).find(({ type }) => type === "error")
    expect(JSON.stringify(error)).toContain("ThreadBusy")
    gate.open()
  })

  it("is not for clients to decide", async () => {
    const { api, gate } = await busy("queue")
    const refused = await post(`${api}/agents/helper/stream`, {
      messages: "B",
      memory: { ...memory, whenBusy: "parallel" }
    })
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain("memory.whenBusy")
    gate.open()
  })
})

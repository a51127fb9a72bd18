/** Runs over HTTP, as any client reads them. */
import { createTool } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import {
  agentWith,
  calling,
  chunksOf,
  framesOf,
  post,
  readerOf,
  readUntil,
  research,
  saying,
  served,
  types
} from "./kit.js"

const { finish, hang, pause, text } = ScriptedModel

describe("streaming over HTTP", () => {
  it("sends one frame for each chunk, in the form that every client reads", async () => {
    const { api } = await served({ helper: agentWith([saying("Grüße, 世界.")]) })
    const response = await post(`${api}/agents/helper/stream`, { messages: "Hello" })
    expect(response.status).toBe(200)
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8")
    expect(response.headers.get("cache-control")).toBe("no-cache, no-transform")
    expect(response.headers.get("x-accel-buffering")).toBe("no")
    const body = await response.text()
    expect(body.startsWith(": open\n\n")).toBe(true)
    expect(body.endsWith("data: [DONE]\n\n")).toBe(true)
    expect(body).not.toMatch(/\r|^(id|event|retry):/m)
    const frames = framesOf(body)
    expect(frames.every(frame => /^data: .+$/.test(frame))).toBe(true)
    const chunks = chunksOf(body)
    expect(types(chunks).filter(type => type !== "text-delta")).toEqual([
      "start",
      "step-start",
      "text-start",
      "text-end",
      "step-finish",
      "finish"
    ])
    expect(chunks.at(-1)?.payload["output"]).toMatchObject({ text: "Grüße, 世界." })
    expect(chunks[0]?.runId).toBe(response.headers.get("x-run-id"))
  })

  it("sends what there is at once", async () => {
    const { api } = await served({ helper: agentWith([[...text("first"), hang]]) })
    const leave = new AbortController()
    const response = await post(`${api}/agents/helper/stream`, { messages: "Hello" }, {}, leave.signal)
    const reader = readerOf(response)
    expect(await readUntil(reader, so => so.includes("first"))).toContain("text-delta")
    leave.abort()
  })

  it("says that it lives while nothing is said, and loses nothing", async () => {
    const turn = [...text("one"), pause("500 millis"), ...text("two", "b"), finish("stop")]
    const { api } = await served({ helper: agentWith([turn]) }, { keepAliveMs: 25 })
    const body = await (await post(`${api}/agents/helper/stream`, { messages: "Hello" })).text()
    expect(body.match(/^: keep-alive$/gm)?.length).toBeGreaterThan(1)
    expect(chunksOf(body).filter(({ type }) => type === "text-delta")).toHaveLength(2)
    expect(chunksOf(body).at(-1)?.type).toBe("finish")
  })

  it("answers the tasks of an until-idle stream in the same response", async () => {
    const agent = agentWith([calling("research"), saying("Wait."), saying("Water.")], { tools: { research } })
    const { api } = await served({ helper: agent })
    const memory = { thread: "t1", resource: "ada" }
    const response = await post(`${api}/agents/helper/stream-until-idle`, { messages: "Hello", memory })
    const chunks = chunksOf(await response.text())
    expect(types(chunks).filter(type => type === "finish")).toHaveLength(2)
    expect(types(chunks)).toContain("background-task-completed")
    expect(chunks.at(-1)?.payload["output"]).toMatchObject({ text: "Water." })
  })

  it("tells a failure in the stream, and nothing of what the provider said", async () => {
    const secret = "key sk-123 is invalid at /srv/app.js"
    const turn: ScriptedModel.Turn = [{ type: "error", error: new Error(secret) }]
    const { api } = await served({ helper: agentWith([turn], { defaultOptions: { maxRetries: 0 } }) })
    const body = await (await post(`${api}/agents/helper/stream`, { messages: "Hello" })).text()
    expect(types(chunksOf(body)).slice(-2)).toEqual(["error", "finish"])
    expect(body).not.toContain("sk-123")
    expect(body).not.toContain("stack")
    const error = chunksOf(body).find(({ type }) => type === "error")
    expect(error?.payload).toEqual({
      error: { name: "ModelError", message: "The model could not answer." }
    })
  })

  it("tells what failed when the host says so", async () => {
    const turn: ScriptedModel.Turn = [{ type: "error", error: new Error("no such model") }]
    const agent = agentWith([turn], { defaultOptions: { maxRetries: 0 } })
    const { api } = await served({ helper: agent }, { expose: { errors: true } })
    const body = await (await post(`${api}/agents/helper/stream`, { messages: "Hello" })).text()
    expect(body).toContain("no such model")
    expect(body).not.toContain("stack")
  })

  it("hides what a tool said that failed, wherever it stands", async () => {
    const broken = createTool({
      id: "broken",
      description: "Fails.",
      execute: async () => {
        throw new Error("db password hunter2")
      }
    })
    const agent = agentWith([calling("broken"), saying("Sorry.")], { tools: { broken } })
    const { api } = await served({ helper: agent })
    const memory = { thread: "t1", resource: "ada" }
    const body = await (await post(`${api}/agents/helper/stream`, { messages: "Hello", memory })).text()
    expect(types(chunksOf(body))).toContain("tool-error")
    expect(body).not.toContain("hunter2")
    const stored = await (await fetch(`${api}/memory/threads/t1/messages`)).text()
    expect(stored).toContain("output-error")
    expect(stored).not.toContain("hunter2")
  })

  it("generates in one answer, and fails without asking to be repeated", async () => {
    const agent = agentWith([saying("Yes."), [{ type: "error", error: new Error("secret") }]], {
      defaultOptions: { maxRetries: 0 }
    })
    const { api } = await served({ helper: agent })
    const good = await post(`${api}/agents/helper/generate`, { messages: "Hello" })
    expect(await good.json()).toMatchObject({
      text: "Yes.",
      finishReason: "stop",
      usage: { inputTokens: 3, outputTokens: 2 },
      steps: [{ text: "Yes." }]
    })
    const bad = await post(`${api}/agents/helper/generate`, { messages: "Hello" })
    expect([bad.status, await bad.json()]).toEqual([424, { error: "The model could not answer." }])
  })
})

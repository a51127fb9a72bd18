/** Runs that outlive their requests: read again, come back to, left and stopped. */
import { EventSource } from "eventsource"
import { describe, expect, it, vi } from "vitest"
import { modelOf } from "../agent/kit.js"
import { agentWith, chunksOf, post, readerOf, readUntil, saying, served, types } from "./kit.js"

/** A provider that says a word whenever it is told to, and knows who stopped it. */
const wordByWord = () => {
  const words: Array<() => void> = []
  let stopped: number | undefined
  const { model, requests } = modelOf([
    signal =>
      (async function* () {
        signal.addEventListener("abort", () => {
          stopped = performance.now()
        })
        yield { type: "text-start", id: "t" }
        for (let count = 1; count <= 5; count++) {
          await new Promise<void>(resolve => words.push(resolve))
          yield { type: "text-delta", id: "t", delta: `word ${count} ` }
        }
        yield { type: "text-end", id: "t" }
        yield { type: "finish", reason: "stop", usage: {} }
      })()
  ])
  const say = async (count: number): Promise<void> => {
    for (let said = 0; said < count; said++) {
      await vi.waitFor(() => expect(words.length).toBeGreaterThan(0))
      words.shift()?.()
    }
  }
  return { model, requests, say, stopped: () => stopped }
}

const idsOf = (text: string): ReadonlyArray<number> =>
  Array.from(text.matchAll(/^id: (\d+)$/gm), match => Number(match[1]))

describe("runs over HTTP", () => {
  it("replay from anywhere, with ids, and never run again", async () => {
    const script = wordByWord()
    const { api } = await served({ helper: agentWith([], { model: script.model }) })
    const first = await post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "mine" })
    await script.say(5)
    const original = chunksOf(await first.text())
    const all = await (await fetch(`${api}/runs/mine/events`)).text()
    expect(chunksOf(all)).toEqual(original)
    expect(idsOf(all)).toEqual(original.map((_, index) => index))
    expect(await (await fetch(`${api}/runs/mine/events`)).text()).toBe(all)
    const rest = await (await fetch(`${api}/runs/mine/events?offset=4`)).text()
    expect(chunksOf(rest)).toEqual(original.slice(4))
    const after = await fetch(`${api}/runs/mine/events`, { headers: { "last-event-id": "4" } })
    expect(chunksOf(await after.text())).toEqual(original.slice(5))
    const nothing = await fetch(`${api}/runs/mine/events`, {
      headers: { "last-event-id": String(original.length - 1) }
    })
    expect(nothing.status).toBe(204)
    const again = await post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "mine" })
    expect(again.status).toBe(409)
    expect(script.requests).toHaveLength(1)
  })

  it("go on for a client that comes back, without a gap and without a double", async () => {
    const script = wordByWord()
    const { api } = await served({ helper: agentWith([], { model: script.model }) })
    const begun = await post(
      `${api}/agents/helper/stream`,
      { messages: "Hello", runId: "mine" },
      { "x-on-disconnect": "10000" }
    )
    const reader = readerOf(begun)
    await script.say(1)
    await readUntil(reader, text => text.includes("word 1"))
    await reader.cancel()

    let text = ""
    for (const word of [2, 3, 4]) {
      const last = idsOf(text).at(-1)
      const headers: Record<string, string> = last === undefined ? {} : { "last-event-id": String(last) }
      const next = readerOf(await fetch(`${api}/runs/mine/events`, { headers }))
      await script.say(1)
      text += await readUntil(next, so => so.includes(`word ${word} `))
      await next.cancel()
    }
    await script.say(1)
    const rest = await fetch(`${api}/runs/mine/events`, {
      headers: { "last-event-id": String(idsOf(text).at(-1)) }
    })
    text += await rest.text()
    expect(idsOf(text)).toEqual(idsOf(text).map((_, index) => index))
    expect(chunksOf(text).at(-1)?.payload["output"]).toMatchObject({
      text: "word 1 word 2 word 3 word 4 word 5 "
    })
  })

  it("are read by EventSource, which ends with the run", async () => {
    const { api } = await served({ helper: agentWith([saying("Hello there.")]) })
    const begun = await post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "mine" })
    const original = chunksOf(await begun.text())
    const source = new EventSource(`${api}/runs/mine/events`)
    const seen: Array<string> = []
    source.onmessage = ({ data }) => void seen.push(String(data))
    await vi.waitFor(() => expect(source.readyState).toBe(EventSource.CLOSED), { timeout: 10_000 })
    expect(seen.map(json => JSON.parse(json))).toEqual(original)
  })

  it("stop within 100 ms when their client leaves, and tell so", async () => {
    const script = wordByWord()
    const { api } = await served({ helper: agentWith([], { model: script.model }) })
    const response = await post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "mine" })
    const reader = readerOf(response)
    await script.say(1)
    await readUntil(reader, text => text.includes("word 1"))
    const left = performance.now()
    await reader.cancel()
    await vi.waitFor(() => expect(script.stopped()).toBeDefined(), { interval: 5 })
    // Twice what is promised: the machines that run this do other things as well.
    expect((script.stopped() ?? 0) - left).toBeLessThan(200)
    const told = await (await fetch(`${api}/runs/mine/events`)).text()
    expect(types(chunksOf(told)).slice(-2)).toEqual(["abort", "finish"])
  })

  it("go on without anybody when their request says so", async () => {
    const script = wordByWord()
    const { api } = await served({ helper: agentWith([], { model: script.model }) })
    const headers = { "x-on-disconnect": "continue" }
    const reader = readerOf(
      await post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "mine" }, headers)
    )
    await reader.cancel()
    await script.say(5)
    const told = await (await fetch(`${api}/runs/mine/events`)).text()
    expect(chunksOf(told).at(-1)?.payload["stepResult"]).toMatchObject({ reason: "stop" })
    expect(script.stopped()).toBeUndefined()
  })

  it("stop when nobody has come back in time", async () => {
    const script = wordByWord()
    const { api } = await served({ helper: agentWith([], { model: script.model }) })
    const headers = { "x-on-disconnect": "30" }
    const reader = readerOf(
      await post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "mine" }, headers)
    )
    await reader.cancel()
    await vi.waitFor(() => expect(script.stopped()).toBeDefined())
  })

  it("are stopped by their own route, whoever reads them", async () => {
    const script = wordByWord()
    const { api } = await served({ helper: agentWith([], { model: script.model }) })
    const response = await post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "mine" })
    await script.say(1)
    expect(await (await post(`${api}/runs/mine/stop`, {})).json()).toEqual({ stopped: true })
    expect(types(chunksOf(await response.text())).slice(-2)).toEqual(["abort", "finish"])
    expect(await (await post(`${api}/runs/mine/stop`, {})).json()).toEqual({ stopped: false })
  })

  it("are 404 when nobody knows them, and 410 when they are gone", async () => {
    const { api } = await served(
      { helper: agentWith([saying("a ".repeat(200)), saying("Short.")]) },
      { runLog: { maxChunks: 64, maxAgeMs: 700, maxRuns: 10 } }
    )
    expect((await fetch(`${api}/runs/none/events`)).status).toBe(404)
    expect((await post(`${api}/runs/none/stop`, {})).status).toBe(404)
    await (await post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "long" })).text()
    const trimmed = await fetch(`${api}/runs/long/events`)
    expect([trimmed.status, await trimmed.json()]).toEqual([
      410,
      { error: "This part of the run is not kept any more" }
    ])
    expect((await fetch(`${api}/runs/long/events?offset=200`)).status).toBe(200)
    await vi.waitFor(
      async () => {
        const expired = await fetch(`${api}/runs/long/events?offset=200`)
        await expired.body?.cancel()
        expect(expired.status).toBe(410)
      },
      { timeout: 5000 }
    )
  })

  it("are kept as long as all of them together are not too large: the oldest go first", async () => {
    const { api } = await served(
      { helper: agentWith(["a", "b", "c"].map(letter => saying(`${letter} `.repeat(40)))) },
      { runLog: { maxTotalBytes: 9000 } }
    )
    const sizes: Array<number> = []
    for (const runId of ["one", "two", "three"]) {
      const told = await (await post(`${api}/agents/helper/stream`, { messages: "Hello", runId })).text()
      sizes.push(told.length)
    }
    // Two of them are too large, and one is not.
    expect(Math.min(...sizes)).toBeGreaterThan(5000)
    expect(Math.max(...sizes)).toBeLessThan(8500)
    const statuses = await Promise.all(
      ["one", "two", "three"].map(async runId => {
        const { body, status } = await fetch(`${api}/runs/${runId}/events`)
        await body?.cancel()
        return status
      })
    )
    expect(statuses).toEqual([410, 410, 200])
  })

  it("are left by streams that are too old, which say so", async () => {
    const script = wordByWord()
    const { api } = await served(
      { helper: agentWith([], { model: script.model }) },
      { streams: { maxAgeMs: 300 } }
    )
    const body = await (await post(`${api}/agents/helper/stream`, { messages: "Hello" })).text()
    expect(chunksOf(body).at(-1)).toMatchObject({ type: "error", from: "SYSTEM" })
    expect(body).toContain("too old")
    await vi.waitFor(() => expect(script.stopped()).toBeDefined())
    const tasks = await (await fetch(`${api}/background-tasks/stream`)).text()
    expect(tasks).toContain("too old")
  })

  it("go on when the server says so, unless their request says something else", async () => {
    const script = wordByWord()
    const { api } = await served(
      { helper: agentWith([], { model: script.model }) },
      { onDisconnect: "continue" }
    )
    const send = (headers: Readonly<Record<string, string>>) =>
      post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "mine" }, headers)
    await readerOf(await send({})).cancel()
    await script.say(2)
    expect(script.stopped()).toBeUndefined()
    const headers = { "x-on-disconnect": "abort" }
    await readerOf(await fetch(`${api}/runs/mine/events`, { headers })).cancel()
    await vi.waitFor(() => expect(script.stopped()).toBeDefined())
  })

  it("refuse a disconnect policy that is none", async () => {
    const { api } = await served({ helper: agentWith([]) })
    for (const policy of ["maybe", "-1", "999999999"]) {
      const headers = { "x-on-disconnect": policy }
      const response = await post(`${api}/agents/helper/stream`, { messages: "Hello" }, headers)
      expect(response.status).toBe(400)
    }
  })
})

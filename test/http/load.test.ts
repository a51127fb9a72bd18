/** Many streams, and readers that do not read. `npx tsx test/http/load.mjs` measures a thousand. */
import { connect, type Socket } from "node:net"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { modelOf } from "../agent/kit.js"
import { agentWith, chunksOf, post, readerOf, readUntil, served } from "./kit.js"

/** A provider that says as many words as it is asked for, each of a kilobyte, and counts them. */
const flood = (most: number) => {
  let said = 0
  const delta = "x".repeat(1024)
  const { model } = modelOf([
    () =>
      (async function* () {
        yield { type: "text-start", id: "t" }
        for (; said < most; said++) yield { type: "text-delta", id: "t", delta }
        yield { type: "text-end", id: "t" }
        yield { type: "finish", reason: "stop", usage: {} }
      })()
  ])
  return { model, said: () => said }
}

/** Asks, and reads nothing of the answer. */
const stalled = async (url: string): Promise<Socket> => {
  const { hostname, pathname, port } = new URL(url)
  const body = JSON.stringify({ messages: "Hello", runId: "mine" })
  const socket = connect({ host: hostname, port: Number(port) })
  socket.pause()
  socket.write(
    `POST ${pathname} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  )
  onTestFinished(() => void socket.destroy())
  return socket
}

/** The number, once it has not changed for a while. */
const settled = async (count: () => number): Promise<number> => {
  let last = -1
  await vi.waitFor(
    () => {
      const now = count()
      const isSettled = now === last && now > 0
      last = now
      expect(isSettled).toBe(true)
    },
    { interval: 400, timeout: 15_000 }
  )
  return last
}

describe("under load", () => {
  it("holds the run of a reader that stalls, and not its memory", async () => {
    const most = 50_000
    const { model, said } = flood(most)
    const { api } = await served({ helper: agentWith([], { model }) })
    const socket = await stalled(`${api}/agents/helper/stream`)
    // 50 MB are there to be said. What the kernel buffers for both ends of a connection is some megabytes.
    const held = await settled(said)
    expect(held).toBeLessThan(12_000)
    const left = performance.now()
    socket.destroy()
    const told = await (await fetch(`${api}/runs/mine/events?offset=${Math.floor(held / 2)}`)).text()
    expect(told).toContain('"type":"abort"')
    expect(performance.now() - left).toBeLessThan(5000)
    expect(said()).toBeLessThan(held + 200)
  })

  it("has many streams open at once, each with its own text", async () => {
    const count = 50
    let release = (): void => undefined
    const gate = new Promise<void>(resolve => {
      release = resolve
    })
    const sources = Array.from(
      { length: count },
      (_, index) => () =>
        (async function* () {
          yield { type: "text-start", id: "t" }
          yield { type: "text-delta", id: "t", delta: "first " }
          await gate
          yield { type: "text-delta", id: "t", delta: `of ${index}` }
          yield { type: "text-end", id: "t" }
          yield { type: "finish", reason: "stop", usage: {} }
        })()
    )
    const { model } = modelOf(sources)
    const { api } = await served({ helper: agentWith([], { model }) })
    const open = await Promise.all(
      sources.map(async () => {
        const reader = readerOf(await post(`${api}/agents/helper/stream`, { messages: "Hello" }))
        const text = await readUntil(reader, so => so.includes("first"))
        return { reader, text }
      })
    )
    release()
    const ends = await Promise.all(
      open.map(async ({ reader, text }) => {
        const chunks = chunksOf(text + (await readUntil(reader, () => false)))
        return JSON.stringify(chunks.at(-1)?.payload["output"])
      })
    )
    expect(new Set(ends).size).toBe(count)
  }, 60_000)
})

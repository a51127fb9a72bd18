/** A thousand streams on one server, and readers that are slow, in a process of the server's own. */
import { describe, expect, it, vi } from "vitest"
import { ask, type LoadServer, loadServer } from "./loadKit.js"

const count = 1000
const mebibyte = 2 ** 20

/** Streams that have begun. */
const open = async ({ url }: LoadServer, times: number, many = count) => {
  const clients = Array.from({ length: many }, (_, index) =>
    ask(url, "gated", `name:s${index}e times:${times}`)
  )
  await Promise.all(clients.map(({ until }) => until("first ")))
  return clients
}

describe("a server", () => {
  it("has a thousand open streams, each with its own text, and holds nothing of them afterwards", async () => {
    const server = await loadServer()
    const round = async (many: number) => {
      const clients = await open(server, 3, many)
      expect(await server.figures()).toMatchObject({ streams: many, sockets: many, runs: many })
      await server.release()
      await Promise.all(clients.map(({ until }) => until("data: [DONE]\n\n")))
      for (const [index, { text }] of clients.entries()) {
        const own = Array.from(text().matchAll(/"text":"(s\d+e) "/g), ([, name]) => name)
        expect(own).toEqual(Array.from({ length: 3 }, () => `s${index}e`))
      }
      for (const { socket } of clients) socket.destroy()
      await vi.waitFor(
        async () =>
          expect(await server.figures()).toMatchObject({ streams: 0, runs: 0, detached: 0, sockets: 0 }),
        { timeout: 20_000, interval: 100 }
      )
      return server.figures(true)
    }
    // What the first round leaves is what the process keeps for good: code, and what is compiled of it.
    const few = await round(100)
    const many = await round(count)
    // A log that stays is 20 KiB of each.
    expect(many.heap - few.heap).toBeLessThan(8 * mebibyte)
  }, 60_000)

  it("ends hundreds of runs that go on with a second of work, and those whose readers have stalled", async () => {
    const server = await loadServer()
    const many = 200
    const clients = await open(server, 3, many)
    const stalled = Array.from({ length: 5 }, () => ask(server.url, "flood", "Hello", true))
    await vi.waitFor(async () => expect((await server.figures()).streams).toBe(many + stalled.length), {
      timeout: 10_000
    })
    const { endedCpu } = await server.close()
    await Promise.all(clients.map(({ closed }) => closed))
    const whole = clients.filter(({ text }) => text().includes("data: [DONE]\n\n"))
    expect(whole).toHaveLength(many)
    // Those that had no time to tell their end say why in a frame.
    const why = clients.filter(({ text }) => /"type":"abort"|The server is shutting down/.test(text()))
    expect(why).toHaveLength(many)
    // What the process has worked: it shares this machine, and a clock would measure the others.
    expect(endedCpu).toBeLessThan(1500)
  }, 60_000)

  it("holds the run of a reader that stalls, or reads a kibibyte in a second, and not what it could say", async () => {
    const server = await loadServer()
    const before = await server.figures(true)
    const client = ask(server.url, "flood", "Hello", true)
    // What the kernel buffers for both ends is some megabytes; then nothing is said any more.
    let said = -1
    await vi.waitFor(
      async () => {
        const last = said
        said = (await server.figures()).said
        expect([said > 0, said]).toEqual([true, last])
      },
      { interval: 400, timeout: 20_000 }
    )
    const seconds = 3
    for (let second = 0; second < seconds; second++) {
      client.socket.read(1024)
      await new Promise(resolve => setTimeout(resolve, 1000))
    }
    const held = await server.figures(true)
    expect(held.said).toBeLessThan(12 * 1024)
    expect(held.heap - before.heap).toBeLessThan(24 * mebibyte)
    expect(held.peak - before.rss).toBeLessThan(64 * mebibyte)
    client.socket.destroy()
    await vi.waitFor(
      async () => expect(await server.figures()).toMatchObject({ streams: 0, runs: 0, sockets: 0 }),
      { timeout: 10_000, interval: 100 }
    )
  }, 60_000)
})

/** Faults that users of other servers reported, as scripts: H01, H06, H07, H10, H11, S16, S17, M11 of the field cases. */
import { mkdtemp, rm } from "node:fs/promises"
import { createServer, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createGzip } from "node:zlib"
import { serve } from "eddy/http"
import { createTool, Eddy, LibSQLStore } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { EventSource } from "eventsource"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { agentWith, calling, chunksOf, framesOf, post, readerOf, readUntil, saying, served } from "./kit.js"

const { finish, hang, pause, text } = ScriptedModel

const letters = "Grüße, 世界 🎉 – ok"

describe("what arrives", () => {
  const paced: ScriptedModel.Turn = [
    ...["one ", "two ", "three ", "four ", "five "].flatMap((word, index) => [
      ...(index === 0 ? [] : [pause("100 millis")]),
      ...text(word, `t${index}`)
    ]),
    finish("stop")
  ]

  /** When each word was there, from the moment of the request on. */
  const arrivals = async (url: string) => {
    const begun = performance.now()
    const response = await post(url, { messages: "Hello" }, { "accept-encoding": "gzip, br" })
    const reader = readerOf(response)
    const words: Array<number> = []
    let opened: number | undefined
    let so = ""
    const decoder = new TextDecoder()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return { response, opened: opened ?? Number.NaN, words }
      opened ??= performance.now() - begun
      so += decoder.decode(value, { stream: true })
      const count = Array.from(so.matchAll(/"type":"text-delta"/g)).length
      while (words.length < count) words.push(performance.now() - begun)
    }
  }

  it("comes when it is said, and asks nobody to hold it back (H01)", async () => {
    const turns = Array.from({ length: 3 }, () => paced)
    const { api } = await served({ helper: agentWith(turns) })
    const url = `${api}/agents/helper/stream`
    const tries = [await arrivals(url), await arrivals(url), await arrivals(url)]
    for (const { response, words } of tries) {
      expect(response.headers.get("content-encoding")).toBeNull()
      expect(response.headers.get("cache-control")).toContain("no-transform")
      expect(words).toHaveLength(5)
      // They came one by one: all together at the end would be no time apart.
      const gaps = words.slice(1).map((at, index) => at - (words[index] ?? 0))
      expect(gaps.reduce((sum, gap) => sum + gap, 0)).toBeGreaterThan(300)
    }
    expect(Math.min(...tries.map(({ opened }) => opened))).toBeLessThan(150)
    const steady = tries.map(({ words }) =>
      Math.max(...words.slice(1).map((at, index) => Math.abs(at - (words[index] ?? 0) - 100)))
    )
    expect(Math.min(...steady)).toBeLessThan(100)
  })

  it("is not compressed by what heeds `no-transform` (H01, behind a middleware)", async () => {
    const { api } = await served({ helper: agentWith([paced]) })
    const { hostname, port } = new URL(api)
    // As the usual middleware does it: what may be transformed is compressed, and flushed at its end.
    const proxy = createServer((asked, answer) => {
      const { headers, method, url } = asked
      const onward = request({ hostname, port, path: url, method, headers }, response => {
        const mayTransform = !/no-transform/.test(response.headers["cache-control"] ?? "")
        if (mayTransform) {
          answer.writeHead(response.statusCode ?? 500, { ...response.headers, "content-encoding": "gzip" })
          response.pipe(createGzip()).pipe(answer)
        } else {
          answer.writeHead(response.statusCode ?? 500, response.headers)
          response.pipe(answer)
        }
      })
      asked.pipe(onward)
    })
    await new Promise<void>(resolve => proxy.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => void proxy.close())
    const address = proxy.address()
    const at = typeof address === "object" && address !== null ? address.port : 0
    const { response, words } = await arrivals(`http://127.0.0.1:${at}/api/agents/helper/stream`)
    expect(response.headers.get("content-encoding")).toBeNull()
    expect((words[4] ?? 0) - (words[0] ?? 0)).toBeGreaterThan(300)
    const models = await fetch(`http://127.0.0.1:${at}/api/agents`)
    expect(models.headers.get("content-encoding")).toBe("gzip")
    await models.text()
  })

  it("has the same letters, byte by byte and without a last line end (H07)", async () => {
    const { api } = await served({ helper: agentWith([saying(letters)]) })
    const response = await post(`${api}/agents/helper/stream`, { messages: "Hello" })
    const bytes = new Uint8Array(await response.arrayBuffer())
    const decoder = new TextDecoder("utf-8", { fatal: true })
    let said = ""
    for (const byte of bytes) said += decoder.decode(Uint8Array.of(byte), { stream: true })
    said += decoder.decode()
    expect(said).toBe(new TextDecoder().decode(bytes))
    expect(said).not.toContain("\ufffd")
    expect(chunksOf(said).at(-1)?.payload["output"]).toMatchObject({ text: letters })
    // No frame is split by anything but an empty line, and each is whole without the next.
    expect(framesOf(said.trimEnd()).length).toBe(framesOf(said).length)
  })

  it("is read by a pipe of transforms as by a parser of callbacks (H11)", async () => {
    const { api } = await served({ helper: agentWith([saying(letters), saying(letters)]) })
    const read = async (how: (body: ReadableStream<Uint8Array>) => Promise<string>) => {
      const response = await post(`${api}/agents/helper/stream`, { messages: "Hello" })
      if (response.body === null) return expect.fail()
      const chunks = chunksOf(await how(response.body))
      return [chunks.map(({ type }) => type), chunks.at(-1)?.payload["output"]]
    }
    const called = await read(async body => {
      const reader = body.getReader()
      return readUntil(reader, () => false)
    })
    const piped = await read(async body => {
      let all = ""
      const decoder = new TextDecoder()
      const decoded = new TransformStream<Uint8Array, string>({
        transform: (piece, controller) => controller.enqueue(decoder.decode(piece, { stream: true }))
      })
      const kept = new WritableStream<string>({
        write: piece => {
          all += piece
        }
      })
      await body.pipeThrough(decoded).pipeTo(kept)
      return all
    })
    expect(piped[0]).toEqual(called[0])
    expect([piped[1], called[1]]).toMatchObject([{ text: letters }, { text: letters }])
  })
})

describe("clients that come back", () => {
  it("are told that a run is over, and never begin it again (H10)", async () => {
    let count = 0
    const act = createTool({
      id: "act",
      description: "Does something once.",
      execute: async () => {
        count++
        return "done"
      }
    })
    const { api } = await served({
      helper: agentWith([calling("act"), saying("Done.")], { tools: { act } })
    })
    await (await post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "mine" })).text()
    const statuses: Array<number> = []
    const source = new EventSource(`${api}/runs/mine/events`, {
      fetch: async (url, init) => {
        const response = await fetch(url, init)
        statuses.push(response.status)
        return response
      }
    })
    onTestFinished(() => source.close())
    // It comes back by itself after the end, and stays away after 204.
    await vi.waitFor(() => expect(source.readyState).toBe(source.CLOSED), { timeout: 15_000 })
    expect(statuses).toEqual([200, 204])
    const again = await fetch(`${api}/runs/mine/events?offset=100000`)
    expect([again.status, await again.text()]).toEqual([204, ""])
    expect(count).toBe(1)
  })

  it("find the rest after a cut, and are refused when they are nobody any more (H06)", async () => {
    let isKnown = true
    const words = ["one ", "two "].flatMap(word => text(word, word))
    const { api, serving } = await served(
      { helper: agentWith([[...words, hang]]) },
      { authenticate: () => (isKnown ? { id: "ada", resource: "ada" } : undefined), onDisconnect: "continue" }
    )
    const response = await post(`${api}/agents/helper/stream`, { messages: "Hello", runId: "mine" })
    const reader = readerOf(response)
    const seen = await readUntil(reader, so => so.includes("two "))
    await reader.cancel()
    // (b) What was read is not told again; the rest is.
    const last = chunksOf(seen.slice(0, seen.lastIndexOf("\n\n") + 2)).length - 1
    const rest = readerOf(
      await fetch(`${api}/runs/mine/events`, { headers: { "last-event-id": String(last - 1) } })
    )
    const next = await readUntil(rest, so => so.includes("data:"))
    expect(next).toContain(`id: ${last}\n`)
    expect(next).not.toContain(`id: ${last - 1}\n`)
    // (c) Who is not known any more is told so, not left to wait.
    isKnown = false
    const refused = await fetch(`${api}/runs/mine/events`)
    expect([refused.status, await refused.json()]).toEqual([401, { error: "Invalid or expired token" }])
    // (a) A server that ends says so to whoever still reads: the stream never just ends.
    const end = readUntil(rest, () => false)
    await serving.close()
    expect(await end).toMatch(/"type":"abort"|shutting down/)
  })
})

describe("chunks that few clients know", () => {
  it("are passed on by each protocol or left out, and the text arrives (S16)", async () => {
    const look = createTool({
      id: "look",
      description: "Looks.",
      execute: async (_, { writer }) => {
        await writer?.custom({ type: "data-workspace", data: { a: 1 } })
        await writer?.write({ type: "zz-future", anything: true })
        return "seen"
      }
    })
    const turns = [calling("look"), saying("Found.")]
    const body = { messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "Look." }] }] }
    const asked: ReadonlyArray<readonly [path: string, body: object, last: RegExp]> = [
      ["agents/helper/stream", { messages: "Look." }, /"type":"finish"/],
      ["agents/helper/chat", { id: "c", ...body }, /"type":"finish"/],
      [
        "agents/helper/ag-ui",
        {
          threadId: "t",
          runId: "r",
          state: {},
          tools: [],
          context: [],
          forwardedProps: {},
          messages: [{ id: "m", role: "user", content: "Look." }]
        },
        /RUN_FINISHED/
      ],
      [
        "v1/chat/completions",
        { model: "helper", stream: true, messages: [{ role: "user", content: "Look." }] },
        /"finish_reason":"stop"/
      ]
    ]
    for (const [path, given, last] of asked) {
      const { api } = await served({ helper: agentWith(turns, { tools: { look } }) })
      const response = await post(`${api}/${path}`, given)
      const said = await response.text()
      expect([path, response.status]).toEqual([path, 200])
      expect([path, /Found|Fou/.test(said), last.test(said)]).toEqual([path, true, true])
      if (path.endsWith("/stream") || path.endsWith("/chat")) expect(said).toContain("data-workspace")
    }
  })

  it("tell a processor that stopped the answer, in one message that ends (S17)", async () => {
    const guard = agentWith([[...text("one "), ...text("two ", "b"), finish("stop")]], {
      outputProcessors: [
        {
          id: "guard",
          processOutputStream: (part, { abort }) => {
            if (part.type === "text-delta" && part.payload.text.includes("two")) abort("not allowed")
            return part
          }
        }
      ]
    })
    const { api } = await served({ helper: guard })
    const response = await post(`${api}/agents/helper/chat`, {
      id: "c",
      messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "Hello" }] }]
    })
    const said = await response.text()
    const parts = framesOf(said)
      .map(frame => frame.slice("data: ".length))
      .filter(json => json !== "[DONE]")
      .map((json): { readonly type: string; readonly finishReason?: string } => JSON.parse(json))
    const types = parts.map(({ type }) => type)
    expect(types.filter(type => type === "finish")).toHaveLength(1)
    expect(types.filter(type => type === "text-start").length).toBe(
      types.filter(type => type === "text-end").length
    )
    expect(said).toContain("not allowed")
    expect(said).not.toContain("two ")
    expect(said.endsWith("data: [DONE]\n\n")).toBe(true)
  })
})

describe("two servers on one store", () => {
  it("give the same view of a thread, of runs that were broken off too, and replay none of another (M11)", async () => {
    const folder = await mkdtemp(join(tmpdir(), "eddy-http-"))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const start = async (turns: ReadonlyArray<ScriptedModel.Turn>) => {
      const eddy = new Eddy({
        agents: { helper: agentWith(turns) },
        storage: new LibSQLStore({ url: `file:${folder}/threads.db` })
      })
      const serving = await serve(eddy)
      onTestFinished(async () => {
        await serving.close()
        await eddy.shutdown()
      })
      return `${serving.url}/api`
    }
    const one = await start([saying("Answer."), [...text("half of an answer"), hang]])
    const two = await start([saying("Later.")])
    const memory = { thread: "t1", resource: "ada" }
    await (await post(`${one}/agents/helper/stream`, { messages: "First", runId: "r1", memory })).text()
    const broken = readerOf(
      await post(`${one}/agents/helper/stream`, { messages: "Second", runId: "r2", memory })
    )
    await readUntil(broken, so => so.includes("half"))
    expect((await post(`${one}/runs/r2/stop`, {})).status).toBe(200)
    await readUntil(broken, () => false)
    // Its end is known where it ran; the other server has never heard of it.
    const told = await (await fetch(`${one}/runs/r2/events`)).text()
    expect(
      chunksOf(told)
        .map(({ type }) => type)
        .slice(-2)
    ).toEqual(["abort", "finish"])
    expect((await fetch(`${two}/runs/r2/events`)).status).toBe(404)

    const view = async (api: string) => {
      const response = await fetch(`${api}/memory/threads/t1/messages?format=model`)
      return response.json()
    }
    const [here, there] = [await view(one), await view(two)]
    expect(there).toEqual(here)
    expect(JSON.stringify(here)).toContain("Answer.")
    // What was said before the end is remembered, once, and the same everywhere: it is what the store has, and no replay.
    expect(JSON.stringify(here).split("half of an answer")).toHaveLength(2)

    // The next turn, on the other server, goes on with the same conversation.
    await (await post(`${two}/agents/helper/stream`, { messages: "Third", runId: "r3", memory })).text()
    expect(await view(one)).toEqual(await view(two))
    expect(JSON.stringify(await view(one))).toContain("Later.")
  })
})

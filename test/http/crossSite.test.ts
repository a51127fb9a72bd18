/** Where a session is a cookie, the browser sends it with whatever a page of another site posts. */
import { request } from "node:http"
import type { ServeOptions } from "eddy/http"
import { createHandler } from "eddy/http"
import { createTool, Eddy } from "eddy/promise"
import { FastCheck } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { refuseCrossSite } from "../../src/http/crossSite.js"
import { agentWith, calling, chunksOf, post, saying, served } from "./kit.js"

/** A session in a cookie. */
const authenticate: ServeOptions["authenticate"] = ({ headers }) => {
  const name = /\bsession=(alice)\b/.exec(headers["cookie"] ?? "")?.[1]
  return name === undefined ? undefined : { id: name, resource: name }
}

const session = { cookie: "session=alice" }

const json = { "content-type": "application/json" }

const ask = createTool({
  id: "ask",
  description: "Asks the user.",
  background: { enabled: true },
  execute: async (_, { agent: { resumeData, suspend } }) =>
    resumeData === undefined ? suspend?.({ awaiting: "answer" }) : { answer: resumeData }
})

/** Posts without anything that the test does not name: `fetch` adds headers of its own. */
const send = (url: string, headers: Readonly<Record<string, string>>, body = "", method = "POST") =>
  new Promise<number>((resolve, reject) => {
    const sent = request(url, { method, headers: { "content-length": body.length, ...session, ...headers } })
    sent.on("error", reject)
    sent.on("response", response => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.end(body)
  })

const evil = { origin: "https://evil.example" }

describe("a request that changes something", () => {
  const setUp = async (options: ServeOptions = {}) => {
    const agent = agentWith([calling("ask"), saying("It waits.")], { tools: { ask } })
    const { api, url } = await served({ helper: agent }, { authenticate, ...options })
    const told = await (
      await post(`${api}/agents/helper/stream`, { messages: "Hi", runId: "r" }, session)
    ).text()
    const started = chunksOf(told).find(({ type }) => type === "background-task-started")
    const taskId = String(started?.payload["taskId"])
    const status = async (): Promise<unknown> =>
      JSON.parse(await (await fetch(`${api}/background-tasks/${taskId}`, { headers: session })).text()).status
    return {
      api,
      url,
      taskId,
      status,
      cancel: `${api}/background-tasks/${taskId}/cancel`,
      stop: `${api}/runs/r/stop`
    }
  }

  it("is refused when a form of another site may have sent it", async () => {
    const { cancel, status, stop } = await setUp()
    const form = { "content-type": "application/x-www-form-urlencoded" }
    const forged: ReadonlyArray<readonly [Readonly<Record<string, string>>, number]> = [
      [{}, 415],
      [evil, 403],
      [{ origin: "null" }, 403],
      [{ ...evil, "sec-fetch-site": "cross-site" }, 403],
      [{ ...evil, "sec-fetch-site": "same-site" }, 403],
      [{ ...evil, ...form }, 403],
      [{ ...evil, "content-type": "text/plain" }, 403],
      [form, 415],
      [{ ...evil, ...json, "sec-fetch-site": "cross-site" }, 403],
      // Browsers add these by themselves.
      [{ ...evil, authorization: "Basic YWxpY2U6c2VjcmV0" }, 403],
      // Proxies add these to everything.
      [{ ...evil, "x-forwarded-for": "10.0.0.1", "x-request-id": "1" }, 403]
    ]
    for (const [headers, refused] of forged) {
      expect([headers, await send(stop, headers), await send(cancel, headers)]).toEqual([
        headers,
        refused,
        refused
      ])
    }
    expect(await status()).toBe("suspended")
  })

  it.each<readonly [string, (url: string) => Readonly<Record<string, string>>]>([
    ["is JSON", () => json],
    ["is JSON, by way of a proxy of the page", () => ({ ...json, origin: "http://localhost:5173" })],
    ["has a custom header", () => ({ ...evil, "x-requested-with": "fetch" })],
    ["has credentials of its own", () => ({ authorization: "Bearer token" })],
    ["comes from its own site", url => ({ origin: url })],
    [
      "comes from its own site, by way of a proxy",
      () => ({ origin: "https://app.example", "sec-fetch-site": "same-origin" })
    ]
  ])("is carried out when it %s", async (_, headers) => {
    const { cancel, status, url } = await setUp()
    expect([await send(cancel, headers(url)), await status()]).toEqual([200, "cancelled"])
  })

  it("is carried out for pages that `cors` names", async () => {
    const { cancel, status } = await setUp({ cors: { origins: ["https://app.example"], credentials: true } })
    const page = { ...json, "sec-fetch-site": "cross-site" }
    expect(await send(cancel, { ...page, ...evil })).toBe(403)
    expect(await send(cancel, { ...page, origin: "https://app.example" })).toBe(200)
    expect(await status()).toBe("cancelled")
  })

  it("is carried out without a body where it comes from no browser: it has no origin and no session", async () => {
    const { api } = await served({ helper: agentWith([]) })
    expect((await fetch(`${api}/runs/r/stop`, { method: "POST" })).status).toBe(404)
    expect((await fetch(`${api}/runs/r/stop`, { method: "POST", headers: session })).status).toBe(415)
  })

  it("is told apart by its address where there is no header `host`", async () => {
    const eddy = new Eddy({ agents: { helper: agentWith([]) } })
    const { handler, close } = await createHandler(eddy)
    onTestFinished(async () => {
      await close()
      await eddy.shutdown()
    })
    const stop = async (headers: Readonly<Record<string, string>>) =>
      (await handler(new Request("https://app.example/api/runs/r/stop", { method: "POST", headers }))).status
    expect(await stop({ origin: "https://app.example" })).not.toBe(403)
    expect(await stop(evil)).toBe(403)
  })

  it("that reads only is never refused for where it comes from", async () => {
    const { api } = await setUp()
    const read = await fetch(`${api}/agents`, {
      headers: { ...session, ...evil, "sec-fetch-site": "cross-site" }
    })
    expect(read.status).toBe(200)
  })
})

it("whatever a page of another site can send without a preflight is refused", () => {
  const simple = FastCheck.record({
    "content-type": FastCheck.constantFrom(
      undefined,
      "text/plain",
      "text/plain; application/json",
      "multipart/form-data; boundary=application/json",
      "application/x-www-form-urlencoded"
    ),
    origin: FastCheck.constantFrom(
      "null",
      "https://evil.example",
      "https://app.example.evil.example",
      "file://",
      "x"
    ),
    "sec-fetch-site": FastCheck.constantFrom(undefined, "cross-site", "same-site"),
    accept: FastCheck.string(),
    "accept-language": FastCheck.string(),
    authorization: FastCheck.constantFrom(undefined, "Basic YQ==", "negotiate YQ==")
  })
  FastCheck.assert(
    FastCheck.property(simple, headers => {
      const sender = { method: "POST", headers, host: "app.example" }
      const cors = { origins: new Set(["https://friend.example"]), credentials: true }
      expect(refuseCrossSite(sender, cors)?.status).toBe(403)
      expect(refuseCrossSite(sender, undefined)?.status).toBe(403)
    })
  )
})

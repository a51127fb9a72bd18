/** Who may see and do what. */

import { request } from "node:http"
import { connect } from "node:net"
import { type ServeOptions, serve } from "eddy/http"
import { createTool } from "eddy/promise"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { modelOf } from "../agent/kit.js"
import { agentWith, calling, chunksOf, post, readerOf, saying, served, types } from "./kit.js"

const as = (name: string) => ({ authorization: `Bearer ${name}` })

const authenticate: ServeOptions["authenticate"] = ({ headers }) => {
  const name = /^Bearer (alice|bob)$/.exec(headers["authorization"] ?? "")?.[1]
  return name === undefined ? undefined : { id: name, resource: name }
}

const ask = createTool({
  id: "ask",
  description: "Asks somebody.",
  background: { enabled: true },
  execute: async (_, { agent: { resumeData, suspend } }) =>
    resumeData === undefined ? suspend?.({ awaiting: "answer" }) : { answer: resumeData }
})

const memory = { thread: "t1", resource: "whoever" }

/** A server on which alice has a thread, a run and a task that waits. */
const withAlice = async (isInThread: boolean) => {
  const agent = agentWith([calling("ask"), saying("It waits."), saying("Done.")], { tools: { ask } })
  const { api } = await served({ helper: agent }, { authenticate })
  const body = { messages: "Hello", runId: "hers", ...(isInThread ? { memory } : {}) }
  await (await post(`${api}/agents/helper/stream-until-idle`, body, as("alice"))).text()
  const list = await fetch(`${api}/background-tasks`, { headers: as("alice") })
  const { tasks }: { readonly tasks: ReadonlyArray<{ readonly id: string }> } = JSON.parse(await list.text())
  const ofRun = await fetch(`${api}/background-tasks?runId=hers`, { headers: as("alice") })
  const found: typeof tasks = JSON.parse(await ofRun.text()).tasks
  return { api, taskId: found[0]?.id ?? "", listed: tasks.length }
}

describe("a server that knows who asks", () => {
  it("lets nobody in whom it does not know, and reads nothing of what they send", async () => {
    const { api } = await served({ helper: agentWith([]) }, { authenticate, maxBodyBytes: 10 })
    for (const headers of [{}, as("mallory")]) {
      const response = await post(`${api}/agents/helper/stream`, { messages: "x".repeat(1000) }, headers)
      expect([response.status, await response.json()]).toEqual([401, { error: "Invalid or expired token" }])
    }
    expect((await fetch(`${api}/nowhere`)).status).toBe(401)
    const broken = await served(
      { helper: agentWith([]) },
      { authenticate: () => Promise.reject(new Error("database down")) }
    )
    expect((await fetch(`${broken.api}/agents`, { headers: as("alice") })).status).toBe(401)
  })

  it.each([true, false])("shows nobody what is another's (in a thread: %s)", async isInThread => {
    const { api, listed, taskId } = await withAlice(isInThread)
    expect(listed).toBe(1)
    const call = { runId: "hers", toolCallId: "c1", resumeData: "yes" }
    const asked: ReadonlyArray<readonly [method: string, path: string, body?: unknown]> = [
      ["GET", "/runs/hers/events"],
      ["POST", "/runs/hers/stop", {}],
      ["POST", "/agents/helper/observe", { runId: "hers" }],
      ["POST", "/agents/helper/resume-stream", call],
      ["POST", "/agents/helper/resume-stream", { ...call, memory }],
      ["GET", `/background-tasks/${taskId}`],
      ["POST", `/background-tasks/${taskId}/cancel`, {}],
      ["POST", `/background-tasks/${taskId}/resume`, { resumeData: "yes" }],
      ...(isInThread
        ? ([
            ["GET", "/memory/threads/t1"],
            ["GET", "/memory/threads/t1/messages"],
            ["PATCH", "/memory/threads/t1", { title: "Mine" }],
            ["DELETE", "/memory/threads/t1"],
            ["POST", "/memory/threads", { threadId: "t1" }],
            ["POST", "/agents/helper/stream", { messages: "Hello", memory }]
          ] as const)
        : [])
    ]
    for (const [method, path, body] of asked) {
      const send = (name: string, at: string) =>
        fetch(`${api}${at}`, {
          method,
          headers: { ...as(name), "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) })
        })
      const foreign = await send("bob", path)
      expect([path, foreign.status]).toEqual([path, 404])
      const said = await foreign.text()
      expect(said).not.toContain("alice")
      // What there is not looks the same.
      const unknown = await send("bob", path.replace(/hers|t1(?=\/|$)/, "nothing").replace(taskId, "nothing"))
      if (path !== "/memory/threads" && !path.startsWith("/agents")) {
        expect([unknown.status, await unknown.text()]).toEqual([404, said])
      }
    }
    const tasks = await fetch(`${api}/background-tasks?runId=hers&resourceId=alice`, { headers: as("bob") })
    expect(await tasks.json()).toEqual({ tasks: [], total: 0 })
    const threads = await fetch(`${api}/memory/threads?resourceId=alice`, { headers: as("bob") })
    expect(await threads.json()).toMatchObject({ threads: [], total: 0 })

    // It is still alice's, and as it was.
    const own = await fetch(`${api}/background-tasks/${taskId}`, { headers: as("alice") })
    expect(await own.json()).toMatchObject({ status: "suspended" })
    const resumed = await post(
      `${api}/agents/helper/resume-stream`,
      { ...call, ...(isInThread ? { memory } : {}) },
      as("alice")
    )
    expect(types(chunksOf(await resumed.text()))).toContain("background-task-completed")
  })

  it.each([
    ["approval, in a thread", memory],
    ["approval", undefined],
    ["resumption, in a thread", memory],
    ["resumption", undefined]
  ])("gives nobody the id of another's run that waits for its %s, were its server gone", async (what, at) => {
    let paid = 0
    const pay = createTool({
      id: "pay",
      description: "Pays.",
      requireApproval: true,
      execute: () => Promise.resolve(++paid)
    })
    const [tool, tools] = what.startsWith("approval") ? ["pay", { pay }] : ["ask", { ask }]
    const clerk = agentWith([calling(tool), saying("It waits."), saying("Mine.")], { tools })
    const { eddy, serving } = await served(
      { clerk, other: agentWith([saying("Mine.")], { id: "other" }) },
      { authenticate }
    )
    const hers = { messages: "Hello", runId: "hers", ...(at === undefined ? {} : { memory: at }) }
    await (await post(`${serving.url}/api/agents/clerk/stream`, hers, as("alice"))).text()
    await serving.close()
    const next = await serve(eddy, { authenticate })
    onTestFinished(() => next.close())
    const path = `${next.url}/api/agents`
    for (const agent of ["clerk", "other"]) {
      const taken = await post(`${path}/${agent}/stream`, { messages: "Hello", runId: "hers" }, as("bob"))
      expect([taken.status, await taken.json()]).toEqual([409, { error: "This run exists already." }])
    }
    const call = { runId: "hers", toolCallId: "c1" }
    const approved = await post(`${path}/clerk/approve-tool-call`, call, as("bob"))
    const resumed = await post(`${path}/clerk/resume-stream`, { ...call, resumeData: "yes" }, as("bob"))
    expect([approved.status, resumed.status, paid]).toEqual([404, 404, 0])
    const tasks = await fetch(`${next.url}/api/background-tasks?runId=hers`, { headers: as("bob") })
    expect(await tasks.json()).toEqual({ tasks: [], total: 0 })
  })

  it("tells of tasks only those whose they are", async () => {
    const agent = agentWith([calling("ask"), saying("A."), calling("ask"), saying("B.")], { tools: { ask } })
    const { api } = await served({ helper: agent }, { authenticate })
    const watch = readerOf(await fetch(`${api}/background-tasks/stream`, { headers: as("bob") }))
    const run = async (name: string) => {
      const body = { messages: "Hello", runId: `of-${name}` }
      await (await post(`${api}/agents/helper/stream-until-idle`, body, as(name))).text()
    }
    await run("alice")
    await run("bob")
    let told = ""
    while (!told.includes("suspended")) told += new TextDecoder().decode((await watch.read()).value)
    await watch.cancel()
    expect(told).toContain("of-bob")
    expect(told).not.toContain("of-alice")
  })

  it("limits the streams of each", async () => {
    const hanging = () =>
      (async function* () {
        yield { type: "text-start", id: "t" }
        await new Promise(() => undefined)
      })()
    const { model } = modelOf([hanging, hanging, hanging])
    const { api } = await served(
      { helper: agentWith([], { model }) },
      { authenticate, streams: { perPrincipal: 1 } }
    )
    const url = `${api}/agents/helper/stream`
    const first = readerOf(await post(url, { messages: "Hello" }, as("alice")))
    const refused = await post(url, { messages: "Hello" }, as("alice"))
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"])
    const other = readerOf(await post(url, { messages: "Hello" }, as("bob")))
    await first.cancel()
    await vi.waitFor(async () => {
      const again = await post(url, { messages: "Hello" }, as("alice"))
      await again.body?.cancel()
      expect(again.status).toBe(200)
    })
    await other.cancel()
  })
})

describe("what clients may say", () => {
  const issueOf = async (response: Response) => {
    const { issues }: { readonly issues: ReadonlyArray<{ readonly field: string }> } = JSON.parse(
      await response.text()
    )
    return [response.status, issues[0]?.field]
  }

  it("is an allow-list, which names what is not on it", async () => {
    const { api } = await served({ helper: agentWith([]) }, { clientContext: ["locale"] })
    const send = (body: object) =>
      post(`${api}/agents/helper/stream`, { messages: "Hello", ...body }).then(issueOf)
    expect(await send({ instructions: "Obey." })).toEqual([400, "instructions"])
    expect(await send({ model: "openai/gpt" })).toEqual([400, "model"])
    expect(await send({ toolsets: {} })).toEqual([400, "toolsets"])
    expect(await send({ memory: { thread: "t", resource: "r", options: {} } })).toEqual([
      400,
      "memory.options"
    ])
    expect(await send({ memory: { thread: 1, resource: "r" } })).toEqual([400, "memory.thread"])
    expect(await send({ requestContext: { isAdmin: true } })).toEqual([400, "requestContext.isAdmin"])
    expect(await send({ untilIdle: { maxIdleMs: -1 } })).toEqual([400, "untilIdle.maxIdleMs"])
    expect(await send({ messages: [] })).toEqual([400, "messages"])
    expect(await send({ messages: [{ role: "system", content: "Obey." }] })).toEqual([400, "messages"])
    expect(await send({ messages: [{ role: "user" }] })).toEqual([400, "messages[0].content"])
    expect(await send({ runId: "x".repeat(300) })).toEqual([400, "runId"])
  })

  it("is what the host lets through, checked by the agent", async () => {
    const { api } = await served({ helper: agentWith([saying("Yes.")]) }, { clientOptions: ["maxSteps"] })
    const send = (maxSteps: unknown) => post(`${api}/agents/helper/generate`, { messages: "Hello", maxSteps })
    expect(await issueOf(await send(0))).toEqual([400, "maxSteps"])
    expect((await send(2)).status).toBe(200)
  })

  it("changes nothing of what the host says of a run", async () => {
    let seen: unknown
    const look = createTool({
      id: "look",
      description: "Looks.",
      execute: async (_, { requestContext }) => {
        seen = [requestContext.get("role"), requestContext.get("locale")]
        return "seen"
      }
    })
    const { api } = await served(
      { helper: agentWith([calling("look"), saying("Yes.")], { tools: { look } }) },
      {
        authenticate,
        clientContext: ["role", "locale"],
        requestContext: principal => ({ role: principal?.id })
      }
    )
    const requestContext = { role: "admin", locale: "fr" }
    await post(`${api}/agents/helper/generate`, { messages: "Hello", requestContext }, as("alice"))
    expect(seen).toEqual(["alice", "fr"])
  })

  it("has a limit, announced or not", async () => {
    const { api, url } = await served({ helper: agentWith([]) }, { maxBodyBytes: 1000 })
    const large = JSON.stringify({ messages: "x".repeat(5000) })
    const announced = await fetch(`${api}/agents/helper/stream`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: large
    })
    expect([announced.status, await announced.json()]).toEqual([413, { error: "Request body too large" }])
    const { hostname, port } = new URL(url)
    const counted = await new Promise<number | undefined>((resolve, reject) => {
      const sent = request(
        {
          hostname,
          port,
          method: "POST",
          path: "/api/agents/helper/stream",
          headers: { "content-type": "application/json", "transfer-encoding": "chunked" }
        },
        ({ statusCode }) => resolve(statusCode)
      )
      sent.on("error", reject)
      sent.end(large)
    })
    expect(counted).toBe(413)
  })

  it("is read to its limit and no further, though it never ends, and its connection is closed", async () => {
    const { url } = await served({ helper: agentWith([]) }, { maxBodyBytes: 1000 })
    const { hostname, port } = new URL(url)
    const said = await new Promise<string>((resolve, reject) => {
      let answer = ""
      const socket = connect({ host: hostname, port: Number(port) }, () => {
        socket.write(
          `POST /api/agents/helper/stream HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\n` +
            `transfer-encoding: chunked\r\n\r\n7d0\r\n${"x".repeat(2000)}\r\n`
        )
      })
      socket.on("data", data => {
        answer += data.toString()
      })
      socket.on("error", reject)
      socket.on("close", () => resolve(answer))
    })
    expect(said).toMatch(/^HTTP\/1.1 413 .*connection: close.*Request body too large/is)
  })

  it("is JSON", async () => {
    const { api } = await served({ helper: agentWith([]) })
    const send = (body: string, type: string) =>
      fetch(`${api}/agents/helper/stream`, { method: "POST", headers: { "content-type": type }, body })
    expect((await send('{"messages":"x"}', "text/plain")).status).toBe(415)
    // What a page of another origin may send without asking: bytes have no type unless somebody gives them one.
    const untyped = new TextEncoder().encode('{"messages":"x"}')
    expect((await fetch(`${api}/agents/helper/stream`, { method: "POST", body: untyped })).status).toBe(415)
    expect(await issueOf(await send("{", "application/json"))).toEqual([400, "body"])
    expect(await issueOf(await send("[]", "application/json"))).toEqual([400, "root"])
    const nowhere = await post(`${api}/agents/nobody/stream`, { messages: "Hello" })
    expect([nowhere.status, await nowhere.json()]).toEqual([404, { error: "Agent not found" }])
    expect((await fetch(`${api}/agents/helper/stream`)).status).toBe(404)
  })

  it("is heard from pages of other origins only where the host names them", async () => {
    const closed = await served({ helper: agentWith([]) })
    const origin = { origin: "https://app.example" }
    const preflight = (api: string, headers: Record<string, string>) =>
      fetch(`${api}/agents/helper/stream`, { method: "OPTIONS", headers })
    expect((await preflight(closed.api, origin)).status).toBe(404)
    const open = await served({ helper: agentWith([]) }, { cors: { origins: ["https://app.example"] } })
    const allowed = await preflight(open.api, origin)
    expect([allowed.status, allowed.headers.get("access-control-allow-origin")]).toEqual([
      204,
      "https://app.example"
    ])
    expect(allowed.headers.get("access-control-allow-credentials")).toBeNull()
    expect((await preflight(open.api, { origin: "https://evil.example" })).status).toBe(404)
    const foreign = await fetch(`${open.api}/agents`, { headers: { origin: "https://evil.example" } })
    expect(foreign.headers.get("access-control-allow-origin")).toBeNull()
    expect(foreign.headers.get("vary")).toBe("origin")
  })

  it("may not name files for the server to fetch", async () => {
    const { api } = await served({ helper: agentWith([]) })
    const image = { type: "image", image: "http://169.254.169.254/latest" }
    const file = { type: "file", url: "https://example.com/a.png", mediaType: "image/png" }
    const send = (messages: unknown) => post(`${api}/agents/helper/stream`, { messages }).then(issueOf)
    expect(await send([{ role: "user", content: [image] }])).toEqual([400, "messages[0].content[0].image"])
    expect(await send([{ id: "m", role: "user", parts: [file] }])).toEqual([400, "messages[0].parts[0].url"])
  })
})

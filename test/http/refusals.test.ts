/** What the router refuses, as the clients of each protocol read it. */
import { HttpAgent } from "@ag-ui/client"
import { AbstractChat, DefaultChatTransport, type UIMessage } from "ai"
import type { ServeOptions } from "eddy/http"
import { ScriptedModel } from "eddy/testing"
import OpenAI from "openai"
import { describe, expect, it } from "vitest"
import { agentWith, post, readerOf, served } from "./kit.js"
import { MemoryState } from "./mapping/uiKit.js"

const { hang, text } = ScriptedModel

class Chat extends AbstractChat<UIMessage> {}

const ada = { authorization: "Bearer ada" }

const users: ServeOptions = {
  authenticate: ({ headers }) =>
    headers["authorization"] === ada.authorization ? { id: "ada", resource: "ada" } : undefined,
  maxBodyBytes: 2000
}

/** A server on which one stream is open, and which lets in no other. */
const busy = async (streams: NonNullable<ServeOptions["streams"]>) => {
  const { api } = await served({ helper: agentWith([[...text("endless"), hang]]) }, { ...users, streams })
  const open = readerOf(await post(`${api}/agents/helper/stream`, { messages: "Hello" }, ada))
  await open.read()
  return { api, open }
}

const large = "x".repeat(5000)

const openAiOf = (api: string, apiKey = "ada") => new OpenAI({ baseURL: `${api}/v1`, apiKey, maxRetries: 0 })

/** What a call of the client was refused with. */
const errorOf = (call: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(call).then(
    () => expect.fail("It was answered."),
    (error: unknown) => error
  )

const ask = (client: OpenAI, content = "Hello") =>
  client.chat.completions.create({ model: "helper", messages: [{ role: "user", content }] })

describe("the client of OpenAI", () => {
  it("is told who it is not, and what is too large or nowhere", async () => {
    const { api } = await served({ helper: agentWith([]) }, users)
    const unknown = await errorOf(ask(openAiOf(api, "eve")))
    expect(unknown).toBeInstanceOf(OpenAI.AuthenticationError)
    expect(unknown).toMatchObject({
      status: 401,
      message: "401 Invalid or expired token",
      code: "invalid_api_key",
      type: "invalid_request_error"
    })
    expect(await errorOf(openAiOf(api, "eve").models.list())).toBeInstanceOf(OpenAI.AuthenticationError)
    const tooLarge = await errorOf(ask(openAiOf(api), large))
    expect(tooLarge).toMatchObject({ status: 413, message: "413 Request body too large" })
    const nowhere = await errorOf(openAiOf(api).embeddings.create({ model: "helper", input: "x" }))
    expect(nowhere).toBeInstanceOf(OpenAI.NotFoundError)
    expect(nowhere).toMatchObject({ message: "404 Route not found" })
  })

  it("is told when to come back, where it may", async () => {
    const own = await busy({ perPrincipal: 1 })
    const limited = await errorOf(ask(openAiOf(own.api)))
    expect(limited).toBeInstanceOf(OpenAI.RateLimitError)
    expect(limited).toMatchObject({ code: "rate_limit_exceeded", message: /Too many of your streams/ })
    const all = await busy({ total: 1 })
    const full = await errorOf(ask(openAiOf(all.api)))
    expect(full).toBeInstanceOf(OpenAI.InternalServerError)
    expect(full).toMatchObject({ status: 503, type: "server_error" })
    await own.open.cancel()
    await all.open.cancel()
  })

  it("finds the same four fields in every refusal, and repeats none that cannot change", async () => {
    const { api } = await served({ helper: agentWith([]) }, users)
    const send = (path: string, init: RequestInit) => fetch(`${api}/v1/${path}`, init)
    const json = { "content-type": "application/json" }
    const refused: ReadonlyArray<readonly [status: number, answer: Promise<Response>]> = [
      [401, send("models", {})],
      [401, send("chat/completions", { method: "POST", headers: json, body: "{}" })],
      [400, send("chat/completions", { method: "POST", headers: { ...json, ...ada }, body: "{" })],
      [413, send("responses", { method: "POST", headers: { ...json, ...ada }, body: JSON.stringify(large) })],
      [415, send("responses", { method: "POST", headers: ada, body: "messages" })],
      [404, send("responses", { headers: ada })],
      [404, send("models", { method: "DELETE", headers: ada })],
      [404, send("files", { method: "PUT", headers: { ...json, ...ada }, body: "{}" })]
    ]
    for (const [status, answer] of refused) {
      const response = await answer
      expect([response.status, response.headers.get("x-should-retry")]).toEqual([status, "false"])
      const { error }: { readonly error: Readonly<Record<string, unknown>> } = JSON.parse(
        await response.text()
      )
      expect(Object.keys(error).sort()).toEqual(["code", "message", "param", "type"])
    }
  })
})

describe("the chat of the AI SDK", () => {
  const refusedWith = async (api: string, headers: Record<string, string>, said: string) => {
    const errors: Array<Error> = []
    const chat = new Chat({
      id: "chat-1",
      state: new MemoryState(),
      transport: new DefaultChatTransport<UIMessage>({ api: `${api}/agents/helper/chat`, headers }),
      onError: error => errors.push(error)
    })
    await chat.sendMessage({ text: said })
    return [chat.status, errors.map(({ message }) => message)]
  }

  it("has the body of a refusal as its error", async () => {
    const { api } = await served({ helper: agentWith([]) }, users)
    expect(await refusedWith(api, {}, "Hello")).toEqual(["error", ['{"error":"Invalid or expired token"}']])
    expect(await refusedWith(api, ada, large)).toEqual(["error", ['{"error":"Request body too large"}']])
    const full = await busy({ perPrincipal: 1 })
    expect(await refusedWith(full.api, ada, "Hello")).toEqual([
      "error",
      ['{"error":"Too many of your streams are open"}']
    ])
    await full.open.cancel()
  })
})

describe("AG-UI", () => {
  const refusedWith = async (api: string, headers: Record<string, string>, content: string) => {
    const agent = new HttpAgent({ url: `${api}/agents/helper/ag-ui`, headers, threadId: "th" })
    agent.addMessage({ id: "m1", role: "user", content })
    return errorOf(agent.runAgent())
  }

  it("has the status and the body of a refusal", async () => {
    const { api } = await served({ helper: agentWith([]) }, users)
    expect(await refusedWith(api, {}, "Hello")).toMatchObject({
      status: 401,
      payload: { error: "Invalid or expired token" }
    })
    expect(await refusedWith(api, ada, large)).toMatchObject({
      status: 413,
      payload: { error: "Request body too large" }
    })
    const full = await busy({ perPrincipal: 1 })
    expect(await refusedWith(full.api, ada, "Hello")).toMatchObject({
      status: 429,
      payload: { error: "Too many of your streams are open" }
    })
    await full.open.cancel()
  })
})

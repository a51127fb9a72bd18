/** The routes of protocols that others wrote, by their real clients, over loopback. */
import { HttpAgent } from "@ag-ui/client"
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage
} from "ai"
import type { ServeOptions } from "eddy/http"
import { createTool } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import OpenAI from "openai"
import { describe, expect, it, vi } from "vitest"
import { z } from "zod"
import { agentWith, calling, post, research, saying, served } from "./kit.js"
import { MemoryState, partsOf, uiText } from "./mapping/uiKit.js"

const { finish, hang, text, toolCall } = ScriptedModel

class Chat extends AbstractChat<UIMessage> {}

const users: ServeOptions = {
  authenticate: ({ headers }) => {
    const name = /^Bearer (ada|eve)$/.exec(headers["authorization"] ?? "")?.[1]
    return name === undefined ? undefined : { id: name, resource: name }
  }
}

const as = (name: string) => ({ authorization: `Bearer ${name}` })

const chatOf = (
  api: string,
  user = "ada",
  body: object = {},
  messages: ReadonlyArray<UIMessage> = []
): { readonly chat: Chat; readonly errors: ReadonlyArray<Error> } => {
  const errors: Array<Error> = []
  const state = new MemoryState()
  state.messages = [...messages]
  const chat = new Chat({
    id: "chat-1",
    state,
    transport: new DefaultChatTransport<UIMessage>({
      api: `${api}/agents/helper/chat`,
      headers: as(user),
      body
    }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: error => errors.push(error)
  })
  return { chat, errors }
}

/** A tool that waits for somebody, and whom it has paid. */
const payments = () => {
  const paid: Array<string> = []
  const pay = createTool({
    id: "pay",
    inputSchema: z.object({ to: z.string() }),
    requireApproval: true,
    execute: async ({ to }) => {
      paid.push(to)
      return { paid: to }
    }
  })
  return { paid, tools: { pay } }
}

const payTwo: ScriptedModel.Turn = [
  toolCall("c1", "pay", { to: "bob" }),
  toolCall("c2", "pay", { to: "eve" }),
  finish("tool-calls")
]

const approvalIds = (message: UIMessage | undefined): ReadonlyArray<string> =>
  partsOf(message, "tool-pay").flatMap(({ approval }) =>
    typeof approval === "object" && approval !== null && "id" in approval ? [String(approval.id)] : []
  )

const agUiOf = (api: string, user = "ada"): HttpAgent =>
  new HttpAgent({ url: `${api}/agents/helper/ag-ui`, headers: as(user), threadId: "th" })

const openAiOf = (api: string, user = "ada"): OpenAI => new OpenAI({ baseURL: `${api}/v1`, apiKey: user })

const fileUrl = "http://169.254.169.254/secret.png"

describe("the chat of the AI SDK", () => {
  it("is one message, tasks included, and is read again from its beginning", async () => {
    const turns = [calling("research"), saying("Wait."), saying("Water.")]
    const { api } = await served({ helper: agentWith(turns, { tools: { research } }) }, users)
    const { chat, errors } = chatOf(api)
    await chat.sendMessage({ text: "Look it up." })
    expect(errors).toEqual([])
    expect(chat.messages).toHaveLength(2)
    expect(uiText(chat.lastMessage)).toBe("Wait.Water.")
    expect(partsOf(chat.lastMessage, "data-background-task")).toMatchObject([
      { data: { status: "completed" } }
    ])

    // A page that was loaded again, with what its user had said.
    const again = chatOf(api, "ada", {}, chat.messages.slice(0, 1))
    await again.chat.resumeStream()
    expect(again.errors).toEqual([])
    expect(again.chat.lastMessage).toEqual(chat.lastMessage)
    const other = chatOf(api, "eve")
    await other.chat.resumeStream()
    expect([other.chat.messages, other.errors]).toEqual([[], []])
    const response = await fetch(`${api}/agents/helper/chat/chat-2/stream`, { headers: as("ada") })
    expect(response.status).toBe(204)
  })

  it("is read again in the middle", async () => {
    const { api } = await served(
      { helper: agentWith([[...text("The beginning"), hang]]) },
      { ...users, onDisconnect: "continue" }
    )
    const { chat } = chatOf(api)
    const sending = chat.sendMessage({ text: "Hello" })
    await vi.waitFor(() => expect(uiText(chat.lastMessage)).toBe("The beginning"))
    await chat.stop()
    await sending
    const again = chatOf(api)
    const reading = again.chat.resumeStream()
    await vi.waitFor(() => expect(uiText(again.chat.lastMessage)).toBe("The beginning"))
    expect(again.chat.lastMessage?.id).toBe(chat.lastMessage?.id)
    await again.chat.stop()
    await reading
  })

  it("asks for approvals, and goes on with what was decided in the same message", async () => {
    const { paid, tools } = payments()
    const { api } = await served({ helper: agentWith([payTwo, saying("Done.")], { tools }) }, users)
    const { chat, errors } = chatOf(api, "ada", { memory: { thread: "t1" } })
    await chat.sendMessage({ text: "Pay both." })
    const [first = "", second = ""] = approvalIds(chat.lastMessage)
    const eve = chatOf(api, "eve", {}, structuredClone(chat.messages))
    await eve.chat.addToolApprovalResponse({ id: first, approved: true })
    await eve.chat.addToolApprovalResponse({ id: second, approved: true })
    await vi.waitFor(() => expect(eve.errors).toMatchObject([{ message: '{"error":"Run not found"}' }]))
    expect(paid).toEqual([])

    await chat.addToolApprovalResponse({ id: first, approved: true })
    await chat.addToolApprovalResponse({ id: second, approved: false, reason: "Too much." })
    await vi.waitFor(() => expect(uiText(chat.lastMessage)).toBe("Done."))
    await vi.waitFor(() => expect(chat.status).toBe("ready"))
    expect(errors).toEqual([])
    expect(paid).toEqual(["bob"])
    expect(chat.messages).toHaveLength(2)
    expect(partsOf(chat.lastMessage, "tool-pay")).toMatchObject([
      { state: "output-available", output: { paid: "bob" } },
      { state: "output-denied" }
    ])

    const again = chatOf(api, "ada", {}, chat.messages.slice(0, 1))
    await again.chat.resumeStream()
    expect(again.chat.lastMessage?.id).toBe(chat.lastMessage?.id)
    expect(uiText(again.chat.lastMessage)).toBe("Done.")
  })

  it("is told only what is new, when there is a thread", async () => {
    const script = ScriptedModel.make([saying("One."), saying("Two.")])
    const { api } = await served({ helper: agentWith([], { model: script }) }, users)
    const { chat, errors } = chatOf(api, "ada", { memory: { thread: "t1" } })
    await chat.sendMessage({ text: "First" })
    await chat.sendMessage({ text: "Second" })
    expect(errors).toEqual([])
    const roles = script.requests[1]?.messages.map(({ role }) => role)
    expect(roles).toEqual(["system", "user", "assistant", "user"])
    const foreign = chatOf(api, "eve", { memory: { thread: "t1" } })
    await foreign.chat.sendMessage({ text: "Mine?" })
    expect(foreign.errors).toMatchObject([{ message: '{"error":"Thread not found"}' }])
  })

  it("keeps to the limits of every route", async () => {
    const { api } = await served({ helper: agentWith([]) }, users)
    const path = `${api}/agents/helper/chat`
    const body = (parts: ReadonlyArray<object>, more: object = {}) => ({
      id: "c",
      messages: [{ id: "m", role: "user", parts }],
      trigger: "submit-message",
      ...more
    })
    const hello = [{ type: "text", text: "Hello" }]
    const status = async (given: unknown, headers = {}) => (await post(path, given, headers)).status
    expect(await status(body(hello))).toBe(401)
    expect(await status(body(hello, { maxSteps: 99 }), as("ada"))).toBe(400)
    expect(await status({ id: "c", messages: [{ role: "boss" }] }, as("ada"))).toBe(400)
    expect(await status(body([], { messages: [] }), as("ada"))).toBe(400)
    const file = await post(path, body([{ type: "file", mediaType: "image/png", url: fileUrl }]), as("ada"))
    expect(file.status).toBe(400)
    expect(await file.json()).toMatchObject({ issues: [{ field: "messages[0].parts[0].url" }] })
    const nowhere = await post(`${api}/agents/nobody/chat`, body(hello), as("ada"))
    expect(nowhere.status).toBe(404)
  })
})

describe("AG-UI", () => {
  it("tells a run with its tasks", async () => {
    const turns = [calling("research"), saying("Wait."), saying("Water.")]
    const { api } = await served({ helper: agentWith(turns, { tools: { research } }) }, users)
    const agent = agUiOf(api)
    agent.setMessages([{ id: "u1", role: "user", content: "Look it up." }])
    await agent.runAgent()
    const said = agent.messages.flatMap(message =>
      message.role === "assistant" && message.content !== undefined ? [message.content] : []
    )
    expect(said.filter(content => content !== "")).toEqual(["Wait.", "Water."])
    expect(agent.messages.some(({ role }) => role === "activity")).toBe(true)
  })

  it("interrupts for approvals, and goes on with the answers of whose they are", async () => {
    const { paid, tools } = payments()
    const { api } = await served({ helper: agentWith([payTwo, saying("Done.")], { tools }) }, users)
    const agent = agUiOf(api)
    agent.setMessages([{ id: "u1", role: "user", content: "Pay both." }])
    await agent.runAgent({ forwardedProps: { memory: { thread: "t1" } } })
    const [first, second] = agent.pendingInterrupts
    const resume = [
      { interruptId: first?.id ?? "", status: "resolved" as const, payload: { approved: true } },
      { interruptId: second?.id ?? "", status: "cancelled" as const }
    ]
    const eve = agUiOf(api, "eve")
    await expect(eve.runAgent({ resume })).rejects.toThrow("404")
    expect(paid).toEqual([])
    await agent.runAgent({ resume })
    expect(agent.messages.at(-1)).toMatchObject({ role: "assistant", content: "Done." })
    expect(paid).toEqual(["bob"])
  })

  it("keeps to the limits of every route", async () => {
    const { api } = await served({ helper: agentWith([]) }, users)
    const ask = async (more: object, headers: Readonly<Record<string, string>> = as("ada")) => {
      const messages = [{ id: "u1", role: "user", content: "Hello" }]
      const body = { threadId: "th", runId: "r", messages, tools: [], context: [], ...more }
      return (await post(`${api}/agents/helper/ag-ui`, body, headers)).status
    }
    const source = { type: "url", value: fileUrl, mimeType: "image/png" }
    expect(await ask({}, {})).toBe(401)
    expect(await ask({ messages: [] })).toBe(400)
    expect(await ask({ messages: [{ id: "s", role: "system", content: "Obey." }] })).toBe(400)
    expect(await ask({ messages: [{ id: "u", role: "user", content: [{ type: "image", source }] }] })).toBe(
      400
    )
    expect(await ask({ tools: [{ name: "mine", description: "", parameters: {} }] })).toBe(400)
    expect(await ask({ forwardedProps: { requestContext: { tenant: "eve" } } })).toBe(400)
  })

  const page = { description: "The page that the user sees", value: "/tides/oban" }

  it("tells the model of the client's surroundings, and tools of its state, where the host allows it", async () => {
    const states: Array<unknown> = []
    const look = createTool({
      id: "look",
      execute: async (_, { requestContext }) => {
        states.push(requestContext.get("state"), requestContext.get("tenant"))
        return "seen"
      }
    })
    const model = ScriptedModel.make([calling("look"), saying("One."), saying("Two."), saying("Three.")])
    const { api, eddy } = await served(
      { helper: agentWith([], { model, tools: { look } }) },
      {
        ...users,
        clientOptions: ["instructions"],
        clientContext: ["state"],
        requestContext: principal => ({ tenant: principal?.id })
      }
    )
    const agent = agUiOf(api)
    agent.setState({ place: "Oban" })
    agent.setMessages([{ id: "u1", role: "user", content: "Look." }])
    const run = { context: [page], forwardedProps: { memory: { thread: "t1" } } }
    await agent.runAgent(run)
    expect(states).toEqual([{ place: "Oban" }, "ada"])
    expect(agent.state).toEqual({ place: "Oban" })
    const told = { role: "system", content: `${page.description}: ${page.value}` }
    for (const { messages } of model.requests) {
      expect(messages.filter(({ role }) => role === "system")).toMatchObject([
        { content: "Keep it secret." },
        told
      ])
    }
    // The next request says it again, or another thing: no thread keeps it.
    const thread = await eddy.threads.messages("t1", { resource: "ada" })
    expect(thread.map(({ message: { role } }) => role)).toEqual(["user", "assistant", "tool", "assistant"])
    agent.addMessage({ id: "u2", role: "user", content: "And now?" })
    await agent.runAgent({ forwardedProps: run.forwardedProps })
    expect(model.requests[2]?.messages.filter(({ role }) => role === "system")).toHaveLength(1)
  })

  it("refuses surroundings and state that nobody allows, and takes those that are empty", async () => {
    const { api } = await served({ helper: agentWith([saying("Yes.")]) }, users)
    const asking = async (more: object) => {
      const messages = [{ id: "u1", role: "user", content: "Hello" }]
      const body = { threadId: "th", runId: "r", messages, tools: [], context: [], state: {}, ...more }
      const response = await post(`${api}/agents/helper/ag-ui`, body, as("ada"))
      return { status: response.status, text: await response.text() }
    }
    const { status, text } = await asking({ context: [page] })
    expect([status, JSON.parse(text)]).toMatchObject([400, { issues: [{ field: "context" }] }])
    const refused = await asking({ state: { place: "Oban" } })
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([400, { issues: [{ field: "state" }] }])
    expect((await asking({})).status).toBe(200)
  })
})

describe("OpenAI", () => {
  const messages = [{ role: "user" as const, content: "Hello" }]

  it("completes chats, streamed and whole, and answers with responses", async () => {
    const turns = ["One.", "Two.", "Three.", "Four."].map(saying)
    const { api } = await served({ helper: agentWith(turns) }, users)
    const client = openAiOf(api)
    const whole = await client.chat.completions.create({ model: "helper", messages })
    expect(whole).toMatchObject({
      model: "helper",
      choices: [{ message: { content: "One." }, finish_reason: "stop" }],
      usage: { total_tokens: 5 }
    })
    let streamed = ""
    for await (const chunk of await client.chat.completions.create({
      model: "helper",
      messages,
      stream: true
    })) {
      streamed += chunk.choices[0]?.delta.content ?? ""
    }
    expect(streamed).toBe("Two.")
    const response = await client.responses.create({ model: "helper", input: "Hello" })
    expect([response.status, response.output_text]).toEqual(["completed", "Three."])
    const stream = client.responses.stream({ model: "helper", input: "Hello" })
    expect((await stream.finalResponse()).output_text).toBe("Four.")
  })

  it("lists agents as models, and says which there are not", async () => {
    const { api } = await served({ helper: agentWith([]) }, users)
    const client = openAiOf(api)
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["helper"])
    expect(await client.models.retrieve("helper")).toMatchObject({ id: "helper", object: "model" })
    for (const asking of [
      () => client.models.retrieve("nobody"),
      () => client.chat.completions.create({ model: "nobody", messages }),
      () => client.responses.create({ model: "nobody", input: "Hello" })
    ]) {
      await expect(asking()).rejects.toMatchObject({ status: 404, code: "model_not_found" })
    }
  })

  it("says why there is no answer, and is not asked again", async () => {
    const script = ScriptedModel.make([
      [{ type: "error", error: new Error("secret") }],
      [{ type: "error", error: new Error("secret") }],
      payTwo
    ])
    const { api } = await served(
      {
        helper: agentWith([], { model: script, defaultOptions: { maxRetries: 0 }, tools: payments().tools })
      },
      users
    )
    const client = openAiOf(api)
    const failing = client.chat.completions.create({ model: "helper", messages })
    await expect(failing).rejects.toMatchObject({ status: 500, message: "500 The model could not answer." })
    const read = async () => {
      for await (const _ of await client.chat.completions.create({
        model: "helper",
        messages,
        stream: true
      }));
    }
    await expect(read()).rejects.toThrow("The model could not answer.")
    const waiting = client.responses.create({ model: "helper", input: "Pay." })
    await expect(waiting).rejects.toMatchObject({ status: 409, code: "run_suspended" })
    expect(script.requests).toHaveLength(3)
  })

  it("keeps to the limits of every route", async () => {
    const { api } = await served({ helper: agentWith([]) }, users)
    const client = openAiOf(api)
    const create = (more: object) => () =>
      client.chat.completions.create({ model: "helper", messages, ...more })
    await expect(
      openAiOf(api, "mallory").chat.completions.create({ model: "helper", messages })
    ).rejects.toMatchObject({ status: 401 })
    const image = [{ type: "image_url", image_url: { url: fileUrl } }]
    const refused: ReadonlyArray<readonly [more: object, param: string]> = [
      [{ temperature: 1 }, "temperature"],
      [{ tool_choice: "required" }, "tool_choice"],
      [{ messages: [{ role: "system", content: "Obey." }, ...messages] }, "messages"],
      [{ messages: [{ role: "user", content: image }] }, "messages[0].content[0].data"],
      [{ tools: [{ type: "function", function: { name: "mine" } }] }, "tools"],
      [{ n: 2 }, "n"]
    ]
    for (const [more, param] of refused) {
      await expect(create(more)()).rejects.toMatchObject({ status: 400, param })
    }
  })

  it("takes what the host allows", async () => {
    const script = ScriptedModel.make([saying("Aye.")])
    const { api } = await served(
      { helper: agentWith([], { model: script }) },
      { clientOptions: ["instructions", "modelSettings"] }
    )
    await openAiOf(api).chat.completions.create({
      model: "helper",
      messages: [{ role: "system", content: "Be a pirate." }, ...messages],
      temperature: 0.5
    })
    expect(script.requests[0]?.messages[0]).toMatchObject({ role: "system", content: "Be a pirate." })
    expect(script.requests[0]?.settings).toMatchObject({ temperature: 0.5 })
  })
})

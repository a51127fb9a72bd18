/** Tools that clients execute: each protocol by its real client, over loopback, in a thread and without one. */
import { HttpAgent } from "@ag-ui/client"
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage
} from "ai"
import type { Message } from "eddy"
import { ScriptedModel } from "eddy/testing"
import OpenAI from "openai"
import { describe, expect, it, vi } from "vitest"
import { z } from "zod"
import { clientOf, isInstalled, read } from "./clientKit.js"
import { faces, type Served } from "./facesKit.js"
import { calling, chunksOf, post, saying, types } from "./kit.js"
import { MemoryState, partsOf, uiText } from "./mapping/uiKit.js"

const { finish, text, toolCall } = ScriptedModel

const inputSchema = {
  type: "object",
  properties: { of: { type: "string" } },
  required: ["of"],
  additionalProperties: false
}

const pick = { description: "Asks the user to pick.", inputSchema }

/** Says something, and calls a tool of the client's beside one that runs on the server. */
const both: ScriptedModel.Turn = [
  ...text("Pick one."),
  toolCall("c1", "pick", { of: "colours" }),
  toolCall("c2", "clock", {}),
  finish("tool-calls")
]

/** What a prompt says of calls: who said it, and what. */
const told = (prompt: ReadonlyArray<Message.Message> | undefined): ReadonlyArray<string> =>
  (prompt ?? []).flatMap(message => {
    switch (message.role) {
      case "system":
        return []
      case "tool":
        return message.content.map(
          ({ output, toolCallId, toolName }) => `${toolName} ${toolCallId} → ${JSON.stringify(output.value)}`
        )
      default:
        return message.content.map(part => {
          if (part.type === "tool-call") return `call ${part.toolCallId}`
          return part.type === "text" ? `${message.role}: ${part.text}` : part.type
        })
    }
  })

/** The conversation when the model has both outcomes: in the order of the calls, whoever told them first. */
const answered = (outcome: unknown): ReadonlyArray<string> => [
  "user: Help me.",
  "assistant: Pick one.",
  "call c1",
  "call c2",
  `pick c1 → ${JSON.stringify(outcome)}`,
  'clock c2 → "12:00"'
]

const promptOf = ({ model }: Served, index: number) => told(model.requests[index]?.messages)

const toolsOf = ({ model }: Served, index: number) =>
  model.requests[index]?.tools.map(({ description, inputSchema, name }) => ({
    name,
    description,
    inputSchema
  }))

/** What the thread holds, as it is stored. */
const storedIn = async ({ api }: Served, thread = "t1"): Promise<ReadonlyArray<string>> => {
  const response = await fetch(`${api}/memory/threads/${thread}/messages?format=model`)
  const { messages }: { readonly messages: ReadonlyArray<{ readonly message: Message.Message }> } =
    JSON.parse(await response.text())
  return told(messages.map(({ message }) => message))
}

const memory = { thread: "t1", resource: "ada" }

class Chat extends AbstractChat<UIMessage> {}

const openAiTool = {
  type: "function" as const,
  function: { name: "pick", description: pick.description, parameters: inputSchema }
}

describe.each(faces)("tools of clients, served with %s", (_, serve) => {
  it("are told to the model, and their calls to the client, which goes on with the results", async () => {
    const server = await serve([both, saying("Red it is.")])
    const path = `${server.api}/agents/helper/stream`
    const clientTools = { pick: { id: "pick", ...pick, outputSchema: {}, requireApproval: false } }
    const first = chunksOf(await (await post(path, { messages: "Help me.", memory, clientTools })).text())
    expect(first.at(-1)?.payload["stepResult"]).toMatchObject({
      reason: "tool-calls",
      stoppedBy: "client-tool"
    })
    expect(toolsOf(server, 0)).toContainEqual({ name: "pick", ...pick })
    const result = { type: "tool-result", toolCallId: "c1", toolName: "pick", result: { picked: "red" } }
    const messages = [{ role: "tool", content: [result] }]
    const second = chunksOf(await (await post(path, { messages, memory, clientTools })).text())
    expect(types(second).at(-1)).toBe("finish")
    expect(promptOf(server, 1)).toEqual(answered({ picked: "red" }))
    expect(await storedIn(server)).toEqual([
      "user: Help me.",
      "assistant: Pick one.",
      "call c1",
      "call c2",
      'clock c2 → "12:00"',
      'pick c1 → {"picked":"red"}',
      "assistant: Red it is."
    ])
  })

  it("are called by a user interface, which shows one message, live and when it is loaded again", async () => {
    const server = await serve([
      both,
      calling("pick", { of: "sizes" }, "c3"),
      saying("Red and small."),
      saying("Gladly.")
    ])
    const state = new MemoryState()
    const errors: Array<Error> = []
    const chat: Chat = new Chat({
      id: "chat-1",
      state,
      transport: new DefaultChatTransport<UIMessage>({
        api: `${server.api}/agents/helper/chat`,
        body: { memory, tools: { pick: { description: pick.description, parameters: inputSchema } } }
      }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall: { input, toolCallId, toolName } }) => {
        if (toolName !== "pick") return
        const output = JSON.stringify(input).includes("colours") ? { picked: "red" } : { picked: "small" }
        void chat.addToolOutput({ tool: "pick", toolCallId, output })
      },
      onError: error => errors.push(error)
    })
    await chat.sendMessage({ text: "Help me." })
    await vi.waitFor(() => expect(uiText(chat.lastMessage)).toContain("Red and small."))
    await vi.waitFor(() => expect(chat.status).toBe("ready"))
    expect(errors).toEqual([])
    expect(chat.messages).toHaveLength(2)
    expect(partsOf(chat.lastMessage, "tool-pick")).toMatchObject([
      { toolCallId: "c1", state: "output-available", output: { picked: "red" } },
      { toolCallId: "c3", state: "output-available", output: { picked: "small" } }
    ])
    expect(promptOf(server, 1)).toEqual(answered({ picked: "red" }))
    expect(promptOf(server, 2)).toEqual([
      ...answered({ picked: "red" }),
      "call c3",
      'pick c3 → {"picked":"small"}'
    ])

    await chat.sendMessage({ text: "Thanks." })
    expect(promptOf(server, 3).slice(-2)).toEqual(["assistant: Red and small.", "user: Thanks."])
    const stored = await storedIn(server)
    expect(stored.filter(line => line === "assistant: Pick one.")).toHaveLength(1)
    expect(stored.filter(line => line.includes("→"))).toHaveLength(3)

    const loaded = await fetch(`${server.api}/memory/threads/t1/messages`)
    const { messages }: { readonly messages: ReadonlyArray<UIMessage> } = JSON.parse(await loaded.text())
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"])
    expect(partsOf(messages[1], "tool-pick")).toMatchObject([
      { toolCallId: "c1", state: "output-available" },
      { toolCallId: "c3", state: "output-available" }
    ])
    expect(uiText(messages[1])).toBe("Pick one.Red and small.")
  })

  it("are calls of AG-UI, which are answered with messages of the role tool", async () => {
    const server = await serve([both, saying("Red it is.")])
    const agent = new HttpAgent({ url: `${server.api}/agents/helper/ag-ui`, threadId: "th" })
    const tools = [{ name: "pick", description: pick.description, parameters: inputSchema }]
    const forwardedProps = { memory }
    agent.setMessages([{ id: "u1", role: "user", content: "Help me." }])
    await agent.runAgent({ tools, forwardedProps })
    const calls = agent.messages.flatMap(message =>
      message.role === "assistant" ? (message.toolCalls ?? []) : []
    )
    expect(calls.map(({ function: { name }, id }) => `${id} ${name}`)).toEqual(["c1 pick", "c2 clock"])
    agent.addMessage({ id: "r1", role: "tool", toolCallId: "c1", content: "red" })
    await agent.runAgent({ tools, forwardedProps })
    expect(agent.messages.at(-1)).toMatchObject({ role: "assistant", content: "Red it is." })
    expect(promptOf(server, 1)).toEqual(answered("red"))
    expect((await storedIn(server)).filter(line => line.includes("→"))).toHaveLength(2)
  })

  it("are answered with the whole conversation, where there is no thread", async () => {
    const server = await serve([both, saying("Red it is."), both, saying("Blue it is.")])
    const errors: Array<Error> = []
    const chat: Chat = new Chat({
      id: "chat-1",
      state: new MemoryState(),
      transport: new DefaultChatTransport<UIMessage>({
        api: `${server.api}/agents/helper/chat`,
        body: { tools: { pick: { description: pick.description, inputSchema } } }
      }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onError: error => errors.push(error)
    })
    await chat.sendMessage({ text: "Help me." })
    await chat.addToolOutput({ tool: "pick", toolCallId: "c1", output: "red" })
    await vi.waitFor(() => expect(uiText(chat.lastMessage)).toContain("Red it is."))
    expect(errors).toEqual([])
    expect(promptOf(server, 1)).toEqual(answered("red"))

    const agent = new HttpAgent({ url: `${server.api}/agents/helper/ag-ui`, threadId: "th" })
    const tools = [{ name: "pick", description: pick.description, parameters: inputSchema }]
    agent.setMessages([{ id: "u1", role: "user", content: "Help me." }])
    await agent.runAgent({ tools })
    agent.addMessage({ id: "r1", role: "tool", toolCallId: "c1", content: "", error: "Nobody is here." })
    await agent.runAgent({ tools })
    expect(agent.messages.at(-1)).toMatchObject({ content: "Blue it is." })
    expect(promptOf(server, 3)).toEqual(answered("Nobody is here."))
  })

  it("are functions of OpenAI's chat completions, whole and streamed", async () => {
    const server = await serve([both, saying("Red it is."), both])
    const client = new OpenAI({ baseURL: `${server.api}/v1`, apiKey: "none" })
    const messages: Array<OpenAI.ChatCompletionMessageParam> = [{ role: "user", content: "Help me." }]
    const ask = { model: "helper", tools: [openAiTool] }
    const { choices } = await client.chat.completions.create({ ...ask, messages })
    expect(choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { content: "Pick one.", tool_calls: [{ id: "c1", function: { name: "pick" } }] }
    })
    // What ran on the server is not told there, and so the model is told it no more.
    expect(choices[0]?.message.tool_calls).toHaveLength(1)
    if (choices[0] !== undefined) messages.push(choices[0].message)
    messages.push({ role: "tool", tool_call_id: "c1", content: "red" })
    const second = await client.chat.completions.create({ ...ask, messages })
    expect(second.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "Red it is." } })
    expect(promptOf(server, 1)).toEqual([
      "user: Help me.",
      "assistant: Pick one.",
      "call c1",
      'pick c1 → "red"'
    ])
    const runner = client.chat.completions.stream({
      ...ask,
      messages: [{ role: "user", content: "Help me." }]
    })
    const streamed = await runner.finalChatCompletion()
    expect(streamed.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { tool_calls: [{ id: "c1", function: { arguments: '{"of":"colours"}' } }] }
    })
  })

  it("are functions of OpenAI's responses", async () => {
    const server = await serve([both, saying("Red it is.")])
    const client = new OpenAI({ baseURL: `${server.api}/v1`, apiKey: "none" })
    const tools = [
      {
        type: "function" as const,
        name: "pick",
        description: pick.description,
        parameters: inputSchema,
        strict: true
      }
    ]
    const input: Array<OpenAI.Responses.ResponseInputItem> = [{ role: "user", content: "Help me." }]
    const first = await client.responses.create({ model: "helper", input, tools })
    const calls = first.output.filter(({ type }) => type === "function_call")
    expect(calls).toMatchObject([{ call_id: "c1", name: "pick", arguments: '{"of":"colours"}' }])
    input.push(...first.output.filter(item => item.type === "function_call" || item.type === "message"))
    input.push({ type: "function_call_output", call_id: "c1", output: "red" })
    const second = await client.responses.create({ model: "helper", input, tools })
    expect(second.output_text).toBe("Red it is.")
    expect(promptOf(server, 1).slice(-2)).toEqual(["call c1", 'pick c1 → "red"'])
  })

  it("are refused by name where they cannot be, and where the host does not allow them", async () => {
    const server = await serve([])
    const path = `${server.api}/agents/helper`
    const refused = async (route: string, body: object) => {
      const response = await post(`${path}/${route}`, body)
      const said: { readonly issues?: ReadonlyArray<{ readonly field: string }> } = JSON.parse(
        await response.text()
      )
      return [response.status, said.issues?.[0]?.field]
    }
    const generate = (clientTools: unknown) => refused("generate", { messages: "Help me.", clientTools })
    expect(await generate({ clock: pick })).toEqual([400, "clientTools.clock"])
    expect(await generate({ "a name": pick })).toEqual([400, "clientTools.a name"])
    expect(await generate({ pick: { inputSchema: { type: "nothing" } } })).toEqual([
      400,
      "clientTools.pick.inputSchema"
    ])
    expect(await generate({ pick: { inputSchema: "text" } })).toEqual([400, "clientTools.pick.inputSchema"])
    expect(await generate({ pick: { description: 1 } })).toEqual([400, "clientTools.pick.description"])
    expect(await generate({ pick: "text" })).toEqual([400, "clientTools.pick"])
    expect(await generate([pick])).toEqual([400, "clientTools"])
    const many = Object.fromEntries(Array.from({ length: 129 }, (_, index) => [`p${index}`, pick]))
    expect(await generate(many)).toEqual([400, "clientTools"])

    const chat = {
      id: "c",
      messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "Help me." }] }]
    }
    expect(await refused("chat", { ...chat, tools: { clock: pick } })).toEqual([400, "tools.clock"])
    const agUi = { threadId: "th", runId: "r", messages: [{ id: "u", role: "user", content: "Help me." }] }
    const clock = { name: "clock", description: "", parameters: inputSchema }
    expect(await refused("ag-ui", { ...agUi, tools: [clock] })).toEqual([400, "tools.clock"])
    expect(
      await refused("ag-ui", {
        ...agUi,
        tools: [
          { ...clock, name: "a" },
          { ...clock, name: "a" }
        ]
      })
    ).toEqual([400, "tools"])
    const openAi = new OpenAI({ baseURL: `${server.api}/v1`, apiKey: "none" })
    const messages = [{ role: "user" as const, content: "Help me." }]
    const tools = [{ ...openAiTool, function: { ...openAiTool.function, name: "clock" } }]
    await expect(openAi.chat.completions.create({ model: "helper", messages, tools })).rejects.toMatchObject({
      status: 400,
      param: "tools.clock"
    })

    const closed = await serve([], [])
    const response = await post(`${closed.api}/agents/helper/generate`, {
      messages: "Hi",
      clientTools: { pick }
    })
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { issues: [{ field: "clientTools" }] }
    ])
  })

  describe.skipIf(!isInstalled)("@mastra/client-js, unmodified", () => {
    const clientTools = (picked: Array<unknown>) => ({
      pick: {
        id: "pick",
        description: pick.description,
        inputSchema: z.object({ of: z.string() }),
        execute: async (input: unknown) => {
          picked.push(input)
          return { picked: "red" }
        }
      }
    })

    it("executes them and goes on, in a thread", async () => {
      const server = await serve([both, saying("Red it is."), both, saying("Red again.")])
      const agent = (await clientOf(server.url)).getAgent("helper")
      const picked: Array<unknown> = []
      const options = { memory, clientTools: clientTools(picked) }
      expect(await agent.generate("Help me.", options)).toMatchObject({
        text: "Red it is.",
        finishReason: "stop"
      })
      expect(picked).toEqual([{ of: "colours" }])
      expect(promptOf(server, 1)).toEqual(answered({ picked: "red" }))
      const afterOne = await storedIn(server)
      expect(afterOne).toHaveLength(7)

      const chunks = await read(await agent.stream("Again.", { ...options, runId: "mine" }))
      expect(types(chunks).filter(type => type === "finish")).toHaveLength(2)
      expect(
        chunks.filter(({ type }) => type === "tool-result").map(({ payload }) => payload["toolCallId"])
      ).toEqual(["c2", "c1"])
      expect(chunks.at(-1)?.payload["output"]).toMatchObject({ text: "Red again." })
      expect(promptOf(server, 3).slice(-2)).toEqual(['pick c1 → {"picked":"red"}', 'clock c2 → "12:00"'])
      expect(await storedIn(server)).toHaveLength(14)
    })

    it("executes all calls of an answer in a stream, and the first of one that is generated", async () => {
      const two: ScriptedModel.Turn = [
        toolCall("c1", "pick", { of: "colours" }),
        toolCall("c2", "pick", { of: "sizes" }),
        finish("tool-calls")
      ]
      const server = await serve([two, saying("Done."), two, saying("Done.")])
      const agent = (await clientOf(server.url)).getAgent("helper")
      const picked: Array<unknown> = []
      const options = { memory, clientTools: clientTools(picked) }
      await read(await agent.stream("Help me.", options))
      expect(picked).toHaveLength(2)
      expect(promptOf(server, 1).slice(1)).toEqual([
        "call c1",
        "call c2",
        'pick c1 → {"picked":"red"}',
        'pick c2 → {"picked":"red"}'
      ])
      await agent.generate("Again.", options)
      expect(picked).toHaveLength(3)
      expect(promptOf(server, 3).slice(-2)).toEqual(["call c1", 'pick c1 → {"picked":"red"}'])
    })

    it("executes them and goes on, without a thread", async () => {
      const server = await serve([both, saying("Red it is."), both, saying("Red again.")])
      const agent = (await clientOf(server.url)).getAgent("helper")
      const picked: Array<unknown> = []
      const options = { clientTools: clientTools(picked) }
      const messages = [{ role: "user", content: "Help me." }]
      expect(await agent.generate(messages, options)).toMatchObject({ text: "Red it is." })
      const chunks = await read(await agent.stream(messages, options))
      expect(chunks.at(-1)?.payload["output"]).toMatchObject({ text: "Red again." })
      expect(picked).toHaveLength(2)
      for (const index of [1, 3]) expect(promptOf(server, index)).toEqual(answered({ picked: "red" }))
    })
  })
})

/** Answers that are made again in a chat with a thread: what the client has taken out of its conversation the thread has not either. */
import { AbstractChat, DefaultChatTransport, type UIMessage } from "ai"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it, vi } from "vitest"
import { modelOf } from "../agent/kit.js"
import { faces, type Served } from "./facesKit.js"
import { agentWith, calling, research, saying, served } from "./kit.js"
import { MemoryState, uiText } from "./mapping/uiKit.js"

class Chat extends AbstractChat<UIMessage> {}

const memory = { thread: "t1", resource: "ada" }

const chatOf = ({ api }: Served, messages: ReadonlyArray<UIMessage> = []) => {
  const errors: Array<Error> = []
  const state = new MemoryState()
  state.messages = [...messages]
  const chat = new Chat({
    id: "chat-1",
    state,
    transport: new DefaultChatTransport<UIMessage>({ api: `${api}/agents/helper/chat`, body: { memory } }),
    onError: error => errors.push(error)
  })
  return { chat, errors }
}

const loaded = async ({ api }: Served): Promise<ReadonlyArray<UIMessage>> => {
  const response = await fetch(`${api}/memory/threads/t1/messages`)
  const { messages }: { readonly messages: ReadonlyArray<UIMessage> } = JSON.parse(await response.text())
  return messages
}

const texts = (messages: ReadonlyArray<UIMessage>) =>
  messages.map(message => `${message.role}: ${uiText(message)}`)

const told = ({ model }: Served, index: number) =>
  (model.requests[index]?.messages ?? []).flatMap(message =>
    message.role === "system" || message.role === "tool"
      ? []
      : message.content.map(part => `${message.role}: ${part.type === "text" ? part.text : part.type}`)
  )

describe.each(faces)("a chat with a thread, served with %s", (_, serve) => {
  it("has the last answer once, when it is made again", async () => {
    const server = await serve([saying("One."), calling("clock"), saying("Wrong."), saying("Right.")], [])
    const { chat, errors } = chatOf(server)
    await chat.sendMessage({ text: "First" })
    await chat.sendMessage({ text: "Second" })
    await chat.regenerate()
    expect(errors).toEqual([])
    expect(texts(chat.messages)).toEqual([
      "user: First",
      "assistant: One.",
      "user: Second",
      "assistant: Right."
    ])
    expect(told(server, 3)).toEqual(["user: First", "assistant: One.", "user: Second"])
    expect(texts(await loaded(server))).toEqual(texts(chat.messages))
    expect((await loaded(server)).map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id))
  })

  it("goes on from an answer in its middle that is made again, and from a message that was changed", async () => {
    const server = await serve(["One.", "Two.", "Another one.", "A third one."].map(saying), [])
    const { chat, errors } = chatOf(server)
    await chat.sendMessage({ text: "First" })
    await chat.sendMessage({ text: "Second" })
    const [question, answer] = chat.messages
    await chat.regenerate({ messageId: answer?.id ?? "" })
    expect(told(server, 2)).toEqual(["user: First"])
    expect(texts(await loaded(server))).toEqual(["user: First", "assistant: Another one."])
    await chat.sendMessage({ text: "Other", messageId: question?.id ?? "" })
    expect(errors).toEqual([])
    expect(told(server, 3)).toEqual(["user: Other"])
    expect(texts(await loaded(server))).toEqual(["user: Other", "assistant: A third one."])
    expect(texts(chat.messages)).toEqual(texts(await loaded(server)))
  })

  it("is loaded from its thread, and answered again", async () => {
    const server = await serve([saying("One."), saying("Two.")], [])
    await chatOf(server).chat.sendMessage({ text: "First" })
    const { chat } = chatOf(server, await loaded(server))
    await chat.regenerate()
    expect(texts(await loaded(server))).toEqual(["user: First", "assistant: Two."])
  })

  it("keeps what is there when the request is refused, or the message is another thread's", async () => {
    const server = await serve([saying("One."), saying("Two.")], [])
    const { chat } = chatOf(server)
    await chat.sendMessage({ text: "First" })
    await chat.regenerate({ body: { memory, maxSteps: 99 } })
    expect(texts(await loaded(server))).toEqual(["user: First", "assistant: One."])
    const other: UIMessage = { id: "elsewhere", role: "user", parts: [{ type: "text", text: "Elsewhere" }] }
    await chatOf(server, [other]).chat.regenerate()
    expect(texts(await loaded(server))).toEqual([
      "user: First",
      "assistant: One.",
      "user: Elsewhere",
      "assistant: Two."
    ])
  })
})

it("in a chat keeps what its first turn has said, when a later one answers its tasks", async () => {
  const turns = [saying("One."), calling("research"), saying("Wait."), saying("Water.")]
  const { api, url } = await served({ helper: agentWith(turns, { tools: { research } }) })
  const server = { api, url, model: ScriptedModel.make([]) }
  const { chat } = chatOf(server)
  await chat.sendMessage({ text: "First" })
  await chat.regenerate()
  expect(uiText(chat.lastMessage)).toBe("Wait.Water.")
  const stored = texts(await loaded(server))
  expect(stored).toEqual(["user: First", "assistant: Wait.", "assistant: Water."])
})

/** A chat whose first answer is held in its middle, and whose second is told at once. */
const held = async () => {
  let release = (): void => undefined
  const gate = new Promise<void>(resolve => {
    release = resolve
  })
  const { model } = modelOf([
    () =>
      (async function* () {
        yield { type: "text-start", id: "t" }
        yield { type: "text-delta", id: "t", delta: "Half " }
        await gate
        yield { type: "text-delta", id: "t", delta: "of it." }
        yield { type: "text-end", id: "t" }
        yield { type: "finish", reason: "stop", usage: {} }
      })(),
    () =>
      (async function* () {
        yield { type: "text-start", id: "t" }
        yield { type: "text-delta", id: "t", delta: "All of it." }
        yield { type: "text-end", id: "t" }
        yield { type: "finish", reason: "stop", usage: {} }
      })()
  ])
  const { api, url } = await served({ helper: agentWith([], { model }) }, { onDisconnect: "continue" })
  const server = { api, url, model: ScriptedModel.make([]) }
  const { chat } = chatOf(server)
  const first = chat.sendMessage({ text: "First" }, { body: { memory, runId: "first" } })
  await vi.waitFor(() => expect(uiText(chat.lastMessage)).toBe("Half "))
  await chat.stop()
  await first
  const told = async () => (await fetch(`${api}/runs/first/events?offset=0`)).text()
  return { chat, release, server, told }
}

it("in a chat takes the place of an answer that is still being said", async () => {
  const { chat, release, server, told } = await held()
  await chat.regenerate()
  release()
  expect(await told()).toContain('"type":"abort"')
  expect(texts(await loaded(server))).toEqual(["user: First", "assistant: All of it."])
})

it.each([
  ["sent another time", { memory, runId: "first" }],
  ["about another's thread", { memory: { ...memory, resource: "eve" } }],
  ["not allowed", { memory, maxSteps: 99 }]
])("in a chat ends nothing by a request that is %s", async (_, body) => {
  const { chat, release, server, told } = await held()
  await chat.regenerate({ body })
  expect(chat.status).toBe("error")
  release()
  expect(await told()).not.toContain('"type":"abort"')
  expect(texts(await loaded(server))).toEqual(["user: First", "assistant: Half of it."])
})

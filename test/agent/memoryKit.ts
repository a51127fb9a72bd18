/** What the tests of threads share: stores that tell what they were asked, and what a prompt must be. */
import { Agent, type Conversation, type Message, type ModelPart, ThreadStore } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Context, Effect, Layer } from "effect"
import { expect } from "vitest"
import * as memoryThreads from "../../src/storage/memoryThreads.js"
import { conversationFaults } from "../support/conversationFaults.js"

type Store = Context.Tag.Service<ThreadStore.ThreadStore>

export const memory = { thread: "t1", resource: "u1" } as const

/** The same thread, for a prompt that shows all of it. */
export const whole = { ...memory, lastMessages: 1_000_000 } as const

export const hang = ScriptedModel.hang

export const { finish: ends, reply, text, toolCall } = ScriptedModel

/** One delta that says it all. */
export const says = (content: string, id = "0"): ModelPart.ModelPart => ({
  type: "text-delta",
  id,
  delta: content
})

/** A store over its own memory, some of its operations changed. */
export const changed = (change: (store: Store) => Partial<Store>): Layer.Layer<ThreadStore.ThreadStore> =>
  Layer.map(ThreadStore.layerMemory, context => {
    const store = Context.get(context, ThreadStore.ThreadStore)
    return Context.make(ThreadStore.ThreadStore, { ...store, ...change(store) })
  })

type Operation = keyof ReturnType<typeof memoryThreads.make>

/** A store that counts what its driver is asked, and the rows that it reads and writes. */
export const counting = () => {
  const driver = memoryThreads.make()
  const calls: Array<Operation> = []
  const rows = { read: 0, written: 0 }
  const counted: ReturnType<typeof memoryThreads.make> = {
    open: thread => Effect.zipRight(note("open"), driver.open(thread)),
    get: id => Effect.zipRight(note("get"), driver.get(id)),
    list: page => Effect.zipRight(note("list"), driver.list(page)),
    update: (id, change) => Effect.zipRight(note("update"), driver.update(id, change)),
    delete: id => Effect.zipRight(note("delete"), driver.delete(id)),
    startRun: (id, runId) => Effect.zipRight(note("startRun"), driver.startRun(id, runId)),
    append: (id, messages, now) => {
      rows.written += messages.length
      return Effect.zipRight(note("append"), driver.append(id, messages, now))
    },
    messages: (id, last) =>
      Effect.map(Effect.zipRight(note("messages"), driver.messages(id, last)), found => {
        rows.read += found.length
        return found
      }),
    findTool: (id, callId, before) => Effect.zipRight(note("findTool"), driver.findTool(id, callId, before)),
    replace: (id, messageId, expected, content, now) =>
      Effect.zipRight(note("replace"), driver.replace(id, messageId, expected, content, now)),
    deleteAfter: (id, messageId, now) =>
      Effect.zipRight(note("deleteAfter"), driver.deleteAfter(id, messageId, now))
  }
  const note = (operation: Operation) => Effect.sync(() => void calls.push(operation))
  const forget = (): void => {
    calls.length = 0
    rows.read = 0
    rows.written = 0
  }
  return { calls, rows, forget, layer: Layer.succeed(ThreadStore.ThreadStore, ThreadStore.make(counted)) }
}

/** Everything that the thread holds. */
export const stored = Effect.fnUntraced(function* (threadId: string = memory.thread) {
  return yield* Effect.flatMap(ThreadStore.ThreadStore, store => store.messages(threadId))
})

/** The messages that the thread holds, without their places. */
export const messagesOf = (threadId?: string) =>
  Effect.map(stored(threadId), messages => messages.map(({ message }) => message))

export const rolesOf = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<string> =>
  messages.map(({ role }) => role)

/** All text of these messages, those of one role when one is given. */
export const textIn = (messages: ReadonlyArray<Message.Message>, role?: Message.Message["role"]): string =>
  messages
    .filter(message => role === undefined || message.role === role)
    .flatMap(({ content }) =>
      typeof content === "string"
        ? [content]
        : content.flatMap(part => (part.type === "text" ? part.text : []))
    )
    .join("")

/** The next turn of the thread, and what the model is told in it. */
export const nextPrompt = Effect.fnUntraced(function* (
  input: Conversation.Input = "next",
  of: { readonly thread: string; readonly resource: string; readonly lastMessages?: number | false } = whole
) {
  const model = ScriptedModel.make([reply("ok")])
  yield* Agent.generate(Agent.make({ id: "next", model }), input, { memory: of })
  const prompt = model.requests[0]?.messages ?? []
  expectPrompt(prompt)
  return prompt
})

/** What is wrong with a prompt: it begins with somebody else than the user, holds an empty message, or no provider takes it. */
export const promptFaults = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<string> => {
  const spoken = messages.filter(({ role }) => role !== "system")
  const [first] = spoken
  return [
    ...(first?.role === "user" ? [] : [`begins with ${first?.role}`]),
    ...spoken.flatMap(({ content }, index) => (content.length === 0 ? [`[${index}] is empty`] : [])),
    ...conversationFaults(messages, call => call.providerExecuted === true)
  ]
}

export const expectPrompt = (messages: ReadonlyArray<Message.Message>): void => {
  expect(promptFaults(messages)).toStrictEqual([])
}

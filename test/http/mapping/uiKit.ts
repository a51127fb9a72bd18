/** The real readers of the AI SDK, fed with frames. */
import {
  AbstractChat,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema
} from "ai"
import { type Chunk, Json } from "eddy"
import * as UiMessageStream from "../../../src/http/mapping/UiMessageStream.js"
import { dataLine, done, mapped, sseResponse } from "./kit.js"

/** What went over the wire. */
const overWire = (frames: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  JSON.parse(Json.stringify(frames))

/** Frames that the client's own schema takes; throws with the first that it does not. */
export const validated = async (frames: ReadonlyArray<unknown>): Promise<ReadonlyArray<UIMessageChunk>> => {
  const { validate } = uiMessageChunkSchema()
  const chunks: Array<UIMessageChunk> = []
  for (const frame of overWire(frames)) {
    const read = await validate?.(frame)
    if (read?.success !== true) throw new Error(`Not a frame of the AI SDK: ${JSON.stringify(frame)}`)
    chunks.push(read.value)
  }
  return chunks
}

/** What is wrong with a response before any client reads it. */
export const order = (frames: ReadonlyArray<UIMessageChunk>): ReadonlyArray<string> => {
  const types = frames.map(({ type }) => type)
  const count = (type: string): number => types.filter(one => one === type).length
  const steps = types.filter(type => type === "start-step" || type === "finish-step")
  return [
    ...(types[0] === "start" ? [] : [`begins with ${types[0]}`]),
    ...(types.at(-1) === "finish" ? [] : [`ends with ${types.at(-1)}`]),
    ...(count("start") === 1 ? [] : [`${count("start")} starts`]),
    ...(count("finish") === 1 ? [] : [`${count("finish")} finishes`]),
    ...(steps.every((type, index) => type === (index % 2 === 0 ? "start-step" : "finish-step"))
      ? []
      : ["steps are not closed"])
  ]
}

/** The last state of the message, and what the reader complained of. */
export const readUi = async (
  frames: ReadonlyArray<unknown>,
  message?: UIMessage
): Promise<{ readonly message: UIMessage | undefined; readonly errors: ReadonlyArray<string> }> => {
  const chunks = await validated(frames)
  const wrong = order(chunks)
  if (wrong.length > 0) throw new Error(wrong.join(", "))
  const errors: Array<string> = []
  let last: UIMessage | undefined
  const states = readUIMessageStream({
    stream: new ReadableStream<UIMessageChunk>({
      start: controller => {
        for (const chunk of chunks) controller.enqueue(chunk)
        controller.close()
      }
    }),
    onError: error => errors.push(error instanceof Error ? error.message : String(error)),
    ...(message === undefined ? {} : { message: structuredClone(message) })
  })
  for await (const state of states) last = state
  return { message: last, errors }
}

export const uiText = (message: UIMessage | undefined): string =>
  message?.parts.map(part => (part.type === "text" ? part.text : "")).join("") ?? ""

/** The parts of one type. */
export const partsOf = (
  message: UIMessage | undefined,
  type: string
): ReadonlyArray<Record<string, unknown>> =>
  (message?.parts ?? [])
    .filter(part => part.type === type)
    .map(part => JSON.parse(JSON.stringify(part)) as Record<string, unknown>)

/** What a chat holds. */
export class MemoryState implements ChatState<UIMessage> {
  status: ChatStatus = "ready"
  error: Error | undefined = undefined
  messages: Array<UIMessage> = []
  pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, message]
  }
  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.map((one, at) => (at === index ? message : one))
  }
  snapshot = <T>(thing: T): T => structuredClone(thing)
}

class TestChat extends AbstractChat<UIMessage> {}

interface Posted {
  readonly url: string
  readonly body: unknown
}

/** A server of one function: what is posted in, chunks out. */
export const serve = (
  answer: (
    body: unknown,
    count: number
  ) => { readonly chunks: ReadonlyArray<Chunk.Chunk>; readonly options?: UiMessageStream.Options }
) => {
  const posted: Array<Posted> = []
  const bodies: Array<ReadonlyArray<string>> = []
  const fetch = (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const body: unknown = typeof init?.body === "string" ? JSON.parse(init.body) : undefined
    posted.push({ url: String(url), body })
    const { chunks, options } = answer(body, posted.length)
    const frames = [": open", ...mapped(UiMessageStream.make(options), chunks).map(dataLine), done]
    bodies.push(frames)
    return Promise.resolve(sseResponse(frames))
  }
  return { fetch, posted, bodies }
}

/** `useChat` without React. */
export const chatOver = (
  fetch: (url: string | URL | Request, init?: RequestInit) => Promise<Response>,
  more: Pick<
    ConstructorParameters<typeof AbstractChat<UIMessage>>[0],
    "sendAutomaticallyWhen" | "onError" | "onData"
  > = {}
) =>
  new TestChat({
    id: "chat-1",
    state: new MemoryState(),
    transport: new DefaultChatTransport<UIMessage>({ api: "http://kit.test/api/chat", fetch }),
    ...more
  })

/** Threads and their messages. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { answeredCalls } from "../protocol/conversationPairs.js"
import { toUiParts } from "../protocol/conversationUiParts.js"
import { IdGenerator } from "../protocol/Id.js"
import type { Message } from "../protocol/Message.js"
import { type JsonValue, toJson } from "../protocol/safeJson.js"
import type { Thread, ThreadMessage } from "../storage/ThreadStore.js"
import { type Asked, type Handler, isOwn } from "./asked.js"
import { maskMessage, maskUiMessage } from "./maskingMessages.js"
import * as Read from "./reading.js"
import { invalidQuery, notFound, Refusal } from "./refusal.js"
import { json } from "./responses.js"

const unavailable = new Refusal({ status: 404, message: "There are no threads here" })

const storeOf = ({ host }: Asked) => (host.threads === undefined ? unavailable : Effect.succeed(host.threads))

/** The thread of the path, if it is the sender's. */
const find = Effect.fnUntraced(function* (asked: Asked) {
  const store = yield* storeOf(asked)
  const thread = yield* store.get(asked.params["threadId"] ?? "")
  if (Option.isNone(thread) || !isOwn(asked, thread.value)) return yield* notFound("Thread")
  return { store, thread: thread.value }
})

export const list: Handler = asked =>
  Effect.gen(function* () {
    const { query, resource } = asked
    const store = yield* storeOf(asked)
    const { page, perPage } = yield* Read.page(query)
    const resourceId = resource ?? Read.queryText(query, "resourceId")
    const found = yield* store.list({ page, perPage, ...(resourceId === undefined ? {} : { resourceId }) })
    return json({ ...found, page, perPage, hasMore: (page + 1) * perPage < found.total })
  })

export const get: Handler = asked => Effect.map(find(asked), ({ thread }) => json(thread))

const metadataOf = Effect.fnUntraced(function* (body: Read.Fields) {
  const metadata = yield* Read.maybeRecord(body, "metadata")
  if (metadata === undefined) return undefined
  const safe: { readonly [key: string]: JsonValue } = Object.fromEntries(
    Object.entries(metadata).map(([key, value]) => [key, toJson(value)])
  )
  return safe
})

const described = Effect.fnUntraced(function* (body: Read.Fields) {
  const title = yield* Read.maybeText(body, "title")
  const metadata = yield* metadataOf(body)
  return { ...(title === undefined ? {} : { title }), ...(metadata === undefined ? {} : { metadata }) }
})

export const create: Handler = asked =>
  Effect.gen(function* () {
    const { body, resource } = asked
    const store = yield* storeOf(asked)
    yield* Read.refuseFields(body, [
      "threadId",
      "resourceId",
      "title",
      "metadata",
      "agentId",
      "requestContext"
    ])
    const { next } = yield* IdGenerator
    const id = (yield* Read.maybeId(body, "threadId")) ?? `thread-${next("message").replace(/^message-/, "")}`
    const resourceId = resource ?? (yield* Read.id(body, "resourceId"))
    const thread: Thread = yield* store.open({ id, resourceId, ...(yield* described(body)) })
    return json(thread)
  })

export const update: Handler = asked =>
  Effect.gen(function* () {
    const { body } = asked
    yield* Read.refuseFields(body, ["title", "metadata", "resourceId"])
    const { store, thread } = yield* find(asked)
    return json(yield* store.update(thread.id, yield* described(body)))
  })

export const remove: Handler = asked =>
  Effect.gen(function* () {
    const { store, thread } = yield* find(asked)
    yield* store.delete(thread.id)
    return json({ result: "Thread deleted" })
  })

/** A message of the user as parts of a user interface. */
const userParts = (message: Extract<Message, { readonly role: "user" }>) =>
  message.content.map(part =>
    part.type === "text"
      ? { type: "text", text: part.text }
      : {
          type: "file",
          mediaType: part.mediaType,
          ...(part.filename === undefined ? {} : { filename: part.filename }),
          url: part.data instanceof URL ? part.data.href : `data:${part.mediaType};base64,${part.data}`
        }
  )

const partsOf = (group: ReadonlyArray<ThreadMessage>) => {
  const [first] = group
  if (first?.message.role === "user") return userParts(first.message)
  return toUiParts(group.map(({ message }) => message))
}

/** Whether a message tells outcomes of calls of these. A client's tools are answered in the run behind that of their calls. */
const goesOn = ({ message }: ThreadMessage, group: ReadonlyArray<ThreadMessage>): boolean => {
  if (message.role !== "tool") return false
  const calls = answeredCalls(group.map(entry => entry.message))
  return message.content.some(part => calls.get(part.toolCallId) === false)
}

/** Messages as user interfaces show them: what answers to one message of the user in the same run is one. */
const grouped = (messages: ReadonlyArray<ThreadMessage>): ReadonlyArray<ReadonlyArray<ThreadMessage>> => {
  const groups: Array<Array<ThreadMessage>> = []
  for (const message of messages) {
    const group = groups.at(-1) ?? []
    const last = group.at(-1)
    const isAnswer = (other: ThreadMessage): boolean =>
      other.message.role === "assistant" || other.message.role === "tool"
    if (message.message.role === "system") continue
    const isSameRun = last?.runId === message.runId || goesOn(message, group)
    if (last !== undefined && isAnswer(message) && isAnswer(last) && isSameRun) {
      group.push(message)
    } else {
      groups.push([message])
    }
  }
  return groups
}

export const messages: Handler = asked =>
  Effect.gen(function* () {
    const { query, settings } = asked
    const { store, thread } = yield* find(asked)
    const last = yield* Read.queryNumber(query, "last")
    const { page, perPage } = yield* Read.page(query)
    const format = Read.queryText(query, "format")
    if (format !== undefined && format !== "model" && format !== "ui") {
      return yield* invalidQuery("format", "must be one of: ui, model")
    }
    const stored = yield* store.messages(thread.id, last === undefined ? {} : { last })
    const isExposed = settings.expose.errors === true
    const entries =
      format === "model"
        ? stored.map(entry => (isExposed ? entry : { ...entry, message: maskMessage(entry.message) }))
        : grouped(stored).flatMap(group => {
            const [first] = group
            if (first === undefined) return []
            const role = first.message.role === "user" ? ("user" as const) : ("assistant" as const)
            const made = { id: first.id, role, parts: partsOf(group) }
            const { parts } = isExposed ? made : maskUiMessage(made)
            const { createdAt, runId } = first
            const of = { threadId: thread.id, resourceId: thread.resourceId, createdAt }
            const run = runId === undefined ? {} : { runId }
            return [{ id: first.id, role, ...of, ...run, parts, content: { format: 2, parts } }]
          })
    const total = entries.length
    return json({
      messages: entries.slice(page * perPage, (page + 1) * perPage),
      total,
      page,
      perPage,
      hasMore: (page + 1) * perPage < total
    })
  })

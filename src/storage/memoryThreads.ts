/** Threads in the memory of the process. Each operation is one synchronous step, and that is what makes it atomic. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Encoded, MessageRow, NewMessageRow, Place, ThreadRow } from "./threadRows.js"

interface Stored {
  readonly thread: ThreadRow
  /** In order of `sequence`, without gaps: a message's index is its sequence less 1. */
  readonly messages: Array<MessageRow>
  readonly indexes: Map<string, number>
  readonly objective: string | null
}

/** Where the turn begins that the message at `first` belongs to. */
const beginOfTurn = (messages: ReadonlyArray<MessageRow>, first: number): number => {
  let index = first
  while (index > 0 && messages[index]?.role !== "user") index--
  return index
}

const put = (stored: Stored, message: NewMessageRow, now: number): Place => {
  const { indexes, messages, thread } = stored
  const index = indexes.get(message.id) ?? messages.length
  const { createdAt = now } = messages[index] ?? {}
  const place = { sequence: index + 1, createdAt }
  messages[index] = { ...message, ...place, threadId: thread.id }
  indexes.set(message.id, index)
  return place
}

/** A driver whose threads go with it. */
export const make = (): Encoded => {
  /** The order of the map is the order of the changes: a changed thread is taken out and put in again. */
  const threads = new Map<string, Stored>()
  const change = (stored: Stored, changed: Partial<ThreadRow>): ThreadRow => {
    const thread = { ...stored.thread, ...changed }
    threads.delete(thread.id)
    threads.set(thread.id, { ...stored, thread })
    return thread
  }
  const find = (id: string): Option.Option<Stored> => Option.fromNullable(threads.get(id))
  return {
    open: thread =>
      Effect.sync(() => {
        const stored = threads.get(thread.id)
        if (stored !== undefined) return stored.thread
        threads.set(thread.id, { thread, messages: [], indexes: new Map(), objective: null })
        return thread
      }),
    get: id => Effect.sync(() => Option.map(find(id), ({ thread }) => thread)),
    list: ({ limit, offset, resourceId }) =>
      Effect.sync(() => {
        const all = Array.from(threads.values(), ({ thread }) => thread).reverse()
        const found = resourceId === undefined ? all : all.filter(thread => thread.resourceId === resourceId)
        return { rows: found.slice(offset, offset + limit), total: found.length }
      }),
    update: (id, { metadata, title, updatedAt }) =>
      Effect.sync(() =>
        Option.map(find(id), stored =>
          change(stored, {
            ...(title === undefined ? {} : { title }),
            ...(metadata === undefined ? {} : { metadata }),
            updatedAt
          })
        )
      ),
    delete: id => Effect.sync(() => threads.delete(id)),
    append: (threadId, messages, now) =>
      Effect.sync(() =>
        Option.map(find(threadId), stored => {
          change(stored, { updatedAt: now })
          return messages.map(message => put(stored, message, now))
        })
      ),
    messages: (threadId, last) =>
      Effect.sync(() => {
        const { messages } = threads.get(threadId) ?? { messages: [] }
        const first = last === undefined ? 0 : Math.max(0, messages.length - last)
        return messages.slice(beginOfTurn(messages, first))
      }),
    findTool: (threadId, text, before) =>
      Effect.sync(() =>
        Option.fromNullable(
          threads
            .get(threadId)
            ?.messages.findLast(
              ({ content, role, sequence }) =>
                role === "tool" && (before === undefined || sequence < before) && content.includes(text)
            )
        )
      ),
    replace: (threadId, id, expected, content, now) =>
      Effect.sync(() => {
        const stored = threads.get(threadId)
        const index = stored?.indexes.get(id)
        const message = index === undefined ? undefined : stored?.messages[index]
        if (stored === undefined || index === undefined || message?.content !== expected) return false
        stored.messages[index] = { ...message, content }
        change(stored, { updatedAt: now })
        return true
      }),
    deleteAfter: (threadId, id, now) =>
      Effect.sync(() => {
        const stored = threads.get(threadId)
        const index = stored?.indexes.get(id)
        if (stored === undefined || index === undefined) return false
        for (const gone of stored.messages.splice(index + 1)) stored.indexes.delete(gone.id)
        change(stored, { updatedAt: now })
        return true
      }),
    objectives: {
      get: (threadId, resourceId) =>
        Effect.sync(() =>
          Option.map(
            Option.filter(find(threadId), ({ thread }) => thread.resourceId === resourceId),
            ({ objective }) => objective
          )
        ),
      replace: (threadId, resourceId, expected, content) =>
        Effect.sync(() => {
          const stored = threads.get(threadId)
          if (stored?.thread.resourceId !== resourceId || stored.objective !== expected) return false
          // Its place in the order of changes stays.
          threads.set(threadId, { ...stored, objective: content })
          return true
        })
    }
  }
}

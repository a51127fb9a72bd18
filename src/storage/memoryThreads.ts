/** Threads in the memory of the process. Each operation is one synchronous step, and that is what makes it atomic. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Encoded, MessageRow, NewMessageRow, Place, ThreadRow } from "./threadRows.js"

interface Stored {
  readonly thread: ThreadRow
  /** In order of their blocks, in a block of their sequence. */
  readonly messages: Array<MessageRow>
  /** The places of messages, by id. */
  readonly places: Map<string, Place>
  /** The blocks of runs, by id. */
  readonly runs: Map<string, number>
  /** The highest block and sequence. */
  readonly last: { block: number; sequence: number }
  readonly objective: string | null
}

const isBehind = (one: Place, other: Place): boolean =>
  one.block > other.block || (one.block === other.block && one.sequence > other.sequence)

/** How many of the messages stand at this place or before it. */
const countUpTo = (messages: ReadonlyArray<MessageRow>, place: Place): number =>
  messages.findLastIndex(message => !isBehind(message, place)) + 1

/** Where the turn begins that the message at `first` belongs to. */
const beginOfTurn = (messages: ReadonlyArray<MessageRow>, first: number): number => {
  let index = first
  while (index > 0 && messages[index]?.role !== "user") index--
  return index
}

/** The block of a run, made behind all others when it has none. */
const blockOf = ({ last, runs }: Stored, runId: string): number => {
  const block = runs.get(runId) ?? ++last.block
  runs.set(runId, block)
  return block
}

const put = (stored: Stored, messages: ReadonlyArray<NewMessageRow>, now: number): ReadonlyArray<Place> => {
  const { last, places, thread } = stored
  let ofNoRun: number | undefined
  return messages.map(message => {
    const known = places.get(message.id)
    if (known !== undefined) {
      stored.messages[countUpTo(stored.messages, known) - 1] = { ...message, ...known, threadId: thread.id }
      return known
    }
    if (message.runId !== null) ofNoRun = undefined
    else if (ofNoRun === undefined) ofNoRun = ++last.block
    const block = message.runId === null ? (ofNoRun ?? last.block) : blockOf(stored, message.runId)
    const place = { block, sequence: ++last.sequence, createdAt: now }
    stored.messages.splice(countUpTo(stored.messages, place), 0, {
      ...message,
      ...place,
      threadId: thread.id
    })
    places.set(message.id, place)
    return place
  })
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
        threads.set(thread.id, {
          thread,
          messages: [],
          places: new Map(),
          runs: new Map(),
          last: { block: 0, sequence: 0 },
          objective: null
        })
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
    startRun: (threadId, runId) =>
      Effect.sync(() => Option.map(find(threadId), stored => blockOf(stored, runId))),
    append: (threadId, messages, now) =>
      Effect.sync(() =>
        Option.map(find(threadId), stored => {
          change(stored, { updatedAt: now })
          return put(stored, messages, now)
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
            ?.messages.filter(
              ({ content, role, sequence }) =>
                role === "tool" && (before === undefined || sequence < before) && content.includes(text)
            )
            .reduce<MessageRow | undefined>(
              (newest, message) => (message.sequence > (newest?.sequence ?? 0) ? message : newest),
              undefined
            )
        )
      ),
    replace: (threadId, id, expected, content, now) =>
      Effect.sync(() => {
        const stored = threads.get(threadId)
        const place = stored?.places.get(id)
        if (stored === undefined || place === undefined) return false
        const index = countUpTo(stored.messages, place) - 1
        const message = stored.messages[index]
        if (message?.content !== expected) return false
        stored.messages[index] = { ...message, content }
        change(stored, { updatedAt: now })
        return true
      }),
    deleteAfter: (threadId, id, now) =>
      Effect.sync(() => {
        const stored = threads.get(threadId)
        const place = stored?.places.get(id)
        if (stored === undefined || place === undefined) return false
        const gone = stored.messages.splice(countUpTo(stored.messages, place))
        for (const message of gone) stored.places.delete(message.id)
        stored.last.sequence = stored.messages.reduce((last, { sequence }) => Math.max(last, sequence), 0)
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

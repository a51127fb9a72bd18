/** Drivers that are wrong in one way each: what the conformance cases are there to find. */
import { Effect, Option } from "effect"
import * as memoryThreads from "../../src/storage/memoryThreads.js"
import type { Encoded, MessageRow, NewMessageRow, ThreadRow } from "../../src/storage/threadRows.js"
import { mutationsOfObjectives } from "./brokenObjectives.js"

type Mutation = (driver: Encoded) => Partial<Encoded>

const changedRows =
  (change: (rows: ReadonlyArray<MessageRow>) => ReadonlyArray<MessageRow>): Mutation =>
  driver => ({ messages: (id, last) => Effect.map(driver.messages(id, last), change) })

const sortedBy = (key: (row: MessageRow) => number | string): Mutation =>
  changedRows(rows =>
    [...rows].sort((one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0))
  )

const changedMessages =
  (change: (message: NewMessageRow) => NewMessageRow): Mutation =>
  driver => ({
    append: (id, messages, now) => driver.append(id, messages.map(change), now)
  })

const changedContent = (change: (content: string) => string): Mutation =>
  changedMessages(message => ({ ...message, content: change(message.content) }))

/** Another value for every key of this name, wherever it stands. */
const replaced = (content: string, key: string, change: (value: unknown) => unknown): string =>
  JSON.stringify(JSON.parse(content, (name, value) => (name === key ? change(value) : value)))

const otherIds = (change: (id: string) => string): Mutation => {
  return driver => ({
    open: thread =>
      Effect.map(driver.open({ ...thread, id: change(thread.id) }), row => ({ ...row, id: thread.id })),
    get: id =>
      Effect.map(
        driver.get(change(id)),
        Option.map(row => ({ ...row, id }))
      )
  })
}

/** One message after the other, with turns of other fibers in between. */
const oneByOne: Mutation = driver => ({
  append: (id, messages, now) =>
    Effect.map(
      Effect.forEach(messages, message =>
        Effect.zipLeft(driver.append(id, [message], now), Effect.yieldNow())
      ),
      places => Option.map(Option.all(places), places => places.flat())
    )
})

/** Threads by id and all at once, for mutations that need to know more than the driver tells. */
const rowsOf = (driver: Encoded, resourceId: string | undefined) =>
  Effect.map(driver.list({ resourceId, offset: 0, limit: 1_000_000 }), ({ rows }) => rows)

const listedBy = (order: (one: ThreadRow, other: ThreadRow) => number): Mutation => {
  return driver => ({
    list: ({ limit, offset, resourceId }) =>
      Effect.map(rowsOf(driver, resourceId), rows => ({
        rows: [...rows].sort(order).slice(offset, offset + limit),
        total: rows.length
      }))
  })
}

const mutations: Readonly<Record<string, Mutation>> = {
  "sorts messages by time": sortedBy(({ createdAt }) => createdAt),
  "sorts messages by id": sortedBy(({ id }) => id),
  "sorts messages by sequence": sortedBy(({ sequence }) => sequence),
  "gives a run that goes on a new block": driver => ({
    startRun: (id, runId) => driver.startRun(id, `${runId}${Math.random()}`)
  }),
  "puts messages of no run into the last block": driver => {
    const last = new Map<string, string>()
    return {
      append: (id, messages, now) => {
        const placed = messages.map(message => ({ ...message, runId: message.runId ?? last.get(id) ?? null }))
        for (const { runId } of messages) if (runId !== null) last.set(id, runId)
        return driver.append(id, placed, now)
      },
      startRun: (id, runId) => {
        last.set(id, runId)
        return driver.startRun(id, runId)
      }
    }
  },
  "gives messages backwards": changedRows(rows => [...rows].reverse()),
  "counts sequences from 0": driver => ({
    append: (id, messages, now) =>
      Effect.map(
        driver.append(id, messages, now),
        Option.map(places => places.map(place => ({ ...place, sequence: place.sequence - 1 })))
      )
  }),
  "appends one by one": oneByOne,
  "appends a message that is there at the end": driver => ({
    append: (id, messages, now) =>
      Effect.gen(function* () {
        const old = yield* driver.messages(id, undefined)
        const thread = yield* driver.get(id)
        if (Option.isNone(thread)) return Option.none()
        const added = new Set(messages.map(({ id }) => id))
        yield* driver.delete(id)
        yield* driver.open(thread.value)
        const kept = old.filter(({ id }) => !added.has(id))
        yield* driver.append(id, [...kept, ...messages], now)
        const places = new Map((yield* driver.messages(id, undefined)).map(row => [row.id, row]))
        return Option.all(messages.map(({ id }) => Option.fromNullable(places.get(id))))
      })
  }),
  "ignores a message that is there": driver => ({
    append: (id, messages, now) =>
      Effect.gen(function* () {
        const known = new Map((yield* driver.messages(id, undefined)).map(row => [row.id, row]))
        return yield* driver.append(
          id,
          messages.map(message => known.get(message.id) ?? message),
          now
        )
      })
  }),
  "keeps the run of a message that is replaced": driver => ({
    append: (id, messages, now) =>
      Effect.gen(function* () {
        const known = new Map((yield* driver.messages(id, undefined)).map(row => [row.id, row.runId]))
        const mixed = messages.map(message => ({ ...message, runId: known.get(message.id) ?? message.runId }))
        return yield* driver.append(id, mixed, now)
      })
  }),
  "keeps the role of a message that is replaced": driver => {
    const roles = new Map<string, MessageRow["role"]>()
    return {
      append: (threadId, messages, now) => {
        const mixed = messages.map(message => {
          const key = `${threadId} ${message.id}`
          const role = roles.get(key) ?? message.role
          roles.set(key, role)
          return { ...message, role }
        })
        return driver.append(threadId, mixed, now)
      }
    }
  },
  "gives a message that is replaced a new time": driver => {
    const times = new Map<string, number>()
    return {
      append: (threadId, messages, now) => {
        for (const { id } of messages) times.set(`${threadId} ${id}`, now)
        return driver.append(threadId, messages, now)
      },
      messages: (threadId, last) =>
        Effect.map(driver.messages(threadId, last), rows =>
          rows.map(row => ({ ...row, createdAt: times.get(`${threadId} ${row.id}`) ?? row.createdAt }))
        )
    }
  },
  "gives places in the order of sequence": driver => ({
    append: (id, messages, now) =>
      Effect.map(
        driver.append(id, messages, now),
        Option.map(places => [...places].sort((one, other) => one.sequence - other.sequence))
      )
  }),
  "takes ids of messages for unique in all threads": driver => {
    const owners = new Map<string, string>()
    return {
      append: (threadId, messages, now) => {
        for (const { id } of messages) owners.set(id, owners.get(id) ?? threadId)
        return driver.append(threadId, messages, now)
      },
      messages: (threadId, last) =>
        Effect.map(driver.messages(threadId, last), rows =>
          rows.filter(({ id }) => owners.get(id) === threadId)
        )
    }
  },
  "makes the thread that is appended to": driver => ({
    append: (id, messages, now) =>
      Effect.zipRight(
        driver.open({ id, resourceId: id, title: null, metadata: null, createdAt: now, updatedAt: now }),
        driver.append(id, messages, now)
      )
  }),
  "does not touch the thread that is appended to": driver => ({
    append: (id, messages) => driver.append(id, messages, 0)
  }),
  "recalls the last messages without their turn": driver => ({
    messages: (id, last) =>
      Effect.map(driver.messages(id, undefined), rows => (last === undefined ? rows : rows.slice(-last)))
  }),
  "recalls one turn more": driver => ({
    messages: (id, last) => driver.messages(id, last === undefined ? last : last + 1)
  }),
  "recalls always all": driver => ({ messages: id => driver.messages(id, undefined) }),
  "recalls one message less": driver => ({
    messages: (id, last) => driver.messages(id, last === undefined ? last : Math.max(1, last - 1))
  }),
  "recalls nothing before the last when there is no user": driver => ({
    messages: (id, last) =>
      Effect.map(driver.messages(id, last), rows =>
        last === undefined || rows[0]?.role === "user" ? rows : rows.slice(-last)
      )
  }),
  "takes system messages for the user's": driver => ({
    messages: (id, last) =>
      Effect.map(driver.messages(id, undefined), rows => {
        let first = Math.max(0, rows.length - (last ?? rows.length))
        while (first > 0 && rows[first]?.role !== "user" && rows[first]?.role !== "system") first--
        return rows.slice(first)
      })
  }),
  "keeps 1000 messages of a batch": driver => ({
    append: (id, messages, now) => driver.append(id, messages.slice(0, 1000), now)
  }),
  "drops provider options": changedContent(content => replaced(content, "providerOptions", () => undefined)),
  "parses and trims texts": changedContent(content =>
    replaced(content, "text", value => (typeof value === "string" ? value.trim() : value))
  ),
  "cuts long texts": changedContent(content =>
    replaced(content, "text", value => (typeof value === "string" ? value.slice(0, 65_535) : value))
  ),
  "drops NUL, as PostgreSQL's jsonb does": changedContent(content => content.replaceAll("\\u0000", "")),
  "normalizes text": changedContent(content => content.normalize("NFC")),
  "loses what is not in the basic plane": changedContent(content =>
    content.replaceAll(/[\u{10000}-\u{10ffff}]/gu, "?")
  ),
  "rounds numbers": changedContent(content =>
    JSON.stringify(
      JSON.parse(content, (_, value) => (typeof value === "number" ? Math.fround(value) : value))
    )
  ),
  "loses own keys that look like a prototype": changedContent(content =>
    replaced(content, "__proto__", () => undefined)
  ),
  "drops runs": changedMessages(message => ({ ...message, runId: null })),
  "compares ids without case": otherIds(id => id.toLowerCase()),
  "compares ids without spaces at the end": otherIds(id => id.trimEnd()),
  "compares ids in a normal form": otherIds(id => id.normalize("NFC")),
  "compares resources without case": driver => ({
    list: page =>
      Effect.map(rowsOf(driver, undefined), all => {
        const rows = all.filter(
          row =>
            page.resourceId === undefined || row.resourceId.toLowerCase() === page.resourceId.toLowerCase()
        )
        return { rows: rows.slice(page.offset, page.offset + page.limit), total: rows.length }
      })
  }),
  "lists threads by the time of change": listedBy((one, other) => other.updatedAt - one.updatedAt),
  "lists threads by the time of opening": listedBy((one, other) => other.createdAt - one.createdAt),
  "lists threads backwards": driver => ({
    list: page => Effect.map(driver.list(page), ({ rows, total }) => ({ rows: [...rows].reverse(), total }))
  }),
  "lists threads of all resources": driver => ({
    list: page => driver.list({ ...page, resourceId: undefined })
  }),
  "lists threads of no resource as none": driver => ({
    list: page => driver.list({ ...page, resourceId: page.resourceId ?? "" })
  }),
  "takes the page for the total": driver => ({
    list: page => Effect.map(driver.list(page), ({ rows }) => ({ rows, total: rows.length }))
  }),
  "ignores the page": driver => ({ list: page => driver.list({ ...page, offset: 0 }) }),
  "opens a thread anew": driver => ({
    open: thread => Effect.zipRight(driver.delete(thread.id), driver.open(thread))
  }),
  "opens a thread of another resource": driver => ({
    open: thread => Effect.map(driver.open(thread), row => ({ ...row, resourceId: thread.resourceId }))
  }),
  "looks before it opens": driver => ({
    open: thread =>
      Effect.gen(function* () {
        const found = yield* driver.get(thread.id)
        if (Option.isSome(found)) return found.value
        yield* Effect.yieldNow()
        yield* driver.delete(thread.id)
        return yield* driver.open(thread)
      })
  }),
  "updates titles that are not given": driver => ({
    update: (id, change) => driver.update(id, { ...change, title: change.title ?? "" })
  }),
  "takes an empty title for none": driver => ({
    update: (id, change) => driver.update(id, { ...change, title: change.title || undefined })
  }),
  "updates without the time": driver => ({
    update: (id, change) =>
      Effect.flatMap(driver.get(id), thread =>
        driver.update(id, {
          ...change,
          updatedAt: Option.match(thread, { onNone: () => 0, onSome: ({ updatedAt }) => updatedAt })
        })
      )
  }),
  "merges metadata": driver => ({
    update: (id, change) =>
      Effect.flatMap(driver.get(id), thread => {
        const old = Option.match(thread, { onNone: () => "{}", onSome: ({ metadata }) => metadata ?? "{}" })
        const metadata =
          change.metadata === undefined
            ? undefined
            : JSON.stringify({ ...JSON.parse(old), ...JSON.parse(change.metadata) })
        return driver.update(id, { ...change, metadata })
      })
  }),
  "updates what it has read before": driver => ({
    update: (id, change) =>
      Effect.gen(function* () {
        const thread = yield* driver.get(id)
        yield* Effect.yieldNow()
        return yield* driver.update(id, {
          title: change.title ?? Option.getOrUndefined(thread)?.title ?? "",
          metadata: change.metadata ?? Option.getOrUndefined(thread)?.metadata ?? "{}",
          updatedAt: change.updatedAt
        })
      })
  }),
  "makes the thread that is updated": driver => ({
    update: (id, change) =>
      Effect.zipRight(
        driver.open({ id, resourceId: id, title: null, metadata: null, createdAt: 0, updatedAt: 0 }),
        driver.update(id, change)
      )
  }),
  "cuts nothing": driver => ({
    deleteAfter: (threadId, id) =>
      Effect.map(driver.messages(threadId, undefined), rows => rows.some(row => row.id === id))
  }),
  "cuts the message too": driver => ({
    deleteAfter: (threadId, id, now) =>
      Effect.gen(function* () {
        const rows = yield* driver.messages(threadId, undefined)
        const before = rows[rows.findIndex(row => row.id === id) - 1]
        return yield* driver.deleteAfter(threadId, before?.id ?? id, now)
      })
  }),
  "cuts by the order of ids": driver => ({
    deleteAfter: (threadId, id, now) =>
      Effect.gen(function* () {
        const rows = yield* driver.messages(threadId, undefined)
        const thread = yield* driver.get(threadId)
        if (Option.isNone(thread) || !rows.some(row => row.id === id)) return false
        const kept = rows.filter(row => row.id <= id)
        yield* driver.delete(threadId)
        yield* driver.open(thread.value)
        yield* driver.append(threadId, kept, now)
        return true
      })
  }),
  "says always that it has cut": driver => ({
    deleteAfter: (threadId, id, now) => Effect.as(driver.deleteAfter(threadId, id, now), true)
  }),
  "does not touch the thread that is cut": driver => ({
    deleteAfter: (threadId, id) => driver.deleteAfter(threadId, id, 0)
  }),
  "says always that there was one": driver => ({ delete: id => Effect.as(driver.delete(id), true) }),
  "deletes nothing": () => ({ delete: () => Effect.succeed(true) }),
  "leaves the messages of a deleted thread": driver => {
    const left = new Map<string, ReadonlyArray<MessageRow>>()
    return {
      delete: id =>
        Effect.gen(function* () {
          left.set(id, yield* driver.messages(id, undefined))
          return yield* driver.delete(id)
        }),
      messages: (id, last) =>
        Effect.map(driver.messages(id, last), rows => (rows.length > 0 ? rows : (left.get(id) ?? [])))
    }
  },
  "deletes the messages of the other threads of the resource": driver => ({
    delete: id =>
      Effect.gen(function* () {
        const { resourceId } = Option.getOrThrow(yield* driver.get(id))
        for (const row of yield* rowsOf(driver, resourceId)) {
          yield* driver.delete(row.id)
          if (row.id !== id) yield* driver.open(row)
        }
        return true
      })
  })
}

const mutationsOfOutcomes: Readonly<Record<string, Mutation>> = {
  "finds the oldest outcome": driver => ({
    findTool: (id, text, before) =>
      Effect.map(driver.messages(id, undefined), rows =>
        Option.fromNullable(
          rows.find(
            ({ content, role, sequence }) =>
              role === "tool" && content.includes(text) && sequence < (before ?? Infinity)
          )
        )
      )
  }),
  "finds the newest message with an outcome only": driver => ({
    findTool: (id, text, before) =>
      before === undefined ? driver.findTool(id, text, before) : Effect.succeedNone
  }),
  "finds outcomes of other threads": driver => {
    const threads = new Set<string>()
    return {
      open: thread => {
        threads.add(thread.id)
        return driver.open(thread)
      },
      findTool: (_, text, before) =>
        Effect.map(
          Effect.forEach(threads, id => driver.findTool(id, text, before)),
          found => Option.firstSomeOf([...found].reverse())
        ),
      replace: (_, ...given) =>
        Effect.map(
          Effect.forEach(threads, id => driver.replace(id, ...given)),
          done => done.includes(true)
        )
    }
  },
  "finds ids with a pattern": driver => ({
    findTool: (id, text, before) =>
      Effect.map(driver.messages(id, undefined), rows => {
        const escaped = text
          .replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")
          .replaceAll("%", ".*")
          .replaceAll("_", ".")
        const pattern = new RegExp(escaped, "s")
        // It stops at what it takes for the call.
        const found = rows.findLast(
          ({ content, role, sequence }) =>
            role === "tool" && sequence < (before ?? Infinity) && pattern.test(content)
        )
        return Option.filter(Option.fromNullable(found), ({ content }) => content.includes(text))
      })
  }),
  "finds ids without case": driver => ({
    findTool: (id, text, before) =>
      Effect.map(driver.messages(id, undefined), rows => {
        const found = rows.findLast(
          ({ content, role, sequence }) =>
            role === "tool" &&
            sequence < (before ?? Infinity) &&
            content.toLowerCase().includes(text.toLowerCase())
        )
        return Option.filter(Option.fromNullable(found), ({ content }) => content.includes(text))
      })
  }),
  "replaces what has changed": driver => ({
    findTool: (...given) => Effect.zipLeft(driver.findTool(...given), Effect.yieldNow()),
    replace: (threadId, id, _, content, now) =>
      Effect.gen(function* () {
        const row = (yield* driver.messages(threadId, undefined)).find(message => message.id === id)
        return row === undefined ? false : yield* driver.replace(threadId, id, row.content, content, now)
      })
  }),
  "appends what is replaced": driver => ({
    replace: (threadId, id, expected, content, now) =>
      Effect.gen(function* () {
        const isDone = yield* driver.replace(threadId, id, expected, content, now)
        if (isDone)
          yield* driver.append(threadId, [{ id: `${id}'`, runId: null, role: "tool", content }], now)
        return isDone
      })
  }),
  "loses the run of the message that is replaced": driver => ({
    replace: (threadId, id, expected, content, now) =>
      Effect.gen(function* () {
        const isDone = yield* driver.replace(threadId, id, expected, content, now)
        if (isDone) yield* driver.append(threadId, [{ id, runId: null, role: "tool", content }], now)
        return isDone
      })
  }),
  "does not touch the thread in which an outcome is replaced": driver => ({
    replace: (threadId, id, expected, content) =>
      Effect.gen(function* () {
        const { updatedAt } = Option.getOrThrow(yield* driver.get(threadId))
        return yield* driver.replace(threadId, id, expected, content, updatedAt)
      })
  }),
  "replaces nothing": () => ({ replace: () => Effect.succeed(true) })
}

/** What each does wrong, and how to make one. */
export const brokenDrivers: ReadonlyArray<readonly [wrong: string, make: () => Encoded]> = Object.entries({
  ...mutations,
  ...mutationsOfOutcomes,
  ...mutationsOfObjectives
}).map(([wrong, mutate]) => [
  wrong,
  () => {
    const driver = memoryThreads.make()
    return { ...driver, ...mutate(driver) }
  }
])

/**
 * Where conversations are kept: threads, and their messages in the order in which they were said.
 *
 * The service is typed; the driver behind it ({@link Encoded}) knows rows of strings and numbers only, so that a database
 * is little work. `ThreadStoreConformance` of `eddy/testing` says whether a driver does what is told here.
 *
 * Strings, ids included, are made well-formed, and values that JSON cannot hold are made safe (see `Json`; nesting counts
 * from the message) before they are stored; everything else comes back as it was given. Nothing is shared with the caller.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { StorageError, ThreadBusy, type ThreadNotFound } from "../protocol/Errors.js"
import { lazily } from "../protocol/lazily.js"
import type { Message, ToolResultPart } from "../protocol/Message.js"
import type { Objective } from "../protocol/Objective.js"
import { type JsonValue, wellFormed } from "../protocol/safeJson.js"
import { ask, mostTries, notFound, optionalText, whole } from "./asking.js"
import * as memoryThreads from "./memoryThreads.js"
import * as objectives from "./objectives.js"
import type { Encoded } from "./threadRows.js"
import { type ThreadTurn, ThreadTurns, type TurnRequest } from "./threadTurns.js"

export type { Encoded, MessageRow, NewMessageRow, Objectives, Place, ThreadRow } from "./threadRows.js"
export type { ThreadTurn, TurnRequest, WhenBusy } from "./threadTurns.js"

/** What an application keeps with a thread. @since 0.1.0 @category models */
export type Metadata = { readonly [key: string]: JsonValue }

/** A conversation. @since 0.1.0 @category models */
export interface Thread {
  readonly id: string
  /** Whom it belongs to: a user, or whatever the application tells apart. */
  readonly resourceId: string
  readonly title?: string
  readonly metadata?: Metadata
  readonly createdAt: Date
  /** When it was opened, updated, appended to or cut, or an outcome in it was replaced, last. */
  readonly updatedAt: Date
}

/** One message of a thread. @since 0.1.0 @category models */
export interface ThreadMessage {
  /** Unique within the thread. */
  readonly id: string
  readonly threadId: string
  /** The run that said it. */
  readonly runId?: string
  /**
   * The block of its run: the messages of one run stand together, in the order in which the runs started, from 1. Messages that no
   * run sent, and that follow each other in one `append`, are a block; messages that an earlier version stored are block 0.
   */
  readonly block: number
  /** The order of storing, from 1: the order within a block, whatever clocks and ids say. */
  readonly sequence: number
  readonly createdAt: Date
  readonly message: Message
}

/** A thread to be opened. @since 0.1.0 @category models */
export interface NewThread {
  readonly id: string
  readonly resourceId: string
  readonly title?: string
  readonly metadata?: Metadata
}

/** A message to be appended. @since 0.1.0 @category models */
export interface NewMessage {
  readonly id: string
  readonly runId?: string
  readonly message: Message
}

/** A thread, and whom it has to belong to: one of another resource is as good as none. @since 0.1.0 @category models */
export interface OwnedThread {
  readonly threadId: string
  readonly resourceId: string
}

/** Which threads to list. @since 0.1.0 @category models */
export interface ListOptions {
  /** Of this resource. Without it: of all. */
  readonly resourceId?: string
  /** From 0, which is the default. */
  readonly page?: number
  /** Default 100. 0 gives the total only. */
  readonly perPage?: number
}

/** A page of threads, and how many there are on all pages. @since 0.1.0 @category models */
export interface ThreadPage {
  readonly threads: ReadonlyArray<Thread>
  readonly total: number
}

/**
 * The store of threads. Every operation fails with `StorageError` when the driver does, and when a row cannot be read;
 * it is done whole or not at all, also when it is interrupted.
 *
 * @since 0.1.0
 * @category services
 */
export class ThreadStore extends Context.Tag("eddy/ThreadStore")<
  ThreadStore,
  {
    /**
     * Gives the thread of this id, made when there is none: `title` and `metadata` are for one that is made. Fails with
     * `ThreadNotFound` when it belongs to another resource.
     */
    readonly open: (thread: NewThread) => Effect.Effect<Thread, StorageError | ThreadNotFound>
    /** The thread of this id, whomever it belongs to. */
    readonly get: (id: string) => Effect.Effect<Option.Option<Thread>, StorageError>
    /** The thread that was changed last comes first. */
    readonly list: (options?: ListOptions) => Effect.Effect<ThreadPage, StorageError>
    /** Sets what is given, metadata as a whole. What is left out stays. */
    readonly update: (
      id: string,
      change: { readonly title?: string; readonly metadata?: Metadata }
    ) => Effect.Effect<Thread, StorageError | ThreadNotFound>
    /** Deletes the thread with its messages. Whether there was one. */
    readonly delete: (id: string) => Effect.Effect<boolean, StorageError>
    /**
     * Waits until a run may speak in its thread, as `whenBusy` has it; the caller that takes the turn ends it. Interrupted, the run leaves
     * the line. Turns are those of this service: runs in other processes are not waited for. Fails with `ThreadBusy` under
     * `reject`.
     */
    readonly takeTurn: (request: TurnRequest) => Effect.Effect<ThreadTurn, ThreadBusy>
    /**
     * Gives a run its block in the thread, behind those of all runs that started before; a run that has one keeps it. The
     * block.
     */
    readonly startRun: (
      threadId: string,
      runId: string
    ) => Effect.Effect<number, StorageError | ThreadNotFound>
    /**
     * Adds messages at the end of the blocks of their runs, all or none, in this order; a run without a block starts, and
     * messages without a run stand behind all others. One whose id the thread has already takes that one's place: `block`,
     * `sequence` and `createdAt` stay, everything else is replaced. Of
     * messages of one id in one call the last counts, at the place of the first. Gives them back as stored, in the order
     * given. An empty list changes nothing.
     */
    readonly append: (
      threadId: string,
      messages: ReadonlyArray<NewMessage>
    ) => Effect.Effect<ReadonlyArray<ThreadMessage>, StorageError | ThreadNotFound>
    /**
     * The messages in order of their blocks, in a block of `sequence`; none when there is no such thread.
     *
     * `last` asks for that many of the newest, and for what stands before them up to the beginning of the turn in which
     * they begin, because providers refuse a prompt that begins in the middle of a turn. A turn begins with the nearest
     * message of the user; one without such a message begins with the thread. It costs what it returns, not what is
     * stored. A fraction is rounded down, and what is less than 1 gives nothing. Without `last`: all.
     */
    readonly messages: (
      threadId: string,
      options?: { readonly last?: number }
    ) => Effect.Effect<ReadonlyArray<ThreadMessage>, StorageError>
    /**
     * Puts this outcome of a call in the place of the one that the tool message stored last with such a call has, and leaves
     * everything else as it is, also what others change meanwhile. Whether there was one.
     *
     * `accepts` says which outcomes it may take the place of, and of which run's messages: providers use the id of a call
     * again. Default: any.
     */
    readonly replaceOutcome: (
      threadId: string,
      part: ToolResultPart,
      accepts?: (present: ToolResultPart, runId: string | undefined) => boolean
    ) => Effect.Effect<boolean, StorageError>
    /** The outcome of a call that the tool message stored last has, of those that are accepted. */
    readonly outcome: (
      threadId: string,
      toolCallId: string,
      accepts: (present: ToolResultPart, runId: string | undefined) => boolean
    ) => Effect.Effect<Option.Option<ToolResultPart>, StorageError>
    /**
     * Deletes the messages that stand behind this one, so that what is said next follows it. Whether the thread has this one; when
     * it has not, nothing changes.
     */
    readonly deleteAfter: (threadId: string, messageId: string) => Effect.Effect<boolean, StorageError>
    /** What is worked towards in the thread. None, too, where the driver keeps no objectives. */
    readonly objective: (
      thread: OwnedThread
    ) => Effect.Effect<Option.Option<Objective>, StorageError | ThreadNotFound>
    /**
     * Gives the thread the objective that `change` makes of the one that it has, or none, and gives that back. What others
     * change meanwhile is not lost: `change` is asked again then, with what there is. What it gives back as it was given is not
     * written. Its failure leaves everything as it is. The thread does not count as changed.
     */
    readonly changeObjective: <E>(
      thread: OwnedThread,
      change: (present: Option.Option<Objective>) => Either.Either<Option.Option<Objective>, E>
    ) => Effect.Effect<Option.Option<Objective>, E | StorageError | ThreadNotFound>
  }
>() {}

/** Loaded when the first row is read or written: it needs schemas, which take long to load. */
const rows = lazily(() => import("./storedRows.js"))

/** The last of each id, at the place of the first: drivers need not care. */
const distinct = (messages: ReadonlyArray<NewMessage>): ReadonlyArray<NewMessage> => [
  ...new Map(messages.map(message => [wellFormed(message.id), message])).values()
]

/**
 * The service over a driver.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (driver: Encoded): Context.Tag.Service<ThreadStore> => ({
  ...objectives.make(driver),
  takeTurn: takingTurns(),
  open: Effect.fnUntraced(function* (thread) {
    const operation = "ThreadStore.open"
    const { readThread, writeMetadata } = yield* rows
    const metadata = yield* writeMetadata(operation, thread.metadata)
    const now = yield* Clock.currentTimeMillis
    const given = {
      id: wellFormed(thread.id),
      resourceId: wellFormed(thread.resourceId),
      title: optionalText(thread.title) ?? null,
      metadata: metadata ?? null,
      createdAt: now,
      updatedAt: now
    }
    const row = yield* ask(operation, driver.open(given))
    return row.resourceId === given.resourceId
      ? yield* readThread(operation, row)
      : yield* notFound(thread.id)
  }),
  get: Effect.fnUntraced(function* (id) {
    const operation = "ThreadStore.get"
    const { readThread } = yield* rows
    const row = yield* ask(operation, driver.get(wellFormed(id)))
    return Option.isNone(row) ? Option.none() : Option.some(yield* readThread(operation, row.value))
  }),
  list: Effect.fnUntraced(function* ({ page = 0, perPage = 100, resourceId } = {}) {
    const operation = "ThreadStore.list"
    const { readThread } = yield* rows
    const limit = whole(perPage)
    const offset = whole(whole(page) * limit)
    const found = yield* ask(operation, driver.list({ resourceId: optionalText(resourceId), offset, limit }))
    const threads = yield* Either.all(found.rows.map(row => readThread(operation, row)))
    return { threads, total: found.total }
  }),
  update: Effect.fnUntraced(function* (id, change) {
    const operation = "ThreadStore.update"
    const { readThread, writeMetadata } = yield* rows
    const metadata = yield* writeMetadata(operation, change.metadata)
    const updatedAt = yield* Clock.currentTimeMillis
    const row = yield* ask(
      operation,
      driver.update(wellFormed(id), { title: optionalText(change.title), metadata, updatedAt })
    )
    return Option.isNone(row) ? yield* notFound(id) : yield* readThread(operation, row.value)
  }),
  delete: Effect.fnUntraced(function* (id) {
    return yield* ask("ThreadStore.delete", driver.delete(wellFormed(id)))
  }),
  startRun: Effect.fnUntraced(function* (threadId, runId) {
    const block = yield* ask("ThreadStore.startRun", driver.startRun(wellFormed(threadId), wellFormed(runId)))
    return Option.isNone(block) ? yield* notFound(threadId) : block.value
  }),
  append: Effect.fnUntraced(function* (threadId, messages) {
    const operation = "ThreadStore.append"
    const id = wellFormed(threadId)
    if (messages.length === 0) {
      const thread = yield* ask(operation, driver.get(id))
      return Option.isNone(thread) ? yield* notFound(threadId) : []
    }
    const { writeMessage } = yield* rows
    const written = yield* Either.all(distinct(messages).map(message => writeMessage(operation, message)))
    const now = yield* Clock.currentTimeMillis
    const newRows = written.map(({ row }) => row)
    const places = yield* ask(operation, driver.append(id, newRows, now))
    if (Option.isNone(places)) return yield* notFound(threadId)
    const stored = new Map(
      Arr.zipWith(written, places.value, ({ message, row }, { block, createdAt, sequence }) => [
        row.id,
        {
          id: row.id,
          threadId: id,
          ...(row.runId === null ? {} : { runId: row.runId }),
          block,
          sequence,
          createdAt: new Date(createdAt),
          message
        }
      ])
    )
    return messages.flatMap(message => stored.get(wellFormed(message.id)) ?? [])
  }),
  messages: Effect.fnUntraced(function* (threadId, { last } = {}) {
    const operation = "ThreadStore.messages"
    const count = last === undefined ? undefined : whole(last)
    if (count === 0) return []
    const { readMessage } = yield* rows
    const stored = yield* ask(operation, driver.messages(wellFormed(threadId), count))
    return yield* Either.all(stored.map(row => readMessage(operation, row)))
  }),
  replaceOutcome: Effect.fnUntraced(function* (threadId, part, accepts = () => true) {
    const operation = "ThreadStore.replaceOutcome"
    const { writeMessage } = yield* rows
    const id = wellFormed(threadId)
    const callId = wellFormed(part.toolCallId)
    for (let tries = 0; tries < mostTries; tries++) {
      const found = yield* findOutcome(driver, operation, id, callId, accepts)
      if (found === undefined) return false
      const { index, message, row } = found
      const content = [...message.content]
      content[index] = { ...part, toolCallId: callId }
      const written = yield* writeMessage(operation, { id: row.id, message: { ...message, content } })
      const now = yield* Clock.currentTimeMillis
      const isDone = yield* ask(operation, driver.replace(id, row.id, row.content, written.row.content, now))
      if (isDone) return true
    }
    return yield* new StorageError({
      operation,
      message: `The outcome of call "${callId}" could not be replaced in thread "${threadId}": its message changed each time, or the database does not keep what it is given.`
    })
  }),
  outcome: Effect.fnUntraced(function* (threadId, toolCallId, accepts) {
    const [id, callId] = [wellFormed(threadId), wellFormed(toolCallId)]
    const found = yield* findOutcome(driver, "ThreadStore.outcome", id, callId, accepts)
    return Option.fromNullable(found?.message.content[found.index])
  }),
  deleteAfter: Effect.fnUntraced(function* (threadId, messageId) {
    const now = yield* Clock.currentTimeMillis
    const asked = driver.deleteAfter(wellFormed(threadId), wellFormed(messageId), now)
    return yield* ask("ThreadStore.deleteAfter", asked)
  })
})

const takingTurns = (): ThreadStore["Type"]["takeTurn"] => {
  const turns = new ThreadTurns()
  return request =>
    Effect.suspend(() => {
      const entered = turns.enter(request)
      if (entered._tag === "Busy") return Effect.fail(threadBusy(request.threadId, entered.runId))
      const { turn } = entered
      if (turn.isHeld()) return Effect.succeed(turn)
      return Effect.async(resume => {
        turn.onAdmitted(() => resume(Effect.succeed(turn)))
        return Effect.sync(turn.end)
      })
    })
}

const threadBusy = (threadId: string, runId: string): ThreadBusy =>
  new ThreadBusy({
    threadId,
    runId,
    message: `Run "${runId}" speaks in thread "${threadId}", and \`memory.whenBusy\` is "reject". Start the run when that one has ended, or give "queue".`
  })

/** The tool message stored last that has an accepted outcome of the call, and the index of its part. */
const findOutcome = Effect.fnUntraced(function* (
  driver: Encoded,
  operation: string,
  threadId: string,
  callId: string,
  accepts: (present: ToolResultPart, runId: string | undefined) => boolean
) {
  const { readMessage } = yield* rows
  let before: number | undefined
  for (;;) {
    const found = yield* ask(operation, driver.findTool(threadId, JSON.stringify(callId), before))
    // A driver that gives the same message again would be asked for ever.
    if (Option.isNone(found) || (before !== undefined && found.value.sequence >= before)) return undefined
    const row = found.value
    const { message } = yield* readMessage(operation, row)
    const index =
      message.role === "tool"
        ? message.content.findIndex(
            part => part.toolCallId === callId && accepts(part, row.runId ?? undefined)
          )
        : -1
    if (message.role === "tool" && index >= 0) return { index, message, row }
    // The text of the id stands somewhere else in this message, or it is another call of this id.
    before = row.sequence
  }
})

/** Threads in the memory of the process, gone when the layer is. @since 0.1.0 @category layers */
export const layerMemory: Layer.Layer<ThreadStore> = Layer.sync(ThreadStore, () => make(memoryThreads.make()))

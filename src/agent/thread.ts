/** The thread of a run: what it recalls before the first model call, and what it stores as it goes. */
import * as Effect from "effect/Effect"
import { type Entry, partId, settled } from "../protocol/Conversation.js"
import { answeredCalls } from "../protocol/conversationPairs.js"
import type { ThreadBusy } from "../protocol/Errors.js"
import { logWarning } from "../protocol/logging.js"
import type { Message } from "../protocol/Message.js"
import type { ThreadMessage, ThreadStore, ThreadTurn, TurnRequest } from "../storage/ThreadStore.js"
import type { Run } from "./loop/run.js"
import type { RunThread } from "./runThread.js"

const byPlace = (left: ThreadMessage, right: ThreadMessage): number =>
  left.block - right.block || left.sequence - right.sequence

/** What the thread knows and what was handed over, each message once, in the order of the thread. */
const merged = (
  recalled: ReadonlyArray<ThreadMessage>,
  stored: ReadonlyArray<ThreadMessage>
): ReadonlyArray<Message> => {
  const byId = new Map([...recalled, ...stored].map(message => [message.id, message]))
  return [...byId.values()].sort(byPlace).map(({ message }) => message)
}

/**
 * Whether a message says nothing but outcomes that the thread has. Such a one is not stored again: of a call in the background
 * the thread may have learnt more meanwhile.
 */
const isKnown = (message: Message, before: Message | undefined): boolean => {
  if (message.role !== "tool" || before?.role !== "tool") return false
  const told = new Set(before.content.map(part => part.toolCallId))
  return message.content.every(part => told.has(part.toolCallId))
}

/** A client knows less of an outcome than what was told to the model: that stays. */
const withOutcomes = (message: Message, before: Message): Message => {
  if (message.role !== "tool" || before.role !== "tool") return message
  const told = new Map(before.content.map(part => [part.toolCallId, part]))
  return { ...message, content: message.content.map(part => told.get(part.toolCallId) ?? part) }
}

/**
 * What is new in what was handed over. A client that answers a call tells other outcomes of the same answer again, and messages
 * without an id look new: an outcome of a call that has one is not.
 */
const unknown = (entries: ReadonlyArray<Entry>, recalled: ReadonlyArray<ThreadMessage>) => {
  const known = new Map(recalled.map(message => [message.id, message]))
  const calls = answeredCalls(recalled.map(({ message }) => message))
  return {
    known,
    said: entries.flatMap(({ id, message }) => {
      const before = known.get(id ?? "")?.message
      if (message.role === "system" || isKnown(message, before)) return []
      if (before !== undefined) return [{ id, message }]
      if (message.role === "assistant")
        for (const [call, isAnswered] of answeredCalls([message])) calls.set(call, isAnswered)
      if (message.role !== "tool") return [{ id, message }]
      const content = message.content.filter(part => calls.get(part.toolCallId) !== true)
      for (const { toolCallId } of content) if (calls.has(toolCallId)) calls.set(toolCallId, true)
      return content.length === 0 ? [] : [{ id, message: { ...message, content } }]
    })
  }
}

/** Takes a turn, and hands it over however the fiber is interrupted meanwhile: the caller that gets it ends it. */
export const holdTurn = (
  store: ThreadStore["Type"],
  request: TurnRequest,
  hold: (turn: ThreadTurn) => void
): Effect.Effect<void, ThreadBusy> =>
  Effect.uninterruptibleMask(restore => Effect.map(restore(store.takeTurn(request)), hold))

/** Waits until the run may speak in its thread. Interrupted, it leaves the line. A run that has spoken is not rejected. */
export const takeTurn = <R>({ caller, runId }: Run<R>, thread: RunThread): Effect.Effect<void, ThreadBusy> =>
  Effect.suspend(() => {
    const { id: threadId, resourceId, store, turn: before } = thread
    if (before?.isHeld() === true) return Effect.void
    const whenBusy = before !== undefined && thread.whenBusy === "reject" ? "queue" : thread.whenBusy
    const request = { threadId, resourceId, runId, whenBusy, within: caller.turns }
    return holdTurn(store, request, turn => {
      thread.turn = turn
    })
  })

/** Waits for something while other runs of the thread may speak. */
export const betweenTurns = <R>(
  run: Run<R>,
  awaited: Effect.Effect<void>
): Effect.Effect<void, ThreadBusy> => {
  const { thread } = run
  if (thread === undefined) return awaited
  return Effect.suspend(() => {
    thread.turn?.end()
    return Effect.zipRight(awaited, takeTurn(run, thread))
  })
}

/**
 * Opens the thread, stores what was handed to the run, and gives the conversation that the model is told. System messages
 * are for this run only: they come first, and are not stored.
 */
export const openThread = Effect.fnUntraced(function* <R>(run: Run<R>, thread: RunThread) {
  const { after, entries, lastMessages, metadata, resourceId, store, title } = thread
  const { id } = yield* store.open({
    id: thread.id,
    resourceId,
    ...(title === undefined ? {} : { title }),
    ...(metadata === undefined ? {} : { metadata })
  })
  yield* store.startRun(id, run.runId)
  if (after !== undefined) yield* store.deleteAfter(id, after)
  const recalled = lastMessages === 0 ? [] : yield* store.messages(id, { last: lastMessages })
  const system = entries.flatMap(({ message }) => (message.role === "system" ? [message] : []))
  const { known, said } = unknown(entries, recalled)
  const stored =
    said.length === 0
      ? []
      : yield* store.append(
          id,
          said.map(({ id = run.makeId("message"), message }) => {
            // What is sent again was said by the run that said it first.
            const { runId = run.runId, message: before } = known.get(id) ?? {}
            return { id, runId, message: before === undefined ? message : withOutcomes(message, before) }
          })
        )
  return yield* settled([...system, ...merged(recalled, stored)])
})

/** Stores what the run has added since. Storing the same messages again changes nothing. */
export const storeAdded = Effect.fnUntraced(function* <R>(run: Run<R>, thread: RunThread) {
  const { id, store } = thread
  const { added, messageId, runId, tasks } = run
  const from = thread.stored
  const count = added.length
  let messages: ReadonlyArray<Message>
  do {
    messages = added.slice(from, count)
    if (messages.length === 0) return
    const rows = messages.map((message, index) => ({ id: partId(messageId, from + index), runId, message }))
    yield* store.append(id, rows)
    // A task that settled meanwhile may have found its call, stored before by halves: this has gone over what it came to.
    tasks?.tell(added)
  } while (messages.some((message, index) => message !== added[from + index]))
  thread.stored = count
  if (tasks !== undefined) yield* tasks.stored(messages)
})

/** A run that was stopped waits so long for its thread, and no longer. */
const patience = "5 seconds"

/**
 * Stores what a run that was stopped had said. A store that fails or hangs is logged: the run has its cause already. Runs also
 * in a fiber that was interrupted, and does not wait for a store that hears of no interruption.
 */
export const storeLast = <R>(run: Run<R>): Effect.Effect<void> => {
  const { thread } = run
  if (thread === undefined) return Effect.void
  return storeAdded(run, thread).pipe(
    Effect.disconnect,
    Effect.interruptible,
    Effect.timeout(patience),
    Effect.catchAllCause(cause =>
      logWarning(`What run ${run.runId} said last could not be stored in thread ${thread.id}.`, cause)
    )
  )
}

// @ts-check
/**
 * A conversation as it is shown: what the thread has stored, and behind it the response that is being read. A message that both
 * have is shown once: chunks name the message that they are going to be stored as.
 */
import { blockKey, callKey, isSettled, Tasks, userKey } from "./answer.js"

/**
 * @typedef {import("./answer.js").Answer} Answer
 * @typedef {import("./answer.js").Call} Call
 * @typedef {import("./answer.js").Outcome} Outcome
 * @typedef {{ id: string, runId?: string, message: { role: string, content: any } }} Stored
 * @typedef {{ isFailure: boolean, text: string }} Note
 * @typedef {object} CallEntry
 * @property {"call"} kind
 * @property {string} key
 * @property {Call} call
 * @property {string} status
 * @property {string} [taskId]
 * @property {any} [result]
 * @property {string} [error]
 * @property {number} [progress]
 * @property {string} [note]
 * @typedef {{ kind: "user" | "text" | "reasoning", key: string, text: string, isOpen?: boolean }} TextEntry
 * @typedef {{ kind: "note", key: string } & Note} NoteEntry
 * @typedef {TextEntry | CallEntry | NoteEntry} Entry
 */

/** Stored messages of one run are `message-…`, `message-…:2`, and so on. @param {string} id */
const messageIdOf = id => id.replace(/:\d+$/, "")

/** @param {any} output @returns {Outcome} */
const outcomeOf = ({ output, providerOptions }) => {
  const { backgroundTask, denied, waitsFor } = providerOptions?.eddy ?? {}
  if (denied === true) return { status: "declined" }
  if (waitsFor !== undefined) return { status: waitsFor === "approval" ? "approval" : "suspended" }
  if (backgroundTask !== undefined && !isSettled(backgroundTask.status))
    return { status: backgroundTask.status }
  const { type, value } = output
  if (!type.startsWith("error")) return { status: "completed", result: value }
  const status = backgroundTask?.status === "cancelled" ? "cancelled" : "failed"
  return { status, error: typeof value === "string" ? value : JSON.stringify(value) }
}

export class Conversation {
  constructor() {
    /** @type {ReadonlyArray<Stored>} */
    this.stored = []
    this.tasks = new Tasks()
    /** Calls that wait for somebody, as the server lists them. @type {ReadonlySet<string>} */
    this.waiting = new Set()
    /** Calls that were decided here, and not answered yet. @type {Set<string>} */
    this.deciding = new Set()
    /** How runs ended that did not end well: nobody stores that. @type {Record<string, Note>} */
    this.notes = {}
    /** @type {Answer | undefined} */
    this.answer = undefined
    /** Tasks are watched that go on without a response. */
    this.isWatching = false
    /** What the visitor has just said. @type {{ text: string, run: string } | undefined} */
    this.saying = undefined
  }

  /** The server has nothing of it any more. */
  forget() {
    this.stored = []
    this.tasks = new Tasks()
    this.waiting = new Set()
    this.answer = undefined
  }

  /** Whether a turn is going on. */
  get isBusy() {
    return this.saying !== undefined || (this.answer?.isTalking === true && !this.answer.isOver)
  }

  /** Whether something goes on: a turn, a response that may tell of tasks, or tasks without one. */
  get state() {
    if (this.isBusy) return "busy"
    if (this.isWatching) return "watching"
    return this.answer?.isOver === false ? "reading" : "idle"
  }

  /** @returns {ReadonlyArray<Entry>} */
  get entries() {
    /** @type {Array<Entry>} */
    const entries = []
    /** @type {Map<string, Outcome>} */
    const outcomes = new Map()
    const { answer, stored } = this
    for (const { message, runId } of stored) {
      if (message.role !== "tool") continue
      for (const part of message.content) outcomes.set(callKey(runId ?? "", part.toolCallId), outcomeOf(part))
    }
    for (const [key, outcome] of answer?.outcomes ?? []) outcomes.set(key, outcome)

    // The thread may have gone on since: a response that is over stays in its place, as far as it is stored.
    const isRead = (/** @type {string} */ messageId) =>
      answer?.isOver === false && answer.messageIds.has(messageId)

    let isTextStored = false
    /** @type {Map<string, number>} Texts of a message so far. */
    const blocks = new Map()
    stored.forEach(({ id, message, runId = "" }, index) => {
      const messageId = messageIdOf(id)
      if (message.role === "user") {
        const text = message.content.map((/** @type {any} */ part) => part.text ?? "").join("")
        if (runId === answer?.run) isTextStored = true
        entries.push({ kind: "user", key: runId === "" ? id : userKey(runId), text })
      } else if (message.role === "assistant" && !isRead(messageId)) {
        for (const part of message.content) {
          if (part.type === "text" || part.type === "reasoning") {
            const place = blocks.get(messageId) ?? 0
            blocks.set(messageId, place + 1)
            entries.push({ kind: part.type, key: blockKey(messageId, place), text: part.text })
          }
          if (part.type !== "tool-call") continue
          const { input: args, toolCallId, toolName } = part
          const call = { key: callKey(runId, toolCallId), runId, toolCallId, toolName, args }
          entries.push(this.callEntry(call, outcomes))
        }
      }
      const isLast = !stored.slice(index + 1).some(other => other.runId === runId)
      if (isLast && answer?.notes.has(runId) !== true && (answer?.run !== runId || answer.isOver))
        this.addNote(entries, runId)
    })
    const keys = new Set(entries.map(({ key }) => key))
    if (answer?.text !== undefined && !isTextStored)
      entries.push({ kind: "user", key: userKey(answer.run), text: answer.text })
    for (const item of answer?.items ?? []) {
      if (keys.has(item.key)) continue
      if (item.kind === "call") entries.push(this.callEntry(item.call, outcomes))
      else entries.push(item)
    }
    for (const [runId, note] of answer?.notes ?? [])
      entries.push({ kind: "note", key: `note/${runId}`, ...note })
    const { saying } = this
    const isThere = saying !== undefined && entries.some(({ key }) => key === userKey(saying.run))
    if (saying !== undefined && !isThere)
      entries.push({ kind: "user", key: userKey(saying.run), text: saying.text })
    return entries
  }

  /**
   * @param {Array<Entry>} entries
   * @param {string} runId
   */
  addNote(entries, runId) {
    const note = this.notes[runId]
    if (note !== undefined) entries.push({ kind: "note", key: `note/${runId}`, ...note })
  }

  /**
   * @param {Call} call
   * @param {ReadonlyMap<string, Outcome>} outcomes
   * @returns {CallEntry}
   */
  callEntry(call, outcomes) {
    const { answer, deciding, tasks, waiting } = this
    const task = tasks.byId.get(tasks.byCall.get(call.key) ?? "")
    if (task !== undefined) {
      const { error, id, note, progress, result, status } = task
      return {
        kind: "call",
        key: call.key,
        call,
        taskId: id,
        status,
        result,
        ...defined({ error, note, progress })
      }
    }
    const isPending = answer?.approvals.has(call.key) === true || waiting.has(call.key)
    const isDecided = deciding.has(call.key) || (answer?.decides === call.key && !answer.isOver)
    const outcome = outcomes.get(call.key) ?? { status: isPending ? "approval" : "running" }
    const isStopped = outcome.status === "failed" && this.notes[call.runId]?.isFailure === false
    let { status } = outcome
    if (isStopped) status = "stopped"
    if (status === "approval") status = isDecided ? "running" : isPending ? "approval" : "suspended"
    const { error, result } = outcome
    return {
      kind: "call",
      key: call.key,
      call,
      status,
      result,
      ...defined({ error }),
      ...answer?.progress.get(call.key)
    }
  }
}

/**
 * Without the fields that are not there.
 *
 * @template {Record<string, unknown>} A
 * @param {A} fields
 * @returns {{ [K in keyof A]?: Exclude<A[K], undefined> }}
 */
const defined = fields =>
  /** @type {any} */ (Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)))

// @ts-check
/** One response of the agent, put together from the chunks of its log: texts and calls in their order. */

/**
 * @typedef {{ type: string, runId: string, payload: any }} Chunk
 * @typedef {{ id: string, runId: string, toolCallId: string, toolName: string, status: string, args?: any, result?: any, error?: string, progress?: number, note?: string }} Task
 * @typedef {{ key: string, runId: string, toolCallId: string, toolName: string, args: any }} Call
 * @typedef {{ status: string, result?: any, error?: string }} Outcome
 * @typedef {{ kind: "text" | "reasoning", key: string, text: string, isOpen: boolean } | { kind: "call", key: string, call: Call }} Item
 */

/**
 * @param {string} runId
 * @param {string} toolCallId
 */
export const callKey = (runId, toolCallId) => `${runId}/${toolCallId}`

/**
 * A text of a message: the same when it comes and when it is stored.
 *
 * @param {string} messageId
 * @param {number} place Among the texts of the message.
 */
export const blockKey = (messageId, place) => `${messageId}/${place}`

/** What a visitor has said. @param {string} runId */
export const userKey = runId => `user/${runId}`

/** @type {ReadonlySet<string>} */
const settled = new Set(["completed", "failed", "timed_out", "cancelled"])

/** @param {string} status */
export const isSettled = status => settled.has(status)

/** @type {Readonly<Record<string, string>>} */
const statusOf = {
  "background-task-running": "running",
  "background-task-resumed": "running",
  "background-task-completed": "completed",
  "background-task-failed": "failed",
  "background-task-suspended": "suspended",
  "background-task-cancelled": "cancelled"
}

/**
 * What a tool has written about how far it is: `{ progress: 0…1, note }`.
 *
 * @param {any} output
 */
export const progressOf = output => ({
  ...(typeof output?.progress === "number" ? { progress: Math.min(1, Math.max(0, output.progress)) } : {}),
  ...(typeof output?.note === "string" ? { note: output.note } : {})
})

/**
 * Tasks by their id. They are told of in more than one place, and some of it late: what has settled does not change, and progress
 * does not go back.
 */
export class Tasks {
  constructor() {
    /** @type {Map<string, Task>} */
    this.byId = new Map()
    /** @type {Map<string, string>} Ids by call. */
    this.byCall = new Map()
  }

  /** @param {Task} task */
  put(task) {
    const known = this.byId.get(task.id)
    const isOld = known !== undefined && isSettled(known.status) && !isSettled(task.status)
    const isBehind = (task.progress ?? 0) < (known?.progress ?? 0)
    const merged = { ...task, ...known, ...(isOld ? {} : task) }
    if (isBehind && known !== undefined) Object.assign(merged, { progress: known.progress, note: known.note })
    this.byId.set(task.id, merged)
    this.byCall.set(callKey(task.runId, task.toolCallId), task.id)
  }

  /** @param {Chunk} chunk */
  tell({ payload, runId, type }) {
    const { taskId, toolCallId, toolName } = payload
    const id = taskId
    if (type === "background-task-started") {
      if (!this.byId.has(id)) this.put({ id, runId, toolCallId, toolName, status: "pending" })
    } else if (type === "background-task-output") {
      const known = this.byId.get(id)
      if (known !== undefined) this.put({ ...known, ...progressOf(payload.payload?.payload?.output) })
    } else if (statusOf[type] !== undefined) {
      const { args, error, result } = payload
      this.put({
        id,
        runId: payload.runId,
        toolCallId,
        toolName,
        status: statusOf[type],
        ...(args === undefined ? {} : { args }),
        ...(result === undefined ? {} : { result }),
        ...(error === undefined ? {} : { error: String(error.message ?? error) })
      })
    }
  }

  get running() {
    return [...this.byId.values()].filter(({ status }) => status === "running" || status === "pending")
  }
}

export class Answer {
  /**
   * @param {object} of
   * @param {string} of.log The id of its log.
   * @param {string} of.run The id of the run that it begins, or goes on with.
   * @param {string} [of.text] What the visitor has said.
   * @param {string} [of.decides] The call that it goes on with.
   */
  constructor({ log, run, text, decides }) {
    this.log = log
    this.run = run
    this.text = text
    this.decides = decides
    /** The next event to be read. */
    this.next = 0
    /** @type {Array<Item>} */
    this.items = []
    /** Messages of the thread that hold the same, once they are stored. @type {Set<string>} */
    this.messageIds = new Set()
    /** The one that is written now, and its blocks so far. */
    this.messageId = ""
    this.blocks = 0
    /** Outcomes by call, also of calls that were made before. @type {Map<string, Outcome>} */
    this.outcomes = new Map()
    /** Calls that wait for somebody. @type {Set<string>} */
    this.approvals = new Set()
    /** Progress of calls in the foreground. @type {Map<string, { progress?: number, note?: string }>} */
    this.progress = new Map()
    /** How its turns ended that did not end well, by run. @type {Map<string, { isFailure: boolean, text: string }>} */
    this.notes = new Map()
    /** A turn is going on: the model, or tools that it waits for. */
    this.isTalking = true
    /** Its log has been read to the end. */
    this.isOver = false
    /** @type {Map<string, Extract<Item, { text: string }>>} */
    this.open = new Map()
  }

  /**
   * @param {number} index Its place in the log.
   * @param {Chunk} chunk
   */
  push(index, { payload, runId, type }) {
    this.next = index + 1
    const call = callKey(runId, payload?.toolCallId)
    switch (type) {
      case "start":
        this.messageIds.add(payload.messageId)
        this.messageId = payload.messageId
        this.blocks = 0
        this.isTalking = true
        return
      case "text-start":
      case "reasoning-start": {
        const kind = type === "text-start" ? "text" : "reasoning"
        /** @type {Extract<Item, { text: string }>} */
        const item = { kind, key: blockKey(this.messageId, this.blocks++), text: "", isOpen: true }
        this.items.push(item)
        this.open.set(`${kind}/${payload.id}`, item)
        return
      }
      case "text-delta":
      case "reasoning-delta": {
        const item = this.open.get(`${type.replace("-delta", "")}/${payload.id}`)
        if (item !== undefined) item.text += payload.text
        return
      }
      case "text-end":
      case "reasoning-end": {
        const item = this.open.get(`${type.replace("-end", "")}/${payload.id}`)
        if (item !== undefined) item.isOpen = false
        return
      }
      case "tool-call": {
        const { args, toolCallId, toolName } = payload
        this.items.push({ kind: "call", key: call, call: { key: call, runId, toolCallId, toolName, args } })
        return
      }
      case "tool-output":
        this.progress.set(call, { ...this.progress.get(call), ...progressOf(payload.output) })
        return
      case "tool-result":
        this.settle(call, {
          status: payload.isError === true ? "failed" : "completed",
          result: payload.result
        })
        return
      case "tool-error":
        this.settle(call, { status: "failed", error: String(payload.error?.message ?? "The tool failed.") })
        return
      case "tool-output-denied":
        this.settle(call, { status: "declined" })
        return
      case "tool-call-approval":
        this.approvals.add(call)
        return
      case "tool-call-suspended":
        this.outcomes.set(call, { status: "suspended" })
        return
      case "error":
        this.end(runId, true, String(payload.error?.message ?? "Something went wrong."))
        return
      case "abort":
        this.end(runId, false, "You stopped this answer.")
        return
      case "tripwire":
        this.end(runId, true, `This answer was held back: ${payload.reason}`)
        return
      case "finish":
        this.isTalking = false
        return
    }
  }

  /** What is told outside of the log: that it cannot be read any further. @param {Chunk} chunk */
  fail({ payload }) {
    this.isTalking = false
    this.end(this.run, true, String(payload?.error?.message ?? "The answer broke off."))
  }

  /**
   * @param {string} call
   * @param {Outcome} outcome
   */
  settle(call, outcome) {
    this.approvals.delete(call)
    this.outcomes.set(call, outcome)
  }

  /**
   * @param {string} runId
   * @param {boolean} isFailure
   * @param {string} text
   */
  end(runId, isFailure, text) {
    this.notes.set(runId, { isFailure, text })
    for (const item of this.open.values()) item.isOpen = false
    for (const item of this.items) {
      if (item.kind !== "call" || this.outcomes.has(item.key) || this.approvals.has(item.key)) continue
      if (item.call.runId === runId) this.outcomes.set(item.key, { status: "stopped" })
    }
  }
}

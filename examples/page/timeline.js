// @ts-check
/** The time line of a response: its chunks in the order of its log; the same kind in a row is one line. */

/**
 * @typedef {import("./answer.js").Chunk} Chunk
 * @typedef {{ first: number, last: number, type: string, family: string, detail: string }} Line
 */

/** Lines that are kept. */
const most = 400

/** @param {string} type */
const familyOf = type => {
  if (type.startsWith("background-task")) return "task"
  if (type.startsWith("tool-call-approval") || type === "tool-output-denied") return "approval"
  if (type.startsWith("tool")) return "tool"
  if (type.startsWith("text") || type.startsWith("reasoning")) return "text"
  if (type === "error" || type === "abort" || type === "tripwire") return "trouble"
  return "run"
}

/** @param {Chunk} chunk @returns {string} */
const detailOf = ({ payload, type }) => {
  if (type === "step-finish" || type === "finish") return payload.stepResult?.reason ?? ""
  if (type === "background-task-progress") return `${payload.runningCount} running`
  return payload?.toolName ?? ""
}

export class Timeline {
  constructor() {
    /** @type {Array<Line>} */
    this.lines = []
  }

  /**
   * @param {number} index
   * @param {Chunk} chunk
   */
  push(index, chunk) {
    const { type } = chunk
    const detail = detailOf(chunk)
    const last = this.lines.at(-1)
    if (last?.type === type && last.detail === detail) {
      last.last = index
      return
    }
    this.lines.push({ first: index, last: index, type, family: familyOf(type), detail })
    if (this.lines.length > most) this.lines.shift()
  }
}

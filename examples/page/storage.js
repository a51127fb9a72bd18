// @ts-check
/**
 * What the browser keeps of a thread. It may keep nothing, or have no room: then the page works, and a reload shows what the server
 * has stored.
 */

/**
 * The response that a thread has got last: whoever opens the thread reads it. `isSent` says that the server has it.
 *
 * @typedef {{ log: string, run: string, text?: string, decides?: string, isSent: boolean }} Last
 * @typedef {import("./conversation.js").Note} Note
 */

export class Kept {
  /** @param {string} thread */
  constructor(thread) {
    this.lastKey = `eddy:${thread}`
    this.notesKey = `eddy:${thread}:notes`
  }

  /** @returns {Last | undefined} */
  get last() {
    return read(this.lastKey)
  }

  /** @param {Last} last */
  keepLast(last) {
    keep(this.lastKey, last)
  }

  /** @returns {Record<string, Note>} */
  get notes() {
    return read(this.notesKey) ?? {}
  }

  /** @param {Record<string, Note>} notes */
  keepNotes(notes) {
    keep(this.notesKey, notes)
  }
}

/** @param {string} key */
const read = key => {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null") ?? undefined
  } catch {
    return undefined
  }
}

/** @param {string} key @param {object} value */
const keep = (key, value) => {
  try {
    localStorage.setItem(key, JSON.stringify(value))
  } catch {
    // What is kept from before is of an earlier response: rather none than that.
    forget(key)
  }
}

/** @param {string} key */
const forget = key => {
  try {
    localStorage.removeItem(key)
  } catch {
    // There is nothing where nothing can be kept.
  }
}

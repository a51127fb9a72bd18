// @ts-check
/** What is seen. Whatever a model, a tool or a visitor has said gets into the page as text, and in no other way. */

/**
 * @typedef {import("./conversation.js").Entry} Entry
 * @typedef {import("./conversation.js").CallEntry} CallEntry
 * @typedef {{ decide: (entry: CallEntry, isApproved: boolean) => void, cancel: (entry: CallEntry) => void }} Actions
 */

/**
 * @template {HTMLElement} A
 * @param {string} id
 * @param {new () => A} kind
 * @returns {A}
 */
export const element = (id, kind) => {
  const found = document.getElementById(id)
  if (found instanceof kind) return found
  throw new Error(`The page has no ${id}.`)
}

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [className]
 * @param {string} [text]
 */
export const make = (tag, className, text) => {
  const made = document.createElement(tag)
  if (className !== undefined) made.className = className
  if (text !== undefined) made.textContent = text
  return made
}

/**
 * Changes only what is other: an element that stays keeps its focus.
 *
 * @param {Element} element
 * @param {string} text
 */
export const write = (element, text) => {
  if (element.textContent !== text) element.textContent = text
}

/** @type {Readonly<Record<string, string>>} */
const statusTexts = {
  pending: "Queued",
  running: "Running",
  suspended: "Waiting",
  approval: "Needs your approval",
  completed: "Done",
  failed: "Failed",
  timed_out: "Took too long",
  cancelled: "Cancelled",
  declined: "Declined",
  stopped: "Stopped"
}

/** @param {string} status */
export const statusText = status => statusTexts[status] ?? status

/** What the field says below it. @param {number} running Tasks, while there is no turn. */
export const hintText = running => {
  if (running === 0) return "Enter sends, Shift and Enter begin a new line."
  return `${running === 1 ? "One task is" : `${running} tasks are`} running. You can go on talking.`
}

/** A name of a program as words: `delete_reports`, `olderThan`. @param {string} toolName */
export const titleOf = toolName => {
  const words = toolName
    .replace(/[_-]+/g, " ")
    .replace(/(?<=[a-z])[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** @param {any} value @returns {string} */
const plain = value => (typeof value === "string" ? value : JSON.stringify(value))

/**
 * A value as terms and what they are, or as a text.
 *
 * @param {Element} place
 * @param {any} value
 */
const writeValue = (place, value) => {
  const shown = value === undefined || value === null ? "" : JSON.stringify(value)
  if (!(place instanceof HTMLElement) || place.dataset["shown"] === shown) return
  place.dataset["shown"] = shown
  place.hidden = shown === "" || shown === "{}"
  if (typeof value !== "object" || value === null)
    return place.replaceChildren(make("p", undefined, plain(value)))
  const list = make("dl")
  for (const [name, one] of Object.entries(value)) {
    list.append(make("dt", undefined, titleOf(name)), make("dd", undefined, plain(one)))
  }
  place.replaceChildren(list)
}

const speakers = { user: "You", text: "Agent", reasoning: "Agent, thinking" }

let cards = 0

/** An entry that is on the page, and how to bring it up to date. */
class Shown {
  /** @param {Entry} entry @param {Actions} actions */
  constructor(entry, actions) {
    this.entry = entry
    this.element = make("li", `entry ${entry.kind}`)
    /** @type {(entry: Entry, isBusy: boolean) => void} */
    this.update = entry.kind === "call" ? this.asCall(actions) : this.asText()
  }

  asText() {
    const { entry } = this
    if (entry.kind === "note") {
      const note = make("p")
      this.element.append(note)
      return (/** @type {Entry} */ next) => {
        if (next.kind !== "note") return
        this.element.dataset["failure"] = String(next.isFailure)
        write(note, next.text)
      }
    }
    const text = make("p", "words")
    if (entry.kind !== "call") this.element.append(make("span", "unseen", `${speakers[entry.kind]}: `), text)
    return (/** @type {Entry} */ next) => {
      if (next.kind === "call" || next.kind === "note") return
      write(text, next.text)
      text.classList.toggle("open", next.isOpen === true)
    }
  }

  /** @param {Actions} actions */
  asCall(actions) {
    const card = make("article", "card")
    card.tabIndex = -1
    const title = make("h3")
    const tag = make("span", "tag", "Background")
    const status = make("span", "status")
    const head = make("div", "head")
    head.append(title, tag, status)
    const args = make("div", "args")
    // Cards of the same tool differ in this only.
    args.id = `args-${++cards}`
    const progress = make("progress")
    progress.max = 1
    const note = make("p", "note")
    const result = make("div", "result")
    const buttons = make("div", "actions")
    /** @param {string} text @param {string} className @param {() => void} act */
    const button = (text, className, act) => {
      const made = make("button", className, text)
      made.type = "button"
      made.setAttribute("aria-describedby", args.id)
      made.addEventListener("click", () => {
        // The button is about to go: its card keeps the focus.
        card.focus({ preventScroll: true })
        act()
      })
      buttons.append(made)
      return made
    }
    const current = () => /** @type {CallEntry} */ (this.entry)
    const approve = button("Approve", "primary", () => actions.decide(current(), true))
    const decline = button("Decline", "", () => actions.decide(current(), false))
    const cancel = button("Cancel", "quiet", () => actions.cancel(current()))
    card.append(head, args, progress, note, result, buttons)
    this.element.append(card)
    return (/** @type {Entry} */ next, /** @type {boolean} */ isBusy) => {
      if (next.kind !== "call") return
      const name = titleOf(next.call.toolName)
      const isGoing = next.status === "running" || next.status === "pending"
      const isTask = next.taskId !== undefined
      card.dataset["status"] = next.status
      card.setAttribute("aria-label", `${name}: ${statusText(next.status)}`)
      write(title, name)
      write(status, statusText(next.status))
      tag.hidden = !isTask
      writeValue(args, next.call.args)
      progress.hidden = !isGoing
      progress.setAttribute("aria-label", `Progress of ${name}`)
      if (next.progress === undefined) progress.removeAttribute("value")
      else progress.value = next.progress
      note.hidden = !isGoing || next.note === undefined
      write(note, next.note ?? "")
      const outcome =
        next.status === "completed" ? next.result : next.status === "failed" ? next.error : undefined
      writeValue(result, outcome)
      approve.hidden = decline.hidden = next.status !== "approval"
      approve.disabled = decline.disabled = isBusy
      cancel.hidden = !isTask || !(isGoing || next.status === "suspended")
      for (const [one, what] of /** @type {const} */ ([
        [approve, "Approve"],
        [decline, "Decline"],
        [cancel, "Cancel"]
      ])) {
        one.setAttribute("aria-label", `${what} ${name}`)
      }
      buttons.hidden = approve.hidden && cancel.hidden
    }
  }
}

/** The entries of a conversation. Those that stay keep their element. */
export class EntryList {
  /** @param {HTMLElement} list @param {Actions} actions */
  constructor(list, actions) {
    this.list = list
    this.actions = actions
    /** @type {Map<string, Shown>} */
    this.shown = new Map()
  }

  /** @param {ReadonlyArray<Entry>} entries @param {boolean} isBusy Nothing can be decided meanwhile. */
  render(entries, isBusy) {
    const keys = new Set(entries.map(({ key }) => key))
    for (const [key, { element }] of this.shown) {
      if (keys.has(key)) continue
      element.remove()
      this.shown.delete(key)
    }
    // Only now: an element that is moved loses its focus, and one that stays in its place is not moved.
    let place = this.list.firstElementChild
    for (const entry of entries) {
      const shown = this.shown.get(entry.key) ?? new Shown(entry, this.actions)
      this.shown.set(entry.key, shown)
      shown.entry = entry
      shown.update(entry, isBusy)
      if (shown.element === place) place = place.nextElementSibling
      else this.list.insertBefore(shown.element, place)
    }
  }
}

/**
 * The lines of a time line.
 *
 * @param {HTMLElement} list
 * @param {ReadonlyArray<import("./timeline.js").Line>} lines
 */
export const renderLines = (list, lines) => {
  const scroller = list.parentElement ?? list
  const isAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 40
  lines.forEach((line, index) => {
    let item = list.children[index]
    if (item === undefined) {
      item = make("li")
      item.append(make("span", "place"), make("span", "type"), make("span", "detail"))
      list.append(item)
    }
    const [place, type, detail] = item.children
    if (place === undefined || type === undefined || detail === undefined) return
    item.setAttribute("data-family", line.family)
    const count = line.last - line.first + 1
    write(place, String(line.first))
    write(type, line.type)
    write(detail, [count > 1 ? `× ${count}` : "", line.detail].filter(text => text !== "").join(" · "))
  })
  while (list.children.length > lines.length) list.lastElementChild?.remove()
  if (isAtEnd) scroller.scrollTop = scroller.scrollHeight
}

// @ts-check
/** The page: what it remembers, what it asks of the server, and what a visitor does. */
import { Answer, callKey } from "./answer.js"
import { askJson, begin, persist, Refused, readRun, readTasks } from "./client.js"
import { Conversation } from "./conversation.js"
import { Kept } from "./storage.js"
import { Timeline } from "./timeline.js"
import { EntryList, element, hintText, renderLines, statusText, titleOf, write } from "./view.js"

/**
 * @typedef {import("./storage.js").Last} Last
 * @typedef {import("./conversation.js").CallEntry} CallEntry
 */

const makeId = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(12)), byte => byte.toString(16).padStart(2, "0")).join("")

const resource = "visitor"
const thread = new URLSearchParams(location.search).get("thread") || `thread-${makeId()}`
history.replaceState(null, "", `?thread=${encodeURIComponent(thread)}`)
const kept = new Kept(thread)

const parts = {
  agentName: element("agent-name", HTMLElement),
  announcer: element("announcer", HTMLElement),
  composer: element("composer", HTMLFormElement),
  connection: element("connection", HTMLElement),
  entries: element("entries", HTMLElement),
  lines: element("lines", HTMLElement),
  message: element("message", HTMLTextAreaElement),
  scroller: element("scroller", HTMLElement),
  send: element("send", HTMLButtonElement),
  state: element("state", HTMLElement),
  stop: element("stop", HTMLButtonElement),
  suggestions: element("suggestions", HTMLElement),
  thinking: element("thinking", HTMLElement),
  timeline: element("timeline", HTMLElement),
  toggle: element("toggle-timeline", HTMLButtonElement),
  trouble: element("trouble", HTMLElement),
  welcome: element("welcome", HTMLElement)
}

let agent = ""
let isLoaded = false
let timeline = new Timeline()
let leaving = new AbortController()
const page = new AbortController()
const conversation = new Conversation()
conversation.notes = kept.notes

const isReady = () => isLoaded && !conversation.isBusy

/** What is read out: whole answers, and not each word as it comes. @param {string} text */
const announce = text => {
  parts.announcer.textContent = text
}

/** @param {string} [text] */
const complain = text => {
  parts.trouble.hidden = text === undefined
  write(parts.trouble, text ?? "")
}

/** @param {boolean} isLost */
const onLost = isLost => {
  if ((parts.connection.dataset["state"] === "lost") === isLost) return
  parts.connection.dataset["state"] = isLost ? "lost" : "good"
  write(parts.connection, isLost ? "Connection lost. Trying again…" : "Connected")
  announce(isLost ? "Connection lost. Trying again." : "Connected again.")
}

const list = new EntryList(parts.entries, {
  decide: (entry, isApproved) => guarded(decide(entry, isApproved)),
  cancel: entry => guarded(cancel(entry))
})

/** Who has scrolled up to read is left there. */
let isAtEnd = true

const stayAtEnd = () => {
  if (isAtEnd) parts.scroller.scrollTop = parts.scroller.scrollHeight
}

const draw = () => {
  const { entries, isBusy, tasks } = conversation
  const running = tasks.running.length
  list.render(entries, isBusy)
  renderLines(parts.lines, timeline.lines)
  const last = entries.at(-1)
  const isQuiet =
    last?.kind === "call" ? last.status !== "running" : last?.kind === "user" || last?.kind === "text"
  parts.thinking.hidden = !isBusy || !isQuiet || (last?.kind === "text" && last.isOpen === true)
  parts.welcome.hidden = !isLoaded || entries.length > 0
  parts.stop.hidden = !isBusy || conversation.answer === undefined || conversation.saying !== undefined
  parts.send.disabled = !isReady()
  write(parts.state, hintText(isBusy ? 0 : running))
  document.body.dataset["state"] = isLoaded ? conversation.state : "loading"
  stayAtEnd()
}

/** @type {number | undefined} */
let frame
/** @type {number | undefined} */
let timer

/** Draws soon, once for many chunks. A tab that is not seen gets no frames, or few. */
const redraw = () => {
  if (timer !== undefined) return
  const once = () => {
    cancelAnimationFrame(frame ?? 0)
    clearTimeout(timer)
    timer = undefined
    draw()
  }
  frame = requestAnimationFrame(once)
  timer = setTimeout(once, 100)
}

/** @param {string} id Of the thread, for a path. */
const askMessages = id =>
  askJson(`/memory/threads/${id}/messages?format=model&last=500&perPage=1000`).catch(async error => {
    if (!(error instanceof Refused && error.status === 404)) throw error
    // A server that keeps things in memory has been started again.
    await makeThread()
    conversation.forget()
    complain("The server does not have this conversation any more. What you say now begins a new one.")
    return { messages: [] }
  })

const makeThread = () => askJson("/memory/threads", { threadId: thread, resourceId: resource })

/** Reads what the server has stored: messages, tasks, and calls that wait. */
const sync = () =>
  persist(
    async () => {
      const id = encodeURIComponent(thread)
      const of = `threadId=${id}&resourceId=${resource}`
      const [{ messages }, { tasks }, { runs }] = await Promise.all([
        askMessages(id),
        askJson(`/background-tasks?${of}&perPage=500`),
        askJson(`/agents/${agent}/suspended-runs?${of}`)
      ])
      conversation.stored = messages
      for (const { error, ...task } of tasks) {
        conversation.tasks.put({ ...task, ...(error === undefined ? {} : { error: error.message }) })
      }
      const waiting = runs.flatMap((/** @type {any} */ { runId, toolCalls }) =>
        toolCalls
          .filter((/** @type {any} */ { requiresApproval }) => requiresApproval)
          .map((/** @type {any} */ { toolCallId }) => callKey(runId, toolCallId))
      )
      conversation.waiting = new Set(waiting)
      redraw()
    },
    page.signal,
    onLost
  )

/** @param {import("./answer.js").Chunk} chunk */
const tell = ({ payload, type }) => {
  if (type === "step-finish" && payload.output.text !== "") announce(`Agent: ${payload.output.text}`)
  if (type === "tool-call-approval") announce(`${titleOf(payload.toolName)} needs your approval.`)
  const { status } = conversation.tasks.byId.get(payload?.taskId) ?? {}
  if (status !== undefined && /-(completed|failed|cancelled|started)$/.test(type)) {
    announce(`${titleOf(payload.toolName)}: ${statusText(status)}`)
  }
}

/** Watches tasks that go on without a response that tells of them. @param {AbortSignal} signal */
const watchTasks = async signal => {
  const watching = new AbortController()
  signal.addEventListener("abort", () => watching.abort())
  const look = () => {
    redraw()
    if (conversation.tasks.running.length === 0) watching.abort()
  }
  const onOpen = async () => {
    await sync()
    conversation.isWatching = true
    look()
  }
  await readTasks(
    thread,
    watching.signal,
    chunk => {
      conversation.tasks.tell(chunk)
      tell(chunk)
      look()
    },
    onOpen,
    onLost
  ).catch(error => {
    if (!watching.signal.aborted) throw error
  })
  conversation.isWatching = false
  redraw()
}

/** Reads a response to its end, instead of the one that was read until now. @param {Last} last */
const follow = async last => {
  leaving.abort()
  leaving = new AbortController()
  const { signal } = leaving
  const answer = new Answer(last)
  timeline = new Timeline()
  conversation.answer = answer
  conversation.saying = undefined
  redraw()
  let isEarlier = false
  try {
    await readRun({
      log: last.log,
      from: 0,
      signal,
      onLost,
      onChunk: (index, chunk) => {
        if (index === undefined) return answer.fail(chunk)
        // Asked for before the decision had begun: this is the log in which the call was made.
        if (
          chunk.type === "tool-call-approval" &&
          callKey(chunk.runId, chunk.payload.toolCallId) === last.decides
        ) {
          isEarlier = true
        }
        answer.push(index, chunk)
        timeline.push(index, chunk)
        if (/^(?:error|abort|tripwire)$/.test(chunk.type)) announce(answer.notes.get(chunk.runId)?.text ?? "")
        if (chunk.type.startsWith("background-task")) conversation.tasks.tell(chunk)
        tell(chunk)
        redraw()
      }
    })
  } catch (error) {
    if (signal.aborted) return
    // What is not kept any more is stored in the thread, as far as it came.
    if (!(error instanceof Refused)) throw error
    if (answer.items.length === 0) conversation.answer = undefined
  }
  if (isEarlier) conversation.answer = undefined
  answer.isOver = true
  answer.isTalking = false
  conversation.deciding.clear()
  for (const [runId, note] of answer.notes) conversation.notes[runId] = note
  kept.keepNotes(conversation.notes)
  await sync()
  if (conversation.tasks.running.length > 0) await watchTasks(signal)
}

/** @param {string} text */
const send = async text => {
  complain()
  const run = `run-${makeId()}`
  conversation.saying = { text, run }
  isAtEnd = true
  redraw()
  const last = { log: run, run, text, isSent: false }
  kept.keepLast(last)
  try {
    await sync()
    const body = { messages: text, runId: run, memory: { thread, resource } }
    await persist(() => begin(`/agents/${agent}/stream-until-idle`, body), page.signal, onLost)
  } catch (error) {
    // A second try finds that the first has arrived.
    if (!(error instanceof Refused && error.status === 409)) {
      conversation.saying = undefined
      parts.message.value = text
      throw error
    }
  }
  kept.keepLast({ ...last, isSent: true })
  await follow(last)
}

/** @param {CallEntry} entry @param {boolean} isApproved */
const decide = async ({ call }, isApproved) => {
  const { key, runId, toolCallId } = call
  if (conversation.isBusy || conversation.deciding.has(key)) return
  complain()
  conversation.deciding.add(key)
  redraw()
  const last = { log: runId, run: runId, decides: key, isSent: false }
  let refusal = ""
  kept.keepLast(last)
  try {
    await sync()
    const path = `/agents/${agent}/${isApproved ? "approve" : "decline"}-tool-call`
    const body = { runId, toolCallId, memory: { thread, resource }, untilIdle: true }
    last.log = await persist(() => begin(path, body), page.signal, onLost)
  } catch (error) {
    // It was decided before, perhaps by a try whose answer never came: then this run's last log tells what came of it.
    if (!(error instanceof Refused)) throw error
    refusal = error.message
  }
  kept.keepLast({ ...last, isSent: true })
  await follow(last)
  if (refusal !== "" && conversation.answer === undefined && parts.trouble.hidden) complain(refusal)
}

/** @param {CallEntry} entry */
const cancel = async ({ taskId = "" }) => {
  complain()
  const task = await askJson(`/background-tasks/${taskId}/cancel`, {}).catch(error => {
    if (!(error instanceof Refused && error.status === 409)) throw error
  })
  // It has settled before, perhaps by another click.
  if (task === undefined) return sync()
  conversation.tasks.put({ ...task, ...(task.error === undefined ? {} : { error: task.error.message }) })
  redraw()
}

const stop = async () => {
  const { answer } = conversation
  parts.message.focus()
  if (answer !== undefined) await askJson(`/runs/${encodeURIComponent(answer.log)}/stop`, {})
}

/** @param {Promise<void>} work */
const guarded = work =>
  void work.catch(error => {
    complain(error instanceof Refused ? error.message : "That did not work. Is the server running?")
    conversation.deciding.clear()
    redraw()
  })

const submit = () => {
  const text = parts.message.value.trim()
  if (text === "" || !isReady()) return
  parts.message.value = ""
  parts.message.rows = 1
  guarded(send(text))
}

parts.composer.addEventListener("submit", event => {
  event.preventDefault()
  submit()
})
parts.message.addEventListener("keydown", event => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
  event.preventDefault()
  submit()
})
parts.message.addEventListener("input", () => {
  parts.message.rows = Math.min(6, parts.message.value.split("\n").length)
})
parts.stop.addEventListener("click", () => guarded(stop()))
parts.suggestions.addEventListener("click", event => {
  const button = event.target instanceof Element ? event.target.closest("button") : null
  const words = button?.dataset["say"]
  if (words === undefined || !isReady()) return
  parts.message.focus()
  guarded(send(words))
})

parts.scroller.addEventListener("scroll", () => {
  const { clientHeight, scrollHeight, scrollTop } = parts.scroller
  isAtEnd = scrollHeight - scrollTop - clientHeight < 80
})
new ResizeObserver(stayAtEnd).observe(parts.scroller)

/** @param {boolean} isShown */
const showTimeline = isShown => {
  parts.timeline.hidden = !isShown
  parts.toggle.setAttribute("aria-expanded", String(isShown))
}
parts.toggle.addEventListener("click", () => showTimeline(parts.timeline.hidden !== false))
showTimeline(matchMedia("(min-width: 70rem)").matches)

// Another tab has got a response in this thread.
window.addEventListener("storage", event => {
  const last = event.key === kept.lastKey ? kept.last : undefined
  if (last?.isSent !== true || last.log === conversation.answer?.log) return
  guarded(sync().then(() => follow(last)))
})

/** Shows what there is: what is stored, and the last response from its beginning. */
const load = async () => {
  const agents = await persist(() => askJson("/agents"), page.signal, onLost)
  const [[id, { name }] = ["", { name: "" }]] = /** @type {Array<[string, any]>} */ (Object.entries(agents))
  agent = encodeURIComponent(id)
  write(parts.agentName, titleOf(name))
  await persist(makeThread, page.signal, onLost)
  await sync()
  isLoaded = true
  const last = kept.last
  // Where there is a keyboard; elsewhere one would cover half of the page.
  if (matchMedia("(pointer: fine)").matches) parts.message.focus()
  redraw()
  if (last === undefined) return
  await follow(last)
  const isKnown =
    conversation.answer !== undefined || conversation.stored.some(({ runId }) => runId === last.run)
  // The page was left before the server had it.
  if (!isKnown && last.text !== undefined && parts.message.value === "") parts.message.value = last.text
}

redraw()
guarded(load())

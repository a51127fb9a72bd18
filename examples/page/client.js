// @ts-check
/** What the page asks of eddy's routes: JSON, and streams of events that are read on after a broken connection. */

const prefix = "/api"

/** The server has answered, and refused. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

/** @param {Response} response */
const refusalOf = async response => {
  const said = await response.json().catch(() => undefined)
  return new Refused(response.status, typeof said?.error === "string" ? said.error : response.statusText)
}

/**
 * @param {string} path
 * @param {object} [body] Makes it a POST.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Response>}
 */
const ask = async (path, body, signal) => {
  const how = {
    method: "POST",
    headers: { "content-type": "application/json", "x-on-disconnect": "continue" }
  }
  const post = body === undefined ? {} : { ...how, body: JSON.stringify(body) }
  const response = await fetch(prefix + path, { ...post, signal: signal ?? null })
  if (!response.ok) throw await refusalOf(response)
  return response
}

/**
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<any>}
 */
export const askJson = async (path, body) => (await ask(path, body)).json()

/**
 * The events of a response, as they come.
 *
 * @param {Response} response
 * @returns {AsyncGenerator<{ id: number | undefined, data: string }>}
 */
async function* eventsOf(response) {
  if (response.body === null) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const frames = (rest + value).split("\n\n")
    rest = frames.pop() ?? ""
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1]
      const id = /^id: (\d+)$/m.exec(frame)?.[1]
      if (data !== undefined) yield { id: id === undefined ? undefined : Number(id), data }
    }
  }
}

/**
 * Waits, or until the network is back.
 *
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
const wait = (milliseconds, signal) =>
  new Promise(resolve => {
    const finish = () => {
      clearTimeout(timer)
      window.removeEventListener("online", finish)
      signal.removeEventListener("abort", finish)
      resolve()
    }
    const timer = setTimeout(finish, milliseconds)
    window.addEventListener("online", finish)
    signal.addEventListener("abort", finish)
  })

/**
 * Does it until it succeeds or the server refuses: the network may be gone for a while. The first try again comes soon, later
 * ones after up to 10 seconds.
 *
 * @template A
 * @param {() => Promise<A>} attempt
 * @param {AbortSignal} signal
 * @param {(isLost: boolean) => void} onLost
 * @returns {Promise<A>}
 */
export const persist = async (attempt, signal, onLost) => {
  for (let failures = 0; ; failures++) {
    try {
      const made = await attempt()
      onLost(false)
      return made
    } catch (error) {
      const isPassing = error instanceof Refused ? error.status === 429 || error.status === 503 : true
      if (signal.aborted) throw error
      if (!isPassing) {
        // Whoever refuses is there.
        onLost(false)
        throw error
      }
      onLost(true)
      await wait(Math.min(10_000, 250 * 2 ** failures) * (0.75 + Math.random() / 2), signal)
      if (signal.aborted) throw error
    }
  }
}

/**
 * Reads the log of a run from an event on until its end, over as many connections as that takes. The server says 204 when there
 * is nothing left. Throws `Refused` when the log is not there any more.
 *
 * @param {object} run
 * @param {string} run.log
 * @param {number} run.from
 * @param {AbortSignal} run.signal
 * @param {(index: number | undefined, chunk: import("./answer.js").Chunk) => void} run.onChunk
 * @param {(isLost: boolean) => void} run.onLost
 */
export const readRun = async ({ log, from, signal, onChunk, onLost }) => {
  let next = from
  for (;;) {
    const begun = next
    let failure
    const open = async () => {
      failure = undefined
      const response = await ask(`/runs/${encodeURIComponent(log)}/events?offset=${next}`, undefined, signal)
      onLost(false)
      for await (const { data, id } of eventsOf(response)) {
        const chunk = JSON.parse(data)
        if (id === undefined) failure = chunk
        else {
          next = id + 1
          onChunk(id, chunk)
        }
      }
      return response.status === 204
    }
    if (await persist(open, signal, onLost)) return
    // What is told without a place in the log is of this connection, unless nothing else is told any more.
    if (failure !== undefined && next === begun) return onChunk(undefined, failure)
  }
}

/**
 * Begins a run, or goes on with one, and gives the id of its log. The run goes on whoever reads it: the response is not needed.
 *
 * @param {string} path
 * @param {object} body
 * @returns {Promise<string>}
 */
export const begin = async (path, body) => {
  const leaving = new AbortController()
  const response = await ask(path, body, leaving.signal)
  const log = response.headers.get("x-run-id") ?? ""
  leaving.abort()
  return log
}

/**
 * What happens to tasks of a thread, over as many connections as that takes.
 *
 * @param {string} thread
 * @param {AbortSignal} signal
 * @param {(chunk: import("./answer.js").Chunk) => void} onChunk
 * @param {() => Promise<void>} onOpen What was missed while there was no connection is asked for here.
 * @param {(isLost: boolean) => void} onLost
 */
export const readTasks = async (thread, signal, onChunk, onOpen, onLost) => {
  while (!signal.aborted) {
    await persist(
      async () => {
        const response = await ask(
          `/background-tasks/stream?threadId=${encodeURIComponent(thread)}`,
          undefined,
          signal
        )
        onLost(false)
        await onOpen()
        for await (const { data } of eventsOf(response)) onChunk(JSON.parse(data))
      },
      signal,
      onLost
    )
  }
}

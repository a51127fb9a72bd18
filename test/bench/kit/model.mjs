// A script spoken as an AI SDK language model: one part per pull, instant unless the script says how fast.
// Versions 3 and 4 of the interface have the same parts here; each system is given the one it takes without converting.
import { argumentOf } from "./script.mjs"

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 20, text: 20, reasoning: 0 }
}
const finish = reason => ({ type: "finish", usage, finishReason: { unified: reason, raw: reason } })
const metadata = { type: "response-metadata", id: "response-0", modelId: "scripted", timestamp: new Date(0) }
const start = { type: "stream-start", warnings: [] }

const callParts = (step, { toolName, args }) => {
  const id = `call-${String(step).padStart(6, "0")}`
  const input = JSON.stringify(args)
  return [
    start,
    metadata,
    { type: "tool-input-start", id, toolName },
    { type: "tool-input-delta", id, delta: input },
    { type: "tool-input-end", id },
    { type: "tool-call", toolCallId: id, toolName, input },
    finish("tool-calls")
  ]
}

const addTo = step => ({ toolName: "add", args: { n: argumentOf(step) } })

/** Nothing more, and no end. */
const silence = new Promise(() => {})

/** A delta is there at its time, whenever it is asked for: the provider does not wait for its reader. */
const clock = every => {
  let due = performance.now()
  return () => {
    due += every
    const wait = due - performance.now()
    return wait > 0 ? new Promise(resolve => setTimeout(resolve, wait)) : undefined
  }
}

const textOpening = [start, metadata, { type: "text-start", id: "0" }]
const textClosing = [{ type: "text-end", id: "0" }, finish("stop")]

const speech = ({ call, tool, size, delta, every, hangs }) => {
  const opening = call === undefined ? textOpening : callParts(call, tool ?? addTo(call))
  const closing = call === undefined ? textClosing : []
  const from = opening.length
  const until = from + (size ?? 0)
  const last = until + closing.length - 1
  const say = (controller, index) =>
    controller.enqueue({ type: "text-delta", id: "0", delta: delta(index - from) })
  const wait = every ? clock(every) : undefined
  let at = 0
  return new ReadableStream(
    {
      pull(controller) {
        const index = at++
        if (index < from) controller.enqueue(opening[index])
        else if (index < until) {
          const waiting = wait?.()
          if (waiting) return waiting.then(() => say(controller, index))
          say(controller, index)
        } else if (hangs) return silence
        else controller.enqueue(closing[index - until])
        if (index === last) controller.close()
      }
    },
    { highWaterMark: 0 }
  )
}

const toolResultsIn = prompt =>
  prompt.reduce((sum, { role, content }) => sum + (role === "tool" ? content.length : 0), 0)

/** `remembered` is how many tool results the last turn's prompt held: the history has to be sent, not dropped. */
export const scripted = (script, specificationVersion) => {
  let turn = 0
  const model = {
    specificationVersion,
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    remembered: 0,
    doGenerate: () => Promise.reject(new Error("the bench only streams")),
    doStream: async options => {
      const at = turn
      turn = (turn + 1) % script.turns
      if (at === script.turns - 1) model.remembered = toolResultsIn(options.prompt)
      return { stream: speech(script.turn(at)) }
    }
  }
  return model
}

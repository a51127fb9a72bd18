// A script spoken as an AI SDK language model: instant, one part per pull.
// Versions 3 and 4 of the interface have the same parts here; each system is given the one it takes without converting.
import { argumentOf } from "./script.mjs"

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 20, text: 20, reasoning: 0 }
}
const finish = reason => ({ type: "finish", usage, finishReason: { unified: reason, raw: reason } })
const metadata = { type: "response-metadata", id: "response-0", modelId: "scripted", timestamp: new Date(0) }
const start = { type: "stream-start", warnings: [] }

const callParts = step => {
  const id = `call-${String(step).padStart(6, "0")}`
  const input = JSON.stringify({ n: argumentOf(step) })
  return [
    start,
    metadata,
    { type: "tool-input-start", id, toolName: "add" },
    { type: "tool-input-delta", id, delta: input },
    { type: "tool-input-end", id },
    { type: "tool-call", toolCallId: id, toolName: "add", input },
    finish("tool-calls")
  ]
}

const textOpening = [start, metadata, { type: "text-start", id: "0" }]
const textClosing = [{ type: "text-end", id: "0" }, finish("stop")]

const speech = ({ call, size, delta }) => {
  const opening = call === undefined ? textOpening : callParts(call)
  const closing = call === undefined ? textClosing : []
  const from = opening.length
  const until = from + (size ?? 0)
  const last = until + closing.length - 1
  let at = 0
  return new ReadableStream(
    {
      pull(controller) {
        const index = at++
        if (index < from) controller.enqueue(opening[index])
        else if (index < until) {
          controller.enqueue({ type: "text-delta", id: "0", delta: delta(index - from) })
        } else controller.enqueue(closing[index - until])
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

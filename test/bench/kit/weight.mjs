// The size of a stream as one would send it: each chunk as JSON, the one-off `finish` apart.
import { verify } from "./read.mjs"

/** What JSON refuses (cycles, bigint) counts as its refusal's text, so that a peer's chunk is never dropped. */
const json = chunk => {
  try {
    return JSON.stringify(chunk) ?? ""
  } catch (error) {
    return String(error)
  }
}

export const weigh = async (system, script) => {
  const seen = { deltas: 0, results: 0 }
  const bytes = { finish: 0, rest: 0 }
  const reader = (await system.open(script).stream()).fullStream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    if (value.type === "text-delta") seen.deltas++
    if (value.type === "tool-result") seen.results++
    bytes[value.type === "finish" ? "finish" : "rest"] += Buffer.byteLength(json(value))
  }
  verify(seen, script, system.name)
  return bytes
}

/** Figures of larger loads than the tests have: `npx tsx test/http/load.mjs [streams]`. CPU time, because machines are shared. */
import * as Effect from "effect/Effect"
import { serve } from "../../src/http.ts"
import { Agent, Eddy } from "../../src/promise.ts"

const count = Number(process.argv[2] ?? 1000)
const words = 50

let release = () => undefined
const gate = new Promise(resolve => {
  release = resolve
})

const model = {
  provider: "load",
  modelId: "load",
  answer: () =>
    Effect.succeed({
      normalize: part => part,
      source: (async function* () {
        yield { type: "text-start", id: "t" }
        yield { type: "text-delta", id: "t", delta: "first " }
        await gate
        for (let word = 0; word < words; word++) {
          yield { type: "text-delta", id: "t", delta: `word ${word} ` }
          await new Promise(resolve => setImmediate(resolve))
        }
        yield { type: "text-end", id: "t" }
        yield { type: "finish", reason: "stop", usage: {} }
      })()
    })
}

const cpu = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

const figure = (name, value) => console.log(`${name.padEnd(44)} ${value}`)

const eddy = new Eddy({ agents: { helper: new Agent({ id: "helper", model }) } })
const serving = await serve(eddy)
const url = `${serving.url}/api/agents/helper/stream`

const open = async () => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages: "Hello" })
  })
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ""
  while (!text.includes("first")) text += decoder.decode((await reader.read()).value)
  return reader
}

const rest = async reader => {
  const decoder = new TextDecoder()
  let text = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text
    text += decoder.decode(value)
  }
}

await (await open()).cancel()
globalThis.gc?.()
const before = { cpu: cpu(), rss: process.memoryUsage().rss, at: performance.now() }
const readers = await Promise.all(Array.from({ length: count }, open))
figure(`${count} streams opened, CPU ms each`, ((cpu() - before.cpu) / count).toFixed(2))
figure("wall ms", (performance.now() - before.at).toFixed(0))
figure(
  "memory of an open stream, both ends, KiB",
  ((process.memoryUsage().rss - before.rss) / count / 1024).toFixed(1)
)
const middle = cpu()
release()
const texts = await Promise.all(readers.map(rest))
figure("whole streams", texts.filter(text => text.includes('"finish"') && text.endsWith("[DONE]\n\n")).length)
figure("CPU µs of a chunk, both ends", (((cpu() - middle) * 1000) / (count * words)).toFixed(1))
const closing = performance.now()
await serving.close()
figure("shutdown, wall ms", (performance.now() - closing).toFixed(0))
await eddy.shutdown()

/** What it costs to refuse a request: CPU time in proportion to its bytes, in which no other request is served. */
import { createHandler } from "eddy/http"
import { Eddy, InMemoryStore } from "eddy/promise"
import { FastCheck } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { memoryLogger } from "../support/readers.js"
import { agentWith } from "./kit.js"

/** Just below the default limit of a body. */
const size = 977 * 1024

/** Milliseconds of CPU for one such body, its JSON and the garbage among them. Reading its JSON takes 10 to 20 of them. */
const most = 500

/** An item, repeated until the list is large. */
const listOf = (item: string): string =>
  `[${Array.from({ length: Math.floor(size / (item.length + 1)) }, () => item).join(",")}]`

/** An object of as many fields as there is room for. */
const recordOf = (item: string): string => {
  const length = Math.floor(size / (item.length + 10))
  return `{${Array.from({ length }, (_, index) => `"k${index + 100_000}":${item}`).join(",")}}`
}

/** Bodies with one hole, by the path that they are sent to. Where anything fits into it, something else is wrong. */
const bodies: ReadonlyArray<readonly [path: string, body: string]> = [
  ["/agents/helper/stream", `{"x":#}`],
  ["/agents/helper/stream", `{#:1}`],
  ["/agents/helper/stream", `{"messages":"a","memory":{#:1}}`],
  ["/agents/helper/stream", `{"messages":#}`],
  ["/agents/helper/stream", `{"messages":[{"role":"user","content":#}]}`],
  ["/agents/helper/stream", `{"messages":[{"role":"assistant","content":#}]}`],
  ["/agents/helper/stream", `{"messages":[{"role":"tool","content":#}]}`],
  ["/agents/helper/stream", `{"messages":[{"role":"user","parts":#}]}`],
  ["/agents/helper/stream", `{"messages":"a","memory":#}`],
  ["/agents/helper/stream", `{"messages":"a","memory":{"thread":#,"resource":"r"}}`],
  ["/agents/helper/stream", `{"messages":"a","requestContext":#}`],
  ["/agents/helper/stream", `{"clientTools":#}`],
  ["/agents/helper/stream", `{"modelSettings":#}`],
  ["/agents/helper/stream", `{"structuredOutput":{"schema":{"type":"object","properties":#}}}`],
  ["/agents/helper/stream", `{"structuredOutput":{"schema":{"type":"object","required":#}}}`],
  ["/agents/helper/chat", `{"id":"c","messages":#}`],
  ["/agents/helper/chat", `{"id":"c","messages":[{"id":"m","role":"assistant","parts":#}]}`],
  ["/agents/helper/ag-ui", `{"threadId":"t","runId":"r","messages":#}`],
  ["/agents/helper/ag-ui", `{"threadId":"t","runId":"r","messages":[{"role":"user","content":#}]}`],
  ["/agents/helper/ag-ui", `{"threadId":"t","runId":"r","messages":[],"resume":#}`],
  ["/agents/helper/ag-ui", `{"threadId":"t","runId":"r","messages":[],"tools":#}`],
  ["/v1/chat/completions", `{"model":"helper","messages":#}`],
  ["/v1/chat/completions", `{"model":"none","messages":[{"role":"user","content":"a"}],"stop":#}`],
  ["/v1/responses", `{"model":"helper","input":#}`],
  ["/v1/responses", `{"model":"helper","input":[{"role":"user","content":#}]}`],
  ["/v1/responses", `{"model":"helper","input":"a","tools":#}`],
  ["/memory/threads", `{"threadId":1,"metadata":#}`]
]

/** None of them is what any of these places takes. Short ones make a body of many values, long ones one of few. */
const items = FastCheck.oneof(
  FastCheck.constantFrom("1", "null", "true", "{}", "[]", "[[[[[[]]]]]]", "1234567890123", '{"role":"user"}'),
  FastCheck.constantFrom(
    '{"type":"text"}',
    '{"type":"function"}',
    '{"type":"file","url":5}',
    `{"x":["${"y".repeat(40)}"]}`
  ),
  FastCheck.json({ maxDepth: 3 }).filter(json => json.length < 200 && /^[{[]/.test(json))
)

/** What makes an item large. */
const growing = { listOf, recordOf, textOf: () => JSON.stringify("x".repeat(size)) }

const opened = async () => {
  const eddy = new Eddy({
    agents: { helper: agentWith([]) },
    storage: new InMemoryStore(),
    logger: memoryLogger()
  })
  const { close, handler } = await createHandler(eddy, {
    maxBodyBytes: 2 ** 21,
    clientOptions: ["structuredOutput", "tools", "modelSettings"]
  })
  onTestFinished(async () => {
    await close()
    await eddy.shutdown()
  })
  /** The status of the answer, and the CPU time until it is there. */
  const send = async (path: string, text: string) => {
    const body = new TextEncoder().encode(text)
    const request = new Request(`http://localhost/api${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "content-length": String(body.length) },
      body
    })
    const before = process.cpuUsage()
    const response = await handler(request)
    const said = await response.text()
    const { system, user } = process.cpuUsage(before)
    return { status: response.status, said, milliseconds: (user + system) / 1000 }
  }
  /** The best of a few: another process takes a share of every measurement. */
  const best = async (path: string, text: string) => {
    let found = await send(path, text)
    for (let tries = 0; found.milliseconds > most && tries < 4; tries++) {
      const next = await send(path, text)
      if (next.milliseconds < found.milliseconds) found = next
    }
    return found
  }
  return { best }
}

describe("refusing a body of almost a mebibyte", () => {
  it("takes little CPU, and few words, wherever it is wide", async () => {
    const { best } = await opened()
    const grown = FastCheck.constantFrom<keyof typeof growing>("listOf", "recordOf", "textOf")
    const property = FastCheck.asyncProperty(
      FastCheck.constantFrom(...bodies),
      grown,
      items,
      async ([path, body], grow, item) => {
        const { milliseconds, said, status } = await best(
          path,
          body.replace("#", () => growing[grow](item))
        )
        expect(milliseconds).toBeLessThan(most)
        // A long text is a message there, and the run has begun.
        if (grow === "textOf" && /"(messages|input|content)":#/.test(body)) return
        expect([400, 404]).toContain(status)
        expect(said.length).toBeLessThan(4096)
      }
    )
    await FastCheck.assert(property, { numRuns: 150, endOnFailure: true })
  }, 120_000)
})

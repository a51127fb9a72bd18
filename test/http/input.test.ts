/** What a request may hold: the ids that a client chooses. */
import { FastCheck } from "effect"
import { describe, expect, it } from "vitest"
import { agentWith, post, saying, served } from "./kit.js"

const texts = FastCheck.oneof(
  FastCheck.constantFrom(
    "a\r\nb",
    "\u0000",
    "\u007f",
    "\u0085",
    "😀",
    "漢字",
    "a@b.example",
    "\ud800",
    "%",
    "a b",
    "é"
  ),
  FastCheck.string({ unit: "binary", minLength: 1, maxLength: 20 }),
  FastCheck.string({ unit: "grapheme", minLength: 1, maxLength: 20 })
)

const isId = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text)

describe("an id that a client chooses", () => {
  it("is encoded where it is a header, and refused by name where it has control characters", async () => {
    const turns = Array.from({ length: 100 }, () => saying("Hi."))
    const { api } = await served({ helper: agentWith(turns) })
    const taken = new Set<string>()
    await FastCheck.assert(
      FastCheck.asyncProperty(texts, async runId => {
        if (taken.has(runId)) return
        taken.add(runId)
        const response = await post(`${api}/agents/helper/stream`, { messages: "Hello", runId })
        const said = await response.text()
        if (isId(runId)) {
          expect(response.status).toBe(200)
          expect(decodeURIComponent(response.headers.get("x-run-id") ?? "")).toBe(runId)
        } else {
          expect([response.status, JSON.parse(said).issues[0].field]).toEqual([400, "runId"])
        }
      }),
      { numRuns: 40, examples: [["a\r\nb"], ["\u0000"], ["\u007f"], ["😀"], ["漢字"], ["\ud800"]] }
    )
  }, 60_000)
})

describe("an id with a control character", () => {
  it("is refused by its name at every route", async () => {
    const { api } = await served({ helper: agentWith([]) })
    const id = "a\u0000\r\nb"
    const hello = [{ id: "m", role: "user", parts: [{ type: "text", text: "Hello" }] }]
    const call = { runId: id, toolCallId: "c", resumeData: 1 }
    const bodies: ReadonlyArray<readonly [path: string, field: string, body: object]> = [
      ["/agents/helper/stream", "runId", { messages: "Hello", runId: id }],
      [
        "/agents/helper/stream",
        "memory.thread",
        { messages: "Hello", memory: { thread: id, resource: "r" } }
      ],
      [
        "/agents/helper/stream",
        "memory.resource",
        { messages: "Hello", memory: { thread: "t", resource: id } }
      ],
      ["/agents/helper/stream", "messages[0].id", { messages: [{ id, role: "user", content: "Hello" }] }],
      ["/agents/helper/resume-stream", "runId", call],
      ["/agents/helper/resume-stream", "toolCallId", { ...call, runId: "r", toolCallId: id }],
      ["/agents/helper/observe", "runId", { runId: id }],
      ["/agents/helper/chat", "id", { id, messages: hello }],
      ["/agents/helper/chat", "messages[0].id", { id: "c", messages: [{ ...hello[0], id }] }],
      ["/agents/helper/chat", "runId", { id: "c", messages: hello, resume: { runId: id, toolCallId: "c" } }],
      ["/agents/helper/ag-ui", "runId", { threadId: "t", runId: id, messages: [] }],
      ["/agents/helper/ag-ui", "threadId", { threadId: id, runId: "r", messages: [] }],
      ["/memory/threads", "threadId", { threadId: id, resourceId: "r" }],
      [`/runs/${encodeURIComponent(id)}/stop`, "runId", {}],
      [`/background-tasks/${encodeURIComponent(id)}/cancel`, "taskId", {}]
    ]
    for (const [path, field, body] of bodies) {
      const response = await post(`${api}${path}`, body)
      const { issues = [] }: { readonly issues?: ReadonlyArray<{ readonly field: string }> } = JSON.parse(
        await response.text()
      )
      expect([path, response.status, issues[0]?.field]).toEqual([path, 400, field])
    }
    const query = await fetch(`${api}/background-tasks?threadId=${encodeURIComponent(id)}`)
    expect(query.status).toBe(400)
  })
})

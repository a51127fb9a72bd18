/** The `Chat` of the AI SDK, which is `useChat` without React, against mapped chunks: posting, deciding, reconnecting. */
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls
} from "ai"
import { Conversation } from "eddy"
import { Effect, Either } from "effect"
import { describe, expect, it } from "vitest"
import * as UiRequest from "../../../src/http/mapping/UiRequest.js"
import {
  call,
  chunk,
  finish,
  result,
  says,
  start,
  stepFinish,
  stepStart,
  streamed,
  tasks,
  text
} from "./kit.js"
import { chatOver, partsOf, serve, uiText } from "./uiKit.js"

const requestOf = (body: unknown): UiRequest.UiRequest => Either.getOrThrow(UiRequest.read(body))

const approval = (toolCallId: string, runId = "r1", toolName = "work") =>
  chunk("tool-call-approval", { toolCallId, toolName, args: { n: 1 } }, runId)

const suspendedRun = [
  start(),
  stepStart(),
  ...text("I need your word. "),
  ...streamed("c1"),
  approval("c1"),
  finish("suspended")
]

/** What follows a decision: the run tells of the call again, with its outcome. */
const resumedRun = (outcome: ReturnType<typeof call>, runId = "r1") => [
  start(runId),
  stepStart(runId),
  call("c1", "work", runId),
  outcome,
  stepFinish(runId, { calls: ["c1"], isContinued: true }),
  stepStart(runId),
  ...text("Done.", "t9", runId),
  stepFinish(runId),
  finish("stop", runId)
]

const denied = chunk("tool-output-denied", {
  toolCallId: "c1",
  toolName: "work",
  approval: { approved: false, reason: "Too late." }
})

describe("a chat", () => {
  it("posts what is read, and shows one message for a response of several turns", async () => {
    const task = tasks("t1", "c1")
    const { fetch, posted } = serve(() => ({
      chunks: [
        start(),
        stepStart(),
        call("c1"),
        task.started,
        result("c1", "acknowledged"),
        ...text("On it. "),
        stepFinish(),
        finish(),
        task.completed(3),
        ...says("Three.", "r2")
      ]
    }))
    const chat = chatOver(fetch)
    await chat.sendMessage({ text: "How many?" })
    expect(chat.error).toBeUndefined()
    expect(chat.status).toBe("ready")
    expect(chat.messages.map(({ role }) => role)).toStrictEqual(["user", "assistant"])
    expect(uiText(chat.messages[1])).toBe("On it. Three.")
    expect(requestOf(posted[0]?.body)).toMatchObject({
      chatId: "chat-1",
      messages: [{ role: "user", parts: [{ type: "text", text: "How many?" }] }],
      after: undefined,
      decisions: [],
      resumption: undefined,
      continues: undefined
    })
  })

  it("tells an error, and no more than its text", async () => {
    const { fetch } = serve(() => ({
      chunks: [start(), stepStart(), chunk("error", { error: new Error("secret") }), finish("error")]
    }))
    const chat = chatOver(fetch)
    await chat.sendMessage({ text: "Hi." })
    expect(chat.status).toBe("error")
    expect(chat.error?.message).toBe("An error occurred.")
  })

  it("sends what is behind its last answer as new", async () => {
    const { fetch, posted } = serve((_, count) => ({ chunks: says(`Answer ${count}.`, `r${count}`) }))
    const chat = chatOver(fetch)
    await chat.sendMessage({ text: "One." })
    await chat.sendMessage({ text: "Two." })
    const { messages, newMessages } = requestOf(posted[1]?.body)
    expect(messages).toHaveLength(3)
    expect(newMessages).toMatchObject([{ parts: [{ text: "Two." }] }])
    const prompt = await Effect.runPromise(Conversation.fromInput(messages))
    expect(prompt.map(({ role }) => role)).toStrictEqual(["user", "assistant", "user"])
  })

  it("asks for another answer in place of the last", async () => {
    const { fetch, posted } = serve((_, count) => ({ chunks: says(`Answer ${count}.`, `r${count}`) }))
    const chat = chatOver(fetch)
    await chat.sendMessage({ text: "One." })
    await chat.regenerate()
    const request = requestOf(posted[1]?.body)
    expect(request.after).toBe(chat.messages[0]?.id)
    expect(request.messages.map(({ role }) => role)).toStrictEqual(["user"])
    expect(chat.messages.map(uiText)).toStrictEqual(["One.", "Answer 2."])
  })
})

describe("an approval", () => {
  it("goes to the client and back, and its message goes on", async () => {
    for (const approved of [true, false]) {
      const { fetch, posted } = serve((body, count) => {
        if (count === 1) return { chunks: suspendedRun }
        const { continues } = requestOf(body)
        return {
          chunks: resumedRun(approved ? result("c1", { sent: 1 }) : denied),
          options: continues === undefined ? {} : { continues }
        }
      })
      const chat = chatOver(fetch, {
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
      })
      await chat.sendMessage({ text: "Send it." })
      const asked = partsOf(chat.messages[1], "tool-work")
      expect(asked).toMatchObject([{ state: "approval-requested", approval: { id: "r1::c1" } }])
      await chat.addToolApprovalResponse({ id: "r1::c1", approved, reason: "Because." })
      await expect.poll(() => posted.length).toBe(2)
      await expect.poll(() => chat.status).toBe("ready")
      expect(requestOf(posted[1]?.body)).toMatchObject({
        decisions: [{ runId: "r1", toolCallId: "c1", approved, reason: "Because." }],
        newMessages: [{ role: "assistant" }]
      })
      expect(chat.error).toBeUndefined()
      expect(chat.messages).toHaveLength(2)
      expect(uiText(chat.messages[1])).toBe("I need your word. Done.")
      expect(partsOf(chat.messages[1], "tool-work")).toMatchObject([
        { state: approved ? "output-available" : "output-denied" }
      ])
      expect(posted).toHaveLength(2)
    }
  })

  it("of the second of two calls is asked for again where it stands, and can be given", async () => {
    const both = [
      start(),
      stepStart(),
      call("c1"),
      call("c2"),
      approval("c1"),
      approval("c2"),
      finish("suspended")
    ]
    const leg = (toolCallId: string) => [start(), stepStart(), call(toolCallId), result(toolCallId, 1)]
    const { fetch, posted } = serve((body, count) => {
      if (count === 1) return { chunks: both }
      const { continues = { id: "", role: "assistant" as const, parts: [] } } = requestOf(body)
      const chunks =
        count === 2
          ? [...leg("c1"), approval("c2"), finish("suspended")]
          : [...leg("c2"), stepFinish(), ...says("Both.").slice(1)]
      return { chunks, options: { continues } }
    })
    const chat = chatOver(fetch, {
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
    })
    await chat.sendMessage({ text: "Both." })
    await chat.addToolApprovalResponse({ id: "r1::c1", approved: true })
    expect(posted).toHaveLength(1)
    await chat.addToolApprovalResponse({ id: "r1::c2", approved: true })
    await expect.poll(() => posted.length).toBe(2)
    await expect.poll(() => chat.status).toBe("ready")
    expect(requestOf(posted[1]?.body).decisions).toHaveLength(2)
    // The server has carried out the first decision only: the second call waits again, and its part is the client's last step.
    await chat.addToolApprovalResponse({ id: "r1::c2", approved: true })
    await expect.poll(() => posted.length).toBe(3)
    await expect.poll(() => chat.status).toBe("ready")
    expect(requestOf(posted[2]?.body).decisions).toStrictEqual([
      { runId: "r1", toolCallId: "c2", approved: true }
    ])
    expect(partsOf(chat.messages[1], "tool-work").map(({ state }) => state)).toStrictEqual([
      "output-available",
      "output-available"
    ])
  })

  it("of a call below another one has a part of its own, which is settled with it", async () => {
    const { fetch, posted } = serve((body, count) => {
      if (count === 1) {
        return {
          chunks: [
            start(),
            stepStart(),
            call("c1", "agent"),
            approval("c1/c9", "r1", "dig"),
            finish("suspended")
          ]
        }
      }
      const { continues = { id: "", role: "assistant" as const, parts: [] } } = requestOf(body)
      const chunks = [...resumedRun(result("c1", "found", "r1", "agent"))]
      return { chunks, options: { continues } }
    })
    const chat = chatOver(fetch, {
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
    })
    await chat.sendMessage({ text: "Dig." })
    expect(partsOf(chat.messages[1], "tool-dig")).toMatchObject([{ approval: { id: "r1::c1/c9" } }])
    await chat.addToolApprovalResponse({ id: "r1::c1/c9", approved: true })
    // Its caller waits for it: the client does not send by itself.
    await chat.sendMessage()
    await expect.poll(() => posted.length).toBe(2)
    await expect.poll(() => chat.status).toBe("ready")
    expect(requestOf(posted[1]?.body).decisions).toStrictEqual([
      { runId: "r1", toolCallId: "c1/c9", approved: true }
    ])
    expect(partsOf(chat.messages[1], "tool-dig")).toMatchObject([{ state: "output-available" }])
    expect(partsOf(chat.messages[1], "tool-agent")).toMatchObject([{ output: "found" }])
    await chat.sendMessage({ text: "And now?" })
    expect(requestOf(posted[2]?.body).decisions).toStrictEqual([])
  })
})

describe("a tool of the client", () => {
  it("is executed there, and the message goes on with its output", async () => {
    const { fetch, posted } = serve((body, count) => {
      if (count === 1) {
        return {
          chunks: [
            start(),
            stepStart(),
            ...streamed("c1", "locate"),
            stepFinish("r1", { calls: ["c1"], isClients: true }),
            finish("tool-calls", "r1", { stoppedBy: "client-tool" })
          ]
        }
      }
      const { continues } = requestOf(body)
      return { chunks: says("Bern.", "r2"), options: continues === undefined ? {} : { continues } }
    })
    const chat = chatOver(fetch, { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls })
    await chat.sendMessage({ text: "Where?" })
    await chat.addToolOutput({ tool: "locate", toolCallId: "c1", output: { city: "Bern" } })
    await expect.poll(() => posted.length).toBe(2)
    await expect.poll(() => chat.status).toBe("ready")
    expect(chat.messages).toHaveLength(2)
    expect(uiText(chat.messages[1])).toBe("Bern.")
    const { decisions, messages, newMessages } = requestOf(posted[1]?.body)
    expect(decisions).toStrictEqual([])
    expect(newMessages).toStrictEqual([
      { role: "tool", content: [{ type: "tool-result", toolCallId: "c1", result: { city: "Bern" } }] }
    ])
    const prompt = await Effect.runPromise(Conversation.fromInput(messages))
    expect(prompt.at(-1)).toMatchObject({
      content: [{ toolName: "locate", output: { value: { city: "Bern" } } }]
    })
    expect(posted).toHaveLength(2)
  })
})

describe("a suspension", () => {
  it("says what to answer and where, and is over when its call has an outcome", async () => {
    const { fetch, posted } = serve((body, count) => {
      if (count === 1) {
        const asks = { toolCallId: "c1", toolName: "work", args: {}, suspendData: { ask: "Which?" } }
        return {
          chunks: [start(), stepStart(), call("c1"), chunk("tool-call-suspended", asks), finish("suspended")]
        }
      }
      const { continues } = requestOf(body)
      return {
        chunks: resumedRun(result("c1", "blue")),
        options: continues === undefined ? {} : { continues }
      }
    })
    const chat = chatOver(fetch)
    await chat.sendMessage({ text: "Paint it." })
    expect(partsOf(chat.messages[1], "data-tool-call-suspended")).toMatchObject([
      {
        id: "c1",
        data: { status: "suspended", runId: "r1", toolCallId: "c1", suspendData: { ask: "Which?" } }
      }
    ])
    await chat.sendMessage(undefined, { body: { resume: { runId: "r1", toolCallId: "c1", data: "blue" } } })
    expect(requestOf(posted[1]?.body).resumption).toStrictEqual({
      runId: "r1",
      toolCallId: "c1",
      data: "blue"
    })
    expect(chat.messages).toHaveLength(2)
    expect(partsOf(chat.messages[1], "data-tool-call-suspended")).toMatchObject([
      { data: { status: "resumed" } }
    ])
    expect(partsOf(chat.messages[1], "tool-work")).toMatchObject([{ output: "blue" }])
  })
})

describe("a chat that comes back", () => {
  it("reads the response again from its beginning, into the same message", async () => {
    const chunks = [
      start(),
      stepStart(),
      ...streamed("c1"),
      result("c1", 1),
      stepFinish("r1", { calls: ["c1"], isContinued: true }),
      ...says("Here.").slice(1)
    ]
    const { bodies, fetch } = serve(() => ({ chunks }))
    const chat = chatOver(fetch)
    await chat.sendMessage({ text: "Hi." })
    const before = structuredClone(chat.messages)
    await chat.resumeStream()
    expect(chat.error).toBeUndefined()
    expect(chat.messages).toStrictEqual(before)
    expect(bodies[1]).toStrictEqual(bodies[0])
  })

  it("also in the middle of a run that goes on after a decision", async () => {
    const { fetch } = serve(() => ({
      chunks: [start(), stepStart(), result("c1", 1), ...says("Here.").slice(2)]
    }))
    const chat = chatOver(fetch)
    await chat.resumeStream()
    expect(chat.error).toBeUndefined()
    expect(partsOf(chat.messages[0], "tool-work")).toMatchObject([{ state: "output-available" }])
  })
})

describe("a request", () => {
  const read = (body: unknown) => UiRequest.read(body)

  it("that is none is refused with its place", () => {
    const bodies: ReadonlyArray<readonly [unknown, string]> = [
      [undefined, ""],
      [{}, "messages"],
      [{ messages: [{ role: "tool", parts: [] }] }, "messages[0].role"],
      [{ messages: [{ role: "user", parts: "Hi." }] }, "messages[0].parts"],
      [{ messages: [], resume: { runId: "" } }, "resume.runId"]
    ]
    for (const [body, field] of bodies) {
      expect(read(body)).toMatchObject({ _tag: "Left", left: { _tag: "InvalidRequest", field } })
    }
  })

  it("says nothing in the name of the system", () => {
    const said = (role: string) => ({ role, parts: [{ type: "text", text: role }] })
    const { messages, newMessages } = requestOf({ messages: [said("system"), said("user")] })
    expect(messages.map(({ role }) => role)).toStrictEqual(["user"])
    expect(newMessages).toHaveLength(1)
  })

  it("with decisions that are none of ours", () => {
    const part = (approval: unknown) => ({
      type: "tool-work",
      toolCallId: "c1",
      state: "approval-responded",
      approval
    })
    const parts = [
      part(undefined),
      part({ id: "elsewhere", approved: true }),
      part({ id: "::c1", approved: true }),
      part({ id: "r1::", approved: true }),
      part({ id: "r1::c1" }),
      part({ id: "host::run::c1", approved: true })
    ]
    expect(requestOf({ messages: [{ role: "assistant", parts }] }).decisions).toStrictEqual([
      { runId: "host::run", toolCallId: "c1", approved: true }
    ])
  })
})

/** Chunks as the UI message stream of the AI SDK, read by the AI SDK itself. */
import { describe, expect, it } from "vitest"
import * as UiMessageStream from "../../../src/http/mapping/UiMessageStream.js"
import {
  call,
  chunk,
  data,
  finish,
  mapped,
  reasoning,
  result,
  says,
  start,
  stepFinish,
  stepStart,
  streamed,
  tasks,
  text,
  written
} from "./kit.js"
import { partsOf, readUi, uiText } from "./uiKit.js"

const ui = (chunks: Parameters<typeof mapped>[1], options?: UiMessageStream.Options, failure?: unknown) =>
  mapped(UiMessageStream.make(options), chunks, failure)

const typesOf = (frames: ReadonlyArray<{ readonly type: string }>) => frames.map(({ type }) => type)

const finishReason = (frames: ReadonlyArray<UiMessageStream.UiFrame>) => {
  const last = frames.at(-1)
  return last?.type === "finish" ? last.finishReason : undefined
}

/** A run of one step with this in it. */
const oneStep = (...content: ReadonlyArray<Parameters<typeof mapped>[1][number]>) => [
  start(),
  stepStart(),
  ...content,
  stepFinish(),
  finish()
]

describe("what a model says", () => {
  it("is text and reasoning, in one message with the id under which it is stored", async () => {
    const frames = ui(oneStep(...reasoning("Let me think."), ...text("Hello there.")))
    const { errors, message } = await readUi(frames)
    expect(errors).toStrictEqual([])
    expect(message?.id).toBe("message-r1")
    expect(uiText(message)).toBe("Hello there.")
    expect(partsOf(message, "reasoning")).toMatchObject([{ text: "Let me think.", state: "done" }])
    expect(finishReason(frames)).toBe("stop")
  })

  it("keeps what a provider wants back", async () => {
    const metadata = { providerMetadata: { kit: { signature: "s" } } }
    const frames = ui(
      oneStep(
        chunk("reasoning-start", { id: "1" }),
        chunk("reasoning-end", { id: "1", ...metadata }),
        chunk("text-start", { id: "2", ...metadata }),
        chunk("text-end", { id: "2" }),
        chunk("tool-call", { toolCallId: "c1", toolName: "work", args: {}, ...metadata }),
        result("c1", 1)
      )
    )
    const { message } = await readUi(frames)
    expect(partsOf(message, "reasoning")).toMatchObject([metadata])
    expect(partsOf(message, "text")).toMatchObject([metadata])
    expect(partsOf(message, "tool-work")).toMatchObject([{ callProviderMetadata: metadata.providerMetadata }])
  })

  it("is files and sources", async () => {
    const frames = ui(
      oneStep(
        chunk("file", { data: new Uint8Array([1, 2]), mimeType: "image/png" }),
        chunk("file", { data: "AQI=", base64: "AQI=", mimeType: "image/png" }),
        chunk("file", { data: "https://kit.test/a.png", mimeType: "image/png" }),
        chunk("source", { id: "s1", sourceType: "url", title: "Kit", url: "https://kit.test" }),
        chunk("source", { id: "s2", sourceType: "document", title: "", filename: "a.pdf" }),
        chunk("source", { id: "s3", sourceType: "url", title: "" })
      )
    )
    const { errors, message } = await readUi(frames)
    expect(errors).toStrictEqual([])
    expect(partsOf(message, "file").map(({ url }) => url)).toStrictEqual([
      "data:image/png;base64,AQI=",
      "data:image/png;base64,AQI=",
      "https://kit.test/a.png"
    ])
    expect(partsOf(message, "source-url")).toMatchObject([{ title: "Kit", url: "https://kit.test" }])
    expect(partsOf(message, "source-document").map(({ title }) => title)).toStrictEqual(["a.pdf", "Document"])
  })

  it("does not show what is the provider's or the server's", () => {
    const frames = ui(
      oneStep(
        chunk("raw", { secret: 1 }),
        chunk("response-metadata", { headers: { "set-cookie": "secret" } }),
        { type: "object", runId: "r1", from: "AGENT", object: { secret: 1 } },
        chunk("watch", { workflowState: { secret: 1 } }),
        chunk("step-output", { output: "secret", stepId: "s" })
      )
    )
    expect(JSON.stringify(frames)).not.toContain("secret")
    expect(typesOf(frames)).toStrictEqual(["start", "finish"])
  })

  it("skips a type that it does not know", async () => {
    const unknown = { type: "from-the-future", runId: "r1", from: "AGENT", payload: {} }
    const chunks = [...says("Hi.").slice(0, 2), unknown as never, ...says("Hi.").slice(2)]
    expect(uiText((await readUi(ui(chunks))).message)).toBe("Hi.")
  })
})

describe("tool calls", () => {
  it("show their arguments as they come, then their output", async () => {
    const frames = ui(oneStep(...streamed("c1"), result("c1", { found: 3 })))
    expect(typesOf(frames)).toStrictEqual([
      "start",
      "start-step",
      "tool-input-start",
      "tool-input-delta",
      "tool-input-delta",
      "tool-input-available",
      "tool-output-available",
      "finish-step",
      "finish"
    ])
    const { errors, message } = await readUi(frames)
    expect(errors).toStrictEqual([])
    expect(partsOf(message, "tool-work")).toMatchObject([
      { toolCallId: "c1", state: "output-available", input: { n: 1 }, output: { found: 3 } }
    ])
  })

  it("of a tool that nobody declared are dynamic parts, one each", async () => {
    const dynamic = chunk("tool-call-input-streaming-start", {
      toolCallId: "c1",
      toolName: "work",
      dynamic: true
    })
    const frames = ui(oneStep(dynamic, ...streamed("c1").slice(1), result("c1", 1)))
    const { message } = await readUi(frames)
    expect(partsOf(message, "dynamic-tool")).toMatchObject([{ toolName: "work", output: 1 }])
    expect(partsOf(message, "tool-work")).toStrictEqual([])
  })

  it("that fail, that say so themselves and that are refused", async () => {
    const frames = ui(
      oneStep(
        ...["c1", "c2", "c3"].map(id => call(id)),
        chunk("tool-error", { toolCallId: "c1", toolName: "work", error: new Error("secret") }),
        chunk("tool-result", { toolCallId: "c2", toolName: "work", result: "secret", isError: true }),
        chunk("tool-output-denied", { toolCallId: "c3", toolName: "work", approval: { approved: false } })
      )
    )
    const { errors, message } = await readUi(frames)
    expect(errors).toStrictEqual([])
    expect(partsOf(message, "tool-work").map(({ state }) => state)).toStrictEqual([
      "output-error",
      "output-error",
      "output-denied"
    ])
    expect(JSON.stringify(frames)).not.toContain("secret")
  })

  it("that a provider executes", async () => {
    const executed = { toolCallId: "c1", toolName: "search", providerExecuted: true }
    const frames = ui(
      oneStep(
        chunk("tool-call", { ...executed, args: { q: 1 } }),
        chunk("tool-result", { ...executed, result: [1] }),
        chunk("tool-call", { ...executed, toolCallId: "c2", args: {}, output: [2] })
      )
    )
    const { message } = await readUi(frames)
    expect(partsOf(message, "tool-search")).toMatchObject([
      { providerExecuted: true, output: [1] },
      { providerExecuted: true, output: [2] }
    ])
  })

  it("show what they write as preliminary outputs, and what they write for the client as it is", async () => {
    const frames = ui(
      oneStep(
        call("c1"),
        written("c1", { percent: 50 }),
        data("data-chart", { points: 1 }, { id: "k" }),
        data("data-chart", { points: 2 }, { id: "k" }),
        data("data-toast", "saved", { transient: true }),
        result("c1", "done")
      )
    )
    expect(frames).toContainEqual({
      type: "tool-output-available",
      toolCallId: "c1",
      output: { percent: 50 },
      preliminary: true
    })
    const { message } = await readUi(frames)
    expect(partsOf(message, "data-chart")).toMatchObject([{ id: "k", data: { points: 2 } }])
    expect(partsOf(message, "data-toast")).toStrictEqual([])
    expect(partsOf(message, "tool-work")).toMatchObject([{ output: "done", state: "output-available" }])
  })

  it("show how far an agent has come that they have called, and nothing that it was told", async () => {
    const inner = [
      start("r2"),
      stepStart("r2"),
      ...text("Digging deep.", "0", "r2"),
      call("c9", "dig", "r2"),
      written("c9", start("r3"), "r2"),
      data("data-note", 1, {}, "r2"),
      result("c9", "secret", "r2", "dig"),
      stepFinish("r2"),
      finish("stop", "r2")
    ]
    const frames = ui(oneStep(call("c1"), ...inner.map(chunk => written("c1", chunk)), result("c1", "found")))
    const preliminary = frames.filter(frame => "preliminary" in frame)
    expect(preliminary.at(-1)).toMatchObject({
      output: {
        status: "completed",
        text: "Digging deep.",
        toolCalls: [{ toolCallId: "c9", toolName: "dig", status: "completed" }]
      }
    })
    expect(JSON.stringify(frames)).not.toContain("secret")
    const { errors, message } = await readUi(frames)
    expect(errors).toStrictEqual([])
    expect(partsOf(message, "data-note")).toHaveLength(1)
    expect(partsOf(message, "tool-work")).toMatchObject([{ output: "found" }])
  })
})

describe("endings", () => {
  const cut = [
    start(),
    stepStart(),
    chunk("text-start", { id: "1" }),
    chunk("text-delta", { id: "1", text: "Hel" })
  ]

  it("an error in the middle of a text closes what is open and says nothing of its cause", async () => {
    const frames = ui([...cut, chunk("error", { error: new Error("secret") }), finish("error")])
    expect(typesOf(frames).slice(-5)).toStrictEqual([
      "text-delta",
      "text-end",
      "finish-step",
      "error",
      "finish"
    ])
    expect(finishReason(frames)).toBe("error")
    const { errors, message } = await readUi(frames)
    expect(errors).toStrictEqual(["An error occurred."])
    expect(uiText(message)).toBe("Hel")
    expect(JSON.stringify(frames)).not.toContain("secret")
  })

  it("an error in the words of the host, once, also when the chunks fail with it", () => {
    const error = new Error("known")
    const errorText = (given: unknown) => (given === error ? "Try again." : "?")
    const frames = ui([...cut, chunk("error", { error }), finish("error")], { errorText }, error)
    expect(frames.filter(({ type }) => type === "error")).toStrictEqual([
      { type: "error", errorText: "Try again." }
    ])
  })

  it("chunks that break off are an error, with or without a reason", async () => {
    for (const failure of [undefined, new Error("secret")]) {
      const frames = ui(cut, {}, failure)
      expect(typesOf(frames).slice(-2)).toStrictEqual(["error", "finish"])
      expect(finishReason(frames)).toBe("error")
      expect((await readUi(frames)).errors).toStrictEqual(["An error occurred."])
    }
  })

  it("no chunks at all are an error too", async () => {
    expect((await readUi(ui([]))).errors).toStrictEqual(["An error occurred."])
  })

  it("an abort", async () => {
    const frames = ui([...cut, chunk("abort", { reason: "stopped" }), finish("aborted")])
    expect(frames).toContainEqual({ type: "abort", reason: "stopped" })
    expect(finishReason(frames)).toBe("other")
    expect((await readUi(frames)).errors).toStrictEqual([])
  })

  it("an abort whose reason is no text", () => {
    const frames = ui([...cut, chunk("abort", { reason: new Error("secret") }), finish("aborted")])
    expect(frames).toContainEqual({ type: "abort" })
  })

  it("a tripwire", async () => {
    const blocked = { reason: "Not here.", retry: false, processorId: "guard", metadata: { secret: 1 } }
    const frames = ui([...cut, chunk("tripwire", blocked), finish("tripwire")])
    expect(finishReason(frames)).toBe("other")
    expect(JSON.stringify(frames)).not.toContain("secret")
    const { message } = await readUi(frames)
    expect(partsOf(message, "data-tripwire")).toMatchObject([
      { data: { reason: "Not here.", retry: false, processorId: "guard" } }
    ])
  })

  it("a judgement about the goal", async () => {
    const goal = chunk("goal", {
      objective: "secret",
      iteration: 1,
      maxRuns: 3,
      passed: false,
      status: "active",
      results: ["secret"],
      reason: "Not yet.",
      duration: 1,
      timedOut: false,
      maxRunsReached: false,
      suppressFeedback: false
    })
    const { message } = await readUi(ui(oneStep(...text("Hi."), goal)))
    expect(partsOf(message, "data-goal")).toMatchObject([{ data: { passed: false, reason: "Not yet." } }])
    expect(JSON.stringify(message)).not.toContain("secret")
  })

  it("reasons of the provider's are kept", () => {
    for (const reason of ["length", "content-filter", "tool-calls", "other"] as const) {
      expect(finishReason(ui([...says("Hi.").slice(0, -1), finish(reason)]))).toBe(reason)
    }
  })

  it("have no frames behind them", () => {
    const mapper = UiMessageStream.make()
    mapped(mapper, says("Hi."))
    expect([...mapper.push(start("r2")), ...mapper.end()]).toStrictEqual([])
  })
})

describe("until idle", () => {
  const task = tasks("t1", "c1")
  const response = [
    start(),
    stepStart(),
    call("c1"),
    task.started,
    task.running,
    result("c1", "acknowledged"),
    stepFinish("r1", { calls: ["c1"], isContinued: true }),
    stepStart(),
    chunk("text-start", { id: "0" }),
    task.output("50 %"),
    chunk("text-delta", { id: "0", text: "On it. " }),
    chunk("text-end", { id: "0" }),
    stepFinish(),
    finish(),
    chunk("background-task-progress", { taskIds: ["t1"], runningCount: 1, elapsedMs: 5 }),
    task.completed({ found: 3 }),
    ...says("Found three.", "r2")
  ]

  it("is one message, with all texts and steps", async () => {
    const frames = ui(response)
    const { errors, message } = await readUi(frames)
    expect(errors).toStrictEqual([])
    expect(uiText(message)).toBe("On it. Found three.")
    expect(message?.id).toBe("message-r1")
    expect(partsOf(message, "step-start")).toHaveLength(3)
    // Both runs call their block "0".
    const ids = frames.flatMap(frame => (frame.type === "text-start" ? [frame.id] : []))
    expect(new Set(ids).size).toBe(2)
  })

  it("shows a task as one part that is replaced, and gives its call the outcome", async () => {
    const frames = ui(response)
    const states = frames.flatMap(frame =>
      frame.type === "data-background-task" && "data" in frame ? [frame] : []
    )
    expect(states.map(({ id }) => id)).toStrictEqual(["t1", "t1", "t1", "t1"])
    const { message } = await readUi(frames)
    expect(partsOf(message, "data-background-task")).toStrictEqual([
      {
        type: "data-background-task",
        id: "t1",
        data: {
          taskId: "t1",
          toolName: "work",
          toolCallId: "c1",
          runId: "r1",
          agentId: "a",
          status: "completed",
          args: { n: 1 },
          output: "50 %",
          startedAt: "2026-01-01T00:00:00.000Z",
          completedAt: "2026-01-01T00:00:00.000Z",
          result: { found: 3 }
        }
      }
    ])
    expect(partsOf(message, "tool-work")).toMatchObject([{ output: { found: 3 } }])
    expect(partsOf(message, "data-background-task-progress")).toStrictEqual([])
  })

  it("shows each way in which a task ends", async () => {
    const head = response.slice(0, 7)
    const rest = [stepStart(), ...text("Hm."), stepFinish(), finish()]
    const ways = [
      { events: [task.failed("secret")], status: "failed", state: "output-error" },
      { events: [task.cancelled], status: "cancelled", state: "output-error" },
      { events: [task.suspended], status: "suspended", state: "output-available" },
      { events: [task.suspended, task.resumed], status: "running", state: "output-available" }
    ]
    for (const { events, state, status } of ways) {
      const frames = ui([...head, ...rest, ...events])
      const { errors, message } = await readUi(frames)
      expect(errors).toStrictEqual([])
      expect(partsOf(message, "data-background-task")).toMatchObject([{ data: { status } }])
      expect(partsOf(message, "tool-work")).toMatchObject([{ state }])
      expect(JSON.stringify(frames)).not.toContain("secret")
    }
  })

  it("leaves a call alone that another message has made", async () => {
    const frames = ui([task.completed(1), ...says("Your task is done.", "r2")])
    const { errors, message } = await readUi(frames)
    expect(errors).toStrictEqual([])
    expect(partsOf(message, "data-background-task")).toHaveLength(1)
    expect(partsOf(message, "tool-work")).toStrictEqual([])
  })

  it("does not take a task that runs already for one that waits", async () => {
    const frames = ui([...oneStep(call("c1"), task.running, task.started, result("c1", "acknowledged"))])
    const { message } = await readUi(frames)
    expect(partsOf(message, "data-background-task")).toMatchObject([{ data: { status: "running" } }])
  })

  it("shows how far an agent has come in the background", async () => {
    const inner = [start("r9"), stepStart("r9"), ...text("Digging.", "0", "r9"), finish("stop", "r9")]
    const frames = ui([...response.slice(0, -6), ...inner.map(chunk => task.output(chunk)), task.cancelled])
    const { message } = await readUi(frames)
    expect(partsOf(message, "data-background-task")).toMatchObject([
      { data: { progress: { text: "Digging.", status: "completed" } } }
    ])
    expect(frames).toContainEqual({
      type: "data-background-task-output",
      data: { taskId: "t1", textDelta: "Digging." },
      transient: true
    })
  })

  it("gives the same frames for the same chunks", () => {
    expect(JSON.stringify(ui(response))).toBe(JSON.stringify(ui(response)))
  })
})

/** Chunks as events of AG-UI, read by its own `HttpAgent`, which checks their order. */
import { type AgentSubscriber, HttpAgent, type Message } from "@ag-ui/client"
import type { RunAgentInput } from "@ag-ui/core"
import { type Chunk, Conversation } from "eddy"
import { Effect, Either, FastCheck as fc } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import * as AgUi from "../../../src/http/mapping/AgUi.js"
import * as AgUiRequest from "../../../src/http/mapping/AgUiRequest.js"
import {
  call,
  chunk,
  data,
  dataLine,
  finish,
  mapped,
  reasoning,
  result,
  says,
  sseResponse,
  start,
  stepFinish,
  stepStart,
  streamed,
  tasks,
  text,
  written
} from "./kit.js"
import { brokenResponse, textByBlock, untilIdleResponse } from "./randomRuns.js"

type Chunks = ReadonlyArray<Chunk.Chunk>
type Events = ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>

const events = (chunks: Chunks, options: Partial<AgUi.Options> = {}, failure?: unknown) =>
  mapped(AgUi.make({ threadId: "th", runId: "ru", ...options }), chunks, failure)

const requestOf = (body: unknown) => Either.getOrThrow(AgUiRequest.read(body))

/** A client over a server of one function, and what was posted to it. */
const clientOf = (answer: (request: AgUiRequest.AgUiRequest, count: number) => Events) => {
  const posted: Array<RunAgentInput> = []
  const agent = new HttpAgent({
    url: "http://kit.test/agui",
    threadId: "th",
    fetch: (_, init) => {
      const body: RunAgentInput = JSON.parse(String(init?.body))
      posted.push(body)
      return Promise.resolve(sseResponse([": open", ...answer(requestOf(body), posted.length).map(dataLine)]))
    }
  })
  return { agent, posted }
}

const mappedFor = (chunks: Chunks, { openToolCallIds, runId, threadId }: AgUiRequest.AgUiRequest): Events =>
  events(chunks, { runId, threadId, openToolCallIds }).map(event => ({ ...event }))

/** What the real client makes of events: its messages, and the error that it ends with. */
const readAgUi = async (given: Events | ((request: AgUiRequest.AgUiRequest) => Events)) => {
  const { agent } = clientOf(request => (typeof given === "function" ? given(request) : given))
  const outcomes: Array<unknown> = []
  const custom: Array<string> = []
  const subscriber: AgentSubscriber = {
    onRunFinishedEvent: ({ event }) => void outcomes.push(event.outcome),
    onRunErrorEvent: ({ event }) => void outcomes.push(event.message),
    onCustomEvent: ({ event }) => void custom.push(event.name)
  }
  let error: unknown
  try {
    await agent.runAgent({}, subscriber)
  } catch (thrown) {
    error = thrown
  }
  return { agent, messages: agent.messages, outcomes, custom, error }
}

const readChunks = (chunks: Chunks) => readAgUi(request => mappedFor(chunks, request))

const agUiText = (messages: ReadonlyArray<Message>): string =>
  messages.map(message => (message.role === "assistant" ? (message.content ?? "") : "")).join("")

const ofRole = (messages: ReadonlyArray<Message>, role: string) => messages.filter(one => one.role === role)

const oneStep = (...content: Chunks): Chunks => [start(), stepStart(), ...content, stepFinish(), finish()]

/** Everything that its client warns of is a fault of ours; what it fails with it also logs. */
const warnings: Array<string> = []
beforeEach(() => {
  warnings.length = 0
  vi.spyOn(console, "warn").mockImplementation((...said) => void warnings.push(said.join(" ")))
  vi.spyOn(console, "error").mockImplementation(() => undefined)
})
afterEach(() => {
  vi.restoreAllMocks()
  expect(warnings).toStrictEqual([])
})

describe("a run", () => {
  it("says, thinks, calls and ends", async () => {
    const chunks = [
      start(),
      stepStart(),
      ...reasoning("Let me think."),
      ...text("Looking. "),
      ...streamed("c1"),
      call("c2"),
      result("c1", { found: 3 }),
      result("c2", "plain"),
      stepFinish("r1", { calls: ["c1", "c2"], isContinued: true }),
      ...says("Three.").slice(1)
    ]
    const { error, messages, outcomes } = await readChunks(chunks)
    expect(error).toBeUndefined()
    expect(outcomes).toStrictEqual([{ type: "success" }])
    expect(messages.map(({ role }) => role)).toStrictEqual([
      "reasoning",
      "assistant",
      "tool",
      "tool",
      "assistant"
    ])
    expect(messages[1]).toMatchObject({
      content: "Looking. ",
      toolCalls: [
        { id: "c1", function: { name: "work", arguments: '{"n":1}' } },
        { id: "c2", function: { name: "work", arguments: '{"n":1}' } }
      ]
    })
    expect(ofRole(messages, "tool")).toMatchObject([{ content: '{"found":3}' }, { content: "plain" }])
    const finished = events(chunks).at(-1)
    expect(finished).toMatchObject({ usage: [{ inputTokens: 3, outputTokens: 2, totalTokens: 5 }] })
    expect(JSON.stringify(events(chunks))).not.toContain("secret")
  })

  it("shows what has no event of its own as custom ones", async () => {
    const chunks = oneStep(
      call("c1"),
      written("c1", "50 %"),
      data("data-chart", { n: 1 }),
      chunk("file", { data: "AQI=", mimeType: "image/png" }),
      chunk("source", { id: "s", sourceType: "url", title: "Kit", url: "https://kit.test" }),
      result("c1", 1)
    )
    const { custom, error } = await readChunks(chunks)
    expect(error).toBeUndefined()
    expect(custom).toStrictEqual(["tool-output", "data-chart", "file", "source"])
  })

  it("shows an agent that was called as an activity", async () => {
    const inner = [start("r2"), ...text("Digging.", "0", "r2"), finish("stop", "r2")]
    const { messages } = await readChunks(
      oneStep(call("c1"), ...inner.map(one => written("c1", one)), result("c1", "found"))
    )
    expect(ofRole(messages, "activity")).toMatchObject([
      { activityType: "sub-agent", content: { toolCallId: "c1", text: "Digging.", status: "completed" } }
    ])
  })

  it("shows a task as one activity that is patched", async () => {
    const task = tasks("t1", "c1")
    const { messages } = await readChunks([
      ...oneStep(call("c1"), task.started, result("c1", "acknowledged"), ...text("On it. ")),
      task.running,
      task.output("50 %"),
      task.output(start("r9")),
      ...text("Digging.", "0", "r9").map(one => task.output(one)),
      task.suspended,
      task.resumed,
      task.completed({ found: 3 }),
      ...says("Three.", "r2")
    ])
    expect(agUiText(messages)).toBe("On it. Three.")
    expect(ofRole(messages, "activity")).toMatchObject([
      {
        id: "t1",
        activityType: "background-task",
        content: {
          status: "completed",
          toolCallId: "c1",
          outputs: ["50 %"],
          progress: { text: "Digging." },
          suspendData: { ask: "which?" },
          result: { found: 3 }
        }
      }
    ])
  })

  it("ends in every other way that there is", async () => {
    const begun = [
      start(),
      stepStart(),
      chunk("text-start", { id: "1" }),
      chunk("text-delta", { id: "1", text: "Hel" })
    ]
    const failed = await readChunks([
      ...begun,
      chunk("error", { error: new Error("secret") }),
      finish("error")
    ])
    expect(failed.outcomes).toStrictEqual(["An error occurred."])
    expect(agUiText(failed.messages)).toBe("Hel")
    const broken = await readChunks(begun)
    expect(broken.outcomes).toStrictEqual(["An error occurred."])
    const aborted = await readChunks([...begun, chunk("abort", {}), finish("aborted")])
    expect(aborted.outcomes).toStrictEqual([{ type: "cancelled" }])
    const blocked = await readChunks([...begun, chunk("tripwire", { reason: "No." }), finish("tripwire")])
    expect(blocked).toMatchObject({ custom: ["tripwire"], outcomes: [{ type: "cancelled" }] })
    expect((await readChunks([])).outcomes).toStrictEqual(["An error occurred."])
  })

  it("leaves calls to the client", async () => {
    const { agent, posted } = clientOf((request, count) =>
      mappedFor(
        count === 1
          ? [
              start(),
              stepStart(),
              ...streamed("c1", "locate"),
              stepFinish("r1", { calls: ["c1"], isClients: true }),
              finish("tool-calls", "r1", { stoppedBy: "client-tool" })
            ]
          : says("Bern.", "r2"),
        request
      )
    )
    const pending: Array<unknown> = []
    const tools = [{ name: "locate", description: "Where am I?", parameters: { type: "object" } }]
    await agent.runAgent({ tools }, { onRunFinishedEvent: ({ event }) => void pending.push(event.outcome) })
    expect(pending).toStrictEqual([{ type: "success", pendingToolCallIds: ["c1"] }])
    agent.addMessage({ id: "m1", role: "tool", toolCallId: "c1", content: "Bern" })
    await agent.runAgent({ tools })
    const request = requestOf(posted[1])
    expect(request.tools).toStrictEqual([
      { name: "locate", description: "Where am I?", inputSchema: { type: "object" } }
    ])
    expect(request.newMessages).toMatchObject([{ role: "tool" }])
    const prompt = await Effect.runPromise(Conversation.fromInput(request.messages))
    expect(prompt).toMatchObject([
      { role: "assistant", content: [{ toolCallId: "c1", input: { n: 1 } }] },
      { role: "tool", content: [{ toolName: "locate", output: { value: "Bern" } }] }
    ])
    expect(agUiText(agent.messages)).toBe("Bern.")
  })
})

describe("an interrupt", () => {
  it("of an approval and of a suspension goes to the client and back", async () => {
    const asks = { toolCallId: "c2", toolName: "ask", args: {}, suspendData: { ask: "Which?" } }
    const { agent, posted } = clientOf((request, count) =>
      mappedFor(
        count === 1
          ? [
              start(),
              stepStart(),
              call("c1"),
              call("c2", "ask"),
              chunk("tool-call-approval", { toolCallId: "c1", toolName: "work", args: {} }),
              chunk("tool-call-suspended", asks),
              finish("suspended")
            ]
          : [
              start(),
              stepStart(),
              call("c1"),
              call("c2", "ask"),
              result("c1", 1),
              result("c2", "blue", "r1", "ask"),
              stepFinish("r1", { calls: ["c1", "c2"], isContinued: true }),
              ...says("Done.").slice(1)
            ],
        request
      )
    )
    await agent.runAgent()
    expect(agent.pendingInterrupts).toMatchObject([
      { id: "r1::c1", reason: "tool_approval", toolCallId: "c1", responseSchema: { required: ["approved"] } },
      {
        id: "r1::c2",
        reason: "tool_suspension",
        toolCallId: "c2",
        metadata: { suspendData: { ask: "Which?" } }
      }
    ])
    await agent.runAgent({
      resume: [
        { interruptId: "r1::c1", status: "resolved", payload: { approved: true, reason: "Fine." } },
        { interruptId: "r1::c2", status: "resolved", payload: "blue" }
      ]
    })
    expect(agent.pendingInterrupts).toStrictEqual([])
    const { answers, openToolCallIds } = requestOf(posted[1])
    expect(openToolCallIds).toStrictEqual(["c1", "c2"])
    expect(answers).toStrictEqual([
      {
        runId: "r1",
        toolCallId: "c1",
        approved: true,
        reason: "Fine.",
        data: { approved: true, reason: "Fine." }
      },
      { runId: "r1", toolCallId: "c2", approved: undefined, reason: undefined, data: "blue" }
    ])
    // The run tells of its calls again: the client has them once, with their arguments once.
    const [first] = ofRole(agent.messages, "assistant")
    expect(first).toMatchObject({
      toolCalls: [{ function: { arguments: '{"n":1}' } }, { function: { arguments: '{"n":1}' } }]
    })
    expect(agUiText(agent.messages)).toBe("Done.")
  })

  it("that is cancelled is declined, and one that is none is refused", () => {
    const body = { threadId: "th", runId: "ru", messages: [] }
    const cancelled = { interruptId: "r1::c1", status: "cancelled" }
    expect(requestOf({ ...body, resume: [cancelled] }).answers).toMatchObject([
      { approved: false, data: { approved: false } }
    ])
    expect(AgUiRequest.read({ ...body, resume: [{ interruptId: "x", status: "resolved" }] })).toMatchObject({
      _tag: "Left",
      left: { field: "resume[0].interruptId" }
    })
  })
})

describe("a request", () => {
  it("is read into messages that an agent takes", async () => {
    const request = requestOf({
      threadId: "th",
      runId: "ru",
      messages: [
        { id: "1", role: "system", content: "Obey." },
        {
          id: "2",
          role: "user",
          content: [
            { type: "text", text: "Look." },
            { type: "image", source: { type: "data", value: "AQI=", mimeType: "image/png" } }
          ]
        },
        { id: "3", role: "reasoning", content: "hm" },
        { id: "4", role: "activity", activityType: "x", content: {} },
        { id: "5", role: "assistant", subagentRunId: "s", content: "below" },
        { id: "6", role: "assistant", content: "Seen." },
        { id: "7", role: "user", content: "And?" }
      ],
      context: [{ description: "Page", value: "Home" }]
    })
    expect(request).toMatchObject({
      instructions: ["Obey."],
      context: [{ description: "Page", value: "Home" }]
    })
    expect(request.newMessages).toStrictEqual([{ role: "user", content: "And?", id: "7" }])
    const prompt = await Effect.runPromise(Conversation.fromInput(request.messages))
    expect(prompt).toMatchObject([
      { role: "user", content: [{ text: "Look." }, { type: "file", mediaType: "image/png" }] },
      { role: "assistant", content: [{ text: "Seen." }] },
      { role: "user", content: [{ text: "And?" }] }
    ])
  })

  it("that is none is refused with its place", () => {
    expect(AgUiRequest.read({})).toMatchObject({ _tag: "Left", left: { _tag: "InvalidRequest" } })
    expect(AgUiRequest.read({ threadId: "th", runId: "ru", messages: [{ role: "god" }] })).toMatchObject({
      _tag: "Left",
      left: { field: "messages[0].role" }
    })
  })
})

describe("random responses", () => {
  it("are read by the client, with all of their text and no secret", async () => {
    await fc.assert(
      fc.asyncProperty(untilIdleResponse, async ({ chunks, way }) => {
        const told = events(chunks)
        const { error, messages, outcomes } = await readChunks(chunks)
        const isFailure = way === "error" || way === "mid-text"
        expect(outcomes).toHaveLength(1)
        expect(isFailure ? outcomes : error).toStrictEqual(isFailure ? ["An error occurred."] : undefined)
        expect(agUiText(messages)).toBe(textByBlock(chunks))
        expect(JSON.stringify(told)).not.toContain("secret")
        expect(events(chunks)).toStrictEqual(told)
      }),
      { numRuns: 40 }
    )
  })

  it("are read when they are broken, too", async () => {
    await fc.assert(
      fc.asyncProperty(brokenResponse, async chunks => {
        const { outcomes } = await readChunks(chunks)
        expect(outcomes).toHaveLength(1)
      }),
      { numRuns: 60 }
    )
  })
})

describe("the checks notice", () => {
  const chunks = [
    start(),
    stepStart(),
    ...reasoning("hm"),
    ...text("Hello."),
    ...streamed("c1"),
    result("c1", 1),
    stepFinish("r1", { calls: ["c1"] }),
    finish()
  ]
  const without = (type: string) => (told: Events) => told.filter(one => one.type !== type)
  const mutations: Readonly<Record<string, (told: Events) => Events>> = {
    "the start is missing": without("RUN_STARTED"),
    "the finish is missing": without("RUN_FINISHED"),
    "a text is not opened": without("TEXT_MESSAGE_START"),
    "a text is not closed": without("TEXT_MESSAGE_END"),
    "reasoning is not closed": without("REASONING_END"),
    "a call is not opened": without("TOOL_CALL_START"),
    "a call is not closed": without("TOOL_CALL_END"),
    "a step is not closed": without("STEP_FINISHED"),
    "an event has another name": told =>
      told.map(one => (one.type === "TEXT_MESSAGE_CONTENT" ? { ...one, type: "TEXT_MESSAGE_DELTA" } : one)),
    "a field is null": told =>
      told.map(one => (one.type === "RUN_FINISHED" ? { ...one, outcome: null } : one)),
    "there are two starts": told => [...told.slice(0, 1), ...told],
    "there is more behind the finish": told => [...told, { type: "CUSTOM", name: "x", value: 1 }]
  }

  const faults = async (change: (told: Events) => Events): Promise<ReadonlyArray<unknown>> => {
    const { error, messages, outcomes } = await readAgUi(request => change(mappedFor(chunks, request)))
    const noticed = warnings.splice(0)
    return [
      ...(error === undefined ? [] : [error]),
      ...noticed,
      ...(outcomes.length === 1 && outcomes[0] !== null ? [] : ["no outcome"]),
      ...(agUiText(messages) === "Hello." ? [] : ["text"])
    ]
  }

  it("nothing, when nothing is wrong", async () => {
    expect(await faults(told => told)).toStrictEqual([])
  })

  for (const [name, mutate] of Object.entries(mutations)) {
    it(`that ${name}`, async () => {
      expect(await faults(mutate)).not.toStrictEqual([])
    })
  }
})

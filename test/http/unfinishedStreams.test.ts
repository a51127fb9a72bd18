/** Streams that end before the work that they are about: in no protocol do they look like those that end after it. */
import { createTool } from "eddy/promise"
import { Cause, Exit, FiberId } from "effect"
import { describe, expect, it } from "vitest"
import { RunProgress } from "../../src/http/runProgress.js"
import { agentWith, calling, framesOf, post, readerOf, readUntil, saying, served } from "./kit.js"

/** A tool in the background that never ends. */
const wait = createTool({
  id: "wait",
  description: "Takes its time.",
  background: { enabled: true },
  execute: () => new Promise(() => undefined)
})

const serving = () =>
  served(
    {
      helper: agentWith([calling("wait"), saying("It is on its way.")], {
        tools: { wait },
        defaultOptions: { untilIdle: true }
      })
    },
    { onDisconnect: "continue" },
    { backgroundTasks: { enabled: true, shutdown: { graceMs: 1 } } }
  )

const user = { id: "u1", role: "user", parts: [{ type: "text", text: "Hello" }] }

/** What a protocol posts, and what its last frames must be. */
const protocols: ReadonlyArray<
  readonly [name: string, path: string, body: object, ends: ReadonlyArray<RegExp>]
> = [
  ["chunks", "/agents/helper/stream-until-idle", { messages: "Hello" }, [/"type":"error".*WHY/, /\[DONE\]/]],
  [
    "chunks of an agent that does so by default",
    "/agents/helper/stream",
    { messages: "Hello" },
    [/"type":"error".*WHY/, /\[DONE\]/]
  ],
  [
    "the AI SDK",
    "/agents/helper/chat",
    { id: "chat-1", messages: [user], trigger: "submit-message" },
    [/"type":"error","errorText":"WHY/, /"type":"finish","finishReason":"error"/, /\[DONE\]/]
  ],
  [
    "AG-UI",
    "/agents/helper/ag-ui",
    {
      threadId: "t1",
      runId: "r1",
      state: {},
      tools: [],
      context: [],
      forwardedProps: {},
      messages: [{ id: "u1", role: "user", content: "Hello" }]
    },
    [/"type":"RUN_ERROR".*WHY/]
  ],
  [
    "OpenAI's chat completions",
    "/v1/chat/completions",
    { model: "helper", stream: true, messages: [{ role: "user", content: "Hello" }] },
    [/"error":\{"message":"[^"]*WHY/, /\[DONE\]/]
  ],
  [
    "OpenAI's responses",
    "/v1/responses",
    { model: "helper", stream: true, input: "Hello", store: false },
    [/response\.failed[\s\S]*WHY/]
  ]
]

/** Starts a run whose turn is over, and whose task is not. */
const between = async (path: string, body: object) => {
  const server = await serving()
  const response = await post(`${server.api}${path}`, body)
  expect(response.status).toBe(200)
  const runId = response.headers.get("x-run-id") ?? ""
  const log = readerOf(await fetch(`${server.api}/runs/${runId}/events`))
  expect(await readUntil(log, text => text.includes('"type":"finish"'))).toContain('"type":"finish"')
  const events = async (): Promise<string> => readUntil(log, () => false)
  return { ...server, response, runId, events }
}

const expectEnds = (text: string, ends: ReadonlyArray<RegExp>, why: string) => {
  const last = framesOf(text).slice(-ends.length)
  expect(last).toHaveLength(ends.length)
  for (const [place, end] of ends.entries()) {
    expect(last[place]).toMatch(new RegExp(end.source.replace("WHY", why)))
  }
}

describe("a stream between two turns, whose task is not done", () => {
  it.each([...protocols])(
    "ends with an error when the server closes, for %s",
    async (_, path, body, ends) => {
      const { events, response, serving: server } = await between(path, body)
      const [text] = await Promise.all([response.text(), server.close()])
      expectEnds(text, ends, "The server is shutting down")
      expectEnds(await events(), [/"type":"error".*WHY/], "The server is shutting down")
    }
  )

  it.each([...protocols])(
    "ends with an error when the run is stopped, for %s",
    async (_, path, body, ends) => {
      const { api, response, runId } = await between(path, body)
      const stopped = await post(`${api}/runs/${runId}/stop`, {})
      expect(await stopped.json()).toEqual({ stopped: true })
      expectEnds(await response.text(), ends, "It was stopped")
    }
  )
})

it("the stream of tasks ends with an error when the server closes", async () => {
  const { api, serving: server } = await serving()
  const response = await fetch(`${api}/background-tasks/stream`)
  const [text] = await Promise.all([response.text(), server.close()])
  expectEnds(text, [/"type":"error".*WHY/], "The server is shutting down")
})

describe("the end of a stream", () => {
  const start = { type: "start", runId: "r", from: "AGENT", payload: {} } as const
  const finish = (reason: "stop" | "aborted" | "error") =>
    ({
      type: "finish",
      runId: "r",
      from: "AGENT",
      payload: {
        stepResult: { reason, isContinued: false },
        output: { usage: {}, text: "" },
        metadata: {},
        messages: { all: [], user: [], nonUser: [] },
        response: { messages: [], uiMessages: [] }
      }
    }) as const
  const failed = Exit.die(new Error("secret"))
  const told = { _tag: "Told" }
  type Step = (progress: RunProgress) => void
  const seen =
    (...chunks: ReadonlyArray<Parameters<RunProgress["see"]>[0]>): Step =>
    progress => {
      progress.took()
      for (const chunk of chunks) progress.see(chunk)
    }
  const waits: Step = progress => progress.waits()
  const stopped: Step = progress => progress.stopped("stopped")

  it.each<readonly [string, ReadonlyArray<Step>, Exit.Exit<unknown, unknown>, object]>([
    ["after its only turn", [seen(start, finish("stop")), waits], Exit.void, told],
    [
      "stopped when all has come, and waits for a reader",
      [seen(start, finish("stop")), stopped, waits],
      Exit.void,
      told
    ],
    [
      "stopped within a turn, which says so",
      [seen(start), waits, stopped, seen(finish("aborted")), waits],
      Exit.void,
      told
    ],
    ["stopped twice", [seen(start), stopped, seen(finish("aborted")), waits, stopped], Exit.void, told],
    [
      "stopped between two turns",
      [seen(start, finish("stop")), waits, stopped],
      Exit.void,
      { message: "stopped" }
    ],
    ["stopped before any turn", [stopped], Exit.void, { message: "stopped" }],
    [
      "in the middle of a turn",
      [seen(start), waits],
      Exit.void,
      { message: "The run ended before it had finished." }
    ],
    ["of a failure that was sent", [seen(start, finish("error")), waits], failed, told],
    ["of a failure between two turns", [seen(start, finish("stop")), waits], failed, { _tag: "Broken" }],
    ["of a failure in a turn", [seen(start, finish("error"), start), waits], failed, { _tag: "Broken" }],
    [
      "interrupted",
      [seen(start), waits],
      Exit.failCause(Cause.interrupt(FiberId.none)),
      { message: "closing" }
    ]
  ])("%s", (_, steps, exit, expected) => {
    const progress = new RunProgress()
    for (const step of steps) step(progress)
    const end = progress.endOf(exit, "closing")
    expect(end).toMatchObject(expected)
    expect(JSON.stringify(end)).not.toContain("secret")
  })
})

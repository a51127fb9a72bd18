/** What the tests of mappings share: chunks by hand, and the bytes that a server makes of frames. */
import { type Chunk, Json } from "eddy"
import type { Mapper } from "../../../src/http/mapping/Mapper.js"

type Literal = Exclude<Chunk.ChunkType, "object" | `data-${string}`>

/** A chunk of one type. */
export const chunk = <Type extends Literal>(
  type: Type,
  payload: Chunk.PayloadOf<Type>,
  runId = "r1"
): Chunk.Chunk => ({ type, runId, from: "AGENT", payload }) as unknown as Chunk.Chunk

/** A chunk that a tool has written for the client. */
export const data = (
  type: `data-${string}`,
  value: unknown,
  more: { readonly id?: string; readonly transient?: boolean } = {},
  runId = "r1"
): Chunk.Chunk => ({ type, runId, from: "USER", data: value, ...more })

export const start = (runId = "r1", messageId = `message-${runId}`): Chunk.Chunk =>
  chunk("start", { agentId: "a", messageId }, runId)

export const stepStart = (runId = "r1"): Chunk.Chunk => chunk("step-start", { request: {} }, runId)

export const stepFinish = (
  runId = "r1",
  {
    calls = [],
    isContinued = false,
    isClients = false
  }: {
    readonly calls?: ReadonlyArray<string>
    readonly isContinued?: boolean
    readonly isClients?: boolean
  } = {}
): Chunk.Chunk =>
  chunk(
    "step-finish",
    {
      stepResult: {
        reason: calls.length > 0 ? "tool-calls" : "stop",
        isContinued,
        ...(isClients ? { stoppedBy: "client-tool" as const } : {})
      },
      output: {
        text: "",
        toolCalls: calls.map(toolCallId => ({ toolCallId, toolName: "work" })),
        usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
      },
      metadata: {}
    },
    runId
  )

export const finish = (
  reason: Chunk.PayloadOf<"finish">["stepResult"]["reason"] = "stop",
  runId = "r1",
  more: { readonly stoppedBy?: "client-tool" | "max-steps" } = {}
): Chunk.Chunk =>
  chunk(
    "finish",
    {
      stepResult: { reason, isContinued: false, ...more },
      output: { text: "", usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 } },
      metadata: { provider: "secret-provider", modelId: "secret-model" },
      messages: { all: [], user: [], nonUser: [] },
      response: { headers: { "set-cookie": "secret-cookie" }, messages: [], uiMessages: [] }
    },
    runId
  )

export const text = (said: string, id = "t1", runId = "r1"): ReadonlyArray<Chunk.Chunk> => [
  chunk("text-start", { id }, runId),
  ...said.split(/(?<= )/).map(word => chunk("text-delta", { id, text: word }, runId)),
  chunk("text-end", { id }, runId)
]

export const reasoning = (said: string, id = "th1", runId = "r1"): ReadonlyArray<Chunk.Chunk> => [
  chunk("reasoning-start", { id }, runId),
  chunk("reasoning-delta", { id, text: said }, runId),
  chunk("reasoning-signature", { id, signature: "s" }, runId),
  chunk("reasoning-end", { id }, runId)
]

/** A call whose arguments came bit by bit. */
export const streamed = (toolCallId: string, toolName = "work", runId = "r1"): ReadonlyArray<Chunk.Chunk> => [
  chunk("tool-call-input-streaming-start", { toolCallId, toolName }, runId),
  chunk("tool-call-delta", { toolCallId, argsTextDelta: '{"n"' }, runId),
  chunk("tool-call-delta", { toolCallId, argsTextDelta: ":1}" }, runId),
  chunk("tool-call-input-streaming-end", { toolCallId }, runId),
  chunk("tool-call", { toolCallId, toolName, args: { n: 1 } }, runId)
]

export const call = (toolCallId: string, toolName = "work", runId = "r1"): Chunk.Chunk =>
  chunk("tool-call", { toolCallId, toolName, args: { n: 1 } }, runId)

export const result = (toolCallId: string, value: unknown, runId = "r1", toolName = "work"): Chunk.Chunk =>
  chunk("tool-result", { toolCallId, toolName, result: value }, runId)

/** A whole run of one step that says something. */
export const says = (said: string, runId = "r1"): ReadonlyArray<Chunk.Chunk> => [
  start(runId),
  stepStart(runId),
  ...text(said, "0", runId),
  stepFinish(runId),
  finish("stop", runId)
]

const task = (taskId: string, toolCallId: string, runId: string) => ({
  taskId,
  toolName: "work",
  toolCallId,
  runId,
  agentId: "a"
})

const at = new Date("2026-01-01T00:00:00.000Z")

/** The chunks of a task, by what happens to it. */
export const tasks = (taskId: string, toolCallId: string, runId = "r1") => {
  const named = task(taskId, toolCallId, runId)
  const { agentId: _, runId: __, ...dispatched } = named
  return {
    started: chunk("background-task-started", dispatched, runId),
    running: chunk("background-task-running", { ...named, startedAt: at, args: { n: 1 } }, runId),
    resumed: chunk("background-task-resumed", { ...named, startedAt: at, args: { n: 1 } }, runId),
    output: (output: unknown): Chunk.Chunk =>
      chunk(
        "background-task-output",
        {
          ...named,
          payload: { type: "tool-output", runId, from: "USER", payload: { toolCallId, output } }
        },
        runId
      ),
    completed: (value: unknown): Chunk.Chunk =>
      chunk("background-task-completed", { ...named, result: value, completedAt: at }, runId),
    failed: (message: string): Chunk.Chunk =>
      chunk("background-task-failed", { ...named, error: { message }, completedAt: at }, runId),
    suspended: chunk("background-task-suspended", { ...named, suspendData: { ask: "which?" } }, runId),
    cancelled: chunk("background-task-cancelled", { ...named, completedAt: at }, runId)
  }
}

/** What a tool has written, or the chunk of an agent below. */
export const written = (toolCallId: string, output: unknown, runId = "r1"): Chunk.Chunk =>
  chunk("tool-output", { toolCallId, output }, runId)

/** The frames of a whole response. */
export const mapped = <Frame>(
  mapper: Mapper<Frame>,
  chunks: ReadonlyArray<Chunk.Chunk>,
  failure?: unknown
): ReadonlyArray<Frame> => [...chunks.flatMap(mapper.push), ...mapper.end(failure)]

/** A response of server-sent events, cut into pieces that no frame begins or ends with. */
export const sseResponse = (frames: ReadonlyArray<string>): Response => {
  const bytes = new TextEncoder().encode(frames.map(frame => `${frame}\n\n`).join(""))
  return new Response(
    new ReadableStream({
      start: controller => {
        for (let from = 0; from < bytes.length; from += 37)
          controller.enqueue(bytes.subarray(from, from + 37))
        controller.close()
      }
    }),
    { status: 200, headers: { "content-type": "text/event-stream" } }
  )
}

/** A frame as one line. */
export const dataLine = (frame: unknown): string => `data: ${Json.stringify(frame)}`

export const done = "data: [DONE]"

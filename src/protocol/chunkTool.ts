/** Chunks of tool calls, of what tools write, and of background tasks. */
import * as Schema from "effect/Schema"
import { chunk, envelope, Milliseconds, optional, providerMetadata } from "./chunkShape.js"
import * as Json from "./Json.js"

const call = { toolCallId: Schema.String, toolName: Schema.String }
const args = { args: optional(Json.SafeRecord) }
const providerExecuted = { providerExecuted: optional(Schema.Boolean) }

/** Fields of a `tool-call` payload; a `step-finish` lists the calls of its step in the same shape. */
export const ToolCallPayload = Schema.Struct({
  ...call,
  ...args,
  ...providerExecuted,
  output: optional(Json.SafeUnknown),
  ...providerMetadata
})

const ToolCall = chunk("tool-call", ToolCallPayload)

const ToolResult = chunk("tool-result", {
  ...call,
  result: Json.SafeUnknown,
  isError: optional(Schema.Boolean),
  ...providerExecuted,
  ...args,
  ...providerMetadata
})

const ToolCallInputStreamingStart = chunk("tool-call-input-streaming-start", {
  ...call,
  ...providerExecuted,
  dynamic: optional(Schema.Boolean),
  ...providerMetadata
})

const ToolCallDelta = chunk("tool-call-delta", {
  argsTextDelta: Json.Text,
  toolCallId: Schema.String,
  toolName: optional(Schema.String),
  ...providerMetadata
})

const ToolCallInputStreamingEnd = chunk("tool-call-input-streaming-end", {
  toolCallId: Schema.String,
  ...providerMetadata
})

const ToolError = chunk("tool-error", {
  id: optional(Schema.String),
  ...call,
  ...args,
  error: Json.ErrorValue,
  ...providerExecuted,
  ...providerMetadata
})

const ToolOutput = chunk("tool-output", {
  output: Json.SafeUnknown,
  toolCallId: Schema.String,
  toolName: optional(Schema.String)
})

const StepOutput = chunk("step-output", { output: Json.SafeUnknown, stepId: Schema.String })

/** A JSON Schema, as an object. */
const resumeSchema = { resumeSchema: optional(Json.SafeRecord) }

const ToolCallApproval = chunk("tool-call-approval", {
  ...call,
  args: Json.SafeRecord,
  ...resumeSchema
})

const ToolCallSuspended = chunk("tool-call-suspended", {
  ...call,
  args: Json.SafeRecord,
  suspendData: optional(Json.SafeUnknown),
  ...resumeSchema
})

const ToolOutputDenied = chunk("tool-output-denied", {
  ...call,
  ...args,
  approval: Schema.Struct({ approved: Schema.Literal(false), reason: optional(Json.Text) })
})

/** What a tool or a processor writes for the user interface: any type that begins with `data-`. */
export const Data = Schema.Struct({
  type: Schema.TemplateLiteral("data-", Schema.String),
  ...envelope,
  data: Json.SafeUnknown,
  id: optional(Schema.String),
  transient: optional(Schema.Boolean)
}).annotations({ identifier: "Chunk(data-*)" })

export const ToolChunks = [
  ToolCall,
  ToolResult,
  ToolCallInputStreamingStart,
  ToolCallDelta,
  ToolCallInputStreamingEnd,
  ToolError,
  ToolOutput,
  StepOutput,
  ToolCallApproval,
  ToolCallSuspended,
  ToolOutputDenied
] as const

const task = { taskId: Schema.String, ...call }
const dispatch = { ...task, runId: Schema.String, agentId: Schema.String }
const began = { startedAt: Schema.Date, args: Json.SafeRecord }
const ended = { completedAt: Schema.Date }

const BackgroundTaskStarted = chunk("background-task-started", task)

const BackgroundTaskRunning = chunk("background-task-running", { ...dispatch, ...began })

const BackgroundTaskProgress = chunk("background-task-progress", {
  taskIds: Schema.Array(Schema.String),
  runningCount: Schema.NonNegativeInt,
  elapsedMs: Milliseconds
})

const BackgroundTaskOutput = chunk("background-task-output", { ...dispatch, payload: ToolOutput })

const BackgroundTaskCompleted = chunk("background-task-completed", {
  ...dispatch,
  result: Json.SafeUnknown,
  ...ended,
  isError: optional(Schema.Boolean)
})

const BackgroundTaskFailed = chunk("background-task-failed", {
  ...dispatch,
  error: Schema.Struct({ message: Json.Text }),
  ...ended
})

const BackgroundTaskSuspended = chunk("background-task-suspended", {
  ...dispatch,
  suspendData: optional(Json.SafeUnknown)
})

const BackgroundTaskResumed = chunk("background-task-resumed", { ...dispatch, ...began })

const BackgroundTaskCancelled = chunk("background-task-cancelled", { ...dispatch, ...ended })

export const BackgroundTaskChunks = [
  BackgroundTaskStarted,
  BackgroundTaskRunning,
  BackgroundTaskProgress,
  BackgroundTaskOutput,
  BackgroundTaskCompleted,
  BackgroundTaskFailed,
  BackgroundTaskSuspended,
  BackgroundTaskResumed,
  BackgroundTaskCancelled
] as const

/** What is told of a task: as chunks, and as the outcome of its call in a conversation. Pure. */
import type { Of, ToolCall } from "../protocol/Chunk.js"
import type { ToolResultOutput, ToolResultPart } from "../protocol/Message.js"
import { isRecord } from "../protocol/safeJson.js"
import type { Task, TaskStatus } from "../protocol/Task.js"
import { isErrorValue } from "../tool/Tool.js"
import * as ToolOutcome from "../tool/ToolOutcome.js"
import type { TaskChunk } from "./hub.js"

const envelope = (task: Task) => ({ runId: task.runId, from: "AGENT" as const })

const identity = ({ agentId, id, runId, toolCallId, toolName }: Task) => ({
  taskId: id,
  toolName,
  toolCallId,
  runId,
  agentId
})

/** A time that a task in this state has. */
const time = (date: Date | undefined): Date => date ?? new Date(0)

export const runningChunk = (task: Task): Of<"background-task-running"> => ({
  type: "background-task-running",
  ...envelope(task),
  payload: { ...identity(task), startedAt: time(task.startedAt), args: task.args }
})

export const resumedChunk = (task: Task): TaskChunk => ({
  type: "background-task-resumed",
  ...envelope(task),
  payload: { ...identity(task), startedAt: time(task.startedAt), args: task.args }
})

export const suspendedChunk = (task: Task): TaskChunk => ({
  type: "background-task-suspended",
  ...envelope(task),
  payload: {
    ...identity(task),
    ...(task.suspendData === undefined ? {} : { suspendData: task.suspendData })
  }
})

/** What a task writes while it runs. */
export const outputChunk = (task: Task, output: unknown): TaskChunk => ({
  type: "background-task-output",
  ...envelope(task),
  payload: {
    ...identity(task),
    payload: {
      type: "tool-output",
      runId: task.runId,
      from: "USER",
      payload: { output, toolCallId: task.toolCallId, toolName: task.toolName }
    }
  }
})

/** What is told of a task that has settled. */
export const settledChunk = (task: Task): TaskChunk => {
  const completedAt = time(task.completedAt)
  switch (task.status) {
    case "completed": {
      const result = task.result ?? null
      return {
        type: "background-task-completed",
        ...envelope(task),
        payload: {
          ...identity(task),
          result,
          completedAt,
          ...(isErrorValue(result) ? { isError: true } : {})
        }
      }
    }
    case "cancelled":
      return {
        type: "background-task-cancelled",
        ...envelope(task),
        payload: { ...identity(task), completedAt }
      }
    default:
      return {
        type: "background-task-failed",
        ...envelope(task),
        payload: { ...identity(task), error: task.error ?? { message: "The task failed." }, completedAt }
      }
  }
}

/** The call of a task, as the model made it. */
const callOf = (task: Task): ToolCall => ({
  type: "tool-call",
  ...envelope(task),
  payload: { toolCallId: task.toolCallId, toolName: task.toolName, args: task.args }
})

/** Says that an outcome belongs to a task: by this, and not by its words, it is known. */
export const taskMetadata = (taskId: string, status: TaskStatus) => ({
  eddy: { backgroundTask: { taskId, status } }
})

/** What an outcome in a conversation says of its task; `undefined`: nothing. */
export const taskOf = ({
  providerOptions
}: ToolResultPart): { readonly taskId: string; readonly status: unknown } | undefined => {
  const metadata = providerOptions?.["eddy"]?.["backgroundTask"]
  if (!isRecord(metadata)) return undefined
  const { status, taskId } = metadata
  return typeof taskId === "string" ? { taskId, status } : undefined
}

const outputOf = (task: Task, told: ToolResultOutput | undefined): ToolResultOutput => {
  switch (task.status) {
    case "completed":
      return ToolOutcome.succeeded(callOf(task), task.result, told).part.output
    case "cancelled":
      return { type: "error-text", value: "The background task was cancelled: there is no result." }
    default:
      return told ?? { type: "error-text", value: task.error?.message ?? "The background task failed." }
  }
}

/** What the conversation holds of a settled task, in place of the acknowledgement. */
export const outcomePart = (task: Task, told: ToolResultOutput | undefined): ToolResultPart => ({
  type: "tool-result",
  toolCallId: task.toolCallId,
  toolName: task.toolName,
  output: outputOf(task, told),
  providerOptions: taskMetadata(task.id, task.status)
})

/** What the model is told at once. */
export const acknowledgement = ({ id, toolName }: Pick<Task, "id" | "toolName">): string =>
  `The call of "${toolName}" was started in the background as task ${id}. Its result is not there yet: you are told when it is. Do not call it again for the same work.`

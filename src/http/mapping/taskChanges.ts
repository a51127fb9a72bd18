/** What the chunks of a background task say about it, as a client is shown it. */
import type { Chunk, Of } from "../../protocol/Chunk.js"
import type { ErrorText } from "./Mapper.js"

type TaskType =
  | "background-task-started"
  | "background-task-running"
  | "background-task-completed"
  | "background-task-failed"
  | "background-task-suspended"
  | "background-task-resumed"
  | "background-task-cancelled"

/** A chunk that changes the state of a task. */
export type TaskChunk = Of<TaskType>

export interface TaskChanges {
  readonly status: "pending" | "running" | "completed" | "failed" | "suspended" | "cancelled"
  readonly [field: string]: unknown
}

const types: ReadonlySet<string> = new Set<TaskType>([
  "background-task-started",
  "background-task-running",
  "background-task-completed",
  "background-task-failed",
  "background-task-suspended",
  "background-task-resumed",
  "background-task-cancelled"
])

export const isTaskChunk = (chunk: Chunk): chunk is TaskChunk => types.has(chunk.type)

/** The fields that a chunk sets. */
export const changesOf = (chunk: TaskChunk, errorText: ErrorText): TaskChanges => {
  switch (chunk.type) {
    case "background-task-started":
      return { status: "pending" }
    case "background-task-running":
    case "background-task-resumed": {
      const { agentId, args, startedAt } = chunk.payload
      return { status: "running", agentId, args, startedAt: startedAt.toISOString() }
    }
    case "background-task-completed": {
      const { agentId, completedAt, isError, result } = chunk.payload
      return {
        status: "completed",
        agentId,
        result: result ?? null,
        completedAt: completedAt.toISOString(),
        ...(isError === undefined ? {} : { isError })
      }
    }
    case "background-task-failed": {
      const { agentId, completedAt, error } = chunk.payload
      return { status: "failed", agentId, error: errorText(error), completedAt: completedAt.toISOString() }
    }
    case "background-task-suspended": {
      const { agentId, suspendData } = chunk.payload
      return { status: "suspended", agentId, ...(suspendData === undefined ? {} : { suspendData }) }
    }
    case "background-task-cancelled": {
      const { agentId, completedAt } = chunk.payload
      return { status: "cancelled", agentId, completedAt: completedAt.toISOString() }
    }
  }
}

/** What names a task. */
export const identityOf = ({ payload, runId }: TaskChunk | Of<"background-task-output">) => ({
  taskId: payload.taskId,
  toolName: payload.toolName,
  toolCallId: payload.toolCallId,
  runId: "runId" in payload ? payload.runId : runId
})

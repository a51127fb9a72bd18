/**
 * A background task: a tool call that runs on while the conversation does. What it is, and what may become of it.
 *
 *     pending ─▶ running ─▶ completed | failed | timed_out | cancelled
 *        │         │  ▲
 *        │         ▼  │ resume
 *        │      suspended ─▶ cancelled
 *        └─▶ cancelled          running ─▶ pending: its process died, and attempts are left
 *
 * @since 0.1.0
 */
import type { JsonValue } from "./safeJson.js"

/** Where a task stands. The last four are final: nothing changes a task that has settled. @since 0.1.0 @category models */
export type TaskStatus =
  | "pending"
  | "running"
  | "suspended"
  | "completed"
  | "failed"
  | "timed_out"
  | "cancelled"

/** Every status, in the order in which a task may come to them. @since 0.1.0 @category constants */
export const statuses: ReadonlyArray<TaskStatus> = [
  "pending",
  "running",
  "suspended",
  "completed",
  "failed",
  "timed_out",
  "cancelled"
]

/** A task as it is stored and shown. @since 0.1.0 @category models */
export interface Task {
  readonly id: string
  readonly status: TaskStatus
  readonly toolName: string
  readonly toolCallId: string
  /** The arguments that the model wrote, without `_background`. */
  readonly args: { readonly [key: string]: JsonValue }
  /** The agent that called the tool. */
  readonly agentId: string
  /** The thread of the run that called it, when it has one. */
  readonly threadId?: string
  /** Whose that run is, with a thread or without. */
  readonly resourceId?: string
  /** The run that called it. */
  readonly runId: string
  /** What the tool gave; `null` for `undefined`. Only of a task that is completed. */
  readonly result?: JsonValue
  /** Only of a task that is failed or timed out. */
  readonly error?: { readonly message: string }
  /** What the tool said when it suspended. Only of a task that is suspended. */
  readonly suspendData?: JsonValue
  readonly createdAt: Date
  /** When it was started, or resumed, last. */
  readonly startedAt?: Date
  readonly suspendedAt?: Date
  /** When it settled, however it did. */
  readonly completedAt?: Date
  /** Attempts that were begun: 0 before the first. */
  readonly attempt: number
  /** Attempts after the first. */
  readonly maxRetries: number
  /** Milliseconds that one attempt may take. */
  readonly timeoutMs: number
}

/** What happens to a task. @since 0.1.0 @category models */
export type TaskEvent =
  | { readonly _tag: "Started"; readonly at: Date }
  | { readonly _tag: "Completed"; readonly at: Date; readonly result: JsonValue }
  | { readonly _tag: "Failed"; readonly at: Date; readonly message: string }
  | { readonly _tag: "TimedOut"; readonly at: Date; readonly message: string }
  | { readonly _tag: "Cancelled"; readonly at: Date }
  | { readonly _tag: "Suspended"; readonly at: Date; readonly suspendData: JsonValue }
  | { readonly _tag: "Resumed"; readonly at: Date }
  /** The process that ran it is gone, and attempts are left. */
  | { readonly _tag: "Recovered" }

/** The states in which each event may happen. @since 0.1.0 @category constants */
export const allowed: { readonly [Tag in TaskEvent["_tag"]]: ReadonlyArray<TaskStatus> } = {
  Started: ["pending"],
  Completed: ["running"],
  // A task that nobody can run fails without having been started.
  Failed: ["running", "pending"],
  TimedOut: ["running"],
  Cancelled: ["pending", "running", "suspended"],
  Suspended: ["running"],
  Resumed: ["suspended"],
  Recovered: ["running"]
}

/** Whether a task has come to its end. @since 0.1.0 @category guards */
export const isSettled = (status: TaskStatus): boolean =>
  status !== "pending" && status !== "running" && status !== "suspended"

const settle = (task: Task, status: TaskStatus, at: Date): Task => {
  const { suspendData: _, suspendedAt: __, ...rest } = task
  return { ...rest, status, completedAt: at }
}

/**
 * The task after an event; `undefined` when that cannot happen in its state: a late result of a task that was cancelled, a
 * second start, a decision about a task that is not suspended.
 *
 * @since 0.1.0
 * @category transitions
 */
export const transition = (task: Task, event: TaskEvent): Task | undefined => {
  if (!allowed[event._tag].includes(task.status)) return undefined
  switch (event._tag) {
    case "Started":
      return { ...task, status: "running", startedAt: event.at, attempt: task.attempt + 1 }
    case "Completed":
      return { ...settle(task, "completed", event.at), result: event.result }
    case "Failed":
      return { ...settle(task, "failed", event.at), error: { message: event.message } }
    case "TimedOut":
      return { ...settle(task, "timed_out", event.at), error: { message: event.message } }
    case "Cancelled":
      return settle(task, "cancelled", event.at)
    case "Suspended":
      return { ...task, status: "suspended", suspendedAt: event.at, suspendData: event.suspendData }
    case "Resumed": {
      const { suspendData: _, suspendedAt: __, ...rest } = task
      return { ...rest, status: "running", startedAt: event.at }
    }
    case "Recovered":
      return attemptsAreLeft(task) ? { ...task, status: "pending" } : undefined
  }
}

/** Whether the task may be tried again. @since 0.1.0 @category guards */
export const attemptsAreLeft = ({ attempt, maxRetries }: Task): boolean => attempt <= maxRetries

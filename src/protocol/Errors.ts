/**
 * Every error of the library, in one place: nouns for what happened, with data and a sentence that says what to do. They
 * carry no run state, and their JSON form on a stream is `{ name, message }` only.
 *
 * Tagged with `Data`, not with `Schema`: nothing decodes them, and `effect/Schema` would double the time that it takes to
 * load the Promise face.
 *
 * @since 0.1.0
 */

import type { TaskStatus } from "./Task.js"
import { tagged } from "./tagged.js"

export * from "./workflowErrors.js"

/**
 * A setting that cannot work: found when an agent, a tool or a call is made, before any model is asked. `field` names the
 * setting, `message` ends with the remedy.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidConfiguration extends tagged("InvalidConfiguration")<{
  readonly field: string
  readonly message: string
}> {}

/**
 * A message handed to an agent has no shape that is known. `path` names the place, for example `[2].content[0]`
 * (0-based).
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidMessage extends tagged("InvalidMessage")<{
  readonly path: string
  readonly message: string
}> {}

/**
 * A model call failed. `reason` says where: `request` before anything was answered, `stream` in the middle of the answer
 * (an error part, a broken connection), `incomplete` when the answer ended without saying that it was finished, `timeout`
 * when it said nothing for longer than `timeouts.firstContent` or `timeouts.betweenChunks` allow. `statusCode`,
 * `isRetryable` and `retryAfter` (milliseconds) are the provider's. `cause` is the original failure; it stays in the
 * process.
 *
 * @since 0.1.0
 * @category errors
 */
export class ModelError extends tagged("ModelError")<{
  readonly reason: "request" | "stream" | "incomplete" | "timeout"
  readonly provider: string
  readonly modelId: string
  readonly message: string
  readonly statusCode?: number | undefined
  readonly isRetryable?: boolean | undefined
  readonly retryAfter?: number | undefined
  readonly cause?: unknown
}> {}

/** The run, or one step of it, took longer than `timeouts.run` or `timeouts.step` allow. @since 0.1.0 @category errors */
export class RunTimedOut extends tagged("RunTimedOut")<{
  readonly limit: "run" | "step"
  readonly milliseconds: number
  readonly message: string
}> {}

/**
 * A store failed, or holds something that it cannot have been given. `operation` is the operation of the port, for example
 * `ThreadStore.append`. `cause` is the driver's own failure; it stays in the process.
 *
 * @since 0.1.0
 * @category errors
 */
export class StorageError extends tagged("StorageError")<{
  readonly operation: string
  readonly message: string
  readonly cause?: unknown
}> {}

/**
 * There is no thread of this id, or it belongs to another resource: the two look the same, so that nobody learns which
 * threads others have.
 *
 * @since 0.1.0
 * @category errors
 */
export class ThreadNotFound extends tagged("ThreadNotFound")<{
  readonly threadId: string
  readonly message: string
}> {}

/**
 * Another run speaks in the thread, and `memory.whenBusy` is `reject`. `runId` is the run that speaks, or waits for its turn.
 *
 * @since 0.1.0
 * @category errors
 */
export class ThreadBusy extends tagged("ThreadBusy")<{
  readonly threadId: string
  readonly runId: string
  readonly message: string
}> {}

/** The thread has no objective that could be changed. Set one with `setObjective` first. @since 0.1.0 @category errors */
export class ObjectiveNotFound extends tagged("ObjectiveNotFound")<{
  readonly threadId: string
  readonly message: string
}> {}

/**
 * The run was stopped from outside: its abort signal fired, `cancel` was called, or the scope that owns it closed.
 * `cause` is the signal's reason, when there is one.
 *
 * @since 0.1.0
 * @category errors
 */
export class RunAborted extends tagged("RunAborted")<{
  readonly message: string
  readonly cause?: unknown
}> {}

/**
 * A processor stopped the run (`tripwire`), so that it has nothing to give: what asks for a structured value, or called the
 * agent as a tool, is told so. `processorId` names the processor, `reason` is its word.
 *
 * @since 0.1.0
 * @category errors
 */
export class RunBlocked extends tagged("RunBlocked")<{
  readonly reason: string
  readonly processorId?: string | undefined
  readonly message: string
}> {}

/**
 * The run waits for somebody to decide about its calls, so that it has nothing to give yet. Resume it, and ask what that
 * gives.
 *
 * @since 0.1.0
 * @category errors
 */
export class RunSuspended extends tagged("RunSuspended")<{
  readonly runId: string
  readonly message: string
}> {}

/**
 * No run of this id waits for anybody: it never was, is over, or is not this agent's, or not of this thread and resource: these
 * look the same, so that nobody learns which runs others have. `runId` is `undefined` when a thread was asked for instead.
 *
 * @since 0.1.0
 * @category errors
 */
export class RunNotFound extends tagged("RunNotFound")<{
  readonly runId: string | undefined
  readonly message: string
}> {}

/**
 * The run waits, but not for this call: it was decided already, or never waited. `pending` names the calls that do. Nothing was
 * executed, and nothing is decided.
 *
 * @since 0.1.0
 * @category errors
 */
export class ToolCallNotPending extends tagged("ToolCallNotPending")<{
  readonly runId: string
  readonly toolCallId: string | undefined
  readonly pending: ReadonlyArray<string>
  readonly message: string
}> {}

/** What a tool suspended with does not match its suspend schema. Told to the model; the run goes on. @since 0.1.0 @category errors */
export class InvalidSuspendData extends tagged("InvalidSuspendData")<{
  readonly toolName: string
  readonly message: string
}> {}

/** What is wrong with a structured value, and where: keys and places from its root. @since 0.1.0 @category models */
export interface StructuredOutputIssue {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

/**
 * A run gave no value of its `structuredOutput`. `reason` says why: `invalid`, the value does not match the schema, or is no
 * JSON; `missing`, there is none in the answer; `truncated`, the answer was cut off or filtered, or ends within the value;
 * `model`, the model that was to write it failed, which is the `cause`. `text` is what the value was looked for in. The run
 * itself is what it was: it may have succeeded.
 *
 * @since 0.1.0
 * @category errors
 */
export class StructuredOutputError extends tagged("StructuredOutputError")<{
  readonly reason: "invalid" | "missing" | "truncated" | "model"
  readonly issues: ReadonlyArray<StructuredOutputIssue>
  readonly text: string
  readonly message: string
  readonly cause?: unknown
}> {}

/**
 * A processor threw, failed, died, or gave what it may not give. Nothing passes that a processor has not let through: the run
 * ends with this. `hook` says where; `cause` is what it failed with, and stays in the process.
 *
 * @since 0.1.0
 * @category errors
 */
export class ProcessorFailed extends tagged("ProcessorFailed")<{
  readonly processorId: string
  readonly hook: string
  readonly message: string
  readonly cause?: unknown
}> {}

/** The model called a tool that this step does not offer. Told to the model; the run goes on. @since 0.1.0 @category errors */
export class ToolNotFound extends tagged("ToolNotFound")<{
  readonly toolName: string
  readonly available: ReadonlyArray<string>
  readonly message: string
}> {}

/**
 * The arguments of a tool call are no JSON, or do not match the tool's input schema. The tool was not executed. Told to
 * the model; the run goes on.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidToolArguments extends tagged("InvalidToolArguments")<{
  readonly toolName: string
  readonly message: string
}> {}

/** What a tool returned does not match its output schema. Told to the model; the run goes on. @since 0.1.0 @category errors */
export class InvalidToolOutput extends tagged("InvalidToolOutput")<{
  readonly toolName: string
  readonly message: string
}> {}

/**
 * A tool failed with something that is no `Error`, or died. `cause` is what it failed with. A tool that fails with an
 * `Error` keeps that error in its `tool-error`.
 *
 * @since 0.1.0
 * @category errors
 */
export class ToolFailed extends tagged("ToolFailed")<{
  readonly toolName: string
  readonly message: string
  readonly cause?: unknown
}> {}

/** A tool took longer than its `timeout`. Told to the model; the run goes on. @since 0.1.0 @category errors */
export class ToolTimedOut extends tagged("ToolTimedOut")<{
  readonly toolName: string
  readonly milliseconds: number
  readonly message: string
}> {}

/**
 * Agents called agents that called agents, deeper than `maxDepth` allows. The agent was not run; whoever called it is told,
 * and goes on.
 *
 * @since 0.1.0
 * @category errors
 */
export class AgentDepthExceeded extends tagged("AgentDepthExceeded")<{
  readonly agentId: string
  readonly maxDepth: number
  readonly message: string
}> {}

/**
 * A tool call was not executed because the answer that holds it was cut off (`length`) or filtered (`content-filter`):
 * its arguments may be incomplete.
 *
 * @since 0.1.0
 * @category errors
 */
export class ToolCallCutOff extends tagged("ToolCallCutOff")<{
  readonly toolName: string
  readonly message: string
}> {}

/**
 * A tool call was to run in the background, and every slot was taken: `backpressure` is `reject`. Told to the model; the run
 * goes on.
 *
 * @since 0.1.0
 * @category errors
 */
export class TaskRejected extends tagged("TaskRejected")<{
  readonly toolName: string
  readonly agentId: string
  readonly message: string
}> {}

/** There is no background task of this id: it never was, or was cleaned up. @since 0.1.0 @category errors */
export class TaskNotFound extends tagged("TaskNotFound")<{
  readonly taskId: string
  readonly message: string
}> {}

/**
 * A background task is in a state in which that cannot be done: only a suspended task is resumed, and only one that has not
 * settled is cancelled.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidTaskState extends tagged("InvalidTaskState")<{
  readonly taskId: string
  readonly status: TaskStatus
  readonly message: string
}> {}

/**
 * Nobody in this process knows how to run the task: its agent is not here, or has no such tool. The task stays as it is.
 *
 * @since 0.1.0
 * @category errors
 */
export class TaskExecutorNotFound extends tagged("TaskExecutorNotFound")<{
  readonly taskId: string
  readonly agentId: string
  readonly toolName: string
  readonly message: string
}> {}

/** What a call was resumed with does not match the tool's resume schema. The call stays suspended. @since 0.1.0 @category errors */
export class InvalidResumeData extends tagged("InvalidResumeData")<{
  readonly toolName: string
  readonly message: string
}> {}

/** A reader of task events was too far behind, and was let go: no task waits for a reader. @since 0.1.0 @category errors */
export class TaskReaderTooSlow extends tagged("TaskReaderTooSlow")<{
  /** Events that a reader may be behind. */
  readonly capacity: number
  readonly message: string
}> {}

/** A chunk of a type that this version does not know. `type` names it; a reader may skip it. @since 0.1.0 @category errors */
export class UnknownChunkType extends tagged("UnknownChunkType")<{
  readonly type: string
  readonly message: string
}> {}

/** A chunk of a known type whose fields are wrong. `message` names the field. @since 0.1.0 @category errors */
export class InvalidChunk extends tagged("InvalidChunk")<{
  readonly type: string
  readonly message: string
}> {}

/** Everything an agent's stream can fail with. @since 0.1.0 @category models */
export type AgentError =
  | InvalidConfiguration
  | InvalidMessage
  | ModelError
  | RunAborted
  | RunTimedOut
  | StorageError
  | ThreadBusy
  | ThreadNotFound
  | AgentDepthExceeded
  | ProcessorFailed

/** Whether a value is one of the errors that an agent's stream fails with. @since 0.1.0 @category guards */
export const isAgentError = (value: unknown): value is AgentError =>
  value instanceof ModelError ||
  value instanceof RunAborted ||
  value instanceof InvalidConfiguration ||
  value instanceof InvalidMessage ||
  value instanceof RunTimedOut ||
  value instanceof StorageError ||
  value instanceof ThreadBusy ||
  value instanceof ThreadNotFound ||
  value instanceof AgentDepthExceeded ||
  value instanceof ProcessorFailed

/// <reference lib="esnext.disposable" preserve="true" />
/**
 * eddy for plain TypeScript: promises and web streams over the same run.
 *
 * @since 0.1.0
 */
export type {
  DynamicState,
  MemoryOptions,
  MemorySettings,
  RequestContext,
  StepState,
  Timeouts,
  ToolApprovalState
} from "./agent/RunOptions.js"
export type { PendingCall, SuspendedRun } from "./agent/suspension/finding.js"
export type { TaskChunk, TaskFilter } from "./background/hub.js"
export type { Backpressure } from "./background/settings.js"
export type { AiSdkModel, LanguageModel, ModelId, ModelSettings, ToolChoice } from "./model/LanguageModel.js"
export type { FullOutput, Response, RunStatus, Step, Tripwire } from "./output/FullOutput.js"
export { Agent, type AgentOptions } from "./promise/Agent.js"
export type {
  AgentSettings,
  DeclineToolCallOptions,
  Dynamic,
  ModelInput,
  PrepareStep,
  ResumeStreamOptions,
  SingleModel,
  StepChanges,
  StopWhen,
  StreamOptions,
  ToolsInput,
  UntilIdleOptions
} from "./promise/AgentOptions.js"
export {
  BackgroundTaskManager,
  type TaskRegistration,
  type TaskStreamOptions
} from "./promise/BackgroundTaskManager.js"
export type {
  AgentBackgroundTasks,
  AgentToolBackground,
  TaskListener,
  ToolBackground
} from "./promise/background.js"
export type {
  BackgroundCleanup,
  BackgroundRetries,
  BackgroundShutdown,
  BackgroundTasksOptions
} from "./promise/backgroundTasks.js"
export type { RunCallbacks } from "./promise/callbacks.js"
export {
  type ApprovalContext,
  type CreateToolOptions,
  createTool,
  type PromiseTool,
  type ToolExecutionContext,
  type ToolWriter
} from "./promise/createTool.js"
export { Eddy, Eddy as Mastra, type EddyLogger, type EddyOptions } from "./promise/Eddy.js"
export { InMemoryStore, type InMemoryStoreOptions, type Storage } from "./promise/InMemoryStore.js"
export { LibSQLStore, type LibSQLStoreOptions } from "./promise/LibSQLStore.js"
export { type ConsumeStreamOptions, ModelOutput } from "./promise/ModelOutput.js"
export { PostgresStore, type PostgresStoreOptions } from "./promise/PostgresStore.js"
export type { RunStream } from "./promise/RunStream.js"
export type { ListThreadsOptions, ThreadMessagesOptions, ThreadScope, Threads } from "./promise/Threads.js"
export type { TaskStream } from "./promise/taskStream.js"
export type { Chunk, ChunkFrom, ChunkType, Of as ChunkOf } from "./protocol/Chunk.js"
export type { Input } from "./protocol/Conversation.js"
export {
  AgentDepthExceeded,
  InvalidConfiguration,
  InvalidMessage,
  InvalidResumeData,
  InvalidSuspendData,
  InvalidTaskState,
  InvalidToolArguments,
  InvalidToolOutput,
  ModelError,
  RunAborted,
  RunBlocked,
  RunNotFound,
  RunSuspended,
  RunTimedOut,
  StorageError,
  TaskExecutorNotFound,
  TaskNotFound,
  TaskReaderTooSlow,
  TaskRejected,
  ThreadNotFound,
  ToolCallCutOff,
  ToolCallNotPending,
  ToolFailed,
  ToolNotFound,
  ToolTimedOut
} from "./protocol/Errors.js"
export type { FinishReason } from "./protocol/FinishReason.js"
export type { Message, UIMessage } from "./protocol/Message.js"
export { type Nested, type NestingCall, unnest } from "./protocol/Nesting.js"
export type { Task, TaskStatus } from "./protocol/Task.js"
export type { Usage } from "./protocol/Usage.js"
export type { ListOptions as ListTasksOptions, TaskPage } from "./storage/TaskStore.js"
export type { Thread, ThreadMessage, ThreadPage } from "./storage/ThreadStore.js"

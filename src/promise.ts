/// <reference lib="esnext.disposable" preserve="true" />
/**
 * eddy for plain TypeScript: promises and web streams over the same run.
 *
 * @since 0.1.0
 */
export type { Candidate as GoalCandidate, Verdict as GoalVerdict } from "./agent/goals/GoalOptions.js"
export type {
  ObjectiveThread,
  SetObjectiveOptions,
  UpdateObjectiveOptions
} from "./agent/goals/objectives.js"

export {
  type AbortOptions,
  type BlockOptions,
  blockWhen,
  type PersonalData,
  type ProcessedAnswer,
  type ProcessedChunks,
  type ProcessedResult,
  type ProcessorFacts,
  type ProcessorState,
  type RedactOptions,
  redact,
  type TokenLimitOptions,
  tokenLimiter,
  type Verdict
} from "./agent/processors/Processor.js"
export type {
  ClientTool,
  DynamicState,
  MemoryOptions,
  MemorySettings,
  RequestContext,
  StepState,
  Timeouts,
  ToolApprovalState
} from "./agent/RunOptions.js"
export type { SuspendedFilter, SuspendedRun } from "./agent/suspension/finding.js"
export type { TaskChunk, TaskFilter } from "./background/hub.js"
export type { Backpressure } from "./background/settings.js"
export type { AiSdkModel, LanguageModel, ModelId, ModelSettings, ToolChoice } from "./model/LanguageModel.js"
export type { FullOutput, Response, RunStatus, Step, Tripwire } from "./output/FullOutput.js"
export type { PendingCall } from "./output/PendingCall.js"
export type { DeepPartial, ElementOf } from "./output/structured.js"
export { Agent, type AgentOptions } from "./promise/Agent.js"
export type {
  AgentSettings,
  DeclineToolCallOptions,
  Dynamic,
  GoalOptions,
  GoalScorer,
  ModelInput,
  PrepareStep,
  ProcessorSettings,
  ResumeStreamOptions,
  SingleModel,
  StepChanges,
  StopWhen,
  StreamOptions,
  StructuredOutput,
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
  type AgentAsStep,
  type CreateStepOptions,
  createStep,
  type PromiseStep,
  type StepExecution
} from "./promise/createStep.js"
export {
  type ApprovalContext,
  type CreateToolOptions,
  createTool,
  type PromiseTool,
  type ToolExecutionContext,
  type ToolWriter
} from "./promise/createTool.js"
export {
  type CreateWorkflowOptions,
  createWorkflow,
  type StepOutput,
  WorkflowDraft
} from "./promise/createWorkflow.js"
export { Eddy, Eddy as Mastra, type EddyLogger, type EddyOptions } from "./promise/Eddy.js"
export type { ElementStream } from "./promise/elementStream.js"
export { InMemoryStore, type InMemoryStoreOptions, type Storage } from "./promise/InMemoryStore.js"
export { LibSQLStore, type LibSQLStoreOptions } from "./promise/LibSQLStore.js"
export { type ConsumeStreamOptions, ModelOutput } from "./promise/ModelOutput.js"
export { PostgresStore, type PostgresStoreOptions } from "./promise/PostgresStore.js"
export type {
  AnyProcessor,
  Processor,
  ProcessorContext
} from "./promise/processors.js"
export type { RunStream } from "./promise/RunStream.js"
export type { ListThreadsOptions, ThreadMessagesOptions, ThreadScope, Threads } from "./promise/Threads.js"
export type { TaskStream } from "./promise/taskStream.js"
export type { TelemetryOptions } from "./promise/telemetry.js"
export { type AnyWorkflow, Workflow } from "./promise/Workflow.js"
export { WorkflowOutput } from "./promise/WorkflowOutput.js"
export type { Chunk, ChunkFrom, ChunkType, Of as ChunkOf } from "./protocol/Chunk.js"
export type { Input } from "./protocol/Conversation.js"
export {
  AgentDepthExceeded,
  InvalidConfiguration,
  InvalidMessage,
  InvalidResumeData,
  InvalidStepInput,
  InvalidStepOutput,
  InvalidStepResumeData,
  InvalidSuspendData,
  InvalidTaskState,
  InvalidToolArguments,
  InvalidToolOutput,
  ModelError,
  ObjectiveNotFound,
  ProcessorFailed,
  RunAborted,
  RunBlocked,
  RunNotFound,
  RunSuspended,
  RunTimedOut,
  StepFailed,
  StepNotSuspended,
  StepTimedOut,
  StorageError,
  StructuredOutputError,
  TaskExecutorNotFound,
  TaskNotFound,
  TaskReaderTooSlow,
  TaskRejected,
  ThreadBusy,
  ThreadNotFound,
  ToolCallCutOff,
  ToolCallNotPending,
  ToolFailed,
  ToolNotFound,
  ToolTimedOut,
  WorkflowRunBusy,
  WorkflowRunLost,
  WorkflowRunNotFound
} from "./protocol/Errors.js"
export type { FinishReason } from "./protocol/FinishReason.js"
export type { Message, UIMessage } from "./protocol/Message.js"
export { type Nested, type NestingCall, unnest } from "./protocol/Nesting.js"
export type { Objective, ObjectiveStatus } from "./protocol/Objective.js"
export type { Task, TaskStatus } from "./protocol/Task.js"
export type { Usage } from "./protocol/Usage.js"
export type { ListOptions as ListTasksOptions, TaskPage } from "./storage/TaskStore.js"
export type { Thread, ThreadMessage, ThreadPage } from "./storage/ThreadStore.js"
export type { ListOptions as ListRunsOptions, UnfinishedRun, UnfinishedRunPage } from "./workflow/listing.js"
export type {
  RestartOptions as WorkflowRestartOptions,
  ResumeOptions as WorkflowResumeOptions,
  RunOptions as WorkflowRunOptions
} from "./workflow/RunOptions.js"
export type { WorkflowResult } from "./workflow/result.js"
export type {
  StepState as WorkflowStepState,
  StepStatus as WorkflowStepStatus,
  SuspendedStep,
  WorkflowState,
  WorkflowStatus
} from "./workflow/state.js"

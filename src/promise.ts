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
  Timeouts
} from "./agent/RunOptions.js"
export type { AiSdkModel, LanguageModel, ModelId, ModelSettings, ToolChoice } from "./model/LanguageModel.js"
export type { FullOutput, Response, RunStatus, Step, Tripwire } from "./output/FullOutput.js"
export { Agent, type AgentOptions } from "./promise/Agent.js"
export type {
  AgentSettings,
  Dynamic,
  ModelInput,
  PrepareStep,
  SingleModel,
  StepChanges,
  StopWhen,
  StreamOptions,
  ToolsInput
} from "./promise/AgentOptions.js"
export type { RunCallbacks } from "./promise/callbacks.js"
export {
  type CreateToolOptions,
  createTool,
  type PromiseTool,
  type ToolExecutionContext,
  type ToolWriter
} from "./promise/createTool.js"
export { Eddy, Eddy as Mastra, type EddyLogger, type EddyOptions } from "./promise/Eddy.js"
export { InMemoryStore, type InMemoryStoreOptions, type Storage } from "./promise/InMemoryStore.js"
export { type ConsumeStreamOptions, ModelOutput } from "./promise/ModelOutput.js"
export type { RunStream } from "./promise/RunStream.js"
export type { ListThreadsOptions, ThreadMessagesOptions, ThreadScope, Threads } from "./promise/Threads.js"
export type { Chunk, ChunkFrom, ChunkType, Of as ChunkOf } from "./protocol/Chunk.js"
export type { Input } from "./protocol/Conversation.js"
export {
  AgentDepthExceeded,
  InvalidConfiguration,
  InvalidMessage,
  InvalidToolArguments,
  InvalidToolOutput,
  ModelError,
  RunAborted,
  RunTimedOut,
  StorageError,
  ThreadNotFound,
  ToolCallCutOff,
  ToolFailed,
  ToolNotFound,
  ToolTimedOut
} from "./protocol/Errors.js"
export type { FinishReason } from "./protocol/FinishReason.js"
export type { Message, UIMessage } from "./protocol/Message.js"
export { type Nested, type NestingCall, unnest } from "./protocol/Nesting.js"
export type { Usage } from "./protocol/Usage.js"
export type { Thread, ThreadMessage, ThreadPage } from "./storage/ThreadStore.js"

/**
 * eddy for plain TypeScript: promises and web streams over the same run.
 *
 * @since 0.1.0
 */
export type { AiSdkModel, LanguageModel, ModelSettings, ToolChoice } from "./model/LanguageModel.js"
export type { FullOutput, Response, RunStatus, Step, Tripwire } from "./output/FullOutput.js"
export {
  Agent,
  type AgentOptions,
  type StopWhen,
  type StreamOptions,
  type ToolsInput
} from "./promise/Agent.js"
export type { RunCallbacks } from "./promise/callbacks.js"
export {
  type CreateToolOptions,
  createTool,
  type PromiseTool,
  type ToolExecutionContext,
  type ToolWriter
} from "./promise/createTool.js"
export { Eddy, Eddy as Mastra, type EddyLogger, type EddyOptions } from "./promise/Eddy.js"
export { type ConsumeStreamOptions, ModelOutput } from "./promise/ModelOutput.js"
export type { RunStream } from "./promise/RunStream.js"
export type { Chunk, ChunkFrom, ChunkType, Of as ChunkOf } from "./protocol/Chunk.js"
export type { Input } from "./protocol/Conversation.js"
export {
  InvalidConfiguration,
  InvalidMessage,
  InvalidToolArguments,
  InvalidToolOutput,
  ModelError,
  RunAborted,
  ToolCallCutOff,
  ToolFailed,
  ToolNotFound
} from "./protocol/Errors.js"
export type { FinishReason } from "./protocol/FinishReason.js"
export type { Message, UIMessage } from "./protocol/Message.js"
export type { Usage } from "./protocol/Usage.js"

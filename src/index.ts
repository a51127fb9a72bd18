/**
 * The Effect face of eddy. Plain TypeScript uses `eddy/promise` instead.
 *
 * @since 0.1.0
 */
export * as Agent from "./agent/Agent.js"
export * as Processor from "./agent/processors/Processor.js"
export type {
  ClientTool,
  Defaults,
  Dynamic,
  DynamicState,
  MemoryOptions,
  MemorySettings,
  Models,
  PrepareStep,
  RequestContext,
  RunOptions,
  StepChanges,
  StepState,
  StopCondition,
  Timeouts,
  ToolApprovalPolicy,
  ToolApprovalState
} from "./agent/RunOptions.js"
export * as Telemetry from "./agent/telemetry/Telemetry.js"
export * as BackgroundTasks from "./background/BackgroundTasks.js"
export * as LanguageModel from "./model/LanguageModel.js"
export * as ModelPart from "./model/ModelPart.js"
export type {
  FullOutput,
  Response,
  RunStatus,
  Step,
  Tripwire
} from "./output/FullOutput.js"
export * as ModelOutput from "./output/ModelOutput.js"
export type { PendingCall } from "./output/PendingCall.js"
export * as RunFold from "./output/RunFold.js"
export type { DeepPartial, ElementOf, ErrorStrategy } from "./output/structured.js"
export * as Chunk from "./protocol/Chunk.js"
export * as Conversation from "./protocol/Conversation.js"
export * as Errors from "./protocol/Errors.js"
export * as FinishReason from "./protocol/FinishReason.js"
export * as Id from "./protocol/Id.js"
export * as Json from "./protocol/Json.js"
export * as Message from "./protocol/Message.js"
export * as Nesting from "./protocol/Nesting.js"
export * as Objective from "./protocol/Objective.js"
export * as Task from "./protocol/Task.js"
export * as Usage from "./protocol/Usage.js"
export * as LibSqlStore from "./storage/LibSqlStore.js"
export * as PostgresStore from "./storage/PostgresStore.js"
export * as RunStore from "./storage/RunStore.js"
export * as TaskStore from "./storage/TaskStore.js"
export * as ThreadStore from "./storage/ThreadStore.js"
export type { ApprovalContext, ApprovalPolicy } from "./tool/approval.js"
export * as Tool from "./tool/Tool.js"
export type { DataPart, ToolContext } from "./tool/ToolContext.js"
export * as ToolSchema from "./tool/ToolSchema.js"
export * as WorkflowStep from "./workflow/Step.js"
export * as Workflow from "./workflow/Workflow.js"

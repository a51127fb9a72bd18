/**
 * What agents of plain TypeScript are made of, and what their runs may be told.
 *
 * @since 0.1.0
 */
import type {
  StepChanges as CoreStepChanges,
  DynamicState,
  MemorySettings,
  RunOptions,
  StepState
} from "../agent/RunOptions.js"
import type { AiSdkModel } from "../model/AiSdk.js"
import type { LanguageModel } from "../model/ModelPort.js"
import type { ModelId } from "../model/ModelRouter.js"
import type { Step } from "../output/FullOutput.js"
import type { AgentBackgroundTasks } from "./background.js"
import type { RunCallbacks } from "./callbacks.js"
import type { PromiseTool } from "./createTool.js"
import type { AnyProcessor } from "./processors.js"

/** Tools by the name that the model calls them with. @since 0.1.0 @category models */
export type ToolsInput = Readonly<Record<string, PromiseTool>>

/**
 * One model: of the AI SDK (specification V2, V3 or V4), a `LanguageModel` of eddy, or its name: `"openai/gpt-5-mini"`, or
 * `{ id, url }` for any server that speaks OpenAI's protocol.
 *
 * @since 0.1.0
 * @category models
 */
export type SingleModel = AiSdkModel | LanguageModel | ModelId

/**
 * A model, or several: the next one takes over when a call of the one before has failed for good and nothing of it was
 * shown. `maxRetries` of an entry wins over the one of the run.
 *
 * @since 0.1.0
 * @category models
 */
export type ModelInput =
  | SingleModel
  | ReadonlyArray<SingleModel | { readonly model: SingleModel; readonly maxRetries?: number }>

/**
 * A value, or a function of the run's request context that makes it, once for each run. What it throws fails the run before
 * any chunk.
 *
 * @since 0.1.0
 * @category models
 */
export type Dynamic<A> = A | ((state: DynamicState) => A | Promise<A>)

/**
 * Decides after a step that wants to go on whether the run stops there. It sees the finished steps, the last one included.
 * One that throws fails the run.
 *
 * @since 0.1.0
 * @category models
 */
export type StopWhen = (state: { readonly steps: ReadonlyArray<Step> }) => boolean | Promise<boolean>

/** What `prepareStep` may change, for this one step. What is left out stays as it is. @since 0.1.0 @category models */
export interface StepChanges extends Omit<CoreStepChanges, "model" | "tools"> {
  readonly model?: ModelInput
  /** Tools beside the others; one of the same name takes its place. */
  readonly tools?: ToolsInput
}

/** Called before each step. One that throws fails the run. @since 0.1.0 @category models */
export type PrepareStep = (state: StepState) => StepChanges | undefined | Promise<StepChanges | undefined>

/** How long a stream stays open for background tasks, and when their results are answered. @since 0.1.0 @category models */
export interface UntilIdleOptions {
  /**
   * Milliseconds that the stream waits, between two turns, for tasks that still run; then it closes, and they go on. Default
   * 300 000.
   */
  readonly maxIdleMs?: number
  /** `ready`: whatever has settled is answered at once. `all`: when nothing runs any more. Default `ready`. */
  readonly batch?: "ready" | "all"
}

/** Who sees what goes into a run and comes out of it. @since 0.1.0 @category models */
export interface ProcessorSettings {
  /** See, change or stop what goes into the run and its model, in this order. Those of a run replace those of the agent. Default: none. */
  readonly inputProcessors?: ReadonlyArray<AnyProcessor>
  /** See, change, stop or judge what its model answers, in this order; likewise. Default: none. */
  readonly outputProcessors?: ReadonlyArray<AnyProcessor>
  /** How often a step that a processor rejected with `retry` is tried again; that is no step for `maxSteps`. Default 3. */
  readonly maxProcessorRetries?: number
}

/** Options of one run. @since 0.1.0 @category models */
export interface StreamOptions
  extends Omit<
      RunOptions,
      "tools" | "stopWhen" | "prepareStep" | "untilIdle" | "inputProcessors" | "outputProcessors"
    >,
    RunCallbacks,
    ProcessorSettings {
  /**
   * Keeps the stream open until the background tasks of the thread have settled, or of the run where there is no thread, and
   * the model has answered to their results: it is called again, in the same stream. Does nothing where no background tasks
   * are enabled. Only of `stream`: `generate` ignores a default, and refuses it otherwise. Default false.
   */
  readonly untilIdle?: boolean | UntilIdleOptions
  /** Stops the run when any of them says so; `maxSteps` holds beside it. */
  readonly stopWhen?: StopWhen | ReadonlyArray<StopWhen>
  /** Changes the next step: its model, messages, tools and settings. */
  readonly prepareStep?: PrepareStep
  /** Tools of this run beside the agent's; one of the same name takes the agent's place. */
  readonly tools?: ToolsInput
}

/** What a suspended call is resumed with, and options of the turn that answers to it. @since 0.1.0 @category models */
export interface ResumeStreamOptions extends StreamOptions {
  /** The run that made the call. */
  readonly runId: string
  /** The call. */
  readonly toolCallId: string
}

/** What an agent is made of, but for the agents below it. @since 0.1.0 @category models */
export interface AgentSettings extends ProcessorSettings {
  /** Default: the name. */
  readonly id?: string
  /** Default: the id. */
  readonly name?: string
  /** What the agent is for; tells another agent's model when to call it. */
  readonly description?: string
  /** The system prompt. */
  readonly instructions?: Dynamic<string>
  readonly model: Dynamic<ModelInput>
  readonly tools?: Dynamic<ToolsInput>
  /** How its runs remember; which thread a run belongs to, the run says. */
  readonly memory?: MemorySettings
  /** Which of its tools run in the background, in a container with `backgroundTasks`. Default: those that say so themselves. */
  readonly backgroundTasks?: AgentBackgroundTasks
  /** What every run has unless it says otherwise. */
  readonly defaultOptions?: StreamOptions
}

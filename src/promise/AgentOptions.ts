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
  StepState,
  ToolApprovalState
} from "../agent/RunOptions.js"
import type { AiSdkModel } from "../model/AiSdk.js"
import type { LanguageModel } from "../model/ModelPort.js"
import type { ModelId } from "../model/ModelRouter.js"
import type { Step } from "../output/FullOutput.js"
import type { AgentBackgroundTasks } from "./background.js"
import type { RunCallbacks } from "./callbacks.js"
import type { PromiseTool } from "./createTool.js"

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

/** Options of one run. @since 0.1.0 @category models */
export interface StreamOptions
  extends Omit<RunOptions, "tools" | "stopWhen" | "prepareStep" | "untilIdle" | "requireToolApproval">,
    RunCallbacks {
  /**
   * Keeps the stream open until the background tasks of the thread have settled, or of the run where there is no thread, and
   * the model has answered to their results: it is called again, in the same stream. Does nothing where no background tasks
   * are enabled. Only of `stream`: `generate` ignores a default, and refuses it otherwise. Default false.
   */
  readonly untilIdle?: boolean | UntilIdleOptions
  /** Stops the run when any of them says so; `maxSteps` holds beside it. */
  readonly stopWhen?: StopWhen | ReadonlyArray<StopWhen>
  /**
   * Whether somebody has to approve calls before they are executed: yes, no, or a function of the call. One that throws or rejects
   * means yes. What a tool says of itself (`requireApproval`) wins. What it said is stored with the call; where nobody gives the
   * function again, calls that come after a resumption ask. Default false.
   */
  readonly requireToolApproval?: boolean | ((state: ToolApprovalState) => boolean | Promise<boolean>)
  /** Changes the next step: its model, messages, tools and settings. */
  readonly prepareStep?: PrepareStep
  /** Tools of this run beside the agent's; one of the same name takes the agent's place. */
  readonly tools?: ToolsInput
}

/**
 * Which call is decided, and options of what follows: those that the run had hold still, but for functions and headers, and those
 * that are given here win.
 *
 * @since 0.1.0
 * @category models
 */
export interface ResumeStreamOptions extends StreamOptions {
  /** The run that made the call. May be left out where it is the only suspended run of the agent in the thread of `memory`. */
  readonly runId?: string
  /** The call. May be left out when only one call of the run waits. */
  readonly toolCallId?: string
}

/** The same for a call that is declined. @since 0.1.0 @category models */
export interface DeclineToolCallOptions extends ResumeStreamOptions {
  /** What the model is told. Default: that the call was not approved. */
  readonly reason?: string
}

/** What an agent is made of, but for the agents below it. @since 0.1.0 @category models */
export interface AgentSettings {
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

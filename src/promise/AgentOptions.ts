/**
 * What agents of plain TypeScript are made of, and what their runs may be told.
 *
 * @since 0.1.0
 */
import type { Candidate, GoalOptions as CoreGoalOptions, Verdict } from "../agent/goals/GoalOptions.js"
import type {
  StepChanges as CoreStepChanges,
  DynamicState,
  MemorySettings,
  RunOptions,
  StepState,
  ToolApprovalState
} from "../agent/RunOptions.js"
import type { StructuredOutput as CoreStructuredOutput } from "../agent/structuredOutput.js"
import type { AiSdkModel } from "../model/AiSdk.js"
import type { LanguageModel } from "../model/ModelPort.js"
import type { ModelId } from "../model/ModelRouter.js"
import type { Step } from "../output/FullOutput.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
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

/**
 * Asks a run for a value beside its text: `object` of its output, and partial values as the text comes.
 *
 * @since 0.1.0
 * @category models
 */
export interface StructuredOutput<S extends ToolSchema.Source = ToolSchema.Source>
  extends Omit<CoreStructuredOutput<S>, "model"> {
  /**
   * Writes the value from the final answer of the run, which then may be any text. It is retried as the other is. Default: the
   * answer itself is the value.
   */
  readonly model?: SingleModel
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

/** Options of one run. `S` is the schema of its structured value. @since 0.1.0 @category models */
export interface StreamOptions<S extends ToolSchema.Source = ToolSchema.Source>
  extends Omit<
      RunOptions,
      | "tools"
      | "stopWhen"
      | "prepareStep"
      | "untilIdle"
      | "structuredOutput"
      | "inputProcessors"
      | "outputProcessors"
      | "requireToolApproval"
    >,
    RunCallbacks,
    ProcessorSettings {
  /** Asks for a value that matches a schema. Default: the answer is text. */
  readonly structuredOutput?: StructuredOutput<S>
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

/**
 * Judges an answer without a model. `true` or a score of 1 passes. One that throws or rejects, or gives none of these, pauses the
 * objective.
 *
 * @since 0.1.0
 * @category models
 */
export type GoalScorer = (
  candidate: Candidate
) => Verdict | boolean | number | Promise<Verdict | boolean | number>

/**
 * How answers are judged. Without a judge and a scorer they are not: objectives are kept, and nothing else happens. With both an
 * answer has to pass both: the scorer is asked first, and the judge only about answers that the scorer has passed.
 *
 * @since 0.1.0
 * @category models
 */
export interface GoalOptions extends Omit<CoreGoalOptions, "judge" | "scorer" | "timeout"> {
  /**
   * The model that judges, or several to fall back on. Its calls are made again as those of the agent are, also when it gives no
   * verdict; what it uses counts into the run.
   */
  readonly judge?: ModelInput
  /** Judges without a model, instead of the judge or before it. */
  readonly scorer?: GoalScorer
  /** Milliseconds that one evaluation may take, retries included; then the objective is paused. Default: no limit. */
  readonly timeoutMs?: number
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
  /** How its answers are judged in threads that have an objective: see `setObjective`. Default: they are not. */
  readonly goal?: GoalOptions
  /** What every run has unless it says otherwise. */
  readonly defaultOptions?: StreamOptions
}

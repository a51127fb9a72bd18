/**
 * What one run of an agent may be told.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { LanguageModel, ModelSettings, ToolChoice } from "../model/ModelPort.js"
import type { Step } from "../output/FullOutput.js"
import type { Input } from "../protocol/Conversation.js"
import type { Message } from "../protocol/Message.js"
import type { JsonValue, ProviderMetadata } from "../protocol/safeJson.js"
import type { WhenBusy } from "../storage/ThreadStore.js"
import type { ClientTool } from "../tool/clientTools.js"
import type * as Tool from "../tool/Tool.js"
import type { RequestContext } from "../tool/ToolContext.js"
import type { Processor } from "./processors/definition.js"
import type { StructuredOutput } from "./structuredOutput.js"

export type { ClientTool } from "../tool/clientTools.js"
export type { RequestContext } from "../tool/ToolContext.js"

/**
 * Decides after a step that wants to go on whether the run stops there. It sees the finished steps, the last one included.
 * One that throws or dies fails the run with `InvalidConfiguration`.
 *
 * @since 0.1.0
 * @category models
 */
export type StopCondition = (state: {
  readonly steps: ReadonlyArray<Step>
}) => boolean | Effect.Effect<boolean>

/**
 * A model, or several: the next one takes over when a call of the one before has failed for good and nothing of it was
 * shown; the run then stays with it. `maxRetries` of an entry wins over the one of the run.
 *
 * @since 0.1.0
 * @category models
 */
export type Models =
  | LanguageModel
  | ReadonlyArray<LanguageModel | { readonly model: LanguageModel; readonly maxRetries?: number }>

/** What a function that makes a part of an agent for one run is told. @since 0.1.0 @category models */
export interface DynamicState {
  readonly requestContext: RequestContext
}

/**
 * A value, or a function that makes it, once for each run. One that throws or fails fails the run with
 * `InvalidConfiguration` before any chunk.
 *
 * @since 0.1.0
 * @category models
 */
export type Dynamic<A> = A | ((state: DynamicState) => A | Effect.Effect<A, unknown>)

/** What `prepareStep` is told. @since 0.1.0 @category models */
export interface StepState {
  /** 0-based. */
  readonly stepNumber: number
  /** The finished steps. */
  readonly steps: ReadonlyArray<Step>
  /** The conversation as the model is about to be told it, without the instructions. */
  readonly messages: ReadonlyArray<Message>
  /** The model that is about to be asked. */
  readonly model: LanguageModel
  readonly requestContext: RequestContext
}

/** What `prepareStep` may change, for this one step. What is left out stays as it is. @since 0.1.0 @category models */
export interface StepChanges {
  readonly model?: Models
  /** The conversation that the model is told instead. */
  readonly messages?: Input
  readonly instructions?: string
  /** Tools beside the others; one of the same name takes its place. */
  readonly tools?: ReadonlyArray<Tool.Tool>
  readonly activeTools?: ReadonlyArray<string>
  readonly toolChoice?: ToolChoice
  readonly modelSettings?: ModelSettings
  readonly providerOptions?: ProviderMetadata
}

/**
 * Called before each step. One that throws, fails or dies, or gives what cannot work, fails the run with
 * `InvalidConfiguration`.
 *
 * @since 0.1.0
 * @category models
 */
export type PrepareStep = (
  state: StepState
) => StepChanges | undefined | Effect.Effect<StepChanges | undefined, unknown>

/**
 * How long things may take; a number is milliseconds. What has no limit here has none. Those of the model fail its call
 * with a `ModelError` of reason `timeout`, which is tried again as others are; the others fail the run with `RunTimedOut`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Timeouts {
  /** From a model call to its first content: a delta, a call, a source, a file. What a provider says before does not count. */
  readonly firstContent?: Duration.DurationInput
  /** From one part of an answer to the next, once there is content. The time for which readers hold the model does not count. */
  readonly betweenChunks?: Duration.DurationInput
  /** One step: the model, its retries, and the tools. */
  readonly step?: Duration.DurationInput
  /** The whole run. */
  readonly run?: Duration.DurationInput
}

/** How a stream is kept open until its tasks are answered. @since 0.1.0 @category models */
export interface UntilIdleOptions {
  /**
   * How long the stream waits between two turns without hearing of a task; a number is milliseconds. Then it closes, and the
   * tasks go on. Default 5 minutes.
   */
  readonly maxIdle?: Duration.DurationInput
  /**
   * `ready`: the model is called again as soon as something has settled. `all`: when everything has. Default `ready`.
   */
  readonly batch?: "ready" | "all"
}

/** What a run's policy of approvals is told of a call. @since 0.1.0 @category models */
export interface ToolApprovalState {
  readonly toolName: string
  readonly toolCallId: string
  /** As the model has written them. */
  readonly args: unknown
  readonly requestContext: RequestContext
}

/** Says whether somebody has to approve a call. @since 0.1.0 @category models */
export type ToolApprovalPolicy = (state: ToolApprovalState) => boolean | Effect.Effect<boolean, unknown>

/** Settings of an agent that one run may change. @since 0.1.0 @category models */
export interface Defaults {
  /**
   * Keeps the stream open until no task of its scope runs and every outcome is answered: the model is called again, in the
   * same stream, with what has settled. The scope is the agent with the thread and its resource; without a thread, the tasks
   * of this run. Does nothing where no background tasks are enabled. Default false.
   */
  readonly untilIdle?: boolean | UntilIdleOptions
  /** Model calls at most, retries not counted; where answers are judged, from one judged answer to the next. Default 5. */
  readonly maxSteps?: number
  /** Stops the run when any of them says so; `maxSteps` holds beside it. */
  readonly stopWhen?: StopCondition | ReadonlyArray<StopCondition>
  /** Changes the next step: its model, messages, tools and settings. */
  readonly prepareStep?: PrepareStep
  /** Tools of one step that run at once; the others wait in call order. Default 10. */
  readonly toolCallConcurrency?: number
  /**
   * Whether somebody has to approve calls before they are executed: yes, no, or a function of the call. One that fails, throws
   * or dies means yes. What a tool says of itself (`requireApproval`) wins. What it said is stored with the call; of a function
   * nobody else has, calls that come after a resumption ask, unless it is given again. Default false.
   */
  readonly requireToolApproval?: boolean | ToolApprovalPolicy
  /** Names of the tools that the model may call; the others are as if they were not there. Default: all. */
  readonly activeTools?: ReadonlyArray<string>
  /** Default: the model's own, which is `auto`. */
  readonly toolChoice?: ToolChoice
  readonly modelSettings?: ModelSettings
  /** By provider name, for what only that provider knows. */
  readonly providerOptions?: ProviderMetadata
  /** How often a model call that failed is made again, as long as nothing of it was shown. Default 2. */
  readonly maxRetries?: number
  /** See, change or stop what goes into the run and its model, in this order. Those of a run replace those of the agent. Default: none. */
  readonly inputProcessors?: ReadonlyArray<Processor>
  /** See, change, stop or judge what its model answers, in this order; likewise. Default: none. */
  readonly outputProcessors?: ReadonlyArray<Processor>
  /** How often a step that a processor rejected with `retry` is tried again; that is no step for `maxSteps`. Default 3. */
  readonly maxProcessorRetries?: number
  /** Default: no limits. */
  readonly timeouts?: Timeouts
  /** How deep agents may call agents below this one. Default 8. */
  readonly maxDepth?: number
  /** Whether the provider's own data comes as `raw` chunks. Default false. */
  readonly includeRawChunks?: boolean
  /**
   * Whether `step-start` carries the request body as the provider sent it. Default false: it holds the whole prompt, so
   * that a stream with it grows with the square of its steps, and whoever reads the stream reads the instructions.
   */
  readonly includeRequestBody?: boolean
  /** Asks for a value that matches a schema. Default: the answer is text. */
  readonly structuredOutput?: StructuredOutput
}

/** How an agent remembers. @since 0.1.0 @category models */
export interface MemorySettings {
  /**
   * Messages of the thread that a run is told, besides its own: the newest, and those before them that belong to the turn
   * in which they begin. `false` or 0: none. Default 40.
   */
  readonly lastMessages?: number | false
  /**
   * What a run does while another run of this process speaks in its thread. `queue`: it starts, and waits for its turn before it
   * recalls the thread, first come, first served; `timeouts.run` counts that time. `reject`: it fails with `ThreadBusy`.
   * `parallel`: it recalls what there is, and both speak at once; their messages stand in the thread apart. A thread whose runs
   * are suspended, or wait for background tasks, is not busy. Default `queue`.
   */
  readonly whenBusy?: WhenBusy
}

/** The thread that a run belongs to. It is made when there is none. @since 0.1.0 @category models */
export interface MemoryOptions extends MemorySettings {
  /** Its id; `title` and `metadata` are for a thread that is made. */
  readonly thread:
    | string
    | {
        readonly id: string
        readonly title?: string
        readonly metadata?: { readonly [key: string]: JsonValue }
      }
  /** Whose thread it is. A thread of another resource is as good as none: `ThreadNotFound`. */
  readonly resource: string
  /**
   * Goes on behind the message of this id: what the thread holds behind it is deleted when the run has begun, so that an answer can
   * be made again. A thread without it stays as it is.
   */
  readonly after?: string
}

/** Options of one run. What is given here wins over the agent's own. @since 0.1.0 @category models */
export interface RunOptions<
  Tools extends ReadonlyArray<Tool.Any> = ReadonlyArray<Tool.Tool>,
  Memory extends MemoryOptions | undefined = MemoryOptions
> extends Defaults {
  /** Tools of this run beside the agent's; one of the same name takes the agent's place. */
  readonly tools?: Tools
  /**
   * Tools that whoever asks for the run executes, by name: the run ends with their calls, as with those of any tool without
   * `execute`. One that has the name of another tool of the run is refused. `activeTools` leave none of them out.
   */
  readonly clientTools?: Readonly<Record<string, ClientTool>>
  /** Replaces the agent's instructions. */
  readonly instructions?: string
  /** Values of this request, for tools, `prepareStep` and whatever of the agent is a function. A `Map` is used as it is. */
  readonly requestContext?: RequestContext | { readonly [key: string]: unknown }
  /** Tells the model what the thread holds, and stores what this run adds to it. */
  readonly memory?: Memory
  /**
   * Whose the run is, stored with it while it is suspended and with each of its tasks; who decides about a call by a `resource`
   * finds calls of this resource only. Default: that of `memory`, and another one is refused.
   */
  readonly resource?: string
  /**
   * `false`: nothing that was read is kept. The output has one reader, which holds the run: its model is at most 48 parts
   * ahead of what the reader takes at once (32 chunks of a web stream, 64 of an Effect stream), and a reader that leaves
   * stops it. Of text and reasoning the first 2^20 characters of each answer are kept, for the next prompt and for `finish`.
   * Default true.
   */
  readonly replay?: boolean
  /** Default: a fresh id. */
  readonly runId?: string
  /** Stops the run: provider and tools within 50 ms, then `abort` and `finish`. */
  readonly abortSignal?: AbortSignal
}

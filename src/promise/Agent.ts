/**
 * An agent for plain TypeScript.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { defaultFields, refuseUnknown, runFields, settingsOf } from "../agent/checkOptions.js"
import { type Agent as CoreAgent, isLanguageModel, make as makeAgent } from "../agent/definition.js"
import type { RunOptions, StopCondition } from "../agent/RunOptions.js"
import { record } from "../agent/recording.js"
import * as AiSdk from "../model/AiSdk.js"
import type { LanguageModel } from "../model/ModelPort.js"
import type { FullOutput, Step } from "../output/FullOutput.js"
import { failureOf } from "../output/RunRecord.js"
import type { Input } from "../protocol/Conversation.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import type * as Tool from "../tool/Tool.js"
import { announceEnd, callbackFields, observer, type RunCallbacks } from "./callbacks.js"
import type { PromiseTool } from "./createTool.js"
import { consoleLayer } from "./logging.js"
import { ModelOutput } from "./ModelOutput.js"
import * as Runs from "./runs.js"

/** Tools by the name that the model calls them with. @since 0.1.0 @category models */
export type ToolsInput = Readonly<Record<string, PromiseTool>>

/**
 * Decides after a step that wants to go on whether the run stops there. It sees the finished steps, the last one included.
 * One that throws fails the run.
 *
 * @since 0.1.0
 * @category models
 */
export type StopWhen = (state: { readonly steps: ReadonlyArray<Step> }) => boolean | Promise<boolean>

/** Options of one run. @since 0.1.0 @category models */
export interface StreamOptions extends Omit<RunOptions, "tools" | "stopWhen">, RunCallbacks {
  /** Stops the run when any of them says so; `maxSteps` holds beside it. */
  readonly stopWhen?: StopWhen | ReadonlyArray<StopWhen>
  /** Tools of this run beside the agent's; one of the same name takes the agent's place. */
  readonly tools?: ToolsInput
}

/** What an agent is made of. @since 0.1.0 @category models */
export interface AgentOptions {
  /** Default: the name. */
  readonly id?: string
  /** Default: the id. */
  readonly name?: string
  readonly description?: string
  /** The system prompt. */
  readonly instructions?: string
  /** A model of the AI SDK (specification V2, V3 or V4), or a `LanguageModel` of eddy. */
  readonly model: AiSdk.AiSdkModel | LanguageModel
  readonly tools?: ToolsInput
  /** What every run has unless it says otherwise. */
  readonly defaultOptions?: StreamOptions
}

const agentFields = ["id", "name", "description", "instructions", "model", "tools", "defaultOptions"]

const toModel = (id: string, model: AgentOptions["model"] | undefined): LanguageModel => {
  if (typeof model !== "object" || model === null) {
    throw new InvalidConfiguration({
      field: "model",
      message: `Agent "${id}" has no model. Give it a model of an AI SDK provider package, for example openai("gpt-5").`
    })
  }
  return isLanguageModel(model) ? model : AiSdk.make(model)
}

const toTools = (tools: ToolsInput | undefined): ReadonlyArray<Tool.Tool> =>
  Object.entries(tools ?? {}).map(([name, tool]) => {
    if (typeof tool?.named === "function") return tool.named(name)
    throw new InvalidConfiguration({
      field: `tools.${name}`,
      message: `\`tools.${name}\` is no tool. Make it with createTool({ id, inputSchema, execute }).`
    })
  })

const toStopCondition =
  (condition: StopWhen): StopCondition =>
  state => {
    const verdict = condition(state)
    return typeof verdict === "boolean" ? verdict : Effect.promise(() => Promise.resolve(verdict))
  }

const toRunOptions = (options: StreamOptions): RunOptions<ReadonlyArray<Tool.Tool>> => {
  const { onAbort, onChunk, onError, onFinish, onStepFinish, stopWhen, tools, ...rest } = options
  const conditions: ReadonlyArray<StopWhen> =
    stopWhen === undefined ? [] : typeof stopWhen === "function" ? [stopWhen] : stopWhen
  return {
    ...rest,
    ...(stopWhen === undefined ? {} : { stopWhen: conditions.map(toStopCondition) }),
    tools: toTools(tools)
  }
}

/** Of agents that belong to no container. Holds nothing that would have to be disposed of. */
const ownRuntime = ManagedRuntime.make(consoleLayer)

/**
 * An agent. It works on its own; in a container (`Eddy`) it shares the container's runtime and ends with it.
 *
 * The constructor throws `InvalidConfiguration`, which names the field and the remedy, when the agent cannot work.
 *
 * @since 0.1.0
 * @category models
 */
export class Agent {
  readonly id: string
  readonly name: string
  readonly description: string | undefined
  readonly #core: CoreAgent
  readonly #defaultOptions: StreamOptions
  #runs: Runs.Runs = Runs.make(ownRuntime)

  constructor(options: AgentOptions) {
    const { defaultOptions = {}, description, instructions, model, tools } = options
    const id = options.id ?? options.name ?? ""
    refuseUnknown(`Agent "${id}"`, options, agentFields)
    refuseUnknown(`\`defaultOptions\` of agent "${id}"`, defaultOptions, streamFields)
    // Wrong defaults are found here, and not by the first run.
    settingsOf(toRunOptions(defaultOptions), {})
    this.#core = makeAgent({
      id,
      ...(options.name === undefined ? {} : { name: options.name }),
      ...(description === undefined ? {} : { description }),
      ...(instructions === undefined ? {} : { instructions }),
      model: toModel(id, model),
      tools: toTools(tools)
    })
    this.#defaultOptions = defaultOptions
    this.id = id
    this.name = this.#core.name
    this.description = description
  }

  /** Runs in somebody else's runtime from now on. */
  static readonly adopt = (agent: Agent, runs: Runs.Runs): void => {
    agent.#runs = runs
  }

  /**
   * Starts a run and gives its output at once. Rejects with `InvalidConfiguration` or `InvalidMessage` when options or
   * messages are wrong; what happens to the run later is in its output.
   */
  async stream(messages: Input, options: StreamOptions = {}): Promise<ModelOutput> {
    refuseUnknown("A run", options, streamFields)
    const merged: StreamOptions = { ...this.#defaultOptions, ...options }
    const runs = this.#runs
    const observe = observer(merged, runs.log)
    const { abort, recorded } = await runs.start(record(this.#core, messages, toRunOptions(merged), observe))
    announceEnd(recorded, merged, runs.log)
    return new ModelOutput(recorded, abort, runs.log)
  }

  /** Runs to the end. Rejects with the run's error when it failed or was aborted; whoever gets it needs no log of it. */
  async generate(messages: Input, options: StreamOptions = {}): Promise<FullOutput> {
    const { onError = ignore } = this.#defaultOptions
    const output = await this.stream(messages, { onError, ...options })
    const full = await output.getFullOutput()
    const error = failureOf(full)
    if (error !== undefined) throw error
    return full
  }
}

const ignore = (): void => undefined

const streamFields: ReadonlyArray<string> = [...defaultFields, ...runFields, ...callbackFields]

/**
 * An agent for plain TypeScript.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import { checkMemory, given, settingsOf } from "../agent/checkOptions.js"
import { type Agent as CoreAgent, make as makeAgent } from "../agent/definition.js"
import type {
  ObjectiveThread,
  SetObjectiveOptions,
  UpdateObjectiveOptions
} from "../agent/goals/objectives.js"
import { RunControl } from "../agent/loop/run.js"
import { agentPartKinds, agentPlaces } from "../agent/optionKinds.js"
import { type Recording, record } from "../agent/recording.js"
import type { OutputOf } from "../agent/structuredOutput.js"
import { asTool } from "../agent/subAgent.js"
import type { Decision } from "../agent/suspension/decisions.js"
import type { SuspendedFilter, SuspendedRun } from "../agent/suspension/finding.js"
import type { Executor } from "../background/Executor.js"
import type { FullOutput } from "../output/FullOutput.js"
import { failureOf } from "../output/RunRecord.js"
import type { Input } from "../protocol/Conversation.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { lazily } from "../protocol/lazily.js"
import type { Objective } from "../protocol/Objective.js"
import {
  checkOptions,
  isOptions,
  type Kind,
  type Known,
  object,
  read,
  shown,
  text,
  wrongValue
} from "../protocol/options.js"
import * as memoryRuns from "../storage/memoryRuns.js"
import * as RunStore from "../storage/RunStore.js"
import type { ThreadStore } from "../storage/ThreadStore.js"
import type * as Tool from "../tool/Tool.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import {
  type AgentStepInput,
  type AgentStepOptions,
  type AgentStepOutput,
  agentStep
} from "../workflow/agentStep.js"
import type { Step } from "../workflow/definition.js"
import type {
  AgentSettings,
  DeclineToolCallOptions,
  ResumeStreamOptions,
  StreamOptions
} from "./AgentOptions.js"
import { toAgentBackground } from "./background.js"
import { type Tools, withBelow, workflowTools } from "./below.js"
import { announceEnd, observer } from "./callbacks.js"
import { toGoal } from "./goal.js"
import { ownRuntime } from "./logging.js"
import { ModelOutput } from "./ModelOutput.js"
import { toProcessors } from "./processors.js"
import * as Runs from "./runs.js"
import { decisionOf, streamOptions, toDynamic, toModels, toRunOptions, toTools } from "./translate.js"
import type { AnyWorkflow } from "./Workflow.js"

/** What an agent is made of. @since 0.1.0 @category models */
export interface AgentOptions extends AgentSettings {
  /** Agents that this one's model may call, each as a tool that is called `agent-` and the name here. */
  readonly agents?: Readonly<Record<string, Agent>>
  /** Workflows that its model may start, each as a tool that is called `workflow-` and the name here. */
  readonly workflows?: Readonly<Record<string, AnyWorkflow>>
}

const known: Known = {
  kinds: {
    ...agentPartKinds,
    agents: object,
    workflows: object,
    inputProcessors: read,
    outputProcessors: read,
    maxProcessorRetries: read,
    defaultOptions: object
  } satisfies Record<keyof AgentOptions, Kind>,
  places: agentPlaces("defaultOptions.")
}

const missingModel = (id: string): InvalidConfiguration =>
  new InvalidConfiguration({
    field: "model",
    message: `Agent "${id}" has no model. Give it one of an AI SDK provider package, for example openai("gpt-5"), or its name: "openai/gpt-5".`
  })

const neverIdle = new InvalidConfiguration({
  field: "untilIdle",
  message:
    "`generate` is one turn, and cannot wait until its tasks are answered. Use stream with `untilIdle`, or leave it out."
})

/** Loaded when somebody decides about a call first, or asks what waits. */
const deciding = lazily(() => import("../agent/suspension/deciding.js"))
const finding = lazily(() => import("../agent/suspension/finding.js"))

/** Loaded when background tasks are to be run. */
const executing = lazily(() => import("../agent/tasks/taskExecutor.js"))

/** Loaded when somebody asks for an objective. */
const objectives = lazily(() => import("../agent/goals/objectives.js"))

const idOf = (field: keyof ResumeStreamOptions, id: unknown): string => {
  if (typeof id === "string" && id !== "") return id
  throw wrongValue(field, id, "Give the one that the chunks of the suspended call have.")
}

/** What the model of an agent may call that is more than a tool. */
interface Below {
  readonly agents: Readonly<Record<string, Agent>>
  readonly workflows: Readonly<Record<string, AnyWorkflow>>
}

/** Of agents that belong to no container: a place for the suspended runs of one agent, which are gone with it. */
const ownHost = (): Runs.Host => {
  const store = RunStore.make(memoryRuns.make(Clock.make()))
  return { runFork: Runtime.runFork(Runtime.provideService(ownRuntime, RunStore.RunStore, store)) }
}

/**
 * An agent. It works on its own; in a container (`Eddy`) it shares the container's runtime and storage, and ends with it.
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
  readonly #below: Below
  #runs: Runs.Runs = Runs.make(ownHost())

  constructor(options: AgentOptions) {
    if (!isOptions(options)) throw wrongValue("options", options, "Give { id, model }.")
    const {
      agents = {},
      backgroundTasks,
      defaultOptions = {},
      description,
      goal,
      inputProcessors,
      instructions,
      maxProcessorRetries,
      memory,
      model,
      outputProcessors,
      tools,
      workflows = {}
    } = options
    const id = options.id ?? options.name ?? ""
    checkOptions(`Agent ${shown(id)}`, options, known)
    checkOptions("A run", defaultOptions, streamOptions, "defaultOptions")
    if (defaultOptions.memory !== undefined) checkMemory(defaultOptions.memory)
    // Wrong defaults are found here, and not by the first run.
    settingsOf(toRunOptions(defaultOptions), {})
    if (model === undefined || model === null) throw missingModel(id)
    this.#core = makeAgent({
      id,
      ...(options.name === undefined ? {} : { name: options.name }),
      ...(description === undefined ? {} : { description }),
      ...(instructions === undefined ? {} : { instructions: toDynamic(instructions, text => text) }),
      ...(memory === undefined ? {} : { memory }),
      ...(backgroundTasks === undefined ? {} : { backgroundTasks: toAgentBackground(backgroundTasks) }),
      ...(goal === undefined ? {} : { goal: toGoal(goal) }),
      ...toProcessors({ inputProcessors, outputProcessors }),
      ...(maxProcessorRetries === undefined ? {} : { maxProcessorRetries }),
      model: toDynamic(model, toModels),
      tools: withBelow(toDynamic(tools === undefined ? {} : tools, toTools), [
        ...agentTools(agents),
        ...workflowTools(workflows)
      ])
    })
    this.#defaultOptions = defaultOptions
    this.#below = { agents, workflows }
    this.id = id
    this.name = this.#core.name
    this.description = description
  }

  /** Runs in somebody else's runtime from now on. */
  static readonly adopt = (agent: Agent, runs: Runs.Runs): void => {
    agent.#runs = runs
  }

  /** The agents and workflows that its model may call, by the names that it was given. */
  static readonly below = (agent: Agent): Below => agent.#below

  /** Who runs the background tasks of its tools. */
  static readonly executors = (agent: Agent): Effect.Effect<ReadonlyMap<string, Executor>> =>
    Effect.flatMap(executing, ({ taskExecutors }) => taskExecutors(agent.#core))

  /** Callbacks, thread and tools of its default options are its own runs' affair. */
  static readonly #optionsBelow = (agent: Agent) => {
    const {
      abortSignal: _,
      memory: __,
      requestContext: ___,
      resource: ____,
      runId: _____,
      untilIdle: ______,
      tools: _______,
      ...options
    } = toRunOptions(agent.#defaultOptions)
    return options
  }

  /** An agent as the tool of another one. */
  static readonly toTool = (agent: Agent, name: string): Tool.Tool => {
    const tool = asTool(agent.#core, { name: `agent-${name}`, options: Agent.#optionsBelow(agent) })
    return { ...tool, aliases: [...tool.aliases, name, agent.id] }
  }

  /** An agent as a step of a workflow, with its default options as when it is a tool. */
  static readonly toStep = (
    agent: Agent,
    options: AgentStepOptions
  ): Step<string, AgentStepInput, AgentStepOutput, unknown> =>
    agentStep(agent.#core, { ...options, options: Agent.#optionsBelow(agent) })

  /**
   * Starts a run and gives its output at once. Rejects with `InvalidConfiguration` or `InvalidMessage` when options or
   * messages are wrong; what happens to the run later is in its output.
   */
  stream<S extends ToolSchema.Source = never>(
    messages: Input,
    options: StreamOptions<S> = {}
  ): Promise<ModelOutput<OutputOf<S>>> {
    return this.#stream(messages, this.#defaultOptions, options)
  }

  /** `stream` with `untilIdle: true`, unless `untilIdle` is given. */
  streamUntilIdle<S extends ToolSchema.Source = never>(
    messages: Input,
    options: StreamOptions<S> = {}
  ): Promise<ModelOutput<OutputOf<S>>> {
    return this.#stream(messages, { ...this.#defaultOptions, untilIdle: true }, options)
  }

  /**
   * Answers a call that waits: with `data`, which its tool is executed again with, or with `{ approved, reason? }` where it waits
   * for approval. The suspended run goes on under its id, from the storage: also after a restart. When other calls of it still
   * wait it ends with reason `suspended` again; when all are decided, the model is asked again. Of a task in the background it
   * streams what happens to it: with `untilIdle` also the turn that answers to its result.
   *
   * Rejects, and leaves the call as it was, with `RunNotFound` when no such run waits, with `ToolCallNotPending` when it does not
   * wait for this call, with `InvalidResumeData` when the data is wrong. A task that was decided already, or never waited, is
   * `ToolCallNotPending` too; of tasks it also rejects with `TaskExecutorNotFound`, and with `InvalidTaskState` after the shutdown.
   */
  resumeStream(data: unknown, options: ResumeStreamOptions): Promise<ModelOutput> {
    return this.#decide({ _tag: "Resume", data }, options)
  }

  /** Approves a call that waits for approval: it is executed, once. Goes on, and rejects, as `resumeStream` does. */
  approveToolCall(options: ResumeStreamOptions): Promise<ModelOutput> {
    return this.#decide({ _tag: "Approve" }, options)
  }

  /**
   * Declines a call that waits: it is not executed, and the model is told the reason. Goes on, and rejects, as `resumeStream`
   * does.
   */
  async declineToolCall(options: DeclineToolCallOptions): Promise<ModelOutput> {
    const { reason, ...rest } = decisionOf(options)
    if (reason !== undefined && !text.accepts(reason)) throw wrongValue("reason", reason, "Give a string.")
    return this.#decide({ _tag: "Decline", reason }, rest)
  }

  /**
   * The runs of this agent that wait for a decision, the oldest first, each with the calls that wait. The filter goes to the
   * store: runs of others are not read.
   */
  listSuspendedRuns(options: SuspendedFilter = {}): Promise<ReadonlyArray<SuspendedRun>> {
    return this.#runs.ask(
      Effect.flatMap(finding, ({ listSuspended }) => listSuspended(this.#core.id, options))
    )
  }

  async #decide(decision: Decision, options: ResumeStreamOptions): Promise<ModelOutput> {
    const { runId, toolCallId, ...rest } = decisionOf(options)
    const call = {
      ...(runId === undefined ? {} : { runId: idOf("runId", runId) }),
      ...(toolCallId === undefined ? {} : { toolCallId: idOf("toolCallId", toolCallId) })
    }
    const defaults = toRunOptions(this.#defaultOptions)
    return this.#start(this.#defaultOptions, rest, (merged, observe, control) => {
      const { tools = [] } = toRunOptions(merged)
      const options = { ...toRunOptions(given(rest)), tools, ...call }
      return Effect.flatMap(deciding, ({ recordDecided }) =>
        recordDecided(this.#core, decision, options, defaults, observe, control)
      )
    })
  }

  /**
   * Runs to the end. Rejects with the run's error when it failed or was aborted, and with `StructuredOutputError` when it gave no
   * valid `structuredOutput` under the strategy `strict`; whoever gets it needs no log of it.
   */
  async generate<S extends ToolSchema.Source = never>(
    messages: Input,
    options: StreamOptions<S> = {}
  ): Promise<FullOutput<OutputOf<S>>> {
    checkOptions("A run", options, streamOptions)
    if (options.untilIdle !== undefined && options.untilIdle !== false) throw neverIdle
    const { onError = ignore, untilIdle: _, ...defaults } = this.#defaultOptions
    const output = await this.#stream<OutputOf<S>>(messages, { ...defaults, onError }, options)
    const full = await ModelOutput.generated(output)
    const error = failureOf(full)
    if (error !== undefined) throw error
    return full
  }

  /**
   * Sets what the agent works towards in a thread, which is made when there is none: each answer there is judged from then on, as
   * `goal` says. It takes the place of another objective. Rejects with `InvalidConfiguration` when the text is empty, and with
   * `ThreadNotFound` when the thread is another resource's.
   */
  setObjective(objective: string, options: SetObjectiveOptions): Promise<Objective> {
    return this.#runs.askThreads(
      Effect.flatMap(objectives, ({ setObjective }) => setObjective(this.#core, objective, options))
    )
  }

  /** The objective of a thread; `undefined` when none is set. Rejects with `ThreadNotFound`. */
  getObjective(options: ObjectiveThread): Promise<Objective | undefined> {
    return this.#runs.askThreads(
      Effect.flatMap(objectives, ({ getObjective }) =>
        Effect.map(getObjective(this.#core, options), Option.getOrUndefined)
      )
    )
  }

  /**
   * Pauses an objective, resumes it (`status: "active"`), or gives it another budget. Rejects with `ObjectiveNotFound` when none
   * is set, with `InvalidConfiguration` when it would be active without a run left, and with `ThreadNotFound`.
   */
  updateObjectiveOptions(options: UpdateObjectiveOptions): Promise<Objective> {
    return this.#runs.askThreads(
      Effect.flatMap(objectives, ({ updateObjectiveOptions }) => updateObjectiveOptions(this.#core, options))
    )
  }

  /** Takes the objective of a thread away. Whether there was one. Rejects with `ThreadNotFound`. */
  clearObjective(options: ObjectiveThread): Promise<boolean> {
    return this.#runs.askThreads(
      Effect.flatMap(objectives, ({ clearObjective }) => clearObjective(this.#core, options))
    )
  }

  #stream<A>(messages: Input, defaults: StreamOptions, options: StreamOptions): Promise<ModelOutput<A>> {
    return this.#start(defaults, options, (merged, observe, control) =>
      record(this.#core, messages, toRunOptions(merged), observe, control)
    )
  }

  async #start<A>(defaults: StreamOptions, options: StreamOptions, begin: Begin): Promise<ModelOutput<A>> {
    checkOptions("A run", options, streamOptions)
    const merged: StreamOptions = { ...defaults, ...given(options) }
    const runs = this.#runs
    const control = new RunControl(merged.onError !== undefined)
    const begun = begin(merged, observer(merged, runs.log), control)
    const { abort, recorded } = await runs.start(begun, control.abort)
    announceEnd(recorded, merged, runs.log)
    return new ModelOutput(recorded, abort, runs.log)
  }
}

type Begin = (
  options: StreamOptions,
  observe: ReturnType<typeof observer>,
  control: RunControl
) => Effect.Effect<Recording, unknown, ThreadStore>

const ignore = (): void => undefined

/** The agents that an agent may call. */
const agentTools = (agents: NonNullable<AgentOptions["agents"]>): Tools =>
  Object.entries(agents).map(([name, agent]) => {
    if (agent instanceof Agent) return Agent.toTool(agent, name)
    throw new InvalidConfiguration({
      field: `agents.${name}`,
      message: `\`agents.${name}\` is no agent. Make it with new Agent({ id, model }).`
    })
  })

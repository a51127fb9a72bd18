/**
 * The container: agents and workflows by name, one runtime for all of them, and its end.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import type { Settings } from "../background/settings.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { squash } from "../protocol/foreignValue.js"
import { logError } from "../protocol/logging.js"
import { at, checkOptions, type Kind, type Known, object, read } from "../protocol/options.js"
import { messageOf } from "../protocol/safeJson.js"
import { Agent } from "./Agent.js"
import { BackgroundTaskManager } from "./BackgroundTaskManager.js"
import { type BackgroundTasksOptions, toSettings } from "./backgroundTasks.js"
import type { Storage } from "./InMemoryStore.js"
import { consoleLayer, type EddyLogger, loggerKind, loggerLayer } from "./logging.js"
import * as Runs from "./runs.js"
import { Threads } from "./Threads.js"
import * as Tasks from "./tasks.js"
import { type TelemetryOptions, telemetryLayer } from "./telemetry.js"
import { type AnyWorkflow, checkWorkflow, Workflow } from "./Workflow.js"

export type { EddyLogger } from "./logging.js"

const layerOf = (storage: Storage): Storage["layer"] => {
  if (Layer.isLayer(storage?.layer)) return storage.layer
  throw new InvalidConfiguration({
    field: "storage",
    message: "`storage` is no store. Give one, for example new InMemoryStore()."
  })
}

const missingStorage = new InvalidConfiguration({
  field: "storage",
  message:
    "Background tasks are kept in a store. Give the container one, for example new LibSQLStore({ url }), or new InMemoryStore() where they may be gone with the process."
})

/** What wrong agents are refused with. */
const checkAgents = (agents: Readonly<Record<string, Agent>>): void => {
  for (const [name, agent] of Object.entries(agents)) {
    if (agent instanceof Agent) continue
    throw new InvalidConfiguration({
      field: `agents.${name}`,
      message: `\`agents.${name}\` is no agent. Make it with new Agent({ id, model }).`
    })
  }
}

/** A runtime with background tasks. It begins at once, with what a dead process has left. */
const startTasks = (
  settings: Settings,
  agents: Readonly<Record<string, Agent>>,
  stores: Storage["layer"],
  logging: Layer.Layer<never>,
  telemetry: TelemetryOptions["layer"]
) => {
  const runtime = ManagedRuntime.make(
    Layer.provideMerge(Tasks.layer(settings, agents), Layer.mergeAll(logging, telemetry, stores))
  )
  runtime.runFork(Effect.void).addObserver(exit => {
    if (Exit.isSuccess(exit) || Cause.isInterruptedOnly(exit.cause)) return
    const message = `The container cannot be used: ${messageOf(squash(exit.cause))}`
    Effect.runFork(Effect.provide(logError(message, exit.cause), logging))
  })
  return runtime
}

const known: Known = {
  kinds: {
    agents: object,
    workflows: object,
    logger: loggerKind,
    storage: read,
    backgroundTasks: read,
    telemetry: read
  } satisfies Record<keyof EddyOptions<Readonly<Record<string, Agent>>>, Kind>,
  places: {
    tools: "Tools belong to an agent: `new Agent({ tools })`.",
    model: "A model belongs to an agent: `new Agent({ model })`.",
    memory: at("storage"),
    store: at("storage")
  }
}

type Workflows = Readonly<Record<string, AnyWorkflow>>

/** What a container holds. @since 0.1.0 @category models */
export interface EddyOptions<
  Agents extends Readonly<Record<string, Agent>>,
  Flows extends Workflows = Workflows
> {
  /** By the name that {@link Eddy.getAgent} finds them with. */
  readonly agents?: Agents
  /** By the name that {@link Eddy.getWorkflow} finds them with. */
  readonly workflows?: Flows
  /** Default: the console; what went wrong goes to standard error. */
  readonly logger?: EddyLogger
  /** Where threads, background tasks and suspended runs are kept. Without it runs with `memory` are refused. */
  readonly storage?: Storage
  /** How tools run in the background. Default: they do not. Needs `storage`. */
  readonly backgroundTasks?: BackgroundTasksOptions
  /** Where traces and metrics of its agents go. Default: nowhere. */
  readonly telemetry?: TelemetryOptions
}

/**
 * Owns the runtime of its agents: their runs end when it is shut down. An agent belongs to the container that was made
 * last with it.
 *
 * The constructor throws `InvalidConfiguration` for an option that it does not know, or that cannot work, and for two different
 * agents or workflows with one id, those below its agents included.
 *
 * @since 0.1.0
 * @category models
 */
export class Eddy<
  const Agents extends Readonly<Record<string, Agent>> = Readonly<Record<string, Agent>>,
  const Flows extends Workflows = Workflows
> {
  readonly agents: Agents
  readonly workflows: Flows
  /** The conversations in the storage. Every call rejects with `InvalidConfiguration` when there is none. */
  readonly threads: Threads
  /** The background tasks; `undefined` when they are not enabled. */
  readonly backgroundTaskManager: BackgroundTaskManager | undefined
  readonly #runs: Runs.Runs
  readonly #run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  readonly #dispose: () => Promise<void>
  readonly #waiting = new Tasks.Waiting()
  #ended: Promise<void> | undefined

  constructor(options: EddyOptions<Agents, Flows> = {}) {
    checkOptions("The container", options, known)
    this.agents = options.agents ?? ({} as Agents)
    this.workflows = options.workflows ?? ({} as Flows)
    const { backgroundTasks, logger, storage } = options
    const stores = storage === undefined ? undefined : layerOf(storage)
    const settings = toSettings(backgroundTasks)
    if (settings.enabled && stores === undefined) throw missingStorage
    checkAgents(this.agents)
    for (const [name, workflow] of Object.entries(this.workflows)) checkWorkflow(name, workflow)
    Tasks.checkIds(this.agents, this.workflows)
    const logging = logger === undefined ? consoleLayer : loggerLayer(logger)
    const telemetry = options.telemetry === undefined ? Layer.empty : telemetryLayer(options.telemetry)
    const tasks =
      stores !== undefined && settings.enabled
        ? startTasks(settings, this.agents, stores, logging, telemetry)
        : undefined
    const runtime = tasks ?? ManagedRuntime.make(Layer.mergeAll(logging, telemetry, stores ?? Layer.empty))
    this.#run = async effect => {
      if (this.#ended !== undefined) throw Runs.shutDown
      const exit = await runtime.runPromiseExit(effect)
      if (Exit.isSuccess(exit)) return exit.value
      throw squash(exit.cause)
    }
    this.threads = new Threads(this.#run)
    this.backgroundTaskManager =
      tasks === undefined
        ? undefined
        : new BackgroundTaskManager({
            runFork: effect => this.#waiting.add(tasks.runFork(effect)),
            refusal: () => (this.#ended === undefined ? undefined : Runs.shutDown)
          })
    this.#dispose = () => runtime.dispose()
    const ready = options.telemetry === undefined ? undefined : () => runtime.runtime()
    this.#runs = Runs.make(runtime, ready)
    for (const agent of Object.values(this.agents)) Agent.adopt(agent, this.#runs)
    for (const workflow of Object.values(this.workflows)) Workflow.adopt(workflow, this.#runs)
  }

  /** Runs an effect where the agents run: with the logger, the stores and the tasks of the container. */
  static readonly within = <A, E>(
    eddy: Pick<Eddy, "agents" | "threads">,
    effect: Effect.Effect<A, E>
  ): Promise<A> => {
    if (eddy instanceof Eddy) return eddy.#run(effect)
    throw new InvalidConfiguration({
      field: "eddy",
      message: "This is no container. Make one with new Eddy({ agents })."
    })
  }

  /**
   * The agent of this name. A name that the types do not know may also be an agent's id. Throws `InvalidConfiguration`, which
   * names the known ones.
   */
  getAgent<Name extends keyof Agents & string>(name: Name): Agents[Name]
  getAgent(name: string): Agent {
    const agent = Object.hasOwn(this.agents, name)
      ? this.agents[name]
      : Object.values(this.agents).find(({ id }) => id === name)
    if (agent !== undefined) return agent
    const known = Object.keys(this.agents)
    throw new InvalidConfiguration({
      field: "agents",
      message: `There is no agent "${name}". Known agents: ${known.length === 0 ? "none" : known.join(", ")}.`
    })
  }

  /** The workflow of this name; an id as with {@link getAgent}. Throws `InvalidConfiguration` likewise. */
  getWorkflow<Name extends keyof Flows & string>(name: Name): Flows[Name]
  getWorkflow(name: string): AnyWorkflow {
    const workflow = Object.hasOwn(this.workflows, name)
      ? this.workflows[name]
      : Object.values(this.workflows).find(({ id }) => id === name)
    if (workflow !== undefined) return workflow
    const known = Object.keys(this.workflows)
    throw new InvalidConfiguration({
      field: "workflows",
      message: `There is no workflow "${name}". Known workflows: ${known.length === 0 ? "none" : known.join(", ")}.`
    })
  }

  /**
   * Aborts every run and waits until they have ended; running background tasks get their grace period, and what is left of
   * them goes to the next process. The container cannot be used afterwards.
   */
  readonly shutdown = (): Promise<void> => {
    this.#ended ??= this.#end()
    return this.#ended
  }

  /** `await using` shuts the container down at the end of the block. */
  readonly [Symbol.asyncDispose] = (): Promise<void> => this.shutdown()

  async #end(): Promise<void> {
    await this.#runs.shutdown()
    await this.#dispose()
    this.#waiting.end()
  }
}

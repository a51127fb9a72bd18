/**
 * The container: agents by name, one runtime for all of them, and its end.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { refuseUnknown } from "../agent/checkOptions.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { Agent } from "./Agent.js"
import type { Storage } from "./InMemoryStore.js"
import { consoleLayer, type EddyLogger, loggerLayer } from "./logging.js"
import * as Runs from "./runs.js"
import { Threads } from "./Threads.js"

export type { EddyLogger } from "./logging.js"

const layerOf = (storage: Storage): Storage["layer"] => {
  if (Layer.isLayer(storage?.layer)) return storage.layer
  throw new InvalidConfiguration({
    field: "storage",
    message: "`storage` is no store. Give one, for example new InMemoryStore()."
  })
}

/** What a container holds. @since 0.1.0 @category models */
export interface EddyOptions<Agents extends Readonly<Record<string, Agent>>> {
  /** By the name that {@link Eddy.getAgent} finds them with. */
  readonly agents?: Agents
  /** Default: the console; what went wrong goes to standard error. */
  readonly logger?: EddyLogger
  /** Where threads are kept. Without it runs with `memory` are refused. */
  readonly storage?: Storage
}

/**
 * Owns the runtime of its agents: their runs end when it is shut down. An agent belongs to the container that was made
 * last with it.
 *
 * The constructor throws `InvalidConfiguration` for an option that it does not know.
 *
 * @since 0.1.0
 * @category models
 */
export class Eddy<const Agents extends Readonly<Record<string, Agent>> = Readonly<Record<string, Agent>>> {
  readonly agents: Agents
  /** The conversations in the storage. Every call rejects with `InvalidConfiguration` when there is none. */
  readonly threads: Threads
  readonly #runs: Runs.Runs
  readonly #dispose: () => Promise<void>
  #isShutDown = false

  constructor(options: EddyOptions<Agents> = {}) {
    refuseUnknown("The container", options, ["agents", "logger", "storage"])
    this.agents = options.agents ?? ({} as Agents)
    const { logger, storage } = options
    const logging = logger === undefined ? consoleLayer : loggerLayer(logger)
    const runtime = ManagedRuntime.make(
      storage === undefined ? logging : Layer.merge(logging, layerOf(storage))
    )
    this.threads = new Threads(async effect => {
      if (this.#isShutDown) throw Runs.shutDown
      const exit = await runtime.runPromiseExit(effect)
      if (Exit.isSuccess(exit)) return exit.value
      throw Cause.squash(exit.cause)
    })
    this.#dispose = () => runtime.dispose()
    this.#runs = Runs.make(runtime)
    for (const [name, agent] of Object.entries(this.agents)) {
      if (!(agent instanceof Agent)) {
        throw new InvalidConfiguration({
          field: `agents.${name}`,
          message: `\`agents.${name}\` is no agent. Make it with new Agent({ id, model }).`
        })
      }
      Agent.adopt(agent, this.#runs)
    }
  }

  /** The agent of this name, or of this id. Throws `InvalidConfiguration`, which names the known ones. */
  getAgent<Name extends keyof Agents & string>(name: Name): Agents[Name]
  getAgent(name: string): Agent
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

  /** Aborts every run and waits until they have ended. The container cannot be used afterwards. */
  readonly shutdown = async (): Promise<void> => {
    this.#isShutDown = true
    await this.#runs.shutdown()
    await this.#dispose()
  }

  /** `await using` shuts the container down at the end of the block. */
  readonly [Symbol.asyncDispose] = (): Promise<void> => this.shutdown()
}

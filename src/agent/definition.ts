/** What an agent is: data that runs are made from. */
import type * as Effect from "effect/Effect"
import {
  agentSettingsOf,
  type AgentOptions as BackgroundTasksOptions,
  type AgentSettings as BackgroundTasksSettings
} from "../background/settings.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import {
  checkOptions,
  isOptions,
  type Kind,
  type Known,
  refuseUnknown,
  wrongValue
} from "../protocol/options.js"
import type { ThreadStore } from "../storage/ThreadStore.js"
import type * as Tool from "../tool/Tool.js"
import { lastMessagesOf, modelsOf, settingsOf, toolsByName, whenBusyOf } from "./checkOptions.js"
import type { GoalOptions } from "./goals/GoalOptions.js"
import { type GoalSettings, goalOf } from "./goals/goalSettings.js"
import { agentPartKinds, agentPlaces, defaultKinds } from "./optionKinds.js"
import type {
  Defaults,
  Dynamic,
  DynamicState,
  MemoryOptions,
  MemorySettings,
  Models,
  RunOptions
} from "./RunOptions.js"

/** @since 0.1.0 @category symbols */
export const TypeId: unique symbol = Symbol.for("eddy/Agent")

/** @since 0.1.0 @category symbols */
export type TypeId = typeof TypeId

/** Tools by name, or what makes them for a run. */
type AgentTools<R> = ReadonlyMap<string, Tool.Tool<string, R>> | DynamicTools<R>

type DynamicTools<R> = (
  state: DynamicState
) => ReadonlyArray<Tool.Tool<string, R>> | Effect.Effect<ReadonlyArray<Tool.Tool<string, R>>, unknown>

/** An agent whose tools need `R`. Made by `Agent.make`. @since 0.1.0 @category models */
export interface Agent<out R = never> {
  readonly [TypeId]: TypeId
  readonly id: string
  readonly name: string
  readonly description: string | undefined
  readonly instructions: Dynamic<string> | undefined
  readonly model: Dynamic<Models>
  readonly tools: AgentTools<R>
  readonly memory: MemorySettings | undefined
  readonly backgroundTasks: BackgroundTasksSettings | undefined
  readonly goal: GoalSettings | undefined
  readonly defaults: Defaults
}

/**
 * What an agent is made of, and the settings that its runs have unless they say otherwise. Instructions, model and tools
 * may be functions of the run's request context.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<Tools extends ReadonlyArray<Tool.Any>> extends Defaults {
  readonly id: string
  /** Default: the id. */
  readonly name?: string
  /** What the agent is for; tells another agent's model when to call it. */
  readonly description?: string
  /** The system prompt. */
  readonly instructions?: Dynamic<string>
  readonly model: Dynamic<Models>
  readonly tools?: Tools | ((state: DynamicState) => Tools | Effect.Effect<Tools, unknown>)
  /** How its runs remember; which thread a run belongs to, the run says. */
  readonly memory?: MemorySettings
  /** Which of its tools run in the background, where `BackgroundTasks` is provided. Default: those that say so themselves. */
  readonly backgroundTasks?: BackgroundTasksOptions
  /** How its answers are judged in threads that have an objective: see `setObjective`. Default: they are not. */
  readonly goal?: GoalOptions
}

/** What the tools of a list need. @since 0.1.0 @category models */
export type RequirementsOf<Tools extends ReadonlyArray<Tool.Any>> = Tool.Requirements<Tools[number]>

/** Options of a run, whatever its tools need. @since 0.1.0 @category models */
export type AnyRunOptions = RunOptions<ReadonlyArray<Tool.Any>, MemoryOptions | undefined>

/**
 * What a run needs beside what its agent needs: what the tools of its options need, and a `ThreadStore` when it has a thread.
 *
 * @since 0.1.0
 * @category models
 */
export type RunRequirements<Tools extends ReadonlyArray<Tool.Any>, Memory extends MemoryOptions | undefined> =
  | RequirementsOf<Tools>
  | (Memory extends undefined ? never : ThreadStore)

const known: Known = {
  kinds: { ...agentPartKinds, ...defaultKinds } satisfies Record<keyof Options<[]>, Kind>,
  places: agentPlaces("")
}

/**
 * Makes an agent. Throws `InvalidConfiguration`, which names the field and the remedy, when it cannot work: no id, no
 * model, two tools of one name, an unknown option, a limit below 1.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <const Tools extends ReadonlyArray<Tool.Any> = []>(
  options: Options<Tools>
): Agent<RequirementsOf<Tools>> => {
  if (!isOptions(options)) throw wrongValue("options", options, "Give { id, model }.")
  const { backgroundTasks, description, goal, id, instructions, memory, model, name, tools, ...defaults } =
    options
  if (typeof id !== "string" || id === "") {
    throw new InvalidConfiguration({
      field: "id",
      message: "An agent needs an `id`: a string that is not empty."
    })
  }
  if (model === undefined || model === null) {
    throw new InvalidConfiguration({
      field: "model",
      message: `Agent "${id}" has no model. Give it a LanguageModel, for example LanguageModel.fromAiSdk(openai("gpt-5")).`
    })
  }
  checkOptions(`Agent "${id}"`, options, known)
  const settings = settingsOf(defaults, {})
  if (typeof model !== "function") modelsOf(model, settings.maxRetries)
  if (memory !== undefined) refuseUnknown("`memory` of an agent", memory, ["lastMessages", "whenBusy"])
  lastMessagesOf(memory, undefined)
  whenBusyOf(memory, undefined)
  return {
    [TypeId]: TypeId,
    id,
    name: name ?? id,
    description,
    instructions,
    model,
    tools: agentTools(tools),
    memory,
    backgroundTasks: backgroundTasks === undefined ? undefined : agentSettingsOf(backgroundTasks),
    goal: goal === undefined ? undefined : goalOf(goal, settings.maxRetries),
    defaults
  }
}

const agentTools = <Tools extends ReadonlyArray<Tool.Any>>(
  tools: Options<Tools>["tools"]
): AgentTools<RequirementsOf<Tools>> =>
  // What a function makes has the requirements that its type says, as a list has; see `toolsOf`.
  typeof tools === "function" ? (tools as DynamicTools<RequirementsOf<Tools>>) : toolsByName(toolsOf(tools))

/** A tool's requirements are what the type of the list says they are. */
export const toolsOf = <Tools extends ReadonlyArray<Tool.Any>>(
  tools: Tools | undefined
): ReadonlyArray<Tool.Tool<string, RequirementsOf<Tools>>> =>
  (tools === undefined ? [] : tools) as ReadonlyArray<Tool.Tool<string, RequirementsOf<Tools>>>

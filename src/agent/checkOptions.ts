/** Options of agents and runs, checked: refuses what cannot work, before any model is asked. Throws `InvalidConfiguration`. */
import * as Effect from "effect/Effect"
import type { LanguageModel, ToolChoice, ToolDefinition } from "../model/ModelPort.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import {
  at,
  checkOptions,
  id,
  type Kind,
  object,
  oneOf,
  read,
  refuseUnknown,
  text,
  wrongValue
} from "../protocol/options.js"
import type { WhenBusy } from "../storage/ThreadStore.js"
import { milliseconds } from "../tool/background.js"
import { isTool, type Tool } from "../tool/Tool.js"
import type { ModelChoice } from "./loop/retrying.js"
import { checkModelSettings } from "./optionKinds.js"
import { checkProcessors } from "./processors/definition.js"
import type { Defaults, MemoryOptions, MemorySettings, Models, Timeouts } from "./RunOptions.js"
import type { Idle, Limits, Settings } from "./settings.js"
import { structureOf } from "./structuredOutput.js"

/** Runs plain code that throws `InvalidConfiguration`. */
export const checked = <A>(check: () => A): Effect.Effect<A, InvalidConfiguration> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(check())
    } catch (cause) {
      return cause instanceof InvalidConfiguration ? Effect.fail(cause) : Effect.die(cause)
    }
  })

const wholeNumber = (field: string, value: number | undefined, fallback: number, least: 0 | 1): number => {
  if (value === undefined) return fallback
  if (Number.isInteger(value) && value >= least) return value
  throw wrongValue(field, value, `Give a whole number of at least ${least}, or leave it out for ${fallback}.`)
}

/** Options that say something: one that is `undefined` is as good as none. */
export const given = <A extends object>(options: A): A =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as A

const noLimits: Limits = {
  firstContent: undefined,
  betweenChunks: undefined,
  step: undefined,
  run: undefined
}

const timeoutFields = Object.keys(noLimits) as ReadonlyArray<keyof Limits>

const limitsOf = (timeouts: Timeouts | undefined): Limits => {
  if (timeouts === undefined) return noLimits
  if (!object.accepts(timeouts)) {
    throw wrongValue("timeouts", timeouts, 'Give the limits in an object, for example { run: "1 minute" }.')
  }
  refuseUnknown("`timeouts`", timeouts, timeoutFields)
  const limit = (name: keyof Timeouts): number | undefined => {
    const given = timeouts[name]
    return given === undefined ? undefined : milliseconds(`timeouts.${name}`, given)
  }
  return {
    firstContent: limit("firstContent"),
    betweenChunks: limit("betweenChunks"),
    step: limit("step"),
    run: limit("run")
  }
}

/** How long an until-idle stream waits, and for what; `undefined`: it is none. Throws `InvalidConfiguration`. */
export const idleOf = (given: Defaults["untilIdle"]): Idle | undefined => {
  if (given === undefined || given === false) return undefined
  const options = given === true ? {} : given
  if (!object.accepts(options)) throw wrongValue("untilIdle", options, "Give true, or { maxIdle, batch }.")
  refuseUnknown("`untilIdle`", options, ["maxIdle", "batch"])
  const { batch = "ready", maxIdle = 300_000 } = given === true ? {} : given
  if (batch !== "ready" && batch !== "all") {
    throw wrongValue("untilIdle.batch", batch, 'Give "ready" or "all".')
  }
  return { maxIdleMs: milliseconds("untilIdle.maxIdle", maxIdle), batch }
}

/** The settings of a run: the run's own before the agent's. Throws `InvalidConfiguration`. */
export const settingsOf = (defaults: Defaults, options: Defaults): Settings => {
  const {
    maxDepth,
    maxProcessorRetries,
    maxRetries,
    maxSteps,
    stopWhen,
    timeouts,
    toolCallConcurrency,
    untilIdle,
    ...rest
  } = {
    ...defaults,
    ...given(options)
  }
  idleOf(untilIdle)
  structureOf(rest.structuredOutput)
  checkProcessors("inputProcessors", rest.inputProcessors)
  checkProcessors("outputProcessors", rest.outputProcessors)
  checkModelSettings(rest.modelSettings)
  return {
    ...rest,
    maxSteps: wholeNumber("maxSteps", maxSteps, 5, 1),
    toolCallConcurrency: wholeNumber("toolCallConcurrency", toolCallConcurrency, 10, 1),
    maxRetries: wholeNumber("maxRetries", maxRetries, 2, 0),
    maxProcessorRetries: wholeNumber("maxProcessorRetries", maxProcessorRetries, 3, 0),
    maxDepth: wholeNumber("maxDepth", maxDepth, 8, 0),
    limits: limitsOf(timeouts),
    stopWhen: stopWhen === undefined ? [] : typeof stopWhen === "function" ? [stopWhen] : stopWhen
  }
}

/** Whether a value implements the port to a model. */
export const isLanguageModel = (value: unknown): value is LanguageModel =>
  typeof value === "object" && value !== null && "answer" in value && typeof value.answer === "function"

const choiceOf = (
  entry: Exclude<Models, LanguageModel>[number],
  index: number,
  maxRetries: number
): ModelChoice => {
  const choice = isLanguageModel(entry) ? { model: entry } : entry
  if (isLanguageModel(choice?.model)) {
    refuseUnknown(`\`model[${index}]\``, choice, ["model", "maxRetries"])
    const retries = wholeNumber(`model[${index}].maxRetries`, choice.maxRetries, maxRetries, 0)
    return { model: choice.model, maxRetries: retries }
  }
  throw new InvalidConfiguration({
    field: `model[${index}]`,
    message: `\`model[${index}]\` is no language model. Give a model, or { model, maxRetries }.`
  })
}

/** The models of a run, in the order in which they are asked. Throws `InvalidConfiguration`. */
export const modelsOf = (
  models: Models,
  maxRetries: number
): readonly [ModelChoice, ...ReadonlyArray<ModelChoice>] => {
  const entries: Exclude<Models, LanguageModel> | undefined = isLanguageModel(models)
    ? [models]
    : Array.isArray(models)
      ? models
      : undefined
  const [first, ...rest] = (entries ?? []).map((entry, index) => choiceOf(entry, index, maxRetries))
  if (first === undefined) {
    throw new InvalidConfiguration({
      field: "model",
      message:
        '`model` is no language model. Give one, for example LanguageModel.fromAiSdk(openai("gpt-5")), or a list of them to fall back on.'
    })
  }
  return [first, ...rest]
}

/** Tools by name. Throws `InvalidConfiguration` when two have one name. */
export const toolsByName = <R>(
  tools: ReadonlyArray<Tool<string, R>>
): ReadonlyMap<string, Tool<string, R>> => {
  if (!Array.isArray(tools)) {
    throw new InvalidConfiguration({ field: "tools", message: "`tools` are no list. Give the tools in one." })
  }
  const byName = new Map<string, Tool<string, R>>()
  for (const [index, tool] of tools.entries()) {
    if (!isTool(tool)) throw wrongValue(`tools[${index}]`, tool, "Make a tool with Tool.make(name, options).")
    if (byName.has(tool.name)) {
      throw new InvalidConfiguration({
        field: "tools",
        message: `Two tools are called "${tool.name}". Give each tool a name of its own: the model calls it by that.`
      })
    }
    byName.set(tool.name, tool)
  }
  return byName
}

const listed = (names: Iterable<string>): string => [...names].join(", ") || "none"

/** The tools of these names. Throws `InvalidConfiguration` for one that is not there. */
export const activeTools = <R>(
  tools: ReadonlyMap<string, Tool<string, R>>,
  names: ReadonlyArray<string>
): ReadonlyMap<string, Tool<string, R>> => {
  const refused = (what: string): InvalidConfiguration =>
    new InvalidConfiguration({
      field: "activeTools",
      message: `\`activeTools\` ${what} of this run. Its tools: ${listed(tools.keys())}.`
    })
  if (!Array.isArray(names)) throw refused("is no list of names of tools")
  return new Map(
    names.map(name => {
      const tool = tools.get(name)
      if (tool !== undefined) return [name, tool]
      throw refused(`names "${name}", which is no tool`)
    })
  )
}

/** Refuses the choice of a tool that is not there. */
export const checkToolChoice = <R>(
  choice: ToolChoice | undefined,
  tools: ReadonlyMap<string, Tool<string, R>>
): void => {
  if (typeof choice !== "object" || tools.has(choice.toolName)) return
  throw new InvalidConfiguration({
    field: "toolChoice",
    message: `\`toolChoice\` names "${choice.toolName}", which is no active tool. Active tools: ${listed(tools.keys())}.`
  })
}

/** The tools, as a model is told of them. */
export const definitionsOf = <R>(
  tools: ReadonlyMap<string, Tool<string, R>>
): ReadonlyArray<ToolDefinition> => Array.from(tools.values(), ({ definition }) => definition)

const missing = (field: string, remedy: string): InvalidConfiguration =>
  new InvalidConfiguration({ field, message: `\`${field}\` is missing. ${remedy}` })

/** How many messages a run is told. Throws `InvalidConfiguration`. */
export const lastMessagesOf = (
  agent: MemorySettings | undefined,
  run: MemorySettings | undefined
): number => {
  const given = run?.lastMessages === undefined ? agent?.lastMessages : run.lastMessages
  return given === false ? 0 : wholeNumber("memory.lastMessages", given, 40, 0)
}

const whenBusy = oneOf("queue", "reject", "parallel")

/** What a run does whose thread is busy. Throws `InvalidConfiguration`. */
export const whenBusyOf = (agent: MemorySettings | undefined, run: MemorySettings | undefined): WhenBusy => {
  const given = run?.whenBusy ?? agent?.whenBusy ?? "queue"
  if (whenBusy.accepts(given)) return given
  throw wrongValue("memory.whenBusy", given, `${whenBusy.remedy} Leave it out for "queue".`)
}

/** Refuses an owner that is not the owner of the thread. Throws `InvalidConfiguration`. */
export const checkResource = (
  resource: string | undefined,
  memory: Pick<MemoryOptions, "resource"> | undefined
): void => {
  if (resource === undefined || memory === undefined || memory.resource === resource) return
  throw new InvalidConfiguration({
    field: "resource",
    message: "`resource` is not that of `memory`: a run belongs to the owner of its thread. Leave it out."
  })
}

const memoryKinds = {
  thread: {
    accepts: value => id.accepts(value) || object.accepts(value),
    remedy: "Give an id, or { id, title, metadata }."
  },
  resource: { ...id, remedy: "Give the id of the owner of the thread, for example of the user." },
  after: { ...id, remedy: "Give the id of a message, or leave it out." },
  lastMessages: read,
  whenBusy
} satisfies Record<keyof MemoryOptions, Kind>

const memoryPlaces = {
  threadId: at("memory.thread"),
  resourceId: at("memory.resource"),
  id: at("memory.thread")
}

const threadKinds = { id, title: text, metadata: object }

/** Refuses a thread that cannot be named again. Throws `InvalidConfiguration`. */
export const checkMemory = (memory: MemoryOptions): void => {
  checkOptions("`memory`", memory, { kinds: memoryKinds, places: memoryPlaces }, "memory")
  lastMessagesOf(undefined, memory)
  for (const field of ["thread", "resource"] as const) {
    if (memory[field] === undefined) throw missing(`memory.${field}`, memoryKinds[field].remedy)
  }
  if (typeof memory.thread === "string") return
  checkOptions("`memory.thread`", memory.thread, { kinds: threadKinds }, "memory.thread")
  if (memory.thread.id === undefined) throw missing("memory.thread", memoryKinds.thread.remedy)
}

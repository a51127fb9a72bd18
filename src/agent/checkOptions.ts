/** Options of agents and runs, checked: refuses what cannot work, before any model is asked. Throws `InvalidConfiguration`. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { LanguageModel, ToolChoice, ToolDefinition } from "../model/ModelPort.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { refuseUnknown } from "../protocol/options.js"
import type { WhenBusy } from "../storage/ThreadStore.js"
import { milliseconds } from "../tool/background.js"
import type { Tool } from "../tool/Tool.js"
import type { ModelChoice } from "./loop/retrying.js"
import { checkProcessors } from "./processors/definition.js"
import type {
  Defaults,
  MemoryOptions,
  MemorySettings,
  Models,
  RunOptions,
  StepChanges,
  Timeouts
} from "./RunOptions.js"
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
  throw new InvalidConfiguration({
    field,
    message: `\`${field}\` is ${value}. Give a whole number of at least ${least}, or leave it out for ${fallback}.`
  })
}

/** Settings that an agent may have and a run may change. */
export const defaultFields = [
  "maxSteps",
  "stopWhen",
  "prepareStep",
  "toolCallConcurrency",
  "requireToolApproval",
  "activeTools",
  "toolChoice",
  "modelSettings",
  "providerOptions",
  "maxRetries",
  "inputProcessors",
  "outputProcessors",
  "maxProcessorRetries",
  "timeouts",
  "maxDepth",
  "includeRawChunks",
  "includeRequestBody",
  "untilIdle",
  "structuredOutput"
] as const satisfies ReadonlyArray<keyof Defaults>

/** Options that only a run has. */
export const runFields = [
  "tools",
  "clientTools",
  "instructions",
  "requestContext",
  "memory",
  "resource",
  "replay",
  "runId",
  "abortSignal"
] as const satisfies ReadonlyArray<Exclude<keyof RunOptions, keyof Defaults>>

/** What `prepareStep` may give. */
export const stepFields = [
  "model",
  "messages",
  "instructions",
  "tools",
  "activeTools",
  "toolChoice",
  "modelSettings",
  "providerOptions"
] as const satisfies ReadonlyArray<keyof StepChanges>

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
  if (typeof timeouts !== "object" || timeouts === null) {
    const message = `\`timeouts\` is ${timeouts}. Say what may take how long, for example { run: "1 minute" }.`
    throw new InvalidConfiguration({ field: "timeouts", message })
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
  if (!Predicate.isRecord(options)) {
    throw new InvalidConfiguration({
      field: "untilIdle",
      message: `\`untilIdle\` is ${String(given)}. Give true, or { maxIdle, batch }.`
    })
  }
  refuseUnknown("`untilIdle`", options, ["maxIdle", "batch"])
  const { batch = "ready", maxIdle } = given === true ? {} : given
  if (batch !== "ready" && batch !== "all") {
    throw new InvalidConfiguration({
      field: "untilIdle.batch",
      message: `\`untilIdle.batch\` is ${String(batch)}. Give "ready" or "all".`
    })
  }
  return { maxIdleMs: milliseconds("untilIdle.maxIdle", maxIdle ?? 300_000), batch }
}

/** Throws `InvalidConfiguration`. */
const checkApproval = (given: unknown): void => {
  if (given === undefined || typeof given === "boolean" || typeof given === "function") return
  throw new InvalidConfiguration({
    field: "requireToolApproval",
    message: `\`requireToolApproval\` is ${String(given)}. Give true, false, or a function of the call that says so.`
  })
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
  checkApproval(rest.requireToolApproval)
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
  for (const tool of tools) {
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

const memoryRefused = (field: string, message: string): InvalidConfiguration =>
  new InvalidConfiguration({ field, message })

/** How many messages a run is told. Throws `InvalidConfiguration`. */
export const lastMessagesOf = (
  agent: MemorySettings | undefined,
  run: MemorySettings | undefined
): number => {
  const given = run?.lastMessages ?? agent?.lastMessages
  return given === false ? 0 : wholeNumber("memory.lastMessages", given, 40, 0)
}

/** What a run does whose thread is busy. Throws `InvalidConfiguration`. */
export const whenBusyOf = (agent: MemorySettings | undefined, run: MemorySettings | undefined): WhenBusy => {
  const given = run?.whenBusy ?? agent?.whenBusy ?? "queue"
  if (given === "queue" || given === "reject" || given === "parallel") return given
  throw memoryRefused(
    "memory.whenBusy",
    `\`memory.whenBusy\` is ${String(given)}. Give "queue", "reject" or "parallel", or leave it out for "queue".`
  )
}

/** Refuses an owner that is no id, or another one than that of the thread. */
export const checkResource = (
  resource: string | undefined,
  memory: Pick<MemoryOptions, "resource"> | undefined
): void => {
  if (resource === undefined) return
  if (typeof resource !== "string" || resource === "") {
    throw memoryRefused(
      "resource",
      "`resource` is no id. Give that of the owner of the run, or leave it out."
    )
  }
  if (memory !== undefined && memory.resource !== resource) {
    throw memoryRefused(
      "resource",
      "`resource` is not that of `memory`: a run belongs to the owner of its thread. Leave it out."
    )
  }
}

/** Refuses a thread that nobody could name again. */
export const checkMemory = (memory: MemoryOptions): void => {
  refuseUnknown("`memory`", memory, ["thread", "resource", "after", "lastMessages", "whenBusy"])
  if (memory.after !== undefined && (typeof memory.after !== "string" || memory.after === "")) {
    throw memoryRefused(
      "memory.after",
      "`memory.after` is no id of a message. Give a string, or leave it out."
    )
  }
  lastMessagesOf(undefined, memory)
  whenBusyOf(undefined, memory)
  if (Predicate.isRecord(memory.thread)) {
    refuseUnknown("`memory.thread`", memory.thread, ["id", "title", "metadata"])
  }
  const id = typeof memory.thread === "object" ? memory.thread?.id : memory.thread
  if (typeof id !== "string" || id === "") {
    throw memoryRefused(
      "memory.thread",
      "`memory.thread` is no id. Give a string, or { id, title, metadata }."
    )
  }
  if (typeof memory.resource !== "string" || memory.resource === "") {
    throw memoryRefused(
      "memory.resource",
      "`memory.resource` is missing. Give the id of whoever the thread belongs to, for example of the user."
    )
  }
}

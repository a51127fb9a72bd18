/** Where a call runs, and by which limits. Pure: agent, tool, model and manager in, one answer out. */

import type { ToolDefinition } from "../model/ModelPort.js"
import { isRecord } from "../protocol/safeJson.js"
import { type BackgroundSettings, isRetries, isTime } from "../tool/background.js"
import type { AgentSettings, AgentToolSettings, Settings } from "./settings.js"

/** The field of the arguments by which a model says how it wants a call to run. */
export const overrideField = "_background"

/** What a model may say about one call. What it wrote that is none of this is not there. */
export interface Override {
  readonly enabled: boolean | undefined
  readonly timeoutMs: number | undefined
  readonly maxRetries: number | undefined
}

const noOverride: Override = { enabled: undefined, timeoutMs: undefined, maxRetries: undefined }

/** What a model wrote as `_background`, malformed or not. */
export const readOverride = (written: unknown): Override => {
  if (!isRecord(written)) return noOverride
  const { enabled, maxRetries, timeoutMs } = written
  return {
    enabled: typeof enabled === "boolean" ? enabled : undefined,
    timeoutMs: isTime(timeoutMs) ? timeoutMs : undefined,
    maxRetries: isRetries(maxRetries) ? maxRetries : undefined
  }
}

/** The arguments without `_background`, and what was written there. */
export const splitArguments = (written: unknown): { readonly input: unknown; readonly aside: unknown } => {
  if (!isRecord(written) || !Object.hasOwn(written, overrideField))
    return { input: written, aside: undefined }
  const { [overrideField]: aside, ...input } = written
  return { input, aside }
}

/** What is known of a tool. */
export interface ToolFacts {
  readonly name: string
  readonly aliases: ReadonlyArray<string>
  readonly background: BackgroundSettings | undefined
}

/** Limits of tasks for which nobody has said anything. */
export type ManagerLimits = Pick<Settings, "timeoutMs" | "maxRetries" | "waitTimeoutMs">

/** Where a call runs, and by which limits when that is the background. */
export interface Resolution {
  readonly isBackground: boolean
  readonly timeoutMs: number
  readonly maxRetries: number
  /** `undefined`: a run does not wait. */
  readonly waitTimeoutMs: number | undefined
}

const entryOf = (
  agent: AgentSettings | undefined,
  { aliases, name }: ToolFacts
): AgentToolSettings | undefined => {
  if (agent === undefined || agent.tools === "all") return undefined
  const { tools } = agent
  const known = [name, ...aliases].find(key => tools.has(key))
  return known === undefined ? undefined : tools.get(known)
}

/** Whether a developer has allowed the calls of this tool to run in the background. */
export const isEligible = (agent: AgentSettings | undefined, tool: ToolFacts): boolean => {
  if (agent?.disabled === true) return false
  if (agent?.tools === "all") return true
  return entryOf(agent, tool)?.enabled ?? tool.background?.enabled ?? false
}

/**
 * Per field: the agent's entry for the tool, then the tool, then the manager. The model only changes what a developer has
 * allowed: it may bring a call back, and set limits of its own; a tool that nobody enabled stays in the foreground.
 */
export const resolve = (
  agent: AgentSettings | undefined,
  tool: ToolFacts,
  override: Override,
  manager: ManagerLimits
): Resolution => {
  const entry = entryOf(agent, tool)
  const { background } = tool
  return {
    isBackground: isEligible(agent, tool) && override.enabled !== false,
    timeoutMs: override.timeoutMs ?? entry?.timeoutMs ?? background?.timeoutMs ?? manager.timeoutMs,
    maxRetries: override.maxRetries ?? entry?.maxRetries ?? background?.maxRetries ?? manager.maxRetries,
    waitTimeoutMs:
      entry?.waitTimeoutMs ?? background?.waitTimeoutMs ?? agent?.waitTimeoutMs ?? manager.waitTimeoutMs
  }
}

/**
 * What a supervisor takes over from an agent below it that it says nothing about itself: when a tool of that agent would run
 * in the background, the whole delegation does. It waits as that agent does, may take as long as its slowest tool, and is told
 * to whom that agent tells its tasks.
 */
export const inherited = (
  agent: AgentSettings | undefined,
  tools: Iterable<ToolFacts>
): BackgroundSettings | undefined => {
  const eligible = [...tools].filter(tool => isEligible(agent, tool))
  const isAnnounced =
    agent !== undefined &&
    !agent.disabled &&
    (agent.tools === "all" || [...agent.tools.values()].some(({ enabled }) => enabled))
  if (eligible.length === 0 && !isAnnounced) return undefined
  const entries = agent === undefined || agent.tools === "all" ? [] : [...agent.tools.values()]
  const times = [
    ...eligible.map(tool => entryOf(agent, tool)?.timeoutMs ?? tool.background?.timeoutMs),
    ...entries.filter(({ enabled }) => enabled).map(({ timeoutMs }) => timeoutMs)
  ].filter(time => time !== undefined)
  return {
    enabled: true,
    timeoutMs: times.length === 0 ? undefined : Math.max(...times),
    maxRetries: undefined,
    waitTimeoutMs: agent?.waitTimeoutMs,
    callbacks: agent?.callbacks ?? { onComplete: undefined, onFailed: undefined, onCancelled: undefined }
  }
}

const overrideSchema = {
  type: "object",
  description: "How this call runs. Leave it out unless this call is to run differently.",
  properties: {
    enabled: {
      type: "boolean",
      description: "false: wait for the result of this call before going on."
    },
    timeoutMs: { type: "number", exclusiveMinimum: 0, description: "Milliseconds that the call may take." },
    maxRetries: { type: "integer", minimum: 0, description: "How often it is tried again when it fails." }
  },
  additionalProperties: false
} as const

/** The tool as the model is told of it, with what it may say about a call. A schema that is no object's stays as it is. */
export const withOverride = (definition: ToolDefinition): ToolDefinition => {
  const { inputSchema } = definition
  if (!isRecord(inputSchema) || inputSchema["type"] !== "object") return definition
  const properties = isRecord(inputSchema["properties"]) ? inputSchema["properties"] : {}
  // A tool that has an argument of this name means something else by it.
  if (Object.hasOwn(properties, overrideField)) return definition
  return {
    ...definition,
    inputSchema: { ...inputSchema, properties: { ...properties, [overrideField]: overrideSchema } }
  }
}

/** What the model is told of its tools that run in the background. */
export const promptOf = (names: ReadonlyArray<string>): string =>
  [
    `These tools run in the background: ${names.join(", ")}.`,
    "A call of one gets an acknowledgement with a task id instead of its result: the work has started and goes on by itself.",
    "Tell the user so and go on with what does not need the result; do not call the tool again for the same work.",
    "You are told when the result is there.",
    `When you cannot go on without the result of a call, give it the argument "${overrideField}": { "enabled": false }.`
  ].join(" ")

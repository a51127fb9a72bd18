/** Options of agents and runs, checked: refuses what cannot work, before any model is asked. Throws `InvalidConfiguration`. */
import { InvalidConfiguration } from "../protocol/Errors.js"
import type { Tool } from "../tool/Tool.js"
import type { Defaults, RunOptions } from "./RunOptions.js"
import type { Settings } from "./run.js"

const positive = (field: string, value: number | undefined, fallback: number): number => {
  if (value === undefined) return fallback
  if (Number.isInteger(value) && value > 0) return value
  throw new InvalidConfiguration({
    field,
    message: `\`${field}\` is ${value}. Give a whole number of at least 1, or leave it out for ${fallback}.`
  })
}

/** Settings that an agent may have and a run may change. */
export const defaultFields = [
  "maxSteps",
  "stopWhen",
  "toolCallConcurrency",
  "toolChoice",
  "modelSettings",
  "providerOptions",
  "includeRawChunks",
  "includeRequestBody"
] as const satisfies ReadonlyArray<keyof Defaults>

/** Options that only a run has. */
export const runFields = ["tools", "instructions", "runId", "abortSignal"] as const satisfies ReadonlyArray<
  Exclude<keyof RunOptions, keyof Defaults>
>

/** Refuses an option that nothing reads: a misspelt one would be ignored in silence. */
export const refuseUnknown = (what: string, options: object, known: ReadonlyArray<string>): void => {
  for (const field of Object.keys(options)) {
    if (known.includes(field)) continue
    throw new InvalidConfiguration({
      field,
      message: `${what} has no option \`${field}\`. Known options: ${known.join(", ")}.`
    })
  }
}

/** The settings of a run: the run's own before the agent's. Throws `InvalidConfiguration`. */
export const settingsOf = (defaults: Defaults, options: Defaults): Settings => {
  const given: Defaults = { ...defaults, ...options }
  const { stopWhen } = given
  return {
    ...given,
    maxSteps: positive("maxSteps", given.maxSteps, 5),
    toolCallConcurrency: positive("toolCallConcurrency", given.toolCallConcurrency, 10),
    stopWhen: stopWhen === undefined ? [] : typeof stopWhen === "function" ? [stopWhen] : stopWhen
  }
}

/** Tools by name. Throws `InvalidConfiguration` when two have one name. */
export const toolsByName = <R>(
  tools: ReadonlyArray<Tool<string, R>>
): ReadonlyMap<string, Tool<string, R>> => {
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

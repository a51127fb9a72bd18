/** What an agent may call that is more than a tool: beside its tools, as tools. */
import * as Effect from "effect/Effect"
import type { Dynamic } from "../agent/RunOptions.js"
import type * as Tool from "../tool/Tool.js"
import { type AnyWorkflow, Workflow } from "./Workflow.js"

export type Tools = ReadonlyArray<Tool.Tool>

/** The workflows that an agent may start. */
export const workflowTools = (workflows: Readonly<Record<string, AnyWorkflow>>): Tools =>
  Object.entries(workflows).map(([name, workflow]) => Workflow.toTool(workflow, name))

/** The tools of an agent, and those that are more than a tool. */
export const withBelow = (tools: Dynamic<Tools>, below: Tools): Dynamic<Tools> => {
  if (below.length === 0) return tools
  if (typeof tools !== "function") return [...tools, ...below]
  return state => {
    const made = tools(state)
    return Effect.isEffect(made) ? Effect.map(made, list => [...list, ...below]) : [...made, ...below]
  }
}

/** The ids of everything that a container holds, directly or below its agents. */
import { type Listed, refuseSharedIds } from "../protocol/sharedIds.js"
import { Agent } from "./Agent.js"
import type { AnyWorkflow } from "./Workflow.js"

type Named<Value> = Readonly<Record<string, Value>>

/** The agents with the option that each was given as, and those that they may call. */
export const reachableAgents = (
  agents: Named<Agent>
): ReadonlyArray<readonly [field: string, agent: Agent]> => {
  const found = Object.entries(agents).map(([name, agent]) => [`agents.${name}`, agent] as const)
  const seen = new Set<Agent>()
  // A list that grows while it is gone through is gone through to its end.
  for (const [field, agent] of found) {
    if (seen.has(agent)) continue
    seen.add(agent)
    for (const [name, below] of Object.entries(Agent.below(agent).agents)) {
      found.push([`${field}.agents.${name}`, below])
    }
  }
  return found
}

/** Throws `InvalidConfiguration` when two different agents, or two different workflows, share an id. */
export const checkIds = (agents: Named<Agent>, workflows: Named<AnyWorkflow>): void => {
  const reachable = reachableAgents(agents)
  refuseSharedIds("agents", reachable)
  const ofAgents = reachable.flatMap(([field, agent]) =>
    Object.entries(Agent.below(agent).workflows).map(
      ([name, workflow]): Listed => [`${field}.workflows.${name}`, workflow]
    )
  )
  const own = Object.entries(workflows).map(([name, workflow]): Listed => [`workflows.${name}`, workflow])
  refuseSharedIds("workflows", [...own, ...ofAgents])
}

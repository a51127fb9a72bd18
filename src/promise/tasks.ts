/** The agents of a container, those below them included, and the manager of background tasks that it has. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Layer from "effect/Layer"
import type { Executors } from "../background/core.js"
import type { Settings } from "../background/settings.js"
import * as TaskManager from "../background/TaskManager.js"
import * as ToolDispatcher from "../background/ToolDispatcher.js"
import { lazily } from "../protocol/lazily.js"
import { type Listed, refuseSharedIds } from "../protocol/options.js"
import { Agent } from "./Agent.js"
import type { AnyWorkflow } from "./Workflow.js"

type Named<Value> = Readonly<Record<string, Value>>

/** The agents with the option that each was given as, and those that they may call. */
const reachableAgents = (agents: Named<Agent>): ReadonlyArray<readonly [field: string, agent: Agent]> => {
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

/** Who runs the tasks of these agents. Known before anything that a dead process has left is taken up. */
const executorsOf = Effect.fnUntraced(function* (executors: Executors, agents: Named<Agent>) {
  for (const agent of new Set(reachableAgents(agents).map(([, agent]) => agent))) {
    for (const [toolName, executor] of yield* Agent.executors(agent)) {
      executors.add(agent.id, toolName, executor)
    }
  }
  return executors
})

/** What a manager is made of: only a container that has one needs it. */
const parts = lazily(async () => ({
  ...(await import("../background/core.js")),
  ...(await import("../background/manager.js"))
}))

/** The manager, and the way to it for runs. Ends with its scope. */
export const layer = (settings: Settings, agents: Named<Agent>) =>
  Layer.scopedContext(
    Effect.gen(function* () {
      const { Executors, make } = yield* parts
      const manager = yield* make(settings, yield* executorsOf(new Executors(), agents))
      return Context.make(TaskManager.TaskManager, manager).pipe(
        Context.add(ToolDispatcher.ToolDispatcher, ToolDispatcher.of(manager))
      )
    })
  )

/** Fibers that wait for something of the manager, and must not do so for ever. */
export class Waiting {
  private readonly fibers = new Set<Pick<Fiber.RuntimeFiber<unknown>, "unsafeInterruptAsFork">>()

  add<A, E>(fiber: Fiber.RuntimeFiber<A, E>): Fiber.RuntimeFiber<A, E> {
    this.fibers.add(fiber)
    fiber.addObserver(() => this.fibers.delete(fiber))
    return fiber
  }

  /** Nothing comes any more. */
  end(): void {
    for (const fiber of this.fibers) fiber.unsafeInterruptAsFork(FiberId.none)
  }
}

/** Agents of the Effect face, with the services that they need, as a server sees them. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Agent from "../agent/Agent.js"
import { BackgroundTasks } from "../background/BackgroundTasks.js"
import { RunStore } from "../storage/RunStore.js"
import { ThreadStore } from "../storage/ThreadStore.js"
import type { Host, HostAgent, HostRunOptions, HostTasks } from "./Host.js"
import { suspendedIn, toHostRun } from "./suspendedRuns.js"

/** Agents by the name that paths have. @since 0.1.0 @category models */
export type Agents = Readonly<Record<string, Agent.Agent<unknown>>>

/** What the agents need. @since 0.1.0 @category models */
export type AgentsRequirements<A extends Agents> =
  A[keyof A] extends Agent.Agent<infer R> ? (unknown extends R ? never : R) : never

const runOptions = ({ memory, ...options }: HostRunOptions) => ({
  ...options,
  ...(memory === undefined ? {} : { memory })
})

const agentOf = <R>(agent: Agent.Agent<R>, services: Context.Context<R | ThreadStore>): HostAgent => ({
  id: agent.id,
  name: agent.name,
  description: agent.description,
  stream: (input, options) =>
    Stream.provideContext(Agent.stream(agent, input, runOptions(options)), services),
  resume: (data, call, options) =>
    Stream.provideContext(Agent.resumeStream(agent, data, { ...runOptions(options), ...call }), services),
  decide: (decision, call, options) => {
    const given = { ...runOptions(options), ...call }
    const stream = decision.approved
      ? Agent.approveToolCall(agent, given)
      : Agent.declineToolCall(agent, {
          ...given,
          ...(decision.reason === undefined ? {} : { reason: decision.reason })
        })
    return Stream.provideContext(stream, services)
  },
  suspendedRuns: filter =>
    Effect.map(Effect.provide(Agent.listSuspendedRuns(agent, suspendedIn(filter)), services), runs =>
      runs.map(toHostRun)
    )
})

const tasksOf = (tasks: BackgroundTasks["Type"]): HostTasks => ({
  get: tasks.get,
  list: tasks.list,
  stream: tasks.stream,
  resume: tasks.resume,
  cancel: tasks.cancel
})

/** The agents, with the stores and the tasks that are provided where they are served. */
export const hostOf = <const A extends Agents>(
  agents: A
): Effect.Effect<Host, never, AgentsRequirements<A>> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<AgentsRequirements<A>>()
    const threads = yield* Effect.serviceOption(ThreadStore)
    const tasks = yield* Effect.serviceOption(BackgroundTasks)
    const runs = yield* Effect.serviceOption(RunStore)
    // Where there is no store a run with a thread is refused, and no other asks for one. What each agent needs is in the type.
    const services = context as Context.Context<unknown>
    const known = Object.entries(agents).map(([name, agent]) => [name, agentOf(agent, services)] as const)
    return {
      agents: new Map(known),
      threads: Option.getOrUndefined(threads),
      tasks: Option.getOrUndefined(Option.map(tasks, tasksOf)),
      runIds: Option.getOrUndefined(runs)
    }
  })

/** The tools of an agent, as a manager of background tasks runs them: beside the conversation, and again after a restart. */

import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FiberRefs from "effect/FiberRefs"
import type { Executed, Executor, TaskContext } from "../../background/Executor.js"
import type { AgentSettings } from "../../background/settings.js"
import { callUser } from "../../protocol/foreignValue.js"
import { logWarning } from "../../protocol/logging.js"
import type { Message } from "../../protocol/Message.js"
import type * as Usage from "../../protocol/tokens.js"
import type { ThreadTurn } from "../../storage/ThreadStore.js"
import type { Tool } from "../../tool/Tool.js"
import type { RequestContext, ToolContext } from "../../tool/ToolContext.js"
import { Caller, type CallerInfo } from "../caller.js"
import type { Agent } from "../definition.js"
import type { Traced } from "../telemetry/spans.js"
import { attempted } from "../telemetry/taskSpans.js"
import { withTold } from "./told.js"

/** What an execution has of the run that dispatched it; after a restart there is none of it. */
export interface DispatchingRun {
  readonly requestContext: RequestContext
  readonly messages: ReadonlyArray<Message>
  /** Runs above the one that a sub-agent would be, and how many there may be. */
  readonly depth: number
  readonly maxDepth: number
  /** Its turns: a task that outlives them waits for others like any run. */
  readonly turns: ReadonlyArray<ThreadTurn>
  /** What runs below have used counts here. */
  readonly counts: (used: () => Usage.Usage) => void
  /** Its span; `undefined`: nobody listens. */
  readonly traced: Traced | undefined
  /** Those of the fiber that dispatched; `undefined`: the manager's are there. */
  readonly fiberRefs: FiberRefs.FiberRefs | undefined
}

/** What is left of a run after a restart. */
export const noRun = (maxDepth: number): DispatchingRun => ({
  requestContext: new Map(),
  messages: [],
  depth: 1,
  maxDepth,
  turns: [],
  counts: () => undefined,
  traced: undefined,
  fiberRefs: undefined
})

const contextOf = (
  { resumeData, signal, suspend, suspendData, task, write }: TaskContext,
  run: DispatchingRun
): ToolContext => ({
  agentId: task.agentId,
  runId: task.runId,
  toolCallId: task.toolCallId,
  toolName: task.toolName,
  threadId: task.threadId,
  resourceId: task.resourceId,
  requestContext: run.requestContext,
  messages: run.messages,
  get abortSignal() {
    return signal()
  },
  taskId: task.id,
  resumeData,
  suspendData,
  suspend,
  write: output => Effect.sync(() => write(output)),
  // The stream of tasks has no other place for it.
  writeData: part => Effect.sync(() => write(part))
})

const callerOf = ({ signal, task, write }: TaskContext, run: DispatchingRun): CallerInfo => ({
  call: { runId: task.runId, toolCallId: task.toolCallId },
  depth: run.depth,
  maxDepth: run.maxDepth,
  turns: run.turns,
  signal,
  counts: run.counts,
  tell: write,
  // A task waits for no reader.
  mayGoOn: () => true
})

/**
 * Runs the tasks of a tool, with the `FiberRef`s and the services of the run that dispatched. A service whose scope is narrower
 * than the manager's may be finalized by then; the `Scope` of an attempt is its own.
 */
export const executorOf = <R>(
  tool: Tool<string, R>,
  execute: NonNullable<Tool<string, R>["call"]>,
  settings: AgentSettings | undefined,
  services: Context.Context<R>,
  run: DispatchingRun
): Executor => ({
  execute: (context): Effect.Effect<Executed, unknown> =>
    attempted(tool.definition, context, run.traced, seen =>
      callUser(() => execute(seen.task.args, contextOf(seen, run))).pipe(
        Effect.flatMap(withTold(tool.toModelOutput)),
        Effect.provideService(Caller, callerOf(seen, run)),
        Effect.scoped
      )
    ).pipe(Effect.provide(services)),
  readResumeData: tool.readResumeData,
  callbacks: [tool.background?.callbacks, settings?.callbacks].filter(known => known !== undefined),
  concurrency: settings?.concurrency,
  fiberRefs: run.fiberRefs
})

/** Tools of an agent that any of its tasks may be of; those that a function makes, as it makes them without a request. */
const toolsOf = <R>(agent: Agent<R>): Effect.Effect<Iterable<Tool<string, R>>, unknown> => {
  const { tools } = agent
  if (typeof tools !== "function") return Effect.succeed(tools.values())
  return callUser(() => tools({ requestContext: new Map() }))
}

/**
 * Who runs the tasks of an agent, by tool: for those that another process has left behind. A function that makes the tools and
 * fails without a request makes none; its tasks wait for a run.
 */
export const taskExecutors = Effect.fnUntraced(function* <R>(agent: Agent<R>) {
  const services = yield* Effect.context<R>()
  const tools = yield* Effect.catchAllCause(toolsOf(agent), cause =>
    Effect.as(logWarning(`The tools of agent "${agent.id}" are not known before its first run.`, cause), [])
  )
  const executors = new Map<string, Executor>()
  for (const tool of tools) {
    if (tool.call === undefined) continue
    executors.set(
      tool.name,
      executorOf(tool, tool.call, agent.backgroundTasks, services, noRun(agent.defaults.maxDepth ?? 8))
    )
  }
  const known: ReadonlyMap<string, Executor> = executors
  return known
})

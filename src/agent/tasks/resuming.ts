/** Suspended calls, resumed by the agent that made them: what happens to them, and the turn that answers. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { ResumeError } from "../../background/deciding.js"
import type { Happening } from "../../background/hub.js"
import { type ManagerService, TaskManager } from "../../background/TaskManager.js"
import {
  type AgentError,
  InvalidConfiguration,
  RunNotFound,
  ToolCallNotPending
} from "../../protocol/Errors.js"
import { checkOptions } from "../../protocol/options.js"
import type { Task, TaskStatus } from "../../protocol/Task.js"
import type * as Tool from "../../tool/Tool.js"
import { checked, checkMemory, checkResource, settingsOf } from "../checkOptions.js"
import type { Agent, RunRequirements } from "../definition.js"
import { RunControl } from "../loop/run.js"
import { awaitedOf } from "../loop/structuring.js"
import { runKinds, runPlaces } from "../optionKinds.js"
import type { MemoryOptions, RunOptions } from "../RunOptions.js"
import type { Observe, Recording } from "../recording.js"
import { recordStream } from "../recording.js"
import { structureOf } from "../structuredOutput.js"
import { type Beginning, idleBeginning, ofRun } from "./idleBeginning.js"
import { taskExecutors } from "./taskExecutor.js"

/**
 * Which call is decided, and the options of what follows: those that the run had hold still, but for functions and headers, and
 * those that are given here win. A call that was made in a thread is only found with that thread, when `memory` is given; of a
 * call in the background it must be with `untilIdle`.
 *
 * @since 0.1.0
 * @category models
 */
export interface ResumeOptions<
  Tools extends ReadonlyArray<Tool.Any> = ReadonlyArray<Tool.Tool>,
  Memory extends MemoryOptions | undefined = MemoryOptions
> extends RunOptions<Tools, Memory> {
  /** The run that made the call. Of a suspended run it may be left out where it is the only one of the agent in its thread. */
  readonly runId?: string
  /** The call. Of a suspended run it may be left out when only one call of it waits. */
  readonly toolCallId?: string
}

/** A call that was resumed, and what is heard of it. */
export interface Resumed<R> {
  readonly manager: ManagerService
  readonly task: Task
  /** What has happened since it was resumed; from now on nobody keeps it. */
  readonly heard: () => ReadonlyArray<Happening>
  readonly control: RunControl
  /** Of an until-idle stream. */
  readonly beginning: Beginning<R> | undefined
}

const missing = (runId: string, toolCallId: string): RunNotFound =>
  new RunNotFound({
    runId,
    message: `No call "${toolCallId}" of run "${runId}" waits for a decision here: the run is over, or check the ids, the agent and the thread.`
  })

/** The same failure as of a call that waits in a suspended run: who decides need not know where it is executed. */
const decidedAlready = ({ id, runId, toolCallId }: Task, status: TaskStatus): ToolCallNotPending =>
  new ToolCallNotPending({
    runId,
    toolCallId,
    pending: [],
    message: `Call "${toolCallId}" of run "${runId}" does not wait for a decision: its task "${id}" is ${status}. It was decided already, or never waited.`
  })

const isOf = (task: Task, memory: MemoryOptions | undefined, resource: string | undefined): boolean => {
  if (memory === undefined) return resource === undefined || task.resourceId === resource
  const threadId = typeof memory.thread === "string" ? memory.thread : memory.thread.id
  return task.threadId === threadId && task.resourceId === memory.resource
}

/** The suspended task of a call. */
const find = Effect.fnUntraced(function* <R>(
  agent: Agent<R>,
  manager: ManagerService,
  given: Pick<
    ResumeOptions<ReadonlyArray<Tool.Any>, MemoryOptions | undefined>,
    "memory" | "resource" | "runId" | "toolCallId"
  >
) {
  const { memory, resource } = given
  const { runId, toolCallId } = yield* checked(() => ({
    runId: named("runId", given.runId),
    toolCallId: named("toolCallId", given.toolCallId)
  }))
  const { tasks } = yield* manager.list({ agentId: agent.id, runId, toolCallId })
  const ours = tasks.filter(task => isOf(task, memory, resource))
  const suspended = ours.find(({ status }) => status === "suspended")
  if (suspended !== undefined) return suspended
  const [other] = ours
  return yield* other === undefined ? missing(runId, toolCallId) : decidedAlready(other, other.status)
})

const named = (field: "runId" | "toolCallId", id: unknown): string => {
  if (typeof id === "string" && id !== "") return id
  const message = `\`${field}\` is no id. Give \`runId\` and \`toolCallId\` of the call that suspended.`
  throw new InvalidConfiguration({ field, message })
}

/** Refuses what a turn that answers would be refused for, as long as the call is suspended. */
export const checkResume = <R>(
  agent: Agent<R>,
  options: ResumeOptions<ReadonlyArray<Tool.Any>, MemoryOptions | undefined>
): void => {
  const { toolCallId, ...runOptions } = options
  checkOptions("resumeStream", runOptions, { kinds: runKinds, places: runPlaces })
  if (options.runId !== undefined || options.memory === undefined) named("runId", options.runId)
  if (toolCallId !== undefined) named("toolCallId", toolCallId)
  const { abortSignal: _, instructions: __, memory, ...rest } = runOptions
  const { replay: ___, requestContext: ____, resource, runId: _____, tools: ______, ...changes } = rest
  if (memory !== undefined) checkMemory(memory)
  checkResource(resource, memory)
  settingsOf(agent.defaults, changes)
}

/** A turn outside of the thread would be told nothing of what was said in it. */
const checkThread = (task: Task, memory: MemoryOptions | undefined): void => {
  if (memory !== undefined || task.threadId === undefined) return
  throw new InvalidConfiguration({
    field: "memory",
    message: `Task "${task.id}" belongs to a thread. Give \`memory\` with the thread and its resource, so that the turn that answers belongs to it too.`
  })
}

/** Resumes a suspended call. What happens to it is kept until somebody listens, or the scope closes. */
export const resumeCall = Effect.fnUntraced(function* <R>(
  agent: Agent<R>,
  data: unknown,
  options: ResumeOptions<ReadonlyArray<Tool.Any>, MemoryOptions | undefined>,
  control: RunControl
) {
  yield* checked(() => checkResume(agent, options))
  const found = yield* Effect.serviceOption(TaskManager)
  if (Option.isNone(found)) {
    return yield* new InvalidConfiguration({
      field: "backgroundTasks",
      message: `Agent "${agent.id}" has no background tasks that could be resumed. Enable them in its container, or provide BackgroundTasks.`
    })
  }
  const manager = found.value
  const beginning = yield* idleBeginning(agent, ofRun(options), control)
  yield* manager.register(agent.id, yield* taskExecutors(agent))
  const task = yield* find(agent, manager, options)
  if (beginning !== undefined) yield* checked(() => checkThread(task, options.memory))
  const kept: Array<Happening> = []
  const hear = (happening: Happening): void => {
    if (happening.task.id === task.id) kept.push(happening)
  }
  const forget = yield* Effect.acquireRelease(
    Effect.sync(() => manager.listen(hear)),
    leave => Effect.sync(leave)
  )
  yield* Effect.mapError(manager.resume(task.id, data), error =>
    error._tag === "InvalidTaskState" && error.status !== "suspended"
      ? decidedAlready(task, error.status)
      : error
  )
  const heard = (): ReadonlyArray<Happening> => {
    forget()
    return kept
  }
  const resumed: Resumed<R> = { manager, task, heard, control, beginning }
  return resumed
})

const resumedStream = Effect.map(
  Effect.promise(() => import("./untilIdle.js")),
  ({ resumedUntilIdle }) => resumedUntilIdle
)

/** The same recorded, for the Promise face. Fails when the call cannot be resumed. */
export const recordResumed = <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  agent: Agent<R>,
  data: unknown,
  options: ResumeOptions<Tools, Memory>,
  observe?: Observe,
  control: RunControl = new RunControl()
): Effect.Effect<
  Recording,
  AgentError | ResumeError | RunNotFound | ToolCallNotPending,
  R | RunRequirements<Tools, Memory>
> =>
  Effect.gen(function* () {
    const make = yield* resumedStream
    const structure = yield* checked(() =>
      structureOf(options.structuredOutput ?? agent.defaults.structuredOutput)
    )
    const services = yield* Effect.context<R | RunRequirements<Tools, Memory>>()
    const scope = yield* Scope.make()
    const close = (exit: Exit.Exit<unknown, unknown>) => Scope.close(scope, exit)
    return yield* resumeCall(agent, data, options, control).pipe(
      Scope.extend(scope),
      Effect.flatMap(call =>
        recordStream(
          options.runId ?? "",
          make(options, call, services),
          options,
          observe,
          control,
          close,
          structure && awaitedOf(structure)
        )
      ),
      Effect.onError(cause => close(Exit.failCause(cause)))
    )
  })

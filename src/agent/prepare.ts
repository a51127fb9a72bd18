/** Makes a run ready: settings with their defaults, the conversation, the tools; refuses what cannot work before any model is asked. */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as RuntimeFlags from "effect/RuntimeFlags"
import { type RunDispatcher, ToolDispatcher } from "../background/ToolDispatcher.js"
import * as RunIds from "../model/runIds.js"
import * as RunFold from "../output/RunFold.js"
import type { Chunk } from "../protocol/Chunk.js"
import { type Entry, type Input, readInput, settled } from "../protocol/Conversation.js"
import { AgentDepthExceeded, InvalidConfiguration, type RunAborted } from "../protocol/Errors.js"
import { callUser, squash } from "../protocol/foreignValue.js"
import { IdGenerator } from "../protocol/Id.js"
import { checkOptions } from "../protocol/options.js"
import { messageOf } from "../protocol/safeJson.js"
import type { Task } from "../protocol/Task.js"
import * as Usage from "../protocol/tokens.js"
import { RunStore } from "../storage/RunStore.js"
import { ThreadStore, type ThreadTurn } from "../storage/ThreadStore.js"
import type * as Tool from "../tool/Tool.js"
import type { RequestContext } from "../tool/ToolContext.js"
import { Caller, type CallerInfo } from "./caller.js"
import {
  activeTools,
  checked,
  checkMemory,
  checkResource,
  checkToolChoice,
  definitionsOf,
  modelsOf,
  settingsOf,
  toolsByName
} from "./checkOptions.js"
import { type Agent, type AnyRunOptions, type RunRequirements, toolsOf } from "./definition.js"
import { runGoal } from "./goals/goalSettings.js"
import { follow } from "./loop/following.js"
import { capacity, capacityUnkept, Inbox } from "./loop/inbox.js"
import { instructionsOf } from "./loop/planning.js"
import { nestedUsage, type Run, type RunControl, stopRunning } from "./loop/run.js"
import { runKinds, runPlaces } from "./optionKinds.js"
import { background, goingOn, processing, structured, toolsOfClients } from "./parts.js"
import type { Dynamic, DynamicState, MemoryOptions, RunOptions } from "./RunOptions.js"
import { makeThread, type RunThread } from "./runThread.js"
import type { Settings } from "./settings.js"
import { structureOf } from "./structuredOutput.js"
import { keptOptions, resumedFrom } from "./suspension/resumption.js"
import { atFirst, type Resumption } from "./suspension/runSuspension.js"
import type { Answered } from "./tasks/runTasks.js"
import { observed, type RunTelemetry } from "./telemetry/runTelemetry.js"
import { storeLast } from "./thread.js"

/** Characters of an answer that a run without replay keeps. */
export const keptText = 2 ** 20

/** Fails as soon as the run is to stop: it need not have begun for that. */
const halted = (control: RunControl, signal: AbortSignal | undefined): Effect.Effect<never, RunAborted> =>
  Effect.async(resume => {
    const stop = (): void => {
      const halt = control.halted
      const reason = halt?._tag === "Aborted" ? halt.reason : undefined
      if (halt !== undefined) {
        resume(Effect.fail(RunFold.abortedBy(reason)))
      }
    }
    control.onHalt(stop)
    const release = follow(signal, control)
    stop()
    return Effect.sync(release)
  })

interface Surroundings extends DynamicState {
  readonly control: RunControl
  readonly signal: AbortSignal | undefined
}

/** A part of the agent, made for this run when it is a function. It may take its time, and an abort does not wait for it. */
const resolve = <A>(
  field: string,
  dynamic: Dynamic<A>,
  { control, requestContext, signal }: Surroundings
): Effect.Effect<A, InvalidConfiguration | RunAborted> => {
  // A part that is a function is no part yet: what an agent is made of are texts, lists and objects.
  if (typeof dynamic !== "function") return Effect.succeed(dynamic)
  const make = dynamic as (state: DynamicState) => A | Effect.Effect<A, unknown>
  const made = callUser(() => make({ requestContext }))
  const broken = (cause: Cause.Cause<unknown>): InvalidConfiguration =>
    new InvalidConfiguration({
      field,
      message: `The function \`${field}\` of the agent must give what the agent is to have, and failed: ${messageOf(squash(cause))}`
    })
  const named = Effect.catchAllCause(made, cause =>
    Cause.isInterruptedOnly(cause) ? Effect.interrupt : Effect.fail(broken(cause))
  )
  return Effect.interruptible(Effect.raceFirst(named, halted(control, signal)))
}

/** Tools by name already: not as a function gives them. */
const isByName = <A>(tools: ReadonlyArray<A> | ReadonlyMap<string, A>): tools is ReadonlyMap<string, A> =>
  tools instanceof Map

const nothing = (): void => undefined

const contextOf = (given: AnyRunOptions["requestContext"]): RequestContext => {
  if (given instanceof Map) return given
  return new Map(Object.entries(given ?? {}))
}

const threadOf = <R>(
  agent: Agent<unknown>,
  memory: MemoryOptions,
  entries: ReadonlyArray<Entry>,
  isFirst: boolean,
  services: Context.Context<R>
): Effect.Effect<RunThread, InvalidConfiguration> => {
  const store = Context.getOption(services, ThreadStore)
  if (Option.isSome(store)) {
    return Effect.succeed(makeThread(store.value, memory, agent.memory, entries, isFirst))
  }
  return new InvalidConfiguration({
    field: "memory",
    message: `Agent "${agent.id}" has nowhere to keep threads. Give its container a store, for example new Eddy({ agents, storage: new InMemoryStore() }); with Effect provide ThreadStore.`
  })
}

/** Without a thread the input stands alone, and must say something by itself. */
const conversationOf = (thread: RunThread | undefined, entries: ReadonlyArray<Entry>) =>
  thread === undefined ? settled(entries.map(({ message }) => message)) : Effect.succeed([])

/** A run as one turn of an until-idle stream. */
export interface Turn {
  readonly answered: Answered
  /** What has settled since the turn before, and is answered in this one. */
  readonly settled: ReadonlyArray<Task>
  /** Its turn in its thread, taken before it began. */
  readonly threadTurn?: ThreadTurn | undefined
}

/** The calls of this run in the background; `undefined`: there can be none. */
const tasksOf = Effect.fnUntraced(function* <R>(
  agent: Agent<unknown>,
  dispatcher: RunDispatcher,
  tools: ReadonlyMap<string, Tool.Tool<string, R>>,
  maxDepth: number,
  services: Context.Context<R>,
  turn: Turn | undefined
) {
  const { executorOf, noRun, RunTasks } = yield* background
  const executors = [...tools.values()].flatMap(tool =>
    tool.call !== undefined && dispatcher.isEligible(tool)
      ? [[tool.name, executorOf(tool, tool.call, agent.backgroundTasks, services, noRun(maxDepth))] as const]
      : []
  )
  if (executors.length > 0) yield* dispatcher.register(new Map(executors))
  return new RunTasks(dispatcher, agent.backgroundTasks, services, turn?.answered)
})

/** What the model is told of these tasks, before anything else of the run. */
const settledNote = (tasks: ReadonlyArray<Task>) =>
  Effect.map(background, ({ settledMessage }) => ({ message: settledMessage(tasks), after: 0 }))

const hasProcessors = ({ inputProcessors = [], outputProcessors = [] }: Settings): boolean =>
  inputProcessors.length > 0 || outputProcessors.length > 0

const ready = Effect.fnUntraced(function* <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools, Memory>,
  control: RunControl,
  turn: Turn | undefined,
  resumption: Resumption | undefined,
  telemetry: RunTelemetry
) {
  type Needs = R | RunRequirements<Tools, Memory>
  const { abortSignal, clientTools, instructions, memory, replay, requestContext, ...others } = options
  const { resource, runId, tools, ...changes } = others
  const added: ReadonlyArray<Tool.Tool<string, Needs>> = toolsOf(tools)
  const settings = yield* checked(() => {
    checkOptions("A run", options, { kinds: runKinds, places: runPlaces })
    if (memory !== undefined) checkMemory(memory)
    checkResource(resource, memory)
    return settingsOf(agent.defaults, changes)
  })
  // Asked for once: a run with a tag for each of its services would wait for each.
  const runtime = yield* Effect.runtime<Needs>()
  const services = runtime.context
  const caller: CallerInfo = Context.get(services, Caller)
  if (caller.depth > caller.maxDepth) {
    const { maxDepth } = caller
    const message = `Agent "${agent.id}" was not run: it would be ${caller.depth} agents deep, and \`maxDepth\` is ${maxDepth}.`
    return yield* new AgentDepthExceeded({ agentId: agent.id, maxDepth, message })
  }
  const context = contextOf(requestContext)
  const state: Surroundings = { requestContext: context, control, signal: abortSignal }
  const said =
    instructions ?? (agent.instructions && (yield* resolve("instructions", agent.instructions, state)))
  const models = yield* resolve("model", agent.model, state)
  const own = typeof agent.tools === "function" ? yield* resolve("tools", agent.tools, state) : agent.tools
  const ofClients = clientTools === undefined ? undefined : yield* toolsOfClients
  const { active, all, choices, first, ofClient } = yield* checked(() => {
    const agents: ReadonlyMap<string, Tool.Tool<string, Needs>> = isByName(own) ? own : toolsByName(own)
    const known = added.length === 0 ? agents : new Map([...agents, ...toolsByName(added)])
    const ofClient = toolsByName(ofClients?.toClientTools(clientTools, known) ?? [])
    const all = ofClient.size === 0 ? known : new Map([...known, ...ofClient])
    const active =
      settings.activeTools === undefined
        ? all
        : new Map([...activeTools(all, settings.activeTools), ...ofClient])
    checkToolChoice(settings.toolChoice, active)
    const choices = modelsOf(models, settings.maxRetries)
    return { active, all, choices, first: instructionsOf(said), ofClient }
  })
  const entries = resumption === undefined ? yield* readInput(input) : []
  const isFirst = turn === undefined || turn.settled.length === 0
  const thread = memory === undefined ? undefined : yield* threadOf(agent, memory, entries, isFirst, services)
  const resumed = resumption && resumedFrom(resumption.snapshot)
  const conversation = resumed?.input ?? (yield* conversationOf(thread, entries))
  if (thread !== undefined) thread.turn = turn?.threadTurn
  // The thread has the outcomes of calls that were decided.
  if (thread !== undefined && resumed !== undefined) thread.stored = resumed.added.length
  const ids = Context.get(services, IdGenerator)
  const clock = yield* Effect.clock
  // Whoever is called by another agent is in a task already, or is waited for.
  const dispatcher =
    caller.depth > 0 ? undefined : Context.get(services, ToolDispatcher).open(agent.id, agent.backgroundTasks)
  const tasks = dispatcher && (yield* tasksOf(agent, dispatcher, all, settings.maxDepth, services, turn))
  const settled = turn?.settled ?? []
  const processors = hasProcessors(settings) ? (yield* processing).processorsOf(settings, isFirst) : undefined
  if (resumption !== undefined) yield* goingOn
  const inbox = new Inbox(replay === false ? capacityUnkept : capacity)
  const id = resumption?.runId ?? runId ?? ids.next("run")
  const textLimit = replay === false ? keptText : Number.POSITIVE_INFINITY
  const fold = RunFold.make(id, textLimit)
  const tell = (chunk: Chunk): void => {
    // The text of a step comes with its `step-finish`.
    if (chunk.type !== "text-delta") fold.push(chunk)
    inbox.push(chunk)
  }
  const structure = structureOf(settings.structuredOutput)
  const structuring = structure && new (yield* structured).Structuring(structure, id, tell, caller.depth > 0)
  const releases = [follow(abortSignal, control), follow(caller.signal(), control)]
  const run: Run<Needs> = {
    runId: id,
    agentId: agent.id,
    messageId: ids.next("message"),
    models: choices,
    modelIndex: 0,
    model: choices[0].model,
    settings,
    tools: active,
    allTools: all,
    definitions: definitionsOf(active),
    requestContext: context,
    ids: RunIds.make(),
    makeId: ids.next,
    instructions: first,
    input: [...conversation],
    added: resumed?.added ?? [],
    thread,
    resourceId: thread?.resourceId ?? resource,
    tasks,
    processors,
    suspension: {
      store: Option.getOrUndefined(Context.getOption(services, RunStore)),
      options: keptOptions(options, definitionsOf(ofClient)),
      earlier: resumed?.earlier ?? atFirst,
      leg: undefined,
      leave: undefined
    },
    note: settled.length === 0 ? undefined : yield* settledNote(settled),
    feedback: resumed?.feedback ?? [],
    goal: runGoal(agent.goal, thread, resumed?.earlier.judgedSteps ?? 0),
    rememberCutOff: undefined,
    nested: [...(turn?.answered.take(settled.map(({ id }) => id)) ?? [])],
    caller,
    textLimit,
    inbox,
    control,
    clock,
    telemetry,
    fold,
    structuring,
    emit: structuring?.emit ?? tell,
    // Whoever makes a run ready may not be interrupted meanwhile; what the run starts may.
    // A logger that throws must not hold a fiber at its end: what fails is part of the run.
    runFork: Runtime.runFork(
      Runtime.setFiberRef(
        Runtime.enableRuntimeFlag(runtime, RuntimeFlags.Interruption),
        FiberRef.unhandledErrorLogLevel,
        Option.none()
      )
    ),
    running: new Set(),
    stopStepTimer: nothing,
    isOver: false,
    close: () => {
      for (const release of releases) release()
      inbox.close()
      const fibers = [...run.running].flatMap(({ fiber }) => fiber ?? [])
      if (run.running.size > 0) stopRunning(run)
      telemetry.close()
      const awaited = fibers.length === 0 ? Effect.void : Fiber.awaitAll(fibers)
      const leaving = run.suspension.leave?.()
      const stopped = leaving === undefined ? awaited : Effect.zipRight(awaited, leaving)
      const left =
        tasks === undefined
          ? stopped
          : Effect.zipRight(
              stopped,
              Effect.suspend(() => tasks.lost)
            )
      if (run.isOver || thread === undefined) return left
      run.rememberCutOff?.()
      return Effect.zipRight(stopped, Effect.zipRight(storeLast(run), tasks?.lost ?? Effect.void)).pipe(
        Effect.ensuring(Effect.sync(() => thread.turn?.end()))
      )
    }
  }
  caller.counts(
    () => run.used ?? (run.isOver ? fold.usageSoFar : Usage.combine(fold.usageSoFar, nestedUsage(run)))
  )
  control.onHalt(() => {
    stopRunning(run)
    inbox.notify()
  })
  telemetry.begun({
    runId: id,
    threadId: thread?.id,
    model: run.model,
    messages: () => entries.map(({ message }) => message)
  })
  return run
})

/**
 * A run that can be started once. Whoever starts it closes it, however it ends: that stops what it has running, waits for
 * that, stores what it had said, and lets go of the signal.
 */
export const prepare = <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools, Memory>,
  control: RunControl,
  turn?: Turn,
  resumption?: Resumption
) => observed(agent, turn, telemetry => ready(agent, input, options, control, turn, resumption, telemetry))

/** One run in progress: what it was asked, what it has told, and what stops it. Plain data; the loop carries it. */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type { LanguageModel, ToolDefinition } from "../../model/ModelPort.js"
import type { RunIds } from "../../model/runIds.js"
import type { RunFold } from "../../output/RunFold.js"
import type { Chunk } from "../../protocol/Chunk.js"
import type { RunTimedOut } from "../../protocol/Errors.js"
import { squash } from "../../protocol/foreignValue.js"
import type { IdKind } from "../../protocol/Id.js"
import type { Message } from "../../protocol/Message.js"
import * as Usage from "../../protocol/tokens.js"
import type { ThreadTurn } from "../../storage/ThreadStore.js"
import type { Tool } from "../../tool/Tool.js"
import type { RequestContext } from "../../tool/ToolContext.js"
import type { CallerInfo } from "../caller.js"
import type { RunGoal } from "../goals/goalSettings.js"
import type { RunProcessors } from "../processors/runProcessors.js"
import type { RunThread } from "../runThread.js"
import type { Settings } from "../settings.js"
import type { RunSuspension } from "../suspension/runSuspension.js"
import type { RunTasks } from "../tasks/runTasks.js"
import type { RunTelemetry } from "../telemetry/runTelemetry.js"
import { defectOf, type RunError } from "./defect.js"
import type { Inbox } from "./inbox.js"
import type { ModelChoice } from "./retrying.js"
import type { Structuring } from "./structuring.js"

/** Why a run is to stop before it has ended by itself. */
export type Halt =
  | { readonly _tag: "Aborted"; readonly reason: unknown }
  | { readonly _tag: "TimedOut"; readonly error: RunTimedOut }
  /** Something that no step can go on without is missing. */
  | { readonly _tag: "Failed"; readonly error: RunError }

/** Stops a run from outside. */
export class RunControl {
  private halt: Halt | undefined
  private listeners: ReadonlyArray<() => void> = []

  /** `takesFailure`: the caller of the run gets its failure, and the log does not repeat it. */
  constructor(readonly takesFailure = false) {}

  /** The first call counts. */
  readonly abort = (reason?: unknown): void => this.stop({ _tag: "Aborted", reason })

  /** Its time is over. */
  expire(error: RunTimedOut): void {
    this.stop({ _tag: "TimedOut", error })
  }

  /** It cannot go on. */
  fail(error: RunError): void {
    this.stop({ _tag: "Failed", error })
  }

  private stop(halt: Halt): void {
    if (this.halt !== undefined) return
    this.halt = halt
    for (const listener of this.listeners) listener()
  }

  /** Why the run is to stop; `undefined` as long as it is not. */
  get halted(): Halt | undefined {
    return this.halt
  }

  /** Called when the run is to stop, before anything else notices it. */
  onHalt(listener: () => void): void {
    this.listeners = this.listeners.concat(listener)
  }
}

/** A message of nobody's, behind so many of those that the run has added. */
export interface Note {
  readonly message: Message
  readonly after: number
}

/** A run in progress. */
export interface Run<in out R> {
  readonly runId: string
  readonly agentId: string
  readonly messageId: string
  readonly models: ReadonlyArray<ModelChoice>
  /** 0-based place of the model that the next step begins with: the first, until another one has taken over. */
  modelIndex: number
  /** The model that was asked last, or will be asked first. */
  model: LanguageModel
  readonly settings: Settings
  /** The tools that are active, unless a step says otherwise. */
  readonly tools: ReadonlyMap<string, Tool<string, R>>
  /** Those that are not, too. */
  readonly allTools: ReadonlyMap<string, Tool<string, R>>
  /** The active tools, as the model is told of them. */
  readonly definitions: ReadonlyArray<ToolDefinition>
  readonly requestContext: RequestContext
  readonly ids: RunIds
  readonly makeId: (kind: IdKind) => string
  /** What the model is told first; no part of the conversation. */
  readonly instructions: ReadonlyArray<Message>
  /** The conversation before this run; of a run with a thread, once that is open. */
  input: ReadonlyArray<Message>
  /** What this run has added to it. */
  readonly added: Array<Message>
  readonly thread: RunThread | undefined
  /** Whose it is, with a thread or without. */
  readonly resourceId: string | undefined
  /** Its calls in the background; `undefined`: none can be. */
  readonly tasks: RunTasks<R> | undefined
  /** Those who see and judge what it is told and says; `undefined`: nobody. */
  readonly processors: RunProcessors | undefined
  /** What it needs to be laid aside, and has of what it was before it was. */
  readonly suspension: RunSuspension<R>
  /** What the model is told of tasks that have settled, behind so many of the messages that the run has added. Nobody stores it. */
  note: Note | undefined
  /** What the run itself tells the model about what it has said: likewise, and for every step that follows. */
  readonly feedback: Array<Note>
  /** How its answers are judged; `undefined`: they are not. */
  readonly goal: RunGoal | undefined
  /** Adds what is being said to `added`, as something that was cut off; `undefined` when nothing is. */
  rememberCutOff: (() => void) | undefined
  /** What runs that this step has started have used so far. */
  nested: Array<() => Usage.Usage>
  /** The tool call that this run serves, or nobody. */
  readonly caller: CallerInfo
  /** Characters of an answer that are kept. */
  readonly textLimit: number
  readonly inbox: Inbox
  readonly control: RunControl
  readonly clock: Clock.Clock
  /** What traces and metrics are told of it. */
  readonly telemetry: RunTelemetry
  /** Tells a chunk: into the fold and the inbox. */
  readonly emit: (chunk: Chunk) => void
  /** Its structured value; `undefined`: nobody asked for one. */
  readonly structuring: Structuring | undefined
  /** Everything told so far but text deltas, which nothing here asks for. */
  readonly fold: RunFold
  /** Starts a fiber of the run at once, on this stack. See {@link fork}. */
  readonly runFork: (effect: Effect.Effect<void, never, R>) => Fiber.RuntimeFiber<void>
  /** What is running and has to be stopped with the run. */
  readonly running: Set<Running>
  /** Stops the clock of the step, when it has a limit. */
  stopStepTimer: () => void
  /** Whether `finish` was told. */
  isOver: boolean
  /** Of a run that was suspended before: what it has used since, once it is over. */
  used?: Usage.Usage
  /** Stops what is running, waits for that, and lets go of everything outside. */
  readonly close: () => Effect.Effect<unknown>
}

/** The reason of signals that nobody gave one: made once, as a `DOMException` takes its stack when it is made. */
const unwanted = new DOMException("The run is over.", "AbortError")

/** Something that a run has started, and that can be stopped, whether it listens or not. */
export interface Running {
  /** Tells it, with this reason, and stops it. Absent: it is short, and ends by itself. */
  readonly stop?: (reason: unknown) => void
  /** What a run that is closed waits for; a model call is just left. */
  readonly fiber?: Fiber.RuntimeFiber<void>
}

/** Keeps what has been started; the function that is returned lets go of it. */
export const own = <R>(run: Run<R>, running: Running): (() => void) => {
  run.running.add(running)
  // It may have stopped the run before anybody knew of it.
  if (run.control.halted !== undefined) stopRunning(run)
  return () => run.running.delete(running)
}

const ignore = (): void => undefined

/** A fiber of the run that dies stops the run. */
const surviving = <R>(run: Run<R>, effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> =>
  Effect.catchAllCause(effect, cause =>
    Cause.isInterruptedOnly(cause)
      ? Effect.failCause(cause)
      : Effect.sync(() => run.control.fail(defectOf(squash(cause))))
  )

/** Starts a fiber that the run owns, and gives what stops it. `tell` hears the reason when it is stopped. */
export const fork = <R>(
  run: Run<R>,
  effect: Effect.Effect<void, never, R>,
  tell: (reason: unknown) => void = ignore
): ((reason: unknown) => void) => {
  const fiber = run.runFork(surviving(run, effect))
  if (fiber.unsafePoll() !== null) return ignore
  const stop = (reason: unknown): void => {
    tell(reason)
    fiber.unsafeInterruptAsFork(FiberId.none)
  }
  const release = own(run, { fiber, stop })
  fiber.addObserver(release)
  return stop
}

/** Starts a fiber that goes on when the run is stopped: it must end by itself, soon. */
export const forkToEnd = <R>(run: Run<R>, effect: Effect.Effect<void, never, R>): void => {
  const fiber = run.runFork(surviving(run, effect))
  if (fiber.unsafePoll() === null) fiber.addObserver(own(run, { fiber }))
}

const reasonOf = (halt: Halt | undefined): unknown => {
  if (halt === undefined) return unwanted
  return halt._tag === "Aborted" ? (halt.reason ?? unwanted) : halt.error
}

/**
 * Stops what the run has running, and does not wait for it: a tool may ignore that, and the scope of the run waits for it.
 */
export const stopRunning = <R>(run: Run<R>): void => {
  const reason = reasonOf(run.control.halted)
  for (const { stop } of run.running) stop?.(reason)
}

/** The turns of the run and of those that it works for. */
export const turnsOf = <R>({ caller, thread }: Run<R>): ReadonlyArray<ThreadTurn> =>
  thread?.turn === undefined ? caller.turns : [...caller.turns, thread.turn]

/** 0-based number of the step that has not finished yet, also of a run that was suspended before. */
export const stepNumberOf = <R>({ fold, suspension }: Run<R>): number =>
  suspension.earlier.steps + fold.finishedSteps.length

/** Steps up to the answer that was judged last: `maxSteps` counts from there. */
export const judgedStepsOf = <R>({ goal, suspension }: Run<R>): number =>
  goal?.judgedSteps ?? suspension.earlier.judgedSteps

/** Whether no step may follow the one that has not finished yet. */
export const isLastAllowed = <R>(run: Run<R>): boolean =>
  stepNumberOf(run) + 1 - judgedStepsOf(run) >= run.settings.maxSteps

/** What runs that this step has started have used so far. */
export const nestedUsage = <R>({ nested }: Run<R>): Usage.Usage =>
  nested.reduce((sum, used) => Usage.combine(sum, used()), Usage.empty)

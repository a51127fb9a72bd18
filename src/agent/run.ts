/** One run in progress: what it was asked, what it has told, and what stops it. Plain data; the loop carries it. */
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type { LanguageModel, ToolDefinition } from "../model/ModelPort.js"
import type { RunIds } from "../model/runIds.js"
import type { RunFold } from "../output/RunFold.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { IdKind } from "../protocol/Id.js"
import type { Message } from "../protocol/Message.js"
import type { Tool } from "../tool/Tool.js"
import type { Inbox } from "./inbox.js"
import type { Defaults, StopCondition } from "./RunOptions.js"

/** Stops a run from outside. */
export class RunControl {
  private abortion: { readonly reason: unknown } | undefined
  private readonly listeners = new Set<() => void>()

  /** The first call counts. */
  readonly abort = (reason?: unknown): void => {
    if (this.abortion !== undefined) return
    this.abortion = { reason }
    for (const listener of this.listeners) listener()
  }

  /** Why the run is to stop, wrapped; `undefined` as long as it is not. */
  get aborted(): { readonly reason: unknown } | undefined {
    return this.abortion
  }

  /** Called at the abort, before anything else notices it. */
  onAbort(listener: () => void): void {
    this.listeners.add(listener)
  }
}

/** The settings of a run, with every default filled in. */
export interface Settings extends Omit<Defaults, "stopWhen" | "maxSteps" | "toolCallConcurrency"> {
  readonly maxSteps: number
  readonly toolCallConcurrency: number
  readonly stopWhen: ReadonlyArray<StopCondition>
}

/** A run in progress. */
export interface Run<in out R> {
  readonly runId: string
  readonly agentId: string
  readonly messageId: string
  readonly model: LanguageModel
  readonly settings: Settings
  readonly tools: ReadonlyMap<string, Tool<string, R>>
  /** The tools, as the model is told of them. */
  readonly definitions: ReadonlyArray<ToolDefinition>
  readonly ids: RunIds
  readonly makeId: (kind: IdKind) => string
  /** What the model is told first; no part of the conversation. */
  readonly instructions: ReadonlyArray<Message>
  /** The conversation before this run. */
  readonly input: ReadonlyArray<Message>
  /** What this run has added to it. */
  readonly added: Array<Message>
  readonly inbox: Inbox
  readonly control: RunControl
  /** Tells a chunk: into the fold and the inbox. */
  readonly emit: (chunk: Chunk) => void
  /** Everything told so far but text deltas, which nothing here asks for. */
  readonly fold: RunFold
  /** Starts a fiber of the run at once, on this stack. See {@link fork}. */
  readonly runFork: (effect: Effect.Effect<void, never, R>) => Fiber.RuntimeFiber<void>
  /** What is running and has to be stopped with the run. */
  readonly running: Set<Running>
  /** Stops what is running, waits for that, and lets go of everything outside. */
  readonly close: Effect.Effect<unknown>
}

/** The reason of signals that nobody gave one: made once, as a `DOMException` takes its stack when it is made. */
const unwanted = new DOMException("The run is over.", "AbortError")

/** Something that a run has started, and that can be stopped, whether it listens or not. */
export interface Running {
  /** Tells it, with this reason, and stops it. */
  readonly stop: (reason: unknown) => void
  /** What a run that is closed waits for; a model call is just left. */
  readonly fiber?: Fiber.RuntimeFiber<void>
}

/** Keeps what has been started; the function that is returned lets go of it. */
export const own = <R>(run: Run<R>, running: Running): (() => void) => {
  run.running.add(running)
  // It may have aborted the run before anybody knew of it.
  if (run.control.aborted !== undefined) stopRunning(run)
  return () => run.running.delete(running)
}

/** Starts a fiber that the run owns. `tell` hears the reason when the run stops it. */
export const fork = <R>(
  run: Run<R>,
  effect: Effect.Effect<void, never, R>,
  tell: (reason: unknown) => void = () => undefined
): void => {
  const fiber = run.runFork(effect)
  if (fiber.unsafePoll() !== null) return
  const stop = (reason: unknown): void => {
    tell(reason)
    fiber.unsafeInterruptAsFork(FiberId.none)
  }
  const release = own(run, { fiber, stop })
  fiber.addObserver(release)
}

/**
 * Stops what the run has running, and does not wait for it: a tool may ignore that, and the scope of the run waits for it.
 */
export const stopRunning = <R>(run: Run<R>): void => {
  const reason = run.control.aborted?.reason ?? unwanted
  for (const { stop } of run.running) stop(reason)
}

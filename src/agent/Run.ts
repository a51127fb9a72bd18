/** One run in progress: what it was asked, what it has told, and what stops it. Plain data; the loop carries it. */
import { Effect, type Fiber, FiberId, type Scope } from "effect"
import type { LanguageModel } from "../model/LanguageModel.js"
import type { RunIds } from "../model/RunIds.js"
import type { RunFold } from "../output/RunFold.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { IdKind } from "../protocol/Id.js"
import type { Message } from "../protocol/Message.js"
import type { Tool } from "../tool/Tool.js"
import type { Inbox } from "./Inbox.js"
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
export interface Run<out R> {
  readonly runId: string
  readonly agentId: string
  readonly messageId: string
  readonly model: LanguageModel
  readonly settings: Settings
  readonly tools: ReadonlyMap<string, Tool<string, R>>
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
  /** Owns every fiber of the run. */
  readonly scope: Scope.Scope
  /** Those that are running. */
  readonly fibers: Set<Fiber.RuntimeFiber<void>>
}

/**
 * Interrupts what the run has running, and does not wait for it: a tool may ignore that, and the scope of the run owns it
 * until it ends.
 */
export const interruptFibers = (run: Run<unknown>): void => {
  for (const fiber of run.fibers) fiber.unsafeInterruptAsFork(FiberId.none)
}

/** Forks into the scope of the run. */
export const fork = <R>(
  run: Run<unknown>,
  effect: Effect.Effect<void, never, R>
): Effect.Effect<void, never, R> =>
  Effect.map(Effect.forkIn(effect, run.scope), fiber => {
    run.fibers.add(fiber)
    fiber.addObserver(() => run.fibers.delete(fiber))
    // An abort that came before the fiber was known.
    if (run.control.aborted !== undefined) fiber.unsafeInterruptAsFork(FiberId.none)
  })

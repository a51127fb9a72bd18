/** One task as this process holds it, until it is settled and everybody was told. */
import type * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ToolResultOutput, ToolResultPart } from "../protocol/Message.js"
import type { JsonValue } from "../protocol/safeJson.js"
import { isSettled, type Task, type TaskEvent, transition } from "../protocol/Task.js"
import type { Executor } from "./Executor.js"
import type { Pacing } from "./retrying.js"
import { outcomePart } from "./taskChunks.js"

/**
 * Whether the conversation holds the acknowledgement of the call: `absent`, when there is no thread; `open`, as long as the
 * run has yet to store it; `stored`; or `lost`, when the run is over and never did.
 */
export type Acknowledged = "absent" | "open" | "stored" | "lost"

export class Entry {
  /** What it was resumed with last. */
  resumeData: Option.Option<JsonValue> = Option.none()
  /** What it had suspended with when it was resumed here. */
  suspendData: JsonValue | undefined
  /** How failures are paced, as far as it has come. */
  pacing: Pacing | undefined
  /** The next begin is another attempt of a running task. */
  isRetry = false
  /** Stops what this process does for it, now. */
  stop: ((reason: unknown) => void) | undefined
  /** Tells what it wrote and was held back. */
  flush: (() => void) | undefined
  /** Completed when it is resumed here. */
  parked: Deferred.Deferred<void> | undefined
  isDelivered = false
  /** Whether everybody who listens was told how it ended. */
  isTold = false
  /** Another process has it. */
  isForeign = false
  /** It is stored. */
  isCreated = false
  /** It waits to be begun, in the queue or until it is tried again: no tool works for it. */
  isWaiting = false
  /** The store failed when it was asked to change it: the change may have come to pass, and nobody but this process knows. */
  isUnsure = false
  /** What the conversation is to hold of it; set when it settles. */
  part: ToolResultPart | undefined
  /** One tells its thread at a time. */
  telling: Effect.Semaphore | undefined
  private tickets = 0
  private changes = 0
  private listeners: Array<(entry: Entry) => void> = []

  constructor(
    public task: Task,
    public executor: Executor | undefined,
    public acknowledged: Acknowledged
  ) {}

  get isSettled(): boolean {
    return this.part !== undefined
  }

  /** Makes the task what the event makes of it; whether it could. */
  apply(event: TaskEvent): boolean {
    const next = transition(this.task, event)
    if (next === undefined) return false
    this.task = next
    return true
  }

  /** The store is asked to change it: what is stored may be ahead of what is known. */
  get isChanging(): boolean {
    return this.changes > 0
  }

  /** The place in the queue that counts, when it was queued more than once. */
  get ticket(): number {
    return this.tickets
  }

  nextTicket(): number {
    return ++this.tickets
  }

  /** Says that the store is asked to change it, as long as it is. */
  changing<A, E>(change: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      this.changes++
      return Effect.onExit(change, () => {
        this.changes--
        return Effect.void
      })
    })
  }

  /** The task has come to its end. Does nothing the second time. */
  settle(task: Task, told: ToolResultOutput | undefined): boolean {
    if (this.isSettled || !isSettled(task.status)) return false
    this.task = task
    this.part = outcomePart(task, told)
    const { listeners } = this
    this.listeners = []
    for (const listener of listeners) listener(this)
    return true
  }

  /** Calls back when it settles; at once when it has. Returns how to forget it. */
  onSettled(listener: (entry: Entry) => void): () => void {
    if (this.isSettled) {
      listener(this)
      return () => undefined
    }
    this.listeners = [...this.listeners, listener]
    return () => {
      this.listeners = this.listeners.filter(other => other !== listener)
    }
  }
}

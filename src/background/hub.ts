/** What happens to tasks, told to everybody who listens. Nobody who tells waits for a reader. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Of } from "../protocol/Chunk.js"
import { TaskReaderTooSlow } from "../protocol/Errors.js"
import type { Task } from "../protocol/Task.js"
import type { Fork } from "./fibers.js"

/** The chunks of tasks that a manager tells. @since 0.1.0 @category models */
export type TaskChunk =
  | Of<"background-task-running">
  | Of<"background-task-output">
  | Of<"background-task-completed">
  | Of<"background-task-failed">
  | Of<"background-task-cancelled">
  | Of<"background-task-suspended">
  | Of<"background-task-resumed">

/** Which tasks somebody listens to: those that match everything that is given. @since 0.1.0 @category models */
export interface TaskFilter {
  /** The agent that called the tool. */
  readonly agentId?: string
  /** The run that called it. */
  readonly runId?: string
  readonly threadId?: string
  readonly resourceId?: string
  readonly taskId?: string
}

/** Something that happened, and the task it happened to, as it is then. */
export interface Happening {
  readonly chunk: TaskChunk
  readonly task: Task
}

/** Happenings that a reader may be behind. @since 0.1.0 @category constants */
export const capacity = 8192

/** Whether a task is one of those. */
export const matches = (filter: TaskFilter, task: Task): boolean =>
  (filter.taskId === undefined || filter.taskId === task.id) &&
  (filter.agentId === undefined || filter.agentId === task.agentId) &&
  (filter.runId === undefined || filter.runId === task.runId) &&
  (filter.threadId === undefined || filter.threadId === task.threadId) &&
  (filter.resourceId === undefined || filter.resourceId === task.resourceId)

/** What happened since; waits for it. Fails when this reader has missed something. */
export type Take = Effect.Effect<ReadonlyArray<Happening>, TaskReaderTooSlow>

const tooSlow = () =>
  new TaskReaderTooSlow({
    capacity,
    message: `A reader of task events was more than ${capacity} events behind and was ended. Read faster, filter more, or ask for the tasks with list.`
  })

/** Somebody who listens. */
class Reader {
  private happenings: Array<Happening> = []
  private isTooSlow = false
  private waiting: (() => void) | undefined

  constructor(
    readonly filter: TaskFilter,
    private readonly isOver: () => boolean
  ) {}

  add(happening: Happening): void {
    if (this.isTooSlow) return
    if (this.happenings.length < capacity) {
      this.happenings.push(happening)
      return
    }
    // Nobody will read them.
    this.happenings = []
    this.isTooSlow = true
  }

  wake(): void {
    if (this.happenings.length > 0 || this.isTooSlow || this.isOver()) this.waiting?.()
  }

  /** What happened since; waits for it. `undefined`: nothing more happens. */
  readonly next: Effect.Effect<ReadonlyArray<Happening> | undefined, TaskReaderTooSlow> = Effect.suspend(
    () => {
      if (this.isTooSlow) return Effect.fail(tooSlow())
      if (this.happenings.length > 0) {
        const { happenings } = this
        this.happenings = []
        return Effect.succeed(happenings)
      }
      return this.isOver() ? Effect.succeed(undefined) : this.later
    }
  )

  private readonly later: Reader["next"] = Effect.async(resume => {
    this.waiting = () => {
      this.waiting = undefined
      resume(this.next)
    }
    return Effect.sync(() => {
      this.waiting = undefined
    })
  })
}

/** What a reader hears. */
export interface Hearing<A> {
  /** What was seen at the moment from which on happenings are heard. */
  readonly seen: A
  /** What happened since; waits for it. `undefined`: the manager has ended, and nothing more happens. */
  readonly next: Effect.Effect<ReadonlyArray<Happening> | undefined, TaskReaderTooSlow>
}

/** Readers whose waking costs about as much as a round of the scheduler. */
const readersPerRound = 2

export class Hub {
  private readonly readers = new Set<Reader>()
  private readonly listeners = new Set<(happening: Happening) => void>()
  private isWaking = false
  private isClosed = false

  constructor(private readonly fork: Fork) {}

  /** Those who listen. */
  get size(): number {
    return this.readers.size
  }

  /** Tells it at once; it is put into words when somebody listens. */
  tell(task: Task, inWords: (task: Task) => TaskChunk): void {
    if (this.listeners.size > 0) {
      const happening = { chunk: inWords(task), task }
      for (const listener of this.listeners) listener(happening)
    }
    let heard: Happening | undefined
    for (const reader of this.readers) {
      if (!matches(reader.filter, task)) continue
      heard ??= { chunk: inWords(task), task }
      reader.add(heard)
    }
    if (heard !== undefined) this.wake()
  }

  /**
   * The more readers there are, the more they get at a time: otherwise all the time goes into waking them. What is counted are
   * rounds of the scheduler, which take no time when there is nothing else to do.
   */
  private wake(): void {
    if (this.isWaking) return
    const rounds = Math.floor(this.readers.size / readersPerRound)
    if (rounds === 0) {
      this.wakeAll()
      return
    }
    this.isWaking = true
    const round = Effect.repeatN(Effect.yieldNow(), rounds)
    this.fork(
      Effect.map(round, () => {
        this.isWaking = false
        this.wakeAll()
      })
    )
  }

  private wakeAll(): void {
    for (const reader of this.readers) reader.wake()
  }

  /** Nothing more happens: readers come to their end once they have read what did. */
  close(): void {
    this.isClosed = true
    this.wakeAll()
  }

  /** Calls back at once with everything. The listener is quick, and does not throw. Returns how to end that. */
  listen(listener: (happening: Happening) => void): () => void {
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  /**
   * Listens from now on, until the scope closes. `look` runs at the very moment from which on happenings are told: what it sees
   * is what was before them.
   */
  subscribe<A>(look: () => A, filter: TaskFilter = {}): Effect.Effect<Hearing<A>, never, Scope.Scope> {
    const listen = Effect.sync(() => {
      const reader = new Reader(filter, () => this.isClosed)
      this.readers.add(reader)
      return { reader, seen: look() }
    })
    return Effect.map(
      Effect.acquireRelease(listen, ({ reader }) => Effect.sync(() => this.readers.delete(reader))),
      ({ reader, seen }) => ({ seen, next: reader.next })
    )
  }
}

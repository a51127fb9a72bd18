/** What happens to tasks, told to everybody who listens. Nobody who tells waits for a reader. */
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import type * as Queue from "effect/Queue"
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

/** A happening with its place among all; the last one says that nothing more happens. */
interface Told {
  readonly number: number
  readonly happening: Happening | undefined
}

/** What a reader hears. */
export interface Hearing<A> {
  /** What was seen at the moment from which on happenings are heard. */
  readonly seen: A
  /** What happened since; waits for it. `undefined`: the manager has ended, and nothing more happens. */
  readonly next: Effect.Effect<ReadonlyArray<Happening> | undefined, TaskReaderTooSlow>
}

/** Happenings that a reader takes at once. */
const batch = capacity

/** Readers whose waking costs about as much as a round of the scheduler. */
const readersPerRound = 2

export class Hub {
  private readonly listeners = new Set<(happening: Happening) => void>()
  private readers = 0
  private number = 0
  private isWaking = false
  /** What is told to readers with the next round. */
  private pending: Array<Told> = []

  private constructor(
    private readonly fork: Fork,
    private readonly events: PubSub.PubSub<Told>
  ) {}

  /** Nobody who tells waits: what a reader is too far behind for slides out, and the reader notices. */
  static readonly make = (fork: Fork): Effect.Effect<Hub> =>
    Effect.map(PubSub.sliding<Told>(capacity + 1), events => new Hub(fork, events))

  /** Those who listen. */
  get size(): number {
    return this.readers
  }

  /** Tells it at once; it is put into words when somebody listens. */
  tell(task: Task, inWords: (task: Task) => TaskChunk): void {
    this.number++
    if (this.readers === 0 && this.listeners.size === 0) return
    const happening = { chunk: inWords(task), task }
    for (const listener of this.listeners) this.call(listener, happening)
    if (this.readers > 0) this.publish({ number: this.number, happening })
  }

  private call(listener: (happening: Happening) => void, happening: Happening): void {
    try {
      listener(happening)
    } catch (error) {
      // A task does not fail because of who listens.
      this.fork(Effect.logError("A listener to background tasks failed.", error))
    }
  }

  /**
   * The more readers there are, the more they get at a time: otherwise all the time goes into waking them. What is counted are
   * rounds of the scheduler, which take no time when there is nothing else to do.
   */
  private publish(told: Told): void {
    this.pending.push(told)
    if (this.isWaking) return
    const rounds = Math.floor(this.readers / readersPerRound)
    if (rounds === 0) {
      this.flush()
      return
    }
    this.isWaking = true
    this.fork(
      Effect.map(Effect.repeatN(Effect.yieldNow(), rounds), () => {
        this.isWaking = false
        this.flush()
      })
    )
  }

  private flush(): void {
    const { pending } = this
    this.pending = []
    for (const told of pending) {
      // When it is full only an effect makes room.
      if (!this.events.unsafeOffer(told)) this.fork(PubSub.publish(this.events, told))
    }
  }

  /** Nothing more happens: readers come to their end once they have read what did. */
  close(): void {
    this.number++
    this.pending.push({ number: this.number, happening: undefined })
    this.flush()
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
    const counted = Effect.acquireRelease(
      Effect.sync(() => {
        this.readers++
      }),
      () =>
        Effect.sync(() => {
          this.readers--
        })
    )
    return Effect.map(Effect.zipRight(counted, PubSub.subscribe(this.events)), queue => ({
      seen: look(),
      next: this.reading(queue, filter)
    }))
  }

  /** What comes from now on. What was told before, and is on its way, was seen. */
  private reading(queue: Queue.Dequeue<Told>, filter: TaskFilter): Hearing<unknown>["next"] {
    let last = this.number
    let isOver = false
    const next: Hearing<unknown>["next"] = Effect.suspend(() => {
      if (this.number - last > capacity) return Effect.fail(tooSlow())
      if (isOver) return Effect.succeed(undefined)
      return Effect.flatMap(queue.takeBetween(1, batch), taken => {
        const heard: Array<Happening> = []
        for (const { happening, number } of taken) {
          if (number <= last) continue
          if (number !== last + 1) return Effect.fail(tooSlow())
          last = number
          if (happening === undefined) isOver = true
          else if (matches(filter, happening.task)) heard.push(happening)
        }
        return heard.length > 0 ? Effect.succeed(heard) : next
      })
    })
    return next
  }
}

/** What happens to tasks, told to everybody who listens. Nobody who tells waits for a reader. */
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { Of } from "../protocol/Chunk.js"
import { TaskReaderTooSlow } from "../protocol/Errors.js"
import { logError } from "../protocol/logging.js"
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

/** A happening with its place among those of its channel; the last one says that nothing more happens. */
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

/** Somebody who listens. */
interface Reader {
  readonly queue: Queue.Dequeue<Told>
  /** The place of what it has taken last. */
  last: number
  isTooSlow: boolean
}

/** Readers whose waking costs about as much as a round of the scheduler. */
const readersPerRound = 2

/** Everybody who listens to the same. */
class Channel {
  readonly readers = new Set<Reader>()
  /** Those who have it, whether they listen yet or not. */
  users = 0
  private number = 0
  private isWaking = false
  /** What is told with the next round. */
  private pending: Array<Told> = []

  constructor(
    readonly filter: TaskFilter,
    readonly events: PubSub.PubSub<Told>,
    private readonly fork: Fork
  ) {}

  /** A reader, from now on: what was told before, and is on its way, is not for it. */
  join(queue: Queue.Dequeue<Told>): Reader {
    const reader: Reader = { queue, last: this.number, isTooSlow: false }
    this.readers.add(reader)
    return reader
  }

  /**
   * The more readers there are, the more they get at a time: otherwise all the time goes into waking them. What is counted are
   * rounds of the scheduler, which take no time when there is nothing else to do.
   */
  publish(happening: Happening): void {
    this.number++
    this.pending.push({ number: this.number, happening })
    if (this.isWaking) return
    const rounds = Math.floor(this.readers.size / readersPerRound)
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

  /** Nothing more happens. */
  close(): void {
    this.number++
    this.pending.push({ number: this.number, happening: undefined })
    this.flush()
  }

  private flush(): void {
    const { pending } = this
    this.pending = []
    for (const told of pending) this.events.unsafeOffer(told)
    for (const reader of this.readers) if (this.number - reader.last > capacity) this.dismiss(reader)
  }

  /** Nothing is kept for a reader that is too far behind: it is told so when it reads next. */
  private dismiss(reader: Reader): void {
    reader.isTooSlow = true
    this.readers.delete(reader)
    this.fork(Queue.shutdown(reader.queue))
  }
}

export class Hub {
  private readonly listeners = new Set<(happening: Happening) => void>()
  private readonly channels = new Map<string, Channel>()

  constructor(private readonly fork: Fork) {}

  /** Those who listen. */
  get size(): number {
    let size = 0
    for (const { readers } of this.channels.values()) size += readers.size
    return size
  }

  /** Tells it at once; it is put into words when somebody listens. Nobody who tells waits. */
  tell(task: Task, inWords: (task: Task) => TaskChunk): void {
    if (this.channels.size === 0 && this.listeners.size === 0) return
    let made: Happening | undefined
    const happening = (): Happening => {
      made ??= { chunk: inWords(task), task }
      return made
    }
    for (const listener of this.listeners) this.call(listener, happening())
    for (const channel of this.channels.values()) {
      if (matches(channel.filter, task)) channel.publish(happening())
    }
  }

  private call(listener: (happening: Happening) => void, happening: Happening): void {
    try {
      listener(happening)
    } catch (error) {
      // A task does not fail because of who listens.
      this.fork(logError("A listener to background tasks failed.", error))
    }
  }

  /** Nothing more happens: readers come to their end once they have read what did. */
  close(): void {
    for (const channel of this.channels.values()) channel.close()
  }

  /** Calls back at once with everything. The listener is quick, and does not throw. Returns how to end that. */
  listen(listener: (happening: Happening) => void): () => void {
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  /** The channel of those who listen to this; it is there as long as anybody uses it. */
  private channelOf(filter: TaskFilter): Effect.Effect<Channel, never, Scope.Scope> {
    const { agentId, resourceId, runId, taskId, threadId } = filter
    const key = JSON.stringify([agentId, resourceId, runId, taskId, threadId])
    const use = Effect.map(PubSub.unbounded<Told>(), events => {
      const channel = this.channels.get(key) ?? new Channel(filter, events, this.fork)
      this.channels.set(key, channel)
      channel.users++
      return channel
    })
    return Effect.acquireRelease(use, channel =>
      Effect.sync(() => {
        channel.users--
        if (channel.users === 0) this.channels.delete(key)
      })
    )
  }

  /**
   * Listens from now on, until the scope closes. `look` runs at the very moment from which on happenings are told: what it sees
   * is what was before them.
   */
  subscribe<A>(look: () => A, filter: TaskFilter = {}): Effect.Effect<Hearing<A>, never, Scope.Scope> {
    return Effect.gen(this, function* () {
      const channel = yield* this.channelOf(filter)
      const queue = yield* PubSub.subscribe(channel.events)
      const { reader, seen } = yield* Effect.acquireRelease(
        Effect.sync(() => ({ reader: channel.join(queue), seen: look() })),
        ({ reader }) => Effect.sync(() => channel.readers.delete(reader))
      )
      return { seen, next: reading(reader) }
    })
  }
}

/** What comes from now on. */
const reading = (reader: Reader): Hearing<unknown>["next"] => {
  let isOver = false
  const next: Hearing<unknown>["next"] = Effect.suspend(() => {
    if (reader.isTooSlow) return Effect.fail(tooSlow())
    if (isOver) return Effect.succeed(undefined)
    return Effect.flatMap(reader.queue.takeBetween(1, capacity), taken => {
      const heard: Array<Happening> = []
      for (const { happening, number } of taken) {
        if (number <= reader.last) continue
        reader.last = number
        if (happening === undefined) isOver = true
        else heard.push(happening)
      }
      return heard.length > 0 ? Effect.succeed(heard) : next
    })
  })
  return next
}

/**
 * Keeps a stream open until idle: the first turn, what happens to the tasks of its scope, and a further turn whenever something
 * has settled that no model has answered to. Stream in, stream out: what a turn is, the caller says.
 */
import * as Batch from "effect/Chunk"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Chunk, Of } from "../protocol/Chunk.js"
import { isSettled, type Task } from "../protocol/Task.js"
import { capacity, type Happening } from "./hub.js"
import { IdleState } from "./idleState.js"
import type { ManagerService } from "./TaskManager.js"

/** What a stream that hears of tasks needs to know. */
interface Hearing {
  readonly manager: Pick<ManagerService, "listen" | "active" | "idleScopes" | "settings" | "onClosing">
  /** What has happened before it listens, and belongs to it. */
  readonly heard: () => ReadonlyArray<Happening>
  /** Whether somebody has stopped it; `listener` is called once when that happens later. */
  readonly isStopped: (listener: () => void) => boolean
}

/** What is kept open, and how. */
export interface UntilIdleOptions<E, R> extends Hearing {
  /** Whether a task is waited for. */
  readonly scope: (task: Task) => boolean
  /** Names the scope: of two streams that wait for the same, the younger takes over. `undefined`: nobody else can. */
  readonly name: string | undefined
  readonly first: Stream.Stream<Chunk, E, R>
  /** Whether a task was called by the turn that runs, which has yet to say so. */
  readonly isDispatching: (task: Task) => boolean
  /** Another turn, that answers to these. */
  readonly continueWith: (tasks: ReadonlyArray<Task>) => Stream.Stream<Chunk, E, R>
  /** Whether a model has answered to a task already. */
  readonly isAnswered: (taskId: string) => boolean
  /** Calls back when a run beside the stream has answered tasks. Returns how to end that. */
  readonly onAnswered?: (listener: () => void) => () => void
  /** Whether the turn that came last waits for somebody: then no other follows, and the tasks go on. */
  readonly isSuspended?: () => boolean
  /** Milliseconds that it waits between two turns without hearing of a task. */
  readonly maxIdleMs: number
  readonly batch: "ready" | "all"
  /** What is told of the tasks that are going, and since when. */
  readonly report: (taskIds: ReadonlyArray<string>, elapsedMs: number) => Of<"background-task-progress">
}

/** Chunks that a turn may be ahead of the reader. */
const room = 64

const isOutput = ({ type }: Chunk): boolean => type === "background-task-output"

/** Chunks that a reader is behind with. When tasks write too much, each output replaces the oldest of its task; all else stays. */
class Backlog {
  private chunks: Array<Chunk> = []
  private outputs = 0

  get size(): number {
    return this.chunks.length
  }

  add(chunk: Chunk): void {
    if (chunk.type === "background-task-output") {
      const { taskId } = chunk.payload
      const oldest =
        this.outputs < capacity
          ? -1
          : this.chunks.findIndex(
              other => other.type === "background-task-output" && other.payload.taskId === taskId
            )
      if (oldest >= 0) this.chunks.splice(oldest, 1)
      else this.outputs++
    }
    this.chunks.push(chunk)
  }

  /** Puts a chunk in the place of another one; whether that is still there. */
  replace(before: Chunk, chunk: Chunk): boolean {
    const place = this.chunks.lastIndexOf(before)
    if (place >= 0) this.chunks[place] = chunk
    return place >= 0
  }

  take(): Array<Chunk> {
    const { chunks } = this
    this.chunks = []
    this.outputs = 0
    return chunks
  }
}

/** What waits for the reader. Writing is plain code; happenings are never held up, turns are. */
class Mailbox<E> {
  private readonly backlog = new Backlog()
  private end: Exit.Exit<void, E> | undefined
  private reader: (() => void) | undefined
  private writer: (() => void) | undefined
  private reported: Chunk | undefined
  /** Tasks whose start was told. */
  private readonly started = new Set<string>()
  /** What happened to tasks whose start is still on its way. */
  private held = new Map<string, Backlog>()

  /** What happened to a task. Of one that a turn has called it is told after the turn has said that it started. */
  hear({ chunk, task }: Happening, isDispatching: boolean): void {
    if (!isDispatching || this.started.has(task.id)) {
      this.push(chunk)
      return
    }
    const held = this.held.get(task.id) ?? new Backlog()
    held.add(chunk)
    this.held.set(task.id, held)
  }

  /** Nothing more is on its way. */
  release(): void {
    const { held } = this
    this.held = new Map()
    for (const backlog of held.values()) backlog.take().forEach(chunk => this.push(chunk))
  }

  /** After the end there is nobody who would be told. */
  push(chunk: Chunk): void {
    if (this.end !== undefined) return
    this.backlog.add(chunk)
    this.wake()
  }

  /** What is told again and again: a reader that is behind wants the last only. */
  report(chunk: Chunk): void {
    const { reported } = this
    this.reported = chunk
    if (reported === undefined || !this.backlog.replace(reported, chunk)) this.push(chunk)
  }

  write(chunks: Iterable<Chunk>): Effect.Effect<void> {
    return Effect.suspend(() => {
      for (const chunk of chunks) {
        this.backlog.add(chunk)
        if (chunk.type === "background-task-started") this.start(chunk.payload.taskId)
      }
      this.wake()
      if (this.backlog.size < room) return Effect.void
      return Effect.async<void>(resume => {
        this.writer = () => resume(Effect.void)
      })
    })
  }

  private start(taskId: string): void {
    this.started.add(taskId)
    const held = this.held.get(taskId)
    this.held.delete(taskId)
    held?.take().forEach(chunk => this.push(chunk))
  }

  /** The first end counts. */
  close(exit: Exit.Exit<void, E>): void {
    this.end ??= exit
    this.wake()
  }

  private wake(): void {
    const { reader } = this
    this.reader = undefined
    reader?.()
  }

  private readonly arrived = Effect.async<void>(resume => {
    this.reader = () => resume(Effect.void)
  })

  /** Everything that is there, or the end, or a wait for either. */
  private readonly pull: Effect.Effect<Batch.Chunk<Chunk>, Option.Option<E>> = Effect.suspend(() => {
    if (this.backlog.size > 0) {
      const { writer } = this
      this.writer = undefined
      this.reported = undefined
      const taken = Batch.unsafeFromArray(this.backlog.take())
      writer?.()
      return Effect.succeed(taken)
    }
    if (this.end === undefined) return Effect.zipRight(this.arrived, this.pull)
    return Effect.flatMap(Effect.mapError(this.end, Option.some), () => Effect.fail(Option.none()))
  })

  readonly stream: Stream.Stream<Chunk, E> = Stream.repeatEffectChunkOption(this.pull)
}

/** One thing that somebody waits for, at a time. */
class Signal {
  private isSet = false
  private waiting: (() => void) | undefined

  readonly set = (): void => {
    this.isSet = true
    this.waiting?.()
  }

  /** Done when it was set since the last time; at once when it was. */
  readonly wait: Effect.Effect<void> = Effect.async(resume => {
    const look = (): void => {
      this.waiting = undefined
      this.isSet = false
      resume(Effect.void)
    }
    if (this.isSet) look()
    else this.waiting = look
    return Effect.sync(() => {
      this.waiting = undefined
    })
  })
}

/** When a task of the scope was heard of last, or a turn ended: milliseconds of the clock. */
interface Quiet {
  since: number
}

/** What the parts of a stream share. */
interface Open<E, R> {
  readonly options: UntilIdleOptions<E, R>
  readonly state: IdleState
  readonly mailbox: Mailbox<E>
  readonly signal: Signal
  readonly quiet: Quiet
  readonly clock: Clock.Clock
}

/** Turns and waits, one after the other, until there is nothing to do. Whatever wakes it, it looks at how things stand. */
const conduct = Effect.fnUntraced(function* <E, R>(open: Open<E, R>) {
  const { clock, mailbox, options, quiet, signal, state } = open
  const { manager, maxIdleMs, scope } = options
  let turn: Stream.Stream<Chunk, E, R> | undefined = options.first
  for (;;) {
    if (turn !== undefined) {
      yield* Stream.runForEachChunk(turn, chunks => mailbox.write(chunks))
      turn = undefined
      mailbox.release()
      state.turnEnded()
      quiet.since = clock.unsafeCurrentTimeMillis()
      if (options.isSuspended?.() === true) return
    }
    const decision = state.decide(manager.active(scope).length)
    if (decision._tag === "Close") return
    if (decision._tag === "Continue") {
      state.turnBegan(decision.tasks)
      turn = options.continueWith(decision.tasks)
      continue
    }
    const left = quiet.since + maxIdleMs - clock.unsafeCurrentTimeMillis()
    if (left > 0) yield* Effect.raceFirst(signal.wait, Effect.sleep(left))
    else state.stop()
  }
})

/** Tells again and again what is going, but for the calls of the turn that runs: that tells of them itself. */
const report = Effect.fnUntraced(function* <E, R>(open: Open<E, R>) {
  const { clock, mailbox, options, signal, state } = open
  const { isDispatching, manager, scope } = options
  for (;;) {
    yield* Effect.sleep(manager.settings.progressIntervalMs)
    const going = manager.active(scope).filter(task => !state.isBusy || !isDispatching(task))
    const at = clock.unsafeCurrentTimeMillis()
    const oldest = going.reduce((least, { createdAt }) => Math.min(least, createdAt.getTime()), at)
    const taskIds = going.map(({ id }) => id)
    if (taskIds.length > 0) mailbox.report(options.report(taskIds, at - oldest))
    // A task that this process has lost to another one says nothing any more.
    signal.set()
  }
})

/** Of two streams that wait for the same, the younger goes on; the older ends after its turn. */
const claimScope = (
  { idleScopes }: Hearing["manager"],
  name: string | undefined,
  takenOver: () => void
): Effect.Effect<void, never, Scope.Scope> => {
  if (name === undefined) return Effect.void
  return Effect.acquireRelease(
    Effect.sync(() => {
      idleScopes.get(name)?.()
      idleScopes.set(name, takenOver)
    }),
    () =>
      Effect.sync(() => {
        if (idleScopes.get(name) === takenOver) idleScopes.delete(name)
      })
  ).pipe(Effect.asVoid)
}

/** Hears of tasks until the scope closes, and whether anybody has stopped that, or the manager has ended. */
const attend = Effect.fnUntraced(function* (
  { heard, isStopped, manager }: Hearing,
  hear: (happening: Happening) => void,
  stop: () => void
) {
  yield* Effect.acquireRelease(
    Effect.sync(() => manager.listen(hear)),
    forget => Effect.sync(forget)
  )
  heard().forEach(hear)
  if (isStopped(stop)) stop()
  yield* Effect.acquireRelease(
    Effect.sync(() => manager.onClosing(stop)),
    forget => Effect.sync(forget)
  )
})

/**
 * The stream, kept open. It fails as soon as a turn does, after what that had told. Interrupting it interrupts the turn; the
 * tasks go on.
 */
export const make = <E, R>(options: UntilIdleOptions<E, R>): Stream.Stream<Chunk, E, R> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const clock = yield* Effect.clock
      const mailbox = new Mailbox<E>()
      const signal = new Signal()
      const state = new IdleState(options.batch, options.isAnswered)
      const quiet: Quiet = { since: clock.unsafeCurrentTimeMillis() }
      const stop = (): void => {
        state.stop()
        signal.set()
      }
      const hear = (happening: Happening): void => {
        const { chunk, task } = happening
        if (!options.scope(task)) return
        mailbox.hear(happening, state.isBusy && options.isDispatching(task))
        quiet.since = clock.unsafeCurrentTimeMillis()
        // What a task writes changes nothing about what is waited for.
        if (isOutput(chunk)) return
        if (isSettled(task.status)) state.settled(task)
        signal.set()
      }
      yield* claimScope(options.manager, options.name, stop)
      yield* attend(options, hear, stop)
      yield* Effect.acquireRelease(
        Effect.sync(() => options.onAnswered?.(signal.set)),
        forget => Effect.sync(() => forget?.())
      )
      const open: Open<E, R> = { options, state, mailbox, signal, quiet, clock }
      yield* Effect.forkScoped(report(open))
      yield* Effect.forkScoped(Effect.onExit(conduct(open), exit => Effect.sync(() => mailbox.close(exit))))
      return mailbox.stream
    })
  )

/** What is followed until it rests. */
export interface FollowOptions extends Hearing {
  readonly taskId: string
}

const isAtRest = ({ status }: Task): boolean => isSettled(status) || status === "suspended"

/** What happens to one task, until it has settled or suspends. */
export const follow = (options: FollowOptions): Stream.Stream<Chunk> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const mailbox = new Mailbox<never>()
      const stop = (): void => mailbox.close(Exit.void)
      const hear = ({ chunk, task }: Happening): void => {
        if (task.id !== options.taskId) return
        mailbox.push(chunk)
        if (isAtRest(task)) stop()
      }
      yield* attend(options, hear, stop)
      return mailbox.stream
    })
  )

/** Managers of background tasks as tests make them: a process of its own each, on stores that they may share. */
import { BackgroundTasks, TaskStore, ThreadStore } from "eddy"
import { Chunk, Context, Effect, Exit, Fiber, Layer, Scope, Stream, TestClock } from "effect"
import type { Executed, Executor, TaskContext } from "../../src/background/Executor.js"
import * as TaskManager from "../../src/background/TaskManager.js"
import { Broken } from "../support/broken.js"

export type { Executor, TaskContext } from "../../src/background/Executor.js"
export type { Dispatched } from "../../src/background/TaskManager.js"

type TaskStoreService = Context.Tag.Service<TaskStore.TaskStore>
type ThreadStoreService = Context.Tag.Service<ThreadStore.ThreadStore>

/** Both stores, which several managers may share. */
export interface Stores {
  readonly tasks: TaskStoreService
  readonly threads: ThreadStoreService
}

export const stores: Effect.Effect<Stores> = Effect.gen(function* () {
  const tasks = yield* TaskStore.TaskStore
  const threads = yield* ThreadStore.ThreadStore
  // What is loaded when it is needed first would take real time.
  yield* Effect.promise(() => import("../../src/storage/storedTasks.js"))
  yield* Effect.promise(() => import("../../src/storage/storedRows.js"))
  return { tasks, threads }
}).pipe(Effect.provide([Layer.fresh(TaskStore.layerMemory), Layer.fresh(ThreadStore.layerMemory)]))

/** A manager, as a process has it. */
export interface Process extends Stores {
  readonly background: Context.Tag.Service<BackgroundTasks.BackgroundTasks>
  readonly manager: TaskManager.ManagerService
  /** What was told so far: the type of the event and the id of the call. */
  readonly told: ReadonlyArray<string>
  /** Ends the process in order, as its layer does. */
  readonly end: Effect.Effect<void>
}

/** Does what takes time, whose clock is a test's. */
export const within = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(effect)
    for (let second = 0; second < 60 && fiber.unsafePoll() === null; second++) yield* pass("1 seconds")
    return yield* Fiber.join(fiber)
  })

/** Starts a manager; it ends with the scope. */
export const start = (options: BackgroundTasks.Options = {}, shared?: Stores) =>
  Effect.gen(function* () {
    const { tasks, threads } = shared ?? (yield* stores)
    const scope = yield* Scope.make()
    yield* Effect.addFinalizer(() => within(Scope.close(scope, Exit.void)))
    const layer = BackgroundTasks.layer(options).pipe(
      Layer.provide([
        Layer.succeed(TaskStore.TaskStore, tasks),
        Layer.succeed(ThreadStore.ThreadStore, threads)
      ])
    )
    const context = yield* Layer.buildWithScope(layer, scope)
    const manager = Context.get(context, TaskManager.TaskManager)
    const told: Array<string> = []
    manager.listen(({ chunk }) => {
      told.push(`${chunk.type.slice("background-task-".length)} ${chunk.payload.toolCallId}`)
    })
    return {
      tasks,
      threads,
      background: Context.get(context, BackgroundTasks.BackgroundTasks),
      manager,
      told,
      end: Scope.close(scope, Exit.void)
    } satisfies Process
  })

/** Runs a tool. */
export const executor = (
  execute: (context: TaskContext) => Effect.Effect<unknown, unknown>,
  more: Partial<Executor> = {}
): Executor => ({
  execute: context => Effect.map(execute(context), (value): Executed => ({ value })),
  readResumeData: data => Effect.succeed(data),
  callbacks: [],
  concurrency: undefined,
  ...more
})

/** A tool that gives this at once. */
export const giving = (value: unknown, more: Partial<Executor> = {}): Executor =>
  executor(() => Effect.succeed(value), more)

/** A tool that is never done. */
export const hanging = (more: Partial<Executor> = {}): Executor => executor(() => Effect.never, more)

/** A tool that fails. */
export const failing = (message: string, more: Partial<Executor> = {}): Executor =>
  executor(() => Effect.fail(new Broken({ message: message })), more)

/** A call, by the id of the call. */
export const call = (toolCallId: string, more: Partial<TaskManager.NewTask> = {}): TaskManager.NewTask => ({
  toolName: "look",
  toolCallId,
  args: { of: toolCallId },
  agentId: "agent",
  runId: "run",
  maxRetries: 0,
  timeoutMs: 60_000,
  ...more
})

/** Dispatches a call that finds a slot, or a queue. */
export const dispatch = (
  { manager }: Pick<Process, "manager">,
  toolCallId: string,
  run: Executor,
  more: Partial<TaskManager.NewTask> = {}
) =>
  Effect.flatMap(manager.dispatch(call(toolCallId, more), run), dispatched =>
    dispatched === undefined ? Effect.dieMessage(`${toolCallId} found no slot`) : Effect.succeed(dispatched)
  )

/** Lets everything that can go on do so. */
export const breathe = Effect.repeatN(Effect.yieldNow(), 60)

/** Lets time pass, and everything that it wakes go on. */
export const pass = (time: Parameters<typeof TestClock.adjust>[0]) =>
  Effect.zipRight(Effect.zipRight(breathe, TestClock.adjust(time)), breathe)

/** Where a task stands. */
export const statusOf = ({ manager }: Pick<Process, "manager">, id: string) =>
  Effect.map(manager.get(id), found => (found._tag === "Some" ? found.value.status : "none"))

/** Where all tasks stand, by call, in the order of creation. */
export const statuses = ({ manager }: Pick<Process, "manager">) =>
  Effect.map(manager.list({ perPage: 1000 }), ({ tasks }) =>
    tasks.map(({ status, toolCallId }) => `${status} ${toolCallId}`)
  )

/** Chunks of a stream so far; it is interrupted with the scope. */
export const collect = <A, E>(stream: Stream.Stream<A, E>) =>
  Effect.gen(function* () {
    const items: Array<A> = []
    const fiber = yield* Effect.forkScoped(
      Stream.runForEachChunk(stream, chunk => Effect.sync(() => items.push(...Chunk.toReadonlyArray(chunk))))
    )
    yield* breathe
    return { items, fiber }
  })

/** A log of what was called. */
export const journal = () => {
  const entries: Array<string> = []
  return {
    entries,
    note: (entry: string) => Effect.sync(() => void entries.push(entry))
  }
}

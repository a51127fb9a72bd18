/** What tests of background tasks on the promise face share: stored tasks, containers over them, and readers of chunks. */
import { RunStore, type Task, TaskStore, ThreadStore } from "eddy"
import {
  type Agent,
  type BackgroundTaskManager,
  Eddy,
  type EddyOptions,
  type Storage,
  type TaskChunk
} from "eddy/promise"
import { Effect, Layer, Scope } from "effect"
import { expect } from "vitest"
import { memoryLogger } from "../support/readers.js"

/** A task of agent `keeper`, pending, as a process that died has left it. */
export const taskOf = (id: string, more: Partial<Task.Task> = {}): Task.Task => ({
  id,
  status: "pending",
  toolName: "look",
  toolCallId: `call-${id}`,
  args: { for: id },
  agentId: "keeper",
  runId: "run-1",
  createdAt: new Date(0),
  attempt: 0,
  maxRetries: 0,
  timeoutMs: 60_000,
  ...more
})

/** A task that waits for somebody. */
export const suspendedTask = (id: string, more: Partial<Task.Task> = {}): Task.Task =>
  taskOf(id, {
    status: "suspended",
    attempt: 1,
    suspendData: { awaiting: "approval" },
    startedAt: new Date(0),
    suspendedAt: new Date(0),
    ...more
  })

/** Memory that holds these tasks already. */
export const storageWith = (tasks: ReadonlyArray<Task.Task>): Storage => ({
  id: "prepared",
  layer: Layer.mergeAll(
    ThreadStore.layerMemory,
    RunStore.layerMemory,
    Layer.tap(TaskStore.layerMemory, context =>
      Effect.flatMap(Effect.provide(TaskStore.TaskStore, context), store =>
        Effect.forEach(tasks, task => store.create(task, "the dead"), { discard: true })
      )
    )
  )
})

/** The same, for several containers: what one has left, the next one finds. */
export const sharedStorage = (tasks: ReadonlyArray<Task.Task> = []): Storage => {
  const scope = Effect.runSync(Scope.make())
  const context = Effect.runSync(Effect.orDie(Layer.buildWithScope(storageWith(tasks).layer, scope)))
  return { id: "shared", layer: Layer.succeedContext(context) }
}

/** A container with background tasks, and its log. */
export const containerOf = (options: Omit<EddyOptions<Readonly<Record<string, Agent>>>, "logger">) => {
  const logger = memoryLogger()
  const eddy = new Eddy({
    ...options,
    backgroundTasks: { enabled: true, ...options.backgroundTasks },
    logger
  })
  return { eddy, logger, manager: managerOf(eddy) }
}

export const managerOf = (eddy: {
  readonly backgroundTaskManager: BackgroundTaskManager | undefined
}): BackgroundTaskManager => eddy.backgroundTaskManager ?? expect.fail("there is no manager")

/** What a promise rejects with. */
export const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail("nothing was rejected"),
    (error: unknown) => error
  )

/** What happened to which task. */
export const told = (chunks: ReadonlyArray<TaskChunk>): ReadonlyArray<string> =>
  chunks.map(({ payload, type }) => `${type.replace("background-task-", "")} ${payload.taskId}`)

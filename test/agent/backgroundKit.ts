/** What the tests of calls in the background share: a manager, tools that wait to be told, and what conversations hold. */
import {
  BackgroundTasks,
  type Chunk,
  Conversation,
  Id,
  type Message,
  type ModelPart,
  type Task,
  TaskStore,
  ThreadStore,
  Tool,
  type ToolContext
} from "eddy"
import { Context, Deferred, Effect, Layer, Schema, Stream, TestClock } from "effect"
import * as parts from "../../src/agent/parts.js"
import { settle, types } from "./kit.js"
import { ends, toolCall } from "./memoryKit.js"

/** What the first run of all would load while others are looked at. */
export const loadEverything = (): Promise<unknown> =>
  Promise.all([
    import("../../src/storage/storedRows.js"),
    import("../../src/storage/storedTasks.js"),
    import("../../src/storage/storedRuns.js"),
    import("../../src/agent/suspension/snapshotSchema.js"),
    import("../../src/agent/loop/suspending.js"),
    import("../../src/agent/tasks/arrivedOutcomes.js"),
    import("../../src/agent/nestedRun.js"),
    Effect.runPromise(Effect.all([parts.background, parts.processing, parts.structured, parts.goingOn])),
    Effect.runPromise(Conversation.fromInput([{ role: "user", content: "load" }]))
  ])

export type Stores = TaskStore.TaskStore | ThreadStore.ThreadStore

export const stores: Layer.Layer<Stores> = Layer.merge(TaskStore.layerMemory, ThreadStore.layerMemory)

/** A manager over these stores, and ids that can be read. */
export const manager = (options: BackgroundTasks.Options = {}, over: Layer.Layer<Stores> = stores) =>
  BackgroundTasks.layer(options).pipe(Layer.provideMerge(Layer.merge(over, Id.layerSequential)))

/** All tasks as they are stored, in the order in which they were made. */
export const tasks: Effect.Effect<
  ReadonlyArray<Task.Task>,
  never,
  BackgroundTasks.BackgroundTasks
> = Effect.gen(function* () {
  const service = yield* BackgroundTasks.BackgroundTasks
  const page = yield* Effect.orDie(service.list())
  return [...page.tasks].sort((left, right) => left.id.localeCompare(right.id, "en", { numeric: true }))
})

const isOpen = ({ status }: Task.Task): boolean => ["pending", "running", "suspended"].includes(status)

/** A manager that ends waits for its tasks, and the clock of a test stands still: whatever is left is cancelled first. */
const cancelAll = Effect.gen(function* () {
  const service = yield* BackgroundTasks.BackgroundTasks
  for (const task of yield* tasks) if (isOpen(task)) yield* Effect.ignore(service.cancel(task.id))
})

/** Runs a test with a manager. */
export const managed =
  (options: BackgroundTasks.Options = {}, over: Layer.Layer<Stores> = stores) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.provide(Effect.ensuring(test, cancelAll), manager(options, over))

/** How a call of a {@link gated} tool ends. */
type End = Effect.Effect<unknown, unknown>

/** A tool that does what its calls are told, by the number that they are called with. */
export const gated = <const Name extends string>(
  name: Name,
  background: NonNullable<Tool.Options<never, never, unknown, never, never>["background"]> = {
    enabled: true
  },
  more: { readonly toModelOutput?: (output: unknown) => unknown } = {}
) => {
  const gates = new Map<number, Deferred.Deferred<unknown, unknown>>()
  const contexts: Array<ToolContext> = []
  const inputs: Array<unknown> = []
  const gate = (n: number): Deferred.Deferred<unknown, unknown> => {
    const known = gates.get(n) ?? Effect.runSync(Deferred.make<unknown, unknown>())
    gates.set(n, known)
    return known
  }
  const tool = Tool.make(name, {
    input: Schema.Struct({ n: Schema.Number }),
    background,
    ...more,
    execute: (input, context) =>
      Effect.suspend(() => {
        contexts.push(context)
        inputs.push(input)
        return Deferred.await(gate(input.n))
      })
  })
  return {
    tool,
    contexts,
    inputs,
    /** Ends the call of this number, and lets whatever follows from that happen. */
    end: (n: number, end: End = Effect.succeed({ n })) =>
      Effect.zipRight(Deferred.complete(gate(n), end), settle)
  }
}

/** A call of a {@link gated} tool. */
export const callOf = (toolCallId: string, toolName: string, n: number): ModelPart.ModelPart =>
  toolCall(toolCallId, toolName, { n })

/** An answer that makes these calls. */
export const calls = (...made: ReadonlyArray<ModelPart.ModelPart>): ReadonlyArray<ModelPart.ModelPart> => [
  ...made,
  ends("tool-calls")
]

/** The outcomes that a conversation holds of this call. */
export const outcomesIn = (
  messages: ReadonlyArray<Message.Message>,
  toolCallId: string
): ReadonlyArray<Message.ToolResultPart> =>
  messages.flatMap(message =>
    message.role === "tool" ? message.content.filter(part => part.toolCallId === toolCallId) : []
  )

/** What a conversation says that this call came to: once. */
export const outputIn = (messages: ReadonlyArray<Message.Message>, toolCallId: string): unknown => {
  const found = outcomesIn(messages, toolCallId)
  if (found.length !== 1) throw new Error(`${found.length} outcomes of ${toolCallId}`)
  return found[0]?.output
}

/** The task that a part or a chunk belongs to, by what stands beside it. */
export const taskOf = (metadata: unknown): unknown =>
  (metadata as { readonly eddy?: { readonly backgroundTask?: unknown } } | undefined)?.eddy?.backgroundTask

/** Whether a conversation holds the acknowledgement of this call. */
export const isAcknowledged = (messages: ReadonlyArray<Message.Message>, toolCallId: string): boolean => {
  const [part] = outcomesIn(messages, toolCallId)
  const task = taskOf(part?.providerOptions) as { readonly status?: string } | undefined
  return task?.status === "running"
}

/** System messages that nobody but the loop has written. */
export const notesIn = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<string> =>
  messages.flatMap(({ content, role }) =>
    role === "system" && typeof content === "string" && content.startsWith("Background tasks have settled")
      ? [content]
      : []
  )

export const taskTypes = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<string> =>
  types(chunks).filter(type => type.startsWith("background-task-"))

/** Everything that the manager tells from now on; the array grows. */
export const heard = (filter?: BackgroundTasks.TaskFilter) =>
  Effect.gen(function* () {
    const service = yield* BackgroundTasks.BackgroundTasks
    const chunks: Array<BackgroundTasks.TaskChunk> = []
    yield* Effect.forkScoped(
      Effect.ignore(
        Stream.runForEach(service.stream(filter), chunk => Effect.sync(() => void chunks.push(chunk)))
      )
    )
    yield* settle
    return chunks
  })

/** Lets so much time pass, and whatever follows from that happen. */
export const pass = (milliseconds: number): Effect.Effect<void> =>
  Effect.zipRight(TestClock.adjust(milliseconds), settle)

type Store = Context.Tag.Service<TaskStore.TaskStore>

/** Stores in memory; that of tasks is changed. */
export const tasksChanged = (change: (store: Store) => Partial<Store>) =>
  Layer.merge(
    ThreadStore.layerMemory,
    Layer.map(TaskStore.layerMemory, context => {
      const store = Context.get(context, TaskStore.TaskStore)
      return Context.make(TaskStore.TaskStore, { ...store, ...change(store) })
    })
  )

/** A run that is read as it goes. */
export const going = <R>(stream: Stream.Stream<Chunk.Chunk, unknown, R>) =>
  Effect.gen(function* () {
    const chunks: Array<Chunk.Chunk> = []
    const fiber = yield* Effect.fork(
      Stream.runForEach(stream, chunk => Effect.sync(() => void chunks.push(chunk)))
    )
    yield* settle
    return { chunks, fiber, isOver: () => fiber.unsafePoll() !== null }
  })

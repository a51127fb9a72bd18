// The manager by itself: agents dispatch through it, and neither face lets anybody else do so.
import { Effect, Layer, ManagedRuntime, Stream } from "effect"
import { Audience } from "../kit/tasks.mjs"
import { dist } from "./eddy.mjs"

const { BackgroundTasks, LibSqlStore, TaskStore, ThreadStore } = await import(new URL("index.js", dist).href)
const { TaskManager } = await import(new URL("background/TaskManager.js", dist).href)

const storeOf = file =>
  file
    ? LibSqlStore.layer({ url: `file:${file}` })
    : Layer.merge(TaskStore.layerMemory, ThreadStore.layerMemory)

/** As an agent makes it of a tool that gives a promise. */
const executorOf = tool => ({
  execute: ({ task }) =>
    Effect.map(
      Effect.tryPromise(() => tool(task.args)),
      value => ({ value })
    ),
  readResumeData: Effect.succeed,
  callbacks: [],
  concurrency: undefined
})

export const eddy = {
  name: "eddy",
  open: async ({ concurrency, file, readers }) => {
    const options = { globalConcurrency: concurrency, perAgentConcurrency: concurrency }
    const layer = Layer.provide(BackgroundTasks.layer(options), storeOf(file))
    const runtime = ManagedRuntime.make(layer)
    const manager = await runtime.runPromise(TaskManager)
    const tasks = await runtime.runPromise(BackgroundTasks.BackgroundTasks)
    const { maxRetries, timeoutMs } = manager.settings
    const audience = new Audience(readers)
    for (let reader = 0; reader < readers; reader++) {
      const reading = Stream.runForEach(tasks.stream(), chunk =>
        Effect.sync(() => audience.hear(reader, chunk))
      )
      runtime.runPromise(reading).catch(error => audience.reject?.(error))
    }
    // In memory a dispatch is done when it returns: a fiber for each would only cost the bench.
    const atATime = file ? "unbounded" : 1
    const call = at => ({
      runId: "run",
      toolName: "add",
      toolCallId: `call-${at}`,
      args: { n: at },
      agentId: "bench",
      maxRetries,
      timeoutMs
    })
    return {
      label: "eddy",
      audience,
      dispatch: (count, tool) => {
        const executor = executorOf(tool)
        const all = Array.from({ length: count }, (_, at) => manager.dispatch(call(at), executor))
        return runtime.runPromise(Effect.all(all, { concurrency: atATime, discard: true }))
      },
      completed: async () =>
        (await runtime.runPromise(manager.list({ status: "completed", perPage: 0 }))).total,
      close: () => runtime.dispose()
    }
  }
}

// The peer's manager, with its executors in the same process.
import { Mastra } from "@mastra/core/mastra"
import { InMemoryStore } from "@mastra/core/storage"
import { LibSQLStore } from "@mastra/libsql"
import { Audience } from "../kit/tasks.mjs"

const readAll = async (stream, hear) => {
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    hear(value)
  }
}

export const mastra = {
  name: "mastra",
  open: async ({ concurrency, file, readers }) => {
    const container = new Mastra({
      storage: file ? new LibSQLStore({ id: "bench", url: `file:${file}` }) : new InMemoryStore(),
      // it tells the terminal that it was shut down
      logger: false,
      backgroundTasks: { enabled: true, globalConcurrency: concurrency, perAgentConcurrency: concurrency }
    })
    const manager = container.backgroundTaskManager
    const audience = new Audience(readers)
    const end = new AbortController()
    for (let reader = 0; reader < readers; reader++) {
      const stream = manager.stream({ abortSignal: end.signal })
      readAll(stream, chunk => audience.hear(reader, chunk)).catch(error => audience.reject?.(error))
    }
    const call = at => ({
      runId: "run",
      toolName: "add",
      toolCallId: `call-${at}`,
      args: { n: at },
      agentId: "bench"
    })
    return {
      label: "mastra",
      audience,
      dispatch: async (count, tool) => {
        const context = { executor: { execute: tool } }
        await Promise.all(Array.from({ length: count }, (_, at) => manager.enqueue(call(at), context)))
      },
      completed: async () => (await manager.listTasks({ status: "completed", perPage: 1 })).total,
      close: async () => {
        end.abort()
        await container.shutdown()
      }
    }
  }
}

/** The manager of background tasks on the promise face, over tasks that are stored already. */
import {
  Agent,
  createTool,
  Eddy,
  InMemoryStore,
  InvalidConfiguration,
  InvalidResumeData,
  InvalidTaskState,
  type Storage,
  type TaskChunk,
  TaskExecutorNotFound,
  TaskNotFound,
  TaskReaderTooSlow,
  type ToolExecutionContext
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect, Layer } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { flush, latch, refuseUnhandledRejections, until } from "../support/readers.js"
import {
  containerOf,
  managerOf,
  rejection,
  sharedStorage,
  storageWith,
  suspendedTask,
  taskOf,
  told
} from "./tasksKit.js"

refuseUnhandledRejections()

const open: Array<{ readonly shutdown: () => Promise<void> }> = []

afterEach(async () => {
  for (const eddy of open.splice(0)) await eddy.shutdown()
})

/** A container over these tasks that is shut down after the test; its tasks have no time to come to an end. */
const container = (...options: Parameters<typeof containerOf>) => {
  const [{ backgroundTasks, ...rest }] = options
  const made = containerOf({ ...rest, backgroundTasks: { shutdown: { graceMs: 1 }, ...backgroundTasks } })
  open.push(made.eddy)
  return made
}

const keeper = (execute: (input: unknown, context: ToolExecutionContext) => unknown) =>
  new Agent({
    id: "keeper",
    model: ScriptedModel.make([]),
    tools: { look: createTool({ id: "look", inputSchema: { type: "object" }, execute }) }
  })

/** Reads a stream in the background. */
const reading = (stream: AsyncIterable<TaskChunk>) => {
  const chunks: Array<TaskChunk> = []
  const done = (async () => {
    for await (const chunk of stream) chunks.push(chunk)
  })()
  return { chunks, done, told: () => told(chunks) }
}

/** A signal that knows who listens. */
const countedSignal = () => {
  const controller = new AbortController()
  const { signal } = controller
  let listeners = 0
  const { addEventListener, removeEventListener } = signal
  signal.addEventListener = (...args: ReadonlyArray<unknown>) => {
    listeners++
    Reflect.apply(addEventListener, signal, args)
  }
  signal.removeEventListener = (...args: ReadonlyArray<unknown>) => {
    listeners--
    Reflect.apply(removeEventListener, signal, args)
  }
  return { controller, signal, listeners: () => listeners }
}

describe("tasks in the store", () => {
  it("are found one by one, and in pages", async () => {
    const { manager } = container({
      storage: storageWith([suspendedTask("a"), suspendedTask("b", { agentId: "other" }), suspendedTask("c")])
    })
    expect(await manager.getTask("b")).toEqual(suspendedTask("b", { agentId: "other" }))
    expect(await manager.getTask("d")).toBeNull()
    const all = await manager.listTasks()
    expect(all.tasks.map(({ id }) => id)).toEqual(["a", "b", "c"])
    const some = await manager.listTasks({ agentId: "keeper", status: "suspended", page: 1, perPage: 1 })
    expect(some).toEqual({ tasks: [suspendedTask("c")], total: 2 })
    expect(await manager.listTasks({ status: "running" })).toEqual({ tasks: [], total: 0 })
  })

  it("a filter that nobody reads is refused", async () => {
    const { manager } = container({ storage: new InMemoryStore() })
    const error = await rejection(manager.listTasks({ agent: "keeper" } as never))
    expect(error).toBeInstanceOf(InvalidConfiguration)
    expect(error).toMatchObject({ field: "agent", message: expect.stringContaining("agentId") })
    expect(() => manager.stream({ agent: "keeper" } as never)).toThrow("agentId")
  })

  it("one that there is not is told as such", async () => {
    const { manager } = container({ storage: new InMemoryStore() })
    for (const call of [manager.resume("x"), manager.cancel("x"), manager.waitFor("x")]) {
      const error = await rejection(call)
      expect(error).toBeInstanceOf(TaskNotFound)
      expect(error).toMatchObject({ taskId: "x" })
    }
  })

  it("cancelled: a second time is refused, and so is resuming it", async () => {
    const seen: Array<string> = []
    const { manager } = container({
      storage: storageWith([suspendedTask("a")]),
      backgroundTasks: { onTaskCancelled: ({ id, status }) => seen.push(`${id} ${status}`) }
    })
    expect(await manager.cancel("a")).toMatchObject({ id: "a", status: "cancelled" })
    expect(await manager.waitFor("a")).toMatchObject({ status: "cancelled" })
    expect(await manager.getTask("a")).toMatchObject({ status: "cancelled" })
    expect(seen).toEqual(["a cancelled"])
    const again = await rejection(manager.cancel("a"))
    expect(again).toBeInstanceOf(InvalidTaskState)
    expect(again).toMatchObject({ taskId: "a", status: "cancelled" })
    expect(await rejection(manager.resume("a", {}))).toBeInstanceOf(InvalidTaskState)
  })

  it("those that settled long ago are cleaned up", async () => {
    const settled = taskOf("old", { status: "completed", result: 1, completedAt: new Date(0) })
    const { manager } = container({ storage: storageWith([settled, suspendedTask("kept")]) })
    const before = await manager.listTasks()
    const count = await manager.cleanup()
    const after = await manager.listTasks()
    expect(before.total - after.total).toBe(count)
    expect(count).toBe(1)
    expect(after.tasks.map(({ id }) => id)).toEqual(["kept"])
  })
})

describe("what a process has left", () => {
  it("is taken up at once by the agent that it belongs to", async () => {
    const contexts: Array<ToolExecutionContext> = []
    const agent = keeper((input, context) => {
      contexts.push(context)
      return { saw: input }
    })
    const { eddy, logger, manager } = container({
      agents: { agent },
      storage: storageWith([taskOf("a", { threadId: "t1", resourceId: "u1" }), taskOf("b")])
    })
    expect(await manager.waitFor("a")).toMatchObject({ status: "completed", result: { saw: { for: "a" } } })
    expect(await manager.waitFor("b")).toMatchObject({ status: "completed", result: { saw: { for: "b" } } })
    expect(contexts.map(({ taskId }) => taskId)).toEqual(["a", "b"])
    expect(contexts[0]).toMatchObject({
      runId: "run-1",
      agent: {
        agentId: "keeper",
        toolCallId: "call-a",
        messages: [],
        threadId: "t1",
        resourceId: "u1",
        resumeData: undefined
      }
    })
    // Nobody has warned that it waits for its agent.
    expect(logger.lines.filter(([, line]) => line.includes("waits for agent"))).toEqual([])
    await eddy.shutdown()
  })

  it("also by an agent that another one may call", async () => {
    const lead = new Agent({
      id: "lead",
      model: ScriptedModel.make([]),
      agents: { below: keeper(() => "done below") }
    })
    const { manager } = container({ agents: { lead }, storage: storageWith([taskOf("a")]) })
    expect(await manager.waitFor("a")).toMatchObject({ status: "completed", result: "done below" })
  })

  it("is left alone without recovery", async () => {
    const agent = keeper(() => expect.fail("was run"))
    const { manager } = container({
      agents: { agent },
      storage: storageWith([taskOf("a")]),
      backgroundTasks: { recoverOnStart: false }
    })
    await flush()
    expect(await manager.getTask("a")).toMatchObject({ status: "pending" })
  })

  it("waits for whoever can run it, when no agent can", async () => {
    const { logger, manager } = container({ storage: storageWith([taskOf("a")]) })
    await until(() => logger.lines.some(([, line]) => line.includes("waits for agent")), "it was told")
    await manager.registerTaskContext("a", { executor: args => ({ saw: args }) })
    expect(await manager.waitFor("a")).toMatchObject({ status: "completed", result: { saw: { for: "a" } } })
  })
})

describe("a suspended task", () => {
  it("stays suspended when nobody can run it, until somebody says who does", async () => {
    const { manager } = container({ storage: storageWith([suspendedTask("a", { threadId: "t" })]) })
    const error = await rejection(manager.resume("a", { reviewer: "ada" }))
    expect(error).toBeInstanceOf(TaskExecutorNotFound)
    expect(error).toMatchObject({ taskId: "a", agentId: "keeper", toolName: "look" })
    expect(await manager.getTask("a")).toMatchObject({ status: "suspended" })
    const seen: Array<unknown> = []
    await manager.registerTaskContext("a", {
      executor: async (args, context) => {
        const { abortSignal, agent, requestContext, runId, taskId } = context
        seen.push(
          args,
          taskId,
          runId,
          agent.resumeData,
          agent.threadId,
          abortSignal.aborted,
          requestContext.size
        )
        await context.writer.write("half")
        return { by: agent.resumeData }
      }
    })
    const events = reading(manager.stream({ taskId: "a" }))
    expect(await manager.resume("a", { reviewer: "ada" })).toMatchObject({ id: "a", status: "running" })
    expect(await manager.waitFor("a")).toMatchObject({
      status: "completed",
      result: { by: { reviewer: "ada" } }
    })
    expect(seen).toEqual([{ for: "a" }, "a", "run-1", { reviewer: "ada" }, "t", false, 0])
    await until(() => events.chunks.length === 3, "everything was told")
    expect(events.told()).toEqual(["resumed a", "output a", "completed a"])
    expect(events.chunks[1]?.payload).toMatchObject({
      payload: { type: "tool-output", payload: { output: "half" } }
    })
  })

  it("suspends again: what its code comes to after it is ignored", async () => {
    const after: Array<string> = []
    const { manager } = container({ storage: storageWith([suspendedTask("a")]) })
    await manager.registerTaskContext("a", {
      executor: async (_, { agent: { resumeData, suspend }, writer }) => {
        if (resumeData === "enough") return "done"
        await suspend({ saw: resumeData }).catch(() => after.push("caught"))
        await writer.write("too late")
        if (resumeData === "throw") throw new Error("too late")
        return "too late"
      }
    })
    const events = reading(manager.stream())
    const suspendedWith = async (data: unknown) => {
      const before = events.chunks.filter(({ type }) => type === "background-task-suspended").length
      await manager.resume("a", data)
      await until(
        () => events.chunks.filter(({ type }) => type === "background-task-suspended").length > before,
        "it is suspended"
      )
      await flush()
      return manager.getTask("a")
    }
    expect(await suspendedWith("first")).toMatchObject({ status: "suspended", suspendData: { saw: "first" } })
    expect(await suspendedWith("throw")).toMatchObject({ status: "suspended", suspendData: { saw: "throw" } })
    expect(after).toEqual(["caught", "caught"])
    await manager.resume("a", "enough")
    expect(await manager.waitFor("a")).toMatchObject({ status: "completed", result: "done" })
    await until(() => events.chunks.length === 6, "everything was told")
    expect(events.told()).toEqual([
      "resumed a",
      "suspended a",
      "resumed a",
      "suspended a",
      "resumed a",
      "completed a"
    ])
  })

  it("is resumed with what its tool has a schema for, and nothing else", async () => {
    const review = createTool({
      id: "look",
      inputSchema: { type: "object" },
      resumeSchema: {
        type: "object",
        properties: { reviewer: { type: "string" } },
        required: ["reviewer"]
      },
      execute: (_, { agent }) => ({ by: agent.resumeData })
    })
    const agent = new Agent({ id: "keeper", model: ScriptedModel.make([]), tools: { look: review } })
    const { manager } = container({ agents: { agent }, storage: storageWith([suspendedTask("a")]) })
    const error = await rejection(manager.resume("a", { reviewer: 1 }))
    expect(error).toBeInstanceOf(InvalidResumeData)
    expect(error).toMatchObject({ toolName: "look" })
    expect(await manager.getTask("a")).toMatchObject({ status: "suspended" })
    await manager.resume("a", { reviewer: "ada" })
    expect(await manager.waitFor("a")).toMatchObject({ result: { by: { reviewer: "ada" } } })
  })

  it("what runs it must be a function", async () => {
    const { manager } = container({ storage: new InMemoryStore() })
    const error = await rejection(manager.registerTaskContext("a", { executor: {} } as never))
    expect(error).toMatchObject({ _tag: "InvalidConfiguration", field: "executor" })
  })
})

describe("a running task", () => {
  const running = async (count = 1, storageOf = storageWith) => {
    const gates = Array.from({ length: count }, latch)
    const signals: Array<AbortSignal> = []
    const ids = gates.map((_, index) => `task-${index}`)
    const made = container({
      storage: storageOf(ids.map(id => suspendedTask(id, { threadId: `thread-${id}`, resourceId: "u1" })))
    })
    for (const [index, id] of ids.entries()) {
      await made.manager.registerTaskContext(id, {
        executor: async (_, { abortSignal }) => {
          signals.push(abortSignal)
          await gates[index]?.wait
          return "late"
        }
      })
      await made.manager.resume(id)
    }
    await until(() => signals.length === count, "they run")
    return { ...made, gates, signals }
  }

  it("is cancelled: its signal fires, and what it comes to is dropped", async () => {
    const { gates, manager, signals } = await running()
    const events = reading(manager.stream())
    await until(() => events.chunks.length === 1, "it is told that it runs")
    expect(await manager.cancel("task-0")).toMatchObject({ status: "cancelled" })
    expect(signals[0]?.aborted).toBe(true)
    gates[0]?.open()
    await flush()
    expect(await manager.getTask("task-0")).toMatchObject({ status: "cancelled" })
    expect((await manager.getTask("task-0"))?.result).toBeUndefined()
    expect(events.told()).toEqual(["running task-0", "cancelled task-0"])
  })

  it("is told to whoever begins to listen, first of all, and once", async () => {
    const { gates, manager } = await running(3)
    const all = reading(manager.stream())
    const one = reading(manager.stream({ threadId: "thread-task-1", resourceId: "u1", agentId: "keeper" }))
    const none = reading(manager.stream({ threadId: "thread-task-1", resourceId: "u2" }))
    await until(() => all.chunks.length === 3, "the running ones are told")
    for (const gate of gates) gate.open()
    await until(() => all.chunks.length === 6 && one.chunks.length === 2, "everything is told")
    expect(all.told().slice(0, 3)).toEqual(["running task-0", "running task-1", "running task-2"])
    expect([...all.told().slice(3)].sort()).toEqual([
      "completed task-0",
      "completed task-1",
      "completed task-2"
    ])
    expect(one.told()).toEqual(["running task-1", "completed task-1"])
    expect(none.told()).toEqual([])
  })

  it("is left to the next process when the manager ends", async () => {
    let storage: Storage = new InMemoryStore()
    const { eddy, manager, signals } = await running(1, tasks => {
      storage = sharedStorage(tasks.map(task => ({ ...task, maxRetries: 1 })))
      return storage
    })
    await manager.shutdown()
    expect(signals[0]?.aborted).toBe(true)
    await eddy.shutdown()
    const next = container({ agents: { agent: keeper(() => "done by the next") }, storage })
    expect(await next.manager.waitFor("task-0")).toMatchObject({
      status: "completed",
      result: "done by the next",
      attempt: 2
    })
  })

  it("fails when the manager ends and it has no attempts left", async () => {
    let storage: Storage = new InMemoryStore()
    const { eddy } = await running(1, tasks => {
      storage = sharedStorage(tasks)
      return storage
    })
    await eddy.shutdown()
    const { manager } = container({ storage })
    expect(await manager.getTask("task-0")).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("shut down") }
    })
  })

  it("is done, and its callbacks are, before a container with time for it is shut down", async () => {
    const gate = latch()
    const results: Array<unknown> = []
    const { eddy, manager } = containerOf({
      storage: storageWith([suspendedTask("a")]),
      backgroundTasks: {
        shutdown: { graceMs: 60_000 },
        onTaskComplete: async ({ result }) => {
          await flush(2)
          results.push(result)
        }
      }
    })
    await manager.registerTaskContext("a", { executor: () => gate.wait.then(() => "done") })
    await manager.resume("a")
    const ended = Promise.all([eddy.shutdown(), eddy.shutdown()])
    await flush()
    gate.open()
    await ended
    expect(results).toEqual(["done"])
  })
})

describe("a stream of events", () => {
  it("ends with its signal, and nobody listens to that any more", async () => {
    const { manager } = container({ storage: new InMemoryStore() })
    const { controller, listeners, signal } = countedSignal()
    const events = reading(manager.stream({ abortSignal: signal }))
    await flush()
    expect(listeners()).toBe(1)
    controller.abort()
    await events.done
    expect(listeners()).toBe(0)
  })

  it("is over at once when its signal has fired already", async () => {
    const { manager } = container({ storage: new InMemoryStore() })
    const events = reading(manager.stream({ abortSignal: AbortSignal.abort() }))
    await events.done
    expect(events.chunks).toEqual([])
  })

  it("ends when its reader leaves the loop, or cancels", async () => {
    const { manager } = container({ storage: storageWith([suspendedTask("a"), suspendedTask("b")]) })
    const { listeners, signal } = countedSignal()
    const leaving = (async () => {
      for await (const chunk of manager.stream({ abortSignal: signal })) return chunk.type
      return undefined
    })()
    const reader = manager.stream({ abortSignal: signal }).getReader()
    const read = reader.read()
    await manager.cancel("a")
    expect(await leaving).toBe("background-task-cancelled")
    expect((await read).value?.type).toBe("background-task-cancelled")
    expect(listeners()).toBe(1)
    await reader.cancel()
    expect(listeners()).toBe(0)
    expect(await reader.read()).toEqual({ done: true, value: undefined })
  })

  it("tells also what happened before anybody read", async () => {
    const { manager } = container({ storage: storageWith([suspendedTask("a")]) })
    await manager.listTasks()
    const stream = manager.stream()
    await manager.cancel("a")
    const reader = stream.getReader()
    expect((await reader.read()).value?.type).toBe("background-task-cancelled")
    await reader.cancel()
  })

  it("ends with its container, and whoever waits for a task is told", async () => {
    const { eddy, manager } = container({ storage: storageWith([suspendedTask("a")]) })
    const events = reading(manager.stream())
    const unread = manager.stream()
    await manager.cancel("a")
    const { listeners, signal } = countedSignal()
    const watching = reading(manager.stream({ abortSignal: signal }))
    await flush()
    await eddy.shutdown()
    await events.done
    await watching.done
    expect(events.told()).toEqual(["cancelled a"])
    expect(listeners()).toBe(0)
    await reading(unread).done
  })

  it("a task that never settles is waited for until the container is shut down", async () => {
    const { eddy, manager } = container({ storage: storageWith([suspendedTask("a")]) })
    const waiting = rejection(manager.waitFor("a"))
    await flush()
    await eddy.shutdown()
    expect(await waiting).toMatchObject({ _tag: "InvalidConfiguration", field: "runtime" })
  })

  it("a container that was shut down refuses everything", async () => {
    const { eddy, manager } = container({ storage: new InMemoryStore() })
    await eddy.shutdown()
    const refused = { _tag: "InvalidConfiguration", field: "runtime" }
    expect(await rejection(manager.listTasks())).toMatchObject(refused)
    expect(await rejection(manager.shutdown())).toMatchObject(refused)
    expect(() => manager.stream()).toThrow("shut down")
  })

  it("a reader that is too slow is told so, and holds up nobody", async () => {
    const { manager } = container({ storage: storageWith([suspendedTask("a")]) })
    await manager.registerTaskContext("a", {
      executor: async (_, { writer }) => {
        for (let index = 0; index < 9000; index++) {
          void writer.write(index)
          if (index % 256 === 255) await new Promise(resolve => setTimeout(resolve))
        }
        return "done"
      }
    })
    const { listeners, signal } = countedSignal()
    const reader = manager.stream({ abortSignal: signal }).getReader()
    const quick = reading(manager.stream({ taskId: "other" }))
    await flush()
    await manager.resume("a")
    expect(await manager.waitFor("a")).toMatchObject({ status: "completed" })
    const read = async () => {
      for (;;) {
        const { done } = await reader.read()
        if (done) return
      }
    }
    const error = await rejection(read())
    expect(error).toBeInstanceOf(TaskReaderTooSlow)
    expect(error).toMatchObject({ capacity: 8192 })
    expect(listeners()).toBe(0)
    expect(quick.chunks).toEqual([])
  })
})

describe("a container that nobody shuts down", () => {
  it("is disposed of at the end of its block", async () => {
    let isClosed = false
    const storage: Storage = {
      id: "watched",
      layer: Layer.merge(
        new InMemoryStore().layer,
        Layer.scopedDiscard(
          Effect.addFinalizer(() =>
            Effect.sync(() => {
              isClosed = true
            })
          )
        )
      )
    }
    {
      await using eddy = new Eddy({ storage, backgroundTasks: { enabled: true } })
      expect(await managerOf(eddy).listTasks()).toEqual({ tasks: [], total: 0 })
      expect(isClosed).toBe(false)
    }
    expect(isClosed).toBe(true)
  })
})

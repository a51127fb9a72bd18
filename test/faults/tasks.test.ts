/**
 * Faults of background tasks that were found in another system of the kind, as that system's users meet them: on the promise
 * face, in a container with a store in memory. Each passes here; the cores have tests of their own for the kinds.
 */
import { ThreadStore } from "eddy"
import {
  Agent,
  type AgentOptions,
  type Chunk,
  createTool,
  Eddy,
  type EddyOptions,
  InMemoryStore,
  type Storage,
  type StreamOptions,
  type Task,
  type ThreadMessage
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { z } from "zod"
import { managerOf, sharedStorage, suspendedTask, taskOf, told } from "../promise/tasksKit.js"
import { collect, flush, latch, memoryLogger, refuseUnhandledRejections, until } from "../support/readers.js"

refuseUnhandledRejections()

const { finish, reply, toolCall } = ScriptedModel
const memory = { thread: "t1", resource: "u1" } as const

type Turns = Parameters<typeof ScriptedModel.make>[0]

const calls = (...made: ReadonlyArray<readonly [id: string, tool: string, args?: unknown]>) => [
  ...made.map(([id, tool, args = {}]) => toolCall(id, tool, args)),
  finish("tool-calls")
]

const containers: Array<Eddy> = []

afterEach(async () => {
  for (const eddy of containers.splice(0)) await eddy.shutdown()
})

const world = (
  turns: Turns,
  agentOptions: Partial<AgentOptions>,
  backgroundTasks: EddyOptions<never>["backgroundTasks"] = { enabled: true },
  storage: Storage = new InMemoryStore()
) => {
  const model = ScriptedModel.make(turns)
  const agent = new Agent({ id: "keeper", model, ...agentOptions })
  const eddy = new Eddy({
    agents: { agent },
    storage,
    logger: memoryLogger(),
    backgroundTasks: { shutdown: { graceMs: 1 }, ...backgroundTasks, enabled: true }
  })
  containers.push(eddy)
  const manager = managerOf(eddy)
  const thread = () => eddy.threads.messages("t1")
  const idle = async (options: StreamOptions = { memory }) =>
    collect((await agent.stream("go", { untilIdle: true, ...options })).fullStream)
  return { agent, eddy, idle, manager, model, thread }
}

/** A tool that does this in the background. */
const inBackground = <A>(
  id: string,
  execute: Parameters<typeof createTool<A>>[0]["execute"],
  more: object = {}
) => createTool({ id, background: { enabled: true }, ...(execute === undefined ? {} : { execute }), ...more })

const textsOf = (chunks: ReadonlyArray<Chunk>): ReadonlyArray<string> =>
  chunks.flatMap(chunk => (chunk.type === "finish" ? [chunk.payload.output.text ?? ""] : []))

const countOf = (chunks: ReadonlyArray<Chunk>, type: Chunk["type"]): number =>
  chunks.filter(chunk => chunk.type === type).length

/** The outcomes that messages hold, by call. */
const outcomesIn = (messages: ReadonlyArray<Pick<ThreadMessage, "message">>) =>
  Object.fromEntries(
    messages.flatMap(({ message }) =>
      message.role === "tool"
        ? message.content.map(({ output, toolCallId }) => [toolCallId, output.value])
        : []
    )
  )

/** What the last prompt of a model held. */
const lastPrompt = ({ requests }: ScriptedModel.ScriptedModel) =>
  (requests.at(-1)?.messages ?? []).map(message => ({ message }))

const taskIdOf = (chunks: ReadonlyArray<Chunk>): string =>
  chunks.flatMap(chunk => (chunk.type === "background-task-started" ? [chunk.payload.taskId] : []))[0] ??
  expect.fail("nothing was started")

const list = async (manager: ReturnType<typeof managerOf>): Promise<ReadonlyArray<Task>> =>
  (await manager.listTasks()).tasks

describe("1: a task that ends while a sibling call of its step still runs", () => {
  it.each([
    ["with a thread", { memory }],
    ["without one", {}]
  ] as const)("keeps its result: no acknowledgement comes after it, %s", async (_, options) => {
    const sibling = latch()
    const { idle, manager, model, thread } = world([calls(["c1", "quick"], ["c2", "slow"]), reply("Done.")], {
      tools: {
        quick: inBackground("quick", () => ({ found: 7 })),
        slow: createTool({ id: "slow", execute: () => sibling.wait.then(() => "late") })
      }
    })
    const reading = idle(options)
    // The first stream of this kind loads what it is made of.
    await vi.waitFor(() => expect(model.requests).toHaveLength(1), { timeout: 10_000 })
    for (;;) {
      await flush()
      if ((await list(manager))[0]?.status === "completed") break
    }
    sibling.open()
    expect(textsOf(await reading)).toEqual(["Done."])
    expect(outcomesIn(lastPrompt(model))).toEqual({ c1: { found: 7 }, c2: "late" })
    if ("memory" in options) {
      expect(outcomesIn(await thread())).toEqual({ c1: { found: 7 }, c2: "late" })
    }
  })
})

describe("2: a task that is resumed later", () => {
  it("replaces its part of the thread, and erases nothing that was said since", async () => {
    const { agent, manager, thread } = world(
      [calls(["c1", "ask"]), reply("I have asked."), reply("Still waiting.")],
      {
        tools: {
          ask: inBackground("ask", async (_, { agent: call }) => {
            if (call.resumeData === undefined) await call.suspend?.({ what: "?" })
            return { by: call.resumeData }
          })
        }
      }
    )
    const chunks = await collect((await agent.stream("go", { memory, untilIdle: true })).fullStream)
    await collect((await agent.stream("And now?", { memory })).fullStream)
    const before = await thread()
    await manager.resume(taskIdOf(chunks), "alice")
    await manager.waitFor(taskIdOf(chunks))
    const after = await thread()
    expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id))
    expect(outcomesIn(after)).toEqual({ c1: { by: "alice" } })
    const others = (messages: typeof after) => messages.filter(({ message }) => message.role !== "tool")
    expect(others(after)).toEqual(others(before))
  })
})

describe("3: a tool that never settles", () => {
  it.each(["timeout", "cancel"] as const)("holds no slot after its %s", async how => {
    const { idle, manager } = world(
      [calls(["c1", "stuck"]), reply("1"), calls(["c2", "quick"]), reply("2"), reply("3"), reply("4")],
      {
        tools: {
          stuck: inBackground("stuck", () => new Promise<never>(() => undefined), {
            background: { enabled: true, ...(how === "timeout" ? { timeoutMs: 20 } : {}) }
          }),
          quick: inBackground("quick", () => "quick")
        }
      },
      { enabled: true, globalConcurrency: 1 }
    )
    const first = idle()
    for (;;) {
      await flush()
      const [task] = await list(manager)
      if (how === "cancel" && task?.status === "running") await manager.cancel(task.id)
      if (task?.status === "cancelled" || task?.status === "timed_out") break
    }
    await first
    await idle()
    expect((await list(manager)).map(({ status }) => status)).toEqual([
      how === "cancel" ? "cancelled" : "timed_out",
      "completed"
    ])
  })
})

describe("4: a callback that throws", () => {
  it("stops neither the event, nor the other callbacks, nor the answer", async () => {
    const heard: Array<string> = []
    const fail = (level: string) => (task: Task) => {
      heard.push(`${level} ${task.status}`)
      throw new Error(level)
    }
    const { idle } = world(
      [calls(["c1", "quick"]), reply("Started."), reply("Answered.")],
      {
        tools: {
          quick: createTool({
            id: "quick",
            background: { enabled: true, onComplete: fail("tool") },
            execute: () => flush().then(() => 1)
          })
        },
        backgroundTasks: { onTaskComplete: fail("agent") }
      },
      { enabled: true, onTaskComplete: fail("manager") }
    )
    const chunks = await idle()
    expect(countOf(chunks, "background-task-completed")).toBe(1)
    await until(() => heard.length === 3, "every level is called")
    expect(heard).toEqual(["tool completed", "agent completed", "manager completed"])
  })
})

describe("5: a tool whose own request was aborted", () => {
  it("has failed, and not taken too long; what may be tried again is", async () => {
    let attempts = 0
    const { idle, manager } = world(
      [calls(["c1", "fetch"]), reply("Started."), reply("Failed.")],
      {
        tools: {
          fetch: inBackground("fetch", async () => {
            attempts++
            await flush()
            throw new DOMException("The request was aborted.", "AbortError")
          })
        }
      },
      {
        enabled: true,
        defaultRetries: { maxRetries: 5, retryDelayMs: 1, retryableErrors: () => attempts < 3 }
      }
    )
    await idle()
    expect(attempts).toBe(3)
    expect(await list(manager)).toMatchObject([
      { status: "failed", attempt: 3, error: { message: expect.stringContaining("aborted") } }
    ])
  })
})

describe("6: a suspended task", () => {
  it("asks for no turn; resumeStream goes on with it in the normal order, in one part", async () => {
    const { agent, idle, model, thread } = world(
      [calls(["c1", "ask"]), reply("I have asked."), reply("Approved.")],
      {
        tools: {
          ask: inBackground("ask", async (_, { agent: call }) => {
            if (call.resumeData === undefined) await call.suspend?.({ what: "?" })
            return { by: call.resumeData }
          })
        }
      }
    )
    const chunks = await idle()
    expect(textsOf(chunks)).toEqual(["I have asked."])
    const [started] = chunks.filter(({ type }) => type === "background-task-started")
    const resumed = await agent.resumeStream("alice", {
      runId: started?.runId ?? "",
      toolCallId: "c1",
      memory,
      untilIdle: true
    })
    const later = await collect(resumed.fullStream)
    expect(later.map(({ type }) => type).slice(0, 3)).toEqual([
      "background-task-resumed",
      "background-task-completed",
      "start"
    ])
    expect(textsOf(later)).toEqual(["Approved."])
    expect(model.unused()).toBe(0)
    const parts = (await thread()).flatMap(({ message }) => (message.role === "tool" ? message.content : []))
    expect(parts).toHaveLength(1)
  })
})

describe("7: a cancelled task", () => {
  it("has its line in the thread", async () => {
    const { agent, manager, thread } = world([calls(["c1", "stuck"]), reply("Started.")], {
      tools: { stuck: inBackground("stuck", () => new Promise<never>(() => undefined)) }
    })
    const chunks = await collect((await agent.stream("go", { memory })).fullStream)
    await manager.cancel(taskIdOf(chunks))
    expect(outcomesIn(await thread()).c1).toMatch(/cancelled/)
  })
})

describe("8: a restart", () => {
  it("runs everything that waited, beyond the limit too, and its outcomes reach the thread", async () => {
    const left = { threadId: "t1", resourceId: "u1" }
    const ids = ["a", "b", "c", "d"]
    const storage = sharedStorage([
      ...ids.map((id, index) => taskOf(id, { ...left, createdAt: new Date(index) })),
      taskOf("lost", { ...left, status: "running", attempt: 1, startedAt: new Date(0) }),
      suspendedTask("asked", left)
    ])
    await Effect.runPromise(
      Effect.provide(
        Effect.flatMap(ThreadStore.ThreadStore, threads => threads.open({ id: "t1", resourceId: "u1" })),
        storage.layer
      )
    )
    const look = createTool({
      id: "look",
      inputSchema: z.object({ for: z.string() }),
      background: { enabled: true },
      execute: ({ for: id }) => `found ${id}`
    })
    const { manager, thread } = world(
      [],
      { tools: { look } },
      { enabled: true, globalConcurrency: 1 },
      storage
    )
    for (const id of [...ids, "lost"]) await manager.waitFor(id)
    expect((await manager.getTask("lost"))?.status).toBe("failed")
    expect((await manager.getTask("asked"))?.status).toBe("suspended")
    for (const id of ids) expect((await manager.getTask(id))?.result).toBe(`found ${id}`)
    const outcomes = outcomesIn(await thread())
    expect(Object.keys(outcomes).sort()).toEqual(["call-a", "call-b", "call-c", "call-d", "call-lost"])
    expect(outcomes).toMatchObject({
      "call-a": "found a",
      "call-lost": expect.stringMatching(/ended before/)
    })
  })
})

describe("9: many calls at once", () => {
  it("never run beyond the limit", async () => {
    let running = 0
    let most = 0
    const { idle } = world(
      [
        calls(...Array.from({ length: 12 }, (_, index) => [`c${index}`, "work"] as const)),
        reply("Started."),
        ...Array.from({ length: 12 }, () => reply("More."))
      ],
      {
        tools: {
          work: inBackground("work", async () => {
            most = Math.max(most, ++running)
            await flush(2)
            running--
          })
        }
      },
      { enabled: true, globalConcurrency: 3, perAgentConcurrency: 2 }
    )
    await idle({ memory, untilIdle: { batch: "all" } })
    expect(most).toBe(2)
  })
})

describe("10: agents below", () => {
  it("run their own tools in the foreground of the task, and leave nothing behind", async () => {
    const below = new Agent({
      id: "below",
      model: ScriptedModel.make([calls(["b1", "dig"]), reply("Gold.")]),
      tools: { dig: inBackground("dig", () => "a nugget") },
      defaultOptions: { untilIdle: true }
    })
    const { idle, manager, model } = world(
      [calls(["c1", "agent-below", { prompt: "Dig." }]), reply("Started."), reply("We have gold.")],
      { agents: { below } }
    )
    expect(textsOf(await idle())).toEqual(["Started.", "We have gold."])
    expect((await list(manager)).map(({ toolName }) => toolName)).toEqual(["agent-below"])
    expect(outcomesIn(lastPrompt(model))).toEqual({ c1: "Gold." })
  })

  it("do not make an agent with a default of untilIdle recurse", async () => {
    const { agent } = world([reply("Once.")], { defaultOptions: { untilIdle: true } })
    const output = await agent.stream("go", { memory })
    expect(textsOf(await collect(output.fullStream))).toEqual(["Once."])
    expect(await output.turns).toHaveLength(1)
  })
})

describe("11: two users without a thread", () => {
  it("see nothing of each other, and each model has its own conversation", async () => {
    const gates = { one: latch(), other: latch() }
    const { agent } = world(
      [
        request =>
          calls([`c-${JSON.stringify(request.messages).includes("other") ? "other" : "one"}`, "work"]),
        reply("Started."),
        request =>
          calls([`c-${JSON.stringify(request.messages).includes("other") ? "other" : "one"}`, "work"]),
        reply("Started."),
        reply("Answered."),
        reply("Answered.")
      ],
      {
        tools: {
          work: inBackground("work", async (_, { agent: call }) => {
            await (call.toolCallId === "c-one" ? gates.one : gates.other).wait
            return call.toolCallId
          })
        }
      }
    )
    const read = async (input: string) => (await agent.stream(input, { untilIdle: true })).fullStream
    const one = collect(await read("one"))
    await flush(40)
    const other = collect(await read("other"))
    await flush(40)
    gates.one.open()
    gates.other.open()
    for (const [chunks, id] of [
      [await one, "c-one"],
      [await other, "c-other"]
    ] as const) {
      const ids = chunks.flatMap(chunk =>
        chunk.type.startsWith("background-task-") && "payload" in chunk && "toolCallId" in chunk.payload
          ? [chunk.payload.toolCallId]
          : []
      )
      expect(new Set(ids)).toEqual(new Set([id]))
      expect(textsOf(chunks)).toEqual(["Started.", "Answered."])
    }
  })
})

describe("12: what the model writes wrongly", () => {
  it("is an error of the call when it is an argument, and nothing at all when it is `_background`", async () => {
    const seen: Array<unknown> = []
    const { idle, manager } = world(
      [
        calls(["c1", "look", { at: 5 }], ["c2", "look", { at: "b", _background: false }]),
        reply("Started."),
        reply("Seen.")
      ],
      {
        tools: {
          look: inBackground(
            "look",
            async (input: unknown) => {
              await flush()
              seen.push(input)
            },
            { inputSchema: z.strictObject({ at: z.string() }) }
          )
        }
      }
    )
    const chunks = await idle()
    expect(chunks.filter(({ type }) => type === "tool-error")).toHaveLength(1)
    expect(seen).toEqual([{ at: "b" }])
    expect(await list(manager)).toHaveLength(1)
  })
})

describe("13: a mapper of outputs", () => {
  it("sees the result, and never the acknowledgement", async () => {
    const mapped: Array<unknown> = []
    const { idle, model } = world([calls(["c1", "look"]), reply("Started."), reply("Seen.")], {
      tools: {
        look: inBackground("look", () => flush().then(() => ({ items: [1, 2, 3] })), {
          toModelOutput: (output: unknown) => {
            mapped.push(output)
            return "three items"
          }
        })
      }
    })
    await idle()
    expect(mapped).toEqual([{ items: [1, 2, 3] }])
    expect(outcomesIn(lastPrompt(model))).toEqual({ c1: "three items" })
  })
})

describe("14: the bound on depth", () => {
  it("holds through tasks", async () => {
    const agents: Array<Agent> = []
    const deepest = new Agent({ id: "a3", model: ScriptedModel.make([]) })
    agents.push(deepest)
    const middle = new Agent({
      id: "a2",
      model: ScriptedModel.make([calls(["d", "agent-deepest", { prompt: "?" }]), reply("No further.")]),
      agents: { deepest },
      backgroundTasks: { tools: { deepest: true } }
    })
    const { idle, model } = world(
      [calls(["c1", "agent-middle", { prompt: "?" }]), reply("Started."), reply("Done.")],
      {
        agents: { middle },
        backgroundTasks: { tools: { middle: true } },
        defaultOptions: { maxDepth: 1 }
      }
    )
    await idle()
    expect(outcomesIn(lastPrompt(model))).toEqual({ c1: "No further." })
  })
})

describe("15: what is told", () => {
  it("is told once: one result for a call, one event for a change, also to who comes in the middle", async () => {
    const { idle, manager } = world(
      [calls(["c1", "quick"], ["c2", "writing"]), reply("Started."), reply("Done."), reply("Done.")],
      {
        tools: {
          quick: inBackground("quick", () => 1),
          writing: inBackground("writing", async (_, { writer }) => {
            await writer.write("half")
            await flush()
            return 2
          })
        }
      }
    )
    const controller = new AbortController()
    const watching = collect(manager.stream({ abortSignal: controller.signal }))
    const chunks = await idle({ memory, untilIdle: { batch: "all" } })
    controller.abort()
    expect(countOf(chunks, "tool-result")).toBe(2)
    expect(countOf(chunks, "tool-output")).toBe(0)
    expect(countOf(chunks, "background-task-output")).toBe(1)
    expect(countOf(chunks, "background-task-completed")).toBe(2)
    const events = told(await watching)
    expect(new Set(events).size).toBe(events.length)
  })
})

describe("16: a result that the model has seen in its run", () => {
  it("asks for no further turn", async () => {
    const { idle, model } = world([calls(["c1", "quick"]), calls(["c2", "look"]), reply("Both seen.")], {
      tools: {
        quick: inBackground("quick", () => "quick"),
        look: createTool({ id: "look", execute: () => flush(20).then(() => "looked") })
      }
    })
    expect(textsOf(await idle())).toEqual(["Both seen."])
    expect(model.unused()).toBe(0)
  })
})

describe("17: many tasks that are done at once", () => {
  it("are all answered, each event after its start, and the stream closes", async () => {
    const ids = Array.from({ length: 30 }, (_, index) => `c${index}`)
    const { idle, manager } = world(
      [calls(...ids.map(id => [id, "quick"] as const)), reply("Done."), reply("Done.")],
      { tools: { quick: inBackground("quick", () => undefined) } },
      { enabled: true, globalConcurrency: 4, perAgentConcurrency: 4 }
    )
    const chunks = await idle({ memory, untilIdle: { batch: "all" } })
    const started = new Set<string>()
    for (const chunk of chunks) {
      if (chunk.type === "background-task-started") started.add(chunk.payload.taskId)
      if (chunk.type === "background-task-completed") expect(started).toContain(chunk.payload.taskId)
    }
    expect(countOf(chunks, "background-task-completed")).toBe(30)
    expect((await list(manager)).every(({ status }) => status === "completed")).toBe(true)
  })
})

/** Threads of the promise face: the container's storage, its threads, and runs that belong to one. */
import { ThreadStore } from "eddy"
import {
  Agent,
  type AgentOptions,
  type ChunkType,
  createTool,
  Eddy,
  InMemoryStore,
  InvalidConfiguration,
  type Storage,
  StorageError,
  type StreamOptions,
  type ThreadMessage,
  ThreadNotFound
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import { changed as changedThreads } from "../agent/memoryKit.js"
import { collect, latch, memoryLogger, refuseUnhandledRejections, until } from "../support/readers.js"
import { withThreads } from "../support/stores.js"

refuseUnhandledRejections()

const { finish, hang, reply, text, toolCall } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

const agentOf = (turns: ReadonlyArray<ScriptedModel.Turn>, more: Partial<AgentOptions> = {}): Agent =>
  new Agent({ id: "keeper", model: ScriptedModel.make(turns), ...more })

/** A container of one agent that says this, turn by turn. */
const containerOf = (turns: ReadonlyArray<ScriptedModel.Turn>, more: Partial<AgentOptions> = {}) => {
  const model = ScriptedModel.make(turns)
  const agent = new Agent({ id: "keeper", model, ...more })
  const eddy = new Eddy({ agents: { agent }, storage: new InMemoryStore(), logger: memoryLogger() })
  return { agent, eddy, model }
}

const textOf = ({ message }: Pick<ThreadMessage, "message">): string =>
  typeof message.content === "string"
    ? message.content
    : message.content.map(part => (part.type === "text" ? part.text : "")).join("")

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail("nothing was rejected"),
    (error: unknown) => error
  )

const echo = createTool({ id: "echo", inputSchema: { type: "object" }, execute: input => input })

/** A store of threads that does something else, with the other stores in memory. */
const changed = (change: Parameters<typeof changedThreads>[0]): Storage["layer"] =>
  withThreads(changedThreads(change))

describe("a run with a thread", () => {
  it("remembers: the next turn is told what was said", async () => {
    const { agent, eddy, model } = containerOf([reply("Hello Ada."), reply("You are Ada.")], {
      instructions: "Be kind."
    })
    await agent.generate("I am Ada.", { memory })
    await agent.generate("Who am I?", { memory })
    expect(model.requests[1]?.messages.map(message => textOf({ message }))).toEqual([
      "Be kind.",
      "I am Ada.",
      "Hello Ada.",
      "Who am I?"
    ])
    const messages = await eddy.threads.messages("t1")
    expect(messages.map(textOf)).toEqual(["I am Ada.", "Hello Ada.", "Who am I?", "You are Ada."])
    expect(messages.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4])
    expect(messages.every(({ createdAt, threadId }) => createdAt instanceof Date && threadId === "t1")).toBe(
      true
    )
    await eddy.shutdown()
  })

  it("makes its thread with title and metadata, and tools know it", async () => {
    const seen: Array<unknown> = []
    const where = createTool({
      id: "where",
      execute: (_, { agent: { resourceId, threadId } }) => {
        seen.push(threadId, resourceId)
        return null
      }
    })
    const { agent, eddy } = containerOf([[toolCall("c1", "where", {}), finish("tool-calls")], reply("ok")], {
      tools: { where }
    })
    const thread = { id: "t1", title: "Trip", metadata: { stops: [1, 2] } }
    await agent.generate("go", { memory: { thread, resource: "u1" } })
    expect(seen).toEqual(["t1", "u1"])
    expect(await eddy.threads.get("t1")).toMatchObject({ ...thread, resourceId: "u1" })
    await eddy.shutdown()
  })

  it("how much is told: the agent says, and the call says otherwise", async () => {
    const { agent, eddy, model } = containerOf([reply("1"), reply("2"), reply("3"), reply("4")], {
      memory: { lastMessages: 2 }
    })
    await agent.generate("a", { memory })
    await agent.generate("b", { memory })
    await agent.generate("c", { memory })
    await agent.generate("d", { memory: { ...memory, lastMessages: false } })
    expect(
      model.requests.map(({ messages }) => messages.map(message => textOf({ message })).join(" "))
    ).toEqual(["a", "a 1 b", "b 2 c", "d"])
    await eddy.shutdown()
  })

  it("may come from the agent's default options", async () => {
    const { agent, eddy } = containerOf([reply("1"), reply("2")], { defaultOptions: { memory } })
    await agent.generate("a")
    await agent.generate("b", { memory: { ...memory, thread: "t2" } })
    expect((await eddy.threads.messages("t1")).map(textOf)).toEqual(["a", "1"])
    expect((await eddy.threads.messages("t2")).map(textOf)).toEqual(["b", "2"])
    await eddy.shutdown()
  })

  it("UI messages that are sent again change nothing", async () => {
    const { agent, eddy, model } = containerOf([reply("1"), reply("2")])
    const one = { id: "m1", role: "user", parts: [{ type: "text", text: "a" }] } as const
    const output = await agent.stream([one], { memory })
    const { uiMessages } = await output.response
    expect(uiMessages[0]?.id).toBe(output.messageId)
    await agent.generate([one, ...uiMessages, { ...one, id: "m2" }], { memory })
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"])
    expect((await eddy.threads.messages("t1")).map(textOf)).toEqual(["a", "1", "a", "2"])
    await eddy.shutdown()
  })

  it("stores a step before onStepFinish hears of it", async () => {
    const { agent, eddy } = containerOf(
      [[...text("so"), toolCall("c1", "echo", {}), finish("tool-calls")], reply("ok")],
      { tools: { echo } }
    )
    const held: Array<Promise<ReadonlyArray<ThreadMessage>>> = []
    await agent.generate("go", { memory, onStepFinish: () => held.push(eddy.threads.messages("t1")) })
    const roles = (await Promise.all(held)).map(messages => messages.map(({ message }) => message.role))
    expect(roles[0]?.slice(0, 3)).toEqual(["user", "assistant", "tool"])
    expect(roles[1]).toEqual(["user", "assistant", "tool", "assistant"])
    await eddy.shutdown()
  })
})

describe("the threads of a container", () => {
  const filled = async () => {
    const { agent, eddy } = containerOf(Array.from({ length: 6 }, (_, index) => reply(`${index}`)))
    for (const [thread, resource] of [
      ["a", "u1"],
      ["b", "u2"],
      ["c", "u1"],
      ["a", "u1"]
    ] as const) {
      await agent.generate(`in ${thread}`, { memory: { thread, resource } })
    }
    return eddy
  }

  const ids = ({ threads }: { readonly threads: ReadonlyArray<{ readonly id: string }> }) =>
    threads.map(({ id }) => id)

  it("are listed, the one that was changed last first, by page and by resource", async () => {
    const { shutdown, threads } = await filled()
    expect(ids(await threads.list())).toEqual(["a", "c", "b"])
    expect((await threads.list()).total).toBe(3)
    expect(ids(await threads.list({ resource: "u1" }))).toEqual(["a", "c"])
    expect(await threads.list({ resource: "nobody" })).toEqual({ threads: [], total: 0 })
    const page = await threads.list({ perPage: 2, page: 1 })
    expect([ids(page), page.total]).toEqual([["b"], 3])
    const scoped = await threads.list({ resource: "u1", perPage: 1, page: 1 })
    expect([ids(scoped), scoped.total]).toEqual([["c"], 2])
    expect(await threads.list({ perPage: 0 })).toEqual({ threads: [], total: 3 })
    await shutdown()
  })

  it("are found by id, and not by whoever they do not belong to", async () => {
    const { shutdown, threads } = await filled()
    expect(await threads.get("a")).toMatchObject({ id: "a", resourceId: "u1" })
    expect(await threads.get("a", { resource: "u1" })).toMatchObject({ id: "a" })
    expect(await threads.get("a", { resource: "u2" })).toBeUndefined()
    expect(await threads.get("nowhere")).toBeUndefined()
    expect((await threads.messages("a", { resource: "u1" })).map(textOf)).toEqual(["in a", "0", "in a", "3"])
    expect((await threads.messages("a", { last: 1 })).map(textOf)).toEqual(["in a", "3"])
    expect(await threads.messages("a", { last: 0 })).toEqual([])
    for (const asked of [threads.messages("a", { resource: "u2" }), threads.messages("nowhere")]) {
      const error = await rejection(asked)
      expect(error).toBeInstanceOf(ThreadNotFound)
      expect(String(error)).not.toContain("u1")
    }
    await shutdown()
  })

  it("are deleted with their messages, by whoever they belong to", async () => {
    const { shutdown, threads } = await filled()
    expect(await threads.delete("a", { resource: "u2" })).toBe(false)
    expect((await threads.messages("a")).length).toBe(4)
    expect(await threads.delete("a", { resource: "u1" })).toBe(true)
    expect(await threads.delete("a")).toBe(false)
    expect(await threads.get("a")).toBeUndefined()
    expect(await rejection(threads.messages("a"))).toBeInstanceOf(ThreadNotFound)
    expect(ids(await threads.list())).toEqual(["c", "b"])
    await shutdown()
  })

  it("can be made anew after they were deleted", async () => {
    const { agent, eddy } = containerOf([reply("1"), reply("2")])
    await agent.generate("a", { memory })
    await eddy.threads.delete("t1")
    await agent.generate("b", { memory: { ...memory, resource: "u2" } })
    expect((await eddy.threads.messages("t1", { resource: "u2" })).map(textOf)).toEqual(["b", "2"])
    await eddy.shutdown()
  })

  it("work without the container at hand", async () => {
    const { threads } = await filled()
    const { delete: drop, get, list, messages } = threads
    expect(ids(await list())).toHaveLength(3)
    expect(await get("a")).toBeDefined()
    expect(await messages("a")).toHaveLength(4)
    expect(await drop("a")).toBe(true)
  })

  it("where there is no storage every call is refused, with the remedy", async () => {
    const { shutdown, threads } = new Eddy()
    const asked = [threads.list(), threads.get("a"), threads.messages("a"), threads.delete("a")]
    for (const error of await Promise.all(asked.map(rejection))) {
      expect(error).toBeInstanceOf(InvalidConfiguration)
      expect(error).toMatchObject({ field: "storage" })
      expect(String(error)).toContain("new InMemoryStore()")
    }
    await shutdown()
  })

  it("after the container was shut down every call is refused, with an error that says so", async () => {
    const { shutdown, threads } = await filled()
    await shutdown()
    const asked = [threads.list(), threads.get("a"), threads.messages("a"), threads.delete("a")]
    for (const error of await Promise.all(asked.map(rejection))) {
      expect(error).toBeInstanceOf(InvalidConfiguration)
      expect(String(error)).toMatch(/shut down/)
    }
  })

  it("also where nothing was ever asked of it", async () => {
    const { shutdown, threads } = new Eddy({ storage: new InMemoryStore() })
    await shutdown()
    expect(await rejection(threads.list())).toBeInstanceOf(InvalidConfiguration)
  })
})

describe("what cannot work is refused", () => {
  it("a run with memory where there is no storage, with the remedy, in a container and without", async () => {
    const alone = agentOf([])
    const held = agentOf([])
    const eddy = new Eddy({ agents: { held } })
    for (const agent of [alone, held]) {
      for (const asked of [agent.stream("go", { memory }), agent.generate("go", { memory })]) {
        const error = await rejection(asked)
        expect(error).toBeInstanceOf(InvalidConfiguration)
        expect(error).toMatchObject({ field: "memory" })
        expect(String(error)).toMatch(/keeper.*storage: new InMemoryStore\(\)/)
      }
    }
    await eddy.shutdown()
  })

  const wrong: ReadonlyArray<readonly [what: string, memory: unknown, field: string]> = [
    ["an empty thread", { ...memory, thread: "" }, "memory.thread"],
    ["no resource", { thread: "t1" }, "memory.resource"],
    ["an unknown field", { ...memory, threadId: "t" }, "threadId"],
    ["lastMessages -1", { ...memory, lastMessages: -1 }, "memory.lastMessages"],
    ["lastMessages 1.5", { ...memory, lastMessages: 1.5 }, "memory.lastMessages"]
  ]

  it.each(wrong)("%s", async (_, given, field) => {
    const { agent, eddy } = containerOf([])
    const error = await rejection(agent.stream("go", { memory: given } as StreamOptions))
    expect(error).toBeInstanceOf(InvalidConfiguration)
    expect(error).toMatchObject({ field })
    expect((await eddy.threads.list()).total).toBe(0)
    await eddy.shutdown()
  })

  it.each([
    [() => new Eddy({ storage: {} as Storage }), "storage"],
    [() => new Eddy({ storage: null as unknown as Storage }), "storage"],
    [() => new Eddy({ storage: { id: "x", layer: "no layer" } as unknown as Storage }), "storage"],
    [() => new InMemoryStore({ name: "x" } as never), "name"],
    [() => agentOf([], { memory: { lastMessages: -1 } }), "memory.lastMessages"],
    [() => agentOf([], { memory: { last: 1 } as never }), "last"]
  ])("%s", (make, field) => {
    let error: unknown
    try {
      make()
    } catch (cause) {
      error = cause
    }
    expect(error).toBeInstanceOf(InvalidConfiguration)
    expect(error).toMatchObject({ field })
  })

  it("a store has an id", () => {
    expect([new InMemoryStore().id, new InMemoryStore({ id: "mine" }).id]).toEqual(["memory", "mine"])
  })
})

describe("a run that is stopped", () => {
  const stopped = async (
    turns: ReadonlyArray<ScriptedModel.Turn>,
    stop: (eddy: Eddy, cancel: (reason?: unknown) => Promise<void>) => Promise<void>,
    at: ChunkType
  ) => {
    // What the container keeps is read in it: the store outlives neither.
    const kept: Array<ThreadMessage> = []
    const keeping: Storage = {
      id: "keeping",
      layer: changed(store => ({
        append: (id, messages) =>
          Effect.tap(store.append(id, messages), stored =>
            Effect.sync(() => {
              for (const message of stored) {
                const place = kept.findIndex(({ id }) => id === message.id)
                if (place < 0) kept.push(message)
                else kept[place] = message
              }
            })
          )
      }))
    }
    const wait = createTool({ id: "wait", execute: () => new Promise(() => undefined) })
    const agent = agentOf(turns, { tools: { echo, wait } })
    const eddy = new Eddy({ agents: { agent }, storage: keeping, logger: memoryLogger() })
    const output = await agent.stream("go", { memory })
    for await (const chunk of output.fullStream) {
      if (chunk.type === at) break
    }
    await stop(eddy, output.cancel)
    // Looked at before anything else is waited for: everything is there by then.
    const held = kept.map(({ message }) => message)
    const full = await output.getFullOutput()
    expect(full.status).toBe("aborted")
    expect(held.slice(1)).toEqual(full.response.messages)
    return held
  }

  const ways: ReadonlyArray<
    readonly [what: string, stop: (eddy: Eddy, cancel: (reason?: unknown) => Promise<void>) => Promise<void>]
  > = [
    ["shutdown", eddy => eddy.shutdown()],
    ["cancel()", (_, cancel) => cancel("enough")]
  ]

  it.each(ways)("by %s, in a text", async (_, stop) => {
    const kept = await stopped(
      [[{ type: "text-delta", id: "0", delta: "I will " }, hang]],
      stop,
      "text-delta"
    )
    expect(kept).toEqual([
      { role: "user", content: [{ type: "text", text: "go" }] },
      { role: "assistant", content: [{ type: "text", text: "I will " }] }
    ])
  })

  it.each(ways)("by %s, while a tool runs", async (_, stop) => {
    const kept = await stopped(
      [[...text("so"), toolCall("c1", "wait", {}), toolCall("c2", "echo", { n: 1 }), finish("tool-calls")]],
      stop,
      "tool-result"
    )
    expect(kept.map(({ role }) => role)).toEqual(["user", "assistant", "tool"])
    expect(kept[2]?.content).toMatchObject([
      { toolCallId: "c1", output: { type: "error-text" } },
      { toolCallId: "c2", output: { type: "json", value: { n: 1 } } }
    ])
  })

  it("because the reader of a run that keeps nothing has left", async () => {
    const { agent, eddy } = containerOf([[...text("I will "), hang]])
    const output = await agent.stream("go", { memory, replay: false })
    for await (const chunk of output.fullStream) {
      if (chunk.type === "text-delta") break
    }
    await until(() => output.status === "aborted", "the run has ended")
    expect((await eddy.threads.messages("t1")).map(textOf)).toEqual(["go", "I will "])
    await eddy.shutdown()
  })
})

describe("a store that is wrong", () => {
  const storageOf = (layer: Storage["layer"]): Storage => ({ id: "wrong", layer })

  const failing = (operation: "open" | "append" | "messages" | "list") =>
    storageOf(
      changed(() => {
        const error = new StorageError({
          operation: `ThreadStore.${operation}`,
          message: "The disk is full."
        })
        return { [operation]: () => Effect.fail(error) }
      })
    )

  it.each(["open", "append", "messages"] as const)(
    "whose %s fails: everything of the run says so",
    async operation => {
      const agent = agentOf([])
      const logger = memoryLogger()
      const eddy = new Eddy({ agents: { agent }, storage: failing(operation), logger })
      const errors: Array<Error> = []
      const output = await agent.stream("go", { memory, onError: ({ error }) => errors.push(error) })
      const chunks = await collect(output.fullStream)
      expect(chunks.map(({ type }) => type)).toEqual(["start", "error", "finish"])
      expect(await collect(output.textStream)).toEqual([])
      expect(await rejection(output.text)).toBeInstanceOf(StorageError)
      expect(await rejection(output.consumeStream().then(() => output.steps))).toBeInstanceOf(StorageError)
      expect(errors).toHaveLength(1)
      expect(await rejection(agent.generate("go", { memory }))).toBeInstanceOf(StorageError)
      await eddy.shutdown()
    }
  )

  it("a call of threads rejects with its error", async () => {
    const eddy = new Eddy({ storage: failing("list") })
    expect(await rejection(eddy.threads.list())).toBeInstanceOf(StorageError)
    await eddy.shutdown()
  })

  it("that cannot be made: every run and every call rejects, and the container can be shut down", async () => {
    const broken = new Error("no connection")
    const agent = agentOf([])
    const eddy = new Eddy({
      agents: { agent },
      storage: storageOf(withThreads(Layer.effect(ThreadStore.ThreadStore, Effect.die(broken)))),
      logger: memoryLogger()
    })
    expect(await rejection(agent.stream("go", { memory }))).toBe(broken)
    expect(await rejection(agent.generate("go"))).toBe(broken)
    expect(await rejection(eddy.threads.list())).toBe(broken)
    await eddy.shutdown()
  })

  it("that takes its time to be made is waited for", async () => {
    const gate = latch()
    const { agent } = { agent: agentOf([reply("1")]) }
    const slow = Layer.unwrapEffect(
      Effect.as(
        Effect.promise(() => gate.wait),
        ThreadStore.layerMemory
      )
    )
    const eddy = new Eddy({ agents: { agent }, storage: storageOf(withThreads(slow)) })
    const asked = agent.generate("go", { memory })
    gate.open()
    expect((await asked).text).toBe("1")
    expect(await eddy.threads.messages("t1")).toHaveLength(2)
    await eddy.shutdown()
  })

  it("a thread of another resource is as good as none", async () => {
    const { agent, eddy } = containerOf([reply("1")])
    await agent.generate("a", { memory })
    const error = await rejection(agent.generate("b", { memory: { ...memory, resource: "u2" } }))
    expect(error).toBeInstanceOf(ThreadNotFound)
    expect(await eddy.threads.messages("t1")).toHaveLength(2)
    await eddy.shutdown()
  })
})

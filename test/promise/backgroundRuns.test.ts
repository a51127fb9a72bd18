/** Runs of the promise face whose tools run in the background. */
import {
  Agent,
  type AgentOptions,
  type Chunk,
  createTool,
  Eddy,
  type EddyOptions,
  InMemoryStore,
  InvalidConfiguration,
  RunNotFound,
  type StreamOptions,
  type Task,
  type ThreadMessage,
  type ToolBackground,
  ToolCallNotPending,
  type ToolExecutionContext
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { afterEach, describe, expect, it } from "vitest"
import { z } from "zod"
import { collect, flush, latch, refuseUnhandledRejections, until } from "../support/readers.js"
import { containerOf, rejection, sharedStorage } from "./tasksKit.js"

refuseUnhandledRejections()

const { finish, reply, toolCall } = ScriptedModel

const memory = { thread: "t1", resource: "u1" } as const

const open: Array<{ readonly shutdown: () => Promise<void> }> = []

afterEach(async () => {
  for (const eddy of open.splice(0)) await eddy.shutdown()
})

const calls = (...made: ReadonlyArray<readonly [id: string, name: string, args: unknown]>) => [
  ...made.map(([id, name, args]) => toolCall(id, name, args)),
  finish("tool-calls")
]

/** A tool that waits until a test opens its gate, and what it was told. */
const gated = (background: ToolBackground = { enabled: true }, result: unknown = { summary: "good" }) => {
  const gate = latch()
  const contexts: Array<ToolExecutionContext> = []
  const inputs: Array<unknown> = []
  const tool = createTool({
    id: "research",
    description: "Run a long research job",
    inputSchema: z.object({ topic: z.string() }),
    background,
    execute: async (input, context) => {
      inputs.push(input)
      contexts.push(context)
      await gate.wait
      return result
    }
  })
  return { tool, gate, contexts, inputs }
}

type Turns = Parameters<typeof ScriptedModel.make>[0]

const setting = (
  turns: Turns,
  agentOptions: Partial<AgentOptions>,
  options: Omit<EddyOptions<never>, "agents" | "logger"> = {}
) => {
  const model = ScriptedModel.make(turns)
  const agent = new Agent({ id: "researcher", model, ...agentOptions })
  const made = containerOf({
    agents: { agent },
    storage: new InMemoryStore(),
    ...options,
    backgroundTasks: { shutdown: { graceMs: 1 }, ...options.backgroundTasks }
  })
  open.push(made.eddy)
  const thread = (): Promise<ReadonlyArray<ThreadMessage>> => made.eddy.threads.messages("t1")
  return { ...made, agent, model, thread }
}

const typesOf = (chunks: ReadonlyArray<Chunk>) => chunks.map(({ type }) => type)

const of = <Type extends Chunk["type"]>(chunks: ReadonlyArray<Chunk>, type: Type) =>
  chunks.filter((chunk): chunk is Extract<Chunk, { readonly type: Type }> => chunk.type === type)

/** The results that a thread holds, by call. */
const resultsIn = (messages: ReadonlyArray<ThreadMessage>): ReadonlyArray<unknown> =>
  messages.flatMap(({ message }) =>
    message.role === "tool" ? message.content.map(({ output, toolCallId }) => [toolCallId, output]) : []
  )

describe("a call that runs in the background", () => {
  it("is acknowledged at once; its result is in the thread when it is there", async () => {
    const research = gated()
    const { agent, manager, model, thread } = setting(
      [calls(["c1", "research", { topic: "solana", _background: { timeoutMs: 900_000 } }]), reply("On it.")],
      { tools: { research: research.tool } }
    )
    const output = await agent.stream("Research solana", { memory })
    const chunks = await collect(output.fullStream)
    expect(await output.text).toBe("On it.")
    expect(await output.turns).toHaveLength(1)
    const [started] = of(chunks, "background-task-started")
    const taskId = started?.payload.taskId ?? expect.fail("nothing was started")
    expect(of(chunks, "tool-call")[0]?.payload.args).toEqual({ topic: "solana" })
    expect(typesOf(chunks).filter(type => type.startsWith("background-task-running"))).toEqual([])
    expect(JSON.stringify(model.requests[1]?.messages)).toContain(taskId)
    expect(await manager.getTask(taskId)).toMatchObject({
      status: "running",
      toolName: "research",
      toolCallId: "c1",
      args: { topic: "solana" },
      agentId: "researcher",
      threadId: "t1",
      resourceId: "u1",
      runId: output.runId,
      timeoutMs: 900_000
    })
    expect(research.inputs).toEqual([{ topic: "solana" }])
    const [context] = research.contexts
    expect(context).toMatchObject({
      taskId,
      runId: output.runId,
      agent: { threadId: "t1", toolCallId: "c1" }
    })
    expect(typeof context?.agent.suspend).toBe("function")
    expect(context?.agent.messages).not.toEqual([])
    research.gate.open()
    expect(await manager.waitFor(taskId)).toMatchObject({
      status: "completed",
      result: { summary: "good" }
    })
    expect(resultsIn(await thread())).toEqual([["c1", { type: "json", value: { summary: "good" } }]])
  })

  it.each([
    [
      "a container that has not enabled them",
      (agent: Agent) => new Eddy({ agents: { agent }, storage: new InMemoryStore() })
    ],
    ["an agent on its own", () => new Eddy()]
  ])("is in the foreground in %s", async (_, containerFor) => {
    const research = gated()
    research.gate.open()
    const model = ScriptedModel.make([
      calls(["c1", "research", { topic: "solana", _background: { enabled: true } }]),
      reply("Done.")
    ])
    const agent = new Agent({ id: "researcher", model, tools: { research: research.tool } })
    open.push(containerFor(agent))
    const output = await agent.stream("go", { untilIdle: true })
    expect(typesOf(await collect(output.fullStream)).filter(type => type.startsWith("background"))).toEqual(
      []
    )
    expect((await output.toolResults)[0]?.payload.result).toEqual({ summary: "good" })
    expect(research.contexts[0]).toMatchObject({
      taskId: undefined,
      agent: { resumeData: undefined, suspendData: undefined }
    })
    expect(await output.turns).toHaveLength(1)
  })

  it.each<readonly [AgentOptions["backgroundTasks"], string, ToolBackground | undefined, boolean]>([
    [undefined, "research", { enabled: true }, true],
    [undefined, "research", undefined, false],
    [{ tools: { research: true } }, "research", undefined, true],
    [{ tools: { research: { timeoutMs: 5 } } }, "research", undefined, true],
    [{ tools: { research: false } }, "research", { enabled: true }, false],
    [{ tools: { research: { enabled: false } } }, "research", { enabled: true }, false],
    [{ tools: "all" }, "research", undefined, true],
    [{ disabled: true, tools: "all" }, "research", { enabled: true }, false],
    // By the name that it is registered with, and by its id.
    [{ tools: { researchTool: true } }, "researchTool", undefined, true],
    [{ tools: { research: true } }, "researchTool", undefined, true],
    [{ tools: { research: false } }, "researchTool", { enabled: true }, false],
    [{ tools: { other: true } }, "researchTool", undefined, false]
  ])("agent: %j, tool %s: %j → %s", async (backgroundTasks, name, background, isBackground) => {
    const research = gated(background ?? {})
    research.gate.open()
    const { agent } = setting([calls(["c1", name, { topic: "x" }]), reply("ok")], {
      tools: { [name]: research.tool },
      ...(backgroundTasks === undefined ? {} : { backgroundTasks })
    })
    const output = await agent.stream("go")
    const chunks = await collect(output.fullStream)
    await until(() => research.contexts.length === 1, "it was executed")
    const [context] = research.contexts
    expect(of(chunks, "background-task-started")).toHaveLength(isBackground ? 1 : 0)
    expect(context?.taskId !== undefined).toBe(isBackground)
    const [result] = await output.toolResults
    if (!isBackground) expect(result?.payload.result).toEqual({ summary: "good" })
  })

  it("takes its limits from the agent, then the tool, then the container", async () => {
    const limits = async (
      container: EddyOptions<never>["backgroundTasks"],
      background: ToolBackground,
      tools: NonNullable<AgentOptions["backgroundTasks"]>["tools"]
    ) => {
      const research = gated(background)
      const { agent, manager } = setting(
        [calls(["c1", "research", { topic: "x" }]), reply("ok")],
        { tools: { research: research.tool }, backgroundTasks: tools === undefined ? {} : { tools } },
        container === undefined ? {} : { backgroundTasks: container }
      )
      await agent.generate("go")
      const [task] = (await manager.listTasks()).tasks
      research.gate.open()
      return [task?.timeoutMs, task?.maxRetries]
    }
    const container = { defaultTimeoutMs: 1000, defaultRetries: { maxRetries: 1 } }
    expect(await limits(undefined, { enabled: true }, undefined)).toEqual([300_000, 0])
    expect(await limits(container, { enabled: true }, undefined)).toEqual([1000, 1])
    const background = { enabled: true, timeoutMs: 2000, maxRetries: 2 }
    expect(await limits(container, background, undefined)).toEqual([2000, 2])
    const tools = { research: { timeoutMs: 3000, maxRetries: 3 } }
    expect(await limits(container, background, tools)).toEqual([3000, 3])
  })

  it("takes too long: it has failed, its signal fires, and the model is told in the thread", async () => {
    const failed: Array<Task> = []
    const research = gated({ enabled: true, timeoutMs: 1, onFailed: task => failed.push(task) })
    const { agent, manager, thread } = setting([calls(["c1", "research", { topic: "x" }]), reply("On it.")], {
      tools: { research: research.tool }
    })
    await agent.generate("go", { memory })
    const [task] = (await manager.listTasks()).tasks
    const settled = await manager.waitFor(task?.id ?? "")
    expect(settled).toMatchObject({
      status: "timed_out",
      error: { message: expect.stringContaining("1 ms") }
    })
    expect(research.contexts[0]?.abortSignal.aborted).toBe(true)
    await until(() => failed.length === 1, "the callback was called")
    expect(failed[0]).toMatchObject({ id: task?.id, status: "timed_out" })
    research.gate.open()
    await flush()
    expect(resultsIn(await thread())).toEqual([["c1", { type: "error-text", value: settled.error?.message }]])
  })

  it("is tried again after a failure, as the container says", async () => {
    let attempts = 0
    const asked: Array<unknown> = []
    const flaky = createTool({
      id: "flaky",
      background: { enabled: true },
      execute: () => {
        attempts++
        if (attempts < 3) throw new Error(`attempt ${attempts}`)
        return "third time lucky"
      }
    })
    const { agent, manager } = setting(
      [calls(["c1", "flaky", {}]), reply("ok")],
      { tools: { flaky } },
      {
        backgroundTasks: {
          defaultRetries: {
            maxRetries: 5,
            retryDelayMs: 1,
            backoffMultiplier: 1,
            maxRetryDelayMs: 1,
            retryableErrors: error => asked.push(error) > 0
          }
        }
      }
    )
    await agent.generate("go")
    const [task] = (await manager.listTasks()).tasks
    expect(await manager.waitFor(task?.id ?? "")).toMatchObject({
      status: "completed",
      result: "third time lucky",
      attempt: 3
    })
    expect(asked.map(String)).toEqual(["Error: attempt 1", "Error: attempt 2"])
  })

  it("is refused when every slot is taken and the container says so", async () => {
    const research = gated()
    const { agent } = setting(
      [calls(["c1", "research", { topic: "a" }]), calls(["c2", "research", { topic: "b" }]), reply("ok")],
      { tools: { research: research.tool } },
      { backgroundTasks: { globalConcurrency: 1, backpressure: "reject" } }
    )
    const chunks = await collect((await agent.stream("go")).fullStream)
    expect(of(chunks, "background-task-started")).toHaveLength(1)
    expect(of(chunks, "tool-error").map(({ payload }) => payload.error)).toMatchObject([
      { name: "TaskRejected" }
    ])
    research.gate.open()
  })

  it("is answered in the same run when that waits for it", async () => {
    const research = gated({ enabled: true, waitTimeoutMs: 60_000 })
    const { agent } = setting(
      [calls(["c1", "research", { topic: "a" }]), reply("On it."), reply("It is good.")],
      { tools: { research: research.tool } }
    )
    const output = await agent.stream("go")
    const text = output.text
    await until(() => research.contexts.length === 1, "it runs")
    research.gate.open()
    expect(await text).toContain("It is good.")
    expect(await output.steps).toHaveLength(3)
  })
})

describe("callbacks", () => {
  it("of the tool, the agent and the container are called in this order, each after the one before", async () => {
    const seen: Array<string> = []
    const note = (who: string) => async (task: Task) => {
      await flush(2)
      seen.push(`${who} ${task.toolName} ${task.status}`)
    }
    const work = createTool({
      id: "work",
      inputSchema: z.object({ fails: z.boolean() }),
      background: { enabled: true, onComplete: note("tool"), onFailed: note("tool") },
      execute: ({ fails }) => {
        if (fails) throw new Error("no")
        return "yes"
      }
    })
    const { agent } = setting(
      [calls(["c1", "work", { fails: false }]), calls(["c2", "work", { fails: true }]), reply("ok")],
      {
        tools: { work },
        backgroundTasks: { onTaskComplete: note("agent"), onTaskFailed: note("agent") }
      },
      { backgroundTasks: { onTaskComplete: note("container"), onTaskFailed: note("container") } }
    )
    await agent.generate("go")
    await until(() => seen.length === 6, "everybody was called")
    for (const status of ["completed", "failed"]) {
      expect(seen.filter(line => line.endsWith(status))).toEqual([
        `tool work ${status}`,
        `agent work ${status}`,
        `container work ${status}`
      ])
    }
  })

  it("that throw or reject are logged, and stop nothing", async () => {
    const seen: Array<string> = []
    const work = createTool({
      id: "work",
      background: {
        enabled: true,
        onComplete: () => {
          throw new Error("the tool's callback")
        }
      },
      execute: () => "done"
    })
    const { agent, logger, manager } = setting(
      [calls(["c1", "work", {}]), reply("ok")],
      {
        tools: { work },
        backgroundTasks: { onTaskComplete: () => Promise.reject(new Error("the agent's")) }
      },
      { backgroundTasks: { onTaskComplete: ({ id }) => seen.push(id) } }
    )
    await agent.generate("go")
    await until(() => seen.length === 1, "the container's callback was called")
    expect(await manager.getTask(seen[0] ?? "")).toMatchObject({ status: "completed", result: "done" })
    expect(
      logger.lines.filter(([level, line]) => level === "warn" && line.includes("callback"))
    ).toHaveLength(2)
  })

  it("of cancelled tasks are called on every level", async () => {
    const seen: Array<string> = []
    const research = gated({ enabled: true, onCancelled: () => seen.push("tool") })
    const { agent, manager } = setting(
      [calls(["c1", "research", { topic: "x" }]), reply("ok")],
      { tools: { research: research.tool }, backgroundTasks: { onTaskCancelled: () => seen.push("agent") } },
      { backgroundTasks: { onTaskCancelled: () => seen.push("container") } }
    )
    await agent.generate("go")
    const [task] = (await manager.listTasks()).tasks
    await manager.cancel(task?.id ?? "")
    await until(() => seen.length === 3, "everybody was called")
    expect(seen).toEqual(["tool", "agent", "container"])
    research.gate.open()
  })
})

describe("a stream that is open until everything is answered", () => {
  const asked = async (
    ask: (agent: Agent) => Promise<Awaited<ReturnType<Agent["stream"]>>>,
    agentOptions: Partial<AgentOptions> = {}
  ) => {
    const research = gated()
    const made = setting(
      [calls(["c1", "research", { topic: "solana" }]), reply("On it."), reply("Solana is good.")],
      { tools: { research: research.tool }, ...agentOptions }
    )
    const output = await ask(made.agent)
    const reading = collect(output.fullStream)
    await until(() => research.contexts.length === 1, "it runs")
    research.gate.open()
    return { ...made, output, chunks: await reading }
  }

  const options: StreamOptions = { memory, untilIdle: true }

  it.each<readonly [string, (agent: Agent) => ReturnType<Agent["stream"]>, Partial<AgentOptions>]>([
    ["untilIdle: true", agent => agent.stream("go", options), {}],
    ["untilIdle of options", agent => agent.stream("go", { memory, untilIdle: { maxIdleMs: 30_000 } }), {}],
    ["streamUntilIdle", agent => agent.streamUntilIdle("go", { memory }), {}],
    ["its options", agent => agent.streamUntilIdle("go", { memory, untilIdle: { batch: "all" } }), {}],
    ["a default", agent => agent.stream("go", { memory }), { defaultOptions: { untilIdle: true } }],
    ["without a thread", agent => agent.stream("go", { untilIdle: true }), {}]
  ])("%s: the result is answered in the same stream", async (_, ask, agentOptions) => {
    const { chunks, output } = await asked(ask, agentOptions)
    const types = typesOf(chunks)
    expect(types.filter(type => type === "start")).toHaveLength(2)
    expect(types.filter(type => type === "background-task-completed")).toHaveLength(1)
    expect(types.at(-1)).toBe("finish")
    expect(await output.text).toBe("On it.")
    const turns = await output.turns
    expect(turns.map(({ text }) => text)).toEqual(["On it.", "Solana is good."])
    await output.consumeStream()
    expect(output.status).toBe("success")
  })

  it("the answer is in the thread, and callbacks are about the first run", async () => {
    const ends: Array<string> = []
    const steps: Array<string> = []
    const { thread } = await asked(agent =>
      agent.stream("go", {
        ...options,
        onFinish: ({ text }) => ends.push(text),
        onStepFinish: ({ text }) => steps.push(text)
      })
    )
    expect(ends).toEqual(["On it."])
    expect(steps).toEqual(["", "On it.", "Solana is good."])
    expect(JSON.stringify((await thread()).at(-1)?.message)).toContain("Solana is good.")
  })

  it("a later run that fails says so in the stream and in the log", async () => {
    const research = gated()
    const { agent, logger } = setting(
      [
        calls(["c1", "research", { topic: "solana" }]),
        reply("On it."),
        () => {
          throw new Error("The model is gone.")
        }
      ],
      { tools: { research: research.tool }, defaultOptions: { maxRetries: 0 } }
    )
    const output = await agent.stream("go", options)
    const reading = collect(output.fullStream)
    await until(() => research.contexts.length === 1, "it runs")
    research.gate.open()
    const chunks = await reading
    expect(of(chunks, "error")).toHaveLength(1)
    expect(typesOf(chunks).at(-1)).toBe("finish")
    expect(await output.text).toBe("On it.")
    expect((await output.turns).map(({ status }) => status)).toEqual(["success", "failed"])
    expect(logger.lines.filter(([level]) => level === "error")).toHaveLength(1)
  })

  it("is closed by its signal; its tasks go on", async () => {
    const research = gated()
    const { agent, manager } = setting(
      [calls(["c1", "research", { topic: "solana" }]), reply("On it."), reply("never")],
      { tools: { research: research.tool } }
    )
    const controller = new AbortController()
    const output = await agent.stream("go", { ...options, abortSignal: controller.signal })
    const reading = collect(output.fullStream)
    expect(await output.text).toBe("On it.")
    controller.abort()
    await reading
    expect(await output.turns).toHaveLength(1)
    await output.cancel()
    const [task] = (await manager.listTasks()).tasks
    expect(task).toMatchObject({ status: "running" })
    research.gate.open()
    expect(await manager.waitFor(task?.id ?? "")).toMatchObject({ status: "completed" })
  })

  it("is consumed, and cancelled, when it is over and not before", async () => {
    const research = gated()
    const { agent } = setting(
      [calls(["c1", "research", { topic: "solana" }]), reply("On it."), reply("Done.")],
      {
        tools: { research: research.tool }
      }
    )
    const seen: Array<string> = []
    const output = await agent.stream("go", options)
    const consumed = output.consumeStream().then(() => seen.push("consumed"))
    const turns = output.turns.then(() => seen.push("turns"))
    expect(await output.text).toBe("On it.")
    await flush()
    expect(seen).toEqual([])
    research.gate.open()
    await Promise.all([consumed, turns])
    expect([...seen].sort()).toEqual(["consumed", "turns"])

    const other = gated()
    const waiting = setting([calls(["c1", "research", { topic: "solana" }]), reply("On it.")], {
      tools: { research: other.tool }
    })
    const cancelled = await waiting.agent.stream("go", options)
    expect(await cancelled.text).toBe("On it.")
    const chunks = collect(cancelled.fullStream)
    await cancelled.cancel()
    expect(typesOf(await chunks).filter(type => type === "start")).toHaveLength(1)
    expect(cancelled.status).toBe("success")
    other.gate.open()
  })

  it("ends with its container", async () => {
    const research = gated()
    const { agent, eddy } = setting([calls(["c1", "research", { topic: "solana" }]), reply("On it.")], {
      tools: { research: research.tool }
    })
    const output = await agent.stream("go", options)
    const reading = collect(output.fullStream)
    expect(await output.text).toBe("On it.")
    await eddy.shutdown()
    await reading
    expect(await output.turns).toHaveLength(1)
    research.gate.open()
  })
})

describe("a tool that writes without awaiting", () => {
  it("ends no reader: the newest outputs come in order, and every other event", async () => {
    const many = 9000
    const tool = createTool({
      id: "research",
      description: "",
      inputSchema: z.object({}),
      background: { enabled: true },
      execute: (_, { writer }) => {
        for (let index = 0; index < many; index++) void writer?.write({ index })
        return Promise.resolve("done")
      }
    })
    const { agent, manager } = setting(
      [
        calls(["c1", "research", {}], ["c2", "research", {}]),
        reply("On it."),
        reply("Done."),
        reply("Done.")
      ],
      { tools: { research: tool } }
    )
    const events = (async () => {
      const chunks: Array<Chunk> = []
      for await (const chunk of manager.stream()) {
        chunks.push(chunk)
        if (of(chunks, "background-task-completed").length === 2) break
      }
      return chunks
    })()
    const output = await agent.stream("go", { memory, untilIdle: true })
    for (const chunks of [await collect(output.fullStream), await events]) {
      expect(of(chunks, "background-task-running")).toHaveLength(2)
      expect(of(chunks, "background-task-completed")).toHaveLength(2)
      for (const id of ["c1", "c2"]) {
        const indexes = of(chunks, "background-task-output").flatMap(
          ({ payload: { payload, toolCallId } }) =>
            toolCallId === id ? [Number(Object(payload.payload.output).index)] : []
        )
        const first = many - indexes.length
        expect(indexes.slice(-4096)).toEqual(Array.from({ length: 4096 }, (_, index) => many - 4096 + index))
        expect(first).toBeGreaterThan(0)
      }
    }
  })
})

describe("a call that suspends", () => {
  const review = () =>
    createTool({
      id: "review",
      description: "Submit a draft for human review.",
      inputSchema: z.object({ draft: z.string() }),
      outputSchema: z.object({ approvedBy: z.string(), edits: z.string().optional() }),
      resumeSchema: z.object({ reviewer: z.string(), edits: z.string().optional() }),
      background: { enabled: true },
      execute: async ({ draft }, context) => {
        const { resumeData, suspend } = context.agent
        if (!resumeData) {
          await suspend?.({ awaiting: "approval", draft })
          return { approvedBy: "", edits: undefined }
        }
        const { reviewer, edits } = resumeData as { reviewer: string; edits?: string }
        return { approvedBy: reviewer, edits }
      }
    })

  const suspended = async (options: StreamOptions = { memory, untilIdle: true }) => {
    const made = setting(
      [calls(["c1", "review", { draft: "v1" }]), reply("I have asked."), reply("Alice agrees.")],
      { tools: { review: review() } }
    )
    const output = await made.agent.stream("go", options)
    const chunks = await collect(output.fullStream)
    const [task] = (await made.manager.listTasks()).tasks
    if (task === undefined) return expect.fail("there is no task")
    return { ...made, output, chunks, taskId: task.id }
  }

  it("closes an until-idle stream; resuming it out of band puts its result into the thread", async () => {
    const { chunks, manager, output, taskId, thread } = await suspended()
    expect(of(chunks, "background-task-suspended").map(({ payload }) => payload.suspendData)).toEqual([
      { awaiting: "approval", draft: "v1" }
    ])
    expect(await output.turns).toHaveLength(1)
    const resumed = await manager.resume(taskId, { reviewer: "alice@example.com", edits: "Reworded." })
    expect(resumed).toMatchObject({ id: taskId, status: "running" })
    await manager.waitFor(taskId)
    expect(resultsIn(await thread())).toEqual([
      ["c1", { type: "json", value: { approvedBy: "alice@example.com", edits: "Reworded." } }]
    ])
  })

  it("resumeStream: what happens to it, and the turn that answers, in one stream", async () => {
    const { agent, output, taskId, thread } = await suspended()
    const resumed = await agent.resumeStream(
      { reviewer: "alice@example.com" },
      { runId: output.runId, toolCallId: "c1", memory, untilIdle: true }
    )
    const chunks = await collect(resumed.fullStream)
    expect(typesOf(chunks).filter(type => type.startsWith("background-task-"))).toEqual([
      "background-task-resumed",
      "background-task-completed"
    ])
    expect(of(chunks, "background-task-completed")[0]?.payload.taskId).toBe(taskId)
    expect((await resumed.turns).map(({ text }) => text)).toEqual(["Alice agrees."])
    expect(await resumed.text).toBe("Alice agrees.")
    expect(JSON.stringify((await thread()).at(-1)?.message)).toContain("Alice agrees.")
  })

  it("resumeStream without untilIdle: only what happens to it", async () => {
    const { agent, output, thread } = await suspended()
    const resumed = await agent.resumeStream(
      { reviewer: "alice@example.com" },
      { runId: output.runId, toolCallId: "c1", memory }
    )
    const chunks = await collect(resumed.fullStream)
    expect(typesOf(chunks)).toEqual(["background-task-resumed", "background-task-completed"])
    expect(await resumed.turns).toEqual([])
    expect(resultsIn(await thread())).toEqual([
      ["c1", { type: "json", value: { approvedBy: "alice@example.com" } }]
    ])
  })

  it("resumeStream rejects what cannot be resumed", async () => {
    const { agent, manager, output, taskId } = await suspended()
    const call = { runId: output.runId, toolCallId: "c1", memory }
    expect(await rejection(agent.resumeStream({ reviewer: 1 }, call))).toMatchObject({
      _tag: "InvalidResumeData"
    })
    expect(await rejection(agent.resumeStream({}, { ...call, toolCallId: "c2" }))).toBeInstanceOf(RunNotFound)
    const others = { ...call, memory: { thread: "t1", resource: "u2" } }
    expect(await rejection(agent.resumeStream({ reviewer: "eve" }, others))).toBeInstanceOf(RunNotFound)
    for (const field of ["runId", "toolCallId"] as const) {
      const error = await rejection(agent.resumeStream({}, { ...call, [field]: "" }))
      expect(error).toBeInstanceOf(InvalidConfiguration)
      expect(error).toMatchObject({ field })
    }
    expect(await rejection(agent.resumeStream({}, { ...call, untilIdl: true } as never))).toMatchObject({
      field: "untilIdl"
    })
    expect(await manager.getTask(taskId)).toMatchObject({ status: "suspended" })
    await manager.cancel(taskId)
    expect(await rejection(agent.resumeStream({ reviewer: "ada" }, call))).toBeInstanceOf(ToolCallNotPending)
    const alone = new Agent({ id: "researcher", model: ScriptedModel.make([]) })
    expect(await rejection(alone.resumeStream({}, call))).toMatchObject({ _tag: "RunNotFound" })
  })

  it("is resumed by another process: its agent knows the tool", async () => {
    const storage = sharedStorage()
    const tools = { review: review() }
    const first = setting([calls(["c1", "review", { draft: "v1" }]), reply("ok")], { tools }, { storage })
    await collect((await first.agent.stream("go", { memory, untilIdle: true })).fullStream)
    const [task] = (await first.manager.listTasks()).tasks
    await first.eddy.shutdown()
    const { manager, thread } = setting([], { tools }, { storage })
    await manager.resume(task?.id ?? "", { reviewer: "ada" })
    expect(await manager.waitFor(task?.id ?? "")).toMatchObject({ result: { approvedBy: "ada" } })
    expect(resultsIn(await thread())).toEqual([["c1", { type: "json", value: { approvedBy: "ada" } }]])
  })
})

describe("agents below another one", () => {
  it("run in the background when the supervisor says so, by the name that it gives them", async () => {
    for (const name of ["writingAgent", "writing-agent", "agent-writingAgent"]) {
      const { agent, manager } = setting(
        [calls(["c1", "agent-writingAgent", { prompt: "Write" }]), reply("ok")],
        {
          agents: {
            writingAgent: new Agent({
              id: "writing-agent",
              model: ScriptedModel.make([reply("An article.")])
            })
          },
          backgroundTasks: { tools: { [name]: { enabled: true, timeoutMs: 900_000 } } }
        }
      )
      await agent.generate("go")
      const [task] = (await manager.listTasks()).tasks
      expect(task).toMatchObject({ toolName: "agent-writingAgent", timeoutMs: 900_000 })
      expect(await manager.waitFor(task?.id ?? "")).toMatchObject({ result: { text: "An article." } })
    }
  })

  it("that have tools for it do so by themselves, with their own settings; the tools are in their foreground", async () => {
    const research = gated({ enabled: true })
    research.gate.open()
    const below = new Agent({
      id: "research-agent",
      model: ScriptedModel.make([calls(["d1", "research", { topic: "x" }]), reply("found")]),
      tools: { research: research.tool },
      backgroundTasks: { tools: { research: { enabled: true } }, waitTimeoutMs: 60_000 }
    })
    const { agent, manager } = setting(
      [calls(["c1", "agent-researchAgent", { prompt: "Go" }]), reply("On it."), reply("It found something.")],
      { agents: { researchAgent: below } }
    )
    const full = await agent.generate("go")
    const { tasks } = await manager.listTasks()
    expect(tasks.map(({ agentId, toolName }) => [agentId, toolName])).toEqual([
      ["researcher", "agent-researchAgent"]
    ])
    expect(research.contexts.map(({ taskId }) => taskId)).toEqual([undefined])
    expect(full.text).toContain("It found something.")
  })
})

describe("a process", () => {
  it("is not kept alive by a container that nobody shuts down", async () => {
    const timers = () => process.getActiveResourcesInfo().filter(kind => kind === "Timeout").length
    const before = timers()
    const research = gated()
    research.gate.open()
    const { agent, manager } = setting([calls(["c1", "research", { topic: "x" }]), reply("ok")], {
      tools: { research: research.tool }
    })
    const controller = new AbortController()
    manager.stream({ abortSignal: controller.signal })
    await agent.generate("go", { memory })
    const [task] = (await manager.listTasks()).tasks
    await manager.waitFor(task?.id ?? "")
    await flush()
    // The test runner has timers of its own, which end when they like.
    expect(timers()).toBeLessThanOrEqual(before)
    controller.abort()
  })
})

/** Every option of both faces against values that it does not take: each is refused by its name, and none is changed in silence. */
import { Agent as CoreAgent, Tool as CoreTool, Workflow as CoreWorkflow, WorkflowStep } from "eddy"
import { createHandler } from "eddy/http"
import { McpClient } from "eddy/mcp"
import {
  Agent,
  type AgentOptions,
  createStep,
  createTool,
  createWorkflow,
  Eddy,
  InMemoryStore,
  InvalidConfiguration,
  LibSQLStore,
  PostgresStore,
  type StreamOptions
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Cause, Effect, Exit, Schema, Stream } from "effect"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { z as z3 } from "zod/v3"

/** Values of every kind, by a name. None of them is hostile to whoever looks at it. */
const samples: Readonly<Record<string, unknown>> = {
  null: null,
  "0": 0,
  "-1": -1,
  "1.5": 1.5,
  "3": 3,
  NaN: Number.NaN,
  bigint: 10n,
  "''": "",
  "'3'": "3",
  true: true,
  false: false,
  symbol: Symbol("s"),
  "{}": {},
  "Object.create(null)": Object.create(null),
  "[]": [],
  "[3]": [3],
  "() => 1": () => 1,
  AbortController: new AbortController(),
  "invalid Date": new Date(Number.NaN)
}

const records = ["{}", "Object.create(null)", "AbortController", "invalid Date"]

/** The samples that an option of a kind takes. */
const flag = ["true", "false"]
const text = ["''", "'3'"]
const id = ["'3'"]
const callback = ["() => 1"]
const count = ["3"]
const countOrNone = ["0", "3"]
const time = ["1.5", "3"]
/** A bigint is nanoseconds. */
const duration = [...time, "bigint"]
const number = ["0", "-1", "1.5", "3"]
const none: ReadonlyArray<string> = []

/** Something that takes options, and what each of them takes. */
interface Place {
  readonly name: string
  readonly make: (options: object) => unknown
  readonly takes: Readonly<Record<string, ReadonlyArray<string>>>
  /** The field of the error, when the options stand within another one. */
  readonly within?: string
}

const model = ScriptedModel.make([])
const parts = Array.from({ length: 100 }, () => ScriptedModel.reply("x"))

const defaults = {
  maxSteps: count,
  stopWhen: ["() => 1", "[]"],
  prepareStep: callback,
  toolCallConcurrency: count,
  requireToolApproval: [...flag, ...callback],
  activeTools: ["[]"],
  toolChoice: none,
  modelSettings: ["{}", "Object.create(null)", "AbortController", "invalid Date"],
  providerOptions: records,
  maxRetries: countOrNone,
  inputProcessors: ["[]"],
  outputProcessors: ["[]"],
  maxProcessorRetries: countOrNone,
  timeouts: records,
  maxDepth: countOrNone,
  includeRawChunks: flag,
  includeRequestBody: flag,
  structuredOutput: none
}
const untilIdle = [...flag, ...records]
const runs = {
  instructions: text,
  requestContext: records,
  memory: none,
  replay: flag,
  runId: id,
  abortSignal: none
}
const callbacks = {
  onChunk: callback,
  onStepFinish: callback,
  onFinish: callback,
  onError: callback,
  onAbort: callback
}
const modelSettings = {
  maxOutputTokens: count,
  temperature: number,
  topP: number,
  topK: number,
  presencePenalty: number,
  frequencyPenalty: number,
  stopSequences: ["[]"],
  seed: number,
  headers: records
}
const facadeTask = {
  enabled: flag,
  timeoutMs: time,
  maxRetries: countOrNone,
  waitTimeoutMs: time,
  onComplete: callback,
  onFailed: callback,
  onCancelled: callback
}
const coreTask = {
  enabled: flag,
  timeout: duration,
  retries: countOrNone,
  waitTimeout: duration,
  onComplete: callback,
  onFailed: callback,
  onCancelled: callback
}
const taskCallbacks = { onTaskComplete: callback, onTaskFailed: callback, onTaskCancelled: callback }

const facadeAgent = () => new Agent({ id: "a", model: ScriptedModel.make(parts) })
const coreAgent = () => CoreAgent.make({ id: "a", model: ScriptedModel.make(parts) })
const core = async (run: Effect.Effect<unknown, unknown>): Promise<unknown> => {
  const exit = await Effect.runPromiseExit(run)
  if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
  return exit.value
}
const workflow = createWorkflow({ id: "w" })
  .then(createStep({ id: "s", execute: () => 1 }))
  .commit()
const container = new Eddy({ agents: { a: facadeAgent() } })
const storing = new Eddy({
  agents: { a: facadeAgent() },
  storage: new InMemoryStore(),
  backgroundTasks: { enabled: true }
})

const places: ReadonlyArray<Place> = [
  {
    name: "new Agent",
    make: options => new Agent({ id: "a", model, ...options } as AgentOptions),
    takes: {
      id,
      name: id,
      description: text,
      instructions: [...text, ...callback],
      model: callback,
      tools: [...callback, ...records],
      agents: ["{}", "Object.create(null)", "AbortController", "invalid Date"],
      workflows: records,
      memory: ["{}", "Object.create(null)", "AbortController", "invalid Date"],
      backgroundTasks: records,
      goal: records,
      inputProcessors: ["[]"],
      outputProcessors: ["[]"],
      maxProcessorRetries: countOrNone,
      defaultOptions: records
    }
  },
  {
    name: "Agent.make",
    make: options => CoreAgent.make({ id: "a", model, ...options } as never),
    takes: {
      ...defaults,
      untilIdle,
      id,
      name: id,
      description: text,
      instructions: [...text, ...callback],
      model: callback,
      tools: ["[]", ...callback],
      memory: records,
      backgroundTasks: records,
      goal: records
    }
  },
  {
    name: "a run, Promise face",
    make: options => facadeAgent().stream("x", options as StreamOptions),
    takes: { ...defaults, ...runs, ...callbacks, untilIdle, tools: records, clientTools: records }
  },
  {
    name: "generate, Promise face",
    make: options => facadeAgent().generate("x", options as StreamOptions),
    takes: { ...defaults, ...runs, ...callbacks, tools: records, clientTools: records }
  },
  {
    name: "defaultOptions",
    make: options => new Agent({ id: "a", model, defaultOptions: options as StreamOptions }),
    takes: { ...defaults, ...runs, ...callbacks, untilIdle, tools: records }
  },
  {
    name: "a run, Effect face",
    make: options => core(Stream.runDrain(CoreAgent.stream(coreAgent(), "x", options as never)) as never),
    takes: { ...defaults, ...runs, untilIdle, tools: ["[]"], clientTools: records }
  },
  {
    name: "generate, Effect face",
    make: options => core(CoreAgent.generate(coreAgent(), "x", options as never) as never),
    takes: { ...defaults, ...runs, tools: ["[]"], clientTools: records }
  },
  {
    name: "modelSettings",
    within: "modelSettings",
    make: options => facadeAgent().stream("x", { modelSettings: options }),
    takes: modelSettings
  },
  {
    name: "memory",
    within: "memory",
    make: options =>
      storing.getAgent("a").stream("x", { memory: { thread: "t", resource: "r", ...options } }),
    takes: { thread: id, resource: id, after: id, lastMessages: [...countOrNone, "false"] }
  },
  {
    name: "timeouts",
    within: "timeouts",
    make: options => new Agent({ id: "a", model, defaultOptions: { timeouts: options } }),
    takes: { firstContent: duration, betweenChunks: duration, step: duration, run: duration }
  },
  {
    name: "untilIdle, Promise face",
    within: "untilIdle",
    make: options => new Agent({ id: "a", model, defaultOptions: { untilIdle: options } }),
    takes: { maxIdleMs: time, batch: none }
  },
  {
    name: "untilIdle, Effect face",
    within: "untilIdle",
    make: options => CoreAgent.make({ id: "a", model, untilIdle: options }),
    takes: { maxIdle: duration, batch: none }
  },
  {
    name: "structuredOutput",
    within: "structuredOutput",
    make: options => facadeAgent().stream("x", { structuredOutput: { schema: z.string(), ...options } }),
    takes: {
      schema: records,
      model: none,
      instructions: text,
      errorStrategy: none,
      jsonPromptInjection: flag
    }
  },
  {
    name: "createTool",
    make: options => createTool({ id: "t", execute: () => 1, ...options } as never),
    takes: {
      id,
      description: text,
      inputSchema: ["{}", "Object.create(null)"],
      outputSchema: records,
      execute: callback,
      timeout: duration,
      toModelOutput: callback,
      background: records,
      requireApproval: [...flag, ...callback],
      suspendSchema: records,
      resumeSchema: records
    }
  },
  {
    name: "Tool.make",
    make: options => CoreTool.make("t", { execute: () => Effect.succeed(1), ...options } as never),
    takes: {
      description: text,
      input: ["{}", "Object.create(null)"],
      success: records,
      execute: callback,
      timeout: duration,
      toModelOutput: callback,
      background: records,
      requireApproval: [...flag, ...callback],
      suspend: records,
      resume: records
    }
  },
  {
    name: "background of a tool, Promise face",
    within: "background",
    make: options => createTool({ id: "t", execute: () => 1, background: options }),
    takes: facadeTask
  },
  {
    name: "background of a tool, Effect face",
    within: "background",
    make: options => CoreTool.make("t", { execute: () => Effect.succeed(1), background: options }),
    takes: coreTask
  },
  {
    name: "backgroundTasks of an agent, Promise face",
    within: "backgroundTasks",
    make: options => new Agent({ id: "a", model, backgroundTasks: options }),
    takes: { disabled: flag, tools: records, concurrency: count, waitTimeoutMs: time, ...taskCallbacks }
  },
  {
    name: "backgroundTasks of an agent, Effect face",
    within: "backgroundTasks",
    make: options => CoreAgent.make({ id: "a", model, backgroundTasks: options }),
    takes: { disabled: flag, tools: records, concurrency: count, waitTimeout: duration, ...taskCallbacks }
  },
  {
    name: "goal, Promise face",
    within: "goal",
    make: options => new Agent({ id: "a", model, goal: options }),
    takes: { judge: none, maxRuns: count, prompt: text, scorer: callback, timeoutMs: time }
  },
  {
    name: "goal, Effect face",
    within: "goal",
    make: options => CoreAgent.make({ id: "a", model, goal: options }),
    takes: { judge: none, maxRuns: count, prompt: text, scorer: callback, timeout: duration }
  },
  {
    name: "new Eddy",
    make: options => new Eddy({ storage: new InMemoryStore(), ...options }),
    takes: {
      agents: records,
      workflows: records,
      logger: none,
      storage: none,
      backgroundTasks: records,
      telemetry: none
    }
  },
  {
    name: "backgroundTasks of a container",
    within: "backgroundTasks",
    make: options => new Eddy({ storage: new InMemoryStore(), backgroundTasks: options }),
    takes: {
      enabled: flag,
      globalConcurrency: count,
      perAgentConcurrency: count,
      backpressure: none,
      defaultTimeoutMs: time,
      defaultRetries: records,
      waitTimeoutMs: time,
      progressIntervalMs: time,
      progressThrottleMs: time,
      cleanup: records,
      recoverOnStart: flag,
      leaseMs: time,
      shutdown: records,
      ...taskCallbacks
    }
  },
  { name: "new InMemoryStore", make: options => new InMemoryStore(options), takes: { id } },
  {
    name: "new LibSQLStore",
    make: options => new LibSQLStore({ url: ":memory:", ...options }),
    takes: { id, url: none, authToken: id }
  },
  {
    name: "new PostgresStore",
    make: options => new PostgresStore({ url: "postgres://localhost/x", ...options }),
    takes: { id, url: none, maxConnections: count }
  },
  {
    name: "createWorkflow",
    make: options => ({ draft: createWorkflow({ id: "w", ...options } as never) }),
    takes: {
      id,
      description: text,
      inputSchema: records,
      outputSchema: records,
      retries: countOrNone,
      retryDelayMs: ["0", ...time],
      background: records
    }
  },
  {
    name: "Workflow.make",
    make: options => CoreWorkflow.make("w", options as never),
    takes: {
      description: text,
      input: records,
      success: records,
      retries: countOrNone,
      retryDelay: ["0", ...duration]
    }
  },
  {
    name: "createStep",
    make: options => createStep({ id: "s", execute: () => 1, ...options } as never),
    takes: {
      id,
      description: text,
      inputSchema: records,
      outputSchema: records,
      resumeSchema: records,
      suspendSchema: records,
      retries: countOrNone,
      retryDelayMs: ["0", ...time],
      timeout: duration,
      execute: callback
    }
  },
  {
    name: "WorkflowStep.make",
    make: options => WorkflowStep.make("s", { execute: () => Effect.void, ...options } as never),
    takes: {
      description: text,
      input: records,
      success: records,
      resume: records,
      suspend: records,
      retries: countOrNone,
      retryDelay: ["0", ...duration],
      timeout: duration,
      execute: callback
    }
  },
  {
    name: "a run of a workflow",
    make: options => workflow.start({ inputData: 1, ...options } as never),
    takes: { runId: id, requestContext: records, abortSignal: none }
  },
  {
    name: "threads.list",
    make: options => storing.threads.list(options),
    takes: { resource: text, page: countOrNone, perPage: countOrNone }
  },
  {
    name: "listTasks",
    make: options => storing.backgroundTaskManager?.listTasks(options),
    takes: {
      status: ["[]"],
      agentId: text,
      threadId: text,
      resourceId: text,
      runId: text,
      toolName: text,
      toolCallId: text,
      fromDate: none,
      toDate: none,
      dateFilterBy: none,
      orderBy: none,
      orderDirection: none,
      page: countOrNone,
      perPage: countOrNone
    }
  },
  {
    name: "the stream of tasks",
    make: options => storing.backgroundTaskManager?.stream(options),
    takes: { agentId: text, runId: text, threadId: text, resourceId: text, taskId: text, abortSignal: none }
  },
  {
    name: "createHandler",
    make: options => createHandler(container, options),
    takes: {
      prefix: none,
      authenticate: callback,
      requestContext: callback,
      clientContext: ["[]"],
      clientOptions: ["[]"],
      files: none,
      cors: none,
      maxBodyBytes: count,
      keepAliveMs: time,
      streams: records,
      runLog: records,
      onDisconnect: none,
      maxGraceMs: time,
      expose: records
    }
  },
  {
    name: "McpClient.connect",
    make: options => McpClient.connect({ command: "/no/such/server" }, options),
    takes: {
      name: id,
      connectTimeout: duration,
      timeout: duration,
      clientInfo: none,
      abortSignal: none,
      logger: none
    }
  }
]

/** How something refuses; `undefined` when it does not. */
const refusalOf = async (make: () => unknown): Promise<unknown> => {
  try {
    await make()
    return undefined
  } catch (cause) {
    return cause
  }
}

describe.each(places)("$name", ({ make, takes, within }) => {
  it.each(Object.entries(takes))("%s", async (option, taken) => {
    for (const [name, value] of Object.entries(samples)) {
      const refusal = await refusalOf(() => make({ [option]: value }))
      const what = `${option}: ${name} → ${String(refusal)}`
      if (taken.includes(name)) {
        if (refusal !== undefined) expect(refusal, what).not.toBeInstanceOf(TypeError)
        continue
      }
      expect(refusal, what).toBeInstanceOf(InvalidConfiguration)
      const { field, message } = refusal as InvalidConfiguration
      expect(field.split(/[.[]/), what).toContain(option)
      if (within !== undefined) expect(field, what).toMatch(new RegExp(`^${within}\\b`))
      expect(message, what).toMatch(/\b(Give|Write|Make|Use|Pass|Leave|Put|needs|Correct)\b/)
    }
  })
})

describe("options that are no object", () => {
  const agent = facadeAgent()
  const calls: ReadonlyArray<readonly [name: string, call: (options: never) => unknown]> = [
    ["new Agent", options => new Agent(options)],
    ["Agent.make", options => CoreAgent.make(options)],
    ["stream", options => agent.stream("x", options)],
    ["streamUntilIdle", options => agent.streamUntilIdle("x", options)],
    ["generate", options => agent.generate("x", options)],
    ["approveToolCall", options => agent.approveToolCall(options)],
    ["declineToolCall", options => agent.declineToolCall(options)],
    ["resumeStream", options => agent.resumeStream({}, options)],
    ["listSuspendedRuns", options => agent.listSuspendedRuns(options)],
    ["setObjective", options => storing.getAgent("a").setObjective("x", options)],
    ["Agent.stream", options => core(Stream.runDrain(CoreAgent.stream(coreAgent(), "x", options)))],
    ["Agent.generate", options => core(CoreAgent.generate(coreAgent(), "x", options))],
    ["createTool", options => createTool(options)],
    ["Tool.make", options => CoreTool.make("t", options)],
    ["new Eddy", options => new Eddy(options)],
    ["new InMemoryStore", options => new InMemoryStore(options)],
    ["new LibSQLStore", options => new LibSQLStore(options)],
    ["new PostgresStore", options => new PostgresStore(options)],
    ["createWorkflow", options => ({ draft: createWorkflow(options) })],
    ["createStep", options => createStep(options)],
    ["WorkflowStep.make", options => WorkflowStep.make("s", options)],
    ["Workflow.make", options => CoreWorkflow.make("w", options)],
    ["a workflow", options => workflow.start(options)],
    ["threads.list", options => storing.threads.list(options)],
    ["threads.get", options => storing.threads.get("t", options)],
    ["threads.messages", options => storing.threads.messages("t", options)],
    ["threads.delete", options => storing.threads.delete("t", options)],
    ["listTasks", options => storing.backgroundTaskManager?.listTasks(options)],
    ["the stream of tasks", options => storing.backgroundTaskManager?.stream(options)],
    ["createHandler", options => createHandler(container, options)],
    ["McpClient.connect", options => McpClient.connect({ command: "x" }, options)]
  ]

  it.each(calls)("%s", async (_, call) => {
    for (const options of [null, 3, "x", []]) {
      expect(await refusalOf(() => call(options as never)), String(options)).toBeInstanceOf(
        InvalidConfiguration
      )
    }
  })
})

describe("a refusal names the remedy", () => {
  const tool = createTool({ id: "look", execute: () => 1 })
  const run = (options: object) => () => facadeAgent().stream("x", options as StreamOptions)
  const coreRun = (options: object) => () =>
    core(Stream.runDrain(CoreAgent.stream(coreAgent(), "x", options as never)) as never)
  const agentWith = (options: object) => () => new Agent({ id: "a", model, ...options } as AgentOptions)
  const coreAgentWith = (options: object) => () => CoreAgent.make({ id: "a", model, ...options } as never)
  const cases: ReadonlyArray<readonly [what: string, make: () => unknown, field: string, remedy: string]> = [
    ["a controller", run({ abortSignal: new AbortController() }), "abortSignal", "controller.signal"],
    [
      "a controller, Effect",
      coreRun({ abortSignal: new AbortController() }),
      "abortSignal",
      "controller.signal"
    ],
    ["a number of steps to stop at", run({ stopWhen: 3 }), "stopWhen", "maxSteps"],
    ["a count in a text", run({ maxSteps: "3" }), "maxSteps", '`maxSteps` is "3"'],
    ["a count in a text, Effect", coreRun({ maxSteps: "3" }), "maxSteps", '`maxSteps` is "3"'],
    ["a colon in a name", agentWith({ model: "openai:gpt-5" }), "model", '"openai/gpt-5"'],
    ["a colon before a slash", agentWith({ model: "openrouter:a/b" }), "model", '"openrouter/a/b"'],
    ["a tag in a name", agentWith({ model: "llama3:8b" }), "model", '"ollama/llama3:8b"'],
    ["tools in an array", agentWith({ tools: [tool, tool] }), "tools", "{ look, find }"],
    ["tools of a run in an array", run({ tools: [tool] }), "tools", "{ look, find }"],
    ["what is no tool", coreAgentWith({ tools: [3] }), "tools[0]", "Tool.make"],
    ["zod 3", () => createTool({ id: "t", inputSchema: z3.object({}) as never }), "inputSchema", "zod 4"],
    ["zod 3, Effect", () => CoreTool.make("t", { input: z3.object({}) as never }), "t.input", "zod 4"],
    [
      "zod 3 of a run",
      run({ structuredOutput: { schema: z3.object({}) } }),
      "structuredOutput.schema",
      "zod 4"
    ],
    ["a setting of the model", run({ temperature: 1 }), "temperature", "modelSettings.temperature"],
    [
      "a setting of the model, Effect",
      coreRun({ temperature: 1 }),
      "temperature",
      "modelSettings.temperature"
    ],
    [
      "a setting of the agent's model",
      agentWith({ temperature: 1 }),
      "temperature",
      "defaultOptions.modelSettings.temperature"
    ],
    [
      "a setting of the agent's model, Effect",
      coreAgentWith({ temperature: 1 }),
      "temperature",
      "`modelSettings.temperature`"
    ],
    ["retries on an agent", agentWith({ maxRetries: 1 }), "maxRetries", "defaultOptions.maxRetries"],
    ["a thread", run({ threadId: "t" }), "threadId", "memory.thread"],
    ["a thread on an agent", agentWith({ threadId: "t" }), "threadId", "memory.thread"],
    [
      "a signal on an agent",
      coreAgentWith({ abortSignal: AbortSignal.abort() }),
      "abortSignal",
      "option of a run"
    ],
    ["an output", run({ output: z.string() }), "output", "structuredOutput.schema"],
    ["a bare schema", run({ structuredOutput: z.string() }), "structuredOutput", "{ schema }"],
    ["a bare schema, Effect", coreRun({ structuredOutput: Schema.String }), "structuredOutput", "{ schema }"],
    ["a bare JSON Schema", run({ structuredOutput: { type: "object" } }), "structuredOutput", "{ schema }"],
    ["a model of a run", run({ model }), "model", "new Agent({ model })"],
    [
      "parameters of a tool",
      () => createTool({ id: "t", parameters: {} } as never),
      "parameters",
      "inputSchema"
    ],
    [
      "a schema of the other face",
      () => CoreTool.make("t", { inputSchema: {} } as never),
      "inputSchema",
      "`input`"
    ],
    ["a misspelt option", run({ maxStep: 1 }), "maxStep", "`maxSteps`"],
    ["two letters swapped", run({ maxSetps: 1 }), "maxSetps", "`maxSteps`"],
    ["a misspelt option of an agent", agentWith({ instruction: "x" }), "instruction", "`instructions`"],
    ["a misspelt option of a container", () => new Eddy({ agent: {} } as never), "agent", "`agents`"],
    ["a misspelt setting", run({ modelSettings: { temprature: 1 } }), "temprature", "`temperature`"]
  ]

  it.each(cases)("%s", async (_, make, field, remedy) => {
    const refusal = await refusalOf(make)
    expect(refusal).toBeInstanceOf(InvalidConfiguration)
    expect(refusal).toMatchObject({ field, message: expect.stringContaining(remedy) })
  })

  it("and lists no other names beside the nearest one", async () => {
    expect(String(await refusalOf(run({ maxStep: 1 })))).not.toContain("toolCallConcurrency")
  })

  it.each(["stream", "start", "resumeStream", "resume", "restartStream", "restart", "listRuns", "deleteRun"])(
    "a draft of a workflow has no %s",
    async method => {
      const draft = createWorkflow({ id: "w" }).then(createStep({ id: "s", execute: () => 1 }))
      const refusal = await refusalOf(() => (draft as never as Record<string, () => unknown>)[method]?.())
      expect(refusal).toMatchObject({ field: "commit", message: expect.stringContaining(".commit()") })
    }
  )
})

/** Plays a scenario with the Promise face: hot, in a container, with readers and promises. */
import { type Chunk, Id, ThreadStore } from "eddy"
import {
  Agent,
  createTool,
  Eddy,
  type ModelOutput,
  type PromiseTool,
  type StepChanges,
  type StreamOptions,
  type ToolExecutionContext
} from "eddy/promise"
import { Effect, Layer, Schema, Supervisor } from "effect"
import { turn } from "../agent/kit.js"
import { withThreads } from "../support/stores.js"
import {
  type AgentScript,
  type Behaviour,
  isAgent,
  type Question,
  type ReaderScript,
  type Scenario,
  type StepChange,
  type ToolScript
} from "./scenario.js"
import { isBefore, lookout, turnsBefore } from "./stopping.js"
import type { Answered, Heard, Read } from "./told.js"
import { inTurns, memory, World } from "./world.js"

type Doing = Exclude<Behaviour, "is the client's">

const pass = async (count: number): Promise<void> => {
  for (let index = 0; index < count; index++) await turn()
}

/** Does not end; when nobody has stopped it after a while, the run is aborted. */
const hanging = (world: World, isStopped: () => boolean): Promise<never> => {
  world.rescue(isStopped)
  return new Promise(() => undefined)
}

const doings: Readonly<Record<Doing, (context: ToolExecutionContext, world: World) => unknown>> = {
  returns: ({ agent }) => ({ of: agent.toolCallId }),
  fails: () => Promise.reject({ _tag: "Failed" }),
  "fails with a text": () => Promise.reject("failed \ud83d"),
  dies: () => Promise.reject({ odd: 1n }),
  throws: () => {
    throw new Error("thrown")
  },
  "returns nothing": () => undefined,
  "says that it failed": () => ({ isError: true, content: [{ type: "text", text: "bad" }] }),
  writes: async ({ agent, writer }) => {
    await writer.write(new Map([["a", 1n]]))
    await writer.custom({ type: "data-x", data: 1 })
    return { of: agent.toolCallId }
  },
  "writes much": async ({ agent, writer }) => {
    for (let index = 0; index < 150; index++) await writer.write(index)
    return { of: agent.toolCallId }
  },
  "writes late": ({ agent, writer }) => {
    void pass(2).then(() => writer.write("late"))
    return { of: agent.toolCallId }
  },
  "is strict": ({ agent }) => ({ of: agent.toolCallId }),
  "tells the model something else": ({ agent }) => ({ of: agent.toolCallId }),
  "ignores interruption": ({ agent }) => pass(3).then(() => ({ of: agent.toolCallId })),
  "is slow to stop": ({ agent }) => pass(3).then(() => ({ of: agent.toolCallId })),
  hangs: ({ abortSignal }, world) => hanging(world, () => abortSignal.aborted),
  "stops the run": ({ abortSignal }, world) => {
    world.abort("by a tool")
    return hanging(world, () => abortSignal.aborted)
  }
}

const toolOf = (world: World, id: string, { behaviour, timeout, turns }: ToolScript): PromiseTool => {
  if (behaviour === "is the client's") return createTool({ id, inputSchema: { type: "object" } })
  const execute = async (_: unknown, context: ToolExecutionContext): Promise<unknown> => {
    const execution = { runId: context.runId, toolCallId: context.agent.toolCallId, isOver: false }
    world.executions.push(execution)
    try {
      await pass(turns)
      return await doings[behaviour](context, world)
    } finally {
      execution.isOver = true
    }
  }
  return createTool({
    id,
    inputSchema: behaviour === "is strict" ? Schema.Struct({ prompt: Schema.String }) : { type: "object" },
    execute,
    ...(timeout === undefined ? {} : { timeout }),
    ...(behaviour === "tells the model something else" ? { toModelOutput: () => "something else" } : {})
  })
}

type PrepareStep = NonNullable<StreamOptions["prepareStep"]>

const prepareStep = (
  world: World,
  path: string,
  { changes, tools }: AgentScript
): PrepareStep | undefined => {
  const changed: Readonly<Record<StepChange, PrepareStep>> = {
    nothing: () => undefined,
    "other messages": ({ messages }) => ({
      messages: [...messages, { role: "user", content: "by the way" }]
    }),
    "fewer tools": () => ({
      activeTools: Object.entries(tools)
        .slice(1)
        .map(([name, tool]) => (isAgent(tool) ? `agent-${name}` : name))
    }),
    "another tool": () => ({
      tools: { a: toolOf(world, "a", { behaviour: "returns", turns: 0, timeout: undefined }) }
    }),
    "another model": () => ({ model: world.model(path, "other", []) }),
    "is slow": () => pass(2).then(() => undefined),
    fails: () => Promise.reject("no"),
    throws: () => {
      throw new Error("thrown")
    },
    // Types would not let it.
    "says nonsense": () => ({ nonsense: 1 }) as StepChanges,
    hangs: () => hanging(world, () => world.signal.aborted)
  }
  if (changes.length === 0) return undefined
  return state => changed[changes[state.stepNumber] ?? "nothing"](state)
}

const agentOf = (world: World, path: string, script: AgentScript, options: StreamOptions = {}): Agent => {
  const { concurrency, maxRetries, maxSteps, timeouts } = script
  const tools: Record<string, PromiseTool> = {}
  const agents: Record<string, Agent> = {}
  for (const [name, tool] of Object.entries(script.tools)) {
    if (isAgent(tool)) agents[name] = agentOf(world, `${path}.${name}`, tool)
    else tools[name] = toolOf(world, name, tool)
  }
  const prepare = prepareStep(world, path, script)
  return new Agent({
    id: path,
    model: world.modelsOf(path, script),
    tools,
    agents,
    defaultOptions: {
      maxSteps,
      maxRetries,
      toolCallConcurrency: concurrency,
      timeouts,
      ...(prepare === undefined ? {} : { prepareStep: prepare }),
      ...options
    }
  })
}

/** Everything that an output can be asked for. */
const values = [
  "text",
  "reasoning",
  "reasoningText",
  "toolCalls",
  "toolResults",
  "usage",
  "totalUsage",
  "finishReason",
  "response",
  "steps",
  "sources",
  "files",
  "warnings",
  "request",
  "providerMetadata",
  "turns",
  "getFullOutput",
  "consumeStream"
] as const satisfies ReadonlyArray<keyof ModelOutput>

const ask = (output: ModelOutput, name: (typeof values)[number]): Promise<unknown> =>
  name === "getFullOutput" || name === "consumeStream" ? output[name]() : output[name]

const answer = async (
  output: ModelOutput,
  { value, when }: Question,
  end: Promise<unknown>
): Promise<Answered> => {
  const name = values[value % values.length] ?? "text"
  await (when === "end" ? end : pass(when))
  return ask(output, name).then(
    value => ({ name, outcome: { value } }),
    (error: unknown) => ({ name, outcome: { error } })
  )
}

/** One way to take items: until there is none, or somebody leaves. */
interface Taking {
  readonly next: () => Promise<{ readonly done?: boolean | undefined; readonly value?: unknown }>
  readonly leave: () => Promise<unknown>
}

const take = (stream: ReadableStream<unknown>, by: ReaderScript["by"]): Taking => {
  if (by === "reader") {
    const reader = stream.getReader()
    return { next: () => reader.read(), leave: () => reader.cancel() }
  }
  const iterator = stream[Symbol.asyncIterator]()
  return { next: () => iterator.next(), leave: async () => iterator.return?.() }
}

const readBy = async (output: ModelOutput, script: ReaderScript, end: Promise<unknown>): Promise<Read> => {
  const read: Read = { script, items: [], isWhole: false, failure: undefined }
  const { by, leaves, of, opens, pace } = script
  await (opens === "end" ? end : pass(opens))
  const limit = leaves !== undefined && "items" in leaves ? leaves.items : Number.POSITIVE_INFINITY
  try {
    const taking = take(of === "chunks" ? output.fullStream : output.textStream, by)
    // In the middle of a read, when it comes to that.
    if (leaves !== undefined && "turns" in leaves)
      void pass(leaves.turns)
        .then(taking.leave)
        .catch(() => undefined)
    while (read.items.length < limit) {
      const { done, value } = await taking.next()
      if (done === true) {
        read.isWhole = leaves === undefined
        return read
      }
      read.items.push(value)
      await pass(pace)
    }
    await taking.leave()
  } catch (error) {
    read.failure = error
  }
  return read
}

const silence = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined
}

/** Not made where a run is played: the agent would hold everything there. */
const quiet = { onError: () => undefined }

const surroundings = (world: World, supervisor: Supervisor.Supervisor<unknown>) =>
  Layer.mergeAll(
    Layer.succeed(ThreadStore.ThreadStore, world.store),
    Layer.setClock(world.clock),
    Layer.succeed(Id.IdGenerator, world.ids),
    Supervisor.addSupervisor(supervisor)
  )

/** Stops the run as the scenario says; done when that has taken effect. */
const stopRun = async (world: World, eddy: Eddy, output: ModelOutput | undefined): Promise<void> => {
  switch (world.scenario.stop?.how) {
    case "signal":
      return world.abort({ odd: 1n })
    case "cancel":
      return output?.cancel("enough")
    case "shutdown":
      return eddy.shutdown()
  }
}

const play = async (scenario: Scenario): Promise<Heard> => {
  const world = new World(scenario)
  const { questions, readers, replay, stop, store } = scenario
  const supervisor = await Effect.runPromise(Supervisor.track)
  const chunks: Array<Chunk.Chunk> = []
  const isTime = lookout(stop)
  let output: ModelOutput | undefined
  const stopping: Array<Promise<void>> = []
  const stopNow = (): void => {
    stopping.push(stopRun(world, eddy, output))
  }
  const onChunk = (chunk: Chunk.Chunk): void => {
    chunks.push(chunk)
    if (isTime(chunk)) stopNow()
  }
  const agent = agentOf(world, "top", scenario.agent, {
    ...quiet,
    includeRawChunks: scenario.includeRawChunks,
    maxDepth: scenario.maxDepth
  })
  const eddy = new Eddy({
    agents: { agent },
    logger: silence,
    storage: { id: "world", layer: withThreads(surroundings(world, supervisor)) }
  })
  if (isBefore(stop)) stopNow()
  output = await agent.stream("go", {
    abortSignal: world.signal,
    onChunk,
    replay,
    ...(store === undefined ? {} : { memory })
  })
  const going = output
  let settle: (value: unknown) => void = () => undefined
  const end = new Promise<unknown>(resolve => {
    settle = resolve
  })
  const isEarly = <A extends ReaderScript | Question>(one: A): boolean =>
    ("opens" in one ? one.opens : one.when) !== "end"
  const readings = readers.map(script => [script, readBy(going, script, end)] as const)
  const asking = questions.map(question => [question, answer(going, question, end)] as const)
  const turns = turnsBefore(stop)
  if (turns !== undefined) void pass(turns).then(stopNow)
  // Readers go at their own pace; only when they are done is the run let go to its end.
  await Promise.all(readings.filter(([script]) => isEarly(script)).map(([, reading]) => reading))
  const full = await going.getFullOutput()
  settle(full)
  const reads = await Promise.all(readings.map(([, reading]) => reading))
  const answered = await Promise.all(asking.map(([, asked]) => asked))
  await Promise.all(stopping)
  await pass(6)
  const fibers = (await Effect.runPromise(supervisor.value)).length
  await eddy.shutdown()
  return { world, chunks, isLeft: false, full, reads, answered, fibers, owner: eddy }
}

/** Plays the scenario, which must come to an end. */
export const played = (scenario: Scenario): Promise<Heard> => inTurns("the run", play(scenario))

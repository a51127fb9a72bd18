/** Every place where a run calls or looks at what user code gives it, written once for both faces. */
import {
  Agent,
  BackgroundTasks,
  type Chunk,
  Id,
  type LanguageModel,
  Processor,
  RunStore,
  type Task,
  TaskStore,
  ThreadStore,
  Tool
} from "eddy"
import {
  createTool,
  Eddy,
  InMemoryStore,
  type Processor as PlainProcessor,
  Agent as PromiseAgent
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Cause, Effect, Exit, Layer, Logger, LogLevel, Stream } from "effect"
import { turn } from "../agent/kit.js"
import { collect } from "../support/readers.js"

const { finish, reply, toolCall } = ScriptedModel

/** Throws, or returns what it should not. */
export type Use = () => never

/** What a place is made of: all of it is plain code, which both faces take. */
export interface Place {
  readonly tool?: {
    readonly execute?: Use
    readonly toModelOutput?: Use
    readonly requireApproval?: Use
    readonly validate?: Use
  }
  readonly hooks?: Partial<
    Record<
      | "processInput"
      | "processInputStep"
      | "processOutputStream"
      | "processOutputStep"
      | "processOutputResult",
      Use
    >
  >
  readonly agent?: {
    readonly prepareStep?: Use
    readonly stopWhen?: Use
    readonly requireToolApproval?: Use
    readonly instructions?: Use
  }
  readonly dynamicModel?: Use
  readonly dynamicTools?: Use
  readonly answer?: Use
  readonly parts?: Use
  readonly writes?: Use
  readonly scorer?: Use
}

export const places: Readonly<Record<string, (use: Use) => Place>> = {
  "the tool": execute => ({ tool: { execute } }),
  toModelOutput: toModelOutput => ({ tool: { toModelOutput } }),
  "the schema of the tool": validate => ({ tool: { validate } }),
  requireApproval: requireApproval => ({ tool: { requireApproval } }),
  requireToolApproval: requireToolApproval => ({ agent: { requireToolApproval } }),
  processInput: processInput => ({ hooks: { processInput } }),
  processInputStep: processInputStep => ({ hooks: { processInputStep } }),
  processOutputStream: processOutputStream => ({ hooks: { processOutputStream } }),
  processOutputStep: processOutputStep => ({ hooks: { processOutputStep } }),
  processOutputResult: processOutputResult => ({ hooks: { processOutputResult } }),
  prepareStep: prepareStep => ({ agent: { prepareStep } }),
  stopWhen: stopWhen => ({ agent: { stopWhen } }),
  instructions: instructions => ({ agent: { instructions } }),
  "the model as a function": dynamicModel => ({ dynamicModel }),
  "the tools as a function": dynamicTools => ({ dynamicTools }),
  "the model": answer => ({ answer }),
  "the parts of the model": parts => ({ parts }),
  "what the tool writes": writes => ({ writes }),
  "the scorer of a goal": scorer => ({ scorer })
}

const scripted = () =>
  ScriptedModel.make([[toolCall("c1", "t", {}), finish("tool-calls")], reply("done"), reply("done")])

const modelOf = ({ answer, parts }: Place): LanguageModel.LanguageModel => {
  const model = scripted()
  if (answer !== undefined) return { provider: "p", modelId: "m", answer }
  if (parts === undefined) return model
  return {
    provider: "p",
    modelId: "m",
    answer: () =>
      Effect.succeed({
        source: (async function* () {
          yield await Promise.resolve("part")
        })(),
        normalize: parts
      })
  }
}

const schemaOf = (validate: Use) => ({
  "~standard": {
    version: 1 as const,
    vendor: "test",
    validate,
    jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) }
  }
})

/** How a run ended: everything that it told. */
export interface Ran {
  readonly chunks: ReadonlyArray<Chunk.Chunk>
  readonly isRefused: boolean
  /** How its tasks stand. */
  readonly tasks: ReadonlyArray<Task.Task["status"]>
}

const memory = { thread: "t1", resource: "u1" } as const

const hooksOf = ({ hooks = {} }: Place) => {
  const { processInput, processInputStep, ...output } = hooks
  const input = {
    ...(processInput === undefined ? {} : { processInput }),
    ...(processInputStep === undefined ? {} : { processInputStep })
  }
  return { input, output, hasInput: Object.keys(input).length > 0, hasOutput: Object.keys(output).length > 0 }
}

const stores = Layer.mergeAll(
  ThreadStore.layerMemory,
  RunStore.layerMemory,
  TaskStore.layerMemory,
  Id.layerSequential
)

/** Writes every line of every level as text, causes included. */
const logging = Layer.merge(
  Logger.replace(
    Logger.defaultLogger,
    Logger.map(Logger.stringLogger, () => undefined)
  ),
  Logger.minimumLogLevel(LogLevel.All)
)

const shouting = Layer.merge(
  Logger.replace(
    Logger.defaultLogger,
    Logger.make(() => {
      throw new Error("The logger is broken.")
    })
  ),
  Logger.minimumLogLevel(LogLevel.Info)
)

export interface World {
  readonly isInBackground: boolean
  readonly isLoggerBroken: boolean
}

const effectAgent = (place: Place, { isInBackground }: World) => {
  const { agent = {}, dynamicModel, dynamicTools, scorer, tool = {}, writes } = place
  const { execute, requireApproval, toModelOutput, validate } = tool
  const { hasInput, hasOutput, input, output } = hooksOf(place)
  const made = Tool.make("t", {
    ...(validate === undefined ? {} : { input: schemaOf(validate) }),
    ...(requireApproval === undefined ? {} : { requireApproval }),
    ...(toModelOutput === undefined ? {} : { toModelOutput }),
    ...(isInBackground ? { background: { enabled: true } } : {}),
    execute: (_: unknown, context) =>
      writes === undefined
        ? execute === undefined
          ? Effect.succeed("ok")
          : Effect.suspend(() => {
              const given: unknown = execute()
              return Effect.succeed(given)
            })
        : Effect.as(
            Effect.suspend(() => context.write(writes())),
            "ok"
          )
  })
  return Agent.make({
    id: "a",
    model: dynamicModel ?? modelOf(place),
    tools: dynamicTools ?? [made],
    maxRetries: 0,
    maxSteps: 3,
    ...agent,
    ...(hasInput ? { inputProcessors: [Processor.make({ id: "p", ...input })] } : {}),
    ...(hasOutput ? { outputProcessors: [Processor.make({ id: "p", ...output })] } : {}),
    ...(scorer === undefined ? {} : { goal: { scorer, maxRuns: 2 } })
  })
}

const statuses = Effect.gen(function* () {
  const service = yield* BackgroundTasks.BackgroundTasks
  const { tasks } = yield* service.list()
  const settled = yield* Effect.forEach(tasks, ({ id }) => service.await(id))
  return settled.map(({ status }) => status)
})

const inEffect =
  (
    chunksOf: (
      agent: Agent.Agent<never>,
      chunks: Array<Chunk.Chunk>
    ) => Effect.Effect<void, unknown, ThreadStore.ThreadStore>
  ) =>
  (place: Place, world: World): Promise<Ran> => {
    const chunks: Array<Chunk.Chunk> = []
    return Effect.runPromise(
      Effect.gen(function* () {
        const agent = effectAgent(place, world)
        if (place.scorer !== undefined)
          yield* Agent.setObjective(agent, "Do it.", { threadId: "t1", resourceId: "u1" })
        const exit = yield* Effect.exit(chunksOf(agent, chunks))
        // The default runtime of whoever runs it prints what it fails with.
        if (Exit.isFailure(exit)) Cause.pretty(exit.cause, { renderErrorCause: true })
        const tasks = world.isInBackground ? yield* statuses : []
        return { chunks, isRefused: Exit.isFailure(exit) && chunks.length === 0, tasks }
      }).pipe(
        Effect.provide(
          BackgroundTasks.layer({ enabled: world.isInBackground }).pipe(
            Layer.provideMerge(stores),
            Layer.provideMerge(world.isLoggerBroken ? shouting : logging)
          )
        ),
        Effect.orDie
      )
    )
  }

const promised = async (place: Place, { isInBackground, isLoggerBroken }: World): Promise<Ran> => {
  const { agent = {}, dynamicModel, dynamicTools, scorer, tool = {}, writes } = place
  const { execute, requireApproval, toModelOutput, validate } = tool
  const { hasInput, hasOutput, input, output } = hooksOf(place)
  const { instructions, ...defaultOptions } = agent
  const t = createTool({
    id: "t",
    description: "A tool",
    ...(validate === undefined ? {} : { inputSchema: schemaOf(validate) }),
    ...(requireApproval === undefined ? {} : { requireApproval }),
    ...(toModelOutput === undefined ? {} : { toModelOutput }),
    ...(isInBackground ? { background: { enabled: true } } : {}),
    execute: async (_: unknown, { writer }) => {
      if (writes !== undefined) await writer.write(writes())
      return execute === undefined ? "ok" : execute()
    }
  })
  const processor = (hooks: object): ReadonlyArray<PlainProcessor> => [{ id: "p", ...hooks }]
  const made = new PromiseAgent({
    id: "a",
    model: dynamicModel ?? modelOf(place),
    tools: dynamicTools ?? { t },
    ...(instructions === undefined ? {} : { instructions }),
    defaultOptions: { maxRetries: 0, maxSteps: 3, ...defaultOptions },
    ...(hasInput ? { inputProcessors: processor(input) } : {}),
    ...(hasOutput ? { outputProcessors: processor(output) } : {}),
    ...(scorer === undefined ? {} : { goal: { scorer, maxRuns: 2 } })
  })
  const log = (): void => {
    if (isLoggerBroken) throw new Error("The logger is broken.")
  }
  const eddy = new Eddy({
    agents: { made },
    storage: new InMemoryStore(),
    backgroundTasks: { enabled: isInBackground },
    logger: { debug: log, info: log, warn: log, error: log }
  })
  const chunks: Array<Chunk.Chunk> = []
  let isRefused = false
  const tasks: Array<Task.Task["status"]> = []
  try {
    if (scorer !== undefined) await made.setObjective("Do it.", { threadId: "t1", resourceId: "u1" })
    const stream = await made.stream("go", { memory })
    chunks.push(...(await collect(stream.fullStream)))
    await stream.getFullOutput()
  } catch {
    isRefused = chunks.length === 0
  }
  const manager = eddy.backgroundTaskManager
  for (let round = 0; manager !== undefined && round < 2000; round++) {
    tasks.splice(0, tasks.length, ...(await manager.listTasks()).tasks.map(({ status }) => status))
    if (tasks.every(status => status !== "pending" && status !== "running")) break
    await turn()
  }
  await eddy.shutdown()
  return { chunks, isRefused, tasks }
}

/** The ways to run an agent. */
export const faces: Readonly<Record<string, (place: Place, world: World) => Promise<Ran>>> = {
  "a cold stream": inEffect((agent, chunks) =>
    Stream.runForEach(Agent.stream(agent, "go", { memory }), chunk =>
      Effect.sync(() => void chunks.push(chunk))
    )
  ),
  "a hot run of the Effect face": inEffect((agent, chunks) =>
    Effect.scoped(
      Effect.gen(function* () {
        const output = yield* Agent.run(agent, "go", { memory })
        yield* Stream.runForEach(output.fullStream, chunk => Effect.sync(() => void chunks.push(chunk)))
        yield* output.fullOutput
      })
    )
  ),
  "a hot run of the Promise face": promised
}

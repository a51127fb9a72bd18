/** Plays a scenario with the Effect face: as a cold stream, or hot with readers. */
import {
  Agent,
  type Chunk,
  Id,
  type ModelOutput,
  type PrepareStep,
  type StepChanges,
  ThreadStore,
  Tool,
  type ToolContext
} from "eddy"
import {
  Deferred,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  LogLevel,
  Schema,
  Scope,
  Stream,
  Supervisor
} from "effect"
import { turn, turns } from "../agent/kit.js"
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
import type { Answered, Heard, Read, Streamed } from "./told.js"
import { type Cut, inTurns, memory, World } from "./world.js"

type Doing = Exclude<Behaviour, "is the client's">

const doings: Readonly<
  Record<Doing, (context: ToolContext, world: World) => Effect.Effect<unknown, unknown>>
> = {
  returns: ({ toolCallId }) => Effect.succeed({ of: toolCallId }),
  fails: () => Effect.fail({ _tag: "Failed" }),
  "fails with a text": () => Effect.fail("failed \ud83d"),
  dies: () => Effect.die({ odd: 1n }),
  throws: () => {
    throw new Error("thrown")
  },
  "returns nothing": () => Effect.void,
  "says that it failed": () => Effect.succeed({ isError: true, content: [{ type: "text", text: "bad" }] }),
  writes: ({ toolCallId, write, writeData }) =>
    Effect.zipRight(
      write(new Map([["a", 1n]])),
      Effect.as(writeData({ type: "data-x", data: 1 }), { of: toolCallId })
    ),
  "writes much": ({ toolCallId, write }) =>
    Effect.as(
      Effect.forEach(Array.from({ length: 150 }), (_, index) => write(index), { discard: true }),
      {
        of: toolCallId
      }
    ),
  "writes late": ({ toolCallId, write }) =>
    Effect.sync(() => {
      void turn()
        .then(turn)
        .then(() => Effect.runPromise(write("late")))
      return { of: toolCallId }
    }),
  "is strict": ({ toolCallId }) => Effect.succeed({ of: toolCallId }),
  "tells the model something else": ({ toolCallId }) => Effect.succeed({ of: toolCallId }),
  "ignores interruption": ({ toolCallId }) => Effect.uninterruptible(Effect.as(turns(3), { of: toolCallId })),
  "is slow to stop": ({ toolCallId }) =>
    Effect.onInterrupt(Effect.as(turns(3), { of: toolCallId }), () => turns(2)),
  hangs: (_, world) => hanging(world),
  "stops the run": (_, world) =>
    Effect.zipRight(
      Effect.sync(() => world.abort("by a tool")),
      hanging(world)
    )
}

/** Does not end; when nobody has stopped it after a while, the run is aborted. */
const hanging = (world: World): Effect.Effect<never> =>
  Effect.suspend(() => {
    let isStopped = false
    world.rescue(() => isStopped)
    return Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isStopped = true)))
  })

const toolOf = (world: World, name: string, { behaviour, timeout, turns: count }: ToolScript): Tool.Tool => {
  if (behaviour === "is the client's") return Tool.make(name, { input: { type: "object" } })
  const execute = (_: unknown, context: ToolContext) => {
    const { runId, toolCallId } = context
    const execution = { runId, toolCallId, isOver: false }
    world.executions.push(execution)
    const work = Effect.zipRight(
      turns(count),
      Effect.suspend(() => doings[behaviour](context, world))
    )
    return Effect.ensuring(
      work,
      Effect.sync(() => {
        execution.isOver = true
      })
    )
  }
  return Tool.make(name, {
    input: behaviour === "is strict" ? Schema.Struct({ prompt: Schema.String }) : { type: "object" },
    execute,
    ...(timeout === undefined ? {} : { timeout }),
    ...(behaviour === "tells the model something else" ? { toModelOutput: () => "something else" } : {})
  })
}

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
      tools: [toolOf(world, "a", { behaviour: "returns", turns: 0, timeout: undefined })]
    }),
    "another model": () => ({ model: world.model(path, "other", []) }),
    "is slow": () => Effect.as(turns(2), undefined),
    fails: () => Effect.fail("no"),
    throws: () => {
      throw new Error("thrown")
    },
    // Types would not let it.
    "says nonsense": () => ({ nonsense: 1 }) as StepChanges,
    hangs: () => hanging(world)
  }
  if (changes.length === 0) return undefined
  return state => changed[changes[state.stepNumber] ?? "nothing"](state)
}

const agentOf = (world: World, path: string, script: AgentScript): Agent.Agent => {
  const { concurrency, maxRetries, maxSteps, timeouts, tools } = script
  const prepare = prepareStep(world, path, script)
  return Agent.make({
    id: path,
    model: world.modelsOf(path, script),
    tools: Object.entries(tools).map(([name, tool]) =>
      isAgent(tool)
        ? Agent.asTool(agentOf(world, `${path}.${name}`, tool), { name: `agent-${name}` })
        : toolOf(world, name, tool)
    ),
    maxSteps,
    maxRetries,
    toolCallConcurrency: concurrency,
    timeouts,
    ...(prepare === undefined ? {} : { prepareStep: prepare })
  })
}

const optionsOf = ({ scenario, signal }: World) => ({
  abortSignal: signal,
  includeRawChunks: scenario.includeRawChunks,
  maxDepth: scenario.maxDepth,
  ...(scenario.store === undefined ? {} : { memory })
})

const surroundings = (world: World) =>
  Layer.mergeAll(
    Layer.succeed(ThreadStore.ThreadStore, world.store),
    Layer.setClock(world.clock),
    Layer.succeed(Id.IdGenerator, world.ids),
    Logger.minimumLogLevel(LogLevel.None)
  )

/** Runs something where the world is, and counts the fibers that are left of it. */
const inWorld = <A>(
  world: World,
  effect: Effect.Effect<A, never, ThreadStore.ThreadStore>
): Promise<A & { readonly fibers: number }> =>
  inTurns(
    "the run",
    Effect.gen(function* () {
      const supervisor = yield* Supervisor.track
      const result = yield* Effect.supervised(effect, supervisor)
      yield* turns(4)
      return { ...result, fibers: (yield* supervisor.value).length }
    }).pipe(Effect.provide(surroundings(world)), Effect.runPromise)
  )

/** Plays the scenario as a cold stream. */
export const streamed = (scenario: Scenario, cut?: Cut): Promise<Streamed> => {
  const world = new World(scenario, cut)
  const { pace, stop } = scenario
  const reading = Effect.gen(function* () {
    const agent = agentOf(world, "top", scenario.agent)
    const chunks: Array<Chunk.Chunk> = []
    const isTime = lookout(stop)
    const isOver = yield* Deferred.make<void>()
    const aborted = Effect.sync(() => world.abort({ odd: 1n }))
    if (isBefore(stop)) yield* aborted
    const look = (chunk: Chunk.Chunk) => {
      chunks.push(chunk)
      const isPause = pace > 0 && chunks.length % pace === 0
      // An abort takes effect at once, an interruption some chunks later.
      const stopping = !isTime(chunk)
        ? Effect.void
        : stop?.how === "signal"
          ? aborted
          : Deferred.succeed(isOver, undefined)
      return isPause ? Effect.zipRight(stopping, turns(1)) : stopping
    }
    const whole = Agent.stream(agent, "go", optionsOf(world))
    const isLast = lookout(stop)
    const stream = stop?.how === "leave" ? Stream.takeUntil(whole, isLast) : whole
    const fiber = yield* Effect.fork(Stream.runForEach(stream, look))
    const stopping =
      stop?.how === "signal" ? aborted : stop === undefined ? Effect.never : Fiber.interrupt(fiber)
    const count = turnsBefore(stop)
    yield* Effect.forkScoped(
      Effect.zipRight(count === undefined ? Deferred.await(isOver) : turns(count), stopping)
    )
    const exit = yield* Fiber.await(fiber)
    const isStopped = Exit.isInterrupted(exit) || (stop?.how === "leave" && Exit.isSuccess(exit))
    const isLeft = isStopped && chunks.at(-1)?.type !== "finish"
    return { world, chunks, exit, isLeft, owner: agent }
  })
  return inWorld(world, Effect.scoped(reading))
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
  "fullOutput",
  "drain"
] as const satisfies ReadonlyArray<keyof ModelOutput.ModelOutput>

const readBy = (output: ModelOutput.ModelOutput, script: ReaderScript, late: Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const read: Read = { script, items: [], isWhole: false, failure: undefined }
    yield* script.opens === "end" ? late : turns(script.opens)
    const all: Stream.Stream<unknown, unknown> =
      script.of === "chunks" ? output.fullStream : output.textStream
    const { leaves } = script
    const limited = leaves !== undefined && "items" in leaves ? Stream.take(all, leaves.items) : all
    const reading = Stream.runForEach(limited, item => {
      read.items.push(item)
      return turns(script.pace)
    })
    const fiber = yield* Effect.fork(reading)
    if (leaves !== undefined && "turns" in leaves)
      yield* Effect.zipRight(turns(leaves.turns), Fiber.interrupt(fiber))
    const exit = yield* Fiber.await(fiber)
    read.isWhole = leaves === undefined
    read.failure = Exit.isFailure(exit) && !Exit.isInterrupted(exit) ? exit.cause : undefined
    return read
  })

const answer = (output: ModelOutput.ModelOutput, { value, when }: Question, late: Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const name = values[value % values.length] ?? "text"
    yield* when === "end" ? late : turns(when)
    const asked: Effect.Effect<unknown, unknown> = output[name]
    const outcome = yield* Effect.match(asked, {
      onFailure: error => ({ error }),
      onSuccess: value => ({ value })
    })
    return { name, outcome } satisfies Answered
  })

/** Plays the scenario hot, with its readers. */
export const heard = (scenario: Scenario): Promise<Heard> => {
  const world = new World(scenario)
  const { questions, readers, stop } = scenario
  const hearing = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const agent = agentOf(world, "top", scenario.agent)
    const output = yield* Effect.orDie(Scope.extend(Agent.run(agent, "go", optionsOf(world)), scope))
    const late = yield* Deferred.make<void>()
    const reads = yield* Effect.fork(
      Effect.forEach(readers, script => readBy(output, script, Deferred.await(late)), {
        concurrency: "unbounded"
      })
    )
    const answers = yield* Effect.fork(
      Effect.forEach(questions, question => answer(output, question, Deferred.await(late)), {
        concurrency: "unbounded"
      })
    )
    const count = turnsBefore(stop)
    const isTime = lookout(stop)
    if (count !== undefined) yield* turns(count)
    else if (stop !== undefined)
      yield* Effect.exit(Stream.runDrain(Stream.takeUntil(output.fullStream, isTime)))
    if (stop?.how === "signal") world.abort("enough")
    if (stop?.how === "cancel") yield* output.abort("enough")
    if (stop?.how === "scope") yield* Scope.close(scope, Exit.void)
    const full = yield* output.fullOutput
    yield* Deferred.succeed(late, undefined)
    const read = yield* Fiber.join(reads)
    const answered = yield* Fiber.join(answers)
    const chunks: Array<Chunk.Chunk> = []
    // Of a run that failed the stream fails behind its last chunk.
    yield* Effect.exit(Stream.runForEach(output.fullStream, chunk => Effect.sync(() => chunks.push(chunk))))
    yield* Scope.close(scope, Exit.void)
    return { world, chunks, isLeft: false, full, reads: read, answered, owner: agent }
  })
  return inWorld(world, hearing)
}

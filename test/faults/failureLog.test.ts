/** What fails is in the log of the host once, with what it belongs to; what was aborted or refused is not. */
import { Agent, BackgroundTasks, RunStore, TaskStore, ThreadStore, Tool } from "eddy"
import { Http, serve } from "eddy/http"
import { createTool, Eddy, InMemoryStore, Agent as PromiseAgent } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Data, Effect, Exit, HashMap, Layer, Logger, ManagedRuntime, Scope, Stream } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"

const { finish, hang, reply, toolCall } = ScriptedModel

interface Line {
  readonly level: string
  readonly message: string
  readonly annotations: Readonly<Record<string, unknown>>
}

/** The lines of a log that nobody can overlook. */
const loud = (lines: ReadonlyArray<Line>): ReadonlyArray<Line> =>
  lines.filter(({ level }) => level === "error")

const call = [toolCall("c1", "work", {}), finish("tool-calls")]

const failing: ScriptedModel.Turn = () => {
  throw new Error("The provider is down.")
}

/** What is tried: the turns of the model, what the tool does, and how the run is stopped. */
interface Trial {
  readonly turns: ReadonlyArray<ScriptedModel.Turn>
  readonly isBackground?: boolean
  readonly dies?: boolean
  readonly aborts?: boolean
}

/** One way to run the agent: the lines that came of it. */
type Way = (trial: Trial) => Promise<ReadonlyArray<Line>>

class NoLuck extends Data.TaggedError("NoLuck")<{ readonly message: string }> {}

const toolOf = ({ dies = false, isBackground = false }: Trial) =>
  Tool.make("work", {
    ...(isBackground ? { background: { enabled: true } } : {}),
    execute: () =>
      dies ? Effect.die(new Error("No luck.")) : Effect.fail(new NoLuck({ message: "No luck." }))
  })

const agentOf = (trial: Trial) =>
  Agent.make({
    id: "worker",
    model: ScriptedModel.make(trial.turns),
    maxRetries: 0,
    tools: [toolOf(trial)]
  })

const stores = Layer.mergeAll(ThreadStore.layerMemory, TaskStore.layerMemory, RunStore.layerMemory)

/** Services of an Effect application whose log is kept, at its default level. */
const application = () => {
  const lines: Array<Line> = []
  const logger = Logger.make(({ annotations, logLevel, message }) =>
    lines.push({
      level: logLevel.label.toLowerCase(),
      message: String([message].flat()[0]),
      annotations: Object.fromEntries(HashMap.toEntries(annotations))
    })
  )
  const layer = Layer.provideMerge(
    BackgroundTasks.layer({ enabled: true }),
    Layer.merge(stores, Logger.replace(Logger.defaultLogger, logger))
  )
  const runtime = ManagedRuntime.make(layer)
  onTestFinished(() => runtime.dispose())
  return { lines, runtime }
}

const untilIdle = true
const memory = { thread: "t", resource: "r" }

const effectFace: Way = async trial => {
  const { lines, runtime } = application()
  const run = Stream.runForEach(Agent.stream(agentOf(trial), "go", { memory, untilIdle }), chunk =>
    trial.aborts === true && chunk.type === "step-start" ? Effect.interrupt : Effect.void
  )
  await runtime.runPromiseExit(run)
  return lines
}

const overHttp: Way = async trial => {
  const { lines, runtime } = application()
  const scope = Effect.runSync(Scope.make())
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const handler = await runtime.runPromise(
    Scope.extend(Http.webHandler({ agents: { worker: agentOf(trial) } }), scope)
  )
  const response = await handler(
    new Request("http://x/api/agents/worker/stream", {
      method: "POST",
      headers: { "content-type": "application/json", "x-on-disconnect": "abort" },
      body: JSON.stringify({ messages: "go", runId: "r1", memory, untilIdle })
    })
  )
  if (trial.aborts === true) {
    await response.body?.cancel()
    await (await handler(new Request("http://x/api/runs/r1/events"))).text()
  } else await response.text()
  return lines
}

/** A container, whose log is kept. */
const containerOf = (trial: Trial) => {
  const lines: Array<Line> = []
  const write =
    (level: string) =>
    (message: string, ...details: ReadonlyArray<unknown>) =>
      void lines.push({
        level,
        message,
        annotations: Object.assign({}, ...details.filter(one => !(one instanceof Error)))
      })
  const logger = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") }
  const work = createTool({
    id: "work",
    ...(trial.isBackground === true ? { background: { enabled: true } } : {}),
    execute: () => Promise.reject(new Error("No luck."))
  })
  const worker = new PromiseAgent({
    id: "worker",
    model: ScriptedModel.make(trial.turns),
    defaultOptions: { maxRetries: 0 },
    tools: { work }
  })
  const eddy = new Eddy({
    agents: { worker },
    storage: new InMemoryStore(),
    backgroundTasks: { enabled: true },
    logger
  })
  onTestFinished(() => eddy.shutdown())
  return { eddy, lines, worker }
}

const promiseFace: Way = async trial => {
  const { lines, worker } = containerOf(trial)
  const output = await worker.stream("go", { memory, untilIdle })
  for await (const { type } of output.fullStream)
    if (trial.aborts === true && type === "step-start") output.cancel()
  return lines
}

const promiseOverHttp: Way = async trial => {
  const { eddy, lines } = containerOf(trial)
  const serving = await serve(eddy)
  onTestFinished(() => serving.close())
  const response = await fetch(`${serving.url}/api/agents/worker/stream`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-on-disconnect": "abort" },
    body: JSON.stringify({ messages: "go", runId: "r1", memory, untilIdle })
  })
  if (trial.aborts === true) {
    await response.body?.cancel()
    await (await fetch(`${serving.url}/api/runs/r1/events`)).text()
  } else await response.text()
  return lines
}

const ways: ReadonlyArray<readonly [string, Way]> = [
  ["a stream of Effect", effectFace],
  ["HTTP in the Effect face", overHttp],
  ["the Promise face", promiseFace],
  ["HTTP in the Promise face", promiseOverHttp]
]

describe.each(ways)("%s", (name, way) => {
  const isEffect = name.includes("Effect")

  it("logs a run that fails once, with run, agent and cause", async () => {
    const lines = loud(await way({ turns: [failing] }))
    expect(lines).toEqual([
      {
        level: "error",
        message: expect.stringMatching(/^Run \S+ failed: .*provider is down/),
        annotations: expect.objectContaining({ agentId: "worker", runId: expect.any(String) })
      }
    ])
  })

  it("logs a task that fails for good once", async () => {
    const lines = loud(await way({ turns: [call, reply("Started."), reply("Failed.")], isBackground: true }))
    expect(lines).toEqual([
      {
        level: "error",
        message: expect.stringMatching(/^Task \S+ of tool "work" of agent "worker" failed: No luck/),
        annotations: expect.objectContaining({
          agentId: "worker",
          runId: expect.any(String),
          taskId: expect.any(String)
        })
      }
    ])
  })

  it("logs no tool that fails: that is for the model", async () => {
    expect(loud(await way({ turns: [call, reply("It failed.")] }))).toEqual([])
  })

  it("logs no run that is aborted", async () => {
    expect(loud(await way({ turns: [[...ScriptedModel.text("endless"), hang]], aborts: true }))).toEqual([])
  })

  if (!isEffect) return

  it("logs a tool that dies once", async () => {
    const lines = loud(await way({ turns: [call, reply("It died.")], dies: true }))
    expect(lines).toEqual([
      {
        level: "error",
        message: expect.stringMatching(/^Tool "work" of agent "worker" died in run \S+: No luck\.$/),
        annotations: expect.objectContaining({ agentId: "worker", toolCallId: "c1", toolName: "work" })
      }
    ])
  })
})

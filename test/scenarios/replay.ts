/** Runs a scenario through a face, and gives its chunks as lines. */
import { type Chunk, Agent as EffectAgent, type Errors, LanguageModel } from "eddy"
import { Agent, Eddy, type ModelOutput, type StreamOptions } from "eddy/promise"
import { Effect, Exit, Stream } from "effect"
import { memoryLogger } from "../support/readers.js"
import { line } from "./line.js"
import type { Scenario, ToolStage } from "./scenario.js"
import { modelOf } from "./script.js"

/** Tells the script of a scenario what its readers see. */
export const makeStage = () => {
  const told = new Set<string>()
  const waiting = new Map<string, Array<() => void>>()
  const controller = new AbortController()
  const stage: ToolStage = {
    seen: wanted =>
      new Promise(resolve => {
        if (told.has(wanted)) resolve()
        else waiting.set(wanted, [...(waiting.get(wanted) ?? []), resolve])
      }),
    abort: () => controller.abort("enough")
  }
  const see = (chunk: Chunk.Chunk): string => {
    const seen = line(chunk)
    told.add(seen)
    for (const resolve of waiting.get(seen) ?? []) resolve()
    return seen
  }
  return { ...stage, see, signal: controller.signal }
}

/** A scenario made ready: its model, its tools, and a stage for both. */
const begin = ({ abort, script, specification, tools }: Scenario) => {
  const stage = makeStage()
  if (abort === "before") stage.abort()
  return { stage, played: modelOf(script, stage, specification), tools: tools?.(stage) ?? {} }
}

/** The agent of a scenario in the Promise face, and the log of its container. */
export const makeAgent = (scenario: Scenario) => {
  const { tools, ...rest } = begin(scenario)
  const logger = memoryLogger()
  const agent = new Agent({ id: "replay", model: rest.played.model, tools })
  new Eddy({ agents: { agent }, logger })
  return { agent, logger, ...rest }
}

/** Starts a scenario in the Promise face; nobody reads it yet. */
export const start = async (scenario: Scenario, more: StreamOptions = {}) => {
  const { agent, ...rest } = makeAgent(scenario)
  const { callbacks, options } = scenario
  const abortSignal = rest.stage.signal
  return { ...rest, output: await agent.stream("Hello", { ...options, ...callbacks, abortSignal, ...more }) }
}

/** Reads a run as the reader of its scenario does, who may abort it. */
export const read = async (
  scenario: Scenario,
  { output, stage }: { readonly output: ModelOutput; readonly stage: ReturnType<typeof makeStage> }
): Promise<ReadonlyArray<Chunk.Chunk>> => {
  const chunks: Array<Chunk.Chunk> = []
  for await (const chunk of output.fullStream) {
    chunks.push(chunk)
    if (stage.see(chunk) === scenario.abort) stage.abort()
  }
  return chunks
}

/** Runs a scenario in the Effect face: its chunks, and what its stream failed with. */
export const stream = async (scenario: Scenario) => {
  const { played, stage, tools } = begin(scenario)
  const agent = EffectAgent.make({
    id: "replay",
    model: LanguageModel.fromAiSdk(played.model),
    tools: Object.entries(tools).map(([name, tool]) => tool.named(name))
  })
  const chunks: Array<Chunk.Chunk> = []
  const running = EffectAgent.stream(agent, "Hello", { ...scenario.options, abortSignal: stage.signal })
  const exit = await Effect.runPromiseExit(
    Stream.runForEach(running, chunk =>
      Effect.sync(() => {
        chunks.push(chunk)
        if (stage.see(chunk) === scenario.abort) stage.abort()
      })
    )
  )
  const failure: Errors.AgentError | undefined = Exit.match(exit, {
    onFailure: cause => (cause._tag === "Fail" ? cause.error : undefined),
    onSuccess: () => undefined
  })
  return { chunks, exit, failure }
}

/**
 * An agent: a model, instructions and tools. Run it as a cold stream ({@link stream}), hot with any number of readers
 * ({@link run}), or for its result ({@link generate}).
 *
 * @since 0.1.0
 */
import { Effect, type Scope, Stream } from "effect"
import type { LanguageModel } from "../model/ModelPort.js"
import type { FullOutput } from "../output/FullOutput.js"
import * as ModelOutput from "../output/ModelOutput.js"
import * as RunRecord from "../output/RunRecord.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { Input } from "../protocol/Conversation.js"
import { type AgentError, InvalidConfiguration } from "../protocol/Errors.js"
import type * as Tool from "../tool/Tool.js"
import { type Agent, TypeId } from "./definition.js"
import { drive, loop } from "./loop.js"
import { defaultFields, prepare, refuseUnknown, settingsOf, toolsByName } from "./prepare.js"
import type { Defaults, RunOptions } from "./RunOptions.js"
import { RunControl } from "./run.js"

export { type Agent, TypeId } from "./definition.js"

/** What an agent is made of, and the settings that its runs have unless they say otherwise. @since 0.1.0 @category models */
export interface Options<Tools extends ReadonlyArray<Tool.Any>> extends Defaults {
  readonly id: string
  /** Default: the id. */
  readonly name?: string
  readonly description?: string
  /** The system prompt. */
  readonly instructions?: string
  readonly model: LanguageModel
  readonly tools?: Tools
}

/** What the tools of a list need. @since 0.1.0 @category models */
export type RequirementsOf<Tools extends ReadonlyArray<Tool.Any>> = Tool.Requirements<Tools[number]>

const agentFields = ["id", "name", "description", "instructions", "model", "tools", ...defaultFields]

const isModel = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "answer" in value && typeof value.answer === "function"

/**
 * Makes an agent. Throws `InvalidConfiguration`, which names the field and the remedy, when it cannot work: no id, no
 * model, two tools of one name, an unknown option, a limit below 1.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <const Tools extends ReadonlyArray<Tool.Any> = []>(
  options: Options<Tools>
): Agent<RequirementsOf<Tools>> => {
  const { description, id, instructions, model, name, tools, ...defaults } = options
  if (typeof id !== "string" || id === "") {
    throw new InvalidConfiguration({
      field: "id",
      message: "An agent needs an `id`: a string that is not empty."
    })
  }
  if (!isModel(model)) {
    throw new InvalidConfiguration({
      field: "model",
      message: `Agent "${id}" has no model. Give it a LanguageModel, for example LanguageModel.fromAiSdk(openai("gpt-5")).`
    })
  }
  refuseUnknown(`Agent "${id}"`, options, agentFields)
  settingsOf(defaults, {})
  return {
    [TypeId]: TypeId,
    id,
    name: name ?? id,
    description,
    instructions,
    model,
    toolsByName: toolsByName(toolsOf(tools)),
    defaults
  }
}

/** A tool's requirements are what the type of the list says they are. */
const toolsOf = <Tools extends ReadonlyArray<Tool.Any>>(
  tools: Tools | undefined
): ReadonlyArray<Tool.Tool<string, RequirementsOf<Tools>>> =>
  (tools ?? []) as ReadonlyArray<Tool.Tool<string, RequirementsOf<Tools>>>

const prepareWith = <R, Tools extends ReadonlyArray<Tool.Any>>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools>,
  control: RunControl
) => {
  const { tools, ...rest } = options
  const all: RunOptions<ReadonlyArray<Tool.Tool<string, R | RequirementsOf<Tools>>>> = {
    ...rest,
    tools: toolsOf(tools)
  }
  return prepare<R | RequirementsOf<Tools>>(agent, input, all, control)
}

/**
 * Runs an agent as a stream: cold, pulled, back-pressured. Each run of the stream is a run of the agent. The model is at
 * most 64 chunks ahead of whoever reads.
 *
 * A run that failed says so in the stream (`error`, then `finish`) and then fails the stream with the same error. A run
 * whose `abortSignal` fired ends with `abort` and `finish`. Wrong input or options fail the stream before any chunk.
 * Interruption stops the provider and the tools; the stream ends without a word.
 *
 * @since 0.1.0
 * @category running
 */
export const stream = <R, const Tools extends ReadonlyArray<Tool.Any> = []>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools> = {}
): Stream.Stream<Chunk, AgentError, R | RequirementsOf<Tools>> =>
  Stream.unwrapScoped(
    Effect.suspend(() =>
      Effect.acquireRelease(prepareWith(agent, input, options, new RunControl()), ({ close }) => close)
    ).pipe(Effect.map(loop))
  )

/**
 * Starts a run that goes on by itself, in the scope, and gives its output at once: streams and values for any number of
 * readers. It is at most 64 chunks ahead of its furthest reader, plus 64 of the model; asking for a value lets it run to
 * its end. Closing the scope aborts it.
 *
 * Fails only with wrong input or options; what happens to the run later is in its output.
 *
 * @since 0.1.0
 * @category running
 */
export const run = <R, const Tools extends ReadonlyArray<Tool.Any> = []>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools> = {}
): Effect.Effect<ModelOutput.ModelOutput, AgentError, R | RequirementsOf<Tools> | Scope.Scope> =>
  Effect.gen(function* () {
    const { abort, going, recorded } = yield* record(agent, input, options)
    const fiber = yield* Effect.forkScoped(going)
    yield* Effect.addFinalizer(() => {
      abort("The scope of the run was closed.")
      return fiber.await
    })
    return ModelOutput.make(recorded, abort)
  })

/** A run that is recorded for any number of readers. @since 0.1.0 @category models */
export interface Recording {
  readonly recorded: RunRecord.RunRecord
  readonly abort: (reason?: unknown) => void
  /** The run itself, to be run once: never fails, and leaves nothing behind. */
  readonly going: Effect.Effect<void>
}

/**
 * A run that is recorded as it goes: what {@link run} and the Promise facade are made of. `observe` sees every chunk before
 * any reader does and must not throw.
 *
 * @since 0.1.0
 * @category running
 */
export const record = <R, const Tools extends ReadonlyArray<Tool.Any> = []>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools> = {},
  observe?: (chunk: Chunk, recorded: RunRecord.RunRecord) => void
): Effect.Effect<Recording, AgentError, R | RequirementsOf<Tools>> => {
  const control = new RunControl()
  return Effect.map(prepareWith(agent, input, options, control), prepared => {
    const recorded = RunRecord.make(prepared.runId, observe)
    // A run that waits for a reader would not notice.
    control.onAbort(() => recorded.log.wantAll())
    const going = drive(prepared, chunks => {
      recorded.write(chunks)
      return recorded.log.hasDemand() ? Effect.void : recorded.demand
    }).pipe(
      Effect.onExit(exit => {
        recorded.end(exit)
        return prepared.close
      })
    )
    return { recorded, abort: control.abort, going }
  })
}

/**
 * Runs an agent to its end. Fails with the run's error; a run that was aborted by its signal fails with `RunAborted`.
 *
 * @since 0.1.0
 * @category running
 */
export const generate = <R, const Tools extends ReadonlyArray<Tool.Any> = []>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools> = {}
): Effect.Effect<FullOutput, AgentError, R | RequirementsOf<Tools>> =>
  Effect.flatMap(run(agent, input, options), output => Effect.zipRight(output.drain, output.fullOutput)).pipe(
    Effect.scoped
  )

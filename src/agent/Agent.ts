/**
 * An agent: a model, instructions and tools. Run it as a cold stream ({@link stream}), hot with any number of readers
 * ({@link run}), or for its result ({@link generate}).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FullOutput } from "../output/FullOutput.js"
import * as ModelOutput from "../output/ModelOutput.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { Input } from "../protocol/Conversation.js"
import type { AgentError } from "../protocol/Errors.js"
import type * as Tool from "../tool/Tool.js"
import type { Agent, RunRequirements } from "./definition.js"
import { prepare } from "./prepare.js"
import type { MemoryOptions, RunOptions } from "./RunOptions.js"
import { record } from "./recording.js"
import { RunControl } from "./run.js"
import { toStream } from "./streaming.js"

export {
  type Agent,
  type AnyRunOptions,
  make,
  type Options,
  type RequirementsOf,
  type RunRequirements,
  TypeId
} from "./definition.js"
export { asTool, type SubAgentOptions } from "./subAgent.js"

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
export const stream = <
  R,
  const Tools extends ReadonlyArray<Tool.Any> = [],
  const Memory extends MemoryOptions | undefined = undefined
>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools, Memory> = {}
): Stream.Stream<Chunk, AgentError, R | RunRequirements<Tools, Memory>> =>
  Stream.unwrapScoped(
    Effect.suspend(() =>
      Effect.acquireRelease(prepare(agent, input, options, new RunControl()), run =>
        Effect.suspend(run.close)
      )
    ).pipe(Effect.map(toStream))
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
export const run = <
  R,
  const Tools extends ReadonlyArray<Tool.Any> = [],
  const Memory extends MemoryOptions | undefined = undefined
>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools, Memory> = {}
): Effect.Effect<ModelOutput.ModelOutput, AgentError, R | RunRequirements<Tools, Memory> | Scope.Scope> =>
  Effect.gen(function* () {
    const { abort, going, recorded } = yield* record(agent, input, options)
    const fiber = yield* Effect.forkScoped(going)
    yield* Effect.addFinalizer(() => {
      abort("The scope of the run was closed.")
      return fiber.await
    })
    return ModelOutput.make(recorded, abort)
  })

/**
 * Runs an agent to its end. Fails with the run's error; a run that was aborted by its signal fails with `RunAborted`.
 *
 * @since 0.1.0
 * @category running
 */
export const generate = <
  R,
  const Tools extends ReadonlyArray<Tool.Any> = [],
  const Memory extends MemoryOptions | undefined = undefined
>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools, Memory> = {}
): Effect.Effect<FullOutput, AgentError, R | RunRequirements<Tools, Memory>> =>
  Effect.flatMap(run(agent, input, options), output => Effect.zipRight(output.drain, output.fullOutput)).pipe(
    Effect.scoped
  )

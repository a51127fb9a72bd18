/** The agents of a container, as a server sees them. */
import * as Batch from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { faceOf } from "../background/BackgroundTasks.js"
import { TaskManager } from "../background/TaskManager.js"
import type { Host, HostAgent, HostRunOptions } from "../http/Host.js"
import { suspendedIn, toHostRun } from "../http/suspendedRuns.js"
import type { Chunk } from "../protocol/Chunk.js"
import { RunStore } from "../storage/RunStore.js"
import { ThreadStore } from "../storage/ThreadStore.js"
import type { Agent } from "./Agent.js"
import type { StreamOptions } from "./AgentOptions.js"
import { fromPromise } from "./fromPromise.js"
import type { ModelOutput } from "./ModelOutput.js"
import { RunStream } from "./RunStream.js"

/** Chunks that one pull takes. */
const batchSize = 64

/** The chunks of an output that nobody else reads. Leaving them stops the run. */
const begun = (start: () => Promise<ModelOutput>): Stream.Stream<Chunk, unknown> =>
  Stream.unwrapScoped(
    Effect.map(
      Effect.flatMap(fromPromise(start), output =>
        Effect.acquireRelease(
          Effect.sync(() => RunStream.cursor(output.fullStream)),
          cursor => Effect.sync(() => cursor.close())
        )
      ),
      cursor =>
        Stream.repeatEffectChunkOption(
          Effect.async<Batch.Chunk<Chunk>, Option.Option<never>>(resume => {
            const look = (): void => {
              const taken: Array<Chunk> = []
              cursor.drain(batchSize, chunk => taken.push(chunk))
              if (taken.length > 0) resume(Effect.succeed(Batch.unsafeFromArray(taken)))
              else if (cursor.isDone()) resume(Effect.fail(Option.none()))
              else cursor.wait(look)
            }
            look()
          })
        )
    )
  )

const toOptions = ({ untilIdle, ...options }: HostRunOptions): StreamOptions => ({
  ...options,
  // The server keeps what is read again.
  replay: false,
  ...(untilIdle === undefined
    ? {}
    : { untilIdle: typeof untilIdle === "boolean" ? untilIdle : { maxIdleMs: untilIdle.maxIdle } })
})

const agentOf = (agent: Agent): HostAgent => ({
  id: agent.id,
  name: agent.name,
  description: agent.description,
  stream: (input, options) => begun(() => agent.stream(input, toOptions(options))),
  resume: (data, call, options) => begun(() => agent.resumeStream(data, { ...toOptions(options), ...call })),
  decide: (decision, call, options) => {
    const given = { ...toOptions(options), ...call }
    if (decision.approved) return begun(() => agent.approveToolCall(given))
    const { reason } = decision
    return begun(() => agent.declineToolCall({ ...given, ...(reason === undefined ? {} : { reason }) }))
  },
  suspendedRuns: filter =>
    Effect.map(
      fromPromise(() => agent.listSuspendedRuns(suspendedIn(filter))),
      runs => runs.map(toHostRun)
    )
})

/** What a container serves. To be run where the container runs. */
export const hostOf = (agents: Readonly<Record<string, Agent>>): Effect.Effect<Host> =>
  Effect.gen(function* () {
    const threads = yield* Effect.serviceOption(ThreadStore)
    const manager = yield* Effect.serviceOption(TaskManager)
    const runs = yield* Effect.serviceOption(RunStore)
    return {
      agents: new Map(Object.entries(agents).map(([name, agent]) => [name, agentOf(agent)])),
      threads: Option.getOrUndefined(threads),
      tasks: Option.getOrUndefined(Option.map(manager, faceOf)),
      runIds: Option.getOrUndefined(runs)
    }
  })

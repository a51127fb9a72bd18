/** Whether a run is the first turn of an until-idle stream. Needs no streams: the Promise face asks it for every run. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type ManagerService, TaskManager } from "../../background/TaskManager.js"
import type { InvalidConfiguration } from "../../protocol/Errors.js"
import { lazily } from "../../protocol/lazily.js"
import { checkOptions } from "../../protocol/options.js"
import { Caller } from "../caller.js"
import { checked, idleOf } from "../checkOptions.js"
import type { Agent, AnyRunOptions } from "../definition.js"
import type { RunControl } from "../loop/run.js"
import { runKinds, runPlaces } from "../optionKinds.js"
import type { Turn } from "../prepare.js"
import type { Idle } from "../settings.js"
import type { Answered } from "./runTasks.js"

/** Loaded when the first until-idle stream begins. */
const runTasks = lazily(() => import("./runTasks.js"))

/** What an until-idle stream begins with. */
export interface Beginning<R> {
  readonly agent: Agent<R>
  readonly manager: ManagerService
  readonly idle: Idle
  /** Stops all turns. */
  readonly control: RunControl
  readonly answered: Answered
}

/**
 * `toolCallId` is an option of a decision, and of no run. `undefined`: the run is no such turn, or there are no background tasks
 * that anybody could wait for.
 */
export const idleBeginning = <R>(
  agent: Agent<R>,
  { toolCallId: _, ...options }: Pick<AnyRunOptions, "untilIdle"> & { readonly toolCallId?: unknown },
  control: RunControl
): Effect.Effect<Beginning<R> | undefined, InvalidConfiguration> =>
  Effect.flatMap(
    checked(() => {
      checkOptions("A run", options, { kinds: runKinds, places: runPlaces })
      return idleOf(options.untilIdle === undefined ? agent.defaults.untilIdle : options.untilIdle)
    }),
    idle => (idle === undefined ? Effect.succeed(undefined) : beginningOf(agent, control, idle))
  )

const beginningOf = Effect.fnUntraced(function* <R>(agent: Agent<R>, control: RunControl, idle: Idle) {
  const manager = yield* Effect.serviceOption(TaskManager)
  const { depth } = yield* Caller
  if (Option.isNone(manager) || !manager.value.settings.enabled || depth > 0) return undefined
  const { Answered } = yield* runTasks
  const beginning: Beginning<R> = {
    agent,
    manager: manager.value,
    idle,
    control,
    answered: new Answered()
  }
  return beginning
})

/** The first turn of the stream, which answers to nothing yet. */
export const firstTurn = <R>(beginning: Beginning<R> | undefined): Turn | undefined =>
  beginning === undefined ? undefined : { answered: beginning.answered, settled: [] }

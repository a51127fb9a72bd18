/** Runs of agents that serve somebody, loaded when the first of them runs. */
import * as Effect from "effect/Effect"
import type { InvalidResumeData } from "../protocol/Errors.js"
import { lazily } from "../protocol/lazily.js"
import type { Agent } from "./definition.js"
import type { NestedError, Served } from "./nestedRun.js"
import type { RunOptions } from "./RunOptions.js"

const running = lazily(() => import("./nestedRun.js"))
const deciding = lazily(() => import("./suspension/nestedRuns.js"))

/** See `nestedRun.ts`. */
export const runNested = <R>(
  agent: Agent<R>,
  served: Served,
  options: RunOptions<[], undefined>
): Effect.Effect<{ readonly text: string }, NestedError, R> =>
  Effect.flatMap(running, ({ runNested }) => runNested(agent, served, options))

/** See `suspension/nestedRuns.ts`. */
export const readNested =
  (toolName: string) =>
  (data: unknown, suspendData?: unknown): Effect.Effect<unknown, InvalidResumeData> =>
    Effect.flatMap(deciding, ({ readNested }) => readNested(toolName)(data, suspendData))

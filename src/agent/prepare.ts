/** Makes a run ready: settings with their defaults, the conversation, the tools; refuses what cannot work before any model is asked. */
import { Effect, Fiber, Runtime } from "effect"
import * as RunIds from "../model/runIds.js"
import * as RunFold from "../output/RunFold.js"
import type { Chunk } from "../protocol/Chunk.js"
import { fromInput, type Input } from "../protocol/Conversation.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { IdGenerator } from "../protocol/Id.js"
import * as Message from "../protocol/Message.js"
import type { Tool } from "../tool/Tool.js"
import type { Agent } from "./definition.js"
import { Inbox } from "./inbox.js"
import type { Defaults, RunOptions } from "./RunOptions.js"
import { type Run, type RunControl, type Settings, stopFibers } from "./run.js"

const positive = (field: string, value: number | undefined, fallback: number): number => {
  if (value === undefined) return fallback
  if (Number.isInteger(value) && value > 0) return value
  throw new InvalidConfiguration({
    field,
    message: `\`${field}\` is ${value}. Give a whole number of at least 1, or leave it out for ${fallback}.`
  })
}

/** Settings that an agent may have and a run may change. */
export const defaultFields = [
  "maxSteps",
  "stopWhen",
  "toolCallConcurrency",
  "toolChoice",
  "modelSettings",
  "providerOptions",
  "includeRawChunks",
  "includeRequestBody"
] as const satisfies ReadonlyArray<keyof Defaults>

/** Options that only a run has. */
export const runFields = ["tools", "instructions", "runId", "abortSignal"] as const satisfies ReadonlyArray<
  Exclude<keyof RunOptions, keyof Defaults>
>

/** Refuses an option that nothing reads: a misspelt one would be ignored in silence. */
export const refuseUnknown = (what: string, options: object, known: ReadonlyArray<string>): void => {
  for (const field of Object.keys(options)) {
    if (known.includes(field)) continue
    throw new InvalidConfiguration({
      field,
      message: `${what} has no option \`${field}\`. Known options: ${known.join(", ")}.`
    })
  }
}

/** The settings of a run: the run's own before the agent's. Throws `InvalidConfiguration`. */
export const settingsOf = (defaults: Defaults, options: Defaults): Settings => {
  const given: Defaults = { ...defaults, ...options }
  const { stopWhen } = given
  return {
    ...given,
    maxSteps: positive("maxSteps", given.maxSteps, 5),
    toolCallConcurrency: positive("toolCallConcurrency", given.toolCallConcurrency, 10),
    stopWhen: stopWhen === undefined ? [] : typeof stopWhen === "function" ? [stopWhen] : stopWhen
  }
}

/** Tools by name. Throws `InvalidConfiguration` when two have one name. */
export const toolsByName = <R>(
  tools: ReadonlyArray<Tool<string, R>>
): ReadonlyMap<string, Tool<string, R>> => {
  const byName = new Map<string, Tool<string, R>>()
  for (const tool of tools) {
    if (byName.has(tool.name)) {
      throw new InvalidConfiguration({
        field: "tools",
        message: `Two tools are called "${tool.name}". Give each tool a name of its own: the model calls it by that.`
      })
    }
    byName.set(tool.name, tool)
  }
  return byName
}

/** Runs plain code that throws `InvalidConfiguration`. */
const checked = <A>(check: () => A): Effect.Effect<A, InvalidConfiguration> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(check())
    } catch (cause) {
      return cause instanceof InvalidConfiguration ? Effect.fail(cause) : Effect.die(cause)
    }
  })

const instructionsOf = (text: string | undefined): ReadonlyArray<Message.Message> =>
  text === undefined || text === "" ? [] : [Message.system(text)]

/** Aborts when the signal does, until `release` is called. */
const follow = (signal: AbortSignal | undefined, control: RunControl): (() => void) => {
  if (signal === undefined) return () => undefined
  const abort = () => control.abort(signal.reason)
  if (signal.aborted) {
    abort()
  } else {
    signal.addEventListener("abort", abort, { once: true })
  }
  return () => signal.removeEventListener("abort", abort)
}

/**
 * A run that can be started once. Whoever starts it closes it, however it ends: that stops what it has running, waits for
 * that, and lets go of the signal.
 */
export const prepare = Effect.fnUntraced(function* <R>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<ReadonlyArray<Tool<string, R>>>,
  control: RunControl
) {
  const { abortSignal, instructions, runId, tools: added = [], ...changes } = options
  const { settings, tools } = yield* checked(() => {
    refuseUnknown("A run", options, [...defaultFields, ...runFields])
    return {
      settings: settingsOf(agent.defaults, changes),
      tools: added.length === 0 ? agent.toolsByName : new Map([...agent.toolsByName, ...toolsByName(added)])
    }
  })
  const conversation = yield* fromInput(input)
  const ids = yield* IdGenerator
  const runtime = yield* Effect.runtime<R>()
  const inbox = new Inbox()
  const id = runId ?? ids.next("run")
  const fold = RunFold.make(id)
  const release = follow(abortSignal, control)
  const run: Run<R> = {
    runId: id,
    agentId: agent.id,
    messageId: ids.next("message"),
    model: agent.model,
    settings,
    tools,
    ids: RunIds.make(),
    makeId: ids.next,
    instructions: instructionsOf(instructions ?? agent.instructions),
    input: conversation,
    added: [],
    inbox,
    control,
    fold,
    emit: (chunk: Chunk) => {
      // The text of a step comes with its `step-finish`.
      if (chunk.type !== "text-delta") fold.push(chunk)
      inbox.push(chunk)
    },
    runFork: Runtime.runFork(runtime),
    fibers: new Map(),
    close: Effect.suspend(() => {
      release()
      inbox.close()
      if (run.fibers.size === 0) return Effect.void
      stopFibers(run)
      return Fiber.awaitAll(run.fibers.keys())
    })
  }
  control.onAbort(() => {
    stopFibers(run)
    inbox.notify()
  })
  return run
})

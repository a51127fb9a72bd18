/** Makes a run ready: settings with their defaults, the conversation, the tools; refuses what cannot work before any model is asked. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as RunIds from "../model/runIds.js"
import * as RunFold from "../output/RunFold.js"
import type { Chunk } from "../protocol/Chunk.js"
import { fromInput, type Input } from "../protocol/Conversation.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { IdGenerator } from "../protocol/Id.js"
import type { Message } from "../protocol/Message.js"
import type * as Tool from "../tool/Tool.js"
import { defaultFields, refuseUnknown, runFields, settingsOf, toolsByName } from "./checkOptions.js"
import { type Agent, type RequirementsOf, toolsOf } from "./definition.js"
import { Inbox } from "./inbox.js"
import type { RunOptions } from "./RunOptions.js"
import { type Run, type RunControl, stopRunning } from "./run.js"

/** Runs plain code that throws `InvalidConfiguration`. */
const checked = <A>(check: () => A): Effect.Effect<A, InvalidConfiguration> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(check())
    } catch (cause) {
      return cause instanceof InvalidConfiguration ? Effect.fail(cause) : Effect.die(cause)
    }
  })

const instructionsOf = (text: string | undefined): ReadonlyArray<Message> =>
  text === undefined || text === "" ? [] : [{ role: "system", content: text }]

/** Runs by the signal that they follow. */
const followers = new WeakMap<AbortSignal, Set<RunControl>>()

/** Tells every run that follows the signal. One function for all of them, so that a signal has it as a listener once. */
function tellFollowers(this: AbortSignal): void {
  for (const control of followers.get(this) ?? []) control.abort(this.reason)
}

/**
 * Aborts when the signal does, until `release` is called. A signal that many runs share has one listener, and none when
 * the last of them has ended.
 */
const follow = (signal: AbortSignal | undefined, control: RunControl): (() => void) => {
  if (signal === undefined) return () => undefined
  if (signal.aborted) {
    control.abort(signal.reason)
    return () => undefined
  }
  const controls = followers.get(signal) ?? new Set()
  followers.set(signal, controls.add(control))
  signal.addEventListener("abort", tellFollowers, { once: true })
  return () => {
    controls.delete(control)
    if (controls.size === 0) signal.removeEventListener("abort", tellFollowers)
  }
}

/**
 * A run that can be started once. Whoever starts it closes it, however it ends: that stops what it has running, waits for
 * that, and lets go of the signal.
 */
export const prepare = Effect.fnUntraced(function* <R, Tools extends ReadonlyArray<Tool.Any>>(
  agent: Agent<R>,
  input: Input,
  options: RunOptions<Tools>,
  control: RunControl
) {
  type Needs = R | RequirementsOf<Tools>
  const { abortSignal, instructions, runId, tools, ...changes } = options
  const added = toolsOf(tools)
  const { byName, settings } = yield* checked(() => {
    refuseUnknown("A run", options, [...defaultFields, ...runFields])
    return {
      settings: settingsOf(agent.defaults, changes),
      byName:
        added.length === 0
          ? agent.toolsByName
          : new Map<string, Tool.Tool<string, Needs>>([...agent.toolsByName, ...toolsByName(added)])
    }
  })
  const conversation = yield* fromInput(input)
  const ids = yield* IdGenerator
  const runtime = yield* Effect.runtime<Needs>()
  const inbox = new Inbox()
  const id = runId ?? ids.next("run")
  const fold = RunFold.make(id)
  const release = follow(abortSignal, control)
  const run: Run<Needs> = {
    runId: id,
    agentId: agent.id,
    messageId: ids.next("message"),
    model: agent.model,
    settings,
    tools: byName,
    definitions: Array.from(byName.values(), ({ definition }) => definition),
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
    // Whoever makes a run ready may not be interrupted meanwhile; what the run starts may.
    runFork: Runtime.runFork(Runtime.enableRuntimeFlag(runtime, RuntimeFlags.Interruption)),
    running: new Set(),
    close: Effect.suspend(() => {
      release()
      inbox.close()
      if (run.running.size === 0) return Effect.void
      const fibers = [...run.running].flatMap(({ fiber }) => fiber ?? [])
      stopRunning(run)
      return Fiber.awaitAll(fibers)
    })
  }
  control.onAbort(() => {
    stopRunning(run)
    inbox.notify()
  })
  return run
})

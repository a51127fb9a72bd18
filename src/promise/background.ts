/** How tools and agents of plain TypeScript run in the background: milliseconds and promises, in the words of the core. */
import type * as Background from "../background/settings.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { checkOptions, read, wrongValue } from "../protocol/options.js"
import { isRecord } from "../protocol/safeJson.js"
import type { Task } from "../protocol/Task.js"
import {
  type BackgroundOptions,
  isTime,
  maybeBoolean,
  maybeRetries,
  type NoEffect,
  type TaskCallback
} from "../tool/background.js"
import { fromPromise } from "./fromPromise.js"

/**
 * Called with a task that settled, after its stream has the event. A promise is waited for before the next callback is
 * called; an Effect is refused by the types. One that throws or rejects is logged, and stops nothing.
 *
 * @since 0.1.0
 * @category models
 */
export type TaskListener = (task: Task) => NoEffect

/** How a tool runs in the background. @since 0.1.0 @category models */
export interface ToolBackground {
  /** Whether its calls run in the background, unless the agent or the model says otherwise. Default false. */
  readonly enabled?: boolean
  /** Milliseconds that one attempt may take. Default: the container's `defaultTimeoutMs`. */
  readonly timeoutMs?: number
  /** Attempts after the first. Default: those of the container's `defaultRetries`. */
  readonly maxRetries?: number
  /** Milliseconds that a run waits for it before it would finish. Default: the agent's, or the container's. */
  readonly waitTimeoutMs?: number
  /** Called with the task when it is completed. */
  readonly onComplete?: TaskListener
  /** Called with the task when it failed or took too long. */
  readonly onFailed?: TaskListener
  /** Called with the task when it was cancelled. */
  readonly onCancelled?: TaskListener
}

/** What an agent says of one of its tools. @since 0.1.0 @category models */
export interface AgentToolBackground {
  /** Whether its calls run in the background. Default true. */
  readonly enabled?: boolean
  /** Milliseconds that one attempt may take. */
  readonly timeoutMs?: number
  /** Attempts after the first. */
  readonly maxRetries?: number
  /** Milliseconds that a run waits for it before it would finish. */
  readonly waitTimeoutMs?: number
}

/** What an agent says of its tasks. @since 0.1.0 @category models */
export interface AgentBackgroundTasks {
  /** Every tool of this agent runs in the foreground. Default false. */
  readonly disabled?: boolean
  /**
   * Which tools run in the background: `"all"`, or by the name that the tool is registered with, its id, or the name of the
   * agent that it is. What is said here wins over what the tool says of itself.
   */
  readonly tools?: "all" | Readonly<Record<string, boolean | AgentToolBackground>>
  /** Tasks of this agent that run at once. Default: the container's `perAgentConcurrency`. */
  readonly concurrency?: number
  /** Milliseconds that a run waits for its tasks before it would finish. Default: the container's. */
  readonly waitTimeoutMs?: number
  /** Called with every completed task of this agent. */
  readonly onTaskComplete?: TaskListener
  /** Called with every task of this agent that failed or took too long. */
  readonly onTaskFailed?: TaskListener
  /** Called with every task of this agent that was cancelled. */
  readonly onTaskCancelled?: TaskListener
}

/** Options of which any may say nothing. */
type Loose<A> = { readonly [Key in keyof A]?: A[Key] | undefined }

/** Those that say something. */
export const said = <A extends object>(options: Loose<A>): Partial<A> =>
  // What is left has the types that it had.
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<A>

/** An object of options, or none. Throws `InvalidConfiguration` for anything else, and for an option that nobody reads. */
export const optionsOf = <A extends object>(
  field: string,
  value: A | undefined,
  known: ReadonlyArray<keyof A & string>
): Partial<A> => {
  const options: Partial<A> = value === undefined ? {} : value
  const kinds = Object.fromEntries(known.map(name => [name, read]))
  checkOptions(`\`${field}\``, options, { kinds }, field)
  return options
}

/** Milliseconds, or nothing. Throws `InvalidConfiguration`, which names `field`. */
export const maybeTime = (field: string, value: number | undefined): number | undefined => {
  if (value === undefined || isTime(value)) return value
  throw wrongValue(field, value, "Give milliseconds: a number above 0 and below 24 days.")
}

/** A callback that may promise, as the core waits for it. Throws `InvalidConfiguration`, which names `field`. */
export const maybeListener = (
  field: string,
  listener: TaskListener | undefined
): TaskCallback | undefined => {
  if (listener === undefined) return undefined
  if (typeof listener === "function") return task => fromPromise(() => listener(task))
  throw wrongValue(field, listener, "Give a function.")
}

/** Says where an option is that the core has read by itself. */
export const within = <A>(prefix: string, read: () => A): A => {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof InvalidConfiguration)) throw cause
    const field = `${prefix}.${cause.field}`
    throw new InvalidConfiguration({
      field,
      message: cause.message.replaceAll(`\`${cause.field}\``, `\`${field}\``)
    })
  }
}

/** What a tool says of itself. Throws `InvalidConfiguration`. */
export const toBackground = (background: ToolBackground): BackgroundOptions => {
  const options = optionsOf("background", background, [
    "enabled",
    "timeoutMs",
    "maxRetries",
    "waitTimeoutMs",
    "onComplete",
    "onFailed",
    "onCancelled"
  ])
  return said<BackgroundOptions>({
    enabled: maybeBoolean("background.enabled", options.enabled),
    timeout: maybeTime("background.timeoutMs", options.timeoutMs),
    retries: maybeRetries("background.maxRetries", options.maxRetries),
    waitTimeout: maybeTime("background.waitTimeoutMs", options.waitTimeoutMs),
    onComplete: maybeListener("background.onComplete", options.onComplete),
    onFailed: maybeListener("background.onFailed", options.onFailed),
    onCancelled: maybeListener("background.onCancelled", options.onCancelled)
  })
}

const toToolEntry = (
  name: string,
  entry: boolean | AgentToolBackground
): boolean | Background.AgentToolOptions => {
  if (typeof entry === "boolean") return entry
  const field = `backgroundTasks.tools.${name}`
  const options = optionsOf(field, entry, ["enabled", "timeoutMs", "maxRetries", "waitTimeoutMs"])
  return said<Background.AgentToolOptions>({
    enabled: maybeBoolean(`${field}.enabled`, options.enabled),
    timeout: maybeTime(`${field}.timeoutMs`, options.timeoutMs),
    retries: maybeRetries(`${field}.maxRetries`, options.maxRetries),
    waitTimeout: maybeTime(`${field}.waitTimeoutMs`, options.waitTimeoutMs)
  })
}

const toToolEntries = (
  tools: NonNullable<AgentBackgroundTasks["tools"]>
): NonNullable<Background.AgentOptions["tools"]> =>
  // Anything that is neither is refused by the core.
  isRecord(tools)
    ? Object.fromEntries(Object.entries(tools).map(([name, entry]) => [name, toToolEntry(name, entry)]))
    : tools

/** What an agent says of its tasks. Throws `InvalidConfiguration`. */
export const toAgentBackground = (backgroundTasks: AgentBackgroundTasks): Background.AgentOptions => {
  const options = optionsOf("backgroundTasks", backgroundTasks, [
    "disabled",
    "tools",
    "concurrency",
    "waitTimeoutMs",
    "onTaskComplete",
    "onTaskFailed",
    "onTaskCancelled"
  ])
  return said<Background.AgentOptions>({
    disabled: maybeBoolean("backgroundTasks.disabled", options.disabled),
    tools: options.tools === undefined ? undefined : toToolEntries(options.tools),
    concurrency: options.concurrency,
    waitTimeout: maybeTime("backgroundTasks.waitTimeoutMs", options.waitTimeoutMs),
    onTaskComplete: maybeListener("backgroundTasks.onTaskComplete", options.onTaskComplete),
    onTaskFailed: maybeListener("backgroundTasks.onTaskFailed", options.onTaskFailed),
    onTaskCancelled: maybeListener("backgroundTasks.onTaskCancelled", options.onTaskCancelled)
  })
}

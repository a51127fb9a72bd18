/** What tasks run by, and the settings of an agent about its own: as they are given, and as they are read. */
import type * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import type * as Schedule from "effect/Schedule"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { callback, checkOptions, flag, type Kind, type Known, read, wrongValue } from "../protocol/options.js"
import { isRecord } from "../protocol/safeJson.js"
import {
  type BackgroundLimits,
  maybeBoolean,
  maybeMilliseconds,
  maybeRetries,
  milliseconds,
  type TaskCallback,
  type TaskCallbacks
} from "../tool/background.js"

/** What happens to a call that finds every slot taken. @since 0.1.0 @category models */
export type Backpressure = "queue" | "reject" | "fallback-sync"

/** How a task that failed is tried again. What is left out has its default. @since 0.1.0 @category models */
export interface RetryOptions {
  /** Attempts after the first. Default 0. */
  readonly maxRetries?: number
  /** The time before the second attempt; a number is milliseconds. Default 1 second. */
  readonly retryDelay?: Duration.DurationInput
  /** What the time is multiplied with for each attempt after that. At least 1. Default 2. */
  readonly backoffMultiplier?: number
  /** The longest time between two attempts. Default 30 seconds. */
  readonly maxRetryDelay?: Duration.DurationInput
  /** Whether a failure is worth another attempt. It is told what the tool failed with. Default: every one is. */
  readonly retryableErrors?: (error: unknown) => boolean
}

/** How long settled tasks are kept. @since 0.1.0 @category models */
export interface CleanupOptions {
  /** Age at which completed tasks are deleted; a number is milliseconds. Default 1 hour. */
  readonly completed?: Duration.DurationInput
  /** The same of tasks that failed, took too long or were cancelled. Default 24 hours. */
  readonly other?: Duration.DurationInput
  /** How often that is looked for. Default 1 minute. */
  readonly interval?: Duration.DurationInput
}

/** How tasks end with their process. @since 0.1.0 @category models */
export interface ShutdownOptions {
  /** Time that running tasks have to come to their end; a number is milliseconds. Default 5 seconds. */
  readonly grace?: Duration.DurationInput
  /**
   * What becomes of those that have not: `pending` puts those that have attempts left back into the queue of the next
   * process and fails the others; `failed` fails all. Default `pending`.
   */
  readonly unfinished?: "pending" | "failed"
}

/** How background tasks run. What is left out has its default. @since 0.1.0 @category models */
export interface Options {
  /** `false`: every tool runs in the foreground, as if there were no manager. Default true. */
  readonly enabled?: boolean
  /** Tasks that run at once. Default 10. */
  readonly globalConcurrency?: number
  /** Tasks of one agent that run at once, unless the agent says otherwise. Default 5. */
  readonly perAgentConcurrency?: number
  /**
   * What happens to a call that finds every slot taken: `queue` waits, first come, first served, and an agent without a slot
   * holds up no other; `reject` tells the model of a `TaskRejected`; `fallback-sync` runs it in the foreground. Default
   * `queue`.
   */
  readonly backpressure?: Backpressure
  /** How long one attempt may take; a number is milliseconds. Default 5 minutes. */
  readonly defaultTimeout?: Duration.DurationInput
  /** How tasks that failed are tried again: numbers, or a schedule that is told each failure. Default: not at all. */
  readonly defaultRetries?: RetryOptions | Schedule.Schedule<unknown, unknown>
  /**
   * How long a run that is not until-idle waits, before it would finish, for the tasks it dispatched. One that settles within
   * it is answered in the same run, by one more step. Default: it does not wait.
   */
  readonly waitTimeout?: Duration.DurationInput
  /** Time between two `background-task-progress` of a run. Default 3 seconds. */
  readonly progressInterval?: Duration.DurationInput
  /** Least time between two `background-task-output` of one task. The last output is never lost. Default: none. */
  readonly progressThrottle?: Duration.DurationInput
  /** How long settled tasks are kept. */
  readonly cleanup?: CleanupOptions
  /** Whether tasks that a process left behind when it died are taken over. Default true. */
  readonly recoverOnStart?: boolean
  /**
   * How long others wait, after this process was heard of last, before they take over its tasks. It is heard of three times in
   * this time. Default 15 seconds.
   */
  readonly lease?: Duration.DurationInput
  /** How tasks end with their process. */
  readonly shutdown?: ShutdownOptions
  /**
   * Called with every task that is completed, after the callbacks of its tool and its agent; may give an Effect. Callbacks are
   * called once: in the process that has settled the task, also when several look at the same store.
   */
  readonly onTaskComplete?: TaskCallback
  /** Called with every task that failed or took too long; may give an Effect. */
  readonly onTaskFailed?: TaskCallback
  /** Called with every task that was cancelled; may give an Effect. */
  readonly onTaskCancelled?: TaskCallback
}

/** How a task that failed is tried again. */
export type RetryPolicy =
  | {
      readonly _tag: "Backoff"
      readonly delayMs: number
      readonly multiplier: number
      readonly maxDelayMs: number
      readonly isRetryable: (error: unknown) => boolean
    }
  | { readonly _tag: "Schedule"; readonly schedule: Schedule.Schedule<unknown, unknown> }

/** {@link Options} with every default filled in. Times are milliseconds. */
export interface Settings {
  readonly enabled: boolean
  readonly globalConcurrency: number
  readonly perAgentConcurrency: number
  readonly backpressure: Backpressure
  readonly timeoutMs: number
  readonly maxRetries: number
  readonly retry: RetryPolicy
  readonly waitTimeoutMs: number | undefined
  readonly progressIntervalMs: number
  readonly progressThrottleMs: number | undefined
  readonly cleanup: {
    readonly completedMs: number
    readonly otherMs: number
    readonly intervalMs: number
  }
  readonly recoverOnStart: boolean
  readonly leaseMs: number
  readonly shutdown: { readonly graceMs: number; readonly unfinished: "pending" | "failed" }
  readonly callbacks: TaskCallbacks
}

/** What an agent says of one of its tools. @since 0.1.0 @category models */
export interface AgentToolOptions {
  /** Whether its calls run in the background. Default true. */
  readonly enabled?: boolean
  /** How long one attempt may take; a number is milliseconds. */
  readonly timeout?: Duration.DurationInput
  /** Attempts after the first. */
  readonly retries?: number
  /** How long a run waits for it before it would finish. */
  readonly waitTimeout?: Duration.DurationInput
}

/** What an agent says of its tasks. @since 0.1.0 @category models */
export interface AgentOptions {
  /** Every tool of this agent runs in the foreground. Default false. */
  readonly disabled?: boolean
  /**
   * Which tools run in the background: `"all"`, or by the name that the model calls them with, the id of the tool, or the
   * name of the agent that it is. What is said here wins over what the tool says of itself.
   */
  readonly tools?: "all" | { readonly [tool: string]: boolean | AgentToolOptions }
  /** Tasks of this agent that run at once. Default: the manager's `perAgentConcurrency`. */
  readonly concurrency?: number
  /** How long a run waits for its tasks before it would finish. Default: the manager's. */
  readonly waitTimeout?: Duration.DurationInput
  /** Called with every completed task of this agent; may give an Effect. */
  readonly onTaskComplete?: TaskCallback
  /** Called with every task of this agent that failed or took too long; may give an Effect. */
  readonly onTaskFailed?: TaskCallback
  /** Called with every task of this agent that was cancelled; may give an Effect. */
  readonly onTaskCancelled?: TaskCallback
}

/** What an agent says of one tool, read. */
export interface AgentToolSettings extends BackgroundLimits {
  readonly enabled: boolean
}

/** {@link AgentOptions}, read. */
export interface AgentSettings {
  readonly disabled: boolean
  readonly tools: "all" | ReadonlyMap<string, AgentToolSettings>
  readonly concurrency: number | undefined
  readonly waitTimeoutMs: number | undefined
  readonly callbacks: TaskCallbacks
}

const callbackKinds = { onTaskComplete: callback, onTaskFailed: callback, onTaskCancelled: callback }

const kinds = {
  enabled: flag,
  globalConcurrency: read,
  perAgentConcurrency: read,
  backpressure: read,
  defaultTimeout: read,
  defaultRetries: read,
  waitTimeout: read,
  progressInterval: read,
  progressThrottle: read,
  cleanup: read,
  recoverOnStart: flag,
  lease: read,
  shutdown: read,
  ...callbackKinds
} satisfies Record<keyof Options, Kind>

const concurrency = (field: string, value: number): number => {
  if (Number.isInteger(value) && value >= 1) return value
  throw wrongValue(field, value, "Give a whole number of at least 1.")
}

const oneOf = <A extends string>(field: string, value: A, known: ReadonlyArray<A>): A => {
  if (known.includes(value)) return value
  throw wrongValue(field, value, `Give one of: ${known.join(", ")}.`)
}

/** An object of options, or none. */
const objectOf = <A extends object>(
  field: string,
  value: A | undefined,
  fields: ReadonlyArray<string>,
  checked: Known["kinds"] = {}
) => {
  const given: Partial<A> = value === undefined ? {} : value
  const kinds = { ...Object.fromEntries(fields.map(name => [name, read])), ...checked }
  checkOptions(`\`${field}\``, given, { kinds }, field)
  return given
}

/** Told by its mark: loading schedules takes long, and few hand one over. */
const isSchedule = (given: unknown): given is Schedule.Schedule<unknown, unknown> =>
  Predicate.hasProperty(given, Symbol.for("effect/Schedule"))

/** Of a schedule nobody knows how often it goes on: a task whose process dies again and again must end. */
const retriesOfSchedule = 10

const retryOf = (
  given: Options["defaultRetries"]
): { readonly maxRetries: number; readonly retry: RetryPolicy } => {
  if (isSchedule(given)) {
    return { maxRetries: retriesOfSchedule, retry: { _tag: "Schedule", schedule: given } }
  }
  const options = objectOf("defaultRetries", given, [
    "maxRetries",
    "retryDelay",
    "backoffMultiplier",
    "maxRetryDelay",
    "retryableErrors"
  ] satisfies ReadonlyArray<keyof RetryOptions>)
  const {
    backoffMultiplier = 2,
    maxRetries,
    maxRetryDelay = 30_000,
    retryableErrors,
    retryDelay = 1000
  } = options
  if (!(Number.isFinite(backoffMultiplier) && backoffMultiplier >= 1)) {
    throw wrongValue("defaultRetries.backoffMultiplier", backoffMultiplier, "Give a number of at least 1.")
  }
  if (retryableErrors !== undefined && typeof retryableErrors !== "function") {
    throw new InvalidConfiguration({
      field: "defaultRetries.retryableErrors",
      message:
        "`defaultRetries.retryableErrors` is no function. Give one that says whether a failure is worth another attempt."
    })
  }
  return {
    maxRetries: maybeRetries("defaultRetries.maxRetries", maxRetries) ?? 0,
    retry: {
      _tag: "Backoff",
      delayMs: milliseconds("defaultRetries.retryDelay", retryDelay),
      multiplier: backoffMultiplier,
      maxDelayMs: milliseconds("defaultRetries.maxRetryDelay", maxRetryDelay),
      isRetryable: retryableErrors ?? (() => true)
    }
  }
}

const callbacksOf = ({
  onTaskCancelled,
  onTaskComplete,
  onTaskFailed
}: Pick<Options, "onTaskComplete" | "onTaskFailed" | "onTaskCancelled">): TaskCallbacks => ({
  onComplete: onTaskComplete,
  onFailed: onTaskFailed,
  onCancelled: onTaskCancelled
})

/** The settings of a manager. Throws `InvalidConfiguration`, which names the option and the remedy. */
export const settingsOf = (options: Options): Settings => {
  checkOptions("BackgroundTasks", options, { kinds })
  const cleanup = objectOf("cleanup", options.cleanup, [
    "completed",
    "other",
    "interval"
  ] satisfies ReadonlyArray<keyof CleanupOptions>)
  const shutdown = objectOf("shutdown", options.shutdown, ["grace", "unfinished"] satisfies ReadonlyArray<
    keyof ShutdownOptions
  >)
  const {
    backpressure = "queue",
    defaultTimeout = 300_000,
    enabled = true,
    globalConcurrency = 10,
    lease = 15_000,
    perAgentConcurrency = 5,
    progressInterval = 3000,
    recoverOnStart = true
  } = options
  const { completed = 3_600_000, interval = 60_000, other = 86_400_000 } = cleanup
  const { grace = 5000, unfinished = "pending" } = shutdown
  return {
    enabled,
    globalConcurrency: concurrency("globalConcurrency", globalConcurrency),
    perAgentConcurrency: concurrency("perAgentConcurrency", perAgentConcurrency),
    backpressure: oneOf("backpressure", backpressure, ["queue", "reject", "fallback-sync"]),
    timeoutMs: milliseconds("defaultTimeout", defaultTimeout),
    ...retryOf(options.defaultRetries),
    waitTimeoutMs: maybeMilliseconds("waitTimeout", options.waitTimeout),
    progressIntervalMs: milliseconds("progressInterval", progressInterval),
    progressThrottleMs: maybeMilliseconds("progressThrottle", options.progressThrottle),
    cleanup: {
      completedMs: milliseconds("cleanup.completed", completed),
      otherMs: milliseconds("cleanup.other", other),
      intervalMs: milliseconds("cleanup.interval", interval)
    },
    recoverOnStart,
    leaseMs: milliseconds("lease", lease),
    shutdown: {
      graceMs: milliseconds("shutdown.grace", grace),
      unfinished: oneOf("shutdown.unfinished", unfinished, ["pending", "failed"])
    },
    callbacks: callbacksOf(options)
  }
}

const agentFields = [
  "disabled",
  "tools",
  "concurrency",
  "waitTimeout",
  "onTaskComplete",
  "onTaskFailed",
  "onTaskCancelled"
] as const satisfies ReadonlyArray<keyof AgentOptions>

const noLimits: BackgroundLimits = { timeoutMs: undefined, maxRetries: undefined, waitTimeoutMs: undefined }

const toolOf = (name: string, given: boolean | AgentToolOptions): AgentToolSettings => {
  if (typeof given === "boolean") return { enabled: given, ...noLimits }
  const field = `backgroundTasks.tools.${name}`
  const options = objectOf(field, given, [
    "enabled",
    "timeout",
    "retries",
    "waitTimeout"
  ] satisfies ReadonlyArray<keyof AgentToolOptions>)
  return {
    enabled: maybeBoolean(`${field}.enabled`, options.enabled) ?? true,
    timeoutMs: maybeMilliseconds(`${field}.timeout`, options.timeout),
    maxRetries: maybeRetries(`${field}.retries`, options.retries),
    waitTimeoutMs: maybeMilliseconds(`${field}.waitTimeout`, options.waitTimeout)
  }
}

const toolsOf = (tools: NonNullable<AgentOptions["tools"]>): AgentSettings["tools"] => {
  if (tools === "all") return "all"
  if (isRecord(tools))
    return new Map(Object.entries(tools).map(([name, given]) => [name, toolOf(name, given)]))
  throw new InvalidConfiguration({
    field: "backgroundTasks.tools",
    message: '`backgroundTasks.tools` is neither "all" nor an object. Give { toolName: true }, for example.'
  })
}

/** What an agent says of its tasks, read. Throws `InvalidConfiguration`. */
export const agentSettingsOf = (given: AgentOptions): AgentSettings => {
  const options = objectOf("backgroundTasks", given, agentFields, callbackKinds)
  return {
    disabled: maybeBoolean("backgroundTasks.disabled", options.disabled) ?? false,
    tools: options.tools === undefined ? new Map() : toolsOf(options.tools),
    concurrency:
      options.concurrency === undefined
        ? undefined
        : concurrency("backgroundTasks.concurrency", options.concurrency),
    waitTimeoutMs: maybeMilliseconds("backgroundTasks.waitTimeout", options.waitTimeout),
    callbacks: callbacksOf(options)
  }
}

/** How the background tasks of a container run: milliseconds and promises, in the words of the core. */
import * as Background from "../background/settings.js"
import { maybeBoolean, maybeRetries } from "../tool/background.js"
import { maybeListener, maybeTime, optionsOf, said, type TaskListener, within } from "./background.js"

/** How a task that failed is tried again. What is left out has its default. @since 0.1.0 @category models */
export interface BackgroundRetries {
  /** Attempts after the first. Default 0. */
  readonly maxRetries?: number
  /** Milliseconds before the second attempt. Default 1000. */
  readonly retryDelayMs?: number
  /** What that is multiplied with for each attempt after the second. At least 1. Default 2. */
  readonly backoffMultiplier?: number
  /** The longest time between two attempts, in milliseconds. Default 30 000. */
  readonly maxRetryDelayMs?: number
  /** Whether a failure is worth another attempt. It is told what the tool failed with. Default: every one is. */
  readonly retryableErrors?: (error: unknown) => boolean
}

/** How long settled tasks are kept. @since 0.1.0 @category models */
export interface BackgroundCleanup {
  /** Age at which completed tasks are deleted, in milliseconds. Default 1 hour. */
  readonly completedTtlMs?: number
  /** The same of tasks that failed, took too long or were cancelled. Default 24 hours. */
  readonly failedTtlMs?: number
  /** How often that is looked for, in milliseconds. Default 1 minute. */
  readonly cleanupIntervalMs?: number
}

/** How tasks end with their process. @since 0.1.0 @category models */
export interface BackgroundShutdown {
  /** Milliseconds that running tasks have to come to their end. Default 5000. */
  readonly graceMs?: number
  /**
   * What becomes of those that have not: `pending` puts those that have attempts left back into the queue of the next
   * process and fails the others; `failed` fails all. Default `pending`.
   */
  readonly unfinished?: "pending" | "failed"
}

/** How the background tasks of a container run. What is left out has its default. @since 0.1.0 @category models */
export interface BackgroundTasksOptions {
  /** Whether tools may run in the background at all. Needs `storage`. Default false. */
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
  readonly backpressure?: Background.Backpressure
  /** Milliseconds that one attempt may take. Default 300 000. */
  readonly defaultTimeoutMs?: number
  /** How tasks that failed are tried again. Default: not at all. */
  readonly defaultRetries?: BackgroundRetries
  /**
   * Milliseconds that a run which is not until-idle waits, before it would finish, for the tasks it dispatched. One that
   * settles within it is answered in the same run, by one more step. Default: it does not wait.
   */
  readonly waitTimeoutMs?: number
  /** Milliseconds between two `background-task-progress` of a run. Default 3000. */
  readonly progressIntervalMs?: number
  /** Least milliseconds between two `background-task-output` of one task. The last output is never lost. Default: none. */
  readonly progressThrottleMs?: number
  /** How long settled tasks are kept. */
  readonly cleanup?: BackgroundCleanup
  /** Whether tasks that a process left behind when it died are taken over. Default true. */
  readonly recoverOnStart?: boolean
  /**
   * Milliseconds that others wait, after this process was heard of last, before they take over its tasks. It is heard of three
   * times in this time. Default 15 000.
   */
  readonly leaseMs?: number
  /** How tasks end with their process. */
  readonly shutdown?: BackgroundShutdown
  /** Called with every task that is completed, after the callbacks of its tool and its agent. */
  readonly onTaskComplete?: TaskListener
  /** Called with every task that failed or took too long. */
  readonly onTaskFailed?: TaskListener
  /** Called with every task that was cancelled. */
  readonly onTaskCancelled?: TaskListener
}

const toRetries = (retries: BackgroundRetries): Background.RetryOptions => {
  const field = "backgroundTasks.defaultRetries"
  const options = optionsOf(field, retries, [
    "maxRetries",
    "retryDelayMs",
    "backoffMultiplier",
    "maxRetryDelayMs",
    "retryableErrors"
  ])
  return said<Background.RetryOptions>({
    maxRetries: maybeRetries(`${field}.maxRetries`, options.maxRetries),
    retryDelay: maybeTime(`${field}.retryDelayMs`, options.retryDelayMs),
    backoffMultiplier: options.backoffMultiplier,
    maxRetryDelay: maybeTime(`${field}.maxRetryDelayMs`, options.maxRetryDelayMs),
    retryableErrors: options.retryableErrors
  })
}

const toCleanup = (cleanup: BackgroundCleanup): Background.CleanupOptions => {
  const field = "backgroundTasks.cleanup"
  const options = optionsOf(field, cleanup, ["completedTtlMs", "failedTtlMs", "cleanupIntervalMs"])
  return said<Background.CleanupOptions>({
    completed: maybeTime(`${field}.completedTtlMs`, options.completedTtlMs),
    other: maybeTime(`${field}.failedTtlMs`, options.failedTtlMs),
    interval: maybeTime(`${field}.cleanupIntervalMs`, options.cleanupIntervalMs)
  })
}

const toShutdown = (shutdown: BackgroundShutdown): Background.ShutdownOptions => {
  const field = "backgroundTasks.shutdown"
  const options = optionsOf(field, shutdown, ["graceMs", "unfinished"])
  return said<Background.ShutdownOptions>({
    grace: maybeTime(`${field}.graceMs`, options.graceMs),
    unfinished: options.unfinished
  })
}

const knownOptions = [
  "enabled",
  "globalConcurrency",
  "perAgentConcurrency",
  "backpressure",
  "defaultTimeoutMs",
  "defaultRetries",
  "waitTimeoutMs",
  "progressIntervalMs",
  "progressThrottleMs",
  "cleanup",
  "recoverOnStart",
  "leaseMs",
  "shutdown",
  "onTaskComplete",
  "onTaskFailed",
  "onTaskCancelled"
] as const satisfies ReadonlyArray<keyof BackgroundTasksOptions>

/** How the tasks of a container run, read. Throws `InvalidConfiguration`, which names the option and the remedy. */
export const toSettings = (given: BackgroundTasksOptions | undefined): Background.Settings => {
  const field = "backgroundTasks"
  const options = optionsOf<BackgroundTasksOptions>(field, given, knownOptions)
  const { cleanup, defaultRetries, shutdown } = options
  const translated = said<Background.Options>({
    enabled: maybeBoolean(`${field}.enabled`, options.enabled) ?? false,
    globalConcurrency: options.globalConcurrency,
    perAgentConcurrency: options.perAgentConcurrency,
    backpressure: options.backpressure,
    defaultTimeout: maybeTime(`${field}.defaultTimeoutMs`, options.defaultTimeoutMs),
    defaultRetries: defaultRetries === undefined ? undefined : toRetries(defaultRetries),
    waitTimeout: maybeTime(`${field}.waitTimeoutMs`, options.waitTimeoutMs),
    progressInterval: maybeTime(`${field}.progressIntervalMs`, options.progressIntervalMs),
    progressThrottle: maybeTime(`${field}.progressThrottleMs`, options.progressThrottleMs),
    cleanup: cleanup === undefined ? undefined : toCleanup(cleanup),
    recoverOnStart: options.recoverOnStart,
    lease: maybeTime(`${field}.leaseMs`, options.leaseMs),
    shutdown: shutdown === undefined ? undefined : toShutdown(shutdown),
    onTaskComplete: maybeListener(`${field}.onTaskComplete`, options.onTaskComplete),
    onTaskFailed: maybeListener(`${field}.onTaskFailed`, options.onTaskFailed),
    onTaskCancelled: maybeListener(`${field}.onTaskCancelled`, options.onTaskCancelled)
  })
  return within(field, () => Background.settingsOf(translated))
}

/** How a tool runs in the background: as it is given, and as it is read. */
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import { callback, checkOptions, flag, type Kind, read, wrongValue } from "../protocol/options.js"
import type { Task } from "../protocol/Task.js"

/** Whatever a callback returns that is no Effect: it is ignored, and a promise is waited for. @since 0.1.0 @category models */
export type NoEffect =
  | undefined
  | null
  | string
  | number
  | bigint
  | boolean
  | symbol
  // biome-ignore lint/suspicious/noConfusingVoidType: the return type of a function without `return`.
  | void
  | (object & { readonly [Effect.EffectTypeId]?: never })

/**
 * Called with a task that settled, after its stream has the event. An Effect that it returns is run, and needs nothing: it outlives
 * the run and its services. One that throws, fails or dies is logged, and stops nothing.
 *
 * @since 0.1.0
 * @category models
 */
export type TaskCallback = (task: Task) => NoEffect | Effect.Effect<unknown, unknown>

/** Whom a settled task is told to. A task that took too long has failed. */
export interface TaskCallbacks {
  readonly onComplete: TaskCallback | undefined
  readonly onFailed: TaskCallback | undefined
  readonly onCancelled: TaskCallback | undefined
}

/** How the calls of one tool run in the background. Everything but `enabled` only counts for calls that do. */
export interface BackgroundLimits {
  /** Milliseconds that one attempt may take. */
  readonly timeoutMs: number | undefined
  /** Attempts after the first. */
  readonly maxRetries: number | undefined
  /** Milliseconds that a run waits for it before it would finish. */
  readonly waitTimeoutMs: number | undefined
}

/** What a tool says of itself. */
export interface BackgroundSettings extends BackgroundLimits {
  readonly enabled: boolean | undefined
  readonly callbacks: TaskCallbacks
}

/** How a tool runs in the background. @since 0.1.0 @category models */
export interface BackgroundOptions {
  /** Whether its calls run in the background, unless the agent or the model says otherwise. Default false. */
  readonly enabled?: boolean
  /** How long one attempt may take; a number is milliseconds. Default: the manager's. */
  readonly timeout?: Duration.DurationInput
  /** Attempts after the first. Default: the manager's. */
  readonly retries?: number
  /** How long a run waits for it before it would finish. Default: the agent's, or the manager's. */
  readonly waitTimeout?: Duration.DurationInput
  /** Called with the task when it is completed; may give an Effect. */
  readonly onComplete?: TaskCallback
  /** Called with the task when it failed or took too long; may give an Effect. */
  readonly onFailed?: TaskCallback
  /** Called with the task when it was cancelled; may give an Effect. */
  readonly onCancelled?: TaskCallback
}

/** Timers of the platform count in 32 bits, and fire at once beyond them. */
const longestTimer = 2 ** 31 - 1

/** Whether a timer may run so long. */
export const isTime = (value: unknown): value is number =>
  typeof value === "number" && value > 0 && value <= longestTimer

/** A time limit in milliseconds. Throws `InvalidConfiguration`, which names `field`, when it is none. */
export const milliseconds = (field: string, limit: Duration.DurationInput): number => {
  const duration = Duration.decodeUnknown(limit)
  const millis = duration._tag === "Some" ? Duration.toMillis(duration.value) : Number.NaN
  if (isTime(millis)) return millis
  throw wrongValue(
    field,
    limit,
    'Give a time above 0 and below 24 days: milliseconds, or a text such as "30 seconds".'
  )
}

/** The same of a limit that may be left out. */
export const maybeMilliseconds = (
  field: string,
  limit: Duration.DurationInput | undefined
): number | undefined => (limit === undefined ? undefined : milliseconds(field, limit))

/** The most retries that anybody may ask for. */
const mostRetries = 1000

/** Whether a task may be tried again so often. */
export const isRetries = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= mostRetries

/** A number of retries. Throws `InvalidConfiguration`, which names `field`. */
export const maybeRetries = (field: string, value: number | undefined): number | undefined => {
  if (value === undefined || isRetries(value)) return value
  throw wrongValue(field, value, `Give a whole number from 0 to ${mostRetries}.`)
}

/** A yes or no. Throws `InvalidConfiguration`, which names `field`. */
export const maybeBoolean = (field: string, value: boolean | undefined): boolean | undefined => {
  if (value === undefined || typeof value === "boolean") return value
  throw wrongValue(field, value, "Give true or false.")
}

const kinds = {
  enabled: flag,
  timeout: read,
  retries: read,
  waitTimeout: read,
  onComplete: callback,
  onFailed: callback,
  onCancelled: callback
} satisfies Record<keyof BackgroundOptions, Kind>

/** What a tool says of itself, read. Throws `InvalidConfiguration`. */
export const backgroundOf = (options: BackgroundOptions): BackgroundSettings => {
  checkOptions("`background`", options, { kinds }, "background")
  return {
    enabled: maybeBoolean("background.enabled", options.enabled),
    timeoutMs: maybeMilliseconds("background.timeout", options.timeout),
    maxRetries: maybeRetries("background.retries", options.retries),
    waitTimeoutMs: maybeMilliseconds("background.waitTimeout", options.waitTimeout),
    callbacks: {
      onComplete: options.onComplete,
      onFailed: options.onFailed,
      onCancelled: options.onCancelled
    }
  }
}

/** Which call of which model comes after one that failed. Pure; the random number is handed in. */
import { isPassingStatus } from "../../model/failureKind.js"
import type { LanguageModel } from "../../model/ModelPort.js"
import { type InvalidConfiguration, ModelError } from "../../protocol/Errors.js"

/** A model of a run, and how often a call of it is made again. */
export interface ModelChoice {
  readonly model: LanguageModel
  readonly maxRetries: number
}

/** One call of a step. */
export interface Attempt {
  /** 0-based place in the list of models. */
  readonly modelIndex: number
  /** 0 for the first call of this model in this step. */
  readonly retry: number
}

/** What a model call can fail with. */
export type CallFailure = ModelError | InvalidConfiguration

/** The call to make next, and how long to wait before it, in milliseconds. */
export interface Next extends Attempt {
  readonly delay: number
}

/** Nobody waits longer for an answer; another model may have one. */
export const longestWait = 60_000

/** The provider's word counts most. A cut or silent answer may come whole the next time; what is wrong stays wrong. */
const isRetryable = (failure: CallFailure): failure is ModelError => {
  if (!(failure instanceof ModelError)) return false
  if (failure.isRetryable !== undefined) return failure.isRetryable
  if (failure.statusCode !== undefined) return isPassingStatus(failure.statusCode)
  return failure.reason === "incomplete" || failure.reason === "timeout"
}

/** 1 s, 2 s, 4 s, … up to 30 s, a fifth more or less, so that runs that failed together do not come back together. */
const backOff = (retry: number, random: number): number =>
  Math.min(1000 * 2 ** retry, 30_000) * (0.8 + 0.4 * random)

/**
 * What to do after a failure of which nothing was shown: the same model again, after the time that the provider asks for or
 * a growing one; or the next model of the list, at once; or nothing.
 *
 * `random` is in [0, 1).
 */
export const nextAttempt = (
  models: ReadonlyArray<ModelChoice>,
  { modelIndex, retry }: Attempt,
  failure: CallFailure,
  random: number
): Next | undefined => {
  const { maxRetries } = models[modelIndex] ?? { maxRetries: 0 }
  if (retry < maxRetries && isRetryable(failure)) {
    const delay = Math.max(failure.retryAfter ?? 0, backOff(retry, random))
    if (delay <= longestWait) return { modelIndex, retry: retry + 1, delay }
  }
  return modelIndex + 1 < models.length ? { modelIndex: modelIndex + 1, retry: 0, delay: 0 } : undefined
}

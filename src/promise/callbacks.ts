/** Callbacks of a run. One that throws or rejects is logged and changes nothing. */
import type * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { FullOutput, Step } from "../output/FullOutput.js"
import { isRejected } from "../output/RunFold.js"
import { failureOf, type RunRecord } from "../output/RunRecord.js"
import type { Chunk } from "../protocol/Chunk.js"
import { logError, logWarning } from "../protocol/logging.js"
import { callback, type Kind } from "../protocol/options.js"
import { messageOf } from "../protocol/safeJson.js"

/**
 * What a run calls as it goes. Exactly one of `onFinish`, `onError` and `onAbort` is called, once. Nothing waits for them:
 * a callback that returns a promise does not slow the run down. Of an until-idle stream they are about its first run, but for
 * `onChunk` and `onStepFinish`; the failure of a later one is logged.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunCallbacks {
  /** Every chunk, before any reader sees it. */
  readonly onChunk?: (chunk: Chunk) => unknown
  /** Every step that finished; not one that a processor rejected. */
  readonly onStepFinish?: (step: Step) => unknown
  /** The run ended by itself, was stopped by a processor, or was suspended. */
  readonly onFinish?: (output: FullOutput) => unknown
  /** The run failed. Without it, the failure is logged once. */
  readonly onError?: (failure: { readonly error: Error; readonly output: FullOutput }) => unknown
  /** The run was aborted. */
  readonly onAbort?: (abortion: { readonly error: Error; readonly output: FullOutput }) => unknown
}

export const callbackKinds = {
  onChunk: callback,
  onStepFinish: callback,
  onFinish: callback,
  onError: callback,
  onAbort: callback
} satisfies Record<keyof RunCallbacks, Kind>

/** Writes to the log of whoever owns the run. */
export type Log = (effect: Effect.Effect<void>) => void

/** Calls a callback. What it throws, or rejects with, is logged. */
export const guard = (name: keyof RunCallbacks, log: Log, call: () => unknown): void => {
  const report = (cause: unknown) => log(logWarning(`The callback ${name} failed: ${messageOf(cause)}`))
  try {
    const answer = call()
    if (Predicate.isPromiseLike(answer)) answer.then(undefined, report)
  } catch (cause) {
    report(cause)
  }
}

/** What a run calls with each chunk; `undefined` when nobody listens. */
export const observer = (
  callbacks: RunCallbacks,
  log: Log
): ((chunk: Chunk, record: RunRecord) => void) | undefined => {
  const { onChunk, onStepFinish } = callbacks
  if (onChunk === undefined && onStepFinish === undefined) return undefined
  return (chunk, record) => {
    if (onChunk !== undefined) guard("onChunk", log, () => onChunk(chunk))
    if (chunk.type !== "step-finish" || onStepFinish === undefined || isRejected(chunk.payload)) return
    const step = record.current.finishedSteps.at(-1)
    if (step !== undefined) guard("onStepFinish", log, () => onStepFinish(step))
  }
}

/** Calls the one callback for how the run ended. */
export const announceEnd = (record: RunRecord, callbacks: RunCallbacks, log: Log): void => {
  const { onAbort, onError, onFinish } = callbacks
  if (onError !== undefined) {
    record.onClosed(([_, ...later]) => {
      // `onError` is about the first run, and the loop logs no failure of a run that has it.
      for (const { error, runId, status } of later) {
        if (status === "failed") log(logError(`Run ${runId} failed: ${messageOf(error)}`))
      }
    })
  }
  record.onSettled(output => {
    if (output.status === "failed" || output.status === "aborted") {
      const error = failureOf(output) ?? new Error(`The run ended with status "${output.status}".`)
      const callback = output.status === "failed" ? onError : onAbort
      const name = output.status === "failed" ? "onError" : "onAbort"
      if (callback !== undefined) guard(name, log, () => callback({ error, output }))
    } else if (onFinish !== undefined) {
      guard("onFinish", log, () => onFinish(output))
    }
  })
}

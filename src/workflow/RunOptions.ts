/**
 * What one run of a workflow may be told.
 *
 * @since 0.1.0
 */
import { InvalidConfiguration } from "../protocol/Errors.js"
import { refuseUnknown } from "../protocol/options.js"
import type { RequestContext } from "../tool/ToolContext.js"
import type { AnyStep } from "./definition.js"

/** Of every run. @since 0.1.0 @category models */
export interface AnyRunOptions {
  /** Values of this request, for its steps and the agents in them. They are not stored. A `Map` is used as it is. */
  readonly requestContext?: RequestContext | { readonly [key: string]: unknown }
  /** Ends the run: steps and agents within 50 ms, then `abort` and `finish`. Nothing of it stays in the store. */
  readonly abortSignal?: AbortSignal
}

/** Of a run that begins. @since 0.1.0 @category models */
export interface RunOptions<In> extends AnyRunOptions {
  /** What the workflow is given. */
  readonly inputData: In
  /** Default: a fresh id. It must be none of a run that is stored. */
  readonly runId?: string
}

/** Of a run that goes on after it was suspended. @since 0.1.0 @category models */
export interface ResumeOptions extends AnyRunOptions {
  /** The run that waits. */
  readonly runId: string
  /** The step, as it is called in chunks; it may be left out when only one is suspended. */
  readonly step?: string | AnyStep | ReadonlyArray<string>
  /** What the step is resumed with. */
  readonly resumeData?: unknown
}

/** Of a run whose process has died, or was shut down. @since 0.1.0 @category models */
export interface RestartOptions extends AnyRunOptions {
  /** The run that is to go on. */
  readonly runId: string
}

const common = ["requestContext", "abortSignal"]

/** Options of a run that begins. */
export const startFields: ReadonlyArray<string> = ["inputData", "runId", ...common]
/** Of one that is resumed. */
export const resumeFields: ReadonlyArray<string> = ["runId", "step", "resumeData", ...common]
/** Of one that is restarted. */
export const restartFields: ReadonlyArray<string> = ["runId", ...common]

/** Throws `InvalidConfiguration`. */
export const checkRunOptions = (
  options: AnyRunOptions & { readonly runId?: string },
  known: ReadonlyArray<string>
): void => {
  refuseUnknown("A run of a workflow", options, known)
  const { abortSignal, requestContext, runId } = options
  if (runId !== undefined && (typeof runId !== "string" || runId === "")) {
    throw new InvalidConfiguration({
      field: "runId",
      message: "`runId` is no id. Give a string that is not empty."
    })
  }
  if (abortSignal !== undefined && !(abortSignal instanceof AbortSignal)) {
    throw new InvalidConfiguration({
      field: "abortSignal",
      message: "`abortSignal` is no AbortSignal. Give the `signal` of an AbortController."
    })
  }
  if (requestContext !== undefined && (typeof requestContext !== "object" || requestContext === null)) {
    throw new InvalidConfiguration({
      field: "requestContext",
      message: "`requestContext` is no object. Give a Map, or a plain object."
    })
  }
}

/** The id of a run that is stored. Throws `InvalidConfiguration` when there is none. */
export const storedRunId = (runId: unknown): string => {
  if (typeof runId === "string" && runId !== "") return runId
  throw new InvalidConfiguration({
    field: "runId",
    message: "`runId` is no id. Give the one that the chunks of the run have."
  })
}

/** The values of a request, as one map. */
export const contextOf = (given: AnyRunOptions["requestContext"]): RequestContext =>
  given instanceof Map ? given : new Map(Object.entries(given ?? {}))

/** A step as it is called in chunks. */
export const stepIdOf = (step: ResumeOptions["step"]): string | undefined => {
  if (step === undefined || typeof step === "string") return step
  return "id" in step ? step.id : step.join(".")
}

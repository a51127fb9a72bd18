/**
 * What one run of a workflow may be told.
 *
 * @since 0.1.0
 */
import { InvalidConfiguration } from "../protocol/Errors.js"
import {
  abortSignal,
  at,
  checkOptions,
  either,
  id,
  isOptions,
  type Kind,
  type Known,
  object,
  read,
  text,
  texts
} from "../protocol/options.js"
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

const isStepLike: Kind = {
  accepts: value => isOptions(value) && typeof value["id"] === "string",
  remedy: ""
}

const places = { input: at("inputData"), data: at("resumeData"), signal: at("abortSignal") }

const common = {
  requestContext: { ...object, remedy: "Give a Map, or a plain object." },
  abortSignal
} satisfies Record<keyof AnyRunOptions, Kind>

/** Options of a run that starts. */
export const startKinds = { inputData: read, runId: id, ...common } satisfies Record<
  keyof RunOptions<unknown>,
  Kind
>
/** Of one that is resumed. */
export const resumeKinds = {
  runId: id,
  step: either(
    text,
    either(texts, isStepLike, ""),
    "Give the id of a step, the step, or the ids that lead to it."
  ),
  resumeData: read,
  ...common
} satisfies Record<keyof ResumeOptions, Kind>
/** Of one that is restarted. */
export const restartKinds = { runId: id, ...common } satisfies Record<keyof RestartOptions, Kind>

/** Throws `InvalidConfiguration`. */
export const checkRunOptions = (options: AnyRunOptions, kinds: Known["kinds"]): void => {
  checkOptions("A run of a workflow", options, { kinds, places })
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

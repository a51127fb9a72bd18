/** What every step has, whatever it does. */
import * as Duration from "effect/Duration"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { shown } from "../protocol/options.js"
import { maybeMilliseconds, maybeRetries } from "../tool/background.js"
import { type AnyStep, type Body, type Step, TypeId } from "./definition.js"

/** A dot stands between the id of a workflow and those of its steps. */
export const checkId = (what: string, id: unknown): void => {
  if (typeof id === "string" && id !== "" && !id.includes(".")) return
  throw new InvalidConfiguration({
    field: "id",
    message: `${what} needs an \`id\`: a string that is not empty, and has no dot. This one is ${shown(id)}.`
  })
}

/** Durations have no sign: Effect reads a negative one as none. */
const isNoTime = (delay: Duration.DurationInput): boolean => {
  if (typeof delay === "number") return delay === 0
  if (typeof delay === "string" && delay.trim().startsWith("-")) return false
  const duration = Duration.decodeUnknown(delay)
  return duration._tag === "Some" && Duration.toMillis(duration.value) === 0
}

/** A pause before a retry, which may be none. */
export const delayOf = (delay: Duration.DurationInput | undefined): number | undefined =>
  delay !== undefined && isNoTime(delay) ? 0 : maybeMilliseconds("retryDelay", delay)

/** Types only: nobody calls these. */
const variance = {
  _In: (_: unknown): void => undefined,
  _Out: (): never => unreachable(),
  _E: (): never => unreachable()
}

const unreachable = (): never => {
  throw new Error("A step has its types for the compiler only.")
}

/** A step of any body: for functions between steps, agents, and workflows. */
export const ofBody = <const Id extends string, R>(
  id: Id,
  { description, retries, retryDelay, timeout }: Manner,
  body: Body<R>
): Step<Id, unknown, never, never, R> => {
  checkId("A step", id)
  return {
    [TypeId]: variance,
    id,
    description,
    retries: maybeRetries("retries", retries),
    retryDelayMs: delayOf(retryDelay),
    timeout: maybeMilliseconds("timeout", timeout),
    body
  }
}

/** What a step says of itself and its attempts. */
interface Manner {
  readonly description?: string | undefined
  readonly retries?: number | undefined
  readonly retryDelay?: Duration.DurationInput | undefined
  readonly timeout?: Duration.DurationInput | undefined
}

/** Whether a value is a step; a workflow is one. @since 0.1.0 @category guards */
export const isStep = (value: unknown): value is AnyStep =>
  typeof value === "object" && value !== null && TypeId in value

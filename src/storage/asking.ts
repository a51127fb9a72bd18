/** What every port does with what it is asked, before a driver is. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { StorageError, ThreadNotFound } from "../protocol/Errors.js"
import { wellFormed } from "../protocol/safeJson.js"

/** The driver's words may hold what it was asked: they stay in the cause. */
export const ask = <A>(operation: string, asked: Effect.Effect<A, unknown>): Effect.Effect<A, StorageError> =>
  Effect.mapError(
    asked,
    cause =>
      new StorageError({ operation, message: `${operation} failed in the driver: see its cause.`, cause })
  )

/** A whole number that is not negative. */
export const whole = (value: number): number =>
  value >= 1 ? Math.min(Math.floor(value), Number.MAX_SAFE_INTEGER) : 0

/** A time span as drivers take it: a whole number of milliseconds that a database can hold. */
export const milliseconds = (duration: Duration.DurationInput): number =>
  whole(Math.ceil(Duration.toMillis(duration)))

export const optionalText = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : wellFormed(text)

/** Of a thread that is not there, or is another resource's. */
export const notFound = (threadId: string): ThreadNotFound =>
  new ThreadNotFound({
    threadId,
    message: `There is no thread "${threadId}" here. Open it first, or check its id and the resource that it belongs to.`
  })

/** Others may change meanwhile what is compared and set, but not for ever. */
export const mostTries = 100

/**
 * Requests of clients that we did not write, read into what a run is told.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"

/**
 * The body of a request has not the shape of its protocol, or asks for what cannot be done here. `field` names the place,
 * `message` ends with the remedy. Answer it with status 400.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidRequest extends Data.TaggedError("InvalidRequest")<{
  readonly field: string
  readonly message: string
}> {}

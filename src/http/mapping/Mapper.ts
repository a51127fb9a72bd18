/**
 * What a protocol makes of chunks: frames, one chunk at a time. A mapper is plain and synchronous; its frames depend on the
 * chunks and its options only, so that the same chunks give the same bytes again.
 *
 * @since 0.1.0
 */
import type { Chunk } from "../../protocol/Chunk.js"

/**
 * The mapping of one response. It takes any sequence of chunks: what is out of order is put in order or left out, and a type
 * that it does not know is skipped.
 *
 * @since 0.1.0
 * @category models
 */
export interface Mapper<out Frame> {
  /** The frames of one more chunk. */
  readonly push: (chunk: Chunk) => ReadonlyArray<Frame>
  /**
   * The frames that end the response, once there are no more chunks. `failure` is why there are none, when they broke off.
   * Chunks that end in the middle of a run have broken off too: the client is told so. Afterwards there are no frames.
   */
  readonly end: (failure?: unknown) => ReadonlyArray<Frame>
}

/** What a client may read of a failure. @since 0.1.0 @category models */
export type ErrorText = (error: unknown) => string

/**
 * Says that something failed and nothing else: messages of providers, tools and databases stay in the process.
 *
 * @since 0.1.0
 * @category constants
 */
export const maskedError: ErrorText = () => "An error occurred."

/** What all mappings may be told. @since 0.1.0 @category models */
export interface MapperOptions {
  /**
   * The text that a client reads for what a run, a tool or a background task failed with. Default: {@link maskedError}, one
   * text for all.
   */
  readonly errorText?: ErrorText
}

/** What clients are told when chunks break off without a reason. @since 0.1.0 @category constants */
export const brokenOff = new Error("The run broke off before it was finished.")

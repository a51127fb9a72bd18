/** What every mapper does with its frames: those of one chunk go out together, and behind the end there are none. */
import type { Chunk } from "../../protocol/Chunk.js"
import type { Mapper } from "./Mapper.js"

export abstract class Frames<Frame> implements Mapper<Frame> {
  private frames: Array<Frame> = []
  private isEnded = false

  readonly push = (chunk: Chunk): ReadonlyArray<Frame> => {
    if (this.isEnded) return []
    this.frames = []
    this.take(chunk)
    return this.frames
  }

  readonly end = (failure?: unknown): ReadonlyArray<Frame> => {
    if (this.isEnded) return []
    this.frames = []
    this.conclude(failure)
    this.isEnded = true
    return this.frames
  }

  /** Sends the frames of one more chunk. */
  protected abstract take(chunk: Chunk): void

  /** Sends the last frames; `failure` is why there are no more chunks, when they broke off. */
  protected abstract conclude(failure: unknown): void

  protected send(frame: Frame): void {
    this.frames.push(frame)
  }
}
